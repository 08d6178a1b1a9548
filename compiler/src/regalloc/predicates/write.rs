//! Writes the result: definitions with an unused register are removed, last reads are marked, and blocks get their
//! instructions.

use super::survey::Survey;
use super::walk::{Kind, Placed, Placement};
use super::{is_rematerializable, slot_of};
use crate::ir3::{Block, Instr, InstrData, OperandFlags, Program, RegFile, Src};
use cranelift_entity::SecondaryMap;

/// A set of registers.
type Slots = u8;

/// Writes it.
pub fn run(program: &mut Program, survey: &Survey, mut placement: Placement) {
    let live_in = live_registers(program, survey, &placement);
    let mut list = Vec::new();
    for &block in &survey.order {
        let (start, end) = placement.ranges[block];
        let placed = &mut placement.list[start as usize..end as usize];
        let mut live = live_out(program, &live_in, block);
        let mut changes = false;
        for op in placed.iter_mut().rev() {
            if op.kind != Kind::Gone && !mark(&mut program.instrs[op.instr], &mut live) {
                op.kind = if op.kind == Kind::Stays { Kind::Gone } else { Kind::Nowhere };
            }
            changes |= op.kind != Kind::Stays;
        }
        if changes {
            rebuild(&program.blocks[block].instrs, placed, &mut list);
            program.blocks[block].instrs.clone_from(&list);
        }
    }
}

fn reads(data: &InstrData) -> impl Iterator<Item = usize> + '_ {
    data.srcs.iter().filter_map(slot_of_src)
}

fn slot_of_src(src: &Src) -> Option<usize> {
    src.place().filter(|_| src.class.file == RegFile::Predicate).and_then(slot_of)
}

fn writes(data: &InstrData) -> Slots {
    let predicates = data.dsts.iter().filter(|dst| dst.class.file == RegFile::Predicate);
    predicates.filter_map(|dst| slot_of(&dst.place)).fold(0, |slots, slot| slots | 1 << slot)
}

/// The registers that are live into each block.
fn live_registers(program: &Program, survey: &Survey, placement: &Placement) -> SecondaryMap<Block, Slots> {
    // What a block reads before it writes it, and what it leaves as it was.
    let mut effects: SecondaryMap<Block, (Slots, Slots)> = SecondaryMap::with_capacity(program.blocks.len());
    for &block in &survey.order {
        let (start, end) = placement.ranges[block];
        let (mut read, mut left) = (0, Slots::MAX);
        for op in placement.list[start as usize..end as usize].iter().filter(|op| op.kind != Kind::Gone) {
            let data = &program.instrs[op.instr];
            read |= reads(data).fold(0, |slots, slot| slots | 1 << slot) & left;
            left &= !writes(data);
        }
        effects[block] = (read, left);
    }
    let mut live_in: SecondaryMap<Block, Slots> = SecondaryMap::with_capacity(program.blocks.len());
    let mut again = true;
    while again {
        again = false;
        for &block in survey.order.iter().rev() {
            let (read, left) = effects[block];
            let live = read | live_out(program, &live_in, block) & left;
            again |= std::mem::replace(&mut live_in[block], live) != live;
        }
    }
    live_in
}

fn live_out(program: &Program, live_in: &SecondaryMap<Block, Slots>, block: Block) -> Slots {
    program.blocks[block].successors().fold(0, |slots, next| slots | live_in[next])
}

/// Visits an instruction backwards and marks last reads. Returns true if it is needed.
fn mark(data: &mut InstrData, live: &mut Slots) -> bool {
    let written = writes(data);
    if written != 0 && written & *live == 0 && is_rematerializable(data) {
        return false;
    }
    *live &= !written;
    let after = *live;
    for src in &mut data.srcs {
        if let Some(slot) = slot_of_src(src) {
            src.flags.set(OperandFlags::KILL, after & 1 << slot == 0);
            src.flags.set(OperandFlags::FIRST_KILL, *live & 1 << slot == 0);
            *live |= 1 << slot;
        }
    }
    true
}

/// Merges the operations of a block, which have positions in its old list, into the new one.
fn rebuild(old: &[Instr], placed: &[Placed], new: &mut Vec<Instr>) {
    new.clear();
    let mut next = 0;
    for op in placed.iter().filter(|op| op.kind != Kind::Nowhere) {
        let at = op.at as usize;
        new.extend_from_slice(&old[next..at]);
        next = at;
        match op.kind {
            Kind::Stays | Kind::Gone => next = at + 1,
            Kind::Added | Kind::Nowhere => {}
        }
        if op.kind != Kind::Gone {
            new.push(op.instr);
        }
    }
    new.extend_from_slice(&old[next..]);
}
