//! Ends of lanes in loops.
//!
//! `kill` makes a lane a helper, or inactive, and it does not leave the code: a loop that lanes leave by `kill` only
//! would not end. So in code from which control may go back, each `kill` is followed by a branch of its lanes to the
//! last block.

use crate::ir3::{Attrs, Block, BlockData, InstrData, Opcode, Program, ShaderStage, Src};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;

/// Adds these branches, where branches are explicit. A block is split after each.
pub fn run(program: &mut Program) {
    if program.stage != Some(ShaderStage::Fragment) {
        return;
    }
    let end = program.layout[program.layout.len() - 1];
    for block in blocks_before_back_edges(program) {
        // From the last one on: instructions before a branch stay in its block.
        for at in (0..program.blocks[block].instrs.len()).rev() {
            if program.instrs[program.blocks[block].instrs[at]].opcode == Opcode::Kill {
                branch_after(program, block, at, end);
            }
        }
    }
}

/// The blocks that are in the code not after the end of a loop.
fn blocks_before_back_edges(program: &Program) -> Vec<Block> {
    let mut place: SecondaryMap<Block, usize> = map_of(program.blocks.len());
    for (position, &block) in program.layout.iter().enumerate() {
        place[block] = position;
    }
    let leads_back = |&block: &Block| program.blocks[block].successors().any(|to| place[to] <= place[block]);
    let count = program.layout.iter().rposition(leads_back).map_or(0, |last| last + 1);
    program.layout[..count].to_vec()
}

/// Splits a block after the `kill` at `at`, with a branch of the killed lanes to `end`.
fn branch_after(program: &mut Program, block: Block, at: usize, end: Block) {
    let kill = program.blocks[block].instrs[at];
    let mut branch = InstrData::new(Opcode::Br);
    branch.attrs = Attrs::Branch { target: Some(end) };
    branch.srcs.extend(program.instrs[kill].srcs.first().map(|src| Src { flags: Default::default(), ..*src }));
    let branch = program.instrs.push(branch);
    let data = &mut program.blocks[block];
    let mut rest = BlockData { instrs: data.instrs.split_off(at + 1), ..BlockData::default() };
    data.instrs.push(branch);
    (rest.successors, rest.divergent) = (data.successors, data.divergent.take());
    data.successors = [None; 2];
    data.divergent = Some(true);
    let rest = program.blocks.push(rest);
    for successor in program.blocks[rest].successors().collect::<Vec<_>>() {
        let list = &mut program.blocks[successor].predecessors;
        list.iter_mut().filter(|from| **from == block).for_each(|from| *from = rest);
    }
    let position = program.layout.iter().position(|&other| other == block).expect("a block of the layout");
    program.layout.insert(position + 1, rest);
    program.add_edge(block, 0, end);
    program.add_edge(block, 1, rest);
}
