//! Flushed denormals, as operations of the program: before an operation on floats, operands that are denormals become
//! zeros.
//!
//! A device without a mode that keeps denormals may flush the operands of any operation on floats, so the result has no
//! meaning where one is a denormal. In a program that flushes them itself it has one.

use super::insert::Inserter;
use ir3_compiler::nir::{Alu, AluSrc, BaseType, Block, Def, Function, Instr, InstrData, Op};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// Inserts the operations.
pub(super) fn flush(function: &mut Function) {
    let all: Vec<(Block, Instr)> = function.instrs_in_order().collect();
    let mut flushed: FxHashMap<(Block, Def), Def> = FxHashMap::default();
    for (block, instr) in all {
        let InstrData::Alu(alu) = &function.instrs[instr] else { continue };
        let info = alu.op.info();
        let floats = alu.srcs.iter().zip(info.inputs).enumerate();
        let floats = floats.filter(|(_, (_, input))| input.ty.base == BaseType::Float);
        let floats: SmallVec<[(usize, Def); 4]> = floats.map(|(at, (src, _))| (at, src.def)).collect();
        for (at, def) in floats {
            if !matches!(function.defs[def].bit_size, 16 | 32) {
                continue;
            }
            let new = match flushed.get(&(block, def)) {
                Some(&known) => known,
                None => {
                    let new = Inserter::before(function, block, instr).flushed(def);
                    flushed.insert((block, def), new);
                    new
                }
            };
            if let InstrData::Alu(alu) = &mut function.instrs[instr] {
                alu.srcs[at].def = new;
            }
        }
    }
}

impl Inserter<'_> {
    fn inexact(&mut self, op: Op, components: u8, bits: u8, srcs: &[Def]) -> Def {
        let mut swizzle = [0; 16];
        (0..components).for_each(|i| swizzle[usize::from(i)] = i);
        let srcs = srcs.iter().map(|&def| AluSrc { def, swizzle }).collect();
        self.insert_sized(components, bits, |def| {
            InstrData::Alu(Alu { op, exact: false, no_signed_wrap: false, no_unsigned_wrap: false, def, srcs })
        })
    }

    /// The value without denormals, all components.
    fn flushed(&mut self, value: Def) -> Def {
        let (components, bits) = (self.function.defs[value].num_components, self.function.defs[value].bit_size);
        let (magnitude, least) = if bits == 16 { (0x7fff, 0x0400) } else { (0x7fff_ffff, 0x0080_0000) };
        let mut constant = |value: u64| {
            self.insert_sized(components, bits, |def| InstrData::Const {
                def,
                values: smallvec![value; components.into()],
            })
        };
        let (magnitude, sign, least) = (constant(magnitude), constant(magnitude + 1), constant(least));
        let size = self.inexact(Op::Iand, components, bits, &[value, magnitude]);
        let is_small = self.inexact(Op::Ult, components, 1, &[size, least]);
        let zero = self.inexact(Op::Iand, components, bits, &[value, sign]);
        self.inexact(Op::Bcsel, components, bits, &[is_small, zero, value])
    }
}
