//! Block layout: explicit branches, and as few of them as possible.
//!
//! A block with two successors gets the inverted branch to its second successor and then the branch to its first one,
//! so that the one that leads to the next block in the code can be left out. Branches to blocks that only jump are
//! redirected to the target of that jump, unless that is backwards: a loop would become two, and lanes would reconverge
//! elsewhere. If two branches remain, the one to the later block comes first: lanes that took the other one would wait
//! before the second branch, where nothing makes them reconverge.

use crate::ir3::{Attrs, Block, Instr, InstrData, Mods, Opcode, Program};

/// Makes all branches explicit, then removes blocks that only jump, and branches to the next block.
pub fn run(program: &mut Program) {
    for position in 0..program.layout.len() {
        add_branches(program, program.layout[position]);
    }
    while shorten(program) {}
    for position in 0..program.layout.len() {
        order_branches(program, program.layout[position]);
    }
}

/// Moves the branch to the later block before the other one.
fn order_branches(program: &mut Program, block: Block) {
    let &[.., first, second] = &program.blocks[block].instrs[..] else { return };
    let is_choice = |instr: Instr| program.instrs[instr].opcode.inverse_branch().is_some();
    let place = |instr: Instr| {
        let target = target(program, instr)?;
        program.layout.iter().position(|&other| other == target)
    };
    if is_choice(first) && is_choice(second) && place(first) < place(second) {
        let count = program.blocks[block].instrs.len();
        program.blocks[block].instrs.swap(count - 2, count - 1);
    }
}

const fn branch_to(target: Block) -> Attrs {
    Attrs::Branch { target: Some(target) }
}

fn add_branches(program: &mut Program, block: Block) {
    let data = &program.blocks[block];
    let Some(&terminator) = data.instrs.last() else { return };
    let opcode = program.instrs[terminator].opcode;
    if !opcode.is_terminator() || opcode.is_output() {
        return;
    }
    match (data.successors, opcode.inverse_branch()) {
        ([Some(first), Some(second)], Some(inverse)) => {
            let branch = InstrData { attrs: branch_to(first), ..program.instrs[terminator].clone() };
            let other = &mut program.instrs[terminator];
            other.opcode = inverse;
            other.attrs = branch_to(second);
            other.srcs.iter_mut().for_each(|src| src.mods.toggle(Mods::NOT));
            append(program, block, branch);
        }
        // The first lanes of a predication go on to the next block.
        ([Some(first), _], _) if opcode.is_predication() => program.instrs[terminator].attrs = branch_to(first),
        // One lane, or the first wave, does not jump.
        ([Some(first), Some(second)], None) => {
            program.instrs[terminator].attrs = branch_to(second);
            append(program, block, InstrData { attrs: branch_to(first), ..InstrData::new(Opcode::Jump) });
        }
        ([Some(only), None], _) => program.instrs[terminator].attrs = branch_to(only),
        _ => {}
    }
}

fn append(program: &mut Program, block: Block, data: InstrData) {
    let instr = program.instrs.push(data);
    program.blocks[block].instrs.push(instr);
}

/// The block to which an instruction branches.
pub fn target(program: &Program, instr: Instr) -> Option<Block> {
    match program.instrs[instr].attrs {
        Attrs::Branch { target } => target,
        _ => None,
    }
}

/// Retargets branches and removes those that are not needed; returns true if there was one.
fn shorten(program: &mut Program) -> bool {
    let mut progress = false;
    let mut position = 0;
    while position < program.layout.len() {
        let block = program.layout[position];
        let list = &program.blocks[block].instrs;
        let branches =
            list.iter().rev().take_while(|&&instr| matches!(program.instrs[instr].attrs, Attrs::Branch { .. }));
        for index in list.len() - branches.count()..list.len() {
            let instr = program.blocks[block].instrs[index];
            let Some(old) = target(program, instr) else { continue };
            let Some(new) = destination(program, old) else { continue };
            progress = true;
            program.instrs[instr].attrs = branch_to(new);
            retarget(program, block, old, new);
            if program.blocks[old].predecessors.is_empty() {
                remove(program, old);
                return true;
            }
        }
        progress |= drop_choice(program, block);
        progress |= drop_branch_to_next(program, position);
        position += 1;
    }
    progress
}

/// Replaces the branches of a block whose two successors have become one by a jump: lanes would wait where the others
/// do not join them.
fn drop_choice(program: &mut Program, block: Block) -> bool {
    let [Some(first), Some(second)] = program.blocks[block].successors else { return false };
    if first != second {
        return false;
    }
    let branches = |instr: &Instr| program.instrs[*instr].opcode.is_terminator();
    if program.blocks[block].instrs.iter().any(|&instr| program.instrs[instr].opcode.is_predication()) {
        return false;
    }
    let kept = program.blocks[block].instrs.iter().copied().filter(|instr| !branches(instr)).collect();
    program.blocks[block].instrs = kept;
    program.blocks[block].successors[1] = None;
    program.blocks[block].divergent = None;
    forget_predecessor(program, first, block);
    append(program, block, InstrData { attrs: branch_to(first), ..InstrData::new(Opcode::Jump) });
    true
}

/// The only successor of a block that does nothing else than to go there, if that is not backwards. A block stays in
/// which the arms of a predicated if join, or an elected lane waits for those of a loop.
fn destination(program: &Program, block: Block) -> Option<Block> {
    let data = &program.blocks[block];
    let ends_arm = |from: &Block| {
        let last = program.blocks[*from].instrs.last();
        last.is_some_and(|&last| program.instrs[last].opcode.is_predication())
    };
    let place = |block: Block| program.layout.iter().position(|&other| other == block);
    // The lane that is elected while the others go back waits in this block. A jump in the block before would have no
    // `(jp)`.
    let elects = |from: &Block| {
        let goes_back = |instr| target(program, instr).is_some_and(|to| place(to) <= place(*from));
        program.blocks[*from].instrs.iter().any(|&instr| program.instrs[instr].opcode.elects_lane() && goes_back(instr))
    };
    if data.predecessors.iter().any(|from| ends_arm(from) || elects(from)) {
        return None;
    }
    let [Some(only), None] = data.successors else { return None };
    match data.instrs[..] {
        [] => Some(only),
        [instr] if program.instrs[instr].opcode == Opcode::Jump => (place(only) > place(block)).then_some(only),
        _ => None,
    }
}

/// Replaces a successor.
fn retarget(program: &mut Program, block: Block, old: Block, new: Block) {
    let slot = program.blocks[block].successors.iter_mut().find(|slot| **slot == Some(old));
    *slot.expect("branches lead to successors") = Some(new);
    forget_predecessor(program, old, block);
    program.blocks[new].predecessors.push(block);
}

fn forget_predecessor(program: &mut Program, block: Block, predecessor: Block) {
    let list = &mut program.blocks[block].predecessors;
    if let Some(at) = list.iter().position(|&other| other == predecessor) {
        list.remove(at);
    }
}

/// Removes all blocks that have no predecessors, but the entry.
pub fn remove_unreachable(program: &mut Program) {
    let is_gone =
        |program: &Program, block: Block| block != program.entry() && program.blocks[block].predecessors.is_empty();
    while let Some(block) = program.layout.iter().copied().find(|&block| is_gone(program, block)) {
        remove(program, block);
    }
}

/// Removes a block without predecessors.
pub fn remove(program: &mut Program, block: Block) {
    program.layout.retain(|&other| other != block);
    let successors = std::mem::take(&mut program.blocks[block].successors);
    for successor in successors.into_iter().flatten() {
        forget_predecessor(program, successor, block);
    }
}

/// Removes the branch at the end of a block that leads to the next one, if it is the only one, or the other one of two
/// has the opposite condition.
fn drop_branch_to_next(program: &mut Program, position: usize) -> bool {
    let (block, next) = (program.layout[position], program.layout.get(position + 1).copied());
    let list = &program.blocks[block].instrs;
    let opcode = |instr: Instr| program.instrs[instr].opcode;
    let candidates = match list[..] {
        [.., last] if opcode(last) == Opcode::Jump => &list[list.len() - 1..],
        [.., first, second] if [first, second].iter().all(|&it| opcode(it).inverse_branch().is_some()) => {
            &list[list.len() - 2..]
        }
        _ => return false,
    };
    let Some(useless) =
        candidates.iter().rev().copied().find(|&instr| next.is_some() && target(program, instr) == next)
    else {
        return false;
    };
    program.blocks[block].instrs.retain(|instr| *instr != useless);
    true
}
