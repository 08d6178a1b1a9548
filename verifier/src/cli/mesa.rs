//! `mesa`: checks the passes of the real compiler by the log that it prints.
//!
//! Threads take shaders as they are read; the main table is printed in the order of the logs.

use crate::engines::{self, EngineArgs};
use crate::{Exit, Failure, Format, Gpu, interrupt, output, triage, values, verify};
use clap::Args;
use ir3_compiler::target::Target;
use ir3_verifier::harness::check::{Check, EngineKind, Summary, Verdict};
use ir3_verifier::harness::mesa::{self, Settings, check_shader};
use ir3_verifier::programs::mesa::input::{self, InputError};
use ir3_verifier::programs::mesa::shader::{FileShader, shaders};
use ir3_verifier::support::threads;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Options of `mesa`.
#[derive(Args)]
pub struct Mesa {
    /// Logs that Mesa's ir3 printed with `IR3_SHADER_DEBUG`, folders of them, or `-` for standard input.
    #[arg(required = true, value_name = "LOG")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    gpu: Gpu,
    /// Environments that a boundary is run on that is not proved, 64 lanes each; up to eight times as many while the runs come to depend on
    /// more of the program.
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
    /// Print only what is no pass, and the verdicts of the whole.
    #[arg(long, short)]
    quiet: bool,
    /// Folder for what is written of a refutation.
    #[arg(long, value_name = "DIR", default_value = "ir3-equiv-failures")]
    failures: PathBuf,
}

/// The fuel of a run.
pub const FUEL: u64 = 100_000;
/// CPU time of the runs of a boundary after which no more environments are added.
pub const RUN_TIME: Duration = Duration::from_secs(1);

/// A row of the table of a shader.
struct Row {
    check: Check,
    verdict: Verdict,
    wrong_proof: Option<String>,
    bundle: Option<std::io::Result<PathBuf>>,
}

/// What is printed of a shader.
struct Report {
    name: String,
    title: String,
    explained: Vec<String>,
    problems: Vec<String>,
    is_broken: bool,
    rows: Vec<Row>,
}

/// What was counted.
#[derive(Default)]
struct Whole {
    summary: Summary,
    reasons: BTreeMap<String, u64>,
    exit: Option<Exit>,
    /// The next one to be printed, and those that wait for it.
    next: u64,
    waiting: BTreeMap<u64, Result<Report, InputError>>,
}

impl Mesa {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let engines = self.engines.engines(&EngineKind::ALL, verify::PROOF_TIME)?;
        let runs = self.runs as usize;
        let settings =
            Settings { engines: &engines, runs, most_runs: runs * 8, seed: self.seed, fuel: FUEL, limit: RUN_TIME };
        let paths = input::collect_paths(&self.paths)?;
        let whole = Mutex::new(Whole::default());
        threads::for_each(triage::jobs(self.jobs), shaders(paths), interrupt::flag(), |number, found| {
            let result = found.map(|file| self.check(&file, &settings));
            let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
            whole.waiting.insert(number, result);
            while let Some(result) = {
                let next = whole.next;
                whole.waiting.remove(&next)
            } {
                whole.next += 1;
                self.print(result, &mut whole, format);
            }
        });
        let mut whole = whole.into_inner().unwrap_or_else(PoisonError::into_inner);
        // What was checked when a signal came.
        for (_, result) in std::mem::take(&mut whole.waiting) {
            self.print(result, &mut whole, format);
        }
        let Whole { mut summary, reasons, exit, .. } = whole;
        summary.interrupted = interrupt::is_set();
        let mut reasons: Vec<_> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (reason, count) in &reasons {
            output::line(&format!("{count:6}  {reason}"));
        }
        output::summary(&summary);
        Ok(Exit::of_all([engines::written(&engines), verify::exit_of(&summary)].into_iter().chain(exit)))
    }

    fn check(&self, file: &FileShader, settings: &Settings<'_>) -> Report {
        let FileShader { path, shader } = file;
        let target = self.gpu.given().or(shader.generation.map(Target::of_generation)).unwrap_or_default();
        let name = format!("{}#{}", path.display(), shader.number);
        let mut rows = Vec::new();
        let recovered = check_shader(path, shader, &target, settings, &mut |checked| {
            let check = Check {
                program: name.clone(),
                gpu: target.name.to_owned(),
                stage: checked.name.clone(),
                engine: checked.engine,
                verdict: checked.verdict.name(),
                lanes: checked.verdict.lanes(),
                seconds: checked.time.as_secs_f64(),
                reason: checked.verdict.reason(),
                sensitivity: checked.sensitivity.map(|it| it.share()),
            };
            let bundle = mesa::write_bundle(&self.failures, &name, &checked, &target).transpose();
            rows.push(Row { check, verdict: checked.verdict, wrong_proof: checked.wrong_proof, bundle });
        });
        let title = format!("{name}: {} (line {}), {}", shader.stage, shader.line, target.name);
        let explained = if self.explain { recovered.inferred } else { Vec::new() };
        Report { name, title, explained, problems: recovered.problems, is_broken: recovered.unread > 0, rows }
    }

    fn print(&self, result: Result<Report, InputError>, whole: &mut Whole, format: Format) {
        let mut fail = |exit: Exit| whole.exit = Some(whole.exit.map_or(exit, |known| known.max(exit)));
        let report = match result {
            Ok(report) => report,
            Err(error) => {
                output::error(&error);
                return fail(Exit::Bad);
            }
        };
        let Report { name, title, explained, problems, is_broken, rows } = report;
        whole.summary.programs += 1;
        if is_broken {
            fail(Exit::Bad);
        }
        let is_pass = |verdict: &Verdict| matches!(verdict, Verdict::Proved { .. } | Verdict::Tested { .. });
        let mut shown: Vec<&Row> = rows.iter().collect();
        if self.quiet {
            shown.retain(|row| !is_pass(&row.verdict));
        }
        if format == Format::Human && (!shown.is_empty() || !explained.is_empty()) {
            output::line(&title);
            output::line(&format!(
                "  {:28}  {:13}  {:12}  {:>11}  {:>9}",
                "pass", "verdict", "engine", "sensitivity", "ms"
            ));
        }
        for line in &explained {
            match format {
                Format::Human => output::line(&format!("  inferred: {line}")),
                _ => output::note(&format!("{name}: inferred: {line}")),
            }
        }
        for problem in &problems {
            output::problem(&format!("{name}: {problem}"));
        }
        for row in &rows {
            whole.summary.count(&row.verdict);
            whole.summary.seconds += row.check.seconds;
            if let Some(why) = &row.wrong_proof {
                output::problem(&format!("{name}: {}: proved what a run refutes: {why}", row.check.stage));
                fail(Exit::Unsound);
            }
            if let Verdict::Unknown(unknown) = &row.verdict {
                *whole.reasons.entry(format!("{}: {}", row.check.stage, unknown.kind())).or_default() += 1;
            }
        }
        for row in shown {
            print_row(row, format);
            match &row.bundle {
                Some(Ok(folder)) => {
                    output::json("bundle", &serde_json::json!({ "program": name, "folder": folder }));
                    output::line(&format!("      written to {}", folder.display()));
                }
                Some(Err(error)) => {
                    output::problem(&format!("{}: {error}", self.failures.display()));
                    fail(Exit::Unwritten);
                }
                None => {}
            }
        }
    }
}

fn print_row(row: &Row, format: Format) {
    let check = &row.check;
    if format != Format::Human {
        return output::check(0, check);
    }
    let sensitivity = check.sensitivity.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
    output::line(&format!(
        "  {:28}  {:13}  {:12}  {:>11}  {:>9.2}",
        check.stage,
        row.verdict.to_string(),
        check.engine,
        sensitivity,
        check.seconds * 1e3
    ));
    let is_proof = matches!(row.verdict, Verdict::Proved { .. });
    if let Some(reason) = check.reason.as_deref().filter(|_| !is_proof) {
        output::line(&format!("      {reason}"));
    }
}
