//! The programs of a campaign without a verdict, by reason.

use crate::{Format, output};
use ir3_compiler::pipeline::Stage;
use ir3_harness::campaigns::fuzzing::{Campaign, Drawn};
use ir3_harness::campaigns::workers::WorkerFinding;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The number of programs that are printed for each reason: those with the smallest numbers.
const SHOWN: usize = 10;

/// The unknown boundaries of programs, the first of each kind in a program, by stage and kind.
#[derive(Default)]
pub struct UnknownPrograms {
    reasons: BTreeMap<(Stage, String), Programs>,
}

/// The programs with one reason.
#[derive(Default)]
struct Programs {
    count: u64,
    /// The first, by number. Threads find them in any order.
    first: BTreeMap<u64, Program>,
}

/// A program, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    number: u64,
    gpu: String,
    profile: String,
    seed: u64,
    stage: String,
    kind: String,
    reason: String,
}

/// A reason with its programs, in the results of a part of a campaign.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedReason {
    stage: String,
    kind: String,
    count: u64,
    first: Vec<Program>,
}

/// The count of a reason, as JSON.
#[derive(Serialize)]
struct Reason<'a> {
    stage: &'static str,
    kind: &'a str,
    programs: u64,
}

impl UnknownPrograms {
    /// Adds the unknown boundaries of a program.
    pub fn add(&mut self, campaign: &Campaign, finding: &WorkerFinding) {
        let number = finding.number;
        let Drawn { target, profile, seed, .. } = finding.origin(campaign);
        let gpu = target.name;
        for unknown in &finding.unknown {
            let (stage, kind) = (unknown.stage, unknown.kind.clone());
            let programs = self.reasons.entry((stage, kind.clone())).or_default();
            programs.count += 1;
            let (profile, stage, reason) = (profile.to_string(), stage.name().to_owned(), unknown.reason.clone());
            programs.first.insert(number, Program { number, gpu: gpu.to_owned(), profile, seed, stage, kind, reason });
            if programs.first.len() > SHOWN {
                programs.first.pop_last();
            }
        }
    }

    /// The reasons, to be added to those of another part of the campaign.
    pub fn saved(&self) -> Vec<SavedReason> {
        let saved = |((stage, kind), programs): (&(Stage, String), &Programs)| SavedReason {
            stage: stage.name().to_owned(),
            kind: kind.clone(),
            count: programs.count,
            first: programs.first.values().cloned().collect(),
        };
        self.reasons.iter().map(saved).collect()
    }

    /// Adds the reasons of another part of the campaign.
    ///
    /// # Errors
    /// If one is of a stage that there is not.
    pub fn absorb(&mut self, saved: &[SavedReason]) -> Result<(), String> {
        for SavedReason { stage, kind, count, first } in saved {
            let at = Stage::from_name(stage)
                .ok_or_else(|| format!("found stage `{stage}`, expected one of a compilation"))?;
            let programs = self.reasons.entry((at, kind.clone())).or_default();
            programs.count += count;
            programs.first.extend(first.iter().map(|program| (program.number, program.clone())));
            while programs.first.len() > SHOWN {
                programs.first.pop_last();
            }
        }
        Ok(())
    }

    /// Prints the counts, and the first programs of each reason.
    pub fn print(&self, format: Format) {
        for ((stage, kind), programs) in &self.reasons {
            let Programs { count, first } = programs;
            if format == Format::Json {
                output::json("unknown-reason", &Reason { stage: stage.name(), kind, programs: *count });
                first.values().for_each(|program| output::json("unknown-program", program));
                continue;
            }
            output::line(&format!("{count} × {stage}: {kind}"));
            for Program { number, gpu, profile, seed, reason, .. } in first.values() {
                output::line(&format!("  program {number} ({profile}, {gpu}, seed {seed}): {reason}"));
            }
            let more = count - first.len() as u64;
            if more > 0 {
                output::line(&format!("  and {more} more"));
            }
        }
    }
}
