//! Groups of failures with the same cause.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ir3_compiler::pipeline::Stage;
use ir3_compiler::words;
use serde::Serialize;

use super::Shape;
use ir3_harness::case;
use ir3_harness::guard::Stop;
use ir3_harness::reduce::Failure;

/// A bundle in a group.
pub(super) struct Member {
    pub path: PathBuf,
    pub stage: Stage,
    pub failure: Failure,
    pub instructions: usize,
    /// The number of instructions before the reduction.
    pub original: usize,
    pub minimal: bool,
    /// The shape of the failing program: one for a minimal bundle, otherwise all candidates.
    pub shapes: Vec<Shape>,
}

words! {
    /// The kind of a failure.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum FailureKind {
        /// A stage changed the meaning of the program.
        Refuted = "refuted",
        /// The compiler or an engine panicked.
        Crash = "crash",
        /// The compiler refused the program.
        Refused = "refused",
        /// The interpreter does not support the program.
        Unsupported = "unsupported",
        /// The compiler did not terminate.
        OutOfTime = "out-of-time",
        /// The compiler ran out of memory.
        OutOfMemory = "out-of-memory",
    }
}

impl FailureKind {
    /// The kind of a failure.
    pub const fn of(failure: &Failure) -> Self {
        match failure {
            Failure::Refuted { .. } => Self::Refuted,
            Failure::Refused { .. } => Self::Refused,
            Failure::Unsupported { .. } => Self::Unsupported,
            Failure::Panic { .. } => Self::Crash,
            Failure::Stopped(stopped) => match stopped.stop {
                Stop::Time => Self::OutOfTime,
                Stop::Memory => Self::OutOfMemory,
                Stop::Stack | Stop::Died => Self::Crash,
            },
        }
    }
}

/// Failures that probably have the same cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The stage.
    pub stage: &'static str,
    /// The kind of failure.
    pub kind: FailureKind,
    /// All kinds of differences that occur, if the failures are refutations.
    pub differences: BTreeSet<String>,
    /// The shape; `None` for bundles that were not reduced and have no shape of a reduced one.
    pub shape: Option<Shape>,
    /// The number of failures.
    pub count: usize,
    /// The number of reduced ones. The others have the shape among the changes of their unreduced programs.
    pub reduced: usize,
    /// The number of instructions of the smallest.
    pub instructions: usize,
    /// The number of its instructions before the reduction.
    pub original: usize,
    /// The folder of the smallest.
    pub folder: PathBuf,
}

/// Groups the members. The largest group comes first.
pub(super) fn groups(members: Vec<Member>) -> Vec<Group> {
    let key = |member: &Member, shape: Option<&Shape>| (member.stage, FailureKind::of(&member.failure), shape.cloned());
    let mut groups: BTreeMap<_, Vec<&Member>> = BTreeMap::new();
    let (minimal, others): (Vec<&Member>, Vec<&Member>) = members.iter().partition(|member| member.minimal);
    for member in minimal {
        groups.entry(key(member, member.shapes.first())).or_default().push(member);
    }
    let shapes: BTreeSet<_> = groups.keys().cloned().collect();
    for member in others {
        // The place of a panic and the reason of a refusal do not depend on the reduction.
        let known = |shape: &&Shape| shapes.contains(&key(member, Some(shape)));
        let shape = match member.failure {
            Failure::Refuted { .. } => member.shapes.iter().find(known),
            _ => member.shapes.first(),
        };
        groups.entry(key(member, shape)).or_default().push(member);
    }
    let mut groups: Vec<Group> =
        groups.into_iter().map(|((stage, kind, shape), all)| group(stage, kind, shape, &all)).collect();
    groups.sort_by_key(|group| Reverse(group.count));
    groups
}

fn group(stage: Stage, kind: FailureKind, shape: Option<Shape>, members: &[&Member]) -> Group {
    // A reduced member is a better example than an unreduced smaller one.
    let smallest = members.iter().min_by_key(|member| (!member.minimal, member.instructions, &member.path));
    let differences = members.iter().filter(|_| kind == FailureKind::Refuted).map(|member| case::kind(&member.failure));
    Group {
        stage: stage.name(),
        kind,
        differences: differences.collect(),
        shape,
        count: members.len(),
        reduced: members.iter().filter(|member| member.minimal).count(),
        instructions: smallest.map_or(0, |member| member.instructions),
        original: smallest.map_or(0, |member| member.original),
        folder: smallest.map(|member| member.path.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_harness::reduce::oracle::DifferenceKind;

    fn member(name: &str, failure: Failure, minimal: bool, shapes: &[&str]) -> Member {
        Member {
            path: name.into(),
            stage: Stage::LowerCopies,
            failure,
            instructions: name.len(),
            original: 100,
            minimal,
            shapes: shapes.iter().map(|&shape| Shape::from(shape)).collect(),
        }
    }

    fn refuted(name: &str, difference: DifferenceKind, minimal: bool, shapes: &[&str]) -> Member {
        member(name, Failure::Refuted { stage: Stage::LowerCopies, difference }, minimal, shapes)
    }

    #[test]
    fn what_differs_in_the_end_does_not_matter() {
        use DifferenceKind::{Memory, Output};
        let groups = groups(vec![
            refuted("abc", Output, true, &["lost"]),
            refuted("ab", Memory, true, &["lost"]),
            refuted("a", Memory, true, &["torn"]),
        ]);
        let [one, other] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!((one.count, one.reduced, one.instructions), (2, 2, 2));
        assert_eq!(one.differences, BTreeSet::from(["memory".to_owned(), "output".to_owned()]));
        assert_eq!((other.count, &other.folder), (1, &PathBuf::from("a")));
    }

    #[test]
    fn who_was_not_reduced_is_counted_apart() {
        use DifferenceKind::Output;
        let groups = groups(vec![
            refuted("reduced", Output, true, &["lost"]),
            // The second of its shapes is that of a reduced one.
            refuted("x", Output, false, &["order", "lost"]),
            // It has no shape of a reduced one.
            refuted("y", Output, false, &["order"]),
        ]);
        let [one, other] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!((one.count, one.reduced, one.folder.as_path()), (2, 1, std::path::Path::new("reduced")));
        assert_eq!((other.count, other.reduced, &other.shape), (1, 0, &None));
    }

    #[test]
    fn a_crash_is_known_by_its_place() {
        let crash =
            |name, place: &str, minimal| member(name, Failure::Panic { place: place.to_owned() }, minimal, &[place]);
        let groups = groups(vec![crash("a", "x.rs:1", false), crash("b", "x.rs:1", false), crash("c", "y.rs:1", true)]);
        let counts: Vec<_> = groups.iter().map(|group| (group.count, group.reduced)).collect();
        assert_eq!(counts, [(2, 0), (1, 1)]);
        assert!(groups.iter().all(|group| group.shape.is_some()));
    }
}
