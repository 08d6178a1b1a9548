//! A planted bug of spilling.

use ir3_compiler::ir3::{Attrs, Opcode, Program, SrcOperand};

/// Moves the first reload of a block that follows the store to its slot to before that store.
pub fn misplace_reload(program: &mut Program) -> bool {
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let mut stores: Vec<(u32, usize)> = Vec::new();
        let list = &program.blocks[block].instrs;
        for (at, &instr) in list.iter().enumerate() {
            let data = &program.instrs[instr];
            match (data.opcode, &data.attrs) {
                (Opcode::SpillMacro, Attrs::Memory(memory)) => stores.push((memory.offset as u32, at)),
                (Opcode::ReloadMacro, _) => {
                    let Some(SrcOperand::Immediate(address)) = data.srcs.get(1).map(|src| src.operand) else {
                        continue;
                    };
                    if let Some(&(_, store)) = stores.iter().find(|&&(slot, _)| slot == address) {
                        let list = &mut program.blocks[block].instrs;
                        let reload = list.remove(at);
                        list.insert(store, reload);
                        return true;
                    }
                }
                _ => {}
            }
        }
    }
    false
}
