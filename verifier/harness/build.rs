//! Hashes the sources of the compiler and of the packages that verdicts depend on: cached proofs are those of this
//! prover (`src/check/cache.rs`). Finds the commit.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};
use xxhash_rust::xxh3::Xxh3;

/// The sources of this package and of those that it uses.
const SOURCES: [&str; 5] = ["src", "../programs/src", "../prove/src", "../semantics/src", "../../compiler/src"];

/// Folders of which no verdict depends: campaigns, cases and reductions, which call the judge.
const NOT_HASHED: [&str; 4] = ["src/campaigns", "src/case", "src/fuzz_targets", "src/reduce"];

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

/// The commit of the sources: that of the environment, otherwise the one that git had when this package was built, with
/// `-dirty` after it if the sources have changes that are in no commit. Another commit alone does not build the package
/// again, and its sources are still those.
fn commit(package: &Path) -> Option<String> {
    println!("cargo::rerun-if-env-changed=IR3_COMMIT");
    if let Ok(commit) = env::var("IR3_COMMIT") {
        return Some(commit);
    }
    // The sources may be in the folder of another repository.
    git(package, &["ls-files", "build.rs"]).filter(|name| !name.is_empty())?;
    let hash = git(package, &["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(package, &[&["status", "--porcelain", "--"][..], &SOURCES].concat())?;
    Some(if changes.is_empty() { hash } else { format!("{hash}-dirty") })
}

fn main() -> io::Result<()> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut version = env!("CARGO_PKG_VERSION").to_owned();
    if let Some(commit) = commit(&package) {
        version += &format!(" ({commit})");
        println!("cargo::rustc-env=IR3_COMMIT={commit}");
    }
    println!("cargo::rustc-env=IR3_VERSION={version}");
    let mut list = Vec::new();
    for folder in SOURCES.map(|folder| package.join(folder)) {
        println!("cargo::rerun-if-changed={}", folder.display());
        files(&folder, &mut list)?;
    }
    let not_hashed = NOT_HASHED.map(|folder| package.join(folder));
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
