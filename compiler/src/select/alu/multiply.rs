//! Integer products. The machine multiplies 16 bits (`mull.u`, `madsh.m16`) and 24 bits; 32-bit products are computed
//! from these.

use super::Scalar;
use crate::ir3::{Opcode, Src, Type};
use crate::nir::Op;
use crate::select::context::Context;

use Opcode::*;

impl Scalar<'_, '_> {
    pub(super) fn multiply_op(&mut self) -> bool {
        let half = self.ctx.is_half(self.dst_bits());
        let result = match self.op() {
            Op::Imul | Op::Amul if half => {
                let (a, b) = (self.src(0), self.src(1));
                self.ctx.bin(MulU24, a, b)
            }
            Op::Imul | Op::Amul | Op::Imul24Relaxed | Op::Umul24Relaxed => {
                let (a, b) = (self.src(0), self.src(1));
                self.ctx.multiply(a, b)
            }
            Op::Imad | Op::Umad24Relaxed => {
                let (a, b, c) = (self.src(0), self.src(1), self.src(2));
                let product = if half { self.ctx.bin(MulU24, a, b) } else { self.ctx.multiply(a, b) };
                self.ctx.bin(AddU, product, c)
            }
            Op::UmulLow | Op::Umul16x16 => {
                let (a, b) = (self.src(0), self.src(1));
                self.ctx.bin(MullU, a, b)
            }
            Op::Imul24 => {
                let (a, b) = (self.src(0), self.src(1));
                self.ctx.bin(MulS24, a, b)
            }
            Op::Umul24 => {
                let (a, b) = (self.src(0), self.src(1));
                self.ctx.bin(MulU24, a, b)
            }
            Op::ImadshMix16 => self.ternary(MadshM16),
            Op::Imad24Ir3 => self.ternary(MadS24),
            Op::Umad24 => self.ternary(MadU24),
            Op::Imul32x16 => {
                let (a, b) = (self.src(0), self.src(1));
                let up = self.ctx.bin(ShlB, b, Src::immediate(16, false));
                let b = self.ctx.bin(AshrB, up, Src::immediate(16, false));
                self.ctx.multiply(a, b)
            }
            Op::Umul32x16 => {
                let (a, b) = (self.src(0), self.src(1));
                let mask = self.ctx.immediate(0xffff, false);
                let b = self.ctx.bin(AndB, b, mask);
                self.ctx.multiply(a, b)
            }
            Op::UmulHigh if half => {
                let (a, b) = (self.src(0), self.src(1));
                let (a, b) = (self.ctx.widened(a), self.ctx.widened(b));
                let product = self.ctx.bin(MullU, a, b);
                let high = self.ctx.bin(ShrB, product, Src::immediate(16, false));
                self.ctx.narrowed(high)
            }
            Op::ImulHigh if half => {
                let (a, b) = (self.src(0), self.src(1));
                let a = self.ctx.convert_src(Type::S16, Type::S32, a);
                let b = self.ctx.convert_src(Type::S16, Type::S32, b);
                let product = self.ctx.bin(MulS24, a, b);
                let high = self.ctx.bin(ShrB, product, Src::immediate(16, false));
                self.ctx.narrowed(high)
            }
            Op::UmulHigh => {
                let (a, b) = (self.src(0), self.src(1));
                self.ctx.multiply_high(a, b)
            }
            Op::ImulHigh => {
                let (a, b) = (self.src(0), self.src(1));
                self.ctx.multiply_high_signed(a, b)
            }
            _ => return false,
        };
        self.result(result)
    }

    pub(super) fn ternary(&mut self, opcode: Opcode) -> Src {
        let (a, b, c) = (self.src(0), self.src(1), self.src(2));
        self.ctx.tri(opcode, a, b, c)
    }
}

impl Context<'_> {
    /// The low 32 bits of a product.
    pub(super) fn multiply(&mut self, a: Src, b: Src) -> Src {
        let low = self.bin(MullU, a, b);
        let middle = self.tri(MadshM16, a, b, low);
        self.tri(MadshM16, b, a, middle)
    }

    /// The high 32 bits of an unsigned product, from the four products of halves.
    pub(super) fn multiply_high(&mut self, a: Src, b: Src) -> Src {
        let sixteen = Src::immediate(16, false);
        let mask = self.immediate(0xffff, false);
        let a_high = self.bin(ShrB, a, sixteen);
        let b_high = self.bin(ShrB, b, sixteen);
        let low = self.bin(MullU, a, b);
        let cross = [self.bin(MullU, a, b_high), self.bin(MullU, a_high, b)];
        let mut high = self.bin(MullU, a_high, b_high);
        // Three 16-bit numbers: their sum does not overflow.
        let mut middle = self.bin(ShrB, low, sixteen);
        for product in cross {
            let low = self.bin(AndB, product, mask);
            middle = self.bin(AddU, middle, low);
            let carried = self.bin(ShrB, product, sixteen);
            high = self.bin(AddU, high, carried);
        }
        let carried = self.bin(ShrB, middle, sixteen);
        self.bin(AddU, high, carried)
    }

    /// The high 32 bits of a signed product: for a negative factor, the unsigned product is too large by 2^32 times the
    /// other.
    pub(super) fn multiply_high_signed(&mut self, a: Src, b: Src) -> Src {
        let mut high = self.multiply_high(a, b);
        for (factor, other) in [(a, b), (b, a)] {
            let sign = self.bin(AshrB, factor, Src::immediate(31, false));
            let excess = self.bin(AndB, sign, other);
            high = self.bin(SubU, high, excess);
        }
        high
    }
}
