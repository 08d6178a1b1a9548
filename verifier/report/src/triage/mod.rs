//! Triage: groups failures that have the same cause.
//!
//! [`run`] takes the bundles of one or several campaigns, reduces those that are not minimal, and groups those with the
//! same stage, the same kind of failure (refuted, refused, a crash) and the same [`Shape`] of the reduced program. The
//! observed difference (an output, memory, an endless loop) does not count: one bug can have all of these effects.
//!
//! Only some of many similar bundles are reduced: they are clustered by their failure and by the changes between the
//! two sides of the stage in the unreduced program, and the smallest of each cluster are reduced. The others are
//! counted as unreduced members of the group whose shape they have; those without such a shape are a group of their
//! own. The result is a function of the bundles, for any number of threads.

mod change;
mod group;
mod reaching_values;
mod shape;

pub use group::{FailureKind, Group};
pub use shape::Shape;

use ir3_compiler::pipeline::OwnPass;
use ir3_semantics::support::threads;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::bundle::{self, ReduceError};
use group::Member;
use ir3_harness::case::{self, Case, Evidence, ReadError};
use ir3_programs::mesa::input::is_pair_folder;

/// Options of a triage.
#[derive(Clone, Debug)]
pub struct TriageOptions {
    /// The number of threads.
    pub jobs: usize,
    /// Reduce bundles that are not minimal.
    pub reduce: bool,
    /// The number of bundles to be reduced in each cluster.
    pub limit: usize,
    /// Stop reducing after this time; the progress of the reductions is kept.
    pub time: Option<Duration>,
    /// The pass of the caller that the failures may have.
    pub own_pass: Option<OwnPass>,
}

impl Default for TriageOptions {
    fn default() -> Self {
        Self { jobs: threads::default_jobs(), reduce: true, limit: 3, time: None, own_pass: None }
    }
}

/// The progress of a triage.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// The number of bundles that have been reduced.
    pub reduced: usize,
    /// The number of bundles to reduce.
    pub all: usize,
}

/// A folder that is not a bundle, or a bundle that could not be reduced.
#[derive(Debug)]
pub struct TriageProblem {
    /// The folder.
    pub path: PathBuf,
    /// The error.
    pub error: Box<dyn std::error::Error + Send + Sync>,
}

/// The result of a triage.
#[derive(Debug, Default)]
pub struct Triage {
    /// The groups, the largest first.
    pub groups: Vec<Group>,
    /// Folders that are not bundles, and bundles that could not be reduced.
    pub problems: Vec<TriageProblem>,
    /// Bundles whose failure does not occur with this version of the compiler.
    pub gone: Vec<PathBuf>,
    /// True if there are bundles left that should have been reduced.
    pub unfinished: bool,
}

impl Triage {
    /// The number of failures.
    pub fn failures(&self) -> usize {
        self.groups.iter().map(|group| group.count).sum()
    }

    /// The number of failures that are reduced.
    pub fn reduced(&self) -> usize {
        self.groups.iter().map(|group| group.reduced).sum()
    }
}

/// Finds the bundles in a folder and its subfolders, by name, and the folders that look like bundles but are not.
/// Removes partial folders of processes that have ended.
///
/// # Errors
/// If a folder cannot be read.
pub fn find(root: &Path) -> io::Result<(Vec<PathBuf>, Vec<TriageProblem>)> {
    let (mut bundles, mut problems) = (Vec::new(), Vec::new());
    if case::is_bundle(root) {
        return Ok((vec![root.to_owned()], problems));
    }
    walk(root, &mut bundles, &mut problems)?;
    Ok((bundles, problems))
}

fn walk(folder: &Path, bundles: &mut Vec<PathBuf>, problems: &mut Vec<TriageProblem>) -> io::Result<()> {
    case::clean(folder)?;
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    entries.sort();
    let hidden = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    for path in entries.into_iter().filter(|path| path.is_dir() && !hidden(path)) {
        if case::is_bundle(&path) {
            bundles.push(path);
        } else if fs::read_dir(&path)?.any(|entry| entry.is_ok_and(|entry| entry.path().is_file())) {
            let error = match is_pair_folder(&path) {
                true => {
                    "found a refuted pair, which cannot be compiled again, expected a bundle: `ir3-equiv show` writes its page"
                }
                false => "found no bundle.json, expected a bundle",
            };
            let error = error.into();
            problems.push(TriageProblem { path, error });
        } else {
            walk(&path, bundles, problems)?;
        }
    }
    Ok(())
}

/// A bundle that has been read, with its candidate shapes.
struct Seen {
    path: PathBuf,
    case: Case,
    shapes: Vec<Shape>,
}

/// Reads bundles, reduces them according to `options`, and groups them. `interrupted` stops the reductions; their
/// progress is kept, and another call resumes from there.
pub fn run(
    bundles: &[PathBuf],
    options: &TriageOptions,
    interrupted: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Triage {
    let mut triage = Triage::default();
    let mut all = Vec::new();
    for seen in threads::map(options.jobs, bundles, |path| look(path, options.own_pass)) {
        match seen {
            Ok(Some(seen)) => all.push(seen),
            Ok(None) => {}
            Err(problem) => triage.problems.push(problem),
        }
    }
    // Machines that were given the same seed have found the same failures.
    let mut names = BTreeSet::new();
    all.retain(|seen| names.insert(seen.case.folder_name()));
    if options.reduce {
        let chosen = choose(&all, options.limit);
        let deadline = options.time.and_then(|time| Instant::now().checked_add(time));
        let stopped = || interrupted.load(Ordering::Relaxed) || deadline.is_some_and(|end| Instant::now() >= end);
        let done = AtomicUsize::new(0);
        // With few bundles on many processors, each reduction gets several threads.
        let inside = (options.jobs / chosen.len().max(1)).max(1);
        let reduced = threads::map(options.jobs, &chosen, |&n| {
            if stopped() {
                return (n, None);
            }
            let result = bundle::reduce_with(&all[n].path, options.own_pass, inside, &mut |_| !stopped());
            let reduced = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress(Progress { reduced, all: chosen.len() });
            (n, Some(result))
        });
        for (n, result) in reduced {
            let path = all[n].path.clone();
            match result {
                None => triage.unfinished = true,
                Some(Ok(reduction)) => {
                    triage.unfinished |= !reduction.case.minimal;
                    all[n].case = reduction.case;
                }
                // Its failure does not occur any more, which is detected below.
                Some(Err(ReduceError::Other { .. })) => {}
                Some(Err(error)) => triage.problems.push(TriageProblem { path, error: error.into() }),
            }
        }
    }
    let members = threads::map(options.jobs, &all, member);
    let mut found = Vec::new();
    for (seen, member) in all.iter().zip(members) {
        match member {
            Some(member) => found.push(member),
            None => triage.gone.push(seen.path.clone()),
        }
    }
    triage.groups = group::groups(found);
    triage.problems.sort_by(|a, b| a.path.cmp(&b.path));
    triage
}

/// Reads a bundle and runs it, unless it is minimal: then it is run later. `None` if another process has removed it.
fn look(path: &Path, own_pass: Option<OwnPass>) -> Result<Option<Seen>, TriageProblem> {
    let case = match case::read_with(path, own_pass) {
        Ok(case) => case,
        Err(ReadError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(TriageProblem { path: path.to_owned(), error: error.into() }),
    };
    let shapes = if case.minimal {
        bundle::forget_checkpoint(path);
        Vec::new()
    } else {
        let evidence = Evidence::of(&case);
        Shape::candidates(&case.symptom.failure, sides(&evidence), &case.target)
    };
    Ok(Some(Seen { path: path.to_owned(), case, shapes }))
}

fn sides(evidence: &Evidence) -> Option<(&ir3_semantics::Snapshot, &ir3_semantics::Snapshot)> {
    evidence.before.as_ref().zip(evidence.after.as_ref())
}

/// The bundles to be reduced: the smallest of each cluster.
fn choose(all: &[Seen], limit: usize) -> Vec<usize> {
    let mut clusters: BTreeMap<(String, &[Shape]), Vec<usize>> = BTreeMap::new();
    for (n, seen) in all.iter().enumerate().filter(|(_, seen)| !seen.case.minimal) {
        clusters.entry((seen.case.symptom.failure.to_string(), &seen.shapes)).or_default().push(n);
    }
    let mut chosen = Vec::new();
    for mut cluster in clusters.into_values() {
        cluster.sort_by_key(|&n| (all[n].case.program.instruction_count(), all[n].case.folder_name()));
        cluster.truncate(limit);
        chosen.extend(cluster);
    }
    // The longest reductions start first.
    chosen.sort_by_key(|&n| (Reverse(all[n].case.program.instruction_count()), n));
    chosen
}

/// Runs a bundle and makes a member of it; `None` if its failure does not occur any more.
fn member(seen: &Seen) -> Option<Member> {
    let Case { program, target, symptom, minimal, original, .. } = &seen.case;
    let evidence = Evidence::of(&seen.case);
    if evidence.symptom.as_ref()?.failure != symptom.failure {
        return None;
    }
    let shapes = if *minimal {
        vec![Shape::of(&symptom.failure, program, sides(&evidence), target)]
    } else {
        seen.shapes.clone()
    };
    Some(Member {
        path: seen.path.clone(),
        stage: symptom.stage,
        failure: symptom.failure.clone(),
        instructions: program.instruction_count(),
        original: original.as_ref().map_or(program, |original| &original.program).instruction_count(),
        minimal: *minimal,
        shapes,
    })
}
