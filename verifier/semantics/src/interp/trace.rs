//! The trace of one lane: its instructions in order, with the values that they read and write.
//!
//! A traced run has an observer: decoding keeps a table of the operations and operands of each instruction, and the
//! loop that runs the program calls the observer between operations. An ordinary run has the observer `()`, which
//! compiles to nothing, and no table.

use super::Outcome;
use crate::environment::memory::StoredWord;

/// The number of steps after which a trace is cut off.
const LIMIT: usize = 20_000;

/// The location of a value: a component of a value or a register, or half of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// A number that all overlapping locations share.
    pub slot: u32,
    /// A mask of its 16-bit halves.
    pub halves: u8,
    /// True for a register, which has the same number in every program.
    pub register: bool,
}

impl Location {
    /// The location of a whole slot.
    pub const fn whole(slot: u32) -> Self {
        Self { slot, halves: 3, register: false }
    }
}

/// A component of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceValue {
    /// The number of the source or destination.
    pub operand: u8,
    /// The number of the component; for 64 bits each word is one.
    pub component: u8,
    /// The location.
    pub location: Location,
    /// The value; `None` is poison.
    pub value: Option<u32>,
    /// The output (location and component) that it is stored to.
    pub output: Option<(u16, u8)>,
}

/// The instruction or condition of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TracePoint {
    /// An instruction, by its number in the program's table.
    Instr(u32),
    /// The condition of an if of nir, by the number of its value.
    If(u32),
}

/// The execution of one instruction in one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// The instruction.
    pub at: TracePoint,
    /// The values that it reads, before it.
    pub reads: Vec<TraceValue>,
    /// The values that it writes, after it.
    pub writes: Vec<TraceValue>,
    /// Each written value is the value that is read at the same position of the list.
    pub pairwise: bool,
    /// The number of the step before which it reads: its own, except for phis, which all read before any is written.
    pub time: u32,
    /// The words of memory that it writes.
    pub stored: Vec<StoredWord>,
}

/// The steps of a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The steps, in order.
    pub steps: Vec<TraceStep>,
    /// True if the trace was cut off.
    pub cut: bool,
    /// Words of memory that all lanes wrote, in order.
    pub stored: Vec<StoredWord>,
    /// The lanes that executed last.
    pub last: u64,
}

/// A traced run.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The outcome of the run.
    pub outcome: Outcome,
    /// The steps of the lane.
    pub trace: Trace,
}

/// A component of an operand in the table of a decoded program.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchedOperand<L> {
    pub operand: u8,
    pub component: u8,
    /// The location of its value.
    pub place: L,
    pub location: Location,
    pub output: Option<(u16, u8)>,
}

/// An instruction in the table of a decoded program.
#[derive(Clone, Debug)]
pub(super) struct Watched<L> {
    pub at: TracePoint,
    /// The points of the program before its first operation and after its last.
    pub ops: (u32, u32),
    pub reads: Vec<WatchedOperand<L>>,
    pub writes: Vec<WatchedOperand<L>>,
    pub pairwise: bool,
    /// For a phi: the operands that it reads, by the block that the lane comes from.
    pub phi: Vec<(u32, Vec<WatchedOperand<L>>)>,
}

/// The observer that traces one lane. `L` is the interpreter's type of locations.
pub(super) struct LaneRecorder<'a, L> {
    pub lane: usize,
    watched: &'a [Watched<L>],
    pub trace: Trace,
    /// The instruction that is being executed.
    open: Option<(&'a Watched<L>, TraceStep)>,
    /// The current block of the lane, and the previous one.
    blocks: (u32, u32),
    /// The first of the phis that are being executed.
    phis: Option<u32>,
}

impl<'a, L: Copy> LaneRecorder<'a, L> {
    /// Creates an empty trace. The table is in the order of points.
    pub fn new(lane: u8, watched: &'a [Watched<L>]) -> Self {
        let nowhere = (u32::MAX, u32::MAX);
        Self { lane: lane.into(), watched, trace: Trace::default(), open: None, blocks: nowhere, phis: None }
    }

    /// Called when lanes enter a block.
    pub fn enter(&mut self, block: u32, mask: u64) {
        if mask >> self.lane & 1 != 0 {
            self.blocks = (block, self.blocks.0);
            self.phis = None;
        }
    }

    /// Called at a point between two operations, with the lanes of `mask` active. `value` reads a value, `stored` takes
    /// the stores since the last call.
    pub fn between(
        &mut self,
        point: u32,
        mask: u64,
        value: impl Fn(L) -> Option<u32>,
        stored: impl FnOnce() -> Vec<StoredWord>,
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
            let mut step = TraceStep {
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
                // The phi's result is written by now; its source is read at the time before.
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

    /// Ends the trace, perhaps within an instruction.
    pub fn finish(mut self) -> Trace {
        self.close();
        self.trace
    }
}

fn cell<L: Copy>(operand: &WatchedOperand<L>, value: impl Fn(L) -> Option<u32>) -> TraceValue {
    let &WatchedOperand { operand, component, place, location, output } = operand;
    TraceValue { operand, component, location, value: value(place), output }
}
