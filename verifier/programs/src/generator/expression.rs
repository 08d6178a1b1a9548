//! Arithmetic: one instruction at a time, by class of operation.

use super::config::CONFIG;
use ir3_compiler::nir::{AluSrc, Def, Op};
use smallvec::SmallVec;

use super::Generator;
use super::accepted::part_bits;
use super::choices::Choices;

use Op::*;

const INT: &[Op] =
    &[Iadd, Iadd, Iadd, Isub, Isub, Imul, Iand, Ior, Ixor, Inot, Ineg, Iabs, Imin, Imax, Umin, Umax, Ishl, Ishr, Ushr];
const INT64: &[Op] =
    &[Iadd, Iadd, Iadd, Isub, Isub, Iand, Ior, Ixor, Inot, Ineg, Ishl, Ishr, Ushr, Imin, Imax, Umin, Umax, Imul];
const INT8: &[Op] = &[Iadd, Isub, Iand, Ior, Ixor, Inot, Imin, Imax, Umin, Umax];
const FLOAT: &[Op] = &[
    Fadd, Fadd, Fadd, Fsub, Fsub, Fmul, Fmul, Fmul, Ffma, Ffma, Fmin, Fmax, Fneg, Fabs, Fsat, Ffloor, Fceil, Ftrunc,
    FroundEven, Ffract, Fsign,
];
const TRANSCENDENTAL: &[Op] = &[Frcp, Frsq, Fsqrt, Fexp2, Flog2, Fsin, Fcos];
const COMPARE_INT: &[Op] = &[Ilt, Ige, Ieq, Ine, Ult, Uge];
const COMPARE_FLOAT: &[Op] = &[Flt, Fge, Feq, Fneu];
const BOOLEAN: &[Op] = &[Iand, Iand, Ior, Ior, Inot, Inot, Ixor];
const BITS: &[Op] = &[
    BitfieldReverse,
    BitCount,
    UfindMsb,
    IfindMsb,
    FindLsb,
    UsubSat,
    UaddSat,
    ImadshMix16,
    Imad24Ir3,
    Imul24,
    UmulLow,
    UmulHigh,
    ImulHigh,
    UaddCarry,
    UsubBorrow,
    Iadd3,
    IcselEqz,
    Iadd64Split2Lo,
    Iadd64Split2Hi,
    Iadd64Split3Lo,
    Iadd64Split3Hi,
    Iadd64Split4Lo,
    Iadd64Split4Hi,
];
const DIVIDE: &[Op] = &[Udiv, Idiv, Umod, Imod, Irem];
/// Conversions: operation and width of the source.
pub(super) const CONVERT: &[(Op, u8)] = &[
    (B2i32, 1),
    (B2f32, 1),
    (B2i16, 1),
    (I2f32, 32),
    (U2f32, 32),
    (F2i32, 32),
    (F2u32, 32),
    (I2i16, 32),
    (U2u16, 32),
    (I2i32, 16),
    (U2u32, 16),
    (F2f16, 32),
    (F2f32, 16),
    (I2f16, 32),
    (U2f16, 16),
    (I2f32, 16),
    (F2i16, 16),
    (F2u32, 16),
    (U2u8, 32),
    (U2u32, 8),
    (I2i32, 8),
    (U2u8, 16),
    (I2i16, 8),
    (Unpack32_2x16SplitX, 32),
    (Unpack32_2x16SplitY, 32),
];
const CONVERT64: &[(Op, u8)] =
    &[(I2i64, 32), (U2u64, 32), (Unpack64_2x32SplitX, 64), (Unpack64_2x32SplitY, 64), (I2i32, 64), (B2i64, 1)];

impl<C: Choices> Generator<'_, C> {
    /// Appends an operation whose unsized operands have `bits`, with sources from the pool; `None` if the pool lacks a
    /// width.
    pub(super) fn alu(&mut self, op: Op, bits: u8, components: u8) -> Option<Def> {
        let info = op.info();
        let components = if info.output.components == 0 { components } else { info.output.components };
        let mut srcs = SmallVec::<[AluSrc; 4]>::new();
        for (i, input) in info.inputs.iter().enumerate() {
            let width = input.ty.width_or(bits);
            let wanted = info.source_components(i, components);
            srcs.push(match self.weights.operation {
                0 => self.operand(width, wanted)?,
                _ if i == 1 && part_bits(op).is_some() => self.any_part(op, width),
                _ => self.any_operand(input.ty.base, width, wanted),
            });
        }
        let mut def = self.b.alu_swizzled(op, components, &srcs);
        if self.weights.operation != 0 {
            def = self.any_result(def, info.output.ty.base);
        }
        self.define(def);
        Some(def)
    }

    /// A source: from the pool, or sometimes a constant.
    pub(super) fn operand(&mut self, bits: u8, components: u8) -> Option<AluSrc> {
        if bits != 1 && self.c.chance(CONFIG.constant_operand) {
            return Some(AluSrc::scalar(self.some_constant(bits), 0));
        }
        if let Some(src) = self.pool.source(self.c, bits, components) {
            return Some(src);
        }
        (bits != 1).then(|| AluSrc::scalar(self.some_constant(bits), 0))
    }

    /// A constant that is interesting for its width.
    pub(super) fn some_constant(&mut self, bits: u8) -> Def {
        let value = match self.c.below(8) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 | 4 => self.c.below(64) as u64,
            5 => match bits {
                16 => u64::from(half::f16::from_f32(self.small_float()).to_bits()),
                _ => u64::from(self.small_float().to_bits()),
            },
            6 => 1u64 << (self.c.byte() & (bits.max(8) - 1)),
            // Around the limits of immediates of all kinds: signed and not, of 8 to 16 bits.
            7 if self.c.chance(CONFIG.constant_beyond_immediates) => {
                let end = 1u64 << (7 + self.c.below(10));
                let value = (end + self.c.below(3) as u64).wrapping_sub(1);
                if self.c.even() { value } else { value.wrapping_neg() }
            }
            _ if bits == 64 => u64::from(self.c.u32()) << 32 | u64::from(self.c.u32()),
            _ => u64::from(self.c.u32()),
        };
        self.b.constant(bits, value)
    }

    pub(super) fn small_float(&mut self) -> f32 {
        f32::from(i16::from(self.c.byte()) - 128) * 0.125
    }

    fn components(&mut self) -> u8 {
        if self.c.chance(u32::from(self.weights.vector) * 2) { 2 + self.c.below(3) as u8 } else { 1 }
    }

    pub(super) fn int(&mut self) -> Option<Def> {
        let op = self.c.pick(INT);
        let components = self.components();
        self.alu(op, 32, components)
    }

    pub(super) fn float(&mut self, bits: u8) -> Option<Def> {
        let op = if self.c.chance(CONFIG.transcendental) { self.c.pick(TRANSCENDENTAL) } else { self.c.pick(FLOAT) };
        let components = self.components();
        self.alu(op, bits, components)
    }

    pub(super) fn half_op(&mut self) -> Option<Def> {
        if self.c.chance(CONFIG.half_integer) {
            let op = self.c.pick(INT);
            let components = self.components();
            self.alu(op, 16, components)
        } else {
            self.float(16)
        }
    }

    pub(super) fn int8(&mut self) -> Option<Def> {
        let op = self.c.pick(INT8);
        self.alu(op, 8, 1)
    }

    pub(super) fn int64(&mut self) -> Option<Def> {
        match self.c.below(10) {
            0 | 1 => self.alu(Pack64_2x32Split, 32, 1),
            2 | 3 => {
                let (op, bits) = self.c.pick(CONVERT64);
                self.alu(op, bits, 1)
            }
            4 => {
                let op = self.c.pick(COMPARE_INT);
                self.alu(op, 64, 1)
            }
            5 => self.alu(Bcsel, 64, 1),
            _ => {
                let op = self.c.pick(INT64);
                self.alu(op, 64, 1)
            }
        }
    }

    pub(super) fn compare(&mut self) -> Option<Def> {
        let bits = if self.c.chance(u32::from(self.weights.half) * 2) { 16 } else { 32 };
        let op =
            if self.c.chance(CONFIG.float_comparison) { self.c.pick(COMPARE_FLOAT) } else { self.c.pick(COMPARE_INT) };
        self.alu(op, bits, 1)
    }

    pub(super) fn boolean(&mut self) -> Option<Def> {
        let op = self.c.pick(BOOLEAN);
        self.alu(op, 1, 1)
    }

    pub(super) fn select(&mut self) -> Option<Def> {
        let bits = match self.c.below(8) {
            0 => 1,
            1 | 2 => 16,
            _ => 32,
        };
        let components = self.components();
        self.alu(Bcsel, bits, components)
    }

    pub(super) fn convert(&mut self) -> Option<Def> {
        let (op, bits) = self.c.pick(CONVERT);
        let components = self.components();
        self.alu(op, bits, components)
    }

    pub(super) fn bit_operation(&mut self) -> Option<Def> {
        let op = self.c.pick(BITS);
        self.alu(op, 32, 1)
    }

    pub(super) fn divide(&mut self) -> Option<Def> {
        let op = self.c.pick(DIVIDE);
        self.alu(op, 32, 1)
    }

    /// Builds a vector of scalars, extracts a component, or shuffles a vector.
    pub(super) fn vector_operation(&mut self) -> Option<Def> {
        let bits = if self.c.chance(u32::from(self.weights.half)) { 16 } else { 32 };
        match self.c.below(4) {
            0 | 1 => {
                let n = 2 + self.c.below(3) as u8;
                self.alu(Op::vec(n)?, bits, n)
            }
            2 => {
                let v = self.pool.vector(self.c, None)?;
                let component = self.c.below(usize::from(v.components)) as u8;
                let def = self.b.channel(v.def, component);
                self.define(def);
                Some(def)
            }
            _ => {
                let n = 1 + self.c.below(4) as u8;
                self.alu(Mov, bits, n)
            }
        }
    }

    /// Mixes the given unread values into one 32-bit value.
    pub(super) fn fold(&mut self, values: &[(Def, u8, u8)]) -> Option<Def> {
        let mut acc: Option<Def> = None;
        for &(def, bits, components) in values {
            for component in 0..components {
                let src = AluSrc::scalar(def, component);
                let word = match bits {
                    1 => self.b.alu_swizzled(B2i32, 1, &[src]),
                    8 | 16 => self.b.alu_swizzled(U2u32, 1, &[src]),
                    32 if acc.is_some() => {
                        let op = if component & 1 == 0 { Iadd } else { Ixor };
                        acc = acc.map(|a| self.b.alu_swizzled(op, 1, &[AluSrc::scalar(a, 0), src]));
                        continue;
                    }
                    32 => self.b.channel(def, component),
                    _ => {
                        let lo = self.b.alu_swizzled(Unpack64_2x32SplitX, 1, &[src]);
                        let hi = self.b.alu_swizzled(Unpack64_2x32SplitY, 1, &[src]);
                        self.b.alu(Ixor, &[lo, hi])
                    }
                };
                acc = Some(match acc {
                    None => word,
                    Some(a) => self.b.alu(Iadd, &[a, word]),
                });
            }
        }
        acc
    }
}
