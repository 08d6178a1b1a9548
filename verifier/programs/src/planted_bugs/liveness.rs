//! Liveness of physical registers, so that a planted bug clobbers a register that is read later.
//!
//! A backward may analysis on sets of units: `live_in = (live_out - writes) ∪ reads`, and the `live_out` of a block is
//! the union over its logical and physical successors. General registers only, in units of half a full register, as in
//! the merged register file. An access through `a0.x` reads every register that it may address and overwrites none.

use ir3_compiler::graph::Graph;
use ir3_compiler::ir3::dataflow::{Analysis, Direction, Edge, Solution, solve};
use ir3_compiler::ir3::{Block, Dst, PhysReg, Place, Program, RegClass, RegFile, Src, WriteMask};
use std::ops::Range;

/// The number of units of the register file.
const UNITS: u16 = 48 * 4 * 2;

/// A set of units.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct UnitSet([u64; (UNITS / 64) as usize]);

impl UnitSet {
    /// Returns true if the set contains a unit.
    pub fn contains(&self, unit: u16) -> bool {
        unit < UNITS && self.0[usize::from(unit / 64)] >> (unit % 64) & 1 != 0
    }

    /// Adds a unit.
    pub fn insert(&mut self, unit: u16) {
        if unit < UNITS {
            self.0[usize::from(unit / 64)] |= 1 << (unit % 64);
        }
    }

    /// Removes a unit.
    pub fn remove(&mut self, unit: u16) {
        if unit < UNITS {
            self.0[usize::from(unit / 64)] &= !(1 << (unit % 64));
        }
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, other)| *mine |= other);
    }
}

/// The units of `count` consecutive registers.
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
        Place::Array(access) => access.base.expand().map_or(0..0, |base| units_of(class, base, 1)),
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

/// The units that a destination always writes.
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
    type Fact = UnitSet;

    const DIRECTION: Direction = Direction::Backward;

    fn join(&mut self, end: &mut UnitSet, start: &UnitSet, _: Edge<Block>) {
        end.add(start);
    }

    fn transfer(&mut self, block: Block, end: &UnitSet) -> UnitSet {
        let mut live = end.clone();
        (0..self.0.blocks[block].instrs.len()).rev().for_each(|at| step(self.0, block, at, &mut live));
        live
    }
}

/// Live units at the boundaries of blocks.
pub(super) struct RegisterLiveness(Solution<Block, UnitSet>);

impl RegisterLiveness {
    /// Solves the dataflow equations.
    pub fn new(program: &Program) -> Self {
        Self(solve(&AllEdges(program), &program.layout, &mut LiveUnits(program)))
    }

    /// The units that are live at the start of a block.
    pub fn live_in(&self, block: Block) -> &UnitSet {
        &self.0.start[block]
    }

    /// The units that are live at the end of a block.
    pub fn live_out(&self, block: Block) -> &UnitSet {
        &self.0.end[block]
    }

    /// The units that are live after an instruction.
    pub fn live_after(&self, program: &Program, block: Block, at: usize) -> UnitSet {
        let mut live = self.live_out(block).clone();
        (at + 1..program.blocks[block].instrs.len()).rev().for_each(|at| step(program, block, at, &mut live));
        live
    }
}

/// The transfer function of one instruction.
fn step(program: &Program, block: Block, at: usize, live: &mut UnitSet) {
    let data = &program.instrs[program.blocks[block].instrs[at]];
    data.dsts.iter().flat_map(certain).for_each(|unit| live.remove(unit));
    data.srcs.iter().flat_map(units_of_src).for_each(|unit| live.insert(unit));
}
