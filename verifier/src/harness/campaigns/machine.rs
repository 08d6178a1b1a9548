//! Mesa's final programs on the machine: from their words, compared with the nir that they were compiled from.
//!
//! A program is equal only if its runs were compared: the nir has to end, and something of it has to be observable.

use crate::harness::check::{Unknown, Verdict, compare_on_machine, run_snapshot};
use crate::harness::report::NativeProgram;
use crate::programs::seeds::ProgramEnvs;
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use crate::semantics::interp::ir3::machine::Completion;
use crate::semantics::interp::{Difference, End, Outcome, Scratch, UndefinedReason};
use ir3_compiler::target::Target;

/// What a program does on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// What the nir does, in this number of lanes.
    Equal(u64),
    /// A run has a hazard.
    Hazard(String),
    /// A run does something else.
    Different(String),
    /// Nothing was compared: the nir has no meaning in these environments, does not end, or nothing of it is observable.
    Nothing(String),
    /// It cannot be run.
    Refused(String),
}

impl Finding {
    /// The name in tables.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Equal(_) => "equal",
            Self::Hazard(_) => "hazard",
            Self::Different(_) => "different",
            Self::Nothing(_) => "nothing",
            Self::Refused(_) => "refused",
        }
    }

    /// What was found, but for a program that is equal.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Equal(_) => None,
            Self::Hazard(what) | Self::Different(what) | Self::Nothing(what) | Self::Refused(what) => Some(what),
        }
    }
}

/// The number of environments that are tried for one in which nir ends and something is observable.
const RETRIES: usize = 48;
/// The fuel of the retries: loops whose bounds are random are long.
const LONG: u64 = 1 << 21;

/// Runs a program in environments, in several orders of completion.
#[must_use]
pub fn run(program: &NativeProgram, runs: u32) -> Finding {
    let NativeProgram { shader, code, target, .. } = program;
    let back = match code.to_program() {
        Ok(back) => back,
        Err(error) => return Finding::Refused(error.to_string()),
    };
    let all = ProgramEnvs::new(shader, 1);
    let before = Snapshot::Nir(Box::new(shader.clone()));
    let after = Snapshot::Ir3(Box::new(back));
    let mut envs = all.first(runs);
    match is_observed(&before, &envs, target) {
        Err(finding) => return finding,
        Ok(true) => {}
        Ok(false) => {
            // One at a time: the others are vacuous.
            let mut others = (0..RETRIES).map(|number| {
                let env = all.env(number);
                if number < 8 { Env { fuel: Some(LONG), ..env } } else { env }
            });
            let found = others.find(|env| is_observed(&before, std::slice::from_ref(env), target) == Ok(true));
            envs.extend(found);
        }
    }
    let mut lanes = 0;
    for completion in [Completion::Latest, Completion::Earliest, Completion::Random(1), Completion::Random(2)] {
        match compare_on_machine(&before, &after, target, &envs, completion).0 {
            Verdict::Tested { lanes: tested } => lanes += tested,
            Verdict::Refuted(refutation) => return refuted(&refutation.difference, &refutation.env),
            Verdict::Unknown(Unknown::Unsupported(what)) => return Finding::Refused(what.to_string()),
            other => return Finding::Nothing(other.reason().unwrap_or_default().to_string()),
        }
    }
    if is_observed(&before, &envs, target) == Ok(true) {
        Finding::Equal(lanes)
    } else {
        Finding::Nothing("nothing is observable".to_owned())
    }
}

/// Returns true if nir ends in one of the environments with something that a comparison could find different.
fn is_observed(program: &Snapshot, envs: &[Env], target: &Target) -> Result<bool, Finding> {
    let mut scratch = Scratch::new();
    for env in envs {
        match run_snapshot(program, target, env, env.fuel(), &mut scratch) {
            Ok(outcome) if observes(&outcome) => return Ok(true),
            Ok(_) => {}
            Err(error) => return Err(Finding::Refused(format!("nir: {error}"))),
        }
    }
    Ok(false)
}

/// Returns true if a run has anything that a comparison could find different.
fn observes(outcome: &Outcome) -> bool {
    let live = outcome.lanes & !outcome.killed & !outcome.helpers;
    let has_output = outcome.outputs.rows().iter().any(|row| live & !row.poison != 0);
    outcome.end == End::Finished && (has_output || !outcome.memory.is_empty() || outcome.killed != 0)
}

fn refuted(difference: &Difference, env: &Env) -> Finding {
    use UndefinedReason::{LeavesCode, Overwritten, ReadBeforeResult, Reconvergence, WriteBeforeResult};
    let what = format!("{difference} (seed {:#x})", env.seed);
    match difference {
        Difference::Undefined {
            reason: LeavesCode | Overwritten | ReadBeforeResult | Reconvergence | WriteBeforeResult,
            ..
        } => Finding::Hazard(what),
        _ => Finding::Different(what),
    }
}
