//! What all steps do to a function.

use ir3_compiler::nir::{Block, Def, DefData, Function, InstrData};

/// Puts an instruction at the end of a block.
pub(super) fn push(function: &mut Function, block: Block, data: InstrData) {
    let def = data.def();
    let instr = function.instrs.push(data);
    def.into_iter().for_each(|def| function.defs[def].instr = instr);
    function.blocks[block].instrs.push(instr);
}

/// A new value of a shape.
pub(super) fn new_def(function: &mut Function, shape: DefData) -> Def {
    let index = function.defs.values().map(|def| def.index + 1).max().unwrap_or(0);
    function.defs.push(DefData { index, ..shape })
}

/// Gives the result of an instruction another value.
pub(super) fn set_def(data: &mut InstrData, of: impl Fn(Def) -> Def) {
    match data {
        InstrData::Alu(alu) => alu.def = of(alu.def),
        InstrData::Const { def, .. } | InstrData::Undef { def } | InstrData::Phi { def, .. } => *def = of(*def),
        InstrData::Intrinsic(intrinsic) => intrinsic.def = intrinsic.def.map(of),
        InstrData::Tex(tex) => tex.def = of(tex.def),
        InstrData::Jump(_) => {}
    }
}
