//! Optimisations of ir3 in SSA form, one file a pass.

pub mod copy_propagation;
pub mod dead_code;
pub mod fold;
pub mod scalar_alu;
