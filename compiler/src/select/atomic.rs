//! Atomics on every kind of memory.

use super::SelectError;
use super::context::{Context, Srcs};
use super::{image, memory};
use crate::ir3::access::build::{self, AtomicOperand, Handle, Location};
use crate::ir3::access::{AtomicFamily, AtomicOp};
use crate::ir3::opcode::Role;
use crate::ir3::{InstrData, Opcode, RegClass, Src, WriteMask};
use crate::nir::{self, Intrinsic, IntrinsicOp};
use crate::target::Generation;

/// Translates one intrinsic of this module.
pub(super) fn emit<'a>(ctx: &mut Context<'a>, intrinsic: &'a Intrinsic) -> Result<(), SelectError> {
    use IntrinsicOp as I;
    let op = operation(ctx, intrinsic)?;
    match intrinsic.op {
        I::SharedAtomic | I::SharedAtomicSwap => shared(ctx, intrinsic, op),
        I::GlobalAtomicIr3 | I::GlobalAtomicSwapIr3 => global(ctx, intrinsic, op),
        I::SsboAtomicIr3 | I::SsboAtomicSwapIr3 => ssbo(ctx, intrinsic, op),
        I::ImageAtomic | I::ImageAtomicSwap | I::BindlessImageAtomic | I::BindlessImageAtomicSwap => {
            texel(ctx, intrinsic, op)
        }
        _ => Err(ctx.unsupported("only its form with ir3's offsets is supported")),
    }
}

fn operation(ctx: &Context<'_>, intrinsic: &Intrinsic) -> Result<AtomicOp, SelectError> {
    use nir::AtomicOp as N;
    let op = intrinsic.indices.atomic_op();
    let bits = intrinsic.def.map_or(32, |def| ctx.bits(def));
    let selected = match op {
        N::Iadd => AtomicOp::Add,
        N::Imin => AtomicOp::MinS,
        N::Umin => AtomicOp::MinU,
        N::Imax => AtomicOp::MaxS,
        N::Umax => AtomicOp::MaxU,
        N::Iand => AtomicOp::And,
        N::Ior => AtomicOp::Or,
        N::Ixor => AtomicOp::Xor,
        N::Xchg => AtomicOp::Xchg,
        N::Cmpxchg => AtomicOp::Cmpxchg,
        _ => return Err(ctx.unsupported(format!("ir3 has no atomic `{}`", op.name()))),
    };
    match bits {
        32 => Ok(selected),
        64 if selected.is_signed() => Err(ctx.unsupported(format!("ir3 has no 64-bit atomic `{}`", op.name()))),
        64 => Ok(selected),
        _ => Err(ctx.unsupported(format!("ir3 has no {bits}-bit atomics"))),
    }
}

/// The data of an atomic as one source. For `cmpxchg`, nir's source `first` is the comparand, followed by the new
/// value.
fn operand(
    ctx: &mut Context<'_>,
    intrinsic: &Intrinsic,
    family: AtomicFamily,
    op: AtomicOp,
    first: usize,
) -> Result<AtomicOperand, SelectError> {
    let wide = intrinsic.def.is_some_and(|def| ctx.bits(def) == 64);
    let old = matches!(family, AtomicFamily::Shared | AtomicFamily::OldResource);
    if wide && old {
        return Err(ctx.unsupported("64-bit atomics are on buffers and global memory only, from a6xx on"));
    }
    // The width of the atomic is that of its result: Mesa's lowering of 64-bit atomics on shared memory leaves 64-bit
    // data, of which the low word counts.
    let mut words = |src: usize| {
        let mut words = ctx.vector(intrinsic.srcs[src]);
        words.truncate(if wide { 2 } else { 1 });
        words
    };
    let (value, compare) =
        if op == AtomicOp::Cmpxchg { (words(first + 1), words(first)) } else { (words(first), Srcs::new()) };
    let zero = ctx.immediate(0, false);
    let order = build::atomic_data_order(family, &value, &compare, zero);
    Ok(AtomicOperand { op, data: ctx.collect(&order), wide })
}

/// Appends an atomic with a separate destination.
fn finish(ctx: &mut Context<'_>, intrinsic: &Intrinsic, data: InstrData, wide: bool) {
    let instr = memory::push_effect(ctx, data);
    let mask = WriteMask::first(if wide { 2 } else { 1 });
    let value = ctx.builder().add_dst(instr, RegClass::FULL, mask);
    let parts = memory::parts(ctx, value, mask);
    define(ctx, intrinsic, &parts);
}

/// Appends an atomic whose destination is tied to its data; the old value is its first component.
fn finish_tied(ctx: &mut Context<'_>, intrinsic: &Intrinsic, data: InstrData, operand: &AtomicOperand) {
    let instr = memory::push_effect(ctx, data);
    let value = ctx.builder().add_dst(instr, RegClass::FULL, operand.data.mask);
    build::tied(&mut ctx.program.instrs[instr].dsts[0]);
    let parts = memory::parts(ctx, value, WriteMask::first(if operand.wide { 2 } else { 1 }));
    define(ctx, intrinsic, &parts);
}

fn define(ctx: &mut Context<'_>, intrinsic: &Intrinsic, parts: &[crate::ir3::Value]) {
    if let Some(def) = intrinsic.def {
        ctx.define(def, parts);
    }
}

fn atomic(family: AtomicFamily, address: (Role, Src), operand: &AtomicOperand) -> InstrData {
    build::memory(family.opcode(operand.op), operand.elements(), &[address, (Role::Operand, operand.data)])
}

/// An atomic on a buffer or an image; below a6xx with the byte offset.
fn on_resource(handle: Handle, location: Location, bytes: Option<Src>, operand: &AtomicOperand) -> InstrData {
    let (family, operands) = match bytes {
        Some(bytes) => (AtomicFamily::OldResource, &[(Role::Operand, operand.data), (Role::Bytes, bytes)][..]),
        None => (AtomicFamily::Resource, &[(Role::Tied, operand.data)][..]),
    };
    build::resource(family.opcode(operand.op), handle, location, operand.elements(), operands)
}

fn shared(ctx: &mut Context<'_>, intrinsic: &Intrinsic, op: AtomicOp) -> Result<(), SelectError> {
    let operand = operand(ctx, intrinsic, AtomicFamily::Shared, op, 1)?;
    let address = ctx.scalar(intrinsic.srcs[0], 0);
    let address = memory::add(ctx, address, intrinsic.indices.base());
    finish(ctx, intrinsic, atomic(AtomicFamily::Shared, (Role::Index, address), &operand), operand.wide);
    Ok(())
}

fn global(ctx: &mut Context<'_>, intrinsic: &Intrinsic, op: AtomicOp) -> Result<(), SelectError> {
    let words = memory::global_address(ctx, intrinsic.srcs[0])?;
    let address = memory::advance(ctx, words, intrinsic.indices.base());
    let operand = operand(ctx, intrinsic, AtomicFamily::Global, op, 1)?;
    finish(ctx, intrinsic, atomic(AtomicFamily::Global, (Role::Base, address), &operand), operand.wide);
    Ok(())
}

/// Sources: buffer, byte offset, data, element offset.
fn ssbo(ctx: &mut Context<'_>, intrinsic: &Intrinsic, op: AtomicOp) -> Result<(), SelectError> {
    let (buffer, byte_offset) = (intrinsic.srcs[0], intrinsic.srcs[1]);
    let offset = intrinsic.srcs[intrinsic.srcs.len() - 1];
    let access = intrinsic.indices.access();
    memory::check_unit(ctx, intrinsic, intrinsic.def.map_or(32, |def| ctx.bits(def)))?;
    memory::check_ssbo(ctx, 32)?;
    let handle = memory::handle(ctx, buffer, access)?;
    if ctx.target.generation < Generation::A6xx {
        let operand = operand(ctx, intrinsic, AtomicFamily::OldResource, op, 2)?;
        let bytes = memory::old_bytes(ctx, buffer, byte_offset, 0)?;
        let location = Location::Element(ctx.scalar(offset, 0), 0);
        finish(ctx, intrinsic, on_resource(handle, location, Some(bytes), &operand), false);
    } else {
        let operand = operand(ctx, intrinsic, AtomicFamily::Resource, op, 2)?;
        let location = Location::Element(ctx.scalar(offset, 0), 0);
        finish_tied(ctx, intrinsic, on_resource(handle, location, None, &operand), &operand);
    }
    Ok(())
}

/// Sources: image, coordinates, sample, data.
fn texel(ctx: &mut Context<'_>, intrinsic: &Intrinsic, op: AtomicOp) -> Result<(), SelectError> {
    image::check(ctx)?;
    image::check_handle(ctx, intrinsic)?;
    let handle = memory::handle(ctx, intrinsic.srcs[0], intrinsic.indices.access())?;
    let location = image::location(ctx, intrinsic);
    if ctx.target.generation < Generation::A6xx {
        let operand = operand(ctx, intrinsic, AtomicFamily::OldResource, op, 3)?;
        let mut bytes = image::old_offset(ctx, intrinsic)?;
        if ctx.target.generation == Generation::A5xx {
            // Atomics count words there.
            bytes = ctx.alu_src(Opcode::ShrB, RegClass::FULL, &[bytes, Src::immediate(2, false)]);
        }
        let bytes = image::old_address(ctx, bytes);
        finish(ctx, intrinsic, on_resource(handle, location, Some(bytes), &operand), false);
    } else {
        let operand = operand(ctx, intrinsic, AtomicFamily::Resource, op, 3)?;
        finish_tied(ctx, intrinsic, on_resource(handle, location, None, &operand), &operand);
    }
    Ok(())
}
