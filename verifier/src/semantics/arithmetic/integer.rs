//! The meaning of the integer and bit operations, at any width, in any domain.
//!
//! Names and definitions are nir's where nir has the operation; where the languages differ (counts of leading zeros, the half of a
//! product), the definition names the language.

use crate::semantics::arithmetic::domain::Domain;

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

/// `result`, or, where the top bit of `overflow` is set, the bound in the direction of the overflow, which the sign of the first operand
/// `a` gives.
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

/// A shift count of `from` bits, modulo the width `w` (a power of two) of the shifted value.
#[inline(always)]
pub fn shift_count<D: Domain>(d: &mut D, w: u32, from: u32, count: D::V) -> D::V {
    let limit = d.constant(from, u64::from(w - 1));
    let count = d.and(from, count, limit);
    resize(d, from, w, count)
}

/// Left shift; the count has `from` bits and is taken modulo the width.
#[inline(always)]
pub fn ishl<D: Domain>(d: &mut D, w: u32, a: D::V, from: u32, count: D::V) -> D::V {
    let count = shift_count(d, w, from, count);
    d.shl(w, a, count)
}

/// Arithmetic right shift.
#[inline(always)]
pub fn ishr<D: Domain>(d: &mut D, w: u32, a: D::V, from: u32, count: D::V) -> D::V {
    let count = shift_count(d, w, from, count);
    d.ashr(w, a, count)
}

/// Logical right shift.
#[inline(always)]
pub fn ushr<D: Domain>(d: &mut D, w: u32, a: D::V, from: u32, count: D::V) -> D::V {
    let count = shift_count(d, w, from, count);
    d.lshr(w, a, count)
}

/// Rotation to the left; the count has 32 bits.
#[inline(always)]
pub fn urol<D: Domain>(d: &mut D, w: u32, a: D::V, count: D::V) -> D::V {
    let back = ineg(d, 32, count.clone());
    let high = ishl(d, w, a.clone(), 32, count);
    let low = ushr(d, w, a, 32, back);
    d.or(w, high, low)
}

/// Rotation to the right; the count has 32 bits.
#[inline(always)]
pub fn uror<D: Domain>(d: &mut D, w: u32, a: D::V, count: D::V) -> D::V {
    let back = ineg(d, 32, count.clone());
    urol(d, w, a, back)
}

/// The low word of `high` concatenated above `low`, shifted right.
#[inline(always)]
pub fn shfr<D: Domain>(d: &mut D, high: D::V, low: D::V, count: D::V) -> D::V {
    let both = d.concat(32, high, 32, low);
    let count = shift_count(d, 32, 32, count);
    let count = d.zext(32, 64, count);
    let shifted = d.lshr(64, both, count);
    d.extract(64, shifted, 0, 32)
}

/// Number of ones, as 32 bits.
#[inline(always)]
pub fn bit_count<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let count = d.popcount(w, a);
    resize(d, w, 32, count)
}

/// Index of the highest 1, from the lowest bit; -1 for 0. 32 bits.
#[inline(always)]
pub fn ufind_msb<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let zeros = d.clz(w, a);
    let zeros = resize(d, w, 32, zeros);
    let top = d.constant(32, u64::from(w - 1));
    d.sub(32, top, zeros)
}

/// Index of the highest 1, from the highest bit; -1 for 0. The result has the width of the operand.
#[inline(always)]
pub fn ufind_msb_rev<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let none = is_zero(d, w, a.clone());
    let zeros = d.clz(w, a);
    let minus = d.constant(w, u64::MAX);
    d.ite(w, none, minus, zeros)
}

/// `a`, or its complement where it is negative: leading bits that equal the sign become zeros.
#[inline(always)]
fn without_sign<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let negative = is_negative(d, w, a.clone());
    let complement = d.not(w, a.clone());
    d.ite(w, negative, complement, a)
}

/// Index of the highest bit that differs from the sign, from the lowest bit; -1 for 0 and -1. 32 bits.
#[inline(always)]
pub fn ifind_msb<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let a = without_sign(d, w, a);
    ufind_msb(d, w, a)
}

/// Index of the highest bit that differs from the sign, from the highest bit; -1 for 0 and -1. The result has the width
/// of the operand.
#[inline(always)]
pub fn ifind_msb_rev<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let a = without_sign(d, w, a);
    ufind_msb_rev(d, w, a)
}

/// Index of the lowest 1; -1 for 0. 32 bits.
#[inline(always)]
pub fn find_lsb<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let reversed = d.reverse(w, a);
    let index = ufind_msb_rev(d, w, reversed);
    resize_signed(d, w, 32, index)
}

/// A mask of `bits` ones starting at `offset`, both modulo 32.
#[inline(always)]
pub fn bfm<D: Domain>(d: &mut D, bits: D::V, offset: D::V) -> D::V {
    let one = d.constant(32, 1);
    let power = ishl(d, 32, one.clone(), 32, bits);
    let mask = d.sub(32, power, one);
    ishl(d, 32, mask, 32, offset)
}

/// `insert`, shifted to the lowest 1 of `mask`, where the mask has ones; `base` elsewhere.
#[inline(always)]
pub fn bfi<D: Domain>(d: &mut D, mask: D::V, insert: D::V, base: D::V) -> D::V {
    let lowest = find_lsb(d, 32, mask.clone());
    // If the mask has no ones, the shift does not matter.
    let shifted = ishl(d, 32, insert, 32, lowest);
    bitfield_select(d, 32, mask, shifted, base)
}

/// `a` where `mask` has ones, `b` elsewhere.
#[inline(always)]
pub fn bitfield_select<D: Domain>(d: &mut D, w: u32, mask: D::V, a: D::V, b: D::V) -> D::V {
    let a = d.and(w, mask.clone(), a);
    let other = d.not(w, mask);
    let b = d.and(w, other, b);
    d.or(w, a, b)
}

/// The `bits` bits starting at `offset`, both modulo 32; 0 if `bits` is 0; bits beyond the word are absent.
#[inline(always)]
pub fn bfe<D: Domain>(d: &mut D, sign: bool, base: D::V, offset: D::V, bits: D::V) -> D::V {
    let limit = d.constant(32, 31);
    let offset = d.and(32, offset, limit.clone());
    let bits = d.and(32, bits, limit);
    let width = d.constant(32, 32);
    let end = d.add(32, offset.clone(), bits.clone());
    let inside = d.ult(32, end.clone(), width.clone());
    let none = is_zero(d, 32, bits.clone());
    let left = d.sub(32, width.clone(), end);
    let up = ishl(d, 32, base.clone(), 32, left);
    let right = d.sub(32, width, bits);
    let (field, rest) = if sign {
        (ishr(d, 32, up, 32, right), ishr(d, 32, base, 32, offset))
    } else {
        (ushr(d, 32, up, 32, right), ushr(d, 32, base, 32, offset))
    };
    let zero = d.constant(32, 0);
    let value = d.ite(32, inside, field, rest);
    d.ite(32, none, zero, value)
}

/// 1 where `offset` and `bits` (signed) denote a field inside a word.
#[inline(always)]
fn is_field<D: Domain>(d: &mut D, offset: D::V, bits: D::V) -> D::V {
    // Both at most 32 as unsigned numbers, so their sum does not wrap.
    let limit = d.constant(32, 33);
    let a = d.ult(32, offset.clone(), limit.clone());
    let b = d.ult(32, bits.clone(), limit.clone());
    let end = d.add(32, offset, bits);
    let c = d.ult(32, end, limit);
    let both = d.and(1, a, b);
    d.and(1, both, c)
}

/// GLSL's bitfieldExtract; 0 where the field is not inside the word.
#[inline(always)]
pub fn bitfield_extract<D: Domain>(d: &mut D, sign: bool, base: D::V, offset: D::V, bits: D::V) -> D::V {
    let valid = is_field(d, offset.clone(), bits.clone());
    let none = is_zero(d, 32, bits.clone());
    let invalid = d.not(1, valid);
    let zeroed = d.or(1, invalid, none);
    let width = d.constant(32, 32);
    let end = d.add(32, offset, bits.clone());
    let left = d.sub(32, width.clone(), end);
    let up = ishl(d, 32, base, 32, left);
    let right = d.sub(32, width, bits);
    let field = if sign { ishr(d, 32, up, 32, right) } else { ushr(d, 32, up, 32, right) };
    let zero = d.constant(32, 0);
    d.ite(32, zeroed, zero, field)
}

/// GLSL's bitfieldInsert; 0 where the field is not inside the word.
#[inline(always)]
pub fn bitfield_insert<D: Domain>(d: &mut D, base: D::V, insert: D::V, offset: D::V, bits: D::V) -> D::V {
    let valid = is_field(d, offset.clone(), bits.clone());
    let none = is_zero(d, 32, bits.clone());
    let width = d.constant(32, 32);
    let ones = d.constant(32, u64::MAX);
    let right = d.sub(32, width, bits);
    let mask = ushr(d, 32, ones, 32, right);
    let mask = ishl(d, 32, mask, 32, offset.clone());
    let insert = ishl(d, 32, insert, 32, offset);
    let merged = bitfield_select(d, 32, mask, insert, base.clone());
    let zero = d.constant(32, 0);
    let inside = d.ite(32, valid, merged, zero);
    d.ite(32, none, base, inside)
}

/// The part of `size` bits (8 or 16) with number `index`, as the low bits, extended. The offset is the low bits of the index times the
/// size, taken as a shift count.
#[inline(always)]
pub fn extract_part<D: Domain>(d: &mut D, w: u32, size: u32, sign: bool, a: D::V, index: D::V) -> D::V {
    let scale = d.constant(w, u64::from(size));
    let offset = d.mul(w, index, scale);
    let shifted = ushr(d, w, a, w, offset);
    let n = size.min(w);
    let part = d.extract(w, shifted, 0, n);
    if sign { d.sext(n, w, part) } else { d.zext(n, w, part) }
}

/// The low `size` bits (8 or 16), shifted to the part with number `index`.
#[inline(always)]
pub fn insert_part<D: Domain>(d: &mut D, w: u32, size: u32, a: D::V, index: D::V) -> D::V {
    let scale = d.constant(w, u64::from(size));
    let offset = d.mul(w, index, scale);
    let n = size.min(w);
    let part = d.extract(w, a, 0, n);
    let part = d.zext(n, w, part);
    ishl(d, w, part, w, offset)
}

/// 1 where bit `index` (32 bits, modulo the width) of `a` is 1: one bit.
#[inline(always)]
pub fn bitnz<D: Domain>(d: &mut D, w: u32, a: D::V, index: D::V) -> D::V {
    let shifted = ushr(d, w, a, 32, index);
    d.extract(w, shifted, 0, 1)
}

/// The low `n` bits, extended to the width.
#[inline(always)]
pub fn low<D: Domain>(d: &mut D, w: u32, n: u32, sign: bool, a: D::V) -> D::V {
    if n >= w {
        return a;
    }
    let part = d.extract(w, a, 0, n);
    if sign { d.sext(n, w, part) } else { d.zext(n, w, part) }
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

/// The low 16 bits of `a` times the high 16 bits of `b`, shifted left by 16, plus `c`: `madsh.m16` and nir's `imadsh_mix16`. Only the low
/// 16 bits of the product remain, so signs do not matter.
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

/// The sum of three numbers: nir's `iadd3`, and the result of `sad.s16` and `sad.s32` in the form that the compiler emits.
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

/// The sum of `c` and the products of the parts of `size` bits (8 or 16) of two words; clamped to 32 bits of the sum's sign if `saturate`.
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
