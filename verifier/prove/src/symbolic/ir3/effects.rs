//! The syntactic effects of a decoded program, before any execution: shared registers that it writes, events that
//! change versions, subgroup votes, and the words of the constant file that it stores.

use crate::symbolic::EventKind;
use crate::symbolic::environment::StoredConstants;
use crate::symbolic::graph::BlockEffects;
use ir3_compiler::ir3::AddressSpace;
use ir3_compiler::ir3::access::{MemoryAction, linear_address};
use ir3_semantics::environment::memory::Space;
use ir3_semantics::interp::ir3::Decoded;
use ir3_semantics::interp::ir3::op;
use ir3_semantics::interp::ir3::op::{Condition, DecodedOp, Terminator, Which};
use ir3_semantics::interp::ir3::storage::{Modifier, Read, SlotPart, Write};
use ir3_semantics::support::guards::{Guard, left_out};
use rustc_hash::FxHashMap;

/// Returns true if a block ends in a subgroup vote.
pub fn is_vote(block: &op::DecodedBlock) -> bool {
    use Condition::*;
    matches!(block.terminator, Terminator::Branch(Any(_) | All(_) | First | Last, ..))
}

/// Calls `note` for each write of an operation. Gathered and scattered elements are left out: they are never shared.
pub(super) fn writes_of(code: &Decoded, op: &DecodedOp, mut note: impl FnMut(&Write)) {
    match op {
        DecodedOp::Alu1 { dst, .. }
        | DecodedOp::Alu2 { dst, .. }
        | DecodedOp::Alu3 { dst, .. }
        | DecodedOp::Select { dst, .. }
        | DecodedOp::Apply { dst, .. }
        | DecodedOp::Copy(_, dst)
        | DecodedOp::Truth(_, dst)
        | DecodedOp::Interpolate { dst, .. }
        | DecodedOp::Flat { dst, .. }
        | DecodedOp::MoveMask { dst, .. }
        | DecodedOp::Vote { dst, .. }
        | DecodedOp::Elect(dst)
        | DecodedOp::ReadLane { dst, .. }
        | DecodedOp::Derivative { dst, .. }
        | DecodedOp::BroadcastActive { dst, .. }
        | DecodedOp::QuadShuffle { dst, .. }
        | DecodedOp::Shuffle { dst, .. } => note(dst),
        DecodedOp::Input(input) => note(&code.inputs[*input as usize].dst),
        DecodedOp::Copies(copies) => {
            code.copies[copies.start as usize..copies.end as usize].iter().for_each(|(_, write)| note(write));
        }
        DecodedOp::Scan(scan) => {
            scan.exclusive.iter().chain(&scan.inclusive).chain([&scan.reduction]).for_each(note);
        }
        DecodedOp::Memory(access) => code.memory[*access as usize].results.iter().for_each(|(_, write)| note(write)),
        DecodedOp::Texture(texture) => {
            code.textures[*texture as usize].results.iter().for_each(|(_, write)| note(write));
        }
        DecodedOp::Sync(_)
        | DecodedOp::Gather { .. }
        | DecodedOp::Scatter { .. }
        | DecodedOp::GatherConst { .. }
        | DecodedOp::Kill(..)
        | DecodedOp::Demote(..)
        | DecodedOp::Decided(..) => {}
    }
}

/// The shared registers that an operation writes, and the events that change versions.
pub(super) fn effects_of(code: &Decoded, op: &DecodedOp) -> BlockEffects {
    let mut effects = BlockEffects::default();
    writes_of(code, op, |write| {
        if write.shared {
            effects.shared.push(write.loc.slot);
        }
    });
    match op {
        DecodedOp::Memory(access) => {
            let access = &code.memory[*access as usize];
            let event = match access.action {
                MemoryAction::Load => Space::of(access.space).map(EventKind::Load),
                MemoryAction::CopyToConsts => Some(EventKind::Constants),
                MemoryAction::Store if access.space == AddressSpace::Const => Some(EventKind::Constants),
                MemoryAction::Store | MemoryAction::Atomic(_) => Space::of(access.space).map(EventKind::Memory),
                MemoryAction::Size | MemoryAction::SplitSize | MemoryAction::Prefetch => None,
            };
            effects.events.extend(event);
        }
        DecodedOp::Sync(sync) => effects.events.push(EventKind::Sync(*sync)),
        _ => {}
    }
    effects
}

/// Returns the immediate that an operand holds: it is one, or it was moved to the operand earlier in the block, whose
/// first operation is `start`.
fn number_before(code: &Decoded, start: u32, at: u32, read: &Read) -> Option<u32> {
    let loc = read.loc;
    let bits = match code.immediates.iter().find(|immediate| immediate.1 == loc.slot) {
        Some(&(bits, _)) => bits,
        None => {
            let writes = |op: &DecodedOp| {
                let mut found = match op {
                    DecodedOp::Gather { to, .. } | DecodedOp::GatherConst { to, .. } => *to == loc.slot,
                    DecodedOp::Scatter { array, .. } => (array.slot..=array.slot + array.length).contains(&loc.slot),
                    _ => false,
                };
                writes_of(code, op, |write| found |= write.loc.overlaps(loc));
                found
            };
            let number = |at: u32| match &code.ops[at as usize] {
                DecodedOp::Copy(from, to) | DecodedOp::ReadLane { which: Which::First, src: from, dst: to }
                    if to.loc == loc =>
                {
                    number_before(code, start, at, from)
                }
                DecodedOp::Copies(copies) => {
                    let mut pairs = code.copies[copies.start as usize..copies.end as usize].iter();
                    let (from, _) = pairs.find(|(_, to)| to.loc == loc)?;
                    number_before(code, start, at, from)
                }
                _ => None,
            };
            let mut before = (start..at).rev().filter(|&at| writes(&code.ops[at as usize]));
            match before.next().and_then(number) {
                Some(number) => number,
                None if left_out(Guard::StoredNumber) => before.find_map(number)?,
                None => return None,
            }
        }
    };
    let half = loc.part != SlotPart::Whole;
    match read.modifier {
        Modifier::None if !half => Some(bits),
        Modifier::None | Modifier::Low => Some(bits & 0xffff),
        _ => None,
    }
}

/// The words of the constant file that the program stores, if they are known.
pub(super) fn stored_words(code: &Decoded) -> StoredConstants {
    let mut words = Vec::new();
    let numbers: FxHashMap<u16, u32> = code.driver_immediates.iter().copied().collect();
    for block in &code.blocks {
        for at in block.start..block.end {
            let DecodedOp::Memory(access) = &code.ops[at as usize] else { continue };
            let access = &code.memory[*access as usize];
            let known = |read: &Read| number_before(code, block.start, at, read);
            match access.action {
                MemoryAction::Store if access.space == AddressSpace::Const => {
                    let op::AccessAddress::Linear { base: None, indices, scale, offset } = &access.place else {
                        return StoredConstants::Anything;
                    };
                    let index =
                        indices.iter().flatten().try_fold(0u32, |sum, read| Some(sum.wrapping_add(known(read)?)));
                    let Some(index) = index else { return StoredConstants::Anything };
                    words.extend((0_u32..).zip(&access.data).filter_map(|(component, source)| {
                        let size = access.ty.bits() / 8;
                        let word =
                            (linear_address(access.space, 0, index, *scale, *offset, component, size) / 4) as u32;
                        // The number that the driver has filled the word with.
                        let number = u16::try_from(word).ok().and_then(|word| numbers.get(&word).copied());
                        (number.is_none() || known(source) != number).then_some(word)
                    }));
                }
                MemoryAction::CopyToConsts => {
                    let Some(first) = access.data.first().and_then(known) else { return StoredConstants::Anything };
                    words.extend((0..access.copied).map(|word| first.wrapping_add(word)));
                }
                _ => {}
            }
        }
    }
    StoredConstants::words(words.into_iter())
}
