//! `ir3-selftest broken-logs`: breaks real logs, and prints how `mesa` handles them.

use crate::engines::EngineArgs;
use crate::{Exit, Failure, Format, Gpu, Jobs, engines, interrupt, output, values};
use clap::Args;
use ir3_harness::check::EngineKind;
use ir3_harness::mesa::Settings;
use ir3_programs::mesa::input::{self, Source};
use ir3_selftest::broken_logs::{Breakage, BrokenLog, BrokenOutcome, broken, outcome, whole};
use ir3_semantics::support::random::hash;
use ir3_semantics::support::threads;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Options of `broken-logs`.
#[derive(Args)]
pub struct BrokenLogs {
    /// Logs that Mesa's ir3 printed, or folders of them.
    #[arg(required = true, value_name = "LOG")]
    paths: Vec<PathBuf>,
    /// The number of logs to break, evenly spaced among the given ones; all unless given.
    #[arg(long, value_name = "N", value_parser = values::count::<usize>())]
    logs: Option<usize>,
    /// The number of places at which each log is cut, evenly spaced.
    #[arg(long, value_name = "N", default_value_t = 200)]
    cuts: usize,
    /// The number of headlines before which each log is cut.
    #[arg(long, value_name = "N", default_value_t = 20)]
    sections: usize,
    /// Seed of the changes.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    engines: EngineArgs,
    #[command(flatten)]
    gpu: Gpu,
}

/// A row of the table.
#[derive(Clone, Debug, Default, Serialize)]
struct BrokenCounts {
    logs: u64,
    panics: u64,
    /// Logs with a section that could not be read.
    unread: u64,
    /// Boundaries of which both sides could be read.
    checked: u64,
    refuted: u64,
    /// Outcomes that are not as they have to be.
    faults: u64,
}

impl BrokenCounts {
    fn add(&mut self, outcome: &BrokenOutcome, is_fault: bool) {
        self.logs += 1;
        self.panics += u64::from(outcome.panic.is_some());
        self.unread += u64::from(outcome.unread > 0);
        self.checked += outcome.checked as u64;
        self.refuted += outcome.refuted.len() as u64;
        self.faults += u64::from(is_fault);
    }
}

/// A row, as JSON.
#[derive(Serialize)]
struct BrokenRow<'a> {
    breakage: &'a str,
    #[serde(flatten)]
    counts: BrokenCounts,
}

#[derive(Default)]
struct Table {
    rows: BTreeMap<Breakage, BrokenCounts>,
    messages: BTreeMap<String, u64>,
}

/// The message without the parts that differ from place to place: numbers, and names in quotes.
fn kind(message: &str) -> String {
    let start = message.find(':').map_or(message, |at| &message[at..]);
    let start = start.trim_start_matches(|c: char| matches!(c, ':' | ' ') || c.is_ascii_digit());
    let mut kind = String::new();
    for (number, part) in start.split('`').enumerate() {
        kind.push_str(if number % 2 == 0 { part } else { "`…`" });
    }
    let mut plain = String::new();
    for c in kind.chars() {
        match (c.is_ascii_digit(), plain.ends_with('N')) {
            (true, true) => {}
            (true, false) => plain.push('N'),
            (false, _) => plain.push(c),
        }
    }
    plain
}

impl BrokenLogs {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let engines = self.engines.engines(&[EngineKind::Registers], engines::PROOF_TIME)?;
        let settings = Settings { most_runs: 2, ..Settings::new(&engines, 2, 1) };
        let mut paths = input::collect_paths(&self.paths)?;
        let count = self.logs.unwrap_or(paths.len()).min(paths.len());
        paths = (0..count).map(|number| paths[paths.len() * number / count].clone()).collect();
        let table = Mutex::new(Table::default());
        for (number, path) in paths.iter().enumerate() {
            if interrupt::is_set() {
                break;
            }
            let text = Source::read(path)?.text;
            let other = Source::read(&paths[(number + 1) % paths.len()])?.text;
            let gpu = self.gpu.given();
            let unbroken = whole(path, &text, gpu, &settings);
            let logs: Vec<BrokenLog> =
                broken(path, &text, &other, self.cuts, self.sections, hash(&[self.seed, number as u64]));
            threads::for_each(self.jobs.count(), logs.into_iter(), interrupt::flag(), |_, log| {
                let outcome = outcome(path, &log, gpu, &settings);
                let fault = outcome.fault(&log, &unbroken);
                if let Some(fault) = &fault {
                    let name = log.breakage.name();
                    output::line(&format!("{}: {name}, {}: {fault}", path.display(), log.at));
                }
                let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
                table.rows.entry(log.breakage).or_default().add(&outcome, fault.is_some());
                for message in &outcome.messages {
                    *table.messages.entry(kind(message)).or_default() += 1;
                }
            });
        }
        let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
        if format == Format::Human {
            output::line("                         logs   panics   unread  checked  refuted   faults");
        }
        let mut total = BrokenCounts::default();
        for (breakage, counts) in &table.rows {
            print(breakage.name(), counts);
            total.logs += counts.logs;
            total.panics += counts.panics;
            total.unread += counts.unread;
            total.checked += counts.checked;
            total.refuted += counts.refuted;
            total.faults += counts.faults;
        }
        print("all", &total);
        let mut messages: Vec<_> = table.messages.into_iter().collect();
        messages.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (message, count) in messages {
            output::line(&format!("{count:6}  {message}"));
        }
        let failed = Exit::Refuted.when(total.faults > 0);
        Ok(failed.max(Exit::Nothing.when(total.logs == 0)))
    }
}

fn print(name: &str, counts: &BrokenCounts) {
    let BrokenCounts { logs, panics, unread, checked, refuted, faults } = counts;
    output::line(&format!("{name:<20} {logs:>8} {panics:>8} {unread:>8} {checked:>8} {refuted:>8} {faults:>8}"));
    output::json("broken-logs", &BrokenRow { breakage: name, counts: counts.clone() });
}
