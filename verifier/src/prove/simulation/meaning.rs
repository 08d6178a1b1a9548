//! Whether the source has a meaning on any input at all.
//!
//! A proof shows what it shows wherever the source's assumptions hold: no branch on an undefined value, no store to an undefined
//! address. Assumptions that no input satisfies imply everything, so such a proof would say nothing. They may contradict each other only together,
//! and in different segments: two branches, one before a loop and one after it, on values of which one is always undefined.
//!
//! A lane that ends takes each loop for a last time. So there is a path from the entry to an end on which it goes back to no header, where the values at each
//! header on the path are those of the last iteration, and on which all assumptions hold. [`Paths::condition`] is the condition that there is such a path;
//! values that belong to a header are variables of that header, so one query asks for all segments. If it cannot be satisfied
//! the source has no meaning, whatever the input. (That it can be satisfied does not show that such an input exists: the
//! relation at a header allows more than happens.)

use crate::prove::symbolic::{Cut, Goal};
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::terms::{Term, Terms};
use rustc_hash::FxHashMap;

/// A segment of the source.
struct Segment {
    /// What must hold in it.
    assumptions: Vec<Term>,
    /// The ends that are not back at a header of a loop around the segment, each with the condition under which the lane goes there.
    exits: Vec<(Goal, Term)>,
}

/// The segments of the source, and what each assumes.
#[derive(Default)]
pub struct Paths {
    segments: FxHashMap<Cut, Segment>,
}

impl Paths {
    /// Notes a segment, in the place of what was noted of it in an earlier round.
    pub fn note(&mut self, cut: Cut, assumptions: &[Term], exits: Vec<(Goal, Term)>) {
        self.segments.insert(cut, Segment { assumptions: assumptions.to_vec(), exits });
    }

    /// The condition that a lane comes from the entry to an end on a path on which all assumptions hold.
    pub fn condition(&self, terms: &mut Terms) -> Term {
        self.from(Cut::Entry, terms, &mut FxHashMap::default())
    }

    /// Exits lead forward in the order of the blocks, so this ends.
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
    use crate::semantics::terms::VariableKind;

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
        // The lane does not come to the end where it is assumed.
        let elsewhere = t.or(1, not, stays);
        assert_eq!(paths(elsewhere).condition(t), never);
        let on_a_way_round = t.or(1, not, out);
        assert_eq!(paths(on_a_way_round).condition(t), both);
    }
}
