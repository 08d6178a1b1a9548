//! Storage images.
//!
//! From a6xx on the machine computes a texel's address. Below a6xx, it needs the coordinates and the byte offset, which
//! depends on the image's strides: the driver passes them in constants, on a4xx after those of the SSBOs.

use super::SelectError;
use super::context::Context;
use super::memory::{self, push_effect, push_load};
use crate::ir3::access::build::{self, Location, MemoryElements};
use crate::ir3::opcode::Role;
use crate::ir3::{AddressSpace, InstrFlags, Opcode, RegClass, Src, Type};
use crate::nir::{Access, AluType, BaseType, Def, Format, ImageDim, Intrinsic, IntrinsicOp};
use crate::target::Generation;

/// Translates one intrinsic of this module.
pub(super) fn emit<'a>(ctx: &mut Context<'a>, intrinsic: &'a Intrinsic) -> Result<(), SelectError> {
    use IntrinsicOp as I;
    check(ctx)?;
    check_handle(ctx, intrinsic)?;
    match intrinsic.op {
        I::ImageLoad | I::BindlessImageLoad => load(ctx, intrinsic),
        I::ImageStore | I::BindlessImageStore => store(ctx, intrinsic),
        I::ImageSize | I::BindlessImageSize => size(ctx, intrinsic),
        _ => Err(ctx.unsupported("ir3 has no instruction for it")),
    }
}

/// Refuses images on GPUs without them.
pub(super) fn check(ctx: &Context<'_>) -> Result<(), SelectError> {
    if ctx.target.generation == Generation::A3xx {
        return Err(ctx.unsupported("a3xx has no storage images"));
    }
    Ok(())
}

/// Refuses a name of a bindless image that does not name one.
pub(super) fn check_handle(ctx: &Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let by_handle = intrinsic.op.name().starts_with("bindless_");
    if by_handle && memory::bindless(ctx, intrinsic.srcs[0]).0.is_none() {
        return Err(ctx.unsupported("a handle has to be a bindless resource"));
    }
    Ok(())
}

/// The coordinates of a texel, as scalars; they are source 1 of all image intrinsics. The machine has no sample index:
/// a multisampled image that is stored to has one sample.
fn coordinates(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Vec<Src> {
    let count = intrinsic.indices.image_dim().coordinates(intrinsic.indices.image_array());
    let count = count.min(ctx.components(intrinsic.srcs[1]));
    (0..count).map(|component| ctx.scalar(intrinsic.srcs[1], component)).collect()
}

/// The coordinates of a texel, as an operand of an instruction.
pub(super) fn location(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Location {
    let coordinates = coordinates(ctx, intrinsic);
    Location::Texel(ctx.collect(&coordinates), coordinates.len() as u8)
}

/// The constant with an image's texel size (0), row pitch (1) or slice pitch (2) on a5xx. On a4xx they are in the order
/// of an SSBO's address and sizes: address (0), row pitch (1), slice pitch (2), texel size (3).
fn stride(ctx: &mut Context<'_>, intrinsic: &Intrinsic, word: u32) -> Result<Src, SelectError> {
    let buffers = if ctx.target.generation == Generation::A4xx { ctx.shader.info.num_ssbos } else { 0 };
    memory::old_constant(ctx, intrinsic.srcs[0], buffers, word)
}

/// The byte offset of a texel below a6xx: from the start of the image, on a4xx from the start of memory.
pub(super) fn old_offset(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<Src, SelectError> {
    let a4xx = ctx.target.generation == Generation::A4xx;
    let coordinates = coordinates(ctx, intrinsic);
    let texel = stride(ctx, intrinsic, if a4xx { 3 } else { 0 })?;
    let mut offset = ctx.alu_src(Opcode::MulS24, RegClass::FULL, &[coordinates[0], texel]);
    for (pitch, &coordinate) in (1..3).zip(&coordinates[1..]) {
        let pitch = stride(ctx, intrinsic, pitch)?;
        offset = ctx.alu_src(Opcode::MadS24, RegClass::FULL, &[pitch, coordinate, offset]);
    }
    if a4xx {
        let start = stride(ctx, intrinsic, 0)?;
        offset = ctx.alu_src(Opcode::AddU, RegClass::FULL, &[offset, start]);
    }
    Ok(offset)
}

/// A byte offset as wide as the GPU's addresses.
pub(super) fn old_address(ctx: &mut Context<'_>, bytes: Src) -> Src {
    if ctx.target.generation == Generation::A4xx {
        return bytes;
    }
    let high = ctx.immediate(0, false);
    ctx.collect(&[bytes, high])
}

/// Type of the registers of an image access. Atomic loads and stores have no type: theirs is uninterpreted bits.
fn texel_type(ctx: &Context<'_>, ty: AluType, bits: u8) -> Result<Type, SelectError> {
    match (ty.base, bits) {
        (BaseType::Float, 16) => Ok(Type::F16),
        (BaseType::Float, 32) => Ok(Type::F32),
        (BaseType::Int, 16) => Ok(Type::S16),
        (BaseType::Int, 32) => Ok(Type::S32),
        (_, 16) => Ok(Type::U16),
        (_, 32) => Ok(Type::U32),
        _ => Err(ctx.unsupported(format!("ir3 has no images of {bits} bits a component"))),
    }
}

/// Refuses a level that is not 0.
fn check_level(ctx: &Context<'_>, level: Option<&Def>) -> Result<(), SelectError> {
    match level {
        Some(&level) if ctx.constant(level, 0) != Some(0) => Err(ctx.unsupported("images have one level")),
        _ => Ok(()),
    }
}

fn load(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let Some(def) = intrinsic.def else { return Ok(()) };
    check_level(ctx, intrinsic.srcs.get(3))?;
    let (bits, components) = (ctx.bits(def), ctx.components(def).min(4));
    let ty = texel_type(ctx, intrinsic.indices.dest_type(), bits)?;
    let access = intrinsic.indices.access();
    let class = ctx.class(bits);
    let elements = MemoryElements { ty, components };
    // A reorderable image can be read through the texture unit's cache: the sets of bindless resources have a
    // descriptor for it.
    let (set, index) = memory::bindless(ctx, intrinsic.srcs[0]);
    let data = if let (true, Some(set)) = (memory::may_be_cached(access), set)
        && ctx.target.generation >= Generation::A6xx
    {
        let set = memory::set_field(ctx, Some(set))?;
        let mut coordinates = coordinates(ctx, intrinsic);
        if intrinsic.indices.image_dim().is_1d() {
            // The machine has no one-dimensional textures: they are two-dimensional with height 1.
            coordinates.insert(1, ctx.immediate(0, false));
        }
        let mut flags = InstrFlags::empty();
        let dim = intrinsic.indices.image_dim();
        flags.set(InstrFlags::ARRAY, dim == ImageDim::Cube || intrinsic.indices.image_array());
        flags.set(InstrFlags::DIM_3D, dim == ImageDim::Dim3D);
        flags.set(InstrFlags::NONUNIFORM, access.contains(Access::NON_UNIFORM));
        let handle = memory::texel_handle(ctx, set, index)?;
        let coordinates = ctx.collect(&coordinates);
        build::isam_image(handle, coordinates, flags, intrinsic.indices.image_dim().is_1d(), ty)
    } else {
        let handle = memory::handle(ctx, intrinsic.srcs[0], access)?;
        let location = location(ctx, intrinsic);
        if ctx.target.generation >= Generation::A6xx {
            build::resource(Opcode::Ldib, handle, location, elements, &[])
        } else {
            // a4xx has no conversion in loads: the result is the texel's bits.
            let opcode = if ctx.target.generation == Generation::A4xx { Opcode::Ldgb } else { Opcode::Ldib };
            let format = intrinsic.indices.format();
            let plain = matches!(format, Format::R32Uint | Format::R32Sint | Format::R32Float);
            if opcode == Opcode::Ldgb && !plain {
                return Err(ctx.unsupported(format!("{} loads no texels of format {}", ctx.target, format.name())));
            }
            let bytes = old_offset(ctx, intrinsic)?;
            let bytes = old_address(ctx, bytes);
            build::resource(opcode, handle, location, elements, &[(Role::Bytes, bytes)])
        }
    };
    let values = push_load(ctx, data, class, components);
    ctx.define(def, &values);
    Ok(())
}

fn store(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    check_level(ctx, intrinsic.srcs.get(4))?;
    let value = intrinsic.srcs[3];
    // Components that the format does not have are not stored.
    let stored = intrinsic.indices.format().components().unwrap_or(4);
    let (bits, components) = (ctx.bits(value), ctx.components(value).min(stored));
    if bits == 16 && ctx.target.generation < Generation::A6xx {
        return Err(ctx.unsupported("halves in place of texels"));
    }
    let ty = texel_type(ctx, intrinsic.indices.src_type(), bits)?;
    let handle = memory::handle(ctx, intrinsic.srcs[0], intrinsic.indices.access())?;
    let location = location(ctx, intrinsic);
    let srcs: Vec<Src> = (0..components).map(|component| ctx.scalar(value, component)).collect();
    let data = ctx.collect(&srcs);
    let elements = MemoryElements { ty, components };
    let mut operands = vec![(Role::Data, data)];
    if ctx.target.generation < Generation::A6xx {
        let bytes = old_offset(ctx, intrinsic)?;
        operands.push((Role::Bytes, old_address(ctx, bytes)));
    }
    push_effect(ctx, build::resource(Opcode::Stib, handle, location, elements, &operands));
    Ok(())
}

/// Sources: image, lod.
fn size(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let Some(def) = intrinsic.def else { return Ok(()) };
    if ctx.target.generation < Generation::A6xx {
        return Err(ctx.unsupported(format!("{} has no instruction for it", ctx.target)));
    }
    check_level(ctx, intrinsic.srcs.get(1))?;
    let components = ctx.components(def);
    if components > 3 || ctx.bits(def) != 32 {
        return Err(ctx.unsupported("a size has at most three components of 32 bits"));
    }
    if intrinsic.indices.image_dim() == ImageDim::Cube && components > 2 {
        return Err(ctx.unsupported("the number of cubes: resinfo counts their faces (Mesa's lower_cube_size)"));
    }
    let handle = memory::handle(ctx, intrinsic.srcs[0], intrinsic.indices.access())?;
    let data = build::resinfo(handle, AddressSpace::Image, components, false);
    let values = push_load(ctx, data, RegClass::FULL, 3);
    ctx.define(def, &values[..usize::from(components)]);
    Ok(())
}
