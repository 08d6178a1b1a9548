//! Random changes, which need not make a program smaller: the steps of a walk that leaves a local minimum.
//!
//! The cause of a failure is often not visible in the text: register assignment depends on the order of instructions,
//! on the length of live ranges, and on which values are read together. So a walk changes just that: it moves
//! instructions, replaces operands by any component of any value in scope, adds components to vectors, and makes stores
//! write another value. Steps of all other kinds are used, too. A change need not make sense: the search tests if the
//! program is valid, has no more instructions, and fails as before.

use ir3_compiler::nir::{AluSrc, Components, Def, Index, IndexKind, Instr, InstrData, IntrinsicOp, Op};
use smallvec::SmallVec;

use super::{KINDS, ProgramView};
use crate::reduce::edit::{Edit, ValueShape, has_effect, vec_op};
use ir3_programs::generator::{Choices, Seeded};

/// Makes one change. Returns false if the chosen entity cannot be changed.
pub(in crate::reduce) fn change(edit: &mut Edit, choices: &mut Seeded) -> bool {
    match choices.below(8) {
        0 => known_step(edit, choices),
        1 => move_instruction(edit, choices),
        2 => swap_operands(edit, choices),
        3 => resize(edit, choices),
        4 => store_another(edit, choices),
        5 => replace(edit, choices),
        _ => set_operand(edit, choices),
    }
}

/// Applies a random step of the kinds that make programs smaller.
fn known_step(edit: &mut Edit, choices: &mut Seeded) -> bool {
    let kind = &KINDS[choices.below(KINDS.len())];
    let steps = (kind.list)(&ProgramView::new(&edit.shader));
    !steps.is_empty() && steps[choices.below(steps.len())].apply(edit)
}

/// Picks an instruction.
fn any_instr(edit: &Edit, choices: &mut Seeded) -> Option<Instr> {
    let all: Vec<Instr> = edit.function().instrs_in_order().map(|(_, instr)| instr).collect();
    (!all.is_empty()).then(|| choices.pick(&all))
}

/// Moves an instruction within its block.
fn move_instruction(edit: &mut Edit, choices: &mut Seeded) -> bool {
    let Some(instr) = any_instr(edit, choices) else { return false };
    if matches!(edit.function().instrs[instr], InstrData::Phi { .. } | InstrData::Jump(_)) {
        return false;
    }
    let Some((block, _)) = edit.function().instrs_in_order().find(|&(_, i)| i == instr) else { return false };
    let list = &mut edit.function_mut().blocks[block].instrs;
    let Some(from) = list.iter().position(|&i| i == instr) else { return false };
    list.remove(from);
    let to = choices.below(list.len() + 1);
    list.insert(to, instr);
    from != to
}

/// Swaps two operands of an instruction.
fn swap_operands(edit: &mut Edit, choices: &mut Seeded) -> bool {
    let Some(instr) = any_instr(edit, choices) else { return false };
    match &mut edit.function_mut().instrs[instr] {
        InstrData::Alu(alu) if alu.srcs.len() > 1 => {
            let (a, b) = (choices.below(alu.srcs.len()), choices.below(alu.srcs.len()));
            alu.srcs.swap(a, b);
            alu.srcs[a] != alu.srcs[b]
        }
        InstrData::Phi { srcs, .. } if srcs.len() > 1 => {
            let (a, b) = (choices.below(srcs.len()), choices.below(srcs.len()));
            let (x, y) = (srcs[a].1, srcs[b].1);
            (srcs[a].1, srcs[b].1) = (y, x);
            x != y
        }
        _ => false,
    }
}

/// The values that dominate operand `index` of an instruction, without declarations of local arrays.
fn in_scope(view: &ProgramView<'_>, place: usize, index: usize, fits: impl Fn(ValueShape) -> bool) -> Vec<Def> {
    let function = view.function();
    let pred = match &function.instrs[view.order[place].1] {
        InstrData::Phi { srcs, .. } => srcs.get(index).map(|&(pred, _)| pred),
        _ => None,
    };
    let available = |def| match pred {
        Some(pred) => view.available_after(def, pred),
        None => view.available(def, place),
    };
    let declared = |def: Def| {
        let definer = &function.instrs[function.defs[def].instr];
        matches!(definer, InstrData::Intrinsic(intrinsic) if intrinsic.op == IntrinsicOp::DeclReg)
    };
    view.defs().map(|(_, def)| def).filter(|&def| fits(view.shape(def)) && !declared(def) && available(def)).collect()
}

/// Replaces an operand by any value in scope; arithmetic reads any components of it.
fn set_operand(edit: &mut Edit, choices: &mut Seeded) -> bool {
    let view = ProgramView::new(&edit.shader);
    if view.order.is_empty() {
        return false;
    }
    let place = choices.below(view.order.len());
    let instr = view.order[place].1;
    let data = &view.function().instrs[instr];
    let mut sources = SmallVec::<[Def; 4]>::new();
    data.for_each_src(|src| sources.push(src));
    if sources.is_empty() {
        return false;
    }
    let index = choices.below(sources.len());
    let old = view.shape(sources[index]);
    let arithmetic = matches!(data, InstrData::Alu(_));
    let all =
        in_scope(&view, place, index, |new| new.bits == old.bits && (arithmetic || new.components == old.components));
    if all.is_empty() {
        return false;
    }
    let new = choices.pick(&all);
    let components = usize::from(view.shape(new).components);
    let function = edit.function_mut();
    let before = function.instrs[instr].clone();
    match &mut function.instrs[instr] {
        InstrData::Alu(alu) => {
            let used = alu.op.info().source_components(index, function.defs[alu.def].num_components);
            let first = choices.below(components);
            // Mostly adjacent components, as vectors are read.
            let backwards = choices.chance(64);
            let swizzle: SmallVec<[u8; 16]> = (0..usize::from(used))
                .map(|at| (first + if backwards { components * 16 - at } else { at }) % components)
                .map(|component| component as u8)
                .collect();
            alu.srcs[index] = AluSrc::swizzled(new, &swizzle);
        }
        data => {
            let mut at = 0;
            data.for_each_src_mut(|src| {
                if at == index {
                    *src = new;
                }
                at += 1;
            });
        }
    }
    function.instrs[instr] != before
}

/// Replaces a value by another one of the same shape, whether or not it dominates the uses.
fn replace(edit: &mut Edit, choices: &mut Seeded) -> bool {
    let view = ProgramView::new(&edit.shader);
    let all: Vec<Def> = view.defs().map(|(_, def)| def).collect();
    if all.is_empty() {
        return false;
    }
    let old = choices.pick(&all);
    let same: Vec<Def> = all.iter().copied().filter(|&def| def != old && view.shape(def) == view.shape(old)).collect();
    if same.is_empty() {
        return false;
    }
    let new = choices.pick(&same);
    edit.replace_uses(old, new);
    true
}

/// The write mask for all components of a value.
fn all_components(components: u8) -> u16 {
    u16::MAX >> (16 - components.min(16))
}

/// Adds a component to a vector, or removes one.
fn resize(edit: &mut Edit, choices: &mut Seeded) -> bool {
    let Some(instr) = any_instr(edit, choices) else { return false };
    let Some(def) = edit.function().instrs[instr].def() else { return false };
    let old = edit.shape(def).components;
    let new = if choices.chance(64) { old.saturating_sub(1) } else { old + 1 };
    if new == 0 || new > 4 {
        return false;
    }
    let function = edit.function_mut();
    let resized = match &mut function.instrs[instr] {
        InstrData::Alu(alu) if alu.op.is_vec() || alu.op == Op::Mov => {
            let mut srcs: SmallVec<[AluSrc; 3]> = match alu.op {
                Op::Mov => alu.srcs[0].swizzle[..usize::from(old)]
                    .iter()
                    .map(|&component| AluSrc::swizzled(alu.srcs[0].def, &[component]))
                    .collect(),
                _ => alu.srcs.clone(),
            };
            let last = srcs[choices.below(srcs.len())];
            srcs.resize(usize::from(new), last);
            let op = if new == 1 { Some(Op::Mov) } else { vec_op(usize::from(new)) };
            op.map(|op| (alu.op, alu.srcs) = (op, srcs)).is_some()
        }
        InstrData::Intrinsic(intrinsic) => intrinsic.op.info().dest == Some(Components::Vector),
        InstrData::Const { values, .. } => {
            let last = values[0];
            values.resize(usize::from(new), last);
            true
        }
        _ => false,
    };
    if resized {
        function.defs[def].num_components = new;
        // Stores of it write all components.
        let stores: Vec<Instr> = function.instrs_in_order().map(|(_, i)| i).collect();
        for store in stores {
            if let InstrData::Intrinsic(intrinsic) = &mut function.instrs[store]
                && intrinsic.srcs.contains(&def)
                && intrinsic.indices.get(IndexKind::WriteMask).is_some()
            {
                intrinsic.indices.set(Index::WriteMask(all_components(new)));
            }
        }
    }
    resized
}

/// Makes an effect write all components of another value.
fn store_another(edit: &mut Edit, choices: &mut Seeded) -> bool {
    let view = ProgramView::new(&edit.shader);
    let function = view.function();
    let stores: Vec<(usize, usize)> = (view.order.iter().enumerate())
        .filter_map(|(place, &(_, instr))| match &function.instrs[instr] {
            data @ InstrData::Intrinsic(intrinsic) if has_effect(data) => {
                let vector = intrinsic.op.info().srcs.iter().position(|&kind| kind == Components::Vector)?;
                Some((place, vector))
            }
            _ => None,
        })
        .collect();
    if stores.is_empty() {
        return false;
    }
    let (place, index) = choices.pick(&stores);
    let instr = view.order[place].1;
    let InstrData::Intrinsic(intrinsic) = &function.instrs[instr] else { return false };
    let old = intrinsic.srcs[index];
    let bits = view.shape(old).bits;
    let all = in_scope(&view, place, index, |shape| shape.bits == bits);
    if all.is_empty() {
        return false;
    }
    let new = choices.pick(&all);
    let components = view.shape(new).components;
    if let InstrData::Intrinsic(intrinsic) = &mut edit.function_mut().instrs[instr] {
        intrinsic.srcs[index] = new;
        if intrinsic.indices.get(IndexKind::WriteMask).is_some() {
            intrinsic.indices.set(Index::WriteMask(all_components(components)));
        }
    }
    new != old
}
