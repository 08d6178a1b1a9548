//! Instruction selection: nir in, ir3 in SSA form out.
//!
//! One walk over the tree of control flow, in source order, one nir instruction at a time; nothing is matched across
//! instructions, since copy propagation and dead-code elimination run behind. The room has one file for each kind of
//! nir instruction; all of them work on one `Context`, which knows for every component of a nir value which ir3
//! value it is.
//!
//! How nir's values are kept:
//! - a component of 32 bits is a full register, one of 16 bits a half register, one of 64 bits two full registers, the
//!   low word first;
//! - a component of 8 bits is a half register whose upper byte is zero: whatever computes 8 bits ends by masking;
//! - a bool is 0 or 1, in a half register from a5xx on and in a full one below;
//! - constants are no values until something reads them: then they are immediates, moved into a register once a block;
//! - vectors exist only where an instruction wants one, through `collect` and `split`.

mod alu;
mod arrays;
mod atomic;
mod consts;
mod context;
mod control_flow;
mod image;
mod inputs;
mod intrinsics;
mod memory;
mod outputs;
mod subgroups;
mod system_values;
mod texture;

#[cfg(test)]
mod tests;

use crate::ir3::Program;
use crate::nir;
use crate::target::Target;
use context::Context;
use std::fmt;

/// What selection cannot translate, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectError {
    /// The operation, as nir text names it.
    pub operation: String,
    /// Why it is refused.
    pub reason: String,
    /// The line in the nir text, if the shader came from text.
    pub line: Option<u32>,
    /// The instruction, if it is about one.
    pub instr: Option<nir::Instr>,
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.instr) {
            (Some(line), _) => write!(f, "line {line}: ")?,
            (None, Some(instr)) => write!(f, "{instr}: ")?,
            (None, None) => {}
        }
        write!(f, "{}: {}", self.operation, self.reason)
    }
}

impl std::error::Error for SelectError {}

/// Translates a shader for a GPU.
///
/// # Errors
/// Names the operation that ir3 does not have, or that is not supported, and its place.
pub fn run(shader: &nir::Shader, target: &Target) -> Result<Program, SelectError> {
    let mut ctx = Context::new(shader, target);
    ctx.controls = nir::FloatControls::of(&shader.info).map_err(|error| ctx.unsupported(error.to_string()))?;
    control_flow::emit(&mut ctx)?;
    Ok(ctx.finish())
}
