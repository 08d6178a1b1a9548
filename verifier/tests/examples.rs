//! The examples behave as documented.

use crate::common::folder::Folder;
use ir3_compiler::nir;
use ir3_compiler::pipeline::{Options, OwnPass, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{Checker, EngineKind, Unknown, Verdict};
use ir3_programs::foreign::{Exit, decode};
use ir3_programs::generator::{Features, Profile, from_seed};
use ir3_prove::simulation;
use ir3_prove::solver::Z3;
use ir3_report::bundle;
use ir3_semantics::environment::env::Env;
use std::fs;
use std::process::Command;

#[path = "../examples/foreign.rs"]
mod foreign;
#[path = "../examples/own_pass.rs"]
mod own_pass;

/// The pass with the planted bug is found, reduced, and reported like a stage of the backend.
#[test]
fn the_bug_of_the_own_pass_is_found_and_reduced() {
    let folder = Folder::new("own-pass");
    let triage = own_pass::test_own_pass(folder.path()).expect("a campaign");
    assert!(triage.problems.is_empty() && triage.gone.is_empty() && !triage.unfinished, "{triage:?}");
    let [group] = &triage.groups[..] else { panic!("{:?}", triage.groups) };
    assert_eq!((group.stage, group.count, group.reduced), ("own-pass", 1, 1));
    assert!(group.instructions <= 6, "{group:?}");
    let case = bundle::read_with(&group.folder, Some(own_pass::OWN_PASS)).expect("a bundle");
    let text = nir::text::write(&case.program);
    // Its code subtracts.
    assert!(["isub", "ineg", "mod", "rem", "div"].iter().any(|op| text.contains(op)), "{text}");
    assert_eq!((case.symptom.stage, case.options.last), (Stage::OwnPass, Stage::OwnPass));
    assert_eq!(case.options.own_pass.map(|pass| pass.name), Some("order-operands"));
    println!("{text}");

    // ir3-equiv does not have the pass, and compares the two sides.
    let report = fs::read_to_string(group.folder.join("README.md")).expect("a report");
    let command = report.lines().find_map(|line| line.strip_prefix("    ir3-equiv ")).expect("a command");
    let mut program = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"));
    let output = program.args(command.split_whitespace()).current_dir(&group.folder).output().expect("our own program");
    assert_eq!(output.status.code(), Some(1), "{command}: {output:?}");

    // A program without the pass reports that.
    let json = group.folder.join("bundle.json");
    let other = fs::read_to_string(&json).expect("a file").replace("order-operands", "of-nobody");
    fs::write(&json, other).expect("it is written");
    let error = bundle::read(&group.folder).expect_err("nobody has that pass").to_string();
    assert!(error.contains("found own_pass `of-nobody`, expected the pass that the reader has been given"), "{error}");
}

/// A pass that leaves an invalid program has a failure of its own, at its stage.
#[test]
fn an_own_pass_that_breaks_a_rule_is_a_failure() {
    let own_pass = OwnPass::new("breaks-a-rule", |program| {
        program.instrs.values_mut().for_each(|data| data.dsts.clear());
    });
    let shader = from_seed(1, Profile::Mixed, Features::ALL).shader;
    let options = Options { own_pass: Some(own_pass), ..Options::default() };
    let report = Checker::new(Default::default(), options).program(&shader, &[Env::from_seed(1)], None);
    let error = report.refusal.expect("it is refused");
    assert_eq!(error.stage, Stage::OwnPass);
    assert!(error.reason.to_string().contains("the pass breaks-a-rule breaks a rule: "), "{error}");
}

/// Each engine works on the foreign programs, and shows the bug that is planted into the foreign allocator.
#[test]
fn engines_find_the_bug_of_the_foreign_allocator() {
    let right = foreign::verdicts(false).expect("it is decoded");
    let wrong = foreign::verdicts(true).expect("it is decoded");
    assert_eq!((right.len(), wrong.len()), (3, 3));
    for ((engine, right), (_, wrong)) in right.iter().zip(&wrong) {
        let name = engine.name();
        println!("{name}: {right} {:?}; with the bug {wrong} {:?}", right.reason(), wrong.reason());
        let passes = if engine.proves() { "proved" } else { "tested" };
        assert_eq!(right.name(), passes, "{name}: {:?}", right.reason());
        match engine {
            // The register checker has no inputs; it names the use.
            EngineKind::Registers => assert!(matches!(wrong, Verdict::Unknown(Unknown::NotShown(_))), "{wrong}"),
            _ => assert!(matches!(wrong, Verdict::Refuted(_)), "{name}: {wrong} {:?}", wrong.reason()),
        }
    }
}

/// The prover fails on the bug itself, not only the runs for unproved boundaries.
#[test]
fn the_bug_of_the_foreign_allocator_is_not_proved() {
    let machine = Target::default();
    let of = |program: &foreign::Program| decode(program, &machine).expect("it is decoded");
    let before = foreign::sum();
    let prove = |forgets_loops| {
        let after = of(&foreign::allocate(&before, forgets_loops));
        let limits = simulation::Limits::default();
        simulation::prove((&of(&before)).into(), (&after).into(), &machine, &limits, &mut Z3::default())
    };
    assert!(prove(false).is_ok(), "{:?}", prove(false));
    let failure = prove(true).expect_err("the allocation is wrong");
    assert!(!matches!(failure, simulation::SimulationFailure::Unsupported(_)), "{failure}");
}

/// A fault in a foreign program is an error with its place.
#[test]
fn foreign_programs_are_checked() {
    let machine = Target::default();
    let problem = |blocks| {
        let program = foreign::Program { allocated: true, thread: 0, blocks };
        decode(&program, &machine).expect_err("it is wrong").to_string()
    };
    assert!(problem(vec![]).contains("no block"));
    assert!(problem(vec![(vec![], Exit::Jump(3))]).contains("block 3, of 1"));
    assert!(problem(vec![(vec![(foreign::Op::Add, 192, [0, 0])], Exit::End)]).contains("register 192"));
}
