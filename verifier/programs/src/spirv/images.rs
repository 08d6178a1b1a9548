//! Storage images.

use ir3_compiler::nir::{BaseType, Def, Format, ImageDim, Intrinsic, IntrinsicOp};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Capability, Dim, ImageFormat, ImageOperands, StorageClass, Word};

use super::descriptors::{Class, Resource};
use super::values::{Kind, Ty};
use super::{Emitter, NoForm, TexelDim, TexelFormat, TexelShape, no_form, refs};

/// The format of an image, and the capability that it needs.
fn format(format: Format) -> Result<(ImageFormat, Option<Capability>), NoForm> {
    use ImageFormat as F;
    let more = Some(Capability::StorageImageExtendedFormats);
    Ok(match format {
        Format::None => (F::Unknown, None),
        Format::R32Uint => (F::R32ui, None),
        Format::R32Sint => (F::R32i, None),
        Format::R32Float => (F::R32f, None),
        Format::R8G8B8A8Unorm => (F::Rgba8, None),
        Format::R8G8B8A8Uint => (F::Rgba8ui, None),
        Format::R16G16B16A16Float => (F::Rgba16f, None),
        Format::R16G16B16A16Sint => (F::Rgba16i, None),
        Format::R32G32B32A32Float => (F::Rgba32f, None),
        Format::R32G32B32A32Uint => (F::Rgba32ui, None),
        Format::R32G32B32A32Sint => (F::Rgba32i, None),
        Format::R32G32Uint => (F::Rg32ui, more),
        Format::R32G32Sint => (F::Rg32i, more),
        Format::R32G32Float => (F::Rg32f, more),
        Format::R16Float => (F::R16f, more),
        Format::R16Uint => (F::R16ui, more),
        Format::R16Unorm => (F::R16, more),
        Format::R16G16Uint => (F::Rg16ui, more),
        Format::R16G16Float => (F::Rg16f, more),
        Format::R8Unorm => (F::R8, more),
        Format::R8Sint => (F::R8i, more),
        Format::R8G8Snorm => (F::Rg8Snorm, more),
        Format::R11G11B10Float => (F::R11fG11fB10f, more),
        Format::R10G10B10A2Unorm => (F::Rgb10A2, more),
        Format::R10G10B10A2Uint => (F::Rgb10a2ui, more),
        format => return no_form(format_args!("an image of format {format}")),
    })
}

impl Emitter<'_> {
    /// Emits an access to an image.
    pub fn image(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        use IntrinsicOp as I;
        let indices = &intrinsic.indices;
        let (dim, array) = (indices.image_dim(), indices.image_array());
        let has_samples = dim == ImageDim::Ms;
        let spirv_dim = match dim {
            ImageDim::Dim1D => Dim::Dim1D,
            ImageDim::Dim2D | ImageDim::Rect | ImageDim::Ms => Dim::Dim2D,
            ImageDim::Dim3D => Dim::Dim3D,
            ImageDim::Cube => Dim::DimCube,
            ImageDim::Buf => Dim::DimBuffer,
            dim => return no_form(format_args!("an image of dimension {dim}")),
        };
        match spirv_dim {
            _ if has_samples => self.capability(Capability::StorageImageMultisample),
            Dim::Dim1D => self.capability(Capability::Image1D),
            Dim::DimBuffer => self.capability(Capability::ImageBuffer),
            Dim::DimCube if array => self.capability(Capability::ImageCubeArray),
            _ => {}
        }
        let (format, needed) = format(indices.format())?;
        if let Some(needed) = needed {
            self.capability(needed);
        }
        let kind = match (indices.format().name(), indices.dest_type().base, indices.src_type().base) {
            (name, ..) if name.ends_with("float") || name.ends_with("norm") => Kind::Float,
            ("none", BaseType::Float, _) | ("none", _, BaseType::Float) => Kind::Float,
            _ => Kind::Uint,
        };
        let is_signed = indices.format().name().ends_with("sint");
        if format == ImageFormat::Unknown {
            self.capability(Capability::StorageImageReadWithoutFormat);
            self.capability(Capability::StorageImageWriteWithoutFormat);
        }
        let mut resource = Resource::of(self.function, Class::Image, intrinsic.srcs[0], indices.access());
        resource.is_texel_buffer = dim == ImageDim::Buf;
        let texels = match format {
            ImageFormat::R32ui => TexelFormat::R32Uint,
            ImageFormat::Rgba32ui => TexelFormat::Rgba32Uint,
            _ => TexelFormat::Other,
        };
        resource.texels =
            Some(TexelShape { dim: TexelDim::of(spirv_dim, has_samples), is_array: array, format: texels });
        let texel = self.texel(kind);
        let sampled = self.sampled(texel.of(1), is_signed);
        let image_type = self.b.type_image(sampled, spirv_dim, 0, array.into(), has_samples.into(), 2, format, None);
        let variable = self.descriptor(&resource, image_type, StorageClass::UniformConstant)?;
        let is_atomic = matches!(
            intrinsic.op,
            I::ImageAtomic | I::ImageAtomicSwap | I::BindlessImageAtomic | I::BindlessImageAtomicSwap
        );
        let count = dim.coordinates(array);
        if is_atomic {
            let coordinates = self.coordinates(intrinsic.srcs[1], count);
            let pointer = self.b.type_pointer(None, StorageClass::Image, sampled);
            let sample = match has_samples {
                true => self.component(intrinsic.srcs[2], 0, Kind::Uint),
                false => self.number(0),
            };
            let pointer = self.emit(spirv::Op::ImageTexelPointer, pointer, refs(&[variable, coordinates, sample]));
            self.non_uniform(&resource, pointer);
            return self.atomic_of(intrinsic, pointer, spirv::Scope::Device, &intrinsic.srcs[3..], is_signed);
        }
        let image = self.emit(spirv::Op::Load, image_type, refs(&[variable]));
        self.non_uniform(&resource, image);
        if matches!(intrinsic.op, I::ImageSize | I::BindlessImageSize) {
            let Some(def) = intrinsic.def else { return Ok(()) };
            self.capability(Capability::ImageQuery);
            // Those of a cube are of its faces.
            let result = Ty::U32.of(count - u8::from(dim == ImageDim::Cube && !array));
            return self.define_texels(def, spirv::Op::ImageQuerySize, result, refs(&[image]));
        }
        let coordinates = self.coordinates(intrinsic.srcs[1], count);
        let mut operands = refs(&[image, coordinates]);
        if matches!(intrinsic.op, I::ImageLoad | I::BindlessImageLoad) {
            let Some(def) = intrinsic.def else { return Ok(()) };
            if has_samples {
                let sample = self.component(intrinsic.srcs[2], 0, Kind::Uint);
                operands.extend([Operand::ImageOperands(ImageOperands::SAMPLE), Operand::IdRef(sample)]);
            }
            if !is_signed {
                return self.define_texels(def, spirv::Op::ImageRead, texel, operands);
            }
            let signed = self.sampled(texel, true);
            let value = self.emit(spirv::Op::ImageRead, signed, operands);
            let unsigned = self.type_id(texel);
            let value = self.emit(spirv::Op::Bitcast, unsigned, refs(&[value]));
            return self.define_texel(def, value, texel);
        }
        let mut data = self.texel_of(intrinsic.srcs[3], texel);
        if is_signed {
            let signed = self.sampled(texel, true);
            data = self.emit(spirv::Op::Bitcast, signed, refs(&[data]));
        }
        operands.push(Operand::IdRef(data));
        if has_samples {
            let sample = self.component(intrinsic.srcs[2], 0, Kind::Uint);
            operands.extend([Operand::ImageOperands(ImageOperands::SAMPLE), Operand::IdRef(sample)]);
        }
        self.act(spirv::Op::ImageWrite, operands);
        Ok(())
    }

    /// The type of texels, or of their components: numbers may be signed.
    fn sampled(&mut self, ty: Ty, is_signed: bool) -> Word {
        if !is_signed {
            return self.type_id(ty);
        }
        let scalar = self.b.type_int(ty.bits.into(), 1);
        match ty.components {
            1 => scalar,
            components => self.b.type_vector(scalar, components.into()),
        }
    }

    /// A value as a texel: of four components of 32 bits.
    fn texel_of(&mut self, def: Def, texel: Ty) -> Word {
        let ty = self.ty(def);
        if ty.components == 4 && ty.bits == 32 {
            return self.read(def, texel.kind);
        }
        let mut parts = Vec::new();
        for c in 0..ty.components {
            let mut part = self.component(def, c, texel.kind);
            if ty.bits != 32 {
                let op = if texel.kind == Kind::Float { spirv::Op::FConvert } else { spirv::Op::UConvert };
                let wide = self.type_id(texel.of(1));
                part = self.emit(op, wide, refs(&[part]));
            }
            parts.push(part);
        }
        let zero = self.constant(texel.of(1), 0);
        parts.resize(4, zero);
        let four = self.type_id(texel);
        self.emit(spirv::Op::CompositeConstruct, four, refs(&parts))
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
