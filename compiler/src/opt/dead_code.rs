//! Dead-code elimination.
//!
//! An instruction is live if it has a side effect, ends a block, is listed in `keeps`, writes an array, or defines a
//! value that a live instruction reads. One traversal from the roots finds all of them; components of vectors are not
//! distinguished.

use crate::ir3::{Attrs, Instr, Place, Program};

/// Removes dead instructions.
pub fn run(program: &mut Program) {
    let roots = program.layout.iter().flat_map(|&block| {
        let data = &program.blocks[block];
        data.instrs.iter().filter(|&&instr| is_root(program, instr)).chain(&data.keeps)
    });
    let needed = program.with_definitions(roots.copied());
    for &block in &program.layout {
        let list = &mut program.blocks[block].instrs;
        list.retain(|&instr| needed.contains(instr));
        for &instr in &*list {
            let deps = &mut program.instrs[instr].false_deps;
            if !deps.is_empty() {
                deps.retain(|dep| needed.contains(*dep));
            }
        }
    }
}

/// Returns true if the instruction is live regardless of uses of its result.
fn is_root(program: &Program, instr: Instr) -> bool {
    let data = &program.instrs[instr];
    let writes_more = |place: &Place| matches!(place, Place::Array(_) | Place::Relative { .. } | Place::Reg(_));
    data.opcode.is_terminator()
        || data.opcode.has_side_effect()
        || data.memory().is_some_and(|memory| memory.volatile)
        || data.dsts.iter().any(|dst| writes_more(&dst.place))
        || data.dsts.is_empty() && !matches!(data.attrs, Attrs::Input(_))
}
