//! Textures: every operation with every source, of one to three coordinates.

use super::super::config::CONFIG;
use ir3_compiler::nir::{AluSrc, AluType, BaseType, Def, Index, InterpMode, IntrinsicOp, Op, Stage, TexOp, TexSrcKind};

use super::super::Generator;
use super::super::choices::Choices;
use super::super::effects::semantics;
use super::inputs::INTERPOLATED;
use crate::spirv::has_layers;

const SAMPLED: &[AluType] = &[
    AluType::FLOAT32,
    AluType::FLOAT32,
    AluType::new(BaseType::Float, 16),
    AluType::new(BaseType::Int, 32),
    AluType::UINT32,
    AluType::new(BaseType::Uint, 16),
    AluType::new(BaseType::Int, 16),
];

impl<C: Choices> Generator<'_, C> {
    pub(super) fn any_texture(&mut self) {
        let fragment = self.b.shader().stage == Stage::Fragment;
        let implicit = fragment && self.is_convergent();
        let dest = self.c.pick(SAMPLED);
        match self.c.below(16) {
            0 => self.texture_query(TexOp::Txs),
            1 => self.texture_query(TexOp::QueryLevels),
            2 => self.texture_query(TexOp::TextureSamples),
            3 if implicit => {
                let bits = if self.c.chance(CONFIG.half_level) { 16 } else { 32 };
                self.sampled(TexOp::Lod, AluType::new(BaseType::Float, bits));
            }
            4 | 5 => self.sampled(TexOp::Tg4, dest),
            6 | 7 => self.sampled(TexOp::Txf, dest),
            8 if !self.target.txf_ms_with_isaml => self.sampled(TexOp::TxfMs, dest),
            // These are four instructions where the GPU has no such sample in vertex shaders.
            10..=12 if self.b.shader().stage == Stage::Vertex => self.sampled(TexOp::Txd, dest),
            9 => self.sampled(TexOp::Txd, dest),
            10 | 11 if implicit => self.sampled(TexOp::Tex, dest),
            12 if implicit => self.sampled(TexOp::Txb, dest),
            13 if implicit => self.prefetched(dest),
            14 if self.c.chance(CONFIG.needless_level) => self.sampled_within(TexOp::Tex, dest, true),
            _ => self.sampled(TexOp::Txl, dest),
        }
    }

    /// The number of a bindless texture or sampler.
    fn any_handle(&mut self) -> Def {
        match self.far_descriptor() {
            0 if self.c.chance(CONFIG.handle_of_lane) => self.any_offset(4),
            0 => self.any_number(4),
            far => self.b.constant(32, far),
        }
    }

    /// The texture of a query or a sample, and its sampler.
    fn any_sampler(&mut self, op: TexOp) -> Sampler {
        let mut sampler = Sampler { texture: self.c.below(4) as u32, ..Sampler::default() };
        if op.needs_sampler() {
            sampler.sampler = if self.c.even() { sampler.texture } else { self.c.below(4) as u32 };
        }
        let bindless = self.features.ubos && self.c.chance(self.swarm.bindless * 3 / 4);
        match self.c.below(6) {
            _ if bindless => {
                let (texture, sampler_number) = (self.any_handle(), self.any_handle());
                (sampler.texture_varies, sampler.sampler_varies) =
                    (self.may_vary(texture), self.may_vary(sampler_number));
                let sets = (self.c.below(5) as u32, self.c.below(5) as u32);
                let set = if self.c.chance(CONFIG.same_set) { (sets.0, sets.0) } else { sets };
                let texture =
                    self.b.intrinsic(IntrinsicOp::BindlessResourceIr3, 1, 32, &[texture], [Index::DescSet(set.0)]);
                sampler.srcs.extend(texture.map(|def| (TexSrcKind::TextureHandle, def)));
                if op.needs_sampler() {
                    let set = Index::DescSet(set.1);
                    let handle = self.b.intrinsic(IntrinsicOp::BindlessResourceIr3, 1, 32, &[sampler_number], [set]);
                    sampler.srcs.extend(handle.map(|def| (TexSrcKind::SamplerHandle, def)));
                }
                (sampler.texture, sampler.sampler) = (0, 0);
            }
            0 if self.features.driver && self.c.chance(CONFIG.loaded_handle) => {
                let number = self.loaded_number(4);
                sampler.srcs.push((TexSrcKind::TextureOffset, number));
                if op.needs_sampler() {
                    sampler.srcs.push((TexSrcKind::SamplerOffset, number));
                }
            }
            0 => {
                let has_sampler = op.needs_sampler() && self.c.chance(CONFIG.computed_sampler);
                if !has_sampler || self.c.chance(CONFIG.computed_texture) {
                    let number = self.any_number(4);
                    sampler.srcs.push((TexSrcKind::TextureOffset, number));
                    sampler.texture_varies = self.may_vary(number);
                }
                if has_sampler {
                    let number = self.any_number(4);
                    sampler.srcs.push((TexSrcKind::SamplerOffset, number));
                    sampler.sampler_varies = self.may_vary(number);
                }
            }
            // Beyond the range of an instruction's field.
            1 => {
                let beyond = self.c.pick(&[(16, 0), (0, 16), (16, 16)]);
                sampler.texture += beyond.0;
                sampler.sampler += if op.needs_sampler() { beyond.1 } else { 0 };
            }
            _ => {}
        }
        sampler
    }

    /// True if a number may differ between lanes, and rarely for a constant.
    fn may_vary(&mut self, number: Def) -> bool {
        self.b.function().as_const_scalar(number).is_none() || self.c.chance(CONFIG.constant_may_vary)
    }

    fn texture_query(&mut self, op: TexOp) {
        let mut sampler = self.any_sampler(op);
        let bits = if self.c.chance(CONFIG.half_texture_query) { 16 } else { 32 };
        let ty = AluType::new(if self.c.even() { BaseType::Int } else { BaseType::Uint }, bits);
        let mut components = 1;
        if op == TexOp::Txs {
            components = 1 + self.c.below(3) as u8;
            if self.c.chance(CONFIG.size_of_level) {
                sampler.srcs.push((TexSrcKind::Lod, self.any_offset(4)));
            }
        }
        let def = self.b.tex(op, ty, components, |tex| sampler.set(tex));
        self.define(def);
    }

    fn sampled(&mut self, op: TexOp, dest: AluType) {
        self.sampled_within(op, dest, false);
    }

    /// A sample or a fetch; `has_level` if it has a level that its operation does not need.
    fn sampled_within(&mut self, op: TexOp, dest: AluType, has_level: bool) {
        let mut sampler = self.any_sampler(op);
        let fetch = matches!(op, TexOp::Txf | TexOp::TxfMs);
        let two = matches!(op, TexOp::Tg4 | TexOp::TxfMs) && self.c.chance(CONFIG.two_dimensions);
        let mut dims = if two { 2 } else { 1 + self.c.below(3) as u8 };
        let mut layer = (dims < 3 || op != TexOp::Txd) && self.c.chance(CONFIG.layered);
        if self.features.driver {
            // A texture has one shape: some numbers are those of arrays.
            layer = sampler.is_layered();
            dims = if layer { dims.min(2) } else { dims };
        }
        let half = !fetch && self.c.chance(CONFIG.half_coordinates);
        let bits = if half { 16 } else { 32 };
        let mut scalars: Vec<Def> = (0..dims).map(|_| self.coordinate(fetch, bits)).collect();
        // The number of offsets or gradients distinguishes a layer from a coordinate.
        if layer {
            scalars.push(self.coordinate(fetch, bits));
        }
        let coord = self.b.vec(&scalars);
        let mut srcs = vec![(TexSrcKind::Coord, coord)];
        let mut components = 4;
        match op {
            TexOp::Txl => srcs.push((TexSrcKind::Lod, self.value(bits))),
            TexOp::Txb => srcs.push((TexSrcKind::Bias, self.value(bits))),
            TexOp::Txf if self.features.fetch_levels && self.c.chance(CONFIG.level_of_fetch) => {
                srcs.push((TexSrcKind::Lod, self.any_offset(4)));
            }
            TexOp::Txf if self.c.even() => srcs.push((TexSrcKind::Lod, self.b.constant(32, 0))),
            TexOp::TxfMs => srcs.push((TexSrcKind::MsIndex, self.any_offset(4))),
            TexOp::Txd => {
                for kind in [TexSrcKind::Ddx, TexSrcKind::Ddy] {
                    let gradient = self.any_vector(bits, dims);
                    srcs.push((kind, gradient));
                }
            }
            TexOp::Tex if has_level => srcs.push((TexSrcKind::Lod, self.value(bits))),
            TexOp::Lod => components = 2,
            _ => {}
        }
        if op.takes(TexSrcKind::Comparator) && dest.base == BaseType::Float && self.c.chance(CONFIG.comparator) {
            srcs.insert(1, (TexSrcKind::Comparator, self.value(bits)));
            components = if op == TexOp::Tg4 { 4 } else { 1 };
        }
        let can_project = op.takes(TexSrcKind::Projector);
        if can_project && !layer && self.c.chance(CONFIG.projector) {
            srcs.push((TexSrcKind::Projector, self.value(bits)));
        }
        if op.takes(TexSrcKind::Offset) && (!layer || op != TexOp::Txd) && self.c.chance(CONFIG.texel_offset) {
            let scalars: Vec<Def> = (0..dims).map(|_| self.texel_offset(bits)).collect();
            srcs.push((TexSrcKind::Offset, self.b.vec(&scalars)));
        }
        if components == 4 && op != TexOp::Tg4 && self.c.chance(CONFIG.fewer_components) {
            components = 1 + self.c.below(4) as u8;
        }
        srcs.append(&mut sampler.srcs);
        sampler.srcs = srcs;
        let component = if op == TexOp::Tg4 { self.c.below(4) as u8 } else { 0 };
        let def = self.b.tex(op, dest, components, |tex| {
            sampler.set(tex);
            tex.component = component;
        });
        self.define(def);
    }

    /// A sample at two components of a varying, which can be issued before the program starts: adjacent ones, or not.
    fn prefetched(&mut self, dest: AluType) {
        let mut sampler = self.any_sampler(TexOp::TexPrefetch);
        let at = if self.c.chance(CONFIG.prefetch_at_centroid) {
            IntrinsicOp::LoadBarycentricCentroid
        } else {
            IntrinsicOp::LoadBarycentricPixel
        };
        let mode =
            if self.c.chance(CONFIG.prefetch_not_smooth) { self.c.pick(INTERPOLATED) } else { InterpMode::Smooth };
        let Some(pair) = self.b.intrinsic(at, 2, 32, &[], [Index::InterpMode(mode)]) else { return };
        let n = 2 + self.c.below(3) as u8;
        let component = self.c.below(5 - usize::from(n)) as u8;
        let base = self.c.below(4);
        let indices = [
            Index::Base(base as i32),
            Index::Component(component),
            Index::DestType(AluType::FLOAT32),
            Index::IoSemantics(Some(semantics(&format!("VARYING_SLOT_VAR{base}")))),
        ];
        let offset = u64::from(self.c.chance(CONFIG.second_varying));
        let offset = self.b.constant(32, offset);
        let op = IntrinsicOp::LoadInterpolatedInput;
        let Some(load) = self.b.intrinsic(op, n, 32, &[pair, offset], indices) else { return };
        self.define(load);
        let first = self.c.below(usize::from(n) - 1) as u8;
        let second = if self.c.chance(CONFIG.swizzled_prefetch) { self.c.below(n.into()) as u8 } else { first + 1 };
        let coord = match self.c.below(3) {
            // Samples that cannot be issued early.
            _ if self.c.chance(CONFIG.other_coordinates) => {
                let count = self.c.pick(&[1, 3, 4]);
                self.any_vector(32, count)
            }
            _ if n == 2 && second == 1 => load,
            0 => {
                let mut swizzle = [0; 16];
                swizzle[..2].copy_from_slice(&[first, second]);
                self.b.alu_swizzled(Op::Mov, 2, &[AluSrc { def: load, swizzle }])
            }
            _ => self.b.alu_swizzled(Op::Vec2, 2, &[AluSrc::scalar(load, first), AluSrc::scalar(load, second)]),
        };
        sampler.srcs.insert(0, (TexSrcKind::Coord, coord));
        let components = 1 + self.c.below(4) as u8;
        let def = self.b.tex(TexOp::TexPrefetch, dest, components, |tex| sampler.set(tex));
        self.define(def);
    }

    fn coordinate(&mut self, fetch: bool, bits: u8) -> Def {
        if fetch { self.any_offset(16) } else { self.value(bits) }
    }

    /// A number from -8 to 7.
    fn texel_offset(&mut self, bits: u8) -> Def {
        let offset = self.c.below(16) as u64;
        self.b.constant(bits, offset.wrapping_sub(8))
    }
}

/// The texture and the sampler of an operation.
#[derive(Default)]
struct Sampler {
    texture: u32,
    sampler: u32,
    /// The texture may differ between lanes.
    texture_varies: bool,
    /// The sampler may differ between lanes.
    sampler_varies: bool,
    srcs: Vec<(TexSrcKind, Def)>,
}

impl Sampler {
    /// Returns true for the numbers of arrays, where numbers decide.
    fn is_layered(&self) -> bool {
        let is_texture = |kind: TexSrcKind| matches!(kind, TexSrcKind::TextureHandle | TexSrcKind::TextureOffset);
        has_layers(self.texture) && !self.srcs.iter().any(|&(kind, _)| is_texture(kind))
    }

    fn set(self, tex: &mut ir3_compiler::nir::Tex) {
        tex.texture_index = self.texture;
        tex.sampler_index = self.sampler;
        tex.texture_non_uniform = self.texture_varies;
        tex.sampler_non_uniform = self.sampler_varies && tex.op.needs_sampler();
        tex.srcs.extend(self.srcs);
    }
}
