//! Stores that the target has in another order, in other blocks, or not at all.
//!
//! A store of the target that is not the next one of the source begins a *group*: the stores of the target from there
//! on, until they do the same to memory as the next stores of the source, taken together. Then the version of the
//! memory is that of the source again. In between it is unknown, so loads there have to be looked up in versions before
//! the group, or in its stores (`symbolic::forwarding`). A group ends in the segment in which it begins, before
//! anything else makes a version: an atomic, a barrier, a fence. It is one of stores in which only lanes of the segment
//! take part.
//!
//! Stores of several lanes to one word have an order here: that of the stores, then that of the lanes. There are two
//! ways to show that groups have the same effect.
//!
//! - The target has some of the source's stores, and the same place is stored to later by the lanes of each of the
//!   others. The last store to a word is then one that both have, and those are in one order.
//! - Each lane on its own has stored the same values to the same places at the end, and different lanes store to one
//!   place by different stores of a group only if they store the same value. Then the last store to a word is one of
//!   the same lane in both programs, or one of the same lanes in one instruction, or they all store the same value.
//!
//! Facts about two lanes are shown for any two different lanes of a segment: the variables of one of them are renamed,
//! and the numbers of the lanes differ.

use super::events::SourceEvent;
use super::state::SimulationState;
use crate::symbolic::{ElementAccess, Event, EventOperation, Slot, system_value};
use ir3_compiler::ir3::SystemValue;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::assumptions;
use ir3_semantics::environment::env::{Launch, VARIABLE_SIZE};
use ir3_semantics::environment::memory::{DISTINCT_BYTES, NEAR_BYTES, Space};
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Term, Terms};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The maximum number of stores of a program in a group.
const STORES: usize = 64;

/// An access, and the value that is stored or loaded.
type AccessedValue<'a> = (&'a ElementAccess, Option<Term>);

/// The maximum number of lanes of a wave.
const MOST_LANES: u32 = 128;

/// The maximum number of stores in two groups that are compared place by place.
const BY_PLACES: usize = 16;

/// Stores of the target that have no partners yet, by the version that they make.
#[derive(Debug, Default)]
pub(super) struct StoreGroups {
    open: FxHashMap<Slot, Vec<Event>>,
}

impl StoreGroups {
    /// Begins a segment.
    pub(super) fn begin(&mut self) {
        self.open.clear();
    }

    /// Returns true if there are stores of a version without partners.
    pub(super) fn is_open(&self, version: Slot) -> bool {
        self.open.contains_key(&version)
    }

    /// A store without a partner.
    pub(super) fn left_over(&self) -> Option<&Event> {
        self.open.values().flatten().next()
    }
}

/// A store of a group.
struct GroupStore {
    operation: EventOperation,
    access: ElementAccess,
    value: Term,
}

impl GroupStore {
    fn of(event: &Event) -> Option<Self> {
        let access = event.store.clone().filter(|_| !event.context.joined || left_out(Guard::StoreJoined))?;
        // The stored values of the target have been replaced by terms of the source.
        let (value, place) = event.args.split_last()?;
        let place = place.iter().map(|arg| arg.bits).collect();
        let access = ElementAccess { place, path: event.path, ..access };
        Some(Self { operation: event.operation, access, value: value.bits })
    }

    /// The byte address.
    fn address(&self) -> Option<Term> {
        address(&self.access)
    }
}

/// The byte address of an access to a buffer.
fn address(access: &ElementAccess) -> Option<Term> {
    match access.place[..] {
        [_, address] if access.space != Space::Image => Some(address),
        _ => None,
    }
}

/// One bit: 0 if two accesses to one buffer are to different words: no byte is in common, and the addresses are near
/// the beginning of the buffer or near each other. Others may be beyond its end, where a run lets them meet.
fn may_meet(terms: &mut Terms, a: &ElementAccess, b: &ElementAccess) -> Option<Term> {
    let (x, y) = (address(a)?, address(b)?);
    let below = |terms: &mut Terms, value, limit: u64| {
        let limit = terms.constant(64, limit);
        terms.ult(64, value, limit)
    };
    let (after, before) = (terms.sub(64, x, y), terms.sub(64, y, x));
    let overlaps = [(after, b), (before, a)].map(|(distance, of)| below(terms, distance, u64::from(of.bits / 8)));
    let overlap = terms.or(1, overlaps[0], overlaps[1]);
    // The addresses of words have 34 bits.
    let near = [after, before].map(|distance| {
        let distance = terms.extract(64, distance, 0, 34);
        let distance = terms.zext(34, 64, distance);
        below(terms, distance, DISTINCT_BYTES)
    });
    let near = terms.or(1, near[0], near[1]);
    let inside = [x, y].map(|address| below(terms, address, NEAR_BYTES));
    let inside = terms.and(1, inside[0], inside[1]);
    let close = terms.or(1, near, inside);
    let far = terms.not(1, close);
    Some(terms.or(1, overlap, far))
}

/// The facts that two lanes have different numbers: one condition for each kind of number.
fn different_lanes(
    terms: &mut Terms,
    launch: Launch,
    mut another: impl FnMut(&mut Terms, Term) -> Option<Term>,
) -> Vec<Term> {
    let mut facts = Vec::new();
    let mut differ = |terms: &mut Terms, numbers: &[(SystemValue, u32, Option<u32>)]| {
        let mut same = terms.constant(1, 1);
        for &(value, component, size) in numbers {
            let own = system_value(terms, launch, value, component);
            let Some(other) = another(terms, own) else { return };
            if let Some(size) = size {
                let size = terms.constant(32, size.into());
                for number in [own, other] {
                    facts.push(terms.ult(32, number, size));
                }
            }
            let equal = terms.eq(32, own, other);
            same = terms.and(1, same, equal);
        }
        facts.push(terms.not(1, same));
    };
    differ(terms, &[(SystemValue::SubgroupInvocation, 0, Some(MOST_LANES))]);
    if !launch.fragment {
        let is_known = launch.workgroup_size != VARIABLE_SIZE;
        let total = is_known.then(|| launch.workgroup_size.iter().map(|&size| size.max(1)).product());
        differ(terms, &[(SystemValue::LocalInvocationIndex, 0, total)]);
        let size = |axis: usize| is_known.then(|| launch.workgroup_size[axis].max(1));
        let position = [0, 1, 2].map(|axis| (SystemValue::LocalInvocationId, axis as u32, size(axis)));
        differ(terms, &position);
    }
    facts
}

impl SimulationState<'_> {
    /// Returns true if two accesses of different lanes are shown to satisfy a goal. It is made of the accesses, of
    /// which the second is that of the other lane.
    fn holds_for_two_lanes(
        &mut self,
        terms: &mut Terms,
        (first, second): (AccessedValue<'_>, AccessedValue<'_>),
        goal: impl FnOnce(&mut Terms, &ElementAccess, &ElementAccess, Option<Term>) -> Option<Term>,
    ) -> bool {
        let lanes = &mut self.lane_terms;
        let mut another = |terms: &mut Terms, term| lanes.another(terms, term);
        let place: Option<SmallVec<[Term; 6]>> = second.0.place.iter().map(|&term| another(terms, term)).collect();
        let value = second.1.map(|value| another(terms, value));
        let (Some(place), Some(path)) = (place, another(terms, second.0.path)) else { return false };
        let Some(value) = value.map_or(Some(None), |value| value.map(Some)) else { return false };
        let mut facts = vec![first.0.path, path];
        facts.extend(different_lanes(terms, self.launch, another));
        let second = ElementAccess { place, path, ..second.0.clone() };
        let Some(goal) = goal(terms, first.0, &second, value) else { return false };
        let known = terms.conjunction(&facts);
        self.sweeper.follows(terms, known, goal)
    }

    /// Returns true if two accesses are to one buffer, the same for all lanes, whose addresses can be compared.
    fn is_one_buffer(&self, terms: &Terms, first: &ElementAccess, second: &ElementAccess) -> bool {
        // An access beyond the end of a buffer may be anywhere in it, and no pointer determines the end of its buffer.
        let is_buffer = matches!(first.space, Space::Ssbo | Space::Shared);
        is_buffer
            && first.space == second.space
            && first.place.first() == second.place.first()
            && first.place.first().is_some_and(|&binding| self.facts.uniform(terms, binding))
    }

    /// See [`Oracle::are_disjoint`](crate::symbolic::Oracle::are_disjoint).
    pub(super) fn stores_are_disjoint(
        &mut self,
        terms: &mut Terms,
        store: &ElementAccess,
        access: &ElementAccess,
    ) -> bool {
        if !self.is_one_buffer(terms, store, access) {
            return false;
        }
        let Some(own) = may_meet(terms, store, access) else { return false };
        let goal = terms.not(1, own);
        let paths = terms.and(1, store.path, access.path);
        if !self.sweeper.follows(terms, paths, goal) {
            return false;
        }
        self.lanes_are_disjoint(terms, store, access)
    }

    /// See [`Oracle::lanes_disjoint`](crate::symbolic::Oracle::lanes_disjoint).
    pub(super) fn lanes_are_disjoint(
        &mut self,
        terms: &mut Terms,
        store: &ElementAccess,
        access: &ElementAccess,
    ) -> bool {
        let disjoint = |terms: &mut Terms, a: &ElementAccess, b: &ElementAccess, _| {
            let meets = may_meet(terms, a, b)?;
            Some(terms.not(1, meets))
        };
        let apart = self.is_one_buffer(terms, store, access)
            && self.holds_for_two_lanes(terms, ((store, None), (access, None)), disjoint);
        if apart {
            self.assumed.insert(assumptions::IN_BOUNDS);
        }
        apart || left_out(Guard::LanesApart)
    }

    /// See [`Oracle::lanes_agree`](crate::symbolic::Oracle::lanes_agree).
    pub(super) fn stores_agree(
        &mut self,
        terms: &mut Terms,
        (first, value): (&ElementAccess, Term),
        (second, other): (&ElementAccess, Term),
    ) -> bool {
        if value == other && self.facts.uniform(terms, value) && first.bits == second.bits {
            return true;
        }
        if !self.is_one_buffer(terms, first, second) {
            return false;
        }
        let agree = |terms: &mut Terms, a: &ElementAccess, b: &ElementAccess, other: Option<Term>| {
            let meets = may_meet(terms, a, b)?;
            let (x, y) = (address(a)?, address(b)?);
            let (same_place, same_value) = (terms.eq(64, x, y), terms.eq(32, value, other?));
            let same = terms.and(1, same_place, same_value);
            let apart = terms.not(1, meets);
            Some(terms.or(1, apart, same))
        };
        let agree =
            first.bits == second.bits && self.holds_for_two_lanes(terms, ((first, None), (second, Some(other))), agree);
        if agree {
            self.assumed.insert(assumptions::IN_BOUNDS);
        }
        agree
    }

    /// Adds a store of the target to its group. Returns the version after it, if that is one of the source.
    pub(super) fn group(&mut self, terms: &mut Terms, event: &Event) -> Option<Term> {
        let &[version] = &event.context.makes[..] else { return None };
        let mut targets = self.groups.open.remove(&version).unwrap_or_default();
        let first = targets.first().unwrap_or(event).context.before[0];
        targets.push(event.clone());
        let pending: Vec<usize> = self.events.pending(version).take(STORES).collect();
        let mut sources: Vec<SourceEvent> = Vec::new();
        for &at in &pending {
            let source = self.events.get(at).clone();
            let is_next = match sources.last() {
                Some(last) => {
                    last.results.last() == source.event.context.before.first() && last.assumed == source.assumed
                }
                None => {
                    let before = source.event.context.before.first().copied();
                    before.is_some_and(|before| {
                        let same = terms.eq(32, before, first);
                        self.holds(terms, source.assumed, same)
                    })
                }
            };
            if !is_next || source.event.context.makes != event.context.makes || source.event.store.is_none() {
                break;
            }
            sources.push(source);
            if !self.have_same_effect(terms, &sources, &targets) {
                continue;
            }
            for &at in &pending[..sources.len()] {
                self.events.take_grouped(at);
            }
            self.grouped = true;
            // As for a single event: the target is still defined where the source has these stores.
            let assumed = sources[0].assumed;
            for obligation in self.obligations.iter_mut().filter(|it| it.assumed > assumed) {
                obligation.assumed = assumed;
            }
            return sources.last().and_then(|last| last.results.last().copied());
        }
        self.groups.open.insert(version, targets);
        None
    }

    /// Returns true if the stores of the source do the same to memory as those of the target.
    fn have_same_effect(&mut self, terms: &mut Terms, sources: &[SourceEvent], targets: &[Event]) -> bool {
        let assumed = sources[0].assumed;
        let is_defined = |event: &Event| event.args.iter().all(|arg| arg.is_defined(terms));
        if !sources.iter().all(|source| is_defined(&source.event)) || targets.len() > STORES {
            return false;
        }
        let stores: Option<Vec<GroupStore>> = sources.iter().map(|source| GroupStore::of(&source.event)).collect();
        let others: Option<Vec<GroupStore>> = targets.iter().map(GroupStore::of).collect();
        let (Some(stores), Some(others)) = (stores, others) else { return false };
        self.are_covered(terms, assumed, &stores, &others) || self.are_same_by_places(terms, assumed, &stores, &others)
    }

    /// Returns true if a condition holds where the source is defined.
    fn is_so(&mut self, terms: &mut Terms, assumed: usize, goal: Term) -> bool {
        let known = terms.conjunction(&self.assumptions[..assumed.min(self.assumptions.len())]);
        self.sweeper.follows(terms, known, goal)
    }

    /// Returns true if the target has some of the stores of the source, which cover the others.
    fn are_covered(&mut self, terms: &mut Terms, assumed: usize, stores: &[GroupStore], others: &[GroupStore]) -> bool {
        if others.len() > stores.len() {
            return false;
        }
        let mut kept: Vec<bool> = vec![false; stores.len()];
        let mut at = 0;
        for other in others {
            // The last one that may be meant, so that those before it are covered.
            let later = stores.len() - (others.len() - kept.iter().filter(|&&kept| kept).count());
            let found = (at..=later).rev().find(|&i| {
                let store = &stores[i];
                let is_alike =
                    store.operation == other.operation && store.access.place.len() == other.access.place.len();
                is_alike && {
                    let goal = same_store(terms, store, other);
                    self.is_so(terms, assumed, goal)
                }
            });
            let Some(found) = found else { return false };
            kept[found] = true;
            at = found + 1;
        }
        (0..stores.len()).filter(|&i| !kept[i]).all(|i| {
            let covered = (i + 1..stores.len()).filter(|&j| kept[j]).any(|j| {
                let (store, cover) = (&stores[i], &stores[j]);
                let is_alike =
                    store.operation == cover.operation && store.access.place.len() == cover.access.place.len();
                is_alike && {
                    let goal = is_covered(terms, store, cover);
                    self.is_so(terms, assumed, goal)
                }
            });
            covered || left_out(Guard::StoreCovered)
        })
    }

    /// Returns true if each lane stores the same values to the same places, and no two lanes store different values to
    /// one place in another order.
    fn are_same_by_places(
        &mut self,
        terms: &mut Terms,
        assumed: usize,
        stores: &[GroupStore],
        others: &[GroupStore],
    ) -> bool {
        let Some(first) = stores.first() else { return false };
        let all = || stores.iter().chain(others);
        let is_alike = |store: &GroupStore| {
            store.access.bits == first.access.bits && self.is_one_buffer(terms, &store.access, &first.access)
        };
        if stores.len() + others.len() > BY_PLACES || !all().all(is_alike) {
            return false;
        }
        // Two places are the same, or have no byte in common.
        let list: Vec<&GroupStore> = all().collect();
        for (i, a) in list.iter().enumerate() {
            for b in &list[..i] {
                let (Some(x), Some(y), Some(meets)) = (a.address(), b.address(), may_meet(terms, &a.access, &b.access))
                else {
                    return false;
                };
                let same = terms.eq(64, x, y);
                let apart = terms.not(1, meets);
                let goal = terms.or(1, same, apart);
                if !self.is_so(terms, assumed, goal) {
                    return false;
                }
            }
        }
        for at in &list {
            let Some(place) = at.address() else { return false };
            let [(is_stored, value), (is_other, other)] = [stores, others].map(|list| last_stored(terms, list, place));
            let (same_stored, same_value) = (terms.eq(1, is_stored, is_other), terms.eq(32, value, other));
            let not_stored = terms.not(1, is_stored);
            let same_value = terms.or(1, not_stored, same_value);
            let same = terms.and(1, same_stored, same_value);
            let elsewhere = terms.not(1, at.access.path);
            let goal = terms.or(1, elsewhere, same);
            if !self.is_so(terms, assumed, goal) {
                return false;
            }
        }
        [stores, others].into_iter().all(|list| {
            list.iter().enumerate().all(|(i, a)| {
                list[..i].iter().all(|b| {
                    self.stores_agree(terms, (&a.access, a.value), (&b.access, b.value)) || left_out(Guard::StoreLanes)
                })
            })
        })
    }
}

/// One bit: 1 if two stores are the same.
fn same_store(terms: &mut Terms, a: &GroupStore, b: &GroupStore) -> Term {
    let mut same = terms.eq(1, a.access.path, b.access.path);
    let places = a.access.place.iter().zip(&b.access.place).map(|(&x, &y)| (x, y));
    for (x, y) in places.chain([(a.value, b.value)]) {
        let width = terms.width(x);
        if terms.width(y) != width {
            return terms.constant(1, 0);
        }
        let equal = terms.eq(width, x, y);
        same = terms.and(1, same, equal);
    }
    let elsewhere = terms.or(1, a.access.path, b.access.path);
    let elsewhere = terms.not(1, elsewhere);
    terms.or(1, elsewhere, same)
}

/// One bit: 1 if a lane that does the first store also does the second one, to the same place.
fn is_covered(terms: &mut Terms, store: &GroupStore, cover: &GroupStore) -> Term {
    let mut covered = cover.access.path;
    for (&x, &y) in store.access.place.iter().zip(&cover.access.place) {
        let width = terms.width(x);
        if terms.width(y) != width {
            return terms.constant(1, 0);
        }
        let equal = terms.eq(width, x, y);
        covered = terms.and(1, covered, equal);
    }
    let elsewhere = terms.not(1, store.access.path);
    terms.or(1, elsewhere, covered)
}

/// One bit that is 1 if a lane stores to a place, and the last value that it stores there.
fn last_stored(terms: &mut Terms, stores: &[GroupStore], place: Term) -> (Term, Term) {
    let (mut is_stored, mut value) = (terms.constant(1, 0), terms.constant(32, 0));
    for store in stores {
        let Some(address) = store.address() else { continue };
        let here = terms.eq(64, address, place);
        let here = terms.and(1, here, store.access.path);
        is_stored = terms.or(1, is_stored, here);
        value = terms.ite(32, here, store.value, value);
    }
    (is_stored, value)
}
