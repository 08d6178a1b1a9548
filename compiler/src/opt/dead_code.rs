//! Dead-code elimination.
//!
//! An instruction stays if it has an effect, ends a block, is kept on purpose, writes an array, or defines a value that
//! an instruction which stays reads. One walk from the roots finds all of them; nothing is narrowed.

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

/// Whether the instruction stays whether its result is read or not.
fn is_root(program: &Program, instr: Instr) -> bool {
    let data = &program.instrs[instr];
    let writes_more = |place: &Place| matches!(place, Place::Array(_) | Place::Relative { .. } | Place::Reg(_));
    data.opcode.is_terminator()
        || data.opcode.has_side_effect()
        || data.memory().is_some_and(|memory| memory.volatile)
        || data.dsts.iter().any(|dst| writes_more(&dst.place))
        || data.dsts.is_empty() && !matches!(data.attrs, Attrs::Input(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::{Attrs, BlockData, Builder, InputKind, Opcode, RegClass, Src, SystemValue};

    #[test]
    fn only_what_is_read_stays() {
        let mut program = Program::default();
        let block = program.blocks.push(BlockData::default());
        program.layout.push(block);
        let mut b = Builder::new(&mut program, block);
        let input = Attrs::Input(Some(InputKind::System(SystemValue::SubgroupInvocation)));
        let lane = b.define(Opcode::Input, RegClass::FULL, 1, &[], input.clone());
        b.define(Opcode::Input, RegClass::FULL, 3, &[], input);
        let sum = b.alu(Opcode::AddU, RegClass::FULL, &[b.src(lane), Src::immediate(1, false)]);
        let dead = b.alu(Opcode::AddU, RegClass::FULL, &[b.src(sum), Src::immediate(2, false)]);
        b.alu(Opcode::AddU, RegClass::FULL, &[b.src(dead), Src::immediate(3, false)]);
        let end = [b.src(sum)];
        b.effect(Opcode::End, &end);
        run(&mut program);
        let left: Vec<_> = program.iter_instrs().map(|(_, i)| program.instrs[i].opcode).collect();
        assert_eq!(left, [Opcode::Input, Opcode::AddU, Opcode::End]);
    }

    #[test]
    fn a_loop_of_phis_without_a_reader_goes() {
        let mut program = Program::default();
        let [entry, header, exit] = [(); 3].map(|()| program.blocks.push(BlockData::default()));
        program.layout.extend([entry, header, exit]);
        program.add_edge(entry, 0, header);
        program.add_edge(header, 0, header);
        program.add_edge(header, 1, exit);
        let mut b = Builder::new(&mut program, header);
        let phi = b.define(Opcode::Phi, RegClass::FULL, 1, &[Src::immediate(0, false)], Attrs::None);
        let next = b.alu(Opcode::AddU, RegClass::FULL, &[b.src(phi), Src::immediate(1, false)]);
        let next = b.src(next);
        let phi = program.values[phi].instr;
        program.instrs[phi].srcs.push(next);
        run(&mut program);
        assert_eq!(program.instruction_count(), 0);
    }
}
