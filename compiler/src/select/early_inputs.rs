//! Varyings are read before lanes end.
//!
//! The last read of a varying releases the memory of all (`(ei)`), and the hardware does not bear that the lanes of a
//! wave end before (`ir3_sched.c`). So in the first block reads of varyings come before the first `kill`. a3xx and
//! a4xx do not release the memory at the end of a program, so there all reads are moved to the first block, which all
//! lanes execute. (Mesa's nir has them there, `ir3_nir_move_varying_inputs`; nir from elsewhere may not.)
//!
//! The operands of a read move with it, if they are computed from inputs, immediates and constants by operations
//! without effects.

use super::SelectError;
use crate::ir3::{Block, Category, Instr, InstrData, Opcode, Place, Program, RegFile, ShaderStage, SrcOperand};
use crate::target::{Generation, Target};
use cranelift_entity::EntitySet;

/// Moves the reads of varyings.
///
/// # Errors
/// If a target that needs the release on every path cannot have it before lanes end.
pub fn run(program: &mut Program, target: &Target) -> Result<(), SelectError> {
    if program.stage != Some(ShaderStage::Fragment) {
        return Ok(());
    }
    let releases_at_end = target.generation >= Generation::A5xx;
    let has_kill = program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode.ends_lanes());
    if releases_at_end && !has_kill {
        return Ok(());
    }
    let start = first_block(program);
    let list = &program.blocks[start].instrs;
    let kill = list.iter().position(|&instr| program.instrs[instr].opcode.ends_lanes());
    let place = kill.unwrap_or_else(|| program.body_len(&program.blocks[start].instrs));
    let mut mover = Mover::default();
    list[..place].iter().for_each(|&instr| _ = mover.here.insert(instr));
    let is_late =
        |&(_, instr): &(Block, Instr)| program.instrs[instr].opcode.reads_varying() && !mover.here.contains(instr);
    let late: Vec<(Block, Instr)> = program.iter_instrs().filter(is_late).collect();
    // Nothing is released early if one is read elsewhere.
    if late.is_empty() || releases_at_end && late.iter().any(|&(block, _)| block != start) {
        return Ok(());
    }
    if late.iter().all(|&(_, instr)| mover.add(program, instr)) {
        let Mover { moved, .. } = mover;
        let mut left = EntitySet::new();
        moved.iter().for_each(|&instr| _ = left.insert(instr));
        for position in 0..program.layout.len() {
            let block = program.layout[position];
            program.blocks[block].instrs.retain(|&instr| !left.contains(instr));
        }
        program.blocks[start].instrs.splice(place..place, moved);
        return Ok(());
    }
    if releases_at_end || !has_kill {
        return Ok(());
    }
    let operation = program.instrs[late[0].1].opcode.name().to_owned();
    let reason = format!("{} reads it before lanes end, and its operands are not available there", target.name);
    Err(SelectError { operation, reason, line: None, instr: None })
}

/// The first block after the preamble.
fn first_block(program: &Program) -> Block {
    program.layout.get(program.preamble_len()).copied().unwrap_or_else(|| program.entry())
}

/// Collects the instructions that move, in an order in which they can be computed.
#[derive(Default)]
struct Mover {
    /// Existing inputs, by number.
    here: EntitySet<Instr>,
    moved: Vec<Instr>,
}

impl Mover {
    /// Adds an instruction after its operands; returns false if it cannot move.
    fn add(&mut self, program: &Program, instr: Instr) -> bool {
        if self.here.contains(instr) {
            return true;
        }
        let data = &program.instrs[instr];
        let sources = data.srcs.iter().filter_map(|src| src.value());
        let can_move = is_movable(data)
            && sources.map(|value| program.values[value].instr).all(|source| self.add(program, source));
        if can_move {
            self.here.insert(instr);
            self.moved.push(instr);
        }
        can_move
    }
}

/// Returns true if an instruction computes the same anywhere, once its sources are known.
fn is_movable(data: &InstrData) -> bool {
    let computes = data.opcode.is_alu() || data.opcode.category() == Category::Sfu;
    let is_alu = data.opcode.is_pure() && computes || matches!(data.opcode, Opcode::Collect | Opcode::Split);
    let plain = |operand: &SrcOperand| match operand {
        SrcOperand::Place(place) => matches!(place, Place::Value(_)),
        // A program may write its constants.
        SrcOperand::Const(_) | SrcOperand::ConstRelative(_) => false,
        _ => true,
    };
    // Values of shared registers depend on the lanes that run.
    let of_lanes = data.dsts.iter().all(|dst| dst.class.file == RegFile::General);
    (is_alu || data.opcode.reads_varying()) && of_lanes && data.srcs.iter().all(|src| plain(&src.operand))
}
