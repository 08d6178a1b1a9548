//! Where jumps end up once the code has been laid out: blocks that do nothing but jump onwards are no place to be.

use super::{Block, Opcode, Program};
use cranelift_entity::SecondaryMap;

/// The order of a program's blocks in the code.
pub struct CodeOrder {
    place: SecondaryMap<Block, u32>,
    /// For a block that only jumps onwards: where that leads.
    landing: SecondaryMap<Block, Option<Block>>,
}

impl CodeOrder {
    /// Of this program.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let mut place = SecondaryMap::with_capacity(program.blocks.len());
        for (position, &block) in (0..).zip(&program.layout) {
            place[block] = position;
        }
        let mut landing: SecondaryMap<Block, Option<Block>> = SecondaryMap::with_capacity(program.blocks.len());
        for &block in program.layout.iter().rev() {
            let data = &program.blocks[block];
            let ([Some(only), None], true) = (data.successors, Some(block) != program.layout.first().copied()) else {
                continue;
            };
            let opcode = |&instr| program.instrs[instr].opcode;
            let only_jumps = data.instrs.iter().map(opcode).all(|op| matches!(op, Opcode::Jump | Opcode::Phi));
            // Never backwards, so that a landing is known before what leads to it.
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

    /// Where a jump to a block ends up.
    #[must_use]
    pub fn landing(&self, block: Block) -> Block {
        self.landing[block].unwrap_or(block)
    }

    /// Whether a block is there only to be jumped through.
    #[must_use]
    pub fn is_empty(&self, block: Block) -> bool {
        self.landing[block].is_some()
    }
}
