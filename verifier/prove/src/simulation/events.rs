//! The pairing of the target's events with the source's.
//!
//! Several lanes take part in an event, so it is not enough that it is the same for one lane on one path. An event of
//! the target is paired with *one* event of the source on every path to it, and a lane takes part in both under the
//! same condition with the same operands. Lanes reach one in exactly the segments in which they reach the other;
//! otherwise some of them would take part in another event ([`EventPairs`]). An event that is observed by its results
//! only needs no partner: its results are then unknown, in all segments ([`EventPairs::torn`]). Both events are in the
//! same loops, and in the order of the blocks. Events that make a version of a memory are all paired, in the source's
//! order.
//!
//! A ballot, a vote, or a read from one of the lanes with a condition ([`Event::selects`]) depends only on the lanes
//! that it selects. For these it is enough that each lane is selected by both or by none: lanes that take part and are
//! not selected might as well be elsewhere. Blocks run in order, so lanes that reach a block in one iteration of its
//! loops arrive together: those that the source selects in one event, the target selects in one. So a ballot of a
//! condition is the mask of the lanes in the branch that this condition takes, and empty where no lane takes it.
//!
//! Stores to different words of the constant file commute, and Mesa's schedulers exchange them. So a store may be
//! paired with a later one of the source while the target has not had those before it: a [`Gap`]. All of them are
//! stores to one word each, at a known place, and no store has the place of one that it overtakes. In a gap the file is
//! in a state that the source never has, and its version is unknown. It begins and ends in one block of each program:
//! at the ends of blocks, where other lanes may run and count events, both programs have had the same stores. A store
//! to a word that neither program reads is no event at all.
//!
//! If an attempt has the rule, several stores to memory may be paired with several others ([`stores`](super::stores)).

use super::sweep::Side;
use crate::symbolic::{Cut, Event, EventKind, EventSite, Slot, slot};
use ir3_semantics::environment::sync::Sync;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Term, Terms};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::ops::Range;

/// An event of the source, and its results: if it makes a version, that is the last one.
#[derive(Clone)]
pub struct SourceEvent {
    /// The event.
    pub event: Event,
    /// The results.
    pub results: SmallVec<[Term; 4]>,
    /// The number of the source's assumptions before it. If a later one does not hold, the event has happened all the
    /// same.
    pub assumed: usize,
}

/// The events of the source in a segment, in order.
#[derive(Default)]
pub struct SourceEvents {
    list: Vec<SourceEvent>,
    /// For each version, the number of events that make it and that the target has had.
    next: FxHashMap<Slot, usize>,
    /// The events that are paired with an event of the target.
    taken: FxHashSet<usize>,
    /// The target has stored words of the constant file before others that the source has stored earlier.
    gap: Option<Gap>,
}

/// The position of the target within a run of reordered stores to the constant file.
struct Gap {
    /// The position of its block.
    block: u32,
    /// The version after its last store.
    version: Term,
}

impl SourceEvents {
    /// Adds an event.
    pub fn push(&mut self, happened: SourceEvent) {
        self.list.push(happened);
    }

    /// The results of an earlier event that is the same as this one: the same lanes take part with the same operands.
    pub fn same(&self, event: &Event) -> Option<SmallVec<[Term; 4]>> {
        let same = |happened: &&SourceEvent| {
            let other = &happened.event;
            other.kind == event.kind
                && other.operation == event.operation
                && (other.path == event.path || left_out(Guard::EventSamePath))
                && (other.args == event.args || left_out(Guard::EventSameOperands))
                && other.results == event.results
        };
        self.list
            .iter()
            .find(same)
            .map(|happened| happened.results.clone())
            .filter(|_| event.context.makes.is_empty() || left_out(Guard::EventSameVersion))
    }

    /// Returns true if the event is paired with an event of the target.
    pub fn is_taken(&self, at: usize) -> bool {
        self.taken.contains(&at)
    }

    /// The events that an event of the target may be paired with.
    pub fn candidates(&self, terms: &Terms, event: &Event, partners: &EventPairs) -> SmallVec<[usize; 4]> {
        let same = |happened: &SourceEvent| {
            (event.kind.replaces(happened.event.kind) || are_fences(event, &happened.event) && left_out(Guard::FenceCovers))
                && (happened.event.operation == event.operation || left_out(Guard::EventWhat))
                && happened.event.args.len() == event.args.len()
                && happened.event.results == event.results
                // Otherwise lanes that have left a loop in different iterations are together in only one of them.
                && (happened.event.context.loops == event.context.loops || left_out(Guard::EventLoops))
        };
        let partner = partners.of.get(&event.site).copied();
        let is_partner = |at: usize| {
            partner.is_none_or(|partner| partner == self.list[at].event.site || left_out(Guard::EventPartner))
        };
        if event.kind == EventKind::Constants && !left_out(Guard::EventOrder) {
            return self.stores(terms, event, |at| same(&self.list[at]) && is_partner(at));
        }
        if !event.context.makes.is_empty() && !left_out(Guard::EventOrder) {
            // The next event of each version that it makes.
            let found = event.context.makes.iter().filter_map(|&version| self.next_of(version)).min();
            let is_next = |at: usize| {
                let versions = &self.list[at].event.context.makes;
                versions.iter().all(|&version| self.next_of(version) == Some(at))
            };
            return found.filter(|&at| same(&self.list[at]) && is_partner(at) && is_next(at)).into_iter().collect();
        }
        let possible = self.list.iter().enumerate().filter(|(_, happened)| same(happened));
        possible.map(|(at, _)| at).filter(|&at| is_partner(at)).collect()
    }

    /// The stores to the constant file that one of the target may be: the first without a partner, or one that may
    /// overtake those before it.
    fn stores(&self, terms: &Terms, event: &Event, is_possible: impl Fn(usize) -> bool) -> SmallVec<[usize; 4]> {
        let mut found = SmallVec::new();
        let is_elsewhere = |block: u32| block != event.context.block && !left_out(Guard::StoredBlock);
        if self.gap.as_ref().is_some_and(|gap| is_elsewhere(gap.block)) {
            return found;
        }
        // Lanes of other segments may store to other words.
        let words_of = |event: &Event| event.stored_words(terms).filter(|_| !event.context.joined);
        let place = words_of(event);
        let mut overtaken: Option<(u32, SmallVec<[Range<u32>; 4]>)> = None;
        for at in self.making(slot::CONSTANTS).filter(|at| !self.taken.contains(at)) {
            let other = &self.list[at].event;
            if let Some((block, words)) = &overtaken {
                let are_apart =
                    |place: &Range<u32>| words.iter().all(|words| words.end <= place.start || place.end <= words.start);
                let is_apart = place.as_ref().is_some_and(are_apart) || left_out(Guard::StoredApart);
                if *block != other.context.block && !left_out(Guard::StoredBlock) || !is_apart {
                    break;
                }
            }
            if is_possible(at) {
                found.push(at);
            }
            let Some(words) = words_of(other).filter(|_| place.is_some()) else { break };
            overtaken.get_or_insert_with(|| (other.context.block, SmallVec::new())).1.push(words);
        }
        found
    }

    /// The events of the source that make a version, in order.
    fn making(&self, version: Slot) -> impl Iterator<Item = usize> {
        let making =
            self.list.iter().enumerate().filter(move |(_, happened)| happened.event.context.makes.contains(&version));
        making.map(|(at, _)| at)
    }

    /// The versions before the source's event `at`, each of which has to be the one before its partner: in the order of
    /// the target, the first store without a partner is before all others.
    pub fn before(&self, at: usize) -> SmallVec<[(Slot, Term); 1]> {
        let EventKind::Constants = self.list[at].event.kind else { return self.before_in_order(at) };
        match &self.gap {
            Some(gap) => SmallVec::from_iter([(slot::CONSTANTS, gap.version)]),
            None => {
                let first = self.making(slot::CONSTANTS).find(|at| !self.taken.contains(at));
                self.before_in_order(first.unwrap_or(at))
            }
        }
    }

    fn before_in_order(&self, at: usize) -> SmallVec<[(Slot, Term); 1]> {
        let context = &self.list[at].event.context;
        context.makes.iter().copied().zip(context.before.iter().copied()).collect()
    }

    /// The version of the constant file after a store of the target: that of the source after the same stores, or
    /// `unknown` if it never has exactly these.
    pub fn stored(&mut self, event: &Event, unknown: Term) -> Term {
        let first = self.making(slot::CONSTANTS).find(|at| !self.taken.contains(at));
        let is_after = |at: &usize| self.taken.contains(at);
        let last = self.making(slot::CONSTANTS).filter(is_after).last();
        let closed = last.filter(|&last| first.is_none_or(|first| last < first));
        self.gap = None;
        if let Some(&version) = closed.and_then(|last| self.list[last].results.last()) {
            return version;
        }
        self.gap = Some(Gap { block: event.context.block, version: unknown });
        unknown
    }

    /// The first event of the source that makes a version and has no partner.
    fn next_of(&self, version: Slot) -> Option<usize> {
        self.making(version).nth(self.next.get(&version).copied().unwrap_or(0))
    }

    /// The events of the source that make a version and have no partner, in order.
    pub fn pending(&self, version: Slot) -> impl Iterator<Item = usize> {
        self.making(version).skip(self.next.get(&version).copied().unwrap_or(0))
    }

    /// Records that an event of the source has a partner, as one of several stores.
    pub fn take_grouped(&mut self, at: usize) {
        self.taken.insert(at);
        for &version in &self.list[at].event.context.makes {
            *self.next.entry(version).or_default() += 1;
        }
    }

    /// An event of the source.
    pub fn get(&self, at: usize) -> &SourceEvent {
        &self.list[at]
    }

    /// Pairs an event of the target with the source's event `at`.
    pub fn take(&mut self, at: usize, event: &Event, partners: &mut EventPairs) {
        self.taken.insert(at);
        for &version in &self.list[at].event.context.makes {
            *self.next.entry(version).or_default() += 1;
        }
        partners.of.insert(event.site, self.list[at].event.site);
    }

    /// Returns an event of the source that makes a version and has no partner in the target. The version `unread` is
    /// ignored, because nothing observes it.
    pub fn left_over(&self, unread: Option<Slot>) -> Option<&Event> {
        let mut counts: FxHashMap<Slot, usize> = FxHashMap::default();
        self.list.iter().map(|happened| &happened.event).find(|event| {
            event.context.makes.iter().filter(|&&version| Some(version) != unread).any(|&version| {
                let count = counts.entry(version).or_default();
                *count += 1;
                *count > self.next.get(&version).copied().unwrap_or(0)
            })
        })
    }
}

fn are_fences(a: &Event, b: &Event) -> bool {
    let is_fence = |event: &Event| matches!(event.kind, EventKind::Sync(Sync::Fence(_)));
    is_fence(a) && is_fence(b)
}

/// The pairs of events, by their sites, for all segments of an iteration.
#[derive(Default)]
pub struct EventPairs {
    of: FxHashMap<EventSite, EventSite>,
    /// Events of the target without a partner in some segment.
    missed: FxHashSet<EventSite>,
    /// The segments in which an event happens.
    in_source: FxHashMap<EventSite, BTreeSet<Cut>>,
    in_target: FxHashMap<EventSite, BTreeSet<Cut>>,
    /// The events in each block that make versions, in this iteration and in the previous one.
    versions: FxHashMap<VersionedBlock, BTreeSet<EventSite>>,
    before: FxHashMap<VersionedBlock, BTreeSet<EventSite>>,
    /// The number of events of other lanes so far in the segment.
    others: FxHashMap<(Side, Slot), usize>,
    /// True if events of other lanes have been counted.
    counted: bool,
}

/// A block of one of the programs, by its position, and a memory.
type VersionedBlock = (Side, u32, Slot);

impl EventPairs {
    /// Begins an iteration.
    pub fn begin(&mut self) {
        let before = std::mem::take(&mut self.versions);
        *self = Self { before, ..Self::default() };
    }

    /// Begins a segment.
    pub fn begin_segment(&mut self) {
        self.others.clear();
    }

    /// Returns true if this iteration found other events than the previous one.
    pub fn has_changed(&self) -> bool {
        self.versions != self.before
    }

    /// Called where other lanes run a block. Returns the number of events of other lanes so far in this segment that
    /// made versions of a memory, if the block has any. An event is counted in the segments where it is not the lane's
    /// own, and keeps its position among the others where it is. So if all segments have the same counts, both programs
    /// have all of them in the same order.
    pub fn done_by_others(&mut self, side: Side, block: u32, version: Slot) -> Option<usize> {
        let here = self.before.get(&(side, block, version))?.len();
        let done = self.others.entry((side, version)).or_default();
        *done += here;
        self.counted = true;
        Some(*done)
    }

    /// Returns true if events of other lanes have been counted in this iteration: both programs must have the same
    /// ones.
    pub fn has_counted(&self) -> bool {
        self.counted
    }

    /// Records an event of a segment.
    pub fn note(&mut self, side: Side, event: &Event, cut: Cut) {
        let segments = match side {
            Side::Source => &mut self.in_source,
            Side::Target => &mut self.in_target,
        };
        segments.entry(event.site).or_default().insert(cut);
        for &version in &event.context.makes {
            self.versions.entry((side, event.context.block, version)).or_default().insert(event.site);
        }
    }

    /// Records an event of the target that has no partner in a segment, and makes no version. Its results are unknown
    /// then.
    pub fn miss(&mut self, site: EventSite) {
        self.missed.insert(site);
    }

    /// Returns an event of the target that has a partner in some segments and none in others. Lanes of both kinds of
    /// segments take part in it, so facts about its results for the first do not hold: the others take part
    /// with operands that the source's event does not have.
    pub fn torn(&self) -> Option<EventSite> {
        self.missed.iter().copied().filter(|site| self.of.contains_key(site)).min()
    }

    /// Returns a pair of events, by their sites, in which different lanes take part.
    pub fn with_different_lanes(&self) -> Option<(EventSite, EventSite)> {
        let different =
            self.of.iter().filter(|(target, source)| self.in_target.get(target) != self.in_source.get(source));
        different.map(|(&target, &source)| (target, source)).min()
    }
}
