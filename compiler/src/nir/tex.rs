//! Texture operations.

use smallvec::SmallVec;

use super::function::Def;
use super::index::ImageDim;
use super::types::{AluType, BaseType};
use crate::words;

words! {
    /// The operation of a texture instruction.
    pub enum TexOp {
        Tex = "tex", Txb = "txb", Txl = "txl", Txd = "txd", Txf = "txf", TxfMs = "txf_ms", TxfMsFb = "txf_ms_fb",
        Txs = "txs", Lod = "lod", Tg4 = "tg4", QueryLevels = "query_levels", TextureSamples = "texture_samples",
        SamplesIdentical = "samples_identical", TexPrefetch = "tex (pre-dispatchable)",
    }
}

impl TexOp {
    /// Returns true if the operation uses a sampler.
    pub fn needs_sampler(self) -> bool {
        matches!(self, TexOp::Tex | TexOp::Txb | TexOp::Txl | TexOp::Txd | TexOp::Lod | TexOp::Tg4 | TexOp::TexPrefetch)
    }
}

impl TexOp {
    /// Returns true if the operation can have a source of a kind.
    pub fn takes(self, kind: TexSrcKind) -> bool {
        use TexSrcKind as S;
        let samples = matches!(self, TexOp::Tex | TexOp::Txb | TexOp::Txl | TexOp::Txd);
        match kind {
            S::Coord => !self.is_query(),
            S::Projector => samples,
            S::Comparator => samples || self == TexOp::Tg4,
            S::Offset => samples || matches!(self, TexOp::Txf | TexOp::TxfMs | TexOp::Tg4),
            S::Bias => self == TexOp::Txb,
            S::Lod => matches!(self, TexOp::Tex | TexOp::Txl | TexOp::Txf | TexOp::Txs | TexOp::QueryLevels),
            S::MinLod => samples && self != TexOp::Txl,
            S::MsIndex => matches!(self, TexOp::TxfMs | TexOp::TxfMsFb),
            S::Ddx | S::Ddy => self == TexOp::Txd,
            S::TextureOffset | S::TextureHandle | S::Plane | S::Backend1 | S::Backend2 => true,
            S::SamplerOffset | S::SamplerHandle => self.needs_sampler(),
        }
    }

    /// Returns true if the operation queries a texture as a whole, without coordinates.
    pub fn is_query(self) -> bool {
        matches!(self, TexOp::Txs | TexOp::QueryLevels | TexOp::TextureSamples)
    }

    /// The types of its results.
    pub fn result_types(self) -> &'static [BaseType] {
        match self {
            TexOp::Txs | TexOp::QueryLevels | TexOp::TextureSamples => &[BaseType::Int, BaseType::Uint],
            TexOp::Lod => &[BaseType::Float],
            TexOp::SamplesIdentical => &[BaseType::Bool, BaseType::Int, BaseType::Uint],
            _ => &[BaseType::Float, BaseType::Int, BaseType::Uint, BaseType::Bool],
        }
    }
}

words! {
    /// The kind of a source of a texture instruction.
    pub enum TexSrcKind {
        Coord = "coord", Projector = "projector", Comparator = "comparator", Offset = "offset", Bias = "bias",
        Lod = "lod", MinLod = "min_lod", MsIndex = "ms_index", Ddx = "ddx", Ddy = "ddy",
        TextureOffset = "texture_offset", SamplerOffset = "sampler_offset", TextureHandle = "texture_handle",
        SamplerHandle = "sampler_handle", Plane = "plane", Backend1 = "backend1", Backend2 = "backend2",
    }
}

/// A texture instruction. The text of some versions of Mesa has the dimension, none has the arrayness; the number of
/// coordinate components restricts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tex {
    /// The operation.
    pub op: TexOp,
    /// The type of the result.
    pub dest_type: AluType,
    /// The result.
    pub def: Def,
    /// The sources, in print order.
    pub srcs: SmallVec<[(TexSrcKind, Def); 4]>,
    /// The texture, if no handle source names it; 0 otherwise.
    pub texture_index: u32,
    /// The sampler, if the operation needs one and no handle source names it; 0 otherwise.
    pub sampler_index: u32,
    /// The component that a gather reads.
    pub component: u8,
    /// True for a gather that computes its lod.
    pub implicit_lod: bool,
    /// The four offsets of a gather with explicit offsets.
    pub gather_offsets: Option<Box<[[i8; 2]; 4]>>,
    /// True if the texture may differ between lanes.
    pub texture_non_uniform: bool,
    /// True if the sampler may differ between lanes.
    pub sampler_non_uniform: bool,
    /// True if the result has a residency code.
    pub sparse: bool,
    /// The dimension, if the text has it: Mesa prints it since 25.3.
    pub dim: Option<ImageDim>,
    /// True if the texture is known to be an array: the last coordinate is a layer, the last component of a size the
    /// number of layers. The text does not print it; ir3 does.
    pub is_array: bool,
}

impl Tex {
    /// Creates an operation without sources.
    pub fn new(op: TexOp, dest_type: AluType, def: Def) -> Tex {
        Tex {
            op,
            dest_type,
            def,
            srcs: SmallVec::new(),
            texture_index: 0,
            sampler_index: 0,
            component: 0,
            implicit_lod: false,
            gather_offsets: None,
            texture_non_uniform: false,
            sampler_non_uniform: false,
            sparse: false,
            dim: None,
            is_array: false,
        }
    }

    /// The source of one kind.
    pub fn src(&self, kind: TexSrcKind) -> Option<Def> {
        self.srcs.iter().find(|(k, _)| *k == kind).map(|(_, def)| *def)
    }
}
