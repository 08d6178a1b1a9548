//! The steps of the reducer, one kind in each file.
//!
//! A [`StepKind`] lists steps for a program; a step makes one change, if it can. Steps refer to entities by number, so
//! several of one list can be applied together, and a step can be applied after others of its list. A step need not
//! check its result: the search tests if the program got smaller, is valid, and fails as before. The changes of a walk,
//! which need not make the program smaller, are in `shuffle`.

mod attributes;
mod constants;
mod control;
mod drop;
mod operands;
pub(super) mod shuffle;
#[cfg(test)]
mod tests;
mod vectors;
mod widths;

use super::edit::{Edit, ProgramView};
use ir3_compiler::nir::{Instr, Shader};

/// One change of a program.
pub(super) trait ReductionStep: Send + Sync {
    /// Makes the change. Returns false if there is nothing to change (any more).
    fn apply(&self, edit: &mut Edit) -> bool;
}

/// A list of steps.
pub(super) type Steps = Vec<Box<dyn ReductionStep>>;

/// A kind of step.
pub(super) struct StepKind {
    /// Its name.
    pub name: &'static str,
    /// Lists the steps for a program, the most promising first.
    pub list: fn(&ProgramView<'_>) -> Steps,
    /// True if it makes sense to apply many steps of a list at once.
    pub together: bool,
}

/// All kinds, in the order in which they are tried: those that remove most come first.
pub(super) static KINDS: &[StepKind] = &[
    StepKind { name: "drop unneeded attributes", list: attributes::header, together: true },
    StepKind { name: "drop effects", list: drop::effects, together: true },
    StepKind { name: "drop control flow", list: control::drop, together: true },
    StepKind { name: "flatten control flow", list: control::flatten, together: false },
    StepKind { name: "results to zero", list: constants::zero_results, together: true },
    StepKind { name: "results to operands", list: operands::forward, together: true },
    StepKind { name: "results to earlier values", list: operands::earlier, together: true },
    StepKind { name: "results to one", list: constants::one_results, together: true },
    StepKind { name: "drop unread values", list: drop::unread, together: true },
    StepKind { name: "conditions", list: control::conditions, together: false },
    StepKind { name: "drop jumps", list: control::jumps, together: true },
    StepKind { name: "operands to constants", list: operands::to_constants, together: true },
    StepKind { name: "operands to other values", list: operands::to_values, together: false },
    StepKind { name: "results to moves", list: operands::moves, together: true },
    StepKind { name: "fewer components", list: vectors::narrow, together: false },
    StepKind { name: "stores of one component", list: vectors::scalars, together: true },
    StepKind { name: "fewer components written", list: vectors::write_masks, together: true },
    StepKind { name: "equal constants", list: constants::unify, together: true },
    StepKind { name: "simpler constants", list: constants::simplify, together: true },
    StepKind { name: "simpler instructions", list: attributes::instructions, together: true },
    StepKind { name: "narrower widths", list: widths::narrow_list, together: false },
];

/// The steps that drop effects, each with its instruction.
pub(super) fn effects_of(shader: &Shader) -> Vec<(Instr, Box<dyn ReductionStep>)> {
    drop::effects_of(&ProgramView::new(shader))
}

/// Boxes the steps of a list.
fn boxed<S: ReductionStep + 'static>(steps: impl IntoIterator<Item = S>) -> Steps {
    steps.into_iter().map(|step| Box::new(step) as Box<dyn ReductionStep>).collect()
}
