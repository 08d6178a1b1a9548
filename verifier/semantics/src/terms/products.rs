//! Products of terms that are not constants, and division.
//!
//! A product is its factors in order, constants moved out of them (see `sums`); a factor of one bit makes it a choice.
//! The high half of a product is a slice of the product of twice the width, if terms have such a width.

use super::{Args, MANY, Op, Term, Terms};
use crate::arithmetic::concrete::mask;

impl Terms {
    /// The low half of a product.
    pub(super) fn product(&mut self, w: u32, args: &[Term]) -> Term {
        if w == 1 {
            return self.all_of(1, args);
        }
        let mut number = 1u64;
        let mut factors = Args::new();
        let mut bits = Args::new();
        for &arg in args {
            self.push_factors(arg, &mut number, &mut factors, &mut bits);
        }
        number &= mask(w);
        if number == 0 {
            return self.number(w, 0);
        }
        factors.sort_unstable();
        let rest = match factors[..] {
            [] => self.number(w, 1),
            [one] => one,
            _ => self.intern(Op::Mul, w, &factors),
        };
        let product = self.multiple(w, rest, number);
        if bits.is_empty() {
            return product;
        }
        let condition = self.all_of(1, &bits);
        let zero = self.number(w, 0);
        self.choice(condition, product, zero)
    }

    fn push_factors(&self, t: Term, number: &mut u64, factors: &mut Args, bits: &mut Args) {
        match self.op(t) {
            Op::Constant(bits) => *number = number.wrapping_mul(bits),
            Op::Mul => match self.coefficient(t) {
                Some((factor, rest)) => {
                    *number = number.wrapping_mul(factor);
                    self.push_factors(rest, number, factors, bits);
                }
                None if factors.len() + self.nodes[t].args.len() <= MANY => {
                    factors.extend_from_slice(&self.nodes[t].args);
                }
                None => factors.push(t),
            },
            Op::Zext | Op::Sext if self.width(self.arg(t, 0)) == 1 => {
                bits.push(self.arg(t, 0));
                if self.op(t) == Op::Sext {
                    *number = number.wrapping_neg();
                }
            }
            _ => factors.push(t),
        }
    }

    /// The high half of a product.
    pub(super) fn product_high(&mut self, w: u32, sign: bool, a: Term, b: Term) -> Term {
        if w <= 32 {
            let wide = [a, b].map(|t| if sign { self.extend_signed(t, 2 * w) } else { self.extend(t, 2 * w) });
            let product = self.product(2 * w, &wide);
            return self.slice(product, w, w);
        }
        let (a, b) = (a.min(b), a.max(b));
        for (number, other) in [(a, b), (b, a)] {
            match self.as_constant(number) {
                Some(0) => return number,
                Some(1) if !sign => return self.number(w, 0),
                Some(bits) if !sign && bits.is_power_of_two() => {
                    let low = w - bits.trailing_zeros();
                    let part = self.slice(other, low, w - low);
                    return self.extend(part, w);
                }
                _ => {}
            }
        }
        self.plain(if sign { Op::SmulHigh } else { Op::UmulHigh }, w, &[a, b])
    }

    /// Unsigned quotient.
    pub(super) fn quotient(&mut self, w: u32, a: Term, b: Term) -> Term {
        match self.as_constant(b) {
            Some(0) => self.number(w, u64::MAX),
            Some(bits) if bits.is_power_of_two() => self.shifted_right(w, a, bits.trailing_zeros()),
            _ => self.plain(Op::Udiv, w, &[a, b]),
        }
    }

    /// Unsigned remainder.
    pub(super) fn remainder(&mut self, w: u32, a: Term, b: Term) -> Term {
        match self.as_constant(b) {
            Some(0) => a,
            Some(bits) if bits.is_power_of_two() => {
                let below = self.number(w, bits - 1);
                self.all_of(w, &[a, below])
            }
            _ => self.plain(Op::Urem, w, &[a, b]),
        }
    }
}
