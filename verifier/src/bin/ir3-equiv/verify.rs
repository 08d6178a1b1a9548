//! `verify`: programs from files, every boundary.

use crate::{Compiler, Exit, Failure, Format, Gpu, Planted, interrupt_flag, output};
use clap::{Args, ValueEnum};
use ir3_compiler::nir::Shader;
use ir3_verifier::check::campaign::{env_seeds, program_seed};
use ir3_verifier::check::{self, Check, Checker, ProgramReport, Snapshot, Summary, Verdict};
use ir3_verifier::mesa::input::{self, InputError};
use ir3_verifier::plants::Plant;
use ir3_verifier::report::{self, Origin};
use ir3_verifier::semantics::env::Env;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Options of `verify`.
#[derive(Args)]
pub struct Verify {
    /// Files (.nir, Mesa logs, whose final-form nir is used) or folders of them.
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
    /// Fail (exit code 3) unless every boundary of every program reached this.
    #[arg(long, value_enum, value_name = "VERDICT")]
    require: Option<Required>,
    /// Print only rows that are no pass, and the summary.
    #[arg(long)]
    quiet: bool,
    /// Folder for what is written of a refutation.
    #[arg(long, value_name = "DIR", default_value = "ir3-equiv-failures")]
    failures: PathBuf,
    #[command(flatten)]
    planted: Planted,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Required {
    /// Run and agreed.
    Tested,
    /// Shown for all inputs. No engine of this version proves anything yet.
    Proved,
}

const WIDTH: usize = 60;

/// How often a program is given other environments when all its runs were vacuous or used up their fuel.
const RETRIES: u64 = 16;

impl Verify {
    /// Checks one program.
    fn check(&self, checker: &mut Checker, shader: &Shader, envs: &[Env]) -> ProgramReport {
        let mut change = self.planted.plant.map(Plant::change);
        checker.program_in_caught(shader, envs, change.as_mut().map(|change| change as check::Plant<'_>))
    }

    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let interrupted = interrupt_flag()?;
        let files = input::collect_paths(&self.paths)?;
        let mut checker = Checker::new(self.gpu.target, self.compiler.options());
        let mut summary = Summary::default();
        let mut bad = 0;
        let seeds = match self.env_seed {
            Some(seed) => vec![seed],
            None => env_seeds(self.seed, self.runs.max(1)),
        };
        let env = self.env.as_ref().map(crate::run::read_env).transpose()?;
        output::heading(format, WIDTH);
        'files: for path in &files {
            let programs = match report::load(path, &self.gpu.target) {
                Ok(programs) => programs,
                // A folder may hold texts of ours that have no nir; a file that was named must.
                Err(InputError::NoNir { .. }) if !self.paths.contains(path) => continue,
                Err(error) => {
                    bad += 1;
                    output::error(&error);
                    continue;
                }
            };
            for named in programs {
                if interrupted.load(Ordering::Relaxed) {
                    summary.interrupted = true;
                    break 'files;
                }
                let Snapshot::Nir(shader) = &named.program else {
                    bad += 1;
                    eprintln!(
                        "ir3-equiv: {}: found an ir3 program, expected nir (two ir3 programs are compared with `check`)",
                        named.name
                    );
                    continue;
                };
                let envs = match &env {
                    Some(env) => vec![env.clone()],
                    None => seeds.iter().map(|&seed| Env::from_seed(seed)).collect(),
                };
                let mut result = self.check(&mut checker, shader, &envs);
                // Other environments may give the program a meaning, or shorter loops.
                for retry in 1..=RETRIES {
                    let given = self.env_seed.is_some() || env.is_some();
                    if result.source.finished > 0 || result.refusal.is_some() || given {
                        break;
                    }
                    summary.seconds += (result.times.compile + result.times.run).as_secs_f64();
                    let seeds = env_seeds(program_seed(self.seed, retry), self.runs.max(1));
                    let envs: Vec<Env> = seeds.into_iter().map(Env::from_seed).collect();
                    result = self.check(&mut checker, shader, &envs);
                }
                summary.programs += 1;
                summary.seconds += (result.times.compile + result.times.run).as_secs_f64();
                for (stage, verdict, time) in &result.boundaries {
                    summary.count(verdict);
                    if self.quiet && matches!(verdict, Verdict::Tested { .. }) {
                        continue;
                    }
                    let check = Check {
                        program: named.name.clone(),
                        gpu: self.gpu.target.name.to_owned(),
                        stage: stage.name().to_owned(),
                        engine: "interpreter",
                        verdict: verdict.name(),
                        lanes: verdict.lanes(),
                        seconds: time.as_secs_f64(),
                        reason: verdict.reason(),
                    };
                    output::check(format, WIDTH, &check);
                }
                let origin = Origin { name: named.name.clone(), seed: None, profile: None };
                let target = &self.gpu.target;
                let written = match (result.refutation(), result.crash()) {
                    (Some(refutation), _) => {
                        Some(report::write_failure(&self.failures, &origin, target, shader, refutation)?)
                    }
                    (None, Some((stage, message))) => {
                        Some(report::write_crash(&self.failures, &origin, target, shader, stage, message)?)
                    }
                    (None, None) => None,
                };
                if let (Some(folder), Format::Human) = (written, format) {
                    output::line(&format!("  written to {}", folder.display()));
                }
            }
        }
        output::summary(format, &summary);
        Ok(if summary.refuted + summary.crashed > 0 {
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
