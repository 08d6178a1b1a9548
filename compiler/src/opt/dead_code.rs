//! Dead-code elimination.
//!
//! An instruction is live if it has a side effect, ends a block, is listed in `keeps`, writes an array, or defines a
//! value that a live instruction reads. One traversal from the roots finds all of them; components of vectors are not
//! distinguished.

use crate::ir3::{Attrs, Instr, Place, Program};
use cranelift_entity::SecondaryMap;

/// Removes what nobody reads.
pub fn run(program: &mut Program) {
    let mut needed = SecondaryMap::<Instr, bool>::with_capacity(program.instrs.len());
    let mut stack = Vec::new();
    for &block in &program.layout {
        let data = &program.blocks[block];
        let roots = data.instrs.iter().copied().filter(|&instr| is_root(program, instr));
        for instr in roots.chain(data.keeps.iter().copied()) {
            if !std::mem::replace(&mut needed[instr], true) {
                stack.push(instr);
            }
        }
    }
    while let Some(instr) = stack.pop() {
        for value in program.instrs[instr].srcs.iter().filter_map(|src| src.value()) {
            let def = program.values[value].instr;
            if !std::mem::replace(&mut needed[def], true) {
                stack.push(def);
            }
        }
    }
    for &block in &program.layout {
        let list = &mut program.blocks[block].instrs;
        list.retain(|&instr| needed[instr]);
        for &instr in &*list {
            let deps = &mut program.instrs[instr].false_deps;
            if !deps.is_empty() {
                deps.retain(|dep| needed[*dep]);
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
