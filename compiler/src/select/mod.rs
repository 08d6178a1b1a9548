//! Instruction selection: from nir to ir3 in SSA form.
//!
//! One pass over the tree of control flow, in source order, one nir instruction at a time. Patterns of several
//! instructions are not matched, since copy propagation and dead-code elimination run later. The module has one file
//! for each kind of nir instruction; all of them work on one `Context`, which maps every component of a nir value to
//! its ir3 value.
//!
//! The representation of nir's values:
//! - a component of 32 bits is a full register, one of 16 bits a half register, one of 64 bits two full registers, the
//!   low word first;
//! - a component of 8 bits is a half register whose upper byte is zero: each 8-bit operation ends with a mask;
//! - a bool is 0 or 1, in a half register from a5xx on and in a full one below;
//! - constants have no values until an instruction reads them: then they are immediates, moved into a register once per
//!   block;
//! - vectors exist only as operands of instructions that need one, through `collect` and `split`.

mod alu;
mod arrays;
mod atomic;
mod consts;
mod context;
mod control_flow;
mod driver_params;
mod early_inputs;
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

use crate::ir3::{Opcode, Program};
use crate::nir;
use crate::target::{Generation, Target};
use context::Context;
use std::fmt;

/// A construct that selection cannot translate, and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectError {
    /// The operation, as nir text names it.
    pub operation: String,
    /// The reason.
    pub reason: String,
    /// The line in the nir text, if the shader came from text.
    pub line: Option<u32>,
    /// The instruction, if there is one.
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
/// Names the operation that ir3 does not have, or that is not supported, and its location.
pub fn run(shader: &nir::Shader, target: &Target) -> Result<Program, SelectError> {
    let mut ctx = Context::new(shader, target);
    if target.generation >= Generation::A8xx {
        return Err(ctx.unsupported(format!("{target} is judged only: too little is known of its instructions")));
    }
    ctx.controls = nir::FloatControls::of(&shader.info).map_err(|error| ctx.unsupported(error.to_string()))?;
    control_flow::emit(&mut ctx)?;
    let mut program = ctx.finish()?;
    let starts = program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode == Opcode::Shps);
    if starts && program.preamble_len() == 0 {
        let operation = nir::IntrinsicOp::PreambleStartIr3.name().to_owned();
        let reason = "no `preamble_end_ir3` ends the preamble".to_owned();
        return Err(SelectError { operation, reason, line: None, instr: None });
    }
    early_inputs::run(&mut program, target)?;
    Ok(program)
}
