//! Small ifs without a branch: lanes sleep instead (`predt`, `predf`, `prede`).
//!
//! `predt p` has the lanes sleep where `p` fails, until `predf` wakes them and has the others sleep, until `prede` wakes
//! all. Nothing is jumped over, and nothing waits for the branch to be decided, so this pays where lanes part anyway.
//! The block in front of the if ends with `predt` (`predf` where the condition is inverted), its first arm with
//! the opposite, its second arm with a jump; the three blocks and what is behind them follow each other in the code. The
//! `prede`, and what becomes of an arm without instructions, is for legalization.
//!
//! That is done for each if where lanes may part, with a branch on one predicate (one on two is better off as it is),
//! whose arms are one block each, with nothing in them that
//! - becomes control flow later (macros, kills), or is about the lanes that run;
//! - writes a predicate: the first arm ends with a read of the one that the if has, in `p0.x` and nowhere else.
//!
//! There is no limit of size, as Mesa has none: the largest arm of its logs has 144 instructions.

use crate::ir3::uniformity::Uniformity;
use crate::ir3::{Block, Instr, InstrData, Latency, Mods, Opcode, Program, RegFile, reconvergence};
use crate::target::Target;

/// An if that can do without a branch.
struct If {
    /// Its last block in front.
    from: Block,
    branch: Instr,
    /// Its arms: the one in which the condition holds, the other one.
    arms: [Block; 2],
    /// Where the arms are in the layout.
    position: usize,
}

/// Whether there is an if to do it for.
pub fn is_needed(program: &Program, target: &Target) -> bool {
    target.has_predication && (0..program.layout.len()).any(|position| candidate(program, position).is_some())
}

/// Does it.
pub fn run(program: &mut Program) {
    let uniformity = Uniformity::new(program);
    for position in 0..program.layout.len() {
        if let Some(found) = candidate(program, position)
            && uniformity.parts_lanes(found.from)
        {
            predicate(program, &found);
        }
    }
    // Arms may have changed places, and lanes that sleep do not come together anywhere.
    if program.layout.iter().any(|&block| !program.blocks[block].physical_successors.is_empty()) {
        reconvergence::run(program);
    }
}

/// The if whose branch is at the end of a block of the layout.
fn candidate(program: &Program, position: usize) -> Option<If> {
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
    let fits = in_place && meets && alone && [first, second].into_iter().all(|arm| can_sleep(program, arm));
    fits.then_some(If { from, branch, arms: [yes, no], position: position + 1 })
}

/// Whether all that an arm does can be done while lanes sleep.
fn can_sleep(program: &Program, arm: Block) -> bool {
    let Some((&last, instrs)) = program.blocks[arm].instrs.split_last() else { return false };
    program.instrs[last].opcode == Opcode::Jump && instrs.iter().all(|&instr| can_be_in_arm(&program.instrs[instr]))
}

fn can_be_in_arm(data: &InstrData) -> bool {
    use Opcode::*;
    let about_lanes = matches!(
        data.opcode,
        Kill | Demote | Call | Ret | Shpe | Movmsk | BrcstActive | Bar | PushConstsLoadMacro | Getfiberid
    );
    let special = |file: RegFile| file == RegFile::Predicate;
    !about_lanes
        && data.opcode.info().latency != Latency::Macro
        && !data.dsts.iter().any(|dst| special(dst.class.file))
        && !data.srcs.iter().any(|src| special(src.class.file))
}

fn predicate(program: &mut Program, found: &If) {
    let If { from, branch, arms: [yes, no], position } = *found;
    let condition = program.instrs[branch].srcs[0];
    let mut holds = !condition.mods.contains(Mods::NOT);
    let (mut first, mut second) = (yes, no);
    // An arm that does nothing is better the second one: that is left out.
    let is_empty = |arm: Block| program.blocks[arm].instrs.len() == 1;
    if is_empty(first) && !is_empty(second) {
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
