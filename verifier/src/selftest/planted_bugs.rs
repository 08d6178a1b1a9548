//! `planted-bugs`: measures how soon each planted bug is found, and how large the reduced program is.
//!
//! A row is a bug. It has the number of programs and the CPU time of a campaign over all profiles until the bug was
//! found; for its first findings, the mean size of the programs, the median (and the worst) size of the reduced
//! programs, and the CPU time of the reductions; and if the reduced programs fail in the same way, and several
//! reductions have the same result.

use crate::values;
use crate::{Exit, Failure, Format, Fuel, Gpu, interrupt, output};
use clap::Args;
use ir3_programs::planted_bugs;
use ir3_programs::planted_bugs::PlantedBug;
use ir3_selftest::planted_trial;
use ir3_selftest::planted_trial::{Found, ReductionOutcome};
use serde::Serialize;
use std::time::Duration;

/// The limit of CPU time for finding a bug.
const TO_FIND: Duration = Duration::from_secs(60);
/// The limit of CPU time for a reduction, for the median.
const TO_REDUCE: f64 = 10.0;
/// The limits of instructions of the reduced program, for the median and the worst.
const LEFT: (usize, usize) = (10, 20);

/// Options of `planted-bugs`.
#[derive(Args)]
pub struct PlantedBugs {
    /// The bugs to plant; default: all.
    #[arg(value_name = "BUG", value_parser = crate::values::ir3_plants())]
    bugs: Vec<&'static PlantedBug>,
    /// Seed of the campaigns, which take all profiles in turn.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Reduce this many findings of each campaign: the first ones.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = values::count::<usize>())]
    findings: usize,
    /// The number of reductions of each finding, which must have identical results: one with two threads, the others
    /// with one.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = values::count::<usize>())]
    runs: usize,
    /// Print each reduced program.
    #[arg(long)]
    programs: bool,
    #[command(flatten)]
    fuel: Fuel,
    #[command(flatten)]
    gpu: Gpu,
}

/// One finding, as JSON.
#[derive(Serialize)]
struct FindingRow {
    bug: &'static str,
    stage: &'static str,
    failure: String,
    profile: String,
    /// The programs of the campaign up to this one.
    programs: u64,
    /// CPU time of the campaign up to this one.
    seconds_to_find: f64,
    before: usize,
    after: usize,
    candidates: u64,
    seconds_to_reduce: f64,
    /// The reduced program fails at the same stage in the same way.
    same: bool,
    /// All reductions have the same result.
    identical: bool,
}

impl PlantedBugs {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let all = || planted_bugs::ALL.iter().collect();
        let bugs: Vec<&'static PlantedBug> = if self.bugs.is_empty() { all() } else { self.bugs.clone() };
        if format == Format::Human {
            output::line(&format!(
                "{:15}  {:19}  {:>8}  {:>6}  {:>20}  {:>10}  {:>4}  {:>9}",
                "bug", "stage", "programs", "s", "instructions", "s", "same", "identical"
            ));
        }
        let mut rows = Vec::new();
        let mut lost = Vec::new();
        for plant in bugs {
            if interrupt::is_set() {
                return Ok(Exit::Interrupted);
            }
            let (target, fuel) = (self.gpu.target(), self.fuel.given());
            let found = planted_trial::find(plant, target, self.seed, self.findings.max(1), TO_FIND, fuel);
            if found.is_empty() {
                lost.push(plant.name);
                continue;
            }
            let mut of_bug = Vec::new();
            for found in &found {
                let row = self.row(found)?;
                if format == Format::Json {
                    output::json("planted-bug", &row);
                }
                of_bug.push(row);
            }
            if format == Format::Human {
                print(&of_bug);
            }
            rows.extend(of_bug);
        }
        let met = summary(format, &rows);
        for name in &lost {
            output::problem(&format!("{name} is not found within {} s of CPU time", TO_FIND.as_secs()));
        }
        Ok(if met && lost.is_empty() { Exit::Passed } else { Exit::Unmet })
    }

    fn row(&self, found: &Found) -> Result<FindingRow, Failure> {
        let name = found.plant.name;
        let reduce =
            |jobs| found.reduce(self.gpu.target(), jobs).ok_or(format!("{name}: the reduction came to nothing"));
        let first = reduce(1)?;
        let mut identical = true;
        for run in 1..self.runs {
            let again = reduce(if run == 1 { 2 } else { 1 })?;
            identical &= again.result() == first.result();
        }
        if self.programs {
            output::text(&first.result());
        }
        let ReductionOutcome { failure, whole, time, same } = first;
        Ok(FindingRow {
            bug: name,
            stage: found.plant.stage.name(),
            failure: failure.to_string(),
            profile: found.profile.to_string(),
            programs: found.number + 1,
            seconds_to_find: found.time.as_secs_f64(),
            before: found.shader.instruction_count(),
            after: whole.reduced.program.instruction_count(),
            candidates: whole.reduced.progress.candidates,
            seconds_to_reduce: time.as_secs_f64(),
            same,
            identical,
        })
    }
}

/// The median (the upper one of two), and the maximum.
fn spread<T: PartialOrd + Copy>(rows: &[FindingRow], value: impl Fn(&FindingRow) -> T) -> Option<(T, T)> {
    let mut all: Vec<T> = rows.iter().map(value).collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    Some((*all.get(all.len() / 2)?, *all.last()?))
}

/// The mean number of instructions before the reduction.
fn mean(rows: &[FindingRow]) -> f64 {
    rows.iter().map(|row| row.before).sum::<usize>() as f64 / rows.len().max(1) as f64
}

/// Prints the findings of one bug.
fn print(rows: &[FindingRow]) {
    let all = |good: fn(&FindingRow) -> bool| if rows.iter().all(good) { "yes" } else { "NO" };
    let (Some(first), Some((left, most)), Some((time, longest))) =
        (rows.first(), spread(rows, |row| row.after), spread(rows, |row| row.seconds_to_reduce))
    else {
        return;
    };
    output::line(&format!(
        "{:15}  {:19}  {:>8}  {:>6.2}  {:>8.0} to {left:2} ({most:2})  {time:.2} ({longest:.2})  {:>4}  {:>9}",
        first.bug,
        first.stage,
        first.programs,
        first.seconds_to_find,
        mean(rows),
        all(|row| row.same),
        all(|row| row.identical),
    ));
}

/// Prints the summary; returns true if the goals are met.
fn summary(format: Format, rows: &[FindingRow]) -> bool {
    let (Some((left, most)), Some((time, longest)), Some((_, found))) = (
        spread(rows, |row| row.after),
        spread(rows, |row| row.seconds_to_reduce),
        spread(rows, |row| row.seconds_to_find),
    ) else {
        return false;
    };
    let same = rows.iter().filter(|row| row.same).count();
    let identical = rows.iter().filter(|row| row.identical).count();
    if format == Format::Human {
        let count = rows.len();
        output::line(&format!(
            "\n{count} findings of {:.0} instructions in the mean; left: {left} in the median, {most} at worst (goal: {}, {})",
            mean(rows),
            LEFT.0,
            LEFT.1
        ));
        output::line(&format!(
            "CPU time: all found within {found:.2} s a bug (goal: {}); reduced in {time:.2} s in the median, {longest:.2} s at worst \
             (goal: {TO_REDUCE})",
            TO_FIND.as_secs(),
        ));
        output::line(&format!(
            "the same failure: {same} of {count}; identical in all reductions: {identical} of {count}"
        ));
    }
    left <= LEFT.0 && most <= LEFT.1 && time <= TO_REDUCE && (same, identical) == (rows.len(), rows.len())
}
