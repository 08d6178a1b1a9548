//! Fuzzing of a compiler that is another program.
//!
//! A generated program is written as `program.spv`, a SPIR-V module, together with `program.nir`, the same program. The
//! compiler gets the path of the module as its last argument, and prints a log as Mesa's ir3 does ([`command`] has the
//! contract). `observe` checks the log pass by pass, as `mesa` does; a crash, a hang, an unreadable log and a refuted
//! pass are failures. [`reduce`] makes the nir smaller while the compiler fails in the same way, translating each
//! candidate to SPIR-V again. [`Campaign`] is the loop.

mod campaign;
pub mod command;
mod compiler;
mod course;
mod failure;
mod observe;
pub mod reduce;
pub mod variants;

pub use campaign::{Campaign, Counts, Finding};
pub use command::{CompilerCommand, RunError};
pub use compiler::{Compiler, Drivers, Sections};
pub use course::Course;
pub use failure::Failure;
pub use observe::{Found, LogRules, Observation};
