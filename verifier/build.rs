//! Hashes the sources of the compiler and the verifier: kept proofs are those of exactly this prover (`solver/cache.rs`).
//! With the feature `z3`, looks for the library first: the linker would complain about it only at the end of the build.

#[cfg(feature = "z3")]
#[path = "build/z3.rs"]
mod z3;

use std::path::{Path, PathBuf};
use std::{env, fs, io};
use xxhash_rust::xxh3::Xxh3;

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

fn main() -> io::Result<()> {
    #[cfg(feature = "z3")]
    z3::require();
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut list = Vec::new();
    for folder in ["src", "../compiler/src"] {
        println!("cargo::rerun-if-changed={folder}");
        files(&package.join(folder), &mut list)?;
    }
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
