//! Mutations of control flow.

use super::operands::others;
use super::{MutationSite, data};
use ir3_compiler::ir3::{Block, Category, Mods, Opcode, Program, RegFile, SrcOperand};

pub(super) fn invert_branch(program: &mut Program, site: &MutationSite) -> bool {
    use Opcode::*;
    let data = data(program, site);
    let branch = matches!(data.opcode, Br | Bany | Ball | Kill | Demote | Predt | Predf);
    if branch {
        data.srcs[0].mods ^= Mods::NOT;
    }
    branch
}

pub(super) fn swap_successors(program: &mut Program, site: &MutationSite) -> bool {
    let block = &mut program.blocks[site.block];
    let conditional = block.successors[1].is_some() && block.successors[0] != block.successors[1];
    if !conditional || site.index + 1 != block.instrs.len() {
        return false;
    }
    block.successors.swap(0, 1);
    true
}

pub(super) fn kill(program: &mut Program, site: &MutationSite) -> bool {
    let opcode = &mut data(program, site).opcode;
    *opcode = match *opcode {
        Opcode::Kill => Opcode::Demote,
        Opcode::Demote => Opcode::Kill,
        _ => return false,
    };
    true
}

/// Branches on another predicate.
pub(super) fn other_predicate(program: &mut Program, site: &MutationSite) -> bool {
    let data = &program.instrs[site.instr];
    if data.opcode.category() != Category::Flow || data.opcode.is_output() {
        return false;
    }
    let predicates = (0..data.srcs.len()).filter(|&i| data.srcs[i].class.file == RegFile::Predicate);
    let Some(i) = site.pick(&predicates.collect::<Vec<usize>>()) else { return false };
    let src = data.srcs[i];
    let Some(&place) = src.place() else { return false };
    let mut others = others(program, site, &src, true);
    others.truncate(8);
    let Some(other) = site.other(&others, place) else { return false };
    program.instrs[site.instr].srcs[i].operand = SrcOperand::Place(other);
    true
}

/// Redirects an edge to another block without phis.
pub(super) fn branch_target(program: &mut Program, site: &MutationSite) -> bool {
    let data = &program.blocks[site.block];
    if site.index + 1 != data.instrs.len() {
        return false;
    }
    let slots: Vec<usize> = (0..2).filter(|&slot| data.successors[slot].is_some()).collect();
    let Some(slot) = site.pick(&slots) else { return false };
    let Some(old) = data.successors[slot] else { return false };
    let has_phis = |block: Block| {
        program.blocks[block].instrs.first().is_some_and(|&instr| program.instrs[instr].opcode == Opcode::Phi)
    };
    let allowed = |&block: &Block| {
        block != program.entry() && block != old && !data.successors.contains(&Some(block)) && !has_phis(block)
    };
    let mut blocks: Vec<Block> = program.layout.iter().copied().filter(allowed).collect();
    // Nearby blocks are the likeliest to be confused.
    let place = |block: Block| program.layout.iter().position(|&b| b == block).unwrap_or(0);
    blocks.sort_by_key(|&block| place(block).abs_diff(place(old)));
    blocks.truncate(4);
    let Some(new) = site.pick(&blocks) else { return false };
    let Some(at) = program.blocks[old].predecessors.iter().position(|&b| b == site.block) else { return false };
    program.blocks[site.block].successors[slot] = Some(new);
    program.blocks[old].predecessors.remove(at);
    for instr in program.blocks[old].instrs.clone() {
        let data = &mut program.instrs[instr];
        if data.opcode == Opcode::Phi && at < data.srcs.len() {
            data.srcs.remove(at);
        }
    }
    program.blocks[new].predecessors.push(site.block);
    let physical = &mut program.blocks[site.block].physical_successors;
    if let Some(i) = physical.iter().position(|&block| block == old) {
        physical.remove(i);
        physical.push(new);
        let from = &mut program.blocks[old].physical_predecessors;
        if let Some(i) = from.iter().position(|&block| block == site.block) {
            from.remove(i);
        }
        program.blocks[new].physical_predecessors.push(site.block);
    }
    true
}
