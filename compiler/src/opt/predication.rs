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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::{Attrs, BlockData, Builder, Condition, InputKind, RegClass, Src, SystemValue};

    const R: RegClass = RegClass::FULL;

    /// An if on a comparison of the lane's number, whose arms compute so many sums.
    fn program(sums: [usize; 2], inverted: bool) -> Program {
        let mut program = Program::default();
        let blocks: Vec<Block> = (0..4).map(|_| program.blocks.push(BlockData::default())).collect();
        program.layout.clone_from(&blocks);
        for (from, slot, to) in [(0, 0, 1), (0, 1, 2), (1, 0, 3), (2, 0, 3)] {
            program.add_edge(blocks[from], slot, blocks[to]);
        }
        let mut b = Builder::new(&mut program, blocks[0]);
        let input = Attrs::Input(Some(InputKind::System(SystemValue::SubgroupInvocation)));
        let lane = b.define(Opcode::Input, R, 1, &[], input);
        let lane = b.src(lane);
        let p = b.compare(Opcode::CmpsU, Condition::Lt, RegClass::PREDICATE, lane, Src::immediate(3, false));
        let mods = if inverted { Mods::NOT } else { Mods::empty() };
        let p = b.src(p).with_mods(mods);
        b.effect(Opcode::Br, &[p]);
        for (arm, count) in sums.into_iter().enumerate() {
            b.block = blocks[1 + arm];
            for _ in 0..count {
                b.alu(Opcode::AddU, R, &[lane, lane]);
            }
            b.effect(Opcode::Jump, &[]);
        }
        b.block = blocks[3];
        b.effect(Opcode::End, &[]);
        program
    }

    /// How each block of the layout ends, and how many instructions are in front of that.
    fn ends(program: &Program) -> Vec<(usize, Opcode)> {
        let end = |block: &Block| {
            let (last, rest) = program.blocks[*block].instrs.split_last().unwrap();
            (rest.len(), program.instrs[*last].opcode)
        };
        program.layout.iter().map(end).collect()
    }

    #[test]
    fn lanes_sleep_instead_of_jumping() {
        use Opcode::{End, Jump, Predf, Predt};
        for (sums, inverted, expected) in [
            ([1, 2], false, [(2, Predt), (1, Predf), (2, Jump), (0, End)]),
            ([1, 2], true, [(2, Predf), (1, Predt), (2, Jump), (0, End)]),
            ([1, 0], false, [(2, Predt), (1, Predf), (0, Jump), (0, End)]),
            ([0, 2], false, [(2, Predf), (2, Predt), (0, Jump), (0, End)]),
        ] {
            let mut program = program(sums, inverted);
            assert!(is_needed(&program, &Target::default()));
            run(&mut program);
            assert_eq!(ends(&program), expected);
            let srcs: Vec<_> = program.layout[..2]
                .iter()
                .map(|&block| program.instrs[*program.blocks[block].instrs.last().unwrap()].srcs.clone())
                .collect();
            assert_eq!(srcs[0], srcs[1]);
            assert!(srcs[0][0].mods.is_empty());
            assert!(!is_needed(&program, &Target::default()));
        }
    }

    /// The wave goes from the first arm to the second, whichever that is by now, and nothing is marked as a place where
    /// lanes come together.
    #[test]
    fn edges_are_those_of_the_new_order() {
        let mut program = program([0, 2], false);
        reconvergence::run(&mut program);
        run(&mut program);
        let position = |block: &Block| program.layout.iter().position(|other| other == block).unwrap();
        let edges: Vec<Vec<usize>> = program
            .layout
            .iter()
            .map(|&block| {
                let mut list: Vec<usize> = program.blocks[block].physical_successors.iter().map(position).collect();
                list.sort_unstable();
                list
            })
            .collect();
        assert_eq!(edges, [vec![1, 2], vec![2, 3], vec![3], vec![]]);
        assert!(program.layout.iter().all(|&block| !program.blocks[block].reconvergence_point));
    }

    #[test]
    fn others_stay() {
        let before = program([1, 1], false);
        assert!(!is_needed(&before, &Target::by_name("a540").unwrap()));
        // All lanes go the same way.
        let mut uniform = before.clone();
        let entry = uniform.entry();
        uniform.blocks[entry].divergent = Some(false);
        assert!(!is_needed(&uniform, &Target::default()));
        // A vote, a kill and a predicate in an arm.
        for opcode in [Opcode::AnyMacro, Opcode::Kill, Opcode::CmpsS] {
            let mut program = before.clone();
            let arm = program.layout[2];
            let predicate = *program.blocks[entry].instrs.last().unwrap();
            let predicate = program.instrs[predicate].srcs[0];
            let mut b = Builder::new(&mut program, arm);
            match opcode {
                Opcode::Kill => {
                    b.effect(opcode, &[predicate]);
                }
                Opcode::CmpsS => {
                    let [x, y] = [1, 2].map(|x| Src::immediate(x, false));
                    b.compare(opcode, Condition::Lt, RegClass::PREDICATE, x, y);
                }
                _ => {
                    b.define(opcode, R, 1, &[predicate], Attrs::None);
                }
            }
            let instrs = &mut program.blocks[arm].instrs;
            let last = instrs.len() - 1;
            instrs.swap(last - 1, last);
            assert!(!is_needed(&program, &Target::default()), "{opcode}");
        }
    }
}
