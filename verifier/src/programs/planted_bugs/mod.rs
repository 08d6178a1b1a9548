//! Planted bugs: tests of whether the tool finds a miscompilation and reduces it well.
//!
//! A [`PlantedBug`] changes the program after one stage, by the same rule in every program, as if the stage itself had the
//! bug. `--plant NAME` adds one to the backend of `fuzz`, `verify`, `reduce` and `compile`. The compiler does not
//! depend on it, and nothing else changes: a planted bug is found in the same way as any other.
//!
//! There are thirteen, of different kinds: in the instructions (`ssa`) of a program in SSA form, in its registers and
//! copies (`registers`). `ci/planted-bugs` prints how soon each is found, and how large the reduced program is.

mod liveness;
mod registers;
pub mod rules;
mod ssa;
#[cfg(test)]
mod tests;
pub mod vec4;

use std::fmt;
use std::sync::Arc;

use ir3_compiler::compilation::{Compilation, ProgramMut};
use ir3_compiler::pipeline::{Change, CompileError, Options, Stage};
use ir3_compiler::target::Target;
use ir3_compiler::{ir3, nir};

/// A planted bug as a function of the stage and the program after it.
pub type SharedPlantedBug = Arc<dyn Fn(Stage, &mut ir3::Program) + Send + Sync>;

/// A planted bug.
#[derive(Clone, Copy)]
pub struct PlantedBug {
    /// Its name on the command line.
    pub name: &'static str,
    /// The stage whose result it changes.
    pub stage: Stage,
    /// The rule: what it changes in which programs.
    pub description: &'static str,
    /// Changes a program as the stage returned it.
    change: fn(&mut ir3::Program),
}

impl PlantedBug {
    /// Changes the program, if `stage` is the stage of the bug.
    pub fn apply(&self, stage: Stage, program: &mut ir3::Program) {
        if stage == self.stage {
            (self.change)(program);
        }
    }

    /// The bug as a function, for a [`Checker`](crate::harness::check::Checker).
    pub fn change(&'static self) -> impl FnMut(Stage, &mut ir3::Program) {
        |stage, program| self.apply(stage, program)
    }

    /// The bug as a function that threads can share.
    pub fn shared(&'static self) -> SharedPlantedBug {
        Arc::new(|stage, program| self.apply(stage, program))
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

/// All planted bugs.
pub static ALL: [PlantedBug; 13] = [
    PlantedBug {
        name: "wrong-condition",
        stage: Stage::Select,
        description: "every `lt` is selected as `le`",
        change: ssa::wrong_condition,
    },
    PlantedBug {
        name: "dropped-copy",
        stage: Stage::LowerCopies,
        description: "the last copy from register to register in each block is lost",
        change: registers::dropped_copy,
    },
    PlantedBug {
        name: "copy-cycle",
        stage: Stage::LowerCopies,
        description: "two registers that change places are copied one after the other: the second copy reads what the \
                      first has written",
        change: registers::copy_cycle,
    },
    PlantedBug {
        name: "wrong-component",
        stage: Stage::Select,
        description: "what takes a component out of a vector takes the one before it",
        change: ssa::wrong_component,
    },
    PlantedBug {
        name: "live-range",
        stage: Stage::RegisterAllocation,
        description: "a live range ends with its block: a later block puts a value into a register that still holds \
                      another one",
        change: registers::live_range,
    },
    PlantedBug {
        name: "shared-array",
        stage: Stage::RegisterAllocation,
        description: "a value is put into a register of an array whose elements are read later",
        change: registers::shared_array,
    },
    PlantedBug {
        name: "wrong-phi",
        stage: Stage::Select,
        description: "the phis after an if take their operands from the wrong predecessors",
        change: ssa::wrong_phi,
    },
    PlantedBug {
        name: "half-overlap",
        stage: Stage::RegisterAllocation,
        description: "a half register is one half of a full register that still holds a value",
        change: registers::half_overlap,
    },
    PlantedBug {
        name: "wrong-constant",
        stage: Stage::Select,
        description: "constants of more than 16 bits lose their upper half",
        change: ssa::wrong_constant,
    },
    PlantedBug {
        name: "inverted-branch",
        stage: Stage::CopyPropagation,
        description: "branches are taken where they should not be",
        change: ssa::inverted_branch,
    },
    PlantedBug {
        name: "lost-store",
        stage: Stage::DeadCode,
        description: "of the stores of one kind in a block only the last is left, as if they all had one address",
        change: ssa::lost_store,
    },
    PlantedBug {
        name: "store-over-load",
        stage: Stage::DeadCode,
        description: "a store is moved after the next load from the same kind of memory",
        change: ssa::store_over_load,
    },
    PlantedBug {
        name: "crash",
        stage: Stage::CopyPropagation,
        description: "a vector of four components panics: there is room for three",
        change: ssa::crash,
    },
];

/// Returns the bug of a name.
pub fn by_name(name: &str) -> Option<&'static PlantedBug> {
    ALL.iter().find(|plant| plant.name == name)
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
