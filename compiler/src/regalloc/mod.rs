//! Register allocation: from SSA values to physical registers, and from parallel copies to moves.
//!
//! The stages in order; [`predicates`] runs 1 and 2, [`run_within`] runs the rest:
//! 1. `prepare`: normalizes the control-flow graph (unreachable blocks are removed, critical edges are split) and
//!    copies tied sources;
//! 2. `predicates` and `addresses`: assign the registers of which there are few, by rematerialising values (see
//!    `rematerialize`);
//! 3. `cssa`: makes a phi and its sources fit for one variable;
//! 4. `liveness`: where each value is live; `array_ranges`: where each array is; [`merge_sets`]: which values are
//!    pieces of which;
//! 5. [`pressure`]: the number of registers needed, computed before any is assigned;
//! 6. `assign`: general and shared registers in one pass over the blocks, which never needs more than that. [Graph
//!    colouring](crate::graph_colouring) chooses the registers in another way, and the pass assigns them.
//!
//! [`spill_arrays`] and [`spill`] run before 3, where registers do not suffice.
//!
//! [Features](crate::features) are parts of it that can be disabled; without splitting of live ranges,
//! `unsplit` runs step 6.
//!
//! [`lower_copies`] is a separate stage: it turns the parallel copies, collects and splits into machine instructions
//! with `parallel_copy`.

use crate::arms::Counter;
use crate::features::{Feature, Features};
use crate::ir3::dominance::{EdgeKind, postorder};
use crate::ir3::workload;
use crate::ir3::{Block, Instr, Program, Value};
use crate::maps::map_of;
use crate::target::{RegisterFiles, Target};
pub(crate) use carried::{Analysed, Carried, Spilled};
pub use coalescing::Coalescing;
pub use limit::RegisterLimit;
use pressure::{Analysis, Pressure};

mod addresses;
pub(crate) mod array_ranges;
pub(crate) mod assign;
mod carried;
mod coalescing;
mod cssa;
pub(crate) mod file;
pub mod forest;
mod given;
mod inputs;
mod limit;
pub mod liveness;
pub mod lower_copies;
pub mod lower_spills;
pub mod merge_sets;
mod next_use;
mod outputs;
mod parallel_copy;
mod predicates;
mod prepare;
pub mod pressure;
mod rematerialize;
pub mod shared;
pub mod spill;
pub mod spill_arrays;
pub mod step;
mod unsplit;

/// A reason why registers cannot be assigned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More registers are live at one point than exist.
    #[error("needs spilling: {needed} of {available} {file} registers")]
    NeedsSpilling {
        /// Registers that the program needs at one point.
        needed: u32,
        /// Available registers.
        available: u32,
        /// The register file.
        file: &'static str,
    },
    /// Values would have to be spilled, and the target has no memory for that.
    #[error("{target} has no private memory to spill to: needs {needed} of {available} {file} registers")]
    NoPrivateMemory {
        /// The target.
        target: &'static str,
        /// Registers that the program needs at one point.
        needed: u32,
        /// Available registers.
        available: u32,
        /// The register file.
        file: &'static str,
    },
    /// One instruction needs more registers than exist.
    #[error("{instr} ({opcode}) needs {needed} of {available} {file} registers, with all else in memory")]
    Instruction {
        /// The instruction with the highest need.
        instr: Instr,
        /// Its mnemonic.
        opcode: &'static str,
        /// Registers that it needs.
        needed: u32,
        /// Available registers.
        available: u32,
        /// The register file.
        file: &'static str,
    },
    /// Graph colouring found no register for a value.
    #[error("{value} finds no register: {available} {file} registers cannot colour the program")]
    Uncoloured {
        /// The value, or one of those that are coalesced with it.
        value: Value,
        /// Available registers.
        available: u32,
        /// The register file.
        file: &'static str,
    },
    /// No gap is long enough, though registers are free, and live ranges are not split.
    #[error("no gap is left in {available} {file} registers, and live ranges are not split")]
    Fragmented {
        /// Available registers.
        available: u32,
        /// The register file.
        file: &'static str,
    },
    /// A construct that this allocator does not support.
    #[error("unsupported: {what} in {instr} ({opcode})")]
    Unsupported {
        /// The construct.
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

    /// The error for a need of `needed` units where `available` exist.
    pub(crate) fn spilling(needed: u32, available: u16, half: bool) -> Self {
        let unit = if half { 1 } else { 2 };
        let file = if half { "half" } else { "full" };
        Self::NeedsSpilling { needed: needed.div_ceil(unit), available: u32::from(available) / unit, file }
    }
}

/// Normalizes the control flow for the other functions of this module, and assigns registers to predicates and
/// addresses. All other values stay.
///
/// # Errors
/// If the program is malformed or needs an unsupported construct.
pub fn predicates(program: &mut Program, target: &Target) -> Result<(), Error> {
    predicates_within(program, target, target.num_predicates)
}

/// Like [`predicates`], with at most `registers` predicate registers, limited by those of the target.
///
/// # Errors
/// Those of [`predicates`].
pub fn predicates_within(program: &mut Program, target: &Target, registers: u32) -> Result<(), Error> {
    prepare::run(program)?;
    predicates::run(program, target, registers)?;
    if addresses::is_needed(program) {
        addresses::run(program)?;
    }
    Ok(())
}

/// Returns true if [`predicates`] would change the program.
pub fn has_predicates(program: &Program) -> bool {
    prepare::is_needed(program) || predicates::is_needed(program) || addresses::is_needed(program)
}

/// Assigns registers to every other value of a program in SSA form that [`predicates`] has processed, if the registers
/// that it [needs](Pressure) are within `limits`. It uses no more than the [target size](target_size).
///
/// # Errors
/// If the program needs more than `limits`, or is not supported.
pub fn run_within(program: &mut Program, target: &Target, limits: RegisterFiles) -> Result<(), Error> {
    let analysis = Analysis::new(program, target)?;
    let pressure = analysis.max_pressure(program);
    if let Some(error) = pressure.excess(&limits) {
        return Err(error);
    }
    let files = target_size(program, &pressure, target, limits);
    let settings = assign::Settings { files, preferred: None, splitting: true };
    assign::run(program, &analysis, target, settings, &pressure, &Counter::default())
}

/// Like [`run_within`], with a register limit and rules. For the least limit, exactly the registers that the program
/// needs are available; without splitting of live ranges more are, and as few as possible are taken.
///
/// # Errors
/// Those of [`run_within`], and if live ranges are not split and no gap is left for some value.
pub fn run_limited(
    program: &mut Program,
    target: &Target,
    limit: RegisterLimit,
    features: Features,
    counter: &Counter,
) -> Result<(), Error> {
    let analysed = Analysed::new(program, target, Coalescing::of(features))?;
    run_analysed(program, &analysed, target, limit, features, counter)
}

/// Like [`run_limited`], for a program that has been analysed.
pub(crate) fn run_analysed(
    program: &mut Program,
    Analysed { analysis, pressure }: &Analysed,
    target: &Target,
    limit: RegisterLimit,
    features: Features,
    counter: &Counter,
) -> Result<(), Error> {
    let limits = files(pressure, target, limit);
    if let Some(error) = pressure.excess(&limits) {
        return Err(error);
    }
    if !features.contains(Feature::LiveRangeSplitting) {
        return unsplit::run(program, target, analysis, pressure, limit, features, counter);
    }
    let files = first_size(program, pressure, target, limit, features);
    let settings = assign::Settings { files, preferred: None, splitting: true };
    assign::run(program, analysis, target, settings, pressure, counter)
}

/// The registers that a limit allows for a program of this pressure.
fn files(pressure: &Pressure, target: &Target, limit: RegisterLimit) -> RegisterFiles {
    let mut files = limit.files(target);
    if matches!(limit, RegisterLimit::Minimum(_)) {
        files.full = files.full.min(pressure.full.next_multiple_of(2));
        files.half = files.half.min(pressure.half);
    }
    files
}

/// The registers that a limit allows for a program before register assignment. Without splitting of live ranges, it
/// takes more than the minimum.
///
/// # Errors
/// If the program cannot be analysed.
pub fn files_within(
    program: &Program,
    target: &Target,
    limit: RegisterLimit,
    features: Features,
) -> Result<RegisterFiles, Error> {
    if !matches!(limit, RegisterLimit::Minimum(_)) || !features.contains(Feature::LiveRangeSplitting) {
        return Ok(limit.files(target));
    }
    Ok(files(&spill::pressure(program, target, Coalescing::of(features))?, target, limit))
}

/// The registers that a program of this pressure may use within a limit, before more are tried.
fn first_size(
    program: &Program,
    pressure: &Pressure,
    target: &Target,
    limit: RegisterLimit,
    features: Features,
) -> RegisterFiles {
    let limits = files(pressure, target, limit);
    if features.contains(Feature::Occupancy) {
        return target_size(program, pressure, target, limits);
    }
    let full = pressure.full.next_multiple_of(8).min(limits.full);
    let half = if target.merged_regs { full } else { pressure.half.next_multiple_of(4) };
    RegisterFiles { full, half: half.min(limits.half), ..limits }
}

/// The registers that a program of this pressure may use within `limits`: as many as reduce no occupancy, in whole
/// vec4.
pub fn target_size(program: &Program, pressure: &Pressure, target: &Target, limits: RegisterFiles) -> RegisterFiles {
    let full = target.registers_without_loss(&workload(program), pressure.full.div_ceil(8)) * 8;
    let full = full.max(pressure.full).min(limits.full);
    let half = if target.merged_regs { full } else { pressure.half.next_multiple_of(4) };
    RegisterFiles { full, half: half.min(limits.half), ..limits }
}

/// The order in which blocks are visited: that of the code, if each block is after one of its predecessors there, which
/// holds for all code from selection. Each block is then after its dominator too: that dominates the predecessor, or is
/// it, and so is before the block by induction.
fn order(program: &Program) -> Vec<Block> {
    let mut seen = map_of::<Block, bool>(program.blocks.len());
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
