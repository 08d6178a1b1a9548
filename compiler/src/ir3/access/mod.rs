//! The operands of memory and texture instructions: typed views, and the constructors that are their inverse.
//!
//! The machine's operand order differs between generations and opcodes; it is the [`Form`](super::opcode::Form) of an
//! opcode. Passes build such instructions with these constructors, which take operands by role, and interpreter,
//! symbolic engine and validator read them through [`Access::of`]. A view names operands by [`Slice`]s of the
//! instruction's sources, so it holds for SSA values and for physical registers alike. A group of sources counts as one
//! vector ([`InstrData::component_source`]).
//!
//! Where Mesa's text omits an attribute and the operands do not determine it, the view is refused with
//! [`UnknownAttribute`]; programs that we select have every attribute.
//!
//! # Bindings
//! The environment identifies a resource by a [`ResourceId`]: the pair of descriptor set and index of a bindless
//! resource, or the index alone of a bound one; the two kinds are different. The value of nir's `bindless_resource_ir3`
//! is the index; the set is an attribute of that instruction, which users of the handle read there, as Mesa's ir3 does.
//! SSBOs, images, UBOs, textures and samplers have separate index spaces; the space of a [`MemoryAccess`] selects one.

pub mod build;
mod memory;
mod request;
#[cfg(test)]
mod tests;
mod texture;

pub use memory::{Address, AtomicFamily, AtomicOp, MemoryAccess, MemoryAction, linear_address, ssbo_offset_unit};
pub use request::{PrintedShape, Slot, SlotSet, TextureKind, TextureRequest, TextureShape};
pub(crate) use texture::coordinates;
pub use texture::{Prefetch, TextureAccess};

use super::{InstrData, Opcode, Src, SrcOperand};
use std::fmt;

/// Consecutive components of one source of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// The index of the operand: of the source, unless there are groups.
    pub src: u8,
    /// First component.
    pub first: u8,
    /// Number of components.
    pub count: u8,
}

impl Slice {
    /// One component of a source.
    pub const fn scalar(src: usize, component: usize) -> Self {
        Self { src: src as u8, first: component as u8, count: 1 }
    }

    /// `count` components of a source from `first` on.
    pub const fn new(src: usize, first: usize, count: usize) -> Self {
        Self { src: src as u8, first: first as u8, count: count as u8 }
    }

    /// Component `i` of the slice, as a slice.
    pub const fn component(self, i: u8) -> Self {
        Self { src: self.src, first: self.first + i, count: 1 }
    }
}

/// A number that is an immediate field of the instruction or comes from a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// An immediate.
    Fixed(u32),
    /// `source >> shift & mask`.
    Source {
        /// A scalar.
        source: Slice,
        /// Bits below the field.
        shift: u8,
        /// Mask, after the shift.
        mask: u32,
    },
}

impl Number {
    /// The whole of a scalar source, or its value if it is an immediate.
    fn of(instr: &InstrData, source: Slice) -> Self {
        match instr.srcs[usize::from(source.src)].operand {
            SrcOperand::Immediate(value) => Self::Fixed(value),
            _ => Self::Source { source, shift: 0, mask: u32::MAX },
        }
    }

    /// The source that it reads, if any.
    pub const fn source(self) -> Option<Slice> {
        match self {
            Self::Fixed(_) => None,
            Self::Source { source, .. } => Some(source),
        }
    }
}

/// The resource of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// Descriptor set; `None` if it is not bindless.
    pub set: Option<Number>,
    /// Index in the set.
    pub index: Number,
}

/// A resource among those of its kind (SSBOs, images, UBOs, textures, samplers): bound, by its index, or bindless, by
/// descriptor set and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceId(u64);

impl ResourceId {
    /// The id for kinds with only one resource.
    pub const NONE: Self = Self::bound(0);

    /// Descriptor sets are below this number. ir3 has eight, so none is excluded.
    pub const SETS: u32 = u32::MAX;

    /// A bound resource.
    pub const fn bound(index: u32) -> Self {
        Self(index as u64)
    }

    /// An entry of a descriptor set below [`SETS`](Self::SETS).
    const fn bindless(set: u32, index: u32) -> Self {
        Self((set.wrapping_add(1) as u64) << 32 | index as u64)
    }

    /// The bound resource with an index, or the one in a set.
    pub const fn new(set: Option<u32>, index: u32) -> Self {
        match set {
            Some(set) => Self::bindless(set, index),
            None => Self::bound(index),
        }
    }

    /// The id as one number: the index in the low 32 bits; above them 0 for a bound resource, the descriptor set plus 1
    /// for a bindless one.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`bits`](Self::bits).
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl fmt::Display for ResourceId {
    /// A bound resource as `5`, a bindless one as `set 1 index 5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = self.0 as u32;
        match (self.0 >> 32) as u32 {
            0 => write!(f, "{index}"),
            set => write!(f, "set {} index {index}", set.wrapping_sub(1)),
        }
    }
}

/// An attribute that the instruction's meaning depends on is unknown: the program was read from a text without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{opcode}`: {attribute} is not known")]
pub struct UnknownAttribute {
    /// Mnemonic.
    pub opcode: &'static str,
    /// The missing attribute.
    pub attribute: &'static str,
}

/// A memory or texture instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// An access to memory.
    Memory(MemoryAccess),
    /// A texture request.
    Texture(TextureAccess),
}

impl Access {
    /// The access of `instr`; `None` if it is neither a memory nor a texture instruction. Derivatives, quad shuffles
    /// and `brcst.active` are not accesses: they work on register values (source 0; `brcst.active` has the default,
    /// tied to the destination, in source 1).
    ///
    /// # Errors
    /// If an attribute is unknown that the access depends on.
    pub fn of(instr: &InstrData) -> Result<Option<Self>, UnknownAttribute> {
        let instr = &*instr.with_vectors();
        let fetches = instr.texture().is_some_and(|texture| texture.is_fetch);
        Ok(if MemoryAccess::covers(instr.opcode) && !fetches {
            Some(Self::Memory(MemoryAccess::of(instr)?))
        } else if TextureAccess::covers(instr.opcode) || instr.opcode == Opcode::Isam {
            Some(Self::Texture(TextureAccess::of(instr)?))
        } else {
            None
        })
    }
}

/// Number of components that a source reads.
fn width(src: &Src) -> usize {
    src.mask.0.count_ones() as usize
}
