//! What the reducer tries. One kind of step a file.
//!
//! A [`Kind`] looks at a program and lists steps; a step changes one thing and says whether it could. Steps name what
//! they change by its number, so several of one list can be taken together, and one that is listed can still be taken
//! after others were. A step need not be clever: whether the program got smaller, whether it is valid, and whether it
//! fails as before is decided outside. The changes of a walk, which need not shrink anything, are in `shuffle`.

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

use super::edit::{Edit, View};

/// One change. Gives false where there is nothing to change (any more).
pub(super) trait Step: Send + Sync {
    /// Makes the change.
    fn apply(&self, edit: &mut Edit) -> bool;
}

/// The steps of a list.
pub(super) type Steps = Vec<Box<dyn Step>>;

/// A kind of step.
pub(super) struct Kind {
    /// What to call it.
    pub name: &'static str,
    /// Lists the steps for a program, the most promising first.
    pub list: fn(&View<'_>) -> Steps,
    /// Whether it makes sense to take many steps of a list at once.
    pub together: bool,
}

/// Every kind, in the order in which they are tried: what removes most comes first.
pub(super) static KINDS: &[Kind] = &[
    Kind { name: "forget what is not needed", list: attributes::header, together: true },
    Kind { name: "drop effects", list: drop::effects, together: true },
    Kind { name: "drop control flow", list: control::drop, together: true },
    Kind { name: "flatten control flow", list: control::flatten, together: false },
    Kind { name: "results to zero", list: constants::zero_results, together: true },
    Kind { name: "results to operands", list: operands::forward, together: true },
    Kind { name: "results to earlier values", list: operands::earlier, together: true },
    Kind { name: "results to one", list: constants::one_results, together: true },
    Kind { name: "drop unread values", list: drop::unread, together: true },
    Kind { name: "conditions", list: control::conditions, together: false },
    Kind { name: "drop jumps", list: control::jumps, together: true },
    Kind { name: "operands to constants", list: operands::to_constants, together: true },
    Kind { name: "operands to other values", list: operands::to_values, together: false },
    Kind { name: "results to moves", list: operands::moves, together: true },
    Kind { name: "fewer components", list: vectors::narrow, together: false },
    Kind { name: "stores of one component", list: vectors::scalars, together: true },
    Kind { name: "fewer components written", list: vectors::write_masks, together: true },
    Kind { name: "equal constants", list: constants::unify, together: true },
    Kind { name: "simpler constants", list: constants::simplify, together: true },
    Kind { name: "simpler instructions", list: attributes::instructions, together: true },
    Kind { name: "narrower widths", list: widths::narrow_list, together: false },
];

/// Boxes the steps of a list.
fn boxed<S: Step + 'static>(steps: impl IntoIterator<Item = S>) -> Steps {
    steps.into_iter().map(|step| Box::new(step) as Box<dyn Step>).collect()
}
