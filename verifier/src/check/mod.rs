//! Comparing the two sides of a boundary.
//!
//! One sentence is all there is to verification: *compare two snapshots*. The interpreter engine runs both on the same
//! environments and compares what can be observed. [`Checker`] does that for every boundary of one compilation:
//! the program after each stage against the program before it, so that a difference names its stage.
//! [`Provers`] asks the engines that run nothing, and prove.
//! [`campaign`] does it for many random programs, [`fuzz`] for one input of a fuzzer. [`judge`] puts any engine before any
//! two programs: planted miscompilations ([`kill_matrix`]), [`boundaries`] of random programs, equivalent pairs
//! ([`rewrites`](crate::rewrites)).

pub mod boundaries;
pub mod campaign;
mod checker;
pub mod fuzz;
pub mod judge;
pub mod kill_matrix;
mod pair;
mod proofs;
pub mod prover_mutants;
mod rules;
mod smt;
mod snapshot;
mod verdict;

use checker::target_fuel;
pub use checker::{
    Checker, DEFAULT_FUEL, NirPlant, Plant, ProgramReport, Refutation, SourceRuns, Spills, Times, compare_snapshots,
    run_snapshot,
};
pub use pair::Pair;
pub use proofs::{Proved, Provers};
pub use smt::Smt;
pub use snapshot::{Snapshot, Snapshots, StageSnapshots};
pub use verdict::{Check, Summary, Unknown, Verdict};
