//! Proofs that two programs do the same.
//!
//! - [`solver`] answers questions over terms; [`lemmas`] has the equalities that time out there.
//! - [`symbolic`] executes programs on terms, [`simulation`] relates two executions at cut points.
//! - [`registers`] is the register checker, a dataflow proof for stages that move values.
//! - [`rewrite_rules`] proves the rules of the compiler's tables for all operands.

pub mod lemmas;
pub mod registers;
pub mod rewrite_rules;
pub mod simulation;
pub mod solver;
pub mod symbolic;
