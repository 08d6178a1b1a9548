//! Folders that are there as a whole or not at all.
//!
//! A folder `NAME` is written as `.NAME.PROCESS.partial` and then takes its place in one step: a rename where nothing is
//! there, an exchange of the two names where something is. So whoever kills the process finds the old folder or the new
//! one, and perhaps a partial one, which counts for nothing and is removed by the next writer ([`clean`]).
//!
//! A file system that cannot exchange names needs two renames. Between them the old folder is called `.NAME.old`, and
//! [`recover`] gives it its name back.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes files (a name may have a folder in it) as the folder `path`, all of them or none. A folder that is there is
/// replaced.
///
/// # Errors
/// When the file system refuses.
pub fn write(path: &Path, files: &[(&'static str, String)]) -> io::Result<()> {
    let partial = partial(path)?;
    let fill = || {
        remove(&partial)?;
        fs::create_dir_all(&partial)?;
        for (file, content) in files {
            let to = partial.join(file);
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(to, content)?;
        }
        recover(path)?;
        take_place(&partial, path)
    };
    let written = fill();
    // What is there under this name now is the old folder, or half of the new one.
    let removed = remove(&partial);
    written.and(removed)
}

/// Gives a whole folder its name; what has the name has the other one afterwards, or is gone.
fn take_place(partial: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, partial, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(()),
        Err(rustix::io::Errno::EXIST) => {
            if renameat_with(CWD, partial, CWD, path, RenameFlags::EXCHANGE).is_ok() {
                return Ok(());
            }
        }
        Err(_) => {}
    }
    take_place_in_two_steps(partial, path)
}

/// The same where names cannot be exchanged.
fn take_place_in_two_steps(partial: &Path, path: &Path) -> io::Result<()> {
    let old = old(path)?;
    if path.exists() {
        remove(&old)?;
        fs::rename(path, &old)?;
    }
    fs::rename(partial, path)?;
    remove(&old)
}

/// Gives a folder its name back that was on its way to be replaced.
///
/// # Errors
/// When the file system refuses.
pub fn recover(path: &Path) -> io::Result<()> {
    let old = old(path)?;
    if !old.exists() {
        return Ok(());
    }
    if path.exists() { remove(&old) } else { fs::rename(&old, path) }
}

/// Removes what processes that are no more have left half-written below `root`, and recovers what they were about to
/// replace.
///
/// # Errors
/// When the file system refuses.
pub fn clean(root: &Path) -> io::Result<()> {
    for name in names(root)? {
        let Some(hidden) = name.strip_prefix('.') else { continue };
        if let Some(bundle) = hidden.strip_suffix(".old") {
            recover(&root.join(bundle))?;
        } else if let Some((_, process)) = hidden.strip_suffix(".partial").and_then(|name| name.rsplit_once('.'))
            && process.bytes().all(|b| b.is_ascii_digit())
            && !is_alive(process)
        {
            remove(&root.join(&name))?;
        }
    }
    Ok(())
}

/// The bundles below `root`, by name. Half-written ones are none; there is none where there is no such folder.
///
/// # Errors
/// When the file system refuses.
pub fn list(root: &Path) -> io::Result<Vec<PathBuf>> {
    let names = names(root)?.into_iter().filter(|name| !name.starts_with('.'));
    let mut bundles: Vec<PathBuf> = names.map(|name| root.join(name)).filter(|path| is_bundle(path)).collect();
    bundles.sort();
    Ok(bundles)
}

/// Whether a path is that of a bundle's folder.
pub fn is_bundle(path: &Path) -> bool {
    path.join("bundle.json").is_file()
}

/// A file beside a folder, for what belongs to it for a while.
pub(super) fn beside(path: &Path, ending: &str) -> io::Result<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str());
    match name {
        Some(name) => Ok(path.with_file_name(format!(".{name}.{ending}"))),
        // `.` and `..` have no name of their own.
        None => match path.canonicalize()? {
            whole if whole != path => beside(&whole, ending),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "found a folder without a name, expected one")),
        },
    }
}

fn partial(path: &Path) -> io::Result<PathBuf> {
    beside(path, &format!("{}.partial", std::process::id()))
}

fn old(path: &Path) -> io::Result<PathBuf> {
    beside(path, "old")
}

fn names(root: &Path) -> io::Result<Vec<String>> {
    match fs::read_dir(root) {
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Whether there is such a process. Where that cannot be known, there is.
fn is_alive(process: &str) -> bool {
    let processes = Path::new("/proc");
    !processes.join("self").exists() || processes.join(process).exists()
}

/// Removes a folder or a file, if there is one.
fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
