//! Terms of the target that are equal to terms of the source, found as they are made.
//!
//! Two terms that differ on some sample differ. Those that agree on all of them are put to the solver: first with everything
//! that both have in common taken as unknown, which makes the question small and is sound, since what holds for all values
//! of that holds for the ones it has; then as they are. What was shown, or not, is remembered: it does not depend on the
//! segment.

use super::Limits;
use super::inputs::Seeker;
use crate::lemmas;
use crate::semantics::domain::Domain;
use crate::solver::{Answer, Budget, Query, Solver};
use crate::terms::{Op, SAMPLES, Sample, Samples, Term, Terms};
use cpu_time::ThreadTime;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// What is to be preserved.
    Source,
    /// What is to do the same.
    Target,
}

/// At most so many terms of the source are compared with one of the target, of so many that have the same samples.
const CANDIDATES: usize = 4;
const ALIKE: usize = 32;

/// Terms that both have in common are looked for among so many nodes.
const CONE: usize = 400;

/// Finds out what is equal.
pub struct Sweeper<'a> {
    solver: &'a mut dyn Solver,
    limits: Limits,
    start: ThreadTime,
    samples: Samples,
    /// Pairs that were asked about, smaller term first.
    asked: FxHashMap<(Term, Term), bool>,
    /// Terms of the source in this segment, and these by their samples.
    known: FxHashSet<Term>,
    alike: FxHashMap<(u32, Sample), SmallVec<[Term; 2]>>,
    /// What a term of the target was replaced by, in this segment.
    swept: FxHashMap<Term, Term>,
    /// Nobody is to be asked: what locations there are is to be found out, no more.
    pub scouting: bool,
    /// A product that lemmas find takes the place of its sequence, on both sides and wherever it is; else only where the source has the
    /// product.
    pub products: bool,
    /// Terms in which lemmas find nothing, alone or with another.
    plain: FxHashSet<(Term, Option<Term>)>,
    /// Who looks for inputs on which something that is to hold does not.
    pub seeker: Option<Seeker>,
    /// The lemmas that were used, by name.
    pub lemmas: BTreeSet<&'static str>,
    /// Questions put to the solver.
    pub queries: usize,
    /// Whether the limit of time has been reached.
    pub late: bool,
    /// Questions that the solver has given up on.
    in_vain: u32,
    /// Whether goals were shown to hold under assumptions.
    shown: FxHashMap<(Vec<Term>, Term), bool>,
}

impl<'a> Sweeper<'a> {
    /// Knows nothing yet.
    pub fn new(solver: &'a mut dyn Solver, limits: Limits) -> Self {
        Self {
            solver,
            limits,
            start: ThreadTime::now(),
            samples: Samples::default(),
            asked: FxHashMap::default(),
            known: FxHashSet::default(),
            alike: FxHashMap::default(),
            swept: FxHashMap::default(),
            scouting: false,
            products: false,
            plain: FxHashSet::default(),
            seeker: None,
            lemmas: BTreeSet::new(),
            queries: 0,
            late: false,
            in_vain: 0,
            shown: FxHashMap::default(),
        }
    }

    /// Begins a segment.
    pub fn begin(&mut self) {
        self.known.clear();
        self.alike.clear();
        self.swept.clear();
    }

    /// A term of the source, with all that it is made of.
    pub fn learn(&mut self, terms: &Terms, term: Term) {
        if self.scouting {
            return;
        }
        let mut work = vec![term];
        while let Some(term) = work.pop() {
            if !self.known.insert(term) {
                continue;
            }
            let key = (terms.width(term), *self.samples.of(terms, term));
            let list = self.alike.entry(key).or_default();
            if list.len() < ALIKE {
                list.push(term);
            }
            work.extend(terms.node(term).args.iter().copied());
        }
    }

    /// What lemmas make of a term. What they do not find they do not look for again.
    fn product(&mut self, terms: &mut Terms, term: Term, towards: Option<Term>) -> Option<(Term, &'static str)> {
        if self.plain.contains(&(term, towards)) {
            return None;
        }
        let found = lemmas::apply_towards(terms, term, towards);
        if found.is_none() {
            self.plain.insert((term, towards));
        }
        found
    }

    /// A term of the source in which lemmas have found what they could.
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

    /// The source's term that a term of the target is equal to, if one is found; else the term as it is.
    pub fn sweep(&mut self, terms: &mut Terms, term: Term) -> Term {
        if self.scouting || self.known.contains(&term) || terms.as_constant(term).is_some() {
            return term;
        }
        if let Some(&found) = self.swept.get(&term) {
            return found;
        }
        let found = self.look_for(terms, term);
        self.swept.insert(term, found);
        found
    }

    fn look_for(&mut self, terms: &mut Terms, term: Term) -> Term {
        let key = (terms.width(term), *self.samples.of(terms, term));
        let mut candidates = self.alike.get(&key).cloned().unwrap_or_default();
        // Those that look most like it first: what is the same on all samples may be so by chance, and to find that out takes long.
        let node = terms.node(term);
        candidates.sort_by_cached_key(|&other| {
            let other = terms.node(other);
            let common = other.args.iter().filter(|arg| node.args.contains(arg)).count();
            (other.op != node.op, std::cmp::Reverse(common))
        });
        candidates.truncate(CANDIDATES);
        // A number that it always is.
        let (width, [first, ..]) = key;
        if key.1 == [first; SAMPLES] {
            candidates.retain(|candidate| terms.as_constant(*candidate).is_none());
            candidates.push(terms.constant(width, first));
        }
        // What times out in every solver has been shown by other means.
        for other in candidates.iter().copied().map(Some).chain([None]) {
            if let Some((product, lemma)) = self.product(terms, term, other)
                && (self.products || self.known.contains(&product) || other == Some(product))
            {
                self.lemmas.insert(lemma);
                return product;
            }
        }
        candidates.into_iter().find(|&candidate| self.equal(terms, term, candidate)).unwrap_or(term)
    }

    /// Whether two terms are shown to be equal.
    pub fn equal(&mut self, terms: &mut Terms, a: Term, b: Term) -> bool {
        if a == b {
            return true;
        }
        let pair = (a.min(b), a.max(b));
        if let Some(&known) = self.asked.get(&pair) {
            return known;
        }
        let width = terms.width(a);
        let goal = terms.eq(width, a, b);
        let shown = match terms.as_constant(goal) {
            Some(bit) => bit == 1,
            None if self.differ(terms, a, b) => false,
            None => {
                let abstracted = abstract_common(terms, a, b);
                let budget = self.budget();
                let mut quick = abstracted.is_some_and(|goal| self.ask_within(terms, &[], goal, budget));
                if !quick && let Some(simpler) = abstract_divisions(terms, goal) {
                    quick = self.ask_within(terms, &[], simpler, budget);
                }
                quick || self.ask_within(terms, &[], goal, budget)
            }
        };
        if !self.late {
            self.asked.insert(pair, shown);
        }
        shown
    }

    /// Whether two terms differ on a sample.
    fn differ(&mut self, terms: &Terms, a: Term, b: Term) -> bool {
        let of_a = *self.samples.of(terms, a);
        of_a != *self.samples.of(terms, b)
    }

    /// Whether a goal is shown to hold where the assumptions do.
    pub fn holds(&mut self, terms: &mut Terms, assumptions: &[Term], goal: Term) -> bool {
        let key = (assumptions.to_vec(), goal);
        let holds = match self.shown.get(&key) {
            Some(&shown) => shown,
            None => self.is_shown(terms, assumptions, goal),
        };
        if !self.late && !self.scouting {
            self.shown.insert(key, holds);
        }
        if let (false, Some(seeker)) = (holds || self.late, &mut self.seeker) {
            seeker.seek(self.solver, &self.limits.query, terms, assumptions, goal);
        }
        holds
    }

    fn is_shown(&mut self, terms: &mut Terms, assumptions: &[Term], goal: Term) -> bool {
        if terms.as_constant(goal) == Some(1) || assumptions.contains(&goal) {
            return true;
        }
        if self.scouting {
            return false;
        }
        // A sample is a choice of values and of functions: one on which it does not hold settles it.
        let mut counterexample = [true; SAMPLES];
        for &assumption in assumptions {
            let values = self.samples.of(terms, assumption);
            counterexample.iter_mut().zip(values).for_each(|(bad, &value)| *bad &= value == 1);
        }
        let values = self.samples.of(terms, goal);
        if counterexample.iter().zip(values).any(|(&bad, &value)| bad && value == 0) {
            return false;
        }
        for simplify in [abstract_sums, abstract_divisions] {
            if let Some(simpler) = simplify(terms, goal)
                && self.ask(terms, &[], simpler)
            {
                return true;
            }
        }
        // Assumptions that have nothing to do with it only cost time.
        if self.ask(terms, &[], goal) {
            return true;
        }
        !assumptions.is_empty() && self.ask(terms, assumptions, goal)
    }

    /// How hard to try for what need not hold: less with every time that it was not found out.
    fn budget(&self) -> Budget {
        let Budget { rlimit, time } = self.limits.query;
        Budget { rlimit: (rlimit >> self.in_vain).max(50_000), time }
    }

    fn ask(&mut self, terms: &Terms, assumptions: &[Term], goal: Term) -> bool {
        self.ask_within(terms, assumptions, goal, self.limits.query)
    }

    fn ask_within(&mut self, terms: &Terms, assumptions: &[Term], goal: Term, budget: Budget) -> bool {
        if let Some(bit) = terms.as_constant(goal) {
            return bit == 1;
        }
        if self.start.elapsed() > self.limits.time {
            self.late = true;
            return false;
        }
        self.queries += 1;
        let query = Query { assumptions: assumptions.to_vec(), goal };
        let answer = self.solver.ask(terms, &query, &budget);
        self.in_vain += u32::from(matches!(answer, Answer::Unknown(_)) && self.in_vain < 8);
        matches!(answer, Answer::Valid)
    }
}

/// Some of the terms that a term is made of, itself too.
fn cone(terms: &Terms, root: Term) -> FxHashSet<Term> {
    let (mut seen, mut work) = (FxHashSet::default(), vec![root]);
    while let Some(term) = work.pop() {
        if seen.len() >= CONE {
            break;
        }
        if seen.insert(term) {
            work.extend(terms.node(term).args.iter().copied());
        }
    }
    seen
}

/// What is taken for a variable, for its complement, or as it is.
#[derive(Default)]
struct Abstraction {
    common: FxHashSet<Term>,
    /// Sums that are complements of others: as terms they have nothing in common, the complement of x being -x - 1.
    complements: FxHashMap<Term, Term>,
    done: FxHashMap<Term, Term>,
}

impl Abstraction {
    fn add_complements(&mut self, terms: &mut Terms, among: impl Iterator<Item = Term>) {
        let mut sums: Vec<Term> = among.filter(|&term| terms.node(term).op == Op::Add).collect();
        sums.sort_unstable();
        sums.dedup();
        for &sum in &sums {
            let width = terms.width(sum);
            let other = terms.not(width, sum);
            if other < sum && sums.binary_search(&other).is_ok() {
                self.common.insert(other);
                self.common.remove(&sum);
                self.complements.insert(sum, other);
            }
        }
    }

    fn variable(&mut self, terms: &mut Terms, term: Term) -> Term {
        let name = terms.name(&format!("common {term:?}"));
        let width = terms.width(term);
        terms.variable(width, name)
    }

    /// A term in which some are replaced.
    fn replace(&mut self, terms: &mut Terms, root: Term) -> Term {
        let mut stack = vec![root];
        while let Some(&term) = stack.last() {
            if self.done.contains_key(&term) {
                stack.pop();
                continue;
            }
            let node = terms.node(term).clone();
            if node.args.is_empty() {
                self.done.insert(term, term);
                continue;
            }
            if let Some(&other) = self.complements.get(&term) {
                let variable = self.variable(terms, other);
                let complement = terms.not(node.width.into(), variable);
                self.done.insert(term, complement);
                continue;
            }
            if self.common.contains(&term) {
                let variable = self.variable(terms, term);
                self.done.insert(term, variable);
                continue;
            }
            let before = stack.len();
            stack.extend(node.args.iter().filter(|arg| !self.done.contains_key(arg)));
            if stack.len() == before {
                let args: SmallVec<[Term; 4]> = node.args.iter().map(|arg| self.done[arg]).collect();
                let new = terms.rebuild(node.op, node.width.into(), &args);
                self.done.insert(term, new);
            }
        }
        self.done[&root]
    }
}

/// That two terms are equal, with what both have in common replaced by variables; none if there is nothing, or too much to see.
fn abstract_common(terms: &mut Terms, a: Term, b: Term) -> Option<Term> {
    let (of_a, of_b) = (cone(terms, a), cone(terms, b));
    let mut abstraction = Abstraction { common: of_a.intersection(&of_b).copied().collect(), ..Abstraction::default() };
    abstraction.add_complements(terms, of_a.union(&of_b).copied());
    if abstraction.common.iter().all(|&term| terms.node(term).args.is_empty()) {
        return None;
    }
    let new = [a, b].map(|root| abstraction.replace(terms, root));
    let width = terms.width(a);
    Some(terms.eq(width, new[0], new[1]))
}

/// A goal in which sums whose complement is in it too are variables; none if there are none.
fn abstract_sums(terms: &mut Terms, goal: Term) -> Option<Term> {
    let all = cone(terms, goal);
    let mut abstraction = Abstraction::default();
    abstraction.add_complements(terms, all.into_iter());
    let any = !abstraction.complements.is_empty();
    any.then(|| abstraction.replace(terms, goal))
}

/// A goal with variables in the place of quotients and remainders, which are more than a solver can do; none if there are none.
fn abstract_divisions(terms: &mut Terms, goal: Term) -> Option<Term> {
    let divides = |term: &Term| matches!(terms.node(*term).op, Op::Udiv | Op::Urem);
    let common: FxHashSet<Term> = cone(terms, goal).into_iter().filter(divides).collect();
    let any = !common.is_empty();
    let mut abstraction = Abstraction { common, ..Abstraction::default() };
    any.then(|| abstraction.replace(terms, goal))
}
