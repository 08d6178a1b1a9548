//! Conversion to conventional SSA (CSSA): a phi and its sources can be one variable.
//!
//! - Each source of a phi becomes a value of its own that a parallel copy at the end of the predecessor defines and
//!   only the phi reads. Edges to phis start at blocks with one successor, so no instruction is between such a copy and
//!   the phi; before it, at most the copy itself reads the phi. So no two of a phi and its sources are ever live at
//!   once.
//! - A split is directly after the definition of its vector. It costs nothing there, and from then on each part has its
//!   own live range.
//! - Inputs and the results of prefetches are all live before the first instruction, so they precede it.
//! - Outputs with given registers are copied before the instruction that reads them (`outputs`).
//!
//! A program in this form is not changed, so the pass can run at any time.

use super::{Error, outputs};
use crate::ir3::{
    Attrs, Block, Dst, Instr, InstrData, Opcode, OperandFlags, Place, Program, RegFile, Src, SrcOperand, Value,
    ValueData,
};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// Converts a program without critical edges to conventional SSA.
///
/// # Errors
/// If the program is malformed.
pub fn run(program: &mut Program) -> Result<(), Error> {
    hoist_inputs(program)?;
    hoist_splits(program);
    outputs::copy(program)?;
    copy_phi_sources(program)
}

/// Puts inputs first and prefetches next: the results of both are available before the first instruction.
///
/// # Errors
/// If a prefetch reads a value that is no input.
fn hoist_inputs(program: &mut Program) -> Result<(), Error> {
    let entry = program.entry();
    let instrs = &program.instrs;
    let rank = |instr: &Instr| match instrs[*instr].opcode {
        Opcode::Phi => 0u8,
        Opcode::Input => 1,
        Opcode::TexPrefetch => 2,
        _ => 3,
    };
    for &instr in program.blocks[entry].instrs.iter().filter(|&&instr| instrs[instr].opcode.is_prefetched()) {
        let sources = instrs[instr].srcs.iter().filter_map(Src::value);
        if sources.into_iter().any(|value| instrs[program.values[value].instr].opcode != Opcode::Input) {
            return Err(Error::unsupported(program, instr, "coordinates that are no input"));
        }
    }
    let list = &mut program.blocks[entry].instrs;
    if !list.is_sorted_by_key(rank) {
        list.sort_by_key(rank);
    }
    Ok(())
}

/// The vector that a split reads, if both are general values of one class.
fn split_source(program: &Program, instr: Instr) -> Option<Value> {
    let data = &program.instrs[instr];
    let Attrs::Split { offset } = data.attrs else { return None };
    let (dst, src) = (data.dsts.first()?, data.srcs.first()?);
    let (Place::Value(_), Some(&Place::Value(vector))) = (dst.place, src.place()) else { return None };
    let info = &program.values[vector];
    let fits = data.opcode == Opcode::Split
        && dst.class == info.class
        && src.class == info.class
        && info.class.file == RegFile::General
        && offset < info.components
        && dst.mask.span() == 1;
    fits.then_some(vector)
}

fn hoist_splits(program: &mut Program) {
    // The splits of each vector as a linked list: the last one, and for each the previous one.
    let mut last: SecondaryMap<Value, PackedOption<Instr>> = SecondaryMap::new();
    let mut before: SecondaryMap<Instr, PackedOption<Instr>> = SecondaryMap::new();
    let mut is_split: SecondaryMap<Instr, bool> = SecondaryMap::new();
    let mut any = false;
    for (_, instr) in program.iter_instrs() {
        if program.instrs[instr].opcode == Opcode::Split
            && let Some(vector) = split_source(program, instr)
        {
            if !any {
                last.resize(program.values.len());
                before.resize(program.instrs.len());
                is_split.resize(program.instrs.len());
            }
            before[instr] = last[vector];
            last[vector] = instr.into();
            is_split[instr] = true;
            any = true;
        }
    }
    if !any {
        return;
    }
    let mut out = Vec::new();
    let mut waiting: Vec<Value> = Vec::new();
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        out.clear();
        let list = &program.blocks[block].instrs;
        let start = program.ready_len(list);
        for (i, &instr) in list.iter().enumerate() {
            if is_split[instr] {
                continue;
            }
            let data = &program.instrs[instr];
            if i >= start {
                emit_splits(program, &last, &before, &mut waiting, &mut out);
            }
            out.push(instr);
            waiting.extend(data.dsts.iter().filter_map(|dst| dst.value()));
            if i >= start {
                emit_splits(program, &last, &before, &mut waiting, &mut out);
            }
        }
        emit_splits(program, &last, &before, &mut waiting, &mut out);
        if program.blocks[block].instrs != out {
            program.blocks[block].instrs.clone_from(&out);
        }
    }
}

/// Emits the splits of the waiting values, and the splits of their results.
fn emit_splits(
    program: &Program,
    last: &SecondaryMap<Value, PackedOption<Instr>>,
    before: &SecondaryMap<Instr, PackedOption<Instr>>,
    waiting: &mut Vec<Value>,
    out: &mut Vec<Instr>,
) {
    let mut i = 0;
    while let Some(&vector) = waiting.get(i) {
        i += 1;
        let first = out.len();
        let mut next = last[vector];
        while let Some(split) = next.expand() {
            out.push(split);
            waiting.extend(program.instrs[split].dsts.iter().filter_map(|dst| dst.value()));
            next = before[split];
        }
        out[first..].reverse();
    }
    waiting.clear();
}

fn copy_phi_sources(program: &mut Program) -> Result<(), Error> {
    let has_phis = |program: &Program, block: Block| {
        program.blocks[block].instrs.first().is_some_and(|&i| program.instrs[i].opcode == Opcode::Phi)
    };
    if !program.layout.iter().any(|&block| has_phis(program, block)) {
        return Ok(());
    }
    let mut readers: SecondaryMap<Value, u32> = map_of(program.values.len());
    for (_, instr) in program.iter_instrs() {
        for value in program.instrs[instr].srcs.iter().filter_map(|src| src.value()) {
            readers[value] += 1;
        }
    }
    let phis = program.layout.iter().filter(|&&block| has_phis(program, block));
    let edges = phis.map(|&block| program.blocks[block].predecessors.len()).sum();
    program.instrs.reserve(edges);
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        if !has_phis(program, block) {
            continue;
        }
        for k in 0..program.blocks[block].predecessors.len() {
            copy_edge(program, block, k, &readers)?;
        }
    }
    Ok(())
}

/// Returns true if the allocator places values of an operand.
fn is_placed(dst: &Dst) -> bool {
    matches!(dst.class.file, RegFile::General | RegFile::Shared) && matches!(dst.place, Place::Value(_))
}

/// Copies the sources of all phis of `block` for predecessor `k`, unless all are copies already.
fn copy_edge(program: &mut Program, block: Block, k: usize, readers: &SecondaryMap<Value, u32>) -> Result<(), Error> {
    let pred = program.blocks[block].predecessors[k];
    let list = &program.blocks[pred].instrs;
    let at = program.body_len(list);
    let last = list[..at].last().copied().filter(|&i| program.instrs[i].opcode == Opcode::ParallelCopy);
    let phis = program.blocks[block].instrs.iter().copied();
    let phis = || phis.clone().take_while(|&i| program.instrs[i].opcode == Opcode::Phi);
    let mut all_private = true;
    for phi in phis() {
        let data = &program.instrs[phi];
        let (Some(dst), Some(src)) = (data.dsts.first(), data.srcs.get(k)) else {
            return Err(Error::unsupported(program, phi, "a phi without a source for each predecessor"));
        };
        if !is_placed(dst) {
            continue;
        }
        if src.class.half != dst.class.half || src.value().is_some_and(|value| program.values[value].class != src.class)
        {
            return Err(Error::unsupported(program, phi, "a source of another class"));
        }
        all_private &= match src.operand {
            SrcOperand::Undef => true,
            SrcOperand::Place(Place::Value(value)) => readers[value] == 1 && last == Some(program.values[value].instr),
            _ => false,
        };
    }
    if all_private {
        return Ok(());
    }
    let phis: Vec<Instr> = phis().collect();
    let mut data = InstrData::new(Opcode::ParallelCopy);
    data.dsts.reserve(phis.len());
    data.srcs.reserve(phis.len());
    let copy = program.instrs.push(data);
    for phi in phis {
        let dst = program.instrs[phi].dsts[0];
        let mut src = program.instrs[phi].srcs[k];
        if !is_placed(&dst) || src.operand == SrcOperand::Undef {
            continue;
        }
        src.flags = OperandFlags::empty();
        src.mask = dst.mask;
        let components = dst.mask.span() as u16;
        let dst_index = program.instrs[copy].dsts.len() as u8;
        let data = ValueData { instr: copy, dst: dst_index, class: dst.class, components, array: None };
        let value = program.values.push(data);
        program.instrs[copy].srcs.push(src);
        program.instrs[copy].dsts.push(Dst::new(Place::Value(value), dst.class, dst.mask));
        program.instrs[phi].srcs[k] = Src::reg(Place::Value(value), dst.class, dst.mask);
    }
    program.blocks[pred].instrs.insert(at, copy);
    Ok(())
}
