//! Accesses to spill slots in scratch memory.

use super::location::pieces;
use ir3_compiler::ir3::{AddressSpace, InstrData, MemoryAttrs, Opcode, Place, RegClass, Src, SrcOperand, WriteMask};

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
        let access = if is_store {
            let src = data.srcs.get(1)?;
            let &Src { class, mask, .. } = src;
            Self { is_store, base, offset: memory.offset, place: src.place()?, class, mask }
        } else {
            let Some(SrcOperand::Immediate(offset)) = data.srcs.get(1).map(|src| src.operand) else { return None };
            let dst = data.dsts.first()?;
            Self { is_store, base, offset: offset as i32, place: &dst.place, class: dst.class, mask: dst.mask }
        };
        access.is_of_whole_registers(data, memory).then_some(access)
    }

    /// Returns true if the memory that is accessed is as wide as the registers: type and number of elements, which a
    /// spill or reload may leave out.
    fn is_of_whole_registers(&self, data: &InstrData, memory: &MemoryAttrs) -> bool {
        let is_macro = matches!(data.opcode, Opcode::SpillMacro | Opcode::ReloadMacro);
        let is_wide = memory.ty.map_or(is_macro, |ty| u32::from(ty.bits()) == 8 * self.bytes());
        let count = SrcOperand::Immediate(self.mask.span());
        let is_complete = data.srcs.get(2).map_or(is_macro, |src| src.operand == count);
        is_wide && is_complete && data.repeat == 0
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
