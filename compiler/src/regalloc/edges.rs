//! The edges of the control-flow graph: phis, and values that stand elsewhere on the other side.
//!
//! All edges into a block with several predecessors come from blocks with one successor, so everything that an edge has
//! to move is moved at the end of the predecessor, by one parallel copy.

use super::Error;
use super::assign::Assigner;
use super::parallel_copy::reg_of;
use crate::ir3::{Block, Dst, InstrData, Opcode, Place, Src, SrcOperand, Value, WriteMask};

/// Adds the copies, and removes the phis.
pub fn run(assigner: &mut Assigner) -> Result<(), Error> {
    for position in 0..assigner.program.layout.len() {
        let block = assigner.program.layout[position];
        let predecessors = assigner.program.blocks[block].predecessors.clone();
        if predecessors.len() > 1 {
            for (k, &pred) in predecessors.iter().enumerate() {
                add_copies(assigner, pred, k, block)?;
            }
            let (instrs, data) = (&assigner.program.instrs, &mut assigner.program.blocks[block]);
            let phis = data.instrs.iter().take_while(|&&i| instrs[i].opcode == Opcode::Phi).count();
            data.instrs.drain(..phis);
        }
    }
    Ok(())
}

/// The copies of the edge from `pred`, which is predecessor `k`, to `block`.
fn add_copies(assigner: &mut Assigner, pred: Block, k: usize, block: Block) -> Result<(), Error> {
    let ends = std::mem::take(&mut assigner.end[pred]);
    for &(value, at) in &ends {
        assigner.place[value] = at;
    }
    let mut copy = InstrData::new(Opcode::ParallelCopy);
    for &(value, to) in &assigner.start[block] {
        add_move(assigner, value, to, &mut copy);
    }
    for &(value, _) in &ends {
        let stays_away = assigner.start[block].iter().any(|&(other, _)| other == value);
        if !stays_away && assigner.liveness.is_live_in(block, value) {
            add_move(assigner, value, assigner.home[value], &mut copy);
        }
    }
    for &phi in &assigner.program.blocks[block].instrs {
        let data = &assigner.program.instrs[phi];
        if data.opcode != Opcode::Phi {
            break;
        }
        let (Some(dst), Some(src)) = (data.dsts.first(), data.srcs.get(k)) else {
            return Err(Error::unsupported(assigner.program, phi, "a phi without a source for each predecessor"));
        };
        let Some(value) = dst.value().filter(|&value| assigner.liveness.is_used(value)) else { continue };
        let to = Place::Reg(reg_of(dst.class, assigner.home[value]));
        let operand = match src.operand {
            SrcOperand::Undef => continue,
            SrcOperand::Place(place) => match place.value() {
                Some(value) if assigner.program.values[value].class == dst.class => {
                    SrcOperand::Place(Place::Reg(reg_of(dst.class, assigner.place[value])))
                }
                _ => return Err(Error::unsupported(assigner.program, phi, "a source of another class")),
            },
            operand => operand,
        };
        if operand != SrcOperand::Place(to) {
            copy.dsts.push(Dst::new(to, dst.class, dst.mask));
            copy.srcs.push(Src::new(operand, dst.class, dst.mask));
        }
    }
    for &(value, _) in &ends {
        assigner.place[value] = assigner.home[value];
    }
    assigner.end[pred] = ends;
    if !copy.dsts.is_empty() {
        let program = &mut *assigner.program;
        let copy = program.instrs.push(copy);
        let list = &mut program.blocks[pred].instrs;
        let behind = list.iter().rev().take_while(|&&i| program.instrs[i].opcode.is_terminator()).count();
        list.insert(list.len() - behind, copy);
    }
    Ok(())
}

/// Moves a value that lives on from where it is to `to`.
fn add_move(assigner: &Assigner, value: Value, to: u16, copy: &mut InstrData) {
    let from = assigner.place[value];
    if from != to {
        let data = &assigner.program.values[value];
        let mask = WriteMask::first(u32::from(data.components));
        copy.dsts.push(Dst::new(Place::Reg(reg_of(data.class, to)), data.class, mask));
        copy.srcs.push(Src::reg(Place::Reg(reg_of(data.class, from)), data.class, mask));
    }
}
