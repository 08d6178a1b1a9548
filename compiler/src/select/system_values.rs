//! System values: inputs of the program, or driver parameters in the constant file.

use super::SelectError;
use super::context::{Context, Values};
use crate::ir3::{Condition, Mods, Opcode, RegClass, Src, SystemValue, Type, Value};
use crate::nir::{Def, Intrinsic, IntrinsicOp};

/// Translates one intrinsic of this module.
pub(super) fn emit(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    use IntrinsicOp::*;
    let Some(def) = intrinsic.def else {
        return Err(ctx.unsupported("not supported"));
    };
    match intrinsic.op {
        LoadWorkgroupId => input(ctx, def, SystemValue::WorkgroupId),
        LoadLocalInvocationId => input(ctx, def, SystemValue::LocalInvocationId),
        LoadLocalInvocationIndex => input(ctx, def, SystemValue::LocalInvocationIndex),
        LoadSubgroupInvocation => input(ctx, def, SystemValue::SubgroupInvocation),
        LoadSubgroupId => input(ctx, def, SystemValue::SubgroupId),
        LoadVertexId => input(ctx, def, SystemValue::VertexId),
        LoadVertexIdZeroBase => input(ctx, def, SystemValue::VertexIdZeroBase),
        LoadInstanceId => input(ctx, def, SystemValue::InstanceId),
        LoadPrimitiveId => input(ctx, def, SystemValue::PrimitiveId),
        LoadViewIndex => input(ctx, def, SystemValue::ViewIndex),
        LoadFragShadingRate => input(ctx, def, SystemValue::FragShadingRate),
        LoadSampleId | LoadSampleIdNoPerSample => input(ctx, def, SystemValue::SampleId),
        LoadSampleMaskIn => input(ctx, def, SystemValue::SampleMaskIn),
        LoadSamplePos | LoadSamplePosOrCenter => input(ctx, def, SystemValue::SamplePos),
        LoadFrontFace => front_face(ctx, def),
        LoadHelperInvocation => helper_invocation(ctx, def),
        LoadFragCoord | LoadFragCoordUnscaledIr3 => frag_coord(ctx, def),
        LoadBaseWorkgroupId => parameter(ctx, def, SystemValue::BaseWorkgroupId),
        LoadNumWorkgroups => parameter(ctx, def, SystemValue::NumWorkgroups),
        LoadWorkgroupSize => parameter(ctx, def, SystemValue::WorkgroupSize),
        LoadSubgroupSize => parameter(ctx, def, SystemValue::SubgroupSize),
        LoadBaseVertex | LoadFirstVertex => parameter(ctx, def, SystemValue::BaseVertex),
        LoadBaseInstance => parameter(ctx, def, SystemValue::BaseInstance),
        LoadDrawId => parameter(ctx, def, SystemValue::DrawId),
        LoadIsIndexedDraw => parameter(ctx, def, SystemValue::IsIndexedDraw),
        LoadSubgroupIdShiftIr3 => parameter(ctx, def, SystemValue::SubgroupIdShift),
        LoadWorkDim => parameter(ctx, def, SystemValue::WorkDim),
        LoadFragInvocationCount => parameter(ctx, def, SystemValue::FragInvocationCount),
        LoadUserClipPlane => match u8::try_from(intrinsic.indices.ucp_id()) {
            Ok(plane) => parameter(ctx, def, SystemValue::UserClipPlane(plane)),
            Err(_) => Err(ctx.unsupported("a clip plane of that number")),
        },
        LoadKernelInput => kernel_input(ctx, intrinsic, def),
        LoadFragSizeIr3 => of_view(ctx, intrinsic, def, SystemValue::FragSize),
        LoadFragOffsetIr3 => of_view(ctx, intrinsic, def, SystemValue::FragOffset),
        _ => Err(ctx.unsupported("not supported")),
    }
}

fn check_width(ctx: &Context<'_>, def: Def) -> Result<(), SelectError> {
    match ctx.bits(def) {
        32 => Ok(()),
        bits => Err(ctx.unsupported(format!("a system value of {bits} bits"))),
    }
}

fn input(ctx: &mut Context<'_>, def: Def, kind: SystemValue) -> Result<(), SelectError> {
    check_width(ctx, def)?;
    let components = u16::from(ctx.components(def));
    let value = ctx.system_value(kind, RegClass::FULL, components);
    let components = ctx.split_input(value);
    ctx.define(def, &components);
    Ok(())
}

/// The hardware has the visible side in a half register: the front is 0.
fn front_face(ctx: &mut Context<'_>, def: Def) -> Result<(), SelectError> {
    let value = ctx.system_value(SystemValue::FrontFace, RegClass::HALF, 1);
    let (side, zero) = (ctx.src(value), ctx.immediate(0, true));
    let is_front = ctx.compare(Opcode::CmpsS, Condition::Eq, side, zero);
    boolean(ctx, def, is_front)
}

fn helper_invocation(ctx: &mut Context<'_>, def: Def) -> Result<(), SelectError> {
    let class = ctx.bool_class();
    let value = ctx.system_value(SystemValue::HelperInvocation, class, 1);
    boolean(ctx, def, value)
}

/// Defines a bool, of 1 bit or of 32.
fn boolean(ctx: &mut Context<'_>, def: Def, mut value: Value) -> Result<(), SelectError> {
    if ctx.bits(def) != 1 {
        check_width(ctx, def)?;
        let src = ctx.src(value);
        let wide = ctx.widened(src);
        value = ctx.alu(Opcode::AbsnegS, RegClass::FULL, &[wide.with_mods(Mods::NEG)]);
    }
    ctx.set(def, 0, value);
    Ok(())
}

fn parameter(ctx: &mut Context<'_>, def: Def, kind: SystemValue) -> Result<(), SelectError> {
    check_width(ctx, def)?;
    for component in 0..ctx.components(def) {
        let src = ctx.driver_param(kind, component);
        if let Some(value) = src.value() {
            ctx.set(def, component, value);
        }
    }
    Ok(())
}

/// Arguments of a kernel: base and offset are in bytes.
fn kernel_input(ctx: &mut Context<'_>, intrinsic: &Intrinsic, def: Def) -> Result<(), SelectError> {
    check_width(ctx, def)?;
    let Some(offset) = ctx.constant(intrinsic.srcs[0], 0) else {
        return Err(ctx.unsupported("the offset is not a constant"));
    };
    for component in 0..ctx.components(def) {
        let Some((value, part)) = SystemValue::kernel_input(intrinsic.indices.base(), offset as u32, component) else {
            return Err(ctx.unsupported("the offset is that of no word, or out of range"));
        };
        let src = ctx.driver_param(value, part);
        if let Some(value) = src.value() {
            ctx.set(def, component, value);
        }
    }
    Ok(())
}

/// A driver parameter per view.
fn of_view(
    ctx: &mut Context<'_>,
    intrinsic: &Intrinsic,
    def: Def,
    kind: fn(u8) -> SystemValue,
) -> Result<(), SelectError> {
    match ctx.constant(intrinsic.srcs[0], 0).map(u8::try_from) {
        Some(Ok(view)) => parameter(ctx, def, kind(view)),
        _ => Err(ctx.unsupported("the view is not a constant")),
    }
}

/// The position in the window. The hardware gives x and y in sixteenths of a pixel, as integers.
fn frag_coord(ctx: &mut Context<'_>, def: Def) -> Result<(), SelectError> {
    check_width(ctx, def)?;
    let value = ctx.system_value(SystemValue::FragCoord, RegClass::FULL, 4);
    let mut components: Values = ctx.split_input(value);
    let sixteenth = ctx.immediate(f32::to_bits(1.0 / 16.0), false);
    for component in &mut components[..2] {
        let src: Src = ctx.src(*component);
        let float = ctx.convert_src(Type::S32, Type::F32, src);
        *component = ctx.alu(Opcode::MulF, RegClass::FULL, &[float, sixteenth]);
    }
    ctx.define(def, &components);
    Ok(())
}
