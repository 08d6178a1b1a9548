//! Two lists of steps, side by side.
//!
//! The alignment is the one with the most points, as of two strings: steps that observers see must stand beside each
//! other if they can (the same output, a store to the same words, the end of a lane, a branch), then the same instruction
//! of a program that was changed in place, then equal values, then equal sources with different results: that is what a
//! wrong instruction looks like.

use super::side::{Role, Side};
use crate::semantics::environment::Binding;
use crate::semantics::environment::memory::{Space, StoredWord};
use crate::semantics::interp::trace::{TraceStep, TraceValue};
use std::cmp::Ordering;
use std::ops::Range;

/// A row: a step of the side before, one of the side after, or one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub before: Option<usize>,
    pub after: Option<usize>,
}

/// How two steps that stand beside each other compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The values are the same.
    Same,
    /// They are not.
    Different,
    /// There is nothing to compare.
    Alone,
}

impl Row {
    /// How its sides compare.
    pub fn relation(&self, before: &Side, after: &Side) -> Relation {
        let (Some(a), Some(b)) = (self.before, self.after) else { return Relation::Alone };
        let (a, b) = (&before.steps[a], &after.steps[b]);
        let differ = if !a.writes.is_empty() && !b.writes.is_empty() {
            !agree(&a.writes, &b.writes)
        } else if !a.stored.is_empty() || !b.stored.is_empty() {
            !stored_agree(a, b)
        } else if a.reads.iter().any(|cell| cell.output.is_some()) {
            !outputs_agree(a, b)
        } else {
            !truths_agree(a, b)
        };
        if differ { Relation::Different } else { Relation::Same }
    }

    /// Whether the sides part here: the values differ, or only one side does something that an observer sees.
    pub fn parts(&self, before: &Side, after: &Side) -> bool {
        let alone = |side: &Side, step: Option<usize>| {
            step.is_some_and(|step| {
                let step = &side.steps[step];
                !step.stored.is_empty() || side.role(step) == Role::Kill
            })
        };
        match self.relation(before, after) {
            Relation::Different => true,
            Relation::Same => false,
            Relation::Alone => alone(before, self.before) || alone(after, self.after),
        }
    }
}

/// Aligns the steps of two ranges.
pub(super) fn align(before: &Side, a: Range<usize>, after: &Side, b: Range<usize>) -> Vec<Row> {
    // What only gives something a name says nothing to anybody.
    let shown = |side: &Side, range: Range<usize>| -> Vec<usize> {
        let says_nothing = |role: Role| role == Role::Name || role == Role::Constant && !before.machine;
        range.filter(|&step| !says_nothing(side.role(&side.steps[step]))).collect()
    };
    let (a, b) = (shown(before, a), shown(after, b));
    let width = b.len() + 1;
    // Best points of what is left from each pair of places on.
    let mut best = vec![0u32; (a.len() + 1) * width];
    let points = |i: usize, j: usize| score(before, &before.steps[a[i]], after, &after.steps[b[j]]);
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            let pair = match points(i, j) {
                0 => 0,
                points => points + best[(i + 1) * width + j + 1],
            };
            best[i * width + j] = pair.max(best[(i + 1) * width + j]).max(best[i * width + j + 1]);
        }
    }
    let (mut i, mut j, mut rows) = (0, 0, Vec::with_capacity(a.len().max(b.len())));
    while i < a.len() || j < b.len() {
        let pair = if i < a.len() && j < b.len() { points(i, j) } else { 0 };
        let here = best[i * width + j];
        if pair > 0 && here == pair + best[(i + 1) * width + j + 1] {
            rows.push(Row { before: Some(a[i]), after: Some(b[j]) });
            (i, j) = (i + 1, j + 1);
        } else if i < a.len() && (j == b.len() || here == best[(i + 1) * width + j]) {
            rows.push(Row { before: Some(a[i]), after: None });
            i += 1;
        } else {
            rows.push(Row { before: None, after: Some(b[j]) });
            j += 1;
        }
    }
    rows
}

/// The points of two steps beside each other; 0 where they may not stand so.
fn score(before: &Side, a: &TraceStep, after: &Side, b: &TraceStep) -> u32 {
    let outputs = |step: &TraceStep| step.reads.iter().any(|cell| cell.output.is_some());
    let (role_a, role_b) = (before.role(a), after.role(b));
    let same = before.machine && after.machine && a.at == b.at && word(before, a) == word(after, b);
    match (outputs(a), outputs(b)) {
        (true, true) => return 40,
        (false, false) => {}
        _ => return 0,
    }
    match (a.stored.is_empty(), b.stored.is_empty()) {
        (true, true) => {}
        (false, false) => return if a.stored.iter().map(places).eq(b.stored.iter().map(places)) { 60 } else { 30 },
        // A store whose address is wrong, or whose lane is off, is still that store.
        _ => return if same { 30 } else { 0 },
    }
    let plain = |role: Role| matches!(role, Role::Value | Role::Constant | Role::Copies);
    if role_a != role_b && !(plain(role_a) && plain(role_b)) {
        return 0;
    }
    match role_a {
        Role::Kill => return 40,
        Role::Branch => return 20 + 10 * u32::from(truths_agree(a, b)),
        Role::Value | Role::Name | Role::Constant | Role::Copies => {}
    }
    let bonus = if same { 12 } else { 0 };
    if a.writes.is_empty() || b.writes.is_empty() {
        // A store that writes nothing in this lane, a barrier.
        return if a.writes.is_empty() && b.writes.is_empty() { bonus.max(u32::from(inputs_agree(a, b))) } else { 0 };
    }
    if agree(&a.writes, &b.writes) {
        // That many things are 0 or 1 says little.
        let telling = a.writes.iter().any(|cell| cell.value.is_some_and(|value| value > 1));
        let points = match (telling, inputs_agree(a, b)) {
            (true, inputs) => 10 + 2 * u32::from(inputs),
            (false, inputs) => 1 + 4 * u32::from(inputs && a.reads.len() == b.reads.len()),
        };
        return bonus + points + 2 * u32::from(same_registers(a, b));
    }
    if a.writes.len() == b.writes.len() && (inputs_agree(a, b) || same_registers(a, b)) {
        return bonus + 3;
    }
    bonus
}

/// Whether both write the same registers.
fn same_registers(a: &TraceStep, b: &TraceStep) -> bool {
    let same = |(a, b): (&TraceValue, &TraceValue)| a.location.register && a.location == b.location;
    a.writes.len() == b.writes.len() && a.writes.iter().zip(&b.writes).all(same)
}

fn word<'a>(side: &'a Side, step: &TraceStep) -> Option<&'a str> {
    side.known(step).map(|line| line.word.as_str())
}

/// Whether values are the same; where the first is poison, anything is.
fn agree(a: &[TraceValue], b: &[TraceValue]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.value.is_none() || a.value == b.value)
}

/// Whether the values that are read are the same, in any order, constants aside: one side may have them inline.
fn inputs_agree(a: &TraceStep, b: &TraceStep) -> bool {
    let sorted = |step: &TraceStep| {
        let mut values: Vec<Option<u32>> = step.reads.iter().map(|cell| cell.value).collect();
        values.sort_unstable();
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    let within = |few: &[Option<u32>], many: &[Option<u32>]| {
        let mut rest = many.iter();
        few.iter().all(|value| rest.any(|other| other == value))
    };
    match a.len().cmp(&b.len()) {
        Ordering::Less => !a.is_empty() && within(&a, &b),
        Ordering::Equal => within(&a, &b),
        Ordering::Greater => !b.is_empty() && within(&b, &a),
    }
}

/// Whether both write the same outputs, with the same values.
fn outputs_agree(a: &TraceStep, b: &TraceStep) -> bool {
    let outputs =
        |step: &TraceStep| step.reads.iter().filter(|cell| cell.output.is_some()).copied().collect::<Vec<TraceValue>>();
    let (a, b) = (outputs(a), outputs(b));
    // One instruction of the target writes all that several of the source do.
    a.iter().all(|cell| {
        let other = b.iter().find(|other| other.output == cell.output);
        cell.value.is_none() || other.is_none_or(|other| other.value == cell.value)
    })
}

/// Whether both write the same to the same words, as far as the first writes something.
fn stored_agree(a: &TraceStep, b: &TraceStep) -> bool {
    let same = |a: &StoredWord, b: &StoredWord| {
        places(a) == places(b) && (a.poison != 0 || (a.value, 0) == (b.value, b.poison))
    };
    a.stored.len() == b.stored.len() && a.stored.iter().zip(&b.stored).all(|(a, b)| same(a, b))
}

fn places(stored: &StoredWord) -> (Space, Binding, u32) {
    (stored.space, stored.binding, stored.word)
}

/// Whether both conditions hold, or neither does.
fn truths_agree(a: &TraceStep, b: &TraceStep) -> bool {
    let truth = |step: &TraceStep| step.reads.iter().map(|cell| cell.value.map(|value| value != 0)).collect::<Vec<_>>();
    truth(a) == truth(b)
}
