//! Sequences that compute wide products from products of halves, as selection emits them, and their proofs.

use super::exact::{Exact, ExactWord, Polynomial};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::arithmetic::integer;
use ir3_semantics::terms::{Term, Terms};

/// The operations of the sequences, on words of 32 bits.
pub trait Arithmetic {
    /// A word.
    type V;

    /// `a >> 16`
    fn high_half(&mut self, a: &Self::V) -> Self::V;
    /// `a & 0xffff`
    fn low_half(&mut self, a: &Self::V) -> Self::V;
    /// `mull.u`: the product of the low halves.
    fn multiply_halves(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// `madsh.m16`: the low half of `a` times the high half of `b`, shifted left by 16, plus `c`.
    fn multiply_add(&mut self, a: &Self::V, b: &Self::V, c: &Self::V) -> Self::V;
    /// The sum modulo 2^32.
    fn plus(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// The difference modulo 2^32.
    fn minus(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
}

impl Arithmetic for Terms {
    type V = Term;

    fn high_half(&mut self, &a: &Term) -> Term {
        let sixteen = self.constant(32, 16);
        self.lshr(32, a, sixteen)
    }
    fn low_half(&mut self, &a: &Term) -> Term {
        let mask = self.constant(32, 0xffff);
        self.and(32, a, mask)
    }
    fn multiply_halves(&mut self, &a: &Term, &b: &Term) -> Term {
        integer::mul_low(self, 32, 16, false, a, b)
    }
    fn multiply_add(&mut self, &a: &Term, &b: &Term, &c: &Term) -> Term {
        integer::madsh_mix(self, a, b, c)
    }
    fn plus(&mut self, &a: &Term, &b: &Term) -> Term {
        self.add(32, a, b)
    }
    fn minus(&mut self, &a: &Term, &b: &Term) -> Term {
        self.sub(32, a, b)
    }
}

/// The low 32 bits of a product.
pub(super) fn low<A: Arithmetic>(d: &mut A, a: &A::V, b: &A::V) -> A::V {
    let low = d.multiply_halves(a, b);
    let middle = d.multiply_add(a, b, &low);
    d.multiply_add(b, a, &middle)
}

/// The low 32 bits of a product, where the first step is already recognised as a product.
pub(super) fn last_step(d: &mut Terms, a: Term, b: Term) -> Term {
    let half = d.low_half(&b);
    let first = d.mul(32, a, half);
    d.multiply_add(&a, &b, &first)
}

/// The high 32 bits of a product, and the two halves of its low word.
pub(super) fn high<A: Arithmetic>(d: &mut A, a: &A::V, b: &A::V) -> (A::V, [A::V; 2]) {
    let (a_high, b_high) = (d.high_half(a), d.high_half(b));
    let low = d.multiply_halves(a, b);
    let cross = [d.multiply_halves(a, &b_high), d.multiply_halves(&a_high, b)];
    let mut high = d.multiply_halves(&a_high, &b_high);
    let mut middle = d.high_half(&low);
    for product in cross {
        let part = d.low_half(&product);
        middle = d.plus(&middle, &part);
        let carried = d.high_half(&product);
        high = d.plus(&high, &carried);
    }
    let carried = d.high_half(&middle);
    let high = d.plus(&high, &carried);
    let below = [d.low_half(&low), d.low_half(&middle)];
    (high, below)
}

/// The high 32 bits of a signed product, computed from those of the unsigned one.
pub(super) fn signed_high(d: &mut Terms, a: Term, b: Term) -> Term {
    let mut high = d.umul_high(32, a, b);
    for (factor, other) in [(a, b), (b, a)] {
        let count = d.constant(32, 31);
        let sign = d.ashr(32, factor, count);
        let excess = d.and(32, sign, other);
        high = d.sub(32, high, excess);
    }
    high
}

/// The high word of a 64-bit product.
pub(super) fn high_word(d: &mut Terms, a: Term, b: Term) -> Term {
    let [a, b] = [a, b].map(|x| [0, 32].map(|low| d.extract(64, x, low, 32)));
    let high = d.umul_high(32, a[0], b[0]);
    let across = [d.mul(32, a[0], b[1]), d.mul(32, a[1], b[0])];
    let sum = d.add(32, high, across[0]);
    d.add(32, sum, across[1])
}

/// Proves that `low` is the product modulo 2^32.
pub(super) fn low_is_product() -> bool {
    let mut d = Exact::default();
    let (a, b) = (d.any(), d.any());
    let sum = low(&mut d, &a, &b);
    sum.value.plus(-1, &a.value.times(&b.value)).vanishes(32)
}

/// Proves that `last_step` is the product modulo 2^32.
pub(super) fn last_step_is_product() -> bool {
    let mut d = Exact::default();
    let (a, b) = (d.any(), d.any());
    let half = d.low_half(&b);
    let first = d.product(&a, &half);
    let sum = d.multiply_add(&a, &b, &first);
    sum.value.plus(-1, &a.value.times(&b.value)).vanishes(32)
}

/// Proves that `high` is the high word of the product: the product is 2^32 `high` plus the low word, which is less than
/// 2^32.
pub(super) fn high_is_product() -> bool {
    let mut d = Exact::default();
    let (a, b) = (d.any(), d.any());
    let (high, [least, middle]) = high(&mut d, &a, &b);
    let below = ExactWord { value: least.value.plus(1 << 16, &middle.value), most: least.most + (middle.most << 16) };
    is_high_word(&high.value, &below, &a.value.times(&b.value))
}

/// Proves the same for signed factors: each is the word minus 2^32 if it is negative.
pub(super) fn signed_high_is_product() -> bool {
    let mut d = Exact::default();
    let (a, b) = (d.any(), d.any());
    let (negative_a, negative_b) = (d.bit(), d.bit());
    let (high, below) = unsigned_high(&mut d, &a, &b);
    // An arithmetic shift by 31 gives all ones or all zeros; its conjunction with a word gives that word or 0.
    let excess = [d.product(&negative_a, &b), d.product(&negative_b, &a)];
    let mut result = high;
    for excess in excess {
        result = d.minus(&result, &excess);
    }
    let signed = |x: &ExactWord, negative: &ExactWord| x.value.plus(-(1 << 32), &negative.value);
    let product = signed(&a, &negative_a).times(&signed(&b, &negative_b));
    is_high_word(&result.value, &below, &product)
}

/// Proves the same for factors of two words each.
pub(super) fn high_word_is_product() -> bool {
    let mut d = Exact::default();
    let [a, b] = [[d.any(), d.any()], [d.any(), d.any()]];
    let (high, below) = unsigned_high(&mut d, &a[0], &b[0]);
    let mut sum = high;
    for (x, y) in [(&a[0], &b[1]), (&a[1], &b[0])] {
        let product = d.product(x, y);
        // Modulo 2^32 in any case: so is the sum.
        sum = d.plus(&sum, &product);
    }
    let joined = |x: &[ExactWord; 2]| x[0].value.plus(1 << 32, &x[1].value);
    is_high_word(&sum.value, &below, &joined(&a).times(&joined(&b)))
}

/// The high word of an unsigned product by its definition, and the low word.
fn unsigned_high(d: &mut Exact, a: &ExactWord, b: &ExactWord) -> (ExactWord, ExactWord) {
    let high = d.product_high(a, b);
    let value = a.value.times(&b.value).plus(-(1 << 32), &high.value);
    (high, ExactWord { value, most: u32::MAX.into() })
}

/// Returns true if the product is 2^32 `high` plus `below` modulo 2^64: then `high` is its high word modulo 2^32.
fn is_high_word(high: &Polynomial, below: &ExactWord, product: &Polynomial) -> bool {
    below.most <= u32::MAX.into() && below.value.plus(1 << 32, high).plus(-1, product).vanishes(64)
}
