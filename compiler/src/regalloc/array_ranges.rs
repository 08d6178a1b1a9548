//! The live ranges of arrays, and the units that each array has while it is live.
//!
//! An array is not in SSA form. It holds registers at each point that a path from a write reaches and from which a path
//! leads to a read, element by element: a direct write ends the live range of the element's previous value, a relative
//! one ends nothing. Where only elements that nothing has written are live, reads are undefined and need no registers;
//! so a program starts without arrays. An access is part of the live range, even if its result is not read: the machine
//! writes the register anyway.
//!
//! Points are those of [`liveness`](super::liveness). An array keeps its place for the whole program, so that an access
//! needs no more than a base, but arrays that are never live at once share registers, and scalars use the registers of
//! arrays that are not live. Full arrays are stacked from the end of their file downwards, halves from the bottom
//! upwards. At each point the *extent* of a stack is the end of the last live array in it: scalars use the registers
//! between the extents, without gaps, so the pressure stays a number that is known before registers are assigned.

use super::Error;
use super::forest::{self, Sums};
use super::liveness::Segment;
use crate::ir3::dataflow::{Analysis, Direction, Edge, solve};
use crate::ir3::dominance::{Cfg, EdgeKind};
use crate::ir3::{Array, ArrayAccess, Block, Instr, InstrData, Opcode, Place, Program, RegFile, Src};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use fixedbitset::FixedBitSet;
use smallvec::SmallVec;

/// The arrays that are live from a point on.
#[derive(Clone, Debug, Default)]
pub struct LiveArrays {
    /// The first point.
    from: u32,
    /// The live arrays.
    pub arrays: SmallVec<[Array; 4]>,
    /// The extents of the stacks, by [`forest::kind`].
    pub extents: Sums,
}

/// The live ranges of all arrays.
#[derive(Clone, Debug, Default)]
pub struct ArrayRanges {
    /// The distance of an array from the end of the file where its stack starts, in units.
    offset: SecondaryMap<Array, u16>,
    segments: SecondaryMap<Array, Vec<Segment>>,
    /// Sorted by the first point; the first entry is that of point 0. Empty without arrays.
    steps: Vec<LiveArrays>,
    /// The arrays with an access.
    accessed: Vec<Array>,
    none: LiveArrays,
}

/// One access of an instruction.
#[derive(Clone, Copy)]
struct ElementAccess {
    array: Array,
    /// The element, if it is known.
    element: Option<usize>,
    is_write: bool,
}

/// The units of an array.
pub fn units(program: &Program, array: Array) -> u32 {
    let data = &program.arrays[array];
    u32::from(data.length) * u32::from(data.class.component_units())
}

/// The accesses of an instruction to arrays, and true for writes: reads first.
pub fn accesses(data: &InstrData) -> impl Iterator<Item = (&ArrayAccess, bool)> {
    let reads = data.srcs.iter().filter_map(Src::place).map(|place| (place, false));
    let writes = data.dsts.iter().map(|dst| (&dst.place, true));
    reads.chain(writes).filter_map(|(place, is_write)| match place {
        Place::Array(access) => Some((access, is_write)),
        _ => None,
    })
}

/// The elements of all arrays, in one numbering.
struct Elements {
    first: SecondaryMap<Array, usize>,
    count: usize,
}

impl Elements {
    fn new(program: &Program) -> Self {
        let (mut first, mut count) = (map_of(program.arrays.len()), 0);
        for (array, data) in program.arrays.iter() {
            first[array] = count;
            count += usize::from(data.length);
        }
        Self { first, count }
    }

    fn of(&self, program: &Program, array: Array) -> std::ops::Range<usize> {
        let first = self.first[array];
        first..first + usize::from(program.arrays[array].length)
    }

    fn accesses(&self, program: &Program, instr: Instr) -> SmallVec<[ElementAccess; 2]> {
        let all = accesses(&program.instrs[instr]).map(|(access, is_write)| {
            let length = usize::from(program.arrays[access.array].length);
            let element = usize::try_from(access.offset).ok().filter(|&at| !access.relative && at < length);
            let element = element.map(|at| self.first[access.array] + at);
            ElementAccess { array: access.array, element, is_write }
        });
        all.collect()
    }

    /// A set with a bit for each element; that of a block without neighbours has none.
    fn sized(&self, set: &FixedBitSet) -> FixedBitSet {
        let mut sized = set.clone();
        sized.grow(self.count);
        sized
    }

    /// The effect of an instruction on the elements that are live, backwards.
    fn backwards(&self, program: &Program, accesses: &[ElementAccess], live: &mut FixedBitSet) {
        for access in accesses.iter().filter(|access| access.is_write) {
            if let Some(element) = access.element {
                live.set(element, false);
            }
        }
        for access in accesses.iter().filter(|access| !access.is_write) {
            match access.element {
                Some(element) => live.insert(element),
                None => live.insert_range(self.of(program, access.array)),
            }
        }
    }

    /// The effect on the elements that may have been written.
    fn forwards(&self, program: &Program, accesses: &[ElementAccess], written: &mut FixedBitSet) {
        for access in accesses.iter().filter(|access| access.is_write) {
            match access.element {
                Some(element) => written.insert(element),
                None => written.insert_range(self.of(program, access.array)),
            }
        }
    }
}

/// The elements that are live.
struct LiveElements<'a>(&'a Program, &'a Elements);

impl Analysis<Block> for LiveElements<'_> {
    type Fact = FixedBitSet;

    const DIRECTION: Direction = Direction::Backward;

    fn join(&mut self, input: &mut FixedBitSet, output: &FixedBitSet, _: Edge<Block>) {
        input.union_with(output);
    }

    fn transfer(&mut self, block: Block, input: &FixedBitSet) -> FixedBitSet {
        let Self(program, elements) = *self;
        let mut live = elements.sized(input);
        for &instr in program.blocks[block].instrs.iter().rev() {
            elements.backwards(program, &elements.accesses(program, instr), &mut live);
        }
        live
    }
}

/// The elements that may have been written.
struct WrittenElements<'a>(&'a Program, &'a Elements);

impl Analysis<Block> for WrittenElements<'_> {
    type Fact = FixedBitSet;

    const DIRECTION: Direction = Direction::Forward;

    fn join(&mut self, input: &mut FixedBitSet, output: &FixedBitSet, _: Edge<Block>) {
        input.union_with(output);
    }

    fn transfer(&mut self, block: Block, input: &FixedBitSet) -> FixedBitSet {
        let Self(program, elements) = *self;
        let mut written = elements.sized(input);
        for &instr in &program.blocks[block].instrs {
            elements.forwards(program, &elements.accesses(program, instr), &mut written);
        }
        written
    }
}

/// The elements that are live at the ends of blocks, and those that may have been written at their starts.
struct Flow {
    live_out: SecondaryMap<Block, FixedBitSet>,
    written_in: SecondaryMap<Block, FixedBitSet>,
}

impl Flow {
    fn new(program: &Program, order: &[Block], elements: &Elements) -> Self {
        let cfg = Cfg::new(program, EdgeKind::Logical);
        let live_out = solve(&cfg, order, &mut LiveElements(program, elements)).end;
        let written_in = solve(&cfg, order, &mut WrittenElements(program, elements)).start;
        Self { live_out, written_in }
    }
}

impl ArrayRanges {
    /// Computes the live ranges for blocks in this order, and places the arrays.
    ///
    /// # Errors
    /// If an array is not in general registers.
    pub fn new(program: &Program, order: &[Block]) -> Result<Self, Error> {
        let mut this = Self::default();
        if program.arrays.is_empty() {
            return Ok(this);
        }
        if let Some((array, _)) = program.arrays.iter().find(|(_, data)| data.class.file != RegFile::General) {
            return Err(Error::Malformed { what: format!("{array} is not in general registers") });
        }
        let elements = Elements::new(program);
        let flow = Flow::new(program, order, &elements);
        let mut index = 0;
        for &block in order {
            this.add_block(program, block, &elements, &flow, &mut index);
        }
        this.accessed = program.arrays.keys().filter(|&array| !this.segments[array].is_empty()).collect();
        this.place(program);
        this.find_steps(program);
        Ok(this)
    }

    /// Adds the segments in a block, whose first index is `index`; sets it to that of the next block.
    fn add_block(&mut self, program: &Program, block: Block, elements: &Elements, flow: &Flow, index: &mut u32) {
        // The accesses in the block, by index.
        let first = *index;
        let mut list: Vec<(u32, SmallVec<[ElementAccess; 2]>)> = Vec::new();
        for &instr in &program.blocks[block].instrs {
            if !matches!(program.instrs[instr].opcode, Opcode::Phi | Opcode::Input) {
                *index += 1;
            }
            let accesses = elements.accesses(program, instr);
            if !accesses.is_empty() {
                list.push((*index, accesses));
            }
        }
        let last = *index + 1;
        *index += 2;
        // The live elements before each access, the last one first, after that at the end of the block.
        let mut live = vec![elements.sized(&flow.live_out[block])];
        for (_, accesses) in list.iter().rev() {
            let mut before = live[live.len() - 1].clone();
            elements.backwards(program, accesses, &mut before);
            live.push(before);
        }
        let mut written = elements.sized(&flow.written_in[block]);
        let mut start = 2 * first;
        for k in 0..=list.len() {
            // From the start, or the access before, to this one, or the end.
            let end = list.get(k).map_or(2 * (last + 1), |&(at, _)| 2 * at);
            let mut held = live[list.len() - k].clone();
            held.intersect_with(&written);
            for array in program.arrays.keys() {
                if held.contains_any_in_range(elements.of(program, array)) {
                    self.add_segment(array, start, end);
                }
            }
            if let Some((at, accesses)) = list.get(k) {
                accesses.iter().for_each(|access| self.add_segment(access.array, 2 * at, 2 * at + 2));
                // An array that is live on either side is live at the access.
                elements.forwards(program, accesses, &mut written);
                let mut after = live[list.len() - k - 1].clone();
                after.intersect_with(&written);
                for array in program.arrays.keys() {
                    let range = elements.of(program, array);
                    if held.contains_any_in_range(range.clone()) || after.contains_any_in_range(range) {
                        self.add_segment(array, 2 * at, 2 * at + 2);
                    }
                }
                start = 2 * at + 2;
            }
        }
    }

    fn add_segment(&mut self, array: Array, start: u32, end: u32) {
        if start >= end {
            return;
        }
        match self.segments[array].last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => self.segments[array].push(Segment { start, end }),
        }
    }

    /// Gives each array the first place in its stack that no array has with which it is live at once; long ones first.
    fn place(&mut self, program: &Program) {
        let mut list = self.accessed.clone();
        list.sort_by_key(|&array| std::cmp::Reverse(units(program, array)));
        for (k, &array) in list.iter().enumerate() {
            let kind = forest::kind(program.arrays[array].class);
            let mut taken: Vec<(u32, u32)> = (list[..k].iter())
                .filter(|&&other| {
                    forest::kind(program.arrays[other].class) == kind && self.are_live_at_once(array, other)
                })
                .map(|&other| (u32::from(self.offset[other]), u32::from(self.offset[other]) + units(program, other)))
                .collect();
            taken.sort_unstable();
            let mut at = 0;
            for (start, end) in taken {
                if at + units(program, array) <= start {
                    break;
                }
                at = at.max(end);
            }
            self.offset[array] = u16::try_from(at).unwrap_or(u16::MAX);
        }
    }

    fn are_live_at_once(&self, a: Array, b: Array) -> bool {
        overlap(&self.segments[a], &self.segments[b])
    }

    fn find_steps(&mut self, program: &Program) {
        let ends = |segment: &Segment| [segment.start, segment.end];
        let mut points: Vec<u32> = self.accessed.iter().flat_map(|&a| self.segments[a].iter().flat_map(ends)).collect();
        points.push(0);
        points.sort_unstable();
        points.dedup();
        self.steps = points.iter().map(|&from| LiveArrays { from, ..LiveArrays::default() }).collect();
        for &array in &self.accessed {
            let kind = forest::kind(program.arrays[array].class);
            let end = u32::from(self.offset[array]) + units(program, array);
            for segment in &self.segments[array] {
                let first = self.steps.partition_point(|step| step.from < segment.start);
                for step in self.steps[first..].iter_mut().take_while(|step| step.from < segment.end) {
                    step.arrays.push(array);
                    step.extents[kind] = step.extents[kind].max(end);
                }
            }
        }
    }

    /// Returns true if the program accesses no array.
    pub const fn is_empty(&self) -> bool {
        self.accessed.is_empty()
    }

    /// The arrays with an access.
    pub fn accessed(&self) -> &[Array] {
        &self.accessed
    }

    /// The live arrays at a point.
    pub fn at(&self, point: u32) -> &LiveArrays {
        match self.steps.partition_point(|step| step.from <= point) {
            0 => &self.none,
            count => &self.steps[count - 1],
        }
    }

    /// The segments in which an array is live.
    pub fn segments(&self, array: Array) -> &[Segment] {
        &self.segments[array]
    }

    /// Returns true if an array is live at a point of these segments.
    pub fn is_live_in(&self, array: Array, segments: &[Segment]) -> bool {
        overlap(&self.segments[array], segments)
    }

    /// The distance of an array from the end of the file where its stack starts, in units.
    pub fn offset(&self, array: Array) -> u32 {
        u32::from(self.offset[array])
    }

    /// The first unit of an array in a file whose full registers end at `end`; 0 if the file is too small.
    pub fn base(&self, program: &Program, array: Array, end: u16) -> u16 {
        let offset = u32::from(self.offset[array]);
        if program.arrays[array].class.half {
            return offset as u16;
        }
        u32::from(end).saturating_sub(offset + units(program, array)) as u16
    }
}

/// Returns true if a segment of one list overlaps one of the other. Both are sorted.
fn overlap(a: &[Segment], b: &[Segment]) -> bool {
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.start < y.end && y.start < x.end {
            return true;
        }
        if x.end <= y.end { i += 1 } else { j += 1 }
    }
    false
}

/// The index of each instruction, as [`liveness`](super::liveness) numbers them, and of the start of each block.
#[derive(Clone, Debug, Default)]
pub struct Indices {
    /// The index by instruction; 0 for phis and inputs.
    pub instr: SecondaryMap<Instr, u32>,
    /// The index by block.
    pub start: SecondaryMap<Block, u32>,
}

impl Indices {
    /// Numbers the instructions of blocks in this order.
    pub fn new(program: &Program, order: &[Block]) -> Self {
        let mut this = Self { instr: map_of(program.instrs.len()), start: map_of(program.blocks.len()) };
        let mut index = 0;
        for &block in order {
            this.start[block] = index;
            for &instr in &program.blocks[block].instrs {
                if !matches!(program.instrs[instr].opcode, Opcode::Phi | Opcode::Input) {
                    index += 1;
                    this.instr[instr] = index;
                }
            }
            index += 2;
        }
        this
    }
}
