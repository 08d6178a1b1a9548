//! The counts of a campaign. The counts of parts of a campaign are added.

use crate::check::{Spills, Summary, Verification};
use ir3_compiler::pipeline::Stage;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The counts of a campaign.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// The counts of verdicts.
    pub summary: Summary,
    /// Compilations: a program that is compared end to end may be compiled with several register limits.
    #[serde(default)]
    pub compilations: u64,
    /// Instructions of the generated programs, as often as they are compiled.
    #[serde(default)]
    pub compiled_instructions: u64,
    /// Programs that the compiler refused or that were not valid.
    pub rejected: u64,
    /// Programs that agreed end to end, and were not compared at each boundary.
    pub end_to_end: u64,
    /// Programs that were compared at each boundary.
    pub every_boundary: u64,
    /// Runs of source programs.
    pub runs: u64,
    /// Runs of source programs with undefined behaviour.
    pub vacuous_runs: u64,
    /// Runs of source programs that used up their fuel.
    pub unfinished_runs: u64,
    /// Instructions of the generated programs.
    pub instructions: u64,
    /// Programs that do not fit in the registers although every value could be spilled: the GPU has private memory,
    /// and the limit is the least that the program needs, or more.
    #[serde(default)]
    pub not_spilled: u64,
    /// Compilations with spilled values.
    pub spilled: u64,
    /// Accesses to spill slots.
    pub spills: Spills,
    /// Boundaries that were proved and that a run refutes, as numbers of programs and stages: a prover is unsound.
    #[serde(with = "stage_names")]
    pub wrong_proofs: Vec<(u64, Stage)>,
    /// CPU time in the generator.
    pub generate: Duration,
    /// CPU time in the compiler.
    pub compile: Duration,
    /// CPU time in the interpreters.
    pub run: Duration,
    /// CPU time in the provers.
    pub prove: Duration,
}

impl Counts {
    /// CPU time of the whole loop.
    pub fn total(&self) -> Duration {
        self.generate + self.compile + self.run + self.prove
    }

    /// Counts a generated program.
    pub(super) fn count_program(&mut self, instructions: usize, generate: Duration) {
        self.summary.programs += 1;
        self.instructions += instructions as u64;
        self.generate += generate;
    }

    /// Counts a compilation that agrees end to end. Its times are counted already.
    pub(super) fn count_ends(&mut self, instructions: usize, report: &Verification) {
        self.count_report(instructions, report);
        report.boundaries.iter().for_each(|row| self.summary.count(&row.verdict));
        self.summary.seconds = self.total().as_secs_f64();
    }

    fn count_report(&mut self, instructions: usize, report: &Verification) {
        let source = &report.source;
        self.compilations += 1;
        self.compiled_instructions += instructions as u64;
        self.runs += u64::from(source.finished + source.vacuous + source.out_of_fuel);
        self.vacuous_runs += u64::from(source.vacuous);
        self.unfinished_runs += u64::from(source.out_of_fuel);
        self.rejected += u64::from(report.refusal.is_some());
        self.spilled += u64::from(report.spills != Spills::default());
        self.spills.stores += report.spills.stores;
        self.spills.loads += report.spills.loads;
    }

    /// Counts the verdicts on the program of a number, at every boundary.
    pub(super) fn count(&mut self, number: u64, instructions: usize, verification: &Verification) {
        let Verification { boundaries, times, wrong_proofs, .. } = verification;
        self.compile += times.compile;
        self.run += times.run;
        self.prove += times.prove;
        self.every_boundary += 1;
        self.count_report(instructions, verification);
        boundaries.iter().for_each(|boundary| self.summary.count(&boundary.verdict));
        self.wrong_proofs.extend(wrong_proofs.iter().map(|(stage, ..)| (number, *stage)));
        self.summary.seconds = self.total().as_secs_f64();
    }

    /// Counts a program that ended the process which checked it.
    pub(super) fn count_death(&mut self) {
        let summary = &mut self.summary;
        for count in [&mut summary.programs, &mut summary.checks, &mut summary.unknown, &mut summary.crashed] {
            *count += 1;
        }
    }

    /// Adds the counts of another part of the same campaign.
    pub fn add(&mut self, other: &Self) {
        self.summary.add(&other.summary);
        self.compilations += other.compilations;
        self.compiled_instructions += other.compiled_instructions;
        self.rejected += other.rejected;
        self.end_to_end += other.end_to_end;
        self.every_boundary += other.every_boundary;
        self.runs += other.runs;
        self.vacuous_runs += other.vacuous_runs;
        self.unfinished_runs += other.unfinished_runs;
        self.instructions += other.instructions;
        self.not_spilled += other.not_spilled;
        self.spilled += other.spilled;
        self.spills.stores += other.spills.stores;
        self.spills.loads += other.spills.loads;
        self.generate += other.generate;
        self.compile += other.compile;
        self.run += other.run;
        self.prove += other.prove;
        self.wrong_proofs.extend(&other.wrong_proofs);
    }
}

/// Stages by their names.
mod stage_names {
    use super::Stage;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub fn serialize<S: Serializer>(list: &[(u64, Stage)], serializer: S) -> Result<S::Ok, S::Error> {
        list.iter().map(|&(number, stage)| (number, stage.name())).collect::<Vec<_>>().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(u64, Stage)>, D::Error> {
        let named = |(number, name): (u64, String)| {
            let stage = Stage::from_name(&name);
            stage.map(|stage| (number, stage)).ok_or_else(|| de::Error::custom(format!("found no stage `{name}`")))
        };
        Vec::deserialize(deserializer)?.into_iter().map(named).collect()
    }
}
