//! What one lane does in a run, instruction by instruction, with the values that it reads and writes.
//!
//! A traced run is a run like any other, with someone looking on: decoding keeps a table of where each instruction's
//! operations and operands are, and the loop that runs the program calls a watcher between operations. An ordinary
//! run has the watcher `()`, for which nothing of that is compiled, and no table.

use super::Outcome;
use crate::semantics::environment::memory::Stored;

/// Steps after which a trace is cut off.
const LIMIT: usize = 20_000;

/// A place that a value is in: a component of a value or a register, or half of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// A number that all places that may overlap have in common.
    pub slot: u32,
    /// The 16-bit halves of it, one bit each.
    pub halves: u8,
    /// It is a register, and has the same number in every program.
    pub register: bool,
}

impl Location {
    /// All of a slot.
    pub const fn whole(slot: u32) -> Self {
        Self { slot, halves: 3, register: false }
    }
}

/// A component of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Which source or destination.
    pub operand: u8,
    /// Which component of it; for 64 bits each word is one.
    pub component: u8,
    /// Where it is.
    pub location: Location,
    /// Its value; `None` is poison.
    pub value: Option<u32>,
    /// The output (location and component) that it goes to.
    pub output: Option<(u16, u8)>,
}

/// What is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// An instruction, by its number in the program's table.
    Instr(u32),
    /// The condition of an if of nir, by the number of its value.
    If(u32),
}

/// One instruction in one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The instruction.
    pub at: At,
    /// What it reads, as it is before.
    pub reads: Vec<Cell>,
    /// What it writes, as it is afterwards.
    pub writes: Vec<Cell>,
    /// Each value written is the one that is read at the same place of the list.
    pub pairwise: bool,
    /// The number of the step at whose time it reads: its own, but for phis, which all read before any is written.
    pub time: u32,
    /// The words of memory that it writes.
    pub stored: Vec<Stored>,
}

/// What a lane did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// It did more than is written down.
    pub cut: bool,
    /// Words of memory that other lanes, and this one, wrote, in order.
    pub stored: Vec<Stored>,
    /// The lanes that executed last.
    pub last: u64,
}

/// A traced run.
#[derive(Clone, Debug)]
pub struct Traced {
    /// What it left.
    pub outcome: Outcome,
    /// What the lane did.
    pub trace: Trace,
}

/// A component of an operand, before there is a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand<L> {
    pub operand: u8,
    pub component: u8,
    /// Where its value is found.
    pub place: L,
    pub location: Location,
    pub output: Option<(u16, u8)>,
}

/// An instruction in the table of a decoded program.
#[derive(Clone, Debug)]
pub(super) struct Watched<L> {
    pub at: At,
    /// The points of the program in front of its first operation and behind its last.
    pub ops: (u32, u32),
    pub reads: Vec<Operand<L>>,
    pub writes: Vec<Operand<L>>,
    pub pairwise: bool,
    /// For a phi: what it reads, by the block that the lane comes from.
    pub phi: Vec<(u32, Vec<Operand<L>>)>,
}

/// Looks on for one lane. `L` is where an interpreter keeps values.
pub(super) struct Recorder<'a, L> {
    pub lane: usize,
    watched: &'a [Watched<L>],
    pub trace: Trace,
    /// The instruction that is executing.
    open: Option<(&'a Watched<L>, Step)>,
    /// The block that the lane is in, and the one before.
    blocks: (u32, u32),
    /// The first of the phis that are executing.
    phis: Option<u32>,
}

impl<'a, L: Copy> Recorder<'a, L> {
    /// Nothing has happened yet. The table is in the order of points.
    pub fn new(lane: u8, watched: &'a [Watched<L>]) -> Self {
        let nowhere = (u32::MAX, u32::MAX);
        Self { lane: lane.into(), watched, trace: Trace::default(), open: None, blocks: nowhere, phis: None }
    }

    /// The lane comes to a block.
    pub fn enter(&mut self, block: u32, mask: u64) {
        if mask >> self.lane & 1 != 0 {
            self.blocks = (block, self.blocks.0);
            self.phis = None;
        }
    }

    /// The run is at a point between two operations, with the lanes of `mask` executing. `value` looks at a value,
    /// `stored` takes what was written to memory.
    pub fn between(
        &mut self,
        point: u32,
        mask: u64,
        value: impl Fn(L) -> Option<u32>,
        stored: impl FnOnce() -> Vec<Stored>,
    ) {
        self.trace.last = mask;
        let stored = stored();
        if let Some((watched, step)) = &mut self.open {
            step.stored.extend(stored.iter().filter(|stored| usize::from(stored.lane) == self.lane));
            if !(watched.ops.0..watched.ops.1).contains(&point) {
                step.writes = watched.writes.iter().map(|operand| cell(operand, &value)).collect();
                self.close();
            }
        }
        self.trace.stored.extend(stored);
        if self.open.is_some() || mask >> self.lane & 1 == 0 {
            return;
        }
        let first = self.watched.partition_point(|watched| watched.ops.0 < point);
        for watched in self.watched[first..].iter().take_while(|watched| watched.ops.0 == point) {
            let time = self.trace.steps.len() as u32;
            let mut step = Step {
                at: watched.at,
                reads: watched.reads.iter().map(|operand| cell(operand, &value)).collect(),
                writes: Vec::new(),
                pairwise: watched.pairwise,
                time,
                stored: Vec::new(),
            };
            if watched.phi.is_empty() {
                self.phis = None;
            } else {
                // The lane has the value by now; where it came from is read at the time before.
                step.time = *self.phis.get_or_insert(time);
                let source = watched.phi.iter().find(|(block, _)| *block == self.blocks.1);
                step.writes = watched.writes.iter().map(|operand| cell(operand, &value)).collect();
                let reads = source.map(|(_, operands)| operands.as_slice()).unwrap_or_default();
                step.reads = reads.iter().map(|operand| cell(operand, &value)).collect();
                for (read, write) in step.reads.iter_mut().zip(&step.writes) {
                    read.value = write.value;
                }
            }
            if watched.ops.0 == watched.ops.1 {
                if watched.phi.is_empty() {
                    step.writes = watched.writes.iter().map(|operand| cell(operand, &value)).collect();
                }
                self.open = Some((watched, step));
                self.close();
            } else {
                self.open = Some((watched, step));
            }
        }
    }

    fn close(&mut self) {
        if let Some((_, step)) = self.open.take() {
            if self.trace.steps.len() < LIMIT {
                self.trace.steps.push(step);
            } else {
                self.trace.cut = true;
            }
        }
    }

    /// The run is over, perhaps within an instruction.
    pub fn finish(mut self) -> Trace {
        self.close();
        self.trace
    }
}

fn cell<L: Copy>(operand: &Operand<L>, value: impl Fn(L) -> Option<u32>) -> Cell {
    let &Operand { operand, component, place, location, output } = operand;
    Cell { operand, component, location, value: value(place), output }
}
