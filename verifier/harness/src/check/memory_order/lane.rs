//! The accesses of one lane in both programs, compared in their order.

use super::TracedRuns;
use super::report::OrderChange;
use ir3_semantics::environment::aliases::{MemoryName, may_be_one};
use ir3_semantics::environment::env::Env;
use ir3_semantics::environment::memory::{AccessKind, AccessTrace, Space, TracedEvent, TracedSync};
use ir3_semantics::environment::sync::Sync;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// The most accesses of a lane that are compared.
const MOST_ACCESSES: usize = 4000;
/// The loads of one word that are tried as the counterpart of a load.
const MOST_COUNTERPARTS: usize = 16;

/// An operation of a program: an instruction, or a barrier or fence by its number in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// An access, by the number of its instruction.
    Access(u32),
    /// A barrier or fence.
    Sync(u32, Sync),
}

/// A difference that may matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Suspect {
    /// Its kind.
    pub change: OrderChange,
    /// The operation.
    pub first: Operation,
    /// True if it is one of the program after.
    pub is_of_after: bool,
    /// The operation of the program before on the other side.
    pub second: Option<Operation>,
}

impl Suspect {
    /// A difference of operations of the program before.
    fn of_before(change: OrderChange, first: Operation, second: Option<Operation>) -> Self {
        Self { change, first, is_of_after: false, second }
    }
}

/// The differences of all lanes and runs.
#[derive(Debug, Default)]
pub struct Findings {
    /// The differences that matter, in the order in which they are found.
    suspects: Vec<Suspect>,
    known: FxHashSet<Suspect>,
    /// The differences of accesses to one buffer at disjoint addresses: their distances, and the numbers of the
    /// environments.
    distant: Vec<(Suspect, BTreeSet<u64>, BTreeSet<usize>)>,
    numbers: FxHashMap<Suspect, usize>,
}

impl Findings {
    fn add(&mut self, suspect: Suspect) {
        if self.known.insert(suspect) {
            self.suspects.push(suspect);
        }
    }

    fn add_distant(&mut self, suspect: Suspect, distance: u64, env: usize) {
        let number = *self.numbers.entry(suspect).or_insert_with(|| {
            self.distant.push((suspect, BTreeSet::new(), BTreeSet::new()));
            self.distant.len() - 1
        });
        let (_, distances, envs) = &mut self.distant[number];
        distances.insert(distance);
        envs.insert(env);
    }

    /// The differences that matter: also those at distances that differ, or that too few environments show.
    pub fn suspects(&self, least: usize) -> impl Iterator<Item = Suspect> + '_ {
        let is_variable = move |(_, distances, envs): &&(_, BTreeSet<u64>, BTreeSet<usize>)| {
            distances.len() > 1 || envs.len() < least
        };
        let distant = self.distant.iter().filter(is_variable).map(|(suspect, ..)| *suspect);
        self.suspects.iter().copied().chain(distant.filter(|suspect| !self.known.contains(suspect)))
    }
}

/// An access of a lane to a word.
#[derive(Clone, Copy, Debug)]
struct LaneAccess {
    kind: AccessKind,
    site: u32,
    execution: u32,
    volatile: bool,
    named: MemoryName,
    array: MemoryName,
    word: u32,
    /// The mask of bytes in the word.
    bytes: u8,
    address: u64,
}

impl LaneAccess {
    fn writes(&self) -> bool {
        self.kind != AccessKind::Load
    }

    const fn place(&self) -> (MemoryName, u32, u8) {
        (self.array, self.word, self.bytes)
    }

    fn touches(&self, other: &Self) -> bool {
        (self.array, self.word) == (other.array, other.word) && self.bytes & other.bytes != 0
    }
}

/// An event of a lane.
#[derive(Clone, Copy, Debug)]
enum LaneEvent {
    Access(LaneAccess),
    Sync(u32, Sync),
}

impl LaneEvent {
    fn access(&self) -> Option<&LaneAccess> {
        match self {
            Self::Access(access) => Some(access),
            Self::Sync(..) => None,
        }
    }

    fn operation(&self) -> Operation {
        match *self {
            Self::Access(LaneAccess { site, .. }) => Operation::Access(site),
            Self::Sync(number, sync) => Operation::Sync(number, sync),
        }
    }
}

/// The relation of two operations of the program before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// Their order does not matter.
    Independent,
    /// The accesses are to one buffer at disjoint addresses of this distance.
    Distant(u64),
    /// Their order may matter.
    Conflict,
}

/// An operation of the backbone: those whose order both programs have to keep. Positions in both programs.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    before: usize,
    after: usize,
}

/// The accesses of a lane in the runs of both programs in one environment.
pub struct LaneComparison<'a> {
    env: &'a Env,
    before: Vec<LaneEvent>,
    after: Vec<LaneEvent>,
    syncs: &'a [Option<usize>],
    /// Ordered by the position in the program before.
    anchors: Vec<Anchor>,
    /// True if they are in the same order in the program after.
    is_monotone: bool,
    is_comparable: bool,
}

impl<'a> LaneComparison<'a> {
    /// The accesses of a lane.
    pub fn new(runs: &'a TracedRuns, env: &'a Env, lane: usize) -> Self {
        let [mut before, mut after] = [0, 1].map(|side| events(&runs.traces[side], lane));
        let is_comparable = before.len().max(after.len()) <= MOST_ACCESSES;
        if is_comparable {
            split_words(&mut before, &mut after);
        }
        let syncs = &runs.syncs[..];
        Self { env, before, after, syncs, anchors: Vec::new(), is_monotone: true, is_comparable }
    }

    /// Adds the differences to those of other lanes and runs. `number` is that of the environment.
    pub fn find(mut self, number: usize, findings: &mut Findings) {
        if !self.is_comparable || self.are_same() {
            return;
        }
        let removed = self.match_writes(findings);
        self.match_volatile_loads(findings);
        self.match_syncs();
        self.anchors.sort_unstable_by_key(|anchor| anchor.before);
        self.is_monotone = self.anchors.is_sorted_by_key(|anchor| anchor.after);
        self.find_exchanged(number, findings);
        self.find_moved_loads(number, findings);
        for position in removed {
            self.find_reason_of_removed(position, number, findings);
        }
    }

    /// Returns true if both programs have the same accesses in the same order.
    fn are_same(&self) -> bool {
        let is_same = |(a, b): (&LaneEvent, &LaneEvent)| match (a, b) {
            (LaneEvent::Access(a), LaneEvent::Access(b)) => a.kind == b.kind && a.place() == b.place(),
            (LaneEvent::Sync(number, _), LaneEvent::Sync(other, _)) => {
                self.syncs.get(*number as usize).copied().flatten() == Some(*other as usize)
            }
            _ => false,
        };
        self.before.len() == self.after.len() && self.before.iter().zip(&self.after).all(is_same)
    }

    /// Matches stores and atomics, the last ones to a word first. Returns the stores of the program before without a
    /// counterpart.
    fn match_writes(&mut self, findings: &mut Findings) -> Vec<usize> {
        let mut of_after: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (at, access) in accesses(&self.after).filter(|(_, access)| access.writes()) {
            of_after.entry((access.kind, access.place())).or_default().push(at);
        }
        let mut removed = Vec::new();
        for (at, access) in accesses(&self.before).filter(|(_, access)| access.writes()).rev() {
            match of_after.get_mut(&(access.kind, access.place())).and_then(Vec::pop) {
                Some(after) => self.anchors.push(Anchor { before: at, after }),
                None => removed.push(at),
            }
        }
        let mut added: Vec<usize> = of_after.into_values().flatten().collect();
        added.sort_unstable();
        for at in added {
            let first = self.after[at].operation();
            findings.add(Suspect { change: OrderChange::Added, first, is_of_after: true, second: None });
        }
        removed.reverse();
        removed
    }

    /// Matches volatile loads of the program before with loads of the program after, in their order. Where that program
    /// marks them, too, only with volatile ones.
    fn match_volatile_loads(&mut self, findings: &mut Findings) {
        let is_volatile = |access: &LaneAccess| access.volatile && !access.writes();
        let has_marks = accesses(&self.after).any(|(_, access)| is_volatile(access));
        let loads = accesses(&self.after).filter(|(_, access)| !access.writes() && (access.volatile || !has_marks));
        let mut of_after: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        loads.for_each(|(at, access)| of_after.entry(access.place()).or_default().push(at));
        let mut next = 0;
        for (at, access) in accesses(&self.before).filter(|(_, access)| is_volatile(access)) {
            let found = of_after.get_mut(&access.place()).filter(|found| !found.is_empty()).map(|found| {
                let later = found.iter().position(|&after| after >= next);
                found.remove(later.unwrap_or(0))
            });
            match found {
                Some(after) => {
                    next = next.max(after + 1);
                    self.anchors.push(Anchor { before: at, after });
                }
                None => {
                    let first = self.before[at].operation();
                    findings.add(Suspect::of_before(OrderChange::Removed, first, None));
                }
            }
        }
    }

    fn match_syncs(&mut self) {
        let position = |(at, event): (usize, &LaneEvent)| match event {
            LaneEvent::Sync(number, _) => Some((*number as usize, at)),
            LaneEvent::Access(_) => None,
        };
        let of_after: FxHashMap<usize, usize> = self.after.iter().enumerate().filter_map(position).collect();
        let syncs = self.before.iter().enumerate().filter_map(position);
        self.anchors.extend(syncs.filter_map(|(number, before)| {
            let after = *of_after.get(&self.syncs.get(number).copied().flatten()?)?;
            Some(Anchor { before, after })
        }));
    }

    /// Finds anchors in another order.
    fn find_exchanged(&self, number: usize, findings: &mut Findings) {
        if self.is_monotone {
            return;
        }
        for (i, a) in self.anchors.iter().enumerate() {
            for b in self.anchors[i + 1..].iter().filter(|b| b.after < a.after) {
                self.add(OrderChange::Exchanged, a.before, b.before, number, findings);
            }
        }
    }

    /// Finds loads that read another version of their word.
    fn find_moved_loads(&self, number: usize, findings: &mut Findings) {
        let positions = |events: &[LaneEvent]| {
            let mut of_place: FxHashMap<_, Vec<usize>> = FxHashMap::default();
            for (at, access) in accesses(events).filter(|(_, access)| !access.writes()) {
                of_place.entry(access.place()).or_default().push(at);
            }
            of_place
        };
        let (of_before, of_after) = (positions(&self.before), positions(&self.after));
        for (at, access) in accesses(&self.after).filter(|(_, access)| !access.writes()) {
            let others = of_before.get(&access.place()).map(Vec::as_slice).unwrap_or_default();
            let candidates = nearest(others, at, self.after.len(), self.before.len());
            let passed = candidates.map(|before| (before, self.passed(before, at)));
            self.judge(OrderChange::Exchanged, passed.collect(), number, findings);
        }
        for (at, access) in accesses(&self.before).filter(|(_, access)| !access.writes()) {
            let others = of_after.get(&access.place()).map(Vec::as_slice).unwrap_or_default();
            let candidates = nearest(others, at, self.before.len(), self.after.len());
            let mut passed: Vec<(usize, Vec<usize>)> = candidates.map(|after| (at, self.passed(at, after))).collect();
            // A store of the lane may be forwarded.
            let stores = |(_, store): &(usize, &LaneAccess)| {
                store.kind == AccessKind::Store && store.touches(access) && store.bytes & access.bytes == access.bytes
            };
            if let Some((from, _)) = accesses(&self.before[..at]).rev().find(stores) {
                passed.push((at, self.between(from, at)));
            }
            self.judge(OrderChange::Merged, passed, number, findings);
        }
    }

    /// Adds the conflicts of a load by the counterpart with the fewest: each is its position in the program before, and
    /// the anchors on the other side.
    fn judge(&self, change: OrderChange, candidates: Vec<(usize, Vec<usize>)>, number: usize, findings: &mut Findings) {
        let count = |(load, passed): &(usize, Vec<usize>)| {
            let relations = passed.iter().map(|&anchor| self.relation(*load, anchor));
            let (mut conflicts, mut distant) = (0, 0);
            for relation in relations {
                conflicts += usize::from(relation == Relation::Conflict);
                distant += usize::from(matches!(relation, Relation::Distant(_)));
            }
            (conflicts, distant)
        };
        let Some((load, passed)) = candidates.into_iter().min_by_key(count) else { return };
        for anchor in passed {
            self.add(change, load, anchor, number, findings);
        }
    }

    /// The anchors, by their positions in the program before, on different sides of two positions in the two programs.
    fn passed(&self, before: usize, after: usize) -> Vec<usize> {
        let is_passed = |anchor: &&Anchor| (anchor.before < before) != (anchor.after < after);
        let positions = |anchors: &[Anchor]| anchors.iter().filter(is_passed).map(|anchor| anchor.before).collect();
        if self.is_monotone {
            let i = self.anchors.partition_point(|anchor| anchor.before < before);
            let j = self.anchors.partition_point(|anchor| anchor.after < after);
            return positions(&self.anchors[i.min(j)..i.max(j)]);
        }
        positions(&self.anchors)
    }

    /// The anchors between two positions in the program before.
    fn between(&self, from: usize, to: usize) -> Vec<usize> {
        let range = self.anchors.iter().map(|anchor| anchor.before);
        range.filter(|before| (from + 1..to).contains(before)).collect()
    }

    /// Finds the reason why a store must not be left out: an operation between it and another access of the lane to the
    /// word.
    fn find_reason_of_removed(&self, at: usize, number: usize, findings: &mut Findings) {
        let Some(store) = self.before[at].access() else { return };
        if store.volatile || store.kind == AccessKind::Atomic {
            findings.add(Suspect::of_before(OrderChange::Removed, self.before[at].operation(), None));
            return;
        }
        let is_same = |(_, other): &(usize, &LaneAccess)| other.place() == store.place();
        let later = accesses(&self.before).find(|(other, access)| {
            *other > at && access.writes() && is_same(&(*other, access)) && self.is_anchor(*other)
        });
        // Overwritten before another one reads it, or equal to the content of the word.
        let (range, only_writes) = match (later, accesses(&self.before[..at]).rev().find(is_same)) {
            (Some((later, _)), _) => (at + 1..later, false),
            (None, Some((earlier, _))) => (earlier + 1..at, true),
            (None, None) => return,
        };
        for other in range {
            let is_other_word = self.before[other].access().is_none_or(|access| !access.touches(store));
            let counts = self.before[other].access().is_none_or(|access| access.writes() || !only_writes);
            if is_other_word && counts {
                self.add(OrderChange::Removed, at, other, number, findings);
            }
        }
    }

    fn is_anchor(&self, before: usize) -> bool {
        self.anchors.binary_search_by_key(&before, |anchor| anchor.before).is_ok()
    }

    fn add(&self, change: OrderChange, a: usize, b: usize, number: usize, findings: &mut Findings) {
        let [first, second] = [a, b].map(|at| self.before[at].operation());
        let suspect = Suspect::of_before(change, first, Some(second));
        match self.relation(a, b) {
            Relation::Independent => {}
            Relation::Distant(distance) => findings.add_distant(suspect, distance, number),
            Relation::Conflict => findings.add(suspect),
        }
    }

    /// The relation of two operations of the program before, by their positions.
    fn relation(&self, a: usize, b: usize) -> Relation {
        let (a, b) = match (&self.before[a], &self.before[b]) {
            (LaneEvent::Sync(..), LaneEvent::Sync(..)) => return Relation::Independent,
            (LaneEvent::Access(access), LaneEvent::Sync(_, sync))
            | (LaneEvent::Sync(_, sync), LaneEvent::Access(access)) => {
                return if orders(*sync, access) { Relation::Conflict } else { Relation::Independent };
            }
            (LaneEvent::Access(a), LaneEvent::Access(b)) => (a, b),
        };
        if !a.writes() && !b.writes() {
            return if a.volatile && b.volatile { Relation::Conflict } else { Relation::Independent };
        }
        let is_alone = |name: MemoryName| self.env.alone.iter().any(|alone| alone.covers(name));
        if a.execution == b.execution || !may_be_one(a.named.space, b.named.space) {
            return Relation::Independent;
        }
        if a.named != b.named {
            return if is_alone(a.named) || is_alone(b.named) { Relation::Independent } else { Relation::Conflict };
        }
        // Coordinates of texels are no addresses.
        match a.named.space {
            _ if a.touches(b) => Relation::Conflict,
            Space::Image => Relation::Conflict,
            _ => Relation::Distant(b.address.wrapping_sub(a.address)),
        }
    }
}

/// Returns true if a barrier or fence orders an access.
fn orders(sync: Sync, access: &LaneAccess) -> bool {
    let counts = match sync {
        Sync::Barrier(_) => true,
        Sync::Fence(fence) if access.kind == AccessKind::Atomic => fence.reads || fence.writes,
        Sync::Fence(fence) => {
            if access.writes() {
                fence.writes
            } else {
                fence.reads
            }
        }
    };
    counts && sync.orders(access.named.space)
}

fn accesses(events: &[LaneEvent]) -> impl DoubleEndedIterator<Item = (usize, &LaneAccess)> {
    events.iter().enumerate().filter_map(|(at, event)| Some((at, event.access()?)))
}

/// The positions that are nearest to a position in the other list, scaled by the lengths of both.
fn nearest(positions: &[usize], at: usize, length: usize, other: usize) -> impl Iterator<Item = usize> + '_ {
    let expected = at * other / length.max(1);
    let first = positions.partition_point(|&position| position < expected);
    let from = first.saturating_sub(MOST_COUNTERPARTS / 2);
    positions[from..].iter().copied().take(MOST_COUNTERPARTS)
}

/// The events of a lane.
fn events(trace: &AccessTrace, lane: usize) -> Vec<LaneEvent> {
    let mut syncs = 0;
    let mut out = Vec::new();
    for event in &trace.events {
        match event {
            TracedEvent::Access(access) => {
                let word = access.words.binary_search_by_key(&(lane as u8), |word| word.lane);
                out.extend(word.ok().map(|at| {
                    let word = &access.words[at];
                    LaneEvent::Access(LaneAccess {
                        kind: access.kind,
                        site: access.site,
                        execution: access.execution,
                        volatile: access.volatile,
                        named: access.named,
                        array: access.array,
                        word: word.word,
                        bytes: word.bytes,
                        address: word.address,
                    })
                }));
            }
            TracedEvent::Sync(TracedSync { sync, lanes, .. }) => {
                if lanes >> lane & 1 != 0 {
                    out.push(LaneEvent::Sync(syncs, *sync));
                }
                syncs += 1;
            }
        }
    }
    out
}

/// Splits accesses into bytes where one program accesses a part of the word.
fn split_words(before: &mut Vec<LaneEvent>, after: &mut Vec<LaneEvent>) {
    let all = accesses(before).chain(accesses(after));
    let parts: FxHashSet<(MemoryName, u32)> =
        all.filter(|(_, access)| access.bytes != 0xf).map(|(_, access)| (access.array, access.word)).collect();
    if parts.is_empty() {
        return;
    }
    for events in [before, after] {
        let split = events.iter().flat_map(|event| {
            let bytes = match event {
                LaneEvent::Access(access) if parts.contains(&(access.array, access.word)) => access.bytes,
                _ => 0,
            };
            let whole = (bytes == 0).then_some(*event);
            let bytes = (0..4).filter(move |byte| bytes >> byte & 1 != 0).filter_map(|byte| {
                let access = event.access()?;
                let address = (access.address & !3) + byte;
                Some(LaneEvent::Access(LaneAccess { bytes: 1 << byte, address, ..*access }))
            });
            whole.into_iter().chain(bytes)
        });
        *events = split.collect();
    }
}
