//! Bugs of selection and of the passes on programs in SSA form.

use std::hint::black_box;

use ir3_compiler::ir3::{Attrs, Block, Condition, Instr, Mods, Opcode, Program, SrcOperand};

/// The instructions in layout order.
fn order(program: &Program) -> Vec<Instr> {
    program.iter_instrs().map(|(_, instr)| instr).collect()
}

/// Replaces every `lt` by `le`.
pub(super) fn wrong_condition(program: &mut Program) {
    for instr in order(program) {
        if let Attrs::Compare(condition @ Condition::Lt) = &mut program.instrs[instr].attrs {
            *condition = Condition::Le;
        }
    }
}

/// Takes the component before the right one.
pub(super) fn wrong_component(program: &mut Program) {
    for instr in order(program) {
        if let Attrs::Split { offset } = &mut program.instrs[instr].attrs {
            *offset = offset.saturating_sub(1);
        }
    }
}

/// Swaps the operands of phis whose two predecessors both come earlier in the layout. Phis of loops are left alone: a
/// value from the end of the loop does not dominate its entry edge.
pub(super) fn wrong_phi(program: &mut Program) {
    let at = |program: &Program, block: Block| program.layout.iter().position(|&other| other == block);
    for block in program.layout.clone() {
        let data = &program.blocks[block];
        let [a, b] = data.predecessors[..] else { continue };
        let here = at(program, block);
        if at(program, a) >= here || at(program, b) >= here {
            continue;
        }
        for instr in data.instrs.clone() {
            let data = &mut program.instrs[instr];
            if data.opcode == Opcode::Phi && data.srcs.len() == 2 {
                data.srcs.swap(0, 1);
            }
        }
    }
}

/// Truncates moved constants to 16 bits.
pub(super) fn wrong_constant(program: &mut Program) {
    for instr in order(program) {
        let data = &mut program.instrs[instr];
        if data.opcode == Opcode::Mov
            && let Some(SrcOperand::Immediate(value)) = data.srcs.first_mut().map(|src| &mut src.operand)
        {
            *value &= 0xffff;
        }
    }
}

/// Inverts branches.
pub(super) fn inverted_branch(program: &mut Program) {
    for instr in order(program) {
        let data = &mut program.instrs[instr];
        if data.opcode == Opcode::Br
            && let Some(src) = data.srcs.first_mut()
        {
            src.mods ^= Mods::NOT;
        }
    }
}

/// Stores, and the loads from the same kind of memory.
const STORES: [(Opcode, Opcode); 5] = [
    (Opcode::Stib, Opcode::Ldib),
    (Opcode::Stgb, Opcode::Ldgb),
    (Opcode::Stg, Opcode::Ldg),
    (Opcode::Stl, Opcode::Ldl),
    (Opcode::Stlw, Opcode::Ldlw),
];

/// Removes all stores of one kind in a block but the last.
pub(super) fn dropped_store(program: &mut Program) {
    for block in program.layout.clone() {
        for (store, _) in STORES {
            let instrs = &program.blocks[block].instrs;
            let stores: Vec<Instr> =
                instrs.iter().copied().filter(|&instr| program.instrs[instr].opcode == store).collect();
            let Some((_, lost)) = stores.split_last() else { continue };
            let data = &mut program.blocks[block];
            data.instrs.retain(|instr| !lost.contains(instr));
            data.keeps.retain(|instr| !lost.contains(instr));
        }
    }
}

/// Moves stores after the next load.
pub(super) fn store_over_load(program: &mut Program) {
    for block in program.layout.clone() {
        for (store, load) in STORES {
            let (opcodes, instrs) = (&program.instrs, &mut program.blocks[block].instrs);
            let is = |instr: Instr, opcode: Opcode| opcodes[instr].opcode == opcode;
            let mut at = 0;
            while let Some(from) = (at..instrs.len()).find(|&i| is(instrs[i], store)) {
                let Some(to) = (from..instrs.len()).find(|&i| is(instrs[i], load)) else { break };
                instrs[from..=to].rotate_left(1);
                at = to + 1;
            }
        }
    }
}

/// Panics on a vector of four components or more.
pub(super) fn crash(program: &mut Program) {
    for instr in order(program) {
        let data = &program.instrs[instr];
        let parts = data.srcs.len();
        assert!(data.opcode != Opcode::Collect || parts < 4, "planted: a vector of {parts} parts, expected at most 3");
    }
}

/// Returns true if the program has a vector of four components or more.
fn has_vector(program: &Program) -> bool {
    order(program).iter().any(|&instr| {
        let data = &program.instrs[instr];
        data.opcode == Opcode::Collect && data.srcs.len() >= 4
    })
}

/// Loops forever if there is a vector of four components.
pub(super) fn endless_loop(program: &mut Program) {
    while black_box(has_vector(program)) {}
}

/// Doubles a list for ever if there is a phi.
pub(super) fn allocation_explosion(program: &mut Program) {
    if order(program).iter().any(|&instr| program.instrs[instr].opcode == Opcode::Phi) {
        let mut list = vec![1u8];
        loop {
            list.extend_from_within(..);
            black_box(&list);
        }
    }
}
