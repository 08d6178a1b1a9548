//! Engines on the boundaries of one compilation.
//!
//! Verification is one sentence: *compare two snapshots*. The interpreter engine runs both on the same environments and compares what can be
//! observed. [`Checker`] does that for every boundary of one compilation: the program after each stage against the program before it, so that a
//! difference names its stage. [`Provers`] runs the engines that prove. A [`Panel`](panel::Panel) puts any engines before any two programs.

mod interpreter;
pub mod panel;
mod postconditions;
mod provers;
mod smt;
mod snapshots;
mod verdict;

pub(crate) use interpreter::target_fuel;
pub use interpreter::{
    Checker, DEFAULT_FUEL, NirPlant, Plant, ProgramReport, Refutation, SourceRuns, Spills, Times, compare_snapshots,
    run_snapshot,
};

pub(crate) use provers::by_registers;
pub use provers::{Proved, Provers};
pub use smt::Smt;
pub(crate) use snapshots::hook_of;
pub use snapshots::{Snapshots, StageSnapshots};
pub use verdict::{Check, Summary, Unknown, Verdict};
