//! Planted bugs: tests of whether the tool finds a miscompilation and reduces it well.
//!
//! A [`PlantedBug`] changes the program after one stage, by the same rule in every program, as if the stage itself had
//! the bug. `--plant NAME` adds one to the backend of `fuzz`, `verify`, `reduce` and `compile`. The compiler does not
//! depend on it, and nothing else changes: a planted bug is found in the same way as any other.
//!
//! Thirteen are of ir3 programs, of different kinds: in the instructions (`ssa`) of a program in SSA form, in its
//! registers and copies (`registers`). Eight more are of the stages between selection and words ([`STAGES`]). Others
//! are of the programs for Gen7, vec4 ([`vec4`]) and scalar ([`scalar`]). `ci/planted-bugs` prints how soon each is
//! found, and how large the reduced program is.

mod liveness;
mod registers;
pub mod rules;
pub mod scalar;
mod ssa;
mod stages;
pub mod vec4;

pub use stages::STAGES;

use std::fmt;
use std::sync::Arc;

use ir3_compiler::compilation::{Compilation, ProgramMut, compile_vec4_with};
use ir3_compiler::i965::vec4 as gen7;
use ir3_compiler::pipeline::{Change, CompileError, Options, Stage};
use ir3_compiler::target::Target;
use ir3_compiler::{ir3, nir};

/// A planted change of the program after a stage. Implemented for functions of the stage and an ir3 program, which do
/// not change vec4 programs.
pub trait PlantedChange {
    /// Changes an ir3 program.
    fn ir3(&mut self, stage: Stage, program: &mut ir3::Program);

    /// Changes a program for Gen7.
    fn gen7(&mut self, stage: Stage, program: &mut gen7::Program) {
        let _ = (stage, program);
    }
}

impl<F: FnMut(Stage, &mut ir3::Program)> PlantedChange for F {
    fn ir3(&mut self, stage: Stage, program: &mut ir3::Program) {
        self(stage, program);
    }
}

/// A change of an ir3 program after a stage.
type Ir3Change = dyn Fn(Stage, &mut ir3::Program) + Send + Sync;

/// A planted bug that threads can share.
#[derive(Clone)]
pub enum SharedPlantedBug {
    /// One by its name.
    Named(&'static PlantedBug),
    /// A change of ir3 programs.
    Ir3(Arc<Ir3Change>),
}

impl PlantedChange for SharedPlantedBug {
    fn ir3(&mut self, stage: Stage, program: &mut ir3::Program) {
        match self {
            Self::Named(bug) => bug.apply(stage, program),
            Self::Ir3(change) => change(stage, program),
        }
    }

    fn gen7(&mut self, stage: Stage, program: &mut gen7::Program) {
        if let Self::Named(bug) = self {
            bug.apply_gen7(stage, program);
        }
    }
}

/// The change of a bug, by the language of its programs.
#[derive(Clone, Copy)]
enum BugChange {
    Ir3(fn(&mut ir3::Program)),
    Gen7(fn(&mut gen7::Program)),
}

/// A planted bug.
#[derive(Clone, Copy)]
pub struct PlantedBug {
    /// Its name on the command line.
    pub name: &'static str,
    /// The stage whose result it changes.
    pub stage: Stage,
    /// The rule: the change, and the programs that it applies to.
    pub description: &'static str,
    /// Changes a program as the stage returned it.
    change: BugChange,
}

impl PlantedBug {
    /// Changes the program, if `stage` is the stage of the bug.
    pub fn apply(&self, stage: Stage, program: &mut ir3::Program) {
        if let BugChange::Ir3(change) = self.change
            && stage == self.stage
        {
            change(program);
        }
    }

    /// Changes a program for Gen7, if `stage` is the stage of the bug. Returns true if it has changed something.
    pub fn apply_gen7(&self, stage: Stage, program: &mut gen7::Program) -> bool {
        let BugChange::Gen7(change) = self.change else { return false };
        if stage != self.stage {
            return false;
        }
        let before = program.clone();
        change(program);
        *program != before
    }

    /// The bug as a change, for a `Checker` (`ir3_harness::check`).
    pub fn change(&'static self) -> SharedPlantedBug {
        SharedPlantedBug::Named(self)
    }

    /// The bug in a form that several threads can share.
    pub fn shared(&'static self) -> SharedPlantedBug {
        SharedPlantedBug::Named(self)
    }
}

impl fmt::Debug for PlantedBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for PlantedBug {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PlantedBug {}

/// All planted bugs, of all languages.
pub fn every() -> impl Iterator<Item = &'static PlantedBug> {
    ALL.iter().chain(&STAGES).chain(&STOPPED).chain(&vec4::ALL).chain(&vec4::SELECTION).chain(&scalar::ALL)
}

/// All planted bugs of ir3 programs.
pub static ALL: [PlantedBug; 13] = [
    PlantedBug {
        name: "wrong-condition",
        stage: Stage::Select,
        description: "every `lt` is selected as `le`",
        change: BugChange::Ir3(ssa::wrong_condition),
    },
    PlantedBug {
        name: "dropped-copy",
        stage: Stage::LowerCopies,
        description: "the last copy from register to register in each block is dropped",
        change: BugChange::Ir3(registers::dropped_copy),
    },
    PlantedBug {
        name: "copy-cycle",
        stage: Stage::LowerCopies,
        description: "two registers that change places are copied one after the other: the second copy reads what the \
                      first has written",
        change: BugChange::Ir3(registers::copy_cycle),
    },
    PlantedBug {
        name: "wrong-component",
        stage: Stage::Select,
        description: "an instruction that extracts a component of a vector extracts the one before it",
        change: BugChange::Ir3(ssa::wrong_component),
    },
    PlantedBug {
        name: "live-range",
        stage: Stage::RegisterAllocation,
        description: "a live range ends with its block: a later block puts a value into a register that still holds \
                      another one",
        change: BugChange::Ir3(registers::live_range),
    },
    PlantedBug {
        name: "shared-array",
        stage: Stage::RegisterAllocation,
        description: "a value is put into a register of an array whose elements are read later",
        change: BugChange::Ir3(registers::shared_array),
    },
    PlantedBug {
        name: "wrong-phi",
        stage: Stage::Select,
        description: "the phis after an if take their operands from the wrong predecessors",
        change: BugChange::Ir3(ssa::wrong_phi),
    },
    PlantedBug {
        name: "half-overlap",
        stage: Stage::RegisterAllocation,
        description: "a half register is one half of a full register that still holds a value",
        change: BugChange::Ir3(registers::half_overlap),
    },
    PlantedBug {
        name: "wrong-constant",
        stage: Stage::Select,
        description: "constants of more than 16 bits lose their upper half",
        change: BugChange::Ir3(ssa::wrong_constant),
    },
    PlantedBug {
        name: "inverted-branch",
        stage: Stage::CopyPropagation,
        description: "branches are taken where they should not be",
        change: BugChange::Ir3(ssa::inverted_branch),
    },
    PlantedBug {
        name: "lost-store",
        stage: Stage::DeadCode,
        description: "of the stores of one kind in a block only the last is left, as if they all had one address",
        change: BugChange::Ir3(ssa::dropped_store),
    },
    PlantedBug {
        name: "store-over-load",
        stage: Stage::DeadCode,
        description: "a store is moved after the next load from the same kind of memory",
        change: BugChange::Ir3(ssa::store_over_load),
    },
    PlantedBug {
        name: "crash",
        stage: Stage::CopyPropagation,
        description: "a vector of four components panics: the table has three entries",
        change: BugChange::Ir3(ssa::crash),
    },
];

/// Planted bugs with which the compiler has to be stopped: only a process that is guarded survives them.
pub static STOPPED: [PlantedBug; 2] = [
    PlantedBug {
        name: "endless-loop",
        stage: Stage::CopyPropagation,
        description: "a vector of four components is looked at again and again",
        change: BugChange::Ir3(ssa::endless_loop),
    },
    PlantedBug {
        name: "allocation-explosion",
        stage: Stage::Schedule,
        description: "a list doubles for ever where a program has a phi",
        change: BugChange::Ir3(ssa::allocation_explosion),
    },
];

/// Returns the bug of a name.
pub fn by_name(name: &str) -> Option<&'static PlantedBug> {
    every().find(|plant| plant.name == name)
}

/// Compiles a shader, with a planted bug after one of the stages.
///
/// # Errors
/// If the compiler refuses the program.
pub fn compile(
    shader: &nir::Shader,
    target: &Target,
    options: &Options,
    plant: Option<&PlantedBug>,
) -> Result<ir3::Program, CompileError> {
    let mut hook = |stage, program: ProgramMut<'_, '_>| match (plant, program) {
        (Some(plant), ProgramMut::Ir3(program)) => {
            plant.apply(stage, program);
            Change::Something
        }
        _ => Change::Nothing,
    };
    let options = Options { last: options.last.max(Stage::Select), ..*options };
    let program = Compilation::new(shader, target, &options).with_hook(Some(&mut hook)).finish()?;
    Ok(program.unwrap_or_else(|| unreachable!("selection is among the stages")))
}

/// Compiles a shader for Gen7, with a planted bug.
///
/// # Errors
/// If the compiler refuses the program.
pub fn compile_gen7(
    shader: &nir::Shader,
    target: &Target,
    options: &Options,
    plant: Option<&PlantedBug>,
) -> Result<gen7::Program, CompileError> {
    let mut hook = |stage, program: ProgramMut<'_, '_>| match (plant, program) {
        (Some(plant), ProgramMut::Vec4(program)) => {
            if plant.apply_gen7(stage, program) {
                Change::Something
            } else {
                Change::Nothing
            }
        }
        _ => Change::Nothing,
    };
    compile_vec4_with(shader, target, options, Some(&mut hook))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for plant in &ALL {
            assert_eq!(by_name(plant.name), Some(plant));
        }
        assert_eq!(by_name("none"), None);
    }
}
