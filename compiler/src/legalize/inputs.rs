//! `(ei)`: the last instruction that reads a varying releases the memory of the varyings.
//!
//! Only if all of these instructions are in the first block of the program, and none comes after a `kill`: the hardware
//! does not bear that lanes end before `(ei)`. Otherwise the memory is released at the end: by itself from a5xx on, and
//! by an instruction before. Where lanes end, that instruction comes right after the last read: `select::early_inputs`
//! has moved all reads to the first block, and stages that have split it since (`elect`, scans) leave the block of a
//! read on every path.
//!
//! `ldlv` cannot carry the mark, so a `bary.f` without a result follows it. A program that reads varyings by prefetches
//! only begins with such a `bary.f`.

use super::preamble::Preamble;
use crate::ir3::{Block, Dst, Instr, InstrData, InstrFlags, Opcode, PhysReg, Place, Program, RegClass, Src, WriteMask};
use crate::target::{Generation, Target};

/// Marks the last input, or inserts an instruction that is marked.
pub fn run(program: &mut Program, target: &Target, preamble: &Preamble) {
    let is_input = |instr: Instr| program.instrs[instr].opcode.reads_varying();
    let start = preamble.start();
    let inputs = || program.iter_instrs().filter(|&(_, instr)| is_input(instr)).map(|(block, _)| block);
    if inputs().next().is_none() {
        let is_prefetch = |(_, instr): (Block, Instr)| program.instrs[instr].opcode == Opcode::TexPrefetch;
        if program.iter_instrs().any(is_prefetch) {
            let first = program.ready_len(&program.blocks[start].instrs);
            let dummy = program.instrs.push(dummy());
            program.blocks[start].instrs.insert(first, dummy);
        }
        return;
    }
    let all_first = inputs().all(|block| block == start);
    let list = &program.blocks[start].instrs;
    let last = list.iter().rposition(|&instr| is_input(instr)).filter(|_| all_first);
    let ends = |at: usize| list[..at].iter().any(|&instr| program.instrs[instr].opcode.ends_lanes());
    match last.filter(|&last| !ends(last)) {
        Some(last) if program.instrs[list[last]].opcode == Opcode::Ldlv => {
            let dummy = program.instrs.push(dummy());
            program.blocks[start].instrs.insert(last + 1, dummy);
        }
        Some(last) => program.instrs[list[last]].flags |= InstrFlags::EI,
        None if target.generation < Generation::A5xx => {
            let lanes_end = program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode.ends_lanes());
            let end = program.layout[program.layout.len() - 1];
            let dummy = program.instrs.push(dummy());
            match after_last_input(program) {
                Some((block, at)) if lanes_end => program.blocks[block].instrs.insert(at, dummy),
                _ => program.insert_before_terminators(end, dummy),
            }
        }
        None => {}
    }
}

/// The place after the last instruction that reads a varying, if all lanes pass it once: no edge leads over its block,
/// or back to it or over it.
fn after_last_input(program: &Program) -> Option<(Block, usize)> {
    let is_input = |&instr: &Instr| program.instrs[instr].opcode.reads_varying();
    let mut inputs = program.layout.iter().enumerate().filter_map(|(position, &block)| {
        program.blocks[block].instrs.iter().rposition(is_input).map(|at| (position, at + 1))
    });
    let (place, at) = inputs.next_back()?;
    let position = |block: Block| program.layout.iter().position(|&other| other == block);
    let all_pass = program.layout.iter().enumerate().all(|(from, &block)| {
        let mut targets = program.blocks[block].successors().filter_map(position);
        targets.all(|to| if from < place { to <= place } else { to > place })
    });
    all_pass.then(|| (program.layout[place], at))
}

/// `bary.f (ei)r63.x, 0, r0.x`.
fn dummy() -> InstrData {
    let mut data = InstrData { flags: InstrFlags::EI, ..InstrData::new(Opcode::BaryF) };
    data.dsts.push(Dst::new(Place::Reg(PhysReg::INVALID), RegClass::FULL, WriteMask::SCALAR));
    data.srcs.push(Src::immediate(0, false));
    data.srcs.push(Src::reg(Place::Reg(PhysReg(0)), RegClass::FULL, WriteMask::first(2)));
    data
}
