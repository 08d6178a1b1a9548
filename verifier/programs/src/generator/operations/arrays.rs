//! Local arrays, of any width and number of components: they stay in registers, which are read and written relative to
//! an address.

use super::super::config::CONFIG;
use ir3_compiler::nir::{Def, Index, Indices, IntrinsicOp, Op};

use super::super::Generator;
use super::super::choices::Choices;
use super::memory::mask;

impl<C: Choices> Generator<'_, C> {
    /// Declares a local array of `length` elements; with 0, a single value.
    pub(in crate::generator) fn declare_array(&mut self, components: u8, length: u32, bits: u8) -> Option<Def> {
        let indices = [
            Index::NumComponents(components),
            Index::NumArrayElems(length),
            Index::BitSize(bits),
            Index::Divergent(true),
        ];
        self.b.intrinsic(IntrinsicOp::DeclReg, 1, 32, &[], indices)
    }

    /// A local array that is written relative to an address only, and read at the same place when much has come
    /// between.
    fn relative_array(&mut self) {
        let (bits, length) = (self.c.pick(&[32, 32, 16]), self.c.pick(&[2, 4, 8]));
        let Some(array) = self.declare_array(1, length, bits) else { return };
        let number = self.value(32);
        let mask = self.b.constant(32, u64::from(length) - 1);
        let at = self.b.alu(Op::Iand, &[number, mask]);
        let value = self.any_scalar(bits);
        self.b.intrinsic(IntrinsicOp::StoreRegIndirect, 1, bits, &[value, array, at], [Index::WriteMask(1)]);
        for _ in 0..1 + self.c.below(3) {
            if self.c.chance(CONFIG.crowd_before_relative) { self.crowd() } else { self.chain() }
        }
        if let Some(def) = self.b.intrinsic(IntrinsicOp::LoadRegIndirect, 1, bits, &[array, at], []) {
            self.define_seen(def, 256);
        }
    }

    /// A value that is stored in a local array, and read from there, or another element: so that anything may read an
    /// element.
    pub(in crate::generator) fn through_array(&mut self, value: Def, bits: u8) -> Def {
        let length = self.c.pick(&[0, 2, 4]);
        let Some(array) = self.declare_array(1, length, bits) else { return value };
        let here = self.c.below(length.max(1) as usize) as i32;
        for element in 0..length.max(1) as i32 {
            let other = self.pool.scalar(self.c, bits).filter(|_| element != here).unwrap_or(value);
            let indices = [Index::Base(element), Index::WriteMask(1)];
            self.b.intrinsic(IntrinsicOp::StoreReg, 1, bits, &[other, array], indices);
        }
        let number = self.pool.scalar(self.c, 32).filter(|_| length != 0 && self.c.even());
        let read = match number {
            Some(number) => {
                let mask = self.b.constant(32, u64::from(length) - 1);
                let at = self.b.alu(Op::Iand, &[number, mask]);
                self.b.intrinsic(IntrinsicOp::LoadRegIndirect, 1, bits, &[array, at], [])
            }
            None => self.b.intrinsic(IntrinsicOp::LoadReg, 1, bits, &[array], [Index::Base(here)]),
        };
        read.unwrap_or(value)
    }

    /// A local array of any width and number of components, written first; loads and stores with a base, an index or
    /// both, masks, and the modifiers of floats.
    pub(super) fn any_array(&mut self) {
        if self.c.chance(CONFIG.relative_array) {
            return self.relative_array();
        }
        let bits = self.c.pick(&[32, 32, 16, 64, 8, 1]);
        let n = 1 + self.c.below(4) as u8;
        let length: u32 = self.c.pick(&[1, 2, 4, 8]);
        let elements = if length == 1 { 0 } else { length };
        let Some(array) = self.declare_array(n, elements, bits) else { return };
        for element in 0..length as i32 {
            let value = self.any_vector(bits, n);
            let indices = [Index::Base(element), Index::WriteMask(mask(n))];
            self.b.intrinsic(IntrinsicOp::StoreReg, n, bits, &[value, array], indices);
        }
        let is_float = matches!(bits, 16 | 32);
        for _ in 0..1 + self.c.below(4) {
            let indirect = length > 1 && self.c.chance(CONFIG.indirect_access);
            let base = self.c.below(length as usize) as i32;
            let left = (length as u64 - base as u64).next_power_of_two();
            // An element from the base on, so that none is outside of the array.
            let base = if indirect && left as u32 + base as u32 > length { 0 } else { base };
            let left = if base == 0 { u64::from(length) } else { left };
            if self.c.chance(CONFIG.array_of_table_store) {
                // A uniform value may be in a register of the wave.
                let value = match n == 1 && bits == 32 && self.c.chance(CONFIG.uniform_element) {
                    true => self.fresh_uniform(),
                    false => self.any_vector(bits, n),
                };
                let write = Index::WriteMask(self.any_mask(n));
                let sat = Index::LegacyFsat(is_float && self.c.chance(CONFIG.array_modifier));
                if indirect {
                    let at = self.any_offset(left);
                    let indices = [Index::Base(base), write, sat];
                    self.b.intrinsic(IntrinsicOp::StoreRegIndirect, n, bits, &[value, array, at], indices);
                } else {
                    self.b.intrinsic(IntrinsicOp::StoreReg, n, bits, &[value, array], [Index::Base(base), write, sat]);
                }
            }
            let mut indices = Indices::from([Index::Base(base)]);
            indices.set(Index::LegacyFabs(is_float && self.c.chance(CONFIG.array_modifier)));
            indices.set(Index::LegacyFneg(is_float && self.c.chance(CONFIG.array_modifier)));
            let def = if indirect {
                let at = self.any_offset(left);
                self.b.intrinsic(IntrinsicOp::LoadRegIndirect, n, bits, &[array, at], indices)
            } else {
                self.b.intrinsic(IntrinsicOp::LoadReg, n, bits, &[array], indices)
            };
            if let Some(def) = def.filter(|_| n == 1 && bits == 32 && self.c.chance(CONFIG.element_with_other)) {
                let other = self.any_scalar(32);
                let op = self.c.pick(&[Op::Ilt, Op::Uge, Op::Flt, Op::Ieq]);
                let condition = self.b.alu(op, &[def, other]);
                self.branch_on(condition, 20);
            }
            self.result(def);
        }
    }
}
