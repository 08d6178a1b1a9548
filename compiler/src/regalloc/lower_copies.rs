//! Lowers parallel copies, collects and splits to moves and swaps.
//!
//! Once registers are assigned, all three are the same: several registers are read, then several are written.
//! `parallel_copy` computes the order of the moves.

use super::Error;
use super::parallel_copy::Sequencer;
use crate::arms::Counter;
use crate::ir3::{Attrs, Instr, InstrData, Opcode, Place, Program, Src, SrcOperand};
use crate::target::Target;

/// Lowers every parallel copy, collect and split of a program with physical registers.
///
/// # Errors
/// If an operand is not supported, or no sequence of instructions does the copy.
pub fn run(program: &mut Program, target: &Target, counter: &Counter) -> Result<(), Error> {
    let mut sequencer = Sequencer::new(target);
    let mut list = Vec::new();
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        if !program.blocks[block].instrs.iter().any(|&i| program.instrs[i].opcode.is_copy()) {
            continue;
        }
        list.clear();
        std::mem::swap(&mut list, &mut program.blocks[block].instrs);
        let mut out = Vec::with_capacity(list.len());
        for &instr in &list {
            if program.instrs[instr].opcode.is_copy() {
                add(&mut sequencer, &program.instrs[instr])
                    .ok_or_else(|| Error::unsupported(program, instr, "an operand that is no register"))?;
                let instrs = &mut program.instrs;
                let result = sequencer.finish(counter, &mut |data| out.push(instrs.push(data)));
                result.map_err(|refused| Error::unsupported(program, instr, refused.what()))?;
            } else {
                out.push(instr);
            }
        }
        program.blocks[block].instrs = out;
        forget_removed(program, block, &list);
    }
    Ok(())
}

/// Drops removed instructions from the keeps of a block.
fn forget_removed(program: &mut Program, block: crate::ir3::Block, before: &[Instr]) {
    let data = &mut program.blocks[block];
    if !data.keeps.is_empty() {
        let instrs = &data.instrs;
        data.keeps.retain(|keep| instrs.contains(keep) || !before.contains(keep));
    }
}

/// Adds the copies of an instruction.
fn add(sequencer: &mut Sequencer, data: &InstrData) -> Option<()> {
    match data.opcode {
        Opcode::Collect => {
            let dst = data.dsts.first()?;
            let base = register(&dst.place)?;
            for (k, src) in data.srcs.iter().enumerate() {
                sequencer.add(dst.class, base.offset(k as u16), src.class.file, &src.operand).then_some(())?;
            }
        }
        Opcode::Split => {
            let (dst, src) = (data.dsts.first()?, data.srcs.first()?);
            let Attrs::Split { offset } = data.attrs else { return None };
            let operand = component(src, offset)?;
            sequencer.add(dst.class, register(&dst.place)?, src.class.file, &operand).then_some(())?;
        }
        _ => {
            if data.dsts.len() != data.srcs.len() {
                return None;
            }
            for (dst, src) in data.dsts.iter().zip(&data.srcs) {
                let base = register(&dst.place)?;
                for k in dst.mask.components() {
                    let operand = component(src, k as u16)?;
                    sequencer.add(dst.class, base.offset(k as u16), src.class.file, &operand).then_some(())?;
                }
            }
        }
    }
    Some(())
}

fn register(place: &Place) -> Option<crate::ir3::PhysReg> {
    match place {
        Place::Reg(reg) | Place::Assigned(_, reg) => Some(*reg),
        _ => None,
    }
}

/// The operand for component `k` of a source.
fn component(src: &Src, k: u16) -> Option<SrcOperand> {
    match src.operand {
        SrcOperand::Place(place) => Some(SrcOperand::Place(Place::Reg(register(&place)?.offset(k)))),
        SrcOperand::Const(word) => Some(SrcOperand::Const(word + k)),
        SrcOperand::Immediate(_) | SrcOperand::Undef => Some(src.operand),
        SrcOperand::ConstRelative(_) => None,
    }
}
