//! Mesa's logs: below `../shared/mesa` of the workspace, or `mesa` of the folder that `IR3_SHARED` names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::files::files;

/// The logs by the name of their folder, which is that of a GPU and, after a dash, of a variant. Without that folder
/// the map is empty, and a message is printed.
pub fn logs() -> BTreeMap<String, Vec<PathBuf>> {
    // A relative path is relative to the workspace, where cargo is called, not to the package, where tests run.
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let shared = workspace.join(std::env::var_os("IR3_SHARED").unwrap_or_else(|| "../shared".into()));
    let mut logs: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    if !shared.is_dir() {
        println!("skipped: ../shared is absent");
        return logs;
    }
    for path in files(&shared.join("mesa"), "log") {
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        logs.entry(folder).or_default().push(path);
    }
    assert!(!logs.is_empty(), "no logs in {}", shared.display());
    logs
}

/// The text of a log.
pub fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}
