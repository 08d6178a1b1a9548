//! Programs whose inputs and outputs have given registers: their meaning is unchanged, and given registers are kept.
//! The front end gives none, so the test gives some after selection; every later stage has to keep them.

use crate::common::effort::effort;
use ir3_compiler::pipeline::{Options, RegisterLimit, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{Checker, Verdict};
use ir3_programs::generator::{Features, Profile, Seeded, assign_fixed_registers, from_seed};
use ir3_semantics::environment::env::Env;

#[test]
fn programs_with_given_registers_are_right() {
    let limits = ["target", "min", "min+6", "24", "96"].map(|text| text.parse::<RegisterLimit>().expect("a limit"));
    let (mut tested, mut given, mut below) = (0, 0, 0);
    let times = effort();
    for seed in 0..300 * times {
        let target = Target::by_name(["a540", "a330", "a660", "a750"][seed as usize % 4]).expect("a known GPU");
        let profile = Profile::ALL[(seed / 4) as usize % Profile::ALL.len()];
        let registers = limits[(seed / 7) as usize % limits.len()];
        let (merged, limit) = (target.merged_regs, registers.files(&target).full);
        let shader = from_seed(seed, profile, Features::of(&target)).shader;
        let mut count = 0;
        let mut plant = |stage: Stage, program: &mut ir3_compiler::ir3::Program| {
            if stage == Stage::Select {
                count = assign_fixed_registers(&mut Seeded::new(seed), program, merged, limit);
            }
        };
        let place = format!("{}, {}, seed {seed}, limit {registers}", target.name, profile.name());
        let mut checker = Checker::new(target, Options { registers, ..Options::default() });
        let report = checker.program(&shader, &Env::from_seeds(&[seed]), Some(&mut plant));
        let refuted = report.refutation().map(|refutation| (refutation.stage, &refutation.difference));
        assert!(refuted.is_none(), "{place}: {refuted:?}");
        assert_eq!(report.crash(), None, "{place}");
        below += u64::from(report.refusal.is_some());
        let is_tested = |verdict: &Verdict| matches!(verdict, Verdict::Tested { .. });
        if count > 0 && report.boundaries.last().is_some_and(|row| is_tested(&row.verdict)) {
            tested += 1;
            given += count as u64;
        }
    }
    println!("{tested} programs with {given} given registers, {below} refused");
    let [tested, given, below] = [tested, given, below].map(|count: u64| count / times);
    assert!(tested > 125 && given > 500 && below < 100, "{tested} {given} {below}");
}
