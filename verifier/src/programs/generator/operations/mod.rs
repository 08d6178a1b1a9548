//! Every operation that selection accepts, at every width, with random indices.
//!
//! The other profiles have lists of what shaders use most. This one draws from the tables: arithmetic from nir's table of
//! operations, as far as selection accepts them ([`accepted`](super::accepted)), and each family of intrinsics with all its indices (base,
//! component, mask, access, descriptor set), offsets that are constant or computed, and all widths. A mistake of a pass that only
//! a rare form shows is found by the program that has this form.
//!
//! Programs stay such that runs of them have a meaning: memory that starts undefined is written first, values of other lanes are
//! read where all lanes are active, and a buffer that an access calls reorderable is never written.

mod images;
mod inputs;
mod lanes;
mod memory;
mod textures;

use ir3_compiler::nir::{Access, Def, Index, IntrinsicOp, Op};

use super::Generator;
use super::accepted::operations;
use super::choices::Choices;

pub(super) use images::Image;

/// Component counts of operations; vectors of 8 and 16 are rare in shaders, and split by every pass.
const COMPONENTS: &[u8] = &[1, 1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 8, 16];

/// The widths of components in memory.
const MEMORY_BITS: &[u8] = &[32, 32, 32, 16, 64, 8];

/// The first descriptor that is only read: an access of it may be reordered with any other.
const READ_ONLY: u64 = 4;

impl<C: Choices> Generator<'_, C> {
    /// An operation of any kind.
    pub(super) fn operation(&mut self) {
        match self.c.below(32) {
            0..=13 => self.any_arithmetic(),
            14..=19 => self.any_memory(),
            20 | 21 => self.any_image(),
            22..=24 => self.any_texture(),
            25..=27 => self.any_lanes(),
            28 => self.any_input(),
            29 | 30 => self.any_array(),
            _ => self.any_barrier(),
        }
    }

    fn any_arithmetic(&mut self) {
        let (op, bits) = self.c.pick(operations(&self.target));
        let components = self.c.pick(COMPONENTS);
        if self.alu(op, bits, components).is_none() {
            self.alu(Op::Mov, 32, components);
        }
    }

    /// True where all lanes of the wave execute the same instructions, and none has ended.
    fn is_convergent(&self) -> bool {
        self.b.depth() == 0 && !self.killed
    }

    /// A vector of a width, from the pool or made of scalars of it.
    fn any_vector(&mut self, bits: u8, components: u8) -> Def {
        if components > 1
            && self.c.chance(100)
            && let Some(vector) = self.pool.vector(self.c, Some(bits))
            && vector.components == components
        {
            return vector.def;
        }
        let scalars: Vec<Def> = (0..components).map(|_| self.value(bits)).collect();
        self.b.vec(&scalars)
    }

    /// An offset below a power of two: a constant, or computed.
    fn any_offset(&mut self, limit: u64) -> Def {
        if self.c.chance(110) {
            let at = self.c.below(limit as usize) as u64;
            return self.b.constant(32, at);
        }
        let value = self.value(32);
        let mask = self.b.constant(32, limit - 1);
        self.b.alu(Op::Iand, &[value, mask])
    }

    /// A small number that is constant, or the same in all lanes, or differs between them.
    fn any_number(&mut self, limit: u64) -> Def {
        match self.c.below(4) {
            0 | 1 => {
                let number = self.c.below(limit as usize) as u64;
                self.b.constant(32, number)
            }
            2 => {
                let zero = self.b.constant(32, 0);
                let base = [Index::Base(4 * self.c.below(32) as i32)];
                let word = self.b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], base);
                let mask = self.b.constant(32, limit - 1);
                self.b.alu(Op::Iand, &[word.unwrap_or(zero), mask])
            }
            _ => self.any_offset(limit),
        }
    }

    /// A descriptor, bound or bindless, from number `first` on, and true if its number is not constant.
    fn any_descriptor(&mut self, first: u64, can_vary: bool) -> (Def, bool) {
        let varies = can_vary && self.c.chance(60);
        let mut index = if varies {
            self.any_number(2)
        } else {
            let number = self.c.below(2) as u64;
            self.b.constant(32, number)
        };
        if first != 0 {
            let first = self.b.constant(32, first);
            index = match self.b.function().as_const_scalar(index) {
                Some(number) => {
                    let number = number + self.b.function().as_const_scalar(first).unwrap_or(0);
                    self.b.constant(32, number)
                }
                None => self.b.alu(Op::Iadd, &[index, first]),
            };
        }
        if self.features.ubos && self.c.chance(100) {
            let set = Index::DescSet(self.c.below(5) as u32);
            if let Some(handle) = self.b.intrinsic(IntrinsicOp::BindlessResourceIr3, 1, 32, &[index], [set]) {
                return (handle, varies);
            }
        }
        (index, varies)
    }

    /// The qualifiers of an access whose descriptor may vary.
    fn any_access(&mut self, varies: bool) -> Access {
        let mut access = Access::empty();
        access.set(Access::NON_UNIFORM, varies);
        access.set(Access::COHERENT, self.c.chance(60));
        access.set(Access::VOLATILE, self.c.chance(30));
        access
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Features, Profile, from_seed};
    use super::*;
    use ir3_compiler::nir::InstrData;
    use ir3_compiler::target::Target;
    use rustc_hash::FxHashSet;

    /// One GPU of each kind.
    const GPUS: [&str; 8] = ["a306", "a420", "a540", "a618", "a630", "a660", "a730", "a750"];

    #[test]
    fn selection_accepts_every_program() {
        for gpu in GPUS {
            let target = Target::by_name(gpu).expect("a GPU");
            for seed in 0..60 {
                let shader = from_seed(seed, Profile::Operations, Features::of(&target)).shader;
                if let Err(error) = ir3_compiler::select::run(&shader, &target) {
                    panic!("{gpu}, seed {seed}: {error}");
                }
            }
        }
    }

    #[test]
    fn every_accepted_operation_is_generated() {
        let mut missing: FxHashSet<(Op, u8)> =
            operations(&Target::by_name("a660").expect("a GPU")).iter().copied().collect();
        assert!(missing.len() > 500, "{}", missing.len());
        for seed in 0..3000 {
            let function = from_seed(seed, Profile::Operations, Features::ALL).shader.entry;
            for (_, instr) in function.instrs_in_order() {
                if let InstrData::Alu(alu) = &function.instrs[instr] {
                    let bits = alu.op.info().width_source().map_or(32, |i| function.defs[alu.srcs[i].def].bit_size);
                    missing.remove(&(alu.op, bits));
                }
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
    }
}
