//! The preamble: code that runs once, before the rest of the program, for all waves.
//!
//! From a7xx on a preamble that uses only shared registers runs early, before the wave has its own registers. In an
//! early preamble `a1.x` is written like a shared register: readers wait with `(ss)`, and the move to it is marked with
//! `(r)` on its source.

use crate::ir3::{Block, InstrData, OperandFlags, PhysReg, Place, Program, RegClass, RegFile, SrcOperand};
use crate::target::{Generation, Target};

/// The blocks and positions of the preamble.
pub struct Preamble {
    /// Its blocks, in order.
    blocks: Vec<Block>,
    is_early: bool,
    start: Block,
}

impl Preamble {
    /// Finds the preamble of a program in its final layout: the blocks up to the one with `shpe`.
    pub fn of(program: &Program, target: &Target) -> Self {
        let count = program.preamble_len();
        let blocks = program.layout[..count].to_vec();
        let start = program.layout.get(count).copied().unwrap_or_else(|| program.entry());
        let mut instrs = blocks.iter().flat_map(|&block| &program.blocks[block].instrs).map(|&i| &program.instrs[i]);
        let is_early = target.generation >= Generation::A7xx && count > 0 && instrs.all(runs_early);
        Self { blocks, is_early, start }
    }

    /// The first block after the preamble.
    pub fn start(&self) -> Block {
        self.start
    }

    /// Returns true if a block belongs to the preamble.
    pub fn contains(&self, block: Block) -> bool {
        self.blocks.contains(&block)
    }

    /// Returns true if a block belongs to a preamble that runs early.
    pub fn is_early(&self, block: Block) -> bool {
        self.is_early && self.blocks.contains(&block)
    }

    /// Marks the moves to `a1.x` of a preamble that runs early.
    pub fn mark_addresses(&self, program: &mut Program) {
        for &block in self.blocks.iter().filter(|_| self.is_early) {
            for position in 0..program.blocks[block].instrs.len() {
                let data = &mut program.instrs[program.blocks[block].instrs[position]];
                let is_a1 = data.dsts.iter().any(|dst| dst.place.reg() == Some(PhysReg::A1_X));
                if let Some(src) = data.srcs.first_mut().filter(|_| is_a1) {
                    src.flags |= OperandFlags::R;
                }
            }
        }
    }
}

/// Returns true if an instruction needs no register of the wave.
fn runs_early(data: &InstrData) -> bool {
    let is_free = |place: &Place, class: RegClass| match place {
        Place::Relative { .. } => false,
        Place::Array(_) => false,
        _ => class.file != RegFile::General || place.reg() == Some(PhysReg::INVALID),
    };
    data.opcode.is_meta()
        || data.dsts.iter().all(|dst| is_free(&dst.place, dst.class) && dst.class.file != RegFile::Predicate)
            && data.srcs.iter().all(|src| match &src.operand {
                SrcOperand::Place(place) => is_free(place, src.class),
                SrcOperand::ConstRelative(_) => false,
                _ => true,
            })
}
