//! Memory: uniform and storage buffers, shared, global and scratch memory.
//!
//! Accesses of more than four elements, and stores of elements with holes between them, become several accesses; 64
//! bits are two elements. An offset that the instruction cannot encode is added to the address first.

use super::SelectError;
use super::consts::WORDS as CONST_WORDS;
use super::context::{Context, Values};
use crate::ir3::access::build::{self, Handle, Location, MemoryElements, TextureHandle};
use crate::ir3::access::{MemoryAction, ssbo_offset_unit};
use crate::ir3::opcode::Role;
use crate::ir3::{
    AddressSpace, Attrs, Condition, Instr, InstrData, InstrFlags, MemoryAttrs, Opcode, RegClass, Src, Type, Value,
    WriteMask,
};
use crate::nir::{self, Access, IndexKind, Intrinsic, IntrinsicOp};
use crate::target::Generation;
use smallvec::SmallVec;

/// The maximum number of elements per instruction.
const MAX_ELEMENTS: u8 = 4;

/// The limit of the offsets of `ldl`, `stl`, `ldp` and `stp`: they are signed and have 13 bits.
const LOCAL_OFFSET_LIMIT: i32 = 1 << 12;

/// Translates one intrinsic of this module.
pub(super) fn emit<'a>(ctx: &mut Context<'a>, intrinsic: &'a Intrinsic) -> Result<(), SelectError> {
    use IntrinsicOp as I;
    match intrinsic.op {
        I::LoadSsboIr3 => load_ssbo(ctx, intrinsic),
        I::StoreSsboIr3 => store_ssbo(ctx, intrinsic),
        I::GetSsboSize => ssbo_size(ctx, intrinsic),
        I::LoadUboVec4 => load_ubo(ctx, intrinsic),
        I::CopyUboToUniformIr3 => copy_ubo(ctx, intrinsic),
        I::CopyPushConstToUniformIr3 => copy_push_constants(ctx, intrinsic),
        I::LoadShared => load_local(ctx, intrinsic, AddressSpace::Shared),
        I::LoadScratch => load_local(ctx, intrinsic, AddressSpace::Scratch),
        I::StoreShared => store_local(ctx, intrinsic, AddressSpace::Shared),
        I::StoreScratch => store_local(ctx, intrinsic, AddressSpace::Scratch),
        I::LoadGlobalIr3 => load_global(ctx, intrinsic),
        I::StoreGlobalIr3 => store_global(ctx, intrinsic),
        // Prefetches a descriptor: has no effect on values.
        I::PrefetchUboIr3 => Ok(()),
        I::LoadSsbo | I::StoreSsbo | I::LoadUbo | I::LoadGlobal | I::StoreGlobal | I::LoadGlobalConstant => {
            Err(ctx.unsupported("only its form with ir3's offsets is supported"))
        }
        _ => Err(ctx.unsupported("not supported")),
    }
}

/// Returns true if an access is neither dropped nor merged with another one: it is volatile, or coherent and not
/// reorderable.
pub(super) fn is_volatile(intrinsic: &Intrinsic) -> bool {
    let access = intrinsic.indices.get(IndexKind::Access).map(|_| intrinsic.indices.access());
    access.is_some_and(|access| {
        access.contains(Access::VOLATILE) || access & (Access::COHERENT | Access::REORDERABLE) == Access::COHERENT
    })
}

/// Returns true if a load may go through the texture unit's cache.
pub(super) fn may_be_cached(access: Access) -> bool {
    access & (Access::REORDERABLE | Access::VOLATILE) == Access::REORDERABLE
}

/// Marks the accesses among all instructions from number `first` on as volatile.
pub(super) fn mark_volatile(ctx: &mut Context<'_>, first: usize) {
    for (_, data) in ctx.program.instrs.iter_mut().skip(first) {
        if let Attrs::Memory(memory) = &mut data.attrs {
            memory.volatile = true;
        }
    }
}

// Shared by the modules for memory.

/// The descriptor set and the index of a nir handle.
pub(super) fn bindless(ctx: &Context<'_>, def: nir::Def) -> (Option<u32>, nir::Def) {
    match ctx.producer(def) {
        nir::InstrData::Intrinsic(intrinsic) if intrinsic.op == IntrinsicOp::BindlessResourceIr3 => {
            (Some(intrinsic.indices.desc_set()), intrinsic.srcs[0])
        }
        _ => (None, def),
    }
}

/// The descriptor set of an instruction: three bits.
pub(super) fn set_field(ctx: &Context<'_>, set: Option<u32>) -> Result<Option<u8>, SelectError> {
    match set {
        Some(_) if ctx.target.generation < Generation::A6xx => {
            Err(ctx.unsupported(format!("{} has no bindless resources", ctx.target)))
        }
        Some(set) if set >= 8 => Err(ctx.unsupported(format!("descriptor set {set} does not exist"))),
        set => Ok(set.map(|set| set as u8)),
    }
}

/// The handle of a buffer or image.
pub(super) fn handle(ctx: &mut Context<'_>, def: nir::Def, access: Access) -> Result<Handle, SelectError> {
    let (set, index) = bindless(ctx, def);
    let set = set_field(ctx, set)?;
    let index = match ctx.constant(index, 0) {
        Some(index) if index < 256 => Src::immediate(index as u32, false),
        _ => ctx.scalar(index, 0),
    };
    Ok(Handle { set, index, nonuniform: access.contains(Access::NON_UNIFORM) })
}

/// Appends a load into `components` registers.
pub(super) fn push_load(ctx: &mut Context<'_>, data: InstrData, class: RegClass, components: u8) -> Values {
    let instr = ctx.push(data);
    let mask = WriteMask::first(u32::from(components));
    let value = ctx.builder().add_dst(instr, class, mask);
    parts(ctx, value, mask)
}

/// The components of a vector value that are in a mask, as scalars.
pub(super) fn parts(ctx: &mut Context<'_>, value: Value, mask: WriteMask) -> Values {
    let data = &ctx.program.values[value];
    let (class, components) = (data.class, data.components);
    if components == 1 {
        return Values::from_slice(&[value]);
    }
    let src = ctx.src(value);
    let written = (0..components).filter(|&i| mask.contains(u32::from(i)));
    written.map(|offset| ctx.builder().define(Opcode::Split, class, 1, &[src], Attrs::Split { offset })).collect()
}

/// Appends an instruction with an effect besides its result.
pub(super) fn push_effect(ctx: &mut Context<'_>, data: InstrData) -> Instr {
    let instr = ctx.push(data);
    let block = ctx.block;
    ctx.program.blocks[block].keeps.push(instr);
    instr
}

/// The type of the elements for components of `bits` bits, and the elements per component. 64 bits are two elements.
fn elements_of(ctx: &Context<'_>, bits: u8) -> Result<(Type, u8), SelectError> {
    match bits {
        8 => Ok((Type::U8, 1)),
        16 => Ok((Type::U16, 1)),
        32 => Ok((Type::U32, 1)),
        64 => Ok((Type::U32, 2)),
        _ => Err(ctx.unsupported(format!("memory has no elements of {bits} bits"))),
    }
}

/// A sum of a register and a constant.
pub(super) fn add(ctx: &mut Context<'_>, src: Src, constant: i32) -> Src {
    if constant == 0 {
        return src;
    }
    let constant = ctx.small(constant as u32, false);
    ctx.alu_src(Opcode::AddU, RegClass::FULL, &[src, constant])
}

/// An offset: a register plus a constant.
#[derive(Clone, Copy)]
struct Offset {
    register: Option<Src>,
    constant: i32,
}

/// The offset of an SSBO access of `bits` bits, in elements; 64 bits are two elements, and nir counts halves of these.
fn ssbo_offset(ctx: &mut Context<'_>, def: nir::Def, base: i32, bits: u8) -> Offset {
    if let Some(constant) = ctx.constant(def, 0) {
        let sum = (constant as u32).wrapping_add_signed(base);
        let elements = if bits == 64 { sum >> 1 } else { sum };
        return Offset { register: None, constant: elements as i32 };
    }
    let src = ctx.scalar(def, 0);
    if bits != 64 {
        return Offset { register: Some(src), constant: base };
    }
    let src = add(ctx, src, base);
    let words = ctx.alu_src(Opcode::ShrB, RegClass::FULL, &[src, Src::immediate(1, false)]);
    Offset { register: Some(words), constant: 0 }
}

/// An offset plus `first` elements, as a register and a non-negative immediate below `limit` (a power of two). For a
/// constant, the immediate takes as many low bits as fit, so that adjacent accesses share the register.
fn split_offset(ctx: &mut Context<'_>, offset: Offset, first: u8, limit: i32) -> (Src, i32) {
    let constant = offset.constant.wrapping_add(first.into());
    match offset.register {
        None => {
            let low = constant & (limit - 1);
            (ctx.immediate((constant - low) as u32, false), low)
        }
        Some(src) if (0..limit).contains(&constant) => (src, constant),
        Some(src) => (add(ctx, src, constant), 0),
    }
}

/// Runs of a mask of at most `longest` elements: first element, count.
fn runs(mask: u32, components: u8, longest: u8) -> impl Iterator<Item = (u8, u8)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        while next < components && mask >> next & 1 == 0 {
            next += 1;
        }
        let first = next;
        while next < components && next - first < longest && mask >> next & 1 != 0 {
            next += 1;
        }
        (next > first).then_some((first, next - first))
    })
}

/// The components that are stored: all of them if the intrinsic has no mask.
fn write_mask(intrinsic: &Intrinsic) -> u32 {
    match intrinsic.indices.get(IndexKind::WriteMask) {
        Some(_) => u32::from(intrinsic.indices.write_mask()),
        None => u32::MAX,
    }
}

/// A load in runs of at most `longest` elements; `one` builds the access for a run, given its first element.
fn load_runs(
    ctx: &mut Context<'_>,
    def: nir::Def,
    longest: u8,
    mut one: impl FnMut(&mut Context<'_>, u8, MemoryElements) -> Result<InstrData, SelectError>,
) -> Result<(), SelectError> {
    let bits = ctx.bits(def);
    let (ty, each) = elements_of(ctx, bits)?;
    let class = ctx.class(bits);
    let mut values = Values::new();
    for (first, count) in runs(u32::MAX, ctx.components(def) * each, longest) {
        let data = one(ctx, first, MemoryElements { ty, components: count })?;
        values.extend(push_load(ctx, data, class, count));
    }
    ctx.define(def, &values);
    Ok(())
}

/// A store in runs of at most `longest` elements.
fn store_runs(
    ctx: &mut Context<'_>,
    value: nir::Def,
    mask: u32,
    longest: u8,
    mut one: impl FnMut(&mut Context<'_>, u8, Src, MemoryElements) -> Result<InstrData, SelectError>,
) -> Result<(), SelectError> {
    let (ty, each) = elements_of(ctx, ctx.bits(value))?;
    let words = ctx.vector(value);
    let mask = match each {
        1 => mask,
        _ => (0..16).filter(|i| mask >> i & 1 != 0).fold(0, |wide, i| wide | 3 << (2 * i)),
    };
    for (first, count) in runs(mask, words.len() as u8, longest) {
        let run = usize::from(first)..usize::from(first + count);
        let src = ctx.collect(&words[run]);
        let data = one(ctx, first, src, MemoryElements { ty, components: count })?;
        push_effect(ctx, data);
    }
    Ok(())
}

// Storage buffers.

/// Refuses SSBO accesses that the GPU does not support; returns the maximum number of elements per access.
pub(super) fn check_ssbo(ctx: &Context<'_>, bits: u8) -> Result<u8, SelectError> {
    match (ctx.target.generation, bits) {
        (Generation::A3xx, _) => Err(ctx.unsupported("a3xx has no storage buffers")),
        (Generation::A4xx | Generation::A5xx, 8 | 16) => {
            Err(ctx.unsupported(format!("{} has no storage buffers of {bits}-bit elements", ctx.target)))
        }
        // An 8-bit access accesses an 8-bit texel.
        (_, 8) => Ok(1),
        _ => Ok(MAX_ELEMENTS),
    }
}

/// The location of an SSBO access from a6xx on.
fn element(ctx: &mut Context<'_>, offset: Offset, first: u8) -> Location {
    let limit = if ctx.target.has_ssbo_imm_offsets { 1 << 7 } else { 1 };
    let (src, immediate) = split_offset(ctx, offset, first, limit);
    Location::Element(src, immediate as u32)
}

/// The byte offset of an SSBO access below a6xx in the machine's format: nir's plus `extra` bytes.
pub(super) fn old_bytes(
    ctx: &mut Context<'_>,
    buffer: nir::Def,
    byte_offset: nir::Def,
    extra: i32,
) -> Result<Src, SelectError> {
    let bytes = ctx.scalar(byte_offset, 0);
    let bytes = add(ctx, bytes, extra);
    old_address(ctx, buffer, bytes)
}

/// The byte offset of element `first` of an SSBO access relative to nir's byte offset.
fn extra_bytes(base: i32, bits: u8, first: u8, ty: Type) -> i32 {
    base.wrapping_mul(ssbo_offset_unit(bits).into()).wrapping_add(i32::from(first) * i32::from(ty.bits() / 8))
}

/// A byte offset in an SSBO in the format of a4xx and a5xx.
fn old_address(ctx: &mut Context<'_>, buffer: nir::Def, bytes: Src) -> Result<Src, SelectError> {
    if ctx.target.generation == Generation::A4xx {
        let start = old_constant(ctx, buffer, 0, 0)?;
        Ok(ctx.alu_src(Opcode::AddU, RegClass::FULL, &[start, bytes]))
    } else {
        let high = ctx.immediate(0, false);
        Ok(ctx.collect(&[bytes, high]))
    }
}

/// The constant with the address of a buffer (word 0, a4xx) or an attribute of the image after `first` buffers.
pub(super) fn old_constant(ctx: &mut Context<'_>, buffer: nir::Def, first: u32, word: u32) -> Result<Src, SelectError> {
    let index = ctx.constant(buffer, 0).map(|index| (index as u32).saturating_add(first)).filter(|&index| index < 64);
    let index =
        index.ok_or_else(|| ctx.unsupported(format!("{} requires a constant number of the buffer", ctx.target)))?;
    Ok(ctx.resource_param(index as u16, word as u16))
}

/// Refuses an access whose text has another unit of its offset than [`ssbo_offset_unit`], or a byte offset of an
/// unknown unit.
pub(super) fn check_unit(ctx: &Context<'_>, intrinsic: &Intrinsic, bits: u8) -> Result<(), SelectError> {
    match intrinsic.indices.offset_shift() {
        Some(_) if ctx.target.generation < Generation::A6xx => {
            Err(ctx.unsupported(format!("{} needs the byte offset, whose unit is not known", ctx.target)))
        }
        Some(shift) if 1 << shift != ssbo_offset_unit(bits) => {
            Err(ctx.unsupported(format!("its offset is in units of {} bytes", 1 << shift)))
        }
        _ => Ok(()),
    }
}

fn load_ssbo(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let Some(def) = intrinsic.def else { return Ok(()) };
    let (buffer, byte_offset) = (intrinsic.srcs[0], intrinsic.srcs[1]);
    let base = intrinsic.indices.base();
    let access = intrinsic.indices.access();
    let bits = ctx.bits(def);
    check_unit(ctx, intrinsic, bits)?;
    let longest = check_ssbo(ctx, bits)?;
    let offset = ssbo_offset(ctx, intrinsic.srcs[2], base, bits);
    if ctx.target.generation < Generation::A6xx {
        return load_runs(ctx, def, longest, |ctx, first, elements| {
            let handle = handle(ctx, buffer, access)?;
            let location = Location::Element(split_offset(ctx, offset, first, 1).0, 0);
            let bytes = old_bytes(ctx, buffer, byte_offset, extra_bytes(base, bits, first, elements.ty))?;
            Ok(build::resource(Opcode::Ldgb, handle, location, elements, &[(Role::Bytes, bytes)]))
        });
    }
    // A reorderable buffer can be read through the texture unit's cache if the descriptor exists: the sets of bindless
    // resources have both; bound SSBOs and textures have different indices.
    let (set, index) = bindless(ctx, buffer);
    let texture = may_be_cached(access) && ctx.target.has_isam_ssbo && !(bits == 8 && ctx.target.storage_8bit);
    if let (true, Some(set)) = (texture, set)
        && (ctx.target.has_isam_v || (ctx.components(def) == 1 && bits != 64))
    {
        let set = set_field(ctx, Some(set))?;
        let nonuniform = access.contains(Access::NON_UNIFORM);
        return load_runs(ctx, def, longest, |ctx, first, elements| {
            let vector = ctx.target.has_isam_v;
            let limit = if vector { 1 << 8 } else { 1 };
            let (mut address, immediate) = split_offset(ctx, offset, first, limit);
            if !vector {
                let zero = ctx.immediate(0, false);
                address = ctx.collect(&[address, zero]);
            }
            let handle = texel_handle(ctx, set, index)?;
            let mut data = build::isam_ssbo(handle, address, vector, immediate as u32, elements.ty);
            data.flags.set(InstrFlags::NONUNIFORM, nonuniform);
            Ok(data)
        });
    }
    load_runs(ctx, def, longest, |ctx, first, elements| {
        let handle = handle(ctx, buffer, access)?;
        let location = element(ctx, offset, first);
        Ok(build::resource(Opcode::Ldib, handle, location, elements, &[]))
    })
}

/// The handle of a bindless buffer or image for the texture unit, without a sampler.
pub(super) fn texel_handle(
    ctx: &mut Context<'_>,
    set: Option<u8>,
    index: nir::Def,
) -> Result<TextureHandle, SelectError> {
    Ok(match ctx.constant(index, 0) {
        Some(texture) if texture < 16 => TextureHandle::Fixed { set, texture: texture as u16, sampler: 0 },
        _ => {
            let texture = ctx.scalar(index, 0);
            let sampler = ctx.immediate(0, false);
            TextureHandle::Pair { set, pair: ctx.collect(&[texture, sampler]), sampler_set: None }
        }
    })
}

fn store_ssbo(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let [value, buffer, byte_offset, offset] = intrinsic.srcs[..] else {
        return Err(ctx.unsupported("it has the wrong number of sources"));
    };
    let base = intrinsic.indices.base();
    let access = intrinsic.indices.access();
    let bits = ctx.bits(value);
    check_unit(ctx, intrinsic, bits)?;
    let longest = check_ssbo(ctx, bits)?;
    let offset = ssbo_offset(ctx, offset, base, bits);
    let old = ctx.target.generation < Generation::A6xx;
    store_runs(ctx, value, write_mask(intrinsic), longest, |ctx, first, data, elements| {
        let handle = handle(ctx, buffer, access)?;
        if old {
            let location = Location::Element(split_offset(ctx, offset, first, 1).0, 0);
            let bytes = old_bytes(ctx, buffer, byte_offset, extra_bytes(base, bits, first, elements.ty))?;
            let operands = [(Role::Data, data), (Role::Bytes, bytes)];
            Ok(build::resource(Opcode::Stgb, handle, location, elements, &operands))
        } else {
            let location = element(ctx, offset, first);
            Ok(build::resource(Opcode::Stib, handle, location, elements, &[(Role::Data, data)]))
        }
    })
}

fn ssbo_size(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let Some(def) = intrinsic.def else { return Ok(()) };
    check_ssbo(ctx, 32)?;
    let handle = handle(ctx, intrinsic.srcs[0], intrinsic.indices.access())?;
    // Below a6xx the size is returned in two halves.
    let halves = ctx.target.generation < Generation::A6xx;
    let parts = push_load(ctx, build::resinfo(handle, AddressSpace::Ssbo, 1, halves), RegClass::FULL, 3);
    let mut size = parts[0];
    if halves {
        let (low, high) = (ctx.src(parts[0]), ctx.src(parts[1]));
        let high = ctx.alu_src(Opcode::ShlB, RegClass::FULL, &[high, Src::immediate(16, false)]);
        size = ctx.alu(Opcode::AddU, RegClass::FULL, &[high, low]);
    }
    ctx.define(def, &[size]);
    Ok(())
}

// Uniform buffers.

fn load_ubo(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let Some(def) = intrinsic.def else { return Ok(()) };
    if ctx.target.generation < Generation::A6xx {
        return Err(ctx.unsupported(format!("{} has no instruction that reads uniform buffers", ctx.target)));
    }
    if ctx.bits(def) < 32 {
        return Err(ctx.unsupported(format!("uniform buffers have no {}-bit elements", ctx.bits(def))));
    }
    let (buffer, offset) = (intrinsic.srcs[0], intrinsic.srcs[1]);
    let access = intrinsic.indices.access();
    let (base, component) = (intrinsic.indices.base(), intrinsic.indices.component());
    if (u32::from(component) + u32::from(ctx.components(def))) * u32::from(ctx.bits(def)) > 128 {
        return Err(ctx.unsupported("it reads more than one vec4"));
    }
    let component = if ctx.bits(def) == 64 { component * 2 } else { component };
    load_runs(ctx, def, MAX_ELEMENTS, |ctx, first, elements| {
        let handle = handle(ctx, buffer, access)?;
        let vec4 = ctx.scalar(offset, 0);
        let vec4 = add(ctx, vec4, base);
        Ok(build::ldc(handle, vec4, component + first, elements))
    })
}

/// The offset counts vec4s of the buffer, the base words of the constant file, and the range vec4s.
fn copy_ubo(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    if ctx.target.generation < Generation::A6xx {
        return Err(ctx.unsupported(format!("{} has no instruction that reads uniform buffers", ctx.target)));
    }
    let (base, range) = (i64::from(intrinsic.indices.base()), intrinsic.indices.range());
    let count = u16::try_from(range).ok().filter(|count| (1..=MemoryAction::MAX_COPY).contains(count));
    let count = count.ok_or_else(|| ctx.unsupported(format!("{range} vec4s are no copy of one instruction")))?;
    if base < 0 || base + 4 * i64::from(count) > i64::from(CONST_WORDS) {
        return Err(ctx.unsupported("the words are outside of the constant file"));
    }
    if let Some(stored) = &mut ctx.stored_consts {
        stored.push(base..base + 4 * i64::from(count));
    }
    let handle = handle(ctx, intrinsic.srcs[0], Access::empty())?;
    let vec4 = match ctx.constant(intrinsic.srcs[1], 0) {
        Some(vec4) if vec4 < 256 => Src::immediate(vec4 as u32, false),
        _ => ctx.scalar(intrinsic.srcs[1], 0),
    };
    let a1 = ctx.address_1(base as u16);
    push_effect(ctx, build::ldc_k(handle, vec4, a1, count));
    Ok(())
}

/// The same preamble may read the words: reads wait for `stsc` by `(ss)` (`legalize/sync.rs`).
fn copy_push_constants(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    if ctx.target.generation < Generation::A7xx {
        return Err(ctx.unsupported(format!("{} has no instruction that copies push constants", ctx.target)));
    }
    let (base, range) = (intrinsic.indices.base(), intrinsic.indices.range());
    let to = ctx.constant(intrinsic.srcs[0], 0).and_then(|to| u32::try_from(to).ok());
    let to = to.ok_or_else(|| ctx.unsupported("its offset is not constant"))?;
    // The fields of the instruction are those of words in the constant file.
    if !(0..256).contains(&base) || range == 0 || u64::from(to) + u64::from(range) > 256 {
        return Err(ctx.unsupported("the words are outside of the range that one instruction copies"));
    }
    let attrs = Attrs::PushConsts { dst: to, src: base as u32, size: range };
    push_effect(ctx, InstrData { attrs, ..InstrData::new(Opcode::PushConstsLoadMacro) });
    Ok(())
}

// Shared and scratch memory.

/// An address in shared or scratch memory: a register and an immediate.
fn local_address(ctx: &mut Context<'_>, address: nir::Def, offset: i32) -> (Src, i32) {
    let src = ctx.scalar(address, 0);
    let fits = (-LOCAL_OFFSET_LIMIT..LOCAL_OFFSET_LIMIT).contains(&offset);
    if fits { (src, offset) } else { (add(ctx, src, offset), 0) }
}

fn check_local(ctx: &Context<'_>, space: AddressSpace) -> Result<(), SelectError> {
    if space == AddressSpace::Scratch && !ctx.target.pvtmem {
        return Err(ctx.unsupported(format!("{} has no private memory", ctx.target)));
    }
    Ok(())
}

fn load_local(ctx: &mut Context<'_>, intrinsic: &Intrinsic, space: AddressSpace) -> Result<(), SelectError> {
    let Some(def) = intrinsic.def else { return Ok(()) };
    check_local(ctx, space)?;
    let address = intrinsic.srcs[0];
    let base = intrinsic.indices.base();
    load_runs(ctx, def, MAX_ELEMENTS, |ctx, first, elements| {
        let offset = base.wrapping_add(i32::from(first) * i32::from(elements.ty.bits() / 8));
        let (src, offset) = local_address(ctx, address, offset);
        Ok(build::local_load(space, src, offset, elements))
    })
}

fn store_local(ctx: &mut Context<'_>, intrinsic: &Intrinsic, space: AddressSpace) -> Result<(), SelectError> {
    check_local(ctx, space)?;
    let (value, address) = (intrinsic.srcs[0], intrinsic.srcs[1]);
    let base = intrinsic.indices.base();
    store_runs(ctx, value, write_mask(intrinsic), MAX_ELEMENTS, |ctx, first, data, elements| {
        let offset = base.wrapping_add(i32::from(first) * i32::from(elements.ty.bits() / 8));
        let (src, offset) = local_address(ctx, address, offset);
        Ok(build::local_store(space, src, offset, data, elements))
    })
}

// Global memory.

/// Both words of a 64-bit address, which is a vector of two in nir.
pub(super) fn global_address(ctx: &mut Context<'_>, address: nir::Def) -> Result<[Src; 2], SelectError> {
    if ctx.target.generation < Generation::A6xx {
        return Err(ctx.unsupported(format!("{} has no global memory", ctx.target)));
    }
    match ctx.vector(address)[..] {
        [low, high] => Ok([low, high]),
        _ => Err(ctx.unsupported("its address is not of two words")),
    }
}

/// A 64-bit address plus a number of bytes.
pub(super) fn advance(ctx: &mut Context<'_>, words: [Src; 2], bytes: i32) -> Src {
    let [low, high] = words;
    if bytes == 0 {
        return ctx.collect(&[low, high]);
    }
    let sum = add(ctx, low, bytes);
    // Two's complement: adding a positive number carries if the sum is smaller, a negative one borrows unless it is.
    let carry = ctx.compare_src(Opcode::CmpsU, Condition::Lt, sum, low);
    let carry = ctx.widened(carry);
    let mut high = ctx.alu_src(Opcode::AddU, RegClass::FULL, &[high, carry]);
    if bytes < 0 {
        high = add(ctx, high, -1);
    }
    ctx.collect(&[sum, high])
}

/// An access to the component `bytes` after the first one, at an offset that nir counts in words: an immediate if it is
/// a constant of less than `limit` words. `opcodes` are the instructions with an immediate and with an index.
fn global(
    ctx: &mut Context<'_>,
    opcodes: [Opcode; 2],
    (words, offset): ([Src; 2], nir::Def),
    (first, limit): (u8, i32),
    data: Option<Src>,
    elements: MemoryElements,
) -> InstrData {
    let bytes = i32::from(first) * i32::from(elements.ty.bits() / 8);
    let constant = ctx.constant(offset, 0).map(|words| words as u32 as i32);
    let immediate = constant.filter(|&words| -limit < words && words < limit).map(|words| words * 4 + bytes);
    let mut operands: SmallVec<[(Role, Src); 3]> = data.map(|data| (Role::Data, data)).into_iter().collect();
    if let Some(total) = immediate.filter(|&total| total < limit * 4) {
        let base = ctx.collect(&words);
        operands.extend([(Role::Base, base), (Role::Offset, Src::immediate(total as u32, false))]);
        return build::memory(opcodes[0], elements, &operands);
    }
    let base = advance(ctx, words, bytes);
    let mut index = ctx.scalar(offset, 0);
    // From a7xx on the index is in bytes.
    let is_in_words = ctx.target.generation == Generation::A6xx;
    if !is_in_words {
        index = ctx.alu_src(Opcode::ShlB, RegClass::FULL, &[index, Src::immediate(2, false)]);
    }
    operands.extend([(Role::Base, base), (Role::Index, index)]);
    let index_unit = Some(if is_in_words { 4 } else { 1 });
    build::memory(opcodes[1], MemoryAttrs { index_unit, ..elements.into() }, &operands)
}

fn load_global(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let Some(def) = intrinsic.def else { return Ok(()) };
    let address = global_address(ctx, intrinsic.srcs[0])?;
    let offset = intrinsic.srcs[1];
    load_runs(ctx, def, MAX_ELEMENTS, |ctx, first, elements| {
        Ok(global(ctx, [Opcode::Ldg, Opcode::LdgA], (address, offset), (first, 1 << 8), None, elements))
    })
}

fn store_global(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let value = intrinsic.srcs[0];
    let address = global_address(ctx, intrinsic.srcs[1])?;
    let offset = intrinsic.srcs[2];
    store_runs(ctx, value, u32::MAX, MAX_ELEMENTS, |ctx, first, data, elements| {
        Ok(global(ctx, [Opcode::Stg, Opcode::StgA], (address, offset), (first, 1 << 10), Some(data), elements))
    })
}
