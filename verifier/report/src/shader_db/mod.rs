//! Comparison of two runs of shader-db, reported as its `report.py` does.
//!
//! The input is the output of drivers, one line for each program: a name, the stage, and metrics with their names
//! (`tests/a.shader_test - FRAG shader: 12 inst, 3 nops, …`). Programs are matched by name and stage. For each
//! measurement the report has the sums over all programs and over the changed ones, the numbers of programs that were
//! helped (fewer) and HURT (more), the extent of the changes, and the significance of the mean change: a confidence
//! interval of 95 % by Student's t distribution over the changed programs.
//!
//! `compare` computes the differences, `print` formats the numbers; both follow `report.py` to the letter, so that
//! scripts for its output keep working. `totals` prints the same comparison as fossil-db does.

mod compare;
mod print;
mod read;
mod student;
#[cfg(test)]
mod tests;
mod totals;

pub use compare::{Comparison, Confidence, Interval, Measured, MetricChange, Significance, Spread, compare};
pub use read::{Results, read};

/// The measurements that `report.py` reports by default.
pub const DEFAULT_MEASUREMENTS: [&str; 5] = ["instructions", "cycles", "loops", "spills", "fills"];
