//! Mutations of memory accesses.

use super::{MutationSite, data};
use ir3_compiler::ir3::{Attrs, Category, Instr, MemoryAttrs, Opcode, Place, Program, SrcOperand, Type};

pub(super) fn is_store(program: &Program, instr: Instr) -> bool {
    let opcode = program.instrs[instr].opcode;
    use Opcode::*;
    opcode.is_atomic() || matches!(opcode, Stg | StgA | Stl | Stp | Stib | Stlw | Stgb | Stc)
}

pub(super) fn is_load(program: &Program, instr: Instr) -> bool {
    use Opcode::*;
    matches!(program.instrs[instr].opcode, Ldg | LdgA | Ldl | Ldp | Ldib | Ldlw | Ldgb | Isam)
}

pub(super) fn drop_instruction(program: &mut Program, site: &MutationSite) -> bool {
    let data = &program.instrs[site.instr];
    let defines = data.dsts.iter().any(|dst| dst.value().is_some());
    if defines
        || data.opcode.is_terminator()
        || data.opcode == Opcode::End
        || data.opcode.category() == Category::Barrier
    {
        return false;
    }
    program.blocks[site.block].instrs.remove(site.index);
    true
}

/// Repeats a store after the last store to the same memory in its block, or an atomic right after itself.
pub(super) fn repeat_store(program: &mut Program, site: &MutationSite) -> bool {
    if !is_store(program, site.instr) || program.instrs[site.instr].dsts.iter().any(|dst| dst.value().is_some()) {
        return false;
    }
    let copy = program.instrs[site.instr].clone();
    let copy = program.instrs.push(copy);
    let block = &program.blocks[site.block].instrs;
    let data = |i: Instr| &program.instrs[i];
    let later = (site.index + 1..block.len()).rev().find(|&i| {
        let (a, b) = (data(site.instr), data(block[i]));
        is_store(program, block[i]) && a.opcode == b.opcode && a.srcs[0].operand == b.srcs[0].operand
    });
    let at = match later {
        Some(at) => at + 1,
        None if program.instrs[site.instr].opcode.is_atomic() => site.index + 1,
        None => return false,
    };
    program.blocks[site.block].instrs.insert(at, copy);
    true
}

pub(super) fn memory<'a>(program: &'a mut Program, site: &MutationSite) -> Option<&'a mut MemoryAttrs> {
    match &mut data(program, site).attrs {
        Attrs::Memory(attrs) => Some(attrs),
        _ => None,
    }
}

pub(super) fn memory_components(program: &mut Program, site: &MutationSite) -> bool {
    let Some(attrs) = memory(program, site) else { return false };
    let Some(n) = attrs.components else { return false };
    attrs.components = Some(if n > 1 { n - 1 } else { 2 });
    true
}

pub(super) fn memory_offset(program: &mut Program, site: &MutationSite) -> bool {
    // The other opcodes have their offset in a source.
    use Opcode::*;
    if !matches!(program.instrs[site.instr].opcode, Stl | Stp | Ldc | AtomicAdd | AtomicXchg | AtomicXor | AtomicGAdd) {
        return false;
    }
    let Some(attrs) = memory(program, site) else { return false };
    attrs.offset += if site.coin() { 1 } else { 4 };
    true
}

pub(super) fn memory_type(program: &mut Program, site: &MutationSite) -> bool {
    let Some(attrs) = memory(program, site) else { return false };
    let Some(ty) = attrs.ty else { return false };
    // Signedness only matters to atomics, so change the width.
    let other = match ty {
        Type::U32 | Type::S32 | Type::F32 => Type::U16,
        Type::U16 | Type::S16 | Type::F16 => Type::U32,
        Type::U8 => Type::U16,
        Type::U8In32 => Type::U32,
        Type::U64 => Type::U32,
    };
    attrs.ty = Some(other);
    true
}

pub(super) fn memory_space(program: &mut Program, site: &MutationSite) -> bool {
    use ir3_compiler::ir3::AddressSpace as A;
    let Some(attrs) = memory(program, site) else { return false };
    let other = match attrs.space {
        Some(A::Ssbo) => A::Image,
        Some(A::Image) => A::Ssbo,
        _ => return false,
    };
    attrs.space = Some(other);
    true
}

/// Moves an access after the next conflicting access to the same memory.
pub(super) fn memory_order(program: &mut Program, site: &MutationSite) -> bool {
    let block = &program.blocks[site.block].instrs;
    let (load, store) = (|i| is_load(program, i), |i| is_store(program, i));
    if !load(site.instr) && !store(site.instr) {
        return false;
    }
    // The same resource, or an unknown one.
    let same = |other: Instr| {
        let (a, b) = (&program.instrs[site.instr], &program.instrs[other]);
        a.memory().map(|attrs| attrs.space) == b.memory().map(|attrs| attrs.space)
            && (a.srcs[0].operand == b.srcs[0].operand || !matches!(a.srcs[0].operand, SrcOperand::Immediate(_)))
            && (store(site.instr) || store(other))
    };
    let next = (site.index + 1..block.len()).find(|&i| (load(block[i]) || store(block[i])) && same(block[i]));
    let Some(next) = next else { return false };
    // The operands must not be overwritten in between.
    let reads: Vec<Place> = program.instrs[site.instr].srcs.iter().filter_map(|src| src.place().copied()).collect();
    let defines = program.instrs[site.instr].dsts.iter().any(|dst| dst.value().is_some());
    let mut between = block[site.index + 1..=next].iter().flat_map(|&i| &program.instrs[i].dsts);
    if defines || between.any(|dst| reads.contains(&dst.place)) {
        return false;
    }
    let block = &mut program.blocks[site.block].instrs;
    let moved = block.remove(site.index);
    block.insert(next, moved);
    true
}

/// Removes a store, or an atomic without readers.
pub(super) fn drop_store(program: &mut Program, site: &MutationSite) -> bool {
    is_store(program, site.instr) && drop_instruction(program, site)
}

fn is_barrier(program: &Program, instr: Instr) -> bool {
    program.instrs[instr].opcode.category() == Category::Barrier
}

/// Removes a barrier or fence.
pub(super) fn drop_barrier(program: &mut Program, site: &MutationSite) -> bool {
    let is_barrier = is_barrier(program, site.instr);
    if is_barrier {
        program.blocks[site.block].instrs.remove(site.index);
    }
    is_barrier
}

/// Moves the last store before a barrier or fence after it.
pub(super) fn store_over_barrier(program: &mut Program, site: &MutationSite) -> bool {
    if !is_barrier(program, site.instr) {
        return false;
    }
    let block = &program.blocks[site.block].instrs;
    let Some(store) = (0..site.index).rev().find(|&i| is_store(program, block[i])) else { return false };
    let data = &program.instrs[block[store]];
    let reads: Vec<Place> = data.srcs.iter().filter_map(|src| src.place().copied()).collect();
    // The operands must not be overwritten in between, and the store must not have a result.
    let mut between = block[store + 1..=site.index].iter().flat_map(|&i| &program.instrs[i].dsts);
    if !data.dsts.is_empty() || between.any(|dst| reads.contains(&dst.place)) {
        return false;
    }
    let block = &mut program.blocks[site.block].instrs;
    let moved = block.remove(store);
    block.insert(site.index, moved);
    true
}

/// Changes the descriptor set.
pub(super) fn descriptor_set(program: &mut Program, site: &MutationSite) -> bool {
    let Some(attrs) = memory(program, site) else { return false };
    let Some(set) = attrs.base else { return false };
    attrs.base = Some(set ^ if site.coin() { 1 } else { 2 });
    true
}
