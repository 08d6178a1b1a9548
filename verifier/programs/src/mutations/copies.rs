//! Mutations of vectors, phis and copies: instructions that move values without computing.

use super::operands::{operands_differ, others};
use super::{MutationSite, data};
use ir3_compiler::ir3::{Attrs, Opcode, Place, Program, Src, SrcOperand};

pub(super) fn split_offset(program: &mut Program, site: &MutationSite) -> bool {
    let data = data(program, site);
    let Attrs::Split { offset } = &mut data.attrs else { return false };
    let span = data.srcs.first().map_or(0, |src| src.mask.span());
    if span < 2 {
        return false;
    }
    *offset = if u32::from(*offset) + 1 < span && (site.coin() || *offset == 0) { *offset + 1 } else { *offset - 1 };
    true
}

pub(super) fn swap_two(srcs: &mut [Src], site: &MutationSite) -> bool {
    let pairs: Vec<(usize, usize)> = (0..srcs.len())
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .filter(|&(i, j)| {
            operands_differ(&srcs[i], &srcs[j]) && srcs[i].class == srcs[j].class && srcs[i].mask == srcs[j].mask
        })
        .collect();
    let Some((i, j)) = site.pick(&pairs) else { return false };
    srcs.swap(i, j);
    true
}

pub(super) fn swap_in_collect(program: &mut Program, site: &MutationSite) -> bool {
    let data = data(program, site);
    data.opcode == Opcode::Collect && swap_two(&mut data.srcs, site)
}

pub(super) fn swap_in_phi(program: &mut Program, site: &MutationSite) -> bool {
    let data = data(program, site);
    data.opcode == Opcode::Phi && swap_two(&mut data.srcs, site)
}

pub(super) fn drop_copy(program: &mut Program, site: &MutationSite) -> bool {
    let data = data(program, site);
    if data.opcode != Opcode::ParallelCopy || data.srcs.is_empty() || data.dsts.len() != data.srcs.len() {
        return false;
    }
    let moving: Vec<usize> =
        (0..data.srcs.len()).filter(|&i| data.srcs[i].operand != SrcOperand::Place(data.dsts[i].place)).collect();
    let Some(i) = site.pick(&moving) else { return false };
    data.srcs.remove(i);
    data.dsts.remove(i);
    true
}

/// Swaps two destinations of a parallel copy.
pub(super) fn swap_copies(program: &mut Program, site: &MutationSite) -> bool {
    let data = data(program, site);
    if data.opcode != Opcode::ParallelCopy || data.dsts.len() != data.srcs.len() {
        return false;
    }
    let pairs: Vec<(usize, usize)> = (0..data.dsts.len())
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .filter(|&(i, j)| {
            data.dsts[i].class == data.dsts[j].class
                && data.dsts[i].mask == data.dsts[j].mask
                && operands_differ(&data.srcs[i], &data.srcs[j])
        })
        .collect();
    let Some((i, j)) = site.pick(&pairs) else { return false };
    let place = data.dsts[i].place;
    // In SSA form the definition of a value names its destination, so the sources are swapped instead.
    if place.value().is_some() {
        data.srcs.swap(i, j);
    } else {
        data.dsts[i].place = data.dsts[j].place;
        data.dsts[j].place = place;
    }
    true
}

/// Replaces the source of a phi for one predecessor.
pub(super) fn phi_source(program: &mut Program, site: &MutationSite) -> bool {
    let phi = &program.instrs[site.instr];
    if phi.opcode != Opcode::Phi || phi.srcs.is_empty() {
        return false;
    }
    let i = (site.random >> 20) as usize % phi.srcs.len();
    let Some(&from) = program.blocks[site.block].predecessors.get(i) else { return false };
    let src = phi.srcs[i];
    // The values that are available at the end of that predecessor.
    let end = MutationSite { block: from, index: program.blocks[from].instrs.len(), ..*site };
    let mut others = others(program, &end, &src, false);
    others.truncate(12);
    let current = src.place().copied();
    others.retain(|&place| Some(place) != current && matches!(place, Place::Value(_)));
    let Some(other) = site.pick(&others) else { return false };
    program.instrs[site.instr].srcs[i].operand = SrcOperand::Place(other);
    true
}

/// Replaces the loop-carried source of a phi by its value of the previous iteration, or by its initial value.
pub(super) fn loop_carried(program: &mut Program, site: &MutationSite) -> bool {
    let phi = &program.instrs[site.instr];
    let position = |block| program.layout.iter().position(|&b| b == block);
    let from = &program.blocks[site.block].predecessors;
    let is_back = |i: usize| from.get(i).is_some_and(|&from| position(from) >= position(site.block));
    if phi.opcode != Opcode::Phi || !(0..phi.srcs.len()).any(is_back) {
        return false;
    }
    let back: Vec<usize> = (0..phi.srcs.len()).filter(|&i| is_back(i)).collect();
    let first = (0..phi.srcs.len()).find(|&i| !is_back(i)).map(|i| phi.srcs[i].operand);
    let own = SrcOperand::Place(phi.dsts[0].place);
    let Some(i) = site.pick(&back) else { return false };
    let operand = match first {
        Some(first) if site.coin() => first,
        _ => own,
    };
    let src = &mut program.instrs[site.instr].srcs[i];
    let changed = src.operand != operand;
    src.operand = operand;
    changed
}
