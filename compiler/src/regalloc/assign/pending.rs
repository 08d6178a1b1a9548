//! Registers with results that have not come.
//!
//! Textures and memory write their results late. An instruction that reads or writes such a register before waits for
//! all of these results, with `(sy)`, and so does a result that takes the register of another one without a use. So, if
//! there is a choice, a result takes none of these registers, and a value that has not come is not moved. Time is
//! counted from the start of the block, as the schedulers expect it, in slots.

use super::Assigner;
use crate::delays::latency::{Latency, Sync, issue_slots, sync};
use crate::ir3::{Instr, Place, Program, RegClass, RegFile, Value, WriteMask};
use crate::regalloc::file::UnitSet;
use crate::regalloc::parallel_copy::unit_of;
use crate::regalloc::pressure::Analysis;
use crate::target::Target;

/// Results that have not come.
#[derive(Default)]
pub(super) struct Pending {
    /// Their registers, by file.
    units: [UnitSet; 3],
    /// The current time, and when all of them have come.
    now: u32,
    end: u32,
}

impl Pending {
    /// The time until all results have come.
    pub(super) const fn left(&self) -> u32 {
        self.end.saturating_sub(self.now)
    }

    /// Returns true if some of these units have results that have not come.
    pub(super) fn has(&self, file: usize, at: u16, len: u16) -> bool {
        self.left() > 0 && !self.units[file].is_free(at, len)
    }

    /// Waits for all results.
    fn wait(&mut self) {
        self.now = self.now.max(self.end);
    }
}

impl Assigner<'_> {
    /// Appends an instruction whose operands have registers.
    pub(super) fn emit(&mut self, instr: Instr) {
        self.out.push(instr);
        if self.fixed.is_some() {
            return;
        }
        let data = &self.program.instrs[instr];
        let is_late = sync(data, self.target) == Sync::Sy;
        if self.pending.left() > 0 {
            let srcs = data.srcs.iter().map(|src| (src.class, src.place(), src.mask));
            let dsts = data.dsts.iter().map(|dst| (dst.class, Some(&dst.place), dst.mask));
            let mut operands = srcs.chain(dsts).filter_map(|(class, place, mask)| self.units_of(class, place?, mask));
            if operands.any(|(file, at, len)| self.pending.has(file, at, len)) {
                self.pending.wait();
            }
        }
        if is_late {
            if self.pending.left() == 0 {
                self.pending.units = Default::default();
            }
            for dst in &self.program.instrs[instr].dsts {
                if let Some((file, at, len)) = self.units_of(dst.class, &dst.place, dst.mask) {
                    self.pending.units[file].insert(at, len);
                }
            }
        }
        let data = &self.program.instrs[instr];
        // A parallel copy is one move for each result.
        let moves = if data.opcode.is_copy() { data.dsts.len() as u32 } else { 0 };
        self.pending.now += issue_slots(data, self.target) + moves;
        if is_late {
            self.pending.end = self.pending.end.max(self.pending.now + Latency::of(data, self.target).soft);
        }
    }

    /// The file and the units of an operand that is a register.
    fn units_of(&self, class: RegClass, place: &Place, mask: WriteMask) -> Option<(usize, u16, u16)> {
        if !matches!(class.file, RegFile::General | RegFile::Shared) {
            return None;
        }
        let at = unit_of(class, place.reg()?);
        let len = mask.span() as u16 * class.component_units();
        (usize::from(at + len) <= super::UNITS).then(|| (self.file(class), at, len))
    }

    /// Waits if an instruction reads values that have not come: later choices for it need not wait once more.
    pub(super) fn wait_for_sources(&mut self, instr: Instr) {
        if self.pending.left() == 0 {
            return;
        }
        let mut values = self.program.instrs[instr].srcs.iter().filter_map(|src| src.value());
        if values.any(|value| self.has_not_come(value)) {
            self.pending.wait();
        }
    }

    /// Returns true if some of a value with a place has not come.
    pub(super) fn has_not_come(&self, value: Value) -> bool {
        let (at, len) = (self.place[value], self.units(value));
        len > 0 && at != super::UNASSIGNED && self.pending.has(self.file(self.class(value)), at, len)
    }

    /// Free units of a file for whose results a new one would wait, and all units beyond those that are enough; `None`
    /// without such results.
    pub(super) fn unread(&self, value: Value) -> Option<UnitSet> {
        let file = self.file(self.class(value));
        if self.pending.left() == 0 {
            return None;
        }
        let mut units = self.pending.units[file].without(&self.taken[file]);
        if units == UnitSet::default() {
            return None;
        }
        let (_, class_limit) = self.align_and_limit(value);
        let preferred_limit = self.preferred_limit[file].min(class_limit);
        units.insert(preferred_limit, class_limit - preferred_limit);
        Some(units)
    }
}

/// The units of full registers of results that are late and without a use, in the block with most of them.
pub(super) fn unread_results(program: &Program, analysis: &Analysis, target: &Target) -> u32 {
    let of_block = |block| {
        let instrs = program.blocks[block].instrs.iter().map(|&instr| &program.instrs[instr]);
        let late = instrs.filter(|data| !data.dsts.is_empty() && sync(data, target) == Sync::Sy);
        let values = late.flat_map(|data| data.dsts.iter().filter_map(|dst| dst.value()));
        let unread = values.filter(|&value| !analysis.liveness.is_used(value));
        unread.map(|value| u32::from(analysis.liveness.units(value)).next_multiple_of(2)).sum::<u32>()
    };
    program.layout.iter().map(|&block| of_block(block)).max().unwrap_or(0)
}
