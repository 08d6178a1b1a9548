//! File search.

use std::fs;
use std::path::{Path, PathBuf};

/// The files below a folder with an extension, sorted; none if there is no such folder.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|its| its == extension) {
            found.push(path);
        }
    }
    found
}
