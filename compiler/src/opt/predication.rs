//! Predication: small ifs without a branch, by deactivating lanes (`predt`, `predf`, `prede`).
//!
//! `predt p` deactivates the lanes where `p` is false, until `predf` reactivates them and deactivates the others, until
//! `prede` reactivates all. No code is jumped over, and no instruction waits for the branch, so this pays off if lanes
//! diverge anyway. The block before the if ends with `predt` (`predf` for an inverted condition), its first arm with
//! the opposite, its second arm with a jump; the three blocks and the block after them are consecutive in the code.
//! Legalization adds the `prede` and handles an arm without instructions.
//!
//! The pass applies to each divergent if with a branch on one predicate (a branch on two predicates is kept), whose
//! arms are one block each, without instructions that
//! - become control flow later (macros, kills), or depend on the active lanes;
//! - write a predicate: the first arm ends with a read of the predicate of the if, in `p0.x` and in no other register.
//!
//! There is no size limit, as in Mesa: the largest arm of its logs has 144 instructions.

use crate::arms::{Arm, Counter};
use crate::ir3::uniformity::Uniformity;
use crate::ir3::{Block, Instr, InstrData, Mods, Opcode, Program, RegFile, reconvergence};
use crate::target::Target;
use std::cell::OnceCell;

/// An if that can be predicated.
struct If {
    /// The block before it.
    from: Block,
    branch: Instr,
    /// Its arms: first the one where the condition is true.
    arms: [Block; 2],
    /// The position of the arms in the layout.
    position: usize,
}

/// Returns true if there is an if to predicate.
pub fn is_needed(program: &Program, target: &Target) -> bool {
    let counter = Counter::default();
    target.has_predication && (0..program.layout.len()).any(|position| candidate(program, position, &counter).is_some())
}

/// Predicates all candidates.
pub fn run(program: &mut Program, counter: &Counter) {
    let uniformity = OnceCell::new();
    for position in 0..program.layout.len() {
        if let Some(found) = candidate(program, position, counter) {
            // Most branches have a record, and those of uniform conditions are no candidates.
            let is_unknown = program.blocks[found.from].divergent.is_none();
            if is_unknown && !uniformity.get_or_init(|| Uniformity::new(program)).parts_lanes(found.from) {
                counter.count(Arm::PredicationUniform);
                continue;
            }
            if counter.may(Arm::Predicated) {
                predicate(program, &found, counter);
            }
        }
    }
    // Arms may have been swapped, and inactive lanes do not reconverge at a block.
    if program.layout.iter().any(|&block| !program.blocks[block].physical_successors.is_empty()) {
        reconvergence::run(program);
    }
}

/// The if whose branch ends a block of the layout.
fn candidate(program: &Program, position: usize, counter: &Counter) -> Option<If> {
    let &[from, first, second] = program.layout.get(position..position + 3)? else { return None };
    let data = &program.blocks[from];
    let branch = *data.instrs.last()?;
    if program.instrs[branch].opcode != Opcode::Br || data.divergent == Some(false) {
        return None;
    }
    let [Some(yes), Some(no)] = data.successors else { return None };
    let in_place = [yes, no] == [first, second] || [no, yes] == [first, second];
    let [a, b] = [&program.blocks[first], &program.blocks[second]];
    let meets = a.successors == b.successors && matches!(a.successors, [Some(_), None]);
    let alone = [a, b].iter().all(|arm| arm.predecessors[..] == [from]);
    if in_place && meets && alone && ![first, second].into_iter().all(|arm| can_sleep(program, arm)) {
        counter.count(Arm::PredicationArm);
    }
    let fits = in_place && meets && alone && [first, second].into_iter().all(|arm| can_sleep(program, arm));
    fits.then_some(If { from, branch, arms: [yes, no], position: position + 1 })
}

/// Returns true if an arm may run with lanes deactivated by predication.
fn can_sleep(program: &Program, arm: Block) -> bool {
    let Some((&last, instrs)) = program.blocks[arm].instrs.split_last() else { return false };
    program.instrs[last].opcode == Opcode::Jump && instrs.iter().all(|&instr| can_be_in_arm(&program.instrs[instr]))
}

fn can_be_in_arm(data: &InstrData) -> bool {
    let special = |file: RegFile| file == RegFile::Predicate;
    data.opcode.can_be_predicated()
        && !data.dsts.iter().any(|dst| special(dst.class.file))
        && !data.srcs.iter().any(|src| special(src.class.file))
}

fn predicate(program: &mut Program, found: &If, counter: &Counter) {
    let If { from, branch, arms: [yes, no], position } = *found;
    let condition = program.instrs[branch].srcs[0];
    let mut holds = !condition.mods.contains(Mods::NOT);
    let (mut first, mut second) = (yes, no);
    // An empty arm is better as the second one: that is left out.
    let is_empty = |arm: Block| program.blocks[arm].instrs.len() == 1;
    if is_empty(first) && !is_empty(second) {
        counter.count(Arm::PredicationSwapped);
        std::mem::swap(&mut first, &mut second);
        holds = !holds;
    }
    program.layout[position] = first;
    program.layout[position + 1] = second;
    program.blocks[from].successors = [Some(first), Some(second)];
    let opcode = |holds: bool| if holds { Opcode::Predt } else { Opcode::Predf };
    let data = &mut program.instrs[branch];
    data.opcode = opcode(holds);
    data.srcs[0].mods = Mods::empty();
    let srcs = data.srcs.clone();
    if let Some(&last) = program.blocks[first].instrs.last() {
        let mut data = InstrData::new(opcode(!holds));
        data.srcs = srcs;
        program.instrs[last] = data;
    }
}
