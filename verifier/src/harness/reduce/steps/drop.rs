//! Whole instructions go.

use ir3_compiler::nir::{Instr, InstrData};

use super::{Step, Steps, boxed};
use crate::harness::reduce::edit::{Edit, View, has_effect};

/// Take an instruction out; what reads its result reads 0.
struct Drop(Instr);

impl Step for Drop {
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

/// Outputs, stores, atomics, barriers, kills.
pub(super) fn effects(view: &View<'_>) -> Steps {
    let instrs = &view.function().instrs;
    let effect = |data: &InstrData| has_effect(data) && !matches!(data, InstrData::Jump(_));
    boxed(view.order.iter().filter(|(_, i)| effect(&instrs[*i])).map(|&(_, i)| Drop(i)))
}

/// What nobody reads: there is some only where removing all of it at once makes the failure go away.
pub(super) fn unread(view: &View<'_>) -> Steps {
    let function = view.function();
    let mut read = cranelift_entity::SecondaryMap::<_, bool>::new();
    for &(_, instr) in &view.order {
        function.instrs[instr].for_each_src(|def| read[def] = true);
    }
    crate::harness::reduce::edit::for_each_condition_of(&function.body, &mut |def| read[def] = true);
    let unread = |instr: Instr| {
        let data = &function.instrs[instr];
        !has_effect(data) && data.def().is_some_and(|def| !read[def])
    };
    boxed(view.order.iter().filter(|(_, i)| unread(*i)).map(|&(_, i)| Drop(i)))
}
