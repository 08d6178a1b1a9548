//! The GPU of a log.

use ir3_compiler::target::Target;

/// The GPU that the logs of a folder are for: the folder's name up to a dash.
pub fn gpu(folder: &str) -> Target {
    Target::by_name(folder.split('-').next().unwrap_or(folder)).unwrap()
}
