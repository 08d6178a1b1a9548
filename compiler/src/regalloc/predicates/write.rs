//! Writes the result: definitions with an unused register are removed, last reads are marked, and blocks get their
//! instructions.

use super::survey::Survey;
use super::walk::{Placed, PlacedKind, Placement};
use super::{SlotMask, is_rematerializable, slot_of};
use crate::ir3::dataflow::{Analysis, Direction, Edge, solve};
use crate::ir3::dominance::{Cfg, EdgeKind};
use crate::ir3::{Block, Instr, InstrData, OperandFlags, Program, RegFile, Src};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;

/// Rewrites the blocks.
pub fn run(program: &mut Program, survey: &Survey, mut placement: Placement) {
    let cfg = Cfg::new(program, EdgeKind::Logical);
    let live_out = solve(&cfg, &survey.order, &mut LiveRegisters::new(program, survey, &placement)).end;
    let mut list = Vec::new();
    for &block in &survey.order {
        let (start, end) = placement.ranges[block];
        let placed = &mut placement.list[start as usize..end as usize];
        let mut live = live_out[block];
        let mut changes = false;
        for op in placed.iter_mut().rev() {
            if op.kind != PlacedKind::Gone && !mark(&mut program.instrs[op.instr], &mut live) {
                op.kind = if op.kind == PlacedKind::Stays { PlacedKind::Gone } else { PlacedKind::Nowhere };
            }
            changes |= op.kind != PlacedKind::Stays;
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

fn writes(data: &InstrData) -> SlotMask {
    let predicates = data.dsts.iter().filter(|dst| dst.class.file == RegFile::Predicate);
    predicates.filter_map(|dst| slot_of(&dst.place)).fold(0, |slots, slot| slots | 1 << slot)
}

/// Liveness of registers: the lattice is that of their sets.
struct LiveRegisters {
    /// The registers that each block reads before it writes them, and those that it does not write.
    effects: SecondaryMap<Block, (SlotMask, SlotMask)>,
}

impl LiveRegisters {
    fn new(program: &Program, survey: &Survey, placement: &Placement) -> Self {
        let mut effects: SecondaryMap<Block, (SlotMask, SlotMask)> = map_of(program.blocks.len());
        for &block in &survey.order {
            let (start, end) = placement.ranges[block];
            let (mut read, mut left) = (0, SlotMask::MAX);
            for op in placement.list[start as usize..end as usize].iter().filter(|op| op.kind != PlacedKind::Gone) {
                let data = &program.instrs[op.instr];
                read |= reads(data).fold(0, |slots, slot| slots | 1 << slot) & left;
                left &= !writes(data);
            }
            effects[block] = (read, left);
        }
        Self { effects }
    }
}

impl Analysis<Block> for LiveRegisters {
    type Fact = SlotMask;

    const DIRECTION: Direction = Direction::Backward;

    fn join(&mut self, end: &mut SlotMask, start: &SlotMask, _: Edge<Block>) {
        *end |= start;
    }

    fn transfer(&mut self, block: Block, end: &SlotMask) -> SlotMask {
        let (read, left) = self.effects[block];
        read | end & left
    }
}

/// Visits an instruction backwards and marks last reads. Returns true if it is needed.
fn mark(data: &mut InstrData, live: &mut SlotMask) -> bool {
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
    for op in placed.iter().filter(|op| op.kind != PlacedKind::Nowhere) {
        let at = op.at as usize;
        new.extend_from_slice(&old[next..at]);
        next = at;
        match op.kind {
            PlacedKind::Stays | PlacedKind::Gone => next = at + 1,
            PlacedKind::Added | PlacedKind::Nowhere => {}
        }
        if op.kind != PlacedKind::Gone {
            new.push(op.instr);
        }
    }
    new.extend_from_slice(&old[next..]);
}
