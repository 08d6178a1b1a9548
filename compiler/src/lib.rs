//! A shader-compiler backend modelled on Mesa's ir3 (Adreno a3xx to a7xx).
//!
//! A program is translated from [`nir`] by instruction selection to [`ir3`] in SSA form, then to registers. This crate
//! does not depend on the verifier that checks it.

pub mod arms;
pub mod compilation;
mod cursor;
pub mod delays;
pub mod encode;
pub mod features;
pub mod graph;
pub mod graph_colouring;
pub mod i965;
pub mod ir3;
pub mod legalize;
pub mod log_line;
pub mod lower_samgq;
pub mod lower_subgroups;
pub mod machine;
pub mod maps;
pub mod nir;
pub mod nir_passes;
pub mod opt;
pub mod pipeline;

pub mod regalloc;
pub mod repeat;
pub mod schedule;
pub mod select;
pub mod stats;
pub mod target;
pub mod words;
