//! Inputs: vertex attributes and varyings.
//!
//! An attribute is in registers when the program starts. A varying is interpolated by `bary.f` at barycentric
//! coordinates, or read without interpolation by `flat.b` or `ldlv`, depending on the target; its index is four times
//! its base, plus its component.

use super::SelectError;
use super::context::Context;
use crate::ir3::access::build::{self, MemoryElements};
use crate::ir3::opcode::Role;
use crate::ir3::{InputKind, Opcode, RegClass, Src, SrcOperand, SystemValue, Type, Value, WriteMask};
use crate::nir::{Def, InstrData as NirInstr, InterpMode, Intrinsic, IntrinsicOp, Stage};
use crate::target::FlatVaryings;

/// Translates one intrinsic of this module.
pub(super) fn emit(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let Some(def) = intrinsic.def else { return Ok(()) };
    match (intrinsic.op, &intrinsic.srcs[..]) {
        (IntrinsicOp::LoadInput, &[offset]) => match ctx.shader.stage {
            Stage::Vertex => attribute(ctx, intrinsic, def, offset),
            Stage::Fragment => varying(ctx, intrinsic, def, None, offset),
            _ => Err(ctx.unsupported("an input of this stage")),
        },
        (IntrinsicOp::LoadInterpolatedInput, &[coordinates, offset]) => {
            varying(ctx, intrinsic, def, Some(coordinates), offset)
        }
        (IntrinsicOp::LoadPerspCenterRhwIr3, _) => {
            let value = ctx.system_value(SystemValue::BarycentricCenterRhw, RegClass::FULL, 1);
            ctx.define(def, &[value]);
            Ok(())
        }
        _ => {
            let Some(kind) = barycentric(intrinsic) else {
                return Err(ctx.unsupported("not supported"));
            };
            let mode = intrinsic.indices.interp_mode();
            if matches!(mode, InterpMode::Flat | InterpMode::Explicit) {
                return Err(ctx.unsupported(format!("{} has no coordinates", mode.name())));
            }
            let value = ctx.system_value(kind, RegClass::FULL, 2);
            let components = ctx.split_input(value);
            ctx.define(def, &components);
            Ok(())
        }
    }
}

/// The barycentric coordinates that an intrinsic loads.
fn barycentric(intrinsic: &Intrinsic) -> Option<SystemValue> {
    use SystemValue::*;
    let linear = intrinsic.indices.interp_mode() == InterpMode::NoPerspective;
    Some(match (intrinsic.op, linear) {
        (IntrinsicOp::LoadBarycentricPixel, false) => BarycentricPixel,
        (IntrinsicOp::LoadBarycentricPixel, true) => BarycentricPixelLinear,
        (IntrinsicOp::LoadBarycentricCentroid, false) => BarycentricCentroid,
        (IntrinsicOp::LoadBarycentricCentroid, true) => BarycentricCentroidLinear,
        (IntrinsicOp::LoadBarycentricSample, false) => BarycentricSample,
        (IntrinsicOp::LoadBarycentricSample, true) => BarycentricSampleLinear,
        _ => return None,
    })
}

fn attribute(ctx: &mut Context<'_>, intrinsic: &Intrinsic, def: Def, offset: Def) -> Result<(), SelectError> {
    let Some(offset) = ctx.constant(offset, 0) else {
        return Err(ctx.unsupported("the offset is not a constant"));
    };
    let bits = ctx.bits(def);
    if !matches!(bits, 16 | 32) {
        return Err(ctx.unsupported(format!("an attribute of {bits} bits")));
    }
    let class = ctx.class(bits);
    let first = intrinsic.indices.component();
    for i in 0..ctx.components(def) {
        let component = first + i;
        let base = i64::from(intrinsic.indices.base()) + i64::from(offset as u32) + i64::from(component / 4);
        let Ok(base) = u16::try_from(base) else {
            return Err(ctx.unsupported("the location is out of range"));
        };
        let component = component % 4;
        let value = ctx.input(InputKind::Attribute { base, component }, class, 1);
        if ctx.program.values[value].class != class {
            let component = char::from(b"xyzw"[usize::from(component)]);
            return Err(
                ctx.unsupported(format!("attribute {base}.{component} has 16 bits in one load and 32 in another"))
            );
        }
        ctx.set(def, i, value);
    }
    Ok(())
}

fn varying(
    ctx: &mut Context<'_>,
    intrinsic: &Intrinsic,
    def: Def,
    coordinates: Option<Def>,
    offset: Def,
) -> Result<(), SelectError> {
    let bits = ctx.bits(def);
    if !matches!(bits, 16 | 32) {
        return Err(ctx.unsupported(format!("a varying of {bits} bits")));
    }
    let class = ctx.class(bits);
    let base = 4 * i64::from(intrinsic.indices.base()) + i64::from(intrinsic.indices.component());
    let (base, offset) = match ctx.constant(offset, 0) {
        Some(constant) => (base + 4 * i64::from(constant as u32), None),
        None => {
            let offset = ctx.scalar(offset, 0);
            (base, Some(ctx.bin(Opcode::ShlB, offset, Src::immediate(2, offset.class.half))))
        }
    };
    let Ok(base) = u32::try_from(base) else {
        return Err(ctx.unsupported("the location is out of range"));
    };
    let coordinates = coordinates.map(|def| coordinate_pair(ctx, def));
    for component in 0..ctx.components(def) {
        let number = base + u32::from(component);
        let number = match offset {
            None => ctx.small(number, false),
            Some(offset) => {
                let offset = ctx.widened(offset);
                let number = ctx.small(number, false);
                ctx.bin(Opcode::AddU, offset, number)
            }
        };
        let value = match coordinates {
            Some(pair) => ctx.alu(Opcode::BaryF, class, &[number, pair]),
            None => flat(ctx, class, number)?,
        };
        ctx.set(def, component, value);
    }
    Ok(())
}

/// One component of a varying that is not interpolated.
fn flat(ctx: &mut Context<'_>, class: RegClass, number: Src) -> Result<Value, SelectError> {
    match ctx.target.flat_varyings {
        FlatVaryings::Instruction => Ok(ctx.alu(Opcode::FlatB, class, &[number, number])),
        FlatVaryings::LocalMemory => {
            if !matches!(number.operand, SrcOperand::Immediate(_)) {
                return Err(ctx.unsupported("`ldlv` has no computed offset"));
            }
            let ty = if class.half { Type::U16 } else { Type::U32 };
            let element = MemoryElements { ty, components: 1 };
            let instr = ctx.push(build::memory(Opcode::Ldlv, element, &[(Role::Offset, number)]));
            Ok(ctx.builder().add_dst(instr, class, WriteMask::SCALAR))
        }
        // The driver sets the varyings to be flat that nir reads so: `bary.f` returns them unchanged.
        FlatVaryings::Interpolated if class.half => Err(ctx.unsupported("a half that is not interpolated")),
        FlatVaryings::Interpolated => {
            let value = ctx.system_value(SystemValue::BarycentricPixel, RegClass::FULL, 2);
            let pair = ctx.src(value);
            Ok(ctx.alu(Opcode::BaryF, class, &[number, pair]))
        }
    }
}

/// Barycentric coordinates as one source: the input itself if they are one.
fn coordinate_pair(ctx: &mut Context<'_>, def: Def) -> Src {
    if let NirInstr::Intrinsic(intrinsic) = ctx.producer(def)
        && let Some(kind) = barycentric(intrinsic)
    {
        let value = ctx.system_value(kind, RegClass::FULL, 2);
        return ctx.src(value);
    }
    let mut pair = ctx.collect_def(def);
    pair.mask = WriteMask::first(2);
    pair
}
