//! Bugs planted after stages are reduced to small programs, and stay the same bugs.

use std::sync::Arc;
use std::time::Duration;

use crate::common::effort::one_of;
use cpu_time::ThreadTime;
use ir3_compiler::ir3::{Block, Instr, Opcode, Program};
use ir3_compiler::nir::{self, Builder, Shader, text, validate};
use ir3_compiler::pipeline::{self, Feature, Options, Stage};
use ir3_compiler::target::Target;
use ir3_harness::case::{Case, ProgramOrigin};
use ir3_harness::fuzz_targets::ProgramInput;
use ir3_harness::reduce;
use ir3_harness::reduce::combined;
use ir3_harness::reduce::combined::CombinedReduction;
use ir3_harness::reduce::{Failure, Oracle, Reduced, Size};
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::planted_bugs;
use ir3_programs::planted_bugs::{PlantedBug, SharedPlantedBug};
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_report::bundle;
use ir3_selftest::planted_trial;
use ir3_semantics::environment::env::Env;

/// The first instruction that satisfies `wanted`.
fn first(program: &Program, wanted: impl Fn(&Program, Instr) -> bool) -> Option<Instr> {
    program.iter_instrs().map(|(_, i)| i).find(|&i| wanted(program, i))
}

fn plant(stage: Stage, bug: impl Fn(&mut Program) + Send + Sync + 'static) -> SharedPlantedBug {
    SharedPlantedBug::Ir3(Arc::new(move |at, program| {
        if at == stage {
            bug(program);
        }
    }))
}

/// The first random program that fails with the bug as it should (a bug may also leave a program that is not valid).
fn failing(
    target: Target,
    profile: Profile,
    plant: Option<&SharedPlantedBug>,
    expected: impl Fn(&Failure) -> bool,
) -> (Shader, Oracle) {
    for number in 0..200 {
        let seed = program_seed(0x5eed, number);
        let shader = generator::from_seed(seed, profile, Features::ALL).shader;
        let envs: Vec<Env> = env_seeds(seed, 1).into_iter().map(Env::from_seed).collect();
        if let Some(oracle) = Oracle::find(target, Options::default(), &shader, &envs, plant.cloned())
            && shader.instruction_count() >= 60
            && expected(oracle.failure())
        {
            return (shader, oracle);
        }
    }
    panic!("no program of 200 fails");
}

fn with_jobs(shader: &Shader, oracle: &Oracle, jobs: usize) -> Reduced {
    let mut oracles: Vec<Oracle> = (0..jobs).map(|_| oracle.fork()).collect();
    let mut same: Vec<_> = oracles.iter_mut().map(|oracle| |shader: &Shader| oracle.same(shader)).collect();
    reduce::run_parallel(shader, &mut same, &reduce::Options::default(), &mut |_| true).expect("no file is written")
}

/// Reduces a bug: at most 20 instructions are left, it fails in the same way, and the result depends neither on threads
/// nor on chance.
fn reduces(
    name: &str,
    profile: Profile,
    plant: Option<&SharedPlantedBug>,
    expected: impl Fn(&Failure) -> bool,
) -> Shader {
    let (shader, oracle) = failing(Target::default(), profile, plant, &expected);
    reduces_from(name, &shader, &oracle, expected)
}

fn reduces_from(name: &str, shader: &Shader, oracle: &Oracle, expected: impl Fn(&Failure) -> bool) -> Shader {
    assert!(expected(oracle.failure()), "{name}: {}", oracle.failure());
    let start = ThreadTime::now();
    let reduced = with_jobs(shader, oracle, 1);
    println!(
        "{name}: {} instructions to {}, {} candidates, {:.1} s of CPU time: {}\n{}",
        shader.instruction_count(),
        reduced.program.instruction_count(),
        reduced.progress.candidates,
        start.elapsed().as_secs_f64(),
        oracle.failure(),
        text::write(&reduced.program)
    );
    assert!(reduced.reproduced && reduced.minimal, "{name}");
    assert_eq!(validate(&reduced.program), Ok(()), "{name}");
    assert!(oracle.fork().same(&reduced.program), "{name}: another failure");
    assert!(Size::of(&reduced.program) < Size::of(shader), "{name}");
    assert!(reduced.program.instruction_count() <= 20, "{name}");
    // The written program is read back as the same program, and fails in the same way.
    let read = text::read(&text::write(&reduced.program)).expect("our own text");
    assert!(oracle.fork().same(&read), "{name}: the text does not fail");
    assert_eq!(with_jobs(shader, oracle, 2).program, reduced.program, "{name}: two threads give something else");
    reduced.program
}

fn refuted_at(stage: Stage) -> impl Fn(&Failure) -> bool {
    move |failure| matches!(failure, Failure::Refuted { stage: at, .. } if *at == stage)
}

#[test]
fn swapped_sources() {
    let bug = plant(Stage::RegisterAllocation, |program| {
        let instr = first(program, |p, i| {
            let data = &p.instrs[i];
            matches!(data.opcode, Opcode::SubU | Opcode::ShlB | Opcode::ShrB | Opcode::AshrB)
                && data.srcs.len() == 2
                && data.srcs[0].operand != data.srcs[1].operand
        });
        if let Some(instr) = instr {
            program.instrs[instr].srcs.swap(0, 1);
        }
    });
    reduces("swapped sources", Profile::Alu, Some(&bug), refuted_at(Stage::RegisterAllocation));
}

fn planted(name: &str) -> &'static PlantedBug {
    planted_bugs::by_name(name).expect("a planted bug")
}

/// Each planted bug is found by a campaign over all profiles, and reduced with its input, its GPU and its options.
/// (Every fourth, but in `ci/nightly` all: it takes a minute and more.)
#[test]
fn planted_bugs() {
    let start = ThreadTime::now();
    let mut sizes = Vec::new();
    let every = one_of(4);
    for (number, plant) in planted_bugs::ALL.iter().step_by(every).enumerate() {
        // The first failing program that is not small: small programs test little. Mostly it is among the first few.
        let found = [4, 24].into_iter().find_map(|programs| {
            let found = planted_trial::find(plant, Target::default(), 1, programs, Duration::from_secs(60), None);
            found.into_iter().find(|found| found.shader.instruction_count() >= 60)
        });
        let found = found.expect("it is found");
        let small = found.reduce(Target::default(), 1).expect("it fails");
        let at_its_stage = match &small.failure {
            Failure::Refuted { stage, .. } => *stage == plant.stage,
            Failure::Panic { place } => plant.name == "crash" && place.contains("planted_bugs"),
            _ => false,
        };
        assert!(at_its_stage && small.same, "{}: {}\n{}", plant.name, small.failure, small.result());
        let count = small.whole.reduced.program.instruction_count();
        assert!(count <= 20, "{}", small.result());
        // The result depends neither on threads nor on chance; every third bug is enough to test that.
        if number % 3 == 0 {
            let again = found.reduce(Target::default(), 2).expect("it fails");
            assert_eq!(small.result(), again.result(), "{}", plant.name);
        }
        // The written program is read back as the same program, and no step is left.
        let CombinedReduction { reduced, env, target, options } = &small.whole;
        let read = text::read(&text::write(&reduced.program)).expect("our own text");
        let envs: Vec<Env> = env.iter().cloned().collect();
        let mut oracle =
            Oracle::find(*target, *options, &read, &envs, Some(plant.shared())).expect("the text fails as well");
        assert_eq!(*oracle.failure(), small.failure, "{}", plant.name);
        let again = combined::run(&read, &mut oracle, 1, &reduce::Options::default(), &mut |_| true).expect("no file");
        assert_eq!(again.reduced.progress.taken, 0, "{}: {}", plant.name, text::write(&again.reduced.program));
        assert_eq!((&again.env, again.target, again.options), (env, *target, *options), "{}", plant.name);
        sizes.push(count);
        println!("{}: {count}, {:.1} s of CPU time so far", plant.name, start.elapsed().as_secs_f64());
    }
    sizes.sort_unstable();
    println!("{sizes:?}");
    assert!(sizes[sizes.len() / 2] <= 10);
}

/// A bug that does not depend on a GPU or on a pass is reduced to one without them.
#[test]
fn options_and_gpus_get_plainer() {
    let a730 = Target::by_name("a730").expect("a GPU");
    let needed = [
        ("wrong-constant", pipeline::Features::empty()),
        ("inverted-branch", pipeline::Features::only(Feature::CopyPropagation)),
        ("lost-store", pipeline::Features::only(Feature::DeadCode)),
    ];
    for (name, used) in needed {
        let plant = planted(name);
        let found = planted_trial::find(plant, a730, 1, 1, Duration::from_secs(60), None);
        let CombinedReduction { target, options, .. } = found[0].reduce(a730, 1).expect("it fails").whole;
        assert_eq!((options.features, options.last), (used, plant.stage), "{name}");
        assert!(target.generation < a730.generation, "{name}: {}", target.name);
    }
    // There are no halves of full registers on GPUs before the a6xx.
    let found = planted_trial::find(planted("half-overlap"), a730, 1, 1, Duration::from_secs(60), None);
    let whole = found[0].reduce(a730, 1).expect("it fails").whole;
    assert!(whole.target.merged_regs);
}

#[test]
fn a_refusal() {
    // This GPU does not have the storage buffer instructions of a660 programs.
    let target = Target::by_name("a306").expect("a GPU");
    let (shader, oracle) = failing(target, Profile::Memory, None, |_| true);
    let small = reduces_from("a refusal", &shader, &oracle, |failure| matches!(failure, Failure::Refused { .. }));
    assert!(small.instruction_count() <= 6);
}

#[test]
fn an_interrupted_reduction_goes_on() {
    let bug = plant(Stage::CopyPropagation, |program| {
        let adds = program.iter_instrs().filter(|&(_, i)| program.instrs[i].opcode == Opcode::AddU).count();
        assert!(adds < 2, "planted");
    });
    let (shader, oracle) = failing(Target::default(), Profile::Mixed, Some(&bug), |_| true);
    let folder = std::env::temp_dir().join(format!("ir3-equiv-reduce-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let options = reduce::Options { checkpoint: Some(folder.join("checkpoint.json")), ..Default::default() };
    let mut oracle = oracle.fork();
    // Stopped after each step that was taken, again and again; each time the reduction continues.
    let mut last = Size::of(&shader);
    for round in 0.. {
        let mut taken = 0;
        let result = reduce::run(&shader, &mut |shader| oracle.same(shader), &options, &mut |progress| {
            taken = progress.taken;
            progress.taken < 3
        });
        let result = result.expect("the temporary folder can be written");
        assert!(result.reproduced && Size::of(&result.program) <= last);
        last = Size::of(&result.program);
        if result.minimal {
            assert!(round > 1, "it was not interrupted");
            assert!(taken == 0 || taken < 3);
            assert!(result.program.instruction_count() <= 8, "{}", text::write(&result.program));
            break;
        }
    }
    // A checkpoint of another program is ignored.
    let other = generator::from_seed(1, Profile::Mixed, Features::ALL).shader;
    let result = reduce::run(&other, &mut |_| true, &options, &mut |_| true).expect("a checkpoint can be read");
    assert!(result.minimal && result.program.instruction_count() == 0);
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

#[test]
fn an_input_gets_simpler() {
    let bug = planted("inverted-branch").shared();
    let (shader, oracle) = failing(Target::default(), Profile::Branchy, Some(&bug), |_| true);
    let alone = with_jobs(&shader, &oracle, 1).program;
    let whole = |jobs| {
        let mut oracle = oracle.fork();
        combined::run(&shader, &mut oracle, jobs, &reduce::Options::default(), &mut |_| true).expect("no file")
    };
    let result = whole(1);
    let simple = result.env.clone().expect("a refutation has an input");
    let mut oracle = oracle.fork();
    oracle.set_envs(vec![simple.clone()]);
    assert!(result.reduced.minimal && oracle.same(&result.reduced.program));
    assert!(Size::of(&result.reduced.program) <= Size::of(&alone));
    let other = whole(2);
    assert_eq!((other.env.as_ref(), &other.reduced.program), (Some(&simple), &result.reduced.program));
    assert_eq!(Env::from_json(&simple.to_json()).ok(), Some(simple));
}

/// A bug that affects another instruction in each program, so that it moves while the program gets smaller; at each
/// stage.
#[test]
fn bugs_that_move() {
    let mut sizes = Vec::new();
    let start = ThreadTime::now();
    for (number, profile) in (0..).zip(Profile::ALL.into_iter().step_by(5)) {
        for stage in Stage::ALL {
            let bug = plant(stage, move |program| {
                let wanted = |&(_, i): &(Block, Instr)| {
                    let data = &program.instrs[i];
                    !data.opcode.is_meta() && data.srcs.len() == 2 && data.srcs[0] != data.srcs[1]
                };
                let all: Vec<Instr> = program.iter_instrs().filter(wanted).map(|(_, i)| i).collect();
                if let Some(&instr) = all.get((all.len() * 7 + number) % all.len().max(1) / 2) {
                    program.instrs[instr].srcs.swap(0, 1);
                }
            });
            let (shader, oracle) = failing(Target::default(), profile, Some(&bug), |_| true);
            let reduced = with_jobs(&shader, &oracle, 1);
            assert!(reduced.minimal && oracle.fork().same(&reduced.program), "{profile} {stage}");
            let count = reduced.program.instruction_count();
            println!("{profile} {stage}: {} to {count}, {}", shader.instruction_count(), oracle.failure());
            assert!(count <= 20, "{profile} {stage}: {}", text::write(&reduced.program));
            sizes.push(count);
            // No step is left.
            let again = with_jobs(&reduced.program, &oracle, 1);
            assert_eq!((again.progress.taken, again.program), (0, reduced.program), "{profile} {stage}");
        }
    }
    sizes.sort_unstable();
    println!("{sizes:?}, {:.1} s of CPU time", start.elapsed().as_secs_f64());
    assert!(sizes[sizes.len() / 2] <= 10);
}

fn ir3_equiv(arguments: &[&str]) -> (bool, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_ir3-equiv")).args(arguments).output();
    let output = output.expect("the program of this package");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.success(), text)
}

#[test]
fn the_command_line_takes_programs_folders_and_artifacts() {
    let folder = std::env::temp_dir().join(format!("ir3-equiv-reduce-cli-{}", std::process::id()));
    let bundle = folder.join("bundle");
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let write = |path: &std::path::Path, bytes: &[u8]| std::fs::write(path, bytes).expect("the folder can be written");
    // On this GPU most programs of the generator are refused.
    let target = Target::by_name("a306").expect("a GPU");
    let (shader, _) = failing(target, Profile::Memory, None, |_| true);
    let nir = folder.join("program.nir");
    write(&nir, text::write(&shader).as_bytes());
    let envs = [Env::from_seed(7)];
    let case =
        Case::find(shader, target, Options::default(), None, &envs, ProgramOrigin::File("some/program.nir".to_owned()));
    bundle::write_at(&bundle, &case.expect("it fails")).expect("a folder");
    let artifact = folder.join("crash-0123");
    let bytes = (1..100u32).map(|salt| (0..600).map(|i: u32| (i * i * salt + 7 * i) as u8).collect::<Vec<u8>>());
    let refused = |bytes: &Vec<u8>| {
        let input = ProgramInput::from_bytes(bytes);
        let oracle = Oracle::find(target, Options::default(), &input.shader, &[input.env()], None);
        oracle.is_some_and(|oracle| matches!(oracle.failure(), Failure::Refused { .. }))
    };
    write(&artifact, &bytes.into_iter().find(refused).expect("bytes of a program that is refused"));

    let path = |path: &std::path::Path| path.to_str().expect("a path in UTF-8").to_owned();
    for (arguments, result) in [
        (vec![path(&nir), "--gpu".into(), "a306".into()], folder.join("program.bundle")),
        (vec![path(&bundle)], bundle.clone()),
        (
            vec![path(&artifact), "--gpu".into(), "a306".into(), "--jobs".into(), "1".into()],
            folder.join("crash-0123.bundle"),
        ),
    ] {
        let arguments: Vec<&str> = std::iter::once("reduce").chain(arguments.iter().map(String::as_str)).collect();
        let (success, output) = ir3_equiv(&arguments);
        assert!(success, "{arguments:?}: {output}");
        assert!(output.contains("refuses: ") && output.contains("to see it again: "), "{output}");
        let reduced = bundle::read(&result).expect("the result");
        assert!(reduced.minimal && reduced.original.is_some());
        assert!(reduced.program.instruction_count() <= 6, "{}", text::write(&reduced.program));
        // `verify` finds it again, and `reduce` continues.
        let (success, output) = ir3_equiv(&["verify", &path(&result)]);
        assert!(!success && output.contains("it fails as recorded in its bundle"), "{output}");
        let (success, output) = ir3_equiv(&arguments);
        assert!(success && output.contains(", 0 steps, "), "{output}");
    }
    // The bundle of another failure is not replaced.
    let other = path(&folder.join("program.bundle"));
    let (success, output) = ir3_equiv(&["reduce", &path(&artifact), "--gpu", "a306", "--output", &other]);
    assert!(!success && output.contains("found the bundle of another failure there"), "{output}");
    // A program that passes cannot be reduced.
    write(&nir, text::write(&Builder::new(nir::Stage::Compute).finish()).as_bytes());
    let (success, output) = ir3_equiv(&["reduce", &path(&nir)]);
    assert!(!success && output.contains("found no failure"), "{output}");
    let (success, output) = ir3_equiv(&["reduce", &path(&folder.join("nothing"))]);
    assert!(!success && output.contains("found no such file"), "{output}");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}
