//! Outputs: the values of the last `store_output`s, as sources of the program's `end`.
//!
//! A store at the top level is only recorded; one component is one output. If the program ends in several places (early
//! returns), `end` has a block of its own, with a phi for each output that differs between them.

use super::SelectError;
use super::context::{Context, Word};
use crate::ir3::{Attrs, Block, InstrData, Opcode, Output, Src};
use crate::nir::Intrinsic;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The outputs by base and component: the stored word, and true if it is a half register.
type OutputWords = BTreeMap<(u16, u8), (Word, bool)>;

/// The stored outputs, and the blocks where the program ends.
#[derive(Default)]
pub(super) struct StoredOutputs {
    stored: OutputWords,
    exits: Vec<(Block, OutputWords)>,
}

/// Translates `store_output` and `store_per_view_output`: the views of an output are consecutive.
pub(super) fn store(ctx: &mut Context<'_>, intrinsic: &Intrinsic) -> Result<(), SelectError> {
    let (value, offset) = match intrinsic.srcs[..] {
        [value, offset] => (value, offset),
        [value, view, offset] if ctx.constant(offset, 0) == Some(0) => (value, view),
        _ => return Err(ctx.unsupported("an output of each view with an offset")),
    };
    let Some(offset) = ctx.constant(offset, 0) else {
        return Err(ctx.unsupported("the offset is not a constant"));
    };
    if ctx.depth != 0 {
        return Err(ctx.unsupported("a store to an output inside of an if or a loop"));
    }
    let bits = ctx.bits(value);
    if !matches!(bits, 16 | 32) {
        return Err(ctx.unsupported(format!("an output of {bits} bits")));
    }
    let half = ctx.is_half(bits);
    let mask = intrinsic.indices.write_mask();
    let first = intrinsic.indices.component();
    let Some(base) =
        (offset as i64).checked_add(i64::from(intrinsic.indices.base())).and_then(|b| u16::try_from(b).ok())
    else {
        return Err(ctx.unsupported("the location is out of range"));
    };
    for component in 0..ctx.components(value) {
        if mask >> component & 1 != 0 {
            let slot = (base, first + component);
            // Exits meet in one instruction that has the register of each output.
            if ctx.outputs.exits.iter().any(|(_, stored)| stored.get(&slot).is_some_and(|&(_, other)| other != half)) {
                return Err(ctx.unsupported("an output of another width than where the program may have ended"));
            }
            let word = ctx.word(value, usize::from(component));
            ctx.outputs.stored.insert(slot, (word, half));
        }
    }
    Ok(())
}

/// Ends the current block as an exit of the program.
pub(super) fn exit(ctx: &mut Context<'_>) {
    let block = ctx.block;
    let stored = ctx.outputs.stored.clone();
    ctx.outputs.exits.push((block, stored));
}

/// Ends the program. A program that never ends gets no `end`.
pub(super) fn end(ctx: &mut Context<'_>) {
    let exits = std::mem::take(&mut ctx.outputs.exits);
    let (slots, last) = match exits.as_slice() {
        [] => return,
        [(block, stored)] if ctx.program.layout.last() == Some(block) => {
            ctx.go_to(*block);
            let slots = stored.clone();
            (slots, *block)
        }
        _ => {
            let end = ctx.new_block();
            for (block, _) in &exits {
                ctx.go_to(*block);
                ctx.builder().effect(Opcode::Jump, &[]);
                ctx.program.add_edge(*block, 0, end);
            }
            ctx.place_block(end);
            (merge(ctx, &exits), end)
        }
    };
    ctx.go_to(last);
    let mut srcs: SmallVec<[Src; 8]> = SmallVec::new();
    for (&(base, component), &(word, half)) in &slots {
        if word == Word::Undef {
            continue;
        }
        ctx.program.outputs.push(Output { base, component });
        srcs.push(ctx.src_of_word(word, half));
    }
    let mut data = InstrData::new(Opcode::End);
    data.attrs = Attrs::Outputs((0..srcs.len() as u16).collect());
    data.srcs.extend(srcs);
    ctx.push(data);
}

/// The outputs at the join of several exits: the current block, whose predecessors are the exits.
fn merge(ctx: &mut Context<'_>, exits: &[(Block, OutputWords)]) -> OutputWords {
    let mut merged = OutputWords::new();
    for (_, stored) in exits {
        for (&slot, &entry) in stored {
            merged.entry(slot).or_insert(entry);
        }
    }
    for (slot, entry) in &mut merged {
        let (first, half) = *entry;
        let at = |stored: &OutputWords| stored.get(slot).map_or(Word::Undef, |&(word, _)| word);
        if exits.iter().all(|(_, stored)| at(stored) == first) {
            continue;
        }
        let class = crate::ir3::RegClass::general(half);
        let srcs: SmallVec<[Src; 4]> =
            exits.iter().map(|(block, stored)| ctx.word_at_end(*block, at(stored), class)).collect();
        let value = ctx.alu(Opcode::Phi, class, &srcs);
        *entry = (Word::Value(value), half);
    }
    merged
}
