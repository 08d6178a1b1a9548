//! The meaning of the float operations, in any format, in any domain.
//!
//! Results that are NaN are the canonical NaN, products with the sign of a product. Negation, absolute value and moves
//! are operations on bits: they leave a NaN unchanged but for the sign. So `fneg(fmul(a, b))` is `fmul(fneg(a), b)` and
//! `fabs(fmul(a, b))` is `fmul(fabs(a), fabs(b))` bit for bit, as Mesa's exact rules assume, and `fneg(fneg(a))` is
//! `a`. Denormals are kept.

use crate::arithmetic::concrete;
use crate::arithmetic::concrete::Concrete;
use crate::arithmetic::domain::{Domain, Format, Rounding};
use crate::arithmetic::integer;

/// 1 where `a` is a NaN.
#[inline(always)]
fn is_nan<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let itself = d.feq(f, a.clone(), a);
    d.not(1, itself)
}

/// The canonical NaN for any NaN, else `a`.
#[inline(always)]
pub fn canonical<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let nan = is_nan(d, f, a.clone());
    let canonical = d.constant(f.width(), f.nan());
    d.ite(f.width(), nan, canonical, a)
}

/// Negation: the sign bit flipped.
#[inline(always)]
pub fn fneg<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let sign = d.constant(f.width(), f.sign());
    d.xor(f.width(), a, sign)
}

/// Absolute value: the sign bit cleared.
#[inline(always)]
pub fn fabs<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let rest = d.constant(f.width(), f.sign() - 1);
    d.and(f.width(), a, rest)
}

/// Difference: the sum with the negation.
#[inline(always)]
pub fn fsub<D: Domain>(d: &mut D, f: Format, a: D::V, b: D::V) -> D::V {
    let b = fneg(d, f, b);
    d.fadd(f, a, b)
}

/// The smaller number; the other operand if one is NaN; -0 is smaller than +0.
#[inline(always)]
pub fn fmin<D: Domain>(d: &mut D, f: Format, a: D::V, b: D::V) -> D::V {
    choose(d, f, true, a, b)
}

/// The larger number; the other operand if one is NaN; +0 is larger than -0.
#[inline(always)]
pub fn fmax<D: Domain>(d: &mut D, f: Format, a: D::V, b: D::V) -> D::V {
    choose(d, f, false, a, b)
}

#[inline(always)]
fn choose<D: Domain>(d: &mut D, f: Format, smaller: bool, a: D::V, b: D::V) -> D::V {
    let w = f.width();
    let before = if smaller { d.flt(f, a.clone(), b.clone()) } else { d.flt(f, b.clone(), a.clone()) };
    // Equal numbers differ in the sign of zero at most.
    let equal = d.feq(f, a.clone(), b.clone());
    let zero = if smaller { d.or(w, a.clone(), b.clone()) } else { d.and(w, a.clone(), b.clone()) };
    let number = d.ite(w, before, a.clone(), b.clone());
    let number = d.ite(w, equal, zero, number);
    let a_nan = is_nan(d, f, a.clone());
    let b_nan = is_nan(d, f, b.clone());
    let number = d.ite(w, b_nan, a, number);
    let number = d.ite(w, a_nan, b, number);
    canonical(d, f, number)
}

/// Clamped to [0, 1]; +0 for NaN and for -0.
#[inline(always)]
pub fn fsat<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let w = f.width();
    let (zero, one) = (d.constant(w, 0), d.constant(w, f.one()));
    let positive = d.flt(f, zero.clone(), a.clone());
    let large = d.flt(f, one.clone(), a.clone());
    let clamped = d.ite(w, large, one, a);
    d.ite(w, positive, clamped, zero)
}

/// -1, 1, or a zero of the same sign; +0 for NaN.
#[inline(always)]
pub fn fsign<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let w = f.width();
    let (zero, one, minus) = (d.constant(w, 0), d.constant(w, f.one()), d.constant(w, f.one() | f.sign()));
    let positive = d.flt(f, zero.clone(), a.clone());
    let negative = d.flt(f, a.clone(), zero.clone());
    let nan = is_nan(d, f, a.clone());
    let rest = d.ite(w, nan, zero, a);
    let rest = d.ite(w, negative, minus, rest);
    d.ite(w, positive, one, rest)
}

/// The fraction: the number minus its floor.
#[inline(always)]
pub fn ffract<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let floor = d.fround(f, Rounding::Down, a.clone());
    fsub(d, f, a, floor)
}

/// Not equal, or unordered: one bit.
#[inline(always)]
pub fn fneu<D: Domain>(d: &mut D, f: Format, a: D::V, b: D::V) -> D::V {
    let equal = d.feq(f, a, b);
    d.not(1, equal)
}

/// Ordered greater or equal: one bit.
#[inline(always)]
pub fn fge<D: Domain>(d: &mut D, f: Format, a: D::V, b: D::V) -> D::V {
    d.fle(f, b, a)
}

/// 1 where one of the operands is a NaN.
#[inline(always)]
pub fn funord<D: Domain>(d: &mut D, f: Format, a: D::V, b: D::V) -> D::V {
    let a = is_nan(d, f, a);
    let b = is_nan(d, f, b);
    d.or(1, a, b)
}

/// 1.0 or 0.0 for a bit.
#[inline(always)]
pub fn from_bool<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let (zero, one) = (d.constant(f.width(), 0), d.constant(f.width(), f.one()));
    d.ite(f.width(), a, one, zero)
}

/// Product, but +0 where an operand is 0.
#[inline(always)]
pub fn fmulz<D: Domain>(d: &mut D, f: Format, a: D::V, b: D::V) -> D::V {
    let none = one_is_zero(d, f, a.clone(), b.clone());
    let product = d.fmul(f, a, b);
    let zero = d.constant(f.width(), 0);
    d.ite(f.width(), none, zero, product)
}

/// `a * b + c`, the product rounded, too.
#[inline(always)]
pub fn fmad<D: Domain>(d: &mut D, f: Format, a: D::V, b: D::V, c: D::V) -> D::V {
    let product = d.fmul(f, a, b);
    d.fadd(f, product, c)
}

/// `a * b + c` rounded once, but +0 + `c` where `a` or `b` is 0.
#[inline(always)]
pub fn ffmaz<D: Domain>(d: &mut D, f: Format, a: D::V, b: D::V, c: D::V) -> D::V {
    let none = one_is_zero(d, f, a.clone(), b.clone());
    let zero = d.constant(f.width(), 0);
    let alone = d.fadd(f, zero, c.clone());
    let whole = d.ffma(f, a, b, c);
    d.ite(f.width(), none, alone, whole)
}

#[inline(always)]
fn one_is_zero<D: Domain>(d: &mut D, f: Format, a: D::V, b: D::V) -> D::V {
    let zero = d.constant(f.width(), 0);
    let a = d.feq(f, a, zero.clone());
    let b = d.feq(f, b, zero);
    d.or(1, a, b)
}

/// `a - b * round(a / b)`: with rounding down nir's `fmod`, with rounding to zero nir's `frem`.
#[inline(always)]
pub fn remainder<D: Domain>(d: &mut D, f: Format, rounding: Rounding, a: D::V, b: D::V) -> D::V {
    let quotient = d.fdiv(f, a.clone(), b.clone());
    let whole = d.fround(f, rounding, quotient);
    let product = d.fmul(f, b, whole);
    fsub(d, f, a, product)
}

/// `a * (1 - c) + b * c`, each operation rounded.
#[inline(always)]
pub fn flrp<D: Domain>(d: &mut D, f: Format, a: D::V, b: D::V, c: D::V) -> D::V {
    let one = d.constant(f.width(), f.one());
    let rest = fsub(d, f, one, c.clone());
    let x = d.fmul(f, a, rest);
    let y = d.fmul(f, b, c);
    d.fadd(f, x, y)
}

/// Rounds to binary16 and converts back. A value below the smallest normal number of binary16 becomes a zero with its
/// sign.
#[inline(always)]
pub fn fquantize<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let w = f.width();
    let half = d.fconvert(f, Format::F16, Rounding::Even, a.clone());
    let rounded = d.fconvert(Format::F16, f, Rounding::Even, half);
    let sign = d.constant(w, f.sign());
    let zero = d.and(w, a.clone(), sign.clone());
    let positive = d.not(w, sign);
    let magnitude = d.and(w, a, positive);
    let least = d.constant(w, f.one() - (14 << f.fraction()));
    let is_small = d.flt(f, magnitude, least);
    d.ite(w, is_small, zero, rounded)
}

/// Clamped to [-1, 1]; NaN becomes -1.
#[inline(always)]
pub fn fsat_signed<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let (minus, one) = (d.constant(f.width(), f.one() | f.sign()), d.constant(f.width(), f.one()));
    let a = fmax(d, f, a, minus);
    fmin(d, f, a, one)
}

/// At least +0.
#[inline(always)]
pub fn fclamp_pos<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let zero = d.constant(f.width(), 0);
    fmax(d, f, a, zero)
}

/// 1 where `a` is neither infinite nor a NaN.
#[inline(always)]
pub fn is_finite<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let magnitude = fabs(d, f, a);
    let infinity = d.constant(f.width(), f.infinity());
    d.ult(f.width(), magnitude, infinity)
}

/// 1 where `a` is finite, not zero and not a denormal.
#[inline(always)]
pub fn is_normal<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let w = f.width();
    let finite = is_finite(d, f, a.clone());
    let magnitude = fabs(d, f, a);
    let smallest = d.constant(w, 1 << f.fraction());
    let large = integer::uge(d, w, magnitude, smallest);
    d.and(1, finite, large)
}

/// `a` times the power of two with the exponent `n` (32 bits, signed); results that would be denormal become zero.
#[inline(always)]
pub fn ldexp<D: Domain>(d: &mut D, f: Format, a: D::V, n: D::V) -> D::V {
    // A step scales by one normal power of two; three steps scale from the smallest denormal to infinity and back.
    let w = f.width();
    let bias = (1i64 << (w - f.fraction() - 2)) - 1;
    let (low, high) = (d.constant(32, (1 - bias) as u64), d.constant(32, bias as u64));
    let mut rest = n;
    let mut value = a.clone();
    for _ in 0..3 {
        let step = integer::imax(d, 32, rest.clone(), low.clone());
        let step = integer::imin(d, 32, step, high.clone());
        rest = d.sub(32, rest, step.clone());
        let offset = d.constant(32, bias as u64);
        let exponent = d.add(32, step, offset);
        let exponent = integer::resize(d, 32, w, exponent);
        let shift = d.constant(w, f.fraction().into());
        let factor = d.shl(w, exponent, shift);
        value = d.fmul(f, value, factor);
    }
    let w = f.width();
    let magnitude = fabs(d, f, value.clone());
    let smallest = d.constant(w, 1 << f.fraction());
    let tiny = d.ult(w, magnitude, smallest);
    let sign = d.constant(w, f.sign());
    let zero = d.and(w, a, sign);
    d.ite(w, tiny, zero, value)
}

/// The exponent `e` with |a| = m 2^e and m in [0.5, 1); 0 for 0, infinities and NaNs. 32 bits.
#[inline(always)]
pub fn frexp_exp<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let (exponent, _) = frexp(d, f, a);
    exponent
}

/// The significand m of [`frexp_exp`], with the sign; zeros, infinities and NaNs unchanged.
#[inline(always)]
pub fn frexp_sig<D: Domain>(d: &mut D, f: Format, a: D::V) -> D::V {
    let (_, significand) = frexp(d, f, a);
    significand
}

#[inline(always)]
fn frexp<D: Domain>(d: &mut D, f: Format, a: D::V) -> (D::V, D::V) {
    let w = f.width();
    let bias = (1u64 << (w - f.fraction() - 2)) - 1;
    let finite = is_finite(d, f, a.clone());
    let magnitude = fabs(d, f, a.clone());
    let zero = integer::is_zero(d, w, magnitude.clone());
    let not_zero = d.not(1, zero);
    let ordinary = d.and(1, finite, not_zero);
    // Denormals are scaled up first.
    let smallest = d.constant(w, 1 << f.fraction());
    let denormal = d.ult(w, magnitude, smallest);
    let scale = u64::from(f.fraction() + 1);
    let factor = d.constant(w, (bias + scale) << f.fraction());
    let scaled = d.fmul(f, a.clone(), factor);
    let scaled = d.ite(w, denormal.clone(), scaled, a.clone());
    let field = d.extract(w, scaled.clone(), f.fraction(), w - f.fraction() - 1);
    let field = integer::resize(d, w - f.fraction() - 1, 32, field);
    let less = d.constant(32, bias - 1);
    let exponent = d.sub(32, field, less);
    let lower = d.constant(32, scale);
    let lower = d.sub(32, exponent.clone(), lower);
    let exponent = d.ite(32, denormal, lower, exponent);
    let none = d.constant(32, 0);
    let exponent = d.ite(32, ordinary.clone(), exponent, none);
    let keep = d.constant(w, f.sign() | ((1 << f.fraction()) - 1));
    let half = d.constant(w, (bias - 1) << f.fraction());
    let significand = d.and(w, scaled, keep);
    let significand = d.or(w, significand, half);
    let other = canonical(d, f, a);
    let significand = d.ite(w, ordinary, significand, other);
    (exponent, significand)
}

/// Interpolation: `p0 + p1 i + p2 j`, by two fused operations.
pub fn interpolate(p0: u32, p1: u32, p2: u32, i: u32, j: u32) -> u32 {
    let [p0, p1, p2, i, j] = [p0, p1, p2, i, j].map(u64::from);
    let d = &mut Concrete;
    let row = d.ffma(Format::F32, p1, i, p0);
    d.ffma(Format::F32, p2, j, row) as u32
}

/// Converts binary32 to binary16 with the machine's rounding.
#[inline]
pub fn f32_to_f16(bits: u32) -> u32 {
    Concrete.fconvert(Format::F32, Format::F16, Rounding::MACHINE, bits.into()) as u32
}

/// Converts binary16 to binary32.
#[inline]
pub fn f16_to_f32(bits: u32) -> u32 {
    concrete::bits32(concrete::f16_to_f32(bits)) as u32
}

/// Subtraction of binary32.
#[inline]
pub fn sub32(a: u32, b: u32) -> u32 {
    fsub(&mut Concrete, Format::F32, a.into(), b.into()) as u32
}

/// Subtraction of binary16.
#[inline]
pub fn sub16(a: u32, b: u32) -> u32 {
    fsub(&mut Concrete, Format::F16, a.into(), b.into()) as u32
}
