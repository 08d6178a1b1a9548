//! `check`: compares two texts.

use crate::engines::{EngineArgs, TIMEOUT};
use crate::{Exit, Failure, Format, Gpu, output};
use clap::Args;
use ir3_compiler::target::Target;
use ir3_verifier::harness::check;
use ir3_verifier::harness::check::{Answer, EngineKind, Summary, Verdict};
use ir3_verifier::harness::report;
use ir3_verifier::harness::report::Named;
use ir3_verifier::programs::Question;
use ir3_verifier::programs::seeds::env_seeds;
use ir3_verifier::semantics::environment::env::Env;
use std::path::{Path, PathBuf};

/// Options of `check`.
#[derive(Args)]
pub struct Check {
    /// The program before: nir, ir3, or a Mesa log with one final-form nir.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The program after.
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Environments, 64 lanes each.
    #[arg(long, value_name = "N", default_value_t = 16)]
    runs: u32,
    /// Seed of the environments.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// This environment, as JSON, instead of `--runs` and `--seed`.
    #[arg(long, value_name = "FILE")]
    env: Option<PathBuf>,
    #[command(flatten)]
    gpu: Gpu,
    #[command(flatten)]
    engines: EngineArgs,
}

/// The width of the column of program names.
const WIDTH: usize = 60;

fn one(path: &Path, target: &Target) -> Result<Named, Failure> {
    let mut programs = report::load(path, target)?;
    match (programs.pop(), programs.len()) {
        (Some(program), 0) => Ok(program),
        (_, more) => Err(format!("{}: found {} programs, expected one", path.display(), more + 1).into()),
    }
}

impl Check {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let (before, after) = (one(&self.before, &self.gpu.target)?, one(&self.after, &self.gpu.target)?);
        let envs = match &self.env {
            Some(path) => vec![crate::run::read_env(path)?],
            None => env_seeds(self.seed, self.runs.max(1)).into_iter().map(Env::from_seed).collect(),
        };
        let target = &self.gpu.target;
        let engines = self.engines.engines(&[EngineKind::Interpreter], TIMEOUT)?;
        let question =
            Question { stage: None, before: &before.program, after: &after.program, machine: target, envs: &envs };
        let answers = engines.ask(&question);
        if answers.is_empty() {
            return Err(
                "no engine that was asked applies to these programs: `registers` compares two ir3 programs".into()
            );
        }
        let mut summary = Summary { programs: 1, ..Summary::default() };
        let (mut refuted, mut passed) = (false, true);
        output::heading(format, WIDTH);
        for Answer { engine, verdict, time } in answers {
            summary.count(&verdict);
            summary.seconds += time.as_secs_f64();
            refuted |= matches!(verdict, Verdict::Refuted(_));
            passed &= matches!(verdict, Verdict::Tested { .. } | Verdict::Proved { .. });
            let row = check::Check {
                program: format!("{} → {}", before.name, after.name),
                gpu: target.name.to_owned(),
                stage: "check".to_owned(),
                engine: engine.name(),
                verdict: verdict.name(),
                lanes: verdict.lanes(),
                seconds: time.as_secs_f64(),
                reason: verdict.reason(),
            };
            output::check(format, WIDTH, &row);
        }
        output::summary(format, &summary);
        output::cache_failure(engines.cache_failure());
        Ok(match (refuted, passed) {
            (true, _) => Exit::Refuted,
            (false, true) => Exit::Passed,
            (false, false) => Exit::Unmet,
        })
    }
}
