//! The verdict on a boundary, and the boundaries of a compilation.
//!
//! Verification is one sentence: *compare two programs*. A [`Boundary`] has both, [`Judge::judge`] compares them by all
//! selected engines. An [`Engine`] compares any two; only the judge and the tests of the engines call one. [`Checker`]
//! has the judge compare each boundary of one compilation: the program after each stage with the program before it, so
//! that a difference names its stage.

mod boundary;
pub mod cache;
mod compilation;
mod ends;
mod engine;
mod execution;
mod final_code;
mod history;
mod inputs;
mod interpreter;
mod judge;
mod kills;
pub(crate) mod legal;
pub(crate) mod memory_order;
mod policy;
mod postconditions;
mod proof_time;
mod search;
mod sensitivity;
mod smt;
mod snapshots;
mod tally;
mod texts;
mod thresholds;
mod ties;
mod unseen;
mod vec4;
mod verdict;
mod verification;

pub use boundary::{Boundary, BoundaryKind, Condition, FinalFacts, Origin};
pub(crate) use compilation::compile_stages;
pub use compilation::{Checker, Covered, NirPlant, Plant, plant_of};
pub use ends::{Ends, EndsOfLimits, SourceOutcomes};
pub use engine::{
    Answer, COMPILER, Engine, EngineKind, Engines, Interpreter, NO_ENGINE, Registers, contradiction, proofs,
};
pub use execution::{Executable, Execution};
pub(crate) use final_code::{SIDES, final_code, only_access};
pub use history::History;
pub use inputs::{ProgramInputs, any_env};
pub(crate) use interpreter::target_fuel;
pub use interpreter::{Refutation, SourceRuns, compare_on_machine, compare_snapshots, run_snapshot};
pub use ir3_semantics::environment::env::DEFAULT_FUEL;
pub use judge::{Judge, Judgment, SAME_PROGRAM};
pub use memory_order::{MemoryOrder, OrderChange, OrderedOperation};
pub use policy::{Policy, Search};
pub use sensitivity::{Sensitivity, SensitivityProbe, SiteCount};
pub use smt::Smt;
pub use snapshots::hook_of;
pub use snapshots::{Snapshots, StageSnapshots};
pub use tally::Tally;
pub use texts::{TextPair, compare, complete};
pub use vec4::verify_vec4;
pub use verdict::{Check, Crash, NotShown, Summary, Unknown, Unsupported, Verdict};
pub use verification::{BoundaryVerdict, Panic, Spills, Times, Verification};
