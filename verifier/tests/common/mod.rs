//! Utilities of several tests, and Mesa's logs.

pub mod effort;
pub mod folder;
pub mod planted;
pub mod reloads;
pub mod vertex;

use std::path::{Path, PathBuf};
use std::time::Duration;

use ir3_harness::check::{Engines, Smt};
use ir3_programs::mesa::input::collect_paths;
use ir3_prove::simulation::Limits;

/// All engines, with about the time for proofs that they have on the command line; the default of the library is ten
/// times as long.
pub fn engines() -> Engines {
    Engines::all(Smt { limits: Limits::within(Duration::from_secs(1)), ..Smt::default() })
}

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

/// Every third real log; all of them with more effort.
pub fn some_logs() -> Option<Vec<PathBuf>> {
    logs().map(|paths| paths.into_iter().step_by(effort::one_of(3)).collect())
}
