//! Control flow.

use super::*;
use ir3_compiler::nir::JumpKind;

#[test]
fn a_phi_joins_the_sides_of_an_if() {
    let outcome = run(Stage::Vertex, |b| {
        let condition = lane_is(b, Op::Ult, 10);
        b.begin_if(condition);
        let yes = b.constant(32, 7);
        let then = b.current_block();
        b.begin_else();
        let no = lane(b);
        let otherwise = b.current_block();
        b.end_if();
        let phi = b.phi(1, 32);
        b.set_phi_src(phi, then, yes);
        b.set_phi_src(phi, otherwise, no);
        output(b, phi);
    });
    assert_eq!(values(&outcome), row(|l| if l < 10 { 7 } else { l }));
}

/// Counts down from the lane number; returns the number of iterations and the last value that the body computed.
fn countdown(b: &mut Builder) -> (Def, Def) {
    let (start, zero, one) = (lane(b), b.constant(32, 0), b.constant(32, 1));
    let before = b.current_block();
    b.begin_loop();
    let (left, turns) = (b.phi(1, 32), b.phi(1, 32));
    b.set_phi_src(left, before, start);
    b.set_phi_src(turns, before, zero);
    let body = b.alu(Op::Imul, &[left, left]);
    let done = b.alu(Op::Ieq, &[left, zero]);
    b.begin_if(done);
    b.jump(JumpKind::Break);
    b.end_if();
    let next = b.alu(Op::Isub, &[left, one]);
    let more = b.alu(Op::Iadd, &[turns, one]);
    let end = b.current_block();
    b.set_phi_src(left, end, next);
    b.set_phi_src(turns, end, more);
    b.end_loop();
    (turns, body)
}

#[test]
fn lanes_leave_a_loop_one_after_the_other() {
    let outcome = run(Stage::Vertex, |b| {
        let (turns, _) = countdown(b);
        output(b, turns);
    });
    assert_eq!(values(&outcome), row(|l| l));
}

#[test]
fn a_value_of_a_loop_is_that_of_the_lanes_last_turn() {
    let outcome = run(Stage::Vertex, |b| {
        let (start, one, limit) = (lane(b), b.constant(32, 1), b.constant(32, 20));
        let before = b.current_block();
        b.begin_loop();
        let i = b.phi(1, 32);
        b.set_phi_src(i, before, start);
        let square = b.alu(Op::Imul, &[i, i]);
        // An alias of it, and a value computed from it, are used after the loop.
        let name = b.alu(Op::Mov, &[square]);
        let triple = b.alu(Op::Iadd3, &[square, square, square]);
        let done = b.alu(Op::Uge, &[i, limit]);
        b.begin_if(done);
        b.jump(JumpKind::Break);
        b.end_if();
        let next = b.alu(Op::Iadd, &[i, one]);
        let end = b.current_block();
        b.set_phi_src(i, end, next);
        b.end_loop();
        let sum = b.alu(Op::Iadd, &[name, triple]);
        output(b, sum);
    });
    assert_eq!(values(&outcome), row(|l| 4 * l.max(20).pow(2)));
}

#[test]
fn phis_of_a_loop_change_places_at_once() {
    let outcome = run(Stage::Vertex, |b| {
        let (zero, one, bound) = (b.constant(32, 0), b.constant(32, 1), lane(b));
        let before = b.current_block();
        b.begin_loop();
        let (x, y, i) = (b.phi(1, 32), b.phi(1, 32), b.phi(1, 32));
        b.set_phi_src(x, before, zero);
        b.set_phi_src(y, before, one);
        b.set_phi_src(i, before, zero);
        let done = b.alu(Op::Uge, &[i, bound]);
        b.begin_if(done);
        b.jump(JumpKind::Break);
        b.end_if();
        let next = b.alu(Op::Iadd, &[i, one]);
        let end = b.current_block();
        b.set_phi_src(x, end, y);
        b.set_phi_src(y, end, x);
        b.set_phi_src(i, end, next);
        b.end_loop();
        output(b, x);
    });
    assert_eq!(values(&outcome), row(|l| l % 2));
}

#[test]
fn continue_skips_the_rest_of_the_turn() {
    // Sums the odd numbers below the lane number.
    let outcome = run(Stage::Vertex, |b| {
        let (zero, one, bound) = (b.constant(32, 0), b.constant(32, 1), lane(b));
        let before = b.current_block();
        b.begin_loop();
        let (i, sum) = (b.phi(1, 32), b.phi(1, 32));
        b.set_phi_src(i, before, zero);
        b.set_phi_src(sum, before, zero);
        let done = b.alu(Op::Uge, &[i, bound]);
        b.begin_if(done);
        b.jump(JumpKind::Break);
        b.end_if();
        let next = b.alu(Op::Iadd, &[i, one]);
        let odd = b.alu(Op::Iand, &[i, one]);
        let even = b.alu(Op::Ieq, &[odd, zero]);
        b.begin_if(even);
        let skip = b.current_block();
        b.set_phi_src(i, skip, next);
        b.set_phi_src(sum, skip, sum);
        b.jump(JumpKind::Continue);
        b.end_if();
        let more = b.alu(Op::Iadd, &[sum, i]);
        let end = b.current_block();
        b.set_phi_src(i, end, next);
        b.set_phi_src(sum, end, more);
        b.end_loop();
        output(b, sum);
    });
    assert_eq!(values(&outcome), row(|l| (0..l).filter(|i| i % 2 == 1).sum()));
}

#[test]
fn a_continue_construct_runs_before_each_further_iteration() {
    let outcome = run(Stage::Vertex, |b| {
        let (zero, one, two, bound) = (b.constant(32, 0), b.constant(32, 1), b.constant(32, 2), lane(b));
        let before = b.current_block();
        b.begin_loop();
        let i = b.phi(1, 32);
        b.set_phi_src(i, before, zero);
        let done = b.alu(Op::Uge, &[i, bound]);
        b.begin_if(done);
        b.jump(JumpKind::Break);
        b.end_if();
        let early = b.alu(Op::Iadd, &[i, one]);
        let odd = b.alu(Op::Iand, &[i, one]);
        let odd = b.alu(Op::Ieq, &[odd, one]);
        b.begin_if(odd);
        let from_continue = b.current_block();
        b.jump(JumpKind::Continue);
        b.end_if();
        let late = b.alu(Op::Iadd, &[i, two]);
        let from_end = b.current_block();
        b.begin_continuing();
        let step = b.phi(1, 32);
        b.set_phi_src(step, from_continue, early);
        b.set_phi_src(step, from_end, late);
        let next = b.alu(Op::Iadd, &[step, one]);
        let end = b.current_block();
        b.set_phi_src(i, end, next);
        b.end_loop();
        output(b, i);
    });
    // 0, 3, 5, 7 and so on.
    let expected = |l: u32| {
        let mut i = 0;
        while i < l {
            i += if i % 2 == 1 { 2 } else { 3 };
        }
        i
    };
    assert_eq!(values(&outcome), row(expected));
}

#[test]
fn loops_in_loops_and_ifs() {
    // The number of pairs (i, j) with j < i < lane / 8, in lanes that are not divisible by 3.
    let outcome = run(Stage::Vertex, |b| {
        let (zero, one, three, eight, number) =
            (b.constant(32, 0), b.constant(32, 1), b.constant(32, 3), b.constant(32, 8), lane(b));
        let bound = b.alu(Op::Udiv, &[number, eight]);
        let rest = b.alu(Op::Umod, &[number, three]);
        let wanted = b.alu(Op::Ine, &[rest, zero]);
        b.begin_if(wanted);
        let before = b.current_block();
        b.begin_loop();
        let (i, outer) = (b.phi(1, 32), b.phi(1, 32));
        b.set_phi_src(i, before, zero);
        b.set_phi_src(outer, before, zero);
        let done = b.alu(Op::Uge, &[i, bound]);
        b.begin_if(done);
        b.jump(JumpKind::Break);
        b.end_if();
        let around = b.current_block();
        b.begin_loop();
        let (j, inner) = (b.phi(1, 32), b.phi(1, 32));
        b.set_phi_src(j, around, zero);
        b.set_phi_src(inner, around, outer);
        let done = b.alu(Op::Uge, &[j, i]);
        b.begin_if(done);
        b.jump(JumpKind::Break);
        b.end_if();
        let next = b.alu(Op::Iadd, &[j, one]);
        let more = b.alu(Op::Iadd, &[inner, one]);
        let end = b.current_block();
        b.set_phi_src(j, end, next);
        b.set_phi_src(inner, end, more);
        b.end_loop();
        let next = b.alu(Op::Iadd, &[i, one]);
        let end = b.current_block();
        b.set_phi_src(i, end, next);
        b.set_phi_src(outer, end, inner);
        b.end_loop();
        let then = b.current_block();
        b.begin_else();
        let otherwise = b.current_block();
        b.end_if();
        let phi = b.phi(1, 32);
        b.set_phi_src(phi, then, outer);
        b.set_phi_src(phi, otherwise, zero);
        output(b, phi);
    });
    let pairs = |n: u32| n * n.saturating_sub(1) / 2;
    assert_eq!(values(&outcome), row(|l| if l % 3 == 0 { 0 } else { pairs(l / 8) }));
}

#[test]
fn lanes_return_early() {
    let outcome = run(Stage::Vertex, |b| {
        let one = b.constant(32, 1);
        output(b, one);
        let condition = lane_is(b, Op::Ult, 5);
        b.begin_if(condition);
        b.jump(JumpKind::Return);
        b.end_if();
        let number = lane(b);
        output(b, number);
    });
    assert_eq!(values(&outcome), row(|l| if l < 5 { 1 } else { l }));
    assert_eq!(outcome.killed, 0);
}

#[test]
fn a_loop_without_end_uses_up_the_fuel() {
    let outcome = run(Stage::Vertex, |b| {
        b.begin_loop();
        b.end_loop();
    });
    assert_eq!(outcome.end, End::OutOfFuel);
    assert!(outcome.executed > 10_000);
}

#[test]
fn a_branch_on_poison_has_no_meaning() {
    let outcome = run(Stage::Vertex, |b| {
        let bad = b.undef(1, 1);
        let (no, first) = (b.constant(1, 0), lane_is(b, Op::Ult, 3));
        let condition = b.alu(Op::Bcsel, &[first, bad, no]);
        b.begin_if(condition);
        b.end_if();
    });
    assert_eq!(undefined(&outcome, UndefinedReason::Branch), 7);
}

#[test]
fn poison_where_no_lane_is_does_not_matter() {
    let outcome = run(Stage::Vertex, |b| {
        let bad = b.undef(1, 1);
        let (no, first) = (b.constant(1, 0), lane_is(b, Op::Ult, 3));
        let condition = b.alu(Op::Bcsel, &[first, bad, no]);
        b.begin_if(first);
        b.begin_else();
        b.begin_if(condition);
        b.end_if();
        b.end_if();
    });
    assert_eq!(outcome.end, End::Finished);
}

#[test]
fn killed_and_demoted_lanes() {
    let build = |op| {
        move |b: &mut Builder| {
            let one = b.constant(32, 1);
            output(b, one);
            let condition = lane_is(b, Op::Ult, 4);
            b.intrinsic(op, 0, 0, &[condition], []);
            let helper = b.intrinsic(IntrinsicOp::IsHelperInvocation, 1, 1, &[], []).unwrap();
            let helper = b.alu(Op::B2i32, &[helper]);
            output(b, helper);
        }
    };
    let terminated = run(Stage::Fragment, build(IntrinsicOp::TerminateIf));
    assert_eq!((terminated.killed, terminated.helpers), (15, 0));
    assert_eq!(values(&terminated), row(|l| u32::from(l < 4)));
    let demoted = run(Stage::Fragment, build(IntrinsicOp::DemoteIf));
    assert_eq!((demoted.killed, demoted.helpers), (15, 15));
    assert_eq!(values(&demoted), row(|l| u32::from(l < 4)));
    // Their stores are not compared; the kills are.
    let kept = run(Stage::Fragment, |b| {
        let condition = lane_is(b, Op::Ult, 4);
        b.intrinsic(IntrinsicOp::TerminateIf, 0, 0, &[condition], []);
        let zero = b.constant(32, 0);
        output(b, zero);
    });
    assert!(terminated.first_difference(&kept).is_none());
    let other = run(Stage::Fragment, |b| {
        let zero = b.constant(32, 0);
        output(b, zero);
    });
    assert!(terminated.first_difference(&other).unwrap().to_string().starts_with("killed lanes"));
}

#[test]
fn all_lanes_of_a_side_may_end() {
    let outcome = run(Stage::Fragment, |b| {
        let condition = lane_is(b, Op::Uge, 0);
        b.begin_if(condition);
        b.intrinsic(IntrinsicOp::Terminate, 0, 0, &[], []);
        b.end_if();
        let number = lane(b);
        output(b, number);
    });
    assert_eq!((outcome.end, outcome.killed), (End::Finished, ALL_LANES));
    assert!(outcome.outputs.rows().iter().all(|row| row.poison == u64::MAX));
}
