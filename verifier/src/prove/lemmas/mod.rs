//! Lemmas: equalities of arithmetic that time out in every solver, proved once by other means and used by name.
//!
//! The machine multiplies 16 bits. Selection puts products of 32 bits and of 64 bits together from these, in ways that
//! [`products`] has once, for terms as for proofs: a lemma says that such a sequence, the left side, is one product, the
//! right side, for all operands. It is proved over the integers ([`exact`]): both sides are polynomials in the pieces of the operands, and
//! a comparison of coefficients decides.
//!
//! Division is a reciprocal in floats that is made exact: see [`division`].
//!
//! [`apply`] looks for left sides in a term. It guesses the operands from the products that it sees and builds the left
//! side for them: where the term minus that has none of its summands left, the right side takes its place. A
//! wrong guess costs time and nothing else, since `t = (t - left) + left` always.

pub mod division;
pub mod exact;
pub mod products;

pub use products::Arithmetic;

use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::assumptions;
use crate::semantics::terms::{Op, Term, Terms};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// An equality for all operands.
pub struct Lemma {
    /// Its name, for a verdict that assumes it.
    pub name: &'static str,
    /// What it says.
    pub statement: &'static str,
    /// How it is proved.
    pub by: &'static str,
    /// Bits of its two operands.
    pub width: u32,
    /// What is found: products among the summands of a term, or a term that is divided.
    kind: Kind,
    /// The sequence, and what it computes.
    sides: fn(&mut Terms, Term, Term) -> [Term; 2],
    /// Proves it.
    prove: fn() -> bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Product,
    Quotient,
}

impl Lemma {
    /// Whether the proof goes through.
    pub fn is_proved(&self) -> bool {
        (self.prove)()
    }

    /// The two sides for two operands.
    pub fn sides(&self, terms: &mut Terms, a: Term, b: Term) -> [Term; 2] {
        (self.sides)(terms, a, b)
    }
}

/// The names of all that a proof may assume: assumptions about the [model](assumptions::MODEL), and lemmas.
pub fn assumption_names() -> impl Iterator<Item = &'static str> {
    assumptions::MODEL.into_iter().chain(ALL.iter().map(|lemma| lemma.name))
}

/// The assumption of this name; `None` if no proof makes such a one.
pub fn assumption(name: &str) -> Option<&'static str> {
    assumption_names().find(|&assumption| assumption == name)
}

/// All lemmas.
pub static ALL: [Lemma; 7] = [
    Lemma {
        name: "lemma:mul32",
        statement: "mull.u and two madsh.m16 are the low 32 bits of the product",
        by: POLYNOMIALS,
        width: 32,
        kind: Kind::Product,
        sides: |d, a, b| [products::low(d, &a, &b), d.mul(32, a, b)],
        prove: products::low_is_product,
    },
    Lemma {
        name: "lemma:mul32-last-step",
        statement: "the product with a low half and one madsh.m16 with the high one are the low 32 bits of the product",
        by: POLYNOMIALS,
        width: 32,
        kind: Kind::Product,
        sides: |d, a, b| [products::last_step(d, a, b), d.mul(32, a, b)],
        prove: products::last_step_is_product,
    },
    Lemma {
        name: "lemma:umul-high32",
        statement: "four products of halves, summed, are the high 32 bits of the unsigned product",
        by: POLYNOMIALS,
        width: 32,
        kind: Kind::Product,
        sides: |d, a, b| [products::high(d, &a, &b).0, d.umul_high(32, a, b)],
        prove: products::high_is_product,
    },
    Lemma {
        name: "lemma:imul-high32",
        statement: "the unsigned product's high 32 bits, less each factor where the other is negative, are the signed one's",
        by: POLYNOMIALS,
        width: 32,
        kind: Kind::Product,
        sides: |d, a, b| [products::signed_high(d, a, b), d.smul_high(32, a, b)],
        prove: products::signed_high_is_product,
    },
    Lemma {
        name: "lemma:mul64-high",
        statement: "the high word of a 64-bit product is that of the low words' product and two products across",
        by: POLYNOMIALS,
        width: 64,
        kind: Kind::Product,
        sides: |d, a, b| {
            let product = d.mul(64, a, b);
            [products::high_word(d, a, b), d.extract(64, product, 32, 32)]
        },
        prove: products::high_word_is_product,
    },
    Lemma {
        name: "lemma:udiv32",
        statement: "a reciprocal in floats, a Newton step and two corrections are the unsigned quotient, if the divisor is not 0",
        by: DIVISORS,
        width: 32,
        kind: Kind::Quotient,
        sides: division::quotient,
        prove: division::is_proved,
    },
    Lemma {
        name: "lemma:umod32",
        statement: "the same, the remainder",
        by: DIVISORS,
        width: 32,
        kind: Kind::Quotient,
        sides: division::remainder,
        prove: division::is_proved,
    },
];

const POLYNOMIALS: &str = "polynomials over the integers";

const DIVISORS: &str = "an inequality, and each of the divisors";

/// How many operands are guessed of a term.
const GUESSES: usize = 12;

/// How many nodes of a term are looked at for products.
const NODES: usize = 64;

type List = SmallVec<[Term; 8]>;

/// A term in which the left side of a lemma has become its right side, and the lemma's name.
pub fn apply(terms: &mut Terms, term: Term) -> Option<(Term, &'static str)> {
    apply_towards(terms, term, None)
}

/// The same, where the term may be equal to another one: its products say which operands there may be.
pub fn apply_towards(terms: &mut Terms, term: Term, other: Option<Term>) -> Option<(Term, &'static str)> {
    if terms.width(term) != 32 {
        return None;
    }
    let factors = factors(terms, term);
    if factors.is_empty() {
        return None;
    }
    let hints = other.map(|other| self::factors(terms, other)).unwrap_or_default();
    if let Some(found) = divided(terms, term, other, &factors) {
        return Some(found);
    }
    for lemma in ALL.iter().filter(|lemma| lemma.kind == Kind::Product) {
        let mut operands: List = hints.iter().copied().filter(|&hint| terms.width(hint) == lemma.width).collect();
        operands.truncate(GUESSES);
        for operand in self::operands(terms, &factors, lemma.width) {
            if !operands.contains(&operand) {
                operands.push(operand);
            }
        }
        // In both orders: a sum that is not whole yet has taken other shapes on the way.
        for &a in &operands {
            for &b in &operands {
                if terms.as_constant(a).is_some() && terms.as_constant(b).is_some() {
                    continue;
                }
                if let Some(new) = replaced(terms, lemma, term, a, b) {
                    return Some((new, lemma.name));
                }
            }
        }
    }
    None
}

/// A quotient or a remainder: it is the whole term, and a choice. Divisors are those of reciprocals and of the divisions in the
/// other term.
fn divided(terms: &mut Terms, term: Term, other: Option<Term>, factors: &List) -> Option<(Term, &'static str)> {
    if terms.node(term).op != Op::Ite {
        return None;
    }
    let mut divisors = List::new();
    let mut dividends: List = factors.iter().copied().filter(|&factor| terms.width(factor) == 32).collect();
    for next in cone(terms, term) {
        divisors.extend(division::divisor(terms, next).filter(|divisor| !divisors.contains(divisor)));
    }
    for next in other.map(|other| cone(terms, other)).unwrap_or_default() {
        let node = terms.node(next);
        if matches!(node.op, Op::Udiv | Op::Urem) && node.width == 32 {
            dividends.push(node.args[0]);
            divisors.push(node.args[1]);
        }
    }
    divisors.truncate(GUESSES);
    for lemma in ALL.iter().filter(|lemma| lemma.kind == Kind::Quotient) {
        for &divisor in &divisors {
            for &dividend in &dividends {
                let [left, right] = lemma.sides(terms, dividend, divisor);
                if left == term {
                    return Some((right, lemma.name));
                }
            }
        }
    }
    None
}

/// The term with the right side instead of the left one, if that is all there and the term gets smaller.
fn replaced(terms: &mut Terms, lemma: &Lemma, term: Term, a: Term, b: Term) -> Option<Term> {
    let [left, right] = lemma.sides(terms, a, b);
    if left == right || summands(terms, left) == 0 {
        return None;
    }
    let wanted = summands(terms, term);
    let difference = terms.sub(32, term, left);
    let new = if summands(terms, difference) + summands(terms, left) == wanted {
        terms.add(32, difference, right)
    } else {
        let sum = terms.add(32, term, left);
        if summands(terms, sum) + summands(terms, left) != wanted {
            return None;
        }
        terms.sub(32, sum, right)
    };
    (size(terms, new) < size(terms, term)).then_some(new)
}

/// How many nodes a term is made of, up to some hundreds: each replacement makes it smaller, so there is an end.
fn size(terms: &Terms, term: Term) -> usize {
    cone(terms, term).len()
}

/// What a term is made of, up to some hundreds.
fn cone(terms: &Terms, term: Term) -> FxHashSet<Term> {
    let mut seen = FxHashSet::default();
    let mut work = vec![term];
    while let Some(next) = work.pop() {
        if seen.len() < 512 && seen.insert(next) {
            work.extend(&terms.node(next).args);
        }
    }
    seen
}

/// How many summands a term has that are no numbers.
fn summands(terms: &Terms, term: Term) -> usize {
    let node = terms.node(term);
    match node.op {
        Op::Constant(_) => 0,
        Op::Add => node.args.iter().filter(|&&arg| terms.as_constant(arg).is_none()).count(),
        _ => 1,
    }
}

/// What is multiplied in a term and in what it is made of, extensions aside. Numbers are those that something of 16 bits is
/// multiplied by.
fn factors(terms: &Terms, term: Term) -> List {
    let mut found = List::new();
    // What is near comes first, as there is no more than so much that is guessed.
    let mut work: SmallVec<[Term; 64]> = SmallVec::from_slice(&[term]);
    let mut at = 0;
    while let Some(&next) = work.get(at)
        && at <= NODES
    {
        at += 1;
        let mut add = |term: Term| {
            if !work.contains(&term) {
                work.push(term);
            }
        };
        let node = terms.node(next);
        match node.op {
            Op::Mul => {
                for &arg in &node.args {
                    let factor = without_extension(terms, arg);
                    if !found.contains(&factor) {
                        found.push(factor);
                    }
                    add(arg);
                }
            }
            Op::Add | Op::Zext | Op::Sext | Op::Concat | Op::Extract(_) | Op::Ite | Op::Not => {
                node.args.iter().copied().for_each(add);
            }
            _ => {}
        }
    }
    found
}

fn without_extension(terms: &Terms, term: Term) -> Term {
    let node = terms.node(term);
    if matches!(node.op, Op::Zext | Op::Sext) { node.args[0] } else { term }
}

/// What the factors are halves of, and the ones that are as wide as operands themselves.
fn operands(terms: &mut Terms, factors: &List, width: u32) -> List {
    let half = width / 2;
    let mut found = List::new();
    let mut add = |term: Term| {
        if found.len() < GUESSES && !found.contains(&term) {
            found.push(term);
        }
    };
    let mut halves = List::new();
    for &factor in factors {
        let node = terms.node(factor);
        let of = node.args.first().copied();
        match node.op {
            Op::Constant(_) => {}
            _ if terms.width(factor) == width => add(factor),
            Op::Extract(_) if of.is_some_and(|of| terms.width(of) == width) => add(of.unwrap_or(factor)),
            // Half of a word of something longer.
            Op::Extract(low)
                if let Some(of) = of
                    && terms.width(factor) <= half
                    && u32::from(low) / width * width + width <= terms.width(of) =>
            {
                add(terms.extract(terms.width(of), of, u32::from(low) / width * width, width));
            }
            _ if terms.width(factor) <= half => {
                let wide = terms.zext(terms.width(factor), half, factor);
                halves.push(wide);
            }
            _ => {}
        }
    }
    // The high half of something that is sign-extended is no factor: it is a choice by the sign.
    let (choices, others): (List, List) = factors.iter().copied().partition(|&factor| terms.node(factor).op == Op::Ite);
    let halves_of_words: List = choices.iter().copied().filter(|&choice| terms.width(choice) == half).collect();
    for &high in &halves_of_words {
        for &low in halves_of_words.iter().filter(|&&low| low != high) {
            let whole = terms.concat(half, high, half, low);
            if terms.node(whole).op == Op::Ite {
                add(whole);
            }
        }
    }
    for &factor in others.iter().filter(|_| !choices.is_empty()) {
        let bits = terms.width(factor);
        if bits <= half && terms.as_constant(factor).is_none() {
            add(terms.sext(bits, width, factor));
            add(terms.zext(bits, width, factor));
        }
    }
    // Two halves of something that is one operation on both.
    for &high in &halves {
        for &low in &halves {
            let whole = terms.concat(half, high, half, low);
            if terms.node(whole).op != Op::Concat {
                add(whole);
            }
        }
    }
    for &half_word in &halves {
        add(terms.zext(half, width, half_word));
    }
    for &factor in factors {
        if let Some(bits) = terms.as_constant(factor) {
            // A product that is subtracted has the opposite.
            add(terms.constant(width, bits));
            add(terms.constant(width, bits.wrapping_neg()));
        }
    }
    found
}

#[cfg(test)]
mod tests;
