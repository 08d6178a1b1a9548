//! The place of a result, as long as there is a gap.

use super::{Assigner, HALF};
use crate::arms::Arm;
use crate::ir3::{Instr, Value, opcode::Latency};
use crate::regalloc::file::UnitSet;
use crate::regalloc::forest;
use crate::regalloc::step::Step;

impl Assigner<'_> {
    /// The units that a result must not have: values that are live when it is written, and other results.
    pub(super) fn blocked(&self, file: usize, early: bool) -> UnitSet {
        let taken = if early { self.taken[file] } else { self.taken[file].without(&self.dying[file]) };
        taken.with(&self.results[file])
    }

    /// Units of a component, which is the alignment of places, and the number of units that the value's class reaches.
    pub(super) fn align_and_limit(&self, value: Value) -> (u16, u16) {
        let class = self.class(value);
        (class.component_units(), self.class_limit[forest::kind(class)])
    }

    /// Chooses a place for a result of a computation.
    pub(super) fn choose(&mut self, value: Value, early: bool, instr: Instr, step: &Step) -> Option<u16> {
        if let Some(fixed) = self.fixed {
            return Some(fixed[value]);
        }
        let file = self.file(self.class(value));
        let blocked = self.blocked(file, early);
        let avoided = self.avoided(value);
        let unread = self.unread(value).map(|units| units.with(&blocked).with(&avoided.unwrap_or_default()));
        let choice = unread.and_then(|blocked| self.choose_in(value, early, instr, step, &blocked));
        let avoiding = avoided.map(|units| blocked.with(&units));
        let choice =
            choice.or_else(|| avoiding.and_then(|blocked| self.choose_in(value, early, instr, step, &blocked)));
        choice.or_else(|| self.choose_in(value, early, instr, step, &blocked))
    }

    /// The choice among the units that are not blocked.
    fn choose_in(&mut self, value: Value, early: bool, instr: Instr, step: &Step, blocked: &UnitSet) -> Option<u16> {
        let file = self.file(self.class(value));
        if let Some(at) = self.preferred_place(value, blocked) {
            self.counter.count(Arm::AssignPreferred);
            return Some(at);
        }
        if let Some(at) = self.gap_for_set(value, blocked) {
            self.counter.count(Arm::AssignSet);
            return Some(at);
        }
        let latency = self.program.instrs[instr].opcode.info().latency;
        if !early && matches!(latency, Latency::Alu | Latency::Sfu) {
            let len = self.units(value);
            let (align, class_limit) = self.align_and_limit(value);
            for &root in &step.dying {
                let at = self.place[root];
                let fits = self.units(root) == len && self.file(self.class(root)) == file && at.is_multiple_of(align);
                if fits && at + len <= class_limit && blocked.is_free(at, len) {
                    self.counter.count(Arm::AssignDying);
                    return Some(at);
                }
            }
        }
        self.counter.count(Arm::AssignGap);
        self.gap(value, blocked)
    }

    /// The place of the value in its merge set, if that is free.
    pub(super) fn preferred_place(&self, value: Value, blocked: &UnitSet) -> Option<u16> {
        let sets = &self.analysis.sets;
        let set = sets.set_of(value);
        let start = self.preferred[set];
        if start == i32::MIN {
            return None;
        }
        let at = start + (sets.interval(value).start - sets.set_interval(set).start) as i32;
        let (align, class_limit) = self.align_and_limit(value);
        let at = u16::try_from(at).ok()?;
        let len = self.units(value);
        (at % align == 0 && at + len <= class_limit && blocked.is_free(at, len)).then_some(at)
    }

    /// A gap for the whole merge set.
    pub(super) fn gap_for_set(&mut self, value: Value, blocked: &UnitSet) -> Option<u16> {
        let sets = &self.analysis.sets;
        let interval = sets.set_interval(sets.set_of(value));
        let len = interval.units();
        if len <= self.units(value) {
            return None;
        }
        let offset = (sets.interval(value).start - interval.start) as u16;
        let at = self.find_gap(value, len, blocked)?;
        Some(at + offset)
    }

    /// A gap for the value alone.
    pub(super) fn gap(&mut self, value: Value, blocked: &UnitSet) -> Option<u16> {
        self.find_gap(value, self.units(value), blocked)
    }

    /// The next gap of `len` units from the cursor on, preferably among registers that are used anyway.
    fn find_gap(&mut self, value: Value, len: u16, blocked: &UnitSet) -> Option<u16> {
        let class = self.class(value);
        let file = self.file(class);
        let (align, class_limit) = self.align_and_limit(value);
        let floor = if file == 0 && forest::kind(class) != HALF { self.floor } else { 0 };
        let preferred_limit = self.preferred_limit[file].min(class_limit);
        let cursor = self.cursor[file];
        let from = if cursor + len > preferred_limit { floor } else { cursor.max(floor) };
        let at = blocked
            .find_gap(len, align, from, preferred_limit)
            .or_else(|| blocked.find_gap(len, align, floor, class_limit))
            .or_else(|| if floor > 0 { blocked.find_gap(len, align, 0, class_limit) } else { None })?;
        self.cursor[file] = at + len;
        Some(at)
    }
}
