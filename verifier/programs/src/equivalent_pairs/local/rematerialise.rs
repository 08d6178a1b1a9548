//! A value that is read is rematerialised, copied, or put into a vector and extracted again.

use crate::equivalent_pairs::edit::{RewriteSite, encodes, full_src, insert, is_pure, move_attrs};
use ir3_compiler::ir3::{Attrs, InstrData, Opcode, RegFile, Src, WriteMask};

/// A source that reads an SSA value; with `scalar` only one of one component.
fn source(at: &mut RewriteSite<'_>, scalar: bool) -> Option<(usize, Src)> {
    let data = at.data();
    let fits = |src: &Src| src.value().is_some() && (!scalar || src.mask == WriteMask::SCALAR);
    let slots: Vec<usize> = (0..data.srcs.len()).filter(|&i| fits(&data.srcs[i])).collect();
    let slot = at.random.pick(&slots)?;
    Some((slot, at.data().srcs[slot]))
}

/// Rematerialises a value for one of its readers.
pub(super) fn computed(at: &mut RewriteSite<'_>) -> bool {
    let Some((slot, src)) = source(at, false) else { return false };
    let Some(value) = src.value() else { return false };
    let definition: InstrData = at.program.instrs[at.program.values[value].instr].clone();
    if !is_pure(&definition, at.consts_change) || !encodes(at.target, &definition) {
        return false;
    }
    let value = insert(at.program, at.block, at.index, definition);
    at.index += 1;
    at.program.instrs[at.instr].srcs[slot].set_value(value);
    true
}

/// Copies a value for one of its readers.
pub(super) fn copied(at: &mut RewriteSite<'_>) -> bool {
    let Some((slot, src)) = source(at, true).filter(|(_, src)| src.class.file == RegFile::General) else {
        return false;
    };
    let Some(value) = src.value() else { return false };
    let all = full_src(at.program, value);
    if all.mask != WriteMask::SCALAR {
        return false;
    }
    let Some(copy) = at.before_in(src.class, Opcode::Mov, &[all], move_attrs(src.class)).and_then(|src| src.value())
    else {
        return false;
    };
    at.program.instrs[at.instr].srcs[slot].set_value(copy);
    true
}

/// Puts a value into a vector and extracts it.
pub(super) fn regrouped(at: &mut RewriteSite<'_>) -> bool {
    let Some((slot, src)) = source(at, true).filter(|(_, src)| src.class.file == RegFile::General) else {
        return false;
    };
    let Some(value) = src.value() else { return false };
    let all = full_src(at.program, value);
    if all.mask != WriteMask::SCALAR {
        return false;
    }
    let others = [all, Src::immediate(7, src.class.half)];
    let offset = at.random.below(2);
    let parts = [others[offset], others[1 - offset]];
    let mut collect = super::super::edit::operation(Opcode::Collect, src.class, &parts, Attrs::None);
    collect.dsts[0].mask = WriteMask::first(2);
    let vector = insert(at.program, at.block, at.index, collect);
    at.index += 1;
    let vector = full_src(at.program, vector);
    let split = Attrs::Split { offset: offset as u16 };
    let Some(part) = at.before_in(src.class, Opcode::Split, &[vector], split).and_then(|src| src.value()) else {
        return false;
    };
    at.program.instrs[at.instr].srcs[slot].set_value(part);
    true
}
