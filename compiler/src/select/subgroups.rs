//! Subgroup operations: derivatives, votes, reads from other lanes, scans.

use super::SelectError;
use super::context::{Context, Values, words_per_component};
use crate::ir3::{
    Attrs, Condition, InstrData, Opcode, OperandFlags, RegClass, Round, ShuffleMode, Src, SystemValue, TextureAttrs,
    Type, Value, WriteMask,
};
use crate::nir::{Def, Intrinsic, IntrinsicOp, Op, Stage};
use crate::target::Generation;
use smallvec::SmallVec;

/// Translates one intrinsic of this module.
pub(super) fn emit(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    use IntrinsicOp::*;
    let Some(def) = intrinsic.def else {
        return Err(ctx.unsupported("not supported"));
    };
    let src = |index: usize| intrinsic.srcs[index];
    match intrinsic.op {
        Ddx | DdxCoarse => derivative(ctx, def, src(0), Opcode::Dsx),
        Ddy | DdyCoarse => derivative(ctx, def, src(0), Opcode::Dsy),
        DdxFine => derivative(ctx, def, src(0), Opcode::DsxppMacro),
        DdyFine => derivative(ctx, def, src(0), Opcode::DsyppMacro),
        Elect | ElectAnyIr3 => {
            let class = ctx.bool_class();
            let value = ctx.lane_macro(Opcode::ElectMacro, class, &[]);
            ctx.set(def, 0, value);
            Ok(())
        }
        VoteAny => vote(ctx, def, src(0), Opcode::AnyMacro),
        VoteAll => vote(ctx, def, src(0), Opcode::AllMacro),
        Ballot | BallotRelaxed => ballot(ctx, def, src(0)),
        ReadFirstInvocation => read_lane(ctx, def, src(0), Opcode::ReadFirstMacro, None),
        ReadGetlastIr3 | BrcstActiveIr3 | ReduceClustersIr3 | InclusiveScanClustersIr3 | ExclusiveScanClustersIr3
            if ctx.target.generation < Generation::A6xx =>
        {
            Err(ctx.unsupported(format!("{} has no operations on clusters of lanes", ctx.target)))
        }
        ReadGetlastIr3 => read_lane(ctx, def, src(0), Opcode::ReadGetlastMacro, None),
        ReadInvocationCondIr3 => {
            let predicate = ctx.predicate(src(1));
            read_lane(ctx, def, src(0), Opcode::ReadCondMacro, Some(predicate))
        }
        ReadInvocation => {
            let lane = ctx.system_value(SystemValue::SubgroupInvocation, RegClass::FULL, 1);
            let lane = ctx.src(lane);
            let wanted = ctx.scalar(src(1), 0);
            let wanted = ctx.widened(wanted);
            let predicate = ctx.builder().compare(Opcode::CmpsS, Condition::Eq, RegClass::PREDICATE, lane, wanted);
            let predicate = ctx.src(predicate);
            read_lane(ctx, def, src(0), Opcode::ReadCondMacro, Some(predicate))
        }
        BrcstActiveIr3 => broadcast_active(ctx, intrinsic, def),
        QuadBroadcast => {
            let lane = ctx.scalar(src(1), 0);
            let lane = ctx.widened(lane);
            quad(ctx, def, src(0), Opcode::QuadShuffleBrcst, Some(lane))
        }
        QuadSwapHorizontal => quad(ctx, def, src(0), Opcode::QuadShuffleHoriz, None),
        QuadSwapVertical => quad(ctx, def, src(0), Opcode::QuadShuffleVert, None),
        QuadSwapDiagonal => quad(ctx, def, src(0), Opcode::QuadShuffleDiag, None),
        Rotate
        | ShuffleUpUniformIr3
        | ShuffleDownUniformIr3
        | ShuffleXorUniformIr3
        | ShuffleUp
        | ShuffleDown
        | ShuffleXor => shuffle(ctx, intrinsic, def),
        VoteIeq => vote_equal(ctx, def, src(0), Opcode::CmpsS),
        VoteFeq => vote_equal(ctx, def, src(0), Opcode::CmpsF),
        InverseBallot => inverse_ballot(ctx, def, src(0)),
        FirstInvocation => first_lane(ctx, def),
        LastInvocation => last_lane(ctx, def),
        Reduce | InclusiveScan | ExclusiveScan => scan(ctx, intrinsic, def),
        ReduceClustersIr3 | InclusiveScanClustersIr3 | ExclusiveScanClustersIr3 => scan_clusters(ctx, intrinsic, def),
        _ => Err(ctx.unsupported("not supported")),
    }
}

fn type_of(class: RegClass, float: bool) -> Type {
    match (class.half, float) {
        (true, true) => Type::F16,
        (true, false) => Type::U16,
        (false, true) => Type::F32,
        (false, false) => Type::U32,
    }
}

impl Context<'_> {
    /// Appends a cat1 macro whose result each lane sets for itself.
    fn lane_macro(&mut self, opcode: Opcode, class: RegClass, srcs: &[Src]) -> Value {
        let ty = type_of(class, false);
        self.builder().define(opcode, class, 1, srcs, Attrs::Move { src: ty, dst: ty, round: Round::Default })
    }

    /// Appends a cat1 macro that reads a value of another lane, and copies its result to a general register of `class`.
    /// Only moves to registers that lanes share read other lanes; half ones of these do not work on all GPUs.
    fn read_macro(&mut self, opcode: Opcode, class: RegClass, srcs: &[Src]) -> Result<Value, SelectError> {
        self.require_shared()?;
        let attrs = Attrs::Move { src: type_of(class, false), dst: Type::U32, round: Round::Default };
        let shared = self.builder().define(opcode, RegClass::SHARED, 1, srcs, attrs);
        Ok(self.copy_of_shared(shared, class))
    }

    /// The mask of the active lanes, in words of 32.
    fn active_mask(&mut self, words: u16) -> Value {
        let mask = self.builder().define(Opcode::Movmsk, RegClass::SHARED, words, &[], Attrs::None);
        let instr = self.program.values[mask].instr;
        self.program.instrs[instr].repeat = words as u8 - 1;
        mask
    }

    /// Copies a scalar from a shared register to a general one of `class`.
    fn copy_of_shared(&mut self, shared: Value, class: RegClass) -> Value {
        let src = self.src(shared);
        self.convert(Type::U32, type_of(class, false), src)
    }

    /// Refuses GPUs without shared registers.
    fn require_shared(&self) -> Result<(), SelectError> {
        if self.target.has_shared_regfile {
            return Ok(());
        }
        Err(self.unsupported(format!("{} has no registers that all lanes share", self.target)))
    }

    /// Appends a cat5 instruction on a scalar.
    fn lane_texture(&mut self, opcode: Opcode, class: RegClass, srcs: &[Src], float: bool) -> Value {
        let attrs = TextureAttrs { ty: Some(type_of(class, float)), ..TextureAttrs::default() };
        self.builder().define(opcode, class, 1, srcs, Attrs::Texture(attrs))
    }
}

fn derivative(ctx: &mut Context<'_>, def: Def, src: Def, opcode: Opcode) -> Result<(), SelectError> {
    let class = ctx.class(ctx.bits(def));
    for component in 0..ctx.components(def) {
        let x = ctx.scalar(src, component);
        let value = ctx.lane_texture(opcode, class, &[x], true);
        if matches!(opcode, Opcode::DsxppMacro | Opcode::DsyppMacro) {
            // Two instructions, of which the second reads the source too.
            let instr = ctx.program.values[value].instr;
            ctx.program.instrs[instr].dsts[0].flags |= OperandFlags::EARLY_CLOBBER;
        }
        ctx.set(def, component, value);
    }
    Ok(())
}

fn vote(ctx: &mut Context<'_>, def: Def, condition: Def, opcode: Opcode) -> Result<(), SelectError> {
    let predicate = ctx.predicate(condition);
    let class = ctx.bool_class();
    let value = ctx.lane_macro(opcode, class, &[predicate]);
    ctx.set(def, 0, value);
    Ok(())
}

/// The mask of the lanes where a bool is true: two words for a wave, followed by zeros.
fn ballot(ctx: &mut Context<'_>, def: Def, condition: Def) -> Result<(), SelectError> {
    if ctx.bits(def) < 32 {
        return Err(ctx.unsupported("a mask of less than 32 bits"));
    }
    let words = usize::from(ctx.components(def)) * words_per_component(ctx.bits(def));
    ctx.require_shared()?;
    let components = words.min(2) as u16;
    let mask = if ctx.constant(condition, 0).is_some_and(|bit| bit != 0) {
        ctx.active_mask(components)
    } else {
        let predicate = ctx.predicate(condition);
        let attrs = Attrs::Move { src: Type::U32, dst: Type::U32, round: Round::Default };
        ctx.builder().define(Opcode::BallotMacro, RegClass::SHARED, components, &[predicate], attrs)
    };
    let parts = ctx.split(mask);
    let parts: Values = parts.iter().map(|&part| ctx.copy_of_shared(part, RegClass::FULL)).collect();
    ctx.define(def, &parts);
    for word in parts.len()..words {
        ctx.set_word(def, word, super::context::Word::Immediate(0));
    }
    Ok(())
}

/// Reads each word of a value from another lane, by a macro that may have a predicate.
fn read_lane(
    ctx: &mut Context<'_>,
    def: Def,
    value: Def,
    opcode: Opcode,
    predicate: Option<Src>,
) -> Result<(), SelectError> {
    let words = ctx.vector(value);
    for (index, &word) in words.iter().enumerate() {
        let srcs: SmallVec<[Src; 2]> = predicate.into_iter().chain([word]).collect();
        let mut result = ctx.read_macro(opcode, word.class, &srcs)?;
        // The first and the last of the active lanes always exist.
        if opcode == Opcode::ReadCondMacro {
            result = ctx.in_width(def, result);
        }
        ctx.define_word(def, index, result);
    }
    Ok(())
}

fn quad(ctx: &mut Context<'_>, def: Def, value: Def, opcode: Opcode, lane: Option<Src>) -> Result<(), SelectError> {
    if ctx.target.generation < Generation::A6xx {
        return Err(ctx.unsupported(format!("{} has no shuffles of quads", ctx.target)));
    }
    let words = ctx.vector(value);
    for (index, &word) in words.iter().enumerate() {
        // Both sources have one width.
        let lane = lane.map(|lane| if word.class.half { ctx.narrowed(lane) } else { lane });
        let srcs: SmallVec<[Src; 2]> = std::iter::once(word).chain(lane).collect();
        let result = ctx.lane_texture(opcode, word.class, &srcs, false);
        let result = ctx.in_width(def, result);
        ctx.define_word(def, index, result);
    }
    Ok(())
}

/// Sources: the value that other lanes keep, and the value that is broadcast. The instruction has them in reverse
/// order.
fn broadcast_active(ctx: &mut Context<'_>, intrinsic: &Intrinsic, def: Def) -> Result<(), SelectError> {
    let cluster = match intrinsic.indices.cluster_size() {
        cluster @ (2 | 4 | 8) => cluster as u8,
        other => return Err(ctx.unsupported(format!("a cluster of {other} lanes"))),
    };
    if ctx.bits(def) == 64 {
        return Err(ctx.unsupported("a value of 64 bits"));
    }
    let class = ctx.class(ctx.bits(def));
    let mut kept = ctx.scalar(intrinsic.srcs[0], 0);
    kept.flags |= OperandFlags::TIED;
    let broadcast = ctx.scalar(intrinsic.srcs[1], 0);
    let value = ctx.lane_texture(Opcode::BrcstActive, class, &[broadcast, kept], false);
    let instr = ctx.program.values[value].instr;
    let data = &mut ctx.program.instrs[instr];
    data.dsts[0].flags |= OperandFlags::TIED;
    if let Attrs::Texture(attrs) = &mut data.attrs {
        attrs.cluster = Some(cluster);
    }
    ctx.set(def, 0, value);
    Ok(())
}

/// Reads the lane at a uniform distance.
fn shuffle(ctx: &mut Context<'_>, intrinsic: &Intrinsic, def: Def) -> Result<(), SelectError> {
    use IntrinsicOp::*;
    let mode = match intrinsic.op {
        ShuffleUpUniformIr3 => ShuffleMode::RotateUp,
        ShuffleDownUniformIr3 | Rotate => ShuffleMode::RotateDown,
        ShuffleUp => ShuffleMode::Up,
        ShuffleDown => ShuffleMode::Down,
        _ => ShuffleMode::Xor,
    };
    let distance = intrinsic.srcs[1];
    let by_name = matches!(intrinsic.op, Rotate | ShuffleUpUniformIr3 | ShuffleDownUniformIr3 | ShuffleXorUniformIr3);
    let is_uniform =
        by_name || ctx.constant(distance, 0).is_some() || ctx.function.defs[distance].divergent == Some(false);
    if !ctx.target.has_shfl || !is_uniform || has_clusters(ctx, intrinsic) {
        return Err(ctx.unsupported("the machine has no such shuffle"));
    }
    let distance = ctx.scalar(distance, 0);
    let distance = ctx.widened(distance);
    let words = ctx.vector(intrinsic.srcs[0]);
    for (index, &word) in words.iter().enumerate() {
        let attrs = Attrs::Shuffle { mode, ty: type_of(word.class, false) };
        let result = ctx.builder().define(Opcode::Shfl, word.class, 1, &[word, distance], attrs);
        let result = ctx.in_width(def, result);
        ctx.define_word(def, index, result);
    }
    Ok(())
}

/// Returns true if an operation is on parts of a wave. A wave has up to 128 lanes, but 64 where the workgroup does not
/// fit into one of them.
fn has_clusters(ctx: &Context<'_>, intrinsic: &Intrinsic) -> bool {
    let wave = if matches!(ctx.shader.stage, Stage::Compute | Stage::Kernel) { 64 } else { 128 };
    (1..wave).contains(&intrinsic.indices.cluster_size())
}

/// Tests if a value is uniform: all lanes compare it with that of the first.
fn vote_equal(ctx: &mut Context<'_>, def: Def, value: Def, compare: Opcode) -> Result<(), SelectError> {
    let bits = ctx.bits(value);
    if compare == Opcode::CmpsF && !matches!(bits, 16 | 32) {
        return Err(ctx.unsupported(format!("floats of {bits} bits, which the machine does not have")));
    }
    let words = ctx.vector(value);
    let mut all: Option<Src> = None;
    for &word in &words {
        let first = ctx.read_macro(Opcode::ReadFirstMacro, word.class, &[word])?;
        let first = ctx.src(first);
        let same = ctx.compare_src(compare, Condition::Eq, first, word);
        all = Some(match all {
            Some(all) => ctx.bin(Opcode::AndB, all, same),
            None => same,
        });
    }
    let Some(all) = all else { return Ok(()) };
    let predicate = ctx.predicate_of(all);
    let class = ctx.bool_class();
    let result = ctx.lane_macro(Opcode::AllMacro, class, &[predicate]);
    ctx.set(def, 0, result);
    Ok(())
}

/// The bit of a mask for this lane.
fn inverse_ballot(ctx: &mut Context<'_>, def: Def, mask: Def) -> Result<(), SelectError> {
    if ctx.bits(mask) < 32 {
        return Err(ctx.unsupported("a mask of less than 32 bits"));
    }
    let lane = ctx.system_value(SystemValue::SubgroupInvocation, RegClass::FULL, 1);
    let lane = ctx.src(lane);
    let words = ctx.vector(mask);
    let zero = ctx.immediate(0, false);
    let low = words[0];
    let high = words.get(1).copied().unwrap_or(zero);
    let in_high = ctx.bin(Opcode::AndB, lane, Src::immediate(32, false));
    let word = ctx.select(in_high, high, low);
    let bit = ctx.bin(Opcode::ShrB, word, lane);
    let bit = ctx.bin(Opcode::AndB, bit, Src::immediate(1, false));
    let result = ctx.compare(Opcode::CmpsS, Condition::Ne, bit, Src::immediate(0, false));
    ctx.set(def, 0, result);
    Ok(())
}

/// The index of the first active lane.
fn first_lane(ctx: &mut Context<'_>, def: Def) -> Result<(), SelectError> {
    let lane = ctx.system_value(SystemValue::SubgroupInvocation, RegClass::FULL, 1);
    let lane = ctx.src(lane);
    let result = ctx.read_macro(Opcode::ReadFirstMacro, RegClass::FULL, &[lane])?;
    ctx.set(def, 0, result);
    Ok(())
}

/// The index of the last active lane: the highest bit of the mask of all of them. (`getlast` is about one
/// cluster of 8.)
fn last_lane(ctx: &mut Context<'_>, def: Def) -> Result<(), SelectError> {
    ctx.require_shared()?;
    let mask = ctx.active_mask(2);
    let words = ctx.split(mask);
    let [low, high] = [0, 1].map(|word| ctx.copy_of_shared(words[word], RegClass::FULL)).map(|word| ctx.src(word));
    let [in_low, in_high] = [(low, 31), (high, 63)].map(|(word, top)| {
        let zeros = ctx.un(Opcode::ClzB, word);
        ctx.bin(Opcode::SubU, Src::immediate(top, false), zeros)
    });
    if let Some(result) = ctx.select(high, in_high, in_low).value() {
        ctx.set(def, 0, result);
    }
    Ok(())
}

/// The operation of a reduction of values of `bits` bits, and its identity.
fn reduction(ctx: &Context<'_>, op: Op, bits: u8) -> Result<(Opcode, u32), SelectError> {
    let choose = |full: u32, half_bits: u32| if bits == 16 { half_bits } else { full };
    Ok(match op {
        // A bool is 0 or 1 in a register, and these three preserve that.
        Op::Iand if bits == 1 => (Opcode::AndB, 1),
        Op::Ior if bits == 1 => (Opcode::OrB, 0),
        Op::Ixor if bits == 1 => (Opcode::XorB, 0),
        _ if bits == 1 => return Err(ctx.unsupported(format!("a reduction of bools by {}", op.name()))),
        Op::Iadd => (Opcode::AddU, 0),
        Op::Imul => (Opcode::MulU24, 1),
        Op::Imin => (Opcode::MinS, choose(0x7fff_ffff, 0x7fff)),
        Op::Imax => (Opcode::MaxS, choose(0x8000_0000, 0x8000)),
        Op::Umin => (Opcode::MinU, choose(u32::MAX, 0xffff)),
        Op::Umax => (Opcode::MaxU, 0),
        Op::Iand => (Opcode::AndB, choose(u32::MAX, 0xffff)),
        Op::Ior => (Opcode::OrB, 0),
        Op::Ixor => (Opcode::XorB, 0),
        Op::Fadd => (Opcode::AddF, 0),
        Op::Fmul => (Opcode::MulF, choose(1.0_f32.to_bits(), 0x3c00)),
        Op::Fmin => (Opcode::MinF, choose(f32::INFINITY.to_bits(), 0x7c00)),
        Op::Fmax => (Opcode::MaxF, choose(f32::NEG_INFINITY.to_bits(), 0xfc00)),
        _ => return Err(ctx.unsupported(format!("a reduction by {}", op.name()))),
    })
}

/// The class of the values of a reduction.
fn reduction_class(ctx: &Context<'_>, def: Def) -> Result<RegClass, SelectError> {
    match ctx.bits(def) {
        1 => Ok(ctx.bool_class()),
        bits @ (16 | 32) => Ok(ctx.class(bits)),
        bits => Err(ctx.unsupported(format!("a reduction of {bits} bits"))),
    }
}

/// Destinations: the exclusive scan, the inclusive one, and the reduction, which is initialised from the second source
/// and shared by all lanes.
fn scan(ctx: &mut Context<'_>, intrinsic: &Intrinsic, def: Def) -> Result<(), SelectError> {
    if intrinsic.op == IntrinsicOp::Reduce && has_clusters(ctx, intrinsic) {
        return Err(ctx.unsupported("clusters"));
    }
    ctx.require_shared()?;
    let class = reduction_class(ctx, def)?;
    let (opcode, identity) = reduction(ctx, intrinsic.indices.reduction_op(), ctx.bits(def))?;
    for component in 0..ctx.components(def) {
        let src = ctx.scalar(intrinsic.srcs[0], component);
        let mut data = InstrData::new(Opcode::ScanMacro);
        data.attrs = Attrs::Scan { op: opcode };
        data.srcs.extend([src, Src::immediate(identity, false)]);
        let instr = ctx.push(data);
        let results =
            [class, class, RegClass::SHARED].map(|class| ctx.builder().add_dst(instr, class, WriteMask::SCALAR));
        let dsts = &mut ctx.program.instrs[instr].dsts;
        dsts[0].flags |= OperandFlags::EARLY_CLOBBER;
        // A 32-bit product takes several instructions, which read the source until the last.
        dsts[1].flags |= OperandFlags::EARLY_CLOBBER;
        let result = match intrinsic.op {
            IntrinsicOp::ExclusiveScan => results[0],
            IntrinsicOp::InclusiveScan => results[1],
            _ => ctx.copy_of_shared(results[2], class),
        };
        ctx.set(def, component, result);
    }
    Ok(())
}

/// Destinations: the reduction, which is initialised from the first source and shared by all lanes, the inclusive scan,
/// then the exclusive one if required, and a scratch register for a 32-bit product.
fn scan_clusters(ctx: &mut Context<'_>, intrinsic: &Intrinsic, def: Def) -> Result<(), SelectError> {
    ctx.require_shared()?;
    let class = reduction_class(ctx, def)?;
    let (opcode, identity) = reduction(ctx, intrinsic.indices.reduction_op(), ctx.bits(def))?;
    let exclusive = intrinsic.op == IntrinsicOp::ExclusiveScanClustersIr3;
    let scratch = opcode == Opcode::MulU24 && !class.half;
    let mut data = InstrData::new(Opcode::ScanClustersMacro);
    data.attrs = Attrs::Scan { op: opcode };
    data.srcs.push(Src::immediate(identity, false));
    for &src in &intrinsic.srcs {
        data.srcs.push(ctx.scalar(src, 0));
    }
    let instr = ctx.push(data);
    let count = 2 + usize::from(exclusive) + usize::from(scratch);
    let results: Vec<Value> = (0..count)
        .map(|i| if i == 0 { RegClass::SHARED } else { class })
        .map(|class| ctx.builder().add_dst(instr, class, WriteMask::SCALAR))
        .collect();
    let dsts = &mut ctx.program.instrs[instr].dsts;
    for dst in &mut dsts[1..] {
        dst.flags |= OperandFlags::EARLY_CLOBBER;
    }
    let result = match intrinsic.op {
        IntrinsicOp::ReduceClustersIr3 => ctx.copy_of_shared(results[0], class),
        IntrinsicOp::InclusiveScanClustersIr3 => results[1],
        _ => results[2],
    };
    ctx.set(def, 0, result);
    Ok(())
}
