//! Units of registers as the spiller counts them.
//!
//! Each scalar that is live in a register counts separately, and so does each vector while it is live. The
//! [pressure](super::super::pressure) that the assigner relies on is less or equal: there, a piece of another value is
//! not counted again. There is one exception: if a vector is read for the last time while one of its parts stays live,
//! that part may keep the vector's registers; this is counted here too (see `Walk::ghosts`).

use super::super::array_ranges::{self, ArrayRanges, Indices};
use super::super::forest::{FULL, HALF, Sums};
use super::scalars::{general_result, general_value};
use crate::ir3::{Block, Instr, InstrData, OperandFlags, Program, Value};
use crate::regalloc::Error;
use crate::target::RegisterFiles;
use smallvec::SmallVec;

/// Units of full and of half registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// Full registers, two units each.
    pub full: u32,
    /// Half registers.
    pub half: u32,
}

impl Units {
    /// The units of a value.
    pub fn of(program: &Program, value: Value) -> Self {
        let data = &program.values[value];
        let units = u32::from(data.components) * u32::from(data.class.component_units());
        if data.class.half { Self { full: 0, half: units } } else { Self { full: units, half: 0 } }
    }

    /// The units of all arrays of a program, as if all were live at once.
    pub fn of_arrays(program: &Program) -> Self {
        let mut sum = Self::default();
        for (array, data) in program.arrays.iter() {
            *(if data.class.half { &mut sum.half } else { &mut sum.full }) += array_ranges::units(program, array);
        }
        sum
    }

    /// The units of the stacks of arrays at a point.
    pub fn of_extents(extents: &Sums) -> Self {
        Self { full: extents[FULL], half: extents[HALF] }
    }
}

/// The units that are not available for values: those of a base register, and of the arrays that are live.
pub struct Fixed {
    arrays: ArrayRanges,
    indices: Indices,
    base: Units,
}

impl Fixed {
    /// The units for blocks in this order.
    ///
    /// # Errors
    /// If an array is not in general registers.
    pub fn new(program: &Program, order: &[Block]) -> Result<Self, Error> {
        let arrays = ArrayRanges::new(program, order)?;
        let indices = if arrays.is_empty() { Indices::default() } else { Indices::new(program, order) };
        Ok(Self { arrays, indices, base: BASE })
    }

    fn at(&self, point: u32) -> Units {
        if self.arrays.is_empty() { self.base } else { self.base + Units::of_extents(&self.arrays.at(point).extents) }
    }

    /// The fixed units at the start of a block.
    pub fn at_start(&self, block: Block) -> Units {
        self.at(2 * self.indices.start[block])
    }

    /// The fixed units at an instruction, and after it.
    pub fn at_instr(&self, instr: Instr) -> Units {
        let index = self.indices.instr[instr];
        let (here, after) = (self.at(2 * index), self.at(2 * index + 2));
        Units { full: here.full.max(after.full), half: here.half.max(after.half) }
    }
}

impl std::ops::Add for Units {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { full: self.full + other.full, half: self.half + other.half }
    }
}

impl std::ops::AddAssign for Units {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::ops::SubAssign for Units {
    fn sub_assign(&mut self, other: Self) {
        self.full -= other.full;
        self.half -= other.half;
    }
}

/// The units that are available for values, and their division into files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Units of the full file.
    pub full: u32,
    /// Units that half registers reach.
    pub half: u32,
    /// True if halves are the start of the full file.
    pub merged: bool,
}

impl Capacity {
    /// The units of the files that values with these units need: full, half.
    pub fn demand(units: Units, merged: bool) -> (u32, u32) {
        let halves = if merged { units.half.next_multiple_of(2) } else { 0 };
        (units.full + halves, units.half)
    }

    /// Returns true if values with these units fit.
    pub fn fits(&self, units: Units) -> bool {
        let (full, half) = Self::demand(units, self.merged);
        full <= self.full && half <= self.half
    }

    /// The units available in the files.
    pub fn new(files: RegisterFiles, merged: bool) -> Self {
        Self { full: files.full, half: files.half, merged }
    }
}

/// The values that an instruction reads, each once.
pub fn operands(data: &InstrData) -> SmallVec<[Value; 8]> {
    let mut list: SmallVec<[Value; 8]> = SmallVec::new();
    for value in data.srcs.iter().filter_map(general_value) {
        if !list.contains(&value) {
            list.push(value);
        }
    }
    list
}

/// The values that an instruction defines.
pub fn results(data: &InstrData) -> impl Iterator<Item = Value> + '_ {
    data.dsts.iter().filter_map(general_result)
}

/// The results that are written while sources are still read.
pub fn early_results(data: &InstrData) -> impl Iterator<Item = Value> + '_ {
    let is_macro = data.opcode.is_macro();
    let early = data.dsts.iter().filter(move |dst| is_macro || dst.flags.contains(OperandFlags::EARLY_CLOBBER));
    early.filter_map(general_result)
}

/// Returns true if a value is a vector, which is live for an instruction or two and is never spilled.
pub fn is_vector(program: &Program, value: Value) -> bool {
    program.values[value].components > 1
}

/// Units of a base register.
pub const BASE: Units = Units { full: 2, half: 0 };
