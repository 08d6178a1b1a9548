//! Where each value is live, in one numbering of the whole program.
//!
//! Blocks are taken in the order in which the allocator visits them. Each block takes one index for its start (phis and
//! inputs are written there), one for each other instruction, and one for its end (phis of the successor are read there).
//! An instruction of index `i` reads at point `2 i` and writes at point `2 i + 1`; what it writes early it writes at
//! `2 i`. A value is live in a few *segments* of points, half open: `[2 i + 1, 2 j + 1)` is written at `i`, and read at `j`
//! for the last time. Two values can have one register if their segments do not overlap.
//!
//! Programs are in SSA form, so no fixed point is needed: from each use the value is live on every way back to its
//! definition. Values are treated one after another, so "this block was seen" is one number for each block, and there is
//! no table of blocks and values: time and space are those of what is live at the starts of blocks.
//!
//! Shared registers are written for lanes that are not active too, so their values are live along the physical edges,
//! where the wave may pass while the lanes that need the value wait.

use super::Error;
use crate::ir3::{Block, Dst, InstrData, Opcode, OperandFlags, Place, Program, RegFile, Value, opcode::Latency};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};

/// A stretch of points, half open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Segment {
    /// First point.
    pub start: u32,
    /// First point behind.
    pub end: u32,
}

/// What is known of a block.
#[derive(Clone, Copy, Default)]
struct BlockRange {
    /// Index of its start.
    first: u32,
    /// Index of its end.
    last: u32,
}

/// Which values are live where.
pub struct Liveness {
    /// The blocks in the order of the numbering.
    pub order: Vec<Block>,
    ranges: SecondaryMap<Block, BlockRange>,
    /// Segments, those of a value together and in order.
    segments: Vec<Segment>,
    /// Where a value's segments start in `segments`, and how many there are.
    of_value: SecondaryMap<Value, (u32, u32)>,
    /// Values that are live into blocks, as lists; and the head of each block's list.
    live_in: Vec<(Value, u32)>,
    heads: SecondaryMap<Block, u32>,
    /// Units that each value takes; 0 for what is not allocated here.
    units: SecondaryMap<Value, u16>,
}

/// No further element of a list.
const NIL: u32 = 0;

/// Whether a destination is written while sources are still to be read.
pub fn is_early(data: &InstrData, dst: &Dst) -> bool {
    dst.flags.contains(OperandFlags::EARLY_CLOBBER) || data.opcode.info().latency == Latency::Macro
}

/// Whether the allocator chooses the register of a destination.
fn is_placed(data: &InstrData, dst: &Dst) -> bool {
    match (dst.class.file, dst.place) {
        (RegFile::General | RegFile::Shared, Place::Value(_)) => true,
        (RegFile::General, Place::Assigned(..)) => data.opcode == Opcode::Input,
        _ => false,
    }
}

/// A use of a value: in which block, by the order, and at which index.
#[derive(Clone, Copy, Default)]
struct Use {
    block: u32,
    index: u32,
}

impl Liveness {
    /// Computes the liveness of a program whose blocks are visited in this order, and marks last reads and
    /// destinations that nobody reads.
    pub fn new(program: &mut Program, order: Vec<Block>) -> Result<Self, Error> {
        let mut this = Self {
            ranges: SecondaryMap::with_capacity(program.blocks.len()),
            segments: Vec::with_capacity(program.values.len() + 16),
            of_value: SecondaryMap::with_capacity(program.values.len()),
            live_in: vec![(Value::from_u32(0), NIL)],
            heads: SecondaryMap::with_capacity(program.blocks.len()),
            units: SecondaryMap::with_capacity(program.values.len()),
            order,
        };
        this.units.resize(program.values.len());
        this.of_value.resize(program.values.len());
        let walk = Walk::new(program, &mut this)?;
        walk.run(program, &mut this)?;
        this.mark(program);
        Ok(this)
    }

    /// The segments of a value, in order; none if it is not allocated here.
    pub fn segments(&self, value: Value) -> &[Segment] {
        let (start, len) = self.of_value[value];
        &self.segments[start as usize..(start + len) as usize]
    }

    /// Units that the value takes; 0 if it is not allocated here.
    pub fn units(&self, value: Value) -> u16 {
        self.units[value]
    }

    /// The values that are live into a block, its phis not among them.
    pub fn live_in(&self, block: Block) -> impl Iterator<Item = Value> + '_ {
        let mut at = self.heads[block];
        std::iter::from_fn(move || {
            let (value, next) = *self.live_in.get(at as usize).filter(|_| at != NIL)?;
            at = next;
            Some(value)
        })
    }

    /// Whether anybody reads the value.
    pub fn is_used(&self, value: Value) -> bool {
        match *self.segments(value) {
            [] => false,
            [only] => only.end > (only.start | 1) + 1,
            _ => true,
        }
    }

    /// Marks the last reads of values, and destinations that nobody reads.
    fn mark(&self, program: &mut Program) {
        const KILLS: OperandFlags = OperandFlags::KILL.union(OperandFlags::FIRST_KILL);
        // Which of its segments each value is in, and the last index at which a kill of it was marked.
        let mut current: SecondaryMap<Value, (u32, u32)> = SecondaryMap::with_capacity(program.values.len());
        for &block in &self.order {
            let mut index = self.ranges[block].first;
            for &instr in &program.blocks[block].instrs {
                let data = &mut program.instrs[instr];
                for dst in data.dsts.iter_mut() {
                    if let Some(value) = dst.value().filter(|&value| self.units[value] != 0) {
                        dst.flags.set(OperandFlags::UNUSED, !self.is_used(value));
                    }
                }
                if data.opcode == Opcode::Phi {
                    // Read at the ends of the predecessors.
                    data.srcs.iter_mut().for_each(|src| src.flags.remove(KILLS));
                    continue;
                }
                if data.opcode == Opcode::Input {
                    continue;
                }
                index += 1;
                for src in data.srcs.iter_mut() {
                    let Some(value) = src.value().filter(|&value| self.units[value] != 0) else { continue };
                    let segments = self.segments(value);
                    let (at, marked) = &mut current[value];
                    while segments.get(*at as usize).is_some_and(|segment| segment.end <= 2 * index) {
                        *at += 1;
                    }
                    let is_last = segments.get(*at as usize).is_some_and(|segment| segment.end == 2 * index + 1);
                    src.flags.set(OperandFlags::KILL, is_last);
                    src.flags.set(OperandFlags::FIRST_KILL, is_last && *marked != index);
                    if is_last {
                        *marked = index;
                    }
                }
            }
        }
    }
}

/// What is needed while the ways back are walked.
struct Walk {
    /// Block that defines each value, by the order plus one, and the point.
    def: SecondaryMap<Value, (u32, u32)>,
    /// The uses of all values, those of one together.
    uses: Vec<Use>,
    of_value: SecondaryMap<Value, u32>,
    /// Position of each block in the order.
    position: SecondaryMap<Block, u32>,
}

impl Walk {
    fn new(program: &Program, live: &mut Liveness) -> Result<Self, Error> {
        let mut this = Self {
            def: SecondaryMap::with_capacity(program.values.len()),
            uses: Vec::new(),
            of_value: SecondaryMap::with_capacity(program.values.len()),
            position: SecondaryMap::with_capacity(program.blocks.len()),
        };
        this.def.resize(program.values.len());
        // One more than there are values: the end of the last one's uses.
        this.of_value.resize(program.values.len() + 1);
        let mut index = 0;
        for (position, &block) in live.order.iter().enumerate() {
            this.position[block] = position as u32;
            let first = index;
            for &instr in &program.blocks[block].instrs {
                let data = &program.instrs[instr];
                if !matches!(data.opcode, Opcode::Phi | Opcode::Input) {
                    index += 1;
                }
                for dst in &data.dsts {
                    let Some(value) = dst.value().filter(|_| is_placed(data, dst)) else { continue };
                    let info = &program.values[value];
                    if info.class != dst.class {
                        return Err(Error::unsupported(program, instr, "an operand of another class than its value"));
                    }
                    if this.def[value].0 != 0 {
                        return Err(Error::Malformed { what: format!("{value} is defined twice") });
                    }
                    live.units[value] = info.components.max(1) * info.class.component_units();
                    let early = is_early(data, dst) && data.opcode != Opcode::Phi;
                    this.def[value] = (position as u32 + 1, 2 * index + u32::from(!early));
                }
                for src in &data.srcs {
                    if let Some(value) = src.value() {
                        this.of_value[value] += 1;
                    }
                }
            }
            index += 1;
            live.ranges[block] = BlockRange { first, last: index };
            index += 1;
        }
        this.collect_uses(program, live);
        Ok(this)
    }

    fn collect_uses(&mut self, program: &Program, live: &Liveness) {
        let mut total = 0;
        for value in program.values.keys() {
            total += std::mem::replace(&mut self.of_value[value], total);
        }
        self.of_value[Value::new(program.values.len())] = total;
        self.uses.resize(total as usize, Use::default());
        // Filled from the front; in the end each start has become the next one's.
        for (position, &block) in live.order.iter().enumerate() {
            let mut index = live.ranges[block].first;
            for &instr in &program.blocks[block].instrs {
                let data = &program.instrs[instr];
                if !matches!(data.opcode, Opcode::Phi | Opcode::Input) {
                    index += 1;
                }
                for (k, src) in data.srcs.iter().enumerate() {
                    let Some(value) = src.value() else { continue };
                    let mut at = Use { block: position as u32, index };
                    if data.opcode == Opcode::Phi
                        && let Some(&pred) = program.blocks[block].predecessors.get(k)
                    {
                        at = Use { block: self.position[pred], index: live.ranges[pred].last };
                    }
                    let next = &mut self.of_value[value];
                    self.uses[*next as usize] = at;
                    *next += 1;
                }
            }
        }
        let mut start = 0;
        for value in program.values.keys() {
            start = std::mem::replace(&mut self.of_value[value], start);
        }
    }

    fn run(&self, program: &Program, live: &mut Liveness) -> Result<(), Error> {
        let blocks = live.order.len();
        // For each block, by the order: the last value that was live in, the last that was touched, and the point up to
        // which that one is live.
        let mut live_in: Vec<PackedOption<Value>> = vec![None.into(); blocks];
        let mut touched: Vec<PackedOption<Value>> = vec![None.into(); blocks];
        let mut until = vec![0u32; blocks];
        let mut list: Vec<u32> = Vec::new();
        let mut stack: Vec<u32> = Vec::new();
        for value in program.values.keys() {
            let uses = &self.uses[self.of_value[value] as usize..self.of_value[Value::new(value.index() + 1)] as usize];
            let (def_block, def_point) = self.def[value];
            let Some(def_block) = def_block.checked_sub(1) else {
                let class = program.values[value].class;
                if !uses.is_empty() && class.file == RegFile::General && program.values[value].array.is_none() {
                    return Err(Error::Malformed { what: format!("{value} is read where it is not defined") });
                }
                continue;
            };
            let first_segment = live.segments.len() as u32;
            // In its own block only, as most are.
            let is_local = |at: &Use| at.block == def_block && 2 * at.index >= def_point;
            if uses.iter().all(is_local) {
                let last = uses.iter().map(|at| 2 * at.index + 1).max().unwrap_or(0);
                live.segments.push(Segment { start: def_point, end: last.max((def_point | 1) + 1) });
                live.of_value[value] = (first_segment, 1);
                continue;
            }
            list.clear();
            let mut touch = |block: u32, point: u32, list: &mut Vec<u32>| {
                let b = block as usize;
                if touched[b].expand() != Some(value) {
                    touched[b] = value.into();
                    until[b] = point;
                    list.push(block);
                } else {
                    until[b] = until[b].max(point);
                }
            };
            touch(def_block, (def_point | 1) + 1, &mut list);
            let physical = program.values[value].class.file == RegFile::Shared;
            for at in uses {
                touch(at.block, 2 * at.index + 1, &mut list);
                if !is_local(at) {
                    stack.push(at.block);
                }
                while let Some(position) = stack.pop() {
                    if live_in[position as usize].expand() == Some(value) {
                        continue;
                    }
                    live_in[position as usize] = value.into();
                    let block = live.order[position as usize];
                    let next = std::mem::replace(&mut live.heads[block], live.live_in.len() as u32);
                    live.live_in.push((value, next));
                    let data = &program.blocks[block];
                    if block == program.entry() && !physical {
                        return Err(Error::Malformed { what: format!("{value} is read where it is not defined") });
                    }
                    let more: &[Block] = if physical { &data.physical_predecessors } else { &[] };
                    for &pred in data.predecessors.iter().chain(more) {
                        let at = self.position[pred];
                        touch(at, 2 * live.ranges[pred].last + 2, &mut list);
                        if at != def_block {
                            stack.push(at);
                        }
                    }
                }
            }
            list.sort_unstable();
            for &position in &list {
                let end = until[position as usize];
                let block = live.order[position as usize];
                let is_in = live_in[position as usize].expand() == Some(value);
                let start = if is_in { 2 * live.ranges[block].first } else { def_point };
                let own = live.segments.len() > first_segment as usize;
                match live.segments.last_mut().filter(|_| own) {
                    Some(last) if last.end == start => last.end = end,
                    _ => live.segments.push(Segment { start, end }),
                }
            }
            live.of_value[value] = (first_segment, live.segments.len() as u32 - first_segment);
        }
        Ok(())
    }
}
