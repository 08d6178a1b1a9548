//! Solvers: whether one bit is always 1.
//!
//! A [`Query`] asks whether its goal holds for all values of the variables, and all meanings of the uninterpreted functions,
//! under which the assumptions hold. What is plain from the terms themselves is answered here; anything else is lowered
//! (`lower`: to what every solver has) into Z3's expressions (`z3`) or into SMT-LIB 2 text (`smtlib`).
//!
//! An answer is a function of the query and of the resource limit: a query has a context of Z3 of its own, so nothing
//! asked before matters. Only the limit of time depends on the machine.
//!
//! Floats: comparisons have their exact meaning, by operations on bits. All else is an uninterpreted function of the
//! operands, or, with [`Floats::Exact`], the theory of floating point for what IEEE 754 defines.

pub mod cache;
mod floats;
mod lower;
pub mod smtlib;
mod z3;

pub use self::z3::Z3;

use crate::semantics::terms::{Name, Op, Term, Terms};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Is the goal true whenever all assumptions are? All are terms of one bit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// What may be taken for granted.
    pub assumptions: Vec<Term>,
    /// What is to be shown.
    pub goal: Term,
}

/// How long to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Z3's measure of work, the same on every machine.
    pub rlimit: u64,
    /// Time, so that a query ends even where work is badly measured.
    pub time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { rlimit: 20_000_000, time: Duration::from_secs(10) }
    }
}

/// What float operations mean to the solver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Floats {
    /// Functions of which nothing is known; comparisons are exact.
    #[default]
    Uninterpreted,
    /// The theory of floating point. Sines, powers and the like are still functions of which nothing is known.
    Exact,
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The goal holds.
    Valid,
    /// It does not, for these values of the variables, as far as the solver knows: it may have chosen the meaning of
    /// functions that have one.
    Invalid(Model),
    /// Nothing is known.
    Unknown(Reason),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The limit of resources was reached.
    Resources,
    /// The limit of time was reached.
    Time,
    /// The query has more nodes than this many.
    Size(usize),
    /// What the solver says.
    Solver(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Resources => f.write_str("the solver's limit of resources was reached"),
            Self::Time => f.write_str("the solver's limit of time was reached"),
            Self::Size(limit) => write!(f, "the query has more than {limit} nodes"),
            Self::Solver(text) => write!(f, "the solver gave up: {text}"),
        }
    }
}

/// Values of variables, and of applications of uninterpreted functions. What is not in it may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    values: BTreeMap<Name, u64>,
    functions: BTreeMap<Term, u64>,
    /// What it took to find it, in the solver's own measure, which is the same every time; 0 if that is not known.
    pub cost: u64,
}

impl Model {
    /// The value of a variable; 0 where it does not matter.
    pub fn value(&self, name: Name) -> u64 {
        self.values.get(&name).copied().unwrap_or(0)
    }

    /// The value of a term that is a variable or an application of an uninterpreted function, if there is one.
    pub fn of(&self, terms: &Terms, term: Term) -> Option<u64> {
        match terms.node(term).op {
            Op::Variable(name) => self.values.get(&name).copied(),
            _ => self.functions.get(&term).copied(),
        }
    }

    /// With the values of applications.
    #[must_use]
    fn with_functions(self, functions: BTreeMap<Term, u64>) -> Self {
        Self { functions, ..self }
    }

    /// The variables that have a value.
    pub fn iter(&self) -> impl Iterator<Item = (Name, u64)> {
        self.values.iter().map(|(&name, &value)| (name, value))
    }
}

impl FromIterator<(Name, u64)> for Model {
    fn from_iter<I: IntoIterator<Item = (Name, u64)>>(values: I) -> Self {
        Self { values: values.into_iter().collect(), ..Self::default() }
    }
}

/// Whoever answers queries.
pub trait Solver {
    /// Answers a query.
    fn ask(&mut self, terms: &Terms, query: &Query, budget: &Budget) -> Answer;
}

/// A query with more nodes than this is not sent: to write it down would take longer than its answer may.
pub const MOST_NODES: usize = 20_000;

impl Query {
    /// The answer, where it can be seen from the terms.
    pub fn plain_answer(&self, terms: &Terms) -> Option<Answer> {
        let constant = |term| terms.as_constant(term);
        let known = constant(self.goal) == Some(1)
            || self.assumptions.iter().any(|&term| term == self.goal || constant(term) == Some(0));
        if known {
            return Some(Answer::Valid);
        }
        let nothing_assumed = self.assumptions.iter().all(|&term| constant(term) == Some(1));
        (constant(self.goal) == Some(0) && nothing_assumed).then(|| Answer::Invalid(Model::default()))
    }

    /// All terms that the query is about, arguments first; none if there are more than [`MOST_NODES`].
    pub fn nodes(&self, terms: &Terms) -> Option<Vec<Term>> {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut work: Vec<Term> = self.assumptions.iter().copied().chain([self.goal]).collect();
        while let Some(term) = work.pop() {
            if seen.insert(term) {
                if seen.len() > MOST_NODES {
                    return None;
                }
                work.extend(terms.node(term).args.iter().copied());
            }
        }
        // An argument has a lower number than what has it.
        let mut nodes: Vec<Term> = seen.into_iter().collect();
        nodes.sort_unstable();
        Some(nodes)
    }
}

/// The variables among terms, with their widths, by number of the name.
fn variables(terms: &Terms, nodes: &[Term]) -> BTreeMap<Name, u32> {
    let variable = |&term: &Term| match terms.node(term).op {
        Op::Variable(name) => Some((name, terms.width(term))),
        _ => None,
    };
    nodes.iter().filter_map(variable).collect()
}

#[cfg(test)]
mod tests;
