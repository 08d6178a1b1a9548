//! Registers as the spiller counts them.
//!
//! Each scalar that is live in a register counts by itself, and so does each vector for as long as it lives. The
//! [pressure](super::super::pressure) that the assigner goes by is less or the same: there, a value that is
//! a piece of another one is not counted again. Only where a vector is read for the last time while one of its parts
//! lives on, that may keep the vector's registers; this is counted here too (see `Walk::ghosts`).

use super::scalars::{general_result, general_value};
use crate::ir3::{InstrData, OperandFlags, Program, RegFile, Value, opcode::Latency};
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
    /// What a value takes.
    pub fn of(program: &Program, value: Value) -> Self {
        let data = &program.values[value];
        let units = u32::from(data.components) * u32::from(data.class.component_units());
        if data.class.half { Self { full: 0, half: units } } else { Self { full: units, half: 0 } }
    }

    /// What the arrays of a program take.
    pub fn of_arrays(program: &Program) -> Self {
        let mut sum = Self::default();
        for data in program.arrays.values().filter(|data| data.class.file == RegFile::General) {
            let units = u32::from(data.length) * u32::from(data.class.component_units());
            *(if data.class.half { &mut sum.half } else { &mut sum.full }) += units;
        }
        sum
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

/// The room that there is for values, and how it is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Units of the full file.
    pub full: u32,
    /// Units that halves reach.
    pub half: u32,
    /// Halves are the front of the full file.
    pub merged: bool,
}

impl Room {
    /// What so many units need of the files: full, half.
    pub fn demand(units: Units, merged: bool) -> (u32, u32) {
        let halves = if merged { units.half.next_multiple_of(2) } else { 0 };
        (units.full + halves, units.half)
    }

    /// Whether so many units fit.
    pub fn fits(&self, units: Units) -> bool {
        let (full, half) = Self::demand(units, self.merged);
        full <= self.full && half <= self.half
    }

    /// The room in the files.
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

/// The values that it defines.
pub fn results(data: &InstrData) -> impl Iterator<Item = Value> + '_ {
    data.dsts.iter().filter_map(general_result)
}

/// Those of them that are written while sources are still to be read.
pub fn early_results(data: &InstrData) -> impl Iterator<Item = Value> + '_ {
    let is_macro = data.opcode.info().latency == Latency::Macro;
    let early = data.dsts.iter().filter(move |dst| is_macro || dst.flags.contains(OperandFlags::EARLY_CLOBBER));
    early.filter_map(general_result)
}

/// Whether a value is a vector, which lives for an instruction or two and is never spilled.
pub fn is_vector(program: &Program, value: Value) -> bool {
    program.values[value].components > 1
}

/// Units of a base register.
pub const BASE: Units = Units { full: 2, half: 0 };
