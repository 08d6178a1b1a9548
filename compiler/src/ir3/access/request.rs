//! The canonical form of a question to a texture, which both interpreters fill and hash.
//!
//! nir's `tex` instructions and the machine's `sam*` differ in how they write a question down; the answer is a fixed
//! function of the question, so both are brought to one form. Every operand is its raw bits (16-bit operands
//! zero-extended) in a [`Slot`]; a slot that is not present is zero. The form is the machine's, which nir's must be brought to:
//!
//! - *Kind*: `tex` (also pre-dispatchable) is [`TextureKind::Sample`], with an lod source [`TextureKind::SampleLod`];
//!   `txl` likewise; `txb` [`TextureKind::SampleBias`]; `txd` [`TextureKind::SampleGrad`]; `txf`
//!   [`TextureKind::Fetch`]; `txf_ms` [`TextureKind::FetchMs`]; `tg4` [`TextureKind::Gather`]; `lod` [`TextureKind::LodQuery`];
//!   `txs` [`TextureKind::Size`] or, where it has no lod source, [`TextureKind::BufferSize`]; `query_levels` and `texture_samples` [`TextureKind::Info`].
//! - *Coordinates*: nir's text tells how many there are, and not whether the last one is an array layer, so the layer is a coordinate like
//!   any other: [`TextureShape`] says how many dimensions there are and whether a layer stands behind them. Coordinates are X, Y, Z;
//!   one dimension is padded to two: Y is 0.5 (in the coordinate's width), or 0 for `txf` and `txf_ms`. The layer is in the slot behind the (padded)
//!   dimensions: Z or Layer. `lod` has X and Y only.
//! - *Comparator*: if there is one; never for `lod`. *Projector*: if there is one.
//! - *Lod*: the lod or bias. `txf` without one has lod 0. Kinds without lod have none.
//! - *Offset*: as many as the source has, one padded with 0 to two; signed offsets as they stand.
//! - *Ddx*, *Ddy*: as many as dimensions, one padded with 0 to two.
//! - *Sample*: of `txf_ms`.
//! - *Texture* and *sampler*: see [the module above](super): bound ones are the index plus the source that is added to it, bindless ones
//!   the set and the value of the handle. Fetches, sizes and infos have no sampler.
//!
//! The answer has four components, and component `i` of the instruction is component `i` of the answer, but:
//! - Components 2 and 3 of the answer to [`TextureKind::Size`] are equal: the machine has the number of layers in component 3.
//! - `query_levels` is component 2 of the answer, `texture_samples` component 3.
//! - `lod`: the answer's components 0 and 1 are small integers `n`; the result is `n * (1/256)` as float of the result's width.
//! - Where `Target::levels_add_one` holds, the machine's `getinfo` returns one less than the answer in component 2.
//! - An answer to a 16-bit float result is that of the same question rounded to 16 bits; integers are truncated.

use super::ResourceId;

/// Dimensions of a texture, as far as its coordinates tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextureShape {
    /// Coordinates that are no array layer, 1 to 3.
    pub dims: u8,
    /// An array layer stands behind them.
    pub layer: bool,
}

impl TextureShape {
    /// The shape for so many coordinates, and components of the derivatives or else of the texel offset if there are any.
    /// (Those have no component for the layer.)
    pub const fn new(coords: u8, derivatives_or_offset: Option<u8>) -> Self {
        let dims = match derivatives_or_offset {
            Some(dims) if dims + 1 == coords => dims,
            _ if coords > 3 => 3,
            _ => coords,
        };
        Self { dims, layer: coords > dims }
    }

    /// Dimensions that the machine is given.
    pub const fn padded(self) -> u8 {
        if self.dims < 2 { 2 } else { self.dims }
    }

    /// Where the layer goes.
    pub const fn layer_slot(self) -> Slot {
        if self.padded() == 2 { Slot::Z } else { Slot::Layer }
    }
}

/// What ir3's text tells of the shape of a texture. nir's text tells nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrintedShape {
    /// `.3d`: three coordinates, of a volume or a cube.
    pub three: bool,
    /// `.a`: an array.
    pub array: bool,
    /// A cube, as our text has it.
    pub cube: bool,
}

impl PrintedShape {
    /// A number for hashing.
    pub const fn number(self) -> u32 {
        self.three as u32 | (self.array as u32) << 1 | (self.cube as u32) << 2
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextureKind {
    /// Sample with implicit level.
    Sample,
    /// Sample with a bias.
    SampleBias,
    /// Sample at a level.
    SampleLod,
    /// Sample with derivatives.
    SampleGrad,
    /// Texel at integer coordinates.
    Fetch,
    /// Texel of a sample at integer coordinates.
    FetchMs,
    /// One component of the four texels around the coordinate.
    Gather(u8),
    /// Level that would be sampled.
    LodQuery,
    /// Size of a level.
    Size,
    /// Size of a buffer.
    BufferSize,
    /// Number of levels (component 2), of samples (component 3).
    Info,
    /// Position of a sample in its pixel, by the sample's number: the same whatever the texture's number is, which is 0.
    SamplePosition,
}

impl TextureKind {
    /// Whether the question involves a sampler.
    pub const fn has_sampler(self) -> bool {
        !matches!(self, Self::Fetch | Self::FetchMs | Self::Size | Self::BufferSize | Self::Info | Self::SamplePosition)
    }

    /// Returns true if the level comes from derivatives, which are differences between the coordinates of a quad: in fragment shaders
    /// (`nir_tex_instr_has_implicit_derivative`). A gather takes level 0.
    pub const fn has_implicit_derivatives(self) -> bool {
        matches!(self, Self::Sample | Self::SampleBias | Self::LodQuery)
    }

    /// A number for hashing.
    pub const fn number(self) -> u32 {
        match self {
            Self::Sample => 0,
            Self::SampleBias => 1,
            Self::SampleLod => 2,
            Self::SampleGrad => 3,
            Self::Fetch => 4,
            Self::FetchMs => 5,
            Self::LodQuery => 6,
            Self::Size => 7,
            Self::BufferSize => 8,
            Self::Info => 9,
            Self::SamplePosition => 10,
            Self::Gather(component) => 16 + component as u32,
        }
    }
}

/// An operand of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Slot {
    /// First coordinate.
    X,
    /// Second coordinate.
    Y,
    /// Third coordinate, or array layer behind two coordinates.
    Z,
    /// Array layer behind three coordinates.
    Layer,
    /// Reference of a shadow comparison.
    Comparator,
    /// Divisor of the coordinates.
    Projector,
    /// Level or bias.
    Lod,
    /// Texel offset in x.
    OffsetX,
    /// Texel offset in y.
    OffsetY,
    /// Texel offset in z.
    OffsetZ,
    /// Derivative in x of the first coordinate.
    DdxX,
    /// Derivative in x of the second coordinate.
    DdxY,
    /// Derivative in x of the third coordinate.
    DdxZ,
    /// Derivative in y of the first coordinate.
    DdyX,
    /// Derivative in y of the second coordinate.
    DdyY,
    /// Derivative in y of the third coordinate.
    DdyZ,
    /// Sample number.
    Sample,
}

impl Slot {
    /// Number of slots.
    pub const COUNT: usize = 17;
    /// The coordinates.
    pub const COORDS: [Self; 3] = [Self::X, Self::Y, Self::Z];
    /// The texel offset.
    pub const OFFSET: [Self; 3] = [Self::OffsetX, Self::OffsetY, Self::OffsetZ];
    /// Derivatives in x.
    pub const DDX: [Self; 3] = [Self::DdxX, Self::DdxY, Self::DdxZ];
    /// Derivatives in y.
    pub const DDY: [Self; 3] = [Self::DdyX, Self::DdyY, Self::DdyZ];

    /// Returns true if implicit derivatives are taken of it: a coordinate, or what coordinates are divided by.
    pub const fn has_derivative(self) -> bool {
        matches!(self, Self::X | Self::Y | Self::Z | Self::Projector)
    }
}

/// A set of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SlotSet(pub u32);

impl SlotSet {
    /// With `slot`.
    #[must_use]
    pub const fn with(self, slot: Slot) -> Self {
        Self(self.0 | 1 << slot as u8)
    }

    /// Whether `slot` is in the set.
    pub const fn contains(self, slot: Slot) -> bool {
        self.0 >> slot as u8 & 1 != 0
    }
}

/// A question to a texture by one lane. Plain data: equal questions have equal answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextureRequest {
    /// What is asked.
    pub kind: TextureKind,
    /// The texture.
    pub texture: ResourceId,
    /// The sampler, if [`TextureKind::has_sampler`].
    pub sampler: Option<ResourceId>,
    /// The operands that there are.
    pub present: SlotSet,
    /// The operands, by [`Slot`]; zero where not present.
    pub operands: [u32; Slot::COUNT],
    /// The coordinates of the whole quad as one word, where derivatives are taken of them.
    pub quad: Option<u64>,
    /// The shape that the text gives the texture, where it counts.
    pub shape: Option<PrintedShape>,
}

impl TextureRequest {
    /// A question without operands.
    pub const fn new(kind: TextureKind, texture: ResourceId, sampler: ResourceId) -> Self {
        let sampler = if kind.has_sampler() { Some(sampler) } else { None };
        Self { kind, texture, sampler, present: SlotSet(0), operands: [0; Slot::COUNT], quad: None, shape: None }
    }

    /// The same question in its simplest form: a bias of zero is none.
    #[must_use]
    pub const fn simplified(mut self) -> Self {
        if matches!(self.kind, TextureKind::SampleBias) && self.operands[Slot::Lod as usize] == 0 {
            self.kind = TextureKind::Sample;
            self.present.0 &= !(1 << Slot::Lod as u8);
        }
        self
    }

    /// Sets an operand.
    pub const fn set(&mut self, slot: Slot, bits: u32) {
        self.present = self.present.with(slot);
        self.operands[slot as usize] = bits;
    }
}
