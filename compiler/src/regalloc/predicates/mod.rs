//! Predicate registers: one, or four from a6xx on.
//!
//! A predicate costs one comparison and can be moved nowhere, so there are no copies of it: what finds no room is dropped
//! and computed again, from general registers, in front of its next use. That is decided in one pass over the blocks,
//! before general registers are assigned.
//!
//! # What is known at each point
//!
//! The fact is *which value each register holds*: for each register a value of the program in SSA form, or none
//! ([`State`]). States are ordered by how much they say, and what two of them both say is their *meet*: a register keeps
//! its value if both have the same value there, and has none otherwise.
//!
//! - **Definition**: the register that is chosen for it holds the value; where another value was, that is lost.
//! - **Read**: if no register holds the value, it is computed into one in front of the reader, by the instruction that
//!   defines it or by a clone of that. Either way a register holds it now, for later reads too.
//! - **Start of a block**: the meet of the states at the ends of its predecessors, as far as the values are live there.
//!   A predecessor that is yet to be visited, at the end of a back edge, is left out: the state at the start is a promise,
//!   and that predecessor keeps it. In front of its terminator whatever the promise says and its registers do not hold is
//!   computed into them.
//!
//! So a read always finds its value: what a state says is true on each edge into a block, by the meet or by the promise,
//! and each instruction keeps it true. Clones are only ever put where the value is live, or defined: the definition
//! dominates that place, and with it the sources are known there. In the end no operand speaks of values, so a clone is
//! an instruction like any other, and what it was cloned from is forgotten.
//!
//! # Which lanes
//!
//! Registers are each lane's own, and a lane that is not active keeps what it has. Blocks that other lanes run while one
//! waits change nothing for it, so that all of this is about the way of one lane: logical edges only, as lanes go along no
//! others. A clone computes for the lanes that are active, and these are the ones that go on to read: an instruction that
//! looks at the predicate of several lanes (`bany`, a vote) looks at those of active ones.
//!
//! What a clone reads has to be what the definition has read. That holds for values in SSA form, but for shared
//! ones: lanes that have come later have put theirs there. Where lanes may have waited in between, the definition
//! reads a copy in a general register; so it does with a word of the constant file that is written later
//! ([`rematerialize`](super::rematerialize)).
//!
//! # Who gives way
//!
//! The value whose next read in the block is furthest, one that is only read behind it before all others. A definition
//! evicts nothing: it is put off to its first read, where all that has been read in between has made room. A loop promises
//! itself a value from before only if there is room for it beside what is read in the loop, or else, where there are
//! several registers, if it is read there: with one register to keep a promise costs what it saves.
//!
//! What `predt` and `predf` read is in `p0.x`. In the end definitions go whose register nobody reads before the next one
//! writes it, among them promises that nobody relied on.

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

/// The most registers that there are.
const SLOTS: usize = 4;

/// Which value each register holds.
type State = [PackedOption<Value>; SLOTS];

/// Whether there is a predicate that has no register.
pub fn is_needed(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| is_predicate_op(&program.instrs[instr]))
}

/// Gives each predicate operand one of so many registers; but two where an instruction reads two.
pub fn run(program: &mut Program, target: &Target, registers: u32) -> Result<(), Error> {
    keep_old_constants(program, RegFile::Predicate);
    let mut survey = survey::Survey::new(program, order(program))?;
    if survey.computes_from_more && survey::through_registers(program, target) {
        survey = survey::Survey::new(program, survey.order)?;
    }
    if survey.ops.is_empty() {
        return Ok(());
    }
    let live = liveness::Liveness::new(program, &survey)?;
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

/// The number of the register that a place is, if it is one.
fn slot_of(place: &Place) -> Option<usize> {
    let slot = usize::from(place.reg()?.0.checked_sub(PhysReg::P0_X.0)?);
    (slot < SLOTS).then_some(slot)
}

/// Whether an instruction reads or writes a predicate.
fn is_predicate_op(data: &InstrData) -> bool {
    data.dsts.iter().any(|dst| dst.class.file == RegFile::Predicate)
        || data.srcs.iter().any(|src| src.class.file == RegFile::Predicate)
}

/// Whether the value of a definition can be computed again.
fn is_rematerializable(data: &InstrData) -> bool {
    let stays = |operand: &SrcOperand, file| match operand {
        SrcOperand::Place(_) => matches!(file, RegFile::General | RegFile::Shared),
        _ => true,
    };
    super::rematerialize::is_rematerializable(data)
        && (data.repeat, data.link) == (0, RepeatLink::None)
        && data.srcs.iter().all(|src| stays(&src.operand, src.class.file))
}
