//! Shapes that are rare where operations are drawn one at a time, and that passes after selection have to get right.
//!
//! - *Crowds*: vectors and scalars of both widths that are all live over an operation which has needs of its own: a
//!   result that is written before operands are read, one in the registers of an operand that lives on, a vector. Where
//!   registers are short, the file is full there.
//! - *Nests*: branches in branches, each level with values that all lanes share and that only this level reads, and
//!   jumps out of them; or with stores only.
//! - *Narrow chains*: sums of 8 and 16 bits, whose only reader converts them; narrow values that are undefined in some
//!   lanes.
//! - Operations across lanes in a row, the last of which depends on the active lanes; votes at the end of a program,
//!   after the last sample.
//! - *Kernels*: guards, and accesses at strides (`kernel.rs`).
//! - Branches that leave quads whole, so that samples and derivatives have a meaning in one arm.

use super::config::CONFIG;
use ir3_compiler::nir::{AluType, AtomicOp, Def, Index, IntrinsicOp, Op, Stage, TexOp, TexSrcKind};
use ir3_compiler::target::Generation;

use super::Generator;
use super::accepted::operations;
use super::choices::Choices;
use super::control::MAX_DEPTH;

/// A value: its bits and components.
pub(super) type Value = (Def, u8, u8);

const NARROW: &[Op] =
    &[Op::Iadd, Op::Iadd, Op::Isub, Op::Ixor, Op::Iand, Op::Ior, Op::Ushr, Op::Ishl, Op::Inot, Op::Imax];
const WIDENING: &[Op] = &[Op::U2u32, Op::U2u32, Op::I2i32, Op::U2f32, Op::I2f32, Op::U2u16, Op::I2i16];

impl<C: Choices> Generator<'_, C> {
    /// One of these shapes.
    pub(super) fn shape(&mut self) {
        match self.c.below(8) {
            0 if self.weights.operation != 0 => self.hoard(),
            1 if self.weights.operation != 0 && self.features.ubos && self.c.even() => self.kernel(),
            0..=2 => self.crowd(),
            3 if self.weights.operation != 0 && self.features.compute && self.c.even() => self.overwritten(),
            3 => self.moved(),
            4 | 5 => {
                let depth = self.c.below(3);
                if self.weights.operation != 0 && self.features.compute && self.c.chance(CONFIG.quiet_nest) {
                    self.quiet_nest(1 + depth);
                } else {
                    self.nest(depth);
                }
            }
            6 if self.weights.operation != 0 && self.c.chance(CONFIG.partly_known) => self.partly_known(),
            6 => self.narrow_chain(),
            _ => {
                self.subgroup();
                self.census();
            }
        }
    }

    /// A new value of a width.
    fn fresh(&mut self, bits: u8) -> Def {
        let value = self.value(bits);
        self.changed(value, bits)
    }

    /// A value and a constant in an operation.
    pub(super) fn changed(&mut self, value: Def, bits: u8) -> Def {
        let (x, y) = (value, self.some_constant(bits));
        let op = self.c.pick(&[Op::Iadd, Op::Ixor, Op::Imul, Op::Isub]);
        self.b.alu(op, &[x, y])
    }

    pub(super) fn crowd(&mut self) {
        let halves = self.c.pick(&[0, 90, 160, 250]);
        let width = |this: &mut Self| if this.c.chance(halves) { 16 } else { 32 };
        let mut singles: Vec<Value> = Vec::new();
        for _ in 0..1 + self.c.below(8) {
            let bits = width(self);
            singles.push((self.fresh(bits), bits, 1));
        }
        let mut vectors: Vec<Value> = Vec::new();
        let most = self.c.pick(&[3, 3, 6]);
        for _ in 0..1 + self.c.below(most) {
            let (bits, count) = (width(self), 2 + self.c.below(3));
            let known: Vec<Def> = singles.iter().filter(|single| single.1 == bits).map(|single| single.0).collect();
            // Vectors that overlap have their common components in one of them only.
            let mut part = || {
                if !known.is_empty() && self.c.chance(CONFIG.crowd_of_known) {
                    self.c.pick(&known)
                } else {
                    self.fresh(bits)
                }
            };
            let parts: Vec<Def> = (0..count).map(|_| part()).collect();
            vectors.push((self.b.vec(&parts), bits, count as u8));
        }
        if self.weights.operation != 0 && self.c.chance(CONFIG.crowd_with_texel) {
            self.texel_in_crowd(&mut singles, &mut vectors);
        }
        // Stores stay in order: values that are stored before and after are live in between.
        for bits in [16, 32] {
            let known: Vec<Def> = singles.iter().filter(|single| single.1 == bits).map(|single| single.0).collect();
            for parts in known.chunks(4) {
                if !self.features.compute {
                    break;
                }
                let vector = self.b.vec(parts);
                self.read_vector((vector, bits, parts.len() as u8));
            }
        }
        for &vector in &vectors {
            if self.c.chance(CONFIG.crowd_read) {
                self.read_vector(vector);
            }
        }
        let mut rest: Vec<Value> = Vec::new();
        for _ in 0..1 + self.c.below(3) {
            self.in_crowd(&mut singles, &mut rest);
        }
        for &vector in vectors.iter().rev() {
            if self.c.chance(CONFIG.crowd_read_at_end) {
                self.read_vector(vector);
            }
        }
        // The results first: all others are added to them.
        rest.extend(singles);
        if let Some(sum) = self.fold(&rest) {
            self.define_seen(sum, 256);
        }
    }

    /// A vector that is in registers as a whole, and some of its components, which operations read while the vector
    /// lives on.
    fn texel_in_crowd(&mut self, singles: &mut Vec<Value>, vectors: &mut Vec<Value>) {
        let x = self.value(32);
        let texel = self.texel_from(x);
        vectors.push((texel, 32, 4));
        for _ in 0..1 + self.c.below(2) {
            let component = self.c.below(4) as u8;
            singles.push((self.b.channel(texel, component), 32, 1));
        }
    }

    /// Reads a vector as a whole.
    pub(super) fn read_vector(&mut self, (def, bits, count): Value) {
        if self.features.compute && (bits == 32 || self.features.storage_16bit) {
            return self.store_ssbo_value(def, count, bits);
        }
        // Half coordinates are for programs of all operations.
        if !matches!(count, 2 | 3) || bits == 16 && self.weights.operation == 0 {
            return;
        }
        let (level, texture) = (self.value(bits), self.c.below(4) as u32);
        let def = self.sampled_at(AluType::FLOAT32, def, level, texture);
        self.define(def);
    }

    /// Four components of a sample of any texture, at a coordinate and another value.
    pub(super) fn texel_from(&mut self, x: Def) -> Def {
        let place = [x, self.value(32)];
        let (place, level, texture) = (self.b.vec(&place), self.value(32), self.c.below(4) as u32);
        self.sampled_at(AluType::FLOAT32, place, level, texture)
    }

    /// Four components of a sample at a level.
    pub(super) fn sampled_at(&mut self, ty: AluType, coordinates: Def, level: Def, texture: u32) -> Def {
        self.b.tex(TexOp::Txl, ty, 4, |tex| {
            tex.srcs.extend([(TexSrcKind::Coord, coordinates), (TexSrcKind::Lod, level)]);
            (tex.texture_index, tex.sampler_index) = (texture, texture);
        })
    }

    /// An operation in a crowd, which reads one of its values: for the last time, or not.
    fn in_crowd(&mut self, singles: &mut Vec<Value>, results: &mut Vec<Value>) {
        if singles.is_empty() {
            return;
        }
        let at = self.c.below(singles.len());
        let (def, bits, _) = if self.c.even() { singles.swap_remove(at) } else { singles[at] };
        let convergent = self.b.shader().stage == Stage::Fragment && self.quads == 0 && !self.killed;
        let result = match self.c.below(8) {
            0 | 1 if self.features.compute && bits == 32 => return self.swaps(def, singles, results),
            2 if self.features.compute && bits == 32 => self.atomic(def),
            3 | 4 if self.features.lanes => self.reduction_of(def, bits),
            3..=5 if convergent => {
                let op = self.c.pick(&[IntrinsicOp::DdxFine, IntrinsicOp::DdyFine]);
                self.b.intrinsic(op, 1, bits, &[def], [])
            }
            5 if self.features.lanes => {
                let result = self.b.intrinsic(IntrinsicOp::ReadFirstInvocation, 1, bits, &[def], []);
                // A value that is defined at once may take the register of the operand.
                let next = if self.weights.operation != 0 { self.fresh(bits) } else { self.some_constant(bits) };
                results.push((next, bits, 1));
                result
            }
            // A result in the register of an operand, which may be a part of a vector.
            6 if self.features.lanes && self.weights.operation != 0 && self.target.generation >= Generation::A6xx => {
                let value = self.value(bits);
                let size = Index::ClusterSize(self.c.pick(&[2, 4, 8]));
                self.b.intrinsic(IntrinsicOp::BrcstActiveIr3, 1, bits, &[value, def], [size])
            }
            _ => {
                let coordinates = [self.lane.unwrap_or(def), def].map(|def| self.as_word(def));
                let texel = self.b.vec(&coordinates);
                let texture = self.c.below(4) as u32;
                let level = self.value(32);
                let texel = self.sampled_at(AluType::FLOAT32, texel, level, texture);
                results.push((texel, 32, 4));
                None
            }
        };
        results.extend(result.map(|def| (def, bits, 1)));
    }

    /// A value in 32 bits.
    fn as_word(&mut self, def: Def) -> Def {
        match self.b.function().defs[def].bit_size {
            32 => def,
            _ => self.b.alu(Op::U2u32, &[def]),
        }
    }

    /// Two compare-and-swaps with the same operands: these live on, and each result needs registers of its own.
    fn swaps(&mut self, data: Def, singles: &[Value], results: &mut Vec<Value>) {
        let others: Vec<Def> = singles.iter().filter(|single| single.1 == 32).map(|single| single.0).collect();
        let swap = if others.is_empty() { self.value(32) } else { self.c.pick(&others) };
        for _ in 0..1 + self.c.below(3) {
            let (buffer, bytes, element) = self.ssbo_offsets(32);
            let indices = [Index::Access(ir3_compiler::nir::Access::COHERENT), Index::AtomicOp(AtomicOp::Cmpxchg)];
            let srcs = [buffer, bytes, data, swap, element];
            let def = self.b.intrinsic(IntrinsicOp::SsboAtomicSwapIr3, 1, 32, &srcs, indices);
            results.extend(def.map(|def| (def, 32, 1)));
        }
    }

    fn atomic(&mut self, data: Def) -> Option<Def> {
        let (buffer, bytes, element) = self.ssbo_offsets(32);
        let op = self.c.pick(super::effects::ATOMICS);
        let indices = [Index::Access(ir3_compiler::nir::Access::COHERENT), Index::AtomicOp(op)];
        self.b.intrinsic(IntrinsicOp::SsboAtomicIr3, 1, 32, &[buffer, bytes, data, element], indices)
    }

    /// Values that are moved to shared registers, or read by another unit, for the last time, and new values in the
    /// next block: these may take the registers before they have been read.
    fn moved(&mut self) {
        let mut results: Vec<Value> = Vec::new();
        let condition = self.condition();
        for _ in 0..1 + self.c.below(3) {
            let value = self.fresh(32);
            let def = match self.c.below(4) {
                0 => {
                    let op = self.c.pick(&[Op::Frcp, Op::Fexp2, Op::Fsqrt]);
                    self.b.alu(op, &[value])
                }
                _ if self.features.lanes => {
                    self.b.intrinsic(IntrinsicOp::ReadFirstInvocation, 1, 32, &[value], []).unwrap_or(value)
                }
                _ => self.b.alu(Op::Flog2, &[value]),
            };
            results.push((def, 32, 1));
        }
        if self.b.depth() >= MAX_DEPTH {
            return;
        }
        let outer = self.value(32);
        let phi = self.one_arm(condition, outer, |this| {
            let made: Vec<Def> = (0..1 + this.c.below(4)).map(|_| this.fresh(32)).collect();
            made[1..].iter().fold(made[0], |sum, &value| this.b.alu(Op::Ixor, &[sum, value]))
        });
        results.insert(0, (phi, 32, 1));
        if let Some(sum) = self.fold(&results) {
            self.define_seen(sum, 256);
        }
    }

    /// A branch with shared values that one arm reads, while the other arm has branches of its own, makes new ones, and
    /// may leave the loop.
    pub(super) fn nest(&mut self, depth: usize) {
        if self.b.depth() + depth + 1 >= MAX_DEPTH || self.pool.only_uniform {
            return;
        }
        let own: Vec<Def> = (0..1 + self.c.below(3)).map(|_| self.fresh_uniform()).collect();
        let condition = self.condition();
        self.divergence += 1;
        self.quads += 1;
        self.b.begin_if(condition);
        let mark = self.pool.mark();
        if depth > 0 {
            self.nest(depth - 1);
        }
        let made: Vec<Def> = (0..1 + self.c.below(3)).map(|_| self.fresh_uniform()).collect();
        let sum = self.mixed(&made);
        let jumps = if self.loops.is_empty() { 3 } else { self.c.below(4) };
        let then = self.end_of_arm(sum, jumps < 2);
        self.pool.release(mark);
        self.b.begin_else();
        let sum = self.mixed(&own);
        let otherwise = self.end_of_arm(sum, jumps == 2);
        self.pool.release(mark);
        self.b.end_if();
        self.divergence -= 1;
        self.quads -= 1;
        let phi = self.b.phi(1, 32);
        for (block, value) in then.into_iter().chain(otherwise) {
            self.b.set_phi_src(phi, block, value);
        }
        self.define_seen(phi, 256);
        if self.c.chance(CONFIG.mixed_after_nest) {
            let sum = self.mixed(&own);
            self.define_seen(sum, 256);
        }
    }

    /// Branches in branches that only store: no value leaves an arm, so the blocks where they end are empty. Conditions
    /// are the same in all lanes on some levels, and not on others, so lanes wait at some of these blocks only.
    fn quiet_nest(&mut self, depth: usize) {
        if depth == 0 || self.b.depth() + 1 >= MAX_DEPTH || self.pool.only_uniform {
            let value = self.value(32);
            return self.add_to_memory(value);
        }
        let condition = if self.c.even() {
            let (x, y) = (self.fresh_uniform(), self.fresh_uniform());
            self.b.alu(Op::Ult, &[x, y])
        } else {
            self.condition()
        };
        let mark = self.pool.mark();
        self.divergence += 1;
        self.quads += 1;
        self.b.begin_if(condition);
        self.quiet_nest(depth - 1);
        self.pool.release(mark);
        self.b.begin_else();
        if self.c.chance(CONFIG.deeper_quiet_nest) {
            self.quiet_nest(depth - 1);
            self.pool.release(mark);
        }
        self.b.end_if();
        self.divergence -= 1;
        self.quads -= 1;
    }

    /// Ends an arm with a jump, or with a source for the phi after it.
    fn end_of_arm(&mut self, sum: Def, jumps: bool) -> Option<(ir3_compiler::nir::Block, Def)> {
        if !jumps {
            return Some((self.b.current_block(), sum));
        }
        if self.features.compute && self.c.even() {
            self.add_to_memory(sum);
        }
        if self.c.chance(CONFIG.arm_leaves) {
            self.leave_loop(Some(sum))
        } else {
            self.continue_loop()
        }
        None
    }

    /// A new value that is the same in all lanes, by its definition.
    pub(super) fn fresh_uniform(&mut self) -> Def {
        let zero = self.b.constant(32, 0);
        let word = |this: &mut Self| {
            let base = Index::Base(this.c.below(128) as i32);
            this.b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], [base]).unwrap_or(zero)
        };
        let kind = self.c.below(4);
        if kind < 2 && self.features.lanes {
            let value = self.value(32);
            return self.b.intrinsic(IntrinsicOp::ReadFirstInvocation, 1, 32, &[value], []).unwrap_or(value);
        }
        let known = if kind == 2 { self.pool.uniform(self.c) } else { None };
        let x = known.unwrap_or_else(|| word(self));
        let y = word(self);
        self.b.alu(if kind == 2 { Op::Iadd } else { Op::Ixor }, &[x, y])
    }

    /// A value of each lane that depends on all of these.
    fn mixed(&mut self, values: &[Def]) -> Def {
        let any = self.value(32);
        values.iter().fold(any, |sum, &value| self.b.alu(Op::Iadd, &[sum, value]))
    }

    /// Operations of 8 or 16 bits, whose only reader converts the result.
    pub(super) fn narrow_chain(&mut self) {
        let any = self.value(32);
        let bits = self.c.pick(&[8, 8, 16]);
        let narrow = if bits == 8 { Op::U2u8 } else { Op::U2u16 };
        let mut def = self.b.alu(narrow, &[any]);
        for _ in 0..1 + self.c.below(3) {
            let op = self.c.pick(NARROW);
            if !operations(&self.target).contains(&(op, bits)) {
                continue;
            }
            let mut srcs = vec![def];
            if op.info().inputs.len() > 1 {
                let width = if matches!(op, Op::Ushr | Op::Ishl) { 32 } else { bits };
                let other = self.value(32);
                srcs.push(match self.c.even() {
                    true => self.some_constant(width),
                    false if width == 32 => other,
                    false => self.b.alu(narrow, &[other]),
                });
            }
            def = self.b.alu(op, &srcs);
        }
        let op = self.c.pick(WIDENING);
        if operations(&self.target).contains(&(op, bits)) && !(bits == 16 && matches!(op, Op::U2u16 | Op::I2i16)) {
            def = self.b.alu(op, &[def]);
        }
        self.define_seen(def, 256);
    }

    /// A narrow value that is undefined in some lanes, and a word of it: the bits beyond its width are known there,
    /// too.
    fn partly_known(&mut self) {
        let bits = self.c.pick(&[1, 8, 8]);
        let widening: &[Op] = match bits {
            1 => &[Op::B2i32, Op::B2f32],
            _ => &[Op::U2u32, Op::U2u32, Op::I2i32, Op::U2f32, Op::I2f32],
        };
        let condition = self.condition();
        let known = |this: &mut Self| {
            let word = this.value(32);
            if bits == 8 {
                return this.b.alu(Op::U2u8, &[word]);
            }
            let zero = this.b.constant(32, 0);
            this.b.alu(Op::Ine, &[word, zero])
        };
        let ends = self.arms(condition, known, |this| this.b.undef(1, bits));
        let value = self.joined(bits, ends);
        let op = self.c.pick(widening);
        if operations(&self.target).contains(&(op, bits)) {
            let word = self.b.alu(op, &[value]);
            self.define_seen(word, 256);
        }
    }

    /// Emits a cross-lane operation on a uniform value: its result depends on the active lanes only.
    pub(super) fn census(&mut self) {
        let one = self.b.constant(32, 1);
        let def = match self.c.below(3) {
            _ if !self.features.lanes => self.b.intrinsic(IntrinsicOp::ElectAnyIr3, 1, 1, &[], []),
            0 => {
                let indices = [Index::ReductionOp(Op::Iadd), Index::ClusterSize(0)];
                self.b.intrinsic(IntrinsicOp::Reduce, 1, 32, &[one], indices)
            }
            1 => self.b.intrinsic(IntrinsicOp::ExclusiveScan, 1, 32, &[one], [Index::ReductionOp(Op::Iadd)]),
            _ => {
                let all = self.b.constant(1, 1);
                self.b.intrinsic(IntrinsicOp::Ballot, 4, 32, &[all], [])
            }
        };
        self.result(def);
    }

    /// Votes at the end of a program, after all samples and derivatives: helper lanes take part in them.
    pub(super) fn last_votes(&mut self) {
        let fragment = self.b.shader().stage == Stage::Fragment;
        if self.c.exhausted()
            || !self.c.chance(if fragment { CONFIG.last_votes_of_fragment } else { CONFIG.last_votes })
        {
            return;
        }
        let condition = self.value(1);
        let op = if self.c.even() { IntrinsicOp::VoteAny } else { IntrinsicOp::VoteAll };
        let Some(vote) = self.b.intrinsic(op, 1, 1, &[condition], []) else { return };
        if self.c.chance(CONFIG.last_vote_alone) {
            return self.define(vote);
        }
        // One arm has nothing that needs helper lanes, and takes time; the other arm may need them.
        let mut outer = self.value(32);
        let branch = if self.c.chance(CONFIG.branch_on_last_vote) { vote } else { self.condition() };
        self.b.begin_if(branch);
        let changed = self.fresh(32);
        if self.features.compute {
            self.store_ssbo_value(changed, 1, 32);
        }
        let then = self.b.current_block();
        self.b.begin_else();
        if self.c.chance(CONFIG.vote_in_last_arm) {
            let mark = self.pool.mark();
            let other = self.value(1);
            if let Some(vote) = self.b.intrinsic(op, 1, 1, &[other], []) {
                let number = self.b.alu(Op::B2i32, &[vote]);
                outer = self.b.alu(Op::Iadd, &[number, outer]);
            }
            self.pool.release(mark);
        }
        let otherwise = self.b.current_block();
        self.b.end_if();
        let phi = self.b.phi(1, 32);
        self.b.set_phi_src(phi, then, changed);
        self.b.set_phi_src(phi, otherwise, outer);
        self.define_seen(phi, 256);
    }

    /// A condition that is the same in all lanes of a quad, if all of them are active.
    pub(super) fn quad_condition(&mut self) -> Option<Def> {
        let is_whole = self.b.shader().stage == Stage::Fragment && self.quads == 0 && !self.killed;
        if self.weights.operation == 0 || self.target.generation < Generation::A6xx || !is_whole {
            return None;
        }
        let value = self.value(32);
        let lane = self.c.below(4) as u64;
        let lane = self.b.constant(32, lane);
        let value = self.b.intrinsic(IntrinsicOp::QuadBroadcast, 1, 32, &[value, lane], [])?;
        let bit = 1 << self.c.below(6);
        let (bit, zero) = (self.b.constant(32, bit), self.b.constant(32, 0));
        let masked = self.b.alu(Op::Iand, &[value, bit]);
        Some(self.b.alu(Op::Ine, &[masked, zero]))
    }
}
