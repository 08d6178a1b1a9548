//! Images and textures of programs for a device: accesses within them, whose results are exact.
//!
//! - Storage images have texels of one word where one of their set has atomics, else of four, and no other format.
//!   Coordinates are taken modulo the sizes.
//! - Textures have one level. Coordinates of a fetch are those of a texel of it. Coordinates of a sample become the
//!   center of a texel, those of a gather the corner between four, and filters take the nearest texel: no precision of
//!   filters or of levels counts.
//! - Outside of fragment shaders a sample reads level 0.
//! - Cubes, several samples, depth comparisons, divisors and queries of levels of detail are replaced.

use super::insert::Inserter;
use super::prepare::DESCRIPTORS;
use crate::spirv::{TexelDim, form_of, is_image_access};
use ir3_compiler::nir::{
    Alu, AluSrc, AluType, BaseType, Block, Def, Format, Function, ImageDim, Index, IndexKind, Instr, InstrData,
    Intrinsic, IntrinsicOp, Op, Stage, Tex, TexOp, TexSrcKind,
};
use ir3_semantics::environment::device::{TEXTURE_SIDE, image_extent};
use std::collections::BTreeSet;

/// The texels in a row of an image that all lanes access, and of the part of a lane.
const WIDTHS: [u32; 2] = [16, 4];

/// The texels in a row of each image.
#[must_use]
pub(super) const fn image_width(is_shared: bool, lanes: u32) -> u32 {
    if is_shared { WIDTHS[0] } else { WIDTHS[1] * lanes }
}

/// The name of an access to an image that is not compared.
pub(super) fn undecided_image(function: &Function, intrinsic: &Intrinsic) -> Option<String> {
    use ImageDim as D;
    if !is_image_access(intrinsic.op) {
        return intrinsic.op.name().contains("image").then(|| format!("`{}`", intrinsic.op));
    }
    let dim = intrinsic.indices.image_dim();
    if !matches!(dim, D::Dim1D | D::Dim2D | D::Dim3D | D::Rect | D::Buf) {
        return Some(format!("images of dimension {dim}"));
    }
    let data = intrinsic.def.or_else(|| intrinsic.srcs.get(3).copied());
    let coordinates = intrinsic.srcs.get(1).filter(|_| !has_no_coordinates(intrinsic.op));
    if data.is_some_and(|def| function.defs[def].bit_size > 32) {
        return Some("texels of 64 bits".to_owned());
    }
    coordinates.is_some_and(|&def| function.defs[def].bit_size != 32).then(|| "coordinates of 16 bits".to_owned())
}

const fn has_no_coordinates(op: IntrinsicOp) -> bool {
    matches!(op, IntrinsicOp::ImageSize | IntrinsicOp::BindlessImageSize)
}

/// The name of a texture operation that is not compared.
pub(super) fn undecided_texture(function: &Function, tex: &Tex) -> Option<String> {
    use TexOp as T;
    use TexSrcKind as K;
    if !matches!(tex.op, T::Tex | T::TexPrefetch | T::Txl | T::Txb | T::Txd | T::Txf | T::Tg4 | T::Txs | T::QueryLevels)
    {
        return Some(format!("`{}`", tex.op));
    }
    if let Some(kind) = [K::Comparator, K::Projector].into_iter().find(|&kind| tex.src(kind).is_some()) {
        return Some(format!("textures with `{kind}`"));
    }
    match form_of(function, tex) {
        Some((TexelDim::Cube, _)) => Some("textures of cubes".to_owned()),
        Some((TexelDim::Samples | TexelDim::Buffer, _)) | None => Some("textures of another dimension".to_owned()),
        Some(_) => None,
    }
}

/// The set of the descriptor of an access.
fn set_of(function: &Function, intrinsic: &Intrinsic) -> Option<u32> {
    match &function.instrs[function.defs[intrinsic.srcs[0]].instr] {
        InstrData::Intrinsic(handle) if handle.op == IntrinsicOp::BindlessResourceIr3 => {
            Some(handle.indices.desc_set())
        }
        _ => None,
    }
}

/// Bounds all accesses to images and textures. Each lane has a part of each image if `lane` has its number.
pub(super) fn bound(function: &mut Function, stage: Stage, lane: Option<Def>, replaced: &mut BTreeSet<String>) {
    let all: Vec<(Block, Instr)> = function.instrs_in_order().collect();
    let mut with_atomics = BTreeSet::new();
    for &(_, instr) in &all {
        if let InstrData::Intrinsic(intrinsic) = &function.instrs[instr]
            && is_image_access(intrinsic.op)
            && intrinsic.op.is_atomic()
        {
            with_atomics.insert(set_of(function, intrinsic));
        }
    }
    for (block, instr) in all {
        let has_atomics = match &function.instrs[instr] {
            InstrData::Intrinsic(intrinsic) if is_image_access(intrinsic.op) => {
                Some(with_atomics.contains(&set_of(function, intrinsic)))
            }
            InstrData::Tex(_) => None,
            _ => continue,
        };
        let mut before = Inserter::before(function, block, instr);
        match has_atomics {
            Some(has_atomics) => before.image(instr, has_atomics, lane),
            None => before.texture(instr, stage, replaced),
        }
    }
}

/// The bits of floats.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

impl Inserter<'_> {
    fn image(&mut self, instr: Instr, has_atomics: bool, lane: Option<Def>) {
        let InstrData::Intrinsic(intrinsic) = &mut self.function.instrs[instr] else { return };
        let format = if has_atomics { Format::R32Uint } else { Format::R32G32B32A32Uint };
        intrinsic.indices.set(Index::Format(format));
        let (dim, is_array) = (intrinsic.indices.image_dim(), intrinsic.indices.image_array());
        if intrinsic.indices.get(IndexKind::DestType).is_some() {
            let bits = intrinsic.def.map_or(32, |def| self.function.defs[def].bit_size);
            intrinsic.indices.set(Index::DestType(AluType::new(BaseType::Uint, bits)));
        }
        if intrinsic.indices.get(IndexKind::SrcType).is_some() {
            let bits = intrinsic.srcs.get(3).map_or(32, |&def| self.function.defs[def].bit_size);
            intrinsic.indices.set(Index::SrcType(AluType::new(BaseType::Uint, bits)));
        }
        if has_no_coordinates(intrinsic.op) {
            return;
        }
        let is_store = matches!(intrinsic.op, IntrinsicOp::ImageStore | IntrinsicOp::BindlessImageStore);
        let stored = intrinsic.srcs.get(3).copied().filter(|_| is_store);
        let coordinates = intrinsic.srcs[1];
        let count = self.function.defs[coordinates].num_components;
        let [_, height, depth] = image_extent(dim, is_array, 1);
        let width = WIDTHS[usize::from(lane.is_some())];
        let masks = [width, height, depth, 1].map(|size| size - 1);
        let masks = self.constants(&masks[..usize::from(count).min(4)]);
        let mut new = self.vector(Op::Iand, count, &[coordinates, masks]);
        if let Some(lane) = lane {
            let steps = self.constants(&[width, 0, 0, 0][..usize::from(count).min(4)]);
            let first = self.vector(Op::Imul, count, &[lane, steps]);
            new = self.vector(Op::Iadd, count, &[new, first]);
        }
        let stored = stored.map(|def| self.texel(def));
        if let InstrData::Intrinsic(intrinsic) = &mut self.function.instrs[instr] {
            intrinsic.srcs[1] = new;
            if let Some(stored) = stored {
                intrinsic.srcs[3] = stored;
                intrinsic.indices.set(Index::SrcType(AluType::new(BaseType::Uint, 32)));
            }
        }
    }

    /// A value as a whole texel: a store of fewer components leaves others undefined, so they are zeros.
    fn texel(&mut self, def: Def) -> Def {
        let words = self.words(def);
        let count = self.function.defs[words].num_components;
        if count >= 4 {
            return words;
        }
        let zero = self.constant(0);
        let src =
            |component| if component < count { AluSrc::scalar(words, component) } else { AluSrc::scalar(zero, 0) };
        let srcs = (0..4).map(src).collect();
        self.insert(4, |def| {
            let op = Op::Vec4;
            InstrData::Alu(Alu { op, exact: false, no_signed_wrap: false, no_unsigned_wrap: false, def, srcs })
        })
    }

    fn texture(&mut self, instr: Instr, stage: Stage, replaced: &mut BTreeSet<String>) {
        use TexSrcKind as K;
        let InstrData::Tex(tex) = &self.function.instrs[instr] else { return };
        let mut tex = tex.clone();
        let is_array = form_of(self.function, &tex).is_some_and(|(_, is_array)| is_array);
        let is_fetch = tex.op == TexOp::Txf;
        let has_offset = tex.src(K::Offset).is_some();
        // An offset is at most 3.
        let mask = if has_offset || tex.op == TexOp::Tg4 { TEXTURE_SIDE / 2 - 1 } else { TEXTURE_SIDE - 1 };
        if stage != Stage::Fragment && matches!(tex.op, TexOp::Tex | TexOp::TexPrefetch | TexOp::Txb) {
            replaced.insert("implicit levels outside of fragment shaders".to_owned());
            tex.op = TexOp::Txl;
            tex.srcs.retain(|(kind, _)| !matches!(kind, K::Bias | K::Lod));
            let zero = self.constant(0);
            tex.srcs.push((K::Lod, zero));
        }
        for at in 0..tex.srcs.len() {
            let (kind, def) = tex.srcs[at];
            let new = match kind {
                K::Coord if is_fetch => self.masked(def, mask),
                K::Coord => self.coordinates(def, mask, is_array, tex.op == TexOp::Tg4),
                K::Lod if is_fetch || tex.op == TexOp::Txs => self.constant(0),
                // Any level is the only one.
                K::Lod | K::Bias | K::Ddx | K::Ddy => {
                    let whole = self.masked(def, 3);
                    let count = self.function.defs[def].num_components;
                    self.vector(Op::U2f32, count, &[whole])
                }
                K::Offset => match self.function.as_const(def) {
                    Some(values) => {
                        let values: Vec<u32> = values.iter().map(|&value| value as u32 & 3).collect();
                        self.constants(&values)
                    }
                    None => self.masked(def, 3),
                },
                K::TextureOffset | K::SamplerOffset => self.masked(def, DESCRIPTORS - 1),
                _ => def,
            };
            tex.srcs[at].1 = new;
        }
        if tex.src(K::TextureOffset).is_some() {
            tex.texture_index = 0;
        }
        if tex.src(K::SamplerOffset).is_some() {
            tex.sampler_index = 0;
        }
        tex.is_array = is_array;
        self.function.instrs[instr] = InstrData::Tex(tex);
    }

    /// The low bits of numbers, as words.
    fn masked(&mut self, def: Def, mask: u32) -> Def {
        let count = self.function.defs[def].num_components;
        let words = self.words(def);
        let mask = self.constant(mask);
        self.vector(Op::Iand, count, &[words, mask])
    }

    fn words(&mut self, def: Def) -> Def {
        let count = self.function.defs[def].num_components;
        if self.function.defs[def].bit_size == 32 { def } else { self.vector(Op::U2u32, count, &[def]) }
    }

    /// Coordinates of floats: the center of a texel, or its corner for a gather, that the bits of the operands choose.
    fn coordinates(&mut self, def: Def, mask: u32, is_array: bool, is_gather: bool) -> Def {
        let count = self.function.defs[def].num_components;
        let words = self.words(def);
        // Floats have few low bits.
        let shift = self.constant(20);
        let high = self.vector(Op::Ushr, count, &[words, shift]);
        let both = self.vector(Op::Ixor, count, &[words, high]);
        let number = self.masked(both, mask);
        let number = self.vector(Op::U2f32, count, &[number]);
        let (mut steps, mut scales) =
            (vec![if is_gather { 1.0 } else { 0.5 }; count.into()], vec![0.125; count.into()]);
        if is_array && let (Some(step), Some(scale)) = (steps.last_mut(), scales.last_mut()) {
            (*step, *scale) = (0.0, 1.0);
        }
        let (steps, scales) = (self.constants(&bits(&steps)), self.constants(&bits(&scales)));
        let sum = self.vector(Op::Fadd, count, &[number, steps]);
        self.vector(Op::Fmul, count, &[sum, scales])
    }
}
