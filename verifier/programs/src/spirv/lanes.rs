//! Intrinsics: which part has which, and those about lanes: subgroups, derivatives, barriers, lanes that end.

use ir3_compiler::nir::{Def, InstrData, Intrinsic, IntrinsicOp, MemorySemantics, Op, Scope, Stage};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Capability, Word};

use super::values::{Kind, Ty};
use super::{Emitter, NoForm, is_image_access, no_form, refs};

/// Intrinsics that end some lanes of a block.
pub(super) fn is_conditional_kill(op: IntrinsicOp) -> bool {
    matches!(op, IntrinsicOp::TerminateIf | IntrinsicOp::DemoteIf | IntrinsicOp::Terminate)
}

impl Emitter<'_> {
    /// Emits an intrinsic.
    pub fn intrinsic(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        use IntrinsicOp as I;
        match intrinsic.op {
            // Inputs emit their own barycentrics; local arrays are declared at the start of the function.
            I::LoadBarycentricPixel | I::LoadBarycentricCentroid | I::LoadBarycentricSample | I::DeclReg | I::Nop => {
                return Ok(());
            }
            // Accesses read the number and the set; a handle has no value of its own.
            I::BindlessResourceIr3 => return self.handle(intrinsic),
            I::LoadInput | I::LoadInterpolatedInput => return self.load_input(intrinsic),
            I::StoreOutput => return self.store_output(intrinsic),
            I::Barrier => return self.barrier(intrinsic),
            I::Demote => {
                self.demotes();
                self.act(spirv::Op::DemoteToHelperInvocation, Vec::new());
                return Ok(());
            }
            I::IsHelperInvocation => {
                let Some(def) = intrinsic.def else { return Ok(()) };
                if self.ty(def) != Ty::BOOL {
                    return no_form("`is_helper_invocation` that is no truth value");
                }
                self.demotes();
                let ty = self.type_id(Ty::BOOL);
                self.emit_as(self.ids[def], spirv::Op::IsHelperInvocationEXT, ty, Vec::new());
                return Ok(());
            }
            op if is_image_access(op) => return self.image(intrinsic),
            _ => {}
        }
        if let Some(done) = self.system_value(intrinsic) {
            return done;
        }
        if let Some(done) = self.memory(intrinsic) {
            return done;
        }
        match intrinsic.op {
            op if super::values::is_derivative(op) => self.derivative(intrinsic),
            _ => self.subgroup(intrinsic),
        }
    }

    fn demotes(&mut self) {
        self.capability(Capability::DemoteToHelperInvocation);
        self.extensions.insert("SPV_EXT_demote_to_helper_invocation");
    }

    /// Ends the lanes in which a condition holds; the others go on in the block `next`.
    pub fn kill_if(&mut self, intrinsic: &Intrinsic, next: Word) {
        let condition = match intrinsic.srcs.first() {
            Some(&condition) => self.read(condition, Kind::Bool),
            None => self.constant(Ty::BOOL, 1),
        };
        let ended = self.b.id();
        let control = Operand::SelectionControl(spirv::SelectionControl::NONE);
        self.act(spirv::Op::SelectionMerge, vec![Operand::IdRef(next), control]);
        self.end(spirv::Op::BranchConditional, refs(&[condition, ended, next]));
        self.open(ended);
        if intrinsic.op == IntrinsicOp::DemoteIf {
            self.demotes();
            self.act(spirv::Op::DemoteToHelperInvocation, Vec::new());
            self.end(spirv::Op::Branch, refs(&[next]));
        } else {
            self.end(spirv::Op::Kill, Vec::new());
        }
        self.open(next);
    }

    fn barrier(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let indices = &intrinsic.indices;
        let order = indices.memory_semantics();
        let mut semantics = match (order.contains(MemorySemantics::ACQUIRE), order.contains(MemorySemantics::RELEASE)) {
            (true, true) => spirv::MemorySemantics::ACQUIRE_RELEASE,
            (true, false) => spirv::MemorySemantics::ACQUIRE,
            (false, true) => spirv::MemorySemantics::RELEASE,
            (false, false) => spirv::MemorySemantics::empty(),
        };
        if !semantics.is_empty() {
            semantics |= spirv::MemorySemantics::UNIFORM_MEMORY
                | spirv::MemorySemantics::WORKGROUP_MEMORY
                | spirv::MemorySemantics::IMAGE_MEMORY;
        }
        let execution = match indices.execution_scope() {
            Scope::None | Scope::Invocation => None,
            Scope::Subgroup => Some(spirv::Scope::Subgroup),
            Scope::Workgroup => Some(spirv::Scope::Workgroup),
            // Vulkan has no wider ones.
            wide => return no_form(format_args!("a barrier of the execution scope {wide}")),
        };
        let memory = match indices.memory_scope() {
            Scope::None | Scope::Invocation => spirv::Scope::Invocation,
            Scope::Subgroup => spirv::Scope::Subgroup,
            Scope::Workgroup if self.shader.stage == Stage::Compute => spirv::Scope::Workgroup,
            // Other stages have no workgroups: a wider scope orders more.
            Scope::Workgroup => spirv::Scope::Device,
            // That of a queue family needs the memory model of Vulkan; a device is more than one.
            Scope::QueueFamily | Scope::Device => spirv::Scope::Device,
            // It is for ray tracing.
            other => return no_form(format_args!("a barrier of the memory scope {other}")),
        };
        if memory == spirv::Scope::Invocation {
            // No other lane sees an order, and Vulkan has none here.
            semantics = spirv::MemorySemantics::empty();
        }
        if execution.is_none() && semantics.is_empty() {
            // Nothing waits, and no other lane sees the order.
            return Ok(());
        }
        let (memory, semantics) = (self.number(memory as u32), self.number(semantics.bits()));
        let operands = vec![Operand::IdScope(memory), Operand::IdMemorySemantics(semantics)];
        match execution {
            None => self.act(spirv::Op::MemoryBarrier, operands),
            Some(execution) => {
                let execution = self.number(execution as u32);
                let operands = [Operand::IdScope(execution)].into_iter().chain(operands).collect();
                self.act(spirv::Op::ControlBarrier, operands);
            }
        }
        Ok(())
    }

    fn derivative(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        use IntrinsicOp as I;
        let Some(def) = intrinsic.def else { return Ok(()) };
        let (op, needs_control) = match intrinsic.op {
            I::Ddx => (spirv::Op::DPdx, false),
            I::Ddy => (spirv::Op::DPdy, false),
            I::DdxFine => (spirv::Op::DPdxFine, true),
            I::DdyFine => (spirv::Op::DPdyFine, true),
            I::DdxCoarse => (spirv::Op::DPdxCoarse, true),
            _ => (spirv::Op::DPdyCoarse, true),
        };
        let ty = self.ty(def);
        if !matches!(ty.bits, 16 | 32) {
            return no_form(format_args!("`{}` of {} bits", intrinsic.op, ty.bits));
        }
        if needs_control {
            self.capability(Capability::DerivativeControl);
        }
        let mut value = self.read(intrinsic.srcs[0], Kind::Float);
        let type_id = self.type_id(ty);
        if ty.bits == 32 {
            self.emit_as(self.ids[def], op, type_id, refs(&[value]));
            return Ok(());
        }
        // Only words have derivatives. The difference of two halves, rounded twice, is that rounded once.
        let wide = self.type_id(Ty { bits: 32, ..ty });
        value = self.emit(spirv::Op::FConvert, wide, refs(&[value]));
        value = self.emit(op, wide, refs(&[value]));
        self.emit_as(self.ids[def], spirv::Op::FConvert, type_id, refs(&[value]));
        Ok(())
    }

    fn subgroup(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        use IntrinsicOp as I;
        use spirv::Op as S;
        let Some(def) = intrinsic.def else { return no_form(format_args!("`{}`", intrinsic.op)) };
        let ty = self.ty(def);
        let whole = |this: &mut Self| this.read(intrinsic.srcs[0], ty.kind);
        let lane = |this: &mut Self| this.component(intrinsic.srcs[1], 0, Kind::Uint);
        let (op, capability, operands) = match intrinsic.op {
            I::VoteAll => (S::GroupNonUniformAll, Capability::GroupNonUniformVote, vec![whole(self)]),
            I::VoteAny => (S::GroupNonUniformAny, Capability::GroupNonUniformVote, vec![whole(self)]),
            I::VoteIeq | I::VoteFeq => {
                let kind = match intrinsic.op {
                    _ if self.function.defs[intrinsic.srcs[0]].bit_size == 1 => Kind::Bool,
                    I::VoteFeq => Kind::Float,
                    _ => Kind::Uint,
                };
                let value = self.read(intrinsic.srcs[0], kind);
                (S::GroupNonUniformAllEqual, Capability::GroupNonUniformVote, vec![value])
            }
            // Any lane may be elected, so the first may.
            I::Elect | I::ElectAnyIr3 => (S::GroupNonUniformElect, Capability::GroupNonUniform, vec![]),
            I::Ballot | I::BallotRelaxed if ty == Ty::U32.of(4) => {
                let condition = self.read(intrinsic.srcs[0], Kind::Bool);
                (S::GroupNonUniformBallot, Capability::GroupNonUniformBallot, vec![condition])
            }
            I::Ballot | I::BallotRelaxed => return self.ballot_of(def, intrinsic.srcs[0]),
            I::InverseBallot => {
                let mask = self.lane_mask(intrinsic.srcs[0]);
                (S::GroupNonUniformInverseBallot, Capability::GroupNonUniformBallot, vec![mask])
            }
            I::FirstInvocation | I::LastInvocation => return self.end_lane(def, intrinsic.op),
            I::Rotate => {
                self.extensions.insert("SPV_KHR_subgroup_rotate");
                let operands = vec![whole(self), lane(self)];
                (S::GroupNonUniformRotateKHR, Capability::GroupNonUniformRotateKHR, operands)
            }
            I::ReadInvocationCondIr3 if !self.is_elected(intrinsic.srcs[1]) => {
                return no_form("a read from a lane by its condition");
            }
            I::ReadFirstInvocation | I::ReadInvocationCondIr3 => {
                (S::GroupNonUniformBroadcastFirst, Capability::GroupNonUniformBallot, vec![whole(self)])
            }
            I::ReadInvocation | I::Shuffle => {
                (S::GroupNonUniformShuffle, Capability::GroupNonUniformShuffle, vec![whole(self), lane(self)])
            }
            I::ShuffleXor | I::ShuffleXorUniformIr3 => {
                (S::GroupNonUniformShuffleXor, Capability::GroupNonUniformShuffle, vec![whole(self), lane(self)])
            }
            I::ShuffleUp | I::ShuffleUpUniformIr3 => {
                (S::GroupNonUniformShuffleUp, Capability::GroupNonUniformShuffleRelative, vec![whole(self), lane(self)])
            }
            I::ShuffleDown | I::ShuffleDownUniformIr3 => {
                let operands = vec![whole(self), lane(self)];
                (S::GroupNonUniformShuffleDown, Capability::GroupNonUniformShuffleRelative, operands)
            }
            I::QuadBroadcast => {
                (S::GroupNonUniformQuadBroadcast, Capability::GroupNonUniformQuad, vec![whole(self), lane(self)])
            }
            I::QuadSwapHorizontal | I::QuadSwapVertical | I::QuadSwapDiagonal => {
                let direction = match intrinsic.op {
                    I::QuadSwapHorizontal => 0,
                    I::QuadSwapVertical => 1,
                    _ => 2,
                };
                let operands = vec![whole(self), self.number(direction)];
                (S::GroupNonUniformQuadSwap, Capability::GroupNonUniformQuad, operands)
            }
            I::Reduce | I::InclusiveScan | I::ExclusiveScan => return self.reduction(intrinsic),
            op => return no_form(format_args!("`{op}`")),
        };
        self.capability(capability);
        let scope = self.number(spirv::Scope::Subgroup as u32);
        let mut list = vec![Operand::IdScope(scope)];
        list.extend(refs(&operands));
        let type_id = self.type_id(ty);
        self.emit_as(self.ids[def], op, type_id, list);
        Ok(())
    }

    /// A handle of a descriptor, which has no SPIR-V value.
    fn handle(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        let function = self.function;
        let is_handle = |user: &InstrData, def: Def| match user {
            InstrData::Intrinsic(user) => {
                let is_one = super::descriptors::accessed(user.op).is_some_and(|(_, at)| user.srcs[at] == def);
                is_one && user.srcs.iter().filter(|&&src| src == def).count() == 1
            }
            InstrData::Tex(tex) => tex.srcs.iter().filter(|&&(_, src)| src == def).all(|&(kind, _)| {
                matches!(
                    kind,
                    ir3_compiler::nir::TexSrcKind::TextureHandle | ir3_compiler::nir::TexSrcKind::SamplerHandle
                )
            }),
            _ => false,
        };
        for (_, instr) in function.instrs_in_order() {
            let user = &function.instrs[instr];
            let mut reads = false;
            user.for_each_src(|src| reads |= src == def);
            if reads && !is_handle(user, def) {
                return no_form("a handle of a descriptor as a number");
            }
        }
        Ok(())
    }

    fn whole_ballot(&mut self, condition: Word) -> Word {
        self.capability(Capability::GroupNonUniformBallot);
        let scope = self.number(spirv::Scope::Subgroup as u32);
        let mask = self.type_id(Ty::U32.of(4));
        let operands = vec![Operand::IdScope(scope), Operand::IdRef(condition)];
        self.emit(spirv::Op::GroupNonUniformBallot, mask, operands)
    }

    /// A ballot of another width or number of components.
    fn ballot_of(&mut self, def: Def, condition: Def) -> Result<(), NoForm> {
        let ty = self.ty(def);
        let condition = self.read(condition, Kind::Bool);
        let ballot = self.whole_ballot(condition);
        let word = self.type_id(Ty::U32);
        let mut words = Vec::new();
        for c in 0..u32::from(ty.components) * u32::from(ty.bits) / 32 {
            let operands = vec![Operand::IdRef(ballot), Operand::LiteralBit32(c)];
            words.push(if c < 4 { self.emit(spirv::Op::CompositeExtract, word, operands) } else { self.number(0) });
        }
        let parts: Vec<Word> = match ty.bits {
            32 => words,
            64 => words.chunks_exact(2).map(|pair| self.joined([pair[0], pair[1]])).collect(),
            bits => return no_form(format_args!("a ballot of {bits} bits")),
        };
        self.define(def, &parts, Kind::Uint);
        Ok(())
    }

    /// A mask of lanes as a vector of four words.
    fn lane_mask(&mut self, mask: Def) -> Word {
        let ty = self.ty(mask);
        let word = self.type_id(Ty::U32);
        let mut words = Vec::new();
        for c in 0..ty.components {
            let part = self.component(mask, c, Kind::Uint);
            if ty.bits == 64 {
                let pair = self.type_id(Ty::U32.of(2));
                let pair = self.emit(spirv::Op::Bitcast, pair, refs(&[part]));
                for half in 0..2 {
                    let operands = vec![Operand::IdRef(pair), Operand::LiteralBit32(half)];
                    words.push(self.emit(spirv::Op::CompositeExtract, word, operands));
                }
            } else {
                words.push(part);
            }
        }
        let zero = self.number(0);
        words.resize(4, zero);
        let four = self.type_id(Ty::U32.of(4));
        self.emit(spirv::Op::CompositeConstruct, four, refs(&words))
    }

    /// The first or the last active lane.
    fn end_lane(&mut self, def: Def, op: IntrinsicOp) -> Result<(), NoForm> {
        let all = self.constant(Ty::BOOL, 1);
        let ballot = self.whole_ballot(all);
        let op = match op {
            IntrinsicOp::FirstInvocation => spirv::Op::GroupNonUniformBallotFindLSB,
            _ => spirv::Op::GroupNonUniformBallotFindMSB,
        };
        let scope = self.number(spirv::Scope::Subgroup as u32);
        let word = self.type_id(Ty::U32);
        self.emit_as(self.ids[def], op, word, vec![Operand::IdScope(scope), Operand::IdRef(ballot)]);
        Ok(())
    }

    /// Returns true if a condition holds in the first lane only.
    fn is_elected(&self, condition: Def) -> bool {
        let instr = self.function.defs[self.original(condition)].instr;
        matches!(&self.function.instrs[instr], InstrData::Intrinsic(of) if matches!(of.op, IntrinsicOp::Elect | IntrinsicOp::ElectAnyIr3))
    }

    fn reduction(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        use spirv::Op as S;
        let Some(def) = intrinsic.def else { return Ok(()) };
        let ty = self.ty(def);
        let reduction = intrinsic.indices.reduction_op();
        let op = match reduction {
            Op::Iand if ty.bits == 1 => S::GroupNonUniformLogicalAnd,
            Op::Ior if ty.bits == 1 => S::GroupNonUniformLogicalOr,
            Op::Ixor if ty.bits == 1 => S::GroupNonUniformLogicalXor,
            Op::Iadd => S::GroupNonUniformIAdd,
            Op::Imul => S::GroupNonUniformIMul,
            Op::Imin => S::GroupNonUniformSMin,
            Op::Imax => S::GroupNonUniformSMax,
            Op::Umin => S::GroupNonUniformUMin,
            Op::Umax => S::GroupNonUniformUMax,
            Op::Iand => S::GroupNonUniformBitwiseAnd,
            Op::Ior => S::GroupNonUniformBitwiseOr,
            Op::Ixor => S::GroupNonUniformBitwiseXor,
            Op::Fadd => S::GroupNonUniformFAdd,
            Op::Fmul => S::GroupNonUniformFMul,
            Op::Fmin => S::GroupNonUniformFMin,
            Op::Fmax => S::GroupNonUniformFMax,
            op => return no_form(format_args!("a reduction by `{op}`")),
        };
        self.capability(Capability::GroupNonUniformArithmetic);
        let value = self.read(intrinsic.srcs[0], ty.kind);
        let cluster = intrinsic.indices.cluster_size();
        let (group, size) = match intrinsic.op {
            IntrinsicOp::InclusiveScan => (spirv::GroupOperation::InclusiveScan, None),
            IntrinsicOp::ExclusiveScan => (spirv::GroupOperation::ExclusiveScan, None),
            _ if cluster == 0 => (spirv::GroupOperation::Reduce, None),
            _ => {
                self.capability(Capability::GroupNonUniformClustered);
                (spirv::GroupOperation::ClusteredReduce, Some(self.number(cluster)))
            }
        };
        let scope = self.number(spirv::Scope::Subgroup as u32);
        let mut list = vec![Operand::IdScope(scope), Operand::GroupOperation(group), Operand::IdRef(value)];
        list.extend(size.map(Operand::IdRef));
        let type_id = self.type_id(ty);
        self.emit_as(self.ids[def], op, type_id, list);
        Ok(())
    }
}
