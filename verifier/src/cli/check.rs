//! `check`: compares two texts.

use crate::engines::{self, EngineArgs, TIMEOUT};
use crate::values;
use crate::{Exit, Failure, Fuel, Gpu, output, verify};
use clap::Args;
use ir3_compiler::target::Target;
use ir3_verifier::harness::check;
use ir3_verifier::harness::check::{Answer, EngineKind, Summary};
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
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = values::count::<u32>())]
    runs: u32,
    /// Seed of the environments.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// This environment, as JSON, instead of `--runs` and `--seed`.
    #[arg(long, value_name = "FILE")]
    env: Option<PathBuf>,
    #[command(flatten)]
    fuel: Fuel,
    #[command(flatten)]
    gpu: Gpu,
    #[command(flatten)]
    engines: EngineArgs,
}

/// The width of the column of program names.
const WIDTH: usize = 60;

fn one(path: &Path, gpu: Option<Target>) -> Result<Named, Failure> {
    let mut programs = report::load(path, gpu)?;
    match (programs.pop(), programs.len()) {
        (Some(program), 0) => Ok(program),
        (_, more) => Err(format!("{}: found {} programs, expected one", path.display(), more + 1).into()),
    }
}

impl Check {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        let (before, after) = (one(&self.before, self.gpu.given())?, one(&self.after, self.gpu.given())?);
        let envs = match &self.env {
            Some(path) => vec![crate::run::read_env(path)?],
            None => env_seeds(self.seed, self.runs).into_iter().map(Env::from_seed).collect(),
        };
        let envs = self.fuel.of(envs);
        let target = &before.target;
        let engines = self.engines.engines(&[EngineKind::Interpreter], TIMEOUT)?;
        let question =
            Question { stage: None, before: &before.program, after: &after.program, machine: target, envs: &envs };
        let all = engines.ask(&question);
        if all.is_empty() {
            return Err(
                "no engine that was asked applies to these programs: `registers` compares two ir3 programs".into()
            );
        }
        let mut summary = Summary { programs: 1, ..Summary::default() };
        output::heading(WIDTH);
        for Answer { engine, verdict, time } in &all {
            summary.count(verdict);
            summary.seconds += time.as_secs_f64();
            let row = check::Check {
                program: format!("{} → {}", before.name, after.name),
                gpu: target.name.to_owned(),
                stage: "check".to_owned(),
                engine: engine.name(),
                verdict: verdict.name(),
                lanes: verdict.lanes(),
                seconds: time.as_secs_f64(),
                reason: verdict.reason(),
                sensitivity: None,
            };
            output::check(WIDTH, &row);
        }
        output::summary(&summary);
        let wrong = check::contradiction(&all);
        if let Some((provers, why)) = &wrong {
            let who: Vec<&str> = provers.iter().map(|engine| engine.name()).collect();
            output::problem(&format!("{} proved what a run refutes: {why}", who.join(" and ")));
        }
        let unsound = Exit::Unsound.when(wrong.is_some());
        Ok(Exit::of_all([engines::written(&engines), verify::exit_of(&summary), unsound]))
    }
}
