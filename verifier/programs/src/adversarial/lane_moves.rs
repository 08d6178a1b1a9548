//! Pairs about values of other lanes after loops that only some lanes run: a fact about a lane's own value does not
//! hold for about another lane's.

use super::PairPlan;
use super::shader::Shader;
use ir3_compiler::nir::{Def, Index, IntrinsicOp, JumpKind, Op};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;

/// The operation that clears the high bits of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Narrowing {
    Byte,
    Half,
    Bit,
    High,
}

impl Narrowing {
    fn of(self, s: &mut Shader, value: Def) -> Def {
        match self {
            Self::Byte => s.with(Op::Iand, value, 0xff),
            Self::Half => {
                let half = s.b.alu(Op::U2u16, &[value]);
                s.b.alu(Op::U2u32, &[half])
            }
            Self::Bit => {
                let bit = s.with(Op::Ult, value, 100);
                s.b.alu(Op::B2i32, &[bit])
            }
            Self::High => s.with(Op::Ushr, value, 24),
        }
    }

    /// The bits that can be set in such a value.
    const fn mask(self) -> u64 {
        match self {
            Self::Byte | Self::High => 0xff,
            Self::Half => 0xffff,
            Self::Bit => 1,
        }
    }
}

/// The lanes whose result is masked, with the mask that the lane's own value has been through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Masked {
    No,
    All,
    /// The lanes that ran the loop.
    Looped,
    /// The lanes that skipped the loop.
    Skipped,
}

/// A value that is narrow on one side of a branch around a loop, moved between lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneMoves {
    narrow: Narrowing,
    /// Lanes with a smaller number run the loop.
    below: u8,
    /// The limit of its iterations: these bits of the lane's number. 0 leaves the loop at once.
    iterations: u8,
    /// The value is narrow in the lanes that skip the loop, not in those that run it.
    other_side: bool,
    /// The value is narrow on both sides.
    both: bool,
    op: usize,
    masked: Masked,
    /// The result is masked in an if of its own instead of by a select.
    branch: bool,
}

const OPS: usize = 15;

fn masked(random: &mut Random) -> Masked {
    [Masked::No, Masked::All, Masked::Looped, Masked::Skipped][random.below(4)]
}

impl LaneMoves {
    fn moved(self, s: &mut Shader, value: Def, lane: Def) -> Def {
        let one = s.number(1);
        match self.op {
            0 => s.get(IntrinsicOp::ReadFirstInvocation, (1, 32), &[value], []),
            1 => s.get(IntrinsicOp::ReadInvocation, (1, 32), &[value, one], []),
            2 => {
                let other = s.with(Op::Ixor, lane, 3);
                s.get(IntrinsicOp::Shuffle, (1, 32), &[value, other], [])
            }
            3 => s.get(IntrinsicOp::ShuffleXor, (1, 32), &[value, one], []),
            4 => s.get(IntrinsicOp::ShuffleUp, (1, 32), &[value, one], []),
            5 => s.get(IntrinsicOp::ShuffleDown, (1, 32), &[value, one], []),
            6 => s.get(IntrinsicOp::Rotate, (1, 32), &[value, one], [Index::ClusterSize(64)]),
            7 => s.get(IntrinsicOp::QuadBroadcast, (1, 32), &[value, one], []),
            8 => s.get(IntrinsicOp::QuadSwapHorizontal, (1, 32), &[value], []),
            9 => s.get(IntrinsicOp::QuadSwapVertical, (1, 32), &[value], []),
            10 => s.get(IntrinsicOp::QuadSwapDiagonal, (1, 32), &[value], []),
            11 => s.get(IntrinsicOp::Reduce, (1, 32), &[value], [Index::ReductionOp(Op::Ior)]),
            12 => s.get(IntrinsicOp::Reduce, (1, 32), &[value], [Index::ReductionOp(Op::Ixor)]),
            13 => s.get(IntrinsicOp::InclusiveScan, (1, 32), &[value], [Index::ReductionOp(Op::Ior)]),
            _ => {
                let zero = s.number(0);
                s.get(IntrinsicOp::BrcstActiveIr3, (1, 32), &[value, zero], [Index::ClusterSize(8)])
            }
        }
    }
}

impl PairPlan for LaneMoves {
    fn random(random: &mut Random) -> Self {
        Self {
            narrow: [Narrowing::Byte, Narrowing::Half, Narrowing::Bit, Narrowing::High][random.below(4)],
            below: [1, 3, 10, 63][random.below(4)],
            iterations: random.below(3) as u8,
            other_side: random.chance(30),
            both: random.chance(10),
            op: random.below(OPS),
            masked: masked(random),
            branch: random.chance(50),
        }
    }

    fn change(&mut self, random: &mut Random) -> Option<&'static str> {
        let name = match random.below(8) {
            0..=4 => {
                self.masked = masked(random);
                "the result masked"
            }
            5 => {
                self.branch = !self.branch;
                "an if for a select"
            }
            6 => {
                self.op = random.below(OPS);
                "another move"
            }
            _ => {
                self.other_side = !self.other_side;
                "the other side narrow"
            }
        };
        Some(name)
    }

    fn program(&self, _: &Target) -> Option<Snapshot> {
        let mut s = Shader::compute(64);
        let lane = s.lane();
        let buffer = s.number(0);
        let value = s.load(buffer, lane);
        let narrow = self.narrow.of(&mut s, value);
        let runs = s.with(Op::Ult, lane, self.below.into());
        s.b.begin_if(runs);
        let before = s.b.current_block();
        let zero = s.number(0);
        s.b.begin_loop();
        let counter = s.b.phi(1, 32);
        s.b.set_phi_src(counter, before, zero);
        if self.iterations == 0 {
            s.b.jump(JumpKind::Break);
        } else {
            let bits = s.with(Op::Iand, lane, u64::from(self.iterations));
            let done = s.b.alu(Op::Uge, &[counter, bits]);
            s.b.begin_if(done);
            s.b.jump(JumpKind::Break);
            s.b.end_if();
            let next = s.with(Op::Iadd, counter, 1);
            let back = s.b.current_block();
            s.b.set_phi_src(counter, back, next);
        }
        s.b.end_loop();
        let looped = s.b.current_block();
        s.b.begin_else();
        let skipped = s.b.current_block();
        s.b.end_if();
        let joined = s.b.phi(1, 32);
        let (of_looped, of_skipped) = if self.other_side { (value, narrow) } else { (narrow, value) };
        s.b.set_phi_src(joined, looped, if self.both { narrow } else { of_looped });
        s.b.set_phi_src(joined, skipped, if self.both { narrow } else { of_skipped });
        let moved = self.moved(&mut s, joined, lane);
        let result = match self.masked {
            Masked::No => moved,
            Masked::All => s.with(Op::Iand, moved, self.narrow.mask()),
            Masked::Looped | Masked::Skipped => {
                let condition = if self.masked == Masked::Looped { runs } else { s.b.alu(Op::Inot, &[runs]) };
                if self.branch {
                    s.b.begin_if(condition);
                    let masked = s.with(Op::Iand, moved, self.narrow.mask());
                    let yes = s.b.current_block();
                    s.b.begin_else();
                    let no = s.b.current_block();
                    s.b.end_if();
                    let phi = s.b.phi(1, 32);
                    s.b.set_phi_src(phi, yes, masked);
                    s.b.set_phi_src(phi, no, moved);
                    phi
                } else {
                    let masked = s.with(Op::Iand, moved, self.narrow.mask());
                    s.b.alu(Op::Bcsel, &[condition, masked, moved])
                }
            }
        };
        let out = s.number(1);
        s.store(out, lane, result);
        s.finish()
    }
}
