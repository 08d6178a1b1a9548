//! Steps that remove components of vectors.
//!
//! Values are related by their number of components: a phi has as many as its sources, a store writes as many as its
//! value has. Such an equivalence class of values is narrowed together. Arithmetic swizzles its operands, so it bounds
//! the classes.

use ir3_compiler::nir::{AluSrc, Components, Def, IndexKind, Instr, InstrData, Op};
use ir3_compiler::nir::{Index, Intrinsic};
use smallvec::SmallVec;

use super::{ReductionStep, Steps, boxed};
use crate::reduce::edit::{Edit, ProgramView, ValueShape, vec_op};

/// The class of `seed`: the values that must have the same number of components. `None` if some value cannot be
/// narrowed.
fn class(edit: &Edit, seed: Def) -> Option<Vec<Def>> {
    let function = edit.function();
    let mut class = vec![seed];
    let mut at = 0;
    let add = |class: &mut Vec<Def>, def: Def| {
        if !class.contains(&def) {
            class.push(def);
        }
    };
    let intrinsic = |class: &mut Vec<Def>, intrinsic: &Intrinsic| {
        let info = intrinsic.op.info();
        for (&src, &components) in intrinsic.srcs.iter().zip(info.srcs) {
            if components == Components::Vector {
                add(class, src);
            }
        }
        if info.dest == Some(Components::Vector) {
            class.extend(intrinsic.def.filter(|def| !class.contains(def)));
        }
    };
    while let Some(&def) = class.get(at) {
        at += 1;
        match &function.instrs[edit.definer(def)?] {
            InstrData::Const { .. } | InstrData::Undef { .. } => {}
            InstrData::Alu(alu) if alu.op.info().is_per_component() || alu.op.is_vec() => {}
            InstrData::Phi { srcs, .. } => srcs.iter().for_each(|&(_, src)| add(&mut class, src)),
            InstrData::Intrinsic(data) if data.op.info().dest == Some(Components::Vector) => {
                intrinsic(&mut class, data);
            }
            InstrData::Alu(_) | InstrData::Intrinsic(_) | InstrData::Tex(_) | InstrData::Jump(_) => return None,
        }
        for (_, user) in function.instrs_in_order() {
            match &function.instrs[user] {
                InstrData::Phi { def: phi, srcs } if srcs.iter().any(|&(_, src)| src == def) => add(&mut class, *phi),
                InstrData::Intrinsic(data) if data.srcs.contains(&def) => {
                    let kinds = data.srcs.iter().zip(data.op.info().srcs);
                    if kinds.into_iter().any(|(&src, &kind)| src == def && kind != Components::Vector) {
                        return None;
                    }
                    intrinsic(&mut class, data);
                }
                InstrData::Tex(tex) if tex.srcs.iter().any(|&(_, src)| src == def) => return None,
                _ => {}
            }
        }
    }
    Some(class)
}

/// Keeps only some components of the class of a value.
struct NarrowVector {
    def: Def,
    keep: SmallVec<[u8; 4]>,
}

impl NarrowVector {
    fn definer(&self, edit: &mut Edit, def: Def) {
        let instr = edit.function().defs[def].instr;
        let keep = &self.keep;
        let function = edit.function_mut();
        match &mut function.instrs[instr] {
            InstrData::Const { values, .. } => *values = keep.iter().map(|&c| values[usize::from(c)]).collect(),
            InstrData::Alu(alu) if alu.op.is_vec() => {
                let srcs: SmallVec<[AluSrc; 3]> = keep.iter().map(|&c| alu.srcs[usize::from(c)]).collect();
                alu.op = vec_op(srcs.len()).unwrap_or(Op::Mov);
                alu.srcs = srcs;
            }
            InstrData::Alu(alu) => {
                let info = alu.op.info();
                for (src, _) in alu.srcs.iter_mut().zip(info.inputs).filter(|(_, input)| input.components == 0) {
                    let kept: SmallVec<[u8; 16]> = keep.iter().map(|&c| src.swizzle[usize::from(c)]).collect();
                    *src = AluSrc::swizzled(src.def, &kept);
                }
            }
            _ => {}
        }
        function.defs[def].num_components = keep.len() as u8;
    }

    /// The new index of component `old`.
    fn component(&self, old: u8) -> u8 {
        self.keep.iter().position(|&kept| kept == old).unwrap_or(0) as u8
    }
}

impl ReductionStep for NarrowVector {
    fn apply(&self, edit: &mut Edit) -> bool {
        let count = edit.shape(self.def).components;
        if edit.definer(self.def).is_none() || self.keep.iter().any(|&c| c >= count) || self.keep.len() as u8 >= count {
            return false;
        }
        let Some(class) = class(edit, self.def) else { return false };
        // Stores keep the mask bits of the remaining components.
        let users: Vec<Instr> = edit.function().instrs_in_order().map(|(_, instr)| instr).collect();
        for &def in &class {
            self.definer(edit, def);
        }
        for instr in users {
            let function = edit.function_mut();
            match &mut function.instrs[instr] {
                InstrData::Alu(alu) => {
                    let components = function.defs[alu.def].num_components;
                    for (index, src) in alu.srcs.iter_mut().enumerate().filter(|(_, src)| class.contains(&src.def)) {
                        let used = usize::from(alu.op.info().source_components(index, components));
                        src.swizzle[..used].iter_mut().for_each(|c| *c = self.component(*c));
                    }
                }
                InstrData::Intrinsic(intrinsic)
                    if intrinsic.srcs.iter().any(|src| class.contains(src))
                        && intrinsic.indices.get(IndexKind::WriteMask).is_some() =>
                {
                    let old = intrinsic.indices.write_mask();
                    let new = self.keep.iter().enumerate().fold(0, |new, (i, &c)| new | (old >> c & 1) << i);
                    intrinsic.indices.set(Index::WriteMask(new));
                }
                _ => {}
            }
        }
        true
    }
}

/// Keeps one component, or the first half, or those that are read.
pub(super) fn narrow(view: &ProgramView<'_>) -> Steps {
    let function = view.function();
    let mut steps = Vec::new();
    for (_, def) in view.defs() {
        let count = view.shape(def).components;
        if count == 1 {
            continue;
        }
        let mut read = 0u16;
        let mut reads_all = false;
        for &(_, instr) in &view.order {
            match &function.instrs[instr] {
                InstrData::Alu(alu) => {
                    let components = function.defs[alu.def].num_components;
                    for (index, src) in alu.srcs.iter().enumerate().filter(|(_, src)| src.def == def) {
                        let used = usize::from(alu.op.info().source_components(index, components));
                        src.swizzle[..used].iter().for_each(|&c| read |= 1 << c);
                    }
                }
                data => data.for_each_src(|src| reads_all |= src == def),
            }
        }
        let all: SmallVec<[u8; 4]> = (0..count).collect();
        if !reads_all {
            steps.push(NarrowVector { def, keep: all.iter().copied().filter(|&c| read >> c & 1 != 0).collect() });
        }
        steps.extend(all.iter().map(|&c| NarrowVector { def, keep: SmallVec::from_elem(c, 1) }));
        if count > 2 {
            let half = usize::from(count).div_ceil(2);
            steps.push(NarrowVector { def, keep: SmallVec::from_slice(&all[..half]) });
            steps.push(NarrowVector { def, keep: SmallVec::from_slice(&all[..usize::from(count) - 1]) });
        }
    }
    steps.retain(|step| !step.keep.is_empty() && vec_op(step.keep.len()).is_some());
    boxed(steps)
}

/// Removes a component from the mask of a store.
struct Mask {
    instr: Instr,
    component: u8,
}

impl ReductionStep for Mask {
    fn apply(&self, edit: &mut Edit) -> bool {
        if !edit.is_placed(self.instr) {
            return false;
        }
        let InstrData::Intrinsic(intrinsic) = &mut edit.function_mut().instrs[self.instr] else { return false };
        let mask = intrinsic.indices.write_mask();
        let new = mask & !(1 << self.component);
        if new == mask || new == 0 {
            return false;
        }
        intrinsic.indices.set(Index::WriteMask(new));
        true
    }
}

/// Replaces the vector that an instruction without a result reads by one component of 0.
struct Scalar {
    instr: Instr,
    index: usize,
}

impl ReductionStep for Scalar {
    fn apply(&self, edit: &mut Edit) -> bool {
        let Some(InstrData::Intrinsic(intrinsic)) = edit.get(self.instr) else { return false };
        let shape = edit.shape(intrinsic.srcs[self.index]);
        if shape.components == 1 {
            return false;
        }
        let zero = edit.splat(ValueShape { components: 1, ..shape }, 0);
        let InstrData::Intrinsic(intrinsic) = &mut edit.function_mut().instrs[self.instr] else { return false };
        intrinsic.srcs[self.index] = zero;
        if intrinsic.indices.get(IndexKind::WriteMask).is_some() {
            intrinsic.indices.set(Index::WriteMask(1));
        }
        true
    }
}

/// Makes stores write one component of 0.
pub(super) fn scalars(view: &ProgramView<'_>) -> Steps {
    let mut steps = Vec::new();
    for &(_, instr) in &view.order {
        let InstrData::Intrinsic(intrinsic) = &view.function().instrs[instr] else { continue };
        let info = intrinsic.op.info();
        let vectors = info.srcs.iter().enumerate().filter(|(_, kind)| **kind == Components::Vector);
        let mut vectors = vectors.map(|(index, _)| index);
        // With several vectors, all would have to change.
        if let (None, Some(index), None) = (info.dest, vectors.next(), vectors.next())
            && view.shape(intrinsic.srcs[index]).components > 1
        {
            steps.push(Scalar { instr, index });
        }
    }
    boxed(steps)
}

/// Removes components from the masks of stores.
pub(super) fn write_masks(view: &ProgramView<'_>) -> Steps {
    let mut steps = Vec::new();
    for &(_, instr) in &view.order {
        if let InstrData::Intrinsic(intrinsic) = &view.function().instrs[instr] {
            let mask = intrinsic.indices.write_mask();
            steps.extend((0..16).filter(|c| mask >> c & 1 != 0).map(|component| Mask { instr, component }));
        }
    }
    boxed(steps)
}
