//! `ir3-selftest log-mutants`: changes real logs, and prints which changes `mesa` refutes.

use crate::engines::EngineArgs;
use crate::{Exit, Failure, Format, Gpu, Jobs, engines, interrupt, output, values};
use clap::Args;
use ir3_harness::check::EngineKind;
use ir3_harness::mesa::Settings;
use ir3_programs::mesa::input;
use ir3_programs::mesa::shader::{FileShader, shaders};
use ir3_selftest::log_mutants::{NoTrial, Outcome, Trial, kinds, trial};
use ir3_semantics::support::random::hash;
use ir3_semantics::support::threads;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The minimum percentage of the changes of meaning that must be refuted.
const LEAST: u64 = 97;

/// Options of `log-mutants`.
#[derive(Args)]
pub struct LogMutants {
    /// Logs that Mesa's ir3 printed, or folders of such logs.
    #[arg(required = true, value_name = "LOG")]
    paths: Vec<PathBuf>,
    /// The number of changed logs.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = values::count::<u64>())]
    mutants: u64,
    /// Seed of the changes.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Apply only the change with this number.
    #[arg(long, value_name = "N")]
    only: Option<u64>,
    /// The number of random environments, as in `mesa`.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = values::count::<u32>())]
    runs: u32,
    #[command(flatten)]
    jobs: Jobs,
    /// Print the equivalent changes, too.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    engines: EngineArgs,
    #[command(flatten)]
    gpu: Gpu,
}

/// A row of the tables.
#[derive(Clone, Copy, Default, Serialize)]
struct LogMutantCounts {
    mutants: u64,
    refuted: u64,
    other_pass: u64,
    /// Found because two sections contradict each other.
    contradicted: u64,
    equivalent: u64,
    unknown: u64,
    /// Missed, because runs passed the boundary.
    missed: u64,
    /// Proved although the meaning changed.
    unsound: u64,
}

impl LogMutantCounts {
    fn add(&mut self, outcome: &Outcome) {
        self.mutants += 1;
        *match outcome {
            Outcome::Refuted => &mut self.refuted,
            Outcome::RefutedElsewhere { .. } => &mut self.other_pass,
            Outcome::Contradicted => &mut self.contradicted,
            Outcome::Equivalent => &mut self.equivalent,
            Outcome::Unknown { .. } => &mut self.unknown,
            Outcome::MissedTested { .. } => &mut self.missed,
            Outcome::MissedProved { .. } => &mut self.unsound,
        } += 1;
    }

    fn meant(&self) -> u64 {
        self.mutants - self.equivalent
    }

    /// The number of mutants that are refuted at their section.
    fn found(&self) -> u64 {
        self.refuted + self.contradicted
    }

    fn print(&self, name: &str) {
        let Self { mutants, refuted, other_pass, contradicted, equivalent, unknown, missed, unsound } = *self;
        let meant = self.meant();
        let found = self.found();
        let share = if meant == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * found as f64 / meant as f64) };
        output::line(&format!(
            "{name:<27} {mutants:>7} {equivalent:>10} {refuted:>8} {contradicted:>12} {other_pass:>10} {unknown:>8} {missed:>7} {unsound:>15} {share:>9}"
        ));
    }
}

/// A row, as JSON.
#[derive(Serialize)]
struct LogMutantsRow<'a> {
    table: &'static str,
    name: &'a str,
    #[serde(flatten)]
    counts: LogMutantCounts,
}

/// The counts.
#[derive(Default)]
struct Tables {
    total: LogMutantCounts,
    kinds: BTreeMap<&'static str, LogMutantCounts>,
    passes: BTreeMap<String, LogMutantCounts>,
    without: BTreeMap<NoTrial, u64>,
    seconds: f64,
}

impl LogMutants {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let engines = self.engines.engines(&EngineKind::ALL, engines::PROOF_TIME)?;
        let runs = self.runs as usize;
        let paths = input::collect_paths(&self.paths)?;
        let tables = Mutex::new(Tables::default());
        let numbers = match self.only {
            Some(only) => only..only + 1,
            None => 0..self.mutants,
        };
        threads::for_each(self.jobs.count(), numbers, interrupt::flag(), |_, number| {
            let seed = hash(&[self.seed, number]);
            let settings = Settings::new(&engines, runs, 1);
            // Some logs have no place for a change.
            for again in 0..20 {
                let seed = hash(&[seed, again]);
                let path = &paths[hash(&[seed, 1]) as usize % paths.len()];
                let mut found: Vec<FileShader> = shaders(vec![path.clone()]).flatten().collect();
                if found.is_empty() {
                    continue;
                }
                let chosen = hash(&[seed, 2]) as usize % found.len();
                let FileShader { path, shader } = &mut found[chosen];
                let target = shader.target(self.gpu.given());
                let result = trial(path, shader, &target, &settings, hash(&[seed, 3]));
                let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
                match result {
                    Ok(trial) => {
                        tables.seconds += trial.time.as_secs_f64();
                        tables.total.add(&trial.outcome);
                        tables.kinds.entry(trial.kind).or_default().add(&trial.outcome);
                        tables.passes.entry(trial.pass.clone()).or_default().add(&trial.outcome);
                        self.print(number, &format!("{}#{}", path.display(), shader.number), &trial);
                        break;
                    }
                    Err(why) => *tables.without.entry(why).or_default() += 1,
                }
            }
        });
        let tables = tables.into_inner().unwrap_or_else(PoisonError::into_inner);
        if format == Format::Human {
            output::line(
                "                            mutants equivalent  refuted contradicted other pass  unknown  missed  missed: proved     found",
            );
        }
        for name in kinds() {
            if let Some(counts) = tables.kinds.get(name) {
                counts.print(name);
                output::json("log-mutants", &LogMutantsRow { table: "kind", name, counts: *counts });
            }
        }
        for (name, counts) in &tables.passes {
            counts.print(name);
            output::json("log-mutants", &LogMutantsRow { table: "pass", name, counts: *counts });
        }
        let total = tables.total;
        total.print("all");
        output::json("log-mutants", &LogMutantsRow { table: "all", name: "all", counts: total });
        for (why, count) in &tables.without {
            let why = match why {
                NoTrial::NoSection => "no section that can be read after another one that can be read",
                NoTrial::NoChange => "no change that can be read",
                NoTrial::RefutedBefore => "refuted without the change",
            };
            output::note(&format!("{count} times another log was taken: {why}"));
        }
        output::note(&format!("{:.1} s of CPU time in the engines", tables.seconds));
        if total.unsound > 0 {
            return Ok(Exit::Unsound);
        }
        let unmet = Exit::Unmet.when(100 * total.found() < LEAST * total.meant());
        Ok(unmet.max(Exit::Nothing.when(total.mutants == 0)))
    }

    fn print(&self, number: u64, log: &str, trial: &Trial) {
        let what = match &trial.outcome {
            Outcome::Refuted => return,
            Outcome::Contradicted => "contradicts another section".to_owned(),
            Outcome::Equivalent if !self.list && self.only.is_none() => return,
            Outcome::Equivalent => "equivalent".to_owned(),
            Outcome::RefutedElsewhere { pass } => format!("refuted at {pass}"),
            Outcome::Unknown { why, differs } => format!("unknown{}: {why}", shown(*differs)),
            Outcome::MissedTested { differs } => format!("MISSED: tested{}", shown(*differs)),
            Outcome::MissedProved { why } => format!("MISSED: proved, and a run differs: {why}"),
        };
        let sensitivity =
            trial.sensitivity.map_or(String::new(), |share| format!(", sensitivity {:.0} %", 100.0 * share));
        output::line(&format!(
            "{number}: {log}:{}: {}, {}: {what} ({}{sensitivity})",
            trial.line, trial.pass, trial.kind, trial.engine
        ));
        output::line(&format!("    was {}", trial.was));
        output::line(&format!("    is  {}", trial.is));
    }
}

const fn shown(differs: bool) -> &'static str {
    if differs { " (a run from the original section shows a difference)" } else { "" }
}
