//! Which values are alive behind each block.

use crate::ir3::{Block, Opcode, Program, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// The values that are read behind a block, for each block.
pub fn live_out(program: &Program) -> SecondaryMap<Block, Vec<Value>> {
    let mut home = SecondaryMap::<Value, PackedOption<Block>>::with_capacity(program.values.len());
    for (block, instr) in program.iter_instrs() {
        for value in program.instrs[instr].dsts.iter().filter_map(|dst| dst.value()) {
            home[value] = block.into();
        }
    }
    // Where a value is needed from elsewhere: in a block, or at the end of one.
    let mut needs: Vec<(Value, Block, bool)> = Vec::new();
    for (block, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        for (index, src) in data.srcs.iter().enumerate() {
            let Some(value) = src.value() else { continue };
            if data.opcode == Opcode::Phi {
                needs.extend(program.blocks[block].predecessors.get(index).map(|&from| (value, from, true)));
            } else if home[value].expand() != Some(block) {
                needs.push((value, block, false));
            }
        }
    }
    needs.sort_unstable();
    needs.dedup();
    let mut live = SecondaryMap::<Block, Vec<Value>>::with_capacity(program.blocks.len());
    let mut into = SecondaryMap::<Block, PackedOption<Value>>::with_capacity(program.blocks.len());
    let mut ends = Vec::new();
    for (value, block, at_end) in needs {
        if at_end {
            ends.push(block);
        } else if into[block].expand() != Some(value) {
            into[block] = value.into();
            ends.extend(&program.blocks[block].predecessors);
        }
        while let Some(end) = ends.pop() {
            if live[end].last() == Some(&value) {
                continue;
            }
            live[end].push(value);
            if home[value].expand() != Some(end) && into[end].expand() != Some(value) {
                into[end] = value.into();
                ends.extend(&program.blocks[end].predecessors);
            }
        }
    }
    live
}
