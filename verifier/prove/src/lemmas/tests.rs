//! Lemmas are proved, wrong ones are not, and they are found in terms of programs.

use super::assumption_names;
use super::exact::Exact;
use super::*;
use crate::solver::{Answer, Budget, Query, Solver, Z3};
use ir3_semantics::support::random::hash;
use ir3_semantics::terms::{SAMPLES, Samples};
use std::collections::BTreeSet;

#[test]
fn all_are_proved() {
    for lemma in ALL.iter().filter(|lemma| lemma.kind == LemmaKind::Product) {
        assert!(lemma.is_proved(), "{}", lemma.name);
    }
}

/// The proof of division checks all divisors, which takes minutes in this profile: `ir3-equiv rules` runs it, and this
/// is a part.
#[test]
fn division_holds_for_some_divisors() {
    for first in [1, 0xff_ff00, 0x1000_0000, 0x7fff_8000, 0x8000_0000, 0xfffd_0000] {
        assert!(division::holds_for(first..=first + 0x1_ffff), "{first:#x}");
    }
    assert!(division::holds_for(0xffff_0000..=u32::MAX));
}

#[test]
fn quotients_and_remainders() {
    for (lemma, number) in ALL.iter().filter(|lemma| lemma.kind == LemmaKind::Quotient).zip(["quotient", "remainder"]) {
        let mut terms = Terms::new();
        let [n, d] = ["n", "d"].map(|name| variable(&mut terms, 32, name));
        let [left, right] = lemma.sides(&mut terms, n, d);
        assert_eq!(apply(&mut terms, left), Some((right, lemma.name)), "{number}");
        // After the usual test for zero, no other case remains.
        let zero = terms.constant(32, 0);
        let by_zero = terms.eq(32, d, zero);
        let guarded = terms.ite(32, by_zero, zero, right);
        let exact = if number == "quotient" { terms.udiv(32, n, d) } else { terms.urem(32, n, d) };
        let wanted = terms.ite(32, by_zero, zero, exact);
        assert_eq!(terms.show(guarded), terms.show(wanted));
        // The divisor is a constant, which the other side has.
        let seven = terms.constant(32, 7);
        let [left, right] = lemma.sides(&mut terms, n, seven);
        let exact = if number == "quotient" { terms.udiv(32, n, seven) } else { terms.urem(32, n, seven) };
        assert_eq!(apply_towards(&mut terms, left, Some(exact)), Some((right, lemma.name)), "{number}");
        assert_eq!(right, exact);
    }
}

/// The scalar ALU of a6xx has no `madsh.m16`: Mesa shifts and adds products of halves.
#[test]
fn products_of_shifted_halves() {
    let mut d = Terms::new();
    let [a, b] = ["a", "b"].map(|name| variable(&mut d, 32, name));
    let sixteen = d.constant(32, 16);
    let mut sum = d.multiply_halves(&a, &b);
    for (x, y) in [(a, b), (b, a)] {
        let high = d.high_half(&y);
        let product = d.multiply_halves(&x, &high);
        let shifted = d.shl(32, product, sixteen);
        sum = d.plus(&shifted, &sum);
    }
    assert_eq!(sum, products::low(&mut d, &a, &b));
}

/// The proof proves the statement.
#[test]
fn what_does_not_hold_is_not_proved() {
    let mut d = Exact::default();
    let (a, b) = (d.any(), d.any());
    let product = a.value.times(&b.value);
    // One cross product is missing.
    let low = d.multiply_halves(&a, &b);
    let wrong = d.multiply_add(&a, &b, &low);
    assert!(!wrong.value.plus(-1, &product).vanishes(32));
    assert!(wrong.value.plus(-1, &product).vanishes(16));
    // The same cross product twice.
    let wrong = d.multiply_add(&a, &b, &wrong);
    assert!(!wrong.value.plus(-1, &product).vanishes(32));
    // Halves are not dropped; sums may exceed a word.
    let half = d.low_half(&a);
    assert!(!half.value.plus(-1, &a.value).vanishes(32));
    let sum = d.plus(&a, &b);
    assert!(sum.value.plus(-1, &a.value.plus(1, &b.value)).vanishes(32));
    assert!(!sum.value.plus(-1, &a.value.plus(1, &b.value)).vanishes(33));
}

/// Both sides on constants, so that a statement and its proof are about the same.
#[test]
fn sides_agree_on_numbers() {
    for lemma in &ALL {
        for seed in 0..200 {
            let mut terms = Terms::new();
            let [a, b] = [0, 1].map(|i| {
                let bits = hash(&[seed, i]);
                let number = match bits % 4 {
                    0 => !(bits >> 60),
                    1 => bits >> 32 & 0xffff_ffff,
                    _ => bits,
                };
                terms.constant(lemma.width, number)
            });
            let [left, right] = lemma.sides(&mut terms, a, b);
            assert!(terms.as_constant(left).is_some() && left == right, "{} {seed}", lemma.name);
        }
    }
}

fn variable(terms: &mut Terms, w: u32, name: &str) -> Term {
    let name = terms.name(name);
    terms.variable(w, name)
}

/// Rewrites a term by lemmas alone until it is `wanted`; returns the names of the lemmas.
fn becomes(terms: &mut Terms, mut term: Term, wanted: Term) -> Vec<&'static str> {
    let mut names = Vec::new();
    while let Some((new, name)) = apply_towards(terms, term, Some(wanted)) {
        assert!(names.len() < 8, "{names:?}");
        names.push(name);
        term = new;
    }
    assert!(term == wanted, "{names:?}: {} is not {}", terms.show(term), terms.show(wanted));
    names
}

#[test]
fn products_of_variables() {
    for lemma in ALL.iter().filter(|lemma| lemma.kind == LemmaKind::Product) {
        let mut terms = Terms::new();
        let [a, b] = ["a", "b"].map(|name| variable(&mut terms, lemma.width, name));
        let [left, right] = lemma.sides(&mut terms, a, b);
        assert_eq!(apply(&mut terms, left), Some((right, lemma.name)));
        assert_eq!(becomes(&mut terms, left, right), [lemma.name]);
        let [left, right] = lemma.sides(&mut terms, a, a);
        assert_eq!(becomes(&mut terms, left, right), [lemma.name]);
    }
}

/// Operands that are sums, selections, narrow, or constants; products within sums.
#[test]
fn products_within_programs() {
    let mut terms = Terms::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| variable(&mut terms, 32, name));
    let narrow = variable(&mut terms, 16, "n");
    let bit = variable(&mut terms, 1, "bit");
    let sum = terms.add(32, a, b);
    let choice = terms.ite(32, bit, a, c);
    let wide = terms.zext(16, 32, narrow);
    let [three, large] = [3, 0x0012_3457].map(|bits| terms.constant(32, bits));
    let and = terms.and(32, a, c);
    for (x, y) in [(sum, c), (sum, sum), (choice, b), (wide, b), (and, choice), (a, large), (a, three), (sum, large)] {
        let (left, right) = (products::low(&mut terms, &x, &y), terms.mul(32, x, y));
        becomes(&mut terms, left, right);
        let (left, right) = (terms.add(32, left, b), terms.add(32, right, b));
        becomes(&mut terms, left, right);
        let (left, right) = (terms.sub(32, c, left), terms.sub(32, c, right));
        becomes(&mut terms, left, right);
    }
}

/// The high words of 64-bit products, as selection computes them: every intermediate sum is checked.
#[test]
fn products_of_64_bits() {
    let mut terms = Terms::new();
    let [a, b] = ["a", "b"].map(|name| variable(&mut terms, 64, name));
    let words = [a, b].map(|x| [0, 32].map(|low| terms.extract(64, x, low, 32)));
    let swept = |terms: &mut Terms, term| apply(terms, term).map_or(term, |(new, _)| new);
    let high = products::high(&mut terms, &words[0][0], &words[1][0]).0;
    let mut sum = swept(&mut terms, high);
    for (x, y) in [(words[0][0], words[1][1]), (words[0][1], words[1][0])] {
        let product = products::low(&mut terms, &x, &y);
        let product = swept(&mut terms, product);
        sum = terms.add(32, sum, product);
    }
    let product = terms.mul(64, a, b);
    let wanted = terms.extract(64, product, 32, 32);
    assert_eq!(becomes(&mut terms, sum, wanted), ["lemma:mul64-high"]);
    let low = products::low(&mut terms, &words[0][0], &words[1][0]);
    let wanted = terms.extract(64, product, 0, 32);
    assert_eq!(becomes(&mut terms, low, wanted), ["lemma:mul32"]);
}

/// A factor that is the high word of a product, as in a division: its halves are parts of a longer value.
#[test]
fn products_of_high_words() {
    let mut terms = Terms::new();
    let [n, d, r] = ["n", "d", "r"].map(|name| variable(&mut terms, 32, name));
    let bit = variable(&mut terms, 1, "bit");
    let opposite = terms.sub(32, n, d);
    let choice = terms.ite(32, bit, d, opposite);
    let sum = terms.add(32, n, d);
    let other = terms.sub(32, d, n);
    let other = terms.ite(32, bit, other, n);
    for (n, d) in [(n, d), (n, choice), (choice, sum), (other, choice)] {
        let high = terms.umul_high(32, n, r);
        let sum = terms.add(32, r, high);
        let high = terms.umul_high(32, n, sum);
        let (left, right) = (products::low(&mut terms, &high, &d), terms.mul(32, high, d));
        assert_eq!(becomes(&mut terms, left, right), ["lemma:mul32"]);
        // An operand without any constraint.
        let other = products::low(&mut terms, &d, &high);
        for left in [left, other] {
            assert_eq!(apply(&mut terms, left), Some((right, "lemma:mul32")));
        }
        let (left, right) = (products::high(&mut terms, &high, &d).0, terms.umul_high(32, high, d));
        assert_eq!(becomes(&mut terms, left, right), ["lemma:umul-high32"]);
    }
}

/// Halves and bytes, zero-extended or sign-extended.
#[test]
fn products_of_extended_halves() {
    for bits in [8, 16] {
        let mut terms = Terms::new();
        let [a, b] = ["a", "b"].map(|name| variable(&mut terms, bits, name));
        let c = variable(&mut terms, 32, "c");
        let signed = [a, b].map(|x| terms.sext(bits, 32, x));
        let unsigned = terms.zext(bits, 32, b);
        for (x, y) in [(signed[0], signed[1]), (signed[0], unsigned), (signed[0], c), (signed[0], signed[0])] {
            let (left, right) = (products::low(&mut terms, &x, &y), terms.mul(32, x, y));
            becomes(&mut terms, left, right);
            let other = products::low(&mut terms, &y, &x);
            becomes(&mut terms, other, right);
            // One correction is not enough.
            let low = terms.multiply_halves(&x, &y);
            let wrong = terms.multiply_add(&x, &y, &low);
            let found = apply_towards(&mut terms, wrong, Some(right));
            assert!(wrong == right || found.is_none_or(|(found, _)| found != right));
        }
    }
}

/// A term that resembles a product and is none stays unchanged, or becomes one with the same values.
#[test]
fn near_misses() {
    let mut terms = Terms::new();
    let [a, b] = ["a", "b"].map(|name| variable(&mut terms, 32, name));
    let low = terms.multiply_halves(&a, &b);
    let half = terms.multiply_add(&a, &b, &low);
    let twice = terms.multiply_add(&a, &b, &half);
    let mut samples = Samples::default();
    for term in [low, half, twice] {
        let mut now = term;
        for _ in 0..4 {
            let Some((new, _)) = apply(&mut terms, now) else { break };
            now = new;
            let (before, after) = (*samples.of(&terms, term), *samples.of(&terms, now));
            assert_eq!(before[..SAMPLES], after[..SAMPLES]);
        }
        let product = terms.mul(32, a, b);
        assert!(now != product);
    }
}

/// The solver times out: that is why there are lemmas. And it does not contradict them.
#[test]
fn the_solver_does_not_know() {
    let mut terms = Terms::new();
    let [a, b] = ["a", "b"].map(|name| variable(&mut terms, 32, name));
    let [left, right] = ALL[0].sides(&mut terms, a, b);
    let goal = terms.eq(32, left, right);
    let budget = Budget { rlimit: 1_000_000, ..Budget::default() };
    let answer = Z3::default().solve(&terms, &Query { assumptions: Vec::new(), goal }, &budget);
    assert!(matches!(answer, Answer::Unknown(_)), "{answer:?}");
}

/// Each name has a heading in `docs/semantics.md`, or is that of a lemma; and each heading of an assumption there is
/// one of these names.
#[test]
fn the_page_has_all_of_them() {
    let page = include_str!("../../../../docs/semantics.md");
    let (_, list) = page.split_once("## Assumptions").expect("the section");
    let list = list.split("\n## ").next().unwrap_or(list);
    let documented: BTreeSet<&str> =
        list.lines().filter_map(|line| line.strip_prefix("### `")?.split('`').next()).collect();
    let names: BTreeSet<&str> =
        assumption_names().map(|name| if name.starts_with("lemma:") { "lemma:…" } else { name }).collect();
    assert_eq!(documented, names);
}
