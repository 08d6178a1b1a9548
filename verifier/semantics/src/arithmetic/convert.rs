//! Conversions, packing and unpacking.

use crate::arithmetic::domain::{Domain, Format, Rounding};
use crate::arithmetic::float;
use crate::arithmetic::integer;

/// The interpretation of the bits of a value in a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// A float.
    Float,
    /// A signed integer.
    Signed,
    /// An unsigned integer.
    Unsigned,
}

/// Any conversion. Integers are sign- or zero-extended by the type of the source, or truncated; floats become integers
/// by clamping.
///
/// Rounding applies between floats, from integers to floats and from floats to integers; without a mode it is the
/// machine's.
#[inline(always)]
pub fn convert<D: Domain>(
    d: &mut D,
    (from_kind, from): (NumberKind, u32),
    (to_kind, to): (NumberKind, u32),
    rounding: Option<Rounding>,
    a: D::V,
) -> D::V {
    let rounding = rounding.unwrap_or(Rounding::MACHINE);
    match (from_kind, to_kind) {
        (NumberKind::Float, NumberKind::Float) => {
            let (Some(x), Some(y)) = (Format::of_width(from), Format::of_width(to)) else { return a };
            if from == to { float::canonical(d, x, a) } else { d.fconvert(x, y, rounding, a) }
        }
        (NumberKind::Float, kind) => {
            let Some(x) = Format::of_width(from) else { return a };
            d.float_to_int(x, to, kind == NumberKind::Signed, rounding, a)
        }
        (kind, NumberKind::Float) => {
            let Some(y) = Format::of_width(to) else { return a };
            d.int_to_float(from, kind == NumberKind::Signed, y, rounding, a)
        }
        (NumberKind::Signed, _) => integer::resize_signed(d, from, to, a),
        (NumberKind::Unsigned, _) => integer::resize(d, from, to, a),
    }
}

/// A number in [-1, 1] as a signed integer of `n` bits; a NaN is -1.
#[inline(always)]
pub fn snorm<D: Domain>(d: &mut D, f: Format, n: u32, a: D::V) -> D::V {
    let clamped = float::fsat_signed(d, f, a);
    scaled(d, f, n, true, clamped)
}

/// A number in [0, 1] as an unsigned integer of `n` bits.
#[inline(always)]
pub fn unorm<D: Domain>(d: &mut D, f: Format, n: u32, a: D::V) -> D::V {
    let clamped = float::fsat(d, f, a);
    scaled(d, f, n, false, clamped)
}

#[inline(always)]
fn scaled<D: Domain>(d: &mut D, f: Format, n: u32, sign: bool, a: D::V) -> D::V {
    // In binary32 for every operand: binary16 cannot represent the largest integers.
    let wide = convert(d, (NumberKind::Float, f.width()), (NumberKind::Float, 32), Some(Rounding::Even), a);
    let scale = d.constant(32, f64_bits32(largest(n, sign)));
    let product = d.fmul(Format::F32, wide, scale);
    d.float_to_int(Format::F32, n, sign, Rounding::Even, product)
}

const fn largest(n: u32, sign: bool) -> f32 {
    ((1u32 << (if sign { n - 1 } else { n })) - 1) as f32
}

const fn f64_bits32(x: f32) -> u64 {
    x.to_bits() as u64
}

/// A signed integer of `n` bits as a number in [-1, 1].
#[inline(always)]
pub fn from_snorm<D: Domain>(d: &mut D, n: u32, a: D::V) -> D::V {
    let number = d.int_to_float(n, true, Format::F32, Rounding::Even, a);
    let scale = d.constant(32, f64_bits32(largest(n, true)));
    let quotient = d.fdiv(Format::F32, number, scale);
    float::fsat_signed(d, Format::F32, quotient)
}

/// An unsigned integer of `n` bits as a number in [0, 1].
#[inline(always)]
pub fn from_unorm<D: Domain>(d: &mut D, n: u32, a: D::V) -> D::V {
    let number = d.int_to_float(n, false, Format::F32, Rounding::Even, a);
    let scale = d.constant(32, f64_bits32(largest(n, false)));
    d.fdiv(Format::F32, number, scale)
}

/// A number as binary16, from binary32.
#[inline(always)]
pub fn to_half<D: Domain>(d: &mut D, rounding: Rounding, a: D::V) -> D::V {
    d.fconvert(Format::F32, Format::F16, rounding, a)
}

/// Concatenates parts of `size` bits, the first lowest.
#[inline(always)]
pub fn pack<D: Domain, const N: usize>(d: &mut D, size: u32, parts: [D::V; N]) -> D::V {
    let mut parts = parts.into_iter();
    let Some(mut all) = parts.next() else { return d.constant(1, 0) };
    let mut width = size;
    for part in parts {
        all = d.concat(size, part, width, all);
        width += size;
    }
    all
}

/// Part `index` of `size` bits.
#[inline(always)]
pub fn part<D: Domain>(d: &mut D, w: u32, size: u32, index: u32, a: D::V) -> D::V {
    d.extract(w, a, index * size, size)
}

/// A binary32 word as binary16, zero-extended to a word: the value that a half operand reads from the constant file,
/// and a half result of interpolation or sampling.
#[inline(always)]
pub fn half_word<D: Domain>(d: &mut D, a: D::V) -> D::V {
    let half = to_half(d, Rounding::MACHINE, a);
    d.zext(16, 32, half)
}

/// A signed integer as a number of 256ths, of 32 bits or, zero-extended, of 16: the levels that texture queries return.
#[inline(always)]
pub fn level<D: Domain>(d: &mut D, half: bool, a: D::V) -> D::V {
    let number = d.int_to_float(32, true, Format::F32, Rounding::MACHINE, a);
    let scale = d.constant(32, f64_bits32(1.0 / 256.0));
    let level = d.fmul(Format::F32, number, scale);
    if half { half_word(d, level) } else { level }
}

/// An unsigned integer as a number of sixteenths: positions of fragments.
#[inline(always)]
pub fn sixteenths<D: Domain>(d: &mut D, a: D::V) -> D::V {
    let number = d.int_to_float(32, false, Format::F32, Rounding::MACHINE, a);
    let scale = d.constant(32, f64_bits32(1.0 / 16.0));
    d.fmul(Format::F32, number, scale)
}
