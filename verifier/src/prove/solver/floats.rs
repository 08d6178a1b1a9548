//! Comparisons of floats, exactly, by operations on bits: a comparison of numbers with a sign and a magnitude.

use super::lower::{Binary, Logic, Test};
use crate::semantics::arithmetic::domain::Format;

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Less,
    LessOrEqual,
}

/// Whether the comparison holds. It does not with a NaN, and zeros are equal.
pub(super) fn compare<L: Logic>(l: &mut L, f: Format, comparison: Comparison, a: &L::Bits, b: &L::Bits) -> L::Truth {
    let w = f.width();
    let number = |l: &mut L, bits| l.number(w, bits);
    let magnitude = |l: &mut L, x: &L::Bits| {
        let rest = number(l, f.sign() - 1);
        l.binary(Binary::And, w, x, &rest)
    };
    let (size_a, size_b) = (magnitude(l, a), magnitude(l, b));
    let infinity = number(l, f.infinity());
    let nan_a = l.test(Test::UnsignedLess, &infinity, &size_a);
    let nan_b = l.test(Test::UnsignedLess, &infinity, &size_b);
    let any_nan = l.either(&nan_a, &nan_b);
    let either = l.binary(Binary::Or, w, &size_a, &size_b);
    let zero = number(l, 0);
    let zeros = l.test(Test::Equal, &either, &zero);
    let same = l.test(Test::Equal, a, b);
    let equal = l.either(&zeros, &same);
    let holds = if comparison == Comparison::Equal {
        equal
    } else {
        // Of two numbers with a sign each, the one with the larger magnitude is less; one with a sign is less than one without.
        let (sign_a, sign_b) = (l.test(Test::SignedLess, a, &zero), l.test(Test::SignedLess, b, &zero));
        let (below, above) = (l.test(Test::UnsignedLess, a, b), l.test(Test::UnsignedLess, b, a));
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

/// A product, whose NaN is the canonical one, with the sign of the factors if it is a NaN.
pub(super) fn with_sign_of_product<L: Logic>(l: &mut L, f: Format, product: &L::Bits, factors: &[L::Bits]) -> L::Bits {
    let w = f.width();
    let nan = l.number(w, f.nan());
    let is_nan = l.test(Test::Equal, product, &nan);
    let signs = l.binary(Binary::Xor, w, &factors[0], &factors[1]);
    let sign = l.number(w, f.sign());
    let sign = l.binary(Binary::And, w, &signs, &sign);
    let signed = l.binary(Binary::Or, w, &nan, &sign);
    l.choose(w, &is_nan, &signed, product)
}
