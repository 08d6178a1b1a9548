//! Alignment of the traces of two runs.
//!
//! The alignment has the greatest total score, as in sequence alignment of strings. Steps with observable effects have
//! the highest scores (the same output, a store to the same words, the end of a lane, a branch), then the same
//! instruction of a program that was changed in place, then equal results, then equal operands with different results,
//! which is how a wrong instruction appears.

use super::side::{Role, TraceSide};
use ir3_semantics::environment::Binding;
use ir3_semantics::environment::memory::{Space, StoredWord};
use ir3_semantics::interp::trace::{TraceStep, TraceValue};
use std::cmp::Ordering;
use std::ops::Range;

/// A row: a step of the side before, one of the side after, or one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AlignedRow {
    pub before: Option<usize>,
    pub after: Option<usize>,
}

/// The comparison of the two steps of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The values are equal.
    Same,
    /// The values are different.
    Different,
    /// A step that only one side has.
    Alone,
}

impl AlignedRow {
    /// Compares the steps of the row.
    pub fn relation(&self, before: &TraceSide, after: &TraceSide) -> Relation {
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

    /// Returns true if the values differ, or only one side has an observable effect.
    pub fn differs(&self, before: &TraceSide, after: &TraceSide) -> bool {
        let alone = |side: &TraceSide, step: Option<usize>| {
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
pub(super) fn align(before: &TraceSide, a: Range<usize>, after: &TraceSide, b: Range<usize>) -> Vec<AlignedRow> {
    // Steps that only name a value are left out.
    let shown = |side: &TraceSide, range: Range<usize>| -> Vec<usize> {
        let says_nothing = |role: Role| role == Role::Name || role == Role::Constant && !before.machine;
        range.filter(|&step| !says_nothing(side.role(&side.steps[step]))).collect()
    };
    let (a, b) = (shown(before, a), shown(after, b));
    let width = b.len() + 1;
    // The greatest score of the suffixes from each pair of positions.
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
            rows.push(AlignedRow { before: Some(a[i]), after: Some(b[j]) });
            (i, j) = (i + 1, j + 1);
        } else if i < a.len() && (j == b.len() || here == best[(i + 1) * width + j]) {
            rows.push(AlignedRow { before: Some(a[i]), after: None });
            i += 1;
        } else {
            rows.push(AlignedRow { before: None, after: Some(b[j]) });
            j += 1;
        }
    }
    rows
}

/// The score of two steps in one row; 0 if they must not share one.
fn score(before: &TraceSide, a: &TraceStep, after: &TraceSide, b: &TraceStep) -> u32 {
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
        // A store with a wrong address, or in an inactive lane, is still that store.
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
        // A store that writes nothing in this lane, or a barrier.
        return if a.writes.is_empty() && b.writes.is_empty() { bonus.max(u32::from(inputs_agree(a, b))) } else { 0 };
    }
    if agree(&a.writes, &b.writes) {
        // The values 0 and 1 are so frequent that equality is weak evidence.
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

/// Returns true if both steps write the same registers.
fn same_registers(a: &TraceStep, b: &TraceStep) -> bool {
    let same = |(a, b): (&TraceValue, &TraceValue)| a.location.register && a.location == b.location;
    a.writes.len() == b.writes.len() && a.writes.iter().zip(&b.writes).all(same)
}

fn word<'a>(side: &'a TraceSide, step: &TraceStep) -> Option<&'a str> {
    side.known(step).map(|line| line.word.as_str())
}

/// Returns true if the values are equal, or the first is poison.
fn agree(a: &[TraceValue], b: &[TraceValue]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.value.is_none() || a.value == b.value)
}

/// Returns true if the operands are equal, in any order, without constants, which one side may have as immediates.
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

/// Returns true if both steps write the same outputs with the same values.
fn outputs_agree(a: &TraceStep, b: &TraceStep) -> bool {
    let outputs =
        |step: &TraceStep| step.reads.iter().filter(|cell| cell.output.is_some()).copied().collect::<Vec<TraceValue>>();
    let (a, b) = (outputs(a), outputs(b));
    // One instruction of the side after may write all that several of the side before do.
    a.iter().all(|cell| {
        let other = b.iter().find(|other| other.output == cell.output);
        cell.value.is_none() || other.is_none_or(|other| other.value == cell.value)
    })
}

/// Returns true if both steps store the same values to the same words, as far as the first is defined.
fn stored_agree(a: &TraceStep, b: &TraceStep) -> bool {
    let same = |a: &StoredWord, b: &StoredWord| {
        places(a) == places(b) && (a.poison != 0 || (a.value, 0) == (b.value, b.poison))
    };
    a.stored.len() == b.stored.len() && a.stored.iter().zip(&b.stored).all(|(a, b)| same(a, b))
}

fn places(stored: &StoredWord) -> (Space, Binding, u32) {
    (stored.space, stored.binding, stored.word)
}

/// Returns true if both conditions have the same truth value.
fn truths_agree(a: &TraceStep, b: &TraceStep) -> bool {
    let truth = |step: &TraceStep| step.reads.iter().map(|cell| cell.value.map(|value| value != 0)).collect::<Vec<_>>();
    truth(a) == truth(b)
}
