//! The run of the traced lane, by instruction.

use crate::difference::{FirstDifference, Relation, TraceCell};
use ir3_semantics::interp::trace::TracePoint;
use rustc_hash::FxHashMap;

/// The executions of one instruction.
#[derive(Clone, Default)]
pub(super) struct Executions {
    /// Their number.
    pub count: usize,
    /// The values of the first one that differs, or of the last one.
    pub values: String,
    /// One of them differs from the other side.
    pub wrong: bool,
    /// One of them is the first difference.
    pub first: bool,
}

/// The run of the traced lane on both sides.
#[derive(Default)]
pub(super) struct LaneRun {
    /// The executions before and after the stage.
    pub sides: [FxHashMap<TracePoint, Executions>; 2],
    /// The pairs of instructions in aligned steps.
    pub pairs: FxHashMap<(TracePoint, TracePoint), u32>,
}

impl LaneRun {
    /// Collects the executions of a difference.
    pub fn new(difference: &FirstDifference) -> Self {
        let mut run = Self::default();
        for (side, points) in run.sides.iter_mut().zip(difference.executed()) {
            points.for_each(|at| side.entry(at).or_default().count += 1);
        }
        for row in difference.rows() {
            for (side, cell) in run.sides.iter_mut().zip([&row.before, &row.after]) {
                let Some(TraceCell { at, values, .. }) = cell else { continue };
                let known = side.entry(*at).or_default();
                if !known.wrong {
                    known.values.clone_from(values);
                }
                known.wrong |= row.relation == Relation::Different;
                known.first |= row.first;
            }
            if let (Some(before), Some(after)) = (&row.before, &row.after) {
                *run.pairs.entry((before.at, after.at)).or_default() += 1;
            }
        }
        run
    }
}
