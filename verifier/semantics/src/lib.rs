//! The meaning of programs.
//!
//! - [`arithmetic`] defines integers and floats of any width, generic over the domain of values: machine integers or
//!   terms.
//! - [`terms`] is the domain of terms.
//! - [`operations`] has the meaning of each operation of nir and ir3, once, for all engines.
//! - [`environment`] has the inputs, buffers, textures and constants of a run, all of which follow from one seed.
//! - [`header`] compares the declarations of two programs, [`pair`] has facts about both, [`interp`] runs programs.
//! - `machine` has the rules of time of the hardware.
//! - [`assumptions`] has the names of the assumptions of proofs.

pub mod arithmetic;
pub mod assumptions;
pub mod environment;
pub mod header;
mod interface;
pub mod interp;
pub mod machine;
pub mod operations;
pub mod pair;
mod snapshot;
pub mod support;
pub mod terms;
pub mod vec4;

pub use snapshot::Snapshot;
