//! `reduce --test CMD` and `reduce BEFORE AFTER`: reduction of programs in nir or ir3, with a command of the user or
//! the verdicts on two programs as the test; and `reduce` of a program for Gen7, with the refuted stage as the test.
//!
//! The smallest program so far is written after each step, so that ending the process loses no progress.

use crate::engines::TIMEOUT;
use crate::exit::{self, Unwritten};
use crate::reduce::{Reduce, Report, bar, print, show};
use crate::run::read_env;
use crate::temporary::Temporary;
use crate::{Exit, Failure, Format, engines, interrupt, output};
use indicatif::ProgressBar;
use ir3_compiler::i965::vec4::Program;
use ir3_compiler::target::{GEN7, GEN7_SCALAR, Target};
use ir3_harness::check::{EngineKind, Policy, TextPair, Verdict, verify_vec4};
use ir3_harness::reduce::command::{CommandError, TestCommand, Tested};
use ir3_harness::reduce::pair::{self, PairOracle};
use ir3_harness::reduce::{self, Reduced, Side, Subject, Watch};
use ir3_programs::input;
use ir3_programs::input::Named;
use ir3_programs::seeds::{ProgramEnvs, env_seeds};
use ir3_report::pair::signature;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::vec4::lift;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Reads the only program of a file.
fn one(path: &Path, gpu: Option<Target>) -> Result<Named, Failure> {
    let mut programs = input::load(path, gpu)?;
    match (programs.pop(), programs.len()) {
        (Some(program), 0) => Ok(program),
        (_, more) => Err(format!("{}: found {} programs, expected one", path.display(), more + 1).into()),
    }
}

fn instructions(side: &Side) -> usize {
    side.snapshot().instruction_count()
}

/// The default output: PATH with `.reduced` and the extension at its end.
fn default_output(path: &Path, extension: &str) -> PathBuf {
    let stem = path.file_stem().map_or_else(|| "program".into(), |stem| stem.to_string_lossy());
    path.with_file_name(format!("{stem}.reduced{extension}"))
}

/// Replaces a file by a text atomically: readers see the old or the new one.
fn write(path: &Path, text: &str) -> Result<(), Unwritten> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.partial", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    written.map_err(|cause| {
        // A failed write may leave a temporary file, which is harmless.
        let _ = fs::remove_file(&beside);
        Unwritten::new(path, cause)
    })
}

/// The counts of command runs that do not decide if a program is interesting.
#[derive(Default)]
struct Odd {
    killed: AtomicU64,
    timed_out: AtomicU64,
    failure: Mutex<Option<CommandError>>,
}

impl Odd {
    /// Counts a run of the command. Returns true if the program is interesting.
    fn count(&self, result: Result<Tested, CommandError>) -> bool {
        match result {
            Ok(Tested::Interesting) => return true,
            Ok(Tested::Killed(_)) => drop(self.killed.fetch_add(1, Ordering::Relaxed)),
            Ok(Tested::TimedOut) => drop(self.timed_out.fetch_add(1, Ordering::Relaxed)),
            Ok(Tested::Boring(_) | Tested::Stopped) => {}
            Err(error) => drop(self.failure().get_or_insert(error)),
        }
        false
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<CommandError>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn print(&self) {
        for (count, what) in [(&self.killed, "killed by a signal"), (&self.timed_out, "too slow")] {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                output::note(&format!("the test was {what} {count} times: these programs count as not interesting"));
            }
        }
    }
}

/// Reduces a program while the command of `--test` finds it interesting (exit code 0).
///
/// # Errors
/// If the original program is not interesting, the command cannot be run, or a file cannot be read or written.
pub fn test(options: &Reduce, program: &Path, format: Format) -> Result<Exit, Failure> {
    let start = Instant::now();
    let path = &options.path;
    let named = one(path, options.gpu)?;
    let command = TestCommand {
        program: program.to_owned(),
        arguments: options.test.test_arg.clone(),
        timeout: options.test.test_timeout,
    };
    let side = Side::new(named.program, named.target);
    let target = options.output.clone().unwrap_or_else(|| default_output(path, &format!(".{}", side.extension())));
    exit::try_file(&target)?;
    let stop = interrupt::flag();
    let folder = Temporary::new("reduce")?;
    let file = |name: &str| folder.path().join(format!("{name}.{}", side.extension()));
    let first = command.run_on(&side.text(), &file("program"), stop)?;
    if first == Tested::Stopped {
        return Ok(Exit::Interrupted);
    }
    if first != Tested::Interesting {
        let shown = command_line(&command);
        return Err(format!(
            "{}: found a program that is not interesting, expected one for which `{shown} FILE` ends with exit code 0: {first}",
            path.display()
        )
        .into());
    }
    let odd = Odd::default();
    let jobs = options.jobs.count();
    let files: Vec<PathBuf> = (0..jobs).map(|number| file(&format!("candidate-{number}"))).collect();
    let mut tests: Vec<_> = files
        .iter()
        .map(|file| {
            let (command, odd) = (&command, &odd);
            move |side: &Side| odd.count(command.run_on(&side.text(), file, stop))
        })
        .collect();
    let output = Output { target: &target, bar: bar()?, failure: None };
    let (reduced, output) = output.reduce(
        |watch| reduce::run_watched(&side, &mut tests, &reduce::Options::default(), watch),
        |side: &Side, target: &Path| write(target, &side.text()),
        || odd.failure().is_none(),
    )?;
    output.bar.finish_and_clear();
    if let Some(error) = odd.failure().take() {
        return Err(error.into());
    }
    odd.print();
    if !reduced.reproduced {
        let why = "it is not interesting any more when it is run again";
        return Err(format!("{}: {why}", path.display()).into());
    }
    let report = Report {
        program: path.display().to_string(),
        gpu: named.target.name,
        failure: format!("interesting: {}", command_line(&command)),
        instructions_before: instructions(&side),
        instructions: instructions(&reduced.program),
        candidates: reduced.progress.candidates,
        steps: reduced.progress.taken,
        seconds: start.elapsed().as_secs_f64(),
        minimal: reduced.minimal,
        output: target.display().to_string(),
        plant: None,
        see: format!("{} {}", command_line(&command), target.display()),
        go_on: format!("reduce {} --test {}", target.display(), program.display()),
    };
    print(format, &report);
    Ok(Exit::Unmet.when(!report.minimal))
}

/// Reduces a vec4 or scalar program while the passes on it are refuted at the same stage.
///
/// # Errors
/// If nothing is refuted, or a file cannot be read or written.
pub fn gen7(options: &Reduce, format: Format) -> Result<Exit, Failure> {
    let start = Instant::now();
    let path = &options.path;
    let named = one(path, options.gpu)?;
    let Snapshot::Vec4(program) = &named.program else {
        return Err(format!("{}: found a program in {}, expected vec4", named.name, named.program.language()).into());
    };
    let target = if program.mode.is_scalar() { GEN7_SCALAR } else { GEN7 };
    let plant = options.planted.on(&target)?;
    let engines = options.engines.engines(&[EngineKind::Interpreter], TIMEOUT)?;
    let compiler = options.compiler.options();
    let envs = options.fuel.of(match (&options.env, options.env_seed) {
        (Some(path), _) => vec![read_env(path)?],
        (None, Some(seed)) => vec![Env::from_seed(seed)],
        (None, None) => ProgramEnvs::new(&lift(program)?, options.seed).first(options.runs.unwrap_or(4)),
    });
    let refuted = |program: &Program| {
        let boundaries = verify_vec4(program, &compiler, plant, &Policy::new(&engines), envs.clone()).boundaries;
        boundaries.into_iter().find(|row| matches!(row.verdict, Verdict::Refuted(_)))
    };
    let Some(row) = refuted(program) else {
        let tried = envs.len();
        return Err(format!("{}: found no failure in {tried} environments, expected one", path.display()).into());
    };
    let stage = row.stage;
    let fails = |side: &Side| match side.snapshot() {
        Snapshot::Vec4(program) => refuted(&program).is_some_and(|row| row.stage == stage),
        Snapshot::Nir(_) | Snapshot::Ir3(_) => false,
    };
    let side = Side::new(named.program, named.target);
    let output = options.output.clone().unwrap_or_else(|| default_output(path, &format!(".{}", side.extension())));
    exit::try_file(&output)?;
    let mut tests = vec![&fails; options.jobs.count()];
    let target = Output { target: &output, bar: bar()?, failure: None };
    let (reduced, target) = target.reduce(
        |watch| reduce::run_watched(&side, &mut tests, &reduce::Options::default(), watch),
        |side: &Side, target: &Path| write(target, &side.text()),
        || true,
    )?;
    target.bar.finish_and_clear();
    let planted = plant.map_or_else(String::new, |plant| format!(" --plant {}", plant.name));
    let report = Report {
        program: path.display().to_string(),
        gpu: named.target.name,
        failure: format!("stage {stage}: {}", row.verdict),
        instructions_before: instructions(&side),
        instructions: instructions(&reduced.program),
        candidates: reduced.progress.candidates,
        steps: reduced.progress.taken,
        seconds: start.elapsed().as_secs_f64(),
        minimal: reduced.minimal,
        output: output.display().to_string(),
        plant: plant.map(|plant| plant.name),
        see: format!("ir3-equiv verify {}{planted}", output.display()),
        go_on: format!("reduce {}{planted}", output.display()),
    };
    print(format, &report);
    Ok(Exit::Unmet.when(!report.minimal))
}

fn command_line(command: &TestCommand) -> String {
    let arguments = command.arguments.iter().map(|argument: &OsString| argument.to_string_lossy().into_owned());
    let words = [command.program.display().to_string()].into_iter().chain(arguments);
    words.collect::<Vec<_>>().join(" ")
}

/// Reduces two programs while the verdicts on them stay the same.
///
/// # Errors
/// If the programs pass, or a file cannot be read or written.
pub fn pair(options: &Reduce, after: &Path, format: Format) -> Result<Exit, Failure> {
    let start = Instant::now();
    let path = &options.path;
    let (before, after) = (one(path, options.gpu)?, one(after, options.gpu)?);
    let engines = options.engines.engines(&EngineKind::ALL, engines::PROOF_TIME)?;
    let envs = match &options.env {
        Some(path) => vec![read_env(path)?],
        None => env_seeds(options.seed, options.runs.unwrap_or(16)).into_iter().map(Env::from_seed).collect(),
    };
    let envs = options.fuel.of(envs);
    let target = options.output.clone().unwrap_or_else(|| default_output(path, ""));
    exit::try_folder(&target)?;
    let machine = before.target;
    let (before_name, after_name) = (before.name, after.name);
    let TextPair { before, after, .. } = TextPair::new(before.program, after.program, &machine);
    let oracle = PairOracle::new(engines, machine, envs, [&before, &after], &signature);
    let verdict = oracle.verdict();
    if verdict.is_pass() {
        let names = format!("{before_name} and {after_name}");
        return Err(format!("{names}: found {verdict}, expected two programs that do not pass").into());
    }
    let jobs = options.jobs.count();
    let count = |pair: &pair::Pair| instructions(&pair.before) + instructions(&pair.after);
    let whole = pair::Pair::new(before, after, &oracle);
    let output = Output { target: &target, bar: bar()?, failure: None };
    let files = |pair: &pair::Pair, target: &Path| {
        let name = |side: &str, of: &Side| target.join(format!("{side}.{}", of.extension()));
        (name("before", &pair.before), name("after", &pair.after))
    };
    let write_pair = |pair: &pair::Pair, target: &Path| {
        fs::create_dir_all(target).map_err(|cause| Unwritten::new(target, cause))?;
        let (before, after) = files(pair, target);
        write(&before, &pair.before.text())?;
        write(&after, &pair.after.text())
    };
    let (reduced, output) =
        output.reduce(|watch| oracle.reduce(&whole, jobs, &reduce::Options::default(), watch), write_pair, || true)?;
    output.bar.finish_and_clear();
    let (before_file, after_file) = files(&reduced.program, &target);
    let both = format!("{} {}", before_file.display(), after_file.display());
    let report = Report {
        program: format!("{before_name} → {after_name}"),
        gpu: machine.name,
        failure: match oracle.signature() {
            Some([before, after, ..]) => format!("{verdict}, first at `{before}` and `{after}`"),
            _ => verdict.to_string(),
        },
        instructions_before: count(&whole),
        instructions: count(&reduced.program),
        candidates: reduced.progress.candidates,
        steps: reduced.progress.taken,
        seconds: start.elapsed().as_secs_f64(),
        minimal: reduced.minimal,
        output: target.display().to_string(),
        plant: None,
        see: format!("ir3-equiv check --gpu {} {both}", machine.name),
        go_on: format!("reduce --gpu {} {both}", machine.name),
    };
    print(format, &report);
    Ok(Exit::Unmet.when(!report.minimal))
}

/// The destination of the result.
struct Output<'a> {
    target: &'a Path,
    bar: ProgressBar,
    failure: Option<Unwritten>,
}

impl Output<'_> {
    /// Runs a reduction, and writes its result at its end, or when the process is interrupted.
    fn reduce<S: Subject>(
        mut self,
        run: impl FnOnce(&mut Watch<'_, S>) -> Result<Reduced<S>, reduce::CheckpointError>,
        write: impl Fn(&S, &Path) -> Result<(), Unwritten>,
        goes_on: impl Fn() -> bool,
    ) -> Result<(Reduced<S>, Self), Failure> {
        let mut taken = 0;
        let reduced = run(&mut |progress, reached| {
            show(&self.bar, progress);
            if progress.taken > taken {
                taken = progress.taken;
                self.failure = write(reached, self.target).err();
            }
            self.failure.is_none() && goes_on() && !interrupt::is_set()
        })?;
        if let Some(failure) = self.failure.take() {
            return Err(failure.into());
        }
        write(&reduced.program, self.target)?;
        Ok((reduced, self))
    }
}
