//! Vectors that live long and are read in parts.
//!
//! A load or a sample defines several registers at once. Where registers are short, such a vector is spilled as a
//! whole, some of its parts are read from memory, and others never; its parts are joined in phis with parts of other
//! vectors, which may be in memory, too. So many vectors are loaded first. Between the loads and the reads are branches
//! and loops, past which no scheduler moves a load.

use super::config::CONFIG;
use ir3_compiler::nir::{Access, AluType, BaseType, Def, Index, IntrinsicOp, Stage};
use ir3_compiler::target::Generation;

use super::Generator;
use super::choices::Choices;
use super::control::MAX_DEPTH;
use super::operations::READ_ONLY;
use super::shapes::Value;

impl<C: Choices> Generator<'_, C> {
    /// Loads vectors and reads parts of them later, in several blocks.
    pub(super) fn hoard(&mut self) {
        if self.b.depth() + 1 >= MAX_DEPTH || self.pool.only_uniform {
            return;
        }
        // Before a5xx there is no memory to spill to.
        let count =
            self.c.pick(if self.target.generation < Generation::A5xx { &[3, 4, 6, 8] } else { &[4, 8, 16, 32] });
        let mut kept: Vec<Value> = (0..count).map(|_| self.loaded()).collect();
        for _ in 0..2 + self.c.below(4) {
            for _ in 0..self.c.below(kept.len().min(8)) {
                let part = self.part_of(&kept, None);
                self.define_seen(part, 256);
            }
            match self.c.below(6) {
                0 if self.weights.loops != 0 => self.repeat(60),
                1 => {
                    let bits = kept[self.c.below(kept.len())].1;
                    let parts: Vec<Def> = (0..2 + self.c.below(3)).map(|_| self.part_of(&kept, Some(bits))).collect();
                    let vector = self.b.vec(&parts);
                    self.read_vector((vector, bits, parts.len() as u8));
                }
                _ => self.joined_parts(&kept),
            }
            // Values that are dropped have had their last use.
            for _ in 0..self.c.below(kept.len().div_ceil(2)) {
                let at = self.c.below(kept.len());
                kept.swap_remove(at);
            }
        }
        if self.c.even() {
            kept.reverse();
        }
        for vector in kept {
            match self.c.even() {
                true => self.read_vector(vector),
                false => {
                    let part = self.part_of(&[vector], None);
                    self.define_seen(part, 256);
                }
            }
        }
    }

    /// A vector that one instruction defines.
    fn loaded(&mut self) -> Value {
        let bits = if self.c.chance(CONFIG.hoard_halves) && self.features.storage_16bit { 16 } else { 32 };
        let count = 2 + self.c.below(3) as u8;
        let has_buffers = self.features.compute && self.b.shader().stage != Stage::Vertex;
        if has_buffers && self.c.chance(CONFIG.hoard_buffer) {
            let (_, bytes, element) = self.ssbo_offsets(bits);
            let buffer = self.b.constant(32, READ_ONLY as u64);
            let access = if self.c.even() { Access::REORDERABLE } else { Access::empty() };
            let indices = [Index::AlignMul(u32::from(bits) / 8), Index::Access(access)];
            if let Some(def) =
                self.b.intrinsic(IntrinsicOp::LoadSsboIr3, count, bits, &[buffer, bytes, element], indices)
            {
                return (def, bits, count);
            }
        }
        let coordinates = [self.value(32), self.value(32)];
        let coordinates = self.b.vec(&coordinates);
        let (level, texture) = (self.value(32), self.c.below(4) as u32);
        let ty = AluType::new(BaseType::Float, bits);
        (self.sampled_at(ty, coordinates, level, texture), bits, 4)
    }

    /// A component of one of these vectors, of a width if it is given; a new value if none has this width.
    fn part_of(&mut self, vectors: &[Value], bits: Option<u8>) -> Def {
        let start = self.c.below(vectors.len().max(1));
        let mut turned = vectors[start..].iter().chain(&vectors[..start]);
        let Some(&(def, _, count)) = turned.find(|vector| bits.is_none_or(|bits| bits == vector.1)) else {
            return self.value(bits.unwrap_or(32));
        };
        let component = self.c.below(count.into()) as u8;
        self.b.channel(def, component)
    }

    /// A branch whose arms read parts, and after which parts of one arm or the other go on.
    fn joined_parts(&mut self, vectors: &[Value]) {
        let phis: Vec<u8> = (0..1 + self.c.below(4)).map(|_| vectors[self.c.below(vectors.len())].1).collect();
        let condition = self.condition();
        let parts = |this: &mut Self| this.parts_or_changed(vectors, &phis);
        let ends = self.arms(condition, parts, parts);
        for (at, &bits) in phis.iter().enumerate() {
            let phi = self.joined(bits, ends.each_ref().map(|(block, values)| (*block, values[at])));
            let seen = self.c.pick(&[0, 256]);
            self.define_seen(phi, seen);
        }
    }

    /// A value of each of these widths: parts, or results of operations on them.
    fn parts_or_changed(&mut self, vectors: &[Value], widths: &[u8]) -> Vec<Def> {
        let mut value = |bits: u8| {
            let part = self.part_of(vectors, Some(bits));
            if self.c.chance(CONFIG.hoard_changed) { self.changed(part, bits) } else { part }
        };
        widths.iter().map(|&bits| value(bits)).collect()
    }
}
