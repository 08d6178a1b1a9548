//! Textures: from nir's sources to the canonical request, as `ir3::access` defines it.

use ir3_compiler::ir3::Type;
use ir3_compiler::ir3::access::{Slot, TextureKind, TextureShape};
use ir3_compiler::nir::{BaseType, Def, ImageDim, Intrinsic, Op, Stage, Tex, TexOp, TexSrcKind};
use smallvec::SmallVec;

use super::intrinsics::result;
use super::{DecodeResult, Decoder};
use crate::interp::nir::op::{DecodedOp, R, ResourceOperand, Texture, TextureOperand};
use crate::operations::{Kernel, halves, nir_alu};

impl Decoder<'_> {
    pub(super) fn texture(&mut self, tex: &Tex) -> DecodeResult<()> {
        use TexSrcKind as S;
        for (kind, _) in &tex.srcs {
            if matches!(kind, S::MinLod | S::Plane | S::Backend1 | S::Backend2) {
                return Err(format!("a source `{}`", kind.name()));
            }
        }
        if tex.sparse || tex.gather_offsets.is_some() {
            return Err("a residency code, or four offsets".to_owned());
        }
        if tex.implicit_lod {
            return Err("a gather that computes its level".to_owned());
        }
        let has_lod = tex.src(S::Lod).is_some();
        let kind = match tex.op {
            TexOp::Tex | TexOp::TexPrefetch if has_lod => TextureKind::SampleLod,
            TexOp::Tex | TexOp::TexPrefetch => TextureKind::Sample,
            TexOp::Txl => TextureKind::SampleLod,
            TexOp::Txb => TextureKind::SampleBias,
            TexOp::Txd => TextureKind::SampleGrad,
            TexOp::Txf => TextureKind::Fetch,
            TexOp::TxfMs => TextureKind::FetchMs,
            TexOp::Tg4 => TextureKind::Gather(tex.component),
            TexOp::Lod => TextureKind::LodQuery,
            TexOp::Txs if has_lod && tex.dim != Some(ImageDim::Buf) => TextureKind::Size,
            TexOp::Txs => TextureKind::BufferSize,
            TexOp::QueryLevels | TexOp::TextureSamples => TextureKind::Info,
            TexOp::TxfMsFb | TexOp::SamplesIdentical => return Err(String::new()),
        };
        let derivatives = kind.has_implicit_derivatives() && self.has_quads()?;
        let mut operands = SmallVec::new();
        match kind {
            TextureKind::Info | TextureKind::BufferSize => {}
            TextureKind::Size => self.operands(kind, &mut operands, &[Slot::Lod], tex.src(S::Lod), None)?,
            _ => self.question(tex, kind, &mut operands)?,
        }
        let resource = |index, [offset, handle]: [S; 2], nonuniform| -> DecodeResult<ResourceOperand> {
            let bound = ResourceOperand { set: None, base: index, row: None, bound: true, shared: false };
            Ok(match (tex.src(handle), tex.src(offset)) {
                (Some(handle), _) => self.resource(handle, nonuniform)?,
                (None, Some(offset)) => {
                    ResourceOperand { row: Some(self.scalar(offset)?), shared: !nonuniform, ..bound }
                }
                (None, None) => bound,
            })
        };
        let texture = resource(tex.texture_index, [S::TextureOffset, S::TextureHandle], tex.texture_non_uniform)?;
        let sampler = resource(tex.sampler_index, [S::SamplerOffset, S::SamplerHandle], tex.sampler_non_uniform)?;
        let bits = self.bits(tex.def);
        let ty = match (tex.dest_type.base, bits) {
            (BaseType::Float, 32) => Type::F32,
            (BaseType::Float, 16) => Type::F16,
            (BaseType::Int, 32) => Type::S32,
            (BaseType::Int, 16) => Type::S16,
            (BaseType::Uint | BaseType::Bool, 32) => Type::U32,
            (BaseType::Uint | BaseType::Bool, 16) => Type::U16,
            _ => return Err(format!("a result of type {} and {bits} bits", tex.dest_type)),
        };
        let first_component = match tex.op {
            TexOp::QueryLevels => 2,
            TexOp::TextureSamples => 3,
            _ => 0,
        };
        let [coordinates, offsets] = [S::Coord, S::Offset].map(|kind| tex.src(kind));
        let rows = |this: &mut Self, def: Option<Def>| -> DecodeResult<SmallVec<[R; 4]>> {
            def.map_or(Ok(SmallVec::new()), |def| Ok(this.read(def)?.iter().copied().collect()))
        };
        let (coordinates, offsets) = (rows(self, coordinates)?, rows(self, offsets)?);
        let is_array = tex.is_array;
        let components = self.components(tex.def).min(4);
        let first = self.define(tex.def);
        let answered = |i| match tex.op {
            // The number of layers, after the dimensions.
            TexOp::Txs if tex.is_array && i + 1 == components => 2,
            _ => first_component + i,
        };
        let results = (0..components).map(|i| (answered(i), first + i)).collect();
        let levels = kind == TextureKind::LodQuery;
        let origin = self.origin();
        self.code.textures.push(Texture {
            kind,
            texture,
            sampler,
            operands,
            coordinates,
            offsets,
            is_array,
            derivatives,
            ty,
            results,
            levels,
            origin,
        });
        self.push(DecodedOp::Texture(self.code.textures.len() as u32 - 1));
        Ok(())
    }

    /// The position of a sample in its pixel, by the sample's number.
    pub(super) fn sample_position(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        let sample = self.scalar(intrinsic.srcs[0])?;
        let operands = [(Slot::Sample, TextureOperand::Row(sample))].into_iter().collect();
        let none = || ResourceOperand { set: None, base: 0, row: None, bound: true, shared: false };
        let components = self.components(def);
        let first = self.define(def);
        let results = (0..components).map(|i| (i, first + i)).collect();
        let kind = TextureKind::SamplePosition;
        let origin = self.origin();
        self.code.textures.push(Texture {
            kind,
            texture: none(),
            sampler: none(),
            operands,
            coordinates: SmallVec::new(),
            offsets: SmallVec::new(),
            is_array: false,
            derivatives: false,
            ty: Type::F32,
            results,
            levels: false,
            origin,
        });
        self.push(DecodedOp::Texture(self.code.textures.len() as u32 - 1));
        Ok(())
    }

    /// Returns true if derivatives are implicit: in fragment shaders. Elsewhere a sample is from level 0, as Mesa
    /// lowers it, unless a compute shader has quads of its own.
    fn has_quads(&self) -> DecodeResult<bool> {
        if self.shader.info.other.iter().any(|(key, group)| key == "derivative_group" && group.trim() != "0") {
            return Err("implicit derivatives in a workgroup".to_owned());
        }
        Ok(self.shader.stage == Stage::Fragment)
    }

    /// Appends a source's components; missing ones are `padding`, if given.
    fn operands(
        &mut self,
        kind: TextureKind,
        operands: &mut SmallVec<[(Slot, TextureOperand); 6]>,
        slots: &[Slot],
        def: Option<Def>,
        padding: Option<u32>,
    ) -> DecodeResult<()> {
        let Some(def) = def else { return Ok(()) };
        let rows = self.read(def)?.clone();
        for (i, &slot) in slots.iter().enumerate() {
            match (rows.get(i), padding) {
                (Some(&row), _) => operands.push((slot, self.word(kind, slot, def, row)?)),
                (None, Some(bits)) if i < 2 => operands.push((slot, TextureOperand::Bits(bits))),
                _ => {}
            }
        }
        Ok(())
    }

    /// The coordinate of level 0 that is this one in another level.
    fn shifted(&mut self, row: R, level: Def) -> DecodeResult<R> {
        let b = self.scalar(level)?;
        let Some(Kernel::Two(kernel)) = nir_alu::kernel(Op::Ishl, 32, &[32, 32], self.controls) else {
            return Err("no shift of words".to_owned());
        };
        let dst = self.new_rows(1);
        self.push(DecodedOp::Two { kernel, dst, a: row, b, keep: false });
        Ok(dst)
    }

    /// A component of a source as an operand: a word.
    fn word(&mut self, kind: TextureKind, slot: Slot, def: Def, row: R) -> DecodeResult<TextureOperand> {
        if self.bits(def) != 16 {
            return Ok(TextureOperand::Row(row));
        }
        let kernel = halves::widening(halves::is_float(kind, slot)).ok_or("no conversion of halves")?;
        let dst = self.new_rows(1);
        self.push(DecodedOp::One { kernel, dst, a: row, keep: false });
        Ok(TextureOperand::Row(dst))
    }

    /// The operands of an operation with coordinates.
    fn question(
        &mut self,
        tex: &Tex,
        kind: TextureKind,
        operands: &mut SmallVec<[(Slot, TextureOperand); 6]>,
    ) -> DecodeResult<()> {
        use TexSrcKind as S;
        let coord = tex.src(S::Coord).ok_or("no coordinates")?;
        let hint = tex.src(S::Ddx).or(tex.src(S::Offset)).map(|def| self.function.defs[def].num_components);
        let coords = self.function.defs[coord].num_components;
        let hint = hint.or(tex.is_array.then(|| coords - 1));
        let shape = TextureShape::new(coords, hint);
        let rows = self.read(coord)?.clone();
        let fetch = matches!(kind, TextureKind::Fetch | TextureKind::FetchMs);
        let middle = if fetch { 0 } else { 0.5f32.to_bits() };
        // A question for the level has no layer: a third coordinate is that of a cube or of three dimensions.
        let dims = if kind == TextureKind::LodQuery { rows.len() } else { usize::from(shape.dims) };
        let level = tex.src(S::Lod).filter(|_| kind == TextureKind::Fetch && self.rules.fetches_level_0);
        for (&slot, &row) in Slot::COORDS.iter().zip(&rows[..dims.min(rows.len())]) {
            let row = match level {
                Some(level) => self.shifted(row, level)?,
                None => row,
            };
            let word = self.word(kind, slot, coord, row)?;
            operands.push((slot, word));
        }
        if dims == 1 {
            operands.push((Slot::Y, TextureOperand::Bits(middle)));
        }
        if kind == TextureKind::LodQuery {
            // The level does not depend on other operands.
            return Ok(());
        }
        if let (true, Some(&row)) = (shape.layer, rows.get(dims)) {
            let slot = shape.layer_slot();
            let word = self.word(kind, slot, coord, row)?;
            operands.push((slot, word));
        }
        self.operands(kind, operands, &[Slot::Comparator], tex.src(S::Comparator), None)?;
        self.operands(kind, operands, &[Slot::Projector], tex.src(S::Projector), None)?;
        self.operands(kind, operands, &[Slot::Sample], tex.src(S::MsIndex), None)?;
        let level = if tex.op == TexOp::Txb { tex.src(S::Bias) } else { tex.src(S::Lod) };
        match (level, kind) {
            (Some(_), TextureKind::SampleLod | TextureKind::SampleBias | TextureKind::Fetch) => {
                self.operands(kind, operands, &[Slot::Lod], level, None)?;
            }
            (None, TextureKind::Fetch) => operands.push((Slot::Lod, TextureOperand::Bits(0))),
            _ => {}
        }
        if kind == TextureKind::SampleGrad {
            self.operands(kind, operands, &Slot::DDX, tex.src(S::Ddx), Some(0))?;
            self.operands(kind, operands, &Slot::DDY, tex.src(S::Ddy), Some(0))?;
        }
        self.operands(kind, operands, &Slot::OFFSET, tex.src(S::Offset), Some(0))
    }
}
