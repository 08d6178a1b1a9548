//! The scalar backend for Gen7: its planted bugs, the forms of the carry, and matched pairs.

use ir3_compiler::compilation::compile_vec4;
use ir3_compiler::i965::vec4::{Cmod, Mode, Opcode, Program, text};
use ir3_compiler::nir;
use ir3_compiler::pipeline::{Feature, Options, Stage};
use ir3_compiler::target::GEN7_SCALAR;
use ir3_harness::check::{Checker, EngineKind, Engines, Policy, Smt, Verdict};
use ir3_programs::generator::{self, Features, Profile};
use ir3_programs::planted_bugs::{PlantedBug, scalar};
use ir3_programs::seeds::env_seeds;
use ir3_semantics::environment::env::Env;

fn without(features: &[Feature]) -> Options {
    features.iter().copied().fold(Options::default(), Options::without)
}

/// The stage at which a generated program is refuted by runs.
fn refuted_at(seed: u64, options: &Options, bug: Option<&'static PlantedBug>) -> Option<Stage> {
    let shader = generator::from_seed(seed, Profile::Additions, Features::of(&GEN7_SCALAR)).shader;
    let mut checker = Checker::new(GEN7_SCALAR, *options);
    let mut change = bug.map(PlantedBug::change);
    let plant = ir3_harness::check::plant_of(&mut change);
    let report = checker.program(&shader, &Env::from_seeds(&env_seeds(seed, 2)), plant);
    let refuted = report.boundaries.iter().find(|row| matches!(row.verdict, Verdict::Refuted(_)));
    refuted.map(|row| row.stage)
}

#[test]
fn each_planted_bug_is_refuted_at_its_stage() {
    for bug in &scalar::ALL {
        let options = without(scalar::without(bug));
        assert!((0..40).all(|seed| refuted_at(seed, &options, None).is_none()), "{}", bug.name);
        let found = (0..400).find_map(|seed| refuted_at(seed, &options, Some(bug)));
        assert_eq!(found, Some(bug.stage), "{}", bug.name);
    }
}

fn corpus(name: &str) -> nir::Shader {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/int64").join(name).with_extension("nir");
    let text = std::fs::read_to_string(path).expect("a file of the corpus");
    nir::text::read(&text).expect("a shader")
}

fn count(program: &Program, wanted: impl Fn(&ir3_compiler::i965::vec4::Instr) -> bool) -> usize {
    program.instrs.iter().filter(|instr| wanted(instr)).count()
}

/// The pair of a sum is one instruction for each half of the invocations, or one for all of them with the flag.
#[test]
fn matched_pairs_are_combined_in_both_forms() {
    let shader = corpus("split-pairs");
    let compiled = |features: &[Feature]| compile_vec4(&shader, &GEN7_SCALAR, &without(features)).expect("it compiles");
    let carries = |features: &[Feature]| count(&compiled(features), |instr| instr.opcode == Opcode::Addc);
    let flags = |features: &[Feature]| count(&compiled(features), |instr| instr.cmod == Some(Cmod::O));
    use Feature::{CarryAccumulator, CarryFlag, CombineAdditions, ScalarDeadCode, Simd16};
    // Three sums, each with both halves.
    assert_eq!(carries(&[]), 6);
    assert_eq!(carries(&[Simd16]), 3);
    assert_eq!(carries(&[CombineAdditions, ScalarDeadCode]), 12);
    assert_eq!((carries(&[CarryAccumulator]), flags(&[CarryAccumulator])), (0, 3));
    assert_eq!(flags(&[CarryAccumulator, CombineAdditions, ScalarDeadCode]), 6);
    assert_eq!((carries(&[CarryAccumulator, CarryFlag]), flags(&[CarryAccumulator, CarryFlag])), (0, 0));
    assert_eq!(compiled(&[Simd16]).mode, Mode::Simd8);
}

#[test]
fn a_text_is_what_is_written() {
    for seed in 0..50 {
        let shader = generator::from_seed(seed, Profile::Additions, Features::of(&GEN7_SCALAR)).shader;
        let program = compile_vec4(&shader, &GEN7_SCALAR, &Options::default()).expect("it compiles");
        let written = text::write(&program);
        assert_eq!(text::read(&written).as_ref(), Ok(&program), "seed {seed}:\n{written}");
    }
}

/// Both forms of the carry are proved, not only run.
#[test]
fn the_pairs_of_the_corpus_are_proved() {
    for features in [&[][..], &[Feature::CarryAccumulator], &[Feature::CarryAccumulator, Feature::CarryFlag]] {
        let engines = Engines { kinds: vec![EngineKind::Smt], smt: Smt::default() };
        let mut checker = Checker::new(GEN7_SCALAR, without(features));
        let verification = checker.verify(&corpus("split-pairs"), None, &Policy::new(&engines), &[]);
        assert!(verification.boundaries.len() >= 3, "{features:?}");
        for row in verification.boundaries {
            assert!(matches!(row.verdict, Verdict::Proved { .. }), "{features:?}: {}: {:?}", row.stage, row.verdict);
        }
    }
}

/// Operations without an instruction in the language are refused by name.
#[test]
fn other_arithmetic_on_64_bits_is_refused() {
    let error =
        compile_vec4(&corpus("shifts-and-products"), &GEN7_SCALAR, &Options::default()).expect_err("it is refused");
    assert_eq!(error.stage, Stage::ScalarSelect);
    assert_eq!(error.reason.without_location(), "ishl: a value of 64 bits");
}
