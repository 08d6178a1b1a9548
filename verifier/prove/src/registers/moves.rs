//! Steps of one program that only copy: moves, spills and reloads, phis.

use super::copies::{Copies, append_moves, append_whole_value, are_disjoint};
use super::facts::{CopySource, FactSide, Literal};
use super::failure::{InstrSite, RegisterFailure};
use super::location::{Locations, Piece};
use super::slots::SlotAccess;
use super::walk::LockstepWalk;
use ir3_compiler::ir3::{Block, Instr, InstrData, Opcode};
use ir3_semantics::support::guards::{Guard, left_out};

impl<'a> LockstepWalk<'a> {
    const fn locations(&self, side: FactSide) -> &Locations<'a> {
        match side {
            FactSide::Target => &self.target,
            FactSide::Source => &self.source,
        }
    }

    /// Applies the copies that `find` appends, in parallel.
    pub(super) fn copy<T>(
        &mut self,
        side: FactSide,
        find: impl FnOnce(&Self, &mut Copies) -> Result<T, RegisterFailure>,
    ) -> Result<T, RegisterFailure> {
        let mut copies = std::mem::take(&mut self.copies);
        copies.clear();
        let found = find(self, &mut copies)?;
        if !are_disjoint(&copies) && !left_out(Guard::RegistersApart) {
            return Err(self.place("two parallel copies to one destination"));
        }
        match side {
            FactSide::Target => self.here.copy_target(&copies),
            FactSide::Source => self.here.copy_source(&copies),
        }
        self.copies = copies;
        Ok(found)
    }

    /// Steps over the instructions at the beginning of `list` if they only copy. Returns their number.
    pub(super) fn moves(&mut self, side: FactSide, list: &[Instr]) -> Result<Option<usize>, RegisterFailure> {
        self.copy(side, |walk, copies| {
            let Some(&instr) = list.first() else { return Ok(None) };
            let data = &walk.locations(side).program.instrs[instr];
            let is_slot = match (data.opcode, side) {
                (Opcode::SpillMacro | Opcode::ReloadMacro, _) => true,
                // Mesa keeps the number of a macro that it replaces.
                (Opcode::Stp | Opcode::Ldp, FactSide::Target) => walk.in_source(instr).is_none_or(|_| {
                    let source = &walk.source.program.instrs[instr];
                    matches!(source.opcode, Opcode::SpillMacro | Opcode::ReloadMacro)
                }),
                _ => false,
            };
            if is_slot {
                walk.slot_access(side, data, copies)?;
                return Ok(Some(1));
            }
            let moved = append_moves(walk.locations(side), list, copies);
            let site = || InstrSite { block: walk.position, instr: Some((walk.at[1], data.opcode.name())) };
            moved.transpose().map_err(|what| RegisterFailure::Place { site: site(), what })
        })
    }

    /// Steps over the phis of a block for one predecessor.
    pub(super) fn phis(&mut self, side: FactSide, block: Block, pred: usize) -> Result<(), RegisterFailure> {
        self.copy(side, |walk, copies| {
            let locations = walk.locations(side);
            for &phi in &locations.program.blocks[block].instrs {
                let data = &locations.program.instrs[phi];
                if data.opcode != Opcode::Phi {
                    break;
                }
                let (Some(dst), Some(src)) = (data.dsts.first(), data.srcs.get(pred)) else {
                    return Err(walk.place("a phi without a source for an edge"));
                };
                walk.piece(append_whole_value(locations, dst, src, copies))?;
            }
            Ok(())
        })
    }

    /// Steps over a block that only the target has, which must copy and jump.
    pub(super) fn walk_edge_block(&mut self, via: Block) -> Result<(), RegisterFailure> {
        let program = self.target.program;
        let list = &program.blocks[via].instrs;
        // Otherwise, other lanes may run blocks in between, and write shared registers and constants.
        let is_next = program.layout.get(self.position + 1) == Some(&via);
        let mut at = 0;
        while let Some(&instr) = list.get(at) {
            let count = self.copy(FactSide::Target, |walk, copies| {
                let moved = append_moves(&walk.target, &list[at..], copies).transpose();
                if copies.iter().any(|&(to, _)| walk.target.is_shared(to)) && !left_out(Guard::RegistersEdgeShared) {
                    return Err(walk.unsupported("a copy to a shared register on an edge"));
                }
                let is_of_wave = |source: &CopySource| match *source {
                    CopySource::Piece(piece) | CopySource::OfOneLane(piece) => walk.target.is_shared(piece),
                    CopySource::Literal(literal) => matches!(literal, Literal::Const(..)) && walk.has_wave_state,
                    CopySource::Undefined => false,
                };
                if !is_next
                    && copies.iter().any(|(_, source)| is_of_wave(source))
                    && !left_out(Guard::RegistersEdgeShared)
                {
                    return Err(
                        walk.unsupported("a copy from a shared register or constant after blocks of other lanes")
                    );
                }
                walk.piece(moved)
            })?;
            let data = &program.instrs[instr];
            match count {
                Some(count) => at += count,
                None if data.opcode == Opcode::Jump && at + 1 == list.len() => break,
                None => {
                    let what = format!("`{}` in {via}, which only the target has", data.opcode.name());
                    return Err(RegisterFailure::Changed { site: self.site(), what });
                }
            }
        }
        Ok(())
    }

    /// Appends the copies of a spill, a reload, or the access that one was lowered to.
    fn slot_access(&self, side: FactSide, data: &InstrData, copies: &mut Copies) -> Result<(), RegisterFailure> {
        let locations = self.locations(side);
        let unknown = || self.place("an access to a slot whose place is not known");
        let access = SlotAccess::new(data).ok_or_else(unknown)?;
        let SlotAccess { base, place, class, mask, .. } = access;
        let base = self.piece(locations.component(base.place().ok_or_else(unknown)?, base.class, 0, true))?;
        let number = |piece: Piece| {
            let what = "the base register of an access to a slot does not hold a known number";
            let known = self.here.number(side, piece).or_else(|| left_out(Guard::RegistersSlotBase).then_some(0));
            known.map(u32::from).ok_or_else(|| self.place(what))
        };
        let base = number(base.start)? | number(base.start + 1)? << 16;
        let address = base.checked_add_signed(access.offset).ok_or_else(unknown)?;
        if address < self.own_scratch && !left_out(Guard::RegistersOwnScratch) {
            return Err(self.place("a slot in scratch memory that belongs to the shader"));
        }
        let bytes = access.bytes();
        if !address.is_multiple_of(bytes) {
            return Err(self.place("an access to a slot that is not aligned to its elements"));
        }
        for k in mask.components() {
            let slot = self.piece(locations.scratch(address + k * bytes, bytes))?;
            let register = self.piece(locations.component(place, class, k, false))?;
            if access.is_store {
                copies.extend(slot.zip(register.map(CopySource::Piece)));
            } else {
                copies.extend(register.zip(slot.map(CopySource::Piece)));
            }
        }
        Ok(())
    }
}
