//! Facts about the values at a loop header: bounds of counters.
//!
//! `i == n` leaves a loop where `i >= n` does if `i` is never more than `n` at its header. Such facts are guessed from
//! the comparisons in the conditions of the loop, assumed at the header, and have to hold on every path to it: on
//! entry, and where they held at the beginning of the iteration. So are conditions that lanes have tested before the
//! loop, if they cannot change. Those that do not hold are dropped until the rest holds. So they are proved by
//! induction together with the [relation](super::relation).

use super::relation::{Arrival, Atom, HeaderRelation};
use crate::symbolic::VariableFacts;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::terms::{Op, Term, Terms};
use rustc_hash::FxHashSet;

/// The maximum number of facts at a header.
const FACTS: usize = 24;

/// The maximum number of nodes of a condition that are searched for comparisons.
const NODES: usize = 64;

/// A number that a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// The value of an atom.
    Atom(Atom),
    /// A term that does not change.
    Fixed(Term),
}

/// A relation of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberRelation {
    /// Unsigned at most.
    AtMost,
    /// Unsigned less than.
    Below,
    /// Signed at most.
    SignedAtMost,
    /// Signed less than.
    SignedBelow,
    /// The difference is a multiple of this constant.
    Congruent(u64),
}

/// A fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderFact {
    /// Two numbers are in a relation.
    Related(NumberRelation, [Number; 2]),
    /// A condition on values that do not change: it held when lanes reached the loop.
    Lasting(Term),
}

impl HeaderFact {
    /// The condition that it is, given the values of atoms.
    fn condition(&self, terms: &mut Terms, mut value: impl FnMut(&mut Terms, Atom) -> Option<Term>) -> Option<Term> {
        let (relation, numbers) = match *self {
            Self::Related(relation, numbers) => (relation, numbers),
            Self::Lasting(condition) => return Some(condition),
        };
        let mut number = |terms: &mut Terms, number: Number| match number {
            Number::Atom(atom) => value(terms, atom),
            Number::Fixed(term) => Some(term),
        };
        let (a, b) = (number(terms, numbers[0])?, number(terms, numbers[1])?);
        Some(match relation {
            NumberRelation::Below => terms.ult(32, a, b),
            NumberRelation::SignedBelow => terms.slt(32, a, b),
            NumberRelation::AtMost => {
                let above = terms.ult(32, b, a);
                terms.not(1, above)
            }
            NumberRelation::SignedAtMost => {
                let above = terms.slt(32, b, a);
                terms.not(1, above)
            }
            NumberRelation::Congruent(step) => {
                let difference = terms.sub(32, a, b);
                let step = terms.constant(32, step);
                let rest = terms.urem(32, difference, step);
                let zero = terms.constant(32, 0);
                terms.eq(32, rest, zero)
            }
        })
    }
}

/// The facts at one header.
#[derive(Debug, Default)]
pub struct HeaderFacts {
    facts: Vec<HeaderFact>,
    /// The conditions of paths from the header, from which facts are guessed.
    conditions: Vec<Term>,
    /// True if facts have been guessed.
    proposed: bool,
}

impl HeaderFacts {
    /// Records the conditions of the paths from the header, in place of those of an earlier iteration.
    pub fn note(&mut self, conditions: Vec<Term>) {
        if !self.proposed {
            self.conditions = conditions;
        }
    }

    /// The conditions that hold at the header.
    pub fn conditions(&self, terms: &mut Terms, number: u32, header: &mut HeaderRelation) -> Vec<Term> {
        let conditions = self
            .facts
            .iter()
            .filter_map(|fact| fact.condition(terms, |terms, atom| Some(header.term(terms, number, atom))));
        conditions.collect()
    }

    /// Drops the facts that do not hold on a path. `holds` returns true if a condition is proved on a path. Returns
    /// true if there are any.
    pub fn refine(
        &mut self,
        terms: &mut Terms,
        header: &HeaderRelation,
        arrivals: &[Arrival],
        mut holds: impl FnMut(&mut Terms, Term, Term) -> bool,
    ) -> bool {
        let before = self.facts.len();
        for arrival in arrivals {
            let mut value = |_: &mut Terms, atom| header.index_of(atom).and_then(|at| arrival.terms.get(at).copied());
            let goals: Option<Vec<Term>> = self.facts.iter().map(|fact| fact.condition(terms, &mut value)).collect();
            // Usually all of them hold, or they are new.
            if let Some(goals) = goals {
                let all = terms.conjunction(&goals);
                if holds(terms, arrival.path, all) {
                    continue;
                }
            }
            self.facts
                .retain(|fact| fact.condition(terms, &mut value).is_some_and(|goal| holds(terms, arrival.path, goal)));
        }
        self.facts.len() != before
    }

    /// Guesses facts from the conditions of paths, and from the steps of counters. Returns true if there are any.
    pub fn propose(
        &mut self,
        terms: &mut Terms,
        number: u32,
        header: &mut HeaderRelation,
        arrivals: &[Arrival],
        known: &VariableFacts,
    ) -> bool {
        if std::mem::replace(&mut self.proposed, true) {
            return false;
        }
        for condition in std::mem::take(&mut self.conditions) {
            for [a, b] in comparisons(terms, condition) {
                for (counter, bound) in [(a, b), (b, a)] {
                    if !known.lasting(terms, bound) {
                        continue;
                    }
                    for base in bases(terms, counter) {
                        if let Some(atom) = header.atom_of(terms, number, base) {
                            self.add_bounds(terms, atom, bound);
                        }
                    }
                }
            }
        }
        let entries = || arrivals.iter().filter(|arrival| !arrival.back);
        let on_entry = entries().next().map_or_else(Default::default, |arrival| terms.conjuncts(arrival.path));
        for condition in on_entry {
            let is_on_all = entries().all(|arrival| terms.conjuncts(arrival.path).contains(&condition));
            if is_on_all && known.lasting(terms, condition) {
                self.add(HeaderFact::Lasting(condition));
            }
        }
        for (atom, step, start) in header.counters(terms, number, arrivals) {
            if step > 1 {
                let numbers = [Number::Atom(atom), Number::Fixed(start)];
                self.add(HeaderFact::Related(NumberRelation::Congruent(step), numbers));
            }
        }
        !self.facts.is_empty()
    }

    fn add_bounds(&mut self, terms: &mut Terms, atom: Atom, bound: Term) {
        use NumberRelation::{AtMost, Below, SignedAtMost, SignedBelow};
        let zero = terms.constant(32, 0);
        let (counter, bound) = (Number::Atom(atom), Number::Fixed(bound));
        for relation in [AtMost, SignedAtMost, Below, SignedBelow] {
            self.add(HeaderFact::Related(relation, [counter, bound]));
        }
        for relation in [AtMost, SignedAtMost] {
            self.add(HeaderFact::Related(relation, [bound, counter]));
        }
        self.add(HeaderFact::Related(SignedAtMost, [Number::Fixed(zero), counter]));
    }

    fn add(&mut self, fact: HeaderFact) {
        if self.facts.len() < FACTS && !self.facts.contains(&fact) {
            self.facts.push(fact);
        }
    }
}

/// The operands of the comparisons of words in a condition.
fn comparisons(terms: &Terms, condition: Term) -> Vec<[Term; 2]> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut work = vec![condition];
    while let Some(term) = work.pop() {
        if seen.len() >= NODES || !seen.insert(term) {
            continue;
        }
        let node = terms.node(term);
        match node.op {
            Op::Eq | Op::Ult | Op::Slt if terms.width(node.args[0]) == 32 => found.push([node.args[0], node.args[1]]),
            Op::Not | Op::And | Op::Xor | Op::Ite | Op::Eq => {
                work.extend(node.args.iter().copied().filter(|&arg| terms.width(arg) == 1));
            }
            _ => {}
        }
    }
    found
}

/// A term, or the summand of it that a constant is added to.
fn bases(terms: &Terms, counter: Term) -> Vec<Term> {
    let node = terms.node(counter);
    match (node.op, &node.args[..]) {
        (Op::Add, &[constant, rest]) if terms.as_constant(constant).is_some() => vec![counter, rest],
        _ => vec![counter],
    }
}
