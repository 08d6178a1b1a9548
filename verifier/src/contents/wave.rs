//! Where a wave goes, which is not only where its lanes go: while some wait, others run.
//!
//! The edges come from the order of the blocks ([`Waiting`]). Nothing that the programs say is believed, neither of physical edges nor of branches at which
//! all lanes go one way: lanes may part wherever there are two ways and no vote.

use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::reconvergence::Waiting;
use ir3_compiler::ir3::{Block, Opcode, Program};
use smallvec::SmallVec;

/// Of each block those that the wave may come from.
pub(super) type WaveEdges = SecondaryMap<Block, SmallVec<[Block; 2]>>;

/// The edges of the wave in a program.
pub(super) fn edges(program: &Program) -> WaveEdges {
    let opcode = |&instr: &_| program.instrs[instr].opcode;
    let instrs = |block: Block| &program.blocks[block].instrs;
    let votes = |block: Block| matches!(instrs(block).last().map(opcode), Some(Opcode::Bany | Opcode::Ball));
    let waiting = Waiting::new(program, |block| !votes(block));
    let mut edges = WaveEdges::new();
    for &block in &program.layout {
        let mut to = waiting.physical_successors(program, block);
        // Where the last lane ends in the middle.
        to.extend(waiting.while_running(program, block).filter(|_| may_end_within(program, block)));
        to.sort_unstable();
        to.dedup();
        to.into_iter().for_each(|to| edges[to].push(block));
    }
    edges
}

/// Whether the last lane of a wave may end in the middle of a block.
pub(super) fn may_end_within(program: &Program, block: Block) -> bool {
    program.blocks[block].instrs.iter().any(|&instr| program.instrs[instr].opcode == Opcode::Kill)
}
