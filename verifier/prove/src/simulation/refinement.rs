//! The refinement of the relation and of the facts at a header.

use super::relation::{Arrival, Atom, PathFacts};
use super::state::SimulationState;
use super::sweep::Sweeper;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Term, Terms};

/// Splits the classes of a header. Returns true if anything has changed.
pub(super) fn refine(
    number: u32,
    arrivals: &[Arrival],
    of_wave: impl Fn(Atom) -> bool,
    terms: &mut Terms,
    state: &mut SimulationState<'_>,
) -> bool {
    let SimulationState { headers, header_facts, sweeper, facts, narrow, rules, .. } = state;
    let header = &mut headers[number as usize];
    let mut on_path = OnPath { sweeper, narrow: *narrow, invariants: rules.invariants };
    let changed = header.refine(terms, arrivals, facts, of_wave, &mut on_path);
    let holds = |terms: &mut Terms, path, goal| sweeper.follows(terms, path, goal) || left_out(Guard::HeaderFacts);
    header_facts[number as usize].refine(terms, header, arrivals, holds) || changed
}

/// Guesses linear functions and bounds at a header. Returns true if there are any.
pub(super) fn propose(
    number: u32,
    arrivals: &[Arrival],
    of_wave: impl Fn(Atom) -> bool,
    terms: &mut Terms,
    state: &mut SimulationState<'_>,
) -> bool {
    let SimulationState { headers, header_facts, facts, .. } = state;
    let header = &mut headers[number as usize];
    // Bounds of an atom that is a function of another counter follow from those of that counter.
    header.propose(terms, number, arrivals, facts, of_wave)
        || header_facts[number as usize].propose(terms, number, header, arrivals, facts)
}

/// The prover that answers the queries of a refinement.
struct OnPath<'a, 'b> {
    sweeper: &'a mut Sweeper<'b>,
    narrow: bool,
    invariants: bool,
}

impl PathFacts for OnPath<'_, '_> {
    fn is_narrow(&mut self, terms: &mut Terms, path: Term, word: Term, bits: u32) -> bool {
        if !self.narrow {
            return false;
        }
        let high = terms.extract(32, word, bits, 32 - bits);
        let zero = terms.constant(32 - bits, 0);
        let goal = terms.eq(32 - bits, high, zero);
        self.sweeper.follows(terms, path, goal) || left_out(Guard::RelationNarrow)
    }

    fn are_same(&mut self, terms: &mut Terms, path: Term, a: Term, b: Term) -> bool {
        if a == b || !self.invariants {
            return a == b;
        }
        let goal = terms.eq(terms.width(a), a, b);
        self.sweeper.follows(terms, path, goal)
    }
}
