//! The uses of slots: see [`interp::uses`](ir3_semantics::interp::uses).

use super::effects::writes_of;
use crate::symbolic::Graph;
use fixedbitset::FixedBitSet;
use ir3_compiler::ir3::AddressSpace;
use ir3_compiler::ir3::access::MemoryAction;
use ir3_semantics::interp::Places;
use ir3_semantics::interp::ir3::Decoded;
use ir3_semantics::interp::ir3::op::{
    AccessAddress, Condition, Copies, DecodedOp, NumberOperand, ResourceOperand, Terminator, Which,
};
use ir3_semantics::interp::ir3::storage::{Modifier, Read, SlotPart};
use ir3_semantics::interp::uses::{Definition, Operands, UseTable, ValueUses};
use smallvec::SmallVec;

/// The uses of the slots of a program.
pub(super) fn uses_of(code: &Decoded, graph: &Graph, places: &Places) -> ValueUses {
    let mut table = UseTable::new(code.slots);
    // The loops around each write, and around each read.
    let mut written: Vec<Option<Loops>> = vec![None; code.slots as usize];
    let mut read: Vec<(u32, u32)> = Vec::new();
    let around = |block: usize| graph.loops_around(block as u32).collect::<Loops>();
    let mut define = |table: &mut UseTable, block: usize, at: u32, definition: Definition| {
        table.define(at, definition);
        let here = around(block);
        match &mut written[at as usize] {
            Some(loops) => loops.retain(|number| here.contains(number)),
            none => *none = Some(here),
        }
    };
    for (number, block) in code.blocks.iter().enumerate() {
        for op in &code.ops[block.start as usize..block.end as usize] {
            let reads = reads_of(code, op);
            read.extend(reads.iter().map(|&slot| (slot, number as u32)));
            match op {
                DecodedOp::Copy(from, to) if is_whole(from) => {
                    define(&mut table, number, to.loc.slot, Definition::Move(from.loc.slot));
                }
                DecodedOp::Copies(copies) => {
                    copied(code, copies, |to, definition| define(&mut table, number, to, definition))
                }
                DecodedOp::Gather { to, .. } => define(&mut table, number, *to, operation(reads, true, false)),
                DecodedOp::GatherConst { to, .. } => define(&mut table, number, *to, operation(reads, false, false)),
                DecodedOp::Scatter { array, from, .. } => {
                    for slot in (0..array.length).map(|i| array.loc(i).slot) {
                        let definition = match is_whole(from) && !array.halves {
                            true => Definition::Move(from.loc.slot),
                            false => operation(reads.clone(), false, true),
                        };
                        define(&mut table, number, slot, definition);
                    }
                }
                _ => {
                    let (may_be_undefined, is_one_value) = result_of(code, op);
                    writes_of(code, op, |write| {
                        // A write to a half keeps the other one.
                        let mut reads = reads.clone();
                        if write.loc.part != SlotPart::Whole {
                            reads.push(write.loc.slot);
                        }
                        define(&mut table, number, write.loc.slot, operation(reads, may_be_undefined, is_one_value));
                    });
                }
            }
        }
        let edges: SmallVec<[_; 2]> = match &block.terminator {
            Terminator::End(start, end) => {
                let outputs = &code.outputs[*start as usize..*end as usize];
                read.extend(outputs.iter().map(|(.., output)| (output.loc.slot, number as u32)));
                SmallVec::new()
            }
            Terminator::Jump(edge) => [edge].into_iter().collect(),
            Terminator::Skip(condition, edge, _) => {
                condition_reads(condition, |slot| read.push((slot, number as u32)));
                [edge].into_iter().collect()
            }
            Terminator::Branch(condition, yes, no, _) => {
                condition_reads(condition, |slot| read.push((slot, number as u32)));
                [yes, no].into_iter().collect()
            }
        };
        for edge in edges {
            let list = &code.copies[edge.copies.start as usize..edge.copies.end as usize];
            read.extend(list.iter().map(|(from, _)| (from.loc.slot, number as u32)));
            // A phi belongs to its block.
            copied(code, &edge.copies, |to, definition| define(&mut table, edge.to as usize, to, definition));
        }
    }
    for (slot, block) in read {
        let home = &written[slot as usize];
        let is_repeated =
            graph.loops_around(block).any(|number| home.as_ref().is_none_or(|home| !home.contains(&number)));
        table.read(slot, is_repeated);
    }
    for slot in read_before_written(code).ones().map(|slot| slot as u32) {
        if !places.written_first.contains(&slot) && Some(slot) != code.undefined {
            table.opens(slot);
        }
    }
    table.finish(code.undefined)
}

/// The slots that some path reads before it has written them as a whole.
fn read_before_written(code: &Decoded) -> FixedBitSet {
    let count = code.slots as usize;
    let mut constant = FixedBitSet::with_capacity(count);
    constant.extend(code.immediates.iter().map(|&(_, slot)| slot as usize));
    constant.extend(code.consts.iter().map(|&(.., slot)| slot as usize));
    // The slots that are written on all paths to each block that is reached.
    let mut written: Vec<Option<FixedBitSet>> = vec![None; code.blocks.len()];
    written[0] = Some(constant);
    let mut open = FixedBitSet::with_capacity(count);
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (number, block) in code.blocks.iter().enumerate() {
            let Some(mut here) = written[number].clone() else { continue };
            for op in &code.ops[block.start as usize..block.end as usize] {
                let reads = reads_of(code, op);
                open.extend(reads.iter().map(|&slot| slot as usize).filter(|&slot| !here.contains(slot)));
                if let DecodedOp::Gather { to, .. } | DecodedOp::GatherConst { to, .. } = op {
                    here.insert(*to as usize);
                }
                writes_of(code, op, |write| {
                    if write.loc.part == SlotPart::Whole {
                        here.insert(write.loc.slot as usize);
                    }
                });
            }
            let mut note = |slot: u32| {
                if !here.contains(slot as usize) {
                    open.insert(slot as usize);
                }
            };
            let edges: SmallVec<[_; 2]> = match &block.terminator {
                Terminator::End(start, end) => {
                    code.outputs[*start as usize..*end as usize].iter().for_each(|(.., read)| note(read.loc.slot));
                    SmallVec::new()
                }
                Terminator::Jump(edge) => [edge].into_iter().collect(),
                Terminator::Skip(condition, edge, _) => {
                    condition_reads(condition, note);
                    [edge].into_iter().collect()
                }
                Terminator::Branch(condition, yes, no, _) => {
                    condition_reads(condition, note);
                    [yes, no].into_iter().collect()
                }
            };
            for edge in edges {
                let list = &code.copies[edge.copies.start as usize..edge.copies.end as usize];
                let mut there = here.clone();
                for (from, to) in list {
                    if !here.contains(from.loc.slot as usize) {
                        open.insert(from.loc.slot as usize);
                    }
                    if to.loc.part == SlotPart::Whole {
                        there.insert(to.loc.slot as usize);
                    }
                }
                match &mut written[edge.to as usize] {
                    Some(known) => {
                        let before = known.count_ones(..);
                        known.intersect_with(&there);
                        changed |= known.count_ones(..) < before;
                    }
                    none => {
                        *none = Some(there);
                        changed = true;
                    }
                }
            }
        }
    }
    open
}

type Loops = SmallVec<[u32; 4]>;

fn operation(reads: Operands, may_be_undefined: bool, is_one_value: bool) -> Definition {
    Definition::Operation { reads, may_be_undefined, is_one_value }
}

/// Returns true if an operand is a whole slot without modifiers.
fn is_whole(read: &Read) -> bool {
    matches!(read.modifier, Modifier::None) && read.loc.part == SlotPart::Whole
}

/// Calls `define` with the definitions of moves.
fn copied(code: &Decoded, copies: &Copies, mut define: impl FnMut(u32, Definition)) {
    for (from, to) in &code.copies[copies.start as usize..copies.end as usize] {
        let definition = match is_whole(from) && to.loc.part == SlotPart::Whole {
            true => Definition::Move(from.loc.slot),
            false => operation([from.loc.slot, to.loc.slot].into_iter().collect(), false, false),
        };
        define(to.loc.slot, definition);
    }
}

/// Returns whether the result of an operation may be undefined where no operand is, and whether it is seen elsewhere
/// too.
fn result_of(code: &Decoded, op: &DecodedOp) -> (bool, bool) {
    match op {
        DecodedOp::Input(input) => (code.inputs[*input as usize].clash, false),
        DecodedOp::Memory(access) => {
            let access = &code.memory[*access as usize];
            let is_of_lane = access.space == AddressSpace::Scratch;
            let is_elsewhere = access.bytes.is_some() || access.padding.is_some();
            let is_atomic = matches!(access.action, MemoryAction::Atomic(_));
            (is_of_lane || is_elsewhere || is_atomic, is_of_lane)
        }
        DecodedOp::Alu1 { .. }
        | DecodedOp::Alu2 { .. }
        | DecodedOp::Alu3 { .. }
        | DecodedOp::Select { .. }
        | DecodedOp::Apply { .. }
        | DecodedOp::Copy(..)
        | DecodedOp::Truth(..)
        | DecodedOp::Interpolate { .. }
        | DecodedOp::Flat { .. } => (false, false),
        DecodedOp::Scan(_) => (true, true),
        _ => (true, false),
    }
}

fn condition_reads(condition: &Condition, mut note: impl FnMut(u32)) {
    match condition {
        Condition::Is(a) | Condition::Any(a) | Condition::All(a) => note(a.loc.slot),
        Condition::And(a, b) | Condition::Or(a, b) => {
            note(a.loc.slot);
            note(b.loc.slot);
        }
        Condition::First | Condition::Last | Condition::RunsPreamble => {}
    }
}

/// The slots that an operation reads.
fn reads_of(code: &Decoded, op: &DecodedOp) -> Operands {
    let mut slots = Operands::new();
    let mut note = |read: &Read| slots.push(read.loc.slot);
    match op {
        DecodedOp::Alu1 { src, .. }
        | DecodedOp::Apply { src, .. }
        | DecodedOp::Copy(src, _)
        | DecodedOp::Truth(src, _)
        | DecodedOp::Derivative { src, .. }
        | DecodedOp::Kill(src, _)
        | DecodedOp::Demote(src, _)
        | DecodedOp::Decided(src, _)
        | DecodedOp::Vote { predicate: src, .. } => note(src),
        DecodedOp::Alu2 { srcs, .. } => srcs.iter().for_each(note),
        DecodedOp::Alu3 { srcs, .. } | DecodedOp::Select { srcs, .. } => srcs.iter().for_each(note),
        DecodedOp::Copies(copies) => {
            code.copies[copies.start as usize..copies.end as usize].iter().for_each(|(from, _)| note(from));
        }
        DecodedOp::Gather { array, index, .. } => {
            note(index);
            slots.extend((0..array.length).map(|i| array.loc(i).slot));
        }
        DecodedOp::Scatter { index, from, .. } => [index, from].into_iter().for_each(note),
        DecodedOp::GatherConst { index, .. } => note(index),
        DecodedOp::Interpolate { varying, ij, .. } => [varying, &ij[0], &ij[1]].into_iter().for_each(note),
        DecodedOp::Flat { varying, .. } => note(varying),
        DecodedOp::MoveMask { predicate, .. } => predicate.iter().for_each(note),
        DecodedOp::ReadLane { which, src, .. } => {
            note(src);
            if let Which::Where(predicate) = which {
                note(predicate);
            }
        }
        DecodedOp::Scan(scan) => {
            [&scan.src, &scan.initial].into_iter().chain(&scan.exclusive_src).for_each(note);
        }
        DecodedOp::BroadcastActive { src, default, .. } => [src, default].into_iter().for_each(note),
        DecodedOp::QuadShuffle { lane, src, .. } => lane.iter().chain([src]).for_each(note),
        DecodedOp::Shuffle { index, src, .. } => [index, src].into_iter().for_each(note),
        DecodedOp::Memory(access) => {
            let access = &code.memory[*access as usize];
            access.resource.iter().for_each(|resource| resource_reads(resource, &mut note));
            match &access.place {
                AccessAddress::None => {}
                AccessAddress::Linear { base, indices, .. } => {
                    base.iter().flatten().chain(indices.iter().flatten()).for_each(&mut note);
                }
                AccessAddress::Texel(texel) => texel.iter().for_each(&mut note),
            }
            if let Some(bytes) = &access.bytes {
                [&bytes.low]
                    .into_iter()
                    .chain(&bytes.high)
                    .chain(&bytes.start)
                    .chain(&bytes.strides)
                    .for_each(&mut note);
            }
            access.padding.iter().chain(&access.data).chain(&access.compare).for_each(note);
        }
        DecodedOp::Texture(texture) => {
            let texture = &code.textures[*texture as usize];
            [&texture.texture, &texture.sampler].into_iter().for_each(|resource| resource_reads(resource, &mut note));
            texture.operands.iter().for_each(|(_, read)| note(read));
            texture.prefetch.iter().flat_map(|(ij, _)| ij).for_each(note);
        }
        DecodedOp::Sync(_) | DecodedOp::Input(_) | DecodedOp::Elect(_) => {}
    }
    slots
}

fn resource_reads(resource: &ResourceOperand, note: &mut impl FnMut(&Read)) {
    for number in [Some(&resource.index), resource.set.as_ref()].into_iter().flatten() {
        if let NumberOperand::Field { read, .. } = number {
            note(read);
        }
    }
}
