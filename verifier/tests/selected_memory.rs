//! Every memory, image and texture operation of nir, in every form that selection distinguishes: after each stage the
//! program has the behaviour of the nir. Addresses and data are random, per lane.

mod buffers;
mod builder;
mod textures;

use crate::common::effort::effort;
use std::collections::BTreeSet;

use buffers::{atomics, copies, copy, global, local, ssbo, ubo};
use builder::{Cases, Handle, ShaderBuilder};
use ir3_compiler::compilation;
use ir3_compiler::ir3::access::Access;
use ir3_compiler::nir::BrokenRule;
use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use ir3_compiler::{ir3, nir, select};
use ir3_harness::check::{Smt, Verdict};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::aliases::Aliasing;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp;
use ir3_semantics::interp::{End, Scratch};
use textures::{images, textures};

/// The number of cases that were the same after all stages; the reasons of refusals; the failures.
fn check(gpu: &str, cases: &Cases) -> (usize, BTreeSet<String>, Vec<String>) {
    let target = Target::by_name(gpu).unwrap();
    let mut scratch = Scratch::new();
    let (mut same, mut refused, mut wrong) = (0, BTreeSet::new(), Vec::new());
    let mut absent = 0;
    for (number, (name, shader)) in cases.iter().enumerate() {
        if let Err(errors) = nir::validate(shader) {
            // Not every texture operation has every source and every type of result.
            if errors.iter().all(|error| matches!(error.problem, BrokenRule::TexSource(..) | BrokenRule::TexType(..))) {
                absent += 1;
                continue;
            }
            wrong.push(format!("{name}: not valid: {errors:?}"));
            continue;
        }
        let source = match interp::nir::Decoded::of_target(shader, &target) {
            Ok(source) => source,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        // Some promise that buffers with other names do not alias.
        let env = Env { aliases: Some(Aliasing::Disjoint), ..Env::from_seed(number as u64) };
        let expected = source.run(&env, 10_000, &mut scratch);
        assert_eq!(expected.end, End::Finished, "{name}");
        let mut problem = None;
        let mut look = |stage, program: &ir3::Program| {
            if problem.is_some() {
                return;
            }
            match interp::ir3::Decoded::new(program, &target) {
                Ok(decoded) => {
                    let difference = expected.first_difference(&decoded.run(&env, 10_000, &mut scratch));
                    problem = difference.map(|difference| format!("{name}: {stage}: {difference}"));
                }
                Err(error) => problem = Some(format!("{name}: {stage}: {error}")),
            }
        };
        let result = compilation::compile(shader, &target, &Options::default(), &mut look);
        match (result, problem) {
            (_, Some(problem)) => wrong.push(problem),
            (Ok(_), None) => same += 1,
            (Err(error), None) => {
                // Without the number of the instruction.
                let text = error.to_string();
                refused.insert(text.split_once(": ").and_then(|(_, rest)| rest.split_once(": ")).unwrap().1.to_owned());
            }
        }
    }
    let all = cases.len();
    println!(
        "{gpu}: {same} of {all} cases the same after every stage, {absent} are not nir, {} reasons to refuse",
        refused.len()
    );
    (same, refused, wrong)
}

/// (On a third of the GPUs, but in `ci/nightly` on all.)
#[test]
fn every_form_does_what_nir_says() {
    let mut cases = Cases::new();
    for add in [ssbo, local, global, ubo, copies, atomics, images, textures] {
        add(&mut cases);
    }
    let mut failures = Vec::new();
    let gpus = ["a320", "a660", "a750", "a420", "a540", "a630"];
    for gpu in &gpus[..if effort() > 1 { gpus.len() } else { 2 }] {
        let (same, refused, wrong) = check(gpu, &cases);
        for reason in &refused {
            println!("  {reason}");
        }
        for problem in wrong.iter().take(20) {
            println!("  WRONG {problem}");
        }
        failures.extend(wrong);
        // Without bindless resources there are fewer.
        let least = if ["a630", "a660", "a750"].contains(gpu) { 2000 } else { 950 };
        assert!(same > least, "{gpu}: only {same} cases");
        let newer = ["a630", "a660", "a750"].contains(gpu);
        let unexpected: Vec<&String> = refused
            .iter()
            .filter(|reason| newer && !reason.contains("64-bit") && !reason.contains("uniform buffers"))
            .collect();
        assert!(unexpected.is_empty(), "{gpu}: {unexpected:?}");
    }
    assert!(failures.is_empty(), "{} cases are wrong, first {}", failures.len(), failures[0]);
}

/// Changes to a copy to the constant file: a run refutes each, and none is proved.
#[test]
fn a_changed_copy_is_refuted() {
    type CopyChange = fn(&mut ir3::Program, ir3::Instr);
    let changes: [(&str, CopyChange); 6] = [
        ("none", |_, _| {}),
        ("a vec4 less", |program, copy| change_memory(program, copy, |memory| memory.components = Some(7))),
        ("a vec4 more", |program, copy| change_memory(program, copy, |memory| memory.components = Some(9))),
        ("another set", |program, copy| change_memory(program, copy, |memory| memory.base = Some(2))),
        ("another offset", |program, copy| program.instrs[copy].srcs[1] = ir3::Src::immediate(1, false)),
        ("another place", |program, copy| {
            let a1 = program.instrs[copy].srcs[2].value().unwrap();
            let a1 = program.values[a1].instr;
            program.instrs[a1].srcs[0] = ir3::Src::immediate(20, true);
        }),
    ];
    let target = Target::by_name("a660").unwrap();
    let mut shader = ShaderBuilder::compute();
    copy(&mut shader, Handle::Bindless(1, 3), Some(0), 16, 8);
    let shader = shader.b.finish();
    let selected = select::run(&shader, &target).unwrap();
    let before = Snapshot::Nir(shader.into());
    for (name, change) in changes {
        let mut program = selected.clone();
        let mut copies = program.iter_instrs().map(|(_, instr)| instr);
        let copy = copies.find(|&instr| program.instrs[instr].opcode == ir3::Opcode::LdcK).unwrap();
        drop(copies);
        change(&mut program, copy);
        let verdict = Smt::default().compare(&before, &Snapshot::Ir3(program.into()), &target);
        match verdict {
            Verdict::Proved { .. } => assert_eq!(name, "none"),
            Verdict::Refuted(_) => assert_ne!(name, "none"),
            verdict => panic!("{name}: {verdict:?}"),
        }
    }
}

/// If an access is not marked as having different descriptors in its lanes, all lanes get one. So the mark must not be
/// dropped, and a program that never had it relies on facts that its author knows.
#[test]
fn an_access_that_loses_its_nonuniform_is_not_the_same() {
    let target = Target::by_name("a660").unwrap();
    for (marked, bindless) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut b = nir::Builder::new(nir::Stage::Compute);
        let id = b.intrinsic(nir::IntrinsicOp::LoadLocalInvocationId, 3, 32, &[], []).unwrap();
        let (lane, [zero, one, two]) = (b.channel(id, 0), [0, 1, 2].map(|number| b.constant(32, number)));
        let number = b.alu(nir::Op::Iand, &[lane, one]);
        let handle = match bindless {
            true => {
                let set = [nir::Index::DescSet(0)];
                b.intrinsic(nir::IntrinsicOp::BindlessResourceIr3, 1, 32, &[number], set).unwrap()
            }
            false => number,
        };
        let access = if marked { nir::Access::NON_UNIFORM } else { nir::Access::empty() };
        let indices = [nir::Index::Access(access), nir::Index::AlignMul(4)];
        let word = b.intrinsic(nir::IntrinsicOp::LoadSsboIr3, 1, 32, &[handle, zero, zero], indices).unwrap();
        let bytes = b.alu(nir::Op::Ishl, &[lane, two]);
        let indices = [nir::Index::WriteMask(1), nir::Index::AlignMul(4)];
        b.intrinsic(nir::IntrinsicOp::StoreSsboIr3, 1, 32, &[word, one, bytes, lane], indices);
        let shader = b.finish();
        let selected = select::run(&shader, &target).unwrap();
        let mut lost = selected.clone();
        lost.instrs.values_mut().for_each(|data| data.flags.remove(ir3::InstrFlags::NONUNIFORM));
        assert_eq!(selected != lost, marked);
        let run = |program: &ir3::Program| {
            let decoded = interp::ir3::Decoded::new(program, &target).unwrap();
            decoded.run(&Env::from_seed(1), 10_000, &mut Scratch::new()).end
        };
        let expected = interp::nir::Decoded::new(&shader).unwrap();
        let expected = expected.run(&Env::from_seed(1), 10_000, &mut Scratch::new()).end;
        let ends = [expected, run(&selected), run(&lost)].map(|end| end == End::Finished);
        assert_eq!(ends, if marked { [true, true, false] } else { [false; 3] });
        let before = Snapshot::Nir(shader.into());
        let proved = [selected, lost].map(|program| {
            let verdict = Smt::default().compare(&before, &Snapshot::Ir3(program.into()), &target);
            matches!(verdict, Verdict::Proved { .. })
        });
        assert_eq!(proved, [true, !marked]);
    }
}

/// Before a6xx an access names its place twice, as element or texel and in bytes: if these differ, it is no place.
#[test]
fn a_byte_offset_of_another_place_is_refuted() {
    let mut cases = Cases::new();
    for add in [ssbo, atomics, images] {
        add(&mut cases);
    }
    for gpu in ["a420", "a540"] {
        let target = Target::by_name(gpu).unwrap();
        let mut kinds = BTreeSet::new();
        for (number, (name, shader)) in cases.iter().enumerate() {
            let Ok(selected) = select::run(shader, &target) else { continue };
            let Some((accesses, changed)) = with_other_bytes(&selected) else { continue };
            let decoded = interp::nir::Decoded::of_target(shader, &target).unwrap();
            let env = Env { aliases: Some(Aliasing::Disjoint), ..Env::from_seed(number as u64) };
            let expected = decoded.run(&env, 10_000, &mut Scratch::new());
            assert_eq!(expected.end, End::Finished, "{gpu}, {name}");
            let run = |program: &ir3::Program| {
                interp::ir3::Decoded::new(program, &target).unwrap().run(&env, 10_000, &mut Scratch::new())
            };
            assert_eq!(expected.first_difference(&run(&selected)), None, "{gpu}, {name}");
            assert!(expected.first_difference(&run(&changed)).is_some(), "{gpu}, {name}: a run shows nothing");
            // A number in the words that describe the buffer or image.
            if let Some(resources) = selected.consts.resources {
                let mut overlapping = selected.clone();
                overlapping.consts.immediates.extend((resources.first..1024).map(|word| (word, 5)));
                assert!(interp::ir3::Decoded::new(&overlapping, &target).is_err(), "{gpu}, {name}");
            }
            // The solver runs on the first case of each kind.
            if kinds.insert(accesses) {
                let before = Snapshot::Nir(shader.clone().into());
                let proved = [selected, changed].map(|program| {
                    let verdict = Smt::default().compare(&before, &Snapshot::Ir3(program.into()), &target);
                    matches!(verdict, Verdict::Proved { .. })
                });
                assert_eq!(proved, [true, false], "{gpu}, {name}");
            }
        }
        assert!(kinds.len() >= 19, "{gpu}: {kinds:?}");
    }
}

/// The accesses with a byte offset, if there are any, and the program with other byte offsets: of those that are not in
/// every case.
fn with_other_bytes(program: &ir3::Program) -> Option<(BTreeSet<String>, ir3::Program)> {
    let mut all = Vec::new();
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        let Ok(Some(Access::Memory(access))) = Access::of(data) else { continue };
        if let Some(bytes) = access.bytes {
            all.push((format!("{} {:?}", data.opcode.name(), access.space), instr, usize::from(bytes.src)));
        }
    }
    let is_everywhere = |name: &str| ["ldgb Ssbo", "stgb Ssbo"].contains(&name);
    if all.iter().any(|(name, ..)| !is_everywhere(name)) {
        all.retain(|(name, ..)| !is_everywhere(name));
    }
    let mut changed = program.clone();
    let other = ir3::Src::immediate(1 << 16, false);
    for &(_, instr, bytes) in &all {
        let collect = program.instrs[instr].srcs[bytes].value().map(|value| program.values[value].instr);
        match collect.filter(|&collect| program.instrs[collect].opcode == ir3::Opcode::Collect) {
            Some(collect) => changed.instrs[collect].srcs[0] = other,
            None => changed.instrs[instr].srcs[bytes] = other,
        }
    }
    (!all.is_empty()).then(|| (all.into_iter().map(|(name, ..)| name).collect(), changed))
}

fn change_memory(program: &mut ir3::Program, instr: ir3::Instr, change: impl FnOnce(&mut ir3::MemoryAttrs)) {
    match &mut program.instrs[instr].attrs {
        ir3::Attrs::Memory(memory) => change(memory),
        attrs => panic!("{attrs:?}"),
    }
}
