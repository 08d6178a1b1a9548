//! The fuzz targets.
//!
//! Each target is a function of one input, in a file of its own; the binaries in `fuzz/` only pass the input on. An
//! input is a value that `arbitrary` makes of the fuzzer's bytes. Its `Debug` output is the text of the program, so
//! that `cargo fuzz fmt` prints it. A target returns whether the input is interesting, that is, to be kept in the
//! corpus. A [`TargetFailure`] becomes a panic ([`settle`]), which libFuzzer detects.
//!
//! - [`ra_equiv`]: compiles nir through every stage to registers and compares both ends, for some inputs every
//!   boundary;
//! - [`select`]: compiles nir through selection, copy propagation and dead code elimination alone, for more programs in
//!   the same time;
//! - [`parallel_copy`]: lowers parallel copies, collects and splits alone;
//! - `engines`: compares all engines on one program;
//! - `readers`: reads texts without a panic, and writes accepted programs so that they read back the same;
//! - `words`: machine code from words to text and back.

mod compiled;
mod copies;
mod engines;
mod program;
mod readers;
mod stats;
mod words;

pub use compiled::{ra_equiv, ra_equiv_with, select, select_with};
pub use copies::{CopyInput, parallel_copy, parallel_copy_with};
pub use engines::{engines, engines_with};
pub use program::{GPUS, ProgramInput};
pub use readers::{TextInput, dictionary, readers, readers_with};
pub use words::{WordsInput, words};

use std::fmt;

/// A failure that a target found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stage}: {what}")]
pub struct TargetFailure {
    /// The stage, reader or engine that failed.
    pub stage: String,
    /// The difference or the error.
    pub what: String,
}

impl TargetFailure {
    fn new(stage: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self { stage: stage.to_string(), what: what.to_string() }
    }
}

/// Returns true if the input is to be kept.
///
/// # Panics
/// On a failure, with the stage, the difference and the text of the input.
pub fn settle(result: Result<bool, TargetFailure>, input: &dyn fmt::Debug) -> bool {
    result.unwrap_or_else(|failure| panic!("{failure}\n{input:?}"))
}
