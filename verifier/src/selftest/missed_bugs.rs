//! `missed-bugs`: plants each bug in real programs, and counts those that change results and that `verify` misses.

use crate::engines::EngineArgs;
use crate::engines::PROOF_TIME;
use crate::{EnvSeed, Exit, Failure, Gpu, Jobs, interrupt, output, values};
use clap::Args;
use ir3_harness::check::{DEFAULT_FUEL, EngineKind};
use ir3_programs::input::{Named, load};
use ir3_programs::mesa::input::collect_paths;
use ir3_programs::planted_bugs;
use ir3_selftest::missed_bugs::{BugTrial, BugVerdict, Victim};
use ir3_semantics::Snapshot;
use ir3_semantics::support::threads;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The minimum shares of the bugs that matter: of refuted ones, and of those that do not pass.
const LEAST: [f64; 2] = [0.80, 0.98];

/// Options of `missed-bugs`.
#[derive(Args)]
pub struct MissedBugs {
    /// Files or folders, as for `verify`.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Check only every Nth program.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = values::count::<usize>())]
    every: usize,
    /// Interpreter runs that decide if a bug matters: if it changes the results of a program.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = values::count::<u32>())]
    matter: u32,
    /// The number of environments that `verify` starts with.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = values::count::<u32>())]
    runs: u32,
    #[command(flatten)]
    seed: EnvSeed,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    engines: EngineArgs,
    #[command(flatten)]
    gpu: Gpu,
}

/// The counts of one bug over all programs.
#[derive(Clone, Copy, Debug, Default)]
struct BugCounts {
    /// The number of programs in which the bug matters.
    matters: u32,
    refuted: u32,
    unknown: u32,
    passed: u32,
}

impl BugCounts {
    fn count(&mut self, verdict: BugVerdict) {
        self.matters += 1;
        match verdict {
            BugVerdict::Refuted => self.refuted += 1,
            BugVerdict::Unknown => self.unknown += 1,
            BugVerdict::Passed => self.passed += 1,
        }
    }

    fn line(&self, name: &str) -> String {
        let Self { matters, refuted, unknown, passed } = self;
        format!("{name:20}  {matters:>7}  {refuted:>7}  {unknown:>7}  {passed:>6}")
    }
}

/// Counters of a thread.
#[derive(Default)]
struct Counts {
    bugs: Vec<BugCounts>,
    /// The number of sites of all trials, and of those whose change was observed.
    sites: [u64; 2],
    /// CPU time on programs without bugs: of `verify`, and of runs alone.
    times: [Duration; 2],
    /// CPU time of `verify` with bugs that matter.
    with_bugs: Duration,
    missed: Vec<String>,
}

impl MissedBugs {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        let engines = self.engines.engines(&EngineKind::ALL, PROOF_TIME)?;
        let mut programs = Vec::new();
        for path in collect_paths(&self.paths)? {
            programs.extend(load(&path, self.gpu.given())?);
        }
        let programs: Vec<Named> = programs.into_iter().step_by(self.every).collect();
        let counts =
            Mutex::new(Counts { bugs: vec![BugCounts::default(); planted_bugs::ALL.len()], ..Counts::default() });
        threads::for_each(self.jobs.count(), programs.iter(), interrupt::flag(), |_, named| {
            let Snapshot::Nir(shader) = &named.program else { return };
            let victim = Victim { shader, target: &named.target };
            let add = |change: &mut dyn FnMut(&mut Counts)| {
                change(&mut counts.lock().unwrap_or_else(PoisonError::into_inner));
            };
            let times = victim.times(&engines, self.seed.seed, self.runs, DEFAULT_FUEL);
            add(&mut |counts| (0..2).for_each(|at| counts.times[at] += times[at]));
            for (number, plant) in planted_bugs::ALL.iter().enumerate() {
                if interrupt::is_set() || !victim.matters(plant, self.matter) {
                    continue;
                }
                let BugTrial { verdict, sensitivity, time } =
                    victim.try_bug(plant, &engines, self.seed.seed, self.runs, DEFAULT_FUEL);
                add(&mut |counts| {
                    counts.bugs[number].count(verdict);
                    counts.with_bugs += time;
                    let sites = sensitivity.unwrap_or_default();
                    counts.sites[0] += u64::from(sites.all);
                    counts.sites[1] += u64::from(sites.seen);
                    if verdict == BugVerdict::Passed {
                        counts.missed.push(format!("{} with {}", named.name, plant.name));
                    }
                });
            }
        });
        let mut counts = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
        counts.missed.sort_unstable();
        Ok(self.print(programs.len(), &counts))
    }

    fn print(&self, programs: usize, counts: &Counts) -> Exit {
        output::line(&format!("{:20}  {:>7}  {:>7}  {:>7}  {:>6}", "bug", "matters", "refuted", "unknown", "passed"));
        let mut all = BugCounts::default();
        for (plant, of) in planted_bugs::ALL.iter().zip(&counts.bugs) {
            let BugCounts { matters, refuted, unknown, passed } = *of;
            output::json(
                "missed-bug",
                &serde_json::json!({ "bug": plant.name, "matters": matters, "refuted": refuted, "unknown": unknown, "passed": passed }),
            );
            output::line(&of.line(plant.name));
            all.matters += of.matters;
            all.refuted += of.refuted;
            all.unknown += of.unknown;
            all.passed += of.passed;
        }
        output::line(&all.line("all"));
        let share = |n: u32| f64::from(n) / f64::from(all.matters.max(1));
        let shares = [share(all.refuted), share(all.refuted + all.unknown)];
        let [verify, runs] = counts.times.map(|time| time.as_secs_f64());
        let BugCounts { matters, refuted, unknown, passed } = all;
        output::json(
            "missed-bugs",
            &serde_json::json!({
                "programs": programs, "matters": matters, "refuted": refuted, "unknown": unknown, "passed": passed,
                "sites": counts.sites[0], "seen_sites": counts.sites[1], "seconds": verify, "seconds_with_bugs": counts.with_bugs.as_secs_f64(),
                "seconds_of_runs": runs,
            }),
        );
        output::line(&format!(
            "{programs} programs: {:.1} % refuted (goal: {:.0}), {:.1} % not passed (goal: {:.0}); sensitivity {:.1} %",
            shares[0] * 100.0,
            LEAST[0] * 100.0,
            shares[1] * 100.0,
            LEAST[1] * 100.0,
            counts.sites[1] as f64 * 100.0 / counts.sites[0].max(1) as f64
        ));
        let with_bugs = counts.with_bugs.as_secs_f64();
        output::line(&format!(
            "CPU time without bugs {verify:.1} s, of runs alone {runs:.1} s; with bugs that matter {with_bugs:.1} s"
        ));
        counts.missed.iter().for_each(|missed| output::line(&format!("passed: {missed}")));
        if interrupt::is_set() {
            return Exit::Interrupted;
        }
        match all.matters {
            0 => Exit::Nothing,
            _ => Exit::Unmet.when(shares.iter().zip(LEAST).any(|(&share, least)| share < least)),
        }
    }
}
