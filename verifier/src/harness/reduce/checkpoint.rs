//! What a reduction has reached, in a file, so that it can be interrupted at any moment and gone on with.
//!
//! The file names the program that the reduction began with: for another one it counts for nothing. It is written under
//! another name and renamed, so there is never half of one.

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
    /// The program that went in.
    input: String,
    /// The program that was reached.
    reached: String,
}

/// The program that was reached from `input`, if the file is there and is about it.
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

/// Keeps what was reached.
pub(super) fn write(path: &Path, input: &Shader, reached: &Shader) -> Result<(), CheckpointError> {
    let checkpoint = Checkpoint { input: text::write(input), reached: text::write(reached) };
    let mut partial = path.as_os_str().to_owned();
    // With the number of the process, so that whoever cleans up knows whether it is still being written.
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(partial);
    let save = || {
        fs::write(&partial, serde_json::to_string(&checkpoint)?)?;
        fs::rename(&partial, path)
    };
    save().map_err(|cause: io::Error| CheckpointError { path: path.to_owned(), what: "written", cause })
}
