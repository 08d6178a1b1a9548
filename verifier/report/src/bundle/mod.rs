//! Bundles: a failure as a folder that can be attached to a bug report.
//!
//! [`write()`] writes the folder of a [`Case`] as soon as the failure is found; [`reduce`] replaces the folder by that
//! of the reduced program; [`read`] returns the case. The rest of the folder (both sides of the stage, the first
//! difference, the verdicts, the README) is derived from the case by running it.
//!
//! The folder contains
//!
//! - `README.md`: the report;
//! - `program.nir`, `env.json`: the program and its environment;
//! - `before.nir` or `before.ir3`, and `after.ir3` or `after.nir`: both sides of the stage that fails;
//! - `difference.txt`: the traces of both sides up to their first difference, aligned;
//! - `bundle.json`: the rest of the case, and the verdicts, in machine-readable form;
//! - `original/program.nir`, `original/env.json`: the program and the environment before the reduction.
//!
//! A folder is complete or does not exist, even if the process is killed: see [`folder`].

mod readme;
mod reduction;

pub use ir3_harness::case::{ReadError, clean, is_bundle, list, read, read_with};
pub(crate) use readme::{expected_and_actual, options_in_words, origin_in_words, see_again, title};
pub use reduction::{ReduceError, Reduction, forget_checkpoint, reduce, reduce_with};

use crate::difference::FirstDifference;
use ir3_compiler::nir;
use ir3_harness::case::{Case, Evidence, folder, metadata};
use std::io;
use std::path::{Path, PathBuf};

/// A bundle, or the program of a failure, that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: the bundle cannot be written: {cause}", path = path.display())]
pub struct WriteError {
    /// Its place.
    pub path: PathBuf,
    /// Why not.
    pub cause: io::Error,
}

/// Writes the folder of a case below `root`, completely or not at all, and returns its path. The name is a function of
/// the case.
///
/// # Errors
/// If the file system refuses.
pub fn write(root: &Path, case: &Case) -> Result<PathBuf, WriteError> {
    let path = root.join(case.folder_name());
    write_at(&path, case)?;
    Ok(path)
}

/// Writes the folder of a case at a path, completely or not at all. Replaces an existing bundle, unless that is a
/// reduced one of the same case.
///
/// # Errors
/// If the file system refuses, or if there is something other than a bundle.
pub fn write_at(path: &Path, case: &Case) -> Result<(), WriteError> {
    if case.original.is_none() && read(path).is_ok_and(|there| there.original.is_some() && is_of(&there, case)) {
        return Ok(());
    }
    if path.exists() && !is_bundle(path) && !is_empty(path) {
        let cause = io::Error::new(io::ErrorKind::AlreadyExists, "found something else there, expected nothing");
        return Err(WriteError { path: path.to_owned(), cause });
    }
    replace(path, case)
}

/// Like [`write_at`], but a bundle of another program or failure is not replaced.
///
/// # Errors
/// As there, or if there is a bundle of another case.
pub fn write_new(path: &Path, case: &Case) -> Result<(), WriteError> {
    if is_bundle(path) && !read(path).is_ok_and(|there| is_of(&there, case)) {
        let cause = io::Error::new(
            io::ErrorKind::AlreadyExists,
            "found the bundle of another failure there, expected none, or that of the same one",
        );
        return Err(WriteError { path: path.to_owned(), cause });
    }
    write_at(path, case)
}

/// Returns true if a bundle is one of a case, reduced or not: of its program, GPU, options, planted bug and failure.
fn is_of(there: &Case, case: &Case) -> bool {
    let (program, target, options) = match &there.original {
        Some(original) => (&original.program, original.target, original.options),
        None => (&there.program, there.target, there.options),
    };
    nir::text::write(program) == nir::text::write(&case.program)
        && (target, options, there.plant) == (case.target, case.options, case.plant)
        && there.symptom.failure == case.symptom.failure
}

/// Writes the folder of a case at a path, and replaces any existing one.
fn replace(path: &Path, case: &Case) -> Result<(), WriteError> {
    let evidence = Evidence::of(case);
    let first = FirstDifference::of(case, &evidence);
    let files = files(case, &evidence, first.as_ref());
    folder::write(path, &files).map_err(|cause| WriteError { path: path.to_owned(), cause })
}

/// Returns true if a path is an empty folder.
fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// The files of a folder, by name.
fn files(case: &Case, evidence: &Evidence, first: Option<&FirstDifference>) -> Vec<(&'static str, String)> {
    let mut files = vec![
        ("program.nir", nir::text::write(&case.program)),
        ("bundle.json", metadata(case, evidence)),
        ("README.md", readme::write(case, evidence, first)),
    ];
    if let Some(env) = &case.env {
        files.push(("env.json", env.to_json() + "\n"));
    }
    if let Some(before) = &evidence.before {
        files.push((evidence.before_name(), before.text()));
    }
    if let Some(after) = &evidence.after {
        files.push((evidence.after_name(), after.text()));
    }
    if let Some(first) = first {
        files.push(("difference.txt", first.to_string()));
    }
    if let Some(original) = &case.original {
        files.push(("original/program.nir", nir::text::write(&original.program)));
        if let Some(env) = &original.env {
            files.push(("original/env.json", env.to_json() + "\n"));
        }
    }
    files
}
