//! Exact comparisons of floats by operations on bits: comparisons of numbers in sign-magnitude form.

use super::lower::{Binary, BitRelation, Logic};
use ir3_semantics::arithmetic::domain::Format;

/// A comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Less,
    LessOrEqual,
}

/// Returns true if the comparison holds: never with a NaN, and zeros are equal.
pub(super) fn compare<L: Logic>(l: &mut L, f: Format, comparison: Comparison, a: &L::Bits, b: &L::Bits) -> L::Truth {
    let w = f.width();
    let number = |l: &mut L, bits| l.number(w, bits);
    let magnitude = |l: &mut L, x: &L::Bits| {
        let rest = number(l, f.sign() - 1);
        l.binary(Binary::And, w, x, &rest)
    };
    let (size_a, size_b) = (magnitude(l, a), magnitude(l, b));
    let infinity = number(l, f.infinity());
    let nan_a = l.test(BitRelation::UnsignedLess, &infinity, &size_a);
    let nan_b = l.test(BitRelation::UnsignedLess, &infinity, &size_b);
    let any_nan = l.either(&nan_a, &nan_b);
    let either = l.binary(Binary::Or, w, &size_a, &size_b);
    let zero = number(l, 0);
    let zeros = l.test(BitRelation::Equal, &either, &zero);
    let same = l.test(BitRelation::Equal, a, b);
    let equal = l.either(&zeros, &same);
    let holds = if comparison == Comparison::Equal {
        equal
    } else {
        // The less of two negative numbers is the one with the larger magnitude; a negative one is less than a positive
        // one.
        let (sign_a, sign_b) = (l.test(BitRelation::SignedLess, a, &zero), l.test(BitRelation::SignedLess, b, &zero));
        let (below, above) = (l.test(BitRelation::UnsignedLess, a, b), l.test(BitRelation::UnsignedLess, b, a));
        let yes = l.truth(true);
        let no = l.truth(false);
        let with_sign = l.choose_truth(&sign_b, &above, &yes);
        let without = l.choose_truth(&sign_b, &no, &below);
        let less = l.choose_truth(&sign_a, &with_sign, &without);
        if comparison == Comparison::LessOrEqual {
            l.either(&equal, &less)
        } else {
            let differ = l.not(&zeros);
            l.both(&differ, &less)
        }
    };
    let ordered = l.not(&any_nan);
    l.both(&ordered, &holds)
}

/// A product whose NaN is canonical; sets the sign of a NaN to the sign of the factors' product.
pub(super) fn with_sign_of_product<L: Logic>(l: &mut L, f: Format, product: &L::Bits, factors: &[L::Bits]) -> L::Bits {
    let w = f.width();
    let nan = l.number(w, f.nan());
    let is_nan = l.test(BitRelation::Equal, product, &nan);
    let signs = l.binary(Binary::Xor, w, &factors[0], &factors[1]);
    let sign = l.number(w, f.sign());
    let sign = l.binary(Binary::And, w, &signs, &sign);
    let signed = l.binary(Binary::Or, w, &nan, &sign);
    l.choose(w, &is_nan, &signed, product)
}
