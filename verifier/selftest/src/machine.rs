//! Mesa's final programs on the machine: from their words, compared with the nir that they were compiled from.
//!
//! A program is equal only if its runs were compared: the nir has to end, and something of it has to be observable.

use ir3_compiler::nir::{InstrData, Shader};
use ir3_compiler::target::Target;
use ir3_harness::check::{Unknown, Verdict, compare_on_machine, run_snapshot};
use ir3_programs::input::NativeProgram;
use ir3_programs::seeds::ProgramEnvs;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::environment::hints::Hints;
use ir3_semantics::interp::ir3::machine::Completion;
use ir3_semantics::interp::{Difference, End, Outcome, Scratch, UndefinedReason};
use ir3_semantics::support::random::hash;
use std::collections::BTreeSet;

/// The result of running a program on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It agrees with the nir, in this number of lanes. The runs were of one lane each if `alone`: with more the nir
    /// does not end.
    Equal {
        /// The lanes.
        lanes: u64,
        /// One lane runs.
        alone: bool,
    },
    /// The program and the nir have no effect in any run: it ends.
    Empty,
    /// A run has a hazard.
    Hazard(String),
    /// A run does something else.
    Different(String),
    /// Nothing was compared: the nir has no meaning in these environments, does not end, or nothing of it is
    /// observable.
    Nothing(String),
    /// It cannot be run.
    Refused(String),
}

impl Finding {
    /// The name in tables.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Equal { .. } => "equal",
            Self::Empty => "empty",
            Self::Hazard(_) => "hazard",
            Self::Different(_) => "different",
            Self::Nothing(_) => "nothing",
            Self::Refused(_) => "refused",
        }
    }

    /// The reason, unless the program agrees with its nir.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Equal { .. } | Self::Empty => None,
            Self::Hazard(what) | Self::Different(what) | Self::Nothing(what) | Self::Refused(what) => Some(what),
        }
    }
}

/// The number of environments that are tried for one in which nir ends and something is observable.
const RETRIES: usize = 48;
/// The number of further environments in which all words that nothing names are 0: a loop may wait for one. As many are
/// tried in which one lane runs.
const CLEARED: usize = 4;
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
    let booleans = Hints::boolean_words(shader);
    let env = |number: usize| with_booleans(all.env(number), &booleans);
    let before = Snapshot::Nir(Box::new(shader.clone()));
    let after = Snapshot::Ir3(Box::new(back));
    let mut envs: Vec<Env> = (0..runs as usize).map(env).collect();
    let has_effects = has_effects(shader);
    match is_observed(&before, &envs, target) {
        Err(finding) => return finding,
        Ok(false) if has_effects => {
            // One at a time: the others are vacuous.
            let random = (0..RETRIES).map(|number| {
                let env = env(number);
                if number < 8 { Env { fuel: Some(LONG), ..env } } else { env }
            });
            let cleared = (0..CLEARED).map(|number| Env { fill: Some(0), ..env(number) });
            // A lock for which lanes of a wave wait is released by none of them.
            let alone = |number: usize| Env { lanes: Some(1 << (number * 21 % 64)), ..env(number) };
            let alone = (0..CLEARED).map(|number| Env { fill: Some(0), ..alone(number) });
            let mut others = random.chain(cleared).chain(alone);
            let found = others.find(|env| is_observed(&before, std::slice::from_ref(env), target) == Ok(true));
            // Nothing else is compared: a run that does not end would make the whole comparison one.
            envs = found.map_or(envs, |env| vec![env]);
        }
        Ok(_) => {}
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
        let alone = envs.iter().all(|env| env.lanes.is_some_and(|lanes| lanes.count_ones() == 1));
        Finding::Equal { lanes, alone }
    } else if !has_effects {
        // All runs ended, and a run with any effect would have been refuted.
        Finding::Empty
    } else {
        Finding::Nothing("nothing is observable".to_owned())
    }
}

/// Gives each word that nir reads as a boolean of 32 bits no bit or all of them: Mesa's `b2b1` looks at the low 16 only
/// (docs/semantics.md, boolean words).
fn with_booleans(mut env: Env, words: &BTreeSet<u32>) -> Env {
    for &word in words {
        let holds = hash(&[env.seed, 0x626f_6f6c, word.into()]) & 1 != 0;
        env.consts.insert(word, if holds { u32::MAX } else { 0 });
    }
    env
}

/// Returns true if a run of the nir may do anything that a comparison sees.
fn has_effects(shader: &Shader) -> bool {
    shader.entry.instrs_in_order().any(|(_, instr)| match &shader.entry.instrs[instr] {
        InstrData::Intrinsic(intrinsic) => intrinsic.op.has_side_effect(),
        _ => false,
    })
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
    let has_order = !outcome.synchronized.is_empty();
    let live = outcome.lanes & !outcome.killed & !outcome.helpers;
    let has_output = outcome.outputs.rows().iter().any(|row| live & !row.poison != 0);
    outcome.end == End::Finished && (has_output || !outcome.memory.is_empty() || outcome.killed != 0 || has_order)
}

fn refuted(difference: &Difference, env: &Env) -> Finding {
    use UndefinedReason::{
        AddressReleased, Constants, HelperLanes, LeavesCode, Overwritten, ReadBeforeResult, Reconvergence, StaysInLoop,
        Varyings, WriteBeforeResult,
    };
    let what = format!("{difference} (seed {:#x})", env.seed);
    match difference {
        Difference::Undefined {
            reason:
                AddressReleased | Constants | HelperLanes | LeavesCode | Overwritten | ReadBeforeResult | Reconvergence
                | StaysInLoop | Varyings | WriteBeforeResult,
            ..
        } => Finding::Hazard(what),
        _ => Finding::Different(what),
    }
}
