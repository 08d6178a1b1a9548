//! `merge`: adds up the parts of a campaign, and groups their failures.

use crate::exit::{Exit, Failure};
use crate::results::Results;
use crate::triage::{self, Reducing};
use crate::unknown_programs::UnknownPrograms;
use crate::{Format, Jobs, exit, fuzz, interrupt, output};
use clap::Args;
use ir3_harness::campaigns::counts::Counts;
use ir3_harness::campaigns::shard::Shard;
use ir3_harness::check::Summary;
use ir3_report::triage as groups;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options of `merge`.
#[derive(Args)]
pub struct Merge {
    /// The folders of failures that the parts of one campaign have left (`--shard`, `--failures`).
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    reducing: Reducing,
    #[command(flatten)]
    jobs: Jobs,
}

impl Merge {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let mut parts: BTreeMap<Shard, Results> = BTreeMap::new();
        for folder in &self.folders {
            let results = Results::read(folder)?;
            let shard = results.part().map_err(|error| format!("{}: {error}", folder.display()))?;
            if let Some(first) = parts.values().next()
                && (first.campaign != results.campaign || first.part()?.count() != shard.count())
            {
                let (campaign, part) = (&results.campaign, &results.shard);
                return Err(format!(
                    "{}: found part {part} of `{campaign}`, expected one of {} of `{}`",
                    folder.display(),
                    first.part()?.count(),
                    first.campaign
                )
                .into());
            }
            if parts.insert(shard, results).is_some() {
                return Err(format!("{}: found part {shard} a second time", folder.display()).into());
            }
        }
        let mut summary = Summary::default();
        let mut counts: Option<Counts> = None;
        let mut unknown = UnknownPrograms::default();
        for part in parts.values() {
            summary.add(&part.summary);
            if let Some(of_part) = &part.counts {
                counts.get_or_insert_default().add(of_part);
            }
            unknown.absorb(&part.unknown)?;
        }
        let count = parts.keys().next().map_or(0, |shard| shard.count());
        let has = |index: &u64| parts.keys().any(|shard| shard.index() == *index);
        let missing: Vec<String> = (1..=count).filter(|index| !has(index)).map(|n| n.to_string()).collect();
        match &counts {
            Some(counts) => fuzz::print(format, counts, &unknown),
            None => unknown.print(format),
        }
        let mut bundles = Vec::new();
        for folder in &self.folders {
            let (found, problems) = groups::find(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            bundles.extend(found);
            problems
                .iter()
                .for_each(|problem| output::problem(&format!("{}: {}", problem.path.display(), problem.error)));
        }
        if !bundles.is_empty() {
            let triage = self.reducing.run(&bundles, self.jobs.count(), interrupt::flag())?;
            triage::print(format, &triage, &self.folders[0]);
        }
        output::summary(&summary);
        if !missing.is_empty() {
            output::problem(&format!("{} of {count} parts are missing: {}", missing.len(), missing.join(", ")));
        }
        for part in parts.values().filter(|part| part.summary.interrupted) {
            output::problem(&format!("part {} was interrupted", part.shard));
        }
        let is_partial = !missing.is_empty() || summary.interrupted;
        let of_verdicts = counts.as_ref().map_or_else(|| exit::of_verdicts(&summary), fuzz::exit_of);
        let unsound = counts.as_ref().is_some_and(|counts| !counts.wrong_proofs.is_empty());
        let failed = !bundles.is_empty() || summary.refuted + summary.crashed > 0;
        // The shares of `verify --require` were judged where the parts ran.
        Ok(Exit::of_all([
            of_verdicts,
            Exit::Refuted.when(failed),
            Exit::Unmet.when(is_partial),
            Exit::Unsound.when(unsound),
        ]))
    }
}
