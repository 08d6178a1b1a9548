//! Every rewrite keeps what a program means.

use super::*;
use crate::check::campaign::env_seeds;
use crate::check::{Snapshot, Verdict, compare_snapshots};
use crate::semantics::env::Env;
use ir3_compiler::ir3::text::write;
use std::collections::BTreeMap;

/// Environments that each pair is run in.
const RUNS: u32 = 3;

fn compare(pair: &Pair, machine: &Target) -> Verdict {
    let envs: Vec<Env> = env_seeds(pair.seed, RUNS).into_iter().map(Env::from_seed).collect();
    let snapshot = |program: &Program| Snapshot::Ir3(Box::new(program.clone()));
    compare_snapshots(&snapshot(&pair.source), &snapshot(&pair.target), machine, &envs).0
}

/// `IR3_PAIRS=<n>` tries so many.
#[test]
fn pairs_are_equivalent() {
    let count: usize = std::env::var("IR3_PAIRS").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    let machine = Target::default();
    let mut table: BTreeMap<&str, [u32; 3]> = kinds().into_iter().map(|kind| (kind, [0; 3])).collect();
    for pair in pairs(0x7061_6972, &machine).take(count) {
        let show = || {
            format!(
                "{}, pair {}, {} behind {}\n--- source\n{}--- target\n{}",
                pair.kind,
                pair.number,
                pair.profile,
                pair.stage,
                write(&pair.source),
                write(&pair.target)
            )
        };
        if let Err(violations) = pair.validate(&machine) {
            let all: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
            panic!("{}\n{}", all.join("\n"), show());
        }
        assert_ne!(pair.source, pair.target, "{}", show());
        let row = table.entry(pair.kind).or_default();
        row[0] += 1;
        match compare(&pair, &machine) {
            Verdict::Tested { .. } => row[1] += 1,
            Verdict::Refuted(refutation) => panic!("{}\n{}", refutation.difference, show()),
            _ => row[2] += 1,
        }
    }
    for (kind, [all, tested, unknown]) in &table {
        println!("{kind:<26} {all:>5} pairs, {tested:>5} tested, {unknown:>5} without a run that means something");
        assert!(*tested > 0, "{kind}: nothing was tested");
    }
}

#[test]
fn a_number_gives_one_pair() {
    let machine = Target::default();
    let take = || pairs(5, &machine).take(40).map(|pair| (pair.kind, pair.source, pair.target)).collect::<Vec<_>>();
    assert!(take() == take());
}

#[test]
fn scaled_pairs_are_equivalent_and_half_rewritten() {
    let machine = Target::default();
    for shape in [Shape::Straight, Shape::Branches, Shape::Loops] {
        for (seed, size) in [(1, 100), (2, 500), (3, 2000)] {
            let pair = scaled(seed, size, shape, 50, &machine);
            let count = pair.source.instruction_count();
            assert!(count.abs_diff(size) <= 30, "{shape:?}: {count} of {size}");
            assert_eq!(validate(&pair.source, &machine, Form::Ssa), Ok(()), "{shape:?}");
            assert_eq!(pair.validate(&machine), Ok(()), "{shape:?}");
            let verdict = compare(&pair, &machine);
            assert!(matches!(verdict, Verdict::Tested { .. }), "{shape:?}, {size}: {verdict}, {:?}", verdict.reason());
            let same = pair
                .source
                .iter_instrs()
                .filter(|&(_, instr)| pair.source.instrs[instr] == pair.target.instrs[instr])
                .count();
            let rewritten = 100 * (count - same) / count;
            assert!((30..=60).contains(&rewritten), "{shape:?}, {size}: {rewritten} % rewritten");
        }
    }
}
