//! A shader-compiler backend in the manner of Mesa's ir3 (Adreno a3xx to a7xx).
//!
//! A program travels from [`nir`] through instruction selection to [`ir3`] in SSA form, then to registers.
//! This crate knows nothing of the verifier that checks it.

pub mod compilation;
pub mod delays;
pub mod features;
pub mod ir3;
pub mod log_line;
pub mod nir;
pub mod nir_passes;
pub mod opt;
pub mod pipeline;
pub mod regalloc;
pub mod schedule;
pub mod select;
pub mod stats;
pub mod target;
