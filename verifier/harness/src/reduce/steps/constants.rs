//! Steps that replace results by constants, and simplify constants.

use cranelift_entity::SecondaryMap;
use ir3_compiler::nir::{Def, Instr, InstrData, IntrinsicOp};
use smallvec::SmallVec;

use super::{ReductionStep, Steps, boxed};
use crate::reduce::edit::{Edit, ProgramView, ValueShape};

/// Replaces a value by a constant.
struct ToConstant {
    def: Def,
    value: u64,
}

impl ReductionStep for ToConstant {
    fn apply(&self, edit: &mut Edit) -> bool {
        if edit.definer(self.def).is_none() {
            return false;
        }
        let constant = edit.splat(edit.shape(self.def), self.value);
        if constant == self.def {
            return false;
        }
        edit.replace_uses(self.def, constant);
        true
    }
}

/// The values other than constants, the last first: when a late value is replaced, its operands may become dead.
fn results(view: &ProgramView<'_>) -> impl Iterator<Item = Def> {
    let instrs = &view.function().instrs;
    let defs: Vec<Def> = (view.defs())
        .filter(|&(place, _)| match &instrs[view.order[place].1] {
            InstrData::Const { .. } => false,
            InstrData::Intrinsic(intrinsic) => intrinsic.op != IntrinsicOp::DeclReg,
            _ => true,
        })
        .map(|(_, def)| def)
        .collect();
    defs.into_iter().rev()
}

/// Replaces results by 0 (or false).
pub(super) fn zero_results(view: &ProgramView<'_>) -> Steps {
    boxed(results(view).map(|def| ToConstant { def, value: 0 }))
}

/// 1.0, if there are floats of that width.
pub(super) fn one(bits: u8) -> Option<u64> {
    match bits {
        16 => Some(0x3c00),
        32 => Some(0x3f80_0000),
        64 => Some(0x3ff0_0000_0000_0000),
        _ => None,
    }
}

/// Replaces results by 1 (or true), or 1.0.
pub(super) fn one_results(view: &ProgramView<'_>) -> Steps {
    let defs: Vec<Def> = results(view).collect();
    let ones = defs.iter().map(|&def| ToConstant { def, value: 1 });
    let floats =
        defs.iter().filter_map(|&def| Some(ToConstant { def, value: one(view.function().defs[def].bit_size)? }));
    boxed(ones.chain(floats))
}

/// Replaces a constant by an equal one at the start of the program.
struct Unify(Def);

impl ReductionStep for Unify {
    fn apply(&self, edit: &mut Edit) -> bool {
        let Some(instr) = edit.definer(self.0) else { return false };
        let InstrData::Const { values, .. } = edit.function().instrs[instr].clone() else { return false };
        let constant = edit.constant(edit.shape(self.0), &values);
        if constant == self.0 {
            return false;
        }
        edit.replace_uses(self.0, constant);
        edit.remove(instr);
        true
    }
}

/// Unifies equal constants.
pub(super) fn unify(view: &ProgramView<'_>) -> Steps {
    boxed(constants(view).map(|(_, def, _)| Unify(def)))
}

fn constants<'a>(view: &'a ProgramView<'_>) -> impl Iterator<Item = (Instr, Def, &'a SmallVec<[u64; 4]>)> {
    let function = view.function();
    view.order.iter().filter_map(|&(_, instr)| match &function.instrs[instr] {
        InstrData::Const { def, values } => Some((instr, *def, values)),
        _ => None,
    })
}

/// Replaces one component of a constant, or all.
struct SetValue {
    instr: Instr,
    component: Option<usize>,
    value: u64,
}

impl ReductionStep for SetValue {
    fn apply(&self, edit: &mut Edit) -> bool {
        if !edit.is_placed(self.instr) {
            return false;
        }
        let InstrData::Const { values, .. } = &mut edit.function_mut().instrs[self.instr] else { return false };
        let before = values.clone();
        match self.component {
            Some(component) => values[component] = self.value,
            None => values.fill(self.value),
        }
        *values != before
    }
}

/// Replaces constants by simpler ones.
pub(super) fn simplify(view: &ProgramView<'_>) -> Steps {
    let mut used = SecondaryMap::<Def, bool>::new();
    for &(_, instr) in &view.order {
        view.function().instrs[instr].for_each_src(|def| used[def] = true);
    }
    let mut steps = Vec::new();
    for (instr, def, values) in constants(view) {
        let shape = view.shape(def);
        if shape.components > 1 {
            steps.extend(simpler(shape, u64::MAX).map(|value| SetValue { instr, component: None, value }));
        }
        for (component, &value) in values.iter().enumerate() {
            steps.extend(simpler(shape, value).map(|value| SetValue { instr, component: Some(component), value }));
        }
    }
    boxed(steps)
}

/// Simpler values than `value`.
fn simpler(shape: ValueShape, value: u64) -> impl Iterator<Item = u64> {
    let top = 1u64.checked_shl(63 - value.max(1).leading_zeros()).unwrap_or(1);
    let upper = value & (shape.mask() << (shape.bits / 2));
    let candidates: SmallVec<[u64; 8]> = if value == 0 {
        SmallVec::new()
    } else {
        [Some(0), Some(1), one(shape.bits), Some(top), Some(value - top), Some(upper), Some(value >> 1)]
            .into_iter()
            .flatten()
            .map(|new| new & shape.mask())
            .filter(|&new| new != value)
            .collect()
    };
    candidates.into_iter()
}
