//! Conditions with several readers in different blocks, which put pressure on predicate registers.
//!
//! A few comparisons are *kept* until the end of their scope. Branches, subgroup votes and ballots in it read one of
//! them, or a tree of *and*, *or* and *not* over several. So comparisons are read in blocks far from their definition
//! and in later loops, and more of them are live than there are registers. The trees have no other reader, so branches
//! can absorb them.

use super::config::CONFIG;
use ir3_compiler::nir::{Def, IntrinsicOp, Op};

use super::Generator;
use super::choices::Choices;
use super::control::MAX_DEPTH;

const INTEGER: &[Op] = &[Op::Ilt, Op::Ige, Op::Ieq, Op::Ine, Op::Ult, Op::Uge];
const FLOAT: &[Op] = &[Op::Flt, Op::Fge, Op::Feq, Op::Fneu];

impl<C: Choices> Generator<'_, C> {
    /// Defines some comparisons to be kept, or reads kept ones.
    pub(super) fn kept_conditions(&mut self, budget: u32) {
        if self.pool.only_uniform {
            return;
        }
        if self.pool.kept().is_empty() || self.c.chance(CONFIG.more_kept) {
            self.keep_some();
        }
        match self.c.below(8) {
            0 | 1 => {
                if let Some(condition) = self.subgroup_condition() {
                    self.branch_on(condition, budget);
                }
            }
            2 => {
                // Reads it as a number too.
                let Some(tree) = self.kept_tree(1) else { return };
                self.define(tree);
            }
            3 | 4 => self.read_twice(),
            5 => self.branch(budget),
            _ => {
                if let Some(condition) = self.kept_tree_of_some_depth() {
                    self.branch_on(condition, budget);
                }
            }
        }
    }

    fn keep_some(&mut self) {
        for _ in 0..4 + self.c.below(4) {
            let comparison = self.lane_comparison();
            self.pool.keep(comparison);
        }
    }

    /// Reads kept conditions before a loop as well.
    pub(super) fn kept_before_loop(&mut self) {
        if self.weights.kept > 0 && !self.pool.only_uniform && self.c.chance(CONFIG.kept_before_loop) {
            if self.pool.kept().len() < 5 {
                self.keep_some();
            }
            self.read_twice();
        }
    }

    /// Reads conditions in each iteration of a loop, mostly ones from before it.
    pub(super) fn kept_in_loop(&mut self) {
        if self.weights.kept > 0 && !self.pool.only_uniform && self.c.chance(CONFIG.kept_before_loop) {
            self.read_twice();
        }
    }

    /// Reads the most recent kept conditions one after the other, twice, so that all of them are live in between. Each
    /// affects a number.
    fn read_twice(&mut self) {
        let count = self.pool.kept().len();
        let young = self.pool.kept()[count.saturating_sub(7)..].to_vec();
        let mut number = self.value(32);
        for (step, &condition) in young.iter().chain(&young).enumerate() {
            if self.done() || self.b.depth() >= MAX_DEPTH {
                break;
            }
            self.pool.mark_used(condition);
            let odd = self.b.constant(32, 2 * step as u64 + 3);
            if self.c.chance(CONFIG.vote_of_kept) {
                let op = if self.c.even() { IntrinsicOp::VoteAny } else { IntrinsicOp::VoteAll };
                let Some(vote) = self.b.intrinsic(op, 1, 1, &[condition], []) else { break };
                let vote = self.b.alu(Op::B2i32, &[vote]);
                let sum = self.b.alu(Op::Iadd, &[number, vote]);
                number = self.b.alu(Op::Imul, &[sum, odd]);
                continue;
            }
            // A branch can absorb a condition together with one that has no other reader.
            let mut decides = condition;
            if self.c.chance(CONFIG.kept_with_other) {
                let other = self.lane_comparison();
                let op = if self.c.even() { Op::Iand } else { Op::Ior };
                decides = self.b.alu(op, &[condition, other]);
                if self.c.even() {
                    decides = self.b.alu(Op::Inot, &[decides]);
                }
            }
            self.b.begin_if(decides);
            let product = self.b.alu(Op::Imul, &[number, odd]);
            let one = self.b.constant(32, 1);
            let changed = self.b.alu(Op::Iadd, &[product, one]);
            let then = self.b.current_block();
            self.b.begin_else();
            let otherwise = self.b.current_block();
            self.b.end_if();
            let phi = self.b.phi(1, 32);
            self.b.set_phi_src(phi, then, changed);
            self.b.set_phi_src(phi, otherwise, number);
            number = phi;
        }
        self.define_seen(number, 256);
        // Makes the number of every iteration observable.
        if self.features.compute && !self.loops.is_empty() {
            self.add_to_memory(number);
        }
    }

    /// A condition over kept ones.
    pub(super) fn kept_condition(&mut self) -> Option<Def> {
        let takes = !self.pool.kept().is_empty() && !self.pool.only_uniform && self.c.chance(CONFIG.kept_condition);
        takes.then(|| self.kept_tree_of_some_depth()).flatten()
    }

    fn kept_tree_of_some_depth(&mut self) -> Option<Def> {
        let depth = [0, 0, 0, 1, 1, 2, 3, 4][self.c.below(8)];
        self.kept_tree(depth)
    }

    /// A tree over kept conditions.
    fn kept_tree(&mut self, depth: u32) -> Option<Def> {
        if depth == 0 || self.c.chance(CONFIG.kept_leaf) {
            let kept = self.pool.kept();
            let at = self.c.below(kept.len().max(1));
            let leaf = *self.pool.kept().get(at)?;
            self.pool.mark_used(leaf);
            return Some(leaf);
        }
        Some(match self.c.below(6) {
            0 => {
                let x = self.kept_tree(depth - 1)?;
                self.b.alu(Op::Inot, &[x])
            }
            choice => {
                let (x, y) = (self.kept_tree(depth - 1)?, self.kept_tree(depth - 1)?);
                self.b.alu(if choice < 4 { Op::Iand } else { Op::Ior }, &[x, y])
            }
        })
    }

    /// A comparison that is likelier than a random one to differ between lanes.
    fn lane_comparison(&mut self) -> Def {
        if self.c.chance(CONFIG.relative_comparison) {
            return self.relative_comparison();
        }
        if self.c.chance(CONFIG.comparison_of_values) {
            let (x, y) = (self.value(32), self.value(32));
            let op = self.c.pick(FLOAT);
            return self.b.alu(op, &[x, y]);
        }
        let any = self.value(32);
        let spread = match self.lane {
            Some(lane) => self.b.alu(Op::Ixor, &[any, lane]),
            None => any,
        };
        let mask = [1, 1, 3, 3, 7, 63][self.c.below(6)];
        let other = self.c.below(mask as usize + 1) as u64;
        let (mask, other) = (self.b.constant(32, mask), self.b.constant(32, other));
        let masked = self.b.alu(Op::Iand, &[spread, mask]);
        let op = self.c.pick(INTEGER);
        self.b.alu(op, &[masked, other])
    }

    /// A condition across lanes: a subgroup vote, a ballot that is not empty, or the election of one lane.
    fn subgroup_condition(&mut self) -> Option<Def> {
        match self.c.below(6) {
            0 => self.b.intrinsic(IntrinsicOp::ElectAnyIr3, 1, 1, &[], []),
            1 if self.features.lanes => {
                let x = self.kept_tree(1)?;
                let mask = self.b.intrinsic(IntrinsicOp::Ballot, 4, 32, &[x], [])?;
                let word = self.c.below(2) as u8;
                let word = self.b.channel(mask, word);
                let zero = self.b.constant(32, 0);
                Some(self.b.alu(Op::Ine, &[word, zero]))
            }
            2 | 3 => {
                let x = self.kept_tree(1)?;
                self.b.intrinsic(IntrinsicOp::VoteAll, 1, 1, &[x], [])
            }
            _ => {
                let x = self.kept_tree_of_some_depth()?;
                self.b.intrinsic(IntrinsicOp::VoteAny, 1, 1, &[x], [])
            }
        }
    }
}
