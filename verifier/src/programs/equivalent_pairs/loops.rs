//! The loops of a program.

use super::edit::blocks_of;
use cranelift_entity::{EntitySet, SecondaryMap};
use ir3_compiler::ir3::dominance::{Dominators, EdgeKind};
use ir3_compiler::ir3::loops::Loops;
use ir3_compiler::ir3::{Block, Instr, Program, Value};

/// A natural loop with one way in and one way back.
pub(super) struct Loop {
    /// The block that all ways in and back lead to.
    pub header: Block,
    /// The block from which the loop is entered.
    pub before: Block,
    /// The block from which it goes on.
    pub latch: Block,
    /// Its blocks.
    pub body: EntitySet<Block>,
}

/// The loops of a program, in the order of their headers.
pub(super) fn loops(program: &Program, dominators: &Dominators) -> Vec<Loop> {
    let forest = Loops::new(program, dominators);
    let mut loops = Vec::new();
    for &header in &program.layout {
        let from = &program.blocks[header].predecessors;
        let is_back = |&block: &Block| dominators.dominates(header, block);
        let (back, before): (Vec<Block>, Vec<Block>) = from.iter().copied().partition(is_back);
        if let ([latch], [before], Some(number)) = (&back[..], &before[..], forest.headed_by(header)) {
            let mut body = EntitySet::new();
            body.extend(program.layout.iter().copied().filter(|&block| forest.contains(number, block)));
            loops.push(Loop { header, before: *before, latch: *latch, body });
        }
    }
    loops
}

/// Dominance and places of definitions, for a rewrite of loops.
pub(super) struct Shape {
    /// Dominance.
    pub dominators: Dominators,
    /// Where instructions are.
    pub block_of: SecondaryMap<Instr, Option<Block>>,
}

impl Shape {
    /// Of this program.
    pub(super) fn new(program: &Program) -> Self {
        Self { dominators: Dominators::new(program, EdgeKind::Logical), block_of: blocks_of(program) }
    }

    /// The block in which a value is defined.
    pub(super) fn definition(&self, program: &Program, value: Value) -> Option<Block> {
        self.block_of[program.values[value].instr]
    }
}
