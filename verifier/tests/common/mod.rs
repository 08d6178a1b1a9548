//! Utilities of several tests, and Mesa's logs.

pub mod effort;
pub mod folder;
pub mod planted;
pub mod reloads;
pub mod vertex;

use std::path::{Path, PathBuf};

use ir3_programs::mesa::input::collect_paths;

/// The real logs: below `../shared/mesa/train` of the workspace, or `mesa/train` of the folder that `IR3_SHARED` names.
/// Prints a message if the folder is absent.
pub fn logs() -> Option<Vec<PathBuf>> {
    // A relative path is relative to the workspace, where cargo is called, not to the package, where tests run.
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let shared = std::env::var_os("IR3_SHARED").unwrap_or_else(|| "../shared".into());
    let folder = workspace.join(shared).join("mesa/train");
    if !folder.is_dir() {
        println!("skipped: ../shared is absent");
        return None;
    }
    Some(collect_paths(&[folder]).expect("the folder of logs can be walked"))
}
