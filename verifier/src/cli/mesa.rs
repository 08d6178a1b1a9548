//! `mesa`: checks the passes of the real compiler by the log that it prints.

use crate::engines::{self, EngineArgs};
use crate::{Exit, Failure, Format, Gpu, interrupt, output, triage, values, verify};
use clap::Args;
use ir3_compiler::target::Target;
use ir3_verifier::harness::check::{Check, EngineKind, Summary, Verdict};
use ir3_verifier::harness::mesa::{Settings, check_shader};
use ir3_verifier::programs::mesa::input::{self, InputError, Lines};
use ir3_verifier::programs::mesa::shader::{LogShader, ShaderReader};
use ir3_verifier::support::threads;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Options of `mesa`.
#[derive(Args)]
pub struct Mesa {
    /// Logs that Mesa's ir3 printed with `IR3_SHADER_DEBUG`, folders of them, or `-` for standard input.
    #[arg(required = true, value_name = "LOG")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    gpu: Gpu,
    /// Environments that a boundary is run on that is not proved, 64 lanes each; up to 16 times as many while the runs come to depend on more.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = values::count::<u32>())]
    runs: u32,
    /// Seed of the environments.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    engines: EngineArgs,
    /// Threads; one for each processor unless given. The result does not depend on it.
    #[arg(long, value_name = "J", value_parser = values::count::<usize>())]
    jobs: Option<usize>,
    /// Print what was inferred of each shader.
    #[arg(long)]
    explain: bool,
    /// Print only the verdicts that are no passes, and the whole.
    #[arg(long, short)]
    quiet: bool,
}

/// The fuel of a run.
const FUEL: u64 = 200_000;

impl Mesa {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let engines = self.engines.engines(&EngineKind::ALL, verify::PROOF_TIME)?;
        let settings = Settings {
            engines: &engines,
            runs: self.runs as usize,
            most_runs: self.runs as usize * 16,
            seed: self.seed,
            fuel: FUEL,
        };
        let paths = input::collect_paths(&self.paths)?;
        let whole = Mutex::new((Summary::default(), BTreeMap::<String, u64>::new(), Exit::Passed));
        threads::for_each(triage::jobs(self.jobs), paths.into_iter(), interrupt::flag(), |_, path| {
            let result = each_shader(&path, &mut |shader| {
                let target = self.gpu.given().or(shader.generation.map(Target::of_generation)).unwrap_or_default();
                let name = format!("{}#{}", path.display(), shader.number);
                let mut rows = Vec::new();
                let recovered = check_shader(&path, &shader, &target, &settings, &mut |checked| rows.push(checked));
                let mut whole = whole.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let (summary, reasons, exit) = &mut *whole;
                summary.programs += 1;
                if self.explain && format == Format::Human {
                    recovered.inferred.iter().for_each(|line| output::line(&format!("{name}: {line}")));
                }
                for problem in &recovered.problems {
                    output::problem(&format!("{name}: {problem}"));
                }
                for checked in rows {
                    summary.count(&checked.verdict);
                    summary.seconds += checked.time.as_secs_f64();
                    if let Some(why) = &checked.wrong_proof {
                        output::problem(&format!("{name}: {}: proved what a run refutes: {why}", checked.name));
                        *exit = (*exit).max(Exit::Unsound);
                    }
                    if let Verdict::Unknown(unknown) = &checked.verdict {
                        *reasons.entry(format!("{}: {}", checked.name, unknown.kind())).or_default() += 1;
                    }
                    let passes = matches!(checked.verdict, Verdict::Proved { .. } | Verdict::Tested { .. });
                    if self.quiet && passes {
                        continue;
                    }
                    output::check(
                        60,
                        &Check {
                            program: name.clone(),
                            gpu: target.name.to_owned(),
                            stage: checked.name.clone(),
                            engine: checked.engine,
                            verdict: checked.verdict.name(),
                            lanes: checked.verdict.lanes(),
                            seconds: checked.time.as_secs_f64(),
                            reason: checked.verdict.reason(),
                            sensitivity: checked.sensitivity.map(|it| it.share()),
                        },
                    );
                }
            });
            if let Err(error) = result {
                output::error(&error);
                whole.lock().unwrap_or_else(std::sync::PoisonError::into_inner).2 = Exit::Bad;
            }
        });
        let (summary, reasons, exit) = whole.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut reasons: Vec<_> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (reason, count) in &reasons {
            output::line(&format!("{count:6}  {reason}"));
        }
        output::summary(&summary);
        Ok(Exit::of_all([engines::written(&engines), verify::exit_of(&summary), exit]))
    }
}

/// Calls a function for each shader of a log, as it is complete.
fn each_shader(path: &Path, each: &mut dyn FnMut(LogShader)) -> Result<(), InputError> {
    let mut lines = Lines::open(path)?;
    let mut reader = ShaderReader::new(&lines.path);
    for line in &mut lines {
        reader.line(line?.trim_end_matches('\n'));
        while let Some(shader) = reader.next_complete() {
            each(shader);
        }
    }
    reader.end().into_iter().for_each(each);
    Ok(())
}
