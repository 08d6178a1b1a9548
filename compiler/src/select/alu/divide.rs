//! Integer division by multiplication with a reciprocal; the machine has no division.
//!
//! 32 bits: a float reciprocal, scaled so that it is never too large, is refined by one Newton step in integers. The
//! resulting quotient is at most 2 too small, which two conditional corrections fix. Smaller widths are extended to 32
//! bits. A quotient by zero is zero.

use super::Scalar;
use crate::ir3::{Condition, Opcode, Round, Src, Type};
use crate::nir::Op;
use crate::select::context::Context;

use Opcode::*;

/// The largest float whose product with the rounded reciprocal of a number stays below 2^32 divided by that number.
const SCALE: f32 = 4_294_966_784.0;

impl Scalar<'_, '_> {
    pub(super) fn divide_op(&mut self, width: u8) -> bool {
        let signed = match self.op() {
            Op::Udiv | Op::Umod => false,
            Op::Idiv | Op::Irem | Op::Imod => true,
            _ => return false,
        };
        let [n, d] = [0, 1].map(|index| {
            let src = self.src(index);
            match (width, signed) {
                (32, _) => src,
                (_, false) => self.ctx.widened(src),
                (16, true) => self.ctx.convert_src(Type::S16, Type::S32, src),
                (_, true) => {
                    let src = self.ctx.sign_extend_8(src);
                    self.ctx.convert_src(Type::S16, Type::S32, src)
                }
            }
        });
        let result = match self.op() {
            Op::Udiv => self.ctx.divide(n, d, false),
            Op::Umod => self.ctx.divide(n, d, true),
            Op::Idiv => {
                let [a, b] = [n, d].map(|x| self.absolute(x));
                let quotient = self.ctx.divide(a, b, false);
                let signs = self.ctx.bin(XorB, n, d);
                self.negate_where_negative(signs, quotient)
            }
            _ => {
                let [a, b] = [n, d].map(|x| self.absolute(x));
                let remainder = self.ctx.divide(a, b, true);
                let remainder = self.negate_where_negative(n, remainder);
                if self.op() == Op::Imod { self.modulus(remainder, n, d) } else { remainder }
            }
        };
        // A zero divisor gives a defined 0.
        let zero = self.ctx.immediate(0, false);
        let result = self.ctx.select(d, result, zero);
        let result = if width == 32 { result } else { self.ctx.narrowed(result) };
        self.masked_result(result)
    }

    fn absolute(&mut self, x: Src) -> Src {
        self.ctx.un(AbsnegS, x.with_mods(crate::ir3::Mods::ABS))
    }

    fn negate_where_negative(&mut self, sign: Src, x: Src) -> Src {
        let negative = self.ctx.compare_src(CmpsS, Condition::Lt, sign, Src::immediate(0, false));
        let negated = self.ctx.negate(x);
        self.ctx.select(negative, negated, x)
    }

    /// A remainder has the sign of the dividend, a modulus that of the divisor.
    fn modulus(&mut self, remainder: Src, n: Src, d: Src) -> Src {
        let signs = self.ctx.bin(XorB, n, d);
        let differ = self.ctx.compare_src(CmpsS, Condition::Lt, signs, Src::immediate(0, false));
        let some = self.ctx.compare_src(CmpsS, Condition::Ne, remainder, Src::immediate(0, false));
        let adjust = self.ctx.bin(AndB, differ, some);
        let adjusted = self.ctx.bin(AddU, remainder, d);
        self.ctx.select(adjust, adjusted, remainder)
    }
}

impl Context<'_> {
    /// The quotient or the remainder of 32-bit unsigned integers; undefined for the divisor 0.
    fn divide(&mut self, n: Src, d: Src, remainder_wanted: bool) -> Src {
        // To nearest: the scale is chosen for that rounding.
        let float = self.convert_rounded(Type::U32, Type::F32, Round::Even, d);
        let reciprocal = self.un(Rcp, float);
        let scale = self.immediate(SCALE.to_bits(), false);
        let scaled = self.bin(MulF, reciprocal, scale);
        let estimate = self.convert_src(Type::F32, Type::U32, scaled);
        let minus_d = self.negate(d);
        let error = self.multiply(estimate, minus_d);
        let correction = self.multiply_high(estimate, error);
        let reciprocal = self.bin(AddU, estimate, correction);

        let mut quotient = self.multiply_high(n, reciprocal);
        let product = self.multiply(quotient, d);
        let mut remainder = self.bin(SubU, n, product);
        for _ in 0..2 {
            let too_small = self.compare_src(CmpsU, Condition::Ge, remainder, d);
            if !remainder_wanted {
                let next = self.bin(AddU, quotient, Src::immediate(1, false));
                quotient = self.select(too_small, next, quotient);
            }
            let less = self.bin(SubU, remainder, d);
            remainder = self.select(too_small, less, remainder);
        }
        if remainder_wanted { remainder } else { quotient }
    }
}
