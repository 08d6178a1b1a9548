//! Graph colouring: its results are right with every rule of rotation, and planted bugs are refuted after register
//! allocation.

use crate::common::effort::effort;
use crate::common::reloads;
use ir3_compiler::compilation::compile;
use ir3_compiler::ir3::{Opcode, Program};
use ir3_compiler::nir;
use ir3_compiler::pipeline::{Allocator, Options, RegisterLimit, Rotation, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{Checker, Verdict};
use ir3_programs::generator::{Features, Profile, Seeded, assign_fixed_registers, from_seed};
use ir3_programs::planted_bugs;
use ir3_prove::registers;
use ir3_semantics::environment::env::Env;

fn options(rotation: Rotation, registers: RegisterLimit) -> Options {
    Options { allocator: Allocator::GraphColouring(rotation), registers, ..Options::default() }
}

/// The least limit is the need of colouring, which may be more than the registers that are live at one point: the SSA
/// allocator compiles these programs with as few, and this one found no register for some value.
#[test]
fn the_least_limit_is_what_colouring_needs() {
    let target = Target::default();
    for (seed, limits) in [(10_255_571_510_873_142_071, 0..8), (11_350_867_677_887_278_845, 0..8)] {
        let shader = from_seed(seed, Profile::Pressure, Features::of(&target)).shader;
        for more in limits {
            let registers = RegisterLimit::Minimum(more);
            for allocator in [Options::default().allocator, Allocator::GraphColouring(Rotation::default())] {
                let options = Options { allocator, registers, last: Stage::RegisterAllocation, ..Options::default() };
                let compiled = compile(&shader, &target, &options, &mut |_, _| ());
                assert!(compiled.is_ok(), "{seed}, {registers}, {allocator:?}: {:?}", compiled.err());
            }
        }
    }
}

/// Programs of every profile on one GPU of each kind, with few registers and all of them, some with given inputs and
/// outputs: nothing is refuted, by runs or by the register checker, which does not follow all values that lanes share
/// over branches.
#[test]
fn programs_are_right() {
    let limits = ["target", "min+6", "24", "12"].map(|text| text.parse::<RegisterLimit>().expect("a limit"));
    let (mut tested, mut proved, mut refused, mut spilled) = (0, 0, 0, 0);
    let mut open = Vec::new();
    let times = effort();
    for seed in 0..200 * times {
        let target = Target::by_name(["a540", "a306", "a660", "a750"][seed as usize % 4]).expect("a known GPU");
        let profile = Profile::ALL[(seed / 4) as usize % Profile::ALL.len()];
        let registers = limits[(seed / 7) as usize % limits.len()];
        let rotation = Rotation::ALL[(seed / 5) as usize % Rotation::ALL.len()];
        let shader = from_seed(seed, profile, Features::of(&target)).shader;
        let limit = registers.files(&target).full;
        let place = format!("{}, {profile}, seed {seed}, limit {registers}, {rotation}", target.name);
        let mut before: Option<Program> = None;
        let mut plant = |stage: Stage, program: &mut Program| {
            if stage == Stage::Select && seed % 3 == 0 {
                assign_fixed_registers(&mut Seeded::new(seed), program, target.merged_regs, limit);
            }
            if matches!(stage, Stage::SpillArrays | Stage::Spill | Stage::RegisterAllocation) {
                if let Some(source) = &before {
                    match registers::prove(source, program, &target) {
                        Ok(_) => proved += 1,
                        Err(failure) => open.push(format!("{place}, {stage}: {failure}")),
                    }
                }
                let is_spilled = program.iter_instrs().any(|(_, i)| program.instrs[i].opcode == Opcode::ReloadMacro);
                spilled += u64::from(is_spilled && stage == Stage::Spill);
            }
            let is_followed = matches!(stage, Stage::SharedRegisters | Stage::SpillArrays | Stage::Spill);
            before = is_followed.then(|| program.clone());
        };
        let mut checker = Checker::new(target, options(rotation, registers));
        let report = checker.program(&shader, &Env::from_seeds(&[seed]), Some(&mut plant));
        let refuted = report.refutation().map(|refutation| (refutation.stage, &refutation.difference));
        assert!(refuted.is_none(), "{place}: {refuted:?}");
        assert_eq!(report.crash(), None, "{place}");
        refused += u64::from(report.refusal.is_some());
        tested += u64::from(report.boundaries.last().is_some_and(|row| matches!(row.verdict, Verdict::Tested { .. })));
    }
    println!("{tested} tested, {proved} proved, {refused} refused, {spilled} spilled, open: {open:#?}");
    assert!(open.len() as u64 * 200 <= proved, "{open:#?}");
    let [tested, proved, spilled, refused] = [tested, proved, spilled, refused].map(|count: u64| count / times);
    assert!(tested > 125 && proved > 250 && spilled > 10 && refused < 50, "{tested} {proved} {refused} {spilled}");
}

/// The program of docs/findings.md that only the old rule colours has five instructions.
#[test]
fn five_instructions_are_lost_by_dense_packing() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/vectors/lost-by-dense-packing.nir");
    let shader = nir::read(&std::fs::read_to_string(path).expect("the file")).expect("nir");
    assert_eq!(shader.entry.instrs.len(), 5);
    let target = Target::by_name("a660").expect("a known GPU");
    for rotation in Rotation::ALL {
        let options = Options { last: Stage::Spill, ..options(rotation, RegisterLimit::Registers(3)) };
        let program = compile(&shader, &target, &options, &mut |_, _| {}).expect("it compiles");
        let is_spilled = program.iter_instrs().any(|(_, i)| program.instrs[i].opcode == Opcode::SpillMacro);
        assert_eq!(is_spilled, rotation != Rotation::Old, "{rotation}");
    }
}

#[test]
fn planted_bugs_are_refuted_after_register_allocation() {
    let target = Target::default();
    for name in ["live-range", "half-overlap"] {
        let bug = planted_bugs::by_name(name).expect("a planted bug");
        let refuted = (0..120u64).filter(|&seed| {
            let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
            let shader = from_seed(seed, profile, Features::of(&target)).shader;
            let mut checker = Checker::new(target, options(Rotation::Old, RegisterLimit::Registers(24)));
            let report = checker.program(&shader, &Env::from_seeds(&[seed, seed + 1]), Some(&mut bug.change()));
            let stage = report.boundaries.iter().find(|row| row.verdict.is_refuted()).map(|row| row.stage);
            assert!(stage.is_none_or(|stage| stage == Stage::RegisterAllocation), "{name}, seed {seed}: {stage:?}");
            stage.is_some()
        });
        assert!(refuted.count() > 5, "{name}");
    }
}

#[test]
fn reloads_at_the_wrong_place_are_refuted_after_spill() {
    reloads::are_refuted_after_spill(options(Rotation::Document, RegisterLimit::Registers(10)));
}

/// A program that cannot be coloured is refused where it would be spilled.
#[test]
fn limits_of_colouring_are_refused_by_name() {
    let target = Target::default();
    let seeds = (0..200u64).filter_map(|seed| {
        let shader = from_seed(seed, Profile::Pressure, Features::of(&target)).shader;
        let options = options(Rotation::Document, RegisterLimit::Registers(5));
        let mut checker = Checker::new(target, options);
        checker.program(&shader, &Env::from_seeds(&[seed]), None).refusal
    });
    let refusal = seeds.into_iter().next().expect("five registers are too few");
    assert!(refusal.to_string().contains("registers"), "{refusal}");
    assert_eq!(refusal.stage, Stage::Spill);
}
