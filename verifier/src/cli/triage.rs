//! `triage`: reduces the bundles of campaigns and groups them by cause.

use crate::exit;
use crate::values;
use crate::{Exit, Failure, Format, Jobs, interrupt, output};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use ir3_report::triage;
use ir3_report::triage::{Group, Progress, TriageOptions};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Options of `triage`.
#[derive(Args)]
pub struct Triage {
    /// The folder of the bundles of a finished or interrupted campaign; or a folder of several such folders.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    reducing: Reducing,
    #[command(flatten)]
    jobs: Jobs,
}

/// The options of reductions, for every subcommand that reduces.
#[derive(Args)]
pub struct Reducing {
    /// Do not reduce failures.
    #[arg(long)]
    no_reduce: bool,
    /// Stop reducing after this time (`90s`, `10m`); a further `triage` continues.
    #[arg(long, value_name = "T", value_parser = values::time, conflicts_with = "no_reduce")]
    reduce_time: Option<Duration>,
    /// The maximum number of failures to reduce among those that look alike; the others are only counted.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = values::count::<usize>())]
    reduce_limit: usize,
}

impl Reducing {
    /// The limits of reductions, in time and in failures that look alike; `None` if failures are not reduced.
    pub fn wanted(&self) -> Option<(Option<Duration>, usize)> {
        (!self.no_reduce).then_some((self.reduce_time, self.reduce_limit))
    }

    /// Reduces bundles within the limits of the options, and groups them.
    pub fn run(&self, bundles: &[PathBuf], jobs: usize, interrupted: &AtomicBool) -> Result<triage::Triage, Failure> {
        let (reduce, limit, time) = (!self.no_reduce, self.reduce_limit, self.reduce_time);
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {elapsed}, {msg}")?);
        bar.enable_steady_tick(Duration::from_millis(200));
        let progress = |Progress { reduced, all }| bar.set_message(format!("{reduced} of {all} failures reduced"));
        let triage =
            triage::run(bundles, &TriageOptions { jobs, reduce, limit, time, own_pass: None }, interrupted, &progress);
        bar.finish_and_clear();
        Ok(triage)
    }
}

impl Triage {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let interrupted = interrupt::flag();
        let in_folder = |error: std::io::Error| format!("{}: {error}", self.folder.display());
        let (bundles, problems) = triage::find(&self.folder).map_err(in_folder)?;
        if bundles.is_empty() && problems.is_empty() {
            let message = format!("{}: found no bundle, expected those of a campaign", self.folder.display());
            return Err(message.into());
        }
        let mut triage = self.reducing.run(&bundles, self.jobs.count(), interrupted)?;
        triage.problems.extend(problems);
        triage.problems.sort_by(|a, b| a.path.cmp(&b.path));
        print(format, &triage, &self.folder);
        let problems = triage.problems.iter().map(|problem| exit::of_failure(&*problem.error)).max();
        Ok(problems.unwrap_or(Exit::Refuted.when(triage.failures() > 0)))
    }
}

/// The summary, as JSON.
#[derive(Serialize)]
struct Counts {
    groups: usize,
    failures: usize,
    reduced: usize,
    /// Bundles whose failure does not occur any more.
    gone: Vec<String>,
    /// Folders that cannot be read.
    problems: Vec<String>,
    unfinished: bool,
}

/// Prints the groups. `root` is the folder from which `triage` can resume.
pub fn print(format: Format, triage: &triage::Triage, root: &Path) {
    let (failures, reduced) = (triage.failures(), triage.reduced());
    for problem in &triage.problems {
        output::problem(&format!("{}: {}", problem.path.display(), without_path(problem)));
    }
    if format == Format::Json {
        for group in &triage.groups {
            output::json("group", group);
        }
        let names = |paths: &mut dyn Iterator<Item = &PathBuf>| paths.map(|path| path.display().to_string()).collect();
        return output::json(
            "triage",
            &Counts {
                groups: triage.groups.len(),
                failures,
                reduced,
                gone: names(&mut triage.gone.iter()),
                problems: names(&mut triage.problems.iter().map(|problem| &problem.path)),
                unfinished: triage.unfinished,
            },
        );
    }
    for path in &triage.gone {
        output::line(&format!("{}: does not fail any more", path.display()));
    }
    match &triage.groups[..] {
        [] => {}
        // A single failure needs no table.
        [group] if failures == 1 => one(group),
        groups => table(groups),
    }
    if triage.unfinished {
        unfinished(root);
    }
}

/// Prints the command that resumes the triage of a folder.
pub fn unfinished(root: &Path) {
    output::line(&format!("not at its end; to go on: ir3-equiv triage {}", root.display()));
}

/// Removes the path from the beginning of a message of a bundle's error.
fn without_path(problem: &triage::TriageProblem) -> String {
    let message = problem.error.to_string();
    let path = format!("{}: ", problem.path.display());
    message.strip_prefix(&path).map(str::to_owned).unwrap_or(message)
}

/// The kind of a group, with all kinds of differences that occur in it.
fn kind(group: &Group) -> String {
    let differences: Vec<&str> = group.differences.iter().map(String::as_str).collect();
    match &differences[..] {
        [] => group.kind.to_string(),
        differences => format!("{} ({})", group.kind, differences.join(", ")),
    }
}

fn shape(group: &Group) -> String {
    group.shape.as_ref().map_or_else(|| "not reduced".to_owned(), ToString::to_string)
}

fn one(group: &Group) {
    output::line(&format!("{}, {}: {}", group.stage, kind(group), shape(group)));
    let from = match group.reduced {
        0 => format!("{} instructions, not reduced", group.instructions),
        _ => format!("{} instructions to {}", group.original, group.instructions),
    };
    output::line(&format!("  {from}, in {}", group.folder.display()));
    output::line(&format!("  see it again: ir3-equiv verify {}", group.folder.display()));
}

fn table(groups: &[Group]) {
    let rows: Vec<[String; 7]> = groups
        .iter()
        .enumerate()
        .map(|(n, group)| {
            [
                (n + 1).to_string(),
                group.stage.to_owned(),
                kind(group),
                shape(group),
                group.count.to_string(),
                group.reduced.to_string(),
                format!("{} to {}", group.original, group.instructions),
            ]
        })
        .collect();
    let heads = ["#", "stage", "kind", "shape", "count", "reduced", "size"];
    let width = |k: usize| rows.iter().map(|row| row[k].chars().count()).chain([heads[k].len()]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let row = |cells: [&str; 7], folder: &str| {
        let cells = cells.iter().zip(&widths).enumerate().map(|(k, (cell, &width))| match k {
            0 | 4..=6 => format!("{cell:>width$}"),
            _ => format!("{cell:width$}"),
        });
        output::line(&format!("{}  {folder}", cells.collect::<Vec<_>>().join("  ")));
    };
    row(heads, "smallest");
    for (cells, group) in rows.iter().zip(groups) {
        row(cells.each_ref().map(String::as_str), &group.folder.display().to_string());
    }
    let (all, reduced) =
        (groups.iter().map(|g| g.count).sum::<usize>(), groups.iter().map(|g| g.reduced).sum::<usize>());
    let word = if groups.len() == 1 { "group" } else { "groups" };
    let failures = if all == 1 { "failure" } else { "failures" };
    output::line(&format!("{all} {failures} in {} {word}, {reduced} of them reduced", groups.len()));
    if let Some(group) = groups.first() {
        output::line(&format!("see one again: ir3-equiv verify {}", group.folder.display()));
    }
}
