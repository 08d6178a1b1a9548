//! `(ei)`: the last instruction that reads a varying releases the memory of the varyings.
//!
//! Only if all of these instructions are in the first block of the program: else the memory is released at the end. `ldlv`
//! cannot carry the mark, so a `bary.f` without a result follows it. A program that reads varyings by prefetches only begins with
//! such a `bary.f`.

use super::preamble::Preamble;
use crate::ir3::{Block, Dst, Instr, InstrData, InstrFlags, Opcode, PhysReg, Place, Program, RegClass, Src, WriteMask};

/// Marks the last input, or inserts an instruction that is marked.
pub fn run(program: &mut Program, preamble: &Preamble) {
    let is_input = |instr: Instr| matches!(program.instrs[instr].opcode, Opcode::Ldlv | Opcode::BaryF | Opcode::FlatB);
    let start = preamble.start();
    let mut any = false;
    for (block, instr) in program.iter_instrs() {
        if is_input(instr) {
            any = true;
            if block != start {
                return;
            }
        }
    }
    if !any {
        let is_prefetch = |(_, instr): (Block, Instr)| program.instrs[instr].opcode == Opcode::TexPrefetch;
        if program.iter_instrs().any(is_prefetch) {
            let is_start = |&&instr: &&Instr| program.instrs[instr].opcode.is_block_start();
            let first = program.blocks[start].instrs.iter().take_while(is_start).count();
            let dummy = program.instrs.push(dummy());
            program.blocks[start].instrs.insert(first, dummy);
        }
        return;
    }
    let list = &program.blocks[start].instrs;
    let last = list.iter().rposition(|&instr| is_input(instr)).expect("an input is in the block");
    let instr = list[last];
    if program.instrs[instr].opcode == Opcode::Ldlv {
        let dummy = program.instrs.push(dummy());
        program.blocks[start].instrs.insert(last + 1, dummy);
    } else {
        program.instrs[instr].flags |= InstrFlags::EI;
    }
}

/// `bary.f (ei)r63.x, 0, r0.x`.
fn dummy() -> InstrData {
    let mut data = InstrData { flags: InstrFlags::EI, ..InstrData::new(Opcode::BaryF) };
    data.dsts.push(Dst::new(Place::Reg(PhysReg::INVALID), RegClass::FULL, WriteMask::SCALAR));
    data.srcs.push(Src::immediate(0, false));
    data.srcs.push(Src::reg(Place::Reg(PhysReg(0)), RegClass::FULL, WriteMask::SCALAR));
    data
}
