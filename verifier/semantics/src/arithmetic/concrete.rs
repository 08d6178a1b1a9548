//! The domain of machine integers: a value is a `u64` whose bits above its width are 0.
//!
//! Every width is a constant where a kernel is instantiated, so the compiler narrows these 64-bit operations to the
//! width of the lanes.
//!
//! ## Exactness of the float operations
//!
//! - binary16 `+ * /` are computed in binary32 and rounded to binary16. Double rounding is exact here, since 24 is at
//!   least 2 · 11 + 2 significant bits (Figueroa).
//! - `a * b + c` in binary32: the product of two binary32 is exact in binary64 (48 bits; exponents from -298 to 256).
//!   The sum is rounded to odd: TwoSum gives the error of the rounded sum exactly; where the error is not 0 and the
//!   sum's last bit is 0, the neighbour in the direction of the error has last bit 1, and is the result of rounding to
//!   odd. A value rounded to odd with 53 bits and then to nearest with at most 51 is rounded correctly (Boldo and
//!   Melquiond).
//! - `a * b + c` in binary16 in the same way: the sum, rounded to odd with 53 bits, is rounded to 24 bits, again to
//!   odd, then to 11 bits, to nearest.
//! - Conversions from binary64 to binary16, and from integers to binary16, round to odd to binary32 first as well.

use crate::arithmetic::domain::{Domain, Format, Function, Rounding};

/// The domain of machine integers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Concrete;

/// The mask of the low `w` bits.
#[inline(always)]
pub const fn mask(w: u32) -> u64 {
    u64::MAX >> (64 - w)
}

/// The value of `w` bits as a signed number.
#[inline(always)]
pub const fn signed(w: u32, a: u64) -> i64 {
    (a << (64 - w)) as i64 >> (64 - w)
}

/// Converts binary16 to binary32, exactly; NaNs become the canonical one.
#[inline(always)]
pub fn f16_to_f32(bits: u32) -> f32 {
    let magnitude = bits & 0x7fff;
    // Shifted into place, the number is too small by 2^112, denormals included.
    let scaled = f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000);
    let unsigned = if magnitude > 0x7c00 {
        0x7fc0_0000
    } else if magnitude == 0x7c00 {
        0x7f80_0000
    } else {
        scaled.to_bits()
    };
    let sign = if magnitude > 0x7c00 { 0 } else { (bits & 0x8000) << 16 };
    f32::from_bits(unsigned | sign)
}

/// Converts binary32 to binary16, to nearest even; NaNs become the canonical one.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u32 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // The last bit of 0.5 is the smallest denormal of binary16, so this addition rounds to it.
    let denormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_add(0xc800_0fff).wrapping_add(odd) >> 13;
    let unsigned = if magnitude >= 0x477f_f000 {
        0x7c00
    } else if magnitude < 0x3880_0000 {
        denormal
    } else {
        normal
    };
    if magnitude > 0x7f80_0000 { 0x7e00 } else { unsigned | bits >> 16 & 0x8000 }
}

/// The neighbour of `x` with an odd last bit in the direction of `error`, the exact value minus `x`, unless `x` is odd
/// or exact already.
#[inline(always)]
fn odd64(x: f64, error: f64) -> f64 {
    let bits = x.to_bits();
    let away = (error > 0.0) == (x > 0.0);
    let neighbour = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    // False for a NaN, which comes from infinities.
    let inexact = error.abs() > 0.0;
    f64::from_bits(if inexact && bits & 1 == 0 { neighbour } else { bits })
}

/// Converts binary64 to binary32, rounded to odd. Infinities only come from infinities.
#[inline(always)]
pub fn f64_to_f32_odd(x: f64) -> f32 {
    let near = x as f32;
    let error = x - f64::from(near);
    let bits = near.to_bits();
    // An overflow has an infinite error, towards zero.
    let away = (error > 0.0) == (near > 0.0);
    let neighbour = if near == 0.0 {
        x.to_bits().wrapping_shr(32) as u32 & 0x8000_0000 | 1
    } else if away {
        bits.wrapping_add(1)
    } else {
        bits.wrapping_sub(1)
    };
    // False for a NaN, which comes from infinities.
    let inexact = error.abs() > 0.0;
    f32::from_bits(if inexact && bits & 1 == 0 { neighbour } else { bits })
}

/// The product and sum with 53 bits, rounded to odd, of operands whose product is exact.
#[inline(always)]
fn fma_odd(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    let from_c = sum - product;
    let from_product = sum - from_c;
    let error = (product - from_product) + (c - from_c);
    odd64(sum, error)
}

/// `a * b + c` in binary32, rounded once; see the module's text.
#[inline(always)]
pub fn fma32(a: f32, b: f32, c: f32) -> f32 {
    fma_odd(f64::from(a), f64::from(b), f64::from(c)) as f32
}

/// The bits of a binary32 with the canonical NaN.
#[inline(always)]
pub fn bits32(x: f32) -> u64 {
    if x.is_nan() { Format::F32.nan() } else { u64::from(x.to_bits()) }
}

#[inline(always)]
fn bits64(x: f64) -> u64 {
    if x.is_nan() { Format::F64.nan() } else { x.to_bits() }
}

#[inline(always)]
fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

#[inline(always)]
fn half(bits: u64) -> f32 {
    f16_to_f32(bits as u32)
}

#[inline(always)]
fn double(bits: u64) -> f64 {
    f64::from_bits(bits)
}

#[inline(always)]
fn from_half(x: f32) -> u64 {
    u64::from(f32_to_f16(x))
}

/// Converts any value to binary64: exact.
#[inline(always)]
fn widen(f: Format, a: u64) -> f64 {
    match f {
        Format::F16 => f64::from(half(a)),
        Format::F32 => f64::from(single(a)),
        Format::F64 => double(a),
    }
}

/// Converts binary64 to any format, rounded once.
#[inline(always)]
fn narrow(f: Format, rounding: Rounding, x: f64) -> u64 {
    match (f, rounding) {
        (Format::F16, Rounding::Even) => from_half(f64_to_f32_odd(x)),
        (Format::F32, Rounding::Even) => bits32(x as f32),
        (Format::F64, _) => bits64(x),
        (_, rounding) => narrow_directed(f, rounding, x),
    }
}

/// [`narrow`] for the directed and rare rounding modes: rounds to nearest, and steps back where that went in the wrong
/// direction.
fn narrow_directed(f: Format, rounding: Rounding, x: f64) -> u64 {
    let near = narrow(f, Rounding::Even, x);
    let back = widen(f, near);
    if x.is_nan() || back == x {
        return near;
    }
    let magnitude = near & !f.sign();
    let too_large = back.abs() > x.abs();
    // Zero represents anything smaller than all numbers, infinity anything larger: neither has a sign of its own here.
    let sign = if x.is_sign_negative() { f.sign() } else { 0 };
    let (below, above) = if too_large { (magnitude - 1, magnitude) } else { (magnitude, magnitude + 1) };
    let outwards = match rounding {
        Rounding::Zero => false,
        Rounding::Up => sign == 0,
        Rounding::Down => sign != 0,
        Rounding::Even => return near,
        Rounding::Away => {
            // Ties differ from `Even` only: the midpoint of the neighbours is exact in binary64.
            if f == Format::F64 {
                return near;
            }
            let top = widen(f, above);
            if top.is_infinite() {
                return near;
            }
            x.abs() >= (widen(f, below) + top) / 2.0
        }
    };
    sign | if outwards { above } else { below }
}

/// Rounds to an integral value, in Rust's type for the format.
macro_rules! integral {
    ($rounding:expr, $x:expr) => {{
        let x = $x;
        match $rounding {
            Rounding::Even => x.round_ties_even(),
            Rounding::Away => x.round(),
            Rounding::Zero => x.trunc(),
            Rounding::Up => x.ceil(),
            Rounding::Down => x.floor(),
        }
    }};
}

#[inline(always)]
fn function64(function: Function, x: f64) -> f64 {
    match function {
        Function::Reciprocal => 1.0 / x,
        Function::ReciprocalSqrt => 1.0 / x.sqrt(),
        Function::Sqrt => x.sqrt(),
        Function::Log2 => x.log2(),
        Function::Exp2 => x.exp2(),
        Function::Sin => x.sin(),
        Function::Cos => x.cos(),
    }
}

/// Arithmetic in binary32 for both smaller formats.
macro_rules! arithmetic {
    ($f:expr, $a:ident, $b:ident, $op:tt) => {
        match $f {
            Format::F16 => from_half(half($a) $op half($b)),
            Format::F32 => bits32(single($a) $op single($b)),
            Format::F64 => bits64(double($a) $op double($b)),
        }
    };
}

macro_rules! comparison {
    ($f:expr, $a:ident, $b:ident, $op:tt) => {
        u64::from(match $f {
            Format::F16 => half($a) $op half($b),
            Format::F32 => single($a) $op single($b),
            Format::F64 => double($a) $op double($b),
        })
    };
}

impl Domain for Concrete {
    type V = u64;

    #[inline(always)]
    fn constant(&mut self, w: u32, bits: u64) -> u64 {
        bits & mask(w)
    }
    #[inline(always)]
    fn not(&mut self, w: u32, a: u64) -> u64 {
        !a & mask(w)
    }
    #[inline(always)]
    fn and(&mut self, _: u32, a: u64, b: u64) -> u64 {
        a & b
    }
    #[inline(always)]
    fn or(&mut self, _: u32, a: u64, b: u64) -> u64 {
        a | b
    }
    #[inline(always)]
    fn xor(&mut self, _: u32, a: u64, b: u64) -> u64 {
        a ^ b
    }
    #[inline(always)]
    fn add(&mut self, w: u32, a: u64, b: u64) -> u64 {
        a.wrapping_add(b) & mask(w)
    }
    #[inline(always)]
    fn sub(&mut self, w: u32, a: u64, b: u64) -> u64 {
        a.wrapping_sub(b) & mask(w)
    }
    #[inline(always)]
    fn mul(&mut self, w: u32, a: u64, b: u64) -> u64 {
        a.wrapping_mul(b) & mask(w)
    }
    #[inline(always)]
    fn udiv(&mut self, w: u32, a: u64, b: u64) -> u64 {
        a.checked_div(b).unwrap_or(mask(w))
    }
    #[inline(always)]
    fn urem(&mut self, _: u32, a: u64, b: u64) -> u64 {
        a.checked_rem(b).unwrap_or(a)
    }
    #[inline(always)]
    fn shl(&mut self, w: u32, a: u64, count: u64) -> u64 {
        a.wrapping_shl(count as u32) & mask(w)
    }
    #[inline(always)]
    fn lshr(&mut self, _: u32, a: u64, count: u64) -> u64 {
        a.wrapping_shr(count as u32)
    }
    #[inline(always)]
    fn ashr(&mut self, w: u32, a: u64, count: u64) -> u64 {
        signed(w, a).wrapping_shr(count as u32) as u64 & mask(w)
    }
    #[inline(always)]
    fn eq(&mut self, _: u32, a: u64, b: u64) -> u64 {
        u64::from(a == b)
    }
    #[inline(always)]
    fn ult(&mut self, _: u32, a: u64, b: u64) -> u64 {
        u64::from(a < b)
    }
    #[inline(always)]
    fn slt(&mut self, w: u32, a: u64, b: u64) -> u64 {
        u64::from(signed(w, a) < signed(w, b))
    }
    #[inline(always)]
    fn ite(&mut self, _: u32, condition: u64, a: u64, b: u64) -> u64 {
        if condition != 0 { a } else { b }
    }
    #[inline(always)]
    fn zext(&mut self, _: u32, _: u32, a: u64) -> u64 {
        a
    }
    #[inline(always)]
    fn sext(&mut self, w: u32, to: u32, a: u64) -> u64 {
        signed(w, a) as u64 & mask(to)
    }
    #[inline(always)]
    fn extract(&mut self, _: u32, a: u64, low: u32, n: u32) -> u64 {
        a >> low & mask(n)
    }
    #[inline(always)]
    fn concat(&mut self, _: u32, high: u64, w_low: u32, low: u64) -> u64 {
        high << w_low | low
    }

    #[inline(always)]
    fn umul_high(&mut self, w: u32, a: u64, b: u64) -> u64 {
        if w <= 32 { a.wrapping_mul(b) >> w } else { ((u128::from(a) * u128::from(b)) >> w) as u64 & mask(w) }
    }
    #[inline(always)]
    fn smul_high(&mut self, w: u32, a: u64, b: u64) -> u64 {
        if w <= 32 {
            (signed(w, a).wrapping_mul(signed(w, b)) >> w) as u64 & mask(w)
        } else {
            ((i128::from(signed(w, a)) * i128::from(signed(w, b))) >> w) as u64 & mask(w)
        }
    }

    #[inline(always)]
    fn popcount(&mut self, _: u32, a: u64) -> u64 {
        u64::from(a.count_ones())
    }
    #[inline(always)]
    fn clz(&mut self, w: u32, a: u64) -> u64 {
        // Lanes without a value have more bits than the width.
        u64::from(a.leading_zeros().wrapping_sub(64 - w))
    }
    #[inline(always)]
    fn reverse(&mut self, w: u32, a: u64) -> u64 {
        a.reverse_bits() >> (64 - w)
    }

    #[inline(always)]
    fn fadd(&mut self, f: Format, a: u64, b: u64) -> u64 {
        arithmetic!(f, a, b, +)
    }
    #[inline(always)]
    fn fmul(&mut self, f: Format, a: u64, b: u64) -> u64 {
        let product = arithmetic!(f, a, b, *);
        if product == f.nan() { product | (a ^ b) & f.sign() } else { product }
    }
    #[inline(always)]
    fn fdiv(&mut self, f: Format, a: u64, b: u64) -> u64 {
        arithmetic!(f, a, b, /)
    }
    #[inline(always)]
    fn ffma(&mut self, f: Format, a: u64, b: u64, c: u64) -> u64 {
        match f {
            Format::F16 => {
                from_half(f64_to_f32_odd(fma_odd(f64::from(half(a)), f64::from(half(b)), f64::from(half(c)))))
            }
            Format::F32 => bits32(fma32(single(a), single(b), single(c))),
            Format::F64 => bits64(double(a).mul_add(double(b), double(c))),
        }
    }
    #[inline(always)]
    fn fround(&mut self, f: Format, rounding: Rounding, a: u64) -> u64 {
        match f {
            Format::F16 => from_half(integral!(rounding, half(a))),
            Format::F32 => bits32(integral!(rounding, single(a))),
            Format::F64 => bits64(integral!(rounding, double(a))),
        }
    }
    #[inline(always)]
    fn feq(&mut self, f: Format, a: u64, b: u64) -> u64 {
        comparison!(f, a, b, ==)
    }
    #[inline(always)]
    fn flt(&mut self, f: Format, a: u64, b: u64) -> u64 {
        comparison!(f, a, b, <)
    }
    #[inline(always)]
    fn fle(&mut self, f: Format, a: u64, b: u64) -> u64 {
        comparison!(f, a, b, <=)
    }
    #[inline(always)]
    fn fconvert(&mut self, from: Format, to: Format, rounding: Rounding, a: u64) -> u64 {
        match (from, to, rounding) {
            (Format::F16, Format::F32, _) => bits32(half(a)),
            (Format::F32, Format::F16, Rounding::Even) => from_half(single(a)),
            _ => narrow(to, rounding, widen(from, a)),
        }
    }
    #[inline(always)]
    fn float_to_int(&mut self, from: Format, w: u32, sign: bool, rounding: Rounding, a: u64) -> u64 {
        // A cast truncates and saturates, and takes NaN to 0.
        let x = widen(from, a);
        let x = if matches!(rounding, Rounding::Zero) { x } else { integral!(rounding, x) };
        if sign {
            let (low, high) = (-1i64 << (w - 1), (mask(w) >> 1) as i64);
            (x as i64).clamp(low, high) as u64 & mask(w)
        } else {
            (x as u64).min(mask(w))
        }
    }
    #[inline(always)]
    fn int_to_float(&mut self, w: u32, sign: bool, to: Format, rounding: Rounding, a: u64) -> u64 {
        if w <= 32 {
            let x = if sign { signed(w, a) as i32 as f64 } else { a as u32 as f64 };
            narrow(to, rounding, x)
        } else {
            from_int64(sign, to, rounding, if sign { signed(w, a) as u64 } else { a })
        }
    }
    #[inline(always)]
    fn function(&mut self, f: Format, function: Function, a: u64) -> u64 {
        narrow(f, Rounding::Even, function64(function, widen(f, a)))
    }
    #[inline(always)]
    fn fpow(&mut self, f: Format, a: u64, b: u64) -> u64 {
        narrow(f, Rounding::Even, widen(f, a).powf(widen(f, b)))
    }
}

/// Converts a 64-bit integer: its top 53 bits rounded to odd are exact enough for the smaller formats.
fn from_int64(sign: bool, to: Format, rounding: Rounding, a: u64) -> u64 {
    let negative = sign && (a as i64) < 0;
    let magnitude = if negative { (a as i64).unsigned_abs() } else { a };
    let drop = 11u32.saturating_sub(magnitude.leading_zeros());
    let x = if to == Format::F64 {
        let near = magnitude as f64;
        let cut = (magnitude >> drop << drop) as f64;
        let outwards = match rounding {
            Rounding::Even | Rounding::Away => None,
            Rounding::Zero => Some(false),
            Rounding::Up => Some(!negative),
            Rounding::Down => Some(negative),
        };
        match outwards {
            Some(true) if cut as u64 != magnitude => f64::from_bits(cut.to_bits() + 1),
            Some(_) => cut,
            None => near,
        }
    } else {
        let sticky = u64::from(magnitude & ((1 << drop) - 1) != 0);
        ((magnitude >> drop | sticky) as f64) * (1u64 << drop) as f64
    };
    narrow(to, rounding, if negative { -x } else { x })
}
