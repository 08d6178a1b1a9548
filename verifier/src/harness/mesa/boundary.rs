//! One boundary: all engines together.

use super::recover::array_starts::final_code;
use super::runs::Environments;
use super::{Side, kills, reserved, runs};
use crate::harness::check::legal;
use crate::harness::check::{
    Answer, EngineKind, Engines, NO_ENGINE, NotShown, Refutation, Sensitivity, Smt, Unknown, Verdict, combined,
    compare_on_machine, compare_snapshots, contradiction,
};
use crate::programs::Question;
use crate::programs::mesa::{Section, Statistics};
use crate::prove::hazards::{self, Basis, Facts};
use crate::prove::registers::RegisterFailure;
use crate::prove::simulation::Limits;
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use crate::semantics::environment::sync::Sync;
use crate::semantics::interp::Difference;
use crate::semantics::interp::ir3::machine::Completion;
use cpu_time::ThreadTime;
use ir3_compiler::ir3::{Opcode, Program};
use ir3_compiler::target::Target;
use std::time::Duration;

/// How boundaries are checked.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The engines.
    pub engines: &'a Engines,
    /// The environments of a boundary that is not proved, at first.
    pub runs: usize,
    /// The most environments.
    pub most_runs: usize,
    /// The seed of the environments.
    pub seed: u64,
    /// The fuel of a run.
    pub fuel: u64,
    /// CPU time after which no environments are added.
    pub limit: Duration,
}

impl<'a> Settings<'a> {
    /// The fuel and the limit of the command line, and up to eight times as many environments.
    pub const fn new(engines: &'a Engines, runs: usize, seed: u64) -> Self {
        Self { engines, runs, most_runs: runs * 8, seed, fuel: 100_000, limit: Duration::from_secs(1) }
    }
}

/// The verdict on a boundary.
#[derive(Debug)]
pub struct Checked<'a> {
    /// The pass, or the name of the comparison.
    pub name: String,
    /// The sections that were compared.
    pub sections: [Option<&'a Section>; 2],
    /// The verdict of all engines together.
    pub verdict: Verdict,
    /// The name of the engine that decided.
    pub engine: &'static str,
    /// The share of the program after on which the runs depend, if it was only run.
    pub sensitivity: Option<Sensitivity>,
    /// CPU time of all engines.
    pub time: Duration,
    /// An engine that proved what another one refuted, and the reason of the refutation.
    pub wrong_proof: Option<String>,
}

impl Checked<'_> {
    /// Returns true if both sides could be read.
    pub fn is_read(&self) -> bool {
        self.engine != READER
    }
}

/// The passes that only move values.
const MOVING: [&str; 6] = [
    "create_parallel_copies",
    "shared register allocation",
    "ir3_spill",
    "register allocation",
    "ir3_lower_spill",
    "ir3_lower_copies",
];

/// The batches of environments in which a program with a hazard is run, after those by number, and their size.
const LATE_BATCHES: usize = 12;
const LATE_BATCH: usize = 8;

/// CPU time of a proof for each instruction.
const PROOF_TIME_PER_INSTR: Duration = Duration::from_micros(1_500);
/// The most CPU time of a proof, unless more is asked for.
const MOST_PROOF_TIME: Duration = Duration::from_secs(4);

/// The engine of a side that could not be read.
pub const READER: &str = "reader";
/// The engine of two sides that have the same text.
pub const SAME_PROGRAM: &str = "same program";

/// Checks a boundary. A final code that passes must not use more than the driver reserves.
pub(super) fn check<'a>(
    before: &Side<'a>,
    after: &Side<'a>,
    target: &Target,
    settings: &Settings<'_>,
    environments: Option<&Environments>,
) -> Checked<'a> {
    let mut checked = compare(before, after, target, settings, environments);
    if let (true, Some(said), Ok(Snapshot::Ir3(program))) =
        (after.name == super::CODE && is_pass(&checked.verdict), &after.statistics, &after.program)
        && let Some(what) = reserved::exceeded(program, said, target)
    {
        checked.verdict = Verdict::Unknown(Unknown::NotShown(NotShown::Reserved(what)));
    }
    checked
}

/// Asks the engines about a boundary.
fn compare<'a>(
    before: &Side<'a>,
    after: &Side<'a>,
    target: &Target,
    settings: &Settings<'_>,
    environments: Option<&Environments>,
) -> Checked<'a> {
    let mut checked = Checked {
        name: after.name.clone(),
        sections: [before.section, after.section],
        verdict: Verdict::Unknown(Unknown::OutOfFuel),
        engine: READER,
        sensitivity: None,
        time: Duration::ZERO,
        wrong_proof: None,
    };
    let unread = |name: &str, why: &String| Verdict::Unknown(Unknown::Unsupported(format!("{name}: {why}").into()));
    let said = after.statistics.as_ref();
    let (before, after) = match (&before.program, &after.program) {
        (Err(why), _) => return Checked { verdict: unread(&before.name, why), ..checked },
        (_, Err(why)) => return Checked { verdict: unread(&after.name, why), ..checked },
        (Ok(before), Ok(after)) => (before, after),
    };
    checked.engine = NO_ENGINE;
    checked.verdict = Verdict::not_compared();
    if are_same(before, after) {
        checked.verdict = Verdict::Proved { assumptions: Vec::new() };
        checked.engine = SAME_PROGRAM;
        return checked;
    }
    let env = |at: usize| Env { fuel: Some(settings.fuel), ..Environments::numbered(environments, at) };
    let provers = provers(settings.engines, before, after);
    let mut answers = provers.ask_until_known(&Question { stage: None, before, after, machine: target, envs: &[] });
    // An input that a prover found may have other bits in such a word than the driver writes.
    if let (Some(environments), Some(Answer { verdict: Verdict::Refuted(refutation), .. })) =
        (environments.filter(|it| it.has_booleans()), answers.last())
    {
        let found = environments.with_booleans(refutation.env.clone());
        let again = compare_snapshots(before, after, target, &[found]).0;
        if let (Verdict::Refuted(_), Some(last)) = (&again, answers.last_mut()) {
            last.verdict = again;
        } else {
            answers.pop();
        }
    }
    let is_moving = MOVING.contains(&&*checked.name);
    answers.retain(|answer| {
        let failure = match &answer.verdict {
            Verdict::Unknown(Unknown::NotShown(NotShown::Registers(failure))) => failure,
            _ => return true,
        };
        // Of other passes, it may prove what they have done to a program; if it does not, that says nothing. Nor does an operand
        // that it has no place for.
        is_moving && !matches!(failure, RegisterFailure::Place { .. })
    });
    let proved = matches!(answers.last(), Some(Answer { verdict: Verdict::Proved { .. }, .. }));
    if settings.engines.has(EngineKind::Interpreter) && !proved {
        let runs = Engines { kinds: vec![EngineKind::Interpreter], ..Engines::default() };
        let ask =
            |envs: &[Env]| runs.ask(&Question { stage: None, before, after, machine: target, envs }).into_iter().next();
        let mut boundary = runs::Runs::new(after, target, settings, environments);
        boundary.doubted = answers
            .iter()
            .any(|answer| matches!(answer.verdict, Verdict::Unknown(Unknown::NotShown(NotShown::Registers(_)))));
        let run = boundary.ask(&ask);
        checked.sensitivity = Some(boundary.sensitivity());
        answers.extend(run);
    }
    if let (true, Some(program)) = (is_final(&checked.name), after.as_ir3())
        && answers.last().is_some_and(|answer| is_pass(&answer.verdict))
        && let Some(hazard) = hazard(&checked.name, program, said, target)
    {
        let start = ThreadTime::now();
        let first: Vec<Env> = (0..settings.runs).map(env).collect();
        let others = (0..LATE_BATCHES).map(|batch| {
            let numbers = batch * LATE_BATCH..(batch + 1) * LATE_BATCH;
            numbers.map(|at| runs::comparison(environments, at, None, settings.fuel)).collect()
        });
        let refuted = std::iter::once(first)
            .chain(others)
            .take_while(|_| start.elapsed() < settings.limit * 2)
            .map(|envs| compare_late(before, after, program, target, &envs))
            .find(|verdict| matches!(verdict, Verdict::Refuted(_)));
        let verdict = refuted.unwrap_or(Verdict::Unknown(Unknown::NotShown(NotShown::Hazard(hazard))));
        // What was shown holds of a machine that has all results at once.
        answers = vec![Answer { engine: EngineKind::Interpreter, verdict, time: start.elapsed() }];
    }
    checked.time = answers.iter().map(|answer| answer.time).sum();
    checked.wrong_proof = contradiction(&answers).map(|(_, why)| why);
    if let Some((verdict, engine)) = combined(answers, checked.sensitivity.as_ref()) {
        checked.verdict = verdict;
        checked.engine = engine.name();
    }
    // Engines ask this of what they prove.
    if matches!(checked.verdict, Verdict::Tested { .. })
        && let Some(what) = after.as_ir3().and_then(|program| legal::broken_rule(program, target))
    {
        checked.verdict = Verdict::Unknown(Unknown::NotShown(NotShown::Rule(what)));
    }
    if let Verdict::Refuted(refutation) = &checked.verdict
        && is_of_fence(before, after, &refutation.difference)
    {
        let what = "the order of a fence and an access: which memories a fence orders is not printed".to_owned();
        checked.verdict = Verdict::Unknown(Unknown::Unsupported(what.into()));
    }
    if let Verdict::Refuted(_) = &checked.verdict
        && let Some(helpers) = kills::as_helpers(before, after, target)
    {
        let side = |program, said: Option<&Statistics>| Side {
            name: checked.name.clone(),
            section: None,
            program: Ok(program),
            statistics: said.cloned(),
        };
        let sides = [side(helpers.before, None), side(helpers.after, said)];
        let again = compare(&sides[0], &sides[1], target, settings, environments);
        checked.time += again.time;
        if !matches!(again.verdict, Verdict::Refuted(_)) {
            if helpers.counts_lanes {
                let what = "a sample moved over a kill where other instructions depend on the active lanes";
                checked.verdict = Verdict::Unknown(Unknown::Unsupported(what.to_owned().into()));
                return checked;
            }
            let (time, sections) = (checked.time, checked.sections);
            return Checked { name: checked.name, time, sections, ..again };
        }
    }
    checked
}

/// Returns true if a difference says nothing: the text of a fence says nothing of the memories that it orders, and the words only part of it.
fn is_of_fence(before: &Snapshot, after: &Snapshot, difference: &Difference) -> bool {
    matches!(difference, Difference::Synchronization { expected: Some(expected), .. } if matches!(expected.sync, Sync::Fence(_)))
        && fences(before).is_some()
        && fences(before) == fences(after)
}

/// Runs both on a machine whose results come as late as they may. `program` is the side after, whose arrays get numbers of registers.
fn compare_late(before: &Snapshot, after: &Snapshot, program: &Program, target: &Target, envs: &[Env]) -> Verdict {
    let plain = final_code(program).ok().map(|(plain, ..)| Snapshot::Ir3(Box::new(plain)));
    compare_on_machine(before, plain.as_ref().unwrap_or(after), target, envs, Completion::Latest).0
}

/// Runs both sides of a boundary; on the machine, too, if the program after is final and not free of hazards.
pub(super) fn rerun(before: &Side<'_>, after: &Side<'_>, target: &Target, envs: &[Env]) -> Option<Box<Refutation>> {
    let (Ok(first), Ok(second)) = (&before.program, &after.program) else { return None };
    if are_same(first, second) {
        return None;
    }
    let verdict = match compare_snapshots(first, second, target, envs).0 {
        refuted @ Verdict::Refuted(_) => refuted,
        other => match second.as_ir3().filter(|_| is_final(&after.name)) {
            Some(program) if hazard(&after.name, program, after.statistics.as_ref(), target).is_some() => {
                compare_late(first, second, program, target, envs)
            }
            _ => other,
        },
    };
    match verdict {
        Verdict::Refuted(refutation) if !is_of_fence(first, second, &refutation.difference) => {
            match kills::as_helpers(first, second, target) {
                // It counts only if it does not need that killed lanes end; see `check`.
                Some(helpers) => {
                    let side = |side: &Side<'_>, program| Side {
                        name: side.name.clone(),
                        section: None,
                        program: Ok(program),
                        statistics: side.statistics.clone(),
                    };
                    rerun(&side(before, helpers.before), &side(after, helpers.after), target, envs)
                }
                None => Some(refutation),
            }
        }
        _ => None,
    }
}

/// Runs both sides of a boundary that is not proved, and not refuted yet, on inputs that refute another one.
pub(super) fn check_on(checked: &mut Checked<'_>, before: &Side<'_>, after: &Side<'_>, target: &Target, envs: &[Env]) {
    if matches!(checked.verdict, Verdict::Proved { .. } | Verdict::Refuted(_)) {
        return;
    }
    let start = ThreadTime::now();
    let found = rerun(before, after, target, envs);
    checked.time += start.elapsed();
    if let Some(refutation) = found {
        checked.verdict = Verdict::Refuted(refutation);
        checked.engine = EngineKind::Interpreter.name();
    }
}

/// The engines with more CPU time for proofs about large programs, whose symbolic execution alone takes longer than the proof of a
/// small one.
fn provers(engines: &Engines, before: &Snapshot, after: &Snapshot) -> Engines {
    let size = |side: &Snapshot| side.as_ir3().map_or(0, |program| program.instrs.len());
    let instrs = u32::try_from(size(before).max(size(after))).unwrap_or(u32::MAX);
    let time = PROOF_TIME_PER_INSTR.saturating_mul(instrs).min(MOST_PROOF_TIME).max(engines.smt.limits.time);
    let limits = Limits { inputs: engines.smt.limits.inputs, ..Limits::within(time) };
    Engines { kinds: engines.kinds.clone(), smt: Smt { limits, ..engines.smt.clone() } }
}

/// The number of fences, and the number of barriers.
fn fences(program: &Snapshot) -> Option<[usize; 2]> {
    let program = program.as_ir3()?;
    let count = |opcodes: &[Opcode]| {
        program.iter_instrs().filter(|&(_, instr)| opcodes.contains(&program.instrs[instr].opcode)).count()
    };
    Some([count(&[Opcode::Fence, Opcode::Ccinv]), count(&[Opcode::Bar])])
}

fn is_pass(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Proved { .. } | Verdict::Tested { .. })
}

/// Returns true for boundaries after which a program has to wait for its results.
pub(super) fn is_final(name: &str) -> bool {
    name == "ir3_legalize" || name == super::CODE
}

/// The reason why a final program is not proved free of hazards: the engines leave time out. `said` has the branch stack that is reserved, and
/// when the preamble runs.
fn hazard(name: &str, program: &Program, said: Option<&Statistics>, target: &Target) -> Option<String> {
    let (_, code, arrays) = match final_code(program) {
        Ok(parts) => parts,
        Err(error) => return Some(error),
    };
    // The text after the pass has no releases; the code has.
    let branch_stack = said.and_then(|said| said.waves?.branchstack);
    let early_preamble = said.and_then(Statistics::early_preamble);
    let releases_unknown = name != super::CODE;
    let facts = Facts { releases_unknown, arrays, branch_stack, early_preamble, ..Facts::of_program(program) };
    match hazards::check(&code, &facts, target) {
        Ok(report) => {
            report.hazards.iter().find(|hazard| hazard.kind.basis() == Basis::Machine).map(ToString::to_string)
        }
        Err(error) => Some(error.to_string()),
    }
}

/// Returns true if two programs have the same text.
fn are_same(before: &Snapshot, after: &Snapshot) -> bool {
    matches!((before, after), (Snapshot::Ir3(before), Snapshot::Ir3(after)) if before == after)
}
