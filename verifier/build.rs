//! Hashes the sources of the compiler and the verifier that verdicts depend on: cached proofs are those of this prover
//! (`solver/cache.rs`).
//! Finds the commit. With the feature `z3`, looks for the library first: the linker would complain about it only at the end of the build.

#[cfg(feature = "z3")]
#[path = "build/z3.rs"]
mod z3;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};
use xxhash_rust::xxh3::Xxh3;

/// Folders of which no verdict depends: campaigns, reports, and reductions, which call the judge.
const NOT_HASHED: [&str; 5] =
    ["harness/campaigns", "harness/fuzz_targets", "harness/reduce", "harness/report/page", "harness/triage"];

/// All files below a folder.
fn files(folder: &Path, list: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, list)?;
        } else {
            list.push(path);
        }
    }
    Ok(())
}

/// The output of a git command; `None` without git, or outside of a repository.
fn git(package: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(package).output().ok()?;
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    Some(text.trim().to_owned())
}

/// The commit of the sources: that of the environment, otherwise the one that git had when the library was built, with `-dirty` after it if the
/// library has changes that are in no commit. Another commit alone does not build the library again, and its sources are still those.
fn commit(package: &Path) -> Option<String> {
    println!("cargo::rerun-if-env-changed=IR3_COMMIT");
    if let Ok(commit) = env::var("IR3_COMMIT") {
        return Some(commit);
    }
    // The sources may be in the folder of another repository.
    git(package, &["ls-files", "build.rs"]).filter(|name| !name.is_empty())?;
    let hash = git(package, &["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(package, &["status", "--porcelain", "--", "src", "../compiler/src", ":!src/cli"])?;
    Some(if changes.is_empty() { hash } else { format!("{hash}-dirty") })
}

fn main() -> io::Result<()> {
    #[cfg(feature = "z3")]
    z3::require();
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut version = env!("CARGO_PKG_VERSION").to_owned();
    if let Some(commit) = commit(&package) {
        version += &format!(" ({commit})");
        println!("cargo::rustc-env=IR3_COMMIT={commit}");
    }
    println!("cargo::rustc-env=IR3_VERSION={version}");
    let mut list = Vec::new();
    // Not the command line: a change of it builds the program alone.
    let parts = fs::read_dir(package.join("src"))?.collect::<io::Result<Vec<_>>>()?;
    let parts = parts.into_iter().map(|part| part.path()).filter(|path| !path.ends_with("cli"));
    for path in parts.chain([package.join("../compiler/src")]) {
        println!("cargo::rerun-if-changed={}", path.display());
        if path.is_dir() { files(&path, &mut list)? } else { list.push(path) }
    }
    let not_hashed = NOT_HASHED.map(|folder| package.join("src").join(folder));
    list.retain(|path| !not_hashed.iter().any(|folder| path.starts_with(folder)));
    list.sort();
    let mut hash = Xxh3::new();
    for path in &list {
        let text = fs::read(path)?;
        let name = path.strip_prefix(&package).unwrap_or(path).to_string_lossy().into_owned();
        for part in [name.as_bytes(), &text] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    println!("cargo::rustc-env=IR3_SOURCES={:032x}", hash.digest128());
    Ok(())
}
