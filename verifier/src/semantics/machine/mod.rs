//! Time on the machine: which unit executes an instruction, and when its results are there.
//!
//! The hazard checker proves with these rules that a program waits as long as it has to, and the machine of the
//! interpreter makes undefined what is read too early.

mod arrays;
mod consts;
pub(crate) mod rules;
pub(crate) mod steps;
pub(crate) mod units;
