//! What the fuzz targets do with one input.
//!
//! Each target is a function of one input, in a file of its own; the binaries in `fuzz/` only hand the input over. An
//! input is a value that `arbitrary` makes of the fuzzer's bytes and whose `Debug` is the text of the program, so that
//! `cargo fuzz fmt` shows it. A target answers whether the input is worth keeping; a [`Failure`] becomes a panic
//! ([`settle`]), by which libFuzzer knows.
//!
//! - [`ra_equiv`]: nir through every stage to registers, both ends compared, for some inputs every boundary;
//! - [`select`]: nir through selection, copy propagation and dead code alone, for more programs in the same time;
//! - [`parallel_copy`]: parallel copies, collects and splits without a program around them;
//! - [`engines`]: what all engines say of one program;
//! - [`readers`]: texts in, no panic, and what reads comes out of the writer again.

mod compiled;
mod copies;
mod engines;
mod program;
mod readers;
mod stats;

pub use compiled::{ra_equiv, ra_equiv_with, select, select_with};
pub use copies::{CopyInput, parallel_copy, parallel_copy_with};
pub use engines::{engines, engines_with};
pub use program::{GPUS, ProgramInput};
pub use readers::{TextInput, dictionary, readers, readers_with};

use std::fmt;

/// What a target found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stage}: {what}")]
pub struct Failure {
    /// The stage, or the reader or engine.
    pub stage: String,
    /// How the sides differ, or what went wrong.
    pub what: String,
}

impl Failure {
    fn new(stage: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self { stage: stage.to_string(), what: what.to_string() }
    }
}

/// Whether the input is to be kept.
///
/// # Panics
/// On a failure, with the stage, the difference and the text of the input.
pub fn settle(result: Result<bool, Failure>, input: &dyn fmt::Debug) -> bool {
    result.unwrap_or_else(|failure| panic!("{failure}\n{input:?}"))
}
