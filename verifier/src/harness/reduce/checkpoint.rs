//! Checkpoints: the progress of a reduction in a file, so that an interrupted reduction can be resumed.
//!
//! The file contains the program that the reduction started from; a checkpoint of another program is ignored. It is
//! written under a temporary name and renamed, so it is never incomplete.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ir3_compiler::nir::{Shader, text};
use serde::{Deserialize, Serialize};

/// A checkpoint that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: the checkpoint cannot be {what}: {cause}", path = path.display())]
pub struct CheckpointError {
    path: PathBuf,
    what: &'static str,
    cause: io::Error,
}

#[derive(Serialize, Deserialize)]
struct Checkpoint {
    /// The original program.
    input: String,
    /// The program after the last step that was taken.
    reached: String,
}

/// Returns the reduced version of `input`, if the file exists and belongs to `input`.
pub(super) fn read(path: &Path, input: &Shader) -> Result<Option<Shader>, CheckpointError> {
    let content = match fs::read_to_string(path) {
        Ok(content) => content,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(CheckpointError { path: path.to_owned(), what: "read", cause }),
    };
    let Ok(checkpoint) = serde_json::from_str::<Checkpoint>(&content) else {
        let cause = io::Error::new(io::ErrorKind::InvalidData, "found something else than a checkpoint of a reduction");
        return Err(CheckpointError { path: path.to_owned(), what: "read", cause });
    };
    if checkpoint.input != text::write(input) {
        return Ok(None);
    }
    Ok(text::read(&checkpoint.reached).ok())
}

/// Saves the reduced version of `input`.
pub(super) fn write(path: &Path, input: &Shader, reached: &Shader) -> Result<(), CheckpointError> {
    let checkpoint = Checkpoint { input: text::write(input), reached: text::write(reached) };
    let mut partial = path.as_os_str().to_owned();
    // The process id tells a cleanup whether the file is still being written.
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(partial);
    let save = || {
        fs::write(&partial, serde_json::to_string(&checkpoint)?)?;
        fs::rename(&partial, path)
    };
    save().map_err(|cause: io::Error| CheckpointError { path: path.to_owned(), what: "written", cause })
}
