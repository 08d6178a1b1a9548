//! The first difference of two runs, in its context.
//!
//! Both sides are run once more, and what one lane does is written down: the lane that has the wrong output, that wrote
//! the wrong word, that ended or did not. The two lists of steps are aligned (`align`) by what they write (stores,
//! outputs, ends of lanes, branches) and by equal values. The first pair that should be the same and is not is where the
//! sides part. From the two different values, the instructions that computed them are followed back (`slice`).

mod align;
mod print;
mod side;
mod slice;

use crate::harness::check::DEFAULT_FUEL;
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use crate::semantics::environment::memory::StoredWord;
use crate::semantics::interp;
use crate::semantics::interp::trace::{Trace, TraceStep, Traced};
use crate::semantics::interp::{Difference, Unsupported};
use align::Row;
use ir3_compiler::target::Target;
use side::Side;

/// Where two runs part.
#[derive(Clone, Debug)]
pub struct Parting {
    /// The difference that was observed.
    pub observed: Difference,
    /// The lane that is looked at.
    pub lane: u8,
    before: Side,
    after: Side,
    rows: Vec<Row>,
    /// Steps in front of the first row that were left out, on each side.
    skipped: [usize; 2],
    /// The row where the sides part.
    at: Option<usize>,
    /// The steps that computed what differs, on each side.
    slices: [Vec<usize>; 2],
}

/// Steps of a side that are aligned: the last ones that lead to the difference.
const WINDOW: usize = 800;

impl Parting {
    /// Runs both sides again, and finds where they part.
    ///
    /// # Errors
    /// When the interpreter does not know one of the programs.
    pub fn find(
        before: &Snapshot,
        after: &Snapshot,
        target: &Target,
        env: &Env,
        observed: &Difference,
    ) -> Result<Self, Unsupported> {
        let run = |program: &Snapshot, lane: u8| trace(program, target, env, lane);
        let lane = lane(observed, |lane| Ok([run(before, lane)?.trace, run(after, lane)?.trace]))?;
        let mut before = Side::new(before, run(before, lane)?.trace);
        let mut after = Side::new(after, run(after, lane)?.trace);
        if let Difference::Endless { .. } = observed {
            // What matters is where it began.
            [&mut before, &mut after].into_iter().for_each(|side| side.steps.truncate(WINDOW));
        }
        let ends = [&before, &after].map(|side| side.culprit(observed));
        let skipped = match observed {
            Difference::Endless { .. } => [0, 0],
            _ => {
                let first =
                    |side: &Side, end: Option<usize>| end.unwrap_or(side.steps.len()).saturating_sub(WINDOW * 3 / 4);
                [first(&before, ends[0]), first(&after, ends[1])]
            }
        };
        let window = |side: &Side, skipped: usize| skipped..side.steps.len().min(skipped + WINDOW);
        let rows = align::align(&before, window(&before, skipped[0]), &after, window(&after, skipped[1]));
        let at = rows.iter().position(|row| row.parts(&before, &after));
        let roots = |side: &Side, end: Option<usize>, other: Option<&TraceStep>| {
            end.map(|end| slice::slice(side, end, observed, other)).unwrap_or_default()
        };
        let step = |side: &Side, end: Option<usize>| end.and_then(|end| side.steps.get(end).cloned());
        let (a, b) = (step(&before, ends[0]), step(&after, ends[1]));
        let slices = [roots(&before, ends[0], b.as_ref()), roots(&after, ends[1], a.as_ref())];
        Ok(Self { observed: observed.clone(), lane, before, after, rows, skipped, at, slices })
    }

    /// The instructions at which the sides part, with their values: of the side before and of the side after.
    pub fn instructions(&self) -> Option<[Option<String>; 2]> {
        let row = &self.rows[self.at?];
        Some([
            row.before.map(|step| self.before.line(&self.before.steps[step])),
            row.after.map(|step| self.after.line(&self.after.steps[step])),
        ])
    }
}

fn trace(program: &Snapshot, target: &Target, env: &Env, lane: u8) -> Result<Traced, Unsupported> {
    match program {
        Snapshot::Nir(shader) => interp::nir::Decoded::trace(shader, env, DEFAULT_FUEL, lane),
        Snapshot::Ir3(program) => interp::ir3::Decoded::trace(program, target, env, DEFAULT_FUEL, lane),
    }
}

/// The lane to look at.
fn lane(observed: &Difference, traces: impl Fn(u8) -> Result<[Trace; 2], Unsupported>) -> Result<u8, Unsupported> {
    let first = |lanes: u64| (lanes.trailing_zeros() as u8).min(63);
    Ok(match observed {
        Difference::Output { lane, .. } => *lane,
        Difference::OtherOutput(_) => 0,
        Difference::Killed { expected, actual } => first(expected ^ actual),
        Difference::Undefined { lanes, .. } => first(*lanes),
        Difference::Endless { .. } => first(traces(0)?[1].last),
        Difference::Header(_) => 0,
        Difference::Synchronization { .. } | Difference::Loads { .. } => 0,
        Difference::Memory { .. } => {
            // Whoever wrote the word last, where it is right.
            let traces = traces(0)?;
            let writer = traces.iter().find_map(|trace| trace.stored.iter().rfind(|stored| is_word(observed, stored)));
            writer.map_or(0, |stored| stored.lane)
        }
    })
}

/// Whether a store is to the word that differs.
fn is_word(observed: &Difference, stored: &StoredWord) -> bool {
    matches!(observed, Difference::Memory { space, binding, byte, .. }
        if (stored.space, stored.binding, stored.word) == (*space, *binding, byte / 4))
}
