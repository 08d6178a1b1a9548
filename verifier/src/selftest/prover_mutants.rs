//! `prover-mutants`: leaves out side conditions of the provers and checks that the campaigns notice.

use crate::exit::{self, Unwritten};
use crate::values;
use crate::{Exit, Failure, Format, Gpu, Jobs, interrupt, output};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use indicatif::{ProgressBar, ProgressStyle};
use ir3_prove::simulation::Limits;
use ir3_selftest::prover_mutants::{BY_HAND, Candidate, Trial, Trials, by_hand, campaigns, names, run};
use ir3_semantics::support::guards::{Guard, NotBuilt, observe};
use serde::Serialize;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The percentage of conditions that must be noticed.
const LEAST: usize = 95;

/// Options of `prover-mutants`.
#[derive(Args)]
pub struct ProverMutants {
    /// Leave out only these conditions. May be repeated.
    #[arg(long, value_name = "NAME", value_parser = guard_names(), hide_possible_values = true)]
    condition: Vec<Guard>,
    /// For each condition that no campaign notices, print why the last pair was not proved without it.
    #[arg(long)]
    why: bool,
    /// Print the conditions, and run nothing.
    #[arg(long)]
    list: bool,
    /// Run only these campaigns: the name of a family, `pairs`, `kill-matrix`. May be repeated.
    #[arg(long, value_name = "CAMPAIGN", value_parser = PossibleValuesParser::new(names()))]
    campaign: Vec<String>,
    /// The most pairs of each family, and planted miscompilations.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = values::count::<u64>())]
    programs: u64,
    /// CPU time for one proof (`500ms`, `10s`).
    #[arg(long, value_name = "T", value_parser = values::time, default_value = "300ms")]
    timeout: Duration,
    #[command(flatten)]
    jobs: Jobs,
    /// Seed of the programs.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Pairs made by hand, as in `corpus/pairs`; tried first.
    #[arg(long, value_name = "DIR", default_value = "corpus/pairs")]
    pairs: PathBuf,
    /// Write pairs that the complete prover proves though they differ to this folder.
    #[arg(long, value_name = "DIR")]
    found: Option<PathBuf>,
    #[command(flatten)]
    gpu: Gpu,
}

fn guard_names() -> impl TypedValueParser<Value = Guard> {
    let names = Guard::ALL.iter().map(|guard| PossibleValue::new(guard.name()).help(guard.holds()));
    PossibleValuesParser::new(names).try_map(|name| Guard::from_name(&name).ok_or("found no such condition"))
}

/// A row, as JSON.
#[derive(Serialize)]
struct MutantRow<'a> {
    condition: &'static str,
    part: &'static str,
    campaign: Option<&'static str>,
    program: Option<u64>,
    change: Option<&'a str>,
    engine: Option<&'static str>,
    asked: u64,
    seconds: f64,
}

impl ProverMutants {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let is_selected = |guard: &Guard| self.condition.is_empty() || self.condition.contains(guard);
        let guards: Vec<Guard> = Guard::ALL.into_iter().filter(is_selected).collect();
        if self.list {
            for guard in guards {
                output::line(&format!("{:<26} {:<12} {}", guard.name(), guard.part().name(), guard.holds()));
            }
            return Ok(Exit::Passed);
        }
        self.found.as_deref().map(exit::try_folder).transpose()?;
        if let Err(error @ NotBuilt) = observe(|| ()) {
            return Err(format!(
                "{error}: cargo run --release --features prover-mutants --bin ir3-selftest -- prover-mutants"
            )
            .into());
        }
        if format == Format::Human {
            output::line("Provers without one of their conditions: nothing that is proved below counts as proved.\n");
        }
        let interrupted = interrupt::flag();
        let machine = self.gpu.target();
        let mut trials = Trials::new(guards);
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {pos} pairs, {msg} conditions open, {elapsed}")?);
        let each = |open: usize| {
            bar.set_message(open.to_string());
            bar.inc(1);
        };
        let campaign = |name: &str| self.campaign.is_empty() || self.campaign.iter().any(|asked| asked == name);
        let by_hand = match self.pairs.is_dir() && campaign(BY_HAND) {
            true => by_hand(&self.pairs, &machine)?,
            false => Vec::new(),
        };
        let candidates = by_hand.into_iter().chain(campaigns(self.seed, self.programs, &machine, &campaign));
        let limits = Limits::within(self.timeout);
        run(candidates, &limits, &machine, self.jobs.count(), interrupted, &mut trials, &each)?;
        bar.finish_and_clear();
        self.print(&trials, format);
        if !trials.wrong.is_empty() {
            for (i, (engine, candidate)) in trials.wrong.iter().enumerate() {
                let Candidate { campaign, number, change, .. } = candidate;
                output::problem(&format!(
                    "the whole prover is wrong: {} proves {campaign} {number} ({change})",
                    engine.name()
                ));
                // That the prover is wrong counts more than that a file cannot be written.
                if let Err(error) = self.write(i, candidate) {
                    output::error(&*error);
                }
            }
            return Ok(Exit::Unsound);
        }
        let enough = trials.noticed() * 100 >= trials.of.len() * LEAST;
        Ok(if enough { Exit::Passed } else { Exit::Unmet })
    }

    /// Writes a pair on which the complete prover is wrong.
    fn write(&self, number: usize, candidate: &Candidate) -> Result<(), Failure> {
        let Some(folder) = &self.found else { return Ok(()) };
        fs::create_dir_all(folder).map_err(|cause| Unwritten::new(folder, cause))?;
        for (side, snapshot) in [("before", &candidate.before), ("after", &candidate.after)] {
            let language = if snapshot.as_ir3().is_some() { "ir3" } else { "nir" };
            let name = format!("{}-{number}.{side}.{language}", candidate.campaign);
            let path = folder.join(name);
            fs::write(&path, snapshot.text()).map_err(|cause| Unwritten::new(&path, cause))?;
        }
        Ok(())
    }

    fn print(&self, trials: &Trials, format: Format) {
        if format == Format::Json {
            for (guard, Trial { noticed, attempts, time, .. }) in &trials.of {
                output::json(
                    "condition",
                    &MutantRow {
                        condition: guard.name(),
                        part: guard.part().name(),
                        campaign: noticed.as_ref().map(|it| it.campaign),
                        program: noticed.as_ref().map(|it| it.number),
                        change: noticed.as_ref().map(|it| it.change.as_str()),
                        engine: noticed.as_ref().map(|it| it.by.name()),
                        asked: *attempts,
                        seconds: time.as_secs_f64(),
                    },
                );
            }
            return;
        }
        output::line(
            "| condition                  | part        | noticed by                                          | left out on | CPU s |",
        );
        output::line(
            "| -------------------------- | ----------- | --------------------------------------------------- | ----------: | ----: |",
        );
        for (guard, Trial { noticed, attempts, time, why }) in &trials.of {
            let by = noticed
                .as_ref()
                .map_or_else(|| "not noticed".to_owned(), |it| format!("{} {}: {}", it.campaign, it.number, it.change));
            output::line(&format!(
                "| {:<26} | {:<11} | {by:<51} | {attempts:>11} | {:>5.1} |",
                guard.name(),
                guard.part().name(),
                time.as_secs_f64()
            ));
            if let (true, None, Some(why)) = (self.why, noticed, why) {
                output::line(&format!("    {why}"));
            }
        }
        let (noticed, all) = (trials.noticed(), trials.of.len());
        let percent = 100.0 * noticed as f64 / all.max(1) as f64;
        output::line(&format!("\n{noticed} of {all} conditions noticed to be missing ({percent:.1} %)"));
        for (campaign, [made, differ]) in &trials.pairs {
            output::line(&format!("{campaign}: {made} pairs, {differ} of them differ"));
        }
    }
}
