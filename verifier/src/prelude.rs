//! The items that a user of the library needs: `use ir3_verifier::prelude::*`.

#[doc(no_inline)]
pub use ir3_compiler::arms::Skip;
#[doc(no_inline)]
pub use ir3_compiler::compilation::Compilation;
#[doc(no_inline)]
pub use ir3_compiler::pipeline::{Feature, Options, OwnPass, Stage};
#[doc(no_inline)]
pub use ir3_compiler::target::Target;
#[doc(no_inline)]
pub use ir3_compiler::{ir3, nir};

#[doc(inline)]
pub use ir3_harness::campaigns::counts::Counts;
#[doc(inline)]
pub use ir3_harness::campaigns::fuzzing::{Campaign, Finding};
pub use ir3_harness::campaigns::register_limits::Limits;
#[doc(inline)]
pub use ir3_harness::case::Case;
#[doc(inline)]
pub use ir3_harness::check::{
    Answer, Boundary, EngineKind, Engines, Judgment, Refutation, Smt, Unknown, Verdict, Verification, compare,
};
#[doc(inline)]
pub use ir3_harness::reduce::{Failure, Oracle, combined::CombinedReduction, combined::run as reduce};
#[doc(inline)]
pub use ir3_programs::Question;
#[doc(inline)]
pub use ir3_programs::foreign::{Exit, ForeignProgram, Location, Operand, Operation, decode};
#[doc(inline)]
pub use ir3_programs::generator::Profile;
#[doc(inline)]
pub use ir3_programs::input::{load, parse};
#[doc(inline)]
pub use ir3_programs::seeds::env_seeds;
#[doc(inline)]
pub use ir3_report::bundle::{read as read_bundle, read_with as read_bundle_with, write as write_bundle};
#[doc(inline)]
pub use ir3_report::triage::{Group, Triage, TriageOptions, run as triage};
#[doc(inline)]
pub use ir3_semantics::Snapshot;
#[doc(inline)]
pub use ir3_semantics::environment::env::Env;
#[doc(inline)]
pub use ir3_semantics::interp::Unsupported;
