//! The pass over the blocks: chooses the register of each predicate, and the points where it is computed.

mod early;

use super::super::next_use::{self, NEVER, NextUse, Tracked};
use super::survey::{PredicateOp, Survey};
use super::{Error, SLOTS, SlotMask, State, is_rematerializable, register};
use crate::ir3::dominance::{Dominators, EdgeKind};
use crate::ir3::liveness::LiveSets;
use crate::ir3::loops::Loops;
use crate::ir3::{Block, Dst, Instr, Place, Program, RegFile, SrcOperand, Value};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;

/// The final position of an operation on predicates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PlacedKind {
    /// Unchanged.
    Stays,
    /// Inserted before the old instruction: a clone, or a delayed definition.
    Added,
    /// Removed from its old position.
    Gone,
    /// An inserted operation without a use.
    Nowhere,
}

/// An operation on predicates, the position in its block, and its final position.
#[derive(Clone, Copy)]
pub struct Placed {
    pub instr: Instr,
    pub at: u32,
    pub kind: PlacedKind,
}

/// All operations on predicates, with registers as operands.
pub struct Placement {
    pub list: Vec<Placed>,
    /// The operations of each block.
    pub ranges: SecondaryMap<Block, (u32, u32)>,
}

/// Predicates without a register.
const PREDICATES: Tracked = Tracked {
    value: |src| src.value().filter(|_| src.class.file == RegFile::Predicate),
    result: |dst| Dst::value(dst).filter(|_| dst.class.file == RegFile::Predicate),
};

struct PredicateAssigner<'a> {
    program: &'a mut Program,
    survey: &'a Survey,
    live: &'a LiveSets<Value>,
    loops: Loops,
    /// The header of each loop.
    headers: Vec<Option<Block>>,
    /// The distances of next uses before the pass.
    next_use: NextUse,
    all: SlotMask,
    visited: SecondaryMap<Block, bool>,
    /// The states at the ends of blocks.
    ends: SecondaryMap<Block, State>,
    /// The promises of loop headers.
    promises: SecondaryMap<Block, State>,
    /// The current state.
    occupants: State,
    /// Reads of the block: the position of the instruction, and the next read of the same value plus one.
    reads: Vec<(u32, u32)>,
    /// The next read of each value in the block, plus one.
    next_read: SecondaryMap<Value, u32>,
    /// The last of the lists of values below that contained the value.
    noted: SecondaryMap<Value, u32>,
    /// Number of lists so far: values that are live into a block, live out of it, read in a loop.
    lists: u32,
    /// The list of the values that are live out of the block.
    live_out: u32,
    /// The distance of the next use of each value that is live out of the block, if that is after the block.
    far: SecondaryMap<Value, u32>,
    /// True if no instruction has read it since it was last computed.
    is_unread: SecondaryMap<Value, bool>,
    /// The values to compute at the end of the block, with the distances of their reads.
    wanted: Vec<(u32, Value)>,
    /// True if the instruction that defines it has its final position.
    is_placed: SecondaryMap<Value, bool>,
    /// The last register of each value.
    home: SecondaryMap<Value, u8>,
    list: Vec<Placed>,
}

/// Assigns `slots` registers to all operands.
///
/// # Errors
/// If more predicates are live than there are registers, and they cannot be rematerialised.
pub fn run(program: &mut Program, survey: &Survey, live: &LiveSets<Value>, slots: usize) -> Result<Placement, Error> {
    let (blocks, values) = (program.blocks.len(), program.values.len());
    let loops = Loops::new(program, &Dominators::new(program, EdgeKind::Logical));
    let next_use = next_use::run(program, &survey.order, &loops, PREDICATES);
    let mut headers = vec![None; loops.count()];
    for &block in &survey.order {
        loops.headed_by(block).into_iter().for_each(|number| headers[number] = Some(block));
    }
    let mut walk = PredicateAssigner {
        program,
        survey,
        live,
        loops,
        headers,
        next_use,
        all: (1 << slots) - 1,
        visited: map_of(blocks),
        ends: map_of(blocks),
        promises: SecondaryMap::new(),
        occupants: State::default(),
        reads: Vec::new(),
        next_read: map_of(values),
        noted: map_of(values),
        lists: 0,
        live_out: 0,
        far: SecondaryMap::with_default(NEVER),
        is_unread: SecondaryMap::new(),
        wanted: Vec::new(),
        is_placed: SecondaryMap::new(),
        home: map_of(values),
        list: Vec::with_capacity(survey.ops.len() + survey.ops.len() / 4),
    };
    let mut ranges = map_of(blocks);
    for &block in &survey.order {
        let start = walk.list.len() as u32;
        walk.enter(block);
        walk.visited[block] = true;
        walk.note_live_out(block);
        if !survey.range(block).is_empty() {
            walk.operations(block)?;
        }
        walk.anticipate(block);
        walk.keep_promises(block)?;
        walk.ends[block] = walk.occupants;
        ranges[block] = (start, walk.list.len() as u32);
    }
    Ok(Placement { list: walk.list, ranges })
}

impl PredicateAssigner<'_> {
    /// The state at the start of a block.
    fn enter(&mut self, block: Block) {
        let mut state: Option<State> = None;
        let mut is_header = false;
        for &pred in &self.program.blocks[block].predecessors {
            if !self.visited[pred] {
                is_header = true;
                continue;
            }
            let end = &self.ends[pred];
            match &mut state {
                None => state = Some(*end),
                Some(state) => state.iter_mut().zip(end).filter(|(a, b)| a != b).for_each(|(a, _)| *a = None.into()),
            }
        }
        self.occupants = state.unwrap_or_default();
        if self.occupants == State::default() {
            return;
        }
        self.lists += 1;
        for &value in self.live.live_in(block) {
            self.noted[value] = self.lists;
        }
        for occupant in &mut self.occupants {
            if occupant.expand().is_some_and(|value| self.noted[value] != self.lists) {
                *occupant = None.into();
            }
        }
        if is_header {
            self.promise(block);
        }
    }

    /// Records the state that the ends of the back edges to a block must restore.
    fn promise(&mut self, block: Block) {
        let program = &*self.program;
        let ends = || program.blocks[block].predecessors.iter().filter(|&&pred| !self.visited[pred]);
        // If a predicate itself decides the back edge, others cannot be restored there; such edges have blocks of their
        // own.
        let chooses = |&block: &Block| {
            let list = self.survey.ops[self.survey.range(block)].last();
            list.is_some_and(|op| program.instrs[op.instr].opcode.is_terminator())
        };
        let last = ends().map(|&pred| self.survey.position[pred]).max().unwrap_or(0);
        if ends().any(chooses) {
            self.occupants = State::default();
            return;
        }
        // The values that are read in the loop.
        let start = self.survey.range(block).start;
        let end = self.survey.range(self.survey.order[last as usize]).end;
        self.lists += 1;
        let mut count = 0;
        for op in &self.survey.ops[start..end] {
            for src in program.instrs[op.instr].srcs.iter().filter(|src| src.class.file == RegFile::Predicate) {
                if let Some(value) = src.value() {
                    count += u32::from(std::mem::replace(&mut self.noted[value], self.lists) != self.lists);
                }
            }
        }
        let room = self.all.count_ones();
        for occupant in &mut self.occupants {
            let Some(value) = occupant.expand() else { continue };
            let is_read = self.noted[value] == self.lists;
            if !is_read && count < room {
                count += 1;
            } else if !is_read || room == 1 && count > room {
                *occupant = None.into();
            }
        }
        self.promises[block] = self.occupants;
    }

    /// Computes the values that loop headers expect at the ends of their back edges.
    fn keep_promises(&mut self, block: Block) -> Result<(), Error> {
        for k in 0..2 {
            let Some(header) = self.program.blocks[block].successors[k].filter(|&next| self.visited[next]) else {
                continue;
            };
            let promise = self.promises[header];
            for (slot, value) in promise.iter().enumerate() {
                if let Some(value) = value.expand().filter(|_| self.occupants[slot] != *value) {
                    self.compute(value, self.terminators(block) as u32, slot)?;
                }
            }
        }
        Ok(())
    }

    fn operations(&mut self, block: Block) -> Result<(), Error> {
        let ops = &self.survey.ops[self.survey.range(block)];
        self.reads.clear();
        for op in ops.iter().rev() {
            for src in self.program.instrs[op.instr].srcs.iter().filter(|src| src.class.file == RegFile::Predicate) {
                if let Some(value) = src.value() {
                    self.reads.push((op.at, self.next_read[value]));
                    self.next_read[value] = self.reads.len() as u32;
                }
            }
        }
        for op in ops {
            self.operation(op)?;
        }
        Ok(())
    }

    /// Notes the values that are live out of a block.
    fn note_live_out(&mut self, block: Block) {
        self.lists += 1;
        self.live_out = self.lists;
        for next in self.program.blocks[block].successors() {
            for &value in self.live.live_in(next) {
                self.noted[value] = self.live_out;
            }
        }
        let length = self.program.blocks[block].instrs.len() as u32;
        for &(value, distance) in &self.next_use.end[block] {
            self.far[value] = distance.saturating_add(length).min(NEVER - 1);
        }
    }

    fn operation(&mut self, op: &PredicateOp) -> Result<(), Error> {
        let PredicateOp { instr, at } = *op;
        let opcode = self.program.instrs[instr].opcode;
        let allowed = if opcode.is_predication() { 1 } else { self.all };
        // Values in registers stay there.
        let mut taken: SlotMask = 0;
        let sources = 0..self.program.instrs[instr].srcs.len();
        for k in sources.clone() {
            if let Some(slot) = self.source(instr, k).and_then(|value| self.slot(value, allowed)) {
                taken |= 1 << slot;
            }
        }
        for k in sources {
            let Some(value) = self.source(instr, k) else { continue };
            let slot = match self.slot(value, allowed) {
                Some(slot) => slot,
                None => {
                    let slot = self.free(value, allowed & !taken);
                    let slot = slot.or_else(|| self.victim(allowed & !taken)).ok_or_else(|| self.too_many())?;
                    self.compute(value, at, slot)?;
                    slot
                }
            };
            taken |= 1 << slot;
            self.is_unread[value] = false;
            self.next_read[value] = self.reads[self.next_read[value] as usize - 1].1;
            self.program.instrs[instr].srcs[k].operand = SrcOperand::Place(Place::Reg(register(slot)));
        }
        let mut kind = PlacedKind::Stays;
        let mut written: SlotMask = 0;
        for k in 0..self.program.instrs[instr].dsts.len() {
            let dst = self.program.instrs[instr].dsts[k];
            let Some(value) = dst.value().filter(|_| dst.class.file == RegFile::Predicate) else { continue };
            let wanted = if self.survey.wants_first[value] { 1 } else { self.all };
            let slot = self.free(value, wanted & !written);
            let slot = slot.or_else(|| self.less_urgent(value, wanted & !written));
            let slot = match slot.filter(|_| self.is_needed(value)) {
                Some(slot) => slot,
                // Delayed to its first read, or never needed.
                None if is_rematerializable(&self.program.instrs[instr]) => {
                    kind = PlacedKind::Gone;
                    continue;
                }
                None => {
                    let slot = self.free(value, self.all & !written);
                    slot.or_else(|| self.victim(self.all & !written)).ok_or_else(|| self.too_many())?
                }
            };
            written |= 1 << slot;
            self.hold(value, instr, k, slot);
        }
        self.list.push(Placed { instr, at, kind });
        Ok(())
    }

    /// The predicate that a source reads.
    fn source(&self, instr: Instr, k: usize) -> Option<Value> {
        let src = &self.program.instrs[instr].srcs[k];
        src.value().filter(|_| src.class.file == RegFile::Predicate)
    }

    /// The register that holds a value, if it is one of the allowed ones.
    fn slot(&self, value: Value, allowed: SlotMask) -> Option<usize> {
        (0..SLOTS).find(|&slot| allowed & 1 << slot != 0 && self.occupants[slot] == Some(value).into())
    }

    /// Returns true if a value is read later in the block, or is live out of it.
    fn is_needed(&self, value: Value) -> bool {
        self.next_read[value] != 0 || self.noted[value] == self.live_out
    }

    /// A register for a value whose current contents are dead: its previous register, if possible.
    fn free(&self, value: Value, allowed: SlotMask) -> Option<usize> {
        let is_free = |slot: usize| {
            allowed & 1 << slot != 0 && self.occupants[slot].expand().is_none_or(|value| !self.is_needed(value))
        };
        let home = usize::from(self.home[value]).checked_sub(1).filter(|&slot| is_free(slot));
        // `p0.x` is reserved for the values that prefer it.
        let keeps_first = self.survey.any_wants_first && !self.survey.wants_first[value];
        home.or_else(|| {
            if keeps_first {
                (0..SLOTS).rev().find(|&slot| is_free(slot))
            } else {
                (0..SLOTS).find(|&slot| is_free(slot))
            }
        })
    }

    /// The register whose value has the furthest read; one that cannot be rematerialised only if there is no other.
    fn victim(&self, allowed: SlotMask) -> Option<usize> {
        let distance = |slot: usize| {
            let value = self.occupants[slot].expand()?;
            Some((self.can_be_computed_again(value), self.distance(value)))
        };
        // The first of several with equal distance.
        (0..SLOTS).rev().filter(|&slot| allowed & 1 << slot != 0).max_by_key(|&slot| distance(slot))
    }

    /// The register of the value with the furthest read, of those that nothing has read yet and that are read after
    /// `value`: delaying one of these costs no more than delaying `value`.
    fn less_urgent(&self, value: Value, allowed: SlotMask) -> Option<usize> {
        let distance = |slot: usize| {
            let other = self.occupants[slot].expand()?;
            (self.is_unread[other] && self.can_be_computed_again(other)).then(|| self.distance(other))
        };
        let slots = (0..SLOTS).rev().filter(|&slot| allowed & 1 << slot != 0);
        let found = slots.filter_map(|slot| Some((distance(slot)?, slot))).max_by_key(|found| found.0);
        found.filter(|&(distance, _)| distance > self.distance(value)).map(|(_, slot)| slot)
    }

    fn can_be_computed_again(&self, value: Value) -> bool {
        is_rematerializable(&self.program.instrs[self.program.values[value].instr])
    }

    fn too_many(&self) -> Error {
        let available = self.all.count_ones();
        Error::NeedsSpilling { needed: available + 1, available, file: "predicate" }
    }

    /// Inserts the instruction that defines a value, or a clone of it, before a position.
    fn compute(&mut self, value: Value, at: u32, slot: usize) -> Result<(), Error> {
        if !self.can_be_computed_again(value) {
            let instr = self.program.values[value].instr;
            return Err(Error::unsupported(self.program, instr, "a predicate that cannot be rematerialised"));
        }
        self.compute_at(value, at, slot, self.list.len());
        Ok(())
    }

    /// The same for a value that can be rematerialised, at an index of the list.
    fn compute_at(&mut self, value: Value, at: u32, slot: usize, index: usize) {
        let mut instr = self.program.values[value].instr;
        if self.is_placed[value] {
            instr = self.program.instrs.push(self.program.instrs[instr].clone());
        }
        self.hold(value, instr, 0, slot);
        self.list.insert(index, Placed { instr, at, kind: PlacedKind::Added });
    }

    /// Makes destination `k` of an instruction write a value to a register.
    fn hold(&mut self, value: Value, instr: Instr, k: usize, slot: usize) {
        for occupant in &mut self.occupants {
            if *occupant == Some(value).into() {
                *occupant = None.into();
            }
        }
        self.occupants[slot] = value.into();
        self.is_placed[value] = true;
        self.is_unread[value] = true;
        self.home[value] = slot as u8 + 1;
        self.program.instrs[instr].dsts[k].place = Place::Reg(register(slot));
    }
}
