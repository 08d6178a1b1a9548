//! `reduce`: a program that fails, as small as it gets.

use crate::run::read_env;
use crate::{Compiler, Exit, Failure, Format, Planted, interrupt_flag, output, parse_gpu};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use ir3_compiler::nir::{Shader, text};
use ir3_compiler::target::Target;
use ir3_verifier::check::Snapshot;
use ir3_verifier::check::campaign::env_seeds;
use ir3_verifier::generate::{self, Features};
use ir3_verifier::mesa::input::{InputError, InputKind};
use ir3_verifier::plants::Plant;
use ir3_verifier::reduce::whole::{self, Whole};
use ir3_verifier::reduce::{self, Oracle, Progress};
use ir3_verifier::report;
use ir3_verifier::semantics::env::Env;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Options of `reduce`.
#[derive(Args)]
pub struct Reduce {
    /// A program (.nir, or a Mesa log with one final-form nir), the folder of a refutation, or the bytes that a fuzz
    /// target failed on.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The GPU to compile for; that of the folder, or a660, unless given.
    #[arg(long, value_name = "GPU", value_parser = parse_gpu)]
    gpu: Option<Target>,
    /// The environment in which the program fails, as JSON; that of the folder unless given.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["env_seed", "seed", "runs"])]
    env: Option<PathBuf>,
    /// The seed of the environment in which it fails.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seed", "runs"])]
    env_seed: Option<u64>,
    /// Environments that are tried where none is given.
    #[arg(long, value_name = "N", default_value_t = 4)]
    runs: u32,
    /// Seed of those environments.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    compiler: Compiler,
    /// Threads; one for each processor unless given. The result does not depend on it.
    #[arg(long, value_name = "J")]
    jobs: Option<usize>,
    /// The file for the result; its environment is put beside it. `reduced.nir` in the folder, or PATH with
    /// `.reduced.nir` at its end, unless given.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    planted: Planted,
}

/// What there is to reduce.
struct Case {
    shader: Shader,
    target: Target,
    envs: Vec<Env>,
    output: PathBuf,
}

/// The result, as JSON.
#[derive(Serialize)]
struct Report<'a> {
    program: String,
    gpu: &'a str,
    failure: String,
    instructions_before: usize,
    instructions: usize,
    candidates: u64,
    steps: u64,
    seconds: f64,
    /// Whether no step that is known makes it smaller.
    minimal: bool,
    output: String,
    env: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plant: Option<&'static str>,
}

impl Reduce {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let interrupted = interrupt_flag()?;
        let start = Instant::now();
        let case = self.case()?;
        let plant = self.planted.plant.map(Plant::shared);
        let Some(mut oracle) = Oracle::find(case.target, self.compiler.options(), &case.shader, &case.envs, plant)
        else {
            let (path, gpu) = (self.path.display(), case.target.name);
            let tried = case.envs.len();
            return Err(format!("{path}: found no failure on {gpu} in {tried} environments, expected one").into());
        };
        let jobs = self.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1);
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {elapsed}, {msg}")?);
        bar.enable_steady_tick(Duration::from_millis(200));
        let checkpoint = beside(&case.output, "checkpoint.json");
        let options = reduce::Options { checkpoint: Some(checkpoint.clone()), ..reduce::Options::default() };
        let mut progress = |progress: &Progress| {
            let Progress { size, candidates, kind, .. } = progress;
            bar.set_message(format!("{} instructions, {candidates} candidates, {kind}", size.instructions));
            !interrupted.load(Ordering::Relaxed)
        };
        let Whole { reduced, env } = whole::run(&case.shader, &mut oracle, jobs, &options, &mut progress)?;
        bar.finish_and_clear();
        replace(&case.output, &text::write(&reduced.shader))?;
        let env_path = env.as_ref().map(|_| beside(&case.output, "env.json"));
        if let (Some(path), Some(env)) = (&env_path, &env) {
            replace(path, &env.to_json())?;
        }
        if reduced.minimal {
            // There is none where no step was taken.
            let _ = fs::remove_file(&checkpoint);
        }
        let report = Report {
            program: self.path.display().to_string(),
            gpu: case.target.name,
            failure: oracle.failure().to_string(),
            instructions_before: case.shader.instruction_count(),
            instructions: reduced.shader.instruction_count(),
            candidates: reduced.progress.candidates,
            steps: reduced.progress.taken,
            seconds: start.elapsed().as_secs_f64(),
            minimal: reduced.minimal,
            output: case.output.display().to_string(),
            env: env_path.map(|path| path.display().to_string()),
            plant: self.planted.plant.map(|plant| plant.name),
        };
        print(format, &report);
        Ok(if reduced.minimal { Exit::Passed } else { Exit::Unmet })
    }

    /// Reads what is to be reduced.
    fn case(&self) -> Result<Case, Failure> {
        let folder = self.path.is_dir();
        let path = if folder { self.path.join("program.nir") } else { self.path.clone() };
        let artifact = !folder && is_artifact(&path)?;
        let shader = if artifact {
            let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            generate::from_bytes(&bytes, None, Features::ALL).shader
        } else {
            program(&path)?
        };
        let named = if folder { gpu_of(&self.path)? } else { None };
        let saved = self.path.join("env.json");
        let envs = match (&self.env, self.env_seed) {
            (Some(path), _) => vec![read_env(path)?],
            (None, Some(seed)) => vec![Env::from_seed(seed)],
            (None, None) if folder && saved.exists() => vec![read_env(&saved)?],
            // As the fuzz target has it.
            (None, None) if artifact => vec![Env::from_seed(fs::metadata(&path)?.len())],
            (None, None) => env_seeds(self.seed, self.runs.max(1)).into_iter().map(Env::from_seed).collect(),
        };
        let output = self.output.clone().unwrap_or_else(|| match (folder, path.file_stem()) {
            (false, Some(stem)) => path.with_file_name(format!("{}.reduced.nir", stem.to_string_lossy())),
            _ => path.with_file_name("reduced.nir"),
        });
        Ok(Case { shader, target: self.gpu.or(named).unwrap_or_default(), envs, output })
    }
}

/// The one nir program of a file.
fn program(path: &Path) -> Result<Shader, Failure> {
    let mut programs = report::load(path, &Target::default())?;
    match (programs.pop().map(|named| named.program), programs.len()) {
        (Some(Snapshot::Nir(shader)), 0) => Ok(*shader),
        (Some(Snapshot::Ir3(_)), _) => Err(format!("{}: found an ir3 program, expected nir", path.display()).into()),
        (_, more) => Err(format!("{}: found {} programs, expected one", path.display(), more + 1).into()),
    }
}

/// Whether a file holds the bytes of a fuzzer: it is neither named nor written like a program.
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

/// The GPU that the README of a refutation's folder names.
fn gpu_of(folder: &Path) -> Result<Option<Target>, Failure> {
    let Ok(readme) = fs::read_to_string(folder.join("README.md")) else { return Ok(None) };
    let name = readme.lines().find_map(|line| line.strip_prefix("- GPU: "));
    Ok(name.map(|name| parse_gpu(name.trim())).transpose()?)
}

/// The file of the same name with another ending.
fn beside(path: &Path, ending: &str) -> PathBuf {
    path.with_extension(ending)
}

/// Writes a file, all of it or nothing.
fn replace(path: &Path, content: &str) -> Result<(), Failure> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let written = fs::write(&partial, content).and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| format!("{}: {error}", path.display()).into())
}

fn print(format: Format, report: &Report<'_>) {
    if format == Format::Json {
        return output::json(report);
    }
    let Report { failure, instructions_before, instructions, candidates, steps, seconds, .. } = report;
    output::line(failure);
    output::line(&format!(
        "{instructions_before} instructions to {instructions}; {candidates} candidates, {steps} steps, {seconds:.1} s"
    ));
    if !report.minimal {
        output::line("not at its end: run it again to go on");
    }
    output::line(&format!("  written to {}", report.output));
    let env = report.env.as_ref().map_or(String::new(), |env| format!(" --env {env}"));
    let plant = report.plant.map_or(String::new(), |plant| format!(" --plant {plant}"));
    output::line(&format!("  to see it again: ir3-equiv verify {} --gpu {}{env}{plant}", report.output, report.gpu));
}
