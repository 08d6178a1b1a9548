//! The canonical form of a texture request, which both interpreters build and hash.
//!
//! nir's `tex` instructions and the machine's `sam*` encode a request differently; the response is a fixed function of
//! the request, so both are brought to one form. Every operand is its raw bits (16-bit operands zero-extended) in a
//! [`Slot`]; a slot that is not present is zero. The form is the machine's; nir's operations map to it as follows:
//!
//! - *Kind*: `tex` (also pre-dispatchable) is [`TextureKind::Sample`], with an lod source [`TextureKind::SampleLod`];
//!   `txl` likewise; `txb` [`TextureKind::SampleBias`]; `txd` [`TextureKind::SampleGrad`]; `txf`
//!   [`TextureKind::Fetch`]; `txf_ms` [`TextureKind::FetchMs`]; `tg4` [`TextureKind::Gather`]; `lod`
//!   [`TextureKind::LodQuery`]; `txs` [`TextureKind::Size`] or, without an lod source, [`TextureKind::BufferSize`];
//!   `query_levels` and `texture_samples` [`TextureKind::Info`].
//! - *Coordinates*: nir's text has their number, but not whether the last one is an array layer, so the layer is a
//!   coordinate like any other: [`TextureShape`] has the number of dimensions and whether a layer follows them.
//!   Coordinates are X, Y, Z; one dimension is padded to two: Y is 0.5 (in the coordinate's width), or 0 for `txf` and
//!   `txf_ms`. The layer is in the slot after the (padded) dimensions: Z or Layer. `lod` has X and Y only.
//! - *Comparator*: if there is one; never for `lod`. *Projector*: if there is one.
//! - *Lod*: the lod or bias. `txf` without one has lod 0. Kinds without lod have none.
//! - *Offset*: as many as the source has, one padded with 0 to two; signed offsets unchanged.
//! - *Ddx*, *Ddy*: as many as dimensions, one padded with 0 to two.
//! - *Sample*: of `txf_ms`.
//! - *Texture* and *sampler*: see [the module above](super): bound ones are the index plus the source that is added to
//!   it, bindless ones the set and the value of the handle. Fetches, sizes and infos have no sampler.
//!
//! The response has four components, and component `i` of the instruction is component `i` of the response, with these
//! exceptions:
//! - The number of layers is component 2 of the response to [`TextureKind::Size`], and component 3 of the machine's
//!   result where the instruction has `.a`; the machine's component 2 is then nothing that nir has, as is component 3
//!   without `.a`.
//! - `query_levels` is component 2 of the response, `texture_samples` component 3.
//! - `lod`: the response's components 0 and 1 are small integers `n`; the result is `n * (1/256)` as float of the
//!   result's width.
//! - Where `Target::levels_add_one` holds, the machine's `getinfo` returns one less than the response in component 2,
//!   and so does `getsize` for the number of layers.
//! - The response for a 16-bit float result is that of the same request rounded to 16 bits; integers are truncated.

use super::ResourceId;

/// Dimensions of a texture, as far as its coordinates determine them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextureShape {
    /// Coordinates without the array layer, 1 to 3.
    pub dims: u8,
    /// True if an array layer follows them.
    pub layer: bool,
}

impl TextureShape {
    /// The shape for a number of coordinates, and the number of components of the derivatives or else of the texel
    /// offset, if any. (Those have no component for the layer.)
    pub const fn new(coords: u8, derivatives_or_offset: Option<u8>) -> Self {
        let dims = match derivatives_or_offset {
            Some(dims) if dims + 1 == coords => dims,
            _ if coords > 3 => 3,
            _ => coords,
        };
        Self { dims, layer: coords > dims }
    }

    /// The number of dimensions after padding.
    pub const fn padded(self) -> u8 {
        if self.dims < 2 { 2 } else { self.dims }
    }

    /// The slot of the layer.
    pub const fn layer_slot(self) -> Slot {
        if self.padded() == 2 { Slot::Z } else { Slot::Layer }
    }
}

/// The shape of a texture as far as ir3's text prints it. nir's text prints none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PrintedShape {
    /// `.3d`: three coordinates, of a volume or a cube.
    pub three: bool,
    /// `.a`: an array.
    pub array: bool,
    /// True for a cube map. Only our text prints it.
    pub cube: bool,
}

impl PrintedShape {
    /// A number for hashing.
    pub const fn number(self) -> u32 {
        self.three as u32 | (self.array as u32) << 1 | (self.cube as u32) << 2
    }
}

/// The kind of a request.
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
    /// Position of a sample in its pixel, by the sample's index; independent of the texture's index, which is 0.
    SamplePosition,
}

impl TextureKind {
    /// Returns true if the request uses a sampler.
    pub const fn has_sampler(self) -> bool {
        !matches!(self, Self::Fetch | Self::FetchMs | Self::Size | Self::BufferSize | Self::Info | Self::SamplePosition)
    }

    /// Returns true if the level comes from implicit derivatives, which are differences between the coordinates of a
    /// quad: in fragment shaders (`nir_tex_instr_has_implicit_derivative`). A gather takes level 0.
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

/// An operand of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Slot {
    /// First coordinate.
    X,
    /// Second coordinate.
    Y,
    /// Third coordinate, or array layer after two coordinates.
    Z,
    /// Array layer after three coordinates.
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

    /// Returns true if implicit derivatives are taken of it: a coordinate, or the divisor of the coordinates.
    pub const fn has_derivative(self) -> bool {
        matches!(self, Self::X | Self::Y | Self::Z | Self::Projector)
    }
}

/// A set of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SlotSet(pub u32);

impl SlotSet {
    /// The set with `slot` added.
    #[must_use]
    const fn with(self, slot: Slot) -> Self {
        Self(self.0 | 1 << slot as u8)
    }
}

/// A texture request by one lane. Plain data: equal requests have equal responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextureRequest {
    /// The kind.
    pub kind: TextureKind,
    /// The texture.
    pub texture: ResourceId,
    /// The sampler, if [`TextureKind::has_sampler`].
    pub sampler: Option<ResourceId>,
    /// The operands that are present.
    pub present: SlotSet,
    /// The operands, by [`Slot`]; zero where not present.
    pub operands: [u32; Slot::COUNT],
    /// The coordinates of the whole quad as one word, if derivatives are taken of them.
    pub quad: Option<u64>,
    /// The shape that the text prints for the texture, if the response depends on it.
    pub shape: Option<PrintedShape>,
}

impl TextureRequest {
    /// Creates a request without operands.
    pub const fn new(kind: TextureKind, texture: ResourceId, sampler: ResourceId) -> Self {
        let sampler = if kind.has_sampler() { Some(sampler) } else { None };
        Self { kind, texture, sampler, present: SlotSet(0), operands: [0; Slot::COUNT], quad: None, shape: None }
    }

    /// The same request in its simplest form: a bias of zero is dropped.
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
