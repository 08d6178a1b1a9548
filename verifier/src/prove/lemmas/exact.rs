//! Arithmetic of machine words over the integers, for proofs.
//!
//! A word is a polynomial with integer coefficients in *unknowns* (pieces of the operands, and what operations leave
//! open), and the largest number that it can be; none is negative. `x >> 16` is an unknown `h`, and then `x & 0xffff` is
//! `x - 2^16 h`. A sum that may be too large for a word is the sum minus `2^32 k`, for an unknown `k`. So a statement about
//! words is one about polynomials, which are equal if their coefficients are, for all values of all unknowns.

use super::Arithmetic;
use std::collections::BTreeMap;

/// Unknowns that are multiplied, in order.
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

    /// The sum with a multiple of another.
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

    /// Whether it is a multiple of 2^bits for all values of the unknowns.
    pub fn vanishes(&self, bits: u32) -> bool {
        self.0.values().all(|coefficient| coefficient % (1 << bits) == 0)
    }
}

/// A word.
#[derive(Clone, Debug)]
pub struct Word {
    /// What it is.
    pub value: Polynomial,
    /// No more than this.
    pub most: u128,
}

/// The arithmetic. Two words are halved alike if they are the same polynomial.
#[derive(Default)]
pub struct Exact {
    unknowns: u32,
    /// Words that have been halved, and their high halves.
    halves: Vec<(Polynomial, Word)>,
}

impl Exact {
    fn unknown(&mut self, most: u128) -> Word {
        if most == 0 {
            return Word { value: Polynomial::default(), most };
        }
        let value = Polynomial(BTreeMap::from([(vec![self.unknowns], 1)]));
        self.unknowns += 1;
        Word { value, most }
    }

    /// Any number of 32 bits.
    pub fn any(&mut self) -> Word {
        let [high, low] = [self.unknown(0xffff), self.unknown(0xffff)];
        let word = Word { value: low.value.plus(1 << 16, &high.value), most: u32::MAX.into() };
        // What is below is less than 2^16, so this is how it is halved.
        self.halves.push((word.value.clone(), high));
        word
    }

    /// Any bit.
    pub fn bit(&mut self) -> Word {
        self.unknown(1)
    }

    /// The product over the integers.
    pub fn product(&self, a: &Word, b: &Word) -> Word {
        Word { value: a.value.times(&b.value), most: a.most * b.most }
    }

    /// A number modulo 2^32 that is at most `most` before, and may be negative.
    fn wrapped(&mut self, value: Polynomial, most: u128, negative: bool) -> Word {
        if most <= u32::MAX.into() && !negative {
            return Word { value, most };
        }
        let carry = self.unknown(u128::MAX);
        Word { value: value.plus(-(1 << 32), &carry.value), most: u32::MAX.into() }
    }

    /// The high 32 bits of a product.
    pub fn product_high(&mut self, a: &Word, b: &Word) -> Word {
        let product = self.product(a, b);
        self.unknown(product.most >> 32)
    }
}

impl Arithmetic for Exact {
    type V = Word;

    fn high_half(&mut self, a: &Word) -> Word {
        if let Some((_, high)) = self.halves.iter().find(|(value, _)| *value == a.value) {
            return high.clone();
        }
        let high = self.unknown(a.most >> 16);
        self.halves.push((a.value.clone(), high.clone()));
        high
    }
    fn low_half(&mut self, a: &Word) -> Word {
        let high = self.high_half(a);
        Word { value: a.value.plus(-(1 << 16), &high.value), most: a.most.min(0xffff) }
    }
    fn multiply_halves(&mut self, a: &Word, b: &Word) -> Word {
        let (a, b) = (self.low_half(a), self.low_half(b));
        self.product(&a, &b)
    }
    fn multiply_add(&mut self, a: &Word, b: &Word, c: &Word) -> Word {
        let (a, b) = (self.low_half(a), self.high_half(b));
        let product = self.product(&a, &b);
        let low = self.low_half(&product);
        self.wrapped(c.value.plus(1 << 16, &low.value), (low.most << 16) + c.most, false)
    }
    fn plus(&mut self, a: &Word, b: &Word) -> Word {
        self.wrapped(a.value.plus(1, &b.value), a.most + b.most, false)
    }
    fn minus(&mut self, a: &Word, b: &Word) -> Word {
        self.wrapped(a.value.plus(-1, &b.value), a.most, true)
    }
}
