//! The integration tests, in one program: each program that links the verifier costs seconds, and tests of one program share both cores.
//!
//! `cargo test -p ir3-verifier --test suite pairs::` runs one file.

mod common;

mod allocation_property;
mod bundle;
mod contents;
mod counterexamples;
mod equivalence;
mod fuzz_targets;
mod generate;
mod given_registers;
mod kill;
mod lowered_arithmetic;
mod mesa_logs;
mod mesa_statistics;
mod mutations;
mod nir_interpreter;
mod pairs;
#[path = "parallel_copies/main.rs"]
mod parallel_copies;
mod physical_edges;
mod planted_branches;
mod planted_bugs;
mod planted_folds;
mod planted_predicates;
mod planted_schedule;
mod planted_shared;
mod predicates_census;
mod proofs;
mod proved_forms;
mod reduce;
mod regressions;
mod selected_arithmetic;
mod selected_intrinsics;
mod selected_memory;
mod spills;
mod tight_registers;
mod triage;
mod truth_tables;
mod walkthrough;
