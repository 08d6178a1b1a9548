//! Memory order: accesses that the program after executes in another order, of boundaries that no prover decides.
//!
//! Runs compare the final contents of memory. They show little of the order of accesses: two accesses that never touch
//! a common word may have any order, other waves run between two control barriers at once, and a store of the same
//! value leaves no trace. So a boundary that was only run passes by a second condition. Both programs are run with a
//! [trace](AccessTrace), and the accesses of each lane are compared in their order, by the words that they access.
//!
//! A difference is
//! - a store or an atomic of a lane that the program before does not execute (a store that became unconditional, or is
//!   executed twice);
//! - a store that is left out, unless the same lane writes the word before or after it, and nothing that conflicts is
//!   between the two;
//! - a load that reads another version of its word: for each load there has to be one of the same word in the other
//!   program, or a store to it before, and between their places in the order of the lane's stores nothing that
//!   conflicts;
//! - two stores, a store and a fence, or two volatile loads in another order.
//!
//! Two accesses conflict if one of them writes, their memories may be one (docs/semantics.md, memory and other waves),
//! and they are not *distant*: accesses of one buffer whose addresses have the same distance in every run, and are
//! disjoint at that distance. A fence conflicts with the accesses that it orders.
//!
//! For operations that no run executes, the order in both texts is compared: stores, atomics, barriers and fences of
//! one memory, with the loads between them.
//!
//! A difference of two accesses is *covered* if some run shows that it makes no difference: both touch a common word,
//! the one that writes changes it, and if the other one loads the value of the other order, something observable
//! changes. Then the program after, which agrees with the one before in that run, makes up for the order. A load that
//! is left out makes no difference either if nothing observable depends on it in any run. The other differences are
//! never covered: no run shows the order of a fence, and none has other waves between two accesses.

mod lane;
mod report;
mod unexecuted;

pub use report::{MemoryOrder, OrderChange, OrderedOperation};

use super::interpreter::{Comparison, target_fuel};
use super::{Executable, Execution};
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::target::Target;
use ir3_semantics::environment::env::{DEFAULT_FUEL, Env};
use ir3_semantics::environment::memory::{
    AccessKind, AccessTrace, Perturbation, PerturbedWords, TracedAccess, TracedEvent,
};
use ir3_semantics::environment::sync::Synchronized;
use ir3_semantics::interp::{End, Outcome, Scratch, Unsupported};
use lane::{Findings, LaneComparison, Operation, Suspect};
use rustc_hash::FxHashMap;
use unexecuted::Executed;

/// The lanes whose accesses are compared.
const LANES: [usize; 12] = [0, 1, 2, 3, 5, 8, 13, 22, 31, 40, 55, 63];
/// The most environments that are traced.
const MOST_ENVS: usize = 32;
/// The number of environments in which two addresses must have the same distance for it to count as constant.
const LEAST_WITNESSES: usize = 3;
/// The most runs with a changed word for one pair of accesses, about; and the most executions of one run, from the
/// first and from the last on, of a load that is left out.
const MOST_PERTURBED: usize = 96;
const MOST_LOADS: usize = 2;

/// Compares the order of accesses in the runs of two programs that agree in all environments.
///
/// # Errors
/// The first difference of the order that no run covers.
pub(crate) fn check(
    before: ProgramRef<'_>,
    after: ProgramRef<'_>,
    envs: &[Env],
    machine: &Target,
) -> Result<(), Box<MemoryOrder>> {
    let Ok(pair) = TracedPair::new(before, after, envs, machine) else { return Ok(()) };
    let code = [&pair.source, &pair.target].map(Executable::ordered_code);
    if !code.iter().flatten().any(|operation| operation.is_anchor()) {
        return Ok(());
    }
    let mut scratch = Scratch::default();
    let mut findings = Findings::default();
    let mut executed = Executed::default();
    for (number, env) in pair.envs.iter().enumerate() {
        let Some(runs) = TracedRuns::new(&pair, env, &mut scratch) else { continue };
        executed.add(&runs.traces);
        let lanes = LANES.into_iter().filter(|&lane| runs.lanes() >> lane & 1 != 0);
        for lane in lanes {
            LaneComparison::new(&runs, env, lane).find(number, &mut findings);
        }
    }
    let unexecuted = unexecuted::find(&code, &executed);
    for suspect in findings.suspects(LEAST_WITNESSES).chain(unexecuted) {
        if !is_covered(suspect, &pair, &mut scratch) {
            return Err(Box::new(MemoryOrder::new(suspect, &pair.source, &pair.target)));
        }
    }
    Ok(())
}

/// Two programs, and the environments in which they are traced.
struct TracedPair {
    source: Executable,
    target: Executable,
    envs: Vec<Env>,
}

impl TracedPair {
    fn new(before: ProgramRef<'_>, after: ProgramRef<'_>, envs: &[Env], machine: &Target) -> Result<Self, Unsupported> {
        let comparison = Comparison::new(before, after, machine, [Execution::Untimed; 2], DEFAULT_FUEL)?;
        let envs = comparison.envs(&envs[..envs.len().min(MOST_ENVS)]);
        let Comparison { source, target, .. } = comparison;
        Ok(Self { source, target, envs })
    }
}

/// The runs of both programs in one environment.
struct TracedRuns {
    outcomes: [Outcome; 2],
    traces: [AccessTrace; 2],
    /// The number of the barrier or fence of the program after for each one of the program before, if they correspond.
    syncs: Vec<Option<usize>>,
}

impl TracedRuns {
    /// Runs both programs. `None` if a run has no end, or is too long.
    fn new(pair: &TracedPair, env: &Env, scratch: &mut Scratch) -> Option<Self> {
        let (first, before) = scratch.traced(|scratch| pair.source.run(env, env.fuel(), scratch));
        if first.end != End::Finished || before.cut {
            return None;
        }
        let fuel = target_fuel(first.executed);
        let (second, after) = scratch.traced(|scratch| pair.target.run(env, fuel, scratch));
        if second.end != End::Finished || after.cut {
            return None;
        }
        let count = before.events.iter().filter(|event| matches!(event, TracedEvent::Sync(_))).count();
        let syncs = match Synchronized::matched(&first.synchronized, &second.synchronized) {
            Ok(matched) => matched.into_iter().take(count).map(Some).collect(),
            Err(_) => vec![None; count],
        };
        Some(Self { outcomes: [first, second], traces: [before, after], syncs })
    }

    /// The lanes that are observed to the end.
    fn lanes(&self) -> u64 {
        let [first, second] = &self.outcomes;
        first.lanes & !(first.killed | first.helpers | second.helpers)
    }
}

/// Returns true if a run shows that the order of two accesses makes no difference, or if nothing observable depends on
/// a load that is left out.
fn is_covered(suspect: Suspect, pair: &TracedPair, scratch: &mut Scratch) -> bool {
    let Suspect { change, first: Operation::Access(first), is_of_after: false, second: Some(second) } = suspect else {
        return false;
    };
    if !matches!(change, OrderChange::Exchanged | OrderChange::Merged) {
        return false;
    }
    let (mut tried, mut is_used) = (0, false);
    for (number, env) in pair.envs.iter().enumerate() {
        let (outcome, trace) = scratch.traced(|scratch| pair.source.run(env, env.fuel(), scratch));
        if outcome.end != End::Finished || trace.cut {
            continue;
        }
        let mut changes = |perturbation: Perturbation| {
            tried += 1;
            let fuel = target_fuel(outcome.executed);
            let other = scratch.perturbed(perturbation, |scratch| pair.source.run(env, fuel, scratch));
            other.end != outcome.end || outcome.first_difference(&other).is_some()
        };
        let met = match second {
            Operation::Access(second) => Meeting::all(&trace, first, second),
            Operation::Sync(..) => Vec::new(),
        };
        if met.into_iter().any(|Meeting { perturbation }| perturbation.is_none_or(&mut changes)) {
            return true;
        }
        is_used |= change == OrderChange::Exchanged || of_load(&trace, first, number).into_iter().any(&mut changes);
        if tried >= MOST_PERTURBED {
            break;
        }
    }
    !is_used
}

/// Changes of the words that the first and the last executions of an instruction load.
///
/// Lanes that store to one word hide all of them but one, so all lanes load other words at once. Operations on several
/// lanes may hide that, so some single lanes do, too: the first, the last, and another one in each run.
fn of_load(trace: &AccessTrace, site: u32, run: usize) -> Vec<Perturbation> {
    let accesses = trace.events.iter().filter_map(|event| match event {
        TracedEvent::Access(access) if access.site == site && !access.words.is_empty() => Some(access),
        _ => None,
    });
    let mut accesses: Vec<&TracedAccess> = accesses.collect();
    // The parts of an access are one execution.
    accesses.dedup_by_key(|access| access.execution);
    let Some(first) = accesses.first() else { return Vec::new() };
    let words = &first.words;
    let some = [words.first(), words.last(), words.get(run % words.len())];
    let lanes = some.into_iter().flatten().map(|word| Perturbation {
        execution: first.execution,
        words: PerturbedWords::OfLane { lane: word.lane, word: word.word, bits: u32::MAX },
    });
    let lanes: Vec<Perturbation> = lanes.collect();
    if accesses.len() > 2 * MOST_LOADS {
        accesses.drain(MOST_LOADS..accesses.len() - MOST_LOADS);
    }
    let all = accesses.iter().map(|it| Perturbation { execution: it.execution, words: PerturbedWords::All });
    all.chain(lanes).collect()
}

/// A pair of accesses that touch a common word, of which at least one changes it.
struct Meeting {
    /// The change of a loaded value that the other order makes; `None` if both write.
    perturbation: Option<Perturbation>,
}

impl Meeting {
    /// The meetings of two instructions in a run, a few of each execution.
    fn all(trace: &AccessTrace, first: u32, second: u32) -> Vec<Self> {
        let of = |site: u32| -> Vec<&TracedAccess> {
            let accesses = trace.events.iter().filter_map(|event| match event {
                TracedEvent::Access(access) => Some(access),
                TracedEvent::Sync(_) => None,
            });
            accesses.filter(|access| access.site == site).collect()
        };
        let (first, second) = (of(first), of(second));
        let mut changed = FxHashMap::default();
        for write in first.iter().chain(&second).filter(|access| access.kind != AccessKind::Load) {
            for word in write.words.iter().filter(|word| word.changed != 0) {
                changed.insert((write.array, word.word), word.changed);
            }
        }
        let loads: Vec<&TracedAccess> =
            first.iter().chain(&second).filter(|access| access.kind == AccessKind::Load).copied().collect();
        if loads.is_empty() {
            let touches = |accesses: &[&TracedAccess], at: &(_, u32)| {
                accesses.iter().any(|access| access.array == at.0 && access.words.iter().any(|word| word.word == at.1))
            };
            let common = changed.keys().any(|at| touches(&first, at) && touches(&second, at));
            return common.then_some(Self { perturbation: None }).into_iter().collect();
        }
        let mut meetings = Vec::new();
        for load in loads {
            let met = load.words.iter().filter_map(|word| Some((word, *changed.get(&(load.array, word.word))?)));
            meetings.extend(met.take(2).map(|(word, bits)| {
                let words = PerturbedWords::OfLane { lane: word.lane, word: word.word, bits };
                Self { perturbation: Some(Perturbation { execution: load.execution, words }) }
            }));
        }
        meetings
    }
}

#[cfg(test)]
mod tests;
