//! Dominance: block `a` dominates `b` if every path from the start to `b` goes through `a`.
//!
//! The source order of blocks is one in which every edge but the back edges of loops goes forward, as the
//! [tree](DominatorTree) needs it. Blocks that cannot be reached are dominated by all.

use super::cfg::Cfg;
use super::function::{Block, Function};
use crate::graph::{DominatorTree, Graph};

impl Graph for Cfg {
    type Node = Block;

    fn successors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.succs[block].iter().copied()
    }

    fn predecessors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.preds[block].iter().copied()
    }
}

/// The dominator tree.
#[derive(Clone, Debug)]
pub struct Dominance(DominatorTree<Block>);

impl Dominance {
    /// Computes the tree.
    pub fn new(function: &Function, cfg: &Cfg) -> Dominance {
        Dominance(DominatorTree::new(cfg, function.blocks_in_order().collect()))
    }

    /// Returns true if the block is reachable.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.0.is_reachable(block)
    }

    /// The immediate dominator of a reachable block other than the first.
    pub fn immediate(&self, block: Block) -> Option<Block> {
        self.0.immediate(block)
    }

    /// Returns true if `a` dominates `b`; a block dominates itself.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        !self.is_reachable(b) || self.0.dominates(a, b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nir::{Builder, JumpKind, Stage};

    #[test]
    fn an_if_in_a_loop() {
        let mut b = Builder::new(Stage::Compute);
        let condition = b.constant(1, 1);
        let entry = b.current_block();
        b.begin_loop();
        let header = b.current_block();
        b.begin_if(condition);
        let then = b.current_block();
        b.jump(JumpKind::Break);
        b.begin_else();
        let otherwise = b.current_block();
        b.end_if();
        let merge = b.current_block();
        b.end_loop();
        let after = b.current_block();
        let shader = b.finish();
        let cfg = Cfg::new(&shader.entry);
        assert_eq!(cfg.preds[header].as_slice(), [entry, merge]);
        assert_eq!(cfg.preds[merge].as_slice(), [otherwise]);
        assert_eq!(cfg.preds[after].as_slice(), [then]);
        assert_eq!(cfg.exits, [after]);
        let dominance = Dominance::new(&shader.entry, &cfg);
        assert!(dominance.dominates(header, after));
        assert!(dominance.dominates(then, after));
        assert!(!dominance.dominates(merge, after));
        assert!(dominance.dominates(otherwise, merge));
        assert!(!dominance.dominates(then, merge));
        assert_eq!(dominance.immediate(after), Some(then));
        assert_eq!(dominance.immediate(entry), None);
    }

    #[test]
    fn what_cannot_be_reached_is_dominated_by_all() {
        let mut b = Builder::new(Stage::Compute);
        let entry = b.current_block();
        b.begin_loop();
        let body = b.current_block();
        b.end_loop();
        let after = b.current_block();
        let shader = b.finish();
        let cfg = Cfg::new(&shader.entry);
        let dominance = Dominance::new(&shader.entry, &cfg);
        assert!(!dominance.is_reachable(after));
        assert!(dominance.dominates(body, after));
        assert!(!dominance.dominates(after, body));
        assert!(dominance.dominates(entry, body));
    }
}
