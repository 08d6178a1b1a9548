//! Normalizes a program for the allocator.
//!
//! - Unreachable blocks are removed.
//! - Critical edges (from a block with several successors to one with several predecessors) are split, so that copies
//!   on them have a block. Lanes wait for the earliest block of the layout, so the new block must not change which
//!   lanes wait for which: on a forward edge it is placed directly before its successor (lanes that waited at the
//!   successor now wait there, and all earlier blocks are still earlier), on a back edge directly after its predecessor
//!   (lanes on the back edge were first, and still are).
//! - A phi of a block with one predecessor becomes a copy.
//! - A source that is tied to a destination is overwritten; it is copied, unless the value has no other use.

use super::Error;
use crate::graph;
use crate::ir3::{
    Block, BlockData, Instr, InstrData, Opcode, OperandFlags, Place, Program, RegFile, SrcOperand, Value, ValueData,
};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Returns true if the program may need changes. A single block without tied sources needs none.
pub fn is_needed(program: &Program) -> bool {
    let sound = program.layout.len() == 1 && program.blocks[program.entry()].predecessors.is_empty();
    let is_tied = |instr| program.instrs[instr].srcs.iter().any(|src| src.flags.contains(OperandFlags::TIED));
    !sound || program.iter_instrs().any(|(_, instr)| is_tied(instr))
}

/// Normalizes the program.
///
/// # Errors
/// If the program is malformed.
pub fn run(program: &mut Program) -> Result<(), Error> {
    if program.layout.is_empty() {
        return Err(Error::Malformed { what: "a program without blocks".to_owned() });
    }
    remove_unreachable(program);
    if !program.blocks[program.entry()].predecessors.is_empty() {
        return Err(Error::Malformed { what: "an edge to the first block".to_owned() });
    }
    split_critical_edges(program);
    lower_trivial_phis(program);
    copy_tied_sources(program)
}

fn remove_unreachable(program: &mut Program) {
    let reachable = graph::reachable([program.entry()], |block, search| {
        program.blocks[block].successors().for_each(|next| search.add(next));
    });
    if program.layout.iter().all(|&block| reachable.contains(block)) {
        return;
    }
    program.layout.retain(|&block| reachable.contains(block));
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let data = &mut program.blocks[block];
        data.physical_predecessors.retain(|pred| reachable.contains(*pred));
        data.physical_successors.retain(|next| reachable.contains(*next));
        if data.predecessors.iter().all(|&pred| reachable.contains(pred)) {
            continue;
        }
        for &phi in &data.instrs {
            if program.instrs[phi].opcode != Opcode::Phi {
                break;
            }
            let mut i = 0;
            program.instrs[phi].srcs.retain(|_| {
                i += 1;
                data.predecessors.get(i - 1).is_none_or(|&pred| reachable.contains(pred))
            });
        }
        data.predecessors.retain(|pred| reachable.contains(*pred));
    }
}

fn split_critical_edges(program: &mut Program) {
    let mut critical = Vec::new();
    for &block in &program.layout {
        let data = &program.blocks[block];
        if data.successors().count() > 1 {
            for (slot, next) in data.successors.iter().enumerate() {
                if let Some(next) = *next
                    && program.blocks[next].predecessors.len() > 1
                {
                    critical.push((block, slot, next));
                }
            }
        }
    }
    if critical.is_empty() {
        return;
    }
    let mut position: SecondaryMap<Block, usize> = map_of(program.blocks.len());
    program.layout.iter().enumerate().for_each(|(at, &block)| position[block] = at);
    // New blocks before each block of the layout, and those after it, the last one first.
    let mut before: SecondaryMap<Block, SmallVec<[Block; 2]>> = SecondaryMap::new();
    let mut after: SecondaryMap<Block, SmallVec<[Block; 2]>> = SecondaryMap::new();
    for (from, slot, to) in critical {
        let mut data = BlockData::default();
        data.successors[0] = Some(to);
        data.predecessors.push(from);
        data.physical_successors.push(to);
        data.physical_predecessors.push(from);
        let jump = program.instrs.push(InstrData::new(Opcode::Jump));
        data.instrs.push(jump);
        let edge = program.blocks.push(data);
        program.blocks[from].successors[slot] = Some(edge);
        replace_first(&mut program.blocks[from].physical_successors, to, edge);
        replace_first(&mut program.blocks[to].predecessors, from, edge);
        replace_first(&mut program.blocks[to].physical_predecessors, from, edge);
        if position[to] > position[from] {
            before[to].push(edge);
        } else {
            after[from].push(edge);
        }
    }
    for block in std::mem::take(&mut program.layout) {
        program.layout.extend(&before[block]);
        program.layout.push(block);
        program.layout.extend(after[block].iter().rev());
    }
}

fn replace_first(list: &mut [Block], old: Block, new: Block) {
    if let Some(block) = list.iter_mut().find(|block| **block == old) {
        *block = new;
    }
}

fn lower_trivial_phis(program: &mut Program) {
    for &block in &program.layout {
        if program.blocks[block].predecessors.len() != 1 {
            continue;
        }
        for &phi in &program.blocks[block].instrs {
            let data = &mut program.instrs[phi];
            if data.opcode != Opcode::Phi {
                break;
            }
            data.opcode = Opcode::ParallelCopy;
        }
    }
}

fn copy_tied_sources(program: &mut Program) -> Result<(), Error> {
    let is_tied = |program: &Program, instr: Instr| {
        program.instrs[instr].srcs.iter().any(|src| src.flags.contains(OperandFlags::TIED))
    };
    let is_array = |place: Option<&Place>| matches!(place, Some(Place::Array(_)));
    let mut uses: Option<SecondaryMap<Value, u32>> = None;
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let mut i = 0;
        while let Some(&instr) = program.blocks[block].instrs.get(i) {
            i += 1;
            if !is_tied(program, instr) {
                continue;
            }
            let uses = uses.get_or_insert_with(|| count_uses(program));
            for k in 0..program.instrs[instr].srcs.len() {
                let src = program.instrs[instr].srcs[k];
                if !src.flags.contains(OperandFlags::TIED) || is_array(src.place()) {
                    continue;
                }
                if src.class.file != RegFile::General {
                    return Err(Error::unsupported(program, instr, "a tied source that is no general register"));
                }
                if let Some(value) = src.value() {
                    let def = program.values[value].instr;
                    let is_near = program.blocks[block].instrs[..i].contains(&def);
                    // A split may be removed as a duplicate of another one.
                    let is_sole = !matches!(program.instrs[def].opcode, Opcode::Phi | Opcode::Split);
                    if uses[value] == 1 && is_near && is_sole {
                        continue;
                    }
                }
                let copy = copy_of(program, instr, k);
                program.blocks[block].instrs.insert(i - 1, copy);
                i += 1;
            }
        }
    }
    Ok(())
}

fn count_uses(program: &Program) -> SecondaryMap<Value, u32> {
    let mut uses = map_of(program.values.len());
    for (_, instr) in program.iter_instrs() {
        for value in program.instrs[instr].srcs.iter().filter_map(|src| src.value()) {
            uses[value] += 1;
        }
    }
    uses
}

/// Creates a parallel copy of source `k` of `instr` and makes the source read it.
fn copy_of(program: &mut Program, instr: Instr, k: usize) -> Instr {
    let src = program.instrs[instr].srcs[k];
    let copy = program.instrs.push(InstrData::new(Opcode::ParallelCopy));
    let components = src.mask.span() as u16;
    let value = program.values.push(ValueData { instr: copy, dst: 0, class: src.class, components, array: None });
    let mut read = src;
    read.flags = OperandFlags::empty();
    program.instrs[copy].srcs.push(read);
    program.instrs[copy].dsts.push(crate::ir3::Dst::new(Place::Value(value), src.class, src.mask));
    program.instrs[instr].srcs[k].operand = SrcOperand::Place(Place::Value(value));
    copy
}
