//! Removes dead code of a spilled program: unused values, and stores to slots that are never loaded.

use crate::ir3::opcode::Role;
use crate::ir3::{Attrs, Instr, Opcode, Program, SrcOperand};
use rustc_hash::FxHashSet;

/// Removes dead code until a fixed point.
pub fn run(program: &mut Program) {
    loop {
        remove_values(program);
        if !remove_stores(program) {
            return;
        }
    }
}

/// Returns true if an unused instruction may be removed. Others belong to the program, not to the spiller.
fn is_removable(opcode: Opcode) -> bool {
    opcode.is_copy() || matches!(opcode, Opcode::Phi | Opcode::ReloadMacro | Opcode::Mov)
}

fn remove_values(program: &mut Program) {
    // Marked from the instructions that must stay, so that phis in unused cycles are removed.
    let must_stay = |&instr: &Instr| {
        let data = &program.instrs[instr];
        let names_values =
            !data.dsts.is_empty() && data.dsts.iter().all(|dst| super::scalars::general_result(dst).is_some());
        !(is_removable(data.opcode) && names_values)
    };
    let needed = program.with_definitions(program.iter_instrs().map(|(_, instr)| instr).filter(must_stay));
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        program.blocks[block].instrs.retain(|&instr| needed.contains(instr));
    }
}

/// Removes stores to slots that are never loaded; returns true if there was any.
fn remove_stores(program: &mut Program) -> bool {
    let mut loaded: FxHashSet<u32> = FxHashSet::default();
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        if let (Opcode::ReloadMacro, Some(SrcOperand::Immediate(address))) =
            (data.opcode, data.source(Role::Offset).map(|src| src.operand))
        {
            let components = data.dsts.first().map_or(0, |dst| dst.mask.span());
            let size = data.dsts.first().map_or(4, |dst| if dst.class.half { 2 } else { 4 });
            loaded.extend((0..components).map(|k| address + k * size));
        }
    }
    let instrs = &program.instrs;
    let is_dead_store = |instr: &Instr| {
        let data = &instrs[*instr];
        let Attrs::Memory(memory) = &data.attrs else { return false };
        let size = data.source(Role::Data).map_or(4, |src| if src.class.half { 2 } else { 4 });
        let components = data.source(Role::Data).map_or(0, |src| src.mask.span());
        data.opcode == Opcode::SpillMacro
            && (0..components).all(|k| !loaded.contains(&(memory.offset as u32 + k * size)))
    };
    let mut any = false;
    for data in program.blocks.values_mut() {
        let before = data.instrs.len();
        data.instrs.retain(|instr| !is_dead_store(instr));
        any |= data.instrs.len() != before;
    }
    any
}
