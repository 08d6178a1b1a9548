//! Operations across lanes: votes, ballots, reads from other lanes, reductions, quads, derivatives.
//!
//! A value that is read from an inactive lane is undefined, so reads from other lanes are at the top level, before a
//! lane ends.

use super::super::config::CONFIG;
use ir3_compiler::nir::{Def, Index, IntrinsicOp, Op, Stage};
use ir3_compiler::target::Generation;

use super::super::Generator;
use super::super::accepted::REDUCTIONS;
use super::super::choices::Choices;
use super::super::control::MAX_DEPTH;

const BOOL_REDUCTIONS: &[Op] = &[Op::Iand, Op::Ior, Op::Ixor];

const DERIVATIVES: &[IntrinsicOp] = &[
    IntrinsicOp::Ddx,
    IntrinsicOp::DdxCoarse,
    IntrinsicOp::DdxFine,
    IntrinsicOp::Ddy,
    IntrinsicOp::DdyCoarse,
    IntrinsicOp::DdyFine,
];

impl<C: Choices> Generator<'_, C> {
    pub(super) fn any_lanes(&mut self) {
        if self.b.depth() + 1 < MAX_DEPTH && self.c.chance(CONFIG.queries_before_branch) {
            return self.queries_before_branch();
        }
        if self.b.depth() < MAX_DEPTH && self.features.lanes && self.c.chance(CONFIG.scan_in_arm) {
            return self.scanned_in_arm();
        }
        let fragment = self.b.shader().stage == Stage::Fragment;
        // Places where all lanes of a quad are active are rare.
        let is_whole = self.quads == 0 && !self.killed;
        let kind =
            if is_whole && self.c.chance(CONFIG.quad_operation) { self.c.pick(&[2, 4, 5]) } else { self.c.below(16) };
        let def = match kind {
            0 => {
                let condition = self.any_condition();
                let op = self.c.pick(&[IntrinsicOp::VoteAny, IntrinsicOp::VoteAll]);
                self.b.intrinsic(op, 1, 1, &[condition], [])
            }
            1 => {
                let op = self.c.pick(&[IntrinsicOp::Elect, IntrinsicOp::ElectAnyIr3]);
                self.b.intrinsic(op, 1, 1, &[], [])
            }
            2 | 3 if fragment && is_whole => {
                let op = self.c.pick(DERIVATIVES);
                let (bits, n) = (self.c.pick(&[32, 32, 16]), 1 + self.c.below(4) as u8);
                let value = self.any_vector(bits, n);
                self.b.intrinsic(op, n, bits, &[value], [])
            }
            4 if is_whole && self.target.generation >= Generation::A6xx => self.quad(),
            5 | 6 if self.is_convergent() && self.target.has_shfl => self.any_shuffle(),
            15 => self.inverse_ballot(),
            _ if !self.features.lanes => self.b.intrinsic(IntrinsicOp::ElectAnyIr3, 1, 1, &[], []),
            7 => self.any_ballot(),
            8 => {
                let op = self.c.pick(&[IntrinsicOp::VoteIeq, IntrinsicOp::VoteFeq]);
                let bits =
                    if op == IntrinsicOp::VoteFeq { self.c.pick(&[16, 32]) } else { self.c.pick(&[1, 8, 16, 32, 64]) };
                let n = 1 + self.c.below(4) as u8;
                let value = if self.c.chance(CONFIG.almost_equal_vote) {
                    self.agreed_but_for_one(bits, n)
                } else {
                    self.any_vector(bits, n)
                };
                self.b.intrinsic(op, 1, 1, &[value], [])
            }
            9 | 10 => self.any_read(),
            11 => {
                let op = self.c.pick(&[IntrinsicOp::FirstInvocation, IntrinsicOp::LastInvocation]);
                self.b.intrinsic(op, 1, 32, &[], [])
            }
            12 | 13 if self.target.generation >= Generation::A6xx => self.any_cluster(),
            _ => self.any_reduction(),
        };
        self.result(def);
        if self.c.chance(CONFIG.lanes_census) {
            self.census();
        }
    }

    /// A vector of which lanes have all components in common but for one: whether they agree is decided by that one.
    fn agreed_but_for_one(&mut self, bits: u8, components: u8) -> Def {
        let mut scalars: Vec<Def> = (0..components).map(|_| self.constant_vector(bits, 1)).collect();
        let other = self.c.below(components as usize);
        scalars[other] = self.value(bits);
        self.b.vec(&scalars)
    }

    /// A query of the active lanes, and the condition on which its result depends, if it has one.
    pub(super) fn question(&mut self) -> (Option<Def>, Option<Def>) {
        if self.c.chance(CONFIG.uniform_query) {
            // A comparison of a uniform value.
            let shared = self.fresh_uniform();
            let other = self.any_scalar(32);
            let op = self.c.pick(&[Op::Ilt, Op::Ult, Op::Ine]);
            return (Some(self.b.alu(op, &[shared, other])), None);
        }
        let asked = self.value(1);
        let (op, deciding) = match self.c.below(4) {
            0 => (self.c.pick(&[IntrinsicOp::Elect, IntrinsicOp::ElectAnyIr3]), None),
            1 => (IntrinsicOp::VoteAny, Some(asked)),
            _ => (IntrinsicOp::VoteAll, Some(self.b.alu(Op::Inot, &[asked]))),
        };
        let srcs = if deciding.is_some() { &[asked][..] } else { &[] };
        (self.b.intrinsic(op, 1, 1, srcs, []), deciding)
    }

    /// Branches on a query made before the enclosing divergent branch: in either arm. There may be
    /// more query results than predicates.
    fn queries_before_branch(&mut self) {
        let count = self.c.pick(&[1, 1, 1, 2, 5, 7]);
        let asked: Vec<Def> = (0..count).filter_map(|_| self.question().0).collect();
        let condition = self.condition();
        let outer = self.value(32);
        let is_late = self.c.even();
        let branches = |this: &mut Self| asked.iter().for_each(|&asked| this.branch_on(asked, 10));
        let then = |this: &mut Self| {
            if is_late {
                // Values defined in this arm may take registers that the other arm still reads.
                let made: Vec<Def> = (0..1 + this.c.below(3)).map(|_| this.fresh_uniform()).collect();
                made.into_iter().for_each(|value| this.define_seen(value, 256));
            } else {
                branches(this);
            }
            this.value(32)
        };
        let otherwise = |this: &mut Self| {
            if !is_late {
                return outer;
            }
            branches(this);
            this.value(32)
        };
        let ends = self.arms(condition, then, otherwise);
        let phi = self.joined(32, ends);
        self.define_seen(phi, 256);
        if self.c.even() {
            asked.iter().for_each(|&asked| self.branch_on(asked, 10));
        }
    }

    /// An arm that ends with an operation across lanes, which may become a loop: nothing is between the end of both.
    /// Lanes wait at the end of the loop even where all of them take the arm.
    fn scanned_in_arm(&mut self) {
        let condition = if self.c.chance(CONFIG.uniform_arm) { self.uniform_comparison() } else { self.condition() };
        let other = self.value(32);
        let scan = |this: &mut Self| {
            let value = this.value(32);
            // The result of a scan of clusters is in a register of each lane: not even a move comes after it.
            let has_clusters = this.target.generation >= Generation::A6xx;
            let result = if has_clusters && this.c.chance(CONFIG.clustered_scan) {
                let op = this.any_reduction_op(32);
                this.b.intrinsic(IntrinsicOp::InclusiveScanClustersIr3, 1, 32, &[value], [op])
            } else {
                this.reduction_of(value, 32)
            };
            result.unwrap_or(value)
        };
        let ends = match self.c.even() {
            true => self.arms(condition, scan, |_| other),
            false => self.arms(condition, |_| other, scan),
        };
        let phi = self.joined(32, ends);
        self.define_seen(phi, 256);
    }

    fn quad(&mut self) -> Option<Def> {
        let (bits, n) = (self.c.pick(&[1, 8, 16, 32, 32, 64]), 1 + self.c.below(4) as u8);
        let value = self.any_vector(bits, n);
        let op = self.c.pick(&[
            IntrinsicOp::QuadBroadcast,
            IntrinsicOp::QuadSwapHorizontal,
            IntrinsicOp::QuadSwapVertical,
            IntrinsicOp::QuadSwapDiagonal,
        ]);
        if op == IntrinsicOp::QuadBroadcast {
            let lane = self.uniform_number(4);
            return self.b.intrinsic(op, n, bits, &[value, lane], []);
        }
        self.b.intrinsic(op, n, bits, &[value], [])
    }

    fn any_shuffle(&mut self) -> Option<Def> {
        let (bits, n) = (self.c.pick(&[1, 8, 16, 32, 32, 64]), 1 + self.c.below(4) as u8);
        let value = self.any_vector(bits, n);
        let op = self.c.pick(&[
            IntrinsicOp::Rotate,
            IntrinsicOp::ShuffleXor,
            IntrinsicOp::ShuffleXorUniformIr3,
            IntrinsicOp::ShuffleUp,
            IntrinsicOp::ShuffleDown,
            IntrinsicOp::ShuffleUpUniformIr3,
            IntrinsicOp::ShuffleDownUniformIr3,
        ]);
        let any = matches!(op, IntrinsicOp::ShuffleXor | IntrinsicOp::ShuffleUp | IntrinsicOp::ShuffleDown);
        let distance = if any {
            let distance = self.c.below(64) as u64;
            self.b.constant(32, distance)
        } else {
            self.uniform_number(64)
        };
        self.b.intrinsic(op, n, bits, &[value, distance], [])
    }

    fn any_ballot(&mut self) -> Option<Def> {
        let condition = if self.c.chance(CONFIG.constant_ballot) { self.some_constant(1) } else { self.value(1) };
        let op = self.c.pick(&[IntrinsicOp::Ballot, IntrinsicOp::BallotRelaxed]);
        let (bits, n) = self.mask_shape();
        self.b.intrinsic(op, n, bits, &[condition], [])
    }

    /// The bit of a mask for each lane.
    fn inverse_ballot(&mut self) -> Option<Def> {
        let (bits, n) = self.mask_shape();
        let mask = self.any_vector(bits, n);
        self.b.intrinsic(IntrinsicOp::InverseBallot, 1, 1, &[mask], [])
    }

    /// The width and the components of a mask of lanes.
    fn mask_shape(&mut self) -> (u8, u8) {
        (self.c.pick(&[32, 32, 64]), 1 + self.c.below(4) as u8)
    }

    fn any_read(&mut self) -> Option<Def> {
        let (bits, n) = (self.c.pick(&[1, 8, 16, 32, 32, 64]), 1 + self.c.below(4) as u8);
        let value = self.any_vector(bits, n);
        match self.c.below(4) {
            0 if self.is_convergent() && self.b.shader().stage == Stage::Compute => {
                let mut lane = self.any_number(64);
                if self.b.function().as_const_scalar(lane).is_none() {
                    lane = self.b.intrinsic(IntrinsicOp::ReadFirstInvocation, 1, 32, &[lane], [])?;
                }
                self.b.intrinsic(IntrinsicOp::ReadInvocation, n, bits, &[value, lane], [])
            }
            1 => {
                let elected = match self.c.chance(CONFIG.always_elected) {
                    true => self.b.constant(1, 1),
                    false => self.b.intrinsic(IntrinsicOp::ElectAnyIr3, 1, 1, &[], [])?,
                };
                self.b.intrinsic(IntrinsicOp::ReadInvocationCondIr3, n, bits, &[value, elected], [])
            }
            _ => self.b.intrinsic(IntrinsicOp::ReadFirstInvocation, n, bits, &[value], []),
        }
    }

    /// The operations on clusters of eight lanes that Mesa's lowering of scans is made of.
    fn any_cluster(&mut self) -> Option<Def> {
        let bits = self.c.pick(&[1, 16, 32, 32]);
        let value = self.any_scalar(bits);
        match self.c.below(5) {
            0 => {
                let bits = self.c.pick(&[1, 8, 16, 32]);
                let (value, other) = (self.any_scalar(bits), self.any_scalar(bits));
                let size = Index::ClusterSize(self.c.pick(&[2, 4, 8]));
                self.b.intrinsic(IntrinsicOp::BrcstActiveIr3, 1, bits, &[value, other], [size])
            }
            1 => {
                let (bits, n) = (self.c.pick(&[1, 8, 16, 32, 64]), 1 + self.c.below(4) as u8);
                let value = self.any_vector(bits, n);
                self.b.intrinsic(IntrinsicOp::ReadGetlastIr3, n, bits, &[value], [])
            }
            kind => {
                let op = self.any_reduction_op(bits);
                match kind {
                    2 => self.b.intrinsic(IntrinsicOp::ReduceClustersIr3, 1, bits, &[value], [op]),
                    3 => self.b.intrinsic(IntrinsicOp::InclusiveScanClustersIr3, 1, bits, &[value], [op]),
                    _ => {
                        let exclusive = self.any_scalar(bits);
                        let srcs = [value, exclusive];
                        self.b.intrinsic(IntrinsicOp::ExclusiveScanClustersIr3, 1, bits, &srcs, [op])
                    }
                }
            }
        }
    }

    /// Draws a reduction; 32-bit products, which take several instructions, are more frequent.
    fn any_reduction_op(&mut self, bits: u8) -> Index {
        Index::ReductionOp(match bits {
            1 => self.c.pick(BOOL_REDUCTIONS),
            32 if self.c.chance(CONFIG.product_reduction) => Op::Imul,
            _ => self.c.pick(REDUCTIONS),
        })
    }

    fn any_reduction(&mut self) -> Option<Def> {
        let (bits, n) = (self.c.pick(&[1, 16, 32, 32]), self.c.pick(&[1, 1, 1, 2, 3, 4]));
        let value = self.any_vector(bits, n);
        let op = self.any_reduction_op(bits);
        match self.c.below(4) {
            0 => self.b.intrinsic(IntrinsicOp::InclusiveScan, n, bits, &[value], [op]),
            1 => self.b.intrinsic(IntrinsicOp::ExclusiveScan, n, bits, &[value], [op]),
            _ => {
                // 64 lanes are a wave only where a workgroup does not fit into a larger one.
                let whole = if self.b.shader().stage == Stage::Compute { 64 } else { 128 };
                let size = Index::ClusterSize(self.c.pick(&[0, 0, whole, 128]));
                self.b.intrinsic(IntrinsicOp::Reduce, n, bits, &[value], [op, size])
            }
        }
    }
}
