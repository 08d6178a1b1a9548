//! Next-use distances of values at the starts and ends of blocks.
//!
//! A distance is counted in instructions, along the shortest path. A loop exit counts as many thousands, so a value
//! whose next use is after a loop is further away than all values that the loop uses. A value without a distance is not
//! live.
//!
//! Distances are a heuristic for the choice of spilled values; whether a value has one is liveness. So distances are
//! the estimates, and sets of live values the facts, of a [dataflow analysis](crate::ir3::dataflow). The lattice: sets
//! of values, each with its least distance; the join is the union with the lesser distances. The transfer function adds
//! the block's length, removes the values that it defines, and sets the positions of the first reads.

use crate::ir3::dataflow::{Analysis, Change, Direction, Edge, Solution, solve};
use crate::ir3::dominance::{Cfg, EdgeKind};
use crate::ir3::loops::Loops;
use crate::ir3::{Block, Dst, Opcode, Program, Src, Value};
use cranelift_entity::EntityRef;

/// The distance of a loop exit.
pub const LOOP_EXIT: u32 = 1 << 16;

/// No further use.
pub const NEVER: u32 = u32::MAX;

/// Values and distances, sorted by value.
pub type Distances = Vec<(Value, u32)>;

/// The distances at the starts (without the phis of the block) and the ends of all blocks.
pub type NextUse = Solution<Block, Distances>;

/// The values whose distances are computed.
#[derive(Clone, Copy)]
pub struct Tracked {
    /// The value that a source reads, if it is one of them.
    pub value: fn(&Src) -> Option<Value>,
    /// The value that a destination defines, if it is one of them.
    pub result: fn(&Dst) -> Option<Value>,
}

/// Computes the distances, for blocks in their order.
pub fn run(program: &Program, order: &[Block], loops: &Loops, tracked: Tracked) -> NextUse {
    let table = DistanceTable { distances: vec![NEVER; program.values.len()], touched: Vec::new(), tracked };
    let mut analysis = DistanceAnalysis { program, loops, table, merged: Vec::new() };
    solve(&Cfg::new(program, EdgeKind::Logical), order, &mut analysis)
}

struct DistanceAnalysis<'a> {
    program: &'a Program,
    loops: &'a Loops,
    table: DistanceTable,
    /// Scratch list for joins.
    merged: Distances,
}

impl DistanceAnalysis<'_> {
    /// The lesser distance of each value of both lists.
    fn merge(&mut self, into: &mut Distances, from: impl Iterator<Item = (Value, u32)>) {
        let mut old = into.iter().copied().peekable();
        self.merged.clear();
        for (value, distance) in from {
            while let Some(before) = old.next_if(|before| before.0 < value) {
                self.merged.push(before);
            }
            let same = old.next_if(|same| same.0 == value);
            self.merged.push((value, same.map_or(distance, |same| same.1.min(distance))));
        }
        self.merged.extend(old);
        into.clone_from(&self.merged);
    }
}

impl Analysis<Block> for DistanceAnalysis<'_> {
    type Fact = Distances;

    const DIRECTION: Direction = Direction::Backward;

    fn join(&mut self, end: &mut Distances, start: &Distances, edge: Edge<Block>) {
        let added = self.loops.left_by(edge.from, edge.to).saturating_mul(LOOP_EXIT);
        let further = |&(value, distance): &(Value, u32)| (value, distance.saturating_add(added).min(NEVER - 1));
        self.merge(end, start.iter().map(further));
        let program = self.program;
        let next = &program.blocks[edge.to];
        let phis = next.instrs.iter().map(|&phi| &program.instrs[phi]).take_while(|phi| phi.opcode == Opcode::Phi);
        let positions = || (0..).zip(&next.predecessors).filter(|(_, pred)| **pred == edge.from).map(|(k, _)| k);
        let read =
            phis.flat_map(|phi| positions().filter_map(|k: usize| phi.srcs.get(k).and_then(self.table.tracked.value)));
        let mut read: Vec<(Value, u32)> = read.map(|value| (value, 0)).collect();
        if !read.is_empty() {
            read.sort_unstable();
            read.dedup();
            self.merge(end, read.into_iter());
        }
    }

    fn transfer(&mut self, block: Block, end: &Distances) -> Distances {
        for &(value, distance) in end {
            self.table.set(value, distance);
        }
        self.table.walk_back(self.program, block);
        self.table.take()
    }

    fn change(&self, before: &Distances, after: &Distances) -> Change {
        if before == after {
            Change::None
        } else if before.len() == after.len() && before.iter().zip(after).all(|(before, after)| before.0 == after.0) {
            Change::Estimate
        } else {
            Change::Fact
        }
    }
}

struct DistanceTable {
    distances: Vec<u32>,
    touched: Vec<Value>,
    tracked: Tracked,
}

impl DistanceTable {
    fn set(&mut self, value: Value, distance: u32) {
        self.touched.push(value);
        self.distances[value.index()] = distance;
    }

    fn walk_back(&mut self, program: &Program, block: Block) {
        let instrs = &program.blocks[block].instrs;
        let length = instrs.len() as u32;
        for &value in &self.touched {
            let entry = &mut self.distances[value.index()];
            *entry = entry.saturating_add(length).min(NEVER - 1);
        }
        for (position, &instr) in instrs.iter().enumerate().rev() {
            let data = &program.instrs[instr];
            for value in data.dsts.iter().filter_map(self.tracked.result) {
                self.distances[value.index()] = NEVER;
            }
            if data.opcode == Opcode::Phi {
                continue;
            }
            for value in data.srcs.iter().filter_map(self.tracked.value) {
                self.touched.push(value);
                self.distances[value.index()] = position as u32;
            }
        }
    }

    /// Returns the entries, sorted, and clears the table.
    fn take(&mut self) -> Distances {
        let mut list = Vec::with_capacity(self.touched.len());
        for value in self.touched.drain(..) {
            let distance = std::mem::replace(&mut self.distances[value.index()], NEVER);
            if distance != NEVER {
                list.push((value, distance));
            }
        }
        list.sort_unstable();
        list
    }
}
