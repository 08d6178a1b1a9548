//! Stretches of a program that compute the same in all lanes: for scalar units, and for what they share registers in.
//!
//! Inside such a stretch every source is a value that is meant to be uniform, branches and loops included; within it there
//! are stretches among the lanes again, so that lanes part inside uniform control flow and uniform values live across
//! that. Whether a value really is uniform is for the compiler to find out: nothing here relies on it.

use ir3_compiler::nir::{Def, Index, IntrinsicOp, Op, Stage};

use super::Generator;
use super::choices::Choices;
use super::profile::{Profile, UNIFORM};

impl<C: Choices> Generator<'_, C> {
    /// Uniform values that stay alive until the outputs.
    pub(super) fn uniform_values(&mut self) {
        if self.weights.uniform == 0 {
            return;
        }
        self.uniform_root();
        let count = self.c.below(40);
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

    /// A stretch of uniform code, or inside one a stretch that is not.
    pub(super) fn uniform(&mut self, budget: u32) {
        let outer = (self.weights, self.pool.only_uniform);
        if outer.1 {
            self.weights = Profile::Uniform.weights();
            self.pool.only_uniform = false;
        } else {
            for _ in 0..1 + self.c.below(3) {
                self.uniform_root();
            }
            self.weights = UNIFORM;
            self.pool.only_uniform = true;
        }
        self.region(budget / 2);
        (self.weights, self.pool.only_uniform) = outer;
    }

    /// Uniform values of any age are read at the start of an arm, and new ones made of them: an arm whose lanes wait needs
    /// the old ones while the other makes new ones.
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

    /// A value that is uniform by its nature.
    fn uniform_root(&mut self) {
        let def: Option<Def> = match self.c.below(8) {
            0 => {
                let x = self.value(1);
                let op = if self.c.chance(128) { IntrinsicOp::VoteAny } else { IntrinsicOp::VoteAll };
                self.b.intrinsic(op, 1, 1, &[x], [])
            }
            1 => {
                let x = self.value(1);
                let mask = self.b.intrinsic(IntrinsicOp::Ballot, 4, 32, &[x], []);
                let component = self.c.below(2) as u8;
                mask.map(|mask| self.b.channel(mask, component))
            }
            2 | 3 => {
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
