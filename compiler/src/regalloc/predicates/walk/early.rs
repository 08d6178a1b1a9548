//! Predicates that are computed before the blocks that read them.

use super::PredicateAssigner;
use crate::ir3::{Block, Instr, RegFile, Value};
use crate::regalloc::next_use::{LOOP_EXIT, NEVER};
use crate::regalloc::predicates::{SLOTS, SlotMask, is_rematerializable, slot_of};

/// A read within this many instructions after a block would wait for a value computed after it.
const SOON: u32 = 8;

impl PredicateAssigner<'_> {
    /// Computes values without a register at the end of a block, in registers that are free there: values that are read
    /// soon after it, so that their readers need not wait, and before a loop values that are read in it.
    ///
    /// Only blocks that start with the registers of this one count: those with no other predecessor, but for the ends
    /// of back edges. Values that turn out to be unread are removed in the end.
    pub(super) fn anticipate(&mut self, block: Block) {
        let terminators = self.terminators(block);
        let mut read: SlotMask = 0;
        for &instr in &self.program.blocks[block].instrs[terminators..] {
            let srcs = self.program.instrs[instr].srcs.iter().filter(|src| src.class.file == RegFile::Predicate);
            read |= srcs.filter_map(|src| slot_of(src.place()?)).fold(0, |slots, slot| slots | 1 << slot);
        }
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.clear();
        for k in 0..2 {
            if let Some(next) = self.program.blocks[block].successors[k] {
                self.wanted_by(block, next, &mut wanted);
            }
        }
        wanted.sort_unstable();
        for &(_, value) in &wanted {
            if (0..SLOTS).any(|slot| self.occupants[slot] == value.into()) {
                continue;
            }
            let allowed = if self.survey.wants_first[value] { 1 } else { self.all };
            let slot = self.free(value, allowed & !read).or_else(|| self.next_victim(block, value, allowed, read));
            let Some(slot) = slot else { continue };
            let is_terminator = |instr: Instr| self.program.blocks[block].instrs[terminators..].contains(&instr);
            let behind = self.list.iter().rev().take_while(|op| is_terminator(op.instr)).count();
            let index = self.list.len() - behind;
            self.compute_at(value, terminators as u32, slot, index);
        }
        self.wanted = wanted;
    }

    /// Adds the values that should be computed before `next` to a list, with their distances.
    fn wanted_by(&self, block: Block, next: Block, wanted: &mut Vec<(u32, Value)>) {
        let program = &*self.program;
        let header = self.loops.headed_by(next).filter(|&number| !self.loops.contains(number, block));
        let starts_like_this = |&pred: &Block| {
            pred == block || header.is_some_and(|number| !self.visited[pred] && self.loops.contains(number, pred))
        };
        let shares = !self.visited[next] && program.blocks[next].predecessors.iter().all(starts_like_this);
        if !shares || self.loops.left_by(block, next) > 0 {
            return;
        }
        let limit = if header.is_some() { LOOP_EXIT } else { SOON };
        for &(value, distance) in &self.next_use.start[next] {
            if distance < limit && is_rematerializable(&program.instrs[program.values[value].instr]) {
                wanted.push((distance, value));
            }
        }
    }

    /// The register that a read of `value` after the block would have to take from another value anyway: all registers
    /// have values that are read later, or until then stay live in a loop. The terminators read the registers `read`.
    fn next_victim(&self, block: Block, value: Value, allowed: SlotMask, read: SlotMask) -> Option<usize> {
        let distance = self.distance(value);
        let header = self.loops.around(block).next().and_then(|number| self.headers[number]);
        let lives_on =
            |value: Value| header.is_some_and(|header| self.live.live_in(header).binary_search(&value).is_ok());
        let keeps = |slot: usize| {
            let other = self.occupants[slot].expand();
            other.is_some_and(|other| {
                let is_read_before = read & 1 << slot != 0 || self.distance(other) < distance;
                self.is_needed(other) && (lives_on(other) || !is_read_before)
            })
        };
        let all_keep = (0..SLOTS).all(|slot| self.all & 1 << slot == 0 || keeps(slot));
        let victim = self.victim(allowed & !read).filter(|_| all_keep)?;
        let other = self.occupants[victim].expand()?;
        (self.can_be_computed_again(other) && self.distance(other) > distance).then_some(victim)
    }

    /// The position of the first terminator of a block.
    pub(super) fn terminators(&self, block: Block) -> usize {
        self.program.body_len(&self.program.blocks[block].instrs)
    }

    /// The distance of the next use of a value from the start of the current block.
    pub(super) fn distance(&self, value: Value) -> u32 {
        match self.next_read[value].checked_sub(1) {
            Some(read) => self.reads[read as usize].0,
            None if self.noted[value] == self.live_out => self.far[value],
            None => NEVER,
        }
    }
}
