//! Arithmetic of machine words over the integers, for proofs.
//!
//! A word is a polynomial with integer coefficients in *unknowns* (pieces of the operands, and quotients that
//! operations introduce), with an upper bound; it is never negative. `x >> 16` is an unknown `h`, and then `x & 0xffff`
//! is `x - 2^16 h`. A sum that may exceed a word is the sum minus `2^32 k`, for an unknown `k`. So a statement about
//! words is one about polynomials, which are equal for all values of all unknowns if their coefficients are.

use super::Arithmetic;
use std::collections::BTreeMap;

/// A product of unknowns, sorted.
type Monomial = Vec<u32>;

/// A polynomial. No coefficient is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polynomial(BTreeMap<Monomial, i128>);

impl Polynomial {
    fn add_to(&mut self, monomial: Monomial, coefficient: i128) {
        let sum = self.0.get(&monomial).copied().unwrap_or(0) + coefficient;
        if sum == 0 {
            self.0.remove(&monomial);
        } else {
            self.0.insert(monomial, sum);
        }
    }

    /// The sum with `factor` times another polynomial.
    pub fn plus(&self, factor: i128, other: &Self) -> Self {
        let mut out = self.clone();
        for (monomial, coefficient) in &other.0 {
            out.add_to(monomial.clone(), factor * coefficient);
        }
        out
    }

    /// The product.
    pub fn times(&self, other: &Self) -> Self {
        let mut out = Self::default();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                let mut monomial = [a.as_slice(), b].concat();
                monomial.sort_unstable();
                out.add_to(monomial, x * y);
            }
        }
        out
    }

    /// Returns true if the polynomial is a multiple of 2^bits for all values of the unknowns.
    pub fn vanishes(&self, bits: u32) -> bool {
        self.0.values().all(|coefficient| coefficient % (1 << bits) == 0)
    }
}

/// A word.
#[derive(Clone, Debug)]
pub struct ExactWord {
    /// The value.
    pub value: Polynomial,
    /// The upper bound.
    pub most: u128,
}

/// The arithmetic. Words that are the same polynomial have the same halves.
#[derive(Default)]
pub struct Exact {
    unknowns: u32,
    /// Words that have been split, and their high halves.
    halves: Vec<(Polynomial, ExactWord)>,
}

impl Exact {
    fn unknown(&mut self, most: u128) -> ExactWord {
        if most == 0 {
            return ExactWord { value: Polynomial::default(), most };
        }
        let value = Polynomial(BTreeMap::from([(vec![self.unknowns], 1)]));
        self.unknowns += 1;
        ExactWord { value, most }
    }

    /// An arbitrary word of 32 bits.
    pub fn any(&mut self) -> ExactWord {
        let [high, low] = [self.unknown(0xffff), self.unknown(0xffff)];
        let word = ExactWord { value: low.value.plus(1 << 16, &high.value), most: u32::MAX.into() };
        // The rest is less than 2^16, so this splits it.
        self.halves.push((word.value.clone(), high));
        word
    }

    /// An arbitrary bit.
    pub fn bit(&mut self) -> ExactWord {
        self.unknown(1)
    }

    /// The product over the integers.
    pub fn product(&self, a: &ExactWord, b: &ExactWord) -> ExactWord {
        ExactWord { value: a.value.times(&b.value), most: a.most * b.most }
    }

    /// A value modulo 2^32: at most `most` before, and maybe negative.
    fn wrapped(&mut self, value: Polynomial, most: u128, negative: bool) -> ExactWord {
        if most <= u32::MAX.into() && !negative {
            return ExactWord { value, most };
        }
        let carry = self.unknown(u128::MAX);
        ExactWord { value: value.plus(-(1 << 32), &carry.value), most: u32::MAX.into() }
    }

    /// The high 32 bits of a product.
    pub fn product_high(&mut self, a: &ExactWord, b: &ExactWord) -> ExactWord {
        let product = self.product(a, b);
        self.unknown(product.most >> 32)
    }
}

impl Arithmetic for Exact {
    type V = ExactWord;

    fn high_half(&mut self, a: &ExactWord) -> ExactWord {
        if let Some((_, high)) = self.halves.iter().find(|(value, _)| *value == a.value) {
            return high.clone();
        }
        let high = self.unknown(a.most >> 16);
        self.halves.push((a.value.clone(), high.clone()));
        high
    }
    fn low_half(&mut self, a: &ExactWord) -> ExactWord {
        let high = self.high_half(a);
        ExactWord { value: a.value.plus(-(1 << 16), &high.value), most: a.most.min(0xffff) }
    }
    fn multiply_halves(&mut self, a: &ExactWord, b: &ExactWord) -> ExactWord {
        let (a, b) = (self.low_half(a), self.low_half(b));
        self.product(&a, &b)
    }
    fn multiply_add(&mut self, a: &ExactWord, b: &ExactWord, c: &ExactWord) -> ExactWord {
        let (a, b) = (self.low_half(a), self.high_half(b));
        let product = self.product(&a, &b);
        let low = self.low_half(&product);
        self.wrapped(c.value.plus(1 << 16, &low.value), (low.most << 16) + c.most, false)
    }
    fn plus(&mut self, a: &ExactWord, b: &ExactWord) -> ExactWord {
        self.wrapped(a.value.plus(1, &b.value), a.most + b.most, false)
    }
    fn minus(&mut self, a: &ExactWord, b: &ExactWord) -> ExactWord {
        self.wrapped(a.value.plus(-1, &b.value), a.most, true)
    }
}
