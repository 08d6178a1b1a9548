//! The state of the wave, which does not belong to a single lane: memories and shared registers.
//!
//! A segment follows one lane; its terms must also be right for the lanes that run with it. All lanes in a loop are in
//! the same iteration, so at a cut point they are convergent. Before the next cut point they may diverge and be
//! in different segments at the same time: some run a loop while others wait after it, or skip it. A value that a lane
//! observes, or writes together with others, must be right for all of them:
//!
//! - Lanes that leave a loop in different iterations wait after it, each with the values of its iteration.
//!   ([`SymbolicMachine::is_mixed`])
//! - Lanes of another segment may execute the same block, with other values. ([`SymbolicMachine::may_be_joined`])
//! - Other lanes run loops and blocks that this lane does not reach, and their effects are observed.
//!   ([`SymbolicMachine::pass`], [`SymbolicMachine::skip`])
//!
//! None of this applies if lanes stay convergent from cut point to cut point: if all conditions are uniform.
//! Uniformity is among the facts that are assumed and proved, like the relation at the headers.

use super::run::SymbolicMachine;
use super::sinking::sunk_block;
use super::{
    Cut, Event, EventContext, EventKind, EventOperation, EventSite, Goal, Graph, Oracle, Slot, SymbolicValue,
    environment, slot,
};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::environment::memory::Space;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Op, Term};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

/// The lanes that an event selects among those that take part in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection {
    /// The position of the block, and the path condition in it.
    pub block: u32,
    pub path: Term,
    /// One bit: 1 if some lane executed the event, else 0.
    pub some: Term,
}

/// A write to a shared register.
#[derive(Clone, Debug)]
pub(super) struct SharedWrite {
    /// The path condition of the writers.
    path: Term,
    /// The value for the writers.
    value: SymbolicValue,
    /// Set unless all lanes or none write: one bit that is 1 if any lane does, the value that is written, and the
    /// half, if only one half is.
    others: Option<(Term, SymbolicValue, Option<bool>)>,
    /// The conditions of `path` that may differ between the lanes, and the conjunction of the others; `None` if lanes
    /// of other segments may write too.
    split: Option<(SmallVec<[Term; 4]>, Term)>,
    /// True if all writers write the same value.
    same_value: bool,
    /// The loop whose lanes wrote the value last, if nothing is known to read it: the value is none.
    unread_after: Option<u32>,
}

/// The innermost loop that contains both blocks; `None` is the program.
fn region(graph: &Graph, a: u32, b: u32) -> Option<u32> {
    let inside = |number: &usize| graph.loops[*number].contains(a) && graph.loops[*number].contains(b);
    (0..graph.loops.len()).rev().find(inside).map(|number| number as u32)
}

/// The goals of a segment, each with true if some lanes that are convergent at the cut point reach it and others do
/// not.
pub type Goals = SmallVec<[(Goal, bool); 4]>;

/// Returns true if all lanes of a region (a loop, or the program) reach `block`, or a point after it, convergently from
/// the cut point of the region, including the exits of all loops before. `goals` returns the goals of a cut point.
fn arrive_convergently<'a>(
    graph: &Graph,
    region: Option<u32>,
    block: u32,
    goals: &dyn Fn(Cut) -> &'a [(Goal, bool)],
) -> bool {
    let part = |cut: Cut| goals(cut).iter().any(|&(goal, part)| part && goal != Goal::Killed);
    if part(region.map_or(Cut::Entry, Cut::Header)) && !left_out(Guard::ComeAsOne) {
        return false;
    }
    let is_region = |number: u32| region == Some(number);
    let inside = |header: u32| region.is_none_or(|region| graph.loops[region as usize].contains(header));
    let loops =
        || (0..).zip(&graph.loops).filter(|&(number, l)| !is_region(number) && inside(l.header) && l.header < block);
    loops().all(|(_, passed)| {
        // Lanes that leave it wait after it; then they go on convergently if there is only one path.
        let cuts = || loops().filter(|(_, l)| passed.contains(l.header)).map(|(number, _)| Cut::Header(number));
        let is_out = |goal: Goal| match goal {
            Goal::Header(number) => !passed.contains(graph.loops[number as usize].header),
            Goal::End => true,
            Goal::Killed => false,
        };
        let mut out = cuts().flat_map(|cut| goals(cut).iter().map(|&(goal, _)| goal)).filter(|&goal| is_out(goal));
        let first = out.next();
        out.all(|goal| Some(goal) == first) || !cuts().any(part) || left_out(Guard::ComeByLoops)
    })
}

/// Returns true if either all lanes that are convergent at the header of a loop stay in it, or none does. They may
/// return to the header through an inner loop.
fn stay_convergent(graph: &Graph, number: u32, goals: &[(Goal, bool)]) -> bool {
    let stays = |goal: Goal| match goal {
        Goal::Header(to) => graph.loops[number as usize].contains(graph.loops[to as usize].header),
        Goal::End | Goal::Killed => false,
    };
    !goals.iter().any(|&(goal, part)| part && stays(goal)) || left_out(Guard::StayAsOne)
}

/// Returns true if all lanes that are convergent at `from`, and reach `block`, leave each loop between the two in the
/// same iteration. `goals` returns the goals of a cut point.
pub fn leave_convergently<'a>(graph: &Graph, from: Cut, block: u32, goals: &dyn Fn(Cut) -> &'a [(Goal, bool)]) -> bool {
    let Cut::Header(own) = from else { return true };
    let start = graph.loops[own as usize].header;
    (0..).zip(&graph.loops).filter(|(_, l)| l.contains(start) && !l.contains(block)).all(|(number, l)| {
        if number == own {
            stay_convergent(graph, own, goals(from))
        } else {
            arrive_convergently(graph, Some(number), l.last + 1, goals)
        }
    })
}

impl<O: Oracle> SymbolicMachine<'_, O> {
    /// Returns true if a term is the same in all active lanes of this segment.
    pub(super) fn is_uniform(&self, term: Term) -> bool {
        self.facts.uniform(self.terms, term)
            && (!self.is_mixed()
                || self.facts.lasting(self.terms, term)
                || self.is_settled(term)
                || left_out(Guard::Mixed))
    }

    /// Returns true if a term is the same for lanes that have left loops in different iterations: it depends only on
    /// values that are uniform for the whole run, on the values of shared registers that none of these loops writes, on
    /// the values that these had when the last of the loops had ended, and on common results of events after the loops.
    /// Lanes that leave a loop wait after it, so all of them execute the same event.
    fn is_settled(&self, term: Term) -> bool {
        let (start, loops) = (self.run.start, &self.graph.loops);
        let is_left = |&number: &usize| loops[number].contains(start) && !loops[number].contains(self.block);
        let Some(outermost) = (0..loops.len()).find(is_left) else { return true };
        let is_over = |&number: &usize| number == outermost || loops[number].last > loops[outermost].last;
        let mut seen = FxHashSet::default();
        let mut work = vec![term];
        while let Some(term) = work.pop() {
            if !seen.insert(term) || self.facts.lasting(self.terms, term) {
                continue;
            }
            let is_event_after = self.common_results.get(&term).is_some_and(|&block| block > loops[outermost].last);
            let is_after =
                self.after_loops.get(&term).is_some_and(is_over) || is_event_after || left_out(Guard::Settled);
            if is_after || self.oracle.is_kept(term, outermost as u32) {
                continue;
            }
            let node = self.terms.node(term);
            if matches!(node.op, Op::Variable(_)) {
                return false;
            }
            work.extend_from_slice(&node.args);
        }
        true
    }

    /// Returns true if the active lanes may have left a loop, in which they were at the cut point, in different
    /// iterations.
    pub(super) fn is_mixed(&self) -> bool {
        !leave_convergently(self.graph, self.run.cut, self.block, &|cut| self.oracle.goals(cut))
    }

    fn arrive_convergently(&self, region: Option<u32>, block: u32) -> bool {
        arrive_convergently(self.graph, region, block, &|cut| self.oracle.goals(cut))
    }

    /// Returns true if lanes of other segments may execute the current block at the same time.
    pub(super) fn may_be_joined(&self) -> bool {
        if !self.graph.several.contains(self.block as usize) {
            return false;
        }
        !self.arrive_convergently(region(self.graph, self.run.start, self.block), self.block) && !left_out(Guard::Met)
    }

    /// Moves the wave from one block to another. If this passes the end of a loop, lanes that branch back to its header
    /// do so now; then the effects of that loop are complete, including those of lanes of other segments.
    pub(super) fn pass(&mut self, from: u32, to: u32) {
        let loops = &self.graph.loops;
        let mut passed: SmallVec<[usize; 2]> =
            (0..loops.len()).filter(|&number| (from..to).contains(&loops[number].last)).collect();
        // Inner loops first: of two that end together, the one that begins later.
        passed.sort_by_key(|&number| (loops[number].last, std::cmp::Reverse(loops[number].header)));
        for number in passed {
            if let Some(edges) = self.pending.remove(&loops[number].header) {
                self.transition(Goal::Header(number as u32), edges);
            }
            let others = !self.whole_wave_is_here(number) && !left_out(Guard::WholeWave);
            let effects = &self.graph.loops[number].effects;
            let changed = effects.changed(&*self.oracle);
            for version in changed.into_iter().filter(|_| !left_out(Guard::LoopVersions)) {
                let name = format!("version {version} after loop {number} from {:?}", self.run.cut);
                let bits = self.terms.variable_of(environment::version_kind(version).passing(), 32, &name);
                let value = SymbolicValue::defined(self.terms, bits);
                self.versions.insert(version, value);
            }
            for &shared in &effects.shared {
                if !self.oracle.is_read_after(number as u32, shared) {
                    if others {
                        let zero = self.terms.constant(32, 0);
                        let value = SymbolicValue::defined(self.terms, zero);
                        self.written_by_others(shared, value, Some(number as u32));
                    }
                    continue;
                }
                let always = self.terms.constant(1, 1);
                let unchanged = self.read_shared(shared, always);
                let value = self.oracle.after_loop(self.terms, number as u32, shared, unchanged);
                self.after_loops.extend([(value.bits, number), (value.free, number)]);
                if !others {
                    continue;
                }
                self.written_by_others(shared, value, None);
            }
        }
    }

    /// Returns true if no lane executes a loop whose end is passed while this lane executes code after it.
    fn whole_wave_is_here(&self, number: usize) -> bool {
        let (cut, passed) = (self.run.cut, &self.graph.loops[number]);
        if cut == Cut::Header(number as u32) {
            return stay_convergent(self.graph, number as u32, self.oracle.goals(cut));
        }
        // No lane of a loop around it is anywhere else; no lane has gone to another loop.
        let until = if passed.contains(self.run.start) { passed.last + 1 } else { passed.header };
        self.arrive_convergently(region(self.graph, self.run.start, passed.header), until)
    }

    /// Moves the wave past a block that no lane of this segment reaches, but that other lanes may execute.
    pub(super) fn skip(&mut self, block: u32) {
        let (graph, start) = (self.graph, self.run.start);
        // The effects of a loop are complete when its end is passed.
        let in_a_loop = graph.loops.iter().any(|l| l.contains(block) && !l.contains(start));
        if in_a_loop || self.arrive_convergently(region(graph, start, block), block) {
            return;
        }
        if graph.sunk.is_some_and(|sunk| sunk.exit == block) {
            self.others_store(sunk_block(block));
        }
        self.others_store(block);
        for &shared in &graph.effects[graph.placed[block as usize].block as usize].shared {
            if let Some(value) = self.oracle.others(self.terms, block, shared)
                && !left_out(Guard::OthersWrite)
            {
                self.written_by_others(shared, value, None);
            }
        }
    }

    /// Moves the wave past stores at the current block, under another number, that no lane of this segment executes,
    /// but that other lanes may.
    pub(super) fn pass_stores(&mut self, number: u32) {
        if !self.arrive_convergently(region(self.graph, self.run.start, self.block), self.block) {
            self.others_store(number);
        }
    }

    /// Updates the memories that other lanes change in a block.
    fn others_store(&mut self, block: u32) {
        for version in slot::versions().filter(|&version| version != slot::memory(Space::Scratch)) {
            if let Some(value) = self.oracle.others(self.terms, block, version)
                && !left_out(Guard::OthersStore)
            {
                self.versions.insert(version, value);
            }
        }
    }

    /// Records that a shared register has a value that no lane of this segment wrote.
    fn written_by_others(&mut self, shared: Slot, value: SymbolicValue, unread_after: Option<u32>) {
        let never = self.terms.constant(1, 0);
        let write = SharedWrite { path: never, value, others: None, split: None, same_value: false, unread_after };
        self.shared.entry(shared).or_default().push(write);
    }

    /// Returns true if all lanes that are active at `site`, including those of other segments, have this value there.
    pub fn is_same_for_all(&mut self, site: EventSite, value: SymbolicValue) -> bool {
        if self.may_be_joined() {
            let lasting = |term| self.facts.uniform(self.terms, term) && self.facts.lasting(self.terms, term);
            let everywhere = (lasting(value.bits) && lasting(value.free)).then_some(value);
            self.oracle.written_everywhere(site, everywhere)
        } else {
            self.is_uniform(value.bits) && self.is_uniform(value.free) || left_out(Guard::SharedUniform)
        }
    }

    /// Writes a shared register, or one of its halves: the value of one of the lanes, for all of them.
    pub fn write_shared(&mut self, site: EventSite, slot: Slot, half: Option<bool>, value: SymbolicValue) {
        if self.terms.as_constant(self.path()) == Some(0) {
            return;
        }
        let mut value = value;
        let path = self.path();
        let met = self.may_be_joined();
        let same_value = self.is_same_for_all(site, value);
        let together = !met && self.is_uniform(path) || left_out(Guard::SharedPath);
        let mut others = None;
        let mut split = None;
        if !together && (!met || left_out(Guard::SharedSplitMet)) {
            let uniform = |&condition: &Term| self.is_uniform(condition) || left_out(Guard::SharedSplit);
            let (same, own): (SmallVec<[Term; 4]>, _) = self.terms.conjuncts(path).into_iter().partition(uniform);
            if !same.is_empty() {
                split = Some((own, self.terms.conjunction(&same)));
            }
        }
        if !same_value || !together {
            let event = Event {
                site,
                kind: EventKind::OneLane,
                operation: EventOperation::OneLane,
                path,
                args: smallvec![value],
                results: smallvec![32, 32, 1],
                uniform: true,
                selects: false,
                store: None,
                context: EventContext::default(),
            };
            let results = self.event(event);
            let mut written = value;
            if !same_value {
                // The bits in which lanes disagree are undefined: the value is one of theirs, and nothing may depend on
                // which.
                let differ = results[0];
                written = SymbolicValue { bits: results[1], free: differ };
                if !left_out(Guard::SharedDisagree) {
                    let same_value = self.terms.not(32, differ);
                    let own = self.terms.and(32, value.bits, same_value);
                    let theirs = self.terms.and(32, results[1], differ);
                    let bits = self.terms.or(32, own, theirs);
                    value = SymbolicValue { bits, free: differ };
                }
            }
            // If an event on this path selected a lane, that lane writes.
            let mut any = results[2];
            for selection in &self.selections {
                let is_here = selection.block == self.block && selection.path == path;
                if is_here || left_out(Guard::SelectionWrites) {
                    any = self.terms.or(1, any, selection.some);
                }
            }
            others = (!together).then_some((any, written, half));
        }
        if let Some(high) = half {
            let old = self.read_shared(slot, path);
            value = old.with_half(self.terms, high, value);
        }
        let write = SharedWrite { path, value, others, split, same_value, unread_after: None };
        self.shared.entry(slot).or_default().push(write);
    }

    /// Returns true if, on a path, the divergent conditions of a write follow from the uniform ones.
    fn has_written(&mut self, path: Term, uniform: Term, divergent: &[Term]) -> bool {
        let there = self.terms.and(1, path, uniform);
        let there = self.terms.conjuncts(there);
        divergent.iter().all(|condition| there.contains(condition))
    }

    /// The part of a condition that the conditions of a path do not contain.
    fn without(&mut self, condition: Term, path: &[Term]) -> Term {
        let mut rest = self.terms.conjuncts(condition);
        rest.retain(|condition| !path.contains(condition));
        self.terms.conjunction(&rest)
    }

    /// The value of a shared register for lanes on a path.
    pub(super) fn read_shared(&mut self, slot: Slot, path: Term) -> SymbolicValue {
        let here = self.terms.conjuncts(path);
        let writes = self.shared.get(&slot).map_or(0, Vec::len);
        // The last write that the reader certainly sees, and those after it.
        let mut first = writes;
        let mut sure = None;
        while first > 0 && sure.is_none() {
            let write = &self.shared[&slot][first - 1];
            if self.terms.as_constant(write.path) == Some(0) {
                let (value, unread_after) = (write.value, write.unread_after);
                sure = Some(match unread_after {
                    Some(number) => self.oracle.first_read_after(self.terms, number, slot),
                    None => value,
                });
            } else {
                let conditions = self.terms.conjuncts(write.path);
                let is_here = |condition| here.contains(condition) || left_out(Guard::SharedRead);
                sure = conditions.iter().all(is_here).then_some(write.value);
            }
            first -= usize::from(sure.is_none());
        }
        let mut value = match sure {
            Some(value) => value,
            None => self.oracle.start(self.terms, slot),
        };
        for i in first..writes {
            let write = self.shared[&slot][i].clone();
            if let Some((any, theirs, half)) = write.others {
                // If the uniform conditions hold, they hold for all lanes. Then a reader on whose path the divergent
                // ones follow from them was a writer; otherwise, no lane was.
                let any = match write.split {
                    Some((own, same)) if self.has_written(path, same, &own) => self.without(same, &here),
                    _ => any,
                };
                let theirs = half.map_or(theirs, |high| value.with_half(self.terms, high, theirs));
                value = self.choose(any, theirs, value);
                // The reader may be one of the writers.
                if write.same_value {
                    continue;
                }
            }
            let both = self.terms.and(1, path, write.path);
            if self.terms.as_constant(both) != Some(0) {
                let own = self.without(write.path, &here);
                value = self.choose(own, write.value, value);
            }
        }
        value
    }
}
