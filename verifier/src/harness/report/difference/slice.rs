//! Where a value comes from: the steps that computed it, found from the last one backwards.
//!
//! A trace has one step for each time that an instruction was executed, so there is no question which of several
//! definitions a use has: it is the last step in front of it that wrote the place. That holds for registers as for
//! values.

use super::side::Side;
use crate::semantics::interp::Difference;
use crate::semantics::interp::trace::{TraceStep, TraceValue};
use std::collections::BTreeSet;

/// Steps that a slice has at most.
const LIMIT: usize = 60;

/// The steps that computed what step `end` does wrong, in order, `end` last. `other` is the step of the other side.
pub(super) fn slice(side: &Side, end: usize, observed: &Difference, other: Option<&TraceStep>) -> Vec<usize> {
    let step = &side.steps[end];
    let mut open: Vec<(u32, TraceValue)> =
        wrong(step, observed, other).into_iter().map(|cell| (step.time, cell)).collect();
    let mut found = BTreeSet::from([end]);
    let mut seen = BTreeSet::new();
    while let Some((time, cell)) = open.pop() {
        if !seen.insert((time, cell.location.slot, cell.location.halves)) || found.len() >= LIMIT {
            continue;
        }
        // The two halves of a register may come from two instructions.
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

/// The values that a step reads and should not, or should.
fn wrong(step: &TraceStep, observed: &Difference, other: Option<&TraceStep>) -> Vec<TraceValue> {
    if let Difference::Output { base, component, .. } = observed {
        return step.reads.iter().filter(|cell| cell.output == Some((*base, *component))).copied().collect();
    }
    // Of a store: what the other side does not read as well.
    let has = |value: Option<u32>| other.is_some_and(|other| other.reads.iter().any(|cell| cell.value == value));
    let odd: Vec<TraceValue> = step.reads.iter().filter(|cell| !has(cell.value)).copied().collect();
    if odd.is_empty() { step.reads.clone() } else { odd }
}
