//! Coverage of programs: a list of cells, and the cells that a set of programs has.
//!
//! A cell is a pair of properties: an operation and a width, an intrinsic and a value of an index, an opcode and the
//! form of a source, an arm of a pass. Nothing is a full product. The lists follow the tables of the compiler: nir's
//! operations and intrinsics, its texture operations, ir3's opcodes, the [arms](ir3_compiler::arms) that passes count.
//! A cell is a number, so that counting is an addition; its name is made when a table is printed.
//!
//! `alu`, `intrinsics`, `textures` and `control` are cells of a shader, `machine` those of a compiled program.
//! [`accepted`] finds the cells that a program can have by selection, and [`impossible`] has rules for those of
//! compiled programs; [`table`] is printed and kept in a file.

pub mod accepted;
mod alu;
mod control;
pub mod impossible;
mod intrinsics;
mod machine;
mod made;
pub mod spirv;
pub mod table;
mod textures;

use ir3_compiler::arms::{Arm, Counter};
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::Program;
use ir3_compiler::nir::{InstrData, Shader};
use ir3_compiler::pipeline::Stage;

/// A pair of properties, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell(u32);

impl Cell {
    /// Its number.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A group of cells. Numbers in it begin at 0; those that the tables rule out have no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Arithmetic of nir.
    Alu,
    /// Intrinsics of nir.
    Intrinsics,
    /// Texture operations of nir.
    Textures,
    /// Shapes of control flow.
    Control,
    /// Instructions of a program in SSA form.
    Ssa,
    /// Instructions of a final program.
    Final,
    /// Arms of passes.
    Arms,
}

impl Family {
    /// All of them, in order.
    pub const ALL: [Self; 7] =
        [Self::Alu, Self::Intrinsics, Self::Textures, Self::Control, Self::Ssa, Self::Final, Self::Arms];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alu => "alu",
            Self::Intrinsics => "intrinsic",
            Self::Textures => "texture",
            Self::Control => "control",
            Self::Ssa => "ssa",
            Self::Final => "final",
            Self::Arms => "arm",
        }
    }

    /// Returns true if rules, and not selection, determine the impossible cells.
    fn has_rules(self) -> bool {
        matches!(self, Self::Ssa | Self::Final | Self::Arms)
    }

    const fn size(self) -> u32 {
        match self {
            Self::Alu => alu::SIZE,
            Self::Intrinsics => intrinsics::SIZE,
            Self::Textures => textures::SIZE,
            Self::Control => control::SIZE,
            Self::Ssa | Self::Final => machine::SIZE,
            Self::Arms => Arm::COUNT as u32,
        }
    }

    const fn first(self) -> u32 {
        let (mut i, mut sum) = (0, 0);
        while i < self as usize {
            sum += Self::ALL[i].size();
            i += 1;
        }
        sum
    }

    fn cell(self, number: u32) -> Cell {
        debug_assert!(number < self.size(), "{self:?} {number}");
        Cell(self.first() + number)
    }

    /// The cells of the family with their names.
    pub fn cells(self) -> impl Iterator<Item = (Cell, String)> {
        (0..self.size()).filter_map(move |number| {
            let name = match self {
                Self::Alu => alu::name(number),
                Self::Intrinsics => intrinsics::name(number),
                Self::Textures => textures::name(number),
                Self::Control => control::name(number),
                Self::Ssa => machine::name(number, false),
                Self::Final => machine::name(number, true),
                Self::Arms => Arm::every().get(number as usize).map(|info| format!("{}: {}", info.pass, info.text)),
            };
            Some((self.cell(number), format!("{} {}", self.name(), name?)))
        })
    }
}

/// The number of cells, with those that have no name.
const SIZE: u32 = Family::Arms.first() + Family::Arms.size();

/// The number of times that each cell was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen(Vec<u64>);

impl Default for Seen {
    fn default() -> Self {
        Self(vec![0; SIZE as usize])
    }
}

impl Seen {
    /// Counts a cell.
    pub fn add(&mut self, cell: Cell) {
        self.0[cell.0 as usize] += 1;
    }

    /// The number of times that a cell was seen.
    pub fn of(&self, cell: Cell) -> u64 {
        self.0[cell.0 as usize]
    }

    /// The cells that were seen.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        (0..SIZE).map(Cell).filter(|&cell| self.of(cell) > 0)
    }

    /// Adds the counts of other programs.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, count)| *sum += count);
    }

    /// Sets the count of a cell.
    pub fn set(&mut self, cell: Cell, count: u64) {
        self.0[cell.0 as usize] = count;
    }

    /// Counts the arms of a compilation.
    pub fn add_arms(&mut self, counter: &Counter) {
        for (arm, count) in counter.counts() {
            self.0[Family::Arms.cell(arm as u32).0 as usize] += u64::from(count);
        }
    }

    /// Counts the cells of the program after a stage.
    pub fn add_stage(&mut self, stage: Stage, program: ProgramRef<'_>) {
        match (stage, program) {
            (Stage::Schedule, ProgramRef::Ir3(program)) => self.add_program(program, false),
            (Stage::Legalize, ProgramRef::Ir3(program)) => self.add_program(program, true),
            _ => {}
        }
    }

    /// Counts the cells of a compiled program: one in SSA form, or a final one.
    pub fn add_program(&mut self, program: &Program, is_final: bool) {
        let family = if is_final { Family::Final } else { Family::Ssa };
        machine::visit(program, |number| self.add(family.cell(number)));
    }
}

/// Calls a function with each cell of a shader, once for each occurrence.
pub fn of_shader(shader: &Shader, mut visit: impl FnMut(Cell)) {
    let function = &shader.entry;
    for (_, instr) in function.instrs_in_order() {
        match &function.instrs[instr] {
            InstrData::Alu(operation) => alu::visit(function, operation, |number| visit(Family::Alu.cell(number))),
            InstrData::Intrinsic(intrinsic) => {
                intrinsics::visit(function, intrinsic, |number| visit(Family::Intrinsics.cell(number)));
            }
            InstrData::Tex(tex) => textures::visit(function, tex, |number| visit(Family::Textures.cell(number))),
            InstrData::Phi { .. } | InstrData::Const { .. } | InstrData::Undef { .. } | InstrData::Jump(_) => {}
        }
    }
    control::visit(function, |number| visit(Family::Control.cell(number)));
}

#[cfg(test)]
mod tests;
