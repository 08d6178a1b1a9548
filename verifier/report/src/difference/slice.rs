//! Backward slices of a trace: the steps that computed a value.
//!
//! A trace has one step for each execution of an instruction, so every use has a unique definition: the last earlier
//! step that wrote the location. That holds for registers and for SSA values.

use super::side::TraceSide;
use ir3_semantics::interp::Difference;
use ir3_semantics::interp::trace::{TraceStep, TraceValue};
use std::collections::BTreeSet;

/// The greatest number of steps of a slice.
const LIMIT: usize = 60;

/// The steps that computed the wrong operands of step `end`, in order, `end` last. `other` is the corresponding step of
/// the other side.
pub(super) fn slice(side: &TraceSide, end: usize, observed: &Difference, other: Option<&TraceStep>) -> Vec<usize> {
    let step = &side.steps[end];
    let mut open: Vec<(u32, TraceValue)> =
        wrong(step, observed, other).into_iter().map(|cell| (step.time, cell)).collect();
    let mut found = BTreeSet::from([end]);
    let mut seen = BTreeSet::new();
    while let Some((time, cell)) = open.pop() {
        if !seen.insert((time, cell.location.slot, cell.location.halves)) || found.len() >= LIMIT {
            continue;
        }
        // The two halves of a register may have different definitions.
        let mut missing = cell.location.halves;
        for (number, step) in side.steps[..time as usize].iter().enumerate().rev() {
            let written = step
                .writes
                .iter()
                .position(|write| write.location.slot == cell.location.slot && write.location.halves & missing != 0);
            let Some(written) = written else { continue };
            missing &= !step.writes[written].location.halves;
            found.insert(number);
            if step.pairwise {
                open.extend(step.reads.get(written).map(|&read| (step.time, read)));
            } else {
                open.extend(step.reads.iter().map(|&read| (step.time, read)));
            }
            if missing == 0 {
                break;
            }
        }
    }
    found.into_iter().collect()
}

/// The operands of a step that differ from the other side.
fn wrong(step: &TraceStep, observed: &Difference, other: Option<&TraceStep>) -> Vec<TraceValue> {
    if let Difference::Output { base, component, .. } = observed {
        return step.reads.iter().filter(|cell| cell.output == Some((*base, *component))).copied().collect();
    }
    // For a store: the operands that the other side does not read.
    let has = |value: Option<u32>| other.is_some_and(|other| other.reads.iter().any(|cell| cell.value == value));
    let odd: Vec<TraceValue> = step.reads.iter().filter(|cell| !has(cell.value)).copied().collect();
    if odd.is_empty() { step.reads.clone() } else { odd }
}
