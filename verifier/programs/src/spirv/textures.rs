//! Textures: samples, fetches and queries.
//!
//! nir's text has neither the dimension of a texture nor if it is an array. The number of coordinates, of offsets and
//! of gradients determines it in part; the rest is chosen by the number of the texture, so that all kinds with that
//! many coordinates are generated.

use ir3_compiler::nir::{BaseType, Def, Function, Tex, TexOp, TexSrcKind};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Capability, Dim, ImageFormat, ImageOperands, StorageClass, Word};

use super::descriptors::{Class, Resource};
use super::values::{Kind, Ty};
use super::{Emitter, NoForm, TexelDim, TexelFormat, TexelShape, no_form, refs};

/// Returns true for the numbers of textures that are arrays, where nothing else decides.
#[must_use]
pub const fn has_layers(number: u32) -> bool {
    number % 4 == 3
}

/// The shape of a texture.
#[derive(Clone, Copy)]
struct Shape {
    dim: Dim,
    is_array: bool,
    has_samples: bool,
}

impl TexelDim {
    /// The dimensions of an image type.
    pub(super) const fn of(dim: Dim, has_samples: bool) -> Self {
        match dim {
            _ if has_samples => Self::Samples,
            Dim::Dim1D => Self::D1,
            Dim::Dim3D => Self::D3,
            Dim::DimCube => Self::Cube,
            Dim::DimBuffer => Self::Buffer,
            _ => Self::D2,
        }
    }
}

/// The dimensions of the texture of an instruction, and whether its last coordinate is a layer; none if it has no form.
#[must_use]
pub fn form_of(function: &Function, tex: &Tex) -> Option<(TexelDim, bool)> {
    let shape = Shape::of(function, tex).ok()?;
    Some((TexelDim::of(shape.dim, shape.has_samples), shape.is_array))
}

impl Shape {
    /// The shape of the texture of an instruction.
    fn of(function: &Function, tex: &Tex) -> Result<Self, NoForm> {
        use TexSrcKind as K;
        let count = |kind| tex.src(kind).map(|def| function.defs[def].num_components);
        let plain = |dim| Shape { dim, is_array: false, has_samples: false };
        let array = |dim| Shape { is_array: true, ..plain(dim) };
        let coordinates = match tex.op {
            TexOp::Txs => function.defs[tex.def].num_components,
            TexOp::QueryLevels => 2,
            TexOp::TextureSamples => return Ok(Shape { has_samples: true, ..plain(Dim::Dim2D) }),
            _ => match count(K::Coord) {
                Some(count) => count,
                None => return no_form(format_args!("`{}` without coordinates", tex.op)),
            },
        };
        let spatial = count(K::Offset).or(count(K::Ddx));
        let is_fetch = matches!(tex.op, TexOp::Txf | TexOp::TxfMs);
        let is_flat = tex.src(K::Comparator).is_some() || tex.op == TexOp::Tg4;
        let is_direct = tex.src(K::Projector).is_some() || tex.op == TexOp::Lod;
        let can_be_cube = !is_fetch && tex.src(K::Offset).is_none() && !is_direct && tex.op != TexOp::Txs;
        let number = tex.texture_index;
        let is_named = tex.src(K::TextureHandle).is_none() && tex.src(K::TextureOffset).is_none();
        let is_layered = is_named && has_layers(number);
        Ok(match (coordinates, spatial) {
            (2 | 3, _) if tex.op == TexOp::TxfMs => {
                Shape { is_array: coordinates == 3, has_samples: true, ..plain(Dim::Dim2D) }
            }
            (1, _) if !matches!(tex.op, TexOp::Tg4 | TexOp::TxfMs) => plain(Dim::Dim1D),
            (2, Some(1)) if tex.op != TexOp::Tg4 => array(Dim::Dim1D),
            (2, None) if !is_direct && tex.op != TexOp::Tg4 && is_layered => array(Dim::Dim1D),
            (2, _) => plain(Dim::Dim2D),
            (3, Some(2)) => array(Dim::Dim2D),
            (3, _) if is_direct => plain(Dim::Dim3D),
            (3, _) if can_be_cube && number % 3 == 1 => plain(Dim::DimCube),
            (3, None) if is_flat || is_layered => array(Dim::Dim2D),
            (3, _) if !is_flat => plain(Dim::Dim3D),
            (4, None | Some(3)) if can_be_cube => array(Dim::DimCube),
            _ => return no_form(format_args!("`{}` with {coordinates} coordinates", tex.op)),
        })
    }
}

impl Emitter<'_> {
    /// The type of a texel: 4 components of 32 bits of this kind.
    pub fn texel(&self, kind: Kind) -> Ty {
        Ty { kind, bits: 32, components: 4 }
    }

    /// Emits a texture instruction.
    pub fn texture(&mut self, tex: &Tex) -> Result<(), NoForm> {
        use TexSrcKind as K;
        let refused = [K::Plane, K::Backend1, K::Backend2, K::MinLod];
        if let Some(kind) = refused.into_iter().find(|&kind| tex.src(kind).is_some()) {
            return no_form(format_args!("`{}` with `{kind}`", tex.op));
        }
        if tex.sparse || tex.gather_offsets.is_some() {
            return no_form(format_args!("`{}` of this kind", tex.op));
        }
        let shape = Shape::of(self.function, tex)?;
        let Shape { dim, is_array, has_samples } = shape;
        match dim {
            Dim::Dim1D => self.capability(Capability::Sampled1D),
            Dim::DimCube if is_array => self.capability(Capability::SampledCubeArray),
            _ => {}
        }
        let is_query = matches!(tex.op, TexOp::Txs | TexOp::QueryLevels | TexOp::TextureSamples | TexOp::Lod);
        let kind = match tex.dest_type.base {
            BaseType::Float => Kind::Float,
            _ if is_query => Kind::Float,
            _ => Kind::Uint,
        };
        let texel = self.texel(kind);
        let sampled = self.type_id(texel.of(1));
        let image_type =
            self.b.type_image(sampled, dim, 0, is_array.into(), has_samples.into(), 1, ImageFormat::Unknown, None);
        let mut resource = Resource::of_tex(self.function, tex, Class::Texture);
        let format = if kind == Kind::Float { TexelFormat::Rgba32Float } else { TexelFormat::Rgba32Uint };
        resource.texels = Some(TexelShape { dim: TexelDim::of(dim, has_samples), is_array, format });
        let image = self.loaded(&resource, image_type)?;
        if is_query {
            return self.query(tex, image, image_type);
        }
        let image = if tex.op.needs_sampler() { self.with_sampler(tex, image, image_type)? } else { image };
        let is_fetch = matches!(tex.op, TexOp::Txf | TexOp::TxfMs);
        let Some(coord) = tex.src(K::Coord) else { return no_form(format_args!("`{}` without coordinates", tex.op)) };
        let mut coordinate = if is_fetch { self.number_words(coord) } else { self.float_words(coord) };
        let comparator = tex.src(K::Comparator).map(|def| self.float_words(def));
        let projector = tex.src(K::Projector).map(|def| self.float_words(def));
        if let Some(projector) = projector {
            let count = self.function.defs[coord].num_components + 1;
            let ty = self.type_id(Ty::F32.of(count));
            coordinate = self.emit(spirv::Op::CompositeConstruct, ty, refs(&[coordinate, projector]));
        }
        let explicit = matches!(tex.op, TexOp::Txl | TexOp::Txd) || tex.src(K::Lod).is_some() && !is_fetch;
        let op = match (tex.op, projector.is_some(), comparator.is_some(), explicit) {
            (TexOp::Txf | TexOp::TxfMs, false, false, _) => spirv::Op::ImageFetch,
            (TexOp::Tg4, false, false, _) => spirv::Op::ImageGather,
            (TexOp::Tg4, false, true, _) => spirv::Op::ImageDrefGather,
            (TexOp::Tex | TexOp::TexPrefetch | TexOp::Txb | TexOp::Txl | TexOp::Txd, projects, compares, explicit) => {
                match (projects, compares, explicit) {
                    (false, false, false) => spirv::Op::ImageSampleImplicitLod,
                    (false, true, false) => spirv::Op::ImageSampleDrefImplicitLod,
                    (false, false, true) => spirv::Op::ImageSampleExplicitLod,
                    (false, true, true) => spirv::Op::ImageSampleDrefExplicitLod,
                    (true, false, false) => spirv::Op::ImageSampleProjImplicitLod,
                    (true, true, false) => spirv::Op::ImageSampleProjDrefImplicitLod,
                    (true, false, true) => spirv::Op::ImageSampleProjExplicitLod,
                    (true, true, true) => spirv::Op::ImageSampleProjDrefExplicitLod,
                }
            }
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
            extra.push(self.float_words(bias));
        }
        if let Some(lod) = tex.src(K::Lod) {
            mask |= ImageOperands::LOD;
            extra.push(if is_fetch { self.number_words(lod) } else { self.float_words(lod) });
        }
        if let (Some(x), Some(y)) = (tex.src(K::Ddx), tex.src(K::Ddy)) {
            mask |= ImageOperands::GRAD;
            extra.extend([self.float_words(x), self.float_words(y)]);
        }
        if let Some(offset) = tex.src(K::Offset) {
            if self.function.as_const(offset).is_some() {
                mask |= ImageOperands::CONST_OFFSET;
            } else if tex.op == TexOp::Tg4 {
                self.capability(Capability::ImageGatherExtended);
                mask |= ImageOperands::OFFSET;
            } else {
                return no_form(format_args!("`{}` with a computed offset", tex.op));
            }
            extra.push(self.number_words(offset));
        }
        if let Some(sample) = tex.src(K::MsIndex) {
            mask |= ImageOperands::SAMPLE;
            extra.push(self.number_words(sample));
        }
        if !mask.is_empty() {
            operands.push(Operand::ImageOperands(mask));
            operands.extend(refs(&extra));
        }
        let result = if comparator.is_some() && op != spirv::Op::ImageDrefGather { texel.of(1) } else { texel };
        self.define_texels(tex.def, op, result, operands)
    }

    /// Loads a texture or a sampler.
    fn loaded(&mut self, resource: &Resource, ty: Word) -> Result<Word, NoForm> {
        let pointer = self.descriptor(resource, ty, StorageClass::UniformConstant)?;
        let id = self.emit(spirv::Op::Load, ty, refs(&[pointer]));
        self.non_uniform(resource, id);
        Ok(id)
    }

    /// A texture with the sampler of an instruction.
    fn with_sampler(&mut self, tex: &Tex, image: Word, image_type: Word) -> Result<Word, NoForm> {
        let sampler_type = self.b.type_sampler();
        let resource = Resource::of_tex(self.function, tex, Class::Sampler);
        let sampler = self.loaded(&resource, sampler_type)?;
        let both = self.b.type_sampled_image(image_type);
        let id = self.emit(spirv::Op::SampledImage, both, refs(&[image, sampler]));
        self.non_uniform(&resource, id);
        let texture = Resource::of_tex(self.function, tex, Class::Texture);
        if !(resource.plus.is_some() && resource.is_non_uniform) {
            self.non_uniform(&texture, id);
        }
        Ok(id)
    }

    /// Emits a query of a texture.
    fn query(&mut self, tex: &Tex, image: Word, image_type: Word) -> Result<(), NoForm> {
        use TexSrcKind as K;
        self.capability(Capability::ImageQuery);
        let image_ref = Operand::IdRef(image);
        match tex.op {
            TexOp::Txs => {
                let lod = match tex.src(K::Lod) {
                    Some(lod) => self.number_words(lod),
                    None => self.number(0),
                };
                let result = Ty::U32.of(self.function.defs[tex.def].num_components);
                self.define_texels(tex.def, spirv::Op::ImageQuerySizeLod, result, refs(&[image, lod]))
            }
            TexOp::QueryLevels => self.define_texels(tex.def, spirv::Op::ImageQueryLevels, Ty::U32, vec![image_ref]),
            TexOp::TextureSamples => {
                self.define_texels(tex.def, spirv::Op::ImageQuerySamples, Ty::U32, vec![image_ref])
            }
            _ => {
                let Some(coord) = tex.src(K::Coord) else { return no_form("`lod` without coordinates") };
                let image = self.with_sampler(tex, image, image_type)?;
                let coordinate = self.float_words(coord);
                self.define_texels(tex.def, spirv::Op::ImageQueryLod, Ty::F32.of(2), refs(&[image, coordinate]))
            }
        }
    }

    /// A value as floats of 32 bits: coordinates have these.
    fn float_words(&mut self, def: Def) -> Word {
        let value = self.read(def, Kind::Float);
        let ty = self.ty(def);
        match ty.bits {
            32 => value,
            _ => {
                let wide = self.type_id(Ty { kind: Kind::Float, bits: 32, ..ty });
                self.emit(spirv::Op::FConvert, wide, refs(&[value]))
            }
        }
    }

    /// A value as signed numbers of 32 bits.
    fn number_words(&mut self, def: Def) -> Word {
        let ty = self.ty(def);
        let wide = Ty { kind: Kind::Uint, bits: 32, ..ty };
        if ty.bits == 32 {
            return self.read(def, Kind::Uint);
        }
        if let Some(values) = self.function.as_const(def) {
            let shift = 64 - u32::from(ty.bits);
            let values = values.iter().map(|value| ((value << shift).cast_signed() >> shift) as u32);
            let parts: Vec<Word> = values.map(|value| self.number(value)).collect();
            let wide = self.type_id(wide);
            return match parts[..] {
                [part] => part,
                _ => self.b.constant_composite(wide, parts),
            };
        }
        let value = self.read(def, Kind::Uint);
        let wide = self.type_id(wide);
        self.emit(spirv::Op::SConvert, wide, refs(&[value]))
    }

    /// Defines a value as the result of an access to texels, whose width and size may be others.
    pub fn define_texels(&mut self, def: Def, op: spirv::Op, result: Ty, operands: Vec<Operand>) -> Result<(), NoForm> {
        let type_id = self.type_id(result);
        if self.ty(def) == result {
            self.emit_as(self.ids[def], op, type_id, operands);
            return Ok(());
        }
        let value = self.emit(op, type_id, operands);
        self.define_texel(def, value, result)
    }

    /// Defines a value as another one, with fewer components, of another width or kind.
    pub fn define_texel(&mut self, def: Def, mut value: Word, result: Ty) -> Result<(), NoForm> {
        let wanted = self.ty(def);
        if wanted.bits == result.bits {
            return match wanted == result {
                true => {
                    let ty = self.type_id(wanted);
                    self.emit_as(self.ids[def], spirv::Op::CopyObject, ty, refs(&[value]));
                    Ok(())
                }
                false => self.narrow(def, value, result, 0),
            };
        }
        if wanted.components > result.components {
            return no_form("more components than texels have");
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
        let convert = if result.kind == Kind::Float { spirv::Op::FConvert } else { spirv::Op::UConvert };
        let converted = Ty { kind: result.kind, ..wanted };
        let ty = self.type_id(converted);
        if wanted.kind == result.kind {
            self.emit_as(self.ids[def], convert, ty, refs(&[value]));
            return Ok(());
        }
        let value = self.emit(convert, ty, refs(&[value]));
        let ty = self.type_id(wanted);
        self.emit_as(self.ids[def], spirv::Op::Bitcast, ty, refs(&[value]));
        Ok(())
    }
}
