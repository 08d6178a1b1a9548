//! Reports: a failure as a [`bundle`] that can be read, run again, reduced, and attached to a bug report, with the
//! first [`difference`] of its two sides, and as one [`page`]; metrics in comparison with Mesa's, and of two runs of
//! shader-db; and final programs.

pub mod bundle;
pub mod difference;
mod finals;
pub mod mesa_comparison;
pub mod page;
pub mod pair;
pub mod shader_db;

pub use finals::{FinalProgram, finals, generated_final, instruction_text};
