//! Frees registers for a result by moving few values.
//!
//! Each possible place of a result costs the moves of the values in it, and the time until they have come. The cheapest
//! place is taken for which each of these values finds a gap elsewhere, or can swap places with a source that dies at
//! the instruction: the source is read where the result is written later.

use super::{Assigner, UNITS};
use crate::arms::Arm;
use crate::ir3::Value;
use crate::regalloc::file::UnitSet;
use crate::regalloc::forest::{SHARED, ValueList, kind};
use crate::regalloc::step::Step;
use smallvec::SmallVec;

/// Roots and their new places.
type EvictionPlan = SmallVec<[(Value, u16); 8]>;

impl Assigner<'_> {
    /// Moves values out of the registers of a result; returns its place.
    pub(super) fn evict(&mut self, value: Value, early: bool, step: &Step) -> Option<u16> {
        let class = self.class(value);
        if !self.splitting {
            return None;
        }
        if kind(class) >= SHARED {
            self.counter.count(Arm::AssignEvictShared);
            // Lanes that wait elsewhere would not find a shared value that was moved.
            return None;
        }
        let file = self.file(class);
        let len = self.units(value);
        let (align, class_limit) = self.align_and_limit(value);
        let mut best: Option<(u32, u16, EvictionPlan)> = None;
        let mut at = 0;
        while at + len <= class_limit {
            let limit = best.as_ref().map_or(u32::MAX, |&(cost, ..)| cost);
            if let Some((cost, plan)) = self.plan(file, at, len, early, step, limit) {
                best = Some((cost, at, plan));
            }
            at += align;
        }
        let (_, at, plan) = best.filter(|_| self.counter.may(Arm::AssignEvict))?;
        for &(root, _) in &plan {
            self.vacate(root);
            let (from, len) = (self.place[root], self.units(root));
            if step.dying.contains(&root) {
                self.dying[file].remove(from, len);
            }
        }
        for &(root, to) in &plan {
            self.relocate(root, to, step.is_new(root));
            self.occupy(root);
            if step.dying.contains(&root) {
                self.dying[file].insert(to, self.units(root));
            }
        }
        Some(at)
    }

    /// The moves that free `[at, at + len)` for a result, if they cost less than `limit`.
    fn plan(
        &self,
        file: usize,
        at: u16,
        len: u16,
        early: bool,
        step: &Step,
        limit: u32,
    ) -> Option<(u32, EvictionPlan)> {
        if !self.results[file].is_free(at, len) || !self.reserved[file].is_free(at, len) {
            return None;
        }
        // A value that has not come is waited for before it is moved, with all others.
        let wait = |waits: bool| if waits { self.pending.left() } else { 0 };
        let (mut cost, mut waits) = (0, false);
        let mut in_the_way = ValueList::new();
        let mut unit = at;
        while unit < at + len {
            let Some(root) = self.owner[file][usize::from(unit)].expand() else {
                unit += 1;
                continue;
            };
            unit = self.place[root] + self.units(root);
            if early || !step.dying.contains(&root) {
                in_the_way.push(root);
                cost += u32::from(self.program.values[root].components);
                waits |= self.has_not_come(root);
                if cost + wait(waits) >= limit {
                    return None;
                }
            }
        }
        cost += wait(waits);
        // Units that moved values must not take: those of results and of live values.
        let mut blocked = self.taken[file].with(&self.results[file]);
        for &root in &in_the_way {
            blocked.remove(self.place[root], self.units(root));
        }
        blocked.insert(at, len);
        // Wide values first: they have fewer choices.
        in_the_way.sort_by_key(|&root| std::cmp::Reverse(self.units(root)));
        let mut plan = EvictionPlan::new();
        let mut swapped = ValueList::new();
        for &root in &in_the_way {
            let units = self.units(root);
            let (align, class_limit) = self.align_and_limit(root);
            let to = match blocked.find_gap(units, align, 0, class_limit) {
                Some(to) => to,
                None if early => return None,
                None => {
                    let dying = self.partner(file, root, at..at + len, &swapped, step)?;
                    // It moves to the old place of the root.
                    let old = self.place[root];
                    if plan.iter().any(|&(moved, to)| to < old + units && old < to + self.units(moved)) {
                        return None;
                    }
                    blocked.insert(old, units);
                    swapped.push(dying);
                    self.counter.count(Arm::AssignSwap);
                    cost += u32::from(self.program.values[dying].components);
                    if cost >= limit {
                        return None;
                    }
                    plan.push((dying, self.place[root]));
                    self.place[dying]
                }
            };
            blocked.insert(to, units);
            plan.push((root, to));
        }
        Some((cost, plan))
    }

    /// A dying root that `root` can swap places with to leave `region`.
    fn partner(
        &self,
        file: usize,
        root: Value,
        region: std::ops::Range<u16>,
        swapped: &[Value],
        step: &Step,
    ) -> Option<Value> {
        let len = self.units(root);
        let (align, class_limit) = self.align_and_limit(root);
        let is_fit = |&dying: &Value| {
            let at = self.place[dying];
            let (dying_align, dying_limit) = self.align_and_limit(dying);
            self.file(self.class(dying)) == file
                && self.units(dying) == len
                && !swapped.contains(&dying)
                && at.is_multiple_of(align)
                && at + len <= class_limit
                && (at + len <= region.start || region.end <= at)
                && self.place[root].is_multiple_of(dying_align)
                && self.place[root] + len <= dying_limit
                && self.results[file].is_free(at, len)
        };
        step.dying.iter().copied().find(is_fit)
    }

    /// The roots of a file, by place.
    pub(super) fn roots(&self, file: usize) -> Vec<Value> {
        let mut roots = Vec::new();
        let mut unit = 0;
        while unit < UNITS {
            match self.owner[file][unit].expand() {
                Some(root) => {
                    roots.push(root);
                    unit += usize::from(self.units(root));
                }
                None => unit += 1,
            }
        }
        roots
    }

    /// Clears all units of a file but those of arrays.
    pub(super) fn clear_file(&mut self, file: usize) {
        self.taken[file] = self.reserved[file];
        self.owner[file].fill(None.into());
        self.results[file] = UnitSet::default();
    }
}
