//! The values that are live at the ends of blocks.

use crate::ir3::liveness::{LiveSets, Use};
use crate::ir3::{Opcode, Program, Value};

/// Liveness of all values, along the logical edges.
pub fn live_out(program: &Program) -> LiveSets<Value> {
    let home = program.definition_blocks();
    // Values that are read elsewhere than in the blocks that define them, or at the end of a block.
    let mut uses: Vec<Use<Value>> = Vec::new();
    for (block, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        for (index, src) in data.srcs.iter().enumerate() {
            let Some(entity) = src.value() else { continue };
            if data.opcode == Opcode::Phi {
                let pred = program.blocks[block].predecessors.get(index);
                uses.extend(pred.map(|&block| Use { entity, block, at_end: true }));
            } else if home[entity].expand() != Some(block) {
                uses.push(Use { entity, block, at_end: false });
            }
        }
    }
    LiveSets::new(program, uses, |value| home[value].expand(), |block| &program.blocks[block].predecessors)
}
