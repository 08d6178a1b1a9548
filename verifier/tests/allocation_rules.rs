//! The SSA allocator without one of its parts each: its results are right, parts that may be left out make a
//! difference, and a planted bug of spilling is refuted after its stage with whole values as with parts of them.

use crate::common::effort::effort;
use crate::common::reloads;
use ir3_compiler::ir3::{Opcode, Program};
use ir3_compiler::pipeline::{Feature, Options, RegisterLimit, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{Checker, Verdict};
use ir3_programs::generator::{Features, Profile, Seeded, assign_fixed_registers, from_seed};
use ir3_prove::registers;
use ir3_semantics::environment::env::Env;

/// The parts of the allocator.
const PARTS: [Feature; 5] = [
    Feature::MergeSets,
    Feature::VectorCoalescing,
    Feature::LiveRangeSplitting,
    Feature::PartialSpilling,
    Feature::Occupancy,
];

/// The options without one part, or without all of them.
fn without(number: usize) -> Options {
    match PARTS.get(number % (PARTS.len() + 1)) {
        Some(&part) => Options::default().without(part),
        None => PARTS.iter().fold(Options::default(), |options, &part| options.without(part)),
    }
}

/// Programs of every profile on one GPU of each kind, with few registers and all of them, some with given inputs and
/// outputs: nothing is refuted, by runs or by the register checker.
#[test]
fn programs_without_a_part_are_right() {
    let limits = ["target", "min", "24", "min+3", "12"].map(|text| text.parse::<RegisterLimit>().expect("a limit"));
    let (mut tested, mut proved, mut unproved, mut refused, mut spilled) = (0, 0, 0, 0, 0);
    let times = effort();
    for seed in 0..240 * times {
        let target = Target::by_name(["a540", "a306", "a660", "a750"][seed as usize % 4]).expect("a known GPU");
        let profile = Profile::ALL[(seed / 4) as usize % Profile::ALL.len()];
        let registers = limits[(seed / 7) as usize % limits.len()];
        let options = Options { registers, ..without((seed / 5) as usize) };
        let shader = from_seed(seed, profile, Features::of(&target)).shader;
        let limit = registers.files(&target).full;
        let left_out = Options::default().features - options.features;
        let place = format!("{}, {profile}, seed {seed}, limit {registers}, without {left_out:?}", target.name);
        let mut before: Option<Program> = None;
        let mut plant = |stage: Stage, program: &mut Program| {
            if stage == Stage::Select && seed % 3 == 0 {
                assign_fixed_registers(&mut Seeded::new(seed), program, target.merged_regs, limit);
            }
            if matches!(stage, Stage::SpillArrays | Stage::Spill | Stage::RegisterAllocation) {
                if let Some(source) = &before {
                    match registers::prove(source, program, &target) {
                        Ok(_) => proved += 1,
                        // The checker does not follow every phi whose value is in memory; the runs below decide.
                        Err(_) if stage == Stage::Spill && left_out.contains(Feature::PartialSpilling) => unproved += 1,
                        Err(failure) => panic!("{place}, {stage}: {failure}"),
                    }
                }
                let is_spilled = program.iter_instrs().any(|(_, i)| program.instrs[i].opcode == Opcode::ReloadMacro);
                spilled += u64::from(is_spilled && stage == Stage::Spill);
            }
            let is_followed = matches!(stage, Stage::SharedRegisters | Stage::SpillArrays | Stage::Spill);
            before = is_followed.then(|| program.clone());
        };
        let mut checker = Checker::new(target, options);
        let report = checker.program(&shader, &Env::from_seeds(&[seed]), Some(&mut plant));
        let refuted = report.refutation().map(|refutation| (refutation.stage, &refutation.difference));
        assert!(refuted.is_none(), "{place}: {refuted:?}");
        assert_eq!(report.crash(), None, "{place}");
        refused += u64::from(report.refusal.is_some());
        tested += u64::from(report.boundaries.last().is_some_and(|row| matches!(row.verdict, Verdict::Tested { .. })));
    }
    println!("{tested} tested, {proved} proved, {unproved} not proved, {refused} refused, {spilled} spilled");
    let [tested, proved, unproved, spilled, refused] =
        [tested, proved, unproved, spilled, refused].map(|count: u64| count / times);
    assert!(unproved < 5, "{unproved}");
    assert!(tested > 150 && proved > 250 && spilled > 15 && refused < 50, "{tested} {proved} {refused} {spilled}");
}

#[test]
fn reloads_of_whole_values_at_the_wrong_place_are_refuted_after_spill() {
    let registers = RegisterLimit::Registers(10);
    reloads::are_refuted_after_spill(Options { registers, ..Options::default().without(Feature::PartialSpilling) });
}
