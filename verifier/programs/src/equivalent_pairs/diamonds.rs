//! If-conversion and its inverse: a small `if` becomes selects, a select becomes an `if`.

use super::blocks::split_at;
use super::edit::{
    consts_change, encodes, full_src, has_predication, insert, is_pure, move_attrs, operation, physical_is_logical,
    renew_physical,
};
use cranelift_entity::EntitySet;
use ir3_compiler::ir3::{
    Attrs, Block, BlockData, Condition, Instr, InstrData, Mods, Opcode, Place, Program, RegClass, RegFile, Round, Src,
    SrcOperand, Type, Value, WriteMask,
};
use ir3_compiler::target::Target;
use ir3_semantics::support::random::Random;

const fn select(half: bool) -> Opcode {
    if half { Opcode::SelB16 } else { Opcode::SelB32 }
}

/// An if whose arms only compute.
struct Diamond {
    block: Block,
    yes: Block,
    no: Block,
    join: Block,
}

fn diamond(program: &Program, position: usize, consts_change: bool) -> Option<Diamond> {
    let &[block, first, second, join] = program.layout.get(position..position + 4)? else { return None };
    let data = &program.blocks[block];
    let [Some(yes), Some(no)] = data.successors else { return None };
    let branch = &program.instrs[*data.instrs.last()?];
    let arm = |arm: Block| {
        let data = &program.blocks[arm];
        let instrs = data.instrs.split_last().map(|(_, instrs)| instrs);
        data.predecessors[..] == [block]
            && data.successors == [Some(join), None]
            && instrs.is_some_and(|instrs| instrs.iter().all(|&i| is_pure(&program.instrs[i], consts_change)))
    };
    let sources = |instr: Instr| {
        let data = &program.instrs[instr];
        data.opcode != Opcode::Phi
            || data.dsts[0].class.file == RegFile::General
                && data.dsts[0].mask == WriteMask::SCALAR
                && matches!(data.dsts[0].place, Place::Value(_))
                && data.srcs.iter().all(|src| match src.operand {
                    SrcOperand::Place(Place::Value(_)) => src.class.file == RegFile::General,
                    SrcOperand::Immediate(_) => true,
                    SrcOperand::Const(_) => !consts_change,
                    _ => false,
                })
    };
    let tail = &program.blocks[join];
    let sound = branch.opcode == Opcode::Br
        && matches!(branch.srcs[0].operand, SrcOperand::Place(Place::Value(_)))
        && yes != no
        && [first, second].contains(&yes)
        && [first, second].contains(&no)
        && arm(yes)
        && arm(no)
        && tail.predecessors.len() == 2
        && tail.predecessors.contains(&yes)
        && tail.predecessors.contains(&no)
        && tail.instrs.iter().all(|&instr| sources(instr));
    sound.then_some(Diamond { block, yes, no, join })
}

/// If-conversion: lanes compute both arms of small ifs and select the results; false if there is no such if.
///
/// A branch on an undefined predicate is undefined behaviour, so a select on an undefined condition is a refinement. An
/// undefined value in the arm that is not selected has no effect.
pub(super) fn to_selects(program: &mut Program, target: &Target, random: &mut Random) -> bool {
    if has_predication(program) || !physical_is_logical(program) {
        return false;
    }
    let consts_change = consts_change(program);
    let mut any = false;
    let mut position = 0;
    while position < program.layout.len() {
        match diamond(program, position, consts_change).filter(|_| random.chance(75)) {
            Some(diamond) => {
                convert(program, target, &diamond);
                program.layout.drain(position + 1..position + 3);
                any = true;
            }
            None => position += 1,
        }
    }
    if any {
        program.block_names.clear();
        renew_physical(program);
    }
    any
}

fn convert(program: &mut Program, target: &Target, diamond: &Diamond) {
    let &Diamond { block, yes, no, join } = diamond;
    let Some(branch) = program.blocks[block].instrs.pop() else { return };
    for arm in [yes, no] {
        let mut instrs = std::mem::take(&mut program.blocks[arm].instrs);
        instrs.pop();
        program.blocks[block].instrs.extend(instrs);
    }
    let predicate = program.instrs[branch].srcs[0];
    let inverted = predicate.mods.contains(Mods::NOT);
    let from = program.blocks[join].predecessors.clone();
    let (k, j) = if from[0] == yes { (0, 1) } else { (1, 0) };
    let mut conditions: [Option<Src>; 2] = [None; 2];
    let phis: Vec<Instr> = {
        let is_phi = |&&instr: &&Instr| program.instrs[instr].opcode == Opcode::Phi;
        program.blocks[join].instrs.iter().take_while(is_phi).copied().collect()
    };
    program.blocks[join].instrs.drain(..phis.len());
    for phi in phis {
        let dst = program.instrs[phi].dsts[0];
        let half = dst.class.half;
        let condition = *conditions[usize::from(half)].get_or_insert_with(|| {
            let plain = Src { mods: Mods::empty(), ..predicate };
            let to = if half { Type::U16 } else { Type::U32 };
            let attrs = Attrs::Move { src: Type::U32, dst: to, round: Round::Default };
            let data = operation(Opcode::Mov, RegClass::general(half), &[plain], attrs);
            let index = program.blocks[block].instrs.len();
            let value = insert(program, block, index, data);
            full_src(program, value)
        });
        let (mut a, mut b) = (program.instrs[phi].srcs[k], program.instrs[phi].srcs[j]);
        if inverted {
            std::mem::swap(&mut a, &mut b);
        }
        let mut data: InstrData = operation(select(half), dst.class, &[a, condition, b], Attrs::None);
        for slot in [0, 2] {
            if encodes(target, &data) && !matches!(data.srcs[slot].operand, SrcOperand::Immediate(_)) {
                continue;
            }
            if data.srcs[slot].value().is_none() {
                let number = operation(Opcode::Mov, dst.class, &[data.srcs[slot]], move_attrs(dst.class));
                let index = program.blocks[block].instrs.len();
                let value = insert(program, block, index, number);
                data.srcs[slot] = full_src(program, value);
            }
        }
        data.dsts[0] = dst;
        program.instrs[phi] = data;
        program.blocks[block].instrs.push(phi);
    }
    let jump = program.instrs.push(InstrData::new(Opcode::Jump));
    program.blocks[block].instrs.push(jump);
    program.blocks[block].successors = [Some(join), None];
    program.blocks[block].divergent = None;
    program.blocks[join].predecessors = [block].into_iter().collect();
    for arm in [yes, no] {
        program.blocks[arm] = BlockData::default();
    }
}

/// The values that are never undefined: those computed from inputs, immediates and constants alone.
fn defined(program: &Program) -> EntitySet<Value> {
    let consts_change = consts_change(program);
    let mut defined: EntitySet<Value> = EntitySet::new();
    defined.extend(program.values.keys());
    loop {
        let mut changed = false;
        for (_, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            let sound = match data.opcode {
                Opcode::Input => true,
                Opcode::Phi => data.srcs.iter().all(|src| !matches!(src.operand, SrcOperand::Undef)),
                _ => is_pure(data, consts_change),
            } && data.srcs.iter().filter_map(|src| src.value()).all(|value| defined.contains(value));
            if !sound {
                for value in data.dsts.iter().filter_map(|dst| dst.value()) {
                    changed |= defined.remove(value);
                }
            }
        }
        if !changed {
            return defined;
        }
    }
}

/// Turns selects into branches; false if there is no select on a condition that is always defined.
///
/// A branch on an undefined condition is undefined behaviour, while a select on one only has an undefined result.
pub(super) fn from_selects(program: &mut Program, _: &Target, random: &mut Random) -> bool {
    if has_predication(program) || !physical_is_logical(program) {
        return false;
    }
    let defined = defined(program);
    let consts_change = consts_change(program);
    let fits = |instr: Instr| {
        let data = &program.instrs[instr];
        let [dst] = data.dsts[..] else { return false };
        matches!(data.opcode, Opcode::SelB16 | Opcode::SelB32)
            && is_pure(data, consts_change)
            && dst.class.file == RegFile::General
            && dst.mask == WriteMask::SCALAR
            && data.srcs.iter().all(|src| src.class == dst.class && src.mask == WriteMask::SCALAR)
            && data.srcs[1].value().is_some_and(|value| defined.contains(value))
    };
    // No address register may be live across a split.
    let addresses = program
        .iter_instrs()
        .any(|(_, instr)| program.instrs[instr].dsts.iter().any(|dst| dst.class.file == RegFile::Address));
    let selects: Vec<(Block, Instr)> = program.iter_instrs().filter(|&(_, instr)| fits(instr)).collect();
    if addresses || selects.is_empty() {
        return false;
    }
    let chosen: Vec<(Block, Instr)> = selects.iter().copied().filter(|_| random.chance(40)).take(6).collect();
    let chosen = if chosen.is_empty() { vec![selects[random.below(selects.len())]] } else { chosen };
    // From the last one to the first, so that the instructions before a split keep their block.
    for (block, instr) in chosen.into_iter().rev() {
        if let Some(at) = program.blocks[block].instrs.iter().position(|&i| i == instr) {
            branch_on(program, block, at);
        }
    }
    program.block_names.clear();
    renew_physical(program);
    true
}

fn branch_on(program: &mut Program, block: Block, at: usize) {
    let join = split_at(program, block, at);
    program.blocks[block].instrs.pop();
    let select = program.blocks[join].instrs[0];
    let [a, c, b] = [0, 1, 2].map(|i| program.instrs[select].srcs[i]);
    let index = program.blocks[block].instrs.len();
    let zero = Src::immediate(0, c.class.half);
    let test = operation(Opcode::CmpsU, RegClass::PREDICATE, &[c, zero], Attrs::Compare(Condition::Ne));
    let predicate = insert(program, block, index, test);
    let mut branch = InstrData::new(Opcode::Br);
    branch.srcs.push(full_src(program, predicate));
    let branch = program.instrs.push(branch);
    program.blocks[block].instrs.push(branch);
    let arms = [0, 1].map(|_| {
        let jump = program.instrs.push(InstrData::new(Opcode::Jump));
        program.blocks.push(BlockData {
            instrs: vec![jump],
            successors: [Some(join), None],
            predecessors: [block].into_iter().collect(),
            ..BlockData::default()
        })
    });
    let mut phi = operation(Opcode::Phi, program.instrs[select].dsts[0].class, &[a, b], Attrs::None);
    phi.dsts = program.instrs[select].dsts.clone();
    program.instrs[select] = phi;
    program.blocks[block].successors = arms.map(Some);
    program.blocks[join].predecessors = arms.into_iter().collect();
    let position = program.layout.iter().position(|&b| b == block).map_or(program.layout.len(), |i| i + 1);
    program.layout.splice(position..position, arms);
}
