//! The canonical form of a question to a texture, which both interpreters fill and hash.
//!
//! nir's `tex` instructions and the machine's `sam*` differ in how they write a question down; the answer is a fixed
//! function of the question, so both are brought to one form. Every operand is its raw bits (16-bit operands
//! zero-extended) in a [`Slot`]; a slot that is not present is zero. The form is the machine's, which nir's must be brought to:
//!
//! - *Kind*: `tex` (also pre-dispatchable) is [`TextureKind::Sample`], with an lod source [`TextureKind::SampleLod`];
//!   `txl` likewise; `txb` [`TextureKind::SampleBias`]; `txd` [`TextureKind::SampleGrad`]; `txf`
//!   [`TextureKind::Fetch`]; `txf_ms` [`TextureKind::FetchMs`]; `tg4` [`TextureKind::Gather`]; `lod` [`TextureKind::LodQuery`];
//!   `txs` [`TextureKind::Size`] or, for buffers, [`TextureKind::BufferSize`]; `query_levels` and `texture_samples` [`TextureKind::Info`].
//! - *Coordinates*: as many of X, Y, Z as the dimension has (1D, buffer: 1; 2D, rectangle, external, multisampled: 2; 3D, cube: 3), the array
//!   layer not among them. One coordinate is padded to two: Y is 0.5 (in the coordinate's width), or 0 for `txf`.
//! - *Layer*: the coordinate behind those, as it stands, if the texture is an array; never for `lod`.
//! - *Comparator*: if there is one; never for `lod`. *Projector*: if there is one.
//! - *Lod*: the lod or bias. `txf` without one has lod 0, and so has `txs` of anything but a buffer. Kinds without lod have none.
//! - *Offset*: as many as coordinates (2 for a cube), padded with 0 to two; signed offsets as they stand.
//! - *Ddx*, *Ddy*: as many as coordinates, padded with 0 to two.
//! - *Sample*: of `txf_ms`.
//! - *Texture* and *sampler*: identities (see [the module above](super)): the index plus the source that is added to it, or the value of the
//!   handle. Fetches, sizes and infos have no sampler.
//!
//! The answer has four components, and component `i` of the instruction is component `i` of the answer, but:
//! - `txs` of an array: the component behind the dimensions (2 for a cube) is component 3 of the answer.
//! - `query_levels` is component 2 of the answer, `texture_samples` component 3.
//! - `lod`: the answer's components 0 and 1 are small integers `n`; the result is `n * (1/256)` as float of the result's width.
//! - Where `Target::levels_add_one` holds, the machine's `getinfo` (component 2) and `getsize` (component 3)
//!   return one less than the answer.
//! - An answer to a 16-bit float result is that of the same question rounded to 16 bits; integers are truncated.

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
}

impl TextureKind {
    /// Whether the question involves a sampler.
    pub const fn has_sampler(self) -> bool {
        !matches!(self, Self::Fetch | Self::FetchMs | Self::Size | Self::BufferSize | Self::Info)
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
    /// Third coordinate.
    Z,
    /// Array layer.
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
    /// Identity of the texture.
    pub texture: u32,
    /// Identity of the sampler, if [`TextureKind::has_sampler`].
    pub sampler: Option<u32>,
    /// The operands that there are.
    pub present: SlotSet,
    /// The operands, by [`Slot`]; zero where not present.
    pub operands: [u32; Slot::COUNT],
}

impl TextureRequest {
    /// A question without operands.
    pub const fn new(kind: TextureKind, texture: u32, sampler: u32) -> Self {
        let sampler = if kind.has_sampler() { Some(sampler) } else { None };
        Self { kind, texture, sampler, present: SlotSet(0), operands: [0; Slot::COUNT] }
    }

    /// Sets an operand.
    pub const fn set(&mut self, slot: Slot, bits: u32) {
        self.present = self.present.with(slot);
        self.operands[slot as usize] = bits;
    }

    /// The question as a flat sequence of words, for hashing.
    pub fn words(&self) -> impl Iterator<Item = u32> + '_ {
        let head = [self.kind.number(), self.texture, self.sampler.map_or(u32::MAX, |s| s), self.present.0];
        head.into_iter().chain(self.operands)
    }
}
