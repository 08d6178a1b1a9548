//! Tests of single steps, on random programs and on small ones.

use std::collections::BTreeMap;

use ir3_compiler::nir::{Builder, Index, InstrData, IntrinsicOp, JumpKind, Op, Shader, Stage, text, validate};

use super::KINDS;
use crate::reduce::clean::{compact, remove_dead_code};
use crate::reduce::edit::{Edit, ProgramView};
use crate::reduce::{Options, Size, run, run_parallel};

/// Applies each step of a program alone: the name of its kind, and the resulting program, if it is valid.
fn each_step(shader: &Shader, mut visit: impl FnMut(&'static str, Option<Shader>)) {
    for kind in KINDS {
        for step in (kind.list)(&ProgramView::new(shader)) {
            let mut edit = Edit::new(shader.clone());
            if step.apply(&mut edit) {
                remove_dead_code(&mut edit);
                let new = compact(&edit.shader);
                visit(kind.name, validate(&new).is_ok().then_some(new));
            }
        }
    }
}

#[test]
fn steps_give_valid_programs() {
    let mut counts: BTreeMap<&str, (u32, u32, u32)> = BTreeMap::new();
    for shader in random_programs(3) {
        let size = Size::of(&shader);
        each_step(&shader, |kind, new| {
            let (taken, valid, smaller) = counts.entry(kind).or_default();
            *taken += 1;
            *valid += u32::from(new.is_some());
            *smaller += u32::from(new.is_some_and(|new| Size::of(&new) < size));
        });
    }
    for (kind, (taken, valid, smaller)) in &counts {
        println!("{kind}: {taken} taken, {valid} valid, {smaller} smaller");
        assert!(valid * 10 >= taken * 9, "{kind}: only {valid} of {taken} gave a valid program");
        assert!(*smaller > 0, "{kind}: none of {taken} made a program smaller");
    }
}

fn random_programs(each: u64) -> Vec<Shader> {
    use ir3_programs::generator::{Features, Profile, from_seed};
    let seeds = (0..each).flat_map(|seed| Profile::ALL.map(|profile| (seed, profile)));
    seeds.map(|(seed, profile)| compact(&from_seed(seed, profile, Features::ALL).shader)).collect()
}

#[test]
fn compaction_numbers_like_the_reader() {
    for shader in random_programs(2) {
        assert_eq!(validate(&shader), Ok(()));
        assert_eq!(compact(&shader), shader);
        assert_eq!(text::read(&text::write(&shader)).as_ref().map(text::write), Ok(text::write(&shader)));
    }
}

fn count(shader: &Shader, op: Op) -> usize {
    let function = &shader.entry;
    let is_op = |data: &InstrData| matches!(data, InstrData::Alu(alu) if alu.op == op);
    function.instrs_in_order().filter(|&(_, i)| is_op(&function.instrs[i])).count()
}

fn reduced(shader: &Shader, mut same: impl FnMut(&Shader) -> bool) -> Shader {
    let result = run(shader, &mut same, &Options::default(), &mut |_| true).expect("no file is written");
    assert!(result.minimal && same(&result.program) && validate(&result.program).is_ok());
    assert!(Size::of(&result.program) <= Size::of(shader));
    result.program
}

#[test]
fn what_is_asked_for_is_all_that_is_left() {
    let mut tried = 0;
    for shader in random_programs(1) {
        if count(&shader, Op::Iadd) == 0 {
            continue;
        }
        tried += 1;
        let small = reduced(&shader, |shader| count(shader, Op::Iadd) > 0);
        // An addition, its operands, and an effect that keeps it live.
        assert!(small.instruction_count() <= 5, "{}", text::write(&small));
    }
    assert!(tried >= 5);
}

#[test]
fn threads_do_not_matter() {
    for shader in random_programs(1) {
        let same = |shader: &Shader| count(shader, Op::Iadd) + count(shader, Op::Iand) >= 2;
        if !same(&shader) {
            continue;
        }
        let alone = reduced(&shader, same);
        for jobs in [1, 2, 4] {
            let result = run_parallel(&shader, &mut vec![same; jobs], &Options::default(), &mut |_| true);
            assert_eq!(result.expect("no file is written").program, alone, "{jobs} jobs");
        }
    }
}

/// `out = (in loop over 3 iterations: sum += i * 2, left early if sum == 4)`, and a store of four components.
fn loop_program() -> Shader {
    let mut b = Builder::new(Stage::Compute);
    let zero = b.constant(32, 0);
    let one = b.constant(32, 1);
    let limit = b.constant(32, 3);
    let before = b.current_block();
    b.begin_loop();
    let counter = b.phi(1, 32);
    let sum = b.phi(1, 32);
    b.set_phi_src(counter, before, zero);
    b.set_phi_src(sum, before, zero);
    let done = b.alu(Op::Uge, &[counter, limit]);
    b.begin_if(done);
    let first = b.current_block();
    b.jump(JumpKind::Break);
    b.end_if();
    let twice = b.alu(Op::Iadd, &[counter, counter]);
    let next_sum = b.alu(Op::Ixor, &[sum, twice]);
    let four = b.constant(32, 4);
    let early = b.alu(Op::Ieq, &[next_sum, four]);
    b.begin_if(early);
    let second = b.current_block();
    b.jump(JumpKind::Break);
    b.end_if();
    let next = b.alu(Op::Iadd, &[counter, one]);
    let last = b.current_block();
    b.set_phi_src(counter, last, next);
    b.set_phi_src(sum, last, next_sum);
    b.end_loop();
    let result = b.phi(1, 32);
    b.set_phi_src(result, first, sum);
    b.set_phi_src(result, second, next_sum);
    let vector = b.vec(&[result, zero, one, result]);
    let binding = b.constant(32, 0);
    b.intrinsic(IntrinsicOp::StoreSsbo, 4, 32, &[vector, binding, zero], [Index::WriteMask(0xf), Index::AlignMul(4)]);
    b.finish()
}

#[test]
fn a_loop_runs_once_or_goes() {
    let shader = loop_program();
    assert_eq!(validate(&shader), Ok(()));
    let mut straight = 0;
    each_step(&shader, |kind, new| {
        let new = new.unwrap_or_else(|| panic!("{kind} gave no valid program"));
        if kind == "flatten control flow" && !text::write(&new).contains("loop {") {
            straight += 1;
            assert!(count(&new, Op::Ixor) <= 1);
        }
    });
    assert_eq!(straight, 2, "one for each break");
    // Only the store is left if the failure needs only that.
    let small = reduced(&shader, |shader| text::write(shader).contains("store_ssbo"));
    assert!(small.instruction_count() <= 2, "{}", text::write(&small));
    // A loop stays if the failure needs it.
    let small = reduced(&shader, |shader| text::write(shader).contains("loop {"));
    assert!(small.instruction_count() <= 1, "{}", text::write(&small));
}

#[test]
fn vectors_and_widths_shrink() {
    let mut b = Builder::new(Stage::Compute);
    let id = b.intrinsic(IntrinsicOp::LoadLocalInvocationIndex, 1, 32, &[], []).expect("a result");
    let wide = b.alu(Op::U2u64, &[id]);
    let sum = b.alu(Op::Iadd, &[wide, wide]);
    let (low, high) = (b.alu(Op::Unpack64_2x32SplitX, &[sum]), b.alu(Op::Unpack64_2x32SplitY, &[sum]));
    let vector = b.vec(&[low, high, id, low]);
    let squares = b.alu(Op::Imul, &[vector, vector]);
    let zero = b.constant(32, 0);
    b.intrinsic(IntrinsicOp::StoreSsbo, 4, 32, &[squares, zero, zero], [Index::WriteMask(0xf), Index::AlignMul(4)]);
    let shader = b.finish();
    assert_eq!(validate(&shader), Ok(()));
    each_step(&shader, |kind, new| assert!(new.is_some(), "{kind}"));
    let small = reduced(&shader, |shader| count(shader, Op::Imul) > 0 && count(shader, Op::Iadd) > 0);
    // No width below 32: the only constant is the address too, and one of another width would be an additional
    // constant.
    let function = &small.entry;
    let mut alu = function.defs.values().filter(|def| matches!(function.instrs[def.instr], InstrData::Alu(_)));
    assert!(alu.all(|def| (def.num_components, def.bit_size) == (1, 32)), "{}", text::write(&small));
    let wide = reduced(&shader, |shader| text::write(shader).contains("64 "));
    assert!(wide.instruction_count() <= 4, "{}", text::write(&wide));
}

/// A loop counter, its increment and a store, all in 64 bits.
#[test]
fn widths_shrink_through_phis_and_memory() {
    let mut b = Builder::new(Stage::Compute);
    let zero = b.constant(32, 0);
    let start = b.intrinsic(IntrinsicOp::LoadSsbo, 1, 64, &[zero, zero], [Index::AlignMul(8)]).expect("a result");
    let limit = b.constant(64, 3);
    let before = b.current_block();
    b.begin_loop();
    let counter = b.phi(1, 64);
    b.set_phi_src(counter, before, start);
    let done = b.alu(Op::Uge, &[counter, limit]);
    b.begin_if(done);
    b.jump(JumpKind::Break);
    b.end_if();
    let next = b.alu(Op::Iadd, &[counter, limit]);
    let last = b.current_block();
    b.set_phi_src(counter, last, next);
    b.end_loop();
    b.intrinsic(IntrinsicOp::StoreSsbo, 1, 64, &[counter, zero, zero], [Index::WriteMask(1), Index::AlignMul(8)]);
    let shader = b.finish();
    assert_eq!(validate(&shader), Ok(()));
    let bits = |shader: &Shader| {
        let text = text::write(shader);
        let complete = text.contains("load_ssbo") && text.contains("phi") && count(shader, Op::Iadd) > 0;
        complete.then(|| shader.entry.defs.values().map(|def| def.bit_size).collect::<Vec<u8>>())
    };
    for least in [32, 16, 8] {
        // The widths that remain if the failure needs at least `least` bits.
        let small = reduced(&shader, |shader| {
            bits(shader).is_some_and(|bits| bits.into_iter().all(|bits| bits == 1 || bits >= least))
        });
        let left = bits(&small).expect("it was asked for");
        assert!(!left.contains(&64) && left.contains(&least), "{least}: {}", text::write(&small));
    }
}
