//! Trials: assignments of variables, directed to distinguish terms that random samples do not.
//!
//! Random samples mostly miss comparisons with a constant, or of two variables, that seldom hold. Here variables, and
//! results of uninterpreted functions, are often near a constant that occurs in the terms, or equal to each other. A
//! trial costs a fraction of the start-up time of a solver.

use super::evaluate::{float_near_one, operation, rows};
use super::{Op, Term, Terms};
use crate::arithmetic::concrete::mask;
use crate::support::random::hash;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::hash::BuildHasher;

/// The number of trials.
const TRIALS: usize = 96;

/// The number of trials that are evaluated at once: most conditions that are refuted are false in one of the first.
const BATCH: usize = 16;

/// Terms with more nodes than this are not tried.
const MOST_NODES: usize = 600;

/// Evaluates conditions on directed trials. Its tables are reused from one condition to the next.
#[derive(Default)]
pub struct Trials {
    /// The row of each node.
    rows: FxHashMap<Term, usize>,
    /// The values of the nodes, in their order.
    values: Vec<[u64; BATCH]>,
}

impl Trials {
    /// Returns true if a condition is false in some trial. `nodes` has arguments before the nodes that use them, and
    /// the condition last; too many nodes are not evaluated.
    pub fn refute(&mut self, terms: &Terms, nodes: &[Term]) -> bool {
        if nodes.len() > MOST_NODES {
            return false;
        }
        self.rows.clear();
        self.rows.extend(nodes.iter().copied().zip(0..));
        let numbers: SmallVec<[u64; 16]> = nodes.iter().filter_map(|&node| terms.as_constant(node)).collect();
        (0..TRIALS).step_by(BATCH).any(|first| {
            self.values.clear();
            for &term in nodes {
                let row = self.values_of(terms, term, &numbers, first);
                self.values.push(row);
            }
            self.values.last().is_some_and(|goal| goal.contains(&0))
        })
    }

    /// The values of a term in the trials from `first` on.
    fn values_of(&self, terms: &Terms, term: Term, numbers: &[u64], first: usize) -> [u64; BATCH] {
        let node = terms.node(term);
        let width = u32::from(node.width);
        let args: SmallVec<[&[u64; BATCH]; 4]> = node.args.iter().map(|arg| &self.values[self.rows[arg]]).collect();
        let widths: SmallVec<[u32; 4]> = node.args.iter().map(|&arg| terms.width(arg)).collect();
        let operands = |at: usize| -> SmallVec<[u64; 4]> { args.iter().map(|arg| arg[at]).collect() };
        let given = |function: u64, at: usize| given(numbers, function, &operands(at), first + at, width);
        match node.op {
            Op::Variable(name) | Op::Apply(name) => {
                let function = name.as_u32().into();
                std::array::from_fn(|at| given(function, at))
            }
            // A solver treats this as an uninterpreted function, so a result that is seldom true is as easily true as
            // false.
            Op::Float(op) if width > 1 => {
                let function = FxBuildHasher.hash_one(op);
                std::array::from_fn(|at| match (first + at) % 2 {
                    0 => operation(node.op, width, &widths, &operands(at)),
                    _ => given(function, at),
                })
            }
            op => rows(op, width, &widths, &args),
        }
    }
}

/// The result of an uninterpreted function: equal for equal operands, else random.
fn given(numbers: &[u64], function: u64, operands: &[u64], trial: usize, width: u32) -> u64 {
    let key = operands.iter().fold(function, |key, &operand| hash(&[key, operand]));
    chosen(numbers, key, trial as u64, width)
}

/// A value of a variable or an uninterpreted function.
fn chosen(numbers: &[u64], key: u64, trial: u64, width: u32) -> u64 {
    let h = hash(&[key, trial]);
    let bits = hash(&[h]);
    let value = match h % 8 {
        0..=2 if !numbers.is_empty() => {
            // A constant, or a neighbour of it; sometimes only its low bits, or its high bits.
            let number = numbers[bits as usize % numbers.len()];
            let shifted = if bits >> 32 & 7 == 0 { number << (bits >> 40 & 31) } else { number };
            shifted.wrapping_add(bits >> 48 & 3).wrapping_sub(bits >> 50 & 1)
        }
        // A value that others share in this trial.
        0..=4 => hash(&[trial, bits & 1]) % 16,
        5 => bits % 4,
        6 => float_near_one(width, bits),
        _ => bits,
    };
    value & mask(width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::domain::{Domain, Format};
    use crate::terms::VariableKind;

    /// All terms of a condition. An argument has a lower number than its users.
    fn nodes(terms: &Terms, goal: Term) -> Vec<Term> {
        let mut nodes = vec![goal];
        let mut next = 0;
        while let Some(&term) = nodes.get(next) {
            nodes.extend(terms.node(term).args.iter().copied());
            next += 1;
        }
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Returns true if a trial refutes the condition that `make` returns.
    fn refuted(make: impl Fn(&mut Terms, Term, Term) -> Term) -> bool {
        let mut terms = Terms::new();
        let [x, y] = ["x", "y"].map(|name| terms.variable_of(VariableKind::LANE, 32, name));
        let goal = make(&mut terms, x, y);
        Trials::default().refute(&terms, &nodes(&terms, goal))
    }

    #[test]
    fn what_seldom_differs() {
        // One value in 2^32.
        assert!(refuted(|terms, x, _| {
            let number = terms.constant(32, 0x1234_5678);
            let is = terms.eq(32, x, number);
            terms.not(1, is)
        }));
        assert!(refuted(|terms, x, y| {
            let same = terms.eq(32, x, y);
            terms.not(1, same)
        }));
        // 0.25 < x + y < 0.26, where the sum is arbitrary.
        assert!(refuted(|terms, x, y| {
            let sum = terms.fadd(Format::F32, x, y);
            let [low, high] = [0x3e80_0000, 0x3e85_1eb8].map(|bits| terms.constant(32, bits));
            let above = terms.flt(Format::F32, low, sum);
            let below = terms.flt(Format::F32, sum, high);
            let both = terms.and(1, above, below);
            terms.not(1, both)
        }));
    }

    #[test]
    fn what_always_holds_is_not_refuted() {
        // A function gives equal results for equal arguments.
        assert!(!refuted(|terms, x, y| {
            let one = terms.constant(32, 1);
            let beside = terms.add(32, x, one);
            let back = terms.not(32, beside);
            let back = terms.not(32, back);
            let [a, b] = [beside, back].map(|z| terms.fadd(Format::F32, z, y));
            terms.eq(32, a, b)
        }));
        assert!(!refuted(|terms, x, y| {
            let (less, more) = (terms.ult(32, x, y), terms.ult(32, y, x));
            let both = terms.and(1, less, more);
            terms.not(1, both)
        }));
    }
}
