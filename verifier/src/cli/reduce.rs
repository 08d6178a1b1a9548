//! `reduce`: writes a failure as a bundle and reduces it.

use crate::engines::{EngineArgs, TIMEOUT};
use crate::exit;
use crate::run::read_env;
use crate::values;
use crate::{Compiler, Exit, Failure, Format, Fuel, Jobs, Planted, interrupt, output, reduce_texts};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{Allocator, RegisterLimit};
use ir3_compiler::target::Target;
use ir3_harness::case::{Case, ProgramOrigin};
use ir3_harness::check::{Checker, EngineKind, Policy, plant_of};
use ir3_harness::fuzz_targets::ProgramInput;
use ir3_harness::reduce::Progress;
use ir3_programs::input;
use ir3_programs::mesa::input::{InputError, InputKind};
use ir3_programs::planted_bugs::PlantedBug;
use ir3_programs::seeds::ProgramEnvs;
use ir3_report::bundle;
use ir3_report::bundle::Reduction;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use serde::Serialize;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Options of `reduce`.
#[derive(Args)]
pub struct Reduce {
    /// A bundle, which is reduced in place; or a program (.nir, a Mesa log with one final-form nir) or the input of a
    /// fuzz target, of which a bundle is made first; or a program for Gen7 (.vec4); with `--test`, any program.
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Another program, with which the first is compared as `check` does: both are reduced together while the verdicts
    /// stay the same.
    #[arg(value_name = "AFTER", conflicts_with_all = ["test", "env_seed", "max_registers", "disable", "skip", "allocator", "round_robin", "plant"])]
    pub after: Option<PathBuf>,
    #[command(flatten)]
    pub test: TestArgs,
    /// The GPU to compile for, unless PATH is a bundle. Default: that of the fuzz target's input or of the log, else
    /// a660.
    #[arg(long, value_name = "GPU", value_parser = values::gpu())]
    pub gpu: Option<Target>,
    /// The environment in which the program fails, as JSON, unless PATH is a bundle.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["env_seed", "seed", "runs"])]
    pub env: Option<PathBuf>,
    /// The seed of the environment in which the program fails.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seed", "runs"])]
    pub env_seed: Option<u64>,
    /// The number of random environments to try if none is given. Default: 4, or 16 for two programs.
    #[arg(long, value_name = "N", value_parser = values::count::<u32>())]
    pub runs: Option<u32>,
    /// Seed of those environments.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub fuel: Fuel,
    #[command(flatten)]
    pub engines: EngineArgs,
    #[command(flatten)]
    pub compiler: Compiler,
    #[command(flatten)]
    pub jobs: Jobs,
    /// The folder of the bundle; default: PATH with `.bundle` at its end. With `--test` the file for the reduced
    /// program, and for two programs the folder; default: PATH with `.reduced` at its end.
    #[arg(long, short, value_name = "PATH")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub planted: Planted,
}

/// The options of a test by a command.
#[derive(Args)]
pub struct TestArgs {
    /// A command that is run with the path of a smaller program as its last argument, in several threads. Exit code 0
    /// means that the program is still interesting, as for llvm-reduce; PATH itself must be interesting.
    #[arg(long = "test", value_name = "CMD", conflicts_with_all = ["env", "env_seed", "kinds", "max_registers", "disable", "skip", "allocator", "round_robin", "plant"])]
    pub test: Option<PathBuf>,
    /// An argument of that command, before the path. May be repeated.
    #[arg(long, value_name = "ARG", requires = "test", allow_hyphen_values = true)]
    pub test_arg: Vec<OsString>,
    /// Kill the command after this time (`500ms`, `10s`); the program then counts as not interesting.
    #[arg(long, value_name = "T", requires = "test", value_parser = values::time)]
    pub test_timeout: Option<Duration>,
}

/// The result, as JSON.
#[derive(Serialize)]
pub struct Report {
    pub program: String,
    pub gpu: &'static str,
    pub failure: String,
    pub instructions_before: usize,
    pub instructions: usize,
    pub candidates: u64,
    pub steps: u64,
    pub seconds: f64,
    /// True if no known reduction step makes it smaller.
    pub minimal: bool,
    /// The bundle, file or folder.
    pub output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plant: Option<&'static str>,
    /// The command that reproduces it, and, if it is not minimal, the one that continues the reduction.
    #[serde(skip)]
    pub see: String,
    #[serde(skip)]
    pub go_on: String,
}

/// Creates the progress bar of a reduction.
pub fn bar() -> Result<ProgressBar, Failure> {
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {elapsed}, {msg}")?);
    bar.enable_steady_tick(Duration::from_millis(200));
    Ok(bar)
}

/// Shows the progress of a reduction.
pub fn show(bar: &ProgressBar, Progress { size, candidates, kind, .. }: &Progress) {
    bar.set_message(format!("{} instructions, {candidates} candidates, {kind}", size.instructions));
}

impl Reduce {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        if let Some(after) = &self.after {
            return reduce_texts::pair(self, after, format);
        }
        if let Some(program) = &self.test.test {
            return reduce_texts::test(self, program, format);
        }
        if InputKind::of_path(&self.path) == Some(InputKind::Vec4) {
            return reduce_texts::gen7(self, format);
        }
        let interrupted = interrupt::flag();
        let start = Instant::now();
        let folder = self.bundle()?;
        let jobs = self.jobs.count();
        let bar = bar()?;
        let mut progress = |progress: &Progress| {
            show(&bar, progress);
            !interrupted.load(Ordering::Relaxed)
        };
        let reduction = bundle::reduce(&folder, jobs, &mut progress);
        bar.finish_and_clear();
        let Reduction { case, before, progress } = reduction?;
        let report = Report {
            program: self.path.display().to_string(),
            gpu: case.target.name,
            failure: case.symptom.failure.to_string(),
            instructions_before: before,
            instructions: case.program.instruction_count(),
            candidates: progress.candidates,
            steps: progress.taken,
            seconds: start.elapsed().as_secs_f64(),
            minimal: case.minimal,
            output: folder.display().to_string(),
            see: format!("ir3-equiv verify {}", folder.display()),
            go_on: format!("reduce {}", folder.display()),
            plant: case.plant.map(|plant| plant.name),
        };
        print(format, &report);
        Ok(if case.minimal { Exit::Passed } else { Exit::Unmet })
    }

    /// The environment in which a selected prover refutes a program. The reduction itself uses runs in this
    /// environment, not the prover.
    fn refuting_input(&self, shader: &Shader, target: &Target) -> Result<Option<Env>, Failure> {
        let mut engines = self.engines.engines(&[EngineKind::Interpreter], TIMEOUT)?;
        engines.kinds.retain(|kind| kind.proves());
        if !engines.has_prover() {
            return Ok(None);
        }
        let mut change = self.planted.plant.map(PlantedBug::change);
        let mut checker = Checker::new(*target, self.compiler.options());
        let verification = checker.verify(shader, plant_of(&mut change), &Policy::new(&engines), &[]);
        Ok(verification.refutation().map(|refutation| refutation.env.clone()))
    }

    /// The folder of the bundle: an existing one, or a new one.
    fn bundle(&self) -> Result<PathBuf, Failure> {
        if self.path.is_dir() {
            let given = [
                ("--gpu", self.gpu.is_some()),
                ("--env", self.env.is_some()),
                ("--env-seed", self.env_seed.is_some()),
                ("--fuel", self.fuel.given().is_some()),
                ("--max-registers", self.compiler.max_registers != RegisterLimit::default()),
                ("--disable", !self.compiler.stages.disable.is_empty()),
                ("--skip", !self.compiler.stages.skip.is_empty()),
                ("--allocator", self.compiler.stages.allocator() != Allocator::default()),
                ("--output", self.output.is_some()),
                ("--engine", self.engines.are_given()),
                ("--plant", self.planted.plant.is_some()),
            ];
            if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
                return Err(format!("found {option} with a bundle, expected none: a bundle has its own").into());
            }
            return Ok(self.path.clone());
        }
        let path = &self.path;
        let (shader, named, origin, input) = if is_artifact(path)? {
            let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let input = ProgramInput::from_bytes(&bytes);
            (input.shader.clone(), input.target, ProgramOrigin::Artifact(path.display().to_string()), Some(input))
        } else {
            let (shader, target) = program(path, self.gpu)?;
            (shader, target, ProgramOrigin::File(path.display().to_string()), None)
        };
        let target = self.gpu.unwrap_or(named);
        let plant = self.planted.on(&target)?;
        let mut envs = match (&self.env, self.env_seed, &input) {
            (Some(path), ..) => vec![read_env(path)?],
            (None, Some(seed), _) => vec![Env::from_seed(seed)],
            (None, None, Some(input)) => vec![input.env()],
            (None, None, None) => ProgramEnvs::new(&shader, self.seed).first(self.runs.unwrap_or(4)),
        };
        envs.extend(self.refuting_input(&shader, &target)?);
        let envs = self.fuel.of(envs);
        let folder = self.output.clone().unwrap_or_else(|| {
            let stem = path.file_stem().map_or_else(|| "program".into(), |stem| stem.to_string_lossy());
            path.with_file_name(format!("{stem}.bundle"))
        });
        exit::try_folder(&folder)?;
        let case = Case::find(shader, target, self.compiler.options(), plant, &envs, origin).ok_or_else(|| {
            let (path, tried) = (path.display(), envs.len());
            let plural = if tried == 1 { "" } else { "s" };
            format!("{path}: found no failure on {} in {tried} environment{plural}, expected one", target.name)
        })?;
        bundle::write_new(&folder, &case)?;
        Ok(folder)
    }
}

/// Reads the one nir program of a file.
fn program(path: &Path, gpu: Option<Target>) -> Result<(Shader, Target), Failure> {
    let mut programs = input::load(path, gpu)?;
    match (programs.pop().map(|named| (named.program, named.target)), programs.len()) {
        (Some((Snapshot::Nir(shader), target)), 0) => Ok((*shader, target)),
        (Some((other, _)), _) if other.as_nir().is_none() => {
            Err(format!("{}: found a program in {}, expected nir", path.display(), other.language()).into())
        }
        (_, more) => Err(format!("{}: found {} programs, expected one", path.display(), more + 1).into()),
    }
}

/// Returns true if a file is the input of a fuzz target: neither its name nor its text is that of a program.
fn is_artifact(path: &Path) -> Result<bool, Failure> {
    if InputKind::of_path(path).is_some() {
        return Ok(false);
    }
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(InputError::Missing { path: path.to_owned() }.into());
        }
        Err(error) => return Err(format!("{}: {error}", path.display()).into()),
    };
    Ok(std::str::from_utf8(&bytes).ok().and_then(InputKind::of_text).is_none())
}

/// Prints the result.
pub fn print(format: Format, report: &Report) {
    if format == Format::Json {
        return output::json("reduction", report);
    }
    let Report { failure, instructions_before, instructions, candidates, steps, seconds, output, .. } = report;
    output::line(failure);
    output::line(&format!(
        "{instructions_before} instructions to {instructions}; {candidates} candidates, {steps} steps, {seconds:.1} s"
    ));
    if !report.minimal {
        output::line(&format!("not at its end; to go on: ir3-equiv {}", report.go_on));
    }
    output::line(&format!("  written to {output}"));
    output::line(&format!("  to see it again: {}", report.see));
}
