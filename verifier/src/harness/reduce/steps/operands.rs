//! Values take the place of other values.

use ir3_compiler::nir::{AluSrc, Block, Def, Instr, InstrData, IntrinsicOp, Op};
use smallvec::SmallVec;

use super::{Step, Steps, boxed};
use crate::harness::reduce::edit::{Edit, Shape, View};

/// Everybody who reads the result of an arithmetic instruction reads one of its operands instead.
struct Forward {
    instr: Instr,
    operand: usize,
}

impl Step for Forward {
    fn apply(&self, edit: &mut Edit) -> bool {
        let Some(InstrData::Alu(alu)) = edit.get(self.instr) else { return false };
        let (def, src) = (alu.def, alu.srcs[self.operand]);
        edit.replace_uses_swizzled(def, &src)
    }
}

/// Everybody who reads a value reads another one of the same shape instead.
struct Replace {
    def: Def,
    with: Def,
}

impl Step for Replace {
    fn apply(&self, edit: &mut Edit) -> bool {
        if edit.definer(self.def).is_none() || edit.definer(self.with).is_none() {
            return false;
        }
        edit.replace_uses(self.def, self.with);
        true
    }
}

/// Whether another value may stand for the result of an instruction at all.
fn replaceable(data: &InstrData) -> bool {
    match data {
        InstrData::Intrinsic(intrinsic) => intrinsic.op != IntrinsicOp::DeclReg,
        InstrData::Const { .. } => false,
        _ => true,
    }
}

/// Results become one of the operands that they were computed from, the last ones first.
pub(super) fn forward(view: &View<'_>) -> Steps {
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

/// The first value of the same shape that is not a constant and there at `place`, and the last.
fn others(view: &View<'_>, place: usize, shape: Shape) -> SmallVec<[Def; 2]> {
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

/// Results become values that were there before.
pub(super) fn earlier(view: &View<'_>) -> Steps {
    let mut steps = Vec::new();
    for (place, def) in view.defs().collect::<Vec<_>>().into_iter().rev() {
        if replaceable(&view.function().instrs[view.order[place].1]) {
            steps.extend(others(view, place, view.shape(def)).into_iter().map(|with| Replace { def, with }));
        }
    }
    boxed(steps)
}

/// What an operand becomes.
#[derive(Clone, Copy)]
enum New {
    Constant(u64),
    Value(Def),
}

/// One operand of one instruction becomes something else.
struct SetOperand {
    instr: Instr,
    index: usize,
    new: New,
}

impl Step for SetOperand {
    fn apply(&self, edit: &mut Edit) -> bool {
        let Some(data) = edit.get(self.instr) else { return false };
        let mut sources = SmallVec::<[Def; 4]>::new();
        data.for_each_src(|src| sources.push(src));
        let Some(&old) = sources.get(self.index) else { return false };
        let arithmetic = matches!(data, InstrData::Alu(_));
        let new = match self.new {
            New::Value(def) if edit.definer(def).is_some() => def,
            New::Value(_) => return false,
            New::Constant(value) => {
                let shape = edit.shape(old);
                // Arithmetic can read one component as often as it likes.
                let components = if arithmetic { 1 } else { shape.components };
                edit.splat(Shape { components, ..shape }, value)
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

/// Each operand that may be replaced: its instruction, place and number, and the value.
fn each_operand(view: &View<'_>, mut visit: impl FnMut(Instr, usize, usize, Def)) {
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

/// Operands become 0 or 1.
pub(super) fn to_constants(view: &View<'_>) -> Steps {
    let mut steps = Vec::new();
    for value in [0, 1] {
        each_operand(view, |instr, _, index, src| {
            if view.function().as_const(src).is_none() {
                steps.push(SetOperand { instr, index, new: New::Constant(value) });
            }
        });
    }
    boxed(steps)
}

/// Operands become what their own definers read, another operand of the same instruction, or an early value.
pub(super) fn to_values(view: &View<'_>) -> Steps {
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
        steps.extend(found.into_iter().map(|def| SetOperand { instr, index, new: New::Value(def) }));
    });
    boxed(steps)
}

/// An arithmetic instruction becomes a move of one of its operands.
struct Move {
    instr: Instr,
    operand: usize,
}

impl Step for Move {
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

/// Operations become moves, where an operand has the shape of the result but cannot stand for it everywhere.
pub(super) fn moves(view: &View<'_>) -> Steps {
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
                steps.push(Move { instr, operand });
            }
        }
    }
    boxed(steps)
}
