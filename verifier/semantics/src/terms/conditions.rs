//! Conditions: simplification of clauses in an and, and the conditions of paths through a program.
//!
//! A *clause* is the complement of an `And`. In a conjunction with a term x, a clause that contains x is true, and one
//! that contains the complement of x is the same without it.
//!
//! [`Terms::disjunction`] of the conditions of joining paths gives the condition of the block before the branch:
//! factors that all have in common are moved out, and two conditions that differ in the sign of one conjunct become one
//! without it.

use super::{Args, Op, Term, Terms};
use smallvec::SmallVec;

/// More conditions than this are not simplified.
const PATHS: usize = 48;

impl Terms {
    /// The conjuncts of a condition; none for the condition that always holds.
    pub fn conjuncts(&self, t: Term) -> SmallVec<[Term; 4]> {
        match self.op(t) {
            Op::And => SmallVec::from_slice(&self.nodes[t].args),
            Op::Constant(1) if self.width(t) == 1 => SmallVec::new(),
            _ => SmallVec::from_slice(&[t]),
        }
    }

    /// The conjunction of some conditions.
    pub fn conjunction(&mut self, conditions: &[Term]) -> Term {
        self.all_of(1, conditions)
    }

    /// The disjunction of some conditions, with their common conjuncts moved out.
    pub fn disjunction(&mut self, conditions: &[Term]) -> Term {
        let mut sets = Vec::new();
        for &condition in conditions {
            match self.as_constant(condition) {
                Some(0) => {}
                Some(_) => return condition,
                None => sets.push(self.conjuncts(condition)),
            }
        }
        if sets.len() > PATHS {
            return self.any_of(1, conditions);
        }
        self.disjunction_of(sets)
    }

    fn disjunction_of(&mut self, mut sets: Vec<SmallVec<[Term; 4]>>) -> Term {
        while let Some((i, j, both)) = self.mergeable(&sets) {
            sets[i] = both;
            sets.swap_remove(j);
        }
        let Some((first, others)) = sets.split_first() else { return self.number(1, 0) };
        let common: Args = first.iter().copied().filter(|t| others.iter().all(|set| set.contains(t))).collect();
        if sets.len() == 1 {
            return self.all_of(1, &common);
        }
        let residuals: Args = sets
            .iter()
            .map(|set| {
                let rest: Args = set.iter().copied().filter(|t| !common.contains(t)).collect();
                self.all_of(1, &rest)
            })
            .collect();
        let any = self.any_of(1, &residuals);
        let mut all = common;
        all.push(any);
        self.all_of(1, &all)
    }

    /// Two sets of which the second can be dropped, and the first after that.
    fn mergeable(&self, sets: &[SmallVec<[Term; 4]>]) -> Option<(usize, usize, SmallVec<[Term; 4]>)> {
        for i in 0..sets.len() {
            for j in 0..sets.len() {
                if i != j
                    && let Some(both) = self.merged_conditions(&sets[i], &sets[j])
                {
                    return Some((i, j, both));
                }
            }
        }
        None
    }

    fn merged_conditions(&self, a: &[Term], b: &[Term]) -> Option<SmallVec<[Term; 4]>> {
        let only_a: Args = a.iter().copied().filter(|t| !b.contains(t)).collect();
        if only_a.is_empty() {
            return Some(SmallVec::from_slice(a));
        }
        let &[part] = &only_a[..] else { return None };
        // b is a without this conjunct, plus its complement.
        if self.op(part) != Op::Not {
            return None;
        }
        let opposite = self.conjuncts(self.arg(part, 0));
        let rest: SmallVec<[Term; 4]> = a.iter().copied().filter(|&t| t != part).collect();
        let only_b: Args = b.iter().copied().filter(|t| !rest.contains(t)).collect();
        let missing = only_b.iter().any(|t| !opposite.contains(t));
        let covered = opposite.iter().all(|t| b.contains(t));
        (!missing && covered).then_some(rest)
    }

    /// Returns true if `asked` must hold, false if it cannot hold, given that `known` holds (or does not); `None` if
    /// their forms do not decide it.
    pub(super) fn decided(&self, asked: Term, known: Term, holds: bool) -> Option<bool> {
        let (asked, positive) = if self.op(asked) == Op::Not { (self.arg(asked, 0), true) } else { (asked, false) };
        let answer = self.decided_positive(asked, known, holds)?;
        Some(answer != positive)
    }

    fn decided_positive(&self, asked: Term, known: Term, holds: bool) -> Option<bool> {
        if asked == known {
            return Some(holds);
        }
        let parts = |t: Term| self.conjuncts(t);
        if holds {
            let known = parts(known);
            let wanted = parts(asked);
            if wanted.iter().all(|t| known.contains(t)) {
                return Some(true);
            }
            let opposite = |t: Term| self.known_complement(t).is_some_and(|t| known.contains(&t));
            if wanted.iter().any(|&t| opposite(t)) || opposite(asked) {
                return Some(false);
            }
        } else {
            // Some conjunct of `known` is false.
            let wanted = parts(asked);
            if parts(known).iter().all(|t| wanted.contains(t)) {
                return Some(false);
            }
            if self.are_opposite(asked, known) {
                return Some(true);
            }
        }
        None
    }

    /// The terms of an and with smaller clauses, if the other terms decide literals in them.
    pub(super) fn decided_clauses(&mut self, w: u32, set: &[Term]) -> Option<Args> {
        if set.len() < 2 {
            return None;
        }
        for (i, &t) in set.iter().enumerate() {
            if self.op(t) != Op::Not || self.op(self.arg(t, 0)) != Op::And {
                continue;
            }
            let parts = self.args(self.arg(t, 0));
            let holds = |t: Term| set.binary_search(&t).is_ok();
            let mut fewer = Args::from_slice(set);
            if parts.iter().any(|&part| self.known_complement(part).is_some_and(holds)) {
                fewer.remove(i);
                return Some(fewer);
            }
            let rest: Args = parts.iter().copied().filter(|&part| !holds(part)).collect();
            if rest.len() < parts.len() {
                let rest = self.all_of(w, &rest);
                fewer[i] = self.complement(rest);
                return Some(fewer);
            }
        }
        None
    }

    /// The and of clauses that all share a conjunct, as a clause with that conjunct.
    pub(super) fn common_factor(&mut self, set: &[Term]) -> Option<Term> {
        if set.len() < 2 || !set.iter().all(|&t| self.op(t) == Op::Not && self.op(self.arg(t, 0)) == Op::And) {
            return None;
        }
        let mut common = self.args(self.arg(set[0], 0));
        for &t in &set[1..] {
            let parts = &self.nodes[self.arg(t, 0)].args;
            common.retain(|part| parts.contains(part));
        }
        if common.is_empty() {
            return None;
        }
        let mut residuals = Args::new();
        for &t in set {
            let rest: Args = self.args(self.arg(t, 0)).into_iter().filter(|part| !common.contains(part)).collect();
            residuals.push(self.all_of(1, &rest));
        }
        common.push(self.any_of(1, &residuals));
        let all = self.all_of(1, &common);
        Some(self.complement(all))
    }

    /// Simplifies by equalities with constants: a term equals at most one constant, so one such equality in an and
    /// decides the others.
    pub(super) fn of_equalities(&mut self, set: &[Term]) -> Option<Term> {
        let of = |terms: &Self, t: Term| match terms.op(t) {
            Op::Eq if terms.as_constant(terms.arg(t, 0)).is_some() => Some((terms.arg(t, 1), terms.arg(t, 0))),
            _ => None,
        };
        let equal: SmallVec<[(Term, Term); 4]> = set.iter().filter_map(|&t| of(self, t)).collect();
        if equal.is_empty() {
            return None;
        }
        if equal.iter().enumerate().any(|(i, a)| equal[..i].iter().any(|b| a.0 == b.0 && a.1 != b.1)) {
            return Some(self.number(1, 0));
        }
        let said = |terms: &Self, t: Term| {
            terms.op(t) == Op::Not
                && of(terms, terms.arg(t, 0)).is_some_and(|(x, k)| equal.iter().any(|e| e.0 == x && e.1 != k))
        };
        let rest: Args = set.iter().copied().filter(|&t| !said(self, t)).collect();
        (rest.len() < set.len()).then(|| self.all_of(1, &rest))
    }
}
