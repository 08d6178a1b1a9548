//! What belongs to the wave and not to one of its lanes: memories, and shared registers.
//!
//! A segment follows one lane, and says of others what they have in common with it. All lanes in a loop are in the same iteration, so at a cut
//! point they are together; on the way to the next they may part, and then be in different segments at the same time: some run a loop that
//! others wait behind, or go past. Whatever a lane finds, or writes together with others, must hold for all of them:
//!
//! - Lanes that leave a loop in different iterations wait behind it, each with what it had then. ([`Machine::is_mixed`])
//! - Lanes that come from another segment may be in the same block, with something else. ([`Machine::is_met`])
//! - Others run loops, and blocks, that this lane does not come to, and what they do there is seen. ([`Machine::pass`], [`Machine::skip`])
//!
//! None of this is so where lanes go from cut point to cut point as one: where all conditions are the same for all of them. Whether
//! they are is part of what is assumed and shown, as the relation at the headers is.

use super::run::Machine;
use super::{Cut, Event, EventKind, Goal, Graph, Oracle, Setting, Site, Slot, Value, slot, world};
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::environment::memory::Space;
use crate::semantics::terms::{Op, Term};
use crate::support::guards::{Guard, left_out};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

/// Something that was written to a shared register.
#[derive(Clone, Debug)]
pub(super) struct SharedWrite {
    /// Who writes.
    path: Term,
    /// What is there then for those who do.
    value: Value,
    /// Where not all lanes do or none does: whether there is one that does (one bit), and what is written, to which half if not
    /// to the whole.
    others: Option<(Term, Value, Option<bool>)>,
    /// The conditions of `path` that may differ between the lanes, and all of the others together; where lanes of other
    /// segments may write too, nothing.
    split: Option<(SmallVec<[Term; 4]>, Term)>,
    /// It is plain that all who write, write the same.
    alike: bool,
}

/// The innermost loop that two blocks are in; `None` is the program.
fn region(graph: &Graph, a: u32, b: u32) -> Option<u32> {
    let inside = |number: &usize| graph.loops[*number].contains(a) && graph.loops[*number].contains(b);
    (0..graph.loops.len()).rev().find(inside).map(|number| number as u32)
}

/// The goals of a segment, and of each whether some lanes that are together at the cut point go there and others do not.
pub type Goals = SmallVec<[(Goal, bool); 4]>;

/// Whether all lanes that are in a region (a loop, or the program) come from its cut point to a block of it, or past it, together, whatever
/// loops they run on the way. `goals` are those of a cut point.
fn come_as_one<'a>(graph: &Graph, region: Option<u32>, block: u32, goals: &dyn Fn(Cut) -> &'a [(Goal, bool)]) -> bool {
    let part = |cut: Cut| goals(cut).iter().any(|&(goal, part)| part && goal != Goal::Killed);
    if part(region.map_or(Cut::Entry, Cut::Header)) && !left_out(Guard::ComeAsOne) {
        return false;
    }
    let is_region = |number: u32| region == Some(number);
    let inside = |header: u32| region.is_none_or(|region| graph.loops[region as usize].contains(header));
    let loops =
        || (0..).zip(&graph.loops).filter(|&(number, l)| !is_region(number) && inside(l.header) && l.header < block);
    loops().all(|(_, passed)| {
        // Whenever they leave it, lanes wait behind it; then they go on together if there is one way to go on.
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

/// Whether all lanes that are together at the header of a loop stay in it, or none does. They may come back to the header by way of an inner
/// loop.
fn stay_as_one(graph: &Graph, number: u32, goals: &[(Goal, bool)]) -> bool {
    let stays = |goal: Goal| match goal {
        Goal::Header(to) => graph.loops[number as usize].contains(graph.loops[to as usize].header),
        Goal::End | Goal::Killed => false,
    };
    !goals.iter().any(|&(goal, part)| part && stays(goal)) || left_out(Guard::StayAsOne)
}

/// Whether lanes that are together at a cut point, and have left loops when they come to a block, have left these in the same iteration.
/// `goals` are those of a cut point.
pub fn leave_as_one<'a>(graph: &Graph, from: Cut, block: u32, goals: &dyn Fn(Cut) -> &'a [(Goal, bool)]) -> bool {
    let Cut::Header(own) = from else { return true };
    let start = graph.loops[own as usize].header;
    (0..).zip(&graph.loops).filter(|(_, l)| l.contains(start) && !l.contains(block)).all(|(number, l)| {
        if number == own {
            stay_as_one(graph, own, goals(from))
        } else {
            come_as_one(graph, Some(number), l.last + 1, goals)
        }
    })
}

impl<O: Oracle> Machine<'_, O> {
    /// Whether a term is the same in all lanes that are here in this segment.
    pub fn is_uniform(&self, term: Term) -> bool {
        self.facts.uniform(self.terms, term)
            && (!self.is_mixed()
                || self.facts.lasting(self.terms, term)
                || self.is_settled(term)
                || left_out(Guard::Mixed))
    }

    /// Whether lanes that have left loops in different iterations have the same of a term: it is made of what is the same for the whole run, of
    /// what shared registers hold that none of these loops writes, and of what they held when the last of the loops was over.
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
            let is_behind = self.behind.get(&term).is_some_and(is_over) || left_out(Guard::Settled);
            if is_behind || self.oracle.is_kept(term, outermost as u32) {
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

    /// Whether lanes that are here may have left a loop, in which they were at the cut point, one after the other.
    fn is_mixed(&self) -> bool {
        !leave_as_one(self.graph, self.run.cut, self.block, &|cut| self.oracle.goals(cut))
    }

    fn come_as_one(&self, region: Option<u32>, block: u32) -> bool {
        come_as_one(self.graph, region, block, &|cut| self.oracle.goals(cut))
    }

    /// Returns true if lanes from other segments may be here.
    pub(super) fn is_met(&self) -> bool {
        if !self.graph.several.contains(self.block as usize) {
            return false;
        }
        !self.come_as_one(region(self.graph, self.run.start, self.block), self.block) && !left_out(Guard::Met)
    }

    /// The wave goes on from one block to another. Lanes that go back to a loop whose end is passed go back now; then what
    /// happens in that loop, be it by lanes that were never here, is over.
    pub(super) fn pass(&mut self, from: u32, to: u32) {
        let loops = &self.graph.loops;
        let mut passed: SmallVec<[usize; 2]> =
            (0..loops.len()).filter(|&number| (from..to).contains(&loops[number].last)).collect();
        // Inner loops first: where two end together, the one that begins later.
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
                let bits = self.terms.variable_of(world::version_kind(version).passing(), 32, &name);
                let value = Value::defined(self.terms, bits);
                self.versions.insert(version, value);
            }
            for &shared in &effects.shared {
                let always = self.terms.constant(1, 1);
                let held = self.read_shared(shared, always);
                let value = self.oracle.behind(self.terms, number as u32, shared, held);
                self.behind.extend([(value.bits, number), (value.free, number)]);
                if !others {
                    continue;
                }
                self.left_by_nobody(shared, value);
            }
        }
    }

    /// Whether nobody runs a loop whose end is passed while the lane is on its way behind it.
    fn whole_wave_is_here(&self, number: usize) -> bool {
        let (cut, passed) = (self.run.cut, &self.graph.loops[number]);
        if cut == Cut::Header(number as u32) {
            return stay_as_one(self.graph, number as u32, self.oracle.goals(cut));
        }
        // Of a loop around it, nobody is anywhere else; to another, nobody has gone.
        let until = if passed.contains(self.run.start) { passed.last + 1 } else { passed.header };
        self.come_as_one(region(self.graph, self.run.start, passed.header), until)
    }

    /// The wave goes past a block that no lane of this segment comes to: others may be there.
    pub(super) fn skip(&mut self, block: u32) {
        let (graph, start) = (self.graph, self.run.start);
        // What happens in a loop is over when that is passed.
        let in_a_loop = graph.loops.iter().any(|l| l.contains(block) && !l.contains(start));
        if in_a_loop || self.come_as_one(region(graph, start, block), block) {
            return;
        }
        for version in slot::versions().filter(|&version| version != slot::memory(Space::Scratch)) {
            if let Some(value) = self.oracle.others(self.terms, block, version)
                && !left_out(Guard::OthersStore)
            {
                self.versions.insert(version, value);
            }
        }
        for &shared in &graph.effects[graph.standing[block as usize].block as usize].shared {
            if let Some(value) = self.oracle.others(self.terms, block, shared)
                && !left_out(Guard::OthersWrite)
            {
                self.left_by_nobody(shared, value);
            }
        }
    }

    /// A shared register holds something that no lane of this segment wrote.
    fn left_by_nobody(&mut self, shared: Slot, value: Value) {
        let never = self.terms.constant(1, 0);
        let write = SharedWrite { path: never, value, others: None, split: None, alike: false };
        self.shared.entry(shared).or_default().push(write);
    }

    /// Writes a shared register, or one of its halves: one of the lanes' values, for all of them.
    pub fn write_shared(&mut self, site: Site, slot: Slot, half: Option<bool>, value: Value) {
        if self.terms.as_constant(self.path()) == Some(0) {
            return;
        }
        let mut value = value;
        let path = self.path();
        let met = self.is_met();
        let alike = if met {
            let lasting = |term| self.facts.uniform(self.terms, term) && self.facts.lasting(self.terms, term);
            let everywhere = (lasting(value.bits) && lasting(value.free)).then_some(value);
            self.oracle.written_everywhere(site, everywhere)
        } else {
            self.is_uniform(value.bits) && self.is_uniform(value.free) || left_out(Guard::SharedUniform)
        };
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
        if !alike || !together {
            let event = Event {
                site,
                kind: EventKind::OneLane,
                what: "one lane".to_owned(),
                path,
                args: smallvec![value],
                results: smallvec![32, 32, 1],
                uniform: true,
                setting: Setting::default(),
            };
            let results = self.event(event);
            let mut written = value;
            if !alike {
                // The bits in which lanes disagree are undefined: they are those of one of them, and nothing may depend on which.
                let differ = results[0];
                written = Value { bits: results[1], free: differ };
                if !left_out(Guard::SharedDisagree) {
                    let alike = self.terms.not(32, differ);
                    let own = self.terms.and(32, value.bits, alike);
                    let theirs = self.terms.and(32, results[1], differ);
                    let bits = self.terms.or(32, own, theirs);
                    value = Value { bits, free: differ };
                }
            }
            others = (!together).then_some((results[2], written, half));
        }
        if let Some(high) = half {
            let old = self.read_shared(slot, path);
            value = old.with_half(self.terms, high, value);
        }
        self.shared.entry(slot).or_default().push(SharedWrite { path, value, others, split, alike });
    }

    /// What a shared register holds for lanes on a path.
    pub(super) fn read_shared(&mut self, slot: Slot, path: Term) -> Value {
        let here = self.terms.conjuncts(path);
        let writes = self.shared.get(&slot).map_or(0, Vec::len);
        // The last write that the reader is sure to see, and those behind it.
        let mut first = writes;
        let mut sure = None;
        while first > 0 && sure.is_none() {
            let write = &self.shared[&slot][first - 1];
            if self.terms.as_constant(write.path) == Some(0) {
                sure = Some(write.value);
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
                // A reader for whom all holds that may differ between lanes was there if the rest of the path holds, which it
                // does for all lanes or for none: then it wrote itself, or nobody did.
                let any = match write.split {
                    Some((own, same)) if own.iter().all(|condition| here.contains(condition)) => same,
                    _ => any,
                };
                let theirs = half.map_or(theirs, |high| value.with_half(self.terms, high, theirs));
                value = self.choose(any, theirs, value);
                // The reader may be one of those who wrote.
                if write.alike {
                    continue;
                }
            }
            value = self.choose(write.path, write.value, value);
        }
        value
    }
}
