//! Dead code: instructions whose results are not read are removed, writemasks lose the channels that are not read.
//!
//! Each block is walked backwards with the live channels of registers and of the flag. New for a flag of four channels:
//! an instruction that writes only the flag drops the channels of the flag without a use;
//! [`cmod_propagation`](super::cmod_propagation) then finds that its producer writes all of them.

use super::live_variables::{Flag, LiveVariables};
use crate::i965::vec4::{DstFile, Instr, Mask, OpcodeKind, Program};

/// Removes dead code. Returns true if something changed.
pub fn run(program: &mut Program, model: Flag) -> bool {
    let LiveVariables { blocks, out } = LiveVariables::of(program, model);
    let mut dead = vec![false; program.instrs.len()];
    let mut changed = false;
    for (range, mut live) in blocks.ranges.into_iter().zip(out) {
        for at in range.rev() {
            let instr = &mut program.instrs[at];
            // A message has no writemask, and perhaps an effect.
            if !matches!(instr.opcode.kind(), OpcodeKind::Control | OpcodeKind::Message) {
                let values = live.of_dst(&instr.dst);
                let before = instr.dst;
                let is_live = narrow(instr, values, live.flag, model);
                changed |= !is_live || instr.dst != before;
                if !is_live {
                    dead[at] = true;
                    continue;
                }
            }
            live.registers_before(instr);
            live.flag_before(instr, model);
        }
    }
    program.remove(&dead);
    changed
}

/// Takes the channels that are not live from the writemask. Returns false if nothing of the instruction is.
fn narrow(instr: &mut Instr, values: Mask, flag: Mask, model: Flag) -> bool {
    let writes_flag = instr.writes_flag();
    match instr.dst.file {
        DstFile::Output(_) => return true,
        DstFile::Vgrf(_) if !writes_flag => {
            instr.dst.mask = instr.dst.mask & values;
            return !instr.dst.mask.is_empty();
        }
        DstFile::Vgrf(_) => {
            let result = instr.dst.mask & values;
            let written = instr.dst.mask & flag;
            if result.is_empty() {
                // A `sel` or a dot product computes the flag as it computes the result, so all operations can do
                // without a register.
                instr.dst.file = DstFile::Null;
            }
            instr.dst.mask = if model.channels || flag.is_empty() { result | written } else { instr.dst.mask };
        }
        DstFile::Null => {}
    }
    if instr.dst.file == DstFile::Null {
        if model.channels {
            instr.dst.mask = instr.dst.mask & flag;
        }
        return !flag.is_empty() && !instr.dst.mask.is_empty();
    }
    !instr.dst.mask.is_empty()
}
