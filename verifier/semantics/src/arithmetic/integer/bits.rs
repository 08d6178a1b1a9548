//! Shifts, counts of bits, and bit fields.

use super::{ineg, is_negative, is_zero, resize, resize_signed};
use crate::arithmetic::domain::Domain;

/// A shift count of `from` bits, modulo the width `w` (a power of two) of the shifted value.
#[inline(always)]
fn shift_count<D: Domain>(d: &mut D, w: u32, from: u32, count: D::V) -> D::V {
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

/// `a`, or its complement if it is negative: leading bits that equal the sign become zeros.
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

/// The part of `size` bits (8 or 16) with number `index`, as the low bits, extended. The offset is the low bits of the
/// index times the size, taken as a shift count.
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
