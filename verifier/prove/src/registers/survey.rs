//! The results of one pass over all instructions of a program. For a large program such a pass costs about as much as a
//! good part of the proof, so there is only one.

use super::effects;
use super::liveness::DefUseLists;
use ir3_compiler::ir3::{Attrs, InstrData, Opcode, Place, Program};
use ir3_semantics::machine::units;

/// The results.
pub struct Survey {
    /// Definitions and uses of values.
    pub uses: DefUseLists,
    /// True if shared registers or `a1.x` are written.
    pub any_shared: bool,
    /// True if the constant file is written.
    pub writes_constants: bool,
    /// True if any register is selected by an address.
    pub any_relative: bool,
    /// True if the shader itself may access scratch memory.
    pub any_scratch: bool,
    /// Bytes of scratch memory that belong to the shader. Without known slots: all, or 4 KiB if their number is not
    /// declared. With slots: the bytes before the first.
    pub own_scratch: u32,
}

impl Survey {
    /// Computes the results.
    pub fn new(program: &Program) -> Self {
        let mut uses = DefUseLists::new(program);
        let (mut any_shared, mut any_relative, mut any_scratch, mut writes_constants) = (false, false, false, false);
        let mut first_slot: Option<u32> = None;
        for (block, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            uses.add(program, block, data);
            any_shared |= data.dsts.iter().any(|dst| units::is_of_wave(&dst.place, dst.class));
            writes_constants |= effects::writes_constants(data.opcode);
            any_relative |= is_relative(data);
            any_scratch |= matches!(data.opcode, Opcode::Stp | Opcode::Ldp);
            if let (Opcode::SpillMacro, Attrs::Memory(memory)) = (data.opcode, &data.attrs)
                && let Ok(slot) = u32::try_from(memory.offset)
            {
                first_slot = Some(first_slot.map_or(slot, |first| first.min(slot)));
            }
        }
        let all = if program.scratch_size == 0 && any_scratch { 4096 } else { program.scratch_size };
        Self { uses, any_shared, writes_constants, any_relative, any_scratch, own_scratch: first_slot.unwrap_or(all) }
    }
}

fn is_relative(data: &InstrData) -> bool {
    let of = |place: &Place| matches!(place, Place::Relative { .. });
    data.dsts.iter().any(|dst| of(&dst.place)) || data.srcs.iter().filter_map(|src| src.place()).any(of)
}
