//! What all steps do to a function.

use ir3_compiler::nir::{Block, Def, DefData, Function, InstrData};

/// Puts an instruction at the end of a block.
pub(super) fn push(function: &mut Function, block: Block, data: InstrData) {
    insert(function, block, function.blocks[block].instrs.len(), data);
}

/// Puts an instruction at an index of a block.
pub(super) fn insert(function: &mut Function, block: Block, index: usize, data: InstrData) {
    let def = data.def();
    let instr = function.instrs.push(data);
    def.into_iter().for_each(|def| function.defs[def].instr = instr);
    function.blocks[block].instrs.insert(index, instr);
}

/// A new value of a shape.
pub(super) fn new_def(function: &mut Function, shape: DefData) -> Def {
    let index = function.defs.values().map(|def| def.index + 1).max().unwrap_or(0);
    function.defs.push(DefData { index, ..shape })
}
