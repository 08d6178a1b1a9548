//! The reducer: makes a failing program smaller while it fails in the same way.
//!
//! The reducer works on programs, never on bytes. [`run`] gets a program (in nir or ir3, or two of them: `pair`) and a
//! test, "does this program fail in the same way?", and tries steps: it drops effects, ifs, loops and instructions,
//! replaces values by constants and by other values, removes components and bits. Only a candidate that is smaller by
//! [`Size`] and valid by nir's own rules is tested. As in delta debugging, the search begins with many steps at once,
//! halves their number as long as nothing works, and ends when no single step of any kind makes the program smaller:
//! the result is 1-minimal for the known steps. If the result is still too large to be read at a glance, a random walk
//! by changes that need not make the program smaller leaves the local minimum, and the steps are tried again.
//!
//! The test is a function; [`command`] has one that runs a program of the user. For failures of the compiler,
//! [`oracle`] defines "the same way": the same stage and the same kind of difference, the same refusal, or a panic at
//! the same place. The environment of the failing run is simplified by [`environment`], the compiler's options and the
//! GPU by `compilation`; [`combined`] does all of it.
//!
//! The result is a function of the program and the test alone. Candidates are tried in order, and with several threads
//! the first failing one in that order is taken, whichever thread found it; so the number of threads does not matter.
//! Limits are counted in candidates, never in time.

mod checkpoint;
mod clean;
pub mod combined;
pub mod command;
mod compilation;
mod edit;
mod engine;
pub mod environment;
mod ir3;
pub mod oracle;
pub mod pair;
mod repair;
mod size;
mod steps;
mod subject;
mod vec4;

pub use checkpoint::CheckpointError;
pub use engine::{Options, Progress, Reduced, Watch, run, run_parallel, run_watched};
pub use ir3::{Declared, Ir3Step, Ir3Subject};
pub use oracle::{Failure, Oracle};
pub use size::Size;
pub use subject::{Kind, NirStep, Side, SideStep, Subject};
pub use vec4::minimal_vec4;
