//! Which physical registers are read later, so that a bug that takes one away is one that matters.
//!
//! General registers only, in units of half a full register, as the merged register file has them. An access through
//! `a0.x` reads all that it may touch.

use ir3_compiler::graph::Graph;
use ir3_compiler::ir3::dataflow::{Analysis, Direction, Edge, Solution, solve};
use ir3_compiler::ir3::{Block, Dst, PhysReg, Place, Program, RegClass, RegFile, Src, WriteMask};
use std::ops::Range;

/// Units of the register file.
const UNITS: u16 = 48 * 4 * 2;

/// A set of units.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Units([u64; (UNITS / 64) as usize]);

impl Units {
    /// Whether a unit is in it.
    pub fn contains(&self, unit: u16) -> bool {
        unit < UNITS && self.0[usize::from(unit / 64)] >> (unit % 64) & 1 != 0
    }

    /// Adds a unit.
    pub fn insert(&mut self, unit: u16) {
        if unit < UNITS {
            self.0[usize::from(unit / 64)] |= 1 << (unit % 64);
        }
    }

    /// Takes a unit out.
    pub fn remove(&mut self, unit: u16) {
        if unit < UNITS {
            self.0[usize::from(unit / 64)] &= !(1 << (unit % 64));
        }
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, other)| *mine |= other);
    }
}

/// The units of so many registers from `reg` on.
pub(super) fn units_of(class: RegClass, reg: PhysReg, count: u16) -> Range<u16> {
    let size = class.component_units();
    reg.0 * size..(reg.0 + count) * size
}

fn units(place: &Place, class: RegClass, mask: WriteMask) -> Range<u16> {
    if class.file != RegFile::General {
        return 0..0;
    }
    match *place {
        Place::Reg(reg) | Place::Assigned(_, reg) => units_of(class, reg, mask.span() as u16),
        Place::Relative { offset, size } => units_of(class, PhysReg(offset.max(0) as u16), size),
        Place::Array(access) => access.base.map_or(0..0, |base| units_of(class, base, 1)),
        Place::Value(_) => 0..0,
    }
}

/// The units that a source reads.
pub(super) fn units_of_src(src: &Src) -> Range<u16> {
    src.place().map_or(0..0, |place| units(place, src.class, src.mask))
}

/// The units that a destination may write.
pub(super) fn units_of_dst(dst: &Dst) -> Range<u16> {
    units(&dst.place, dst.class, dst.mask)
}

/// The units that a destination writes for certain.
fn certain(dst: &Dst) -> Range<u16> {
    if matches!(dst.place, Place::Relative { .. }) { 0..0 } else { units_of_dst(dst) }
}

/// The blocks of a program, connected by the edges of both kinds.
struct AllEdges<'a>(&'a Program);

impl Graph for AllEdges<'_> {
    type Node = Block;

    fn successors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        let data = &self.0.blocks[block];
        data.successors().chain(data.physical_successors.iter().copied())
    }

    fn predecessors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        let data = &self.0.blocks[block];
        data.predecessors.iter().chain(&data.physical_predecessors).copied()
    }
}

struct LiveUnits<'a>(&'a Program);

impl Analysis<Block> for LiveUnits<'_> {
    type Fact = Units;

    const DIRECTION: Direction = Direction::Backward;

    fn join(&mut self, end: &mut Units, start: &Units, _: Edge<Block>) {
        end.add(start);
    }

    fn transfer(&mut self, block: Block, end: &Units) -> Units {
        let mut live = end.clone();
        (0..self.0.blocks[block].instrs.len()).rev().for_each(|at| step(self.0, block, at, &mut live));
        live
    }
}

/// The units that are live at the starts and the ends of blocks.
pub(super) struct Liveness(Solution<Block, Units>);

impl Liveness {
    /// Computes them.
    pub fn new(program: &Program) -> Self {
        Self(solve(&AllEdges(program), &program.layout, &mut LiveUnits(program)))
    }

    /// The units that are live at the start of a block.
    pub fn live_in(&self, block: Block) -> &Units {
        &self.0.start[block]
    }

    /// The units that are live at the end of a block.
    pub fn live_out(&self, block: Block) -> &Units {
        &self.0.end[block]
    }

    /// What is read behind an instruction of a block.
    pub fn live_after(&self, program: &Program, block: Block, at: usize) -> Units {
        let mut live = self.live_out(block).clone();
        (at + 1..program.blocks[block].instrs.len()).rev().for_each(|at| step(program, block, at, &mut live));
        live
    }
}

/// From behind an instruction to in front of it.
fn step(program: &Program, block: Block, at: usize, live: &mut Units) {
    let data = &program.instrs[program.blocks[block].instrs[at]];
    data.dsts.iter().flat_map(certain).for_each(|unit| live.remove(unit));
    data.srcs.iter().flat_map(units_of_src).for_each(|unit| live.insert(unit));
}
