//! Equality of high words of sums: of the high half of a long sum, and of sums of the high halves with the carries of
//! the low ones.
//!
//! Let words have n bits, and let `[x]` be the word x as an integer. Two words are equal if 2^n times them are, modulo
//! 2^2n; and 2^n times these words are linear in other words:
//!
//! - for the high half of S, `S - [low half of S]`;
//! - for the bit `x < y`, the borrow of `x - y`: `[x - y] - [x] + [y]`, where the difference is a word, modulo 2^n. A
//!   carry out of `p = q + x` is `p < x`, so `q`, `p` and `x` are the remaining terms, and in a chain of sums each `p`
//!   is the `q` of the next carry;
//! - for the top bit of x, `[x] - [x + 2^(n-1)] + 2^(n-1)`: a carry out of `q + 2^(n-1)` is the top bit of q;
//! - for the bit `x = y`, with `d = y - x`, the bit `d < 1`.
//!
//! A sign extension is the value without its sign, less the sign. Words that are left in the difference are compared
//! with each other in the same way.
//!
//! So two sums with carries in any order are equal if the difference of these linear forms is 0.

use super::sums::Sum;
use super::{Op, Term, Terms};
use crate::arithmetic::concrete::mask;

/// The number of halves, carries and borrows that are replaced.
const REPLACED: usize = 64;

/// The depth to which words in a difference are compared.
const NESTED: u32 = 2;

/// The number of words in a difference that are compared with each other.
const PAIRS: usize = 6;

/// The width of words of which twice as many bits still are a term.
const WIDEST: u32 = 32;

impl Terms {
    /// Returns true if two words are equal for reasons of carries. `false` means unknown.
    pub(super) fn are_same_by_carries(&mut self, a: Term, b: Term) -> bool {
        self.are_same_words(a, b, NESTED)
    }

    fn are_same_words(&mut self, a: Term, b: Term, nested: u32) -> bool {
        let n = self.width(a);
        if !(2..=WIDEST).contains(&n) {
            return false;
        }
        let mut sum = Sum::new(2 * n);
        for (word, factor) in [(a, 1 << n), (b, (1u64 << n).wrapping_neg())] {
            let word = self.extend(word, 2 * n);
            self.add_to(&mut sum, word, factor);
        }
        self.settle(&mut sum);
        for _ in 0..REPLACED {
            let found = |&(term, factor): &(Term, u64)| {
                self.op(term) == Op::Sext || factor.trailing_zeros() >= n && self.is_of_halves(term, n)
            };
            let Some(at) = sum.summands.iter().position(found) else { break };
            let (term, factor) = sum.summands.remove(at);
            match self.op(term) {
                Op::Sext => self.add_signed(&mut sum, term, factor),
                _ => self.add_halves(&mut sum, term, quotient(factor, n)),
            }
            self.settle(&mut sum);
        }
        sum.constant & mask(2 * n) == 0 && self.cancels(sum, nested)
    }

    /// Returns true if the summands are pairs of equal words with opposite factors: words that are sums may have
    /// carries in another order, too.
    fn cancels(&mut self, sum: Sum, nested: u32) -> bool {
        let n = sum.width / 2;
        let mut left = sum.summands;
        if left.len() > PAIRS || !left.is_empty() && nested == 0 {
            return false;
        }
        let word = |terms: &Self, term: Term| {
            let of = (terms.op(term) == Op::Zext).then(|| terms.arg(term, 0))?;
            (terms.width(of) == n).then_some(of)
        };
        while let Some((term, factor)) = left.pop() {
            let Some(own) = word(self, term) else { return false };
            let opposite = (0..left.len()).find(|&at| {
                let (other, its) = left[at];
                factor.wrapping_add(its) & mask(2 * n) == 0
                    && word(self, other).is_some_and(|other| self.are_same_words(own, other, nested - 1))
            });
            let Some(at) = opposite else { return false };
            left.remove(at);
        }
        true
    }

    /// Returns true for an extension that [`add_halves`](Self::add_halves) replaces.
    fn is_of_halves(&self, term: Term, n: u32) -> bool {
        if self.op(term) != Op::Zext {
            return false;
        }
        let of = self.arg(term, 0);
        match self.op(of) {
            Op::Extract(low) if self.width(of) == 1 => (u32::from(low) + 1).is_multiple_of(n),
            Op::Extract(low) => u32::from(low) == n && self.width(of) == n && self.width(self.arg(of, 0)) == 2 * n,
            Op::Ult | Op::Eq => self.width(self.arg(of, 0)) == n,
            _ => false,
        }
    }

    /// Adds a multiple of a sign extension: the value without its sign, less the sign.
    fn add_signed(&mut self, sum: &mut Sum, term: Term, factor: u64) {
        let of = self.arg(term, 0);
        let m = self.width(of);
        let sign = self.slice(of, m - 1, 1);
        let [word, sign] = [of, sign].map(|part| self.extend(part, sum.width));
        self.add_to(sum, word, factor);
        self.add_to(sum, sign, (factor << m).wrapping_neg());
    }

    /// Adds a multiple of 2^n times a high half, or a bit that compares two words.
    fn add_halves(&mut self, sum: &mut Sum, term: Term, factor: u64) {
        let n = sum.width / 2;
        let of = self.arg(term, 0);
        let mut add_word = |terms: &mut Self, word: Term, factor: u64| {
            let word = terms.extend(word, 2 * n);
            terms.add_to(sum, word, factor);
        };
        match self.op(of) {
            Op::Extract(low) if self.width(of) == 1 => {
                let top = 1 << (n - 1);
                let word = self.slice(self.arg(of, 0), u32::from(low) + 1 - n, n);
                let opposite = self.number(n, top);
                let opposite = self.sum(n, &[word, opposite]);
                add_word(self, word, factor);
                add_word(self, opposite, factor.wrapping_neg());
                sum.constant = sum.constant.wrapping_add(factor.wrapping_mul(top));
            }
            Op::Extract(_) => {
                let whole = self.arg(of, 0);
                let low = self.slice(whole, 0, n);
                add_word(self, low, factor.wrapping_neg());
                self.add_to(sum, whole, factor);
            }
            op => {
                let (mut x, mut y) = (self.arg(of, 0), self.arg(of, 1));
                if op == Op::Eq {
                    // A constant is the first of both; with the opposite sign the other one would be a word of another
                    // kind.
                    (x, y) = (self.difference(n, y, x), self.number(n, 1));
                }
                let difference = self.difference(n, x, y);
                add_word(self, difference, factor);
                add_word(self, x, factor.wrapping_neg());
                add_word(self, y, factor);
            }
        }
    }
}

/// A multiple of 2^n, modulo 2^2n, by 2^n: the one of least magnitude, as opposite ones are to cancel.
fn quotient(factor: u64, n: u32) -> u64 {
    let above = 64 - 2 * n;
    ((factor << above).cast_signed() >> (above + n)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::super::evaluate;
    use super::*;
    use crate::arithmetic::domain::Domain;
    use crate::support::random::hash;

    /// The high word of a sum of 64 bits, and sums of the words with carries, in the order of `order`.
    fn high_words(t: &mut Terms, values: &[Term], order: &[usize]) -> [Term; 2] {
        let mut all = values[0];
        values[1..].iter().for_each(|&value| all = t.add(64, all, value));
        let whole = t.extract(64, all, 32, 32);
        let words = |t: &mut Terms, value: Term| [t.extract(64, value, 0, 32), t.extract(64, value, 32, 32)];
        let [mut low, mut high] = words(t, values[order[0]]);
        for &at in &order[1..] {
            let [low_word, high_word] = words(t, values[at]);
            low = t.add(32, low, low_word);
            let carry = t.ult(32, low, low_word);
            let carry = t.zext(1, 32, carry);
            high = t.add(32, high, high_word);
            high = t.add(32, high, carry);
        }
        [whole, high]
    }

    #[test]
    fn carries_in_any_order_make_the_high_word() {
        let mut t = Terms::new();
        let mut values: Vec<Term> = Vec::new();
        for i in 0..3 {
            let name = t.name(&format!("v{i}"));
            values.push(t.variable(64, name));
        }
        let word = t.name("w");
        let word = t.variable(32, word);
        values.push(t.zext(32, 64, word));
        values.push(t.sext(32, 64, word));
        for constant in [1, 0xffff_ffff, 0x8000_0000, 0xffff_ffff_ffff_fff0, 0x5_0000_0000] {
            let number = t.constant(64, constant);
            let values: Vec<Term> = values.iter().copied().chain([number]).collect();
            for round in 0..40u64 {
                let mut order: Vec<usize> = (0..values.len()).collect();
                order.sort_by_key(|&at| hash(&[round, constant, at as u64]));
                let [whole, sum] = high_words(&mut t, &values, &order);
                assert!(t.are_same_by_carries(whole, sum), "{} {}", t.show(whole), t.show(sum));
                let one = t.constant(32, 1);
                let more = t.add(32, sum, one);
                assert!(!t.are_same_by_carries(whole, more));
            }
        }
    }

    #[test]
    fn what_it_says_is_true() {
        // Random sums of halves and comparisons; the values of both sides decide.
        let mut same = [0; 2];
        for round in 0..20_000u64 {
            let mut t = Terms::new();
            let mut random = {
                let mut count = 0;
                move |n: u64| {
                    count += 1;
                    hash(&[round, count]) % n
                }
            };
            let mut words: Vec<Term> = Vec::new();
            for i in 0..2 {
                let name = t.name(&format!("x{i}"));
                words.push(t.variable(3, name));
            }
            words.push(t.constant(3, random(8)));
            for _ in 0..4 + random(6) {
                let [a, b] = [(); 2].map(|()| words[random(words.len() as u64) as usize]);
                let new = match random(6) {
                    0 | 1 => t.add(3, a, b),
                    2 => t.sub(3, a, b),
                    3 => {
                        let bit = t.ult(3, a, b);
                        t.zext(1, 3, bit)
                    }
                    4 => {
                        let bit = t.eq(3, a, b);
                        t.zext(1, 3, bit)
                    }
                    _ => {
                        let [a, b] = [a, b].map(|word| t.zext(3, 6, word));
                        let sum = t.add(6, a, b);
                        t.extract(6, sum, 3, 3)
                    }
                };
                words.push(new);
            }
            for (i, &a) in words.iter().enumerate() {
                for &b in &words[..i] {
                    if a == b || !t.are_same_by_carries(a, b) {
                        continue;
                    }
                    same[1] += 1;
                    for inputs in 0..64 {
                        let [a, b] = [a, b].map(|term| {
                            evaluate::value(&t, term, &|name| {
                                if t.text(name) == "x0" { inputs & 7 } else { inputs >> 3 }
                            })
                        });
                        assert_eq!(a, b);
                    }
                }
                same[0] += 1;
            }
        }
        assert!(same[1] > 100, "{same:?}");
    }
}
