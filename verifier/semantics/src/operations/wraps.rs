//! The overflow of integer operations that promise none: nir's `nuw` and `nsw`.

use crate::arithmetic::domain::Domain;
use ir3_compiler::nir::Op;

/// The operations that promise not to overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoWrap {
    /// The operation.
    pub op: Op,
    /// The number of bits of its operands and of its result.
    pub bits: u32,
    /// It does not overflow as one of signed numbers.
    pub signed: bool,
    /// It does not overflow as one of unsigned numbers.
    pub unsigned: bool,
}

impl NoWrap {
    /// The promise about signed numbers, and the one about unsigned numbers.
    pub fn each(self) -> [Self; 2] {
        [Self { unsigned: false, ..self }, Self { signed: false, ..self }]
    }

    /// One bit: 1 if the operation breaks its promise on these operands, of `bits` bits. A unary operation passes its
    /// operand twice. `None` where that is not known of the operation.
    pub fn is_broken<D: Domain>(self, d: &mut D, a: D::V, b: D::V) -> Option<D::V> {
        let Self { op, bits: w, signed, unsigned } = self;
        let zero = d.constant(w, 0);
        let (a, b) = match op {
            Op::Ineg => (zero, a),
            _ => (a, b),
        };
        let [by_sign, by_carry] = match op {
            Op::Iadd => {
                let sum = d.add(w, a.clone(), b.clone());
                let carry = d.ult(w, sum.clone(), a.clone());
                // The operands have one sign, and the sum has the other.
                let [x, y] = [a, b].map(|operand| d.xor(w, operand, sum.clone()));
                [sign(d, w, x, y), carry]
            }
            Op::Isub | Op::Ineg => {
                let difference = d.sub(w, a.clone(), b.clone());
                let borrow = d.ult(w, a.clone(), b.clone());
                let x = d.xor(w, a.clone(), b);
                let y = d.xor(w, a, difference);
                [sign(d, w, x, y), borrow]
            }
            Op::Imul if w <= 32 => {
                let [of_signed, of_unsigned] = [true, false].map(|is_signed| {
                    let mut wide = |x: D::V| if is_signed { d.sext(w, 2 * w, x) } else { d.zext(w, 2 * w, x) };
                    let (x, y) = (wide(a.clone()), wide(b.clone()));
                    let product = d.mul(2 * w, x, y);
                    let low = d.extract(2 * w, product.clone(), 0, w);
                    let back = if is_signed { d.sext(w, 2 * w, low) } else { d.zext(w, 2 * w, low) };
                    differ(d, 2 * w, product, back)
                });
                [of_signed, of_unsigned]
            }
            Op::Ishl => {
                let limit = d.constant(w, u64::from(w) - 1);
                let count = d.and(w, b, limit);
                let shifted = d.shl(w, a.clone(), count.clone());
                let signed = d.ashr(w, shifted.clone(), count.clone());
                let unsigned = d.lshr(w, shifted, count);
                [signed, unsigned].map(|back| differ(d, w, a.clone(), back))
            }
            _ => return None,
        };
        let never = d.constant(1, 0);
        let by_sign = if signed { by_sign } else { never.clone() };
        let by_carry = if unsigned { by_carry } else { never };
        Some(d.or(1, by_sign, by_carry))
    }
}

/// The sign of a conjunction.
fn sign<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let both = d.and(w, a, b);
    d.extract(w, both, w - 1, 1)
}

fn differ<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let same = d.eq(w, a, b);
    d.not(1, same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::concrete::Concrete;

    /// The promises that an operation of 8 bits breaks: as one of signed numbers, as one of unsigned numbers.
    fn broken(op: Op, a: u8, b: u8) -> [bool; 2] {
        [(true, false), (false, true)].map(|(signed, unsigned)| {
            let promise = NoWrap { op, bits: 8, signed, unsigned };
            promise.is_broken(&mut Concrete, a.into(), b.into()).expect("a known operation") != 0
        })
    }

    #[test]
    fn overflow_is_that_of_wider_numbers() {
        for (a, b) in (0..=255u8).flat_map(|a| (0..=255u8).map(move |b| (a, b))) {
            let [s, t] = [a, b].map(|x| i32::from(x as i8));
            let [u, v] = [a, b].map(i32::from);
            let expected =
                |signed: i32, unsigned: i32| [i8::try_from(signed).is_err(), u8::try_from(unsigned).is_err()];
            assert_eq!(broken(Op::Iadd, a, b), expected(s + t, u + v), "{a} + {b}");
            assert_eq!(broken(Op::Isub, a, b), expected(s - t, u - v), "{a} - {b}");
            assert_eq!(broken(Op::Imul, a, b), expected(s * t, u * v), "{a} * {b}");
            assert_eq!(broken(Op::Ishl, a, b), expected(s << (b & 7), u << (b & 7)), "{a} << {b}");
            assert_eq!(broken(Op::Ineg, a, a), expected(-s, -u), "-{a}");
        }
        let unknown = NoWrap { op: Op::Iabs, bits: 8, signed: true, unsigned: false };
        assert_eq!(unknown.is_broken(&mut Concrete, 0, 0), None);
    }
}
