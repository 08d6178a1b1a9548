//! The aligned traces as data, for writers other than that of `difference.txt`.

use super::FirstDifference;
use super::align::Relation;
use super::print::values_of;
use super::side::TraceSide;
use ir3_semantics::interp::trace::TracePoint;

/// A step of one side.
#[derive(Clone, Debug)]
pub(crate) struct TraceCell {
    /// The instruction or condition.
    pub at: TracePoint,
    /// Its text.
    pub text: String,
    /// The written values, or the read ones if it writes nothing.
    pub values: String,
}

/// Two aligned steps, or one that the other side does not have.
#[derive(Clone, Debug)]
pub(crate) struct TraceRow {
    pub before: Option<TraceCell>,
    pub after: Option<TraceCell>,
    pub relation: Relation,
    /// True for the first difference.
    pub first: bool,
}

fn cell(side: &TraceSide, step: usize) -> TraceCell {
    let step = &side.steps[step];
    TraceCell { at: step.at, text: side.text(step), values: values_of(side, step) }
}

impl FirstDifference {
    /// The aligned steps, in order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = TraceRow> + '_ {
        self.rows.iter().enumerate().map(|(number, row)| TraceRow {
            before: row.before.map(|step| cell(&self.before, step)),
            after: row.after.map(|step| cell(&self.after, step)),
            relation: row.relation(&self.before, &self.after),
            first: self.at == Some(number),
        })
    }

    /// The number of steps before the first row, on the side that has more of them.
    pub(crate) fn steps_left_out(&self) -> usize {
        self.skipped[0].max(self.skipped[1])
    }

    /// The instructions that the lane executed before and after the stage, in order.
    pub(crate) fn executed(&self) -> [impl Iterator<Item = TracePoint> + '_; 2] {
        [&self.before, &self.after].map(|side| side.steps.iter().map(|step| step.at))
    }

    /// The steps that computed the expected value and the actual one.
    pub(crate) fn computations(&self) -> [Vec<TraceCell>; 2] {
        let cells = |side: &TraceSide, steps: &[usize]| steps.iter().map(|&step| cell(side, step)).collect();
        [cells(&self.before, &self.slices[0]), cells(&self.after, &self.slices[1])]
    }
}
