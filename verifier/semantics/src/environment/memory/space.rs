//! The kinds of memory, and the word or texel that an address falls into.

use ir3_compiler::ir3::access::PrintedShape;
use ir3_compiler::ir3::{AddressSpace, Type};
use ir3_compiler::nir::{self, BaseType};
use ir3_compiler::words;

use crate::arithmetic::rows::LANES;
use crate::environment::device::image_extent;
use crate::support::random::hash;

words! {
    /// A kind of memory.
    pub enum Space {
        /// Storage buffers.
        Ssbo = "ssbo",
        /// Storage images.
        Image = "image",
        /// Memory of the workgroup.
        Shared = "shared",
        /// Memory with 64-bit addresses.
        Global = "global",
        /// Memory of each lane; not observable.
        Scratch = "scratch",
    }
}

impl Space {
    /// The number of words of an array of this kind at first: a power of two.
    pub const fn words(self) -> u32 {
        match self {
            Space::Ssbo => 4096 / 4,
            Space::Shared => 16 * 1024 / 4,
            Space::Global => 64 * 1024 / 4,
            Space::Image => IMAGE_CELLS * 4,
            Space::Scratch => SCRATCH_BYTES / 4 * LANES as u32,
        }
    }

    /// The kind of memory of an address space; `None` for uniform buffers and the constant file.
    pub const fn of(space: AddressSpace) -> Option<Space> {
        Some(match space {
            AddressSpace::Ssbo => Space::Ssbo,
            AddressSpace::Image => Space::Image,
            AddressSpace::Shared => Space::Shared,
            AddressSpace::Global => Space::Global,
            AddressSpace::Scratch => Space::Scratch,
            AddressSpace::Ubo | AddressSpace::Const => return None,
        })
    }
}

/// The number of texels of an image.
pub const IMAGE_CELLS: u32 = 1024;

/// Bytes of scratch memory per lane, if the program does not declare them.
pub const SCRATCH_BYTES: u32 = 4096;

/// The limit of the bytes of scratch memory per lane.
pub const MAX_SCRATCH_BYTES: u32 = 1 << 18;

/// The number of words from the beginning of an array on that are different words: addresses computed from the numbers
/// of invocations are usually below it.
const NEAR: u32 = 1 << 16;

/// The number of words, a prime, onto which all others fall: addresses that are random meet, and those of neighbours do
/// not, also not of structures of up to 63 words.
const FAR: u64 = 4093;

/// Addresses below this are those of different words.
pub const NEAR_BYTES: u64 = NEAR as u64 * 4;

/// Addresses whose distance is below this are those of different words, at any address.
pub const DISTINCT_BYTES: u64 = (FAR - 1) * 4;

/// The number of words at the end of the addresses of 32 bits: those before the beginning of the array. They are words
/// of their own.
const BEFORE: u64 = 1 << 12;

/// The word that a byte address falls into, of an array of at least `words` words which grows where that is needed.
#[inline]
pub fn word_of(address: u64, words: u32) -> u32 {
    let (word, near) = (address >> 2, words.max(NEAR));
    if word < u64::from(near) {
        word as u32
    } else if ((1 << 32) - BEFORE..1 << 32).contains(&word) {
        near + (word % BEFORE) as u32
    } else {
        ((word + hash(&[word >> 24]) % FAR) % FAR) as u32
    }
}

/// The texel of an image that coordinates (those of the image, layer included) fall into.
#[inline]
pub fn image_cell(coordinates: &[u32]) -> u32 {
    let mut key = 0x0069_6d61_6765_u64;
    for &c in coordinates {
        key = hash(&[key, u64::from(c)]);
    }
    (key % u64::from(IMAGE_CELLS)) as u32
}

/// The number of a component of a size among the properties of a resource. Another number of dimensions, or another
/// shape where both programs print it, is another property.
pub const fn size_property(component: u32, dimensions: u32, shape: u32) -> u32 {
    component | dimensions << 4 | shape << 8
}

/// The view of an access on the texels of an image: the type of its data, and the format and the shape where both
/// programs print them. nir prints both for all accesses, ir3 the shape for `isam`.
///
/// The bits that one view reads from a texel stored by another depend on the format, which is not modelled: runs and
/// proofs treat texels of different views as different, so a change of type, format or dimension is a difference.
/// Atomics have no type: they see bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TexelView {
    kind: u8,
    format: u8,
    shape: u8,
}

impl TexelView {
    /// The view of an access in nir, of data of this type, if it has one.
    pub fn of_nir(ty: Option<BaseType>, indices: &nir::Indices) -> Self {
        let kind = match ty {
            Some(BaseType::Float) => 2,
            Some(BaseType::Int) => 1,
            _ => 0,
        };
        let format = if ty.is_some() { indices.format() as u8 } else { 0 };
        let shape = 2 * indices.image_dim() as u8 + u8::from(indices.image_array());
        Self { kind, format, shape }
    }

    /// The view of registers of this type, of an image of this shape. ir3 has no formats.
    pub fn of_ir3(ty: Type, shape: PrintedShape) -> Self {
        let kind = if ty.is_float() { 2 } else { u8::from(ty.is_signed()) };
        Self { kind, format: 0, shape: shape.number() as u8 }
    }

    /// A number for the view: 0 for bits. `both_print`: both programs are of one language, so format and shape are
    /// compared.
    pub fn key(self, both_print: bool) -> u32 {
        u32::from(self.kind) | if both_print { u32::from(self.format) << 8 | u32::from(self.shape) << 16 } else { 0 }
    }

    /// A number for the shape; 0 where one program does not print it.
    pub fn shape(self, both_print: bool) -> u32 {
        if both_print { u32::from(self.shape) } else { 0 }
    }

    /// The sizes by coordinate of an image of a device, whose rows have this width.
    pub fn image_extent(self, width: u32) -> [u32; 3] {
        let dim = nir::ImageDim::ALL.get(usize::from(self.shape / 2)).copied().unwrap_or(nir::ImageDim::Dim2D);
        image_extent(dim, self.shape & 1 != 0, width)
    }

    /// Returns true if texels have one component: others are 0, and 1 for the last one.
    pub fn has_one_component(self) -> bool {
        self.format == nir::Format::R32Uint as u8
    }

    /// The texel that this view accesses in place of `cell`.
    #[inline]
    pub fn cell(self, both_print: bool, cell: u32) -> u32 {
        match self.key(both_print) {
            0 => cell,
            key => image_cell(&[cell, key]),
        }
    }
}
