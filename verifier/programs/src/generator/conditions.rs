//! Conditions: trees of `and`, `or` and `not` over comparisons, defined where a branch reads them.

use super::config::CONFIG;
use ir3_compiler::nir::{Def, Index, IntrinsicOp, Op};

use super::Generator;
use super::choices::Choices;

const JOINS: &[Op] = &[Op::Iand, Op::Ior];
const COMPARISONS: &[Op] = &[Op::Ilt, Op::Ige, Op::Ult, Op::Uge, Op::Ine, Op::Flt, Op::Fge, Op::Fneu];

impl<C: Choices> Generator<'_, C> {
    /// Returns a condition. A random comparison is the same in most lanes, so often a bit of the lane's number is used:
    /// then lanes diverge.
    pub(super) fn condition(&mut self) -> Def {
        if let Some(kept) = self.kept_condition() {
            return kept;
        }
        let trees = u32::from(self.weights.tree);
        if trees > 0 && self.c.chance(trees) {
            return self.decision();
        }
        match self.lane.filter(|_| !self.pool.only_uniform && self.c.chance(CONFIG.condition_of_lane)) {
            Some(lane) => self.bit_of(lane),
            None => self.value(1),
        }
    }

    /// Compares words of the constant file with each other or with a constant: the same in all lanes, as its definition
    /// shows.
    pub(super) fn uniform_comparison(&mut self) -> Def {
        let zero = self.b.constant(32, 0);
        let mut word = || {
            let base = Index::Base(self.c.below(64) as i32);
            self.b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], [base]).unwrap_or(zero)
        };
        let (x, y) = (word(), word());
        let op = self.c.pick(COMPARISONS);
        let y = if self.c.even() { y } else { self.some_constant(32) };
        self.b.alu(op, &[x, y])
    }

    /// Compares a word of the constant file that is read relative to an address.
    pub(super) fn relative_comparison(&mut self) -> Def {
        let (any, mask) = (self.value(32), self.b.constant(32, 31));
        let at = self.b.alu(Op::Iand, &[any, mask]);
        let base = Index::Base(self.c.below(32) as i32);
        let Some(word) = self.b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[at], [base]) else {
            return self.value(1);
        };
        let other = if self.c.even() { self.value(32) } else { self.some_constant(32) };
        let op = self.c.pick(COMPARISONS);
        self.b.alu(op, &[word, other])
    }

    /// Tests a random bit of a number.
    fn bit_of(&mut self, number: Def) -> Def {
        let bit = self.c.below(6);
        let mask = self.b.constant(32, 1 << bit);
        let masked = self.b.alu(Op::Iand, &[number, mask]);
        let zero = self.b.constant(32, 0);
        self.b.alu(Op::Ine, &[masked, zero])
    }

    /// A tree that is defined here, sometimes with a subgroup vote on it. Later instructions may read the root.
    fn decision(&mut self) -> Def {
        let depth = 1 + self.c.below(3);
        let mut root = self.tree(depth);
        if self.c.chance(CONFIG.vote) {
            let op = if self.c.even() { IntrinsicOp::VoteAny } else { IntrinsicOp::VoteAll };
            root = self.b.intrinsic(op, 1, 1, &[root], []).unwrap_or(root);
            if self.c.chance(CONFIG.negated_vote) {
                root = self.b.alu(Op::Inot, &[root]);
            }
        }
        if self.c.chance(CONFIG.tree_with_readers) {
            self.pool.add(&self.b, root);
            self.pool.mark_used(root);
        }
        root
    }

    fn tree(&mut self, depth: usize) -> Def {
        if depth == 0 {
            return self.leaf();
        }
        if self.c.chance(CONFIG.negated_tree) {
            let x = self.tree(depth - 1);
            return self.b.alu(Op::Inot, &[x]);
        }
        let op = self.c.pick(JOINS);
        let x = self.tree(depth - 1);
        let other = if self.c.even() { 0 } else { depth - 1 };
        let y = self.tree(other);
        self.b.alu(op, &[x, y])
    }

    /// A comparison that usually has no other reader.
    fn leaf(&mut self) -> Def {
        match self.c.below(8) {
            0 => self.value(1),
            1 => self.relative_comparison(),
            2 | 3 if !self.pool.only_uniform => match self.lane {
                Some(lane) => self.bit_of(lane),
                None => self.value(1),
            },
            _ => {
                let op = self.c.pick(COMPARISONS);
                let srcs = [self.value(32), self.value(32)];
                let comparison = self.b.alu(op, &srcs);
                if self.c.chance(CONFIG.leaf_with_readers) {
                    self.pool.add(&self.b, comparison);
                    self.pool.mark_used(comparison);
                }
                comparison
            }
        }
    }
}
