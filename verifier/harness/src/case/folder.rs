//! Atomic replacement of folders: a folder is complete or does not exist.
//!
//! A folder `NAME` is written as `.NAME.PROCESS.partial` and then replaces `NAME` in one step: by a rename if `NAME`
//! does not exist, by an exchange of the two names otherwise. If the process is killed, there is the old folder or the
//! new one, and perhaps a partial one, which readers ignore and the next writer removes ([`clean`]).
//!
//! A file system that cannot exchange names needs two renames. Between them the old folder is called `.NAME.old`, and
//! [`recover`] renames it back.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes files (a name may include a folder) as the folder `path`, all of them or none. Replaces an existing folder.
///
/// # Errors
/// If the file system refuses.
pub fn write<B: AsRef<[u8]>>(path: &Path, files: &[(&'static str, B)]) -> io::Result<()> {
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
    // This name now belongs to the old folder, or to an incomplete new one.
    let removed = remove(&partial);
    written.and(removed)
}

/// Renames a complete folder to `path`. An existing folder there gets the other name, or is removed.
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

/// Like [`take_place`], if names cannot be exchanged.
fn take_place_in_two_steps(partial: &Path, path: &Path) -> io::Result<()> {
    let old = old(path)?;
    if path.exists() {
        remove(&old)?;
        fs::rename(path, &old)?;
    }
    fs::rename(partial, path)?;
    remove(&old)
}

/// Renames a folder back if its replacement was interrupted.
///
/// # Errors
/// If the file system refuses.
pub fn recover(path: &Path) -> io::Result<()> {
    let old = old(path)?;
    if !old.exists() {
        return Ok(());
    }
    if path.exists() { remove(&old) } else { fs::rename(&old, path) }
}

/// Removes the partial folders below `root` of processes that have ended, and recovers the folders that they were
/// replacing.
///
/// # Errors
/// If the file system refuses.
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

/// Lists the complete bundles below `root`, sorted by name; empty if there is no such folder.
///
/// # Errors
/// If the file system refuses.
pub fn list(root: &Path) -> io::Result<Vec<PathBuf>> {
    let names = names(root)?.into_iter().filter(|name| !name.starts_with('.'));
    let mut bundles: Vec<PathBuf> = names.map(|name| root.join(name)).filter(|path| is_bundle(path)).collect();
    bundles.sort();
    Ok(bundles)
}

/// Returns true if a path is a bundle's folder.
pub fn is_bundle(path: &Path) -> bool {
    path.join("bundle.json").is_file()
}

/// The path of a temporary file next to a folder.
///
/// # Errors
/// If the folder has no name.
pub fn sibling(path: &Path, ending: &str) -> io::Result<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str());
    match name {
        Some(name) => Ok(path.with_file_name(format!(".{name}.{ending}"))),
        // `.` and `..` have no name of their own.
        None => match path.canonicalize()? {
            whole if whole != path => sibling(&whole, ending),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "found a folder without a name, expected one")),
        },
    }
}

fn partial(path: &Path) -> io::Result<PathBuf> {
    sibling(path, &format!("{}.partial", std::process::id()))
}

fn old(path: &Path) -> io::Result<PathBuf> {
    sibling(path, "old")
}

fn names(root: &Path) -> io::Result<Vec<String>> {
    match fs::read_dir(root) {
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Returns true if the process exists, or if that cannot be determined.
fn is_alive(process: &str) -> bool {
    let processes = Path::new("/proc");
    !processes.join("self").exists() || processes.join(process).exists()
}

/// Removes a folder or a file, if it exists.
fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
