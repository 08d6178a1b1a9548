//! The vacuity check: is the source defined on any input at all?
//!
//! A proof is valid wherever the source's assumptions hold: no branch on an undefined value, no store to an undefined
//! address. Assumptions that no input satisfies imply everything, so such a proof would be vacuous. They may
//! contradict each other only together, and in different segments: for example two branches, one before a loop and one
//! after it, on two values of which one is always undefined.
//!
//! A lane that ends has a last iteration of each loop. So there is a path from the entry to an end that goes back to no
//! header, on which the values at each header are those of the last iteration, and on which all assumptions hold.
//! [`Paths::condition`] is the condition that there is such a path. Values at a header are variables of that header, so
//! one query covers all segments. If it is unsatisfiable, the source is undefined on every input. (If it is
//! satisfiable, such an input need not exist: the relation at a header allows more than happens.)

use crate::symbolic::{Cut, Goal};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::terms::{Term, Terms};
use rustc_hash::FxHashMap;

/// A segment of the source.
struct SourceSegment {
    /// The conditions that it assumes.
    assumptions: Vec<Term>,
    /// The exits that do not go back to the header of a loop around the segment, each with its path condition.
    exits: Vec<(Goal, Term)>,
}

/// The segments of the source, and their assumptions.
#[derive(Default)]
pub struct Paths {
    segments: FxHashMap<Cut, SourceSegment>,
}

impl Paths {
    /// Records a segment; replaces the one of an earlier iteration.
    pub fn note(&mut self, cut: Cut, assumptions: &[Term], exits: Vec<(Goal, Term)>) {
        self.segments.insert(cut, SourceSegment { assumptions: assumptions.to_vec(), exits });
    }

    /// The condition that a lane reaches an end from the entry on a path on which all assumptions hold.
    pub fn condition(&self, terms: &mut Terms) -> Term {
        self.from(Cut::Entry, terms, &mut FxHashMap::default())
    }

    /// Exits go forward in the order of the blocks, so the recursion ends.
    fn from(&self, cut: Cut, terms: &mut Terms, known: &mut FxHashMap<Cut, Term>) -> Term {
        if let Some(&condition) = known.get(&cut) {
            return condition;
        }
        let never = terms.constant(1, 0);
        let Some(segment) = self.segments.get(&cut) else { return never };
        let mut ends = Vec::new();
        for &(goal, path) in &segment.exits {
            let on = match goal {
                Goal::Header(number) => self.from(Cut::Header(number), terms, known),
                Goal::End | Goal::Killed => terms.constant(1, 1),
            };
            ends.push(terms.and(1, path, on));
        }
        let mut all = segment.assumptions.clone();
        all.push(terms.disjunction(&ends));
        let condition = terms.conjunction(&all);
        known.insert(cut, condition);
        condition
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_semantics::terms::VariableKind;

    #[test]
    fn assumptions_of_two_segments_contradict_each_other() {
        let mut terms = Terms::new();
        let t = &mut terms;
        let [input, out] = ["input", "out"].map(|name| t.variable_of(VariableKind::LANE, 1, name));
        let (always, not) = (t.constant(1, 1), t.not(1, input));
        let stays = t.not(1, out);
        let paths = |assumed: Term| {
            let mut paths = Paths::default();
            paths.note(Cut::Entry, &[input], vec![(Goal::Header(0), always)]);
            paths.note(Cut::Header(0), &[assumed], vec![(Goal::End, out)]);
            paths
        };
        let both = t.and(1, input, out);
        assert_eq!(paths(always).condition(t), both);
        let never = t.constant(1, 0);
        assert_eq!(paths(not).condition(t), never);
        // If the assumption holds, the lane does not reach the end.
        let elsewhere = t.or(1, not, stays);
        assert_eq!(paths(elsewhere).condition(t), never);
        let on_the_exit = t.or(1, not, out);
        assert_eq!(paths(on_the_exit).condition(t), both);
    }
}
