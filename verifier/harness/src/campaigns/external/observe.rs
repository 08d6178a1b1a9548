//! Runs the compiler on a program, and checks its log.

use super::command::{self, LOG, Ran, RunError};
use super::compiler::{Compiler, Sections};
use super::failure::Failure;
use crate::check::{Unknown, Verdict};
use crate::mesa::{self, Checked, RefutedPass, Settings, Sides, check_shader_until, check_shader_within};
use crate::reduce::oracle::{DifferenceKind, without_numbers};
use ir3_compiler::log_line::LogLine;
use ir3_compiler::nir::Shader;
use ir3_compiler::target::Target;
use ir3_programs::mesa::shader::{LogShader, shaders_of};
use ir3_programs::spirv::NoForm;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::panics::Panicked;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The rules by which logs are checked.
#[derive(Clone, Copy)]
pub struct LogRules<'a> {
    /// The GPU, unless the log names the generation of another one.
    pub target: Target,
    /// The engines, and the runs of a boundary that is not proved.
    pub settings: Settings<'a>,
    /// The environments in which nir and the final code alone are run; all boundaries are compared where these two
    /// differ. `None` compares all of every program.
    pub end_to_end: Option<usize>,
    /// The CPU time for all boundaries of a program that no failure is known of; `None` if there is no limit.
    pub time: Option<Duration>,
    /// Programs that the compiler refuses are failures.
    pub refusals: bool,
    /// `spirv-val`, which looks at each module before the compiler does.
    pub validator: Option<&'a Path>,
}

/// A failure, with the facts for a report.
#[derive(Clone, Debug)]
pub struct Found {
    /// The failure.
    pub failure: Failure,
    /// The message, with its numbers.
    pub message: String,
    /// The pass that is refuted, with both sections, both programs and the input.
    pub refuted: Option<RefutedPass>,
    /// The log.
    pub log: String,
}

/// The result of compiling and checking a program.
#[derive(Debug, Default)]
pub struct Observation {
    /// SPIR-V cannot express it.
    pub no_form: Option<NoForm>,
    /// The compiler refuses it, for this reason.
    pub refused: Option<String>,
    /// The caller stopped the run.
    pub stopped: bool,
    /// The verdicts on the boundaries of its log.
    pub verdicts: Vec<Verdict>,
    /// The reasons of those that are unknown, by pass.
    pub unknown: BTreeMap<String, u64>,
    /// Passes that an engine proved and another one refuted.
    pub wrong_proofs: Vec<String>,
    /// The first failure.
    pub found: Option<Found>,
}

impl Observation {
    fn failed(failure: Failure, message: String, log: String) -> Self {
        let found = Found { failure, message, refuted: None, log };
        Self { found: Some(found), ..Self::default() }
    }

    /// Counts the reason of a boundary that is unknown.
    fn count_unknown(&mut self, checked: &Checked<'_>) {
        if let Verdict::Unknown(unknown) = &checked.verdict {
            let reason = match unknown {
                Unknown::Crashed(_) | Unknown::Unsupported(_) => unknown.to_string(),
                other => other.kind().to_string(),
            };
            *self.unknown.entry(format!("{}: {}", checked.name, without_numbers(&reason))).or_default() += 1;
        }
    }

    /// A reader or an engine of ours panicked on the log.
    pub(super) fn panicked(panic: &Panicked, folder: &Path) -> Self {
        let log = std::fs::read_to_string(folder.join(LOG)).unwrap_or_default();
        let why = format!("ir3-equiv panics on it at {}", panic.place);
        Self::failed(Failure::Unreadable(without_numbers(&why)), why, log)
    }
}

/// Runs the compiler on a program, and checks its log, up to the first failure.
///
/// # Errors
/// If the compiler cannot be started, or files not be written.
pub fn observe(
    compiler: &Compiler,
    rules: &LogRules<'_>,
    shader: &Shader,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<Observation, RunError> {
    observe_by(rules, folder, &mut |sections| compiler.run(shader, folder, sections, stop))
}

/// Checks the log of a program that a function compiles into a folder, up to the first failure.
///
/// # Errors
/// Those of the function.
pub fn observe_by(
    rules: &LogRules<'_>,
    folder: &Path,
    compile: &mut dyn FnMut(Sections) -> Result<Ran, RunError>,
) -> Result<Observation, RunError> {
    let mut refuting = None;
    if let Some(runs) = rules.end_to_end {
        match compile(Sections::Ends)? {
            Ran::NoForm(no_form) => return Ok(Observation { no_form: Some(no_form), ..Observation::default() }),
            Ran::Code(0, log) => match agreement(&log, rules, folder, runs) {
                Ok(seen) => return Ok(seen),
                Err(env) => refuting = env,
            },
            // All sections give more information about a failure.
            _ => {}
        }
    }
    let ran = compile(Sections::All)?;
    if !matches!(ran, Ran::NoForm(_) | Ran::Stopped)
        && let Some(why) = rules.validator.and_then(|validator| invalid(validator, folder))
    {
        return Ok(Observation::failed(Failure::Invalid(without_numbers(&why)), why, String::new()));
    }
    Ok(match outcome(ran, folder) {
        Outcome::NoForm(no_form) => Observation { no_form: Some(no_form), ..Observation::default() },
        Outcome::Stopped => Observation { stopped: true, ..Observation::default() },
        Outcome::Refused(why, log) if rules.refusals => {
            Observation::failed(Failure::Refused(without_numbers(&why)), why, log)
        }
        Outcome::Refused(why, _) => Observation { refused: Some(without_numbers(&why)), ..Observation::default() },
        Outcome::Failed(failure, log) => Observation::failed(failure.clone(), failure.to_string(), log),
        Outcome::Log(log) => check(log, rules, folder, refuting.as_deref()),
    })
}

/// Returns true if the compiler fails in a given way on a program: with runs only, and no provers.
pub fn fails_so(
    compiler: &Compiler,
    rules: &LogRules<'_>,
    shader: &Shader,
    wanted: &Found,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<bool, RunError> {
    let ran = compiler.run(shader, folder, Sections::All, stop)?;
    if let Failure::Invalid(why) = &wanted.failure {
        let own = rules.validator.and_then(|validator| invalid(validator, folder));
        return Ok(!matches!(ran, Ran::NoForm(_)) && own.is_some_and(|own| without_numbers(&own) == *why));
    }
    Ok(match outcome(ran, folder) {
        Outcome::NoForm(_) | Outcome::Stopped => false,
        Outcome::Refused(why, _) => wanted.failure == Failure::Refused(without_numbers(&why)),
        Outcome::Failed(failure, _) => failure == wanted.failure,
        Outcome::Log(log) => {
            let path = folder.join(LOG);
            let shaders = shaders_of(&path, &log);
            match (&wanted.failure, &wanted.refuted) {
                (Failure::Refuted { pass, difference }, Some(RefutedPass { refutation, .. })) => shaders
                    .iter()
                    .find_map(|shader| {
                        let Settings { seed, runs, .. } = rules.settings;
                        let (sides, _) = Sides::of(&path, shader, &target(rules, shader), seed);
                        let checked = sides.first_refutation(&refutation.env, runs)?;
                        Some((checked.name, checked.verdict.into_refutation()?))
                    })
                    .is_some_and(|(name, refutation)| {
                        name == *pass && DifferenceKind::of(&refutation.difference) == *difference
                    }),
                (Failure::Unreadable(why), _) => {
                    let of_shader = |shader: &LogShader| {
                        unread(shader, &mesa::recover::recover(&path, shader, &target(rules, shader)), &path)
                    };
                    let own = match &shaders[..] {
                        [] => Some(NO_SHADER.to_owned()),
                        some => some.iter().find_map(of_shader),
                    };
                    own.is_some_and(|own| without_numbers(&own) == *why)
                }
                _ => false,
            }
        }
    })
}

const NO_SHADER: &str = "it has no shader with a pass and final code";

/// The end of a run, in the form in which failures are reported.
enum Outcome {
    NoForm(NoForm),
    Stopped,
    Refused(String, String),
    Failed(Failure, String),
    Log(String),
}

fn outcome(ran: Ran, folder: &Path) -> Outcome {
    let crashed = |end: String, log: String| {
        let assertion = assertion(&log);
        Outcome::Failed(Failure::Crashed { end, assertion }, log)
    };
    match ran {
        Ran::NoForm(no_form) => Outcome::NoForm(no_form),
        Ran::Stopped => Outcome::Stopped,
        Ran::TimedOut(log) => Outcome::Failed(Failure::Hung, log),
        Ran::Flooded(log) => Outcome::Failed(Failure::Flooded, log),
        Ran::Crashed(end, log) => crashed(end, log),
        Ran::Code(0, log) => Outcome::Log(log),
        Ran::Code(code @ 1..100, log) => {
            let last = LogLine::of(command::last_line(&log)).text.into_owned();
            // The folder has the number of this process.
            let last = last.replace(&format!("{}/", folder.display()), "");
            let why = if last.is_empty() { format!("exit code {code}") } else { last };
            Outcome::Refused(why, log)
        }
        Ran::Code(code, log) => crashed(format!("exit code {code}"), log),
    }
}

/// The assertion that failed, as the C library prints it, the error of Mesa's validator of ir3, or the place of a
/// panic.
fn assertion(log: &str) -> Option<String> {
    log.lines().rev().find_map(|line| {
        if let Some(at) = line.find("validation fail at ") {
            return Some(line[at..].trim().to_owned());
        }
        if line.contains(": Assertion `") {
            // The line begins with the name of the program.
            return Some(line.split_once(": ").map_or(line, |(_, rest)| rest).trim().to_owned());
        }
        let (_, place) = line.split_once(" panicked at ")?;
        Some(format!("panic at {}", place.trim_end_matches(':')))
    })
}

/// The complaint of `spirv-val` about the module of a folder, if it has one.
fn invalid(validator: &Path, folder: &Path) -> Option<String> {
    fault(validator, &folder.join(command::MODULE))
}

/// The fault of a module by `spirv-val`.
pub fn fault(validator: &Path, module: &Path) -> Option<String> {
    let ran =
        Command::new(validator).args(["--target-env", "vulkan1.2"]).arg(module).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&ran.stderr) + String::from_utf8_lossy(&ran.stdout);
    let first = || text.lines().find(|line| !line.is_empty()).unwrap_or("no reason").to_owned();
    (!ran.status.success()).then(first)
}

fn target(rules: &LogRules<'_>, shader: &LogShader) -> Target {
    match shader.generation {
        Some(generation) if generation != rules.target.generation => Target::of_generation(generation),
        _ => rules.target,
    }
}

/// The first part of a shader that cannot be read, without the path of the log: an incomplete part is missing for later
/// stages.
fn unread(shader: &LogShader, recovered: &mesa::recover::Recovered, path: &Path) -> Option<String> {
    let parts = recovered.passes.iter().map(|program| program.as_ref().err()).chain([recovered.code.as_ref().err()]);
    let first = recovered.nir.as_ref().err().into_iter().chain(parts.flatten()).next();
    let broken = shader.broken.first().map(|(_, error)| error.to_string());
    let why = broken.as_ref().or(first).or(recovered.problems.first())?;
    let path = format!("{}:", path.display());
    // Line and column follow the path.
    let why = why
        .strip_prefix(&path)
        .map_or(&**why, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':'));
    Some(why.trim().to_owned())
}

/// The verdicts on nir and the final code of all shaders of a log.
///
/// # Errors
/// If one is refuted, in this environment; if one has not both, or the module is not valid.
fn agreement(log: &str, rules: &LogRules<'_>, folder: &Path, runs: usize) -> Result<Observation, Option<Box<Env>>> {
    if rules.validator.is_some_and(|validator| invalid(validator, folder).is_some()) {
        return Err(None);
    }
    let path = folder.join(LOG);
    let mut own = Observation::default();
    let shaders = shaders_of(&path, log);
    for shader in &shaders {
        let checked = mesa::run_whole(&path, shader, &target(rules, shader), &rules.settings, runs).ok_or(None)?;
        if checked.verdict.is_refuted() {
            return Err(checked.verdict.into_refutation().map(|refutation| Box::new(refutation.env)));
        }
        own.count_unknown(&checked);
        own.verdicts.push(checked.verdict);
    }
    if shaders.is_empty() { Err(None) } else { Ok(own) }
}

/// Checks the boundaries of a log: first in the environment that refutes nir and the final code, if there is one.
fn check(log: String, rules: &LogRules<'_>, folder: &Path, refuting: Option<&Env>) -> Observation {
    let path = folder.join(LOG);
    let mut own = Observation::default();
    let shaders = shaders_of(&path, &log);
    let mut refuted: Option<Found> = None;
    let mut unreadable = None;
    for shader in &shaders {
        let target = target(rules, shader);
        let mut boundaries = 0;
        let mut each = |checked: Checked<'_>| {
            boundaries += 1;
            if checked.wrong_proof.is_some() {
                own.wrong_proofs.push(checked.name.clone());
            }
            own.count_unknown(&checked);
            let flow = match &checked.verdict {
                Verdict::Refuted(refutation) => {
                    let difference = DifferenceKind::of(&refutation.difference);
                    refuted = Some(Found {
                        failure: Failure::Refuted { pass: checked.name.clone(), difference },
                        message: refutation.difference.to_string(),
                        refuted: checked.refuted(&target),
                        log: String::new(),
                    });
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            };
            own.verdicts.push(checked.verdict);
            flow
        };
        if let Some(env) = refuting {
            let Settings { seed, runs, .. } = rules.settings;
            let (sides, _) = Sides::of(&path, shader, &target, seed);
            if let Some(checked) = sides.first_refutation(env, runs) {
                let _ = each(checked);
                break;
            }
        }
        let recovered = match rules.time {
            Some(time) => check_shader_within(&path, shader, &target, &rules.settings, time, &mut each),
            None => check_shader_until(&path, shader, &target, &rules.settings, &mut each),
        };
        if refuted.is_some() {
            break;
        }
        if unreadable.is_none() {
            unreadable = unread(shader, &recovered, &path).or((boundaries == 0).then(|| NO_SHADER.to_owned()));
        }
    }
    if shaders.is_empty() {
        unreadable = Some(NO_SHADER.to_owned());
    }
    let found = refuted.or_else(|| {
        let message = unreadable?;
        let failure = Failure::Unreadable(without_numbers(&message));
        Some(Found { failure, message, refuted: None, log: String::new() })
    });
    own.found = found.map(|found| Found { log, ..found });
    own
}

/// The reasons with their counts: one entry for each, and one for all others once there are many.
pub(super) fn count(reasons: &mut BTreeMap<String, u64>, reason: Cow<'_, str>, count: u64) {
    const MOST: usize = 200;
    let key =
        if reasons.len() < MOST || reasons.contains_key(&*reason) { reason.into_owned() } else { "others".to_owned() };
    *reasons.entry(key).or_default() += count;
}
