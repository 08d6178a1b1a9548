//! Textures.
//!
//! The operands of a texture instruction are two vectors, in the order of [`TextureOperands`]. This module lowers
//! features that the machine lacks: one-dimensional textures (they become two-dimensional), handles in two descriptor
//! sets, levels as floats.

use super::SelectError;
use super::context::{Context, Srcs, Values};
use super::memory;
use crate::ir3::access::TextureShape;
use crate::ir3::access::build::{self, TextureHandle, TextureOperands};
use crate::ir3::{InputKind, InstrFlags, Opcode, RegClass, Src, SystemValue, Type, Value, WriteMask};
use crate::nir::{self, AluType, BaseType, Intrinsic, IntrinsicOp, Tex, TexOp, TexSrcKind};

/// Limit of the texture and sampler indices that fit into an instruction.
const FIXED_LIMIT: u64 = 16;
/// The number of textures that can be prefetched (Mesa: `IR3_MAX_SAMPLER_PREFETCH`).
const MAX_PREFETCHES: usize = 4;

/// Translates a texture instruction.
pub(super) fn emit<'a>(ctx: &mut Context<'a>, tex: &'a Tex) -> Result<(), SelectError> {
    check(ctx, tex)?;
    match tex.op {
        TexOp::Txs => size(ctx, tex),
        TexOp::QueryLevels => info(ctx, tex, 2),
        TexOp::TextureSamples => info(ctx, tex, 3),
        TexOp::TexPrefetch => match prefetch(ctx, tex)? {
            true => Ok(()),
            // Only coordinates that are unmodified varyings can be prefetched.
            false => {
                let opcode = opcode(ctx, tex)?;
                sample(ctx, tex, opcode)
            }
        },
        _ => {
            let opcode = opcode(ctx, tex)?;
            sample(ctx, tex, opcode)
        }
    }
}

/// Translates the intrinsics that prefetch texture descriptors: they have no effect on values.
pub(super) fn emit_prefetch<'a>(_ctx: &mut Context<'a>, _intrinsic: &'a Intrinsic) -> Result<(), SelectError> {
    Ok(())
}

/// The position of a sample in its pixel, by the sample's index: a request without texture.
pub(super) fn emit_sample_position<'a>(ctx: &mut Context<'a>, intrinsic: &'a Intrinsic) -> Result<(), SelectError> {
    let (Some(def), &[sample]) = (intrinsic.def, &intrinsic.srcs[..]) else {
        return Err(ctx.unsupported("unexpected sources"));
    };
    let sample = ctx.scalar(sample, 0);
    let handle = TextureHandle::Fixed { set: None, texture: 0, sampler: 0 };
    let data = build::texture(Opcode::Rgetpos, Type::F32, handle, InstrFlags::empty(), Some(sample), None);
    let components = ctx.components(def);
    let values = memory::push_load(ctx, data, RegClass::FULL, components);
    ctx.define(def, &values);
    Ok(())
}

/// Refuses operations that the machine lacks and that nir would have lowered.
fn check(ctx: &Context<'_>, tex: &Tex) -> Result<(), SelectError> {
    use TexSrcKind as S;
    for &(kind, _) in &tex.srcs {
        if matches!(kind, S::MinLod | S::Plane | S::Backend1 | S::Backend2) {
            return Err(ctx.unsupported(format!("ir3 has no `{}` source", kind.name())));
        }
    }
    if tex.sparse {
        return Err(ctx.unsupported("ir3 has no residency codes"));
    }
    if tex.gather_offsets.is_some() {
        return Err(ctx.unsupported("a gather with four offsets has to be lowered first"));
    }
    if tex.implicit_lod {
        return Err(ctx.unsupported("ir3 has no gathers of a level that they compute"));
    }
    let has = |kinds: [S; 2]| kinds.into_iter().any(|kind| tex.src(kind).is_some());
    if has([S::TextureHandle, S::SamplerHandle]) && has([S::TextureOffset, S::SamplerOffset]) {
        return Err(ctx.unsupported("a handle of a texture or sampler, and an offset of its number"));
    }
    Ok(())
}

fn opcode(ctx: &Context<'_>, tex: &Tex) -> Result<Opcode, SelectError> {
    let has_lod = tex.src(TexSrcKind::Lod).is_some();
    Ok(match tex.op {
        TexOp::Tex | TexOp::TexPrefetch if has_lod => Opcode::Saml,
        TexOp::Tex | TexOp::TexPrefetch => Opcode::Sam,
        TexOp::Txb => Opcode::Samb,
        TexOp::Txl => Opcode::Saml,
        TexOp::Txd => Opcode::Samgq,
        TexOp::Txf => Opcode::Isaml,
        TexOp::TxfMs => Opcode::Isamm,
        TexOp::Lod => Opcode::Getlod,
        TexOp::Tg4 => match tex.component {
            0 => Opcode::Gather4r,
            1 => Opcode::Gather4g,
            2 => Opcode::Gather4b,
            3 => Opcode::Gather4a,
            n => return Err(ctx.unsupported(format!("a texel has no component {n}"))),
        },
        _ => return Err(ctx.unsupported("ir3 has no instruction for it")),
    })
}

/// Type of the result.
fn result_type(ctx: &Context<'_>, tex: &Tex) -> Result<Type, SelectError> {
    let AluType { base, size } = tex.dest_type;
    let bits = if size == 0 { ctx.bits(tex.def) } else { size };
    match (base, bits) {
        (BaseType::Float, 32) => Ok(Type::F32),
        (BaseType::Float, 16) => Ok(Type::F16),
        (BaseType::Int, 32) => Ok(Type::S32),
        (BaseType::Int, 16) => Ok(Type::S16),
        (BaseType::Uint | BaseType::Bool, 32) => Ok(Type::U32),
        (BaseType::Uint | BaseType::Bool, 16) => Ok(Type::U16),
        _ => Err(ctx.unsupported(format!("ir3 has no texture results of type {}", tex.dest_type))),
    }
}

// Texture and sampler.

/// Texture and sampler of an instruction.
fn handle(ctx: &mut Context<'_>, tex: &Tex) -> Result<TextureHandle, SelectError> {
    let texture = tex.src(TexSrcKind::TextureHandle);
    let sampler = tex.src(TexSrcKind::SamplerHandle);
    if texture.is_some() || sampler.is_some() {
        return bindless_handle(ctx, texture, sampler);
    }
    let texture = number(ctx, tex.texture_index, tex.src(TexSrcKind::TextureOffset));
    let sampler = number(ctx, tex.sampler_index, tex.src(TexSrcKind::SamplerOffset));
    if let (Number::Fixed(texture), Number::Fixed(sampler)) = (&texture, &sampler)
        && u64::from(*texture.max(sampler)) < FIXED_LIMIT
    {
        return Ok(TextureHandle::Fixed { set: None, texture: *texture as u16, sampler: *sampler as u16 });
    }
    let texture = texture.half(ctx);
    let sampler = sampler.half(ctx);
    Ok(TextureHandle::Pair { set: None, pair: ctx.collect(&[texture, sampler]), sampler_set: None })
}

/// The index of a texture or sampler that is not a handle.
enum Number {
    Fixed(u32),
    Register(Src),
}

impl Number {
    fn half(self, ctx: &mut Context<'_>) -> Src {
        match self {
            Self::Fixed(number) => ctx.immediate(number, true),
            Self::Register(src) => ctx.narrowed(src),
        }
    }
}

/// An index plus an optional offset.
fn number(ctx: &mut Context<'_>, index: u32, offset: Option<nir::Def>) -> Number {
    let Some(offset) = offset else { return Number::Fixed(index) };
    if let Some(offset) = ctx.constant(offset, 0) {
        return Number::Fixed(index.wrapping_add(offset as u32));
    }
    let mut src = ctx.scalar(offset, 0);
    if index != 0 {
        let index = ctx.small(index, false);
        src = ctx.alu_src(Opcode::AddU, RegClass::FULL, &[src, index]);
    }
    Number::Register(src)
}

/// Texture and sampler by handles; a missing one is index 0 in the other's set.
fn bindless_handle(
    ctx: &mut Context<'_>,
    texture: Option<nir::Def>,
    sampler: Option<nir::Def>,
) -> Result<TextureHandle, SelectError> {
    let texture = texture.map(|def| memory::bindless(ctx, def));
    let sampler = sampler.map(|def| memory::bindless(ctx, def));
    for (set, _) in [texture, sampler].into_iter().flatten() {
        if set.is_none() {
            return Err(ctx.unsupported("a handle has to be a bindless resource"));
        }
    }
    let set_of = |handle: Option<(Option<u32>, nir::Def)>| handle.and_then(|(set, _)| set);
    let sampler_set = memory::set_field(ctx, set_of(sampler))?;
    let set = memory::set_field(ctx, set_of(texture))?.or(sampler_set);
    let other_set = sampler_set.filter(|_| sampler_set != set);
    let constant = |handle: Option<(Option<u32>, nir::Def)>| match handle {
        Some((_, index)) => ctx.constant(index, 0),
        None => Some(0),
    };
    if let (Some(texture), Some(sampler), None) = (constant(texture), constant(sampler), other_set)
        && texture.max(sampler) < FIXED_LIMIT
    {
        return Ok(TextureHandle::Fixed { set, texture: texture as u16, sampler: sampler as u16 });
    }
    let mut register = |handle: Option<(Option<u32>, nir::Def)>| match handle {
        Some((_, index)) => ctx.scalar(index, 0),
        None => ctx.immediate(0, false),
    };
    let pair = [register(texture), register(sampler)];
    let pair = ctx.collect(&pair);
    let sampler_set = other_set.map(|set| ctx.address_1(u16::from(set)));
    Ok(TextureHandle::Pair { set, pair, sampler_set })
}

// Requests.

/// One dimension padded to two.
fn pad(ctx: &mut Context<'_>, mut srcs: Srcs, bits: u32) -> Srcs {
    if let [only] = srcs[..] {
        srcs.push(ctx.immediate(bits, only.class.half));
    }
    srcs
}

/// Makes coordinates of a level those of level 0, which some GPUs want.
fn shift_to_level_0(ctx: &mut Context<'_>, tex: &Tex, coords: &mut [Src]) -> Result<(), SelectError> {
    let Some(level) = tex.src(TexSrcKind::Lod).filter(|&level| ctx.constant(level, 0) != Some(0)) else {
        return Ok(());
    };
    if ctx.bits(level) != 32 || coords.iter().any(|src| src.class.half) {
        return Err(ctx.unsupported("coordinates of a level that are halves"));
    }
    for coord in coords {
        let level = ctx.scalar(level, 0);
        *coord = ctx.bin(Opcode::ShlB, *coord, level);
    }
    Ok(())
}

/// The operands of a request with coordinates.
fn operands(ctx: &mut Context<'_>, tex: &Tex, opcode: Opcode) -> Result<TextureOperands, SelectError> {
    use TexSrcKind as S;
    let coord = tex.src(S::Coord).ok_or_else(|| ctx.unsupported("it has no coordinates"))?;
    let hint = tex.src(S::Ddx).or(tex.src(S::Offset)).map(|def| ctx.components(def));
    let shape = TextureShape::new(ctx.components(coord), hint);
    let coords = ctx.vector(coord);
    let fetch = matches!(opcode, Opcode::Isaml | Opcode::Isamm);
    let half = ctx.bits(coord) == 16;
    let middle = match (fetch, half) {
        (true, _) => 0,
        (false, true) => u32::from(half::f16::from_f32(0.5).to_bits()),
        (false, false) => 0.5f32.to_bits(),
    };
    let dims = usize::from(shape.dims);
    let mut padded = pad(ctx, Srcs::from_slice(&coords[..dims]), middle);
    if opcode == Opcode::Isaml && ctx.target.unminify_coords {
        shift_to_level_0(ctx, tex, &mut padded[..dims])?;
    }
    let mut operands = TextureOperands { coords: padded.into_iter().collect(), ..TextureOperands::default() };
    if tex.op == TexOp::Lod {
        // The level is independent of layer and comparison.
        return Ok(operands);
    }
    operands.layer = coords.get(dims).copied().filter(|_| shape.layer);
    let mut scalar = |kind| tex.src(kind).map(|def| ctx.scalar(def, 0));
    operands.comparator = scalar(S::Comparator);
    operands.projector = scalar(S::Projector);
    operands.sample = scalar(S::MsIndex);
    operands.level = match tex.op {
        TexOp::Txb => scalar(S::Bias),
        _ => scalar(S::Lod),
    };
    let vector = |ctx: &mut Context<'_>, kind| match tex.src(kind) {
        Some(def) => {
            let srcs = ctx.vector(def);
            pad(ctx, srcs, 0).into_iter().collect()
        }
        None => Default::default(),
    };
    operands.ddx = vector(ctx, S::Ddx);
    operands.ddy = vector(ctx, S::Ddy);
    operands.offset = vector(ctx, S::Offset);
    if opcode == Opcode::Isaml && operands.level.is_none() {
        let half = operands.offset.first().unwrap_or(&operands.coords[0]).class.half;
        operands.level = Some(ctx.immediate(0, half));
    }
    match opcode {
        Opcode::Samb | Opcode::Saml if operands.level.is_none() => Err(ctx.unsupported("it has no level")),
        Opcode::Samgq if operands.ddx.len() != operands.coords.len() || operands.ddy.len() != operands.ddx.len() => {
            Err(ctx.unsupported("its derivatives do not fit its coordinates"))
        }
        Opcode::Isamm if operands.sample.is_none() => Err(ctx.unsupported("it has no sample")),
        _ => Ok(operands),
    }
}

/// Refuses operations that need the driver on this GPU.
fn check_fetch(ctx: &Context<'_>, opcode: Opcode) -> Result<(), SelectError> {
    if opcode == Opcode::Isamm && ctx.target.txf_ms_with_isaml {
        return Err(ctx.unsupported(format!("{} requires a known number of samples", ctx.target)));
    }
    Ok(())
}

/// A request with coordinates.
fn sample(ctx: &mut Context<'_>, tex: &Tex, opcode: Opcode) -> Result<(), SelectError> {
    check_fetch(ctx, opcode)?;
    let operands = operands(ctx, tex, opcode)?;
    let half = operands.coords.first().is_some_and(|src| src.class.half);
    let padding = ctx.immediate(0, half);
    let (first, second, flags) = operands.vectors(padding);
    let ty = if opcode == Opcode::Getlod { Type::S32 } else { result_type(ctx, tex)? };
    let first = vector(ctx, &first)?;
    let second = if second.is_empty() { None } else { Some(vector(ctx, &second)?) };
    if second.is_some_and(|second| second.class.half != first.class.half) {
        return Err(not_of_one_width(ctx));
    }
    let values = push(ctx, tex, opcode, ty, flags, Some(first), second, WriteMask::first(components(ctx, tex)))?;
    let values = if opcode == Opcode::Getlod { levels(ctx, tex, &values) } else { values };
    ctx.define(tex.def, &values);
    Ok(())
}

/// Collects scalars, which must have one width.
fn vector(ctx: &mut Context<'_>, srcs: &[Src]) -> Result<Src, SelectError> {
    if srcs.iter().any(|src| src.class.half != srcs[0].class.half) {
        return Err(not_of_one_width(ctx));
    }
    Ok(ctx.collect(srcs))
}

/// The machine reads all operands of a request in one width. (Mesa narrows either all of them or none.)
fn not_of_one_width(ctx: &Context<'_>) -> SelectError {
    ctx.unsupported("its operands are not of one width")
}

fn components(ctx: &Context<'_>, tex: &Tex) -> u32 {
    u32::from(ctx.components(tex.def)).min(4)
}

/// Levels as floats: `getlod` returns fixed-point values with eight fractional bits.
fn levels(ctx: &mut Context<'_>, tex: &Tex, values: &[Value]) -> Values {
    let half = ctx.bits(tex.def) == 16;
    let (to, factor) = if half {
        (Type::F16, u32::from(half::f16::from_f32(1.0 / 256.0).to_bits()))
    } else {
        (Type::F32, (1.0f32 / 256.0).to_bits())
    };
    let factor = ctx.immediate(factor, half);
    values
        .iter()
        .map(|&value| {
            let level = ctx.src(value);
            let level = ctx.convert_src(Type::S32, to, level);
            ctx.alu(Opcode::MulF, RegClass::general(half), &[level, factor])
        })
        .collect()
}

/// Appends a texture instruction; returns the components that it writes.
#[expect(clippy::too_many_arguments, reason = "all that a texture instruction has")]
fn push(
    ctx: &mut Context<'_>,
    tex: &Tex,
    opcode: Opcode,
    ty: Type,
    flags: InstrFlags,
    first: Option<Src>,
    second: Option<Src>,
    mask: WriteMask,
) -> Result<Values, SelectError> {
    let handle = handle(ctx, tex)?;
    let mut data = build::texture(opcode, ty, handle, flags, first, second);
    data.flags.set(InstrFlags::NONUNIFORM, tex.texture_non_uniform || tex.sampler_non_uniform);
    let instr = ctx.push(data);
    let value = ctx.builder().add_dst(instr, RegClass::general(ty.is_half()), mask);
    Ok(memory::parts(ctx, value, mask))
}

/// Sizes of a level, in x, y, z. (nir does not distinguish a number of layers, which would be in w.)
fn size(ctx: &mut Context<'_>, tex: &Tex) -> Result<(), SelectError> {
    let ty = result_type(ctx, tex)?;
    let level = tex.src(TexSrcKind::Lod).map(|level| ctx.scalar(level, 0));
    // Sizes of buffers do not fit into the result of `getsize`; they have no level.
    let opcode = if level.is_some() { Opcode::Getsize } else { Opcode::Getbuf };
    let mask = WriteMask::first(components(ctx, tex));
    let values = push(ctx, tex, opcode, ty, InstrFlags::empty(), level, None, mask)?;
    ctx.define(tex.def, &values);
    Ok(())
}

/// One component of the result of `getinfo`.
fn info(ctx: &mut Context<'_>, tex: &Tex, component: u32) -> Result<(), SelectError> {
    let ty = result_type(ctx, tex)?;
    let mask = WriteMask(1 << component);
    let values = push(ctx, tex, Opcode::Getinfo, ty, InstrFlags::empty(), None, None, mask)?;
    let mut value = values[0];
    if component == 2 && ctx.target.levels_add_one {
        let one = Src::immediate(1, ty.is_half());
        let levels = ctx.src(value);
        value = ctx.alu(Opcode::AddU, RegClass::general(ty.is_half()), &[levels, one]);
    }
    ctx.define(tex.def, &[value]);
    Ok(())
}

// Samples that are issued before the program starts.

/// The index of the varying that is a coordinate's first component, if the coordinate is two adjacent components of a
/// varying, interpolated at the pixel.
fn varying(ctx: &Context<'_>, coord: nir::Def) -> Option<u16> {
    let component = |index: usize| -> Option<(nir::Def, u8)> {
        match ctx.producer(coord) {
            nir::InstrData::Intrinsic(_) => Some((coord, index as u8)),
            nir::InstrData::Alu(alu) if alu.op == nir::Op::Mov => Some((alu.srcs[0].def, alu.srcs[0].swizzle[index])),
            nir::InstrData::Alu(alu) if alu.op == nir::Op::Vec2 => {
                Some((alu.srcs[index].def, alu.srcs[index].swizzle[0]))
            }
            _ => None,
        }
    };
    let number = |index: usize| -> Option<u16> {
        let (def, component) = component(index)?;
        let nir::InstrData::Intrinsic(load) = ctx.producer(def) else { return None };
        if load.op != IntrinsicOp::LoadInterpolatedInput || ctx.constant(load.srcs[1], 0) != Some(0) {
            return None;
        }
        let nir::InstrData::Intrinsic(barycentric) = ctx.producer(load.srcs[0]) else { return None };
        let smooth = barycentric.indices.interp_mode() != nir::InterpMode::NoPerspective;
        if barycentric.op != IntrinsicOp::LoadBarycentricPixel || !smooth {
            return None;
        }
        let base = u16::try_from(load.indices.base()).ok()?;
        Some(base * 4 + u16::from(load.indices.component()) + u16::from(component))
    };
    let first = number(0)?;
    (number(1)? == first + 1).then_some(first)
}

/// Translates a texture instruction to a prefetch; returns false if it cannot be one.
fn prefetch(ctx: &mut Context<'_>, tex: &Tex) -> Result<bool, SelectError> {
    use TexSrcKind as S;
    let plain = tex.srcs.iter().all(|(kind, _)| matches!(kind, S::Coord | S::TextureHandle | S::SamplerHandle));
    let list = &ctx.program.blocks[ctx.program.entry()].instrs;
    let others = list.iter().take_while(|&&other| ctx.program.instrs[other].opcode == Opcode::TexPrefetch).count();
    if !ctx.target.has_fs_tex_prefetch || !plain || others == MAX_PREFETCHES {
        return Ok(false);
    }
    let coord = tex.src(TexSrcKind::Coord).filter(|&coord| ctx.components(coord) == 2 && ctx.bits(coord) == 32);
    let Some(varying) = coord.and_then(|coord| varying(ctx, coord)) else { return Ok(false) };
    let TextureHandle::Fixed { set, texture, sampler } = handle(ctx, tex)? else { return Ok(false) };
    let ty = result_type(ctx, tex)?;
    let barycentric = ctx.input(InputKind::System(SystemValue::BarycentricPixel), RegClass::FULL, 2);
    let barycentric = ctx.src(barycentric);
    let data = build::tex_prefetch(ty, barycentric, varying, set, texture, sampler, None);
    // It is inserted at the start of the program, after the existing ones (inputs are inserted before them in the end).
    let instr = ctx.program.instrs.push(data);
    let entry = ctx.program.entry();
    ctx.program.blocks[entry].instrs.insert(others, instr);
    let mask = WriteMask::first(components(ctx, tex));
    let value = ctx.builder().add_dst(instr, RegClass::general(ty.is_half()), mask);
    let values = memory::parts(ctx, value, mask);
    ctx.define(tex.def, &values);
    Ok(true)
}
