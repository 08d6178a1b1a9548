//! Checkpoints: the progress of a reduction in a file, so that an interrupted reduction can be resumed.
//!
//! The file contains the program that the reduction started from; a checkpoint of another program is ignored. It is
//! written under a temporary name and renamed, so it is never incomplete.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::subject::Subject;
use serde::{Deserialize, Serialize};

/// A checkpoint that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: the checkpoint cannot be {what}: {cause}", path = path.display())]
pub struct CheckpointError {
    path: PathBuf,
    what: &'static str,
    cause: io::Error,
}

impl CheckpointError {
    /// Returns true if it cannot be written.
    pub fn is_of_write(&self) -> bool {
        self.what == WRITTEN
    }
}

const WRITTEN: &str = "written";

#[derive(Serialize, Deserialize)]
struct Checkpoint {
    /// The original program.
    input: String,
    /// The program after the last step that was taken.
    reached: String,
}

/// Returns the reduced version of `input`, if the file exists and belongs to `input`.
pub(super) fn read<S: Subject>(path: &Path, input: &S) -> Result<Option<S>, CheckpointError> {
    let content = match fs::read_to_string(path) {
        Ok(content) => content,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(CheckpointError { path: path.to_owned(), what: "read", cause }),
    };
    let Ok(checkpoint) = serde_json::from_str::<Checkpoint>(&content) else {
        let cause = io::Error::new(io::ErrorKind::InvalidData, "found something else than a checkpoint of a reduction");
        return Err(CheckpointError { path: path.to_owned(), what: "read", cause });
    };
    if checkpoint.input != input.text() {
        return Ok(None);
    }
    Ok(input.read(&checkpoint.reached))
}

/// Saves the reduced version of `input`.
pub(super) fn write<S: Subject>(path: &Path, input: &S, reached: &S) -> Result<(), CheckpointError> {
    let checkpoint = Checkpoint { input: input.text(), reached: reached.text() };
    let mut partial = path.as_os_str().to_owned();
    // A cleanup recognises by the process id that the file is still being written.
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(partial);
    let save = || {
        fs::write(&partial, serde_json::to_string(&checkpoint)?)?;
        fs::rename(&partial, path)
    };
    save().map_err(|cause: io::Error| CheckpointError { path: path.to_owned(), what: WRITTEN, cause })
}
