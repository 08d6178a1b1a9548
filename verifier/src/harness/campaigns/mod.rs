//! Many programs: the compiler against generated programs, and the engines against pairs whose verdict is known.
//!
//! [`fuzzing`] compiles generated programs and checks each boundary, [`boundaries`] gives them one after the other. [`cases`] asks
//! engines about many cases. [`kill_matrix`] counts which
//! engines refute random changes, [`prover_mutants`] which wrong proofs a prover without one of its conditions makes, [`planted_trial`] how soon a
//! planted bug is found.

pub mod boundaries;
pub mod cases;
pub mod fuzzing;
pub mod kill_matrix;
pub mod planted_trial;
pub mod prover_mutants;
