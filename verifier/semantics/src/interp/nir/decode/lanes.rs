//! Operations across lanes.

use ir3_compiler::nir::{Def, Intrinsic, IntrinsicOp, Op as NirOp, Stage};
use smallvec::SmallVec;

use super::intrinsics::result;
use super::{DecodeResult, Decoder};
use crate::interp::nir::op::{DecodedOp, LaneKind, Lanes, R, ScanOp, ScanResult, Shuffle};
use crate::operations::{Kernel, nir_alu};

impl Decoder<'_> {
    pub(super) fn across_lanes(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        use IntrinsicOp as I;
        let src = |index: usize| intrinsic.srcs.get(index).copied().ok_or("too few sources");
        let shuffle = |mode, uniform| -> DecodeResult<LaneKind> {
            Ok(LaneKind::Shuffle { mode, index: self.scalar(src(1)?)?, uniform })
        };
        let derivative = |bit, fine| LaneKind::Derivative { bit, fine, half: false };
        let kind = match intrinsic.op {
            I::Elect => LaneKind::Elect { any: false },
            I::ElectAnyIr3 => LaneKind::Elect { any: true },
            I::VoteAny => LaneKind::VoteAny,
            I::VoteAll => LaneKind::VoteAll,
            I::VoteIeq | I::VoteFeq => {
                let float = (intrinsic.op == I::VoteFeq).then(|| self.bits(intrinsic.srcs[0]));
                if float.is_some_and(|bits| !matches!(bits, 16 | 32)) {
                    return Err("floats that are not of 16 or 32 bits".to_owned());
                }
                return self.vote_equal(intrinsic, LaneKind::VoteEqual { float });
            }
            I::Ballot | I::BallotRelaxed => return self.ballot(intrinsic),
            I::InverseBallot => return self.vote_equal(intrinsic, LaneKind::InverseBallot),
            I::FirstInvocation => LaneKind::LaneNumber { last: false },
            I::LastInvocation => LaneKind::LaneNumber { last: true },
            I::ReadFirstInvocation => LaneKind::ReadFirst,
            I::ReadGetlastIr3 => LaneKind::ReadLast,
            I::ReadInvocation => LaneKind::ReadLane(self.scalar(src(1)?)?),
            I::ReadInvocationCondIr3 => LaneKind::ReadWhere(self.scalar(src(1)?)?),
            I::Ddx | I::DdxCoarse => derivative(1, false),
            I::Ddy | I::DdyCoarse => derivative(2, false),
            I::DdxFine => derivative(1, true),
            I::DdyFine => derivative(2, true),
            I::Shuffle => shuffle(Shuffle::Index, false)?,
            I::ShuffleXor => shuffle(Shuffle::Xor, false)?,
            I::ShuffleXorUniformIr3 => shuffle(Shuffle::Xor, true)?,
            I::ShuffleUp => shuffle(Shuffle::Up, false)?,
            I::ShuffleUpUniformIr3 => shuffle(Shuffle::Up, true)?,
            I::ShuffleDown => shuffle(Shuffle::Down, false)?,
            I::ShuffleDownUniformIr3 => shuffle(Shuffle::Down, true)?,
            I::Rotate => shuffle(Shuffle::Rotate(cluster(intrinsic.indices.cluster_size(), self.shader.stage)?), true)?,
            I::QuadSwapHorizontal => LaneKind::Swap(1),
            I::QuadSwapVertical => LaneKind::Swap(2),
            I::QuadSwapDiagonal => LaneKind::Swap(3),
            I::QuadBroadcast => LaneKind::Broadcast(self.scalar(src(1)?)?),
            I::QuadVoteAny => LaneKind::QuadVote { all: false },
            I::QuadVoteAll => LaneKind::QuadVote { all: true },
            I::BrcstActiveIr3 => return self.broadcast_active(intrinsic),
            I::Reduce
            | I::InclusiveScan
            | I::ExclusiveScan
            | I::ReduceClustersIr3
            | I::InclusiveScanClustersIr3
            | I::ExclusiveScanClustersIr3 => return self.scan(intrinsic),
            _ => return Err(String::new()),
        };
        let kind = match (kind, intrinsic.srcs.first()) {
            (LaneKind::Derivative { bit, fine, .. }, Some(&value)) => match self.bits(value) {
                16 => LaneKind::Derivative { bit, fine, half: true },
                32 => kind,
                bits => return Err(format!("a float of {bits} bits")),
            },
            _ => kind,
        };
        self.lane_op(intrinsic, kind, intrinsic.srcs.first().copied())
    }

    fn push_lanes(&mut self, kind: LaneKind, rows: SmallVec<[(R, R); 4]>) {
        let origin = self.origin();
        self.code.lanes.push(Lanes { kind, rows, origin });
        self.push(DecodedOp::Lanes(self.code.lanes.len() as u32 - 1));
    }

    /// An operation on each row of a value; the result has the value's shape, or is a scalar.
    fn lane_op(&mut self, intrinsic: &Intrinsic, kind: LaneKind, value: Option<Def>) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        let srcs = match value {
            Some(value) => self.read(value)?.clone(),
            None => [0].into_iter().collect(),
        };
        let count = self.components(def) * self.width(def);
        if srcs.len() != count as usize {
            return Err("a result of another shape than the value".to_owned());
        }
        let first = self.define(def);
        let rows = srcs.iter().enumerate().map(|(i, &row)| (first + i as u32, row)).collect();
        self.push_lanes(kind, rows);
        Ok(())
    }

    /// A scalar result of all rows of a value.
    fn vote_equal(&mut self, intrinsic: &Intrinsic, kind: LaneKind) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        let srcs = self.read(intrinsic.srcs[0])?.clone();
        let dst = self.define(def);
        self.push_lanes(kind, srcs.iter().map(|&row| (dst, row)).collect());
        Ok(())
    }

    fn ballot(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        if self.bits(def) < 32 {
            return Err("a mask of less than 32 bits".to_owned());
        }
        let src = self.scalar(intrinsic.srcs[0])?;
        let words = self.components(def) * self.width(def);
        let first = self.define(def);
        let relaxed = intrinsic.op == IntrinsicOp::BallotRelaxed;
        for word in 0..words {
            self.push_lanes(LaneKind::Ballot { word, relaxed }, [(first + word, src)].into_iter().collect());
        }
        Ok(())
    }

    /// Sources: the value of lanes that receive nothing, and the value that is broadcast.
    fn broadcast_active(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        let size = cluster(intrinsic.indices.cluster_size(), self.shader.stage)?;
        let kept = self.scalar(intrinsic.srcs[0])?;
        let value = intrinsic.srcs[1];
        if size < 2 || self.bits(value) == 64 {
            return Err("a cluster of one lane, or a value of 64 bits".to_owned());
        }
        self.lane_op(intrinsic, LaneKind::BroadcastActive { cluster: size, kept }, Some(value))
    }

    fn scan(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        use IntrinsicOp as I;
        let value = intrinsic.srcs[0];
        let bits = self.bits(value);
        let op = intrinsic.indices.reduction_op();
        let identity = identity(op, bits).ok_or_else(|| format!("a reduction by {} of {bits} bits", op.name()))?;
        let Some(Kernel::Two(kernel)) = nir_alu::kernel(op, bits, &[bits, bits], self.controls) else {
            return Err(format!("a reduction by {} of {bits} bits", op.name()));
        };
        let clusters =
            matches!(intrinsic.op, I::ReduceClustersIr3 | I::InclusiveScanClustersIr3 | I::ExclusiveScanClustersIr3);
        let result = match intrinsic.op {
            I::Reduce | I::ReduceClustersIr3 => ScanResult::Reduce,
            I::InclusiveScan | I::InclusiveScanClustersIr3 => ScanResult::Inclusive,
            _ => ScanResult::Exclusive,
        };
        let exclusive = match intrinsic.op {
            I::ExclusiveScanClustersIr3 => Some(self.scalar(intrinsic.srcs[1])?),
            _ => None,
        };
        let cluster =
            if intrinsic.op == I::Reduce { cluster(intrinsic.indices.cluster_size(), self.shader.stage)? } else { 64 };
        let step = if clusters { 8 } else { 1 };
        let scan = ScanOp { kernel, identity, result, step, cluster, exclusive };
        self.lane_op(intrinsic, LaneKind::Scan(scan), Some(value))
    }
}

/// The size of a cluster: a power of two up to the wave; 0 is the wave. A wave that may have 128 lanes runs with 64 of
/// them, so no cluster of 64 is distinct from it.
fn cluster(size: u32, stage: Stage) -> DecodeResult<u8> {
    match size {
        64 if !matches!(stage, Stage::Compute | Stage::Kernel) => {
            Err("clusters of 64 lanes, where a wave may have 128".to_owned())
        }
        0 => Ok(64),
        size if size.is_power_of_two() => Ok(size.min(64) as u8),
        size => Err(format!("clusters of {size} lanes")),
    }
}

/// The neutral element of a reduction.
fn identity(op: NirOp, bits: u8) -> Option<u32> {
    let ones = match bits {
        1 | 8 | 16 | 32 => u32::MAX >> (32 - bits),
        _ => return None,
    };
    let float = |half: u32, full: u32| match bits {
        16 => Some(half),
        32 => Some(full),
        _ => None,
    };
    match op {
        NirOp::Iadd | NirOp::Umax | NirOp::Ior | NirOp::Ixor => Some(0),
        NirOp::Imul => Some(1),
        NirOp::Imin => Some(ones >> 1),
        NirOp::Imax => Some(ones ^ ones >> 1),
        NirOp::Umin | NirOp::Iand => Some(ones),
        NirOp::Fadd => float(0, 0),
        NirOp::Fmul => float(0x3c00, 0x3f80_0000),
        NirOp::Fmin => float(0x7c00, 0x7f80_0000),
        NirOp::Fmax => float(0xfc00, 0xff80_0000),
        _ => None,
    }
}
