//! Regions of uniform code, for the scalar ALU and the shared register file.
//!
//! Inside such a region every source is meant to be uniform, conditions of branches and loops included. It contains
//! divergent regions again, so that lanes diverge inside uniform control flow and uniform values are live across that.
//! The compiler has to find out which values are uniform: nothing here guarantees it.

use super::config::CONFIG;
use ir3_compiler::nir::{Def, Index, IntrinsicOp, Op, Stage};

use super::Generator;
use super::choices::Choices;
use super::profile::{UNIFORM, Weights};

impl<C: Choices> Generator<'_, C> {
    /// Defines uniform values that stay live until the outputs.
    pub(super) fn uniform_values(&mut self) {
        if self.weights.uniform == 0 {
            return;
        }
        self.uniform_root();
        let most = if self.weights.operation != 0 { self.c.pick(&[10, 40, 90]) } else { 40 };
        let count = self.c.below(most);
        self.pool.only_uniform = true;
        for _ in 0..count {
            if self.c.exhausted() {
                break;
            }
            match self.c.below(8) {
                0 => {
                    self.half_op();
                }
                1..=3 => {
                    self.float(32);
                }
                _ => {
                    self.int();
                }
            }
        }
        self.pool.only_uniform = false;
    }

    /// A region of uniform code, or inside one a divergent region.
    pub(super) fn uniform(&mut self, budget: u32) {
        let outer = (self.weights, self.pool.only_uniform);
        if outer.1 {
            self.weights = self.divergent;
            self.pool.only_uniform = false;
        } else {
            for _ in 0..1 + self.c.below(3) {
                self.uniform_root();
            }
            self.weights = Weights { operation: self.divergent.operation.min(60), ..UNIFORM };
            self.pool.only_uniform = true;
        }
        if self.c.chance(CONFIG.uniform_copy) {
            self.uniform_copy();
        }
        self.region(budget / 2);
        (self.weights, self.pool.only_uniform) = outer;
    }

    /// Reads old uniform values at the start of an arm and defines new ones: while lanes execute the other arm and
    /// define new values, the old values of this arm stay live.
    pub(super) fn uniform_arm(&mut self) {
        if self.weights.uniform == 0 {
            return;
        }
        for _ in 0..self.c.below(4) {
            let sources = (self.pool.uniform(self.c), self.pool.uniform(self.c));
            let (Some(a), Some(b)) = sources else { return };
            let sum = self.b.alu(Op::Iadd, &[a, b]);
            let outer = std::mem::replace(&mut self.pool.only_uniform, true);
            self.define(sum);
            self.pool.only_uniform = outer;
        }
    }

    /// A copy of a uniform value, unmodified in a shared register.
    fn uniform_copy(&mut self) {
        let Some(value) = self.pool.uniform(self.c) else { return };
        let copy = self.b.alu(Op::Mov, &[value]);
        let outer = std::mem::replace(&mut self.pool.only_uniform, true);
        self.define(copy);
        self.pool.only_uniform = outer;
    }

    /// Defines a value that is uniform by its definition.
    fn uniform_root(&mut self) {
        let def: Option<Def> = match self.c.below(8) {
            0 => {
                let x = self.value(1);
                let op = if self.c.even() { IntrinsicOp::VoteAny } else { IntrinsicOp::VoteAll };
                self.b.intrinsic(op, 1, 1, &[x], [])
            }
            1 if self.features.lanes => {
                let x = self.value(1);
                let mask = self.b.intrinsic(IntrinsicOp::Ballot, 4, 32, &[x], []);
                let component = self.c.below(2) as u8;
                mask.map(|mask| self.b.channel(mask, component))
            }
            2 | 3 if self.features.lanes => {
                let x = self.value(32);
                self.b.intrinsic(IntrinsicOp::ReadFirstInvocation, 1, 32, &[x], [])
            }
            4 if self.b.shader().stage == Stage::Compute => {
                let group = self.b.intrinsic(IntrinsicOp::LoadWorkgroupId, 3, 32, &[], []);
                let component = self.c.below(3) as u8;
                group.map(|group| self.b.channel(group, component))
            }
            5 if self.features.ubos => {
                let (buffer, offset) = (self.b.constant(32, 0), self.c.below(32) as u64);
                let offset = self.b.constant(32, offset);
                self.b.intrinsic(IntrinsicOp::LoadUboVec4, 1, 32, &[buffer, offset], [])
            }
            _ => {
                let base = Index::Base(self.c.below(128) as i32);
                let zero = self.b.constant(32, 0);
                self.b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], [base])
            }
        };
        self.pool.only_uniform = true;
        if let Some(def) = def {
            self.define(def);
        }
        self.pool.only_uniform = false;
    }
}
