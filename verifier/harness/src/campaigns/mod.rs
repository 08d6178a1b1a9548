//! Campaigns over many programs: the compiler on generated programs, and the engines on pairs whose verdict is known.
//!
//! [`coverage`] counts the cells of a campaign's programs, and chooses programs with rare ones; [`corpus`] are programs
//! that it starts from, and keeps.
//!
//! [`fuzzing`] compiles generated programs and checks them, [`workers`] does so in processes that can be stopped,
//! [`shard`] is a part of a campaign for one of several machines. [`boundaries`] generates the boundaries of
//! compilations one after the other. [`cases`] runs engines on many cases. [`code`] are the programs of a campaign that
//! are not made from nir. [`kill_matrix`] counts the engines that refute random mutations, [`hazard_mutants`] the
//! changes of waits that the hazard checker and the machine refute, [`log_mutants`] the changes of Mesa's logs of which
//! `mesa` names the pass, [`broken_logs`] the handling of logs that are cut or mixed, [`prover_mutants`] the wrong
//! proofs of provers without one of their side conditions, [`planted_trial`] measures how soon a planted bug is found.
//! [`external`] fuzzes a compiler that is another program. [`machine`] runs Mesa's final programs. [`words`] takes
//! machine code from words to text and back.

pub mod boundaries;
pub mod broken_logs;
pub mod cases;
pub mod code;
pub mod corpus;
pub mod counts;
pub mod coverage;
pub mod external;
pub mod fuzzing;
pub mod hazard_mutants;
pub mod kill_matrix;
pub mod log_mutants;
pub mod machine;
pub mod missed_bugs;
pub mod planted_trial;
pub mod prover_mutants;
pub mod shard;
pub mod vec4;
pub mod words;
pub mod workers;
