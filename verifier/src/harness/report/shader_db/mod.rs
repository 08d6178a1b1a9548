//! Two compilers' figures for the same programs, compared and told as shader-db's `report.py` does.
//!
//! The input is what drivers print behind each program, one line a program: a name, the stage, and figures with their
//! names (`tests/a.shader_test - FRAG shader: 12 inst, 3 nops, …`). Programs are those of the same name and stage on both sides.
//! Of each measurement the report says the sums over all of them and over those that changed, how many were helped (fewer)
//! and HURT (more), how far, and whether the mean change is distinguishable from none: a confidence interval of 95 % by
//! Student's t distribution, over the programs that changed alone.
//!
//! Which differences there are is computed in [`compare`], how numbers are written is in `print`; both follow `report.py` to
//! the letter, so that its readers and their scripts find what they know.

mod compare;
mod print;
mod read;
#[cfg(test)]
mod tests;

pub use compare::{Change, Comparison, Confidence, Interval, Measured, Spread, Verdict, compare};
pub use read::{Results, read};

/// What `report.py` reports unless told otherwise.
pub const DEFAULT_MEASUREMENTS: [&str; 5] = ["instructions", "cycles", "loops", "spills", "fills"];
