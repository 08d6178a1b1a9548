//! Starts and ends of blocks.
//!
//! A block starts with the registers at the end of the predecessor that was visited directly before it, or else of the
//! first visited one; a phi takes those of its source. All other edges into a block with several predecessors come from
//! blocks with one successor, so all moves of an edge are at the end of the predecessor, in one parallel copy: if the
//! copy of the phi sources exists, its destinations are changed. A block that is visited before its successor records
//! the places at its end until then.
//!
//! After the preamble, the predecessor is the block taken by waves that skip the preamble. They arrive at the place
//! after `shpe`, where no move for them can be inserted: a phi takes the registers of its source there even if others
//! would be better.

use super::{Assigner, EntryValue, ExitValue, PendingMove, UNASSIGNED};
use crate::ir3::{Block, Instr, Opcode, PhysReg, Place, SrcOperand, Value};
use crate::regalloc::Error;
use crate::regalloc::file::UnitSet;
use crate::regalloc::forest::ValueList;
use crate::regalloc::parallel_copy::reg_of;
use crate::regalloc::pressure::is_kept;
use crate::regalloc::step::Step;

impl Assigner<'_> {
    /// Enters a block; `start` are its phis, or the inputs and prefetches.
    pub(super) fn start_block(&mut self, block: Block, start: &[Instr], step: &mut Step) -> Result<(), Error> {
        let analysis = self.analysis;
        self.results = Default::default();
        self.dying = Default::default();
        self.out.clear();
        let predecessors = &self.program.blocks[block].predecessors;
        let last = self.last_block.replace(block);
        let near = predecessors.iter().position(|&pred| last == Some(pred));
        let from = near.or_else(|| predecessors.iter().position(|&pred| self.visited[pred]));
        let from_block = from.map(|k| predecessors[k]);
        let several = predecessors.len() > 1;
        let after_preamble = several && predecessors.iter().any(|&pred| self.program.ends_preamble(pred));
        if near.is_some() {
            // All values stay in place, and those that are not live into the block are removed.
            let leaving: ValueList = analysis.liveness.leaving(block).collect();
            self.remove_killed(&leaving);
        } else {
            self.restore(from_block, block);
        }
        step.read_definitions(self.program, &analysis.liveness, start);
        step.results.retain(|result| is_kept(self.program, &analysis.liveness, result.value));
        self.moved.clear();
        let crowded = self.reserve_arrays(2 * analysis.indices.start[block], true, step);
        self.place_start((from, after_preamble), step, crowded)?;
        if several {
            self.note_start(block, start);
            for k in 0..self.program.blocks[block].predecessors.len() {
                let pred = self.program.blocks[block].predecessors[k];
                if self.visited[pred] {
                    self.connect(pred, k, block)?;
                }
            }
        }
        self.start_inputs(start)
    }

    /// Makes the live-in values of a block live, in their places at the end of a predecessor.
    fn restore(&mut self, from: Option<Block>, block: Block) {
        for i in 0..self.forest.live().len() {
            let value = self.forest.live()[i];
            if self.forest.is_root(value) {
                self.vacate(value);
            }
        }
        if let Some(pred) = from {
            let (first, end) = self.exit_of[pred];
            for i in first..end {
                let ExitValue { value, at, .. } = self.exits[i as usize];
                self.place[value] = at;
            }
        }
        self.analysis.enter(self.program, block, &mut self.forest);
        for i in 0..self.forest.live().len() {
            let value = self.forest.live()[i];
            if self.forest.is_root(value) {
                self.occupy(value);
            }
        }
    }

    /// Chooses the places of phis and inputs. `crowded` are the files in which an array needs the registers of values
    /// that find no others.
    fn place_start(
        &mut self,
        (from, after_preamble): (Option<usize>, bool),
        step: &Step,
        crowded: [bool; 3],
    ) -> Result<(), Error> {
        let analysis = self.analysis;
        if let (None, Some(inputs)) = (from, &analysis.inputs) {
            for &(value, at) in &inputs.places {
                self.insert_root(value);
                self.put(value, at);
            }
            return Ok(());
        }
        // Those with a known place first.
        let known: Vec<Option<u16>> = (step.results.iter())
            .map(|result| {
                let data = &self.program.instrs[self.program.values[result.value].instr];
                match data.opcode {
                    Opcode::Phi => data.srcs.get(from?)?.value().map(|src| self.place[src]),
                    _ => None,
                }
            })
            .collect();
        let mut failed = crowded;
        for is_known in [true, false] {
            for (result, &known) in step.results.iter().zip(&known) {
                if known.is_some() != is_known {
                    continue;
                }
                let value = result.value;
                if let Some(fixed) = self.fixed {
                    self.insert_root(value);
                    self.put(value, fixed[value]);
                    continue;
                }
                let file = self.file(self.class(value));
                let (align, class_limit) = self.align_and_limit(value);
                let len = self.units(value);
                let blocked = self.blocked(file, false);
                let fits = |&at: &u16| {
                    at != UNASSIGNED && at % align == 0 && at + len <= class_limit && blocked.is_free(at, len)
                };
                let known_place = known.filter(fits);
                self.insert_root(value);
                let stays = after_preamble && known_place.is_some();
                let avoiding = self.avoided(value).filter(|_| !stays).map(|units| blocked.with(&units));
                let start = avoiding.and_then(|blocked| {
                    let clear = known_place.filter(|&at| blocked.is_free(at, len));
                    clear.or_else(|| self.choose_start(value, &blocked))
                });
                let at = start
                    .or(known_place)
                    .or_else(|| self.choose_start(value, &blocked))
                    .or_else(|| self.evict(value, false, step));
                match at {
                    Some(at) => self.put(value, at),
                    None => failed[file] = true,
                }
            }
        }
        for file in (0..3).filter(|&file| failed[file]) {
            self.compact(file, step)?;
        }
        Ok(())
    }

    /// A gap for a phi or an input.
    fn choose_start(&mut self, value: Value, blocked: &UnitSet) -> Option<u16> {
        let preferred = self.preferred_place(value, blocked);
        preferred.or_else(|| self.gap_for_set(value, blocked)).or_else(|| self.gap(value, blocked))
    }

    /// Emits the inputs, and drops unused results of these and of prefetches.
    fn start_inputs(&mut self, start: &[Instr]) -> Result<(), Error> {
        for &input in start {
            let opcode = self.program.instrs[input].opcode;
            if opcode == Opcode::Phi {
                continue;
            }
            let liveness = &self.analysis.liveness;
            let values = self.program.instrs[input].dsts.iter().filter_map(|dst| dst.value());
            let unused: ValueList =
                values.filter(|&value| liveness.units(value) != 0 && !liveness.is_used(value)).collect();
            self.remove_killed(&unused);
            self.rewrite_destinations(input)?;
            if opcode == Opcode::Input {
                self.out.push(input);
            }
        }
        Ok(())
    }

    /// Records the places at the start of a block with several predecessors.
    fn note_start(&mut self, block: Block, start: &[Instr]) {
        let first = self.starts.len() as u32;
        let analysis = self.analysis;
        for &value in self.forest.live() {
            if self.forest.is_root(value) && analysis.liveness.is_live_into(value, block) {
                self.starts.push(EntryValue { value, at: self.place[value], phi: None.into() });
            }
        }
        for &phi in start.iter().filter(|&&instr| self.program.instrs[instr].opcode == Opcode::Phi) {
            let data = &self.program.instrs[phi];
            let Some(value) = data.dsts.first().and_then(|dst| dst.value()) else { continue };
            if self.forest.is_root(value) {
                let at = self.place[value];
                self.starts.push(EntryValue { value, at, phi: phi.into() });
                self.phi_place[value] = at;
                for src in data.srcs.iter().filter_map(|src| src.value()) {
                    self.phi_of[src] = value.into();
                }
            }
        }
        self.start_of[block] = (first, self.starts.len() as u32);
    }

    /// Leaves a block.
    pub(super) fn end_block(&mut self, block: Block) -> Result<(), Error> {
        let sets = &self.analysis.sets;
        let first = self.exits.len() as u32;
        for &value in self.forest.live() {
            let root = self.forest.root_of(sets, value);
            let offset = (sets.interval(value).start - sets.interval(root).start) as u16;
            self.exits.push(ExitValue { value, at: self.place[value], root, offset });
        }
        self.exit_of[block] = (first, self.exits.len() as u32);
        self.visited[block] = true;
        let successors = self.program.blocks[block].successors;
        if let [Some(next), None] = successors
            && self.visited[next]
            && let Some(k) = self.program.blocks[next].predecessors.iter().position(|&pred| pred == block)
        {
            self.connect(block, k, next)?;
        }
        Ok(())
    }

    /// Extends the parallel copy at the end of `pred`, which is predecessor `k`, to move all values to their places in
    /// `block`.
    fn connect(&mut self, pred: Block, k: usize, block: Block) -> Result<(), Error> {
        let old = std::mem::take(&mut self.last[pred]);
        for (i, item) in old.iter().enumerate() {
            if let Some(value) = item.value.expand() {
                self.index[value].0 = i as u32;
            }
        }
        let (first, end) = self.exit_of[pred];
        if self.indexed.replace(pred) != Some(pred) {
            for i in first..end {
                self.index[self.exits[i as usize].value].1 = i;
            }
        }
        let mut new: Vec<PendingMove> = Vec::with_capacity(old.len());
        new.extend(old.iter().filter(|item| item.value.is_none()));
        let (first_start, end_start) = self.start_of[block];
        for i in first_start..end_start {
            let EntryValue { value, at: to, phi } = self.starts[i as usize];
            let (class, components) = (self.class(value), self.program.values[value].components);
            let mut source = value;
            if let Some(phi) = phi.expand() {
                match self.program.instrs[phi].srcs.get(k).map(|src| src.operand) {
                    Some(SrcOperand::Place(Place::Value(value))) => source = value,
                    Some(SrcOperand::Place(Place::Assigned(_, reg) | Place::Reg(reg))) => {
                        let from = self.program.instrs[phi].srcs[k].class;
                        new.push(PendingMove { value: value.into(), class, components, src: register(reg), from, to });
                        continue;
                    }
                    _ => continue,
                }
            }
            // An index entry of a value is valid only if the value is found there.
            let (in_old, in_exits) = self.index[source];
            let written = old.get(in_old as usize).filter(|item| item.value == source.into());
            let exit = self.exits[first as usize..end as usize].get(in_exits.wrapping_sub(first) as usize);
            let (src, from) = match (written, exit.filter(|exit| exit.value == source)) {
                (Some(item), _) => (item.src, item.from),
                (None, Some(&ExitValue { at, root, offset, .. })) => {
                    // The copy may write its root.
                    let whole = old.get(self.index[root].0 as usize).filter(|item| item.value == root.into());
                    match whole.map(|item| (item.src, item.from)) {
                        Some((SrcOperand::Place(Place::Reg(reg)), from)) if root != source => {
                            (register(reg.offset(offset / class.component_units())), from)
                        }
                        _ => (register(reg_of(class, at)), class),
                    }
                }
                (None, None) => {
                    let what = format!("{source} is nowhere at the end of {pred}, and {block} needs it");
                    return Err(Error::Malformed { what });
                }
            };
            if from == class && src == register(reg_of(class, to)) {
                continue;
            }
            new.push(PendingMove { value: source.into(), class, components, src, from, to });
        }
        self.last[pred] = new;
        Ok(())
    }

    /// Emits the parallel copies at the ends of their blocks.
    pub(super) fn emit_last_copies(&mut self) {
        for position in 0..self.analysis.liveness.order.len() {
            let block = self.analysis.liveness.order[position];
            let moves = std::mem::take(&mut self.last[block]);
            if let Some(copy) = self.parallel_copy(&moves) {
                self.program.insert_before_terminators(block, copy);
            }
        }
    }
}

fn register(reg: PhysReg) -> SrcOperand {
    SrcOperand::Place(Place::Reg(reg))
}
