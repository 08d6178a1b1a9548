//! Campaigns that test the verifier itself, for its developers: the program `ir3-selftest` runs them.
//!
//! [`cases`] runs engines on many cases. [`kill_matrix`] counts the engines that refute random mutations,
//! [`hazard_mutants`] the changes of waits that the hazard checker and the machine refute, [`log_mutants`] the changes
//! of Mesa's logs of which `mesa` names the pass, [`broken_logs`] the handling of logs that are cut or mixed,
//! [`missed_bugs`] the planted bugs that `verify` misses in real programs, [`prover_mutants`] the wrong proofs of
//! provers without one of their side conditions. [`planted_trial`] measures how soon a planted bug is found.
//! [`machine`] runs Mesa's final programs. [`vec4`] checks the passes of vec4 on generated programs.

pub mod broken_logs;
pub mod cases;
pub mod hazard_mutants;
pub mod kill_matrix;
pub mod log_mutants;
pub mod machine;
pub mod missed_bugs;
pub mod planted_trial;
pub mod prover_mutants;
pub mod vec4;
