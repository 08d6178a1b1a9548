//! Terms of the target that are equal to terms of the source, found as they are made.
//!
//! Two terms that differ on some sample differ. Those that agree on all of them are compared by their truth table
//! ([`Terms::are_same_by_table`]) and by the solver, layer by layer ([`Layers`]): what both have in common is unknown at first. What was shown,
//! or not, is remembered: it does not depend on the segment.
//!
//! Terms stay small, or a long program would have long questions: what an instruction makes of the source's terms is
//! compared, and where a term has become deep it is not looked into from then on ([`Sweeper::close`]), by neither program, unless a
//! layer does.

use super::Limits;
use super::inputs::Seeker;
use super::layers::Layers;
use crate::prove::lemmas;
use crate::prove::solver::{Answer, Budget, Query, Reason, Solver};
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::terms::{Op, SAMPLES, Sample, Samples, Steered, Term, Terms, Trials};
use crate::support::guards::{Guard, left_out};
use cpu_time::ThreadTime;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// What is to be preserved.
    Source,
    /// What is to do the same.
    Target,
}

/// At most so many terms of the source are compared with one of the target: those that are most like it.
const CANDIDATES: usize = 16;

/// At most so many terms of the source that agree on all samples are kept.
const KEPT: usize = 64;

type Candidates = SmallVec<[Term; 4]>;

/// Those of the target that the source does not have may be this deep: they are on their way to one that it has.
const DEEP_ALONE: u8 = 24;

/// How many layers deeper each look at a pair goes.
const LOOKS: [usize; 8] = [1, 1, 1, 2, 4, 8, 16, 32];

/// What questions that need no answer may cost by the solver's measure, for each millisecond of the limit of time. In a millisecond Z3 spends
/// some 2,500 to 3,500 on the machine that CI runs on, so this is about a quarter of the time.
const PER_MILLISECOND: u64 = 750;

/// What it costs to write down a node, in the solver's measure.
const PER_NODE: u64 = 500;

/// No question gets less, before it is made harder.
const LEAST: u64 = 125_000;

/// How hard to try.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// The solver is not asked.
    None,
    /// There is little hope, and little to be won.
    Least,
    /// There is little hope.
    Low,
    High,
}

impl Effort {
    /// How many looks.
    fn looks(self) -> usize {
        match self {
            Self::None | Self::Low => 3,
            Self::Least => 2,
            Self::High => LOOKS.len(),
        }
    }

    /// By how many binary places less is spent than on what is tried hard.
    fn less(self) -> usize {
        match self {
            Self::None | Self::Least => 4,
            Self::Low => 2,
            Self::High => 0,
        }
    }
}

/// Finds out what is equal.
pub struct Sweeper<'a> {
    solver: &'a mut dyn Solver,
    limits: Limits,
    start: ThreadTime,
    samples: Samples,
    trials: Trials,
    /// Pairs that were asked about, smaller term first.
    asked: FxHashMap<(Term, Term), bool>,
    /// Terms of the source in this segment, and these by their samples.
    known: FxHashSet<Term>,
    alike: FxHashMap<(u32, Sample), Candidates>,
    /// Those of more than one bit by their steered samples, too.
    steered: FxHashMap<(u32, Sample, Steered), Candidates>,
    /// What a term of the target was replaced by, in this segment.
    swept: FxHashMap<Term, Term>,
    /// Nobody is to be asked: what locations there are is to be found out, no more.
    pub scouting: bool,
    /// A product that lemmas find takes the place of its sequence, on both sides and wherever it is; else only where the source has the
    /// product.
    pub products: bool,
    /// Terms of the source are at most so many operations deep, beneath which they are opaque.
    pub deep: u8,
    /// Terms in which lemmas find nothing, alone or with another.
    plain: FxHashSet<(Term, Option<Term>)>,
    /// Who looks for inputs on which something that is to hold does not.
    pub seeker: Option<Seeker>,
    /// The lemmas that were used, by name.
    pub lemmas: BTreeSet<&'static str>,
    /// Questions put to the solver.
    pub queries: usize,
    /// What is left of [`most_spare`](Self::most_spare).
    spare: u64,
    /// Whether goals were shown to hold under assumptions.
    shown: FxHashMap<(Vec<Term>, Term), bool>,
    /// Whether the limit of time has been reached.
    pub late: bool,
}

impl<'a> Sweeper<'a> {
    /// Knows nothing yet.
    pub fn new(solver: &'a mut dyn Solver, limits: Limits) -> Self {
        let mut new = Self {
            solver,
            limits,
            start: ThreadTime::now(),
            samples: Samples::default(),
            trials: Trials::default(),
            asked: FxHashMap::default(),
            known: FxHashSet::default(),
            alike: FxHashMap::default(),
            steered: FxHashMap::default(),
            swept: FxHashMap::default(),
            scouting: false,
            products: false,
            deep: DEEP_ALONE,
            plain: FxHashSet::default(),
            seeker: None,
            lemmas: BTreeSet::new(),
            queries: 0,
            spare: 0,
            shown: FxHashMap::default(),
            late: false,
        };
        new.spare = new.most_spare();
        new
    }

    /// Begins a segment.
    pub fn begin(&mut self) {
        self.known.clear();
        self.alike.clear();
        self.steered.clear();
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
            if terms.node(term).op != Op::Opaque {
                let (width, samples) = (terms.width(term), *self.samples.of(terms, term));
                let list = self.alike.entry((width, samples)).or_default();
                if list.len() < KEPT {
                    list.push(term);
                }
                if width > 1 {
                    let steered = *self.samples.steered(terms, term);
                    let list = self.steered.entry((width, samples, steered)).or_default();
                    if list.len() < KEPT {
                        list.push(term);
                    }
                }
            }
            work.extend(terms.node(term).args.iter().copied());
        }
    }

    /// The number that a term is on all samples.
    fn constant_on_samples(&mut self, terms: &mut Terms, term: Term) -> Option<Term> {
        let values = *self.samples.of(terms, term);
        (values == [values[0]; SAMPLES]).then(|| terms.constant(terms.width(term), values[0]))
    }

    /// What is used from now on of a term: where it is deep, it is not looked into.
    pub fn close(&mut self, terms: &mut Terms, term: Term) -> Term {
        if !self.known.contains(&term) {
            return terms.shallow(term, DEEP_ALONE);
        }
        let closed = terms.shallow(term, self.deep);
        self.learn(terms, closed);
        closed
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
        // A condition that the source has stays one, in whatever form: the source did not take it for anything else.
        let inner = innermost(terms, term);
        let is_condition = terms.width(inner) == 1 && self.known.contains(&inner);
        let found = if is_condition { term } else { self.look_for(terms, term) };
        self.swept.insert(term, found);
        found
    }

    fn look_for(&mut self, terms: &mut Terms, term: Term) -> Term {
        let (width, samples) = (terms.width(term), *self.samples.of(terms, term));
        let mut candidates = self.alike.get(&(width, samples)).cloned().unwrap_or_default();
        let mut likely = Candidates::new();
        if width > 1 {
            let steered = *self.samples.steered(terms, term);
            likely = self.steered.get(&(width, samples, steered)).cloned().unwrap_or_default();
            candidates.retain(|candidate| !likely.contains(candidate));
            candidates.insert_many(0, likely.iter().copied());
        }
        for list in [&mut candidates, &mut likely] {
            list.retain(|&mut candidate| terms.as_constant(candidate).is_none());
            list.sort_by_key(|&other| std::cmp::Reverse(likeness(terms, term, other)));
            list.truncate(CANDIDATES);
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
        // What is the same on all samples is a number, or, more often, only seldom another one.
        let constant = self.constant_on_samples(terms, term);
        let effort = match constant {
            None => Effort::High,
            // A condition that seldom holds.
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
        // What agrees only as long as no rare comparison holds differs where one does, as a rule.
        let (less, few) = match effort {
            Effort::High => (Effort::Low, 4),
            _ => (Effort::Least, 2),
        };
        if let Some(found) = self.equal_to_one(terms, term, likely.clone(), effort) {
            return found;
        }
        if let Some(constant) = constant {
            let seldom = self.samples.steered(terms, term).iter().any(|&value| value != samples[0]);
            let effort = if seldom { less } else { effort };
            if let Some(found) = self.equal_to_one(terms, term, smallvec![constant], effort) {
                return found;
            }
        }
        candidates.retain(|candidate| !likely.contains(candidate));
        candidates.truncate(few);
        self.equal_to_one(terms, term, candidates, less).unwrap_or(term)
    }

    /// A term of the source, or the number that it is.
    pub fn with_numbers(&mut self, terms: &mut Terms, term: Term) -> Term {
        if self.scouting || self.known.contains(&term) || terms.as_constant(term).is_some() || terms.width(term) == 1 {
            return term;
        }
        let Some(constant) = self.constant_on_samples(terms, term) else { return term };
        self.equal_to_one(terms, term, smallvec![constant], Effort::None).unwrap_or(term)
    }

    /// The first of some terms that is shown to be equal. All of them get a short look before any gets a long one.
    fn equal_to_one(&mut self, terms: &mut Terms, term: Term, others: Candidates, effort: Effort) -> Option<Term> {
        let mut pairs = SmallVec::<[(Term, Layers); 4]>::new();
        for other in others {
            match self.asked.get(&(term.min(other), term.max(other))) {
                Some(true) => return Some(other),
                Some(false) => {}
                None => pairs.push((other, Layers::of_pair(terms, term, other))),
            }
        }
        for (look, depth) in LOOKS.into_iter().enumerate().take(effort.looks()) {
            // Of many that agree on all samples most differ on others.
            pairs.truncate(if look == 0 { CANDIDATES } else { 8 >> look.min(3) });
            let mut at = 0;
            while let Some((other, layers)) = pairs.get_mut(at) {
                let other = *other;
                let shown = match layers.next(terms, depth) {
                    Some(pair) => self.are_equal(terms, pair[0], pair[1], look, effort),
                    None => Some(false),
                };
                if let Some(shown) = shown {
                    if !self.late && (shown || effort != Effort::None) {
                        self.asked.insert((term.min(other), term.max(other)), shown);
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

    /// Whether two terms of a layer are equal, or not to be shown to be: `None` if they may differ, and the next layer may know more.
    fn are_equal(&mut self, terms: &mut Terms, a: Term, b: Term, look: usize, effort: Effort) -> Option<bool> {
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
        let goal = terms.eq(terms.width(a), a, b);
        // To write a question down takes time, too.
        let nodes = Query { assumptions: Vec::new(), goal }.nodes(terms);
        if nodes.as_ref().is_some_and(|nodes| self.trials.refute(terms, nodes)) {
            return left_out(Guard::SweepInvalid).then_some(true);
        }
        let written = nodes.map_or(u64::MAX, |nodes| nodes.len() as u64).saturating_mul(PER_NODE);
        let shift = 2 * look.saturating_sub(1).min(2) + effort.less();
        let most = (self.spare / 4).max(LEAST);
        if written > most >> shift.min(2) {
            return Some(false);
        }
        let budget = Budget { rlimit: most.min(self.limits.query.rlimit) >> shift, ..self.limits.query };
        match self.answer(terms, &[], goal, budget) {
            Answer::Valid => {
                self.spare = (self.spare + LEAST).min(self.most_spare());
                Some(true)
            }
            Answer::Invalid(model) => {
                self.spare = self.spare.saturating_sub(model.cost.max(written));
                left_out(Guard::SweepInvalid).then_some(true)
            }
            // With more in it, it is no easier.
            Answer::Unknown(_) => {
                self.spare = self.spare.saturating_sub(budget.rlimit + written);
                Some(left_out(Guard::SweepUnknown))
            }
        }
    }

    /// What questions may cost that need no answer and get none, in the solver's measure. One gets a quarter of what is left of
    /// it, so a long program with many of them is not held up by them.
    fn most_spare(&self) -> u64 {
        self.limits.time.as_millis() as u64 * PER_MILLISECOND
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

    /// Returns true if a condition holds for some values of the variables and some meaning of the functions; `None` if that is not found out.
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
        // Assumptions that have nothing to do with it only cost time.
        if self.ask(terms, &[], goal) {
            return true;
        }
        !assumptions.is_empty() && self.ask(terms, assumptions, goal)
    }

    /// Whether a goal is shown, with what is opaque taken as unknown or as it is.
    fn ask(&mut self, terms: &mut Terms, assumptions: &[Term], goal: Term) -> bool {
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
        self.solver.ask(terms, &query, &budget)
    }

    /// Whether the limit of time has been reached by now.
    pub fn is_late(&mut self) -> bool {
        // The last question and what follows it take time, too.
        self.late |= self.start.elapsed() > self.limits.time.mul_f32(0.98);
        self.late
    }
}

/// What a term is the extension or the complement of.
fn innermost(terms: &Terms, mut term: Term) -> Term {
    while let (Op::Zext | Op::Sext | Op::Not, &[arg]) = (terms.node(term).op, &terms.node(term).args[..]) {
        term = arg;
    }
    term
}

/// How much two terms have in common by their form.
fn likeness(terms: &Terms, a: Term, b: Term) -> usize {
    let (a, b) = (terms.node(a), terms.node(b));
    let shared = a.args.iter().filter(|arg| b.args.contains(arg)).count();
    2 * shared + usize::from(a.op == b.op)
}
