//! Accesses to spill slots in scratch memory.

use super::location::pieces;
use ir3_compiler::ir3::{AddressSpace, InstrData, Opcode, Place, RegClass, Src, SrcOperand, WriteMask};

/// A spill, a reload, or the access that one was lowered to.
pub struct SlotAccess<'a> {
    /// True if it is a spill.
    pub is_store: bool,
    /// The base register; the offset is in bytes.
    pub base: &'a Src,
    pub offset: i32,
    /// The place that is stored or loaded.
    pub place: &'a Place,
    pub class: RegClass,
    pub mask: WriteMask,
}

impl<'a> SlotAccess<'a> {
    /// Returns the access of an instruction, if it may be one and its form is known.
    pub fn new(data: &'a InstrData) -> Option<Self> {
        let is_store = match data.opcode {
            Opcode::SpillMacro | Opcode::Stp => true,
            Opcode::ReloadMacro | Opcode::Ldp => false,
            _ => return None,
        };
        let is_scratch = |space: Option<AddressSpace>| space.is_none_or(|space| space == AddressSpace::Scratch);
        let memory = data.memory().filter(|memory| is_scratch(memory.space))?;
        let base = data.srcs.first()?;
        if is_store {
            let src = data.srcs.get(1)?;
            let &Src { class, mask, .. } = src;
            return Some(Self { is_store, base, offset: memory.offset, place: src.place()?, class, mask });
        }
        let Some(SrcOperand::Immediate(offset)) = data.srcs.get(1).map(|src| src.operand) else { return None };
        let dst = data.dsts.first()?;
        Some(Self { is_store, base, offset: offset as i32, place: &dst.place, class: dst.class, mask: dst.mask })
    }

    /// Bytes of one component.
    pub const fn bytes(&self) -> u32 {
        2 * pieces(self.class)
    }

    /// The places of its components, given the base, in units of 16 bits.
    pub fn units(&self, base: u32) -> impl Iterator<Item = u32> + use<> {
        let (first, length) = (base.wrapping_add_signed(self.offset) / 2, pieces(self.class));
        self.mask.components().flat_map(move |k| (0..length).map(move |at| first + k * length + at))
    }
}
