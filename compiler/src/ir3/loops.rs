//! The loops of a program.
//!
//! A *natural loop* has a header that dominates a predecessor of its own (a *latch*); to it belong all blocks from
//! which a latch is reached without the header. Loops of one header are one loop. They form a forest ([`Loops`]).
//!
//! In the code a loop is a range of the layout as well, from the header to the last latch: blocks that are in the range
//! and not in the natural loop lead out of it ([`back_edges`]).

use super::dominance::Dominators;
use super::{Block, Program};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;

/// The forest of natural loops.
pub struct Loops {
    /// The parent of each loop.
    parents: Vec<Option<usize>>,
    /// The innermost loop of a block, plus one.
    innermost: SecondaryMap<Block, u32>,
    /// The loop whose header a block is, plus one.
    headed: SecondaryMap<Block, u32>,
}

impl Loops {
    /// Finds the loops, given the dominators along the logical edges.
    pub fn new(program: &Program, dominators: &Dominators) -> Self {
        let mut this = Self { parents: Vec::new(), innermost: SecondaryMap::new(), headed: SecondaryMap::new() };
        let mut headers: Vec<Block> = Vec::new();
        // Inner loops first: their headers are later in the order.
        for &header in dominators.order().iter().rev() {
            let mut stack: Vec<Block> = Vec::new();
            for &pred in &program.blocks[header].predecessors {
                if dominators.dominates(header, pred) {
                    stack.push(pred);
                }
            }
            if stack.is_empty() {
                continue;
            }
            let number = this.parents.len();
            this.parents.push(None);
            headers.push(header);
            this.headed[header] = number as u32 + 1;
            while let Some(block) = stack.pop() {
                let known = this.innermost[block];
                if known == 0 {
                    this.innermost[block] = number as u32 + 1;
                    if block != header {
                        stack.extend_from_slice(&program.blocks[block].predecessors);
                    }
                    continue;
                }
                let mut outer = known as usize - 1;
                while let Some(parent) = this.parents[outer] {
                    outer = parent;
                }
                if outer != number {
                    this.parents[outer] = Some(number);
                    stack.extend_from_slice(&program.blocks[headers[outer]].predecessors);
                }
            }
            if this.innermost[header] == 0 {
                this.innermost[header] = number as u32 + 1;
            }
        }
        this
    }

    /// Returns true if a loop contains a block.
    pub fn contains(&self, number: usize, block: Block) -> bool {
        self.around(block).any(|around| around == number)
    }

    /// Number of loops that the edge leaves.
    pub fn left_by(&self, from: Block, to: Block) -> u32 {
        self.around(from).take_while(|&number| !self.contains(number, to)).count() as u32
    }

    /// The loop whose header the block is.
    pub fn headed_by(&self, block: Block) -> Option<usize> {
        (self.headed[block] as usize).checked_sub(1)
    }

    /// The loops that contain a block, inner ones first.
    pub fn around(&self, block: Block) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors((self.innermost[block] as usize).checked_sub(1), |&inner| self.parents[inner])
    }

    /// Number of loops.
    pub fn count(&self) -> usize {
        self.parents.len()
    }
}

/// An edge of the layout that does not lead forward, by positions in the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackEdge {
    /// The block that it leads to.
    pub header: usize,
    /// The block that it leads from: the same one, or a later one.
    pub latch: usize,
}

/// The edges between blocks of the layout that do not lead forward in it, in the order of their latches.
pub fn back_edges(program: &Program) -> impl Iterator<Item = BackEdge> + '_ {
    // Plus one.
    let mut positions: SecondaryMap<Block, usize> = map_of(program.blocks.len());
    for (position, &block) in program.layout.iter().enumerate() {
        positions[block] = position + 1;
    }
    program.layout.iter().enumerate().flat_map(move |(latch, &block)| {
        let headers: smallvec::SmallVec<[usize; 2]> =
            program.blocks[block].successors().filter_map(|to| positions[to].checked_sub(1)).collect();
        headers.into_iter().filter(move |&header| header <= latch).map(move |header| BackEdge { header, latch })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::BlockData;
    use crate::ir3::dominance::EdgeKind;

    fn program(count: usize, edges: &[(usize, usize)]) -> (Program, Vec<Block>) {
        let mut program = Program::default();
        let blocks: Vec<Block> = (0..count).map(|_| program.blocks.push(BlockData::default())).collect();
        program.layout.clone_from(&blocks);
        for &(from, to) in edges {
            let slot = program.blocks[blocks[from]].successors().count();
            program.add_edge(blocks[from], slot, blocks[to]);
        }
        (program, blocks)
    }

    /// A loop with two latches, around a loop of one block and one that a block in the range leaves.
    #[test]
    fn a_forest() {
        let edges =
            [(0, 1), (1, 2), (2, 2), (2, 3), (3, 1), (3, 4), (4, 5), (4, 6), (5, 8), (6, 4), (6, 7), (7, 1), (7, 8)];
        let (program, blocks) = program(9, &edges);
        let dominators = Dominators::new(&program, EdgeKind::Logical);
        let loops = Loops::new(&program, &dominators);
        assert_eq!(loops.count(), 3);
        let [outer, first, second] = [1, 2, 4].map(|header| loops.headed_by(blocks[header]).unwrap());
        assert_eq!(loops.headed_by(blocks[0]), None);
        let around: Vec<Vec<usize>> = blocks.iter().map(|&block| loops.around(block).collect()).collect();
        let expected = [
            vec![],
            vec![outer],
            vec![first, outer],
            vec![outer],
            vec![second, outer],
            vec![],
            vec![second, outer],
            vec![outer],
            vec![],
        ];
        assert_eq!(around, expected);
        assert!(loops.contains(outer, blocks[6]) && !loops.contains(first, blocks[6]));
        let left = |from: usize, to: usize| loops.left_by(blocks[from], blocks[to]);
        assert_eq!([left(2, 2), left(2, 3), left(4, 5), left(6, 7), left(7, 1), left(0, 1)], [0, 1, 2, 1, 0, 0]);
        let back: Vec<(usize, usize)> = back_edges(&program).map(|edge| (edge.header, edge.latch)).collect();
        assert_eq!(back, [(2, 2), (1, 3), (4, 6), (1, 7)]);
    }

    /// A circle that is entered in two places has no header, and its back edge is one of the layout only.
    #[test]
    fn an_irreducible_circle_is_no_natural_loop() {
        let (program, blocks) = program(3, &[(0, 1), (0, 2), (1, 2), (2, 1)]);
        let loops = Loops::new(&program, &Dominators::new(&program, EdgeKind::Logical));
        assert_eq!(loops.count(), 0);
        assert_eq!(loops.around(blocks[1]).count(), 0);
        assert_eq!(back_edges(&program).collect::<Vec<_>>(), [BackEdge { header: 1, latch: 2 }]);
    }
}
