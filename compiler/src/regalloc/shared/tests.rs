//! Small programs: what lives where, and what becomes of victims. That programs mean the same is the verifier's to say.

use super::*;
use crate::ir3::validate::{Form, validate};
use crate::ir3::{Attrs, BlockData, Builder, InputKind, Round, Src, SystemValue, Type};

const S: RegClass = RegClass::SHARED;
const R: RegClass = RegClass::FULL;

fn gpu() -> Target {
    Target::by_name("a660").expect("a GPU")
}

fn limits(units: u32) -> RegisterFiles {
    RegisterFiles { shared: units, shared_half: units.min(32), ..gpu().register_files() }
}

/// Blocks in their order, with edges, and whether lanes part at a block's end.
fn blocks(count: usize, edges: &[(usize, usize, usize)], divergent: &[usize]) -> (Program, Vec<Block>) {
    let mut program = Program::default();
    let blocks: Vec<Block> = (0..count).map(|_| program.blocks.push(BlockData::default())).collect();
    program.layout.clone_from(&blocks);
    for &(from, slot, to) in edges {
        program.add_edge(blocks[from], slot, blocks[to]);
    }
    for (i, &block) in blocks.iter().enumerate() {
        if program.blocks[block].successors().count() > 1 {
            program.blocks[block].divergent = Some(divergent.contains(&i));
        }
    }
    (program, blocks)
}

fn constant(b: &mut Builder, word: u16) -> Src {
    let attrs = Attrs::Move { src: Type::U32, dst: Type::U32, round: Round::Default };
    let value = b.define(Opcode::Mov, S, 1, &[Src::constant(word, false)], attrs);
    b.src(value)
}

fn branch(b: &mut Builder) {
    let lane = Attrs::Input(Some(InputKind::System(SystemValue::SubgroupInvocation)));
    let lane = b.define(Opcode::Input, R, 1, &[], lane);
    let p =
        b.compare(Opcode::CmpsU, crate::ir3::Condition::Lt, RegClass::PREDICATE, b.src(lane), Src::immediate(3, false));
    let instr = b.program.values[p].instr;
    b.program.instrs[instr].dsts[0].place = Place::Reg(PhysReg::P0_X);
    let p = Src::reg(Place::Reg(PhysReg::P0_X), RegClass::PREDICATE, WriteMask::SCALAR);
    b.effect(Opcode::Br, &[p]);
}

fn general_copy(b: &mut Builder, src: Src) -> Src {
    let value = b.convert(Type::U32, Type::U32, R, src);
    b.src(value)
}

/// The registers that scalar instructions of a block write.
fn written(program: &Program, block: Block) -> Vec<PhysReg> {
    let dsts = program.blocks[block].instrs.iter().flat_map(|&instr| &program.instrs[instr].dsts);
    dsts.filter(|dst| dst.class.file == RegFile::Shared).filter_map(|dst| dst.place.reg()).collect()
}

/// What the else arm reads is kept while the then arm runs, if lanes part: though no lane goes from one to the other.
#[test]
fn values_of_waiting_lanes_are_kept() {
    for divergent in [true, false] {
        let parting: &[usize] = if divergent { &[0] } else { &[] };
        let (mut program, blocks) = blocks(4, &[(0, 0, 1), (0, 1, 2), (1, 0, 3), (2, 0, 3)], parting);
        let mut b = Builder::new(&mut program, blocks[0]);
        let kept = constant(&mut b, 1);
        branch(&mut b);
        b.block = blocks[1];
        let other = constant(&mut b, 2);
        let other = general_copy(&mut b, other);
        b.effect(Opcode::Stl, &[other, other, Src::immediate(1, false)]);
        b.effect(Opcode::Jump, &[]);
        b.block = blocks[2];
        let copy = general_copy(&mut b, kept);
        b.effect(Opcode::Stl, &[copy, copy, Src::immediate(1, false)]);
        b.effect(Opcode::Jump, &[]);
        b.block = blocks[3];
        b.effect(Opcode::End, &[]);
        run(&mut program, &gpu(), limits(64)).unwrap();
        let (first, second) = (written(&program, blocks[0]), written(&program, blocks[1]));
        assert_eq!(first == second, !divergent, "{first:?} and {second:?}");
    }
}

/// Five values that are added up at the end, in four registers: one goes to the lanes, is added there or comes back.
#[test]
fn victims_go_to_the_lanes() {
    let (mut program, blocks) = blocks(1, &[], &[]);
    let mut b = Builder::new(&mut program, blocks[0]);
    let values: Vec<Src> = (0..6).map(|word| constant(&mut b, word)).collect();
    let mut sum = values[0];
    for &value in &values[1..] {
        let next = b.alu(Opcode::AddU, S, &[sum, value]);
        sum = b.src(next);
    }
    let out = general_copy(&mut b, sum);
    b.effect(Opcode::End, &[out]);
    let mut roomy = program.clone();
    run(&mut roomy, &gpu(), limits(64)).unwrap();
    assert_eq!(roomy.instruction_count(), program.instruction_count());
    run(&mut program, &gpu(), limits(8)).unwrap();
    validate(&program, &gpu(), Form::Ssa).unwrap();
    assert!(program.instruction_count() > roomy.instruction_count());
    let highest = written(&program, blocks[0]).into_iter().max();
    assert!(highest < Some(PhysReg(PhysReg::SHARED_FIRST.0 + 4)), "{highest:?}");
}

/// A lane mask is written to shared registers only, whoever reads it.
#[test]
fn lane_masks_are_never_demoted() {
    let (mut program, blocks) = blocks(1, &[], &[]);
    let mut b = Builder::new(&mut program, blocks[0]);
    let attrs = Attrs::Move { src: Type::U32, dst: Type::U32, round: Round::Default };
    let mask = b.define(Opcode::Movmsk, S, 2, &[], attrs);
    let mask = b.src(mask);
    let parts: Vec<Src> = (0..2)
        .map(|offset| {
            let part = b.define(Opcode::Split, S, 1, &[mask], Attrs::Split { offset });
            b.src(part)
        })
        .collect();
    let values: Vec<Src> = (0..6).map(|word| constant(&mut b, word)).collect();
    let mut sum = values[0];
    for &value in values[1..].iter().chain(&parts) {
        let next = b.alu(Opcode::AddU, S, &[sum, value]);
        sum = b.src(next);
    }
    let out = general_copy(&mut b, sum);
    b.effect(Opcode::End, &[out]);
    run(&mut program, &gpu(), limits(8)).unwrap();
    validate(&program, &gpu(), Form::Ssa).unwrap();
    let masks: Vec<_> =
        program.iter_instrs().map(|(_, i)| &program.instrs[i]).filter(|data| data.opcode == Opcode::Movmsk).collect();
    assert_eq!(masks.len(), 1);
    assert!(matches!(masks[0].dsts[0].place, Place::Reg(_)) && masks[0].dsts[0].class == S);
}

/// A phi of a block where lanes come together is one of general registers.
#[test]
fn phis_of_parted_lanes_are_general() {
    let (mut program, blocks) = blocks(4, &[(0, 0, 1), (0, 1, 2), (1, 0, 3), (2, 0, 3)], &[0]);
    let mut b = Builder::new(&mut program, blocks[0]);
    branch(&mut b);
    let mut sources = Vec::new();
    for &arm in &blocks[1..3] {
        b.block = arm;
        sources.push(constant(&mut b, 1));
        b.effect(Opcode::Jump, &[]);
    }
    b.block = blocks[3];
    let phi = b.define(Opcode::Phi, S, 1, &sources, Attrs::None);
    let phi_src = b.src(phi);
    let out = general_copy(&mut b, phi_src);
    b.effect(Opcode::End, &[out]);
    run(&mut program, &gpu(), limits(64)).unwrap();
    validate(&program, &gpu(), Form::Ssa).unwrap();
    assert_eq!(program.values[phi].class, R);
}
