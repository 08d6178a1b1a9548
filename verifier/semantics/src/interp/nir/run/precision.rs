//! The errors that the specification of Vulkan allows operations on floats: the bits in which allowed results differ.
//!
//! Source: the Vulkan specification, "Precision and Operation of SPIR-V Instructions". An operation has an error, in
//! units in the last place or as a distance, or inherits it from an expression of exact operations: where each step
//! of that is representable, no order of the steps and no fusion has another result.

use crate::arithmetic::float;
use ir3_compiler::nir::Op;
use smallvec::{SmallVec, smallvec};

/// The open bits of each result of an operation.
pub(super) type OpenBits = SmallVec<[u32; 4]>;

/// Returns true if the specification gives an operation an error, but for single operands.
pub fn has_error(op: Op) -> bool {
    matches!(
        op,
        Op::Fdiv
            | Op::Frcp
            | Op::Frsq
            | Op::Fsqrt
            | Op::Fexp2
            | Op::Flog2
            | Op::Fsin
            | Op::Fcos
            | Op::UnpackSnorm2x16
            | Op::UnpackUnorm2x16
            | Op::UnpackSnorm4x8
            | Op::UnpackUnorm4x8
    )
}

/// Returns true if the specification gives an operation a result by an expression, which is exact for some operands.
pub(super) fn is_derived(op: Op) -> bool {
    matches!(
        op,
        Op::Fmod
            | Op::Frem
            | Op::Ffract
            | Op::Flrp
            | Op::Ldexp
            | Op::FrexpSig
            | Op::FrexpExp
            | Op::Fquantize2f16
            | Op::PackHalf2x16
            | Op::PackHalf2x16Split
            | Op::UnpackHalf2x16
            | Op::PackSnorm2x16
            | Op::PackUnorm2x16
            | Op::PackSnorm4x8
            | Op::PackUnorm4x8
            | Op::Fsum2
            | Op::Fsum3
            | Op::Fsum4
            | Op::Fdot2
            | Op::Fdot3
            | Op::Fdot4
            | Op::Fdph
    )
}

/// A format of floats.
#[derive(Clone, Copy)]
struct Format {
    bits: u8,
    fraction: i32,
    /// The exponents of the smallest and of the largest normal number.
    exponents: [i32; 2],
}

const HALF: Format = Format { bits: 16, fraction: 10, exponents: [-14, 15] };
const SINGLE: Format = Format { bits: 32, fraction: 23, exponents: [-126, 127] };

impl Format {
    const fn of(bits: u8) -> Option<Self> {
        match bits {
            16 => Some(HALF),
            32 => Some(SINGLE),
            _ => None,
        }
    }

    /// The number of an operand; none if it is a denormal, an infinity or a NaN.
    fn number(self, word: u32) -> Option<f64> {
        let word = if self.bits == 16 { float::f16_to_f32(word & 0xffff) } else { word };
        let value = f64::from(f32::from_bits(word));
        (value == 0.0 || self.is_normal(value)).then_some(value)
    }

    fn is_normal(self, value: f64) -> bool {
        let [least, most] = self.exponents;
        value.is_finite() && value != 0.0 && (least..=most).contains(&exponent(value))
    }

    /// Returns true for zeros and normal numbers of this format.
    fn has(self, value: f64) -> bool {
        value == 0.0 || self.is_normal(value) && (value / self.ulp(value)).fract() == 0.0
    }

    /// A unit in the last place.
    fn ulp(self, value: f64) -> f64 {
        2_f64.powi(exponent(value) - self.fraction)
    }

    const fn sign(self) -> u32 {
        1 << (self.bits - 1)
    }

    const fn whole(self) -> u32 {
        if self.bits == 16 { 0xffff } else { u32::MAX }
    }

    /// The number of normal numbers and fractions below a magnitude: its bits without the sign.
    fn ordinal(self, magnitude: f64, rounding: fn(f64) -> f64) -> u32 {
        let steps = rounding(magnitude / self.ulp(magnitude));
        let of_exponent = f64::from((exponent(magnitude) - self.exponents[0]) << self.fraction);
        (of_exponent + steps) as u32
    }

    /// The bits in which the numbers of an interval differ: all of them where it has a zero or leaves normal numbers.
    fn differing(self, least: f64, most: f64) -> u32 {
        let (near, far) = if least > 0.0 { (least, most) } else { (-most, -least) };
        if !(near > 0.0 && self.is_normal(near) && self.is_normal(2.0 * far)) {
            return self.whole();
        }
        below(self.ordinal(near, f64::floor) ^ self.ordinal(far, f64::ceil))
    }
}

/// The exponent of a number that is no zero.
fn exponent(value: f64) -> i32 {
    // A number of a format of 32 bits is normal in one of 64.
    (value.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

/// All bits up to the highest one of a difference.
const fn below(difference: u32) -> u32 {
    match difference.leading_zeros() {
        0 => u32::MAX,
        zeros => (1 << (32 - zeros)) - 1,
    }
}

/// The open bits of the results of an operation with an error or an expression, where the modes of denormals,
/// infinities and NaNs do not count; none if nothing is known of a result.
pub(super) fn open_bits(op: Op, [bits, source_bits]: [u8; 2], operands: &[u32]) -> Option<OpenBits> {
    let (source, target) = (Format::of(source_bits)?, Format::of(bits)?);
    let one = |open: u32| Some(smallvec![open]);
    match op {
        Op::UnpackHalf2x16 => {
            let halves = [operands[0] & 0xffff, operands[0] >> 16];
            Some(halves.map(|half| if HALF.number(half).is_some() { 0 } else { u32::MAX }).into_iter().collect())
        }
        Op::UnpackSnorm2x16 | Op::UnpackUnorm2x16 | Op::UnpackSnorm4x8 | Op::UnpackUnorm4x8 => {
            Some(normalised(op, operands[0]).into_iter().map(of_quotient).collect())
        }
        Op::Ldexp => {
            let (value, power) = (source.number(operands[0])?, operands[1] as i32);
            let [least, most] = source.exponents;
            let is_in_range = (least..=most).contains(&power);
            (is_in_range && source.has(value * 2_f64.powi(power))).then(|| smallvec![0])
        }
        _ => {
            let numbers: SmallVec<[f64; 8]> =
                operands.iter().map(|&word| source.number(word)).collect::<Option<_>>()?;
            if let Some([least, most]) = interval(op, source, &numbers) {
                return one(target.differing(least, most));
            }
            one(expression(op, target, &numbers)?)
        }
    }
}

/// The least and the largest allowed result.
fn interval(op: Op, format: Format, numbers: &[f64]) -> Option<[f64; 2]> {
    let a = *numbers.first()?;
    let is_half = format.bits == 16;
    let divides = |by: f64| format.is_normal(by) && format.is_normal(1.0 / by);
    let around = |value: f64, error: f64| Some([value - error, value + error]);
    let units = |value: f64, count: f64| around(value, count * format.ulp(value));
    match op {
        Op::Frcp if divides(a) => units(1.0 / a, 2.5),
        Op::Fdiv if a != 0.0 && divides(numbers[1]) => units(a / numbers[1], 2.5),
        Op::Frsq if a > 0.0 => units(1.0 / a.sqrt(), 2.0),
        // That of a quotient by a square root.
        Op::Fsqrt if a > 0.0 => {
            let value = a.sqrt();
            let of_root = 2.0 * format.ulp(1.0 / value) * value * value;
            around(value, 1.01 * (of_root + 2.5 * format.ulp(value)))
        }
        Op::Fexp2 => {
            let value = a.exp2();
            let least = if is_half { 1.0 } else { 3.0 };
            format.is_normal(value).then(|| units(value, least + 2.0 * a.abs()))?
        }
        Op::Flog2 if (0.5..=2.0).contains(&a) => {
            around(a.log2(), if is_half { 2_f64.powi(-7) } else { 2_f64.powi(-21) })
        }
        Op::Flog2 if a > 0.0 => units(a.log2(), 3.0),
        Op::Fsin | Op::Fcos if a.abs() <= std::f64::consts::PI => {
            let value = if op == Op::Fsin { a.sin() } else { a.cos() };
            around(value, if is_half { 2_f64.powi(-7) } else { 2_f64.powi(-11) })
        }
        _ => None,
    }
}

/// The open bits of a result that an expression gives; none if a step of it is not exact.
fn expression(op: Op, format: Format, numbers: &[f64]) -> Option<u32> {
    let is_exact = |steps: &[f64]| steps.iter().all(|&step| format.has(step));
    // The sign of a zero may depend on the order.
    let of_zero = |value: f64| if value == 0.0 { format.sign() } else { 0 };
    match (op, numbers) {
        (Op::FrexpSig | Op::FrexpExp, [_]) => Some(0),
        (Op::Ffract, &[a]) => {
            let value = a - a.floor();
            is_exact(&[value]).then(|| of_zero(value))
        }
        (Op::Fmod | Op::Frem, &[a, b]) if b != 0.0 => {
            let quotient = a / b;
            let whole = if op == Op::Fmod { quotient.floor() } else { quotient.trunc() };
            // The quotient has an error itself.
            let margin = quotient.abs() * 2_f64.powi(3 - format.fraction);
            let value = a - b * whole;
            let is_decided = (quotient - quotient.round()).abs() > margin;
            (is_decided && is_exact(&[quotient.trunc(), b * whole, value])).then(|| of_zero(value))
        }
        (Op::Flrp, &[a, b, c]) => {
            let value = a * (1.0 - c) + b * c;
            is_exact(&[1.0 - c, a * (1.0 - c), b * c, b - a, c * (b - a), value]).then(|| of_zero(value))
        }
        (Op::Fquantize2f16, &[a]) => Some(match HALF.has(a) {
            true => 0,
            false => {
                let ulp = HALF.is_normal(2.0 * a).then(|| HALF.ulp(a))?;
                let least = (a / ulp).floor() * ulp;
                SINGLE.differing(least, least + ulp)
            }
        }),
        (Op::PackHalf2x16 | Op::PackHalf2x16Split, &[low, high]) => Some(of_half(low)? | of_half(high)? << 16),
        (Op::PackSnorm2x16, _) => packed(numbers, -1.0, 32767.0),
        (Op::PackUnorm2x16, _) => packed(numbers, 0.0, 65535.0),
        (Op::PackSnorm4x8, _) => packed(numbers, -1.0, 127.0),
        (Op::PackUnorm4x8, _) => packed(numbers, 0.0, 255.0),
        (Op::Fsum2 | Op::Fsum3 | Op::Fsum4, _) => of_sum(format, numbers),
        (Op::Fdot2 | Op::Fdot3 | Op::Fdot4, _) => {
            let (a, b) = numbers.split_at(numbers.len() / 2);
            let products: SmallVec<[f64; 4]> = a.iter().zip(b).map(|(a, b)| a * b).collect();
            of_sum(format, &products)
        }
        (Op::Fdph, &[a, b, c, x, y, z, w]) => of_sum(format, &[a * x, b * y, c * z, w]),
        _ => None,
    }
}

/// The open bits of a number that is converted to 16 bits in any direction.
fn of_half(value: f64) -> Option<u32> {
    if HALF.has(value) {
        return Some(0);
    }
    let magnitude = value.abs();
    let is_in_range = HALF.is_normal(magnitude) && HALF.is_normal(2.0 * magnitude);
    is_in_range.then(|| below(HALF.ordinal(magnitude, f64::floor) ^ HALF.ordinal(magnitude, f64::ceil)))
}

/// No bit is open where no number is near the middle between two integers.
fn packed(numbers: &[f64], least: f64, scale: f64) -> Option<u32> {
    let is_decided = numbers.iter().all(|value| {
        let scaled = value.clamp(least, 1.0) * scale;
        ((scaled - scaled.floor()) - 0.5).abs() > 2_f64.powi(-6)
    });
    is_decided.then_some(0)
}

/// A sum is exact in any order if all partial sums are multiples of one unit that fit the fraction.
fn of_sum(format: Format, terms: &[f64]) -> Option<u32> {
    let lowest = |value: f64| exponent(value) - 52 + (value.to_bits() | 1 << 52).trailing_zeros() as i32;
    let Some(unit) = terms.iter().filter(|&&term| term != 0.0).map(|&term| lowest(term)).min() else {
        return Some(format.sign());
    };
    let most: f64 = terms.iter().map(|term| term.abs()).sum();
    let fits = most < 2_f64.powi(unit + format.fraction + 1) && most < 2_f64.powi(format.exponents[1]);
    let is_normal = terms.iter().all(|&term| term == 0.0 || format.is_normal(term)) && unit >= format.exponents[0];
    let value: f64 = terms.iter().sum();
    (fits && is_normal).then(|| if value == 0.0 { format.sign() } else { 0 })
}

/// Returns true if a product of halves is one, so that a sum of it is the same with and without rounding between them.
pub(super) fn is_exact_product(a: u32, b: u32) -> bool {
    let product = HALF.number(a).zip(HALF.number(b)).map(|(a, b)| a * b);
    product.is_some_and(|product| HALF.has(product))
}

/// The components of a word as normalised numbers.
fn normalised(op: Op, word: u32) -> SmallVec<[f64; 4]> {
    let (bits, is_signed) = match op {
        Op::UnpackSnorm2x16 => (16, true),
        Op::UnpackUnorm2x16 => (16, false),
        Op::UnpackSnorm4x8 => (8, true),
        _ => (8, false),
    };
    let parts = (0..32 / bits).map(|part| word >> (part * bits) << (32 - bits));
    parts
        .map(|part| match is_signed {
            true => (f64::from(part as i32 >> (32 - bits)) / f64::from((1_u32 << (bits - 1)) - 1)).max(-1.0),
            false => f64::from(part >> (32 - bits)) / f64::from((1_u32 << bits) - 1),
        })
        .collect()
}

/// The open bits of a quotient of integers, or of its product with an inverse.
fn of_quotient(value: f64) -> u32 {
    if value == 0.0 {
        return 0;
    }
    let error = 4.0 * SINGLE.ulp(value);
    SINGLE.differing(value - error, value + error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(op: Op, operands: &[f32]) -> Option<u32> {
        let words: Vec<u32> = operands.iter().map(|value| value.to_bits()).collect();
        open_bits(op, [32; 2], &words).map(|open| open[0])
    }

    #[test]
    fn upper_bits_of_results_with_an_error_are_decided() {
        let units = open(Op::Frcp, &[3.0]).expect("bits");
        assert!((0x3..=0xf).contains(&units), "{units:#x}");
        // 1 is at the border of two exponents.
        assert_eq!(open(Op::Frcp, &[1.0]), Some(0x00ff_ffff));
        let sine = open(Op::Fsin, &[0.75]).expect("bits");
        assert!((0x3fff..=0xffff).contains(&sine), "{sine:#x}");
        assert_eq!(open(Op::Fsin, &[4.0]), None);
        assert_eq!(open(Op::Fsin, &[0.0]), Some(u32::MAX));
        assert_eq!(open(Op::Frsq, &[-1.0]), None);
        assert_eq!(open(Op::Fexp2, &[200.0]), None);
        for value in [0.7_f32, 1.3, 2.5, 9.1, 1000.0] {
            for (op, result) in [
                (Op::Frcp, 1.0 / value),
                (Op::Fsqrt, value.sqrt()),
                (Op::Frsq, 1.0 / value.sqrt()),
                (Op::Flog2, value.log2()),
                (Op::Fexp2, value.exp2()),
            ] {
                let Some(open) = open(op, &[value]) else { continue };
                for other in [result.to_bits() - 1, result.to_bits() + 1] {
                    assert_eq!((other ^ result.to_bits()) & !open, 0, "{op} of {value}");
                }
            }
        }
    }

    #[test]
    fn an_expression_without_rounding_is_exact() {
        assert_eq!(open(Op::Fdot2, &[1.0, 2.0, 3.0, 4.0]), Some(0));
        assert_eq!(open(Op::Fdot2, &[1.0, 2.0, 2.0, -1.0]), Some(0x8000_0000));
        assert_eq!(open(Op::Fsum2, &[16_777_216.0, 1.0]), None);
        assert_eq!(open(Op::Fsum3, &[16_777_216.0, 1.0, -16_777_216.0]), None);
        assert_eq!(open(Op::Flrp, &[1.0, 3.0, 0.25]), Some(0));
        assert_eq!(open(Op::Flrp, &[1.0, 3.0, 0.1]), None);
        assert_eq!(open(Op::Fmod, &[7.5, 2.0]), Some(0));
        assert_eq!(open(Op::Fmod, &[8.0, 2.0]), None);
        assert_eq!(open(Op::Ffract, &[2.75]), Some(0));
        assert_eq!(open(Op::Ffract, &[-1e-9]), None);
        assert_eq!(open_bits(Op::Ldexp, [32; 2], &[3.0_f32.to_bits(), 4]).as_deref(), Some(&[0][..]));
        assert_eq!(open_bits(Op::Ldexp, [32; 2], &[3.0_f32.to_bits(), 127]), None);
    }

    #[test]
    fn conversions_round_in_any_direction() {
        assert_eq!(open(Op::PackHalf2x16, &[1.5, 2.0]), Some(0));
        let open_half = open(Op::PackHalf2x16, &[1.5, 0.1]).expect("bits");
        assert!(open_half & 0xffff == 0 && open_half >> 16 != 0 && open_half >> 24 == 0, "{open_half:#x}");
        assert_eq!(open(Op::PackHalf2x16, &[1.5, 1e9]), None);
        assert_eq!(open(Op::PackUnorm4x8, &[0.0, 1.0, 2.0, -1.0]), Some(0));
        assert_eq!(open(Op::PackUnorm4x8, &[0.0, 1.0, 2.0, 0.5]), None);
        assert_eq!(open(Op::Fquantize2f16, &[0.5]), Some(0));
        let quantised = open(Op::Fquantize2f16, &[0.1]).expect("bits");
        assert_eq!(quantised & 0x1fff, 0x1fff);
        let unpacked = open_bits(Op::UnpackUnorm4x8, [32; 2], &[0x0100_ff80]).expect("bits");
        assert!(unpacked[0] < 0x100 && unpacked[2] == 0 && unpacked[3] < 0x100, "{unpacked:x?}");
        assert_eq!(open_bits(Op::UnpackHalf2x16, [32; 2], &[0x3c00_0001]).as_deref(), Some(&[u32::MAX, 0][..]));
    }
}
