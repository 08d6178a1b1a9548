//! Dominance: block `a` dominates `b` when every way from the start to `b` goes through `a`.
//!
//! Cooper, Harvey and Kennedy's iteration over the blocks in source order, which in structured control flow is an order
//! in which every edge but the back edges of loops goes forward. Blocks that cannot be reached are dominated by all.

use cranelift_entity::SecondaryMap;

use super::cfg::Cfg;
use super::function::{Block, Function};

const UNREACHED: u32 = u32::MAX;

/// The dominator tree.
#[derive(Clone, Debug)]
pub struct Dominance {
    /// Position of each block in source order, or [`UNREACHED`].
    position: SecondaryMap<Block, u32>,
    /// The immediate dominator of each position; the first block's is itself.
    idom: Vec<u32>,
    order: Vec<Block>,
    /// Intervals of a walk over the tree: `a` dominates `b` when `a`'s contains `b`'s.
    enter: Vec<u32>,
    leave: Vec<u32>,
}

impl Dominance {
    /// Computes the tree.
    pub fn new(function: &Function, cfg: &Cfg) -> Dominance {
        let order: Vec<Block> = function.blocks_in_order().collect();
        let mut position = SecondaryMap::with_default(UNREACHED);
        for (index, &block) in order.iter().enumerate() {
            position[block] = index as u32;
        }
        let mut idom = vec![UNREACHED; order.len()];
        if let Some(first) = idom.first_mut() {
            *first = 0;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (index, &block) in order.iter().enumerate().skip(1) {
                let preds = cfg.preds[block].iter().map(|&pred| position[pred]);
                let new = preds.filter(|&pred| idom[pred as usize] != UNREACHED).reduce(|a, b| meet(&idom, a, b));
                if let Some(new) = new
                    && idom[index] != new
                {
                    idom[index] = new;
                    changed = true;
                }
            }
        }
        for (index, &block) in order.iter().enumerate() {
            if idom[index] == UNREACHED {
                position[block] = UNREACHED;
            }
        }
        let (enter, leave) = intervals(&idom);
        Dominance { position, idom, order, enter, leave }
    }

    /// Whether control can come to a block.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.position[block] != UNREACHED
    }

    /// The immediate dominator of a block that can be reached, other than the first.
    pub fn immediate(&self, block: Block) -> Option<Block> {
        match self.position[block] {
            UNREACHED | 0 => None,
            position => Some(self.order[self.idom[position as usize] as usize]),
        }
    }

    /// Whether `a` dominates `b`; a block dominates itself.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        match (self.position[a], self.position[b]) {
            (_, UNREACHED) => true,
            (UNREACHED, _) => false,
            (a, b) => {
                let (a, b) = (a as usize, b as usize);
                self.enter[a] <= self.enter[b] && self.leave[b] <= self.leave[a]
            }
        }
    }
}

/// The deepest common ancestor in the tree so far. An immediate dominator stands before what it dominates.
fn meet(idom: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        if a > b {
            a = idom[a as usize];
        } else {
            b = idom[b as usize];
        }
    }
    a
}

fn intervals(idom: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut enter = vec![0; idom.len()];
    let mut size = vec![1; idom.len()];
    // Children stand after their parents, so sizes add up from the end, and places are given out from the start.
    for index in (1..idom.len()).rev().filter(|&index| idom[index] != UNREACHED) {
        size[idom[index] as usize] += size[index];
    }
    let mut free = vec![1; idom.len()];
    for index in (1..idom.len()).filter(|&index| idom[index] != UNREACHED) {
        let parent = idom[index] as usize;
        enter[index] = enter[parent] + free[parent];
        free[parent] += size[index];
    }
    let leave = enter.iter().zip(&size).map(|(enter, size)| enter + size).collect();
    (enter, leave)
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
