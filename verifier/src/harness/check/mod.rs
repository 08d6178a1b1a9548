//! Engines on the boundaries of one compilation.
//!
//! Verification is one sentence: *compare two snapshots*. An [`Engine`] compares any two. [`Checker`] is the
//! interpreter engine on every boundary of one compilation: the program after each stage with the program before it, so
//! that a difference names its stage. [`Engines::verify`] has all selected engines decide the same boundaries together.

mod checker;
mod ends;
mod engine;
mod execution;
mod interpreter;
pub(crate) mod legal;
mod postconditions;
mod sensitivity;
mod smt;
mod snapshots;
mod tally;
mod unseen;
mod vec4;
mod verdict;
mod verification;

pub use crate::semantics::environment::env::DEFAULT_FUEL;
pub(crate) use checker::compile_stages;
pub use checker::{Checker, NirPlant, Plant, ProgramReport, Spills, Times, plant_of};
pub use ends::{Ends, SourceOutcomes};
pub use engine::{
    Answer, COMPILER, Engine, EngineKind, Engines, Interpreter, NO_ENGINE, Registers, contradiction, proofs,
};
pub use execution::{Executable, Execution};
pub(crate) use interpreter::target_fuel;
pub use interpreter::{Refutation, SourceRuns, compare_on_machine, compare_snapshots, run_snapshot};
pub use sensitivity::{Sensitivity, SensitivityProbe, SiteCount};
pub use smt::Smt;
pub(crate) use snapshots::hook_of;
pub use snapshots::{Snapshots, StageSnapshots};
pub use tally::Tally;
pub use verdict::{Check, NotShown, Summary, Unknown, Unsupported, Verdict};
pub(crate) use verification::combined;
pub use verification::{BoundaryVerdict, LEAST_SENSITIVITY, Verification};
