//! Registers: from SSA values to physical registers, and from parallel copies to moves.
//!
//! The way of a program through this room; [`predicates`] is 1 and 2, [`run_within`] is the rest:
//! 1. `prepare`: the control-flow graph is put into shape (unreachable blocks go, critical edges get a block of their
//!    own), tied sources are copied;
//! 2. `predicates` and `addresses`: the registers of which there are few, by rematerialising values (see `rematerialize`);
//! 3. `cssa`: a phi and its sources can be one variable;
//! 4. `liveness`: where each value is live; [`merge_sets`]: which values are pieces of which;
//! 5. [`pressure`]: how many registers are needed, known before any is assigned;
//! 6. `assign`: general and shared registers in one walk over the blocks, which never needs more than that.
//!
//! [`lower_copies`] is a stage of its own: it turns the parallel copies, collects and splits into machine
//! instructions with `parallel_copy`.

use crate::ir3::dominance::{EdgeKind, postorder};
use crate::ir3::workload;
use crate::ir3::{Block, Instr, Program};
use crate::target::{RegisterFiles, Target};
use cranelift_entity::SecondaryMap;
pub use limit::RegisterLimit;
use pressure::{Analysis, Pressure};

mod addresses;
mod assign;
mod cssa;
mod file;
pub mod forest;
mod given;
mod inputs;
mod limit;
pub mod liveness;
pub mod lower_copies;
pub mod lower_spills;
pub mod merge_sets;
mod outputs;
mod parallel_copy;
mod predicates;
mod prepare;
pub mod pressure;
mod rematerialize;
pub mod shared;
pub mod spill;
pub mod step;

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
    /// Values would have to go to memory, and the target has none for that.
    #[error("{target} has no private memory to spill to: needs {needed} of {available} {file} registers")]
    NoPrivateMemory {
        /// The target.
        target: &'static str,
        /// Registers that the program needs at one place.
        needed: u32,
        /// Registers that there are.
        available: u32,
        /// Which registers.
        file: &'static str,
    },
    /// One instruction needs more registers than there are.
    #[error("{instr} ({opcode}) needs {needed} of {available} {file} registers, with all else in memory")]
    Instruction {
        /// The instruction that needs most.
        instr: Instr,
        /// Its mnemonic.
        opcode: &'static str,
        /// Registers that it needs.
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

    /// So many units are needed of so many.
    fn spilling(needed: u32, available: u16, half: bool) -> Self {
        let unit = if half { 1 } else { 2 };
        let file = if half { "half" } else { "full" };
        Self::NeedsSpilling { needed: needed.div_ceil(unit), available: u32::from(available) / unit, file }
    }
}

/// Puts the control flow into the shape that the other functions of this room ask for, and assigns registers to
/// predicates and addresses. All other values stay.
pub fn predicates(program: &mut Program, target: &Target) -> Result<(), Error> {
    predicates_within(program, target, target.num_predicates)
}

/// The same with so many predicate registers, or all that there are.
pub fn predicates_within(program: &mut Program, target: &Target, registers: u32) -> Result<(), Error> {
    prepare::run(program)?;
    predicates::run(program, target, registers)?;
    if addresses::is_needed(program) {
        addresses::run(program)?;
    }
    Ok(())
}

/// Whether [`predicates`] has anything to do.
pub fn has_predicates(program: &Program) -> bool {
    prepare::is_needed(program) || predicates::is_needed(program) || addresses::is_needed(program)
}

/// Assigns registers to every other value of a program in SSA form that [`predicates`] has been run on, if as many as
/// the program [needs](Pressure) are within `limits`. It uses no more than the [target size](target_size).
pub fn run_within(program: &mut Program, target: &Target, limits: RegisterFiles) -> Result<(), Error> {
    let analysis = Analysis::new(program, target)?;
    let pressure = analysis.max_pressure(program);
    assign(program, target, &analysis, &pressure, limits)
}

/// The same within a limit of a program: if that is the least, there are as many registers as the program needs, to the
/// last one.
pub fn run_limited(program: &mut Program, target: &Target, limit: RegisterLimit) -> Result<(), Error> {
    let analysis = Analysis::new(program, target)?;
    let pressure = analysis.max_pressure(program);
    assign(program, target, &analysis, &pressure, files(&pressure, target, limit))
}

/// The registers that a limit leaves a program of this pressure.
fn files(pressure: &Pressure, target: &Target, limit: RegisterLimit) -> RegisterFiles {
    let mut files = limit.files(target);
    if matches!(limit, RegisterLimit::Minimum(_)) {
        files.full = files.full.min(pressure.full.next_multiple_of(2));
        files.half = files.half.min(pressure.half);
    }
    files
}

/// The registers that a limit leaves a program that is about to be assigned registers.
pub fn files_within(program: &Program, target: &Target, limit: RegisterLimit) -> Result<RegisterFiles, Error> {
    if !matches!(limit, RegisterLimit::Minimum(_)) {
        return Ok(limit.files(target));
    }
    Ok(files(&spill::pressure(program, target)?, target, limit))
}

fn assign(
    program: &mut Program,
    target: &Target,
    analysis: &Analysis,
    pressure: &Pressure,
    limits: RegisterFiles,
) -> Result<(), Error> {
    if let Some(error) = pressure.excess(&limits) {
        return Err(error);
    }
    let size = target_size(program, pressure, target, limits);
    assign::run(program, analysis, target.merged_regs, size, pressure)
}

/// The registers that a program of this pressure may use within `limits`: as many as cost no wave, in whole vec4.
pub fn target_size(program: &Program, pressure: &Pressure, target: &Target, limits: RegisterFiles) -> RegisterFiles {
    let full = target.registers_without_loss(&workload(program), pressure.full.div_ceil(8)) * 8;
    let full = full.max(pressure.full).min(limits.full);
    let half = if target.merged_regs { full } else { pressure.half.next_multiple_of(4) };
    RegisterFiles { full, half: half.min(limits.half), ..limits }
}

/// The order in which blocks are visited: that of the code, if each block stands behind one of its predecessors there,
/// which is so in all that selection makes. It then stands behind its dominator too: that dominates the predecessor, or
/// is it, and so is in front of it by induction.
fn order(program: &Program) -> Vec<Block> {
    let mut seen = SecondaryMap::<Block, bool>::with_capacity(program.blocks.len());
    let fits = program.layout.iter().all(|&block| {
        let fits = block == program.entry() || program.blocks[block].predecessors.iter().any(|&pred| seen[pred]);
        seen[block] = true;
        fits
    });
    if fits {
        return program.layout.clone();
    }
    let mut order = postorder(program, EdgeKind::Logical);
    order.reverse();
    order
}

#[cfg(test)]
mod tests;
