//! Optimisations of ir3 in SSA form, one file per pass.

pub mod constants;
pub mod copy_propagation;
pub mod dead_code;
pub mod fold;
mod operands;
pub mod predication;
pub mod saturation;
pub mod scalar_alu;
pub mod value_numbering;
