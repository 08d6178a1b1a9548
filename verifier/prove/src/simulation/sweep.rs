//! Sweeping: finds terms of the target that are equal to terms of the source, when they are built.
//!
//! Two terms that differ on some sample differ. Terms that agree on all samples are compared by their truth table
//! ([`Terms::are_same_by_table`]) and by the solver, layer by layer ([`Layers`]): first, the subterms that both have in
//! common are abstracted. Results are cached: they do not depend on the segment.
//!
//! Terms stay small; otherwise queries would grow with the program. Each instruction's result is compared as a term
//! over the source's terms. A term that has become deep is made opaque for both programs ([`Sweeper::close`]), except
//! in the layers of a query.

use super::Limits;
use super::inputs::InputSearch;
use super::layers::Layers;
use crate::lemmas;
use crate::solver::{Answer, Budget, Query, Reason, Solver};
use cpu_time::ThreadTime;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Op, SAMPLES, Samples, Term, Terms, Trials};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The program before.
    Source,
    /// The program after, which must refine the source.
    Target,
}

/// The maximum number of the source's terms that are compared with one of the target: the most similar ones.
const CANDIDATES: usize = 16;

/// The maximum number of the source's terms that agree on all samples and are kept.
const KEPT: usize = 64;

type Candidates = SmallVec<[Term; 4]>;

/// The maximum depth of the target's terms that the source does not have: they may lead to one that it has.
const DEEP_ALONE: u8 = 24;

/// The number of values after which the clock is read again.
const VALUES_PER_CLOCK: u32 = 16;

/// The number of layers by which each attempt at a pair goes deeper.
const ATTEMPTS: [usize; 8] = [1, 1, 1, 2, 4, 8, 16, 32];

/// The cost of optional queries, in the solver's unit, per millisecond of the time limit. In a millisecond Z3 spends
/// some 2,500 to 3,500 on the machine that CI runs on, so this is about a quarter of the time.
const PER_MILLISECOND: u64 = 750;

/// The cost of building a node, in the solver's unit.
const PER_NODE: u64 = 500;

/// The minimum budget of a query, before the effort reduces it.
const LEAST: u64 = 125_000;

/// The effort for a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// The solver is not queried.
    None,
    /// Success is unlikely and of little use.
    Least,
    /// Success is unlikely.
    Low,
    High,
}

impl Effort {
    /// The number of attempts.
    fn attempts(self) -> usize {
        match self {
            Self::None | Self::Low => 3,
            Self::Least => 2,
            Self::High => ATTEMPTS.len(),
        }
    }

    /// The number of binary places by which the budget is reduced.
    fn less(self) -> usize {
        match self {
            Self::None | Self::Least => 4,
            Self::Low => 2,
            Self::High => 0,
        }
    }
}

/// Finds equal terms.
pub struct Sweeper<'a> {
    solver: &'a mut dyn Solver,
    limits: Limits,
    start: ThreadTime,
    samples: Samples,
    trials: Trials,
    /// Cached comparisons of pairs, smaller term first.
    compared: FxHashMap<(Term, Term), bool>,
    /// The solver's decisions about pairs of layers, smaller term first: different pairs have layers in common.
    decided: FxHashMap<(Term, Term), bool>,
    /// The terms of the source in this segment, and an index of them by their samples.
    known: FxHashSet<Term>,
    /// The candidates by width and hash.
    by_samples: FxHashMap<(u32, u64), Candidates>,
    /// An index by a hash of the steered samples too, for terms of more than one bit.
    steered: FxHashMap<(u32, u64), Candidates>,
    /// The replacements of the target's terms in this segment.
    swept: FxHashMap<Term, Term>,
    /// True if only the locations are to be found: the solver is not queried.
    pub scouting: bool,
    /// True if a product that lemmas find replaces its sequence everywhere in both programs; otherwise only where the
    /// source has the product.
    pub products: bool,
    /// The maximum depth of the source's terms; below they are opaque.
    pub deep: u8,
    /// Terms to which no lemma applies, alone or towards another.
    plain: FxHashSet<(Term, Option<Term>)>,
    /// The sides of lemmas.
    sides: lemmas::Sides,
    /// The search for inputs that falsify a goal.
    pub search: Option<InputSearch>,
    /// The lemmas that were used, by name.
    pub lemmas: BTreeSet<&'static str>,
    /// Number of solver queries.
    pub queries: usize,
    /// The rest of [`most_spare`](Self::most_spare).
    spare: u64,
    /// Cached results for goals under assumptions.
    shown: FxHashMap<(Vec<Term>, Term), bool>,
    /// True if the time limit has been reached.
    pub late: bool,
    /// True if the attempt has failed: the rest of it only serves to find inputs, without queries for equal terms.
    pub failed: bool,
    /// Values until the clock is read again.
    until_clock: u32,
}

impl<'a> Sweeper<'a> {
    /// A sweeper without any terms.
    pub fn new(solver: &'a mut dyn Solver, limits: Limits) -> Self {
        let mut new = Self {
            solver,
            limits,
            start: ThreadTime::now(),
            samples: Samples::default(),
            trials: Trials::default(),
            compared: FxHashMap::default(),
            decided: FxHashMap::default(),
            known: FxHashSet::default(),
            by_samples: FxHashMap::default(),
            steered: FxHashMap::default(),
            swept: FxHashMap::default(),
            scouting: false,
            products: false,
            deep: DEEP_ALONE,
            plain: FxHashSet::default(),
            sides: lemmas::Sides::default(),
            search: None,
            lemmas: BTreeSet::new(),
            queries: 0,
            spare: 0,
            shown: FxHashMap::default(),
            late: false,
            failed: false,
            until_clock: 0,
        };
        new.spare = new.most_spare();
        new
    }

    /// Begins a segment.
    pub fn begin(&mut self) {
        self.known.clear();
        self.by_samples.clear();
        self.steered.clear();
        self.swept.clear();
    }

    /// Adds a term of the source, with all of its subterms.
    pub fn learn(&mut self, terms: &Terms, term: Term) {
        if self.scouting {
            return;
        }
        let mut work = vec![term];
        while let Some(term) = work.pop() {
            if !self.known.insert(term) {
                continue;
            }
            if terms.node(term).op != Op::Opaque {
                let (width, samples) = (terms.width(term), self.samples.hash_of(terms, term));
                let list = self.by_samples.entry((width, samples)).or_default();
                if list.len() < KEPT {
                    list.push(term);
                }
                if width > 1 {
                    let steered = self.samples.steered_hash_of(terms, term);
                    let list = self.steered.entry((width, steered)).or_default();
                    if list.len() < KEPT {
                        list.push(term);
                    }
                }
            }
            work.extend(terms.node(term).args.iter().copied());
        }
    }

    /// The value of a term, if it is the same on all samples.
    fn constant_on_samples(&mut self, terms: &mut Terms, term: Term) -> Option<Term> {
        let values = *self.samples.of(terms, term);
        (values == [values[0]; SAMPLES]).then(|| terms.constant(terms.width(term), values[0]))
    }

    /// Returns an opaque term in the place of a deep one.
    pub fn close(&mut self, terms: &mut Terms, term: Term) -> Term {
        if !self.known.contains(&term) {
            return terms.shallow(term, DEEP_ALONE);
        }
        let closed = terms.shallow(term, self.deep);
        self.learn(terms, closed);
        closed
    }

    /// Applies lemmas to a term. Failures are cached.
    fn product(&mut self, terms: &mut Terms, term: Term, towards: Option<Term>) -> Option<(Term, &'static str)> {
        if self.plain.contains(&(term, towards)) {
            return None;
        }
        let found = self.sides.apply_towards(terms, term, towards);
        if found.is_none() {
            self.plain.insert((term, towards));
        }
        found
    }

    /// Applies lemmas to a term of the source as often as possible.
    pub fn with_products(&mut self, terms: &mut Terms, mut term: Term) -> Term {
        if !self.products || self.scouting || self.known.contains(&term) {
            return term;
        }
        while let Some((product, lemma)) = self.product(terms, term, None) {
            self.lemmas.insert(lemma);
            term = product;
        }
        term
    }

    /// Returns the source's term that is proved equal to a term of the target, if one is found; else the term itself.
    pub fn sweep(&mut self, terms: &mut Terms, term: Term) -> Term {
        if self.scouting || self.known.contains(&term) || terms.as_constant(term).is_some() {
            return term;
        }
        if let Some(&found) = self.swept.get(&term) {
            return found;
        }
        // A condition that the source has is kept, in any form: the source did not replace it either.
        let inner = innermost(terms, term);
        let is_condition = terms.width(inner) == 1 && self.known.contains(&inner);
        let found = if is_condition { term } else { self.look_for(terms, term) };
        self.swept.insert(term, found);
        found
    }

    fn look_for(&mut self, terms: &mut Terms, term: Term) -> Term {
        let (width, samples) = (terms.width(term), self.samples.hash_of(terms, term));
        let mut candidates = self.by_samples.get(&(width, samples)).cloned().unwrap_or_default();
        let mut likely = Candidates::new();
        if width > 1 {
            let steered = self.samples.steered_hash_of(terms, term);
            likely = self.steered.get(&(width, steered)).cloned().unwrap_or_default();
            candidates.retain(|candidate| !likely.contains(candidate));
            candidates.insert_many(0, likely.iter().copied());
        }
        for list in [&mut candidates, &mut likely] {
            list.retain(|&mut candidate| terms.as_constant(candidate).is_none());
            list.sort_by_key(|&other| std::cmp::Reverse(likeness(terms, term, other)));
            list.truncate(CANDIDATES);
        }
        // Lemmas first: queries that they cover time out in every solver.
        for other in candidates.iter().copied().map(Some).chain([None]) {
            if let Some((product, lemma)) = self.product(terms, term, other)
                && (self.products || self.known.contains(&product) || other == Some(product))
            {
                self.lemmas.insert(lemma);
                return product;
            }
        }
        // A term with the same value on all samples is a constant or, more often, rarely differs from it.
        let constant = self.constant_on_samples(terms, term);
        let effort = match constant {
            None => Effort::High,
            // A condition that rarely holds.
            Some(_) if terms.width(innermost(terms, term)) == 1 => Effort::Least,
            Some(_) => Effort::Low,
        };
        if width == 1 {
            if let Some(constant) = constant
                && let Some(found) = self.equal_to_one(terms, term, smallvec![constant], effort)
            {
                return found;
            }
            return self.equal_to_one(terms, term, candidates, effort).unwrap_or(term);
        }
        // Terms that agree only while no rare comparison holds usually differ where one does.
        let (less, few) = match effort {
            Effort::High => (Effort::Low, 4),
            _ => (Effort::Least, 2),
        };
        if let Some(found) = self.equal_to_one(terms, term, likely.clone(), effort) {
            return found;
        }
        if let Some(constant) = constant {
            let usual = self.samples.of(terms, term)[0];
            let seldom = self.samples.steered(terms, term).iter().any(|&value| value != usual);
            let effort = if seldom { less } else { effort };
            if let Some(found) = self.equal_to_one(terms, term, smallvec![constant], effort) {
                return found;
            }
        }
        candidates.retain(|candidate| !likely.contains(candidate));
        candidates.truncate(few);
        self.equal_to_one(terms, term, candidates, less).unwrap_or(term)
    }

    /// Returns the term, or the constant that it is proved to be.
    pub fn with_numbers(&mut self, terms: &mut Terms, term: Term) -> Term {
        if self.scouting || self.known.contains(&term) || terms.as_constant(term).is_some() || terms.width(term) == 1 {
            return term;
        }
        let Some(constant) = self.constant_on_samples(terms, term) else { return term };
        self.equal_to_one(terms, term, smallvec![constant], Effort::None).unwrap_or(term)
    }

    /// Returns the first of some terms that is proved equal. All of them get a short attempt before any gets a long
    /// one.
    fn equal_to_one(&mut self, terms: &mut Terms, term: Term, others: Candidates, effort: Effort) -> Option<Term> {
        let effort = if self.failed { Effort::None } else { effort };
        let mut pairs = SmallVec::<[(Term, Layers); 4]>::new();
        for other in others {
            match self.compared.get(&(term.min(other), term.max(other))) {
                Some(true) => return Some(other),
                Some(false) => {}
                None => pairs.push((other, Layers::of_pair(terms, term, other))),
            }
        }
        for (attempt, depth) in ATTEMPTS.into_iter().enumerate().take(effort.attempts()) {
            // Most of many terms that agree on all samples differ elsewhere.
            pairs.truncate(if attempt == 0 { CANDIDATES } else { 8 >> attempt.min(3) });
            let mut at = 0;
            while let Some((other, layers)) = pairs.get_mut(at) {
                let other = *other;
                let shown = match layers.next(terms, depth) {
                    Some(pair) => self.are_equal(terms, pair[0], pair[1], attempt, effort),
                    None => Some(false),
                };
                if let Some(shown) = shown {
                    if !self.late && (shown || effort != Effort::None) {
                        self.compared.insert((term.min(other), term.max(other)), shown);
                    }
                    if shown {
                        return Some(other);
                    }
                    pairs.remove(at);
                } else {
                    at += 1;
                }
            }
        }
        None
    }

    /// Compares two terms of a layer. Returns true if they are equal, false if they cannot be proved equal, and `None`
    /// if they may differ and the next layer may be more precise.
    fn are_equal(&mut self, terms: &mut Terms, a: Term, b: Term, attempt: usize, effort: Effort) -> Option<bool> {
        if a == b {
            return Some(true);
        }
        if self.differ(terms, a, b) {
            if left_out(Guard::SweepSamples) {
                return Some(true);
            }
            return None;
        }
        if terms.are_same_by_table(a, b) {
            return Some(true);
        }
        if effort == Effort::None {
            return None;
        }
        let pair = (a.min(b), a.max(b));
        match self.decided.get(&pair) {
            Some(true) => return Some(true),
            Some(false) => return left_out(Guard::SweepInvalid).then_some(true),
            None => {}
        }
        let goal = terms.eq(terms.width(a), a, b);
        // Building a query takes time, too.
        let nodes = Query { assumptions: Vec::new(), goal }.nodes(terms);
        if nodes.as_ref().is_some_and(|nodes| self.trials.refute(terms, nodes)) {
            return left_out(Guard::SweepInvalid).then_some(true);
        }
        let written = nodes.map_or(u64::MAX, |nodes| nodes.len() as u64).saturating_mul(PER_NODE);
        let shift = 2 * attempt.saturating_sub(1).min(2) + effort.less();
        let most = (self.spare / 4).max(LEAST);
        if written > most >> shift.min(2) {
            return Some(false);
        }
        let budget = Budget { rlimit: most.min(self.limits.query.rlimit) >> shift, ..self.limits.query };
        let answer = self.answer(terms, &[], goal, budget);
        if matches!(answer, Answer::Valid | Answer::Invalid(_)) {
            self.decided.insert(pair, answer == Answer::Valid);
        }
        match answer {
            Answer::Valid => {
                self.spare = (self.spare + LEAST).min(self.most_spare());
                Some(true)
            }
            Answer::Invalid(model) => {
                self.spare = self.spare.saturating_sub(model.cost.max(written));
                left_out(Guard::SweepInvalid).then_some(true)
            }
            // A larger layer is no easier.
            Answer::Unknown(_) => {
                self.spare = self.spare.saturating_sub(budget.rlimit + written);
                Some(left_out(Guard::SweepUnknown))
            }
        }
    }

    /// The total cost of queries that need no answer and get none, in the solver's unit. One query gets a quarter of
    /// the rest, so a long program with many of them is not delayed by them.
    fn most_spare(&self) -> u64 {
        self.limits.time.as_millis() as u64 * PER_MILLISECOND
    }

    /// Returns true if two terms differ on a sample.
    fn differ(&mut self, terms: &Terms, a: Term, b: Term) -> bool {
        let of_a = *self.samples.of(terms, a);
        of_a != *self.samples.of(terms, b)
    }

    /// Returns true if a goal is proved under assumptions.
    pub fn holds(&mut self, terms: &mut Terms, assumptions: &[Term], goal: Term) -> bool {
        let key = (assumptions.to_vec(), goal);
        let holds = match self.shown.get(&key) {
            Some(&shown) => shown,
            None => self.is_shown(terms, assumptions, goal),
        };
        if !self.is_over() && !self.scouting {
            self.shown.insert(key, holds);
        }
        if holds || self.late || self.failed && !self.is_wrong_on_sample(terms, assumptions, goal) {
            return holds;
        }
        if let Some(search) = &mut self.search
            && !(self.failed && search.has_found())
        {
            search.search(self.solver, &self.limits.query, terms, assumptions, goal);
        }
        holds
    }

    /// Returns true if a goal is proved on a path. No input is searched for if it is not.
    pub fn follows(&mut self, terms: &mut Terms, path: Term, goal: Term) -> bool {
        let key = (vec![path], goal);
        if let Some(&shown) = self.shown.get(&key) {
            return shown;
        }
        let holds = self.is_shown(terms, &[path], goal);
        if !self.is_over() && !self.scouting {
            self.shown.insert(key, holds);
        }
        holds
    }

    /// Returns true if a condition holds for some values of the variables and some meaning of the functions, false if
    /// it is unsatisfiable, and `None` if neither is decided.
    pub fn is_possible(&mut self, terms: &mut Terms, condition: Term) -> Option<bool> {
        if self.samples.of(terms, condition).contains(&1) {
            return Some(true);
        }
        let goal = terms.not(1, condition);
        match self.answer(terms, &[], goal, self.limits.query) {
            Answer::Valid => Some(false),
            Answer::Invalid(_) => Some(true),
            Answer::Unknown(_) => None,
        }
    }

    fn is_shown(&mut self, terms: &mut Terms, assumptions: &[Term], goal: Term) -> bool {
        if terms.as_constant(goal) == Some(1) || assumptions.contains(&goal) {
            return true;
        }
        if self.scouting {
            return false;
        }
        if self.failed || self.is_wrong_on_sample(terms, assumptions, goal) {
            return false;
        }
        // Irrelevant assumptions only cost time.
        if self.is_shown_by_layers(terms, &[], goal) {
            return true;
        }
        !assumptions.is_empty() && self.is_shown_by_layers(terms, assumptions, goal)
    }

    /// Returns true if a sample refutes a goal: samples assign values and functions, so one on which the assumptions
    /// hold and the goal is false settles it.
    fn is_wrong_on_sample(&mut self, terms: &Terms, assumptions: &[Term], goal: Term) -> bool {
        let mut counterexample = [true; SAMPLES];
        for &assumption in assumptions {
            let values = self.samples.of(terms, assumption);
            counterexample.iter_mut().zip(values).for_each(|(bad, &value)| *bad &= value == 1);
        }
        let values = self.samples.of(terms, goal);
        counterexample.iter().zip(values).any(|(&bad, &value)| bad && value == 0)
    }

    /// Returns true if the time limit has been reached or the attempt has failed: a goal that is not shown may hold.
    fn is_over(&self) -> bool {
        self.late || self.failed
    }

    /// Returns true if a goal is proved, with opaque terms abstracted or expanded.
    fn is_shown_by_layers(&mut self, terms: &mut Terms, assumptions: &[Term], goal: Term) -> bool {
        let mut all: SmallVec<[Term; 4]> = SmallVec::from_slice(assumptions);
        all.push(goal);
        let budget = self.limits.query;
        let outer = Layers::of_goal(terms, &all).next(terms, 1).filter(|outer| *outer != all);
        if let Some(outer) = outer
            && let Some((&goal, assumptions)) = outer.split_last()
            && self.answer(terms, assumptions, goal, budget) == Answer::Valid
        {
            return true;
        }
        match self.answer(terms, assumptions, goal, budget) {
            Answer::Valid => true,
            Answer::Invalid(_) => false,
            Answer::Unknown(_) => left_out(Guard::GoalUnknown),
        }
    }

    fn answer(&mut self, terms: &Terms, assumptions: &[Term], goal: Term, budget: Budget) -> Answer {
        if terms.as_constant(goal) == Some(1) {
            return Answer::Valid;
        }
        if self.is_late() {
            return Answer::Unknown(Reason::Time);
        }
        self.queries += 1;
        let query = Query { assumptions: assumptions.to_vec(), goal };
        self.solver.solve(terms, &query, &budget)
    }

    /// Returns true if the time limit has been reached.
    pub fn is_late(&mut self) -> bool {
        // The last query and the work after it take time, too.
        self.late |= self.start.elapsed() > self.limits.time.mul_f32(0.98);
        self.late
    }

    /// Like [`is_late`](Self::is_late), for each value: it reads the clock now and then, as that is a system call.
    pub fn is_late_by_now(&mut self) -> bool {
        self.until_clock = self.until_clock.checked_sub(1).unwrap_or(VALUES_PER_CLOCK);
        if self.until_clock == 0 { self.is_late() } else { self.late }
    }
}

/// The operand of a chain of extensions and complements.
fn innermost(terms: &Terms, mut term: Term) -> Term {
    while let (Op::Zext | Op::Sext | Op::Not, &[arg]) = (terms.node(term).op, &terms.node(term).args[..]) {
        term = arg;
    }
    term
}

/// A score for operands and operators that two terms have in common.
fn likeness(terms: &Terms, a: Term, b: Term) -> usize {
    let (a, b) = (terms.node(a), terms.node(b));
    let shared = a.args.iter().filter(|arg| b.args.contains(arg)).count();
    2 * shared + usize::from(a.op == b.op)
}
