//! Instructions that single targets need in place of one that others have, and a proof that they do the same: `samgq`
//! by lane where it returns wrong data outside of fragment and compute shaders, flat varyings.

use ir3_compiler::compilation::Compilation;
use ir3_compiler::ir3::{Instr, Opcode, Program};
use ir3_compiler::nir::{Shader, text};
use ir3_compiler::pipeline::{self, Options, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{Snapshots, Verdict, compare_snapshots};
use ir3_prove::simulation::{self, Limits};
use ir3_prove::solver::{Budget, Z3};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp;
use std::time::Duration;

const BY_LANE: [Opcode; 4] = [Opcode::Samgp0, Opcode::Samgp1, Opcode::Samgp2, Opcode::Samgp3];

const LIMITS: Limits = Limits {
    query: Budget { rlimit: 4_000_000, time: Duration::from_secs(5) },
    time: Duration::from_secs(20),
    inputs: false,
};

fn shader(name: &str) -> Shader {
    let path = format!("{}/../corpus/{name}.nir", env!("CARGO_MANIFEST_DIR"));
    text::read(&std::fs::read_to_string(path).expect("the corpus")).expect("a shader")
}

fn gpu(name: &str) -> Target {
    Target::by_name(name).expect("a GPU")
}

fn all_by_lane(program: &Program) -> Vec<Instr> {
    let by_lane = |instr: Instr| BY_LANE.contains(&program.instrs[instr].opcode);
    program.iter_instrs().map(|(_, instr)| instr).filter(|&instr| by_lane(instr)).collect()
}

/// The program before and after the stage that replaces `samgq`.
fn lowered(target: &Target) -> (Program, Program) {
    let shader = shader("vertex/gradients");
    let snapshots = Snapshots::new(Compilation::new(&shader, target, &Options::default()));
    for snapshot in snapshots {
        let snapshot = snapshot.expect("it compiles");
        if snapshot.stage == Stage::LowerSamgq {
            let program = |side: &Snapshot| side.as_ir3().expect("ir3").clone();
            return (program(&snapshot.before), program(&snapshot.after));
        }
    }
    panic!("the stage changes nothing");
}

/// Runs and proof of a pair.
fn compare(before: &Program, after: &Program, target: &Target) -> (Verdict, bool) {
    let [before, after] = [before, after].map(|program| Snapshot::Ir3(Box::new(program.clone())));
    let runs = compare_snapshots(&before, &after, target, &Env::from_seeds(&[1, 2, 3])).0;
    let proof = simulation::prove((&before).into(), (&after).into(), target, &LIMITS, &mut Z3::default());
    (runs, proof.is_ok())
}

#[test]
fn four_samples_are_proved() {
    for name in ["a618", "a660", "a730"] {
        let target = gpu(name);
        let (before, after) = lowered(&target);
        assert_eq!(all_by_lane(&after).len(), 8, "{name}");
        let (runs, is_proved) = compare(&before, &after, &target);
        assert!(!matches!(runs, Verdict::Refuted(_)), "{name}: {runs:?}");
        assert!(is_proved, "{name}");
    }
}

/// A lane that is left out, or sampled for in another's place, is found by runs and not proved.
#[test]
fn a_lost_lane_is_refuted() {
    let target = gpu("a660");
    let (before, after) = lowered(&target);
    for instr in all_by_lane(&after) {
        let mut dropped = after.clone();
        for block in dropped.layout.clone() {
            dropped.blocks[block].instrs.retain(|&other| other != instr);
        }
        let mut another = after.clone();
        let lane = BY_LANE.iter().position(|&opcode| opcode == after.instrs[instr].opcode).expect("a lane");
        another.instrs[instr].opcode = BY_LANE[(lane + 1) % 4];
        for (what, program) in [("dropped", dropped), ("another lane", another)] {
            let (runs, is_proved) = compare(&before, &program, &target);
            assert!(matches!(runs, Verdict::Refuted(_)), "{instr} {what}: {runs:?}");
            assert!(!is_proved, "{instr} {what}");
        }
    }
}

/// Flat varyings are read in the form of the target, and each form is proved against nir.
#[test]
fn flat_varyings_are_proved() {
    let shader = shader("fragment/flat-and-smooth");
    for (name, opcode) in
        [("a420", Opcode::Ldlv), ("a540", Opcode::Ldlv), ("a618", Opcode::FlatB), ("a750", Opcode::FlatB)]
    {
        let target = gpu(name);
        let program = pipeline::select(&shader, &target).expect("it is selected");
        let opcodes = program.iter_instrs().map(|(_, instr)| program.instrs[instr].opcode);
        let flat: Vec<Opcode> = opcodes.filter(|opcode| matches!(opcode, Opcode::Ldlv | Opcode::FlatB)).collect();
        assert_eq!(flat, [opcode], "{name}");
        let text = ir3_compiler::ir3::text::write(&program);
        let read = ir3_compiler::ir3::text::read(&text).expect("it reads back");
        assert_eq!(Some(&read), program.canonical().as_ref(), "{name}");
        for snapshot in Snapshots::new(Compilation::new(&shader, &target, &Options::default())) {
            let snapshot = snapshot.expect("it compiles");
            let (before, after) = (&snapshot.before, &snapshot.after);
            let proof = simulation::prove(before.into(), after.into(), &target, &LIMITS, &mut Z3::default());
            assert!(proof.is_ok(), "{name}, {}: {proof:?}", snapshot.stage);
        }
    }
}

/// If `bary.f` returns flat varyings unchanged, all varyings are read by it; one that is interpolated elsewhere has no
/// meaning.
#[test]
fn flat_varyings_that_the_driver_sets_are_proved() {
    let (shader, target) = (shader("fragment/flat-and-smooth"), gpu("a320"));
    let mut snapshots = 0;
    for snapshot in Snapshots::new(Compilation::new(&shader, &target, &Options::default())) {
        let snapshot = snapshot.expect("it compiles");
        let proof = simulation::prove(
            (&snapshot.before).into(),
            (&snapshot.after).into(),
            &target,
            &LIMITS,
            &mut Z3::default(),
        );
        assert!(proof.is_ok(), "{}: {proof:?}", snapshot.stage);
        snapshots += 1;
    }
    assert!(snapshots > 5);
    let both = text::write(&shader).replacen("(base=2", "(base=0", 1);
    let both = text::read(&both).expect("it is read");
    let refused = interp::nir::Decoded::of_target(&both, &target).expect_err("a varying that is flat and smooth");
    assert!(refused.to_string().contains("interpolated elsewhere"), "{refused}");
}
