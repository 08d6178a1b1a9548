//! The live range of each value, in one numbering of the whole program.
//!
//! Blocks are taken in the order in which the allocator visits them. Each block takes one index for its start (phis,
//! inputs and results of prefetches are written there), one for each other instruction, and one for its end (phis of
//! the successor are read there). An instruction of index `i` reads at point `2 i` and writes at point `2 i + 1`; early
//! results are written at `2 i`. A value is live in a few *segments* of points, half open: `[2 i + 1, 2 j + 1)` is
//! written at `i`, and read at `j` for the last time. Two values can have one register if their segments do not
//! overlap.
//!
//! The blocks at whose starts a value is live are those of the [sparse analysis](crate::ir3::liveness); this one adds
//! the points in the blocks, and skips the walk for the many values that are read only in the block that defines them.
//!
//! Shared registers are written for lanes that are not active too, so their values are live along the physical edges,
//! where the wave may pass while the lanes that need the value wait.

use super::Error;
use crate::ir3::liveness::{Visitor, walk};
use crate::ir3::{Block, Dst, Instr, InstrData, Opcode, OperandFlags, Place, Program, RegFile, Src, Value};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// An interval of points, half open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Segment {
    /// First point.
    pub start: u32,
    /// The point after the last.
    pub end: u32,
}

/// The indices of a block.
#[derive(Clone, Copy, Default)]
struct BlockRange {
    /// Index of its start.
    first: u32,
    /// Index of its end.
    last: u32,
}

/// Lists of values, each with a head.
#[derive(Default)]
struct BlockValues {
    /// A value, and the index of the next one in its list.
    entries: Vec<(Value, u32)>,
    heads: SecondaryMap<Block, u32>,
}

/// The end of a list.
const NIL: u32 = u32::MAX;

impl BlockValues {
    fn new(program: &Program) -> Self {
        let mut heads = SecondaryMap::with_default(NIL);
        heads.resize(program.blocks.len());
        Self { entries: Vec::with_capacity(2 * program.blocks.len()), heads }
    }

    fn push(&mut self, block: Block, value: Value) {
        let next = std::mem::replace(&mut self.heads[block], self.entries.len() as u32);
        self.entries.push((value, next));
    }

    fn iter(&self, block: Block) -> impl Iterator<Item = Value> + '_ {
        let mut at = self.heads[block];
        std::iter::from_fn(move || {
            let &(value, next) = self.entries.get(at as usize)?;
            at = next;
            Some(value)
        })
    }
}

/// The live segments of values.
pub struct Liveness {
    /// The blocks in the order of the numbering.
    pub order: Vec<Block>,
    ranges: SecondaryMap<Block, BlockRange>,
    /// Segments, those of a value together and sorted.
    segments: Vec<Segment>,
    /// The start of a value's segments in `segments`, and their number.
    of_value: SecondaryMap<Value, (u32, u32)>,
    /// The differences between the end of the previous block in the order and the start of a block: values that are
    /// live at the start only, and values that are live at the end only.
    joining: BlockValues,
    leaving: BlockValues,
    /// The units of each value; 0 for values that are not allocated here.
    units: SecondaryMap<Value, u16>,
}

/// Returns true if a destination is written while sources are still read.
pub fn is_early(data: &InstrData, dst: &Dst) -> bool {
    dst.flags.contains(OperandFlags::EARLY_CLOBBER) || data.opcode.is_macro()
}

/// Returns true if the allocator chooses the register of a destination.
fn is_placed(data: &InstrData, dst: &Dst) -> bool {
    match (dst.class.file, dst.place) {
        (RegFile::General | RegFile::Shared, Place::Value(_)) => true,
        (RegFile::General, Place::Assigned(..)) => data.opcode == Opcode::Input,
        _ => false,
    }
}

/// A use of a value: the block, by the order, and the index.
#[derive(Clone, Copy, Default)]
struct UsePoint {
    block: u32,
    index: u32,
}

impl Liveness {
    /// Computes the liveness of a program whose blocks are visited in this order, and marks last reads and unused
    /// destinations.
    ///
    /// # Errors
    /// If a value is defined twice, is read at a point where it is not defined, or is read in another class than its
    /// own.
    pub fn new(program: &mut Program, order: Vec<Block>) -> Result<Self, Error> {
        let this = Self::unmarked(program, order)?;
        this.mark(program);
        Ok(this)
    }

    /// Like [`Liveness::new`], without marks.
    ///
    /// # Errors
    /// Those of [`Liveness::new`].
    pub fn unmarked(program: &Program, order: Vec<Block>) -> Result<Self, Error> {
        let mut this = Self {
            ranges: map_of(program.blocks.len()),
            segments: Vec::with_capacity(program.values.len() + 16),
            of_value: map_of(program.values.len()),
            joining: BlockValues::new(program),
            leaving: BlockValues::new(program),
            units: map_of(program.values.len()),
            order,
        };
        let walk = UseTraversal::new(program, &mut this)?;
        walk.run(program, &mut this)?;
        Ok(this)
    }

    /// The segments of a value, sorted; none if it is not allocated here.
    pub fn segments(&self, value: Value) -> &[Segment] {
        let (start, len) = self.of_value[value];
        &self.segments[start as usize..(start + len) as usize]
    }

    /// The units of the value; 0 if it is not allocated here.
    pub fn units(&self, value: Value) -> u16 {
        self.units[value]
    }

    /// The values that are live into a block and not live at the end of the previous block in the order.
    pub fn joining(&self, block: Block) -> impl Iterator<Item = Value> + '_ {
        self.joining.iter(block)
    }

    /// The values that are live at the end of the previous block in the order, including sources of phis, and not live
    /// into this one.
    pub fn leaving(&self, block: Block) -> impl Iterator<Item = Value> + '_ {
        self.leaving.iter(block)
    }

    /// The index of the start of a block.
    pub fn start(&self, block: Block) -> u32 {
        self.ranges[block].first
    }

    /// The number of points.
    pub fn points(&self) -> usize {
        self.order.last().map_or(0, |&block| 2 * self.ranges[block].last as usize + 2)
    }

    /// Returns true if a value is live into a block; its phis are not.
    pub fn is_live_into(&self, value: Value, block: Block) -> bool {
        let point = 2 * self.ranges[block].first;
        let segments = self.segments(value);
        let behind = segments.partition_point(|segment| segment.start <= point);
        segments[..behind].last().is_some_and(|segment| segment.end > point)
    }

    /// Returns true if the value has a use.
    pub fn is_used(&self, value: Value) -> bool {
        match *self.segments(value) {
            [] => false,
            [only] => only.end > (only.start | 1) + 1,
            _ => true,
        }
    }

    /// Records that a segment ends in a block, at the given position of the order: at the block's end, the value
    /// leaves.
    fn leave(&mut self, value: Value, position: u32, end: u32, last: u32) {
        if end > 2 * last
            && let Some(&next) = self.order.get(position as usize + 1)
        {
            self.leaving.push(next, value);
        }
    }

    /// Marks the last reads of values, and unused destinations.
    fn mark(&self, program: &mut Program) {
        const KILLS: OperandFlags = OperandFlags::KILL.union(OperandFlags::FIRST_KILL);
        // The current segment of each value, and the last index at which a kill of it was marked.
        let mut current: SecondaryMap<Value, (u32, u32)> = map_of(program.values.len());
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

/// The state of the traversal from uses back to definitions.
struct UseTraversal {
    values: SecondaryMap<Value, ValueUses>,
    /// The other uses of all values, each with the one before it of the same value: its position plus one, or 0.
    uses: Vec<(UsePoint, u32)>,
    /// Position of each block in the order.
    position: SecondaryMap<Block, u32>,
}

/// The definition and the uses of a value.
#[derive(Clone, Copy, Default)]
struct ValueUses {
    /// The block that defines it, by the order plus one, and the point.
    block: u32,
    point: u32,
    /// The point after the last use that is known to be in its own block, after its definition; 0 without one.
    local_end: u32,
    /// The last of the other uses, as in [`UseTraversal::uses`].
    last_use: u32,
}

impl ValueUses {
    /// Returns true if a use is in the block of the definition, after it.
    fn is_local(&self, at: UsePoint) -> bool {
        at.block + 1 == self.block && 2 * at.index >= self.point
    }
}

impl UseTraversal {
    fn new(program: &Program, live: &mut Liveness) -> Result<Self, Error> {
        let mut this = Self {
            values: map_of(program.values.len()),
            uses: Vec::with_capacity(program.values.len()),
            position: map_of(program.blocks.len()),
        };
        let mut index = 0;
        let mut phis: Vec<(Block, Instr)> = Vec::new();
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
                    let uses = &mut this.values[value];
                    if uses.block != 0 {
                        return Err(Error::Malformed { what: format!("{value} is defined twice") });
                    }
                    live.units[value] = info.components.max(1) * info.class.component_units();
                    let at_start = data.opcode.is_ready_at_start();
                    let index = if at_start { first } else { index };
                    let early = is_early(data, dst) && !at_start;
                    (uses.block, uses.point) = (position as u32 + 1, 2 * index + u32::from(!early));
                }
                if data.opcode == Opcode::Phi {
                    phis.push((block, instr));
                    continue;
                }
                let at = UsePoint { block: position as u32, index };
                data.srcs.iter().filter_map(Src::value).for_each(|value| this.add_use(value, at));
            }
            index += 1;
            live.ranges[block] = BlockRange { first, last: index };
            index += 1;
        }
        // Read at the ends of predecessors, which may come later.
        for (block, phi) in phis {
            for (k, src) in program.instrs[phi].srcs.iter().enumerate() {
                let Some(value) = src.value() else { continue };
                let end = program.blocks[block].predecessors.get(k);
                let (block, index) = end.map_or((block, live.ranges[block].first), |&end| (end, live.ranges[end].last));
                this.add_use(value, UsePoint { block: this.position[block], index });
            }
        }
        Ok(this)
    }

    fn add_use(&mut self, value: Value, at: UsePoint) {
        let uses = &mut self.values[value];
        if uses.is_local(at) {
            uses.local_end = uses.local_end.max(2 * at.index + 1);
        } else {
            self.uses.push((at, uses.last_use));
            uses.last_use = self.uses.len() as u32;
        }
    }

    /// The uses of a value that were not known to be local when they were found, the last one first.
    fn uses(&self, value: Value) -> impl Iterator<Item = UsePoint> + '_ {
        let mut next = self.values[value].last_use;
        std::iter::from_fn(move || {
            let (at, before) = self.uses[next.checked_sub(1)? as usize];
            next = before;
            Some(at)
        })
    }

    fn run(&self, program: &Program, live: &mut Liveness) -> Result<(), Error> {
        let edges = Edges::new(program, live, &self.position);
        // Indexed by the order of blocks.
        let mut seen = vec![Seen::default(); live.order.len()];
        let mut list: Vec<u32> = Vec::new();
        let mut stack: Vec<u32> = Vec::new();
        for value in program.values.keys() {
            let uses = self.values[value];
            let (def_point, local_end) = (uses.point, uses.local_end);
            let Some(def_block) = uses.block.checked_sub(1) else {
                let class = program.values[value].class;
                if uses.last_use != 0 && class.file == RegFile::General && program.values[value].array.is_none() {
                    return Err(Error::Malformed { what: format!("{value} is read where it is not defined") });
                }
                continue;
            };
            let first_segment = live.segments.len() as u32;
            // Used in its own block only, like most values.
            if self.uses(value).all(|at| uses.is_local(at)) {
                let last = self.uses(value).map(|at| 2 * at.index + 1).max().unwrap_or(0);
                let end = last.max(local_end).max((def_point | 1) + 1);
                live.segments.push(Segment { start: def_point, end });
                live.of_value[value] = (first_segment, 1);
                live.leave(value, def_block, end, edges.last(def_block));
                continue;
            }
            list.clear();
            let physical = program.values[value].class.file == RegFile::Shared;
            let mut paths =
                Paths { edges: &edges, seen: &mut seen, list: &mut list, value: value.into(), at_entry: false };
            paths.touch(def_block, local_end.max((def_point | 1) + 1));
            for at in self.uses(value) {
                paths.touch(at.block, 2 * at.index + 1);
                if !uses.is_local(at) {
                    stack.push(at.block);
                }
            }
            walk(&mut stack, Some(def_block), |block| edges.before(block, physical), &mut paths);
            if paths.at_entry && !physical {
                return Err(Error::Malformed { what: format!("{value} is read where it is not defined") });
            }
            list.sort_unstable();
            // The current segment, and the block that it ends in.
            let mut open: Option<(Segment, u32)> = None;
            for &position in &list {
                let Seen { live_in, until: end, .. } = seen[position as usize];
                let is_in = live_in == value.into();
                let start = if is_in { 2 * edges.first(position) } else { def_point };
                match &mut open {
                    Some((segment, block)) if segment.end == start => {
                        segment.end = end;
                        *block = position;
                    }
                    _ => {
                        if let Some((segment, block)) = open.replace((Segment { start, end }, position)) {
                            live.segments.push(segment);
                            live.leave(value, block, segment.end, edges.last(block));
                        }
                        if is_in {
                            live.joining.push(live.order[position as usize], value);
                        }
                    }
                }
            }
            if let Some((segment, block)) = open {
                live.segments.push(segment);
                live.leave(value, block, segment.end, edges.last(block));
            }
            live.of_value[value] = (first_segment, live.segments.len() as u32 - first_segment);
        }
        Ok(())
    }
}

/// Facts about a block while values are processed one after another.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// The last value that was live into it.
    live_in: PackedOption<Value>,
    /// The last value that was found live in it, and the point up to which it is live.
    touched: PackedOption<Value>,
    until: u32,
}

/// The paths from the uses of one value back to its definition; blocks by positions in the order.
struct Paths<'a> {
    edges: &'a Edges,
    seen: &'a mut [Seen],
    /// The blocks in which the value is live.
    list: &'a mut Vec<u32>,
    value: PackedOption<Value>,
    /// The value is live at the start of the entry.
    at_entry: bool,
}

impl Paths<'_> {
    /// The value is live in a block, up to a point.
    #[inline]
    fn touch(&mut self, block: u32, point: u32) {
        let seen = &mut self.seen[block as usize];
        if seen.touched == self.value {
            seen.until = seen.until.max(point);
        } else {
            seen.touched = self.value;
            seen.until = point;
            self.list.push(block);
        }
    }
}

impl Visitor<u32> for Paths<'_> {
    #[inline]
    fn live_in(&mut self, block: u32) -> bool {
        let seen = &mut self.seen[block as usize];
        if seen.live_in == self.value {
            return false;
        }
        seen.live_in = self.value;
        self.at_entry |= block == self.edges.entry;
        true
    }

    #[inline]
    fn live_out(&mut self, block: u32) {
        self.touch(block, 2 * self.edges.last(block) + 2);
    }
}

/// Predecessors and ranges, by positions in the order.
struct Edges {
    entry: u32,
    ranges: Vec<BlockRange>,
    /// The start of the predecessors of each block in `list`: the logical ones, followed by the physical ones.
    starts: Vec<(u32, u32)>,
    list: Vec<u32>,
}

impl Edges {
    fn new(program: &Program, live: &Liveness, position: &SecondaryMap<Block, u32>) -> Self {
        let count = live.order.len();
        let mut this = Self {
            entry: position[program.entry()],
            ranges: Vec::with_capacity(count),
            starts: Vec::with_capacity(count + 1),
            list: Vec::with_capacity(4 * count),
        };
        for &block in &live.order {
            let data = &program.blocks[block];
            this.ranges.push(live.ranges[block]);
            let start = this.list.len() as u32;
            this.list.extend(data.predecessors.iter().map(|&pred| position[pred]));
            this.starts.push((start, this.list.len() as u32));
            this.list.extend(data.physical_predecessors.iter().map(|&pred| position[pred]));
        }
        this.starts.push((this.list.len() as u32, 0));
        this
    }

    fn first(&self, position: u32) -> u32 {
        self.ranges[position as usize].first
    }

    fn last(&self, position: u32) -> u32 {
        self.ranges[position as usize].last
    }

    /// The predecessors, with the physical ones or without.
    fn before(&self, position: u32, physical: bool) -> &[u32] {
        let (start, logical_end) = self.starts[position as usize];
        let end = if physical { self.starts[position as usize + 1].0 } else { logical_end };
        &self.list[start as usize..end as usize]
    }
}
