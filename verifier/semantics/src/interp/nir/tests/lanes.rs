//! Operations across lanes.

use super::*;

/// An intrinsic on the lane number, in all lanes or in those from 3 on.
fn across(
    op: IntrinsicOp,
    bits: u8,
    some: bool,
    more: impl FnOnce(&mut Builder) -> (Vec<Def>, Vec<Index>),
) -> (Row, u64) {
    let outcome = run(Stage::Vertex, |b| {
        let condition = lane_is(b, Op::Uge, if some { 3 } else { 0 });
        b.begin_if(condition);
        let (srcs, indices) = more(b);
        let mut list = ir3_compiler::nir::Indices::new();
        indices.into_iter().for_each(|index| list.set(index));
        let mut value = b.intrinsic(op, 1, bits, &srcs, list).unwrap();
        if bits == 1 {
            value = b.alu(Op::B2i32, &[value]);
        }
        output(b, value);
        b.end_if();
    });
    result(&outcome, 0)
}

fn number(b: &mut Builder) -> (Vec<Def>, Vec<Index>) {
    (vec![lane(b)], vec![])
}

#[test]
fn derivatives_over_quads() {
    let square = |b: &mut Builder| {
        let number = lane(b);
        let float = b.alu(Op::U2f32, &[number]);
        (vec![b.alu(Op::Fmul, &[float, float])], vec![])
    };
    let at = |l: u32| (l * l) as f32;
    let all = |op| across(op, 32, false, square);
    assert_eq!(all(IntrinsicOp::Ddx).0, row(|l| (at(l & !3 | 1) - at(l & !3)).to_bits()));
    assert_eq!(all(IntrinsicOp::DdyCoarse).0, row(|l| (at(l & !3 | 2) - at(l & !3)).to_bits()));
    assert_eq!(all(IntrinsicOp::DdxFine).0, row(|l| (at(l | 1) - at(l & !1)).to_bits()));
    assert_eq!(all(IntrinsicOp::DdyFine).0, row(|l| (at(l | 2) - at(l & !2)).to_bits()));
    // The first quad has only its last lane.
    assert_eq!(across(IntrinsicOp::Ddx, 32, true, square).1, 0b1111);
}

#[test]
fn votes_and_masks() {
    let below = |limit| move |b: &mut Builder| (vec![lane_is(b, Op::Ult, limit)], vec![]);
    assert_eq!(across(IntrinsicOp::VoteAny, 1, true, below(3)).0[5], 0);
    assert_eq!(across(IntrinsicOp::VoteAny, 1, true, below(4)).0[5], 1);
    assert_eq!(across(IntrinsicOp::VoteAll, 1, true, below(64)).0[5], 1);
    assert_eq!(across(IntrinsicOp::VoteAll, 1, true, below(63)).0[5], 0);
    assert_eq!(across(IntrinsicOp::Ballot, 32, true, below(7)).0[5], 0b111_1000);
    assert_eq!(across(IntrinsicOp::Elect, 1, true, |_| (vec![], vec![])).0[..5], [0, 0, 0, 1, 0]);
    assert_eq!(across(IntrinsicOp::FirstInvocation, 32, true, |_| (vec![], vec![])).0[9], 3);
    assert_eq!(across(IntrinsicOp::VoteIeq, 1, false, number).0[0], 0);
}

#[test]
fn reading_other_lanes() {
    let first = across(IntrinsicOp::ReadFirstInvocation, 32, true, number);
    assert_eq!((&first.0[3..], first.1), (&[3; 61][..], 7));
    assert_eq!(across(IntrinsicOp::ReadGetlastIr3, 32, true, number).0[9], 7);
    let with = |constant: u64| {
        move |b: &mut Builder| {
            let number = lane(b);
            (vec![number, b.constant(32, constant)], vec![])
        }
    };
    assert_eq!(across(IntrinsicOp::ReadInvocation, 32, true, with(9)).0[5], 9);
    // An inactive lane has no value.
    assert_eq!(across(IntrinsicOp::ReadInvocation, 32, true, with(2)).1, ALL_LANES);
    assert_eq!(across(IntrinsicOp::ShuffleXor, 32, false, with(5)).0, row(|l| l ^ 5));
    assert_eq!(across(IntrinsicOp::ShuffleXor, 32, true, with(4)).1, 0b111_0111);
    let up = across(IntrinsicOp::ShuffleUp, 32, false, with(2));
    assert_eq!((&up.0[2..], up.1), (&row(|l| l.wrapping_sub(2))[2..], 3));
    assert_eq!(across(IntrinsicOp::ShuffleDown, 32, false, with(60)).1, !0b1111);
    assert_eq!(across(IntrinsicOp::QuadSwapHorizontal, 32, false, number).0, row(|l| l ^ 1));
    assert_eq!(across(IntrinsicOp::QuadSwapDiagonal, 32, false, number).0, row(|l| l ^ 3));
    assert_eq!(across(IntrinsicOp::QuadBroadcast, 32, false, with(2)).0, row(|l| l & !3 | 2));
    let rotate = |b: &mut Builder| {
        let (srcs, _) = with(1)(b);
        (srcs, vec![Index::ClusterSize(4)])
    };
    assert_eq!(across(IntrinsicOp::Rotate, 32, false, rotate).0, row(|l| l & !3 | (l + 1) & 3));
    let cond = |b: &mut Builder| {
        let number = lane(b);
        (vec![number, lane_is(b, Op::Uge, 20)], vec![])
    };
    assert_eq!(across(IntrinsicOp::ReadInvocationCondIr3, 32, true, cond).0[5], 20);
}

#[test]
fn reductions_and_scans() {
    let with = |op: Op| move |b: &mut Builder| (vec![lane(b)], vec![Index::ReductionOp(op)]);
    let sum = |from: u32, to: u32| (from..to).sum::<u32>();
    assert_eq!(across(IntrinsicOp::Reduce, 32, true, with(Op::Iadd)).0[9], sum(3, 64));
    assert_eq!(across(IntrinsicOp::Reduce, 32, true, with(Op::Umin)).0[9], 3);
    assert_eq!(across(IntrinsicOp::Reduce, 32, true, with(Op::Ixor)).0[9], (3..64).fold(0, |x, l| x ^ l));
    let inclusive = across(IntrinsicOp::InclusiveScan, 32, true, with(Op::Iadd)).0;
    assert_eq!(inclusive[3..], row(|l| sum(3, l + 1))[3..]);
    let exclusive = across(IntrinsicOp::ExclusiveScan, 32, true, with(Op::Iadd)).0;
    assert_eq!(exclusive[3..], row(|l| sum(3, l))[3..]);
    let clusters = |b: &mut Builder| {
        let number = lane(b);
        (vec![number], vec![Index::ReductionOp(Op::Umax), Index::ClusterSize(8)])
    };
    assert_eq!(across(IntrinsicOp::Reduce, 32, false, clusters).0, row(|l| l | 7));
}

/// Mesa's lowering of a scan: three broadcasts combine each cluster of eight, one scan combines the clusters.
#[test]
fn a_scan_in_clusters_is_a_scan() {
    for some in [false, true] {
        let (found, poison) = across(IntrinsicOp::InclusiveScanClustersIr3, 32, some, |b| {
            let one = b.constant(32, 1);
            let number = lane(b);
            let mut value = b.alu(Op::Iadd, &[number, one]);
            let zero = b.constant(32, 0);
            for size in [2, 4, 8] {
                let indices = [Index::ClusterSize(size)];
                let below = b.intrinsic(IntrinsicOp::BrcstActiveIr3, 1, 32, &[zero, value], indices).unwrap();
                value = b.alu(Op::Iadd, &[value, below]);
            }
            (vec![value], vec![Index::ReductionOp(Op::Iadd)])
        });
        let first = if some { 3 } else { 0 };
        assert_eq!(poison, if some { 7 } else { 0 });
        assert_eq!(found[first..], row(|l| (first as u32..=l).map(|x| x + 1).sum())[first..]);
    }
}

/// The machine branches on these conditions. Lanes that are inactive do not count.
#[test]
fn votes_need_defined_conditions() {
    let vote = |op: IntrinsicOp, bits: u8, from: u64| {
        run(Stage::Vertex, |b| {
            let (undef, yes, first) = (b.undef(1, 1), b.constant(1, 1), lane_is(b, Op::Ult, 3));
            let condition = b.alu(Op::Bcsel, &[first, undef, yes]);
            let outer = lane_is(b, Op::Uge, from);
            b.begin_if(outer);
            let number = lane(b);
            let srcs = if op == IntrinsicOp::ReadInvocationCondIr3 { vec![number, condition] } else { vec![condition] };
            let value = b.intrinsic(op, 1, bits, &srcs, []).unwrap();
            let value = if bits == 1 { b.alu(Op::B2i32, &[value]) } else { value };
            output(b, value);
            b.end_if();
        })
    };
    for (op, bits) in [
        (IntrinsicOp::VoteAny, 1),
        (IntrinsicOp::VoteAll, 1),
        (IntrinsicOp::Ballot, 32),
        (IntrinsicOp::ReadInvocationCondIr3, 32),
    ] {
        assert_eq!(undefined(&vote(op, bits, 2), UndefinedReason::LaneNumber), 0b100, "{op:?}");
        assert_eq!(result(&vote(op, bits, 3), 0).1, 0b111, "{op:?}");
    }
}
