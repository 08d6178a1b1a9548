//! The end of predication: `prede`, after which all lanes are active again.
//!
//! A predicated if is three blocks in a row: one that ends with `predt` (or `predf`), the lanes of the first arm, which
//! ends with the opposite, and the lanes of the second arm. `prede` ends the second arm; without one, it ends the
//! first.

use super::layout;
use crate::ir3::{Block, InstrData, Opcode, Program};

/// Inserts `prede` in all predicated ifs; branches are explicit.
pub fn run(program: &mut Program) {
    let mut position = 0;
    while position < program.layout.len() {
        end_predication(program, program.layout[position]);
        position += 1;
    }
}

fn end_predication(program: &mut Program, block: Block) {
    let data = &program.blocks[block];
    let [Some(first), Some(second)] = data.successors else { return };
    if !data.instrs.last().is_some_and(|&last| program.instrs[last].opcode.is_predication()) {
        return;
    }
    let prede = program.instrs.push(InstrData::new(Opcode::Prede));
    if !program.blocks[second].instrs.is_empty() {
        program.insert_before_terminators(second, prede);
        return;
    }
    // The lanes of the second arm have nothing to do.
    let list = &mut program.blocks[first].instrs;
    list.pop();
    list.push(prede);
    let next = program.blocks[first].successors[0].expect("an arm leads on");
    program.blocks[second].predecessors.clear();
    layout::remove(program, second);
    program.blocks[block].successors[1] = Some(next);
    program.blocks[next].predecessors.push(block);
}
