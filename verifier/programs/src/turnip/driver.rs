//! The places of the driver, and of the program that loads it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The library.
const LIBRARY: &str = "libvulkan_freedreno.so";
/// The folder into which `ci/stock-mesa` unpacks packages, next to the build folders.
const UNPACKED: &str = "stock-mesa/usr/lib/x86_64-linux-gnu";
/// Folders of libraries.
pub(crate) const FOLDERS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib/x86_64-linux-gnu",
    "/usr/local/lib",
];
/// Folders of the files in which drivers are registered with Vulkan.
pub(crate) const REGISTRIES: [&str; 3] =
    ["/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/share/vulkan/icd.d"];
/// The dynamic linkers that may be in the folder of the libraries that they load.
const LOADERS: [&str; 2] = ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];
/// The program that loads the driver.
pub(super) const WORKER: &str = "ir3-turnip";

/// A driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// Its library.
    pub library: PathBuf,
}

/// A driver, or the program that loads it, that is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDriver {
    /// The driver is in none of the searched places.
    #[error(
        "found no {LIBRARY} (Mesa's turnip): install the package mesa-vulkan-drivers of a distribution that builds it for this machine, or unpack Debian's with `ci/stock-mesa`, or name it with `--driver PATH`"
    )]
    NotFound,
    /// The path that was given is no file.
    #[error(
        "{path}: found no such driver, expected the path of {LIBRARY} (the package mesa-vulkan-drivers has it; `ci/stock-mesa` unpacks it)",
        path = .0.display()
    )]
    NotThere(PathBuf),
    /// The worker is not there.
    #[error(
        "found no {WORKER}, which loads the driver, in the folder of {program}: `cargo build --release` builds both, `cargo install --locked --path verifier/turnip` installs it",
        program = .0.display()
    )]
    NoWorker(PathBuf),
}

impl Driver {
    /// The driver of a path, or the first one of the usual places: the packages that `ci/stock-mesa` has unpacked, the
    /// system's libraries, and the files in which drivers are registered with Vulkan.
    ///
    /// # Errors
    /// If none is found.
    pub fn find(given: Option<&Path>) -> Result<Self, NoDriver> {
        if let Some(path) = given {
            let library = if path.is_dir() { path.join(LIBRARY) } else { path.to_owned() };
            let library = std::path::absolute(&library).unwrap_or(library);
            return if library.is_file() { Ok(Self { library }) } else { Err(NoDriver::NotThere(library)) };
        }
        let unpacked = unpacked(UNPACKED).into_iter().chain(FOLDERS.map(PathBuf::from));
        let mut libraries = unpacked.map(|folder| folder.join(LIBRARY));
        let library = libraries.find(|path| path.is_file()).or_else(registered);
        library.map(|library| Self { library }).ok_or(NoDriver::NotFound)
    }

    /// The beginning of the command line that starts a worker.
    pub(super) fn command(&self, worker: &Path) -> Vec<OsString> {
        let mut command = loader_command(&self.library);
        command.push(worker.as_os_str().to_owned());
        command
    }
}

/// The dynamic linker in the folder of a driver, if there is one, with its options: the driver may need a C library
/// that is newer than the system's. The folder may also have the libraries that it needs.
pub(crate) fn loader_command(library: &Path) -> Vec<OsString> {
    let folder = library.parent().unwrap_or(Path::new(""));
    let loader = LOADERS.map(|name| folder.join(name)).into_iter().find(|path| path.is_file());
    let loader = loader.map(|loader| [loader.into(), "--library-path".into(), folder.as_os_str().to_owned()]);
    loader.into_iter().flatten().collect()
}

/// The folders into which packages may have been unpacked: below `target` of the current folder, and next to the
/// program's folder.
pub(crate) fn unpacked(below: &str) -> Vec<PathBuf> {
    let program = env::current_exe().unwrap_or_default();
    let targets = [PathBuf::from("target")].into_iter().chain(program.ancestors().skip(1).take(3).map(Path::to_owned));
    let folders: Vec<PathBuf> = targets.map(|folder| folder.join(below)).collect();
    folders.into_iter().filter_map(|folder| std::path::absolute(folder).ok()).collect()
}

/// A library that is registered with Vulkan.
fn registered() -> Option<PathBuf> {
    let variables = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].into_iter().filter_map(env::var_os);
    let mut files: Vec<PathBuf> = variables.flat_map(|value| env::split_paths(&value).collect::<Vec<_>>()).collect();
    for folder in REGISTRIES {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        entries.sort();
        files.extend(entries);
    }
    files.iter().find_map(|file| library_of(file))
}

/// The library that a file registers, if it is turnip.
fn library_of(file: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(file).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    let path = Path::new(value.get("ICD")?.get("library_path")?.as_str()?);
    if path.file_name()? != LIBRARY {
        return None;
    }
    // A name without a folder is looked up among the system's libraries, a relative path in the folder of the file.
    let path = if path.components().count() == 1 {
        FOLDERS.map(|folder| Path::new(folder).join(path)).into_iter().find(|path| path.is_file())?
    } else {
        file.parent()?.join(path)
    };
    path.is_file().then_some(path)
}

/// The worker of a name: in the folder of this program (or the one above, as tests are in `deps`), or in `PATH`.
pub(crate) fn worker(name: &str) -> Option<PathBuf> {
    let program = env::current_exe().unwrap_or_default();
    let beside = program.ancestors().skip(1).take(2).map(Path::to_owned);
    let path = env::var_os("PATH").map(|value| env::split_paths(&value).collect::<Vec<_>>()).unwrap_or_default();
    beside.chain(path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_not_there_is_an_error_that_names_the_package() {
        let error = Driver::find(Some(Path::new("/nowhere/libvulkan_freedreno.so"))).expect_err("no such file");
        let text = error.to_string();
        assert!(text.contains("/nowhere") && text.contains("mesa-vulkan-drivers") && text.contains("ci/stock-mesa"));
        let text = NoDriver::NotFound.to_string();
        assert!(text.contains("mesa-vulkan-drivers") && text.contains("ci/stock-mesa") && text.contains("--driver"));
    }

    #[test]
    fn a_registered_driver_is_found_by_its_file() {
        let folder = env::temp_dir().join(format!("ir3-equiv-icd-{}", std::process::id()));
        fs::create_dir_all(folder.join("lib")).expect("a folder");
        let library = folder.join("lib").join(LIBRARY);
        fs::write(&library, "").expect("a file");
        let file = folder.join("freedreno_icd.json");
        let registers = |path: &str| {
            let text = format!(r#"{{ "ICD": {{ "api_version": "1.4.1", "library_path": "{path}" }} }}"#);
            fs::write(&file, text).expect("a file");
            library_of(&file)
        };
        assert_eq!(registers(&library.display().to_string()), Some(library.clone()));
        assert_eq!(registers(&format!("lib/{LIBRARY}")), Some(folder.join("lib").join(LIBRARY)));
        assert_eq!(registers("lib/libvulkan_radeon.so"), None);
        assert_eq!(registers(&format!("other/{LIBRARY}")), None);
        fs::remove_dir_all(folder).expect("to remove it");
    }

    #[test]
    fn the_dynamic_linker_beside_the_driver_starts_the_worker() {
        let folder = env::temp_dir().join(format!("ir3-equiv-loader-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let driver = Driver { library: folder.join(LIBRARY) };
        let command = || driver.command(Path::new("/bin/worker"));
        assert_eq!(command(), ["/bin/worker"]);
        fs::write(folder.join(LOADERS[0]), "").expect("a file");
        let loader = folder.join(LOADERS[0]);
        let expected = [loader.as_os_str(), "--library-path".as_ref(), folder.as_os_str(), "/bin/worker".as_ref()];
        assert_eq!(command(), expected);
        fs::remove_dir_all(folder).expect("to remove it");
    }
}
