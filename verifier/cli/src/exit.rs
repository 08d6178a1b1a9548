//! The exit codes. README has the same table; `tests/exit_codes.rs` has a test for each row.

use crate::interrupt;
use ir3_harness::check::Summary;
use std::path::Path;
use std::process::ExitCode;

/// The result of a run, as its exit code. The variants are ordered: the later one counts if there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Everything requested was checked, and passed.
    Passed,
    /// Nothing was refuted, but a requirement was not met: a boundary is unknown, or `--require` or the least
    /// share of a campaign is not met.
    Unmet,
    /// Nothing was checked: there is no program, or no boundary has a verdict other than *unknown*.
    Nothing,
    /// A signal ended the run early; nothing was refuted until then.
    Interrupted,
    /// An input or the command line is not valid.
    Bad,
    /// Something could not be written: standard output, or a folder or file of an option.
    Unwritten,
    /// Something was refuted, or the compiler crashed.
    Refuted,
    /// Engines contradict each other: one of them is unsound.
    Unsound,
}

impl Exit {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Refuted => 1,
            Self::Bad => 2,
            Self::Unmet => 3,
            Self::Nothing => 4,
            Self::Unsound => 5,
            // EX_IOERR, as in LLVM's tools.
            Self::Unwritten => 74,
            // The code that a shell reports for a process killed by the signal.
            Self::Interrupted => 128 + interrupt::signal(),
        }
    }

    /// The word of JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Refuted => "refuted",
            Self::Bad => "bad-input",
            Self::Unmet => "unmet",
            Self::Nothing => "nothing-checked",
            Self::Unsound => "unsound",
            Self::Unwritten => "unwritten",
            Self::Interrupted => "interrupted",
        }
    }

    /// The exit of a run with several: the one that counts.
    pub fn of_all(exits: impl IntoIterator<Item = Self>) -> Self {
        exits.into_iter().max().unwrap_or(Self::Passed)
    }

    /// This exit if a condition holds, otherwise a pass.
    pub fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::Passed }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error that ends the program: it is printed.
pub type Failure = Box<dyn std::error::Error>;

/// A file or folder that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot be written: {cause}")]
pub struct Unwritten {
    path: String,
    cause: std::io::Error,
}

impl Unwritten {
    /// The error of a path, with the system's reason.
    pub fn new(path: &Path, cause: std::io::Error) -> Self {
        Self { path: path.display().to_string(), cause }
    }
}

/// Creates a folder and a file in it, and removes both again: a run of hours must not end with files that
/// it cannot write.
///
/// # Errors
/// If the folder cannot be written.
pub fn try_folder(folder: &Path) -> Result<(), Unwritten> {
    let failed = |cause| Unwritten::new(folder, cause);
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    std::fs::create_dir_all(folder).map_err(failed)?;
    let file = folder.join(format!(".{}.partial", std::process::id()));
    let written = std::fs::write(&file, b"");
    // A folder that is not empty by now belongs to another process.
    let removed = std::fs::remove_file(&file);
    missing.into_iter().for_each(|path| drop(std::fs::remove_dir(path)));
    written.and(removed).map_err(failed)
}

/// Tries to write in the folder of a file that is to be written.
///
/// # Errors
/// If its folder cannot be written, or it is a folder itself.
pub fn try_file(file: &Path) -> Result<(), Unwritten> {
    if file.is_dir() {
        return Err(Unwritten::new(file, std::io::ErrorKind::IsADirectory.into()));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() { try_folder(folder) } else { Err(Unwritten::new(file, std::io::ErrorKind::NotFound.into())) }
}

/// Writes a file: its old text stays until the new one is complete.
///
/// # Errors
/// If it cannot be written.
pub fn write_file(path: &Path, text: impl AsRef<[u8]>) -> Result<(), Unwritten> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
    let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|cause| {
        // It may not be there.
        let _ = std::fs::remove_file(&partial);
        Unwritten::new(path, cause)
    })
}

/// The exit of the verdicts of the whole.
pub fn of_verdicts(summary: &Summary) -> Exit {
    if summary.refuted + summary.crashed > 0 {
        return Exit::Refuted;
    }
    let nothing = summary.proved + summary.tested == 0 || summary.programs > 0 && summary.rejected == summary.programs;
    if nothing { Exit::Nothing } else { Exit::Unmet.when(summary.unknown > 0) }
}

/// The exit of an error.
pub fn of_failure(failure: &(dyn std::error::Error + 'static)) -> Exit {
    use ir3_harness::campaigns::external::RunError;
    use ir3_harness::reduce::CheckpointError;
    use ir3_harness::reduce::command::CommandError;
    use ir3_report::bundle::{ReduceError, WriteError};
    use ir3_report::page::PageError;
    let unwritten = failure.is::<Unwritten>()
        || failure.is::<WriteError>()
        || matches!(failure.downcast_ref(), Some(ReduceError::Write(_) | ReduceError::Io { .. }))
        || matches!(failure.downcast_ref(), Some(ReduceError::Checkpoint(error)) if error.is_of_write())
        || failure.downcast_ref().is_some_and(CheckpointError::is_of_write)
        || matches!(failure.downcast_ref(), Some(PageError::Write { .. }))
        || matches!(failure.downcast_ref(), Some(CommandError::File { .. }))
        || matches!(failure.downcast_ref(), Some(RunError::File { .. }));
    if unwritten { Exit::Unwritten } else { Exit::Bad }
}
