//! The readers of values: for sparse analyses, which revisit the readers of a value when a fact about it has changed.

use super::{Block, Instr, Program, Value};
use crate::maps::map_of;
use cranelift_entity::{EntityRef, SecondaryMap};

/// The instructions of a program in the order of the layout, and those that read each value.
pub struct Readers {
    /// The instructions, each with its block.
    pub instrs: Vec<(Block, Instr)>,
    /// The first and last instruction of each block.
    ranges: SecondaryMap<Block, (u32, u32)>,
    /// Positions of readers, those of a value together.
    readers: Vec<u32>,
    /// The end of the readers of each value: they start at the end of those of the value before.
    ends: Vec<u32>,
}

impl Readers {
    /// Finds them.
    pub fn new(program: &Program) -> Self {
        let instrs: Vec<(Block, Instr)> = program.iter_instrs().collect();
        let mut ranges: SecondaryMap<Block, (u32, u32)> = map_of(program.blocks.len());
        let mut start = 0;
        for &block in &program.layout {
            let end = start + program.blocks[block].instrs.len() as u32;
            ranges[block] = (start, end);
            start = end;
        }
        let mut ends = vec![0u32; program.values.len()];
        let read = || {
            (0..).zip(&instrs).flat_map(|(position, &(_, instr))| {
                program.instrs[instr].srcs.iter().filter_map(move |src| Some((src.value()?, position)))
            })
        };
        read().for_each(|(value, _)| ends[value.index()] += 1);
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        let mut readers = vec![0; total as usize];
        for (value, position) in read() {
            let end = &mut ends[value.index()];
            readers[*end as usize] = position;
            *end += 1;
        }
        Self { instrs, ranges, readers, ends }
    }

    /// The positions of a block's instructions.
    pub fn range(&self, block: Block) -> std::ops::Range<usize> {
        let (start, end) = self.ranges[block];
        start as usize..end as usize
    }

    /// The positions of the instructions that read a value, in order; one that reads it twice is listed twice.
    pub fn of(&self, value: Value) -> &[u32] {
        let start = value.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.readers[start as usize..self.ends[value.index()] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::{Attrs, BlockData, Builder, InputKind, Opcode, RegClass, SystemValue};

    #[test]
    fn readers_in_order() {
        let mut program = Program::default();
        let blocks = [(); 2].map(|()| program.blocks.push(BlockData::default()));
        program.layout.extend(blocks);
        program.add_edge(blocks[0], 0, blocks[1]);
        let mut b = Builder::new(&mut program, blocks[0]);
        let input = Attrs::Input(Some(InputKind::System(SystemValue::SubgroupInvocation)));
        let lane = b.define(Opcode::Input, RegClass::FULL, 1, &[], input);
        let lane_src = b.src(lane);
        let twice = b.alu(Opcode::AddU, RegClass::FULL, &[lane_src, lane_src]);
        b.block = blocks[1];
        let twice_src = b.src(twice);
        let sum = b.alu(Opcode::AddU, RegClass::FULL, &[twice_src, lane_src]);
        let readers = Readers::new(&program);
        assert_eq!(readers.of(lane), [1, 1, 2]);
        assert_eq!(readers.of(twice), [2]);
        assert_eq!(readers.of(sum), [0; 0]);
        assert_eq!((readers.range(blocks[0]), readers.range(blocks[1])), (0..2, 2..3));
        assert_eq!(readers.instrs[2], (blocks[1], program.values[sum].instr));
    }
}
