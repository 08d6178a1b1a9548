//! The copy of the repository.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies the files of the repository, except for the sources of the compiler, which [`crate::write`] writes. Unchanged
/// files keep their times, so that they are not built again; removed files are deleted.
pub fn copy(tree: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(tree)?;
    let output = Command::new("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).output()?;
    let names = String::from_utf8(output.stdout)?;
    let mut files: BTreeSet<PathBuf> =
        names.split_terminator('\0').map(PathBuf::from).filter(|path| path.is_file()).collect();
    if !output.status.success() || !files.contains(Path::new("Cargo.lock")) {
        return Err("not in the root of the repository".into());
    }
    for file in &files {
        if file.starts_with(crate::SOURCES) {
            continue;
        }
        let (new, to) = (fs::read(file)?, tree.join(file));
        if fs::read(&to).is_ok_and(|old| old == new) {
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&to, new).map_err(|error| format!("{}: {error}", to.display()))?;
    }
    files.insert(Path::new(crate::SOURCES).join("mutant_switch.rs"));
    files.insert(crate::OUTPUTS.into());
    remove_others(tree, Path::new(""), &files)
}

fn remove_others(tree: &Path, below: &Path, files: &BTreeSet<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(tree.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(tree, &path, files)?;
        } else if !files.contains(&path) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
