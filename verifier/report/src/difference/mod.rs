//! The first difference of two runs, in its context.
//!
//! Both sides are run again with a trace of one lane: the lane with the wrong output, with the last store to the wrong
//! word, or that ended on one side only. The two traces are aligned (`align`) by their effects (stores, outputs, ends
//! of lanes, branches) and by equal values. The first pair of aligned steps that should be equal and is not is the
//! first difference. From the two different values, a backward slice (`slice`) finds the instructions that computed
//! them.

mod align;
mod print;
mod side;
mod slice;
mod view;

pub(crate) use align::Relation;
pub(crate) use side::printed;
pub(crate) use view::{TraceCell, TraceRow};

use align::AlignedRow;
use ir3_compiler::target::Target;
use ir3_harness::case::{Case, Evidence};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::environment::memory::StoredWord;
use ir3_semantics::interp;
use ir3_semantics::interp::trace::{Trace, TraceStep, Traced};
use ir3_semantics::interp::{Difference, Unsupported};
use ir3_semantics::pair::PairFacts;
use ir3_semantics::support::panics::catch;
use ir3_semantics::vec4;
use side::TraceSide;

/// The first difference of two runs.
#[derive(Clone, Debug)]
pub struct FirstDifference {
    /// The difference that was observed.
    pub observed: Difference,
    /// The lane that was traced.
    pub lane: u8,
    before: TraceSide,
    after: TraceSide,
    rows: Vec<AlignedRow>,
    /// The number of steps before the first row that were left out, on each side.
    skipped: [usize; 2],
    /// The row of the first difference.
    at: Option<usize>,
    /// The steps that computed the different values, on each side.
    slices: [Vec<usize>; 2],
}

/// The number of steps of a side that are aligned: the last ones that lead to the difference.
const WINDOW: usize = 800;

impl FirstDifference {
    /// The first difference of a case; `None` if its two sides do not differ on an input, or cannot be traced.
    pub fn of(case: &Case, evidence: &Evidence) -> Option<Self> {
        let (before, after) = (evidence.before.as_ref()?, evidence.after.as_ref()?);
        let (difference, env) = (evidence.difference.as_ref()?, case.env.as_ref()?);
        // A panic of the trace must not lose the failure itself.
        catch(|| Self::find(before, after, &case.target, env, difference)).ok()?.ok()
    }

    /// Runs both sides again, and finds their first difference.
    ///
    /// # Errors
    /// If the interpreter does not support one of the programs.
    pub fn find(
        before: &Snapshot,
        after: &Snapshot,
        target: &Target,
        env: &Env,
        observed: &Difference,
    ) -> Result<Self, Unsupported> {
        // In a compilation, whose programs are run once each, facts about a pair do not count.
        let differs = |facts: &PairFacts| {
            let run = |program| trace(program, target, *facts, env, 0).map(|traced| traced.outcome);
            Ok::<bool, Unsupported>(run(before)?.first_difference(&run(after)?).is_some())
        };
        let facts = PairFacts::of(before.into(), after.into());
        let facts = if facts == PairFacts::default() || differs(&facts)? { facts } else { PairFacts::default() };
        let run = |program: &Snapshot, lane: u8| trace(program, target, facts, env, lane);
        let lane = lane(observed, |lane| Ok([run(before, lane)?.trace, run(after, lane)?.trace]))?;
        let mut before = TraceSide::new(before, run(before, lane)?.trace);
        let mut after = TraceSide::new(after, run(after, lane)?.trace);
        if let Difference::Endless { .. } = observed {
            // A loop that does not terminate is best seen from its beginning.
            [&mut before, &mut after].into_iter().for_each(|side| side.steps.truncate(WINDOW));
        }
        let ends = [&before, &after].map(|side| side.culprit(observed));
        let skipped = match observed {
            Difference::Endless { .. } => [0, 0],
            _ => {
                let first = |side: &TraceSide, end: Option<usize>| {
                    end.unwrap_or(side.steps.len()).saturating_sub(WINDOW * 3 / 4)
                };
                [first(&before, ends[0]), first(&after, ends[1])]
            }
        };
        let window = |side: &TraceSide, skipped: usize| skipped..side.steps.len().min(skipped + WINDOW);
        let rows = align::align(&before, window(&before, skipped[0]), &after, window(&after, skipped[1]));
        let at = rows.iter().position(|row| row.differs(&before, &after));
        let roots = |side: &TraceSide, end: Option<usize>, other: Option<&TraceStep>| {
            end.map(|end| slice::slice(side, end, observed, other)).unwrap_or_default()
        };
        let step = |side: &TraceSide, end: Option<usize>| end.and_then(|end| side.steps.get(end).cloned());
        let (a, b) = (step(&before, ends[0]), step(&after, ends[1]));
        let slices = [roots(&before, ends[0], b.as_ref()), roots(&after, ends[1], a.as_ref())];
        Ok(Self { observed: observed.clone(), lane, before, after, rows, skipped, at, slices })
    }

    /// The instructions of the first difference, with their values: before and after.
    pub fn instructions(&self) -> Option<[Option<String>; 2]> {
        let row = &self.rows[self.at?];
        Some([
            row.before.map(|step| self.before.line(&self.before.steps[step])),
            row.after.map(|step| self.after.line(&self.after.steps[step])),
        ])
    }
}

fn trace(program: &Snapshot, target: &Target, facts: PairFacts, env: &Env, lane: u8) -> Result<Traced, Unsupported> {
    match program {
        Snapshot::Nir(shader) => interp::nir::Decoded::trace(shader, facts, env, env.fuel(), lane),
        Snapshot::Vec4(program) => interp::nir::Decoded::trace(&vec4::lift(program)?, facts, env, env.fuel(), lane),
        Snapshot::Ir3(program) => interp::ir3::Decoded::trace(program, target, facts, env, env.fuel(), lane),
    }
}

/// The lane to be traced.
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
            // The lane that wrote the word last, on the side with the correct value.
            let traces = traces(0)?;
            let writer = traces.iter().find_map(|trace| trace.stored.iter().rfind(|stored| is_word(observed, stored)));
            writer.map_or(0, |stored| stored.lane)
        }
    })
}

/// Returns true if a store is to the word that differs.
fn is_word(observed: &Difference, stored: &StoredWord) -> bool {
    matches!(observed, Difference::Memory { space, binding, byte, .. }
        if (stored.space, stored.binding, stored.word) == (*space, *binding, byte / 4))
}
