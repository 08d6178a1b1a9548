//! The control-flow graph of a program, by its logical or its physical edges, and dominance in it.

use super::{Block, BlockData, Program};
use crate::graph::{self, DominatorTree, Graph};

/// The kind of control-flow edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// The edges that lanes may take.
    Logical,
    /// The edges that the wave may take, some of its lanes being inactive.
    Physical,
}

impl EdgeKind {
    /// The predecessors of a block.
    pub fn predecessors(self, data: &BlockData) -> &[Block] {
        match self {
            Self::Logical => &data.predecessors,
            Self::Physical => &data.physical_predecessors,
        }
    }

    /// The successors of a block.
    pub fn successors(self, data: &BlockData) -> impl Iterator<Item = Block> + '_ {
        let (logical, physical) = match self {
            Self::Logical => (Some(data.successors()), &[][..]),
            Self::Physical => (None, &data.physical_successors[..]),
        };
        logical.into_iter().flatten().chain(physical.iter().copied())
    }
}

/// The blocks of a program, connected by edges of one kind.
#[derive(Clone, Copy)]
pub struct Cfg<'a> {
    program: &'a Program,
    kind: EdgeKind,
}

impl<'a> Cfg<'a> {
    /// The graph of `program`.
    pub fn new(program: &'a Program, kind: EdgeKind) -> Self {
        Self { program, kind }
    }
}

impl Graph for Cfg<'_> {
    type Node = Block;

    fn successors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.kind.successors(&self.program.blocks[block])
    }

    fn predecessors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.kind.predecessors(&self.program.blocks[block]).iter().copied()
    }
}

/// The dominator tree.
pub struct Dominators(DominatorTree<Block>);

impl Dominators {
    /// Computes the tree. Edges must be consistent: every edge is in the lists of both blocks.
    pub fn new(program: &Program, kind: EdgeKind) -> Self {
        let mut order = postorder(program, kind);
        order.reverse();
        Self(DominatorTree::new(&Cfg::new(program, kind), order))
    }

    /// The reachable blocks, each after those that dominate it.
    pub fn order(&self) -> &[Block] {
        self.0.order()
    }

    /// Returns true if a path leads from the entry to `block`.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.0.is_reachable(block)
    }

    /// Returns true if every path from the entry to `b` leads through `a`, and there is one.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        self.0.dominates(a, b)
    }
}

/// The reachable blocks in [postorder](graph::postorder).
pub fn postorder(program: &Program, kind: EdgeKind) -> Vec<Block> {
    let entry = program.layout.first();
    entry.map_or_else(Vec::new, |&entry| graph::postorder(&Cfg::new(program, kind), entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_with_a_branch() {
        let mut program = Program::default();
        let blocks: Vec<Block> = (0..7).map(|_| program.blocks.push(BlockData::default())).collect();
        program.layout = blocks.clone();
        // 0 → 1; 1 → 2 | 3; 2 → 4; 3 → 4; 4 → 1 | 5; 6 is unreachable and goes to 5.
        for (from, slot, to) in [(0, 0, 1), (1, 0, 2), (1, 1, 3), (2, 0, 4), (3, 0, 4), (4, 0, 1), (4, 1, 5), (6, 0, 5)]
        {
            program.add_edge(blocks[from], slot, blocks[to]);
        }
        for kind in [EdgeKind::Logical, EdgeKind::Physical] {
            let doms = Dominators::new(&program, kind);
            let dominated =
                |a: usize| -> Vec<usize> { (0..7).filter(|&b| doms.dominates(blocks[a], blocks[b])).collect() };
            assert_eq!(dominated(0), [0, 1, 2, 3, 4, 5]);
            assert_eq!(dominated(1), [1, 2, 3, 4, 5]);
            assert_eq!(dominated(4), [4, 5]);
            assert_eq!(dominated(6), [0; 0]);
            assert!(!doms.is_reachable(blocks[6]));
        }
    }

    #[test]
    fn nothing_dominates_in_an_empty_program() {
        let doms = Dominators::new(&Program::default(), EdgeKind::Logical);
        assert!(!doms.is_reachable(Block::from_u32(0)));
    }
}
