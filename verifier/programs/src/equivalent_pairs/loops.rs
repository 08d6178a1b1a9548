//! Natural loops of a program.

use super::edit::blocks_of;
use cranelift_entity::{EntitySet, SecondaryMap};
use ir3_compiler::ir3::dominance::{Dominators, EdgeKind};
use ir3_compiler::ir3::loops::Loops;
use ir3_compiler::ir3::{Block, Instr, Program, Value};

/// A natural loop with one entry edge and one back edge.
pub(super) struct NaturalLoop {
    /// The header: the target of the entry edge and of the back edge.
    pub header: Block,
    /// The predecessor of the header outside the loop.
    pub before: Block,
    /// The source of the back edge.
    pub latch: Block,
    /// Its blocks.
    pub body: EntitySet<Block>,
}

/// Finds the loops of a program, in the order of their headers.
pub(super) fn loops(program: &Program, dominators: &Dominators) -> Vec<NaturalLoop> {
    let forest = Loops::new(program, dominators);
    let mut loops = Vec::new();
    for &header in &program.layout {
        let from = &program.blocks[header].predecessors;
        let is_back = |&block: &Block| dominators.dominates(header, block);
        let (back, before): (Vec<Block>, Vec<Block>) = from.iter().copied().partition(is_back);
        if let ([latch], [before], Some(number)) = (&back[..], &before[..], forest.headed_by(header)) {
            let mut body = EntitySet::new();
            body.extend(program.layout.iter().copied().filter(|&block| forest.contains(number, block)));
            loops.push(NaturalLoop { header, before: *before, latch: *latch, body });
        }
    }
    loops
}

/// Dominators and definition blocks, for rewrites of loops.
pub(super) struct LoopAnalysis {
    /// Dominance.
    pub dominators: Dominators,
    /// The block of each instruction.
    pub block_of: SecondaryMap<Instr, Option<Block>>,
}

impl LoopAnalysis {
    /// Analyses a program.
    pub(super) fn new(program: &Program) -> Self {
        Self { dominators: Dominators::new(program, EdgeKind::Logical), block_of: blocks_of(program) }
    }

    /// The block that defines a value.
    pub(super) fn definition(&self, program: &Program, value: Value) -> Option<Block> {
        self.block_of[program.values[value].instr]
    }
}
