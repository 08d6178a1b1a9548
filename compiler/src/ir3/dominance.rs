//! Dominance over the logical or the physical edges, after Cooper, Harvey and Kennedy ("A Simple, Fast Dominance
//! Algorithm"): the immediate dominators are the fixed point of the nearest common dominator of all predecessors.

use super::{Block, BlockData, Program};
use cranelift_entity::SecondaryMap;

/// Which edges of the control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// What a lane may do.
    Logical,
    /// What a wave may do, some of its lanes being inactive.
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

    /// Calls `each` with the successors of a block.
    pub fn each_successor(self, data: &BlockData, mut each: impl FnMut(Block)) {
        match self {
            Self::Logical => data.successors().for_each(&mut each),
            Self::Physical => data.physical_successors.iter().copied().for_each(&mut each),
        }
    }
}

/// The dominator tree.
pub struct Dominators {
    /// Position in reverse postorder plus one; 0 where no way leads from the entry.
    order: SecondaryMap<Block, u32>,
    /// When a walk of the tree enters and leaves a block's subtree.
    interval: SecondaryMap<Block, (u32, u32)>,
}

impl Dominators {
    /// Computes the tree. Edges must be consistent: every successor knows its predecessor.
    pub fn new(program: &Program, kind: EdgeKind) -> Self {
        let postorder = postorder(program, kind);
        let count = postorder.len();
        let mut this = Self { order: SecondaryMap::new(), interval: SecondaryMap::new() };
        for (i, &block) in postorder.iter().rev().enumerate() {
            this.order[block] = i as u32 + 1;
        }
        // By position in reverse postorder, from 0.
        let mut idom: Vec<Option<u32>> = vec![None; count];
        if let Some(first) = idom.first_mut() {
            *first = Some(0);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (i, &block) in postorder.iter().rev().enumerate().skip(1) {
                let mut new = None;
                for &pred in kind.predecessors(&program.blocks[block]) {
                    let Some(pred) = this.order[pred].checked_sub(1) else { continue };
                    if idom[pred as usize].is_some() {
                        new = Some(new.map_or(pred, |other| meet(&idom, pred, other)));
                    }
                }
                if new.is_some() && idom[i] != new {
                    idom[i] = new;
                    changed = true;
                }
            }
        }
        this.number(&postorder, &idom);
        this
    }

    /// Walks the tree, parents before children.
    fn number(&mut self, postorder: &[Block], idom: &[Option<u32>]) {
        let count = postorder.len();
        let mut sizes = vec![1u32; count];
        for i in (1..count).rev() {
            if let Some(parent) = idom[i] {
                sizes[parent as usize] += sizes[i];
            }
        }
        // A child's subtree starts behind those of its elder siblings.
        let mut starts = vec![0u32; count];
        let mut next: Vec<u32> = vec![1; count];
        for i in 0..count {
            if let (Some(parent), true) = (idom[i], i > 0) {
                let parent = parent as usize;
                starts[i] = starts[parent] + next[parent];
                next[parent] += sizes[i];
            }
            self.interval[postorder[count - 1 - i]] = (starts[i], starts[i] + sizes[i] - 1);
        }
    }

    /// Whether a way leads from the entry to `block`.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.order[block] != 0
    }

    /// Whether every way from the entry to `b` leads through `a`.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        let ((first, last), (at, _)) = (self.interval[a], self.interval[b]);
        self.is_reachable(a) && self.is_reachable(b) && first <= at && at <= last
    }
}

/// The nearest common dominator of two blocks, by their positions in reverse postorder.
fn meet(idom: &[Option<u32>], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        // Dominators stand earlier; blocks that were not reached yet are never asked for.
        if a > b {
            a = idom[a as usize].unwrap_or(0);
        } else {
            b = idom[b as usize].unwrap_or(0);
        }
    }
    a
}

/// The reachable blocks, each behind all blocks that can only be reached through it; reversed, each stands in front of
/// what it dominates, and behind one of its predecessors.
pub fn postorder(program: &Program, kind: EdgeKind) -> Vec<Block> {
    let mut order = Vec::with_capacity(program.layout.len());
    let Some(&entry) = program.layout.first() else { return order };
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut stack = vec![(entry, false)];
    while let Some((block, done)) = stack.pop() {
        if done {
            order.push(block);
            continue;
        }
        if std::mem::replace(&mut seen[block], true) {
            continue;
        }
        stack.push((block, true));
        kind.each_successor(&program.blocks[block], |successor| {
            if !seen[successor] {
                stack.push((successor, false));
            }
        });
    }
    order
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
            assert_eq!(dominated(2), [2]);
            assert_eq!(dominated(4), [4, 5]);
            assert_eq!(dominated(6), [0; 0]);
            assert!(!doms.is_reachable(blocks[6]));
        }
    }

    /// Dominance by its definition: `b` is reached, but not without `a`.
    fn dominates(program: &Program, a: Block, b: Block) -> bool {
        let reaches = |without: Option<Block>| {
            let mut seen: Vec<Block> = program.layout[..1].iter().copied().filter(|&b| Some(b) != without).collect();
            let mut i = 0;
            while let Some(&block) = seen.get(i) {
                i += 1;
                for next in program.blocks[block].successors() {
                    if Some(next) != without && !seen.contains(&next) {
                        seen.push(next);
                    }
                }
            }
            seen.contains(&b)
        };
        reaches(None) && (a == b || !reaches(Some(a)))
    }

    /// Graphs of four blocks with up to two successors each, irreducible ones among them.
    #[test]
    fn small_graphs() {
        // The successors of all blocks as a number in base 5; 4 is none.
        for code in (0..5u32.pow(8)).step_by(7) {
            let mut program = Program::default();
            let blocks: Vec<Block> = (0..4).map(|_| program.blocks.push(BlockData::default())).collect();
            program.layout.clone_from(&blocks);
            for edge in 0..8 {
                if let Some(&to) = blocks.get((code / 5u32.pow(edge) % 5) as usize) {
                    let from = blocks[edge as usize / 2];
                    let slot = program.blocks[from].successors().count();
                    program.add_edge(from, slot, to);
                }
            }
            let doms = Dominators::new(&program, EdgeKind::Logical);
            for &a in &blocks {
                for &b in &blocks {
                    assert_eq!(doms.dominates(a, b), dominates(&program, a, b), "{code}: {a} {b}");
                }
            }
        }
    }

    #[test]
    fn nothing_dominates_in_an_empty_program() {
        let doms = Dominators::new(&Program::default(), EdgeKind::Logical);
        assert!(!doms.is_reachable(Block::from_u32(0)));
    }
}
