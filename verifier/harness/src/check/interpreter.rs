//! The interpreter engine: runs two programs on the same inputs and compares the observable results.

use crate::check::{Executable, Execution, NotShown, Unknown, Verdict};
use cpu_time::ThreadTime;
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::ConstLayout;
use ir3_compiler::{ir3, nir, target::Target};
use ir3_prove::simulation::Obstacle;
use ir3_semantics::Snapshot;
use ir3_semantics::arithmetic::rounding;
use ir3_semantics::environment::aliases::MemoryName;
use ir3_semantics::environment::env::{DEFAULT_FUEL, Env};
use ir3_semantics::header;
use ir3_semantics::interp;
use ir3_semantics::interp::filling::{self, Agreement};
use ir3_semantics::interp::ir3::machine::Completion;
use ir3_semantics::interp::{Compared, Difference, End, Outcome, Scratch};
use ir3_semantics::pair::PairFacts;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

/// A refutation: two programs, and an input on which they differ.
#[derive(Clone, Debug)]
pub struct Refutation {
    /// The stage that made the second side from the first, or `check`.
    pub stage: &'static str,
    /// The program before the stage.
    pub before: Snapshot,
    /// The program after it.
    pub after: Snapshot,
    /// The environment of the run.
    pub env: Env,
    /// The first difference.
    pub difference: Difference,
}

/// Counts of the runs of the source by their end.
#[derive(Clone, Copy, Debug, Default)]
pub struct SourceRuns {
    /// Runs that finished.
    pub finished: u32,
    /// Runs with undefined behaviour.
    pub vacuous: u32,
    /// Runs that used up their fuel.
    pub out_of_fuel: u32,
}

/// A target may execute this many instructions for each one of its source, and [`FUEL_SLACK`] more. No stage comes near
/// that, so a target that uses it up does not terminate.
const FUEL_FACTOR: u64 = 64;
const FUEL_SLACK: u64 = 10_000;

/// The fuel of a target whose source executed `executed` instructions.
pub(crate) const fn target_fuel(executed: u64) -> u64 {
    executed * FUEL_FACTOR + FUEL_SLACK
}

/// Runs the target on each environment and compares with the source's outcomes, which are replaced by the target's.
pub(super) fn compare_runs(
    envs: &[Env],
    previous: &mut [Outcome],
    vacuous: &str,
    scratch: &mut Scratch,
    mut run: impl FnMut(&Env, u64, &mut Scratch) -> Outcome,
) -> Result<Verdict, (usize, Difference)> {
    let (mut lanes, mut loosened) = (0, None);
    for (i, (env, source)) in envs.iter().zip(previous.iter_mut()).enumerate() {
        let fuel = target_fuel(source.executed);
        if !matches!(source.end, End::Finished) {
            // The stores before the undefined behaviour count. It stays the source of all later stages.
            if !source.stored.is_empty() {
                let mut again = |scratch: &mut Scratch| scratch.logged(|scratch| run(env, fuel, scratch));
                let target = again(scratch);
                filling::compare(source, &target, scratch, again).map_err(|difference| (i, difference))?;
            }
            continue;
        }
        let target = run(env, fuel, scratch);
        loosened = loosened.or(source.loosened_by(&target));
        match filling::compare(source, &target, scratch, |scratch| run(env, fuel, scratch)) {
            Err(difference) => return Err((i, difference)),
            Ok(Agreement::Plain(Compared::Same)) => lanes += u64::from(source.lanes.count_ones()),
            Ok(Agreement::Plain(Compared::OutOfFuel)) => {
                return Err((i, Difference::Endless { expected: source.executed, actual: target.executed }));
            }
            Ok(Agreement::Plain(Compared::Vacuous)) => {}
            // The source's run is more precise than the target's.
            Ok(Agreement::Filled) => {
                lanes += u64::from(source.lanes.count_ones());
                continue;
            }
        }
        // Later stages must perform the volatile loads of the source, though their loads may lack the mark.
        let required = source.loads.volatile;
        *source = target;
        source.loads.volatile = std::array::from_fn(|class| required[class].max(source.loads.volatile[class]));
    }
    Ok(match lanes {
        0 if previous.iter().any(|o| matches!(o.end, End::Undefined { .. })) => {
            Verdict::Unknown(Unknown::Vacuous(vacuous.to_owned()))
        }
        0 => Verdict::Unknown(Unknown::OutOfFuel),
        _ => match loosened {
            Some(what) => not_shown(Obstacle::Liberty(what.to_owned())),
            None => Verdict::Tested { lanes },
        },
    })
}

/// The verdict on runs that agree, of programs that differ in a property that no run shows.
fn not_shown(obstacle: Obstacle) -> Verdict {
    Verdict::Unknown(Unknown::NotShown(NotShown::Simulation { obstacle: Box::new(obstacle), left_out: None }))
}

/// Runs a source. A run with undefined behaviour is repeated, to record the stores before that.
pub(super) fn source_run(scratch: &mut Scratch, run: impl Fn(&mut Scratch) -> Outcome) -> Outcome {
    let outcome = run(scratch);
    if matches!(outcome.end, End::Undefined { .. }) && !outcome.memory.is_empty() {
        return scratch.logged(run);
    }
    outcome
}

/// Two decoded programs, to be run on the same inputs.
pub(super) struct Comparison<'a> {
    pub source: Executable,
    pub target: Executable,
    driver: Option<(interp::nir::Decoded, &'a ConstLayout)>,
    /// The memories that alias no other one, as the program before promises.
    promised: BTreeSet<MemoryName>,
    fuel: u64,
}

/// The environment and the number of the first difference.
pub(super) type Differs = Box<(Env, Difference)>;

impl<'a> Comparison<'a> {
    /// Decodes two programs. `fuel` is that of source runs in environments that have none of their own.
    ///
    /// # Errors
    /// If an operation of one of them is not supported, or a program for the machine is not final.
    pub fn new(
        before: ProgramRef<'a>,
        after: ProgramRef<'a>,
        target: &Target,
        executions: [Execution; 2],
        fuel: u64,
    ) -> Result<Self, interp::Unsupported> {
        let resolved = match (before, after) {
            (ProgramRef::Nir(source), ProgramRef::Ir3(target)) => match rounding::with_rounding_of(source, target) {
                Cow::Owned(source) => Some(source),
                Cow::Borrowed(_) => None,
            },
            _ => None,
        };
        let before = resolved.as_ref().map_or(before, ProgramRef::Nir);
        let driver = match (before, after) {
            (ProgramRef::Nir(shader), ProgramRef::Ir3(program)) => {
                decode_with_driver_words(shader, program).map(|decoded| (decoded, &program.consts))
            }
            _ => None,
        };
        let promised = match before {
            ProgramRef::Nir(shader) => interp::nir::unaliased(shader),
            ProgramRef::Ir3(_) | ProgramRef::Vec4(_) => BTreeSet::new(),
        };
        let facts = PairFacts::of(before, after);
        let source = Executable::new(before, target, executions[0])?.in_pair(facts);
        let target = Executable::new(after, target, executions[1])?.in_pair(facts);
        Ok(Self { source, target, driver, promised, fuel })
    }

    /// Returns the environments with the words that the driver fills, in which the promises of the program before hold.
    pub fn envs(&self, envs: &[Env]) -> Vec<Env> {
        let env = |env: &Env| {
            let env = env.keeping(&self.promised);
            match &self.driver {
                Some((decoded, consts)) => env.with_driver_words(decoded.launch(), consts),
                None => env,
            }
        };
        envs.iter().map(env).collect()
    }

    /// Runs both programs in some environments.
    ///
    /// # Errors
    /// The first difference.
    pub fn run(&self, envs: &[Env], scratch: &mut Scratch) -> Result<Verdict, Differs> {
        let envs = self.envs(envs);
        let source = |env: &Env, scratch: &mut Scratch| {
            source_run(scratch, |scratch| self.source.run(env, env.fuel.unwrap_or(self.fuel), scratch))
        };
        let mut outcomes: Vec<Outcome> = envs.iter().map(|env| source(env, scratch)).collect();
        let (_, vacuous) = source_runs(&outcomes);
        let run = |env: &Env, fuel, scratch: &mut Scratch| self.target.run(env, fuel, scratch);
        let verdict = compare_runs(&envs, &mut outcomes, &vacuous, scratch, run)
            .map_err(|(at, difference)| Box::new((envs[at].clone(), difference)))?;
        Ok(match (verdict, self.source.added_promise(&self.target)) {
            (Verdict::Tested { .. }, Some(promise)) => not_shown(Obstacle::Liberty(promise)),
            (verdict, _) => verdict,
        })
    }
}

/// Runs a program of either language.
///
/// # Errors
/// If the interpreter does not support an operation.
pub fn run_snapshot(
    program: &Snapshot,
    target: &Target,
    env: &Env,
    fuel: u64,
    scratch: &mut Scratch,
) -> Result<Outcome, interp::Unsupported> {
    Ok(Executable::new(program.into(), target, Execution::Untimed)?.run(env, fuel, scratch))
}

/// Compares two programs of any languages: their headers, and their runs in the given environments. For tests of the
/// engines; commands use the [judge](super::Judge).
pub fn compare_snapshots(before: &Snapshot, after: &Snapshot, target: &Target, envs: &[Env]) -> (Verdict, Duration) {
    let executions = [Execution::Untimed; 2];
    compare_within(before.into(), after.into(), target, envs, DEFAULT_FUEL, executions)
}

/// Like [`compare_snapshots`], but runs the program after on the machine, with time: with its inputs and outputs in the
/// registers that it names. A hazard on the path of a run is a refutation. [`Completion::Latest`] shows hazards that
/// other orders of completion hide.
pub fn compare_on_machine(
    before: &Snapshot,
    after: &Snapshot,
    target: &Target,
    envs: &[Env],
    completion: Completion,
) -> (Verdict, Duration) {
    let executions = [Execution::Untimed, Execution::Machine(completion)];
    compare_within(before.into(), after.into(), target, envs, DEFAULT_FUEL, executions)
}

/// Compares headers and runs, with a fuel of source runs and a machine model for each program.
pub(super) fn compare_within(
    before: ProgramRef<'_>,
    after: ProgramRef<'_>,
    target: &Target,
    envs: &[Env],
    fuel: u64,
    executions: [Execution; 2],
) -> (Verdict, Duration) {
    let start = ThreadTime::now();
    let refuted = |differs: Differs| {
        let (env, difference) = *differs;
        let (before, after) = (before.into(), after.into());
        Verdict::Refuted(Box::new(Refutation { stage: "check", before, after, env, difference }))
    };
    let verdict = match header::difference(before, after) {
        Some(difference) => {
            refuted(Box::new((envs.first().cloned().unwrap_or_default(), Difference::Header(difference))))
        }
        None => match Comparison::new(before, after, target, executions, fuel) {
            Ok(comparison) => comparison.run(envs, &mut Scratch::default()).unwrap_or_else(refuted),
            Err(error) => Verdict::Unknown(Unknown::Unsupported(error.into())),
        },
    };
    (verdict, start.elapsed())
}

/// Decodes the nir program, if it may load the words that the driver fills for the compiled program.
pub(super) fn decode_with_driver_words(shader: &nir::Shader, program: &ir3::Program) -> Option<interp::nir::Decoded> {
    if program.consts.driver_params.is_empty() && program.consts.immediates.is_empty() {
        return None;
    }
    interp::nir::Decoded::new(shader).ok().filter(interp::nir::Decoded::computes_constants)
}

/// Counts the runs of a source by their end, and returns the reason of the last one with undefined behaviour.
pub(super) fn source_runs(outcomes: &[Outcome]) -> (SourceRuns, String) {
    let mut runs = SourceRuns::default();
    let mut vacuous = String::new();
    for outcome in outcomes {
        match &outcome.end {
            End::Finished => runs.finished += 1,
            End::OutOfFuel => runs.out_of_fuel += 1,
            End::Undefined { reason, origin, .. } => {
                runs.vacuous += 1;
                vacuous = format!("{reason}, at {origin}");
            }
        }
    }
    (runs, vacuous)
}
