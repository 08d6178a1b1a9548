//! The library of a driver of Vulkan, or of its loader.

use crate::turnip::driver::{FOLDERS, REGISTRIES, loader_command, unpacked, worker};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Mesa's driver for CPUs.
const LAVAPIPE: &str = "libvulkan_lvp.so";
/// The folder into which `ci/stock-mesa --lavapipe` unpacks packages, beside the folders of builds.
const UNPACKED: &str = "lavapipe/usr/lib/x86_64-linux-gnu";
/// The loader of Vulkan.
const LOADER: &str = "libvulkan.so.1";
/// The program that executes shaders.
const WORKER: &str = "ir3-vulkan";

/// A driver, or the loader of all drivers of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Its path.
    pub path: PathBuf,
    /// A part of the name of the device, or its number, if it is not the first one.
    pub device: Option<String>,
}

/// A library, or the program that loads it, that is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLibrary {
    /// None of the places has a driver.
    #[error(
        "found no driver of Vulkan: install mesa-vulkan-drivers (lavapipe runs on any CPU) or the loader {LOADER}, or unpack Debian's lavapipe with `ci/stock-mesa --lavapipe`, or name a library with `--vulkan PATH`"
    )]
    NotFound,
    /// The path that was given is no file.
    #[error("{path}: found no such library", path = .0.display())]
    NotThere(PathBuf),
    /// The worker is not there.
    #[error(
        "found no {WORKER}, which loads the driver, beside {program}: `cargo build --release` builds both, `cargo install --locked --path verifier/turnip` installs it",
        program = .0.display()
    )]
    NoWorker(PathBuf),
}

impl Library {
    /// The library of a path (`PATH` or `PATH#DEVICE`), or of a registered driver whose file has a name, or the loader
    /// with the device of that name. Without one, lavapipe where it is unpacked or installed, or the loader.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(given: Option<&str>) -> Result<Self, NoLibrary> {
        let Some(given) = given.filter(|given| !given.is_empty()) else {
            let lavapipe = unpacked(UNPACKED).into_iter().chain(FOLDERS.map(PathBuf::from));
            let loaders = FOLDERS.map(|folder| Path::new(folder).join(LOADER));
            let mut all = lavapipe.map(|folder| folder.join(LAVAPIPE)).chain(loaders);
            let path = all.find(|path| path.is_file()).ok_or(NoLibrary::NotFound)?;
            return Ok(Self { path, device: None });
        };
        let (name, device) = match given.split_once('#') {
            Some((name, device)) => (name, Some(device.to_owned())),
            None => (given, None),
        };
        let path = Path::new(name);
        if name.contains('/') || path.is_file() {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            return if path.is_file() { Ok(Self { path, device }) } else { Err(NoLibrary::NotThere(path)) };
        }
        if let Some(path) = named(name) {
            return Ok(Self { path, device });
        }
        let loader = FOLDERS.map(|folder| Path::new(folder).join(LOADER)).into_iter().find(|path| path.is_file());
        let path = loader.ok_or(NoLibrary::NotFound)?;
        Ok(Self { path, device: Some(device.unwrap_or_else(|| name.to_owned())) })
    }

    /// The command line of a worker.
    pub(super) fn command(&self) -> Result<Vec<OsString>, NoLibrary> {
        let program = worker(WORKER).ok_or_else(|| NoLibrary::NoWorker(env::current_exe().unwrap_or_default()))?;
        let mut command = loader_command(&self.path);
        command.extend([program.into(), "--driver".into(), self.path.clone().into()]);
        command.extend(self.device.iter().flat_map(|device| ["--device".into(), device.into()]));
        Ok(command)
    }
}

/// The library of lavapipe or of a registered driver whose file has a name.
fn named(name: &str) -> Option<PathBuf> {
    if matches!(name, "lavapipe" | "llvmpipe" | "lvp") {
        let folders = unpacked(UNPACKED).into_iter().chain(FOLDERS.map(PathBuf::from));
        return folders.map(|folder| folder.join(LAVAPIPE)).find(|path| path.is_file());
    }
    let entries = REGISTRIES.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    let has_name = |file: &PathBuf| file.file_name().is_some_and(|file| file.to_string_lossy().contains(name));
    files.iter().filter(|file| has_name(file)).find_map(|file| {
        let value: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).ok()?).ok()?;
        let path = PathBuf::from(value.get("ICD")?.get("library_path")?.as_str()?);
        let places = FOLDERS.map(|folder| Path::new(folder).join(&path));
        if path.components().count() == 1 { places.into_iter().find(|it| it.is_file()) } else { Some(path) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_by_its_path() {
        let folder = env::temp_dir().join(format!("ir3-equiv-vulkan-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("libvulkan_x.so");
        fs::write(&path, "").expect("a file");
        let text = path.display().to_string();
        assert_eq!(Library::find(Some(&text)), Ok(Library { path: path.clone(), device: None }));
        let with_device = Library::find(Some(&format!("{text}#1")));
        assert_eq!(with_device, Ok(Library { path: path.clone(), device: Some("1".to_owned()) }));
        fs::remove_dir_all(folder).expect("to remove it");
        assert_eq!(Library::find(Some(&text)), Err(NoLibrary::NotThere(path)));
    }
}
