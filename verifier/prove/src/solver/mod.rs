//! Solvers: is a term of one bit always 1?
//!
//! A [`Query`] is valid if its goal holds for all values of the variables, and all meanings of the uninterpreted
//! functions, under which the assumptions hold. Trivial queries are answered here; all others are lowered (`lower`: to
//! the operations that every solver has) into Z3's expressions (`z3`) or into SMT-LIB 2 text (`smtlib`). Without the
//! feature `z3` of this package, `without_z3` replaces Z3 and answers only trivial queries.
//!
//! An answer is a function of the query and of the resource limit: each query has a Z3 context of its own, so earlier
//! queries do not matter; within a proof ([`Session`]), the earlier queries of the proof do. Only the time limit
//! depends on the machine.
//!
//! Floats: comparisons have their exact meaning, by operations on bits. All other operations are uninterpreted
//! functions of the operands or, with [`Floats::Exact`], the theory of floating point as far as IEEE 754 defines them.

mod floats;
mod lower;
pub mod smtlib;
#[cfg_attr(not(feature = "z3"), path = "without_z3.rs")]
mod z3;

pub use self::z3::{Session, Z3};

use ir3_semantics::terms::{Name, Op, Term, Terms};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A goal and assumptions: terms of one bit. Valid if the goal is true whenever all assumptions are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// The assumptions.
    pub assumptions: Vec<Term>,
    /// The goal.
    pub goal: Term,
}

/// The limits of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Z3's measure of work, the same on every machine.
    pub rlimit: u64,
    /// Time limit, so that a query ends even where the resource limit measures its work badly.
    pub time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { rlimit: 20_000_000, time: Duration::from_secs(10) }
    }
}

/// The encoding of float operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Floats {
    /// Uninterpreted functions; comparisons are exact.
    #[default]
    Uninterpreted,
    /// The theory of floating point. Sines, powers and the like are still uninterpreted functions.
    Exact,
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The goal holds.
    Valid,
    /// The goal is false in this model, unless the solver has chosen an interpretation of functions that
    /// have one.
    Invalid(Model),
    /// The solver has no result.
    Unknown(Reason),
}

/// The reason for an unknown answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The limit of resources was reached.
    Resources,
    /// The limit of time was reached.
    Time,
    /// The query has more nodes than this limit.
    Size(usize),
    /// The solver's own message.
    Solver(String),
    /// This build has no solver.
    LeftOut,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Resources => f.write_str("the solver's limit of resources was reached"),
            Self::Time => f.write_str("the solver's limit of time was reached"),
            Self::Size(limit) => write!(f, "the query has more than {limit} nodes"),
            Self::Solver(text) => write!(f, "the solver gave up: {text}"),
            Self::LeftOut => f.write_str("there is no solver: built without the feature z3"),
        }
    }
}

/// Values of variables, and of applications of uninterpreted functions. All others are arbitrary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    values: BTreeMap<Name, u64>,
    functions: BTreeMap<Term, u64>,
    /// The cost of finding it, in the solver's unit, which is the same every time; 0 if unknown.
    pub cost: u64,
}

impl Model {
    /// The value of a variable; 0 if it is arbitrary.
    pub fn value(&self, name: Name) -> u64 {
        self.values.get(&name).copied().unwrap_or(0)
    }

    /// The value of a variable or of an application of an uninterpreted function, if the model has one.
    pub fn of(&self, terms: &Terms, term: Term) -> Option<u64> {
        match terms.node(term).op {
            Op::Variable(name) => self.values.get(&name).copied(),
            _ => self.functions.get(&term).copied(),
        }
    }

    /// Adds the values of applications.
    #[cfg(feature = "z3")]
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

/// A solver.
pub trait Solver {
    /// Answers a query.
    fn solve(&mut self, terms: &Terms, query: &Query, budget: &Budget) -> Answer;
}

/// The maximum number of nodes of a query: to build a larger one would take longer than its answer may.
pub const MOST_NODES: usize = 20_000;

impl Query {
    /// Returns the answer if the terms show it without a solver.
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

    /// All terms of the query, arguments first; `None` if there are more than [`MOST_NODES`].
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
        // An argument has a lower number than its users.
        let mut nodes: Vec<Term> = seen.into_iter().collect();
        nodes.sort_unstable();
        Some(nodes)
    }
}

/// The variables among terms, with their widths, sorted by the number of the name.
fn variables(terms: &Terms, nodes: &[Term]) -> BTreeMap<Name, u32> {
    let variable = |&term: &Term| match terms.node(term).op {
        Op::Variable(name) => Some((name, terms.width(term))),
        _ => None,
    };
    nodes.iter().filter_map(variable).collect()
}

#[cfg(all(test, feature = "z3"))]
mod tests;
