//! `fuzz`: random programs.

use crate::{Exit, Failure, Format, Gpu, Planted, interrupt_flag, output};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use ir3_compiler::pipeline::RegisterLimit;
use ir3_verifier::check::Verdict;
use ir3_verifier::check::campaign::{Campaign, Counts, Finding};
use ir3_verifier::generate::Profile;
use ir3_verifier::report::{self, Origin};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `fuzz`.
#[derive(Args)]
pub struct Fuzz {
    /// Stop after so many programs.
    #[arg(long, value_name = "N")]
    programs: Option<u64>,
    /// Stop after so long (`90s`, `10m`, `8h`, or seconds).
    #[arg(long, value_name = "T", value_parser = parse_time)]
    time: Option<Duration>,
    /// Seed of the campaign; the same seed makes the same programs on every machine.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// What the programs are made of; all profiles in turn unless given. May be repeated.
    #[arg(long, value_name = "P")]
    profile: Vec<Profile>,
    #[command(flatten)]
    gpu: Gpu,
    /// Registers that a program may take: full general registers, 4 to a vec4; `min`: as few as it can do with;
    /// `min+N`: N more than that; `random`: drawn for each program, from the fewest to all.
    #[arg(long, value_name = "LIMIT", default_value = "target", hide_default_value = true, value_parser = parse_registers)]
    max_registers: Registers,
    /// Threads; one for each processor unless given.
    #[arg(long, value_name = "J")]
    jobs: Option<usize>,
    /// Environments that each program is run on, 64 lanes each.
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: u32,
    /// Go on after a refutation.
    #[arg(long)]
    keep_going: bool,
    /// Folder for what is written of a refutation.
    #[arg(long, value_name = "DIR", default_value = "ir3-equiv-failures")]
    failures: PathBuf,
    #[command(flatten)]
    planted: Planted,
}

/// A limit, or one drawn for each program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registers {
    Fixed(RegisterLimit),
    Random,
}

fn parse_registers(text: &str) -> Result<Registers, String> {
    if text == "random" {
        return Ok(Registers::Random);
    }
    text.parse().map(Registers::Fixed).map_err(|error| format!("{error}, or `random`"))
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("found the unit `{unit}`, expected s, m or h")),
    };
    let seconds: f64 = digits.parse().map_err(|_| format!("found `{text}`, expected a time such as 90s, 10m or 8h"))?;
    Duration::try_from_secs_f64(seconds * factor).map_err(|error| error.to_string())
}

/// Rates and shares at the end, as JSON.
#[derive(Serialize)]
struct Rates {
    programs_per_second: f64,
    instructions_per_second: f64,
    generate_instructions_per_second: f64,
    compile_instructions_per_second: f64,
    run_instructions_per_second: f64,
    rejected: f64,
    vacuous: f64,
    unfinished: f64,
}

impl Rates {
    fn of(counts: &Counts) -> Self {
        let per = |n: u64, time: Duration| n as f64 / time.as_secs_f64().max(1e-9);
        let share = |n: u64, of: u64| n as f64 / of.max(1) as f64;
        Self {
            programs_per_second: per(counts.summary.programs, counts.total()),
            instructions_per_second: per(counts.instructions, counts.total()),
            generate_instructions_per_second: per(counts.instructions, counts.generate),
            compile_instructions_per_second: per(counts.instructions, counts.compile),
            run_instructions_per_second: per(counts.instructions, counts.run),
            rejected: share(counts.rejected, counts.summary.programs),
            vacuous: share(counts.vacuous_runs, counts.runs),
            unfinished: share(counts.unfinished_runs, counts.runs),
        }
    }
}

impl Fuzz {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let interrupted = interrupt_flag()?;
        let jobs = match self.jobs {
            Some(jobs) => jobs,
            None => std::thread::available_parallelism().map_or(1, |n| n.get()),
        };
        let campaign = Campaign {
            target: self.gpu.target,
            seed: self.seed,
            profiles: if self.profile.is_empty() { Profile::ALL.to_vec() } else { self.profile.clone() },
            registers: match self.max_registers {
                Registers::Fixed(limit) => Some(limit),
                Registers::Random => None,
            },
            programs: if self.time.is_none() { Some(self.programs.unwrap_or(1000)) } else { self.programs },
            time: self.time,
            jobs,
            runs: self.runs.max(1),
            keep_going: self.keep_going,
            plant: self.planted.plant,
        };
        let bar = match campaign.programs {
            Some(n) => ProgressBar::new(n),
            None => ProgressBar::no_length(),
        };
        bar.set_style(ProgressStyle::with_template(match campaign.programs {
            Some(_) => "{bar:30} {pos}/{len} programs, {elapsed}, {msg}",
            None => "{spinner} {pos} programs, {elapsed}, {msg}",
        })?);
        let mut refusals: BTreeMap<String, u64> = BTreeMap::new();
        let mut write_errors = Vec::new();
        let mut found = |finding: &Finding<'_>| {
            let origin = Origin {
                name: format!("{}-{}", finding.profile, finding.seed),
                seed: Some(finding.seed),
                profile: Some(finding.profile),
            };
            if let Some(refutation) = finding.report.refutation() {
                let written = report::write_failure(
                    &self.failures,
                    &origin,
                    &self.gpu.target,
                    &finding.generated.shader,
                    refutation,
                );
                bar.suspend(|| {
                    output::line(&format!(
                        "refuted: program {} ({}, seed {}), stage {}: {}",
                        finding.number, finding.profile, finding.seed, refutation.stage, refutation.difference
                    ));
                    match written {
                        Ok(folder) => {
                            output::line(&format!("  written to {}", folder.display()));
                            let command = report::command(&folder, &self.gpu.target, refutation);
                            output::line(&format!("  see it again: {command}"));
                        }
                        Err(error) => write_errors.push(error),
                    }
                });
            } else if let Some((stage, message)) = finding.report.crash() {
                let written = report::write_crash(
                    &self.failures,
                    &origin,
                    &self.gpu.target,
                    &finding.generated.shader,
                    stage,
                    message,
                );
                bar.suspend(|| {
                    output::line(&format!(
                        "crashed: program {} ({}, seed {}), stage {stage}: {message}",
                        finding.number, finding.profile, finding.seed
                    ));
                    match written {
                        Ok(folder) => output::line(&format!("  written to {}", folder.display())),
                        Err(error) => write_errors.push(error),
                    }
                });
            } else if let Some((stage, Verdict::Unknown(why), _)) = finding.report.boundaries.last() {
                *refusals.entry(format!("{stage}: {why}")).or_default() += 1;
            }
        };
        let mut progress = |counts: &Counts| {
            bar.set_position(counts.summary.programs);
            let rates = Rates::of(counts);
            bar.set_message(format!(
                "{:.0} programs/s, {:.0} k instructions/s of CPU time",
                rates.programs_per_second,
                rates.instructions_per_second / 1e3
            ));
        };
        let counts = campaign.run(&interrupted, &mut found, &mut progress);
        bar.finish_and_clear();
        let rates = Rates::of(&counts);
        match format {
            Format::Json => output::json(&rates),
            Format::Human => {
                output::line(&format!(
                    "{} programs of {} instructions; per CPU second: {:.0} programs, {:.0} k instructions \
                     (generate {:.0} k, compile {:.0} k, run and compare {:.0} k)",
                    counts.summary.programs,
                    counts.instructions,
                    rates.programs_per_second,
                    rates.instructions_per_second / 1e3,
                    rates.generate_instructions_per_second / 1e3,
                    rates.compile_instructions_per_second / 1e3,
                    rates.run_instructions_per_second / 1e3,
                ));
                output::line(&format!(
                    "rejected {:.2} % of programs, vacuous {:.2} % and unfinished {:.2} % of {} runs",
                    rates.rejected * 100.0,
                    rates.vacuous * 100.0,
                    rates.unfinished * 100.0,
                    counts.runs
                ));
                for (why, n) in &refusals {
                    output::line(&format!("  {n} × {why}"));
                }
            }
        }
        output::summary(format, &counts.summary);
        if let Some(error) = write_errors.into_iter().next() {
            return Err(error.into());
        }
        Ok(if counts.summary.refuted + counts.summary.crashed > 0 { Exit::Refuted } else { Exit::Passed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("1.5m"), Ok(Duration::from_secs(90)));
        assert!(parse_time("3 weeks").is_err());
        assert!(parse_time("-1s").is_err());
    }
}
