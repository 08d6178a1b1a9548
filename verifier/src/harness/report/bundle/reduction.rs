//! A bundle made smaller, in its place.

use super::{Case, Original, ReadError, WriteError, folder, read, replace};
use crate::harness::reduce::whole;
use crate::harness::reduce::whole::Whole;
use crate::harness::reduce::{CheckpointError, Failure, Options, Progress};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A reduction that could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ReduceError {
    /// The bundle cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The bundle cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was reached cannot be kept.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The folder has no name that a file could be put beside.
    #[error("{path}: {cause}", path = path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The program does not fail, or in another way.
    #[error("{path}: {found}, expected {expected}", path = path.display())]
    Other {
        /// The bundle.
        path: PathBuf,
        /// What it does.
        found: String,
        /// How it failed when the bundle was written.
        expected: Failure,
    },
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The case as it is now.
    pub case: Case,
    /// Instructions of the program that was in the folder.
    pub before: usize,
    /// Candidates, and steps that were taken.
    pub progress: Progress,
}

/// Reduces the program and the input of a bundle with `jobs` threads, and replaces the folder by the result.
///
/// `progress` is called now and then and stops the reduction by giving false; the folder then has what was reached, and
/// another call goes on from there. So does another call after the process was killed: what was reached is kept in a
/// file beside the folder.
///
/// # Errors
/// When the bundle cannot be read or written, or does not fail as it says.
pub fn reduce(path: &Path, jobs: usize, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<Reduction, ReduceError> {
    let case = read(path)?;
    let other =
        |found: String| ReduceError::Other { path: path.to_owned(), found, expected: case.symptom.failure.clone() };
    let mut oracle = case.oracle().ok_or_else(|| other("found no failure".to_owned()))?;
    if *oracle.failure() != case.symptom.failure {
        return Err(other(format!("found `{}`", oracle.failure())));
    }
    let checkpoint = checkpoint(path)?;
    let options = Options { checkpoint: Some(checkpoint.clone()), ..Options::default() };
    let Whole { reduced, env, target, options } = whole::run(&case.program, &mut oracle, jobs, &options, progress)?;
    let before = case.program.instruction_count();
    let original = match &case.original {
        Some(original) => original.clone(),
        None => Original {
            program: case.program.clone(),
            env: case.env.clone(),
            target: case.target,
            options: case.options,
        },
    };
    let program = super::as_read(reduced.shader, &mut oracle);
    let mut smaller =
        Case { program, env, target, options, original: Some(original), minimal: reduced.minimal, ..case.clone() };
    // The message is that of the smaller program.
    if let Some(symptom) = super::Evidence::of(&smaller).symptom {
        smaller.symptom = symptom;
    }
    if smaller != case {
        replace(path, &smaller)?;
    }
    // There is none where no step was taken; and what it says is in the folder now.
    let _ = fs::remove_file(&checkpoint);
    Ok(Reduction { case: smaller, before, progress: reduced.progress })
}

/// The file beside a bundle that keeps what its reduction has reached.
fn checkpoint(path: &Path) -> Result<PathBuf, ReduceError> {
    folder::beside(path, "checkpoint.json").map_err(|cause| ReduceError::Io { path: path.to_owned(), cause })
}

/// Removes that file, if there is one: a process may have been killed when all was done but for that. To be called for
/// bundles that are minimal.
pub fn forget_checkpoint(path: &Path) {
    if let Ok(checkpoint) = checkpoint(path) {
        let _ = fs::remove_file(checkpoint);
    }
}
