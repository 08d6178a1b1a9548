//! Chains of operations of which each has the next as its only use: patterns that folding, propagation and selection
//! combine.
//!
//! Drawn from the table of operations, two that some rule is about are rarely neighbours: most of the table is rare
//! operations. So the chains of programs of all operations are drawn by kinds of operations, each of which passes treat
//! alike, and a value is mostly read as itself: a conversion that rounds, and a product before it, are neighbours in
//! one of a few chains.

use super::config::CONFIG;
use ir3_compiler::nir::{AluSrc, BaseType, Op, Operand};
use smallvec::SmallVec;

use super::Generator;
use super::choices::Choices;
use super::operations::source;

use Op::*;

/// Kinds of operations.
const KINDS: &[&[Op]] = &[
    &[Fadd, Fsub, Fmul, Ffma],
    &[Fneg, Fabs, Fsat],
    &[Fmin, Fmax],
    &[Flt, Fge, Feq, Fneu],
    &[Ffloor, Fceil, Ftrunc, FroundEven, Ffract, Fsign],
    &[Frcp, Frsq, Fsqrt, Fexp2, Flog2],
    &[F2f16, F2f16Rtne, F2f16Rtz, F2f32],
    &[F2i8, F2i16, F2i32, F2u8, F2u16, F2u32],
    &[Iadd, Iadd, Isub, Imul, Iadd3],
    &[UaddSat, IaddSat, UsubSat, IsubSat],
    &[Ineg, Iabs, Inot],
    &[Iand, Ior, Ixor],
    &[Ishl, Ishr, Ushr],
    &[Imin, Imax, Umin, Umax],
    &[Imul24, Umul24, Imad24Ir3, UmulLow, ImadshMix16, UmulHigh, ImulHigh],
    &[Ilt, Ige, Ult, Uge, Ieq, Ine],
    &[I2i8, I2i16, I2i32, I2i64, U2u8, U2u16, U2u32, U2u64],
    &[I2f16, I2f32, U2f16, U2f32],
    &[B2i8, B2i16, B2i32, B2i64, B2f16, B2f32],
    &[ExtractU8, ExtractI8, ExtractU16, ExtractI16, Ubfe, Ibfe, Bfi, Bfm],
    &[BitCount, BitfieldReverse, FindLsb, UfindMsb, IfindMsb],
    &[Pack32_2x16Split, Pack64_2x32Split, Unpack32_2x16SplitX, Unpack32_2x16SplitY],
    &[Unpack64_2x32SplitX, Unpack64_2x32SplitY],
    &[Bcsel],
];

impl<C: Choices> Generator<'_, C> {
    /// A chain. Any operation that selection accepts may be in it, and conversions often are.
    pub(super) fn chain(&mut self) {
        if self.weights.operation != 0 && self.c.chance(CONFIG.chain_of_kinds) {
            return self.chain_of_kinds();
        }
        let any = self.value(32);
        let (mut def, mut bits) = match self.c.pick(&[32, 32, 16, 8]) {
            32 => (any, 32),
            16 => (self.b.alu(U2u16, &[any]), 16),
            bits => (self.b.alu(U2u8, &[any]), bits),
        };
        for _ in 0..2 + self.c.below(3) {
            let list = self.drawn_operations();
            let converts = self.c.chance(CONFIG.converting_chain);
            // One of the table that reads a scalar of this width, from a random place on.
            let start = self.c.below(list.len());
            let fits = |&&(op, width): &&(Op, u8)| {
                let info = op.info();
                let is_unary = info.inputs.len() == 1 && info.output.ty.size != 0;
                width == bits && info.output.components <= 1 && takes(&info.inputs[0], bits) && (is_unary || !converts)
            };
            let Some(&(op, _)) = list[start..].iter().chain(&list[..start]).find(fits) else { break };
            let mut srcs = SmallVec::<[AluSrc; 4]>::new();
            let place = self.c.below(op.info().inputs.len());
            for (i, input) in op.info().inputs.iter().enumerate() {
                let width = input.ty.width_or(bits);
                let is_here = width == bits && input.components <= 1 && (i == place || i == 0 && srcs.is_empty());
                if is_here && !srcs.iter().any(|src| src.def == def) {
                    srcs.push(AluSrc::scalar(def, 0));
                    continue;
                }
                match self.operand(width, input.components.max(1)) {
                    Some(src) => srcs.push(src),
                    None => srcs.push(AluSrc::scalar(self.value(width), 0)),
                }
            }
            def = self.b.alu_swizzled(op, 1, &srcs);
            bits = self.b.function().defs[def].bit_size;
        }
        self.define_seen(def, 256);
    }

    /// A chain by kinds of operations, of scalars or vectors.
    fn chain_of_kinds(&mut self) {
        let components = if self.c.chance(CONFIG.scalar_chain) { 1 } else { 2 + self.c.below(3) as u8 };
        let mut bits = self.c.pick(&[32, 32, 32, 16, 16, 8, 64, 1]);
        let mut src = self.any_operand(BaseType::Uint, bits, components);
        let mut base = None;
        for _ in 0..2 + self.c.below(3) {
            // Rarely, the bits of a float are read as an integer, or the other way round.
            let read_as = if self.c.chance(CONFIG.chain_as_itself) { base } else { None };
            let Some((op, place)) = self.next_of_kind(read_as, bits) else { break };
            let mut srcs = SmallVec::<[AluSrc; 4]>::new();
            for (i, input) in op.info().inputs.iter().enumerate() {
                let width = input.ty.width_or(bits_of_unsized(op, place, bits));
                srcs.push(if i == place { src } else { self.any_operand(input.ty.base, width, components) });
            }
            let def = self.b.alu_swizzled(op, components, &srcs);
            if self.c.chance(CONFIG.chain_with_reader) {
                // It has another reader.
                self.define(def);
            }
            (src, bits) = (source(def, components), self.b.function().defs[def].bit_size);
            base = Some(op.info().output.ty.base);
        }
        self.define_seen(src.def, 256);
    }

    /// An operation that selection accepts of a random kind, rarely of all, and its operand that takes a value of this
    /// type and width.
    fn next_of_kind(&mut self, base: Option<BaseType>, bits: u8) -> Option<(Op, usize)> {
        let list = self.drawn_operations();
        if self.c.chance(CONFIG.chain_of_any) {
            let (op, width) = self.c.pick(list);
            let place = self.c.below(op.info().inputs.len());
            let is_read_as = base
                .is_none_or(|base| (base == BaseType::Float) == (op.info().inputs[place].ty.base == BaseType::Float));
            let fits = op.info().is_per_component() && width == bits_of_unsized(op, place, bits);
            if is_read_as && fits && takes(&op.info().inputs[place], bits) {
                return Some((op, place));
            }
        }
        let start = self.c.below(KINDS.len());
        for kind in KINDS[start..].iter().chain(&KINDS[..start]) {
            let mut fitting = SmallVec::<[(Op, usize); 16]>::new();
            for &op in *kind {
                for (place, input) in op.info().inputs.iter().enumerate() {
                    let is_float = |base: BaseType| base == BaseType::Float;
                    let is_read_as = base.is_none_or(|base| is_float(base) == is_float(input.ty.base));
                    let width = bits_of_unsized(op, place, bits);
                    if is_read_as && takes(input, bits) && list.contains(&(op, width)) {
                        fitting.push((op, place));
                    }
                }
            }
            if !fitting.is_empty() {
                return Some(self.c.pick(&fitting));
            }
        }
        None
    }
}

/// True if an operand can be a scalar of this width.
fn takes(input: &Operand, bits: u8) -> bool {
    input.components <= 1 && [0, bits].contains(&input.ty.size)
}

/// The width of an operation's operands without a width of their own, where operand `place` has `bits`: its width in
/// the list of operations.
fn bits_of_unsized(op: Op, place: usize, bits: u8) -> u8 {
    match op.info().inputs[place].ty.size {
        0 => bits,
        _ => 32,
    }
}
