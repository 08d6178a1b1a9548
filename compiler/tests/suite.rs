//! The integration tests, in one program, which links once.
//!
//! `cargo test -p ir3-compiler --test suite pipeline::` runs one file.

mod common;

mod corpus;
mod delays_logs;
mod finish;
mod ir3_mutations;
mod legalize_logs;
mod mesa_logs;
mod nir_logs;
mod nir_mutations;
mod pipeline;
mod reconvergence_logs;
mod subgroups_logs;
