//! Conversions between widths and between integers and floats.

use super::Scalar;
use crate::ir3::{Attrs, Condition, Mods, Opcode, RegClass, Round, Src, Type};
use crate::nir::Op;
use crate::select::SelectError;

use Opcode::*;

/// 2^-14 as a float of 32 bits: the smallest normal half.
const LEAST_NORMAL_HALF: u32 = 0x3880_0000;

impl Scalar<'_, '_> {
    pub(super) fn convert_op(&mut self) -> Result<bool, SelectError> {
        use Op::*;
        let (from, to) = (self.bits(0), self.dst_bits());
        Ok(match self.op() {
            I2i8 | I2i16 | I2i32 => {
                let x = self.signed(0);
                let x = self.narrow_or_widen(x, true, to);
                self.masked_result(x)
            }
            U2u8 | U2u16 | U2u32 => {
                let x = self.src(0);
                let x = self.narrow_or_widen(x, false, to);
                self.masked_result(x)
            }
            B2i8 | B2i16 | B2i32 => {
                let x = self.bool_src(0);
                let x = self.narrow_or_widen(x, false, to);
                self.masked_result(x)
            }
            B2i1 => {
                let x = self.bool_src(0);
                self.result(x)
            }
            I2i1 | U2u1 => {
                let x = self.src(0);
                let bool_half = self.ctx.target.bools_are_half();
                let x = self.ctx.resize(x, bool_half);
                let x = self.ctx.bin(AndB, x, Src::immediate(1, bool_half));
                self.result(x)
            }
            B2b1 => {
                let x = self.bool_src(0);
                self.result(x)
            }
            B2b8 | B2b16 | B2b32 => {
                let holds = self.bool_src(0);
                self.bool_result(holds)
            }
            I2f16 | I2f32 => {
                let x = self.signed(0);
                let ty = if x.class.half { Type::S16 } else { Type::S32 };
                self.float_from(ty, to, x)
            }
            U2f16 | U2f32 | B2f16 | B2f32 => {
                let is_bool = matches!(self.op(), B2f16 | B2f32);
                let x = if is_bool { self.bool_src(0) } else { self.src(0) };
                let ty = if x.class.half { Type::U16 } else { Type::U32 };
                self.float_from(ty, to, x)
            }
            F2f16 | F2f32 | F2f16Rtne | F2f16Rtz => {
                let x = self.src(0);
                if from == to {
                    // Not a move: every NaN becomes the canonical NaN.
                    let x = self.ctx.bin(MaxF, x, x);
                    return Ok(self.result(x));
                }
                let round = match self.op() {
                    F2f16Rtne => Round::Even,
                    F2f16Rtz => Round::Default,
                    _ => self.ctx.conversion_rounding(to),
                };
                let x = self.ctx.convert_rounded(float_type(from), float_type(to), round, x);
                self.result(x)
            }
            F2i16 | F2i32 => {
                let x = self.src(0);
                let ty = if to == 16 { Type::S16 } else { Type::S32 };
                self.converted(float_type(from), ty, x)
            }
            F2u16 | F2u32 => {
                let x = self.src(0);
                let ty = if to == 16 { Type::U16 } else { Type::U32 };
                self.converted(float_type(from), ty, x)
            }
            F2i8 | F2u8 => {
                let x = self.src(0);
                // For a float outside of the range these are the low bits of the conversion to 16 bits.
                let ty = if self.op() == F2i8 { Type::S16 } else { Type::U16 };
                let x = self.ctx.convert_src(float_type(from), ty, x);
                self.masked_result(x)
            }
            F2i1 | F2u1 => return Err(self.ctx.unsupported("a float to an integer of one bit")),
            Fquantize2f16 if from == 32 => {
                let x = self.src(0);
                let rounded = self.ctx.convert_rounded(Type::F32, Type::F16, Round::Even, x);
                let back = self.ctx.convert_src(Type::F16, Type::F32, rounded);
                // Magnitudes below the smallest normal half become zeros with their signs.
                let least = self.ctx.immediate(LEAST_NORMAL_HALF, false);
                let is_small = self.ctx.compare_src(CmpsF, Condition::Lt, x.with_mods(Mods::ABS), least);
                let sign = self.ctx.immediate(1 << 31, false);
                let zero = self.ctx.bin(AndB, x, sign);
                let x = self.ctx.select(is_small, zero, back);
                self.result(x)
            }
            UnpackHalf2x16SplitX | UnpackHalf2x16SplitY => {
                let x = self.word_half(UnpackHalf2x16SplitY);
                self.converted(Type::F16, Type::F32, x)
            }
            Unpack32_2x16SplitX | Unpack32_2x16SplitY => {
                let x = self.word_half(Unpack32_2x16SplitY);
                self.result(x)
            }
            Pack32_2x16Split => {
                let (low, high) = (self.src(0), self.src(1));
                let x = self.ctx.pack_halves(low, high);
                self.result(x)
            }
            Pack32_4x8Split => {
                let bytes = [0, 1, 2, 3].map(|index| self.src(index));
                let x = self.ctx.pack_bytes(bytes);
                self.result(x)
            }
            _ => false,
        })
    }

    /// The low half of the source, or its high half for the operation `high`.
    fn word_half(&mut self, high: Op) -> Src {
        let x = self.src(0);
        let x = if self.op() == high { self.ctx.bin(ShrB, x, Src::immediate(16, false)) } else { x };
        self.ctx.convert_src(Type::U32, Type::U16, x)
    }

    fn converted(&mut self, from: Type, to: Type, x: Src) -> bool {
        let x = self.ctx.convert_src(from, to, x);
        self.result(x)
    }

    /// Selects a plain conversion to a float of `to` bits.
    fn float_from(&mut self, from: Type, to: u8, x: Src) -> bool {
        let x = self.ctx.convert_rounded(from, float_type(to), self.ctx.conversion_rounding(to), x);
        self.result(x)
    }

    /// A signed integer in its register: 8 bits are sign-extended to 16, 1 bit to the register.
    pub(super) fn signed(&mut self, index: usize) -> Src {
        let x = self.src(index);
        match self.bits(index) {
            1 => self.ctx.negate(x),
            8 => self.ctx.sign_extend_8(x),
            _ => x,
        }
    }

    /// A bool of any width as a 1-bit bool.
    pub(super) fn bool_src(&mut self, index: usize) -> Src {
        let x = self.src(index);
        if self.bits(index) == 1 {
            return x;
        }
        self.ctx.compare_src(CmpsS, Condition::Ne, x, Src::immediate(0, x.class.half))
    }

    /// Converts an integer to the register class of `to` bits.
    fn narrow_or_widen(&mut self, x: Src, signed: bool, to: u8) -> Src {
        match (x.class.half, self.ctx.is_half(to)) {
            (true, false) if signed => self.ctx.convert_src(Type::S16, Type::S32, x),
            (_, half) => self.ctx.resize(x, half),
        }
    }
}

fn float_type(bits: u8) -> Type {
    if bits == 16 { Type::F16 } else { Type::F32 }
}

impl crate::select::context::Context<'_> {
    /// Converts with a rounding mode.
    pub(super) fn convert_rounded(&mut self, from: Type, to: Type, round: Round, src: Src) -> Src {
        let class = RegClass::general(to.is_half());
        let value = self.builder().define(Mov, class, 1, &[src], Attrs::Move { src: from, dst: to, round });
        self.src(value)
    }

    /// The rounding of a plain conversion to a float of `bits` bits: the machine's, which is toward zero, unless the
    /// header of the shader requires another.
    fn conversion_rounding(&self, bits: u8) -> Round {
        if self.controls.rounds_to_even(bits) { Round::Even } else { Round::Default }
    }

    /// Packs two half registers into a full one.
    pub(super) fn pack_halves(&mut self, low: Src, high: Src) -> Src {
        let low = self.widened(low);
        let high = self.widened(high);
        let high = self.bin(ShlB, high, Src::immediate(16, false));
        self.bin(OrB, low, high)
    }

    /// Packs four bytes in half registers into a full one.
    pub(super) fn pack_bytes(&mut self, bytes: [Src; 4]) -> Src {
        let [low, high] = [[bytes[0], bytes[1]], [bytes[2], bytes[3]]].map(|[low, high]| {
            let high = self.bin(ShlB, high, Src::immediate(8, true));
            self.bin(OrB, low, high)
        });
        self.pack_halves(low, high)
    }
}
