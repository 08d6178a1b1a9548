//! Proofs that two programs do the same.
//!
//! - [`solver`] answers questions over terms; [`lemmas`] has the equalities that time out there.
//! - [`symbolic`] executes programs on terms, [`simulation`] relates two executions at cut points.
//! - [`hazards`] is the hazard checker, a dataflow proof that a final program waits for its results.
//! - [`registers`] is the register checker, a dataflow proof for stages that move values.
//! - [`rewrite_rules`] proves the rules of the compiler's tables for all operands.

pub mod hazards;
pub mod lemmas;
pub mod registers;
pub mod rewrite_rules;
pub mod simulation;
pub mod solver;
pub mod symbolic;
