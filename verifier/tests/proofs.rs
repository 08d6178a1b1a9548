//! Proofs on terms: equivalent programs are proved, without unrolling their loops, and different programs never are.

use crate::common::effort::effort;
use ir3_compiler::compilation::Compilation;
use ir3_compiler::ir3::Opcode;
use ir3_compiler::nir::{Shader, text};
use ir3_compiler::pipeline::{self, Options, RegisterLimit, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{Checker, Engines, Policy, Smt, Snapshots, StageSnapshots, Verdict, compare_snapshots};
use ir3_programs::Case;
use ir3_programs::divergence;
use ir3_programs::equivalent_pairs::pairs;
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_prove::simulation;
use ir3_prove::simulation::{Limits, Proof, SimulationFailure};
use ir3_prove::solver::{Budget, Z3};
use ir3_selftest::kill_matrix::Mutants;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use std::time::Duration;

fn gpu() -> Target {
    Target::by_name("a660").expect("a GPU")
}

/// Enough for small programs, and soon used up by those that cannot be proved.
const LIMITS: Limits = Limits {
    query: Budget { rlimit: 400_000, time: Duration::from_millis(500) },
    time: Duration::from_millis(1600),
    inputs: false,
};

fn prove(source: &Snapshot, target: &Snapshot) -> Result<Proof, SimulationFailure> {
    simulation::prove(source.into(), target.into(), &gpu(), &LIMITS, &mut Z3::default())
}

/// Times the usual number of programs.
fn times() -> usize {
    usize::try_from(effort()).expect("a small number")
}

#[test]
fn no_planted_miscompilation_is_proved() {
    let machine = gpu();
    // None of these is proved, so each takes all of its time: more programs, each for less time, find more.
    let limits = Limits { time: Duration::from_millis(400), ..LIMITS };
    let mutants = Mutants::new(1, 40, &machine);
    for mutant in mutants.take(20 * times()) {
        let (before, after) = ((&mutant.before).into(), (&mutant.after).into());
        let proof = simulation::prove(before, after, &machine, &limits, &mut Z3::default());
        let from =
            format!("{} after {} in {:#x} ({:?})", mutant.kind, mutant.stage.name(), mutant.seed, mutant.profile);
        assert!(proof.is_err(), "a miscompilation is proved: {from}: {proof:?}");
    }
}

/// A parallel copy without one of its destinations leaves a value that names its definition, and is undefined: it may
/// be anything, not only the value that the source has there. Both programs had such a copy whose value is 0.
#[test]
fn a_value_that_nothing_writes_is_undefined() {
    let machine = gpu();
    let envs = Env::from_seeds(&[1, 2, 3, 4]);
    let mut differ = 0;
    for (profile, seed) in
        [(Profile::Pressure, 4_360_082_295_941_529_955), (Profile::Subgroups, 3_999_676_545_329_724_614)]
    {
        let shader = generator::from_seed(seed, profile, Features::of(&machine)).shader;
        for registers in [RegisterLimit::Target, RegisterLimit::Minimum((seed % 6) as u16)] {
            let options = Options { last: Stage::Spill, registers, ..Options::default() };
            let snapshots = Snapshots::new(Compilation::new(&shader, &machine, &options));
            for StageSnapshots { before, after, .. } in snapshots.map_while(Result::ok) {
                let Some(program) = after.as_ir3() else { continue };
                for (_, instr) in program.iter_instrs() {
                    let data = &program.instrs[instr];
                    let count = if data.opcode == Opcode::ParallelCopy { data.dsts.len() } else { 0 };
                    for i in 0..count {
                        let mut target = program.clone();
                        target.instrs[instr].dsts.remove(i);
                        target.instrs[instr].srcs.remove(i);
                        let target = Snapshot::Ir3(Box::new(target));
                        if matches!(compare_snapshots(&before, &target, &machine, &envs).0, Verdict::Refuted(_)) {
                            differ += 1;
                            let proof = prove(&before, &target);
                            assert!(proof.is_err(), "{profile}, {instr}, {i}: {proof:?}");
                        }
                    }
                }
            }
        }
    }
    assert!(differ >= 4, "{differ} differ");
}

#[test]
fn rewrites_that_no_stage_makes_are_proved() {
    let machine = gpu();
    let count = 81 * times();
    let mut open = Vec::new();
    for pair in pairs(0x7061_6972, &machine).take(count) {
        if let Err(failure) = prove(&pair.source, &pair.target) {
            open.push(format!("{}: {failure}", pair.kind));
        }
    }
    assert!(open.len() * 10 <= count, "{} of {count} are not proved:\n{}", open.len(), open.join("\n"));
}

/// Lanes that are in several blocks at the same time.
#[test]
fn no_run_refutes_what_is_proved_of_waves() {
    let machine = gpu();
    let limits = Limits { time: Duration::from_millis(200), ..LIMITS };
    let (mut proved, mut differ) = (0, 0);
    for pair in divergence::pairs(0x7761_7665, 0..80 * times() as u64, 6, &machine) {
        let run = compare_snapshots(&pair.source, &pair.target, &machine, &pair.envs()).0;
        let proof =
            simulation::prove((&pair.source).into(), (&pair.target).into(), &machine, &limits, &mut Z3::default());
        proved += usize::from(proof.is_ok());
        if matches!(run, Verdict::Refuted(_)) {
            differ += 1;
            let [before, after] = [&pair.source, &pair.target].map(Snapshot::text);
            assert!(proof.is_err(), "{} in program {}: {proof:?}\n{before}\n{after}", pair.change, pair.number);
        }
    }
    assert!(proved >= 12 * times() && differ >= 12 * times(), "{proved} proved, {differ} differ");
}

fn shader(source: &str) -> Shader {
    text::read(source).expect("a shader")
}

/// A loop that cannot be unrolled: its trip count is an input.
const LOOP: &str = include_str!("../../corpus/control-flow/fibonacci.nir");

/// Lanes leave it at two places, and shared registers hold what the source has in each lane.
const TWO_EXITS: &str = include_str!("simulation/reduce-after-two-exits.nir");

/// A relation that takes many iterations.
const PASSED_ON: &str = include_str!("../../corpus/control-flow/passed-on.nir");

#[test]
fn loops_are_proved_as_they_are() {
    let machine = gpu();
    let provers = Engines::provers(Smt::default());
    let mut checker = Checker::new(machine, Options::default());
    for program in [LOOP, TWO_EXITS, PASSED_ON] {
        let rows = checker.verify(&shader(program), None, &Policy::new(&provers), &[]).boundaries;
        assert!(rows.iter().any(|row| row.stage == Stage::Select && row.engine == "smt"));
        for row in rows {
            let stage = row.stage.name();
            assert!(matches!(row.verdict, Verdict::Proved { .. }), "{stage}: {:?} in\n{program}", row.verdict);
        }
    }
}

#[test]
fn the_order_of_the_operands_of_a_loop_matters() {
    let machine = gpu();
    let source = shader(LOOP);
    let text = LOOP.replacen("iadd", "isub", 1);
    assert_ne!(text, LOOP);
    let other = pipeline::select(&shader(&text), &machine).expect("a program");
    let [before, after] = [Snapshot::Nir(Box::new(source)), Snapshot::Ir3(Box::new(other))];
    assert!(matches!(prove(&before, &after), Err(SimulationFailure::NotShown { .. })));
}

/// Branches on an undefined value.
const MEANINGLESS: &str = "shader: MESA_SHADER_FRAGMENT
decl_function main () (entrypoint)

impl main {
    block b0:   // preds:
    1      %0 = undefined
                // succs: b1 b2
    if %0 {
        block b1:   // preds: b0, succs: b3
    } else {
        block b2:   // preds: b0, succs: b3
    }
    block b3:   // preds: b1 b2
    32     %1 = load_const (0x3f800000)
    32     %2 = load_const (0x00000000)
                @store_output (%1, %2 (0x0)) (base=0, range=1, wrmask=x, component=0, src_type=float32)
                // succs: b4
    block b4:
}
";

#[test]
fn what_has_no_meaning_is_not_proved() {
    let snapshot = Snapshot::Nir(Box::new(shader(MEANINGLESS)));
    assert_eq!(prove(&snapshot, &snapshot), Err(SimulationFailure::Vacuous));
}
