//! Texture operations.

use smallvec::SmallVec;

use super::function::Def;
use super::index::words;
use super::types::AluType;

words! {
    /// What a texture instruction does.
    TexOp {
        Tex = "tex", Txb = "txb", Txl = "txl", Txd = "txd", Txf = "txf", TxfMs = "txf_ms", TxfMsFb = "txf_ms_fb",
        Txs = "txs", Lod = "lod", Tg4 = "tg4", QueryLevels = "query_levels", TextureSamples = "texture_samples",
        SamplesIdentical = "samples_identical", TexPrefetch = "tex (pre-dispatchable)",
    }
}

impl TexOp {
    /// Whether the operation uses a sampler.
    pub fn needs_sampler(self) -> bool {
        matches!(self, TexOp::Tex | TexOp::Txb | TexOp::Txl | TexOp::Txd | TexOp::Lod | TexOp::Tg4 | TexOp::TexPrefetch)
    }

    /// Whether the operation asks about the texture, and reads no texel.
    pub fn is_query(self) -> bool {
        matches!(self, TexOp::Txs | TexOp::Lod | TexOp::QueryLevels | TexOp::TextureSamples)
    }
}

words! {
    /// What a source of a texture instruction is.
    TexSrcKind {
        Coord = "coord", Projector = "projector", Comparator = "comparator", Offset = "offset", Bias = "bias",
        Lod = "lod", MinLod = "min_lod", MsIndex = "ms_index", Ddx = "ddx", Ddy = "ddy",
        TextureOffset = "texture_offset", SamplerOffset = "sampler_offset", TextureHandle = "texture_handle",
        SamplerHandle = "sampler_handle", Plane = "plane", Backend1 = "backend1", Backend2 = "backend2",
    }
}

/// A texture instruction. Dimension and arrayness are not in nir text: the coordinate's components tell what is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tex {
    /// What it does.
    pub op: TexOp,
    /// The type of the result.
    pub dest_type: AluType,
    /// The result.
    pub def: Def,
    /// The sources, in print order.
    pub srcs: SmallVec<[(TexSrcKind, Def); 4]>,
    /// The texture, where no handle names it; 0 otherwise.
    pub texture_index: u32,
    /// The sampler, where the operation needs one and no handle names it; 0 otherwise.
    pub sampler_index: u32,
    /// Which component a gather takes.
    pub component: u8,
    /// A gather that computes its lod.
    pub implicit_lod: bool,
    /// The four offsets of a gather with explicit ones.
    pub gather_offsets: Option<Box<[[i8; 2]; 4]>>,
    /// The texture differs between lanes.
    pub texture_non_uniform: bool,
    /// The sampler differs between lanes.
    pub sampler_non_uniform: bool,
    /// The result has a residency code.
    pub sparse: bool,
}

impl Tex {
    /// An operation without sources.
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
        }
    }

    /// The source of one kind.
    pub fn src(&self, kind: TexSrcKind) -> Option<Def> {
        self.srcs.iter().find(|(k, _)| *k == kind).map(|(_, def)| *def)
    }

    /// Whether it compares with a reference.
    pub fn is_shadow(&self) -> bool {
        self.src(TexSrcKind::Comparator).is_some()
    }
}
