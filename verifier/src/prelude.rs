//! The items that a user of the library needs: `use ir3_verifier::prelude::*`.

#[doc(no_inline)]
pub use ir3_compiler::compilation::Compilation;
#[doc(no_inline)]
pub use ir3_compiler::pipeline::{Feature, Options, OwnPass, Stage};
#[doc(no_inline)]
pub use ir3_compiler::target::Target;
#[doc(no_inline)]
pub use ir3_compiler::{ir3, nir};

#[doc(inline)]
pub use crate::harness::campaigns::counts::Counts;
pub use crate::harness::campaigns::fuzzing::{Campaign, Finding, Limits};
#[doc(inline)]
pub use crate::harness::check::{
    Answer, Boundary, EngineKind, Engines, Judgment, Refutation, Smt, Unknown, Verdict, Verification, compare,
};
#[doc(inline)]
pub use crate::harness::reduce::{Failure, Oracle, combined::CombinedReduction, combined::run as reduce};
#[doc(inline)]
pub use crate::harness::report::bundle::{Case, read as read_bundle, write as write_bundle};
#[doc(inline)]
pub use crate::harness::report::{load, parse};
#[doc(inline)]
pub use crate::harness::triage::{Group, Triage, TriageOptions, run as triage};
#[doc(inline)]
pub use crate::programs::Question;
#[doc(inline)]
pub use crate::programs::foreign::{Exit, ForeignProgram, Location, Operand, Operation, decode};
#[doc(inline)]
pub use crate::programs::generator::Profile;
#[doc(inline)]
pub use crate::programs::seeds::env_seeds;
#[doc(inline)]
pub use crate::semantics::Snapshot;
#[doc(inline)]
pub use crate::semantics::environment::env::Env;
#[doc(inline)]
pub use crate::semantics::interp::Unsupported;
