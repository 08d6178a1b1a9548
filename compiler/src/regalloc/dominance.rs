//! Dominance, after Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm").
//!
//! The immediate dominators are the fixed point of `idom(b) = intersection over processed predecessors p of b`, taken
//! in reverse postorder, where the intersection walks up from both sides until they meet. Structured programs need
//! one round and a second one that finds nothing new.

use crate::ir3::{Block, Program};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// The dominator tree over the logical edges, and the orders that came with it.
pub struct Dominance {
    /// Reachable blocks in reverse postorder.
    pub reverse_postorder: Vec<Block>,
    /// Position in the reverse postorder plus one; zero for unreachable blocks.
    number: SecondaryMap<Block, u32>,
    idom: SecondaryMap<Block, PackedOption<Block>>,
    /// First and last number of a block's subtree in a preorder walk of the tree.
    interval: SecondaryMap<Block, (u32, u32)>,
}

impl Dominance {
    /// Computes the tree of a program.
    pub fn new(program: &Program) -> Self {
        let mut this = Self {
            reverse_postorder: reverse_postorder(program),
            number: SecondaryMap::with_capacity(program.blocks.len()),
            idom: SecondaryMap::with_capacity(program.blocks.len()),
            interval: SecondaryMap::with_capacity(program.blocks.len()),
        };
        for (i, &block) in this.reverse_postorder.iter().enumerate() {
            this.number[block] = i as u32 + 1;
        }
        this.find_idoms(program);
        this.number_tree();
        this
    }

    /// The block that dominates `block` and is dominated by all others that do; none for the entry.
    pub fn idom(&self, block: Block) -> Option<Block> {
        self.idom[block].expand()
    }

    /// Whether every way from the entry to `b` leads through `a`.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        let ((first, last), (at, _)) = (self.interval[a], self.interval[b]);
        self.is_reachable(a) && self.is_reachable(b) && first <= at && at <= last
    }

    /// Whether a way leads from the entry to `block`.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.number[block] != 0
    }

    fn find_idoms(&mut self, program: &Program) {
        let Some((&entry, rest)) = self.reverse_postorder.split_first() else { return };
        self.idom[entry] = entry.into();
        let mut changed = true;
        while changed {
            changed = false;
            for &block in rest {
                let mut idom = None;
                for &pred in &program.blocks[block].predecessors {
                    if self.idom[pred].is_some() {
                        idom = Some(idom.map_or(pred, |other| self.intersect(pred, other)));
                    }
                }
                if idom != self.idom[block].expand() {
                    self.idom[block] = idom.into();
                    changed = true;
                }
            }
        }
        self.idom[entry] = None.into();
    }

    /// The nearest common dominator of two blocks whose dominators are known so far.
    fn intersect(&self, mut a: Block, mut b: Block) -> Block {
        while a != b {
            let (number_a, number_b) = (self.number[a], self.number[b]);
            let up = if number_a > number_b { &mut a } else { &mut b };
            match self.idom[*up].expand() {
                Some(idom) => *up = idom,
                None => return *up,
            }
        }
        a
    }

    /// Preorder intervals: children come behind their parents in reverse postorder, so that sizes of subtrees can be
    /// summed up backwards, and places handed out forwards.
    fn number_tree(&mut self) {
        for &block in self.reverse_postorder.iter().rev() {
            self.interval[block].1 += 1;
            if let Some(parent) = self.idom[block].expand() {
                self.interval[parent].1 += self.interval[block].1;
            }
        }
        // `next[b]`: where the next child of `b` begins.
        let mut next = SecondaryMap::<Block, u32>::with_capacity(self.number.capacity());
        for &block in &self.reverse_postorder {
            let size = self.interval[block].1;
            let first = match self.idom[block].expand() {
                Some(parent) => {
                    let first = next[parent];
                    next[parent] += size;
                    first
                }
                None => 0,
            };
            next[block] = first + 1;
            self.interval[block] = (first, first + size - 1);
        }
    }
}

/// The blocks that are reachable over logical edges, each before its successors but for back edges.
pub fn reverse_postorder(program: &Program) -> Vec<Block> {
    let mut seen = SecondaryMap::<Block, bool>::with_capacity(program.blocks.len());
    let mut order = Vec::with_capacity(program.layout.len());
    let mut stack = Vec::new();
    let Some(&entry) = program.layout.first() else { return order };
    seen[entry] = true;
    stack.push((entry, 0));
    while let Some((block, slot)) = stack.last_mut() {
        // The last successor first, so that in reverse the first one follows its block.
        let Some(&next) = program.blocks[*block].successors.iter().rev().nth(*slot) else {
            order.push(*block);
            stack.pop();
            continue;
        };
        *slot += 1;
        if let Some(next) = next
            && !seen[next]
        {
            seen[next] = true;
            stack.push((next, 0));
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::BlockData;

    /// A program of `n` blocks with these edges; a block's first edge is its first successor.
    fn graph(n: usize, edges: &[(usize, usize)]) -> (Program, Vec<Block>) {
        let mut program = Program::default();
        let blocks: Vec<Block> = (0..n).map(|_| program.blocks.push(BlockData::default())).collect();
        program.layout.clone_from(&blocks);
        for &(from, to) in edges {
            let slot = program.blocks[blocks[from]].successors().count();
            program.add_edge(blocks[from], slot, blocks[to]);
        }
        (program, blocks)
    }

    /// Dominance by its definition: `b` cannot be reached without `a`.
    fn dominates(program: &Program, a: Block, b: Block) -> bool {
        let reaches = |without: Option<Block>| {
            let mut seen = vec![program.entry()];
            let mut i = 0;
            while i < seen.len() {
                let block = seen[i];
                i += 1;
                for next in program.blocks[block].successors() {
                    if Some(next) != without && !seen.contains(&next) {
                        seen.push(next);
                    }
                }
            }
            seen.contains(&b) && Some(program.entry()) != without
        };
        reaches(None) && (a == b || !reaches(Some(a)))
    }

    fn check(program: &Program) {
        let dominance = Dominance::new(program);
        for a in program.blocks.keys() {
            for b in program.blocks.keys() {
                let reachable = dominance.is_reachable(a) && dominance.is_reachable(b);
                assert_eq!(dominance.dominates(a, b), reachable && dominates(program, a, b), "{a} {b}");
            }
            if let Some(idom) = dominance.idom(a) {
                assert!(idom != a && dominance.dominates(idom, a));
                for c in program.blocks.keys().filter(|&c| c != a && dominance.dominates(c, a)) {
                    assert!(dominance.dominates(c, idom));
                }
            }
        }
    }

    #[test]
    fn if_and_loop() {
        let (program, b) = graph(6, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 1), (3, 4)]);
        check(&program);
        let dominance = Dominance::new(&program);
        assert_eq!(dominance.idom(b[3]), Some(b[0]));
        assert_eq!(dominance.reverse_postorder, [b[0], b[2], b[3], b[1], b[4]].to_vec());
        assert!(!dominance.is_reachable(b[5]));
    }

    /// Every graph of four blocks, irreducible ones included.
    #[test]
    fn every_small_graph() {
        let n = 4;
        // Two successors a block, each one of four blocks or none.
        for code in 0..5usize.pow(8) {
            if code % 7 != 0 {
                continue;
            }
            let mut edges = Vec::new();
            let mut rest = code;
            for from in 0..n {
                for _ in 0..2 {
                    let to = rest % 5;
                    rest /= 5;
                    if to < n {
                        edges.push((from, to));
                    }
                }
            }
            check(&graph(n, &edges).0);
        }
    }
}
