//! The vocabulary of primitive operations in which every definition is written.
//!
//! A value is a bit vector of 1 to 64 bits; the caller passes the width along. Conditions are bit vectors of one bit.
//! An operation that SMT's theory of bit vectors lacks is defined here in terms of those that it has; a domain may
//! override the definition with something faster of the same meaning. Float operations are primitives: a domain of
//! terms may treat them as uninterpreted functions. Every float operation that results in a NaN gives the canonical
//! NaN; a product gives it with the sign that the product of numbers would have.

/// A binary floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// binary16.
    F16,
    /// binary32.
    F32,
    /// binary64.
    F64,
}

impl Format {
    /// The format of a width.
    pub const fn of_width(width: u32) -> Option<Format> {
        match width {
            16 => Some(Format::F16),
            32 => Some(Format::F32),
            64 => Some(Format::F64),
            _ => None,
        }
    }

    /// The number of bits of a value.
    pub const fn width(self) -> u32 {
        match self {
            Format::F16 => 16,
            Format::F32 => 32,
            Format::F64 => 64,
        }
    }

    /// The number of bits of the fraction.
    pub const fn fraction(self) -> u32 {
        match self {
            Format::F16 => 10,
            Format::F32 => 23,
            Format::F64 => 52,
        }
    }

    /// The canonical NaN.
    pub const fn nan(self) -> u64 {
        match self {
            Format::F16 => 0x7e00,
            Format::F32 => 0x7fc0_0000,
            Format::F64 => 0x7ff8_0000_0000_0000,
        }
    }

    /// Positive infinity.
    pub const fn infinity(self) -> u64 {
        match self {
            Format::F16 => 0x7c00,
            Format::F32 => 0x7f80_0000,
            Format::F64 => 0x7ff0_0000_0000_0000,
        }
    }

    /// 1.0
    pub const fn one(self) -> u64 {
        match self {
            Format::F16 => 0x3c00,
            Format::F32 => 0x3f80_0000,
            Format::F64 => 0x3ff0_0000_0000_0000,
        }
    }

    /// The sign bit.
    pub const fn sign(self) -> u64 {
        1 << (self.width() - 1)
    }
}

/// The direction in which an inexact result is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rounding {
    /// Rounds to the nearest, ties to even.
    Even,
    /// Rounds to the nearest, ties away from zero.
    Away,
    /// Towards zero.
    Zero,
    /// Up.
    Up,
    /// Down.
    Down,
}

impl Rounding {
    /// The machine's rounding mode, where an instruction carries none: conversions to floats and from floats to
    /// integers, and the results of operations that convert them.
    pub const MACHINE: Rounding = Rounding::Zero;
}

/// A function that no instruction computes exactly. Its value is that of Rust's `f64` function, rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Function {
    /// 1/x
    Reciprocal,
    /// 1/sqrt(x)
    ReciprocalSqrt,
    /// sqrt(x)
    Sqrt,
    /// Binary logarithm.
    Log2,
    /// Power of two.
    Exp2,
    /// Sine of radians.
    Sin,
    /// Cosine of radians.
    Cos,
}

/// The primitive operations.
///
/// `w` is the width of the operands and, unless the name indicates otherwise, of the result. Shift counts are less than
/// `w`.
pub trait Domain {
    /// A value.
    type V: Clone;

    /// A constant.
    fn constant(&mut self, w: u32, bits: u64) -> Self::V;
    /// Complement.
    fn not(&mut self, w: u32, a: Self::V) -> Self::V;
    /// Bitwise and.
    fn and(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;
    /// Bitwise or.
    fn or(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;
    /// Exclusive or.
    fn xor(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;
    /// Sum.
    fn add(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;
    /// Difference.
    fn sub(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;
    /// Low half of the product.
    fn mul(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;
    /// Unsigned quotient; all ones if `b` is 0.
    fn udiv(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;
    /// Unsigned remainder; `a` if `b` is 0.
    fn urem(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;
    /// Left shift.
    fn shl(&mut self, w: u32, a: Self::V, count: Self::V) -> Self::V;
    /// Logical right shift.
    fn lshr(&mut self, w: u32, a: Self::V, count: Self::V) -> Self::V;
    /// Arithmetic right shift.
    fn ashr(&mut self, w: u32, a: Self::V, count: Self::V) -> Self::V;
    /// Equality: one bit.
    fn eq(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;
    /// Unsigned less than: one bit.
    fn ult(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;
    /// Signed less than: one bit.
    fn slt(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;
    /// `a` if the bit `condition` is 1, else `b`.
    fn ite(&mut self, w: u32, condition: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// Zero extension from `w` to `to` bits, `to` being no less than `w`.
    fn zext(&mut self, w: u32, to: u32, a: Self::V) -> Self::V;
    /// Sign extension from `w` to `to` bits, `to` being no less than `w`.
    fn sext(&mut self, w: u32, to: u32, a: Self::V) -> Self::V;
    /// The `n` bits of `a` starting at bit `low`.
    fn extract(&mut self, w: u32, a: Self::V, low: u32, n: u32) -> Self::V;
    /// `high` concatenated above `low`, of `w_high` and `w_low` bits.
    fn concat(&mut self, w_high: u32, high: Self::V, w_low: u32, low: Self::V) -> Self::V;

    /// High half of the unsigned product.
    fn umul_high(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;
    /// High half of the signed product.
    fn smul_high(&mut self, w: u32, a: Self::V, b: Self::V) -> Self::V;

    /// Number of bits that are 1.
    fn popcount(&mut self, w: u32, a: Self::V) -> Self::V {
        let mut sum = self.constant(w, 0);
        for bit in 0..w {
            let one = self.extract(w, a.clone(), bit, 1);
            let one = self.zext(1, w, one);
            sum = self.add(w, sum, one);
        }
        sum
    }

    /// Number of zeros above the highest 1; `w` for 0.
    fn clz(&mut self, w: u32, a: Self::V) -> Self::V {
        let mut count = self.constant(w, u64::from(w));
        for bit in 0..w {
            let one = self.extract(w, a.clone(), bit, 1);
            let here = self.constant(w, u64::from(w - 1 - bit));
            count = self.ite(w, one, here, count);
        }
        count
    }

    /// The bits in reverse order.
    fn reverse(&mut self, w: u32, a: Self::V) -> Self::V {
        let mut out = self.extract(w, a.clone(), 0, 1);
        for bit in 1..w {
            let low = self.extract(w, a.clone(), bit, 1);
            out = self.concat(bit, out, 1, low);
        }
        out
    }

    /// Sum.
    fn fadd(&mut self, f: Format, a: Self::V, b: Self::V) -> Self::V;
    /// Product. The sign of a NaN is the exclusive or of the signs of `a` and `b`, as for any product.
    fn fmul(&mut self, f: Format, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once.
    fn ffma(&mut self, f: Format, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// Quotient.
    fn fdiv(&mut self, f: Format, a: Self::V, b: Self::V) -> Self::V;
    /// Rounding to an integral value.
    fn fround(&mut self, f: Format, rounding: Rounding, a: Self::V) -> Self::V;
    /// Ordered equality: one bit.
    fn feq(&mut self, f: Format, a: Self::V, b: Self::V) -> Self::V;
    /// Ordered less than: one bit.
    fn flt(&mut self, f: Format, a: Self::V, b: Self::V) -> Self::V;
    /// Ordered less than or equal: one bit.
    fn fle(&mut self, f: Format, a: Self::V, b: Self::V) -> Self::V;
    /// Converts to another format.
    fn fconvert(&mut self, from: Format, to: Format, rounding: Rounding, a: Self::V) -> Self::V;
    /// Converts to an integer of `w` bits, clamped to its range; 0 for NaN.
    fn float_to_int(&mut self, from: Format, w: u32, signed: bool, rounding: Rounding, a: Self::V) -> Self::V;
    /// Converts an integer of `w` bits.
    fn int_to_float(&mut self, w: u32, signed: bool, to: Format, rounding: Rounding, a: Self::V) -> Self::V;
    /// A function without an exact result.
    fn function(&mut self, f: Format, function: Function, a: Self::V) -> Self::V;
    /// `a` to the power `b`.
    fn fpow(&mut self, f: Format, a: Self::V, b: Self::V) -> Self::V;
}
