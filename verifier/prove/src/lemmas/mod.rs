//! Lemmas: equalities of arithmetic on which every solver times out, proved once by other means and used by name.
//!
//! The machine multiplies 16 bits. Selection builds 32-bit and 64-bit products from these, by sequences that
//! [`products`] defines once, for terms and for proofs. A lemma says that such a sequence, the left side, is one
//! product, the right side, for all operands. It is proved over the integers ([`exact`]): both sides are polynomials in
//! the pieces of the operands, and a comparison of coefficients decides.
//!
//! Division is a float reciprocal that is corrected to the exact result: see [`division`].
//!
//! [`apply`] finds left sides in a term. It guesses operands from the products in the term and builds the left side for
//! them: if the term minus the left side has none of its summands left, the right side takes its place. A wrong guess
//! costs time and nothing else, since `t = (t - left) + left` always.

pub mod division;
pub mod exact;
pub mod products;

pub use products::Arithmetic;

use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::assumptions;
use ir3_semantics::terms::{Op, Term, Terms};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// An equality that holds for all operands.
pub struct Lemma {
    /// Its name, for a verdict that uses it.
    pub name: &'static str,
    /// The statement, in words.
    pub statement: &'static str,
    /// The method of proof.
    pub by: &'static str,
    /// Width of its two operands.
    pub width: u32,
    /// The kind of term that it applies to: products among the summands of a term, or the quotient of a division.
    kind: LemmaKind,
    /// The left side and the right side for two operands.
    sides: fn(&mut Terms, Term, Term) -> [Term; 2],
    /// Runs the proof.
    prove: fn() -> bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LemmaKind {
    Product,
    Quotient,
}

impl Lemma {
    /// Returns true if the proof succeeds.
    pub fn is_proved(&self) -> bool {
        (self.prove)()
    }

    /// The two sides for two operands.
    pub fn sides(&self, terms: &mut Terms, a: Term, b: Term) -> [Term; 2] {
        (self.sides)(terms, a, b)
    }
}

/// The names of all assumptions that a proof may make: about the [model](assumptions::MODEL), and lemmas.
pub fn assumption_names() -> impl Iterator<Item = &'static str> {
    assumptions::MODEL.into_iter().chain(ALL.iter().map(|lemma| lemma.name))
}

/// The assumption of this name, if there is one.
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
        kind: LemmaKind::Product,
        sides: |d, a, b| [products::low(d, &a, &b), d.mul(32, a, b)],
        prove: products::low_is_product,
    },
    Lemma {
        name: "lemma:mul32-last-step",
        statement: "the product with a low half and one madsh.m16 with the high one are the low 32 bits of the product",
        by: POLYNOMIALS,
        width: 32,
        kind: LemmaKind::Product,
        sides: |d, a, b| [products::last_step(d, a, b), d.mul(32, a, b)],
        prove: products::last_step_is_product,
    },
    Lemma {
        name: "lemma:umul-high32",
        statement: "four products of halves, summed, are the high 32 bits of the unsigned product",
        by: POLYNOMIALS,
        width: 32,
        kind: LemmaKind::Product,
        sides: |d, a, b| [products::high(d, &a, &b).0, d.umul_high(32, a, b)],
        prove: products::high_is_product,
    },
    Lemma {
        name: "lemma:imul-high32",
        statement: "the unsigned product's high 32 bits, less each factor where the other is negative, are the signed one's",
        by: POLYNOMIALS,
        width: 32,
        kind: LemmaKind::Product,
        sides: |d, a, b| [products::signed_high(d, a, b), d.smul_high(32, a, b)],
        prove: products::signed_high_is_product,
    },
    Lemma {
        name: "lemma:mul64-high",
        statement: "the high word of a 64-bit product is that of the low words' product and two products across",
        by: POLYNOMIALS,
        width: 64,
        kind: LemmaKind::Product,
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
        kind: LemmaKind::Quotient,
        sides: division::quotient,
        prove: division::is_proved,
    },
    Lemma {
        name: "lemma:umod32",
        statement: "the same, the remainder",
        by: DIVISORS,
        width: 32,
        kind: LemmaKind::Quotient,
        sides: division::remainder,
        prove: division::is_proved,
    },
];

const POLYNOMIALS: &str = "polynomials over the integers";

const DIVISORS: &str = "an inequality, and each of the divisors";

/// The maximum number of operands that are guessed for a term.
const GUESSES: usize = 12;

/// The maximum number of nodes of a term that are searched for products.
const NODES: usize = 64;

type TermList = SmallVec<[Term; 8]>;

/// Replaces the left side of a lemma in a term by its right side. Returns the new term and the lemma's name.
pub fn apply(terms: &mut Terms, term: Term) -> Option<(Term, &'static str)> {
    apply_towards(terms, term, None)
}

/// Like [`apply`], for a term that may be equal to `other`, whose products are additional guesses.
pub fn apply_towards(terms: &mut Terms, term: Term, other: Option<Term>) -> Option<(Term, &'static str)> {
    Sides::default().apply_towards(terms, term, other)
}

/// The sides of lemmas on the operands that were guessed so far, all of one graph of terms: the partial sums of one
/// product have the same operands.
#[derive(Debug, Default)]
pub struct Sides(FxHashMap<(usize, Term, Term), [Term; 2]>);

impl Sides {
    /// Like the function of this name.
    pub fn apply_towards(
        &mut self,
        terms: &mut Terms,
        term: Term,
        other: Option<Term>,
    ) -> Option<(Term, &'static str)> {
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
        for (number, lemma) in ALL.iter().enumerate().filter(|(_, lemma)| lemma.kind == LemmaKind::Product) {
            let mut operands: TermList =
                hints.iter().copied().filter(|&hint| terms.width(hint) == lemma.width).collect();
            operands.truncate(GUESSES);
            for operand in self::operands(terms, &factors, lemma.width) {
                if !operands.contains(&operand) {
                    operands.push(operand);
                }
            }
            // In both orders: a partial sum may have been normalised differently.
            for &a in &operands {
                for &b in &operands {
                    if terms.as_constant(a).is_some() && terms.as_constant(b).is_some() {
                        continue;
                    }
                    let sides = *self.0.entry((number, a, b)).or_insert_with(|| lemma.sides(terms, a, b));
                    if let Some(new) = replaced(terms, sides, term) {
                        return Some((new, lemma.name));
                    }
                }
            }
        }
        None
    }
}

/// Applies a lemma about a quotient or a remainder, which must be the whole term, a selection. Candidate divisors are
/// those of reciprocals in the term and of divisions in the other term.
fn divided(terms: &mut Terms, term: Term, other: Option<Term>, factors: &TermList) -> Option<(Term, &'static str)> {
    if terms.node(term).op != Op::Ite {
        return None;
    }
    let mut divisors = TermList::new();
    let mut dividends: TermList = factors.iter().copied().filter(|&factor| terms.width(factor) == 32).collect();
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
    for lemma in ALL.iter().filter(|lemma| lemma.kind == LemmaKind::Quotient) {
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

/// Replaces the left side of a lemma by the right side, if the term contains the whole left side and becomes smaller.
fn replaced(terms: &mut Terms, [left, right]: [Term; 2], term: Term) -> Option<Term> {
    let (replaced, wanted) = (summands(terms, left), summands(terms, term));
    if left == right || replaced == 0 || replaced > wanted {
        return None;
    }
    let difference = terms.sub(32, term, left);
    let new = if summands(terms, difference) + replaced == wanted {
        terms.add(32, difference, right)
    } else {
        let sum = terms.add(32, term, left);
        if summands(terms, sum) + replaced != wanted {
            return None;
        }
        terms.sub(32, sum, right)
    };
    (size(terms, new) < size(terms, term)).then_some(new)
}

/// The number of nodes of a term, up to some hundreds. Each replacement reduces it, so replacing terminates.
fn size(terms: &Terms, term: Term) -> usize {
    cone(terms, term).len()
}

/// The subterms of a term, up to some hundreds.
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

/// The number of summands of a term that are not constants.
fn summands(terms: &Terms, term: Term) -> usize {
    let node = terms.node(term);
    match node.op {
        Op::Constant(_) => 0,
        Op::Add => node.args.iter().filter(|&&arg| terms.as_constant(arg).is_none()).count(),
        _ => 1,
    }
}

/// The factors of products in a term and its subterms, without extensions. Constants are factors of 16-bit products.
fn factors(terms: &Terms, term: Term) -> TermList {
    let mut found = TermList::new();
    // Breadth first: nearer products first, as the number of guesses is limited.
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

/// The candidate operands: the values of which the factors are halves, and the factors that have the operands' width.
fn operands(terms: &mut Terms, factors: &TermList, width: u32) -> TermList {
    let half = width / 2;
    let mut found = TermList::new();
    let mut add = |term: Term| {
        if found.len() < GUESSES && !found.contains(&term) {
            found.push(term);
        }
    };
    let mut halves = TermList::new();
    for &factor in factors {
        let node = terms.node(factor);
        let of = node.args.first().copied();
        match node.op {
            Op::Constant(_) => {}
            _ if terms.width(factor) == width => add(factor),
            Op::Extract(_) if of.is_some_and(|of| terms.width(of) == width) => add(of.unwrap_or(factor)),
            // A half of a word of a longer value.
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
    // The high half of a sign-extended value is not a factor but a selection by the sign.
    let (choices, others): (TermList, TermList) =
        factors.iter().copied().partition(|&factor| terms.node(factor).op == Op::Ite);
    let halves_of_words: TermList = choices.iter().copied().filter(|&choice| terms.width(choice) == half).collect();
    for &high in &halves_of_words {
        for &low in halves_of_words.iter().filter(|&&low| low != high) {
            let joined = terms.concat(half, high, half, low);
            if terms.node(joined).op == Op::Ite {
                add(joined);
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
    // Two halves of the result of one operation.
    for &high in &halves {
        for &low in &halves {
            let joined = terms.concat(half, high, half, low);
            if terms.node(joined).op != Op::Concat {
                add(joined);
            }
        }
    }
    for &half_word in &halves {
        add(terms.zext(half, width, half_word));
    }
    for &factor in factors {
        if let Some(bits) = terms.as_constant(factor) {
            // A product that is subtracted has the negated constant.
            add(terms.constant(width, bits));
            add(terms.constant(width, bits.wrapping_neg()));
        }
    }
    found
}

#[cfg(test)]
mod tests;
