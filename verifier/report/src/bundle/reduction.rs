//! Reduction of a bundle in place.

use super::{WriteError, replace};
use ir3_compiler::pipeline::OwnPass;
use ir3_harness::case::{Case, Evidence, Original, ReadError, as_read, folder, read_with};
use ir3_harness::reduce::combined::{self, CombinedReduction};
use ir3_harness::reduce::{CheckpointError, Failure, Options, Progress};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// An error of the reduction of a bundle.
#[derive(Debug, thiserror::Error)]
pub enum ReduceError {
    /// The bundle cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The bundle cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The checkpoint cannot be read or written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The folder has no name, so there is no name for a file next to it.
    #[error("{path}: {cause}", path = path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
    /// The program does not fail, or fails in another way.
    #[error("{path}: {found}, expected {expected}", path = path.display())]
    Other {
        /// The bundle.
        path: PathBuf,
        /// The observed failure, if any.
        found: String,
        /// The failure in the bundle.
        expected: Failure,
    },
}

/// The result of the reduction of a bundle.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The reduced case.
    pub case: Case,
    /// The number of instructions of the program before.
    pub before: usize,
    /// The numbers of candidates and of steps that were taken.
    pub progress: Progress,
}

/// Reduces the program and the environment of a bundle with `jobs` threads, and replaces the folder by the result.
///
/// `progress` is called now and then and stops the reduction by returning false; then the folder has the program so
/// far, and another call resumes from there. A reduction whose process was killed resumes from a checkpoint, a file
/// next to the folder.
///
/// # Errors
/// If the bundle cannot be read or written, or does not fail as recorded.
pub fn reduce(path: &Path, jobs: usize, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<Reduction, ReduceError> {
    reduce_with(path, None, jobs, progress)
}

/// Like [`reduce`], for a failure that a pass of the caller may have.
///
/// # Errors
/// Those of [`reduce`].
pub fn reduce_with(
    path: &Path,
    own_pass: Option<OwnPass>,
    jobs: usize,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Reduction, ReduceError> {
    let case = read_with(path, own_pass)?;
    let other =
        |found: String| ReduceError::Other { path: path.to_owned(), found, expected: case.symptom.failure.clone() };
    let mut oracle = case.oracle().ok_or_else(|| other("found no failure".to_owned()))?;
    if *oracle.failure() != case.symptom.failure {
        return Err(other(format!("found `{}`", oracle.failure())));
    }
    let checkpoint = checkpoint(path)?;
    let options = Options { checkpoint: Some(checkpoint.clone()), ..Options::default() };
    let first = combined::run(&case.program, &mut oracle, jobs, &options, progress)?;
    let CombinedReduction { reduced, env, target, options } = if oracle.confirms(&first.reduced.program) {
        first
    } else {
        // The reduction took long, and ended.
        let options = Options { checkpoint: None, ..options };
        oracle.set_compilation(case.target, case.options);
        combined::run(&case.program, &mut oracle, jobs, &options, progress)?
    };
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
    let program = as_read(reduced.program, &mut oracle);
    let mut smaller =
        Case { program, env, target, options, original: Some(original), minimal: reduced.minimal, ..case.clone() };
    // The message changes with the program.
    if let Some(symptom) = Evidence::of(&smaller).symptom {
        smaller.symptom = symptom;
    }
    if smaller != case {
        replace(path, &smaller)?;
    }
    // There is no checkpoint if no step was taken, and the folder has its content now.
    let _ = fs::remove_file(&checkpoint);
    Ok(Reduction { case: smaller, before, progress: reduced.progress })
}

/// The path of the checkpoint of a bundle.
fn checkpoint(path: &Path) -> Result<PathBuf, ReduceError> {
    folder::sibling(path, "checkpoint.json").map_err(|cause| ReduceError::Io { path: path.to_owned(), cause })
}

/// Removes the checkpoint of a bundle, if there is one: a process may have been killed right before that. For minimal
/// bundles only.
pub fn forget_checkpoint(path: &Path) {
    if let Ok(checkpoint) = checkpoint(path) {
        let _ = fs::remove_file(checkpoint);
    }
}
