//! Steps of one side that only copy: moves, spills and reloads, phis.

use super::copies::{Copies, are_apart, moved, whole};
use super::facts::{Origin, Side};
use super::failure::{Failure, Site};
use super::location::{Locations, Piece};
use super::slots::Access;
use super::walk::Walk;
use crate::support::guards::{Guard, left_out};
use ir3_compiler::ir3::{Block, Instr, InstrData, Opcode};

impl<'a> Walk<'a> {
    const fn locations(&self, side: Side) -> &Locations<'a> {
        match side {
            Side::Target => &self.target,
            Side::Source => &self.source,
        }
    }

    /// Makes the copies that `find` finds, all at once.
    pub(super) fn copy<T>(
        &mut self,
        side: Side,
        find: impl FnOnce(&Self, &mut Copies) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut copies = std::mem::take(&mut self.copies);
        copies.clear();
        let found = find(self, &mut copies)?;
        if !are_apart(&copies) && !left_out(Guard::RegistersApart) {
            return Err(self.place("two copies at once to one place"));
        }
        match side {
            Side::Target => self.here.copy_target(&copies),
            Side::Source => self.here.copy_source(&copies),
        }
        self.copies = copies;
        Ok(found)
    }

    /// Steps over the instructions at the beginning of a list if they only copy. Returns how many.
    pub(super) fn moves(&mut self, side: Side, list: &[Instr]) -> Result<Option<usize>, Failure> {
        self.copy(side, |walk, copies| {
            let Some(&instr) = list.first() else { return Ok(None) };
            let data = &walk.locations(side).program.instrs[instr];
            let is_slot = match (data.opcode, side) {
                (Opcode::SpillMacro | Opcode::ReloadMacro, _) => true,
                (Opcode::Stp | Opcode::Ldp, Side::Target) => walk.in_source(instr).is_none(),
                _ => false,
            };
            if is_slot {
                walk.slot_access(side, data, copies)?;
                return Ok(Some(1));
            }
            let moved = moved(walk.locations(side), list, copies);
            let site = || Site { block: walk.position, instr: Some((walk.at[1], data.opcode.name())) };
            moved.transpose().map_err(|what| Failure::Place { site: site(), what })
        })
    }

    /// The phis of a block have what comes from one predecessor.
    pub(super) fn phis(&mut self, side: Side, block: Block, pred: usize) -> Result<(), Failure> {
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
                walk.piece(whole(locations, dst, src, copies))?;
            }
            Ok(())
        })
    }

    /// A block that the target alone has copies something and goes on.
    pub(super) fn walk_edge_block(&mut self, via: Block) -> Result<(), Failure> {
        let program = self.target.program;
        let list = &program.blocks[via].instrs;
        let mut at = 0;
        while let Some(&instr) = list.get(at) {
            let count = self.copy(Side::Target, |walk, copies| {
                let moved = moved(&walk.target, &list[at..], copies).transpose();
                if copies.iter().any(|&(to, _)| walk.target.is_shared(to)) && !left_out(Guard::RegistersEdgeShared) {
                    return Err(walk.unsupported("a copy to a shared register on an edge"));
                }
                walk.piece(moved)
            })?;
            let data = &program.instrs[instr];
            match count {
                Some(count) => at += count,
                None if data.opcode == Opcode::Jump && at + 1 == list.len() => break,
                None => {
                    let what = format!("`{}` in {via}, which only the target has", data.opcode.name());
                    return Err(Failure::Changed { site: self.site(), what });
                }
            }
        }
        Ok(())
    }

    /// The copies that a spill, a reload, or an access that one has become makes.
    fn slot_access(&self, side: Side, data: &InstrData, copies: &mut Copies) -> Result<(), Failure> {
        let locations = self.locations(side);
        let unknown = || self.place("an access to a slot whose place is not known");
        let access = Access::new(data).ok_or_else(unknown)?;
        let Access { base, place, class, mask, .. } = access;
        let base = self.piece(locations.component(base.place().ok_or_else(unknown)?, base.class, 0, true))?;
        let number = |piece: Piece| {
            let what = "the base register of an access to a slot does not hold a known number";
            let known = self.here.number(side, piece).or_else(|| left_out(Guard::RegistersSlotBase).then_some(0));
            known.map(u32::from).ok_or_else(|| self.place(what))
        };
        let base = number(base.start)? | number(base.start + 1)? << 16;
        let address = base.checked_add_signed(access.offset).ok_or_else(unknown)?;
        if address < self.own_scratch && !left_out(Guard::RegistersOwnScratch) {
            return Err(self.place("a slot in scratch memory that the shader has for itself"));
        }
        let bytes = access.bytes();
        for k in mask.components() {
            let slot = self.piece(locations.scratch(address + k * bytes, bytes))?;
            let register = self.piece(locations.component(place, class, k, false))?;
            if access.is_store {
                copies.extend(slot.zip(register.map(Origin::Piece)));
            } else {
                copies.extend(register.zip(slot.map(Origin::Piece)));
            }
        }
        Ok(())
    }
}
