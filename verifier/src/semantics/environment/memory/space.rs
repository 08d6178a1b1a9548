//! The kinds of memory, and the word or texel that an address falls into.

use ir3_compiler::ir3::{AddressSpace, Type};
use ir3_compiler::nir::{self, BaseType};
use ir3_compiler::words;

use crate::semantics::arithmetic::rows::LANES;
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
    /// The number of words of an array of this kind: a power of two.
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

/// The word of an array of `words` words that a byte address falls into.
#[inline]
pub fn word_of(address: u64, words: u32) -> u32 {
    let word = address >> 2;
    if word < u64::from(words) { word as u32 } else { (hash(&[word]) % u64::from(words)) as u32 }
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

/// The view of an access on the texels of an image: the type of its data, and the format and the dimension where both programs print them.
///
/// The bits that one view reads from a texel stored by another depend on the format, which is not modelled: runs and proofs treat texels of
/// different views as different, so a change of type, format or dimension is a difference. Atomics have no type: they see bits.
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

    /// The view of registers of this type. ir3 has no formats.
    pub fn of_ir3(ty: Type) -> Self {
        Self { kind: if ty.is_float() { 2 } else { u8::from(ty.is_signed()) }, ..Self::default() }
    }

    /// A number for the view: 0 for bits. `nir`: both programs are nir, which has formats and dimensions.
    pub fn key(self, nir: bool) -> u32 {
        u32::from(self.kind) | if nir { u32::from(self.format) << 8 | u32::from(self.shape) << 16 } else { 0 }
    }

    /// A number for the dimension; 0 where one program does not say it.
    pub fn shape(self, nir: bool) -> u32 {
        if nir { u32::from(self.shape) } else { 0 }
    }

    /// The texel that this view accesses in place of `cell`.
    #[inline]
    pub fn cell(self, nir: bool, cell: u32) -> u32 {
        match self.key(nir) {
            0 => cell,
            key => image_cell(&[cell, key]),
        }
    }
}
