//! Planted bugs of the allocation of predicates: each must be refuted at its stage, and at no other.

use super::common::planted as programs;

use ir3_compiler::ir3::dominance::{Dominators, EdgeKind};
use ir3_compiler::ir3::{
    Block, Instr, InstrData, Opcode, PhysReg, Place, Program, RegFile, Src, SrcOperand, WriteMask,
};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_programs::generator::Profile;
use programs::Programs;

/// Some places for bugs are rare.
fn planted(stage: Stage, count: u64, bug: impl Fn(&mut Program, u64) -> bool) {
    let options = Options::default();
    Programs { seed: 0xb001, count, profiles: &[Profile::Predicates], runs: 1, one_in: 4, options }.planted(stage, bug);
}

/// The `n`-th element of a list, modulo its length.
fn nth<T: Copy>(list: &[T], n: u64) -> Option<T> {
    list.get((n % list.len().max(1) as u64) as usize).copied()
}

/// The predicate register that an instruction writes.
fn written(data: &InstrData) -> Option<PhysReg> {
    data.dsts.first().filter(|dst| dst.class.file == RegFile::Predicate)?.place.reg()
}

fn is_same(a: &InstrData, b: &InstrData) -> bool {
    let operands = |data: &InstrData| data.srcs.iter().map(|src| (src.operand, src.mods)).collect::<Vec<_>>();
    a.opcode == b.opcode && a.attrs == b.attrs && operands(a) == operands(b)
}

/// The instructions that rematerialise a predicate, with their blocks and positions.
fn clones(program: &Program) -> Vec<(Block, usize, Instr)> {
    let mut before: Vec<Instr> = Vec::new();
    let mut clones = Vec::new();
    for &block in &program.layout {
        for (at, &instr) in program.blocks[block].instrs.iter().enumerate() {
            let data = &program.instrs[instr];
            if written(data).is_some() {
                if before.iter().any(|&other| is_same(&program.instrs[other], data)) {
                    clones.push((block, at, instr));
                }
                before.push(instr);
            }
        }
    }
    clones
}

fn is_back_edge(program: &Program, block: Block) -> bool {
    let place = |block: Block| program.layout.iter().position(|&other| other == block);
    program.blocks[block].successors().any(|next| place(next) <= place(block))
}

/// The instructions between an instruction and the end of its block.
fn rest_of_block(program: &Program, block: Block, at: usize) -> impl Iterator<Item = &InstrData> {
    program.blocks[block].instrs[at + 1..].iter().map(|&instr| &program.instrs[instr])
}

/// Those that restore a predicate on a back edge: only the jump of the block follows them.
fn restored(program: &Program) -> Vec<(Block, usize, Instr)> {
    let mut list = clones(program);
    list.retain(|&(block, at, _)| {
        let only_jumps =
            rest_of_block(program, block, at).all(|data| data.opcode == Opcode::Jump || written(data).is_some());
        is_back_edge(program, block) && only_jumps
    });
    list
}

fn remove(program: &mut Program, block: Block, at: usize) {
    program.blocks[block].instrs.remove(at);
}

/// In the next iteration the register has the value that the last one left: another value, on every path.
#[test]
fn a_back_edge_does_not_restore() {
    let options = Options::default();
    // It takes a second iteration that differs.
    let programs = Programs { seed: 0xb001, count: 900, profiles: &[Profile::Predicates], runs: 4, one_in: 8, options };
    programs.planted(Stage::Predicates, |program, _| {
        let dominators = Dominators::new(program, EdgeKind::Logical);
        let mut list = restored(program);
        list.retain(|&(latch, _, restored)| {
            let reg = written(&program.instrs[restored]);
            let header = program.blocks[latch].successors().next();
            program.iter_instrs().any(|(block, instr)| {
                let inside = header.is_some_and(|header| dominators.dominates(header, block));
                let always = inside && dominators.dominates(block, latch);
                always && instr != restored && written(&program.instrs[instr]) == reg
            })
        });
        for &(block, _, instr) in &list {
            program.blocks[block].instrs.retain(|&other| other != instr);
        }
        !list.is_empty()
    });
}

/// A read uses the register, though it holds another value, or predecessors do not agree.
#[test]
fn a_clone_is_not_made() {
    planted(Stage::Predicates, 240, |program, n| {
        let mut list = clones(program);
        list.retain(|&(block, ..)| !is_back_edge(program, block));
        let Some((block, at, _)) = nth(&list, n) else { return false };
        remove(program, block, at);
        true
    });
}

/// The register that it reads has been overwritten: it reads the result of the last instruction before it.
fn reads_the_last_result(program: &mut Program, list: &[(Block, usize, Instr)], n: u64) -> bool {
    let Some((block, at, instr)) = nth(list, n) else { return false };
    let data = &program.instrs[instr];
    let fits = |src: &Src| src.class.file == RegFile::General && src.mask == WriteMask::SCALAR;
    let slot = data.srcs.iter().position(|src| fits(src) && src.place().is_some());
    let Some(slot) = slot else { return false };
    let (class, old) = (data.srcs[slot].class, data.srcs[slot].place().copied());
    let before = program.blocks[block].instrs[..at].iter().rev().find_map(|&other| {
        let dst = program.instrs[other].dsts.first()?;
        let place = match dst.place {
            Place::Value(_) | Place::Reg(_) => dst.place,
            _ => return None,
        };
        (dst.class == class && dst.mask == WriteMask::SCALAR && Some(place) != old).then_some(place)
    });
    let Some(place) = before else { return false };
    program.instrs[instr].srcs[slot].operand = SrcOperand::Place(place);
    true
}

#[test]
fn a_clone_reads_another_value() {
    planted(Stage::Predicates, 240, |program, n| {
        let list = clones(program);
        reads_the_last_result(program, &list, n)
    });
}

/// The sources of a clone are live up to it: here the register of one has been given to another value.
#[test]
fn the_source_of_a_clone_has_lost_its_register() {
    planted(Stage::RegisterAllocation, 240, |program, n| {
        let list = clones(program);
        reads_the_last_result(program, &list, n)
    });
}

/// A value that is computed before the branch of a block, for the blocks after it, is written to the register that the
/// branch reads.
#[test]
fn what_is_computed_early_takes_the_register_of_the_branch() {
    planted(Stage::Predicates, 240, |program, n| {
        let mut early = Vec::new();
        for &block in &program.layout {
            let list = &program.blocks[block].instrs;
            let Some((&last, rest)) = list.split_last() else { continue };
            let Some(&before) = rest.last() else { continue };
            let branch = &program.instrs[last];
            let read = branch.srcs.first().filter(|src| src.class.file == RegFile::Predicate);
            let Some(read) = read.and_then(|src| src.place()?.reg()) else { continue };
            let is_free = !branch
                .srcs
                .iter()
                .any(|src| src.place().and_then(|place| place.reg()) == written(&program.instrs[before]));
            if written(&program.instrs[before]).is_some() && is_free {
                early.push((before, read));
            }
        }
        let Some((instr, reg)) = nth(&early, n) else { return false };
        program.instrs[instr].dsts[0].place = Place::Reg(reg);
        true
    });
}

/// A read reads the register that the value had before it was evicted.
#[test]
fn a_read_of_another_register() {
    planted(Stage::Predicates, 60, |program, n| {
        let mut reads = Vec::new();
        for (_, instr) in program.iter_instrs() {
            for (slot, src) in program.instrs[instr].srcs.iter().enumerate() {
                if src.class.file == RegFile::Predicate {
                    reads.push((instr, slot));
                }
            }
        }
        let Some((instr, slot)) = nth(&reads, n) else { return false };
        let src = &mut program.instrs[instr].srcs[slot];
        let Some(reg) = src.place().and_then(|place| place.reg()) else { return false };
        let first = PhysReg::P0_X.0;
        src.operand = SrcOperand::Place(Place::Reg(PhysReg(first + (reg.0 - first + 1) % 4)));
        true
    });
}

/// A comparison stays where it was, though its register has been given to another value that has later uses.
#[test]
fn a_definition_evicts_what_is_needed() {
    planted(Stage::Predicates, 120, |program, n| {
        let mut pairs = Vec::new();
        for &block in &program.layout {
            let list = &program.blocks[block].instrs;
            let writers: Vec<Instr> = list.iter().copied().filter(|&i| written(&program.instrs[i]).is_some()).collect();
            for pair in writers.windows(2) {
                if written(&program.instrs[pair[0]]) != written(&program.instrs[pair[1]]) {
                    pairs.push((pair[0], pair[1]));
                }
            }
        }
        let Some((a, b)) = nth(&pairs, n) else { return false };
        // Readers of the second one read the register that it has now.
        let place = program.instrs[b].dsts[0].place;
        program.instrs[a].dsts[0].place = place;
        program.instrs[b].dsts[0].place = place;
        true
    });
}
