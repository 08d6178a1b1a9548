//! Steps that drop single instructions.

use ir3_compiler::nir::{Instr, InstrData};

use super::{ReductionStep, Steps, boxed};
use crate::reduce::edit::{Edit, ProgramView, has_effect};

/// Drops an instruction; uses of its result read 0.
struct Drop(Instr);

impl ReductionStep for Drop {
    fn apply(&self, edit: &mut Edit) -> bool {
        let Some(data) = edit.get(self.0) else { return false };
        if let Some(def) = data.def() {
            let zero = edit.splat(edit.shape(def), 0);
            edit.replace_uses(def, zero);
        }
        edit.remove(self.0);
        true
    }
}

/// Drops outputs, stores, atomics, barriers, kills.
pub(super) fn effects(view: &ProgramView<'_>) -> Steps {
    effects_of(view).into_iter().map(|(_, step)| step).collect()
}

/// The effects, each with its instruction.
pub(super) fn effects_of(view: &ProgramView<'_>) -> Vec<(Instr, Box<dyn ReductionStep>)> {
    let instrs = &view.function().instrs;
    let effect = |data: &InstrData| has_effect(data) && !matches!(data, InstrData::Jump(_));
    let effects = view.order.iter().map(|&(_, i)| i).filter(|&i| effect(&instrs[i]));
    effects.map(|i| (i, Box::new(Drop(i)) as Box<dyn ReductionStep>)).collect()
}

/// Drops dead instructions. There are some only if the failure disappears when all of them are removed at once.
pub(super) fn unread(view: &ProgramView<'_>) -> Steps {
    let function = view.function();
    let mut read = cranelift_entity::SecondaryMap::<_, bool>::new();
    for &(_, instr) in &view.order {
        function.instrs[instr].for_each_src(|def| read[def] = true);
    }
    crate::reduce::edit::for_each_condition_of(&function.body, &mut |def| read[def] = true);
    let unread = |instr: Instr| {
        let data = &function.instrs[instr];
        !has_effect(data) && data.def().is_some_and(|def| !read[def])
    };
    boxed(view.order.iter().filter(|(_, i)| unread(*i)).map(|&(_, i)| Drop(i)))
}
