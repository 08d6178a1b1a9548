//! Tests that every rewrite keeps the meaning of programs.

use ir3_compiler::ir3::Program;
use ir3_compiler::ir3::text::write;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::target::Target;
use ir3_harness::check::{Verdict, compare_snapshots};
use ir3_programs::Case;
use ir3_programs::equivalent_pairs::{ControlFlowShape, EquivalentPair, RewriteSite, kinds, local, pairs, scaled};
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;
use std::collections::BTreeMap;

fn compare(pair: &EquivalentPair, machine: &Target) -> Verdict {
    compare_snapshots(&pair.source, &pair.target, machine, &pair.envs()).0
}

fn sides(pair: &EquivalentPair) -> (&Program, &Program) {
    (pair.source.as_ir3().unwrap(), pair.target.as_ir3().unwrap())
}

/// `IR3_PAIRS=<n>` sets the number of pairs.
#[test]
fn pairs_are_equivalent() {
    let count: usize = std::env::var("IR3_PAIRS").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    let machine = Target::default();
    let mut table: BTreeMap<&str, [u32; 3]> = kinds().into_iter().map(|kind| (kind, [0; 3])).collect();
    for pair in pairs(0x7061_6972, &machine).take(count) {
        let (source, target) = sides(&pair);
        let show = || {
            format!(
                "{}, pair {}, {} after {}\n--- source\n{}--- target\n{}",
                pair.kind,
                pair.number,
                pair.profile,
                pair.stage,
                write(source),
                write(target)
            )
        };
        if let Err(violations) = pair.validate(&machine) {
            let all: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
            panic!("{}\n{}", all.join("\n"), show());
        }
        assert_ne!(source, target, "{}", show());
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
    let take = || {
        pairs(5, &machine)
            .take(40)
            .map(|pair| (pair.kind, sides(&pair).0.clone(), sides(&pair).1.clone()))
            .collect::<Vec<_>>()
    };
    assert!(take() == take());
}

#[test]
fn scaled_pairs_are_equivalent_and_half_rewritten() {
    let machine = Target::default();
    for shape in [ControlFlowShape::Straight, ControlFlowShape::Branches, ControlFlowShape::Loops] {
        for (seed, size) in [(1, 100), (2, 500), (3, 2000)] {
            let pair = scaled(seed, size, shape, 50, &machine);
            let (source, target) = sides(&pair);
            let count = source.instruction_count();
            assert!(count.abs_diff(size) <= 30, "{shape:?}: {count} of {size}");
            assert_eq!(validate(source, &machine, Form::Ssa), Ok(()), "{shape:?}");
            assert_eq!(pair.validate(&machine), Ok(()), "{shape:?}");
            let verdict = compare(&pair, &machine);
            assert!(matches!(verdict, Verdict::Tested { .. }), "{shape:?}, {size}: {verdict}, {:?}", verdict.reason());
            let same = source.iter_instrs().filter(|&(_, instr)| source.instrs[instr] == target.instrs[instr]).count();
            let rewritten = 100 * (count - same) / count;
            assert!((30..=60).contains(&rewritten), "{shape:?}, {size}: {rewritten} % rewritten");
        }
    }
}

/// Runs refute rules that are wrong.
#[test]
fn wrong_rewrites_are_seen() {
    use ir3_compiler::ir3::{Opcode, SrcOperand};

    fn turned_difference(at: &mut RewriteSite<'_>) -> bool {
        let data = &mut at.program.instrs[at.instr];
        let difference =
            data.opcode == Opcode::SubU && data.srcs[0].value().is_some() && data.srcs[1].value().is_some();
        if difference {
            data.srcs.swap(0, 1);
        }
        difference
    }
    fn one_bit_more(at: &mut RewriteSite<'_>) -> bool {
        let data = &mut at.program.instrs[at.instr];
        match (data.opcode, data.srcs.get_mut(1).map(|src| &mut src.operand)) {
            (Opcode::ShlB | Opcode::ShrB, Some(SrcOperand::Immediate(count))) if *count < 15 => *count += 1,
            _ => return false,
        }
        true
    }
    let machine = Target::default();
    let wrong: [(&str, local::RewriteRule); 2] =
        [("turned difference", turned_difference), ("one bit more", one_bit_more)];
    for (name, rule) in wrong {
        let (mut made, mut seen) = (0, 0);
        for pair in pairs(9, &machine).take(120) {
            let mut target = sides(&pair).0.clone();
            if local::rewrite(&mut target, &machine, &mut Random::new(pair.seed), &[rule], 100) == 0 {
                continue;
            }
            made += 1;
            let target = Snapshot::Ir3(Box::new(target));
            let pair = EquivalentPair { target, ..pair };
            seen += u32::from(matches!(compare(&pair, &machine), Verdict::Refuted(_)));
        }
        assert!(made >= 10 && seen * 2 >= made, "{name}: {seen} of {made} seen");
    }
}
