//! Expressions that must become the same term, and the bounds on the time of the constructors.

use crate::arithmetic::domain::{Domain, Format, Rounding};
use crate::arithmetic::{convert, float, integer};
use crate::terms::{Name, Op, Term, Terms};

fn variables<const N: usize>(terms: &mut Terms, width: u32) -> [Term; N] {
    std::array::from_fn(|i| {
        let name = terms.name(&format!("x{width}_{i}"));
        terms.variable(width, name)
    })
}

/// Asserts that two terms are one, and prints them if they are not.
#[track_caller]
fn same(terms: &Terms, a: Term, b: Term) {
    assert!(a == b, "\n{}\nis not\n{}", terms.show(a), terms.show(b));
}

#[track_caller]
fn is_number(terms: &Terms, a: Term, bits: u64) {
    assert_eq!(terms.as_constant(a), Some(bits), "{}", terms.show(a));
}

#[test]
fn sums_are_linear_forms() {
    let t = &mut Terms::new();
    let [x, y, z] = variables(t, 32);
    let (a, b) = (t.add(32, x, y), t.add(32, y, z));
    let (left, right) = (t.add(32, a, z), t.add(32, x, b));
    same(t, left, right);
    let less = t.sub(32, left, y);
    let sum = t.add(32, x, z);
    same(t, less, sum);
    // 4 (x + y) - 4 y is x shifted by 2.
    let two = t.constant(32, 2);
    let four = t.constant(32, 4);
    let scaled = t.mul(32, a, four);
    let shifted = t.shl(32, y, two);
    let rest = t.sub(32, scaled, shifted);
    let expected = t.shl(32, x, two);
    same(t, rest, expected);
    // -x - 1 is the complement.
    let opposite = integer::ineg(t, 32, x);
    let ones = t.constant(32, u64::MAX);
    let complement = t.add(32, opposite, ones);
    let expected = t.not(32, x);
    same(t, complement, expected);
    let product = t.mul(32, opposite, y);
    let other = t.mul(32, y, x);
    let other = integer::ineg(t, 32, other);
    same(t, product, other);
}

#[test]
fn masks_and_shifts_are_parts() {
    let t = &mut Terms::new();
    let [x, y] = variables(t, 32);
    let (sixteen, low_mask, high_mask) = (t.constant(32, 16), t.constant(32, 0xffff), t.constant(32, 0xffff_0000));
    // The upper half, three ways.
    let up = t.lshr(32, x, sixteen);
    let up = t.shl(32, up, sixteen);
    let masked = t.and(32, x, high_mask);
    same(t, up, masked);
    let half = t.extract(32, x, 16, 16);
    let zero = t.constant(16, 0);
    let joined = t.concat(16, half, 16, zero);
    same(t, joined, masked);
    // Concatenates both halves, by or and by a sum.
    let low = t.and(32, x, low_mask);
    let whole = t.or(32, up, low);
    same(t, whole, x);
    let whole = t.add(32, up, low);
    same(t, whole, x);
    // A pair of halves.
    let shifted = t.shl(32, y, sixteen);
    let packed = t.or(32, shifted, low);
    let (a, b) = (t.extract(32, x, 0, 16), t.extract(32, y, 0, 16));
    let pair = convert::pack(t, 16, [a, b]);
    same(t, packed, pair);
    let back = t.extract(32, packed, 0, 16);
    same(t, back, a);
    // A sign extended by shifts.
    let up = t.shl(32, x, sixteen);
    let down = t.ashr(32, up, sixteen);
    let extended = t.sext(16, 32, a);
    same(t, down, extended);
    // Twice the width by parts.
    let count = t.constant(32, 31);
    let sign = t.ashr(32, x, count);
    let wide = t.concat(32, sign, 32, x);
    let extended = t.sext(32, 64, x);
    same(t, wide, extended);
}

#[test]
fn parts_of_operations_are_operations_on_parts() {
    let t = &mut Terms::new();
    let [x, y] = variables(t, 64);
    let sum = t.add(64, x, y);
    let low = t.extract(64, sum, 0, 32);
    let (a, b) = (t.extract(64, x, 0, 32), t.extract(64, y, 0, 32));
    let narrow = t.add(32, a, b);
    same(t, low, narrow);
    let high = t.extract(64, sum, 32, 32);
    let back = t.concat(32, high, 32, narrow);
    same(t, back, sum);
    for op in [Op::And, Op::Xor] {
        let whole = t.rebuild(op, 64, &[x, y]);
        let halves = [32, 0].map(|low| {
            let parts = [t.extract(64, x, low, 32), t.extract(64, y, low, 32)];
            t.rebuild(op, 32, &parts)
        });
        let joined = t.concat(32, halves[0], 32, halves[1]);
        same(t, joined, whole);
    }
    // High halves of products.
    let [p, q] = variables(t, 32);
    let high = t.umul_high(32, p, q);
    let wide = integer::mul_low(t, 64, 32, false, q, p);
    let part = t.extract(64, wide, 32, 32);
    same(t, high, part);
    let part = t.extract(64, wide, 0, 32);
    let low = t.mul(32, p, q);
    same(t, low, part);
}

#[test]
fn signs_of_floats_are_bits() {
    let t = &mut Terms::new();
    for f in [Format::F16, Format::F32, Format::F64] {
        let [x] = variables(t, f.width());
        let negative = float::fneg(t, f, x);
        let again = float::fneg(t, f, negative);
        same(t, again, x);
        let (a, b) = (float::fabs(t, f, x), float::fabs(t, f, negative));
        same(t, a, b);
        let minus = float::fneg(t, f, a);
        let sign = t.constant(f.width(), f.sign());
        let set = t.or(f.width(), x, sign);
        same(t, minus, set);
        // The sign of a product is moved out, of its NaNs too.
        let [y] = variables(t, f.width());
        let y = t.fadd(f, x, y);
        let (product, other) = (t.fmul(f, x, y), t.fmul(f, negative, y));
        let outside = float::fneg(t, f, product);
        same(t, other, outside);
        let minus_y = float::fneg(t, f, y);
        let both = t.fmul(f, minus_y, negative);
        same(t, both, product);
        let (one, minus_one) = (t.constant(f.width(), f.one()), t.constant(f.width(), f.one() | f.sign()));
        let (plus, other) = (t.fmul(f, x, one), t.fmul(f, x, minus_one));
        let outside = float::fneg(t, f, plus);
        same(t, other, outside);
        // An operation that depends on a NaN's sign must not treat the product's NaN as the canonical one.
        let canonical = float::canonical(t, f, product);
        assert!(canonical != product);
    }
}

#[test]
fn nans_of_results_are_canonical() {
    let t = &mut Terms::new();
    let [x, y] = variables(t, 32);
    let f = Format::F32;
    let sum = t.fadd(f, x, y);
    let other = t.fadd(f, y, x);
    same(t, sum, other);
    let canonical = float::canonical(t, f, sum);
    same(t, canonical, sum);
    // A variable's NaN need not be canonical, but no operation depends on the difference.
    let canonical = float::canonical(t, f, x);
    assert!(canonical != x);
    let twice = float::canonical(t, f, canonical);
    same(t, twice, canonical);
    let again = t.fadd(f, canonical, y);
    same(t, again, sum);
    // But moves do.
    let zero = t.constant(32, 0);
    let kept = t.fadd(f, x, zero);
    assert!(kept != x && kept != canonical);
    let (low, smaller) = (t.flt(f, x, x), t.fle(f, x, x));
    is_number(t, low, 0);
    let itself = t.feq(f, x, x);
    same(t, smaller, itself);
    let number = t.int_to_float(32, true, f, Rounding::Even, x);
    let itself = t.feq(f, number, number);
    is_number(t, itself, 1);
}

#[test]
fn integers_are_rounded_to_themselves() {
    let t = &mut Terms::new();
    let roundings = [Rounding::Even, Rounding::Zero, Rounding::Up, Rounding::Down];
    for f in [Format::F16, Format::F32, Format::F64] {
        let [x, y] = variables(t, 32);
        let [z] = variables(t, f.width());
        let [a, b] = [x, y].map(|x| t.int_to_float(32, true, f, Rounding::Zero, x));
        let (minus, magnitude, sum) = (float::fneg(t, f, a), float::fabs(t, f, a), t.fadd(f, a, b));
        let whole = t.fround(f, Rounding::Down, z);
        for rounding in roundings {
            for integer in [a, minus, magnitude, sum, whole] {
                let rounded = t.fround(f, rounding, integer);
                same(t, rounded, integer);
            }
            // No integer, and a NaN that is not the canonical one.
            let (half, product, minus) = (t.fadd(f, a, z), t.fmul(f, a, b), float::fneg(t, f, whole));
            for other in [z, half, product, minus] {
                assert!(t.fround(f, rounding, other) != other);
            }
        }
        let fraction = float::ffract(t, f, a);
        is_number(t, fraction, 0);
        // It may be infinite, in 16 bits.
        let near = t.int_to_float(32, true, f, Rounding::Even, x);
        let fraction = float::ffract(t, f, near);
        assert_eq!(t.as_constant(fraction) == Some(0), f != Format::F16);
    }
}

#[test]
fn exact_integers_are_converted_back() {
    let t = &mut Terms::new();
    let (f, even) = (Format::F32, Rounding::Even);
    let [x] = variables(t, 24);
    let [word] = variables(t, 32);
    let (unsigned, signed) = (t.zext(24, 32, x), t.sext(24, 32, x));
    let (a, b) = (t.int_to_float(32, false, f, even, unsigned), t.int_to_float(32, true, f, even, signed));
    for (float, is_signed, integer) in [(a, false, unsigned), (a, true, unsigned), (b, true, signed)] {
        let back = t.float_to_int(f, 32, is_signed, Rounding::Zero, float);
        same(t, back, integer);
    }
    // A negative number is clamped, a large one is rounded or clamped.
    let inexact = t.int_to_float(32, true, f, even, word);
    for (float, w, is_signed) in [(b, 32, false), (a, 16, false), (a, 24, true), (inexact, 32, true)] {
        let back = t.float_to_int(f, w, is_signed, Rounding::Zero, float);
        assert!(matches!(t.node(back).op, Op::Float(_)), "{}", t.show(back));
    }
}

#[test]
fn integers_become_floats_from_words() {
    let t = &mut Terms::new();
    let f = Format::F32;
    let [x] = variables(t, 16);
    let word = t.zext(16, 32, x);
    let long = t.zext(16, 64, x);
    let [of_half, of_word, of_long] =
        [(16, x), (32, word), (64, long)].map(|(w, x)| t.int_to_float(w, false, f, Rounding::Even, x));
    same(t, of_half, of_word);
    same(t, of_long, of_word);
    // With high zeros it is not negative.
    let no_sign = t.int_to_float(32, true, f, Rounding::Even, word);
    same(t, no_sign, of_word);
    let of_signed = t.int_to_float(16, true, f, Rounding::Even, x);
    assert!(of_signed != of_word);
    let word = t.sext(16, 32, x);
    let of_word = t.int_to_float(32, true, f, Rounding::Even, word);
    same(t, of_signed, of_word);
    // An operation on one of two constants gives one of two constants.
    let bit = t.extract(16, x, 3, 1);
    let (zero, one) = (t.constant(32, 0), t.constant(32, 0x3f80_0000));
    let chosen = t.ite(32, bit, one, zero);
    let word = t.zext(1, 32, bit);
    let of_bit = t.int_to_float(32, true, f, Rounding::Even, word);
    same(t, of_bit, chosen);
    let (zero, one) = (t.constant(16, 0), t.constant(16, 0x3c00));
    let half = t.ite(16, bit, one, zero);
    let widened = t.fconvert(Format::F16, f, Rounding::Even, half);
    same(t, widened, chosen);
}

#[test]
fn comparisons() {
    let t = &mut Terms::new();
    let [x, y, z] = variables(t, 32);
    let [c, d] = variables(t, 1);
    let zero = t.constant(32, 0);
    let one = t.constant(32, 1);
    // Conditions as numbers, and back.
    for extended in [t.zext(1, 32, c), t.sext(1, 32, c)] {
        let equal = t.eq(32, extended, zero);
        let not = t.not(1, c);
        same(t, equal, not);
        let less = t.ult(32, zero, extended);
        same(t, less, c);
    }
    let number = t.zext(1, 32, c);
    let equal = t.eq(32, one, number);
    same(t, equal, c);
    // Common summands cancel.
    let (a, b) = (t.add(32, x, z), t.add(32, z, y));
    let (sums, plain) = (t.eq(32, a, b), t.eq(32, y, x));
    same(t, sums, plain);
    let difference = t.sub(32, x, y);
    let none = t.eq(32, zero, difference);
    same(t, none, plain);
    let differ = t.xor(32, y, x);
    let none = t.eq(32, zero, differ);
    same(t, none, plain);
    // Signs.
    let signs = t.xor(32, x, y);
    let differ = integer::is_negative(t, 32, signs);
    let (a, b) = (integer::is_negative(t, 32, x), integer::is_negative(t, 32, y));
    let other = t.xor(1, a, b);
    same(t, differ, other);
    let count = t.constant(32, 31);
    let top = t.lshr(32, x, count);
    let top = t.eq(32, top, one);
    same(t, top, a);
    // A choice between constants compared with one of them.
    let (five, seven) = (t.constant(32, 5), t.constant(32, 7));
    let inner = t.ite(32, d, seven, one);
    let chosen = t.ite(32, c, five, inner);
    let equal = t.eq(32, chosen, five);
    same(t, equal, c);
    let not = t.not(1, c);
    let both = t.and(1, not, d);
    let equal = t.eq(32, seven, chosen);
    same(t, equal, both);
    let none = t.eq(32, chosen, zero);
    is_number(t, none, 0);
}

#[test]
fn choices() {
    let t = &mut Terms::new();
    let [x, y, z] = variables(t, 32);
    let [c, d] = variables(t, 1);
    let not = t.not(1, c);
    let (a, b) = (t.ite(32, c, x, y), t.ite(32, not, y, x));
    same(t, a, b);
    let inner = t.ite(32, d, x, y);
    let (chosen, either) = (t.ite(32, c, x, inner), t.or(1, d, c));
    let merged = t.ite(32, either, x, y);
    same(t, chosen, merged);
    let (chosen, both) = (t.ite(32, c, inner, y), t.and(1, d, c));
    let merged = t.ite(32, both, x, y);
    same(t, chosen, merged);
    // The inner condition follows from the outer one.
    let inner = t.ite(32, c, x, z);
    let chosen = t.ite(32, both, inner, y);
    let expected = t.ite(32, both, x, y);
    same(t, chosen, expected);
    // Masks by a condition.
    let mask = t.sext(1, 32, c);
    let masked = t.and(32, mask, x);
    let zero = t.constant(32, 0);
    let expected = t.ite(32, c, x, zero);
    same(t, masked, expected);
    let bit = t.zext(1, 32, c);
    let product = t.mul(32, x, bit);
    same(t, product, expected);
    let one = t.constant(32, 1);
    let less = t.sub(32, one, bit);
    let other = t.zext(1, 32, not);
    same(t, less, other);
}

#[test]
fn conditions_of_paths_come_together() {
    let t = &mut Terms::new();
    let [f, a, b, c] = variables(t, 1);
    let not = |t: &mut Terms, x: Term| t.not(1, x);
    // Three paths of an if in the second arm of an if.
    let (na, nb) = (not(t, a), not(t, b));
    let first = t.conjunction(&[f, a]);
    let second = t.conjunction(&[f, na, b]);
    let third = t.conjunction(&[f, na, nb]);
    let all = t.disjunction(&[second, first, third]);
    same(t, all, f);
    let some = t.or(1, second, third);
    let some = t.or(1, some, first);
    same(t, some, f);
    // The condition of the branch is a disjunction.
    let either = t.or(1, a, b);
    let neither = not(t, either);
    let taken = t.conjunction(&[f, either, c]);
    let (nc, rest) = (not(t, c), t.conjunction(&[f, neither]));
    let other = t.conjunction(&[f, either, nc]);
    let all = t.disjunction(&[taken, rest, other]);
    same(t, all, f);
    let shared = t.disjunction(&[first, second]);
    let expected = t.conjunction(&[f, either]);
    same(t, shared, expected);
    let none = t.disjunction(&[]);
    is_number(t, none, 0);
    assert_eq!(t.conjuncts(first).len(), 2);
    let always = t.conjunction(&[]);
    assert!(t.conjuncts(always).is_empty());
    // A switch: the last case is the remaining one.
    let [x] = variables(t, 32);
    let cases: Vec<Term> = (1..6)
        .map(|k| {
            let number = t.constant(32, k);
            t.eq(32, x, number)
        })
        .collect();
    let mut paths = vec![];
    let mut rest = f;
    for case in cases {
        paths.push(t.conjunction(&[rest, case]));
        let other = not(t, case);
        rest = t.conjunction(&[rest, other]);
    }
    paths.push(rest);
    let all = t.disjunction(&paths);
    same(t, all, f);
}

#[test]
fn long_chains_are_neither_slow_nor_deep() {
    let t = &mut Terms::new();
    let [x, y] = variables(t, 32);
    let [c] = variables(t, 1);
    let mut chain = x;
    for i in 0..30_000u64 {
        let number = t.constant(32, i * 77);
        chain = match i % 5 {
            0 => t.add(32, chain, y),
            1 => t.xor(32, chain, number),
            2 => t.and(32, chain, y),
            3 => t.mul(32, chain, chain),
            _ => t.ite(32, c, chain, y),
        };
        if i % 10 == 0 {
            let low = t.extract(32, chain, 0, 16);
            let high = t.extract(32, chain, 16, 16);
            let both = t.concat(16, high, 16, low);
            chain = t.or(32, both, x);
        }
    }
    let mut sum = x;
    let mut conditions = c;
    for i in 0..20_000 {
        let name = t.name(&format!("n{i}"));
        let next = t.variable(32, name);
        sum = t.add(32, sum, next);
        let positive = t.slt(32, next, sum);
        conditions = t.and(1, conditions, positive);
    }
    assert!(t.len() < 3_000_000, "{} terms", t.len());
    assert!(t.show(chain).len() < 100_000);
}

#[test]
fn a_sum_of_very_many_has_a_complement() {
    let mut terms = Terms::new();
    let t = &mut terms;
    let many = |t: &mut Terms, from: usize, count: usize| {
        let zero = t.constant(32, 0);
        (from..from + count).fold(zero, |sum, i| {
            let name = t.name(&format!("v{i}"));
            let variable = t.variable(32, name);
            t.add(32, sum, variable)
        })
    };
    // Neither is merged into the other.
    let (a, b) = (many(t, 0, 64), many(t, 64, 64));
    let sum = t.add(32, a, b);
    let complement = t.not(32, sum);
    assert_eq!(t.not(32, complement), sum);
    let part = t.extract(32, sum, 8, 8);
    assert_eq!(t.width(part), 8);
}

/// The first use of a name fixes its role: else one term would be mistaken for another.
#[test]
fn one_name_stands_for_one_thing() {
    use crate::terms::VariableKind;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let mut terms = Terms::new();
    let t = &mut terms;
    let name = t.name("x");
    let x = t.variable(32, name);
    assert_eq!(t.variable(32, name), x);
    assert_eq!(t.variable_of(VariableKind::LANE, 32, "x"), x);
    let uniform = t.variable_of(VariableKind::WAVE, 32, "x");
    assert_ne!(uniform, x);
    let kinds = [x, uniform].map(|term| match t.node(term).op {
        Op::Variable(name) => (t.kind(name), t.label(name).to_owned()),
        op => panic!("{op:?}"),
    });
    assert_eq!(kinds, [(Some(VariableKind::LANE), "x".to_owned()), (Some(VariableKind::WAVE), "x".to_owned())]);
    type FirstUse = fn(&mut Terms, Name, Term) -> Term;
    let others: [FirstUse; 4] = [
        |t, name, _| t.variable(16, name),
        |t, _, _| t.variable_of(VariableKind::LANE.passing(), 32, "x"),
        |t, name, x| t.apply(32, name, &[x]),
        |t, _, _| t.variable_of(VariableKind::WAVE, 1, "x"),
    ];
    for (i, other) in others.into_iter().enumerate() {
        assert!(catch_unwind(AssertUnwindSafe(|| other(t, name, x))).is_err(), "{i}");
    }
}
