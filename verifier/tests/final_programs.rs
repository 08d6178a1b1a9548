//! The stages that make final programs, end to end: programs of the generator run before and after each of them, and
//! bugs planted in their results are refuted.

use ir3_compiler::compilation::compile;
use ir3_compiler::ir3::{Attrs, Instr, InstrFlags, Mods, Opcode, Program};
use ir3_compiler::machine::{Code, Ip};
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{ErrorKind, Options, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::{Refutation, Verdict, compare_on_machine, compare_snapshots};
use ir3_harness::finals::instruction_text;
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Difference;
use ir3_semantics::interp::ir3::machine::Completion;

const GPUS: [&str; 5] = ["a306", "a540", "a618", "a660", "a750"];
const STAGES: [Stage; 5] = [Stage::Repeat, Stage::PostSchedule, Stage::LowerSubgroups, Stage::Legalize, Stage::Encode];

/// Compares two programs by runs.
fn compare(before: &Program, after: &Program, target: &Target, seed: u64) -> Verdict {
    let envs: Vec<Env> = env_seeds(seed, 2).into_iter().map(Env::from_seed).collect();
    let snapshot = |program: &Program| Snapshot::Ir3(Box::new(program.clone()));
    compare_snapshots(&snapshot(before), &snapshot(after), target, &envs).0
}

/// A generated program with registers, as `lower-samgq` returns it, and after each of [`STAGES`].
struct Finished {
    seed: u64,
    target: Target,
    shader: Shader,
    first: Program,
    stages: Vec<(Stage, Program)>,
}

/// Generated programs on all of [`GPUS`].
fn programs(seeds: u64) -> impl Iterator<Item = Finished> {
    (0..seeds).filter_map(|number| {
        let seed = program_seed(0xf1a1, number);
        let target = Target::by_name(GPUS[number as usize % GPUS.len()]).unwrap();
        let profile = Profile::ALL[number as usize / GPUS.len() % Profile::ALL.len()];
        let generated = generator::from_seed(seed, profile, Features::of(&target));
        let (mut first, mut stages) = (None, Vec::new());
        let compiled = compile(&generated.shader, &target, &Options::default(), &mut |stage, program| {
            if stage == Stage::LowerSamgq {
                first = Some(program.clone());
            } else if STAGES.contains(&stage) {
                stages.push((stage, program.clone()));
            }
        });
        if let Err(error) = compiled {
            assert_eq!(error.kind, ErrorKind::Unsupported, "{seed:#x} on {}: {error}", target.name);
            return None;
        }
        Some(Finished { seed, target, shader: generated.shader, first: first?, stages })
    })
}

#[test]
fn every_stage_keeps_the_meaning() {
    let (mut tested, mut others) = ([0_usize; STAGES.len()], Vec::new());
    let count = std::env::var("PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(150);
    for Finished { seed, target, first, stages, .. } in programs(count) {
        let mut before = &first;
        for (stage, after) in &stages {
            if after == before {
                continue;
            }
            match compare(before, after, &target, seed) {
                Verdict::Tested { .. } => tested[STAGES.iter().position(|other| other == stage).unwrap()] += 1,
                Verdict::Refuted(refutation) => {
                    panic!("{seed:#x} on {}: {stage} is refuted: {}", target.name, refutation.difference)
                }
                other => others.push(format!("{seed:#x} on {}: {stage}: {:?}", target.name, other.reason())),
            }
            before = after;
        }
    }
    println!("{tested:?} tested, others: {others:#?}");
    assert!(tested.iter().all(|&tested| tested > 0) && others.len() * 10 < tested.iter().sum::<usize>());
}

/// From nir to words, and back to a run on the machine.
#[test]
fn words_do_on_the_machine_what_nir_says() {
    let count = std::env::var("PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    let (mut tested, mut refuted, mut others) = (0, Vec::new(), Vec::new());
    for Finished { seed, target, shader, stages, .. } in programs(count) {
        let name = format!("{seed:#x} on {}", target.name);
        let Some((_, last)) = stages.into_iter().find(|(stage, _)| *stage == Stage::Encode) else { continue };
        let envs: Vec<Env> = env_seeds(seed, 2).into_iter().map(Env::from_seed).collect();
        let before = Snapshot::Nir(Box::new(shader));
        let after = Snapshot::Ir3(Box::new(last));
        match compare_on_machine(&before, &after, &target, &envs, Completion::Latest).0 {
            Verdict::Tested { .. } => tested += 1,
            Verdict::Refuted(refutation) => {
                refuted.push(format!("{name}: {}{}", refutation.difference, place(&refutation)))
            }
            other => others.push(format!("{name}: {:?}", other.reason())),
        }
    }
    println!("{tested} tested, others: {others:#?}, refuted: {}", refuted.join("\n"));
    assert!(refuted.is_empty());
    assert!(tested > 30 && others.len() * 10 < tested);
}

/// The instructions that lead to the one that has no meaning.
fn place(refutation: &Refutation) -> String {
    let (Difference::Undefined { origin, .. }, Snapshot::Ir3(after)) = (&refutation.difference, &refutation.after)
    else {
        return String::new();
    };
    let code = Code::from_program(after).unwrap();
    let first = origin.instr.saturating_sub(8);
    (first..=origin.instr).map(|at| format!("\n      {}", instruction_text(&code, Ip::from_u32(at)))).collect()
}

/// The machine refutes programs that lack a wait.
#[test]
fn lost_waits_are_refuted_on_the_machine() {
    let (mut refuted, mut planted) = (0, 0);
    for Finished { seed, target, shader, stages, .. } in programs(40) {
        let Some((_, mut program)) = stages.into_iter().find(|(stage, _)| *stage == Stage::Encode) else { continue };
        let envs: Vec<Env> = env_seeds(seed, 2).into_iter().map(Env::from_seed).collect();
        let before = Snapshot::Nir(Box::new(shader));
        let run = |program: &Program| {
            let after = Snapshot::Ir3(Box::new(program.clone()));
            compare_on_machine(&before, &after, &target, &envs, Completion::Latest).0
        };
        if !matches!(run(&program), Verdict::Tested { .. }) {
            continue;
        }
        let is_late = |&instr: &Instr| program.instrs[instr].flags.intersects(InstrFlags::SS | InstrFlags::SY);
        let Some(instr) = program.iter_instrs().map(|(_, instr)| instr).find(is_late) else { continue };
        program.instrs[instr].flags -= InstrFlags::SS | InstrFlags::SY;
        planted += 1;
        refuted += u32::from(matches!(run(&program), Verdict::Refuted(_)));
    }
    println!("{refuted} of {planted} refuted");
    assert!(planted > 8 && refuted * 3 > planted * 2);
}

/// Changes that break a final program: a branch is inverted, or a branch of a pair is dropped.
#[test]
fn planted_bugs_are_refuted() {
    let (mut refuted, mut planted) = (0, 0);
    for Finished { seed, target, first, stages, .. } in programs(60) {
        let Some((_, mut after)) = stages.into_iter().find(|(stage, _)| *stage == Stage::Legalize) else { continue };
        let is_branch = |&instr: &Instr| {
            let data = &after.instrs[instr];
            data.opcode == Opcode::Br && matches!(data.attrs, Attrs::Branch { target: Some(_) })
        };
        let Some(branch) = after.iter_instrs().map(|(_, instr)| instr).find(is_branch) else { continue };
        after.instrs[branch].srcs[0].mods.toggle(Mods::NOT);
        planted += 1;
        refuted += u32::from(matches!(compare(&first, &after, &target, seed), Verdict::Refuted(_)));
    }
    println!("{refuted} of {planted} refuted");
    assert!(planted > 5 && refuted * 3 > planted);
}
