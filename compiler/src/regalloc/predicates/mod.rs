//! Predicate registers: one, or four from a6xx on.
//!
//! A predicate costs one comparison and cannot be moved, so there are no copies of it: a predicate without a register
//! is dropped and rematerialised, from general registers, before its next use. That is decided in one pass over the
//! blocks, before general registers are assigned.
//!
//! # Facts at each point
//!
//! The fact is *which value each register holds*: for each register a value of the program in SSA form, or none
//! ([`State`]). States are ordered by how much they determine, and the common part of two of them is their *meet*: a
//! register keeps its value if both have the same value there, and has none otherwise.
//!
//! - **Definition**: the register that is chosen for it holds the value; the previous value is overwritten.
//! - **Read**: if no register holds the value, it is computed into one before the reader, by the instruction that
//!   defines it or by a clone of that. In both cases a register holds it now, for later reads too.
//! - **Start of a block**: the meet of the states at the ends of its predecessors, restricted to live values. A
//!   predecessor that has not been visited, at the end of a back edge, is left out: the state at the start is a
//!   promise, and that predecessor keeps it. Before its terminator, values that the promise has and its registers do
//!   not hold are computed into them.
//!
//! So a read always finds its value: a state is true on each edge into a block, by the meet or by the promise, and each
//! instruction preserves it. Clones are only inserted where the value is live, or defined: the definition dominates
//! that point, and so the sources are available there. In the end no operand refers to values, so a clone is an
//! instruction like any other.
//!
//! # Which lanes
//!
//! Each lane has its own registers, and an inactive lane keeps its contents. Blocks that other lanes run while one
//! waits do not change its registers, so the analysis follows the path of one lane: logical edges only. A clone
//! computes for the active lanes, and these are the ones that read it later: an instruction that reads the predicate of
//! several lanes (`bany`, a subgroup vote) reads those of active ones.
//!
//! A clone must read the same values as the definition. That holds for values in SSA form, except shared ones: lanes
//! that have come later have overwritten them. If lanes may have waited in between, the definition reads a copy in a
//! general register; the same applies to a word of the constant file that is written later
//! ([`rematerialize`](super::rematerialize)).
//!
//! # Eviction
//!
//! The victim is the value whose next read is furthest, along the shortest path; a loop exit counts as many thousands
//! of instructions. A definition evicts only a value that nothing has read yet, and that is read later than its own:
//! delaying that one costs no more. Otherwise it is delayed to its first read, before which the other reads have freed
//! registers. A loop promises itself a live-in value only if a register is free for it in addition to the values that
//! are read in the loop, or else, with several registers, if it is read there: with one register, keeping a promise
//! costs as much as it saves.
//!
//! # Points of rematerialisation
//!
//! Before the reader; but a reader would wait six slots for that. So at the end of a block, registers that are free
//! there, or whose values would be evicted by the read anyway, get values that are read soon after it, and before a
//! loop those that are read in it (`walk/early.rs`). General registers are not assigned yet, and the operands of the
//! computation are live until the read in both cases.
//!
//! The operands of `predt` and `predf` are in `p0.x`. In the end, definitions whose register is not read before it is
//! written again are removed, including promises without a use.

mod liveness;
mod survey;
#[cfg(test)]
mod tests;
mod walk;
mod write;

use super::rematerialize::keep_old_constants;
use super::{Error, order};
use crate::ir3::{InstrData, PhysReg, Place, Program, RegFile, RepeatLink, SrcOperand, Value};
use crate::target::Target;
use cranelift_entity::packed_option::PackedOption;

/// The maximum number of registers.
const SLOTS: usize = 4;

/// The value in each register.
type State = [PackedOption<Value>; SLOTS];

/// A set of registers, one bit each.
type SlotMask = u8;

/// Returns true if there is a predicate without a register.
pub fn is_needed(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| is_predicate_op(&program.instrs[instr]))
}

/// Assigns one of `registers` registers to each predicate operand; at least two are used if an instruction reads two.
///
/// # Errors
/// If more predicates are live than there are registers, and they cannot be rematerialised.
pub fn run(program: &mut Program, target: &Target, registers: u32) -> Result<(), Error> {
    keep_old_constants(program, RegFile::Predicate);
    let mut survey = survey::Survey::new(program, order(program))?;
    if survey.computes_from_more && survey::through_registers(program, target) {
        survey = survey::Survey::new(program, survey.order)?;
    }
    if survey.ops.is_empty() {
        return Ok(());
    }
    let live = liveness::run(program, &survey)?;
    if survey.reads_shared && survey::keep_shared(program, &survey, &live) {
        survey = survey::Survey::new(program, survey.order)?;
    }
    let slots = registers.max(survey.most_reads).min(target.num_predicates).min(SLOTS as u32) as usize;
    let placed = walk::run(program, &survey, &live, slots)?;
    write::run(program, &survey, placed);
    Ok(())
}

const fn register(slot: usize) -> PhysReg {
    PhysReg(PhysReg::P0_X.0 + slot as u16)
}

/// The index of the register of a place, if it has one.
fn slot_of(place: &Place) -> Option<usize> {
    let slot = usize::from(place.reg()?.0.checked_sub(PhysReg::P0_X.0)?);
    (slot < SLOTS).then_some(slot)
}

/// Returns true if an instruction reads or writes a predicate.
fn is_predicate_op(data: &InstrData) -> bool {
    data.dsts.iter().any(|dst| dst.class.file == RegFile::Predicate)
        || data.srcs.iter().any(|src| src.class.file == RegFile::Predicate)
}

/// Returns true if the value of a definition can be rematerialised.
fn is_rematerializable(data: &InstrData) -> bool {
    let stays = |operand: &SrcOperand, file| match operand {
        SrcOperand::Place(_) => matches!(file, RegFile::General | RegFile::Shared),
        _ => true,
    };
    data.is_rematerializable()
        && (data.repeat, data.link()) == (0, RepeatLink::None)
        && data.srcs.iter().all(|src| stays(&src.operand, src.class.file))
}
