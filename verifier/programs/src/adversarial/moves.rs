//! Pairs as stages make them that move values, instructions and blocks: an instruction that both sides have keeps its
//! number, so the register checker can match them. The change is random, so it may be right or wrong.
//!
//! The programs are those of [`divergence`]: their lanes diverge, and the content of a register depends on where the
//! other lanes are.

use super::Made;
use crate::Pair;
use crate::divergence;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{
    Attrs, Block, BlockData, Dst, Instr, InstrData, Mods, Opcode, Place, Program, RegClass, RegFile, Src, SrcOperand,
    reconvergence,
};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;

/// Changes a program; false if there is nothing to change.
type ProgramChange = fn(&mut Program, &mut Random) -> bool;

static CHANGES: [(&str, ProgramChange); 9] = [
    ("two blocks swapped", two_blocks),
    ("a block on an edge", edge_block),
    ("a move added", move_added),
    ("an instruction twice", twice),
    ("an instruction removed", removed),
    ("two instructions swapped", swapped),
    ("to another block", to_another_block),
    ("another operand", another_operand),
    ("another result", another_result),
];

/// Makes a pair. `None` if the changed program is not valid.
pub(super) fn make(random: &mut Random, machine: &Target) -> Option<Made> {
    let Pair { source, .. } = divergence::pairs(random.next(), 0..1, 0, machine).next()?;
    let mut program = source.as_ir3()?.clone();
    let (change, make) = CHANGES[random.below(CHANGES.len())];
    let again = random.chance(30);
    (0..10).find(|_| make(&mut program, random))?;
    if again {
        let (_, make) = CHANGES[random.below(CHANGES.len())];
        make(&mut program, random);
    }
    let target = Snapshot::Ir3(Box::new(program));
    let valid = validate(target.as_ir3()?, machine, Form::of(source.as_ir3()?)).is_ok();
    valid.then_some(Made { change, source, target, differs: false })
}

/// Returns a random block and the index of one of its instructions.
fn site(program: &Program, random: &mut Random) -> (Block, usize) {
    let block = program.layout[random.below(program.layout.len())];
    (block, random.below(program.blocks[block].instrs.len()))
}

/// Returns true if the instruction ends its block.
fn ends(program: &Program, (block, at): (Block, usize)) -> bool {
    at + 1 == program.blocks[block].instrs.len()
}

/// Returns a register that some instruction reads or writes, with its class.
fn register(program: &Program, random: &mut Random) -> Option<(Place, RegClass)> {
    let mut all = Vec::new();
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        all.extend(data.dsts.iter().map(|dst| (dst.place, dst.class)));
        all.extend(data.srcs.iter().filter_map(|src| Some((*src.place()?, src.class))));
    }
    all.retain(|(_, class)| matches!(class.file, RegFile::General | RegFile::Shared) && !class.half);
    random.pick(&all)
}

/// Makes a move between two registers, or of a small constant.
fn a_move(program: &mut Program, random: &mut Random) -> Option<Instr> {
    let moves = |instr: &Instr| program.instrs[*instr].opcode == Opcode::Mov;
    let all: Vec<Instr> = program.iter_instrs().map(|(_, instr)| instr).filter(moves).collect();
    let mut data: InstrData = program.instrs[random.pick(&all)?].clone();
    let (to, from) = (register(program, random)?, register(program, random)?);
    let (Some(Dst { place, class, .. }), Some(src)) = (data.dsts.first_mut(), data.srcs.first_mut()) else {
        return None;
    };
    (*place, *class) = to;
    if random.chance(60) {
        let Src { operand, class, mods, .. } = src;
        (*operand, *class, *mods) = (SrcOperand::Place(from.0), from.1, Mods::default());
    }
    Some(program.instrs.push(data))
}

fn two_blocks(program: &mut Program, random: &mut Random) -> bool {
    if program.layout.len() < 3 {
        return false;
    }
    let at = 1 + random.below(program.layout.len() - 2);
    program.layout.swap(at, at + 1);
    reconvergence::run(program);
    true
}

fn edge_block(program: &mut Program, random: &mut Random) -> bool {
    let from = program.layout[random.below(program.layout.len())];
    let slot = random.below(2);
    let Some(to) = program.blocks[from].successors[slot] else { return false };
    let jumps = |instr: &Instr| program.instrs[*instr].opcode == Opcode::Jump;
    let Some(jump) = program.iter_instrs().map(|(_, instr)| instr).find(jumps) else { return false };
    let mut jump = program.instrs[jump].clone();
    // The copied jump may name the target of its own block.
    if let Attrs::Branch { target } = &mut jump.attrs {
        *target = None;
    }
    let mut instrs = Vec::new();
    if random.chance(60) {
        instrs.extend(a_move(program, random));
    }
    instrs.push(program.instrs.push(jump));
    let via = program.blocks.push(BlockData { instrs, ..BlockData::default() });
    program.blocks[from].successors[slot] = Some(via);
    program.blocks[via].successors[0] = Some(to);
    program.blocks[via].predecessors.push(from);
    let Some(pred) = program.blocks[to].predecessors.iter_mut().find(|pred| **pred == from) else { return false };
    *pred = via;
    // Mostly right before the block that it jumps to.
    let place = program.layout.iter().position(|&block| block == to).unwrap_or(0).max(1);
    let place = if random.chance(50) { place } else { 1 + random.below(program.layout.len()) };
    program.layout.insert(place, via);
    reconvergence::run(program);
    true
}

fn move_added(program: &mut Program, random: &mut Random) -> bool {
    let (block, at) = site(program, random);
    let Some(instr) = a_move(program, random) else { return false };
    program.blocks[block].instrs.insert(at, instr);
    true
}

/// Inserts a copy of an instruction, with a number of its own and perhaps another destination: its value is
/// rematerialised.
fn twice(program: &mut Program, random: &mut Random) -> bool {
    let from = site(program, random);
    if ends(program, from) {
        return false;
    }
    let mut data = program.instrs[program.blocks[from.0].instrs[from.1]].clone();
    if random.chance(50)
        && let (Some(to), Some(dst)) = (register(program, random), data.dsts.first_mut())
        && dst.class == to.1
    {
        dst.place = to.0;
    }
    let instr = program.instrs.push(data);
    let (block, at) = if random.chance(50) { (from.0, from.1 + 1) } else { site(program, random) };
    program.blocks[block].instrs.insert(at, instr);
    true
}

fn removed(program: &mut Program, random: &mut Random) -> bool {
    let (block, at) = site(program, random);
    if ends(program, (block, at)) {
        return false;
    }
    program.blocks[block].instrs.remove(at);
    true
}

fn swapped(program: &mut Program, random: &mut Random) -> bool {
    let (block, at) = site(program, random);
    if ends(program, (block, at)) || ends(program, (block, at + 1)) {
        return false;
    }
    program.blocks[block].instrs.swap(at, at + 1);
    true
}

fn to_another_block(program: &mut Program, random: &mut Random) -> bool {
    let from = site(program, random);
    if ends(program, from) {
        return false;
    }
    let instr = program.blocks[from.0].instrs.remove(from.1);
    let (block, at) = site(program, random);
    program.blocks[block].instrs.insert(at, instr);
    true
}

fn another_operand(program: &mut Program, random: &mut Random) -> bool {
    let (block, at) = site(program, random);
    let Some((place, class)) = register(program, random) else { return false };
    let instr = program.blocks[block].instrs[at];
    let mut srcs = program.instrs[instr].srcs.iter_mut().filter(|src| src.place().is_some() && src.class == class);
    let Some(src) = srcs.next() else { return false };
    src.operand = SrcOperand::Place(place);
    true
}

fn another_result(program: &mut Program, random: &mut Random) -> bool {
    let (block, at) = site(program, random);
    let Some((place, class)) = register(program, random) else { return false };
    let instr = program.blocks[block].instrs[at];
    let Some(dst) = program.instrs[instr].dsts.iter_mut().find(|dst| dst.class == class) else { return false };
    dst.place = place;
    true
}
