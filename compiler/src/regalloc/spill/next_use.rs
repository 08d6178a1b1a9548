//! Next-use distances of values at the starts and ends of blocks.
//!
//! A distance is counted in instructions, along the shortest path. A loop exit counts as many thousands, so a value
//! whose next use is after a loop is further away than all values that the loop uses. A value without a distance is not
//! live.
//!
//! Distances are a heuristic for the choice of spilled values; whether a value has one is liveness. The fixed point is
//! computed on the sets of live values.

use super::scalars::{general_result, general_value};
use crate::ir3::dominance::{Dominators, EdgeKind};
use crate::ir3::{Block, Opcode, Program, Value};
use cranelift_entity::{EntityRef, SecondaryMap};

/// The distance of a loop exit.
pub const LOOP_EXIT: u32 = 1 << 16;

/// No further use.
pub const NEVER: u32 = u32::MAX;

/// The loops of a program.
pub struct Loops {
    /// The parent of each loop.
    parents: Vec<Option<usize>>,
    /// The innermost loop of a block, plus one.
    innermost: SecondaryMap<Block, u32>,
    /// The loop whose header a block is, plus one.
    headed: SecondaryMap<Block, u32>,
}

impl Loops {
    /// Finds the natural loops, given the order in which blocks are visited.
    pub fn new(program: &Program, order: &[Block]) -> Self {
        let mut this = Self { parents: Vec::new(), innermost: SecondaryMap::new(), headed: SecondaryMap::new() };
        let dominators = Dominators::new(program, EdgeKind::Logical);
        let mut headers: Vec<Block> = Vec::new();
        // Inner loops first: their headers are later in the order.
        for &header in order.iter().rev() {
            let mut stack: Vec<Block> = Vec::new();
            for &pred in &program.blocks[header].predecessors {
                if dominators.dominates(header, pred) {
                    stack.push(pred);
                }
            }
            if stack.is_empty() {
                continue;
            }
            let number = this.parents.len();
            this.parents.push(None);
            headers.push(header);
            this.headed[header] = number as u32 + 1;
            while let Some(block) = stack.pop() {
                let known = this.innermost[block];
                if known == 0 {
                    this.innermost[block] = number as u32 + 1;
                    if block != header {
                        stack.extend_from_slice(&program.blocks[block].predecessors);
                    }
                    continue;
                }
                let mut outer = known as usize - 1;
                while let Some(parent) = this.parents[outer] {
                    outer = parent;
                }
                if outer != number {
                    this.parents[outer] = Some(number);
                    stack.extend_from_slice(&program.blocks[headers[outer]].predecessors);
                }
            }
            if this.innermost[header] == 0 {
                this.innermost[header] = number as u32 + 1;
            }
        }
        this
    }

    fn contains(&self, number: usize, block: Block) -> bool {
        let mut at = (self.innermost[block] as usize).checked_sub(1);
        while let Some(inner) = at {
            if inner == number {
                return true;
            }
            at = self.parents[inner];
        }
        false
    }

    /// Number of loops that the edge leaves.
    fn left_by(&self, from: Block, to: Block) -> u32 {
        let mut at = (self.innermost[from] as usize).checked_sub(1);
        let mut count = 0;
        while let Some(number) = at {
            if self.contains(number, to) {
                break;
            }
            count += 1;
            at = self.parents[number];
        }
        count
    }

    /// The loop whose header the block is.
    pub fn headed_by(&self, block: Block) -> Option<usize> {
        (self.headed[block] as usize).checked_sub(1)
    }

    /// The loops that contain a block, inner ones first.
    pub fn around(&self, block: Block) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors((self.innermost[block] as usize).checked_sub(1), |&inner| self.parents[inner])
    }

    /// Number of loops.
    pub fn count(&self) -> usize {
        self.parents.len()
    }
}

/// Values and distances, sorted by value.
pub type Distances = Vec<(Value, u32)>;

/// The distances at the starts and ends of all blocks.
pub struct NextUse {
    /// At the start, without the phis of the block.
    pub start: SecondaryMap<Block, Distances>,
    /// At the end.
    pub end: SecondaryMap<Block, Distances>,
}

impl NextUse {
    /// Computes them.
    pub fn new(program: &Program, order: &[Block], loops: &Loops) -> Self {
        let mut this = Self { start: SecondaryMap::new(), end: SecondaryMap::new() };
        let mut table = Table { distances: vec![NEVER; program.values.len()], touched: Vec::new() };
        loop {
            let mut changed = false;
            for &block in order.iter().rev() {
                this.gather(program, block, loops, &mut table);
                this.end[block] = table.take();
                for &(value, distance) in &this.end[block] {
                    table.lower(value, distance);
                }
                table.walk_back(program, block);
                let start = table.take();
                let same = start.iter().map(|&(value, _)| value).eq(this.start[block].iter().map(|&(value, _)| value));
                changed |= !same;
                this.start[block] = start;
            }
            if !changed {
                return this;
            }
        }
    }

    /// The minimum of the distances at the starts of all successors.
    fn gather(&self, program: &Program, block: Block, loops: &Loops, table: &mut Table) {
        for next in program.blocks[block].successors() {
            let added = loops.left_by(block, next).saturating_mul(LOOP_EXIT);
            for &(value, distance) in &self.start[next] {
                table.lower(value, distance.saturating_add(added).min(NEVER - 1));
            }
            let positions = program.blocks[next].predecessors.iter().enumerate().filter(|&(_, &pred)| pred == block);
            for (k, _) in positions {
                for &phi in &program.blocks[next].instrs {
                    let data = &program.instrs[phi];
                    if data.opcode != Opcode::Phi {
                        break;
                    }
                    if let Some(value) = data.srcs.get(k).and_then(general_value) {
                        table.lower(value, 0);
                    }
                }
            }
        }
    }
}

struct Table {
    distances: Vec<u32>,
    touched: Vec<Value>,
}

impl Table {
    fn lower(&mut self, value: Value, distance: u32) {
        let entry = &mut self.distances[value.index()];
        if *entry == NEVER {
            self.touched.push(value);
        }
        *entry = distance.min(*entry);
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
            for value in data.dsts.iter().filter_map(general_result) {
                self.distances[value.index()] = NEVER;
            }
            if data.opcode == Opcode::Phi {
                continue;
            }
            for value in data.srcs.iter().filter_map(general_value) {
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
