//! System values: their values in a run, and the intrinsics of nir that load them.

use ir3_compiler::ir3::SystemValue;
use ir3_compiler::nir::IntrinsicOp;

use super::{Env, EnvironmentKey, Launch, fill, nice, nice_float};
use crate::arithmetic::concrete::mask;
use crate::arithmetic::rows::{LANES, Row, splat};

impl Env {
    /// Reads a component of a system value.
    ///
    /// Booleans are 0 or 1. `FragCoord` has the hardware's form: x and y in sixteenths of a pixel, as integers. Values
    /// that are given are truncated to [`system_value_bits`].
    pub fn system_value(&self, launch: Launch, value: SystemValue, component: u32, dst: &mut Row) {
        if let Some(values) = self.named(&self.system, || format!("{value:?}.{component}")) {
            fill(dst, values);
            let mask = mask(system_value_bits(value, component)) as u32;
            dst.iter_mut().for_each(|word| *word &= mask);
            return;
        }
        let tag = system_tag(value);
        let uniform = self.hash(EnvironmentKey::System, [tag, component.into(), 64]);
        let per_lane = |lane: usize| self.hash(EnvironmentKey::System, [tag, component.into(), lane as u64]);
        let [sx, sy, _] = self.workgroup_size(launch);
        let total = self.threads(launch);
        let wave = self.wave_lanes(launch);
        let subgroup = self.subgroup(launch);
        let index = |lane: usize| (subgroup * wave + lane as u32) % total;
        let axis = |component: u32| self.workgroup_size(launch)[component.min(2) as usize];
        // The pixel of a lane: an 8 × 8 square made of quads, somewhere in the window.
        let pixel = |lane: usize, axis: u32| {
            let origin = 8
                * (self.hash(EnvironmentKey::System, [system_tag(SystemValue::FragCoord), axis.into(), 64]) % 128)
                    as u32;
            let quad = lane as u32 / 4;
            if axis == 0 {
                origin + quad % 4 * 2 + (lane as u32 & 1)
            } else {
                origin + quad / 4 * 2 + (lane as u32 >> 1 & 1)
            }
        };
        let unit = |h: u64| (h as u32 >> 8) as f32 / (1 << 24) as f32;
        match value {
            SystemValue::WorkgroupId => *dst = splat((uniform % 4) as u32),
            SystemValue::BaseWorkgroupId => *dst = splat(if uniform & 3 == 0 { (uniform >> 8) as u32 % 4 } else { 0 }),
            SystemValue::NumWorkgroups => *dst = splat(4 + (uniform % 5) as u32),
            SystemValue::WorkgroupSize => *dst = splat(axis(component)),
            SystemValue::LocalInvocationId => {
                for (lane, out) in dst.iter_mut().enumerate() {
                    *out = match component {
                        0 => index(lane) % sx,
                        1 => index(lane) / sx % sy,
                        _ => index(lane) / sx / sy,
                    };
                }
            }
            SystemValue::LocalInvocationIndex => per(dst, index),
            SystemValue::SubgroupSize => *dst = splat(wave),
            SystemValue::SubgroupInvocation => per(dst, |lane| lane as u32),
            SystemValue::SubgroupId => *dst = splat(subgroup),
            SystemValue::VertexIdZeroBase => per(dst, |lane| (per_lane(lane) % 256) as u32),
            SystemValue::VertexId => {
                let mut base = [0; LANES];
                self.system_value(launch, SystemValue::BaseVertex, 0, &mut base);
                self.system_value(launch, SystemValue::VertexIdZeroBase, 0, dst);
                for lane in 0..LANES {
                    dst[lane] = dst[lane].wrapping_add(base[lane]);
                }
            }
            SystemValue::BaseVertex
            | SystemValue::BaseInstance
            | SystemValue::DrawId
            | SystemValue::SubgroupIdShift
            | SystemValue::FragInvocationCount
            | SystemValue::FragSize(_)
            | SystemValue::FragOffset(_) => {
                *dst = splat((uniform % 16) as u32);
            }
            SystemValue::IsIndexedDraw => *dst = splat(if uniform & 1 != 0 { u32::MAX } else { 0 }),
            SystemValue::WorkDim => *dst = splat(1 + (uniform % 3) as u32),
            SystemValue::ViewIndex => per(dst, |lane| (per_lane(lane / 4) % 4) as u32),
            SystemValue::FragShadingRate => per(dst, |lane| (per_lane(lane / 4) % 16) as u32),
            SystemValue::InstanceId => per(dst, |lane| (per_lane(lane) % 8) as u32),
            // Other primitives have other numbers: an odd step reaches all of them.
            SystemValue::PrimitiveId => {
                let step = uniform as u32 >> 8 | 1;
                per(dst, |lane| (uniform as u32).wrapping_add(self.primitive(lane).wrapping_mul(step)) % 32);
            }
            SystemValue::FragCoord => match component {
                0 | 1 => per(dst, |lane| pixel(lane, component) * 16 + 8),
                2 => per(dst, |lane| unit(per_lane(lane)).to_bits()),
                _ => per(dst, |lane| (0.25 + unit(per_lane(lane))).to_bits()),
            },
            SystemValue::FrontFace => {
                per(dst, |lane| if per_lane(self.primitive(lane) as usize) & 1 == 0 { u32::MAX } else { 0 });
            }
            // Not 0: programs divide by it.
            SystemValue::BarycentricCenterRhw => per(dst, |lane| (0.25 + unit(per_lane(lane))).to_bits()),
            SystemValue::PointCoord | SystemValue::SamplePos => per(dst, |lane| unit(per_lane(lane)).to_bits()),
            SystemValue::SampleId => per(dst, |lane| (per_lane(lane) % 4) as u32),
            SystemValue::SampleMaskIn => per(dst, |lane| (per_lane(lane) % 16) as u32),
            SystemValue::HelperInvocation => {
                let helpers = self.helper_lanes(launch);
                per(dst, |lane| (helpers >> lane & 1) as u32);
            }
            // Coordinates move by even steps over the quad, and along the primitive.
            SystemValue::BarycentricPixel
            | SystemValue::BarycentricCentroid
            | SystemValue::BarycentricSample
            | SystemValue::BarycentricPixelLinear
            | SystemValue::BarycentricCentroidLinear
            | SystemValue::BarycentricSampleLinear => {
                // Sometimes the lanes of a quad have the same coordinates: then they take the same branches, and
                // derivatives exist there.
                let of_quads = self.hash(EnvironmentKey::Primitive, [1, 0, 0]).is_multiple_of(3);
                let pixel = |lane: usize, axis: u32| pixel(lane, axis) & if of_quads { !1 } else { !0 };
                per(dst, |lane| {
                    let h = per_lane(self.primitive(lane) as usize);
                    let step_x = (h & 63) as f32 / 1024.0;
                    let step_y = (h >> 8 & 63) as f32 / 1024.0;
                    let start = (h >> 16 & 63) as f32 / 256.0;
                    (start + (pixel(lane, 0) % 8) as f32 * step_x + (pixel(lane, 1) % 8) as f32 * step_y).to_bits()
                });
            }
            // Each lane has a vertex of a primitive of its own, so that no two store to one place.
            SystemValue::TcsHeader | SystemValue::GsHeader => {
                let vertices = 1 + (uniform % 4) as u32;
                per(dst, |lane| {
                    let (vertex, primitive) = (lane as u32 % vertices, lane as u32 / vertices);
                    let thread = if value == SystemValue::GsHeader { vertex } else { primitive };
                    primitive | vertex << 6 | vertex << 11 | thread << 16
                });
            }
            SystemValue::RelPatchId => {
                let vertices = 1 + (uniform % 4) as u32;
                per(dst, |lane| lane as u32 / vertices);
            }
            SystemValue::TessCoord => per(dst, |lane| unit(per_lane(lane)).to_bits()),
            SystemValue::VsPrimitiveStride => *dst = splat(256 * (1 + (uniform % 3) as u32)),
            SystemValue::VsVertexStride => *dst = splat(32 << (uniform % 2)),
            SystemValue::HsPatchStride => *dst = splat(64 * (1 + (uniform % 3) as u32)),
            SystemValue::PatchVerticesIn => *dst = splat(1 + (uniform % 4) as u32),
            // Addresses of two buffers; the second word is the high one.
            SystemValue::TessParamBase | SystemValue::TessFactorBase => {
                let buffer = 1 + u32::from(value == SystemValue::TessFactorBase);
                *dst = splat(if component == 0 { buffer << 24 | (uniform as u32 & 0xff00) } else { 0 });
            }
            SystemValue::PrimitiveLocation(index) => *dst = splat(16 * u32::from(index % 16)),
            SystemValue::UserClipPlane(_) => *dst = splat(nice_float(uniform)),
            SystemValue::KernelInput(_) | SystemValue::Opaque(_) => *dst = splat(nice(uniform)),
        }
    }
}

fn per(dst: &mut Row, f: impl Fn(usize) -> u32) {
    for (lane, value) in dst.iter_mut().enumerate() {
        *value = f(lane);
    }
}

/// The number of low bits of a component of a system value that may be other than 0.
///
/// No framebuffer is larger than 16384 × 16384 pixels (`maxFramebufferWidth` of Mesa's turnip), and no dispatch has
/// more than 65535 workgroups in a dimension (`maxComputeWorkGroupCount`); workgroups, views and samples are far fewer
/// than 65536.
pub fn system_value_bits(value: SystemValue, component: u32) -> u32 {
    match (value, component) {
        (SystemValue::FragCoord, 0 | 1) => 14 + 4,
        (
            SystemValue::WorkgroupId
            | SystemValue::BaseWorkgroupId
            | SystemValue::NumWorkgroups
            | SystemValue::LocalInvocationId
            | SystemValue::LocalInvocationIndex
            | SystemValue::SubgroupId
            | SystemValue::SubgroupInvocation
            | SystemValue::ViewIndex
            | SystemValue::SampleId
            | SystemValue::SampleMaskIn,
            _,
        ) => 16,
        _ => 32,
    }
}

/// A number for each system value that does not depend on the order of their declaration.
pub(super) fn system_tag(value: SystemValue) -> u64 {
    use SystemValue::*;
    match value {
        WorkgroupId => 1,
        BaseWorkgroupId => 2,
        NumWorkgroups => 3,
        WorkgroupSize => 4,
        LocalInvocationId => 5,
        LocalInvocationIndex => 6,
        SubgroupSize => 7,
        SubgroupInvocation => 8,
        SubgroupId => 9,
        VertexId => 10,
        VertexIdZeroBase => 11,
        BaseVertex => 12,
        BaseInstance => 13,
        DrawId => 14,
        IsIndexedDraw => 15,
        InstanceId => 16,
        PrimitiveId => 17,
        FragCoord => 18,
        FrontFace => 19,
        PointCoord => 20,
        SampleId => 21,
        SamplePos => 22,
        SampleMaskIn => 23,
        HelperInvocation => 24,
        BarycentricPixel => 25,
        BarycentricCentroid => 26,
        BarycentricSample => 27,
        BarycentricPixelLinear => 28,
        BarycentricCentroidLinear => 29,
        BarycentricSampleLinear => 30,
        SubgroupIdShift => 31,
        WorkDim => 32,
        ViewIndex => 33,
        FragShadingRate => 34,
        FragInvocationCount => 35,
        BarycentricCenterRhw => 36,
        TcsHeader => 37,
        GsHeader => 38,
        RelPatchId => 39,
        TessCoord => 40,
        VsPrimitiveStride => 41,
        VsVertexStride => 42,
        HsPatchStride => 43,
        PatchVerticesIn => 44,
        TessParamBase => 45,
        TessFactorBase => 46,
        PrimitiveLocation(index) => 0x6_0000 | u64::from(index),
        Opaque(number) => 0x1_0000 | u64::from(number),
        UserClipPlane(plane) => 0x2_0000 | u64::from(plane),
        KernelInput(vec4) => 0x5_0000 | u64::from(vec4),
        FragSize(view) => 0x3_0000 | u64::from(view),
        FragOffset(view) => 0x4_0000 | u64::from(view),
    }
}

/// The system value that an intrinsic of nir loads, where the two correspond component by component and bit by bit
/// (except `FragCoord`, whose x and y nir has as floats in pixels).
pub fn system_value_of(op: IntrinsicOp) -> Option<SystemValue> {
    Some(match op {
        IntrinsicOp::LoadWorkgroupId => SystemValue::WorkgroupId,
        IntrinsicOp::LoadBaseWorkgroupId => SystemValue::BaseWorkgroupId,
        IntrinsicOp::LoadNumWorkgroups => SystemValue::NumWorkgroups,
        IntrinsicOp::LoadWorkgroupSize => SystemValue::WorkgroupSize,
        IntrinsicOp::LoadLocalInvocationId => SystemValue::LocalInvocationId,
        IntrinsicOp::LoadLocalInvocationIndex => SystemValue::LocalInvocationIndex,
        IntrinsicOp::LoadSubgroupSize => SystemValue::SubgroupSize,
        IntrinsicOp::LoadSubgroupInvocation => SystemValue::SubgroupInvocation,
        IntrinsicOp::LoadSubgroupId => SystemValue::SubgroupId,
        IntrinsicOp::LoadVertexId => SystemValue::VertexId,
        IntrinsicOp::LoadVertexIdZeroBase => SystemValue::VertexIdZeroBase,
        IntrinsicOp::LoadBaseVertex | IntrinsicOp::LoadFirstVertex => SystemValue::BaseVertex,
        IntrinsicOp::LoadBaseInstance => SystemValue::BaseInstance,
        IntrinsicOp::LoadDrawId => SystemValue::DrawId,
        IntrinsicOp::LoadIsIndexedDraw => SystemValue::IsIndexedDraw,
        IntrinsicOp::LoadSubgroupIdShiftIr3 => SystemValue::SubgroupIdShift,
        IntrinsicOp::LoadWorkDim => SystemValue::WorkDim,
        IntrinsicOp::LoadViewIndex => SystemValue::ViewIndex,
        IntrinsicOp::LoadFragShadingRate => SystemValue::FragShadingRate,
        IntrinsicOp::LoadFragInvocationCount => SystemValue::FragInvocationCount,
        IntrinsicOp::LoadPerspCenterRhwIr3 => SystemValue::BarycentricCenterRhw,
        IntrinsicOp::LoadInstanceId => SystemValue::InstanceId,
        IntrinsicOp::LoadPrimitiveId => SystemValue::PrimitiveId,
        IntrinsicOp::LoadFragCoord | IntrinsicOp::LoadFragCoordUnscaledIr3 => SystemValue::FragCoord,
        IntrinsicOp::LoadFrontFace => SystemValue::FrontFace,
        IntrinsicOp::LoadSampleId | IntrinsicOp::LoadSampleIdNoPerSample => SystemValue::SampleId,
        IntrinsicOp::LoadSamplePos | IntrinsicOp::LoadSamplePosOrCenter => SystemValue::SamplePos,
        IntrinsicOp::LoadSampleMaskIn => SystemValue::SampleMaskIn,
        IntrinsicOp::LoadHelperInvocation => SystemValue::HelperInvocation,
        IntrinsicOp::LoadTcsHeaderIr3 => SystemValue::TcsHeader,
        IntrinsicOp::LoadGsHeaderIr3 => SystemValue::GsHeader,
        IntrinsicOp::LoadRelPatchIdIr3 => SystemValue::RelPatchId,
        IntrinsicOp::LoadTessCoordXy => SystemValue::TessCoord,
        IntrinsicOp::LoadVsPrimitiveStrideIr3 => SystemValue::VsPrimitiveStride,
        IntrinsicOp::LoadVsVertexStrideIr3 => SystemValue::VsVertexStride,
        IntrinsicOp::LoadHsPatchStrideIr3 => SystemValue::HsPatchStride,
        IntrinsicOp::LoadPatchVerticesIn => SystemValue::PatchVerticesIn,
        IntrinsicOp::LoadTessParamBaseIr3 => SystemValue::TessParamBase,
        IntrinsicOp::LoadTessFactorBaseIr3 => SystemValue::TessFactorBase,
        _ => return None,
    })
}
