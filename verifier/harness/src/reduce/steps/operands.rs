//! Steps that replace values by other values.

use ir3_compiler::nir::{AluSrc, Block, Def, Instr, InstrData, IntrinsicOp, Op};
use smallvec::SmallVec;

use super::{ReductionStep, Steps, boxed};
use crate::reduce::edit::{Edit, ProgramView, ValueShape};

/// Replaces the result of an arithmetic instruction by one of its operands.
struct Forward {
    instr: Instr,
    operand: usize,
}

impl ReductionStep for Forward {
    fn apply(&self, edit: &mut Edit) -> bool {
        let Some(InstrData::Alu(alu)) = edit.get(self.instr) else { return false };
        let (def, src) = (alu.def, alu.srcs[self.operand]);
        edit.replace_uses_swizzled(def, &src)
    }
}

/// Replaces a value by another one with the same components and width.
struct Replace {
    def: Def,
    with: Def,
}

impl ReductionStep for Replace {
    fn apply(&self, edit: &mut Edit) -> bool {
        if edit.definer(self.def).is_none() || edit.definer(self.with).is_none() {
            return false;
        }
        edit.replace_uses(self.def, self.with);
        true
    }
}

/// Returns true if another value can replace the result of an instruction.
fn replaceable(data: &InstrData) -> bool {
    match data {
        InstrData::Intrinsic(intrinsic) => intrinsic.op != IntrinsicOp::DeclReg,
        InstrData::Const { .. } => false,
        _ => true,
    }
}

/// Replaces results by one of their operands, the last results first.
pub(super) fn forward(view: &ProgramView<'_>) -> Steps {
    let mut steps = Steps::new();
    for (place, def) in view.defs().collect::<Vec<_>>().into_iter().rev() {
        let instr = view.order[place].1;
        let data = &view.function().instrs[instr];
        if let InstrData::Alu(alu) = data {
            let info = alu.op.info();
            for (operand, src) in alu.srcs.iter().enumerate() {
                let components = info.source_components(operand, view.shape(def).components);
                let enough = components >= view.shape(def).components;
                if enough && view.shape(src.def).bits == view.shape(def).bits {
                    steps.push(Box::new(Forward { instr, operand }));
                }
            }
        } else if replaceable(data) {
            let mut seen = SmallVec::<[Def; 4]>::new();
            data.for_each_src(|src| {
                let fits = view.shape(src) == view.shape(def) && src != def && !seen.contains(&src);
                if fits && view.available(src, place) {
                    seen.push(src);
                }
            });
            steps.extend(boxed(seen.into_iter().map(|with| Replace { def, with })));
        }
    }
    steps
}

/// The first and the last value with these components and width that dominate `place` and are not constants.
fn others(view: &ProgramView<'_>, place: usize, shape: ValueShape) -> SmallVec<[Def; 2]> {
    let fits = |&(_, def): &(usize, Def)| {
        view.shape(def) == shape
            && replaceable(&view.function().instrs[view.function().defs[def].instr])
            && view.available(def, place)
    };
    let before: Vec<(usize, Def)> = view.defs().take_while(|&(at, _)| at < place).filter(fits).collect();
    let mut found: SmallVec<[Def; 2]> = before.first().map(|&(_, def)| def).into_iter().collect();
    found.extend(before.last().map(|&(_, def)| def).filter(|def| !found.contains(def)));
    found
}

/// Replaces results by earlier values.
pub(super) fn earlier(view: &ProgramView<'_>) -> Steps {
    let mut steps = Vec::new();
    for (place, def) in view.defs().collect::<Vec<_>>().into_iter().rev() {
        if replaceable(&view.function().instrs[view.order[place].1]) {
            steps.extend(others(view, place, view.shape(def)).into_iter().map(|with| Replace { def, with }));
        }
    }
    boxed(steps)
}

/// The new operand.
#[derive(Clone, Copy)]
enum NewOperand {
    Constant(u64),
    Value(Def),
}

/// Replaces one operand of one instruction.
struct SetOperand {
    instr: Instr,
    index: usize,
    new: NewOperand,
}

impl ReductionStep for SetOperand {
    fn apply(&self, edit: &mut Edit) -> bool {
        let Some(data) = edit.get(self.instr) else { return false };
        let mut sources = SmallVec::<[Def; 4]>::new();
        data.for_each_src(|src| sources.push(src));
        let Some(&old) = sources.get(self.index) else { return false };
        let arithmetic = matches!(data, InstrData::Alu(_));
        let new = match self.new {
            NewOperand::Value(def) if edit.definer(def).is_some() => def,
            NewOperand::Value(_) => return false,
            NewOperand::Constant(value) => {
                let shape = edit.shape(old);
                // Arithmetic can read one component several times.
                let components = if arithmetic { 1 } else { shape.components };
                edit.splat(ValueShape { components, ..shape }, value)
            }
        };
        if new == old {
            return false;
        }
        let scalar = edit.shape(new).components == 1;
        match &mut edit.function_mut().instrs[self.instr] {
            InstrData::Alu(alu) if scalar => alu.srcs[self.index] = AluSrc { def: new, swizzle: [0; 16] },
            data => {
                let mut at = 0;
                data.for_each_src_mut(|src| {
                    if at == self.index {
                        *src = new;
                    }
                    at += 1;
                });
            }
        }
        true
    }
}

/// Visits each operand that can be replaced: its instruction, position and index, and the value.
fn each_operand(view: &ProgramView<'_>, mut visit: impl FnMut(Instr, usize, usize, Def)) {
    for (place, &(_, instr)) in view.order.iter().enumerate().rev() {
        let mut index = 0;
        view.function().instrs[instr].for_each_src(|src| {
            let definer = &view.function().instrs[view.function().defs[src].instr];
            let declared = matches!(definer, InstrData::Intrinsic(i) if i.op == IntrinsicOp::DeclReg);
            if !declared {
                visit(instr, place, index, src);
            }
            index += 1;
        });
    }
}

/// Replaces operands by 0 or 1.
pub(super) fn to_constants(view: &ProgramView<'_>) -> Steps {
    let mut steps = Vec::new();
    for value in [0, 1] {
        each_operand(view, |instr, _, index, src| {
            if view.function().as_const(src).is_none() {
                steps.push(SetOperand { instr, index, new: NewOperand::Constant(value) });
            }
        });
    }
    boxed(steps)
}

/// Replaces operands by an operand of their own definition, by another operand of the same instruction, or by an early
/// value.
pub(super) fn to_values(view: &ProgramView<'_>) -> Steps {
    let function = view.function();
    let mut steps = Vec::new();
    each_operand(view, |instr, place, index, src| {
        let mut found = SmallVec::<[Def; 8]>::new();
        let shape = view.shape(src);
        let pred: Option<Block> = match &function.instrs[instr] {
            InstrData::Phi { srcs, .. } => srcs.get(index).map(|&(pred, _)| pred),
            _ => None,
        };
        let mut consider = |def: Def| {
            let available = match pred {
                Some(pred) => view.available_after(def, pred),
                None => view.available(def, place),
            };
            if def != src && view.shape(def) == shape && available && !found.contains(&def) {
                found.push(def);
            }
        };
        function.instrs[function.defs[src].instr].for_each_src(&mut consider);
        function.instrs[instr].for_each_src(&mut consider);
        if function.as_const(src).is_none() {
            others(view, place, shape).into_iter().for_each(&mut consider);
        }
        steps.extend(found.into_iter().map(|def| SetOperand { instr, index, new: NewOperand::Value(def) }));
    });
    boxed(steps)
}

/// Turns an arithmetic instruction into a move of one of its operands.
struct ToMove {
    instr: Instr,
    operand: usize,
}

impl ReductionStep for ToMove {
    fn apply(&self, edit: &mut Edit) -> bool {
        if !edit.is_placed(self.instr) {
            return false;
        }
        let InstrData::Alu(alu) = &mut edit.function_mut().instrs[self.instr] else { return false };
        if alu.op == Op::Mov || self.operand >= alu.srcs.len() {
            return false;
        }
        let src = alu.srcs[self.operand];
        alu.op = Op::Mov;
        alu.srcs = SmallVec::from_elem(src, 1);
        (alu.exact, alu.no_signed_wrap, alu.no_unsigned_wrap) = (false, false, false);
        true
    }
}

/// Turns operations into moves of an operand of the same shape that cannot replace the result at all uses.
pub(super) fn moves(view: &ProgramView<'_>) -> Steps {
    let mut steps = Vec::new();
    for (place, def) in view.defs() {
        let instr = view.order[place].1;
        let InstrData::Alu(alu) = &view.function().instrs[instr] else { continue };
        if alu.op == Op::Mov {
            continue;
        }
        for (operand, src) in alu.srcs.iter().enumerate() {
            let components = alu.op.info().source_components(operand, view.shape(def).components);
            if components == view.shape(def).components && view.shape(src.def).bits == view.shape(def).bits {
                steps.push(ToMove { instr, operand });
            }
        }
    }
    boxed(steps)
}
