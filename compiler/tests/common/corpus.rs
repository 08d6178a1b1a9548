//! The programs of `corpus/`.

use std::path::{Path, PathBuf};

use super::files::files;

/// All programs, in order.
pub fn corpus() -> Vec<PathBuf> {
    let paths = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus"), "nir");
    assert!(paths.len() >= 40, "only {} programs", paths.len());
    paths
}
