//! Inputs, system values and driver parameters of every stage.

use super::super::config::CONFIG;
use ir3_compiler::nir::{AluType, BaseType, Def, Index, InterpMode, IntrinsicOp, Op, Stage, TexOp, TexSrcKind};
use ir3_compiler::target::{FlatVaryings, Generation};

use super::super::Generator;
use super::super::choices::Choices;
use super::super::effects::semantics;

use IntrinsicOp::*;

/// A system value: its intrinsic, the number of its components and their width.
type SystemValue = (IntrinsicOp, u8, u8);

/// Outputs of which each view has its own are after those of all views: one slot has one meaning.
const OF_VIEWS: i32 = 1024;

const VERTEX: &[SystemValue] = &[
    (LoadVertexId, 1, 32),
    (LoadVertexIdZeroBase, 1, 32),
    (LoadInstanceId, 1, 32),
    (LoadBaseVertex, 1, 32),
    (LoadFirstVertex, 1, 32),
    (LoadBaseInstance, 1, 32),
    (LoadDrawId, 1, 32),
    (LoadIsIndexedDraw, 1, 32),
    (LoadViewIndex, 1, 32),
    (LoadPrimitiveId, 1, 32),
];

const FRAGMENT: &[SystemValue] = &[
    (LoadFragCoord, 4, 32),
    (LoadFrontFace, 1, 1),
    (LoadFrontFace, 1, 32),
    (LoadHelperInvocation, 1, 1),
    (LoadHelperInvocation, 1, 32),
    (LoadSampleId, 1, 32),
    (LoadSampleIdNoPerSample, 1, 32),
    (LoadSampleMaskIn, 1, 32),
    (LoadFragShadingRate, 1, 32),
    (LoadFragInvocationCount, 1, 32),
    (LoadViewIndex, 1, 32),
    (LoadPrimitiveId, 1, 32),
    (LoadUserClipPlane, 4, 32),
    (LoadSamplePos, 2, 32),
    (LoadSamplePosOrCenter, 2, 32),
    (LoadFragCoordUnscaledIr3, 4, 32),
    (LoadPerspCenterRhwIr3, 1, 32),
    (LoadSubgroupInvocation, 1, 32),
];

const COMPUTE: &[SystemValue] = &[
    (LoadWorkgroupId, 3, 32),
    (LoadLocalInvocationId, 3, 32),
    (LoadLocalInvocationIndex, 1, 32),
    (LoadNumWorkgroups, 3, 32),
    (LoadWorkgroupSize, 3, 32),
    (LoadBaseWorkgroupId, 3, 32),
    (LoadSubgroupId, 1, 32),
    (LoadSubgroupInvocation, 1, 32),
    (LoadSubgroupSize, 1, 32),
    (LoadSubgroupIdShiftIr3, 1, 32),
    (LoadWorkDim, 1, 32),
    (LoadSubgroupSize, 1, 32),
];

/// Types of inputs and outputs; none of them changes a bit.
const TYPES: &[BaseType] = &[BaseType::Float, BaseType::Float, BaseType::Int, BaseType::Uint];

/// The modes in which an input is interpolated.
pub(super) const INTERPOLATED: &[InterpMode] =
    &[InterpMode::None, InterpMode::Smooth, InterpMode::NoPerspective, InterpMode::Color];

impl<C: Choices> Generator<'_, C> {
    pub(in crate::generator) fn any_input(&mut self) {
        let stage = self.b.shader().stage;
        match stage {
            Stage::Vertex if self.c.even() => self.any_attribute(),
            Stage::Fragment if self.c.even() => self.any_varying(),
            Stage::Fragment if self.c.chance(CONFIG.sample_input) => {
                let sample = self.any_number(4);
                let def = self.b.intrinsic(LoadSamplePosFromId, 2, 32, &[sample], []);
                self.result(def);
            }
            Stage::Fragment if self.c.chance(CONFIG.view_input) => {
                let view = self.c.below(4) as u64;
                let view = self.b.constant(32, view);
                let op = self.c.pick(&[LoadFragSizeIr3, LoadFragOffsetIr3]);
                let range = Index::Range(self.c.pick(&[0, 1, 4]));
                let def = self.b.intrinsic(op, 2, 32, &[view], [range]);
                self.result(def);
            }
            Stage::Compute if self.c.chance(CONFIG.kernel_input) => {
                // Both offsets are in bytes.
                let (base, offset) = (4 * self.c.below(40), 4 * self.c.below(8) as u64);
                let [mul, align] = self.any_alignment(Some(base as u64 + offset), 4);
                let offset = self.b.constant(32, offset);
                let n = 1 + self.c.below(4) as u8;
                let range = Index::Range(self.c.pick(&[0, 1, 64, 64]));
                let indices = [Index::Base(base as i32), range, mul, align];
                let def = self.b.intrinsic(LoadKernelInput, n, 32, &[offset], indices);
                self.result(def);
            }
            _ if self.c.chance(CONFIG.without_effect) => self.no_effect(),
            _ => {
                let values = match stage {
                    Stage::Vertex => VERTEX,
                    Stage::Fragment => FRAGMENT,
                    _ => COMPUTE,
                };
                let (op, components, bits) = self.c.pick(values);
                let plane = (op == LoadUserClipPlane).then(|| Index::UcpId(self.c.below(8) as u32));
                let indices = plane.map(|plane| ir3_compiler::nir::Indices::from([plane])).unwrap_or_default();
                let def = self.b.intrinsic(op, components, bits, &[], indices);
                self.result(def);
            }
        }
    }

    /// Intrinsics without an effect on values: prefetches of descriptors.
    fn no_effect(&mut self) {
        let (first, second) = (self.any_descriptor(0, true).0, self.any_descriptor(0, true).0);
        match self.c.below(4) {
            0 => self.b.intrinsic(PrefetchUboIr3, 0, 0, &[first], []),
            1 => self.b.intrinsic(PrefetchTexIr3, 0, 0, &[first], []),
            2 => self.b.intrinsic(PrefetchSamIr3, 0, 0, &[first, second], []),
            _ => self.b.intrinsic(Nop, 0, 0, &[], []),
        };
    }

    /// A store to an output at any component, with an offset, as half registers, for each view.
    pub(in crate::generator) fn any_output(&mut self, data: Def, n: u8, slot: i32) {
        let vertex = self.b.shader().stage == Stage::Vertex;
        let first = self.c.below(5 - usize::from(n)) as u8;
        // Each slot has four locations, which the offset and the view choose from.
        let offset = self.c.pick(&[0, 0, 1, 2]);
        let name = if vertex { "VARYING_SLOT_VAR".to_owned() } else { "FRAG_RESULT_DATA".to_owned() };
        let (data, bits) = match self.c.below(16) {
            0 | 1 if !self.has_early_outputs => (self.b.alu(Op::U2u16, &[data]), 16),
            _ => (data, 32),
        };
        let all = (1 << n) - 1;
        let mask =
            if n > 1 && self.c.chance(CONFIG.partial_output) { 1 + self.c.below(all) as u16 } else { all as u16 };
        let offset = self.b.constant(32, offset);
        // Some locations are far after the others.
        let base = 4 * slot + if self.c.chance(CONFIG.far_output) { 256 } else { 0 };
        let indices = [
            Index::Base(base),
            Index::Range(self.c.pick(&[0, 1, 4, 4, 4])),
            Index::WriteMask(mask),
            Index::Component(first),
            Index::SrcType(AluType::new(self.c.pick(TYPES), bits)),
            Index::IoSemantics(Some(semantics(&format!("{name}{}", slot.min(7))))),
        ];
        if self.c.chance(CONFIG.constant_output) {
            // A constant that is stored to a place of its own.
            let constant = self.constant_vector(bits, n);
            let mut indices = ir3_compiler::nir::Indices::from(indices.clone());
            indices.set(Index::Base(4 * slot + 512));
            let location = format!("{name}{}", (slot + 4).min(7));
            indices.set(Index::IoSemantics(Some(semantics(&location))));
            let zero = self.b.constant(32, 0);
            if vertex && self.c.chance(CONFIG.constant_output_of_view) {
                indices.set(Index::Base(4 * slot + 512 + OF_VIEWS));
                self.b.intrinsic(StorePerViewOutput, n, bits, &[constant, zero, zero], indices);
            } else {
                self.b.intrinsic(StoreOutput, n, bits, &[constant, zero], indices);
            }
        }
        if vertex && self.c.chance(CONFIG.output_of_view) {
            let zero = self.b.constant(32, 0);
            let mut indices = ir3_compiler::nir::Indices::from(indices);
            indices.set(Index::Base(base + OF_VIEWS));
            self.b.intrinsic(StorePerViewOutput, n, bits, &[data, offset, zero], indices);
        } else {
            self.b.intrinsic(StoreOutput, n, bits, &[data, offset], indices);
        }
    }

    fn part_of_vec4(&mut self) -> (u8, u8) {
        let component = self.c.below(4) as u8;
        (component, 1 + self.c.below(4 - usize::from(component)) as u8)
    }

    fn any_attribute(&mut self) {
        let (component, n) = self.part_of_vec4();
        let (base, offset) =
            (self.c.below(6) + if self.c.chance(CONFIG.far_attribute) { 128 } else { 0 }, self.c.below(2));
        // An attribute has one width in all loads; others load those before the fifth.
        let bits = if base + offset >= 5 { 16 } else { 32 };
        let offset = self.b.constant(32, offset as u64);
        let indices = [
            Index::Base(base as i32),
            Index::Range(self.c.pick(&[0, 2, 2])),
            Index::Component(component),
            Index::DestType(AluType::new(self.c.pick(TYPES), bits)),
            Index::IoSemantics(Some(semantics(&format!("VERT_ATTRIB_GENERIC{}", base % 128)))),
        ];
        let def = self.b.intrinsic(LoadInput, n, bits, &[offset], indices);
        self.result(def);
    }

    /// Textures at varyings that nothing else reads: they can be fetched before the program starts.
    pub(in crate::generator) fn prefetched_inputs(&mut self, ij: Def, zero: Def) {
        for base in 0..1 + self.c.below(3) as i32 {
            let indices = [
                Index::Base(base),
                Index::DestType(AluType::FLOAT32),
                Index::IoSemantics(Some(semantics(&format!("VARYING_SLOT_VAR{base}")))),
            ];
            let op = LoadInterpolatedInput;
            // Prefetches use the place of the pixel. A sample at another place resembles theirs, and is as early.
            let at = match self.c.below(8) {
                0 => self.barycentric(),
                1 => {
                    let mode = self.c.pick(INTERPOLATED);
                    self.b.intrinsic(LoadBarycentricPixel, 2, 32, &[], [Index::InterpMode(mode)])
                }
                _ => Some(ij),
            };
            let Some(coord) = at.and_then(|at| self.b.intrinsic(op, 2, 32, &[at, zero], indices)) else { return };
            let op = if self.c.chance(CONFIG.prefetch) { TexOp::TexPrefetch } else { TexOp::Tex };
            let (texture, components) = (self.c.below(4) as u32, 1 + self.c.below(4) as u8);
            let def = self.b.tex(op, AluType::FLOAT32, components, |tex| {
                tex.srcs.push((TexSrcKind::Coord, coord));
                (tex.texture_index, tex.sampler_index) = (texture, texture);
            });
            if components == 1 {
                self.define(def);
            } else {
                self.split(Some(def), components);
            }
        }
    }

    /// The barycentric coordinates of any place, in any mode.
    pub(in crate::generator) fn barycentric(&mut self) -> Option<Def> {
        let at = self.c.pick(&[LoadBarycentricPixel, LoadBarycentricCentroid, LoadBarycentricSample]);
        let mode = if self.c.chance(CONFIG.smooth) { InterpMode::Smooth } else { self.c.pick(INTERPOLATED) };
        self.b.intrinsic(at, 2, 32, &[], [Index::InterpMode(mode)])
    }

    fn any_varying(&mut self) {
        let bits = self.c.pick(&[32, 32, 16]);
        let (component, n) = self.part_of_vec4();
        // Before a5xx, varyings are read before lanes end, where nothing is computed yet.
        let early = self.target.generation < Generation::A5xx;
        let may_compute = !(early && self.killed);
        let computed = may_compute && self.c.chance(CONFIG.computed_varying);
        // Inputs that are interpolated and those that are flat are different ones.
        let flat = self.target.flat_varyings != FlatVaryings::Interpolated && self.c.chance(CONFIG.flat_varying);
        // `ldlv` has no computed offset.
        let computed = computed && !(flat && self.target.flat_varyings == FlatVaryings::LocalMemory);
        self.computed_varyings |= early && computed;
        let offset = if computed { self.any_offset(2) } else { self.b.constant(32, 0) };
        let base = self.c.below(4) + if flat { 8 } else { 0 };
        let ty = AluType::new(self.c.pick(TYPES), bits);
        let location = Index::IoSemantics(Some(semantics(&format!("VARYING_SLOT_VAR{base}"))));
        // `ldlv` reaches the first ones only.
        let near = flat && self.target.flat_varyings == FlatVaryings::LocalMemory;
        let base = base + if !near && self.c.chance(CONFIG.far_varying) { 128 } else { 0 };
        if flat {
            let indices = [
                Index::Base(base as i32),
                Index::Range(self.c.pick(&[0, 2, 2])),
                Index::Component(component),
                Index::DestType(ty),
                location,
            ];
            let def = self.b.intrinsic(LoadInput, n, bits, &[offset], indices);
            return self.result(def);
        }
        let Some(mut pair) = self.barycentric() else { return };
        if may_compute && self.c.chance(CONFIG.computed_coordinates) {
            self.computed_varyings |= early;
            // Coordinates that are computed.
            pair = self.any_vector(32, 2);
        }
        let indices = [Index::Base(base as i32), Index::Component(component), Index::DestType(ty), location];
        let def = self.b.intrinsic(LoadInterpolatedInput, n, bits, &[pair, offset], indices);
        self.result(def);
    }
}
