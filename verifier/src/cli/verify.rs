//! `verify`: compiles programs from files and checks every boundary.

use crate::engines::{EngineArgs, TIMEOUT};
use crate::{Compiler, Exit, Failure, Format, Gpu, Planted, interrupt_flag, output};
use clap::{Args, ValueEnum};
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use ir3_verifier::harness::check::{
    BoundaryAnswer, Check, Checker, EngineKind, Engines, ProgramReport, Summary, Verdict, plant_of,
};
use ir3_verifier::harness::reduce;
use ir3_verifier::harness::report;
use ir3_verifier::harness::report::Named;
use ir3_verifier::harness::report::bundle;
use ir3_verifier::harness::report::bundle::{Case, ProgramOrigin};
use ir3_verifier::harness::report::page;
use ir3_verifier::programs::mesa::input;
use ir3_verifier::programs::mesa::input::InputError;
use ir3_verifier::programs::planted_bugs::PlantedBug;
use ir3_verifier::programs::seeds::{env_seeds, program_seed};
use ir3_verifier::semantics::Snapshot;
use ir3_verifier::semantics::environment::env::Env;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Options of `verify`.
#[derive(Args)]
pub struct Verify {
    /// Files (.nir, Mesa logs, whose final-form nir is used), folders of them, or bundles, which bring their GPU, their
    /// options and their input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    gpu: Gpu,
    #[command(flatten)]
    compiler: Compiler,
    /// Environments that each program is run on, 64 lanes each.
    #[arg(long, value_name = "N", default_value_t = 2)]
    runs: u32,
    /// Seed of the environments.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Exactly this environment, as a report of a failure names it, instead of `--runs` and `--seed`.
    #[arg(long, value_name = "SEED")]
    env_seed: Option<u64>,
    /// Exactly this environment, as JSON, as `reduce` writes it.
    #[arg(long, value_name = "FILE", conflicts_with = "env_seed")]
    env: Option<PathBuf>,
    #[command(flatten)]
    engines: EngineArgs,
    /// Fail (exit code 3) unless every boundary of every program reached this.
    #[arg(long, value_enum, value_name = "VERDICT")]
    require: Option<Required>,
    /// Print only rows other than passes, and the summary.
    #[arg(long)]
    quiet: bool,
    /// Folder for what is written of a refutation.
    #[arg(long, value_name = "DIR", default_value = "ir3-equiv-failures")]
    failures: PathBuf,
    /// Write a page for each failure into a folder, and an index.
    #[arg(long, value_name = "DIR")]
    html: Option<PathBuf>,
    #[command(flatten)]
    planted: Planted,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Required {
    /// Run and agreed, or proved.
    Tested,
    /// Shown for all inputs, by every engine that was asked.
    Proved,
}

const WIDTH: usize = 60;

/// The number of times that other environments are tried if all runs of a program were vacuous or used up their fuel.
const RETRIES: u64 = 16;

/// A program to be checked.
struct Job {
    name: String,
    shader: Shader,
    target: Target,
    options: Options,
    plant: Option<&'static PlantedBug>,
    /// The given environments; otherwise they are chosen.
    envs: Option<Vec<Env>>,
    /// The failure that is recorded in its bundle.
    recorded: Option<reduce::Failure>,
}

impl Job {
    fn check(&self, envs: &[Env]) -> ProgramReport {
        let mut change = self.plant.map(PlantedBug::change);
        Checker::new(self.target, self.options).program(&self.shader, envs, plant_of(&mut change))
    }

    fn prove(&self, engines: &Engines) -> Vec<BoundaryAnswer> {
        let mut change = self.plant.map(PlantedBug::change);
        engines.prove_compilation(&self.shader, &self.target, &self.options, plant_of(&mut change))
    }

    /// Writes the bundle of a failure.
    fn write(&self, root: &Path, envs: &[Env]) -> Result<PathBuf, Failure> {
        let (shader, origin) = (self.shader.clone(), ProgramOrigin::File(self.name.clone()));
        let case = Case::find(shader, self.target, self.options, self.plant, envs, origin)
            .ok_or_else(|| format!("{}: it failed, and when it was run again it did not", self.name))?;
        Ok(bundle::write(root, &case)?)
    }
}

impl Verify {
    /// The programs of a path, and the number of those that cannot be checked.
    fn jobs(&self, path: &Path, given: Option<&[Env]>) -> Result<(Vec<Job>, u64), Failure> {
        if bundle::is_bundle(path) {
            let Case { program, target, options, plant, env, symptom, .. } = bundle::read(path)?;
            let job = Job {
                name: path.display().to_string(),
                shader: program,
                target,
                options,
                plant: self.planted.plant.or(plant),
                envs: given.map(<[Env]>::to_vec).or_else(|| env.map(|env| vec![env])),
                recorded: Some(symptom.failure),
            };
            return Ok((vec![job], 0));
        }
        let (mut jobs, mut bad) = (Vec::new(), 0);
        for Named { name, program } in report::load(path, &self.gpu.target)? {
            let Snapshot::Nir(shader) = program else {
                bad += 1;
                eprintln!(
                    "ir3-equiv: {name}: found an ir3 program, expected nir (two ir3 programs are compared with `check`)"
                );
                continue;
            };
            let (target, options, plant) = (self.gpu.target, self.compiler.options(), self.planted.plant);
            let envs = given.map(<[Env]>::to_vec);
            jobs.push(Job { name, shader: *shader, target, options, plant, envs, recorded: None });
        }
        Ok((jobs, bad))
    }

    /// The given files, and those of the given folders. A bundle counts as one file.
    fn files(&self) -> Result<Vec<PathBuf>, InputError> {
        let mut files = Vec::new();
        for path in &self.paths {
            match bundle::is_bundle(path) {
                true => files.push(path.clone()),
                false => files.extend(input::collect_paths(std::slice::from_ref(path))?),
            }
        }
        Ok(files)
    }

    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let interrupted = interrupt_flag()?;
        let mut summary = Summary::default();
        let (mut bad, mut failed) = (0, false);
        let given = match (&self.env, self.env_seed) {
            (Some(path), _) => Some(vec![crate::run::read_env(path)?]),
            (None, Some(seed)) => Some(vec![Env::from_seed(seed)]),
            (None, None) => None,
        };
        let files = self.files()?;
        let engines = self.engines.engines(&[EngineKind::Interpreter], TIMEOUT)?;
        let mut pages = self.html.as_deref().map(page::PageFolder::create).transpose()?;
        output::heading(format, WIDTH);
        'files: for path in &files {
            let (jobs, others) = match self.jobs(path, given.as_deref()) {
                Ok(jobs) => jobs,
                // A folder may contain texts without nir; a file that was named must have some.
                Err(error)
                    if matches!(error.downcast_ref(), Some(InputError::NoNir { .. })) && !self.paths.contains(path) =>
                {
                    continue;
                }
                Err(error) => {
                    bad += 1;
                    output::error(&*error);
                    continue;
                }
            };
            bad += others;
            for job in jobs {
                if interrupted.load(Ordering::Relaxed) {
                    summary.interrupted = true;
                    break 'files;
                }
                let chosen = |seed: u64| env_seeds(seed, self.runs.max(1)).into_iter().map(Env::from_seed).collect();
                let mut envs: Vec<Env> = job.envs.clone().unwrap_or_else(|| chosen(self.seed));
                let runs = engines.has(EngineKind::Interpreter);
                let mut result = if runs { job.check(&envs) } else { ProgramReport::default() };
                // Other environments may make a run defined, or loops shorter.
                for retry in 1..=RETRIES {
                    if !runs || result.source.finished > 0 || result.refusal.is_some() || job.envs.is_some() {
                        break;
                    }
                    summary.seconds += (result.times.compile + result.times.run).as_secs_f64();
                    envs = chosen(program_seed(self.seed, retry));
                    result = job.check(&envs);
                }
                summary.programs += 1;
                summary.seconds += (result.times.compile + result.times.run).as_secs_f64();
                let proofs = if engines.prove() { job.prove(&engines) } else { Vec::new() };
                summary.seconds += proofs.iter().map(|proved| proved.time.as_secs_f64()).sum::<f64>();
                // The environment in which a prover found a difference.
                let seen = proofs.iter().find_map(|proved| match &proved.verdict {
                    Verdict::Refuted(refutation) => Some(refutation.env.clone()),
                    _ => None,
                });
                let rows = result.boundaries.iter().map(|(stage, verdict, time)| ("interpreter", stage, verdict, time));
                let proofs = proofs.iter().map(|row| (row.engine, &row.stage, &row.verdict, &row.time));
                for (engine, stage, verdict, time) in rows.chain(proofs) {
                    summary.count(verdict);
                    if self.quiet && matches!(verdict, Verdict::Tested { .. } | Verdict::Proved { .. }) {
                        continue;
                    }
                    let check = Check {
                        program: job.name.clone(),
                        gpu: job.target.name.to_owned(),
                        stage: stage.name().to_owned(),
                        engine,
                        verdict: verdict.name(),
                        lanes: verdict.lanes(),
                        seconds: time.as_secs_f64(),
                        reason: verdict.reason(),
                    };
                    output::check(format, WIDTH, &check);
                }
                if let Some(recorded) = &job.recorded {
                    let found = Case::find(
                        job.shader.clone(),
                        job.target,
                        job.options,
                        job.plant,
                        &envs,
                        ProgramOrigin::File(job.name.clone()),
                    );
                    let found = found.map(|case| case.symptom.failure);
                    failed |= found.is_some();
                    if let (Some(pages), true) = (&mut pages, found.is_some()) {
                        pages.add_bundle(path)?;
                    }
                    if format == Format::Human {
                        output::line(&match found {
                            Some(found) if found == *recorded => "  it fails as its bundle says".to_owned(),
                            Some(found) => format!("  it fails, but its bundle says: {recorded}; found: {found}"),
                            None => format!("  it does not fail any more; its bundle says: {recorded}"),
                        });
                    }
                } else if result.refutation().is_some() || result.crash().is_some() || seen.is_some() {
                    let of_interpreter = result.refutation().is_some() || result.crash().is_some();
                    let envs = seen.filter(|_| !of_interpreter).map_or(envs, |env| vec![env]);
                    let folder = job.write(&self.failures, &envs)?;
                    if let Some(pages) = &mut pages {
                        pages.add_bundle(&folder)?;
                    }
                    if format == Format::Human {
                        output::line(&format!("  written to {}", folder.display()));
                        output::line(&format!("  see it again: ir3-equiv verify {}", folder.display()));
                    }
                }
            }
        }
        output::summary(format, &summary);
        output::cache_failure(engines.cache_failure());
        Ok(if failed || summary.refuted + summary.crashed > 0 {
            Exit::Refuted
        } else if bad > 0 {
            Exit::Bad
        } else {
            match self.require {
                Some(Required::Tested) if summary.unknown > 0 || summary.checks == 0 => Exit::Unmet,
                Some(Required::Proved) if summary.checks == 0 || summary.unknown + summary.tested > 0 => Exit::Unmet,
                _ => Exit::Passed,
            }
        })
    }
}
