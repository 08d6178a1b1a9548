//! Images: every dimension, format and type; bindless ones; their sizes.

use super::super::config::CONFIG;
use ir3_compiler::nir::{Access, AluType, BaseType, Def, Format, ImageDim, Index, Indices, IntrinsicOp, Op};
use ir3_compiler::target::Generation;

use super::super::Generator;
use super::super::choices::Choices;
use super::READ_ONLY;

/// An image of a program: a descriptor always shows the same one.
#[derive(Clone, Copy)]
pub(in crate::generator) struct Image {
    dim: ImageDim,
    array: bool,
    format: Format,
    base: BaseType,
}

const DIMS: &[(ImageDim, bool)] = &[
    (ImageDim::Dim1D, false),
    (ImageDim::Dim1D, true),
    (ImageDim::Dim2D, false),
    (ImageDim::Dim2D, true),
    (ImageDim::Dim3D, false),
    (ImageDim::Cube, false),
    (ImageDim::Cube, true),
    (ImageDim::Rect, false),
    (ImageDim::Buf, false),
    (ImageDim::Ms, false),
    (ImageDim::Ms, true),
    (ImageDim::Subpass, false),
    (ImageDim::SubpassMs, false),
];

const FORMATS: &[(Format, BaseType)] = &[
    (Format::R32Uint, BaseType::Uint),
    (Format::R32Sint, BaseType::Int),
    (Format::R32Float, BaseType::Float),
    (Format::R32G32Uint, BaseType::Uint),
    (Format::R32G32Float, BaseType::Float),
    (Format::R32G32B32A32Sint, BaseType::Int),
    (Format::R32G32B32A32Float, BaseType::Float),
    (Format::R16Float, BaseType::Float),
    (Format::R16G16Uint, BaseType::Uint),
    (Format::R16G16B16A16Sint, BaseType::Int),
    (Format::R8Unorm, BaseType::Float),
    (Format::R8G8B8A8Unorm, BaseType::Float),
    (Format::R8G8B8A8Uint, BaseType::Uint),
    (Format::R11G11B10Float, BaseType::Float),
    (Format::R8Sint, BaseType::Int),
    (Format::R8G8Snorm, BaseType::Float),
    (Format::R16Unorm, BaseType::Float),
    (Format::R16Uint, BaseType::Uint),
    (Format::R16G16Float, BaseType::Float),
    (Format::R16G16B16A16Float, BaseType::Float),
    (Format::R32G32Sint, BaseType::Int),
    (Format::R32G32B32A32Uint, BaseType::Uint),
    (Format::R10G10B10A2Unorm, BaseType::Float),
    (Format::R10G10B10A2Uint, BaseType::Uint),
];

impl<C: Choices> Generator<'_, C> {
    pub(super) fn any_image(&mut self) {
        let generation = self.target.generation;
        // The last numbers are only read: an access of them may be reordered.
        let reads = generation >= Generation::A6xx && self.c.chance(CONFIG.only_read_image);
        let number = if reads { READ_ONLY + self.c.below(2) } else { self.c.below(READ_ONLY) };
        // Two numbers show one kind of image.
        let image = self.image_of(number / 2);
        let number = number as u64 + self.far_descriptor();
        let is_shared = self.features.driver && self.c.chance(CONFIG.shared_image);
        let varies = !is_shared && generation >= Generation::A6xx && self.c.chance(CONFIG.computed_image);
        let number = match is_shared || varies {
            true => {
                let pair = self.b.constant(32, number & !1);
                let which = if is_shared { self.loaded_number(2) } else { self.any_number(2) };
                self.b.alu(Op::Iadd, &[pair, which])
            }
            false => self.b.constant(32, number),
        };
        let mut handle = number;
        // Bindless ones that are only read are read as textures.
        if self.features.ubos && self.c.chance(if reads { CONFIG.bindless_only_read } else { CONFIG.bindless_image }) {
            let set = Index::DescSet(4);
            handle = self.b.intrinsic(IntrinsicOp::BindlessResourceIr3, 1, 32, &[number], [set]).unwrap_or(number);
        }
        let bindless = handle != number;
        let zero = self.b.constant(32, 0);
        let coordinates = usize::from(image.dim.coordinates(image.array));
        let texel = if self.c.chance(CONFIG.constant_texel) {
            let values: Vec<u64> = (0..4).map(|i| if i < coordinates { self.c.below(8) as u64 } else { 0 }).collect();
            self.b.constants(32, &values)
        } else {
            let scalars: Vec<Def> = (0..4).map(|i| if i < coordinates { self.any_offset(8) } else { zero }).collect();
            self.b.vec(&scalars)
        };
        // The machine stores multisampled images with one sample.
        let sampled = matches!(image.dim, ImageDim::Ms | ImageDim::SubpassMs);
        let sample = if sampled { self.any_offset(4) } else { zero };
        let mut access = self.any_access(varies);
        access.set(Access::REORDERABLE, reads);
        let access = Index::Access(access);
        let mut indices = Indices::from([
            Index::ImageDim(image.dim),
            Index::ImageArray(image.array),
            Index::Format(image.format),
            access,
            Index::RangeBase(self.c.pick(&[0, 0, 0, 4])),
        ]);
        let bits = if generation >= Generation::A6xx && self.c.chance(CONFIG.half_texel) { 16 } else { 32 };
        let ty = AluType::new(image.base, bits);
        let is_word = matches!(image.format, Format::R32Uint | Format::R32Sint);
        match self.c.below(7) {
            0 | 1 if !reads => {
                indices.set(Index::SrcType(ty));
                let n = self.c.pick(&[4, 4, 3, 2, 1]);
                let data = self.any_vector(bits, n);
                let op = if bindless { IntrinsicOp::BindlessImageStore } else { IntrinsicOp::ImageStore };
                self.b.intrinsic(op, n, bits, &[handle, texel, sample, data, zero], indices);
            }
            2 | 3 if is_word && !reads => self.image_atomic(handle, bindless, texel, sample, indices),
            4 if generation >= Generation::A6xx => {
                let op = if bindless { IntrinsicOp::BindlessImageSize } else { IntrinsicOp::ImageSize };
                // Those of a cube are of its faces.
                let components = if image.dim == ImageDim::Cube { 2 } else { coordinates as u8 };
                let def = self.b.intrinsic(op, components, 32, &[handle, zero], indices);
                self.result(def);
            }
            _ => {
                let plain = is_word || image.format == Format::R32Float;
                if generation < Generation::A5xx && !plain {
                    return self.any_arithmetic();
                }
                indices.set(Index::DestType(ty));
                let op = if bindless { IntrinsicOp::BindlessImageLoad } else { IntrinsicOp::ImageLoad };
                let n = self.c.pick(&[4, 4, 3, 2, 1]);
                let def = self.b.intrinsic(op, n, bits, &[handle, texel, sample, zero], indices);
                self.result(def);
            }
        }
    }

    fn image_atomic(&mut self, handle: Def, bindless: bool, texel: Def, sample: Def, mut indices: Indices) {
        let (op, data) = self.any_atomic(32);
        indices.set(Index::AtomicOp(op));
        let srcs: Vec<Def> = [handle, texel, sample].into_iter().chain(data).collect();
        let name = match (bindless, srcs.len()) {
            (true, 5) => IntrinsicOp::BindlessImageAtomicSwap,
            (true, _) => IntrinsicOp::BindlessImageAtomic,
            (false, 5) => IntrinsicOp::ImageAtomicSwap,
            (false, _) => IntrinsicOp::ImageAtomic,
        };
        let def = self.b.intrinsic(name, 1, 32, &srcs, indices);
        self.result(def);
    }

    /// The image that a pair of numbers shows.
    fn image_of(&mut self, number: usize) -> Image {
        while self.images.len() <= number {
            let (dim, array) = self.c.pick(DIMS);
            // Only words have atomics.
            let (format, base) =
                if self.c.chance(CONFIG.common_format) { FORMATS[self.c.below(2)] } else { self.c.pick(FORMATS) };
            self.images.push(Image { dim, array, format, base });
        }
        self.images[number]
    }
}
