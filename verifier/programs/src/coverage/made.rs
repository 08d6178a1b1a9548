//! The instructions that selection emits, in programs of one operation that it accepts.
//!
//! A pass replaces operands and joins instructions, and rarely introduces an opcode of its own. So a cell that no
//! program of one operation has, after selection or in the final program, no program has, except for branches and the
//! opcodes into which passes join several instructions ([`is_covered`]).

use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::ir3::{Opcode, Program, SrcOperand, WriteMask};
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{Feature, Options, Stage};
use ir3_compiler::stats::BRANCHES;
use ir3_compiler::target::Target;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::accepted::{Accepted, every_texture};
use super::machine::{self, Mark, Property};
use super::{Cell, Family};
use crate::generator::accepted::refusal;

/// Opcodes of spilling, and those into which passes combine several instructions. Programs of one operation do not
/// cover them, nor branches.
const JOINED: &[Opcode] = &[
    Opcode::Nop,
    Opcode::Swz,
    Opcode::GetbitB,
    Opcode::Ldp,
    Opcode::Stp,
    Opcode::Fence,
    Opcode::Phi,
    Opcode::Collect,
    Opcode::TexPrefetch,
];

/// Returns true if programs of one operation cover an opcode.
pub(super) fn is_covered(opcode: Opcode) -> bool {
    !JOINED.contains(&opcode) && !BRANCHES.contains(&opcode)
}

/// The opcodes that have the operands of an opcode: those of its family, and in a final program the one that a pass
/// replaces by it.
fn alike(family: Family, opcode: Opcode, property: Property) -> impl Iterator<Item = Opcode> {
    let base = move |opcode: Opcode| {
        match opcode.family() {
            name if name.starts_with("gather4") => "gather4",
            // A fetch of a level has coordinates of its own.
            name if name.starts_with("isam") && !matches!(property, Property::Source(..)) => "isam",
            "getbuf" | "getinfo" => "getsize",
            name => name,
        }
    };
    Opcode::ALL.into_iter().filter(move |&other| base(other) == base(opcode)).chain(replaced(family, opcode))
}

/// The opcode that `lower-samgq` replaces by another one.
fn replaced(family: Family, opcode: Opcode) -> Option<Opcode> {
    let is_part = matches!(opcode, Opcode::Samgp0 | Opcode::Samgp1 | Opcode::Samgp2 | Opcode::Samgp3);
    (family == Family::Final && is_part).then_some(Opcode::Samgq)
}

/// Programs of a cell that are looked at, at most: all shapes of an intrinsic in one stage.
const PROGRAMS: usize = 20;

/// The cells of the programs of one operation.
pub(super) struct Made {
    cells: FxHashSet<Cell>,
    /// The sources that are vectors if they are registers, by opcode.
    vectors: FxHashMap<(Opcode, usize), bool>,
}

impl Made {
    /// The cells of a GPU's programs; computed once in a process.
    pub fn of(accepted: &Accepted, target: &Target) -> Arc<Self> {
        static FOUND: OnceLock<Mutex<FxHashMap<&'static str, Arc<Made>>>> = OnceLock::new();
        let mut found = FOUND.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(found.entry(target.name).or_insert_with(|| Arc::new(Self::find(accepted, target))))
    }

    fn find(accepted: &Accepted, target: &Target) -> Self {
        let mut made = Self { cells: FxHashSet::default(), vectors: FxHashMap::default() };
        let is_accepted = |shader: &Shader| refusal(shader, target).is_none();
        for family in [Family::Alu, Family::Intrinsics, Family::Textures] {
            for (cell, _) in family.cells() {
                let programs = accepted.programs(family, cell).into_iter().flatten();
                programs.filter(is_accepted).take(PROGRAMS).for_each(|shader| made.compile(&shader, target));
            }
        }
        every_texture().filter(is_accepted).for_each(|shader| made.compile(&shader, target));
        made
    }

    /// Adds the cells of a program after selection, before registers are assigned, and of the final one.
    fn compile(&mut self, shader: &Shader, target: &Target) {
        // Nobody reads the result.
        let options = Options::default().without(Feature::DeadCode);
        let mut compilation = Compilation::new(shader, target, &options);
        while let Some(Ok(step)) = compilation.step() {
            let has_new = match (step.stage, compilation.program()) {
                (Stage::Select | Stage::Schedule, ProgramRef::Ir3(program)) => self.add(program, Family::Ssa),
                (Stage::Legalize, ProgramRef::Ir3(program)) => self.add(program, Family::Final),
                _ => true,
            };
            // Programs that are selected alike are equal from here on.
            if step.stage == Stage::Select && !has_new {
                break;
            }
        }
    }

    /// Adds the cells of a program; returns true if one of them is new.
    fn add(&mut self, program: &Program, family: Family) -> bool {
        let before = self.cells.len();
        machine::visit(program, |number| _ = self.cells.insert(family.cell(number)));
        for (_, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            let registers = data.srcs.iter().enumerate().filter(|(_, src)| matches!(src.operand, SrcOperand::Place(_)));
            for (slot, src) in registers {
                let is_vector = self.vectors.entry((data.opcode, slot)).or_insert(true);
                *is_vector &= src.mask != WriteMask::SCALAR;
            }
        }
        self.cells.len() > before
    }

    /// Returns true if a program of one operation has a property, of the opcode or of one that is alike. Selected
    /// opcodes may be in a final program as well.
    pub fn has(&self, family: Family, opcode: Opcode, property: Property) -> bool {
        alike(family, opcode, property).any(|opcode| self.has_cell(family, opcode, property))
    }

    /// Returns true if a program of one operation has the opcode.
    pub fn has_opcode(&self, family: Family, opcode: Opcode) -> bool {
        let has = |opcode| self.has_cell(family, opcode, Property::Mark(Mark::Alone));
        has(opcode) || replaced(family, opcode).is_some_and(has)
    }

    fn has_cell(&self, family: Family, opcode: Opcode, property: Property) -> bool {
        let number = machine::number(opcode, property);
        self.cells.contains(&family.cell(number)) || self.cells.contains(&Family::Ssa.cell(number))
    }

    /// Returns true if a source of an opcode is a vector when it is a register.
    pub fn is_vector(&self, opcode: Opcode, slot: usize) -> bool {
        self.vectors.get(&(opcode, slot)).is_some_and(|&is_vector| is_vector)
    }
}
