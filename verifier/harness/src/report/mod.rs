//! Reports: a failure as a [`bundle`] that can be read, run again, reduced, and attached to a bug report, with the
//! first [`difference`] of its two sides, and as one [`page`]; metrics in comparison with Mesa's, and of two runs of
//! shader-db; and programs as files and as text.

pub mod bundle;
pub mod difference;
mod finals;
pub mod machine_code;
pub mod mesa_comparison;
pub(crate) mod natives;
pub mod page;
pub mod pair;
pub(crate) mod programs;
pub mod shader_db;

pub use finals::{FinalProgram, finals, generated_final, instruction_text};
pub use natives::{NativeError, NativeProgram, native};
pub use programs::{Named, Unread, load, load_pair, load_source, parse, read_log_nir, unread, unread_of};
