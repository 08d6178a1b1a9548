//! Parallel copies, collects and splits.
//!
//! The result of a copy may already exist as a piece of a value that stays live. Otherwise it is a new root: the roots
//! that it absorbs leave their registers, so do values at their last use, and the new root is placed where most of its
//! components are already. All necessary moves are one parallel copy.

use super::{Assigner, PendingMove, UNASSIGNED};
use crate::ir3::{Attrs, Block, Instr, Opcode, Place, RegFile, SrcOperand, Value};
use crate::regalloc::Error;
use crate::regalloc::file::UnitSet;
use crate::regalloc::outputs::GivenOutputs;
use crate::regalloc::parallel_copy::{reg_of, unit_of};
use crate::regalloc::step::{Manner, Step};
use smallvec::SmallVec;

/// The components of a new root that already have a place: component and unit.
type PlacedComponents = SmallVec<[(u16, u16); 4]>;

impl<'a> Assigner<'a> {
    /// Handles a copy. The last one of a block is kept open for the moves of the edge.
    pub(super) fn copy(&mut self, instr: Instr, step: &Step, block: Block, is_last: bool) -> Result<(), Error> {
        self.results = Default::default();
        self.dying = Default::default();
        let mut moves = std::mem::take(&mut self.moves);
        moves.clear();
        self.collect_moves(instr, step, &mut moves)?;
        for result in step.results.iter().filter(|result| matches!(result.manner, Manner::Piece(_))) {
            self.insert_piece(result.value);
        }
        self.remove_killed(&step.killed);
        let mut failed = [false; 3];
        for result in step.results.iter().filter(|result| result.manner == Manner::Late) {
            self.place[result.value] = UNASSIGNED;
            self.insert_root(result.value);
        }
        let outputs = self.given_outputs(step);
        for &(value, at) in outputs {
            self.put(value, at);
        }
        let late = step.results.iter().filter(|result| result.manner == Manner::Late && outputs.is_empty());
        for result in late {
            let value = result.value;
            if !self.forest.is_root(value) {
                continue;
            }
            let at = self.choose_copy(value, &moves).or_else(|| self.evict(value, false, step));
            match at {
                Some(at) => self.put(value, at),
                None => failed[self.file(self.class(value))] = true,
            }
        }
        for file in (0..3).filter(|&file| failed[file]) {
            self.compact(file, step)?;
        }
        // One of several copies of a value in one place is enough.
        for result in &step.results {
            if result.manner == Manner::Late && !self.forest.is_root(result.value) {
                self.place_piece(result.value);
            }
        }
        moves.retain(|item| item.value.expand().is_none_or(|value| self.forest.is_root(value)));
        for item in &mut moves {
            // The component becomes a unit.
            if let Some(value) = item.value.expand() {
                item.to = self.place[value] + item.to * item.class.component_units();
            }
        }
        for &(root, from) in &self.moved {
            if self.forest.is_root(root) && self.place[root] != from {
                moves.push(self.move_of(root, from, self.place[root]));
            }
        }
        if is_last && self.program.blocks[block].successors[1].is_none() {
            self.last[block].clone_from(&moves);
        } else if let Some(copy) = self.parallel_copy(&moves) {
            self.emit(copy);
        }
        self.moves = moves;
        Ok(())
    }

    /// The places of all results of a copy, if it is the copy of outputs with given registers.
    fn given_outputs(&self, step: &Step) -> &'a [(Value, u16)] {
        let Some(first) = step.results.first() else { return &[] };
        let is_here = |outputs: &&GivenOutputs| outputs.places.iter().any(|&(value, _)| value == first.value);
        self.analysis.outputs.iter().find(is_here).map_or(&[], |outputs| &outputs.places)
    }

    /// Collects the moves of the instruction itself, with components in place of the destination units.
    fn collect_moves(&self, instr: Instr, step: &Step, moves: &mut Vec<PendingMove>) -> Result<(), Error> {
        let data = &self.program.instrs[instr];
        let offset = match data.attrs {
            Attrs::Split { offset } if data.opcode == Opcode::Split => offset,
            _ => 0,
        };
        for (k, dst) in data.dsts.iter().enumerate() {
            let value = dst.value().filter(|&value| self.units(value) != 0);
            // Shared registers are assigned earlier.
            let given = match dst.place {
                Place::Reg(reg) | Place::Assigned(_, reg) if value.is_none() && dst.class.file == RegFile::Shared => {
                    Some(unit_of(dst.class, reg))
                }
                _ if value.is_none() => return Err(Error::unsupported(self.program, instr, "a predicate or address")),
                _ => None,
            };
            let is_moved = given.is_some()
                || step.results.iter().any(|result| Some(result.value) == value && result.manner == Manner::Late);
            let is_collect = data.opcode == Opcode::Collect;
            let srcs = if is_collect { &data.srcs[..] } else { data.srcs.get(k..k + 1).unwrap_or(&[]) };
            for (component, src) in srcs.iter().enumerate() {
                let operand = match src.operand {
                    SrcOperand::Place(Place::Value(src_value) | Place::Assigned(src_value, _))
                        if self.units(src_value) != 0 =>
                    {
                        if src.class.half != dst.class.half || self.class(src_value) != src.class {
                            return Err(Error::unsupported(self.program, instr, "a source of another class"));
                        }
                        let reg = reg_of(src.class, self.place[src_value]);
                        SrcOperand::Place(Place::Reg(reg.offset(offset)))
                    }
                    SrcOperand::Place(Place::Assigned(_, reg) | Place::Reg(reg))
                        if src.class.half == dst.class.half =>
                    {
                        SrcOperand::Place(Place::Reg(reg.offset(offset)))
                    }
                    SrcOperand::Const(word) => SrcOperand::Const(word + offset),
                    SrcOperand::Immediate(_) | SrcOperand::Undef => src.operand,
                    _ => return Err(Error::unsupported(self.program, instr, "an operand that cannot be copied")),
                };
                if is_moved {
                    let components = match data.opcode {
                        Opcode::ParallelCopy => dst.mask.span() as u16,
                        _ => 1,
                    };
                    let component = component as u16;
                    let to = given.map_or(component, |unit| unit + component * dst.class.component_units());
                    let (class, from) = (dst.class, src.class);
                    moves.push(PendingMove { value: value.into(), class, components, src: operand, from, to });
                }
            }
        }
        Ok(())
    }

    /// Chooses a place for a new root: where most of it is already.
    fn choose_copy(&mut self, value: Value, moves: &[PendingMove]) -> Option<u16> {
        if let Some(fixed) = self.fixed {
            return Some(fixed[value]);
        }
        let class = self.class(value);
        let file = self.file(class);
        let (align, _) = self.align_and_limit(value);
        let mut found = PlacedComponents::new();
        for item in moves.iter().filter(|item| item.value.expand() == Some(value)) {
            if let (SrcOperand::Place(Place::Reg(reg)), true) = (item.src, item.from == class) {
                let unit = unit_of(class, reg);
                found.extend((0..item.components).map(|c| (item.to + c, unit + c * align)));
            }
        }
        // At a back edge the place of the phi is known.
        let phi = self.phi_of[value].expand().map(|phi| self.phi_place[phi]).filter(|&at| at != UNASSIGNED);
        let blocked = self.blocked(file, false);
        let avoiding = self.avoided(value).map(|units| blocked.with(&units));
        let choice = avoiding.and_then(|blocked| self.choose_copy_in(value, &found, phi, &blocked));
        choice.or_else(|| self.choose_copy_in(value, &found, phi, &blocked))
    }

    /// The choice among the units that are not blocked. `found` are the components that have a place already, `phi` is
    /// that of the phi.
    fn choose_copy_in(
        &mut self,
        value: Value,
        found: &PlacedComponents,
        phi: Option<u16>,
        blocked: &UnitSet,
    ) -> Option<u16> {
        let (align, class_limit) = self.align_and_limit(value);
        let len = self.units(value);
        let preferred = self.preferred_place(value, blocked);
        let mut best: Option<(u32, u16)> = None;
        let candidates = found.iter().filter_map(|&(component, unit)| unit.checked_sub(component * align));
        for at in phi.into_iter().chain(preferred).chain(candidates) {
            if at % align != 0 || at + len > class_limit || !blocked.is_free(at, len) {
                continue;
            }
            let in_place = found.iter().filter(|&&(component, unit)| unit == at + component * align).count();
            let bonus = 4 * u32::from(Some(at) == phi) + u32::from(Some(at) == preferred);
            let score = 2 * in_place as u32 + bonus;
            if score > 0 && best.is_none_or(|(least, _)| score > least) {
                best = Some((score, at));
            }
        }
        best.map(|(_, at)| at).or_else(|| self.gap_for_set(value, blocked)).or_else(|| self.gap(value, blocked))
    }
}
