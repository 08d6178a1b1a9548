//! Making a program that fails smaller, while it fails in the same way.
//!
//! The reducer works on programs, never on bytes. [`run`] gets a nir program and a question, "does this one fail in the
//! same way?", and tries steps: it drops effects, ifs, loops and instructions, replaces values by constants and
//! by other values, takes components and bits away. A candidate is smaller by [`Size`], valid by nir's own rules, and
//! only then is the question asked. It begins with many steps at once, halves their number as long as nothing works, and
//! ends when no single step of any kind makes the program smaller: the result is 1-minimal for the steps that it knows.
//! Where that leaves more than can be read in one look, a walk by changes that need not make the program smaller looks for
//! a way out of the local minimum, and the steps begin again.
//!
//! What "the same way" means is in [`oracle`]: the same stage and the same kind of difference, the same refusal, or a
//! panic at the same place. The input of the failing run gets simpler in [`environment`], the compiler's options and the GPU
//! plainer in `compilation`; [`whole`] does all of it.
//!
//! The result is a function of the program and the question alone. Candidates are tried in order, and with several
//! threads the first in order that fails is taken, whoever found it; so the number of threads does not matter. Limits
//! are counted in candidates, never in time.

mod checkpoint;
mod clean;
mod compilation;
mod edit;
mod engine;
pub mod environment;
pub mod oracle;
mod repair;
mod size;
mod steps;
pub mod whole;

pub use checkpoint::CheckpointError;
pub use engine::{Options, Progress, Reduced, run, run_parallel};
pub use oracle::{Failure, Oracle};
pub use size::Size;
