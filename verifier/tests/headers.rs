//! Declarations of programs that the compiler writes, and stages that change them.

use ir3_compiler::compilation::{self, ProgramRef};
use ir3_compiler::ir3;
use ir3_compiler::pipeline::{Options, RegisterLimit, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{Checker, Engines, Smt, Verdict};
use ir3_programs::Question;
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_semantics::environment::env::Env;
use ir3_semantics::header::{difference, omitted_declarations, unprinted};
use ir3_semantics::interp::Difference;

#[test]
fn a_stage_that_changes_the_header_is_refuted() {
    let mut checker = Checker::new(Target::default(), Options::default());
    let shader = generator::from_seed(3, Profile::Memory, Features::ALL).shader;
    let mut plant = |stage: Stage, program: &mut ir3::Program| {
        if stage == Stage::Schedule {
            program.shared_size += 4;
        }
    };
    let report = checker.program_or_panic(&shader, &Env::from_seeds(&[1]), Some(&mut plant));
    let refutation = report.refutation().expect("a refutation");
    assert_eq!(refutation.stage, Stage::Schedule.name());
    assert!(matches!(&refutation.difference, Difference::Header(it) if it.what == "size of shared memory"));
    // And no engine proves it.
    let question = Question {
        stage: Some(Stage::Schedule),
        before: (&refutation.before).into(),
        after: (&refutation.after).into(),
        machine: &Target::default(),
        envs: &[],
    };
    let answers = Engines::all(Smt::default()).answers(&question);
    assert_eq!(answers.len(), 3);
    for answer in answers {
        assert!(!matches!(answer.verdict, Verdict::Proved { .. }), "{answer:?}");
    }
}

#[test]
fn compiled_programs_have_all_declarations() {
    let mut compiled_all = 0;
    for target in ["a540", "a660", "a750"].map(|name| Target::by_name(name).expect("a GPU")) {
        for (seed, profile) in (0..3).flat_map(|seed| Profile::ALL.map(|profile| (seed, profile))) {
            let shader = generator::from_seed(seed, profile, Features::of(&target)).shader;
            let options = Options { registers: RegisterLimit::Minimum(4), ..Options::default() };
            let compiled = compilation::compile(&shader, &target, &options, &mut |stage, program| {
                assert_eq!(unprinted(program), None, "{profile} {seed} after {stage}");
                assert_eq!(
                    omitted_declarations(ProgramRef::Nir(&shader), ProgramRef::Ir3(program)),
                    [""; 0],
                    "{profile} {seed} after {stage}"
                );
                assert_eq!(
                    difference(ProgramRef::Nir(&shader), ProgramRef::Ir3(program)),
                    None,
                    "{profile} {seed} after {stage}"
                );
            });
            compiled_all += u32::from(compiled.is_ok());
        }
    }
    assert!(compiled_all > 20, "{compiled_all}");
}
