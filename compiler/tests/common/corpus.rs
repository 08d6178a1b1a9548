//! The programs of `corpus/`.

use std::path::{Path, PathBuf};

use super::files::files;

/// All programs that people wrote, in order: not those of `corpus/regressions`, which are bundles, not those of
/// `corpus/pairs`, some of which are intentionally wrong, and not those of `corpus/file`, which are two programs each.
pub fn corpus() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let mut paths = files(&root, "nir");
    paths.retain(|path| !["regressions", "pairs", "file"].iter().any(|folder| path.starts_with(root.join(folder))));
    assert!(paths.len() >= 40, "only {} programs", paths.len());
    paths
}
