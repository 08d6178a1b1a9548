//! The paths of the command line.

use crate::{Exit, Failure, output};
use ir3_programs::mesa::input::{Found, find_paths, find_shaders};
use std::path::PathBuf;

/// The input files of paths. An error of a path is printed, and does not hide the others: then the exit is that of bad
/// input.
///
/// # Errors
/// If nothing is left: the last one that was wrong.
pub fn files(paths: &[PathBuf]) -> Result<(Vec<PathBuf>, Exit), Failure> {
    of(find_paths(paths))
}

/// The input files of paths, with the shaders of folders, which a driver compiles.
///
/// # Errors
/// As of [`files`].
pub fn with_shaders(paths: &[PathBuf]) -> Result<(Vec<PathBuf>, Exit), Failure> {
    of(find_shaders(paths))
}

fn of(found: Found) -> Result<(Vec<PathBuf>, Exit), Failure> {
    let Found { files, mut problems } = found;
    if files.is_empty()
        && let Some(last) = problems.pop()
    {
        problems.iter().for_each(|problem| output::error(problem));
        return Err(last.into());
    }
    problems.iter().for_each(|problem| output::error(problem));
    Ok((files, Exit::Bad.when(!problems.is_empty())))
}
