//! The meaning of the integer and bit operations, at any width, in any domain.
//!
//! Names and definitions are nir's where nir has the operation; where the languages differ (counts of leading zeros,
//! the half of a product), the definition names the language.

mod bits;

use crate::arithmetic::domain::Domain;
pub use bits::*;

/// Truncates or zero-extends a value of `from` bits to `to` bits.
#[inline(always)]
pub fn resize<D: Domain>(d: &mut D, from: u32, to: u32, a: D::V) -> D::V {
    if to >= from { d.zext(from, to, a) } else { d.extract(from, a, 0, to) }
}

/// Truncates or sign-extends a value of `from` bits to `to` bits.
#[inline(always)]
pub fn resize_signed<D: Domain>(d: &mut D, from: u32, to: u32, a: D::V) -> D::V {
    if to >= from { d.sext(from, to, a) } else { d.extract(from, a, 0, to) }
}

/// Two's complement negation.
#[inline(always)]
pub fn ineg<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let zero = d.constant(w, 0);
    d.sub(w, zero, a)
}

/// 1 where `a` is negative.
#[inline(always)]
pub fn is_negative<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let zero = d.constant(w, 0);
    d.slt(w, a, zero)
}

/// 1 where `a` is 0.
#[inline(always)]
pub fn is_zero<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let zero = d.constant(w, 0);
    d.eq(w, a, zero)
}

/// Absolute value; that of the smallest number is itself.
#[inline(always)]
pub fn iabs<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let negative = is_negative(d, w, a.clone());
    let opposite = ineg(d, w, a.clone());
    d.ite(w, negative, opposite, a)
}

/// -1, 0 or 1.
#[inline(always)]
pub fn isign<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let negative = is_negative(d, w, a.clone());
    let is_zero = is_zero(d, w, a);
    let (zero, one, minus) = (d.constant(w, 0), d.constant(w, 1), d.constant(w, u64::MAX));
    let other = d.ite(w, negative, minus, one);
    d.ite(w, is_zero, zero, other)
}

/// Signed minimum.
#[inline(always)]
pub fn imin<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let less = d.slt(w, a.clone(), b.clone());
    d.ite(w, less, a, b)
}

/// Signed maximum.
#[inline(always)]
pub fn imax<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let less = d.slt(w, a.clone(), b.clone());
    d.ite(w, less, b, a)
}

/// Unsigned minimum.
#[inline(always)]
pub fn umin<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let less = d.ult(w, a.clone(), b.clone());
    d.ite(w, less, a, b)
}

/// Unsigned maximum.
#[inline(always)]
pub fn umax<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let less = d.ult(w, a.clone(), b.clone());
    d.ite(w, less, b, a)
}

/// Not equal: one bit.
#[inline(always)]
pub fn ine<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let equal = d.eq(w, a, b);
    d.not(1, equal)
}

/// Signed greater or equal: one bit.
#[inline(always)]
pub fn ige<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let less = d.slt(w, a, b);
    d.not(1, less)
}

/// Unsigned greater or equal: one bit.
#[inline(always)]
pub fn uge<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let less = d.ult(w, a, b);
    d.not(1, less)
}

/// The smallest and the largest signed number.
#[inline(always)]
fn bounds<D: Domain>(d: &mut D, w: u32) -> (D::V, D::V) {
    (d.constant(w, 1 << (w - 1)), d.constant(w, (1 << (w - 1)) - 1))
}

/// Unsigned sum, saturated.
#[inline(always)]
pub fn uadd_sat<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let sum = d.add(w, a.clone(), b);
    let carry = d.ult(w, sum.clone(), a);
    let ones = d.constant(w, u64::MAX);
    d.ite(w, carry, ones, sum)
}

/// Unsigned difference, saturated to 0.
#[inline(always)]
pub fn usub_sat<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let borrow = d.ult(w, a.clone(), b.clone());
    let difference = d.sub(w, a, b);
    let zero = d.constant(w, 0);
    d.ite(w, borrow, zero, difference)
}

/// `result`, or, where the top bit of `overflow` is set, the bound in the direction of the overflow, which the sign of
/// the first operand `a` gives.
#[inline(always)]
fn clamp_overflow<D: Domain>(d: &mut D, w: u32, a: D::V, overflow: D::V, result: D::V) -> D::V {
    let overflow = is_negative(d, w, overflow);
    let negative = is_negative(d, w, a);
    let (low, high) = bounds(d, w);
    let bound = d.ite(w, negative, low, high);
    d.ite(w, overflow, bound, result)
}

/// Signed sum, saturated.
#[inline(always)]
pub fn iadd_sat<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let sum = d.add(w, a.clone(), b.clone());
    // The sum overflowed if its sign differs from that of both operands.
    let x = d.xor(w, a.clone(), sum.clone());
    let y = d.xor(w, b, sum.clone());
    let overflow = d.and(w, x, y);
    clamp_overflow(d, w, a, overflow, sum)
}

/// Signed difference, saturated.
#[inline(always)]
pub fn isub_sat<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let difference = d.sub(w, a.clone(), b.clone());
    let x = d.xor(w, a.clone(), b);
    let y = d.xor(w, a.clone(), difference.clone());
    let overflow = d.and(w, x, y);
    clamp_overflow(d, w, a, overflow, difference)
}

/// Distance of two signed numbers, unsigned.
#[inline(always)]
pub fn uabs_isub<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let less = d.slt(w, a.clone(), b.clone());
    let up = d.sub(w, b.clone(), a.clone());
    let down = d.sub(w, a, b);
    d.ite(w, less, up, down)
}

/// Distance of two unsigned numbers.
#[inline(always)]
pub fn uabs_usub<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let less = d.ult(w, a.clone(), b.clone());
    let up = d.sub(w, b.clone(), a.clone());
    let down = d.sub(w, a, b);
    d.ite(w, less, up, down)
}

/// 1 where the sum of two unsigned numbers has a carry; of the width of the operands.
#[inline(always)]
pub fn uadd_carry<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let sum = d.add(w, a.clone(), b);
    let carry = d.ult(w, sum, a);
    d.zext(1, w, carry)
}

/// 1 where the difference of two unsigned numbers has a borrow; of the width of the operands.
#[inline(always)]
pub fn usub_borrow<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let borrow = d.ult(w, a, b);
    d.zext(1, w, borrow)
}

/// Half of the sum, rounded down, without overflow.
#[inline(always)]
pub fn hadd<D: Domain>(d: &mut D, w: u32, sign: bool, a: D::V, b: D::V) -> D::V {
    let both = d.and(w, a.clone(), b.clone());
    let differ = d.xor(w, a, b);
    let differ = halve(d, w, sign, differ);
    d.add(w, both, differ)
}

/// Half of the sum, rounded up, without overflow.
#[inline(always)]
pub fn rhadd<D: Domain>(d: &mut D, w: u32, sign: bool, a: D::V, b: D::V) -> D::V {
    let either = d.or(w, a.clone(), b.clone());
    let differ = d.xor(w, a, b);
    let differ = halve(d, w, sign, differ);
    d.sub(w, either, differ)
}

#[inline(always)]
fn halve<D: Domain>(d: &mut D, w: u32, sign: bool, a: D::V) -> D::V {
    let one = d.constant(w, 1);
    if sign { d.ashr(w, a, one) } else { d.lshr(w, a, one) }
}

/// Unsigned quotient; 0 if the divisor is 0.
#[inline(always)]
pub fn udiv<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let by_zero = is_zero(d, w, b.clone());
    let quotient = d.udiv(w, a, b);
    let zero = d.constant(w, 0);
    d.ite(w, by_zero, zero, quotient)
}

/// Unsigned remainder; 0 if the divisor is 0.
#[inline(always)]
pub fn umod<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let by_zero = is_zero(d, w, b.clone());
    let remainder = d.urem(w, a, b);
    let zero = d.constant(w, 0);
    d.ite(w, by_zero, zero, remainder)
}

/// Signed quotient, towards zero; 0 if the divisor is 0. The smallest number divided by -1 is itself.
#[inline(always)]
pub fn idiv<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let signs = d.xor(w, a.clone(), b.clone());
    let negative = is_negative(d, w, signs);
    let (x, y) = (iabs(d, w, a), iabs(d, w, b));
    let quotient = udiv(d, w, x, y);
    let opposite = ineg(d, w, quotient.clone());
    d.ite(w, negative, opposite, quotient)
}

/// Signed remainder with the sign of the dividend; 0 if the divisor is 0.
#[inline(always)]
pub fn irem<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let negative = is_negative(d, w, a.clone());
    let (x, y) = (iabs(d, w, a), iabs(d, w, b));
    let remainder = umod(d, w, x, y);
    let opposite = ineg(d, w, remainder.clone());
    d.ite(w, negative, opposite, remainder)
}

/// Signed remainder with the sign of the divisor; 0 if the divisor is 0.
#[inline(always)]
pub fn imod<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let remainder = irem(d, w, a.clone(), b.clone());
    let exact = is_zero(d, w, remainder.clone());
    let signs = d.xor(w, a, b.clone());
    let differ = is_negative(d, w, signs);
    let exact = d.not(1, exact);
    let adjust = d.and(1, exact, differ);
    let adjusted = d.add(w, remainder.clone(), b);
    d.ite(w, adjust, adjusted, remainder)
}

/// Product of the low `n` bits, signed or unsigned.
#[inline(always)]
pub fn mul_low<D: Domain>(d: &mut D, w: u32, n: u32, sign: bool, a: D::V, b: D::V) -> D::V {
    let a = low(d, w, n, sign, a);
    let b = low(d, w, n, sign, b);
    d.mul(w, a, b)
}

/// Product of the low `n` bits, plus a third operand.
#[inline(always)]
pub fn mad_low<D: Domain>(d: &mut D, w: u32, n: u32, sign: bool, a: D::V, b: D::V, c: D::V) -> D::V {
    let product = mul_low(d, w, n, sign, a, b);
    d.add(w, product, c)
}

/// The low 16 bits of `a` times the high 16 bits of `b`, shifted left by 16, plus `c`: `madsh.m16` and nir's
/// `imadsh_mix16`. Only the low 16 bits of the product remain, so signs do not matter.
#[inline(always)]
pub fn madsh_mix<D: Domain>(d: &mut D, a: D::V, b: D::V, c: D::V) -> D::V {
    let a = d.extract(32, a, 0, 16);
    let b = d.extract(32, b, 16, 16);
    madsh(d, a, b, c)
}

/// The product of the low 16 bits of `a` and `b`, shifted left by 16, plus `c`: `madsh.u16`.
#[inline(always)]
pub fn madsh_low<D: Domain>(d: &mut D, a: D::V, b: D::V, c: D::V) -> D::V {
    let a = d.extract(32, a, 0, 16);
    let b = d.extract(32, b, 0, 16);
    madsh(d, a, b, c)
}

#[inline(always)]
fn madsh<D: Domain>(d: &mut D, a: D::V, b: D::V, c: D::V) -> D::V {
    let product = d.mul(16, a, b);
    let product = d.zext(16, 32, product);
    let sixteen = d.constant(32, 16);
    let shifted = d.shl(32, product, sixteen);
    d.add(32, shifted, c)
}

/// The sum of three numbers: nir's `iadd3`, and the result of `sad.s16` and `sad.s32` in the form that the compiler
/// emits.
#[inline(always)]
pub fn iadd3<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V, c: D::V) -> D::V {
    let sum = d.add(w, a, b);
    d.add(w, sum, c)
}

/// The sum of `c` and the distances between the bytes of `reference` that are not 0 and those of `a`.
#[inline(always)]
pub fn msad<D: Domain>(d: &mut D, reference: D::V, a: D::V, c: D::V) -> D::V {
    let mut sum = c;
    for byte in 0..4 {
        let x = d.extract(32, reference.clone(), byte * 8, 8);
        let y = d.extract(32, a.clone(), byte * 8, 8);
        let masked = is_zero(d, 8, x.clone());
        let distance = uabs_usub(d, 8, x, y);
        let zero = d.constant(8, 0);
        let term = d.ite(8, masked, zero, distance);
        let term = d.zext(8, 32, term);
        sum = d.add(32, sum, term);
    }
    sum
}

/// The sum of `c` and the products of the parts of `size` bits (8 or 16) of two words; clamped to 32 bits of the sum's
/// sign if `saturate`.
#[inline(always)]
pub fn dot<D: Domain>(d: &mut D, size: u32, signs: (bool, bool), saturate: bool, a: D::V, b: D::V, c: D::V) -> D::V {
    let sum_signed = signs.0 || signs.1;
    let extend = |d: &mut D, sign: bool, n: u32, v: D::V| if sign { d.sext(n, 64, v) } else { d.zext(n, 64, v) };
    let mut sum = extend(d, sum_signed, 32, c);
    for part in 0..32 / size {
        let x = d.extract(32, a.clone(), part * size, size);
        let y = d.extract(32, b.clone(), part * size, size);
        let (x, y) = (extend(d, signs.0, size, x), extend(d, signs.1, size, y));
        let product = d.mul(64, x, y);
        sum = d.add(64, sum, product);
    }
    if saturate {
        sum = if sum_signed {
            let (low, high) = (d.constant(64, i32::MIN as i64 as u64), d.constant(64, i32::MAX as u64));
            let clamped = imax(d, 64, sum, low);
            imin(d, 64, clamped, high)
        } else {
            let high = d.constant(64, u32::MAX.into());
            umin(d, 64, sum, high)
        };
    }
    d.extract(64, sum, 0, 32)
}

/// Clamps an unsigned word to 16 bits.
#[inline(always)]
pub fn clamp_u16<D: Domain>(d: &mut D, a: D::V) -> D::V {
    let high = d.constant(32, 0xffff);
    let a = umin(d, 32, a, high);
    d.extract(32, a, 0, 16)
}

/// Clamps a signed word to 16 bits.
#[inline(always)]
pub fn clamp_i16<D: Domain>(d: &mut D, a: D::V) -> D::V {
    let (low, high) = (d.constant(32, 0xffff_8000), d.constant(32, 0x7fff));
    let a = imax(d, 32, a, low);
    let a = imin(d, 32, a, high);
    d.extract(32, a, 0, 16)
}
