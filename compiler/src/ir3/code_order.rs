//! The final targets of jumps in the laid-out code: blocks that only jump are skipped.

use super::{Block, Opcode, Program};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;

/// The order of a program's blocks in the code.
pub struct CodeOrder {
    place: SecondaryMap<Block, u32>,
    /// The final target of a block that only jumps; None for other blocks.
    landing: SecondaryMap<Block, Option<Block>>,
}

impl CodeOrder {
    /// Computes the order and the final jump targets of a program.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let mut place = map_of(program.blocks.len());
        for (position, &block) in (0..).zip(&program.layout) {
            place[block] = position;
        }
        let mut landing: SecondaryMap<Block, Option<Block>> = map_of(program.blocks.len());
        for &block in program.layout.iter().rev() {
            let data = &program.blocks[block];
            let ([Some(only), None], true) = (data.successors, Some(block) != program.layout.first().copied()) else {
                continue;
            };
            let opcode = |&instr| program.instrs[instr].opcode;
            let only_jumps = data.instrs.iter().map(opcode).all(|op| matches!(op, Opcode::Jump | Opcode::Phi));
            // Never backwards, so that the target of a block is computed before the block.
            if only_jumps && place[block] < place[only] {
                landing[block] = Some(landing[only].unwrap_or(only));
            }
        }
        Self { place, landing }
    }

    /// The position of a block in the layout.
    #[must_use]
    pub fn place(&self, block: Block) -> u32 {
        self.place[block]
    }

    /// The final target of a jump to a block.
    #[must_use]
    pub fn landing(&self, block: Block) -> Block {
        self.landing[block].unwrap_or(block)
    }

    /// Returns true if a block only jumps to another one.
    #[must_use]
    pub fn is_empty(&self, block: Block) -> bool {
        self.landing[block].is_some()
    }
}
