//! Which failures are one bug.
//!
//! [`run`] takes the bundles of a campaign, or of several, reduces those that are not minimal, and puts those together
//! that have the same stage, the same kind of failure (refuted, refused, a crash) and the same [`Shape`] once they are
//! reduced. What differs in the end (an output, memory, that the target does not end) is no part of it: one bug shows
//! itself in all of these ways.
//!
//! Of many bundles that look alike before they are reduced not all are reduced: they are clustered by how they fail and
//! by what differs between the two sides of the stage in the whole program, and of each cluster the smallest are
//! reduced. The others are counted for the group of which they show the shape, as members that were not reduced; those
//! that show none are a group of their own that says so. The result is a function of the bundles, whatever the number of
//! threads.

mod change;
mod contents;
mod group;
mod shape;

pub use group::{Group, Kind};
pub use shape::Shape;

use crate::support::threads;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::harness::report::bundle;
use crate::harness::report::bundle::{Case, Evidence, ReduceError};
use group::Member;

/// How to go about it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads.
    pub jobs: usize,
    /// Reduce what is not minimal.
    pub reduce: bool,
    /// Of bundles that look alike, reduce so many.
    pub limit: usize,
    /// Stop reducing after so long; what has been reached is kept.
    pub time: Option<Duration>,
}

/// How far a triage has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Bundles that have been reduced.
    pub reduced: usize,
    /// Bundles to reduce.
    pub all: usize,
}

/// A bundle that is none, or could not be reduced: the error names it.
#[derive(Debug)]
pub struct Problem {
    /// The folder.
    pub path: PathBuf,
    /// What is wrong.
    pub error: Box<dyn std::error::Error + Send + Sync>,
}

/// What came out.
#[derive(Debug, Default)]
pub struct Triage {
    /// The groups, the one with the most failures first.
    pub groups: Vec<Group>,
    /// Folders that are no bundles, and bundles that could not be reduced.
    pub problems: Vec<Problem>,
    /// Bundles whose program does not fail as they say, with this version of the compiler.
    pub gone: Vec<PathBuf>,
    /// Whether there are bundles left that should have been reduced.
    pub unfinished: bool,
}

impl Triage {
    /// How many failures there are.
    pub fn failures(&self) -> usize {
        self.groups.iter().map(|group| group.count).sum()
    }

    /// How many of them are reduced.
    pub fn reduced(&self) -> usize {
        self.groups.iter().map(|group| group.reduced).sum()
    }
}

/// The bundles in a folder and in the folders in it, by name, and the folders that look like bundles and are none.
/// What processes that are no more have left half-written is removed.
///
/// # Errors
/// When a folder cannot be read.
pub fn find(root: &Path) -> io::Result<(Vec<PathBuf>, Vec<Problem>)> {
    let (mut bundles, mut problems) = (Vec::new(), Vec::new());
    if bundle::is_bundle(root) {
        return Ok((vec![root.to_owned()], problems));
    }
    walk(root, &mut bundles, &mut problems)?;
    Ok((bundles, problems))
}

fn walk(folder: &Path, bundles: &mut Vec<PathBuf>, problems: &mut Vec<Problem>) -> io::Result<()> {
    bundle::clean(folder)?;
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    entries.sort();
    let hidden = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    for path in entries.into_iter().filter(|path| path.is_dir() && !hidden(path)) {
        if bundle::is_bundle(&path) {
            bundles.push(path);
        } else if fs::read_dir(&path)?.any(|entry| entry.is_ok_and(|entry| entry.path().is_file())) {
            let error = "found no bundle.json, expected a bundle".into();
            problems.push(Problem { path, error });
        } else {
            walk(&path, bundles, problems)?;
        }
    }
    Ok(())
}

/// A bundle that has been read, and what it shows.
struct Seen {
    path: PathBuf,
    case: Case,
    shapes: Vec<Shape>,
}

/// Reads bundles, reduces them as far as `options` say, and groups them. `interrupted` stops reductions; what they have
/// reached is kept, and another call goes on from there.
pub fn run(
    bundles: &[PathBuf],
    options: &Options,
    interrupted: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Triage {
    let mut triage = Triage::default();
    let mut all = Vec::new();
    for seen in threads::map(options.jobs, bundles, |path| look(path)) {
        match seen {
            Ok(Some(seen)) => all.push(seen),
            Ok(None) => {}
            Err(problem) => triage.problems.push(problem),
        }
    }
    // Machines that were given the same seed have found the same.
    let mut names = BTreeSet::new();
    all.retain(|seen| names.insert(seen.case.folder_name()));
    if options.reduce {
        let chosen = choose(&all, options.limit);
        let deadline = options.time.and_then(|time| Instant::now().checked_add(time));
        let stopped = || interrupted.load(Ordering::Relaxed) || deadline.is_some_and(|end| Instant::now() >= end);
        let done = AtomicUsize::new(0);
        // A few bundles on many processors get several threads each.
        let inside = (options.jobs / chosen.len().max(1)).max(1);
        let reduced = threads::map(options.jobs, &chosen, |&n| {
            if stopped() {
                return (n, None);
            }
            let result = bundle::reduce(&all[n].path, inside, &mut |_| !stopped());
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
                // It is seen not to fail below.
                Some(Err(ReduceError::Other { .. })) => {}
                Some(Err(error)) => triage.problems.push(Problem { path, error: error.into() }),
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

/// Reads a bundle and runs it, unless it is minimal: then it is run later. Nothing where another process has taken it
/// away.
fn look(path: &Path) -> Result<Option<Seen>, Problem> {
    let case = match bundle::read(path) {
        Ok(case) => case,
        Err(bundle::ReadError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(Problem { path: path.to_owned(), error: error.into() }),
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

fn sides(evidence: &Evidence) -> Option<(&crate::semantics::Snapshot, &crate::semantics::Snapshot)> {
    evidence.before.as_ref().zip(evidence.after.as_ref())
}

/// The bundles that are to be reduced: the smallest of each cluster.
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
    // What takes longest begins first.
    chosen.sort_by_key(|&n| (Reverse(all[n].case.program.instruction_count()), n));
    chosen
}

/// What a bundle is for its group; nothing if it does not fail as it says.
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
