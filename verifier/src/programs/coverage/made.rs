//! Which instructions selection makes: those of the programs of one operation that it accepts.
//!
//! A pass replaces operands and joins instructions, and makes hardly an opcode of its own. So what no program of one operation has, before
//! registers are assigned and in the final program, no program has, but for what passes make of several instructions ([`JOINED`]).

use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::ir3::{Opcode, Program, WriteMask};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::accepted::Accepted;
use super::machine::{self, Mark, Property};
use super::{Cell, Family};
use crate::programs::generator::accepted::refusal;

/// Opcodes of control flow, of spilling, and those that passes make of several instructions. Programs of one operation say nothing of them.
pub(super) const JOINED: &[Opcode] = &[
    Opcode::Nop,
    Opcode::Br,
    Opcode::Braa,
    Opcode::Brao,
    Opcode::Bany,
    Opcode::Ball,
    Opcode::Getone,
    Opcode::Getlast,
    Opcode::Shps,
    Opcode::Jump,
    Opcode::Predt,
    Opcode::Predf,
    Opcode::Prede,
    Opcode::Swz,
    Opcode::GetbitB,
    Opcode::Ldp,
    Opcode::Stp,
    Opcode::Phi,
    Opcode::Collect,
    Opcode::TexPrefetch,
];

/// Programs of a cell that are looked at, at most.
const PROGRAMS: usize = 4;

/// The cells of the programs of one operation.
pub(super) struct Made {
    cells: FxHashSet<Cell>,
    /// The sources that are vectors wherever they are, by opcode.
    vectors: FxHashMap<(Opcode, usize), bool>,
}

impl Made {
    /// What a GPU's programs have; found once in a process.
    pub fn of(accepted: &Accepted, target: &Target) -> Arc<Self> {
        static FOUND: OnceLock<Mutex<FxHashMap<&'static str, Arc<Made>>>> = OnceLock::new();
        let mut found = FOUND.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(found.entry(target.name).or_insert_with(|| Arc::new(Self::find(accepted, target))))
    }

    fn find(accepted: &Accepted, target: &Target) -> Self {
        let mut made = Self { cells: FxHashSet::default(), vectors: FxHashMap::default() };
        for family in [Family::Alu, Family::Intrinsics, Family::Textures] {
            for (cell, _) in family.cells() {
                let programs = accepted.programs(family, cell).into_iter().flatten();
                for shader in programs.filter(|shader| refusal(shader, target).is_none()).take(PROGRAMS) {
                    let mut compilation = Compilation::new(&shader, target, &Options::default());
                    while let Some(Ok(step)) = compilation.step() {
                        let has_new = match (step.stage, compilation.program()) {
                            (Stage::Select | Stage::Schedule, ProgramRef::Ir3(program)) => {
                                made.add(program, Family::Ssa)
                            }
                            (Stage::Legalize, ProgramRef::Ir3(program)) => made.add(program, Family::Final),
                            _ => true,
                        };
                        // What is selected alike becomes the same program.
                        if step.stage == Stage::Select && !has_new {
                            break;
                        }
                    }
                }
            }
        }
        made
    }

    /// Adds the cells of a program; returns true if one of them is new.
    fn add(&mut self, program: &Program, family: Family) -> bool {
        let before = self.cells.len();
        machine::visit(program, |number| _ = self.cells.insert(family.cell(number)));
        for (_, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            for (slot, src) in data.srcs.iter().enumerate() {
                let is_vector = self.vectors.entry((data.opcode, slot)).or_insert(true);
                *is_vector &= src.mask != WriteMask::SCALAR;
            }
        }
        self.cells.len() > before
    }

    /// Returns true if a program of one operation has a property. What selection makes and a pass changes counts as well.
    pub fn has(&self, family: Family, opcode: Opcode, property: Property) -> bool {
        let number = machine::number(opcode, property);
        self.cells.contains(&family.cell(number)) || self.cells.contains(&Family::Ssa.cell(number))
    }

    /// Returns true if a program of one operation has the opcode.
    pub fn has_opcode(&self, family: Family, opcode: Opcode) -> bool {
        self.cells.contains(&family.cell(machine::number(opcode, Property::Mark(Mark::Alone))))
    }

    /// Returns true if a source of an opcode is a vector wherever it is.
    pub fn is_vector(&self, opcode: Opcode, slot: usize) -> bool {
        self.vectors.get(&(opcode, slot)).is_some_and(|&is_vector| is_vector)
    }
}
