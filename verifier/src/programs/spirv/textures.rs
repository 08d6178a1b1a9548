//! Textures and images.
//!
//! nir's text says neither the dimension of a texture nor whether it is an array: it is taken for the plain one of as many coordinates.

use ir3_compiler::nir::{BaseType, Def, Format, ImageDim, Intrinsic, IntrinsicOp, Tex, TexOp, TexSrcKind};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Capability, Dim, ImageFormat, ImageOperands, StorageClass, Word};

use super::interface::Variable;
use super::values::{Kind, Ty};
use super::{Emitter, NoForm, binding, no_form, refs};

impl Emitter<'_> {
    /// A type of the kind that texels have: of 32 bits.
    fn texel(&self, kind: Kind) -> Ty {
        Ty { kind, bits: 32, components: 4 }
    }

    /// Emits a texture instruction.
    pub fn texture(&mut self, tex: &Tex) -> Result<(), NoForm> {
        let refused = |kind: TexSrcKind| tex.src(kind).is_some();
        use TexSrcKind as K;
        if let Some(kind) = [
            K::Projector,
            K::TextureHandle,
            K::SamplerHandle,
            K::Plane,
            K::Backend1,
            K::Backend2,
            K::TextureOffset,
            K::SamplerOffset,
            K::MinLod,
        ]
        .into_iter()
        .find(|&kind| refused(kind))
        {
            return no_form(format_args!("`{}` with `{kind}`", tex.op));
        }
        if tex.sparse || tex.gather_offsets.is_some() || tex.texture_non_uniform || tex.sampler_non_uniform {
            return no_form(format_args!("`{}` of this kind", tex.op));
        }
        let Some(coord) = tex.src(K::Coord) else { return no_form(format_args!("`{}` without coordinates", tex.op)) };
        let dim = match self.function.defs[coord].num_components {
            1 => Dim::Dim1D,
            2 => Dim::Dim2D,
            3 => Dim::Dim3D,
            count => return no_form(format_args!("`{}` with {count} coordinates", tex.op)),
        };
        if dim == Dim::Dim1D {
            self.capability(Capability::Sampled1D);
        }
        let kind = match tex.dest_type.base {
            BaseType::Float => Kind::Float,
            _ => Kind::Uint,
        };
        let texel = self.texel(kind);
        let sampled = self.type_id(texel.of(1));
        let image_type = self.b.type_image(sampled, dim, 0, 0, 0, 1, ImageFormat::Unknown, None);
        let number = tex.texture_index;
        let class = StorageClass::UniformConstant;
        let variable = self.bound(Variable::Texture(number, image_type), image_type, class, binding::TEXTURES + number);
        let mut image = self.emit(spirv::Op::Load, image_type, refs(&[variable]));
        if tex.op.needs_sampler() {
            let sampler_type = self.b.type_sampler();
            let number = tex.sampler_index;
            let sampler = self.bound(Variable::Sampler(number), sampler_type, class, binding::SAMPLERS + number);
            let sampler = self.emit(spirv::Op::Load, sampler_type, refs(&[sampler]));
            let both = self.b.type_sampled_image(image_type);
            image = self.emit(spirv::Op::SampledImage, both, refs(&[image, sampler]));
        }
        let is_fetch = tex.op == TexOp::Txf;
        let coordinate = self.read(coord, if is_fetch { Kind::Uint } else { Kind::Float });
        let comparator = tex.src(K::Comparator).map(|def| self.component(def, 0, Kind::Float));
        let explicit = matches!(tex.op, TexOp::Txl | TexOp::Txd);
        let op = match (tex.op, comparator.is_some(), explicit) {
            (TexOp::Tex | TexOp::Txb, false, _) => spirv::Op::ImageSampleImplicitLod,
            (TexOp::Tex | TexOp::Txb, true, _) => spirv::Op::ImageSampleDrefImplicitLod,
            (TexOp::Txl | TexOp::Txd, false, _) => spirv::Op::ImageSampleExplicitLod,
            (TexOp::Txl | TexOp::Txd, true, _) => spirv::Op::ImageSampleDrefExplicitLod,
            (TexOp::Txf, false, _) => spirv::Op::ImageFetch,
            (TexOp::Tg4, false, _) => spirv::Op::ImageGather,
            (TexOp::Tg4, true, _) => spirv::Op::ImageDrefGather,
            (op, ..) => return no_form(format_args!("`{op}`")),
        };
        let mut operands = refs(&[image, coordinate]);
        match (comparator, op) {
            (Some(comparator), _) => operands.push(Operand::IdRef(comparator)),
            (None, spirv::Op::ImageGather) => {
                let component = self.number(tex.component.into());
                operands.push(Operand::IdRef(component));
            }
            _ => {}
        }
        let (mut mask, mut extra) = (ImageOperands::NONE, Vec::new());
        if let Some(bias) = tex.src(K::Bias) {
            mask |= ImageOperands::BIAS;
            extra.push(self.component(bias, 0, Kind::Float));
        }
        if let Some(lod) = tex.src(K::Lod) {
            mask |= ImageOperands::LOD;
            extra.push(self.component(lod, 0, if is_fetch { Kind::Uint } else { Kind::Float }));
        }
        if let (Some(x), Some(y)) = (tex.src(K::Ddx), tex.src(K::Ddy)) {
            mask |= ImageOperands::GRAD;
            extra.extend([self.read(x, Kind::Float), self.read(y, Kind::Float)]);
        }
        if let Some(offset) = tex.src(K::Offset) {
            if self.function.as_const(offset).is_none() {
                return no_form(format_args!("`{}` with a computed offset", tex.op));
            }
            mask |= ImageOperands::CONST_OFFSET;
            extra.push(self.read(offset, Kind::Uint));
        }
        if !mask.is_empty() {
            operands.push(Operand::ImageOperands(mask));
            operands.extend(refs(&extra));
        }
        let result = if comparator.is_some() && op != spirv::Op::ImageDrefGather { texel.of(1) } else { texel };
        self.define_texels(tex.def, op, result, operands)
    }

    /// Defines a value as the result of an access to texels, whose width and size may be others.
    fn define_texels(&mut self, def: Def, op: spirv::Op, result: Ty, operands: Vec<Operand>) -> Result<(), NoForm> {
        let wanted = self.ty(def);
        let type_id = self.type_id(result);
        if wanted == result {
            self.emit_as(self.ids[def], op, type_id, operands);
            return Ok(());
        }
        let mut value = self.emit(op, type_id, operands);
        if wanted.bits == result.bits {
            return self.narrow(def, value, result, 0);
        }
        if result.components > wanted.components {
            let part = self.type_id(result.of(wanted.components));
            value = if wanted.components == 1 {
                self.emit(spirv::Op::CompositeExtract, part, vec![Operand::IdRef(value), Operand::LiteralBit32(0)])
            } else {
                let mut operands = refs(&[value, value]);
                operands.extend((0..wanted.components).map(|c| Operand::LiteralBit32(c.into())));
                self.emit(spirv::Op::VectorShuffle, part, operands)
            };
        }
        let convert = if wanted.kind == Kind::Float { spirv::Op::FConvert } else { spirv::Op::UConvert };
        let ty = self.type_id(wanted);
        self.emit_as(self.ids[def], convert, ty, refs(&[value]));
        Ok(())
    }

    /// Emits an access to an image.
    pub fn image(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        use IntrinsicOp as I;
        let indices = &intrinsic.indices;
        let (dim, array) = (indices.image_dim(), indices.image_array());
        let spirv_dim = match dim {
            ImageDim::Dim1D => Dim::Dim1D,
            ImageDim::Dim2D => Dim::Dim2D,
            ImageDim::Dim3D => Dim::Dim3D,
            ImageDim::Cube => Dim::DimCube,
            ImageDim::Buf => Dim::DimBuffer,
            dim => return no_form(format_args!("an image of dimension {dim}")),
        };
        match spirv_dim {
            Dim::Dim1D => self.capability(Capability::Image1D),
            Dim::DimBuffer => self.capability(Capability::ImageBuffer),
            Dim::DimCube if array => self.capability(Capability::ImageCubeArray),
            _ => {}
        }
        let format = match indices.format() {
            Format::None => ImageFormat::Unknown,
            Format::R32Uint => ImageFormat::R32ui,
            Format::R32Sint => ImageFormat::R32i,
            Format::R32Float => ImageFormat::R32f,
            Format::R8G8B8A8Unorm => ImageFormat::Rgba8,
            Format::R16G16B16A16Float => ImageFormat::Rgba16f,
            Format::R32G32B32A32Float => ImageFormat::Rgba32f,
            Format::R32G32B32A32Uint => ImageFormat::Rgba32ui,
            format => return no_form(format_args!("an image of format {format}")),
        };
        let kind = match (indices.format().name(), indices.dest_type().base, indices.src_type().base) {
            (name, ..) if name.ends_with("float") || name.ends_with("norm") => Kind::Float,
            ("none", BaseType::Float, _) | ("none", _, BaseType::Float) => Kind::Float,
            _ => Kind::Uint,
        };
        if format == ImageFormat::R32i {
            return no_form("an image of signed integers");
        }
        if format == ImageFormat::Unknown {
            self.capability(Capability::StorageImageReadWithoutFormat);
            self.capability(Capability::StorageImageWriteWithoutFormat);
        }
        let number = self.resource(intrinsic.srcs[0])?;
        let texel = self.texel(kind);
        let sampled = self.type_id(texel.of(1));
        let image_type = self.b.type_image(sampled, spirv_dim, 0, array.into(), 0, 2, format, None);
        let class = StorageClass::UniformConstant;
        let variable = self.bound(Variable::Image(number, image_type), image_type, class, binding::IMAGES + number);
        if intrinsic.op == I::ImageSize {
            return no_form("`image_size`");
        }
        let count = dim.coordinates(array);
        let coordinates = self.coordinates(intrinsic.srcs[1], count);
        match intrinsic.op {
            I::ImageLoad => {
                let Some(def) = intrinsic.def else { return Ok(()) };
                let image = self.emit(spirv::Op::Load, image_type, refs(&[variable]));
                self.define_texels(def, spirv::Op::ImageRead, texel, refs(&[image, coordinates]))
            }
            I::ImageStore => {
                let image = self.emit(spirv::Op::Load, image_type, refs(&[variable]));
                let data = self.read(intrinsic.srcs[3], kind);
                self.act(spirv::Op::ImageWrite, refs(&[image, coordinates, data]));
                Ok(())
            }
            _ => {
                let pointer = self.b.type_pointer(None, StorageClass::Image, sampled);
                let sample = self.number(0);
                let pointer = self.emit(spirv::Op::ImageTexelPointer, pointer, refs(&[variable, coordinates, sample]));
                self.atomic(intrinsic, pointer, spirv::Scope::Device, &intrinsic.srcs[3..])
            }
        }
    }

    /// The first components of a vector of coordinates.
    fn coordinates(&mut self, def: Def, count: u8) -> Word {
        if count == 1 {
            return self.component(def, 0, Kind::Uint);
        }
        let parts: Vec<Word> = (0..count).map(|c| self.component(def, c, Kind::Uint)).collect();
        let ty = self.type_id(Ty::U32.of(count));
        self.emit(spirv::Op::CompositeConstruct, ty, refs(&parts))
    }
}
