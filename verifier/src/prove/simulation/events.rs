//! Which event of the target is which of the source.
//!
//! Lanes meet in an event, so it does not suffice that it is the same for one lane on one way: an event of the target is *one*
//! event of the source, on whatever way a lane comes there, and takes part in it under the same condition with the same
//! operands; and lanes come to the one in exactly the segments in which they come to the other, or some of them would meet
//! elsewhere ([`Partners`]). An event that nobody sees but by its results need not be one of the source's: its results are
//! then unknown, in all segments ([`Partners::torn`]). And both stand in the same loops, in the order of the blocks. Events that make a version of a memory come in the source's order, all of them.

use super::sweep::Side;
use crate::prove::symbolic::{Cut, Event, EventKind, Site, Slot};
use crate::semantics::environment::sync::Sync;
use crate::semantics::terms::Term;
use crate::support::guards::{Guard, left_out};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// An event of the source, and its results: for one that makes a version, that comes last.
pub struct Happened {
    /// The event.
    pub event: Event,
    /// The results.
    pub results: SmallVec<[Term; 4]>,
    /// How many of the source's assumptions come before it. Where a later one does not hold, it has happened all the same.
    pub assumed: usize,
}

/// The events of the source in a segment, in their order.
#[derive(Default)]
pub struct Events {
    list: Vec<Happened>,
    /// How many that make each version the target has had.
    next: FxHashMap<Slot, usize>,
    /// Those that an event of the target is.
    taken: FxHashSet<usize>,
}

impl Events {
    /// One more.
    pub fn push(&mut self, happened: Happened) {
        self.list.push(happened);
    }

    /// The results of an event that is the same as another: the same lanes are active with the same operands.
    pub fn same(&self, event: &Event) -> Option<SmallVec<[Term; 4]>> {
        let same = |happened: &&Happened| {
            let other = &happened.event;
            other.kind == event.kind
                && other.what == event.what
                && (other.path == event.path || left_out(Guard::EventSamePath))
                && (other.args == event.args || left_out(Guard::EventSameOperands))
                && other.results == event.results
        };
        self.list
            .iter()
            .find(same)
            .map(|happened| happened.results.clone())
            .filter(|_| event.setting.makes.is_empty() || left_out(Guard::EventSameVersion))
    }

    /// Whether an event of the target is this one.
    pub fn is_taken(&self, at: usize) -> bool {
        self.taken.contains(&at)
    }

    /// Those that an event of the target may be.
    pub fn candidates(&self, event: &Event, partners: &Partners) -> SmallVec<[usize; 4]> {
        let same = |happened: &Happened| {
            (event.kind.replaces(happened.event.kind) || are_fences(event, &happened.event) && left_out(Guard::FenceCovers))
                && (happened.event.what == event.what || left_out(Guard::EventWhat))
                && happened.event.args.len() == event.args.len()
                && happened.event.results == event.results
                // Or those that have left a loop in different iterations meet in one of them only.
                && (happened.event.setting.loops == event.setting.loops || left_out(Guard::EventLoops))
        };
        let partner = partners.of.get(&event.site).copied();
        let is_partner = |at: usize| {
            partner.is_none_or(|partner| partner == self.list[at].event.site || left_out(Guard::EventPartner))
        };
        if !event.setting.makes.is_empty() && !left_out(Guard::EventOrder) {
            // The next one of each version that it makes.
            let found = event.setting.makes.iter().filter_map(|&version| self.next_of(version)).min();
            let is_next = |at: usize| {
                let versions = &self.list[at].event.setting.makes;
                versions.iter().all(|&version| self.next_of(version) == Some(at))
            };
            return found.filter(|&at| same(&self.list[at]) && is_partner(at) && is_next(at)).into_iter().collect();
        }
        let possible = self.list.iter().enumerate().filter(|(_, happened)| same(happened));
        possible.map(|(at, _)| at).filter(|&at| is_partner(at)).collect()
    }

    /// The first event of the source that makes a version and that the target has not had.
    fn next_of(&self, version: Slot) -> Option<usize> {
        let next = self.next.get(&version).copied().unwrap_or(0);
        let making =
            self.list.iter().enumerate().filter(|(_, happened)| happened.event.setting.makes.contains(&version));
        making.map(|(at, _)| at).nth(next)
    }

    /// An event of the source.
    pub fn get(&self, at: usize) -> &Happened {
        &self.list[at]
    }

    /// An event of the target is this one.
    pub fn take(&mut self, at: usize, event: &Event, partners: &mut Partners) {
        self.taken.insert(at);
        for &version in &self.list[at].event.setting.makes {
            *self.next.entry(version).or_default() += 1;
        }
        partners.of.insert(event.site, self.list[at].event.site);
    }

    /// An event of the source that makes a version, and that the target has not had.
    pub fn left_over(&self) -> Option<&Event> {
        let mut counts: FxHashMap<Slot, usize> = FxHashMap::default();
        self.list.iter().map(|happened| &happened.event).find(|event| {
            event.setting.makes.iter().any(|&version| {
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

/// Which event of the source each of the target is, by their sites; for all segments of a round.
#[derive(Default)]
pub struct Partners {
    of: FxHashMap<Site, Site>,
    /// Events of the target that were none of the source's, in some segment.
    missed: FxHashSet<Site>,
    /// The segments in which an event happens.
    in_source: FxHashMap<Site, BTreeSet<Cut>>,
    in_target: FxHashMap<Site, BTreeSet<Cut>>,
    /// The events in each block that make versions, and those of the round before.
    versions: FxHashMap<Made, BTreeSet<Site>>,
    before: FxHashMap<Made, BTreeSet<Site>>,
    /// How many of others there were in the segment.
    others: FxHashMap<(Side, Slot), usize>,
}

/// A block of one of the programs, by its position, and a memory.
type Made = (Side, u32, Slot);

impl Partners {
    /// Begins a round.
    pub fn begin(&mut self) {
        let before = std::mem::take(&mut self.versions);
        *self = Self { before, ..Self::default() };
    }

    /// Begins a segment.
    pub fn begin_segment(&mut self) {
        self.others.clear();
    }

    /// Whether other events were found in this round than in the one before.
    pub fn has_changed(&self) -> bool {
        self.versions != self.before
    }

    /// Other lanes run a block. How many events of others there were by then in this segment that made versions of a memory, if there are some
    /// in the block. Each event is counted where it is not the lane's own, and has its place among the others where it is: so if all
    /// segments count alike, both programs have all of them in the same order.
    pub fn done_by_others(&mut self, side: Side, block: u32, version: Slot) -> Option<usize> {
        let here = self.before.get(&(side, block, version))?.len();
        let done = self.others.entry((side, version)).or_default();
        *done += here;
        Some(*done)
    }

    /// An event happens in a segment.
    pub fn note(&mut self, side: Side, event: &Event, cut: Cut) {
        let segments = match side {
            Side::Source => &mut self.in_source,
            Side::Target => &mut self.in_target,
        };
        segments.entry(event.site).or_default().insert(cut);
        for &version in &event.setting.makes {
            self.versions.entry((side, event.setting.block, version)).or_default().insert(event.site);
        }
    }

    /// An event of the target that the source does not have in a segment, and that makes no version. Its results are unknown then.
    pub fn miss(&mut self, site: Site) {
        self.missed.insert(site);
    }

    /// An event of the target that is one of the source's in some segments and none in others. Lanes of both meet there, so what was
    /// shown of its results for the first does not hold: the others take part with operands that the source's event does not have.
    pub fn torn(&self) -> Option<Site> {
        self.missed.iter().copied().filter(|site| self.of.contains_key(site)).min()
    }

    /// An event of the target in which other lanes meet than in that of the source, by their sites.
    pub fn apart(&self) -> Option<(Site, Site)> {
        let apart = self.of.iter().filter(|(target, source)| self.in_target.get(target) != self.in_source.get(source));
        apart.map(|(&target, &source)| (target, source)).min()
    }
}
