//! Splits blocks by a jump, and merges them again.
//!
//! The second half follows the first immediately in the layout, so lanes run it exactly when they ran it before.

use super::edit::has_predication;
use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::{Block, BlockData, Instr, InstrData, Opcode, Program, RegFile, RepeatLink};
use ir3_compiler::target::Target;
use ir3_semantics::support::random::Random;

/// The positions at which a block can be split: after phis and inputs, before the terminator, and not inside the live
/// range of an address register, which must not cross blocks.
fn cuts(program: &Program, block: Block) -> Vec<usize> {
    let instrs = &program.blocks[block].instrs;
    let data = |instr: Instr| &program.instrs[instr];
    let first = instrs
        .iter()
        .rposition(|&instr| matches!(data(instr).opcode, Opcode::Phi | Opcode::Input | Opcode::TexPrefetch))
        .map_or(0, |i| i + 1);
    // The last instruction that reads an address register, by its definition.
    let mut last_read: SecondaryMap<Instr, usize> = SecondaryMap::new();
    let mut definition = None;
    for (i, &instr) in instrs.iter().enumerate() {
        let reads = data(instr).srcs.iter().any(|src| src.class.file == RegFile::Address);
        if let (true, Some(definition)) = (reads, definition) {
            last_read[definition] = i;
        }
        if data(instr).dsts.iter().any(|dst| dst.class.file == RegFile::Address) {
            definition = Some(instr);
        }
    }
    let mut alive_until = 0;
    let mut cuts = Vec::new();
    for (i, &instr) in instrs.iter().enumerate() {
        if i >= first && i > alive_until || i == 0 && first == 0 {
            cuts.push(i);
        }
        alive_until = alive_until.max(last_read[instr]);
    }
    // Two terminators stay together.
    let end = instrs.iter().position(|&instr| data(instr).opcode.is_terminator()).unwrap_or(instrs.len());
    cuts.retain(|&cut| cut <= end && cut < instrs.len());
    cuts
}

/// Returns true if the blocks of the program can be split: no instruction depends on the number or the order of blocks.
fn is_plain(program: &Program) -> bool {
    !has_predication(program)
        && program.iter_instrs().all(|(_, instr)| {
            let data = &program.instrs[instr];
            data.link() == RepeatLink::None && !matches!(data.opcode, Opcode::Shps | Opcode::Shpe | Opcode::Getone)
        })
}

/// Splits some blocks; false if none can be split.
pub(super) fn split(program: &mut Program, _: &Target, random: &mut Random) -> bool {
    if !is_plain(program) {
        return false;
    }
    let mut any = false;
    for block in program.layout.clone() {
        if random.chance(60) {
            let cuts = cuts(program, block);
            if let Some(cut) = random.pick(&cuts) {
                split_at(program, block, cut);
                any = true;
            }
        }
    }
    any
}

/// Moves the instructions from `cut` on to a new block after `block`.
pub(super) fn split_at(program: &mut Program, block: Block, cut: usize) -> Block {
    let data = &mut program.blocks[block];
    let tail = BlockData {
        instrs: data.instrs.split_off(cut),
        successors: std::mem::take(&mut data.successors),
        physical_successors: std::mem::take(&mut data.physical_successors),
        divergent: data.divergent.take(),
        keeps: Vec::new(),
        ..BlockData::default()
    };
    let to: Vec<Block> = tail.successors().collect();
    let physical = tail.physical_successors.clone();
    let tail_block = program.blocks.push(tail);
    // A block can be a predecessor twice: rename one entry for each edge.
    for successor in to {
        if let Some(from) = program.blocks[successor].predecessors.iter_mut().find(|from| **from == block) {
            *from = tail_block;
        }
    }
    for successor in physical {
        if let Some(from) = program.blocks[successor].physical_predecessors.iter_mut().find(|from| **from == block) {
            *from = tail_block;
        }
    }
    let keeps = std::mem::take(&mut program.blocks[block].keeps);
    let (here, there) = keeps.into_iter().partition(|instr| program.blocks[block].instrs.contains(instr));
    program.blocks[block].keeps = here;
    program.blocks[tail_block].keeps = there;
    let jump = program.instrs.push(InstrData::new(Opcode::Jump));
    program.blocks[block].instrs.push(jump);
    program.add_edge(block, 0, tail_block);
    let position = program.layout.iter().position(|&b| b == block).map_or(program.layout.len(), |i| i + 1);
    program.layout.insert(position, tail_block);
    program.block_names.clear();
    tail_block
}

/// Merges blocks with their only successor, if it has no other predecessor; returns false if there is no such block.
pub(super) fn merge(program: &mut Program, _: &Target, _: &mut Random) -> bool {
    if has_predication(program) {
        return false;
    }
    let mut any = false;
    let mut position = 0;
    while position + 1 < program.layout.len() {
        let (block, next) = (program.layout[position], program.layout[position + 1]);
        let (data, following) = (&program.blocks[block], &program.blocks[next]);
        let ends_with_jump = data.instrs.last().is_some_and(|&instr| program.instrs[instr].opcode == Opcode::Jump);
        let alone = data.successors == [Some(next), None]
            && data.physical_successors[..] == [next]
            && following.predecessors[..] == [block]
            && following.physical_predecessors[..] == [block]
            && !following.reconvergence_point
            && following.instrs.first().is_none_or(|&instr| program.instrs[instr].opcode != Opcode::Phi);
        if ends_with_jump && alone {
            merge_two(program, block, next);
            program.layout.remove(position + 1);
            any = true;
        } else {
            position += 1;
        }
    }
    any
}

fn merge_two(program: &mut Program, block: Block, next: Block) {
    let tail = std::mem::take(&mut program.blocks[next]);
    for successor in tail.successors() {
        if let Some(from) = program.blocks[successor].predecessors.iter_mut().find(|from| **from == next) {
            *from = block;
        }
    }
    for &successor in &tail.physical_successors {
        if let Some(from) = program.blocks[successor].physical_predecessors.iter_mut().find(|from| **from == next) {
            *from = block;
        }
    }
    let data = &mut program.blocks[block];
    data.instrs.pop();
    data.instrs.extend(tail.instrs);
    data.keeps.extend(tail.keeps);
    data.successors = tail.successors;
    data.physical_successors = tail.physical_successors;
    data.divergent = tail.divergent;
    program.block_names.clear();
}
