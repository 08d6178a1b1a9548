//! The results of one pass over all instructions of a program. For a large program such a pass costs about as much as a
//! good part of the proof, so there is only one.

use super::liveness::DefUseLists;
use ir3_compiler::ir3::{Attrs, InstrData, Opcode, Place, Program, RegFile};

/// The results.
pub struct Survey {
    /// Definitions and uses of values.
    pub uses: DefUseLists,
    /// True if shared registers are written.
    pub any_shared: bool,
    /// True if any register is selected by an address.
    pub any_relative: bool,
    /// True if the shader itself may access scratch memory.
    pub any_scratch: bool,
    /// Bytes of scratch memory that belong to the shader. Without known slots: all, or 4 KiB if it does not say how
    /// many. With slots: what is before the first.
    pub own_scratch: u32,
}

impl Survey {
    /// Computes the results.
    pub fn new(program: &Program) -> Self {
        let mut uses = DefUseLists::new(program);
        let (mut any_shared, mut any_relative, mut any_scratch) = (false, false, false);
        let mut first_slot: Option<u32> = None;
        for (block, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            uses.add(program, block, data);
            any_shared |= data.dsts.iter().any(|dst| dst.class.file == RegFile::Shared);
            any_relative |= is_relative(data);
            any_scratch |= matches!(data.opcode, Opcode::Stp | Opcode::Ldp);
            if let (Opcode::SpillMacro, Attrs::Memory(memory)) = (data.opcode, &data.attrs)
                && let Ok(slot) = u32::try_from(memory.offset)
            {
                first_slot = Some(first_slot.map_or(slot, |first| first.min(slot)));
            }
        }
        let all = if program.scratch_size == 0 && any_scratch { 4096 } else { program.scratch_size };
        Self { uses, any_shared, any_relative, any_scratch, own_scratch: first_slot.unwrap_or(all) }
    }
}

fn is_relative(data: &InstrData) -> bool {
    let of = |place: &Place| matches!(place, Place::Relative { .. });
    data.dsts.iter().any(|dst| of(&dst.place)) || data.srcs.iter().filter_map(|src| src.place()).any(of)
}
