//! What is known while two programs are run side by side, and what either of them is told by it.
//!
//! The source runs first: its terms are learned, its events remembered. What the target computes is swept, and its events are looked for
//! among the source's.

use super::Limits;
use super::behind::Behind;
use super::events::{Events, Happened, Partners};
use super::meaning::Paths;
use super::memories::Memories;
use super::relation::{Header, Part};
use super::sweep::{Side, Sweeper};
use crate::prove::solver::Solver;
use crate::prove::symbolic::{
    Cut, Event, EventKind, Facts, Goal, Goals, Loop, Oracle, Run, Site, Slot, Value, Versions, slot, version_kind,
};
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::environment::memory::Space;
use crate::semantics::environment::sync::Sync;
use crate::semantics::interp::Places;
use crate::semantics::terms::{Term, Terms, VariableKind};
use crate::support::guards::{Guard, left_out};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Something that must hold if the source has a meaning.
pub(super) struct Obligation {
    /// What it is about.
    pub(super) what: String,
    /// The term.
    pub(super) goal: Term,
    /// How many of the source's assumptions it may take for granted, in their order; `usize::MAX` for all.
    pub(super) assumed: usize,
}

impl Obligation {
    /// Something about the end of a segment: all that the source assumes comes before it.
    pub(super) fn at_end(what: String, goal: Term) -> Self {
        Self { what, goal, assumed: usize::MAX }
    }
}

/// What is chosen for an undefined word of the source. Any choice will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undefined {
    /// 0, as Mesa's selection does where an instruction reads one.
    Zero,
    /// All bits set: what is true.
    Ones,
    /// What the target finds that has the same undefined word.
    Same,
}

/// What is known while two programs are run side by side.
pub(super) struct Engine<'a> {
    pub(super) sweeper: Sweeper<'a>,
    pub(super) headers: Vec<Header>,
    /// What shared registers hold behind each loop.
    pub(super) behind: Vec<Behind>,
    pub(super) facts: Facts,
    /// Which memories may be the same, and which both programs have.
    pub(super) memories: Memories,
    pub(super) partners: Partners,
    /// The relation holds still: what it is for is to be shown.
    pub(super) last: bool,
    /// Where the segment at work begins, and whose it is.
    pub(super) cut: Cut,
    pub(super) side: Side,
    pub(super) events: Events,
    /// What must hold in this segment for the source to have a meaning.
    pub(super) assumptions: Vec<Term>,
    pub(super) obligations: Vec<Obligation>,
    /// The segments of the source, for the question whether it has a meaning at all.
    pub(super) paths: Paths,
    /// What went wrong first.
    pub(super) failure: Option<String>,
    /// The first event of the target that the source does not have, and that nobody sees but by its results.
    pub(super) missed: Option<String>,
    /// From which address on a lane's own memory is like registers, and why it is not.
    pub(super) own_from: Option<u32>,
    /// What is chosen for undefined words of the source, and whether there are any.
    pub(super) undefined: Undefined,
    pub(super) has_undefined: bool,
    /// The loops of both programs.
    pub(super) loops: [&'a [Loop]; 2],
    /// The shared registers of both programs that hold a term at the cut point.
    pub(super) registers: FxHashMap<Term, SmallVec<[(Side, Slot); 2]>>,
    /// What is known of the locations of the source and of the target.
    pub(super) places: [&'a Places; 2],
    pub(super) lost: Option<&'static str>,
    /// Where lanes go from each cut point, and whether some do and others do not.
    pub(super) goals: FxHashMap<(Side, Cut), Goals>,
    /// What is written to shared registers, if it is the same in all segments that come there.
    pub(super) written: FxHashMap<(Side, Site), Option<Value>>,
    /// What was found out in this round is not what was assumed in it.
    pub(super) surprised: bool,
    /// The source is nir, the target is not.
    pub(super) is_selection: bool,
    /// Both texts have the shapes of textures.
    pub(super) printed_shapes: bool,
    /// Both texts name formats of images: nir's do.
    pub(super) printed_formats: bool,
    /// What was taken for granted beside lemmas, by short names.
    pub(super) assumed: BTreeSet<&'static str>,
    /// The source has no meaning, whatever the input.
    pub(super) vacuous: bool,
    /// It is not known whether there is an input on which the source has a meaning.
    pub(super) meaning_unknown: bool,
    pub(super) counted: usize,
}

impl<'a> Engine<'a> {
    /// Nothing is known of programs with so many loops.
    pub(super) fn new(
        solver: &'a mut dyn Solver,
        limits: &Limits,
        loops: [&'a [Loop]; 2],
        places: [&'a Places; 2],
        own_from: Option<u32>,
        memories: Memories,
        undefined: Undefined,
    ) -> Self {
        Self {
            sweeper: Sweeper::new(solver, *limits),
            headers: loops[0].iter().map(|_| Header::default()).collect(),
            behind: loops[0].iter().map(|_| Behind::default()).collect(),
            loops,
            registers: FxHashMap::default(),
            facts: Facts::default(),
            memories,
            partners: Partners::default(),
            last: false,
            cut: Cut::Entry,
            side: Side::Source,
            events: Events::default(),
            assumptions: Vec::new(),
            obligations: Vec::new(),
            paths: Paths::default(),
            failure: None,
            missed: None,
            own_from,
            undefined,
            has_undefined: false,
            places,
            lost: None,
            goals: FxHashMap::default(),
            written: FxHashMap::default(),
            surprised: false,
            is_selection: false,
            printed_shapes: false,
            printed_formats: false,
            assumed: BTreeSet::new(),
            vacuous: false,
            meaning_unknown: false,
            counted: 0,
        }
    }

    pub(super) fn fail(&mut self, what: impl FnOnce() -> String) {
        if self.failure.is_none() {
            self.failure = Some(what());
        }
    }

    /// Where lanes go from a cut point, as far as that is known.
    pub(super) fn goals_of(&self, side: Side, cut: Cut) -> &[(Goal, bool)] {
        self.goals.get(&(side, cut)).map_or(&[], |goals| goals)
    }

    /// Where lanes go from a cut point. What was once found to be so is never taken back, so there is an end.
    pub(super) fn learn_goals(&mut self, terms: &Terms, side: Side, run: &Run) {
        let known = self.goals.entry((side, self.cut)).or_default();
        for (goal, part) in run.goals(terms, &self.facts) {
            let part = part && !left_out(Guard::Divergence);
            match known.iter_mut().find(|known| known.0 == goal) {
                Some(known) => {
                    self.surprised |= part && !known.1;
                    known.1 |= part;
                }
                None => {
                    self.surprised = true;
                    known.push((goal, part));
                }
            }
        }
    }

    /// Forgets what was assumed of cut points: with more locations there may be a larger relation.
    pub(super) fn forget(&mut self) {
        self.headers.iter_mut().for_each(Header::forget);
        self.behind.iter_mut().for_each(|behind| *behind = Behind::default());
        self.goals.clear();
        self.written.clear();
    }

    /// Returns true if a goal is shown to hold where the first `assumed` assumptions do.
    pub(super) fn holds(&mut self, terms: &mut Terms, assumed: usize, goal: Term) -> bool {
        let all = self.assumptions.len();
        let assumed = if assumed < all && left_out(Guard::AssumedBefore) { all } else { assumed.min(all) };
        let assumptions = &self.assumptions[..assumed];
        self.sweeper.holds(terms, assumptions, goal)
    }
}

/// That the target's value is right on a path.
pub(super) fn agreement(terms: &mut Terms, path: Term, source: Value, target: Value) -> Term {
    let width = terms.width(source.bits);
    if terms.width(target.bits) != width {
        return terms.constant(1, 0);
    }
    let right = if left_out(Guard::AgreementBits) {
        terms.constant(1, 1)
    } else if source.is_defined(terms) {
        terms.eq(width, source.bits, target.bits)
    } else {
        let whole = terms.constant(width, u64::MAX >> (64 - width));
        let free = terms.eq(width, source.free, whole);
        let differs = terms.xor(width, source.bits, target.bits);
        let kept = terms.not(width, source.free);
        let wrong = terms.and(width, differs, kept);
        let none = terms.constant(width, 0);
        let same = terms.eq(width, wrong, none);
        terms.or(1, free, same)
    };
    let elsewhere = terms.not(1, path);
    terms.or(1, elsewhere, right)
}

impl Oracle for Engine<'_> {
    fn start(&mut self, terms: &mut Terms, at: Slot) -> Value {
        match self.cut {
            Cut::Entry if slot::is_version(at) => {
                let bits = terms.variable_of(version_kind(at), 32, &format!("version {at} at entry"));
                Value::defined(terms, bits)
            }
            Cut::Entry if at == slot::DEMOTED => {
                let no = terms.constant(1, 0);
                Value::defined(terms, no)
            }
            Cut::Entry => {
                let places = self.places[self.side as usize];
                match places.names.get(&at) {
                    Some(name) => self.unwritten(terms, name),
                    // Nobody sees it, so any number will do, on both sides.
                    None if places.written_first.contains(&at) => {
                        Value { bits: terms.constant(32, 0), free: terms.constant(32, u32::MAX.into()) }
                    }
                    None => self.unknown(terms, &format!("slot {at}")),
                }
            }
            Cut::Header(number) => {
                let side = self.side;
                let header = &mut self.headers[number as usize];
                if slot::is_version(at) || at == slot::DEMOTED {
                    let bits = header.term(terms, number, (side, at, Part::Bits));
                    return Value::defined(terms, bits);
                }
                let [bits, free] = Part::ALL.map(|part| header.term(terms, number, (side, at, part)));
                if side == Side::Source {
                    self.sweeper.learn(terms, bits);
                }
                Value { bits, free }
            }
        }
    }

    fn unknown(&mut self, terms: &mut Terms, name: &str) -> Value {
        let bits = match (self.side, self.undefined) {
            (Side::Source, Undefined::Zero) => terms.constant(32, 0),
            (Side::Source, Undefined::Ones) => terms.constant(32, u32::MAX.into()),
            (Side::Target, _) if left_out(Guard::UndefinedTarget) => terms.constant(32, 0),
            // Each is another in the target, so what is shown holds for all that they may be. The source may choose: what the
            // target has in the same place.
            (Side::Source, Undefined::Same) | (Side::Target, _) => {
                terms.variable_of(self.cut.kind(VariableKind::LANE), 32, &format!("undefined {name}"))
            }
        };
        self.has_undefined |= self.side == Side::Source;
        Value { bits, free: terms.constant(32, u32::MAX.into()) }
    }

    // Of its own undefined words the source chooses those of the target that are in the same place.
    fn unwritten(&mut self, terms: &mut Terms, name: &str) -> Value {
        let target = if self.side == Side::Target && left_out(Guard::UndefinedTarget) {
            terms.constant(32, 0)
        } else {
            terms.variable_of(self.cut.kind(VariableKind::LANE), 32, &format!("undefined {name}"))
        };
        Value { bits: target, free: terms.constant(32, u32::MAX.into()) }
    }

    // Selection reads 0 where an instruction reads something undefined, but keeps phis as they are.
    fn phi(&mut self, terms: &mut Terms, [name, elsewhere]: [&str; 2]) -> Value {
        if !self.is_selection || self.side == Side::Source && self.undefined == Undefined::Ones {
            return self.unknown(terms, name);
        }
        self.has_undefined |= self.side == Side::Source;
        self.unwritten(terms, elsewhere)
    }

    fn wants(&self, goal: Goal, slot: Slot) -> bool {
        match goal {
            Goal::Header(number) => self.headers[number as usize].has((self.side, slot, Part::Bits)),
            Goal::End | Goal::Killed => false,
        }
    }

    fn not_known_yet(&mut self, terms: &mut Terms, goal: Goal, slot: Slot) -> Value {
        // In the next round it is known; but not where the programs go to different headers.
        self.surprised |= self.wants(goal, slot);
        let (side, cut) = (self.side, self.cut);
        let mut variable = |what: &str| {
            let name = format!("{what} of {side:?} {slot} on the way from {cut:?} to {goal:?}");
            terms.variable_of(VariableKind::LANE.passing(), 32, &name)
        };
        Value { bits: variable("bits"), free: variable("free bits") }
    }

    fn value(&mut self, terms: &mut Terms, value: Value) -> Value {
        if self.sweeper.is_late() {
            // What comes out does not matter any more, but it should come soon.
            return Value { bits: terms.constant(terms.width(value.bits), 0), ..value };
        }
        let Value { bits, free } = value;
        match self.side {
            Side::Source => {
                let bits = self.sweeper.with_products(terms, bits);
                let bits = self.sweeper.with_numbers(terms, bits);
                self.sweeper.learn(terms, bits);
                let bits = self.sweeper.close(terms, bits);
                self.sweeper.learn(terms, free);
                Value { bits, free }
            }
            Side::Target => {
                let bits = self.sweeper.sweep(terms, bits);
                let bits = self.sweeper.close(terms, bits);
                Value { bits, free: self.sweeper.sweep(terms, free) }
            }
        }
    }

    fn version_of(&self, space: Space) -> Slot {
        self.memories.version_of(space)
    }

    fn watches_loads(&self, space: Space) -> bool {
        self.memories.watches_loads(space)
    }

    fn makes(&self, kind: EventKind) -> Versions {
        self.memories.makes(kind)
    }

    fn behind(&mut self, terms: &mut Terms, number: u32, slot: Slot, held: Value) -> Value {
        let held = self.value(terms, held);
        let side = self.side;
        let value = self.behind[number as usize].pass(terms, number, (side, slot), held);
        if side == Side::Source {
            self.sweeper.learn(terms, value.bits);
        }
        value
    }

    fn is_kept(&self, term: Term, number: u32) -> bool {
        let is_kept = |&(side, slot): &(Side, Slot)| {
            !self.loops[side as usize][number as usize].effects.shared.contains(&slot) || left_out(Guard::Kept)
        };
        self.registers.get(&term).is_some_and(|registers| registers.iter().any(is_kept))
    }

    fn goals(&self, cut: Cut) -> &[(Goal, bool)] {
        self.goals_of(self.side, cut)
    }

    fn written_everywhere(&mut self, site: Site, value: Option<Value>) -> bool {
        let written = self.written.entry((self.side, site)).or_insert(value);
        if written.is_some() && *written != value && !left_out(Guard::WrittenEverywhere) {
            self.surprised = true;
            *written = None;
        }
        written.is_some()
    }

    fn others(&mut self, terms: &mut Terms, block: u32, slot: Slot) -> Option<Value> {
        let (side, cut) = (self.side, self.cut);
        if slot::is_version(slot) {
            let done = self.partners.done_by_others(side, block, slot)?;
            let name = format!("version {slot} after {done} of others from {cut:?}");
            let bits = terms.variable_of(cut.kind(version_kind(slot)), 32, &name);
            return Some(Value::defined(terms, bits));
        }
        let mut variable = |what: &str, width: u32| {
            let name = format!("{what} of {side:?} {slot} after block {block} of others from {cut:?}");
            terms.variable_of(cut.kind(VariableKind::WAVE), width, &name)
        };
        Some(Value { bits: variable("bits", 32), free: variable("free bits", 32) })
    }

    fn own_from(&self) -> Option<u32> {
        self.own_from
    }

    fn has_printed_shapes(&self) -> bool {
        self.printed_shapes
    }

    fn has_printed_formats(&self) -> bool {
        self.printed_formats
    }

    fn assume(&mut self, assumption: &'static str) {
        self.assumed.insert(assumption);
    }

    fn lost(&mut self, why: &'static str) {
        // What locations hold is not known yet.
        if !self.sweeper.scouting {
            self.lost.get_or_insert(why);
        }
    }

    fn event(&mut self, terms: &mut Terms, mut event: Event) -> SmallVec<[Term; 4]> {
        // A lane is never here.
        let never = terms.as_constant(event.path) == Some(0);
        if self.side == Side::Source {
            // Where a lane comes to a block on one way only, nobody comes there on another with other operands.
            if (event.setting.alone || left_out(Guard::EventPartner))
                && let Some(results) = self.events.same(&event)
            {
                return results;
            }
            let results = fresh(terms, &event, self.cut, Side::Source);
            for term in event.args.iter().map(|arg| arg.bits).chain([event.path]).chain(results.iter().copied()) {
                self.sweeper.learn(terms, term);
            }
            if !never {
                self.partners.note(Side::Source, &event, self.cut);
                let assumed = self.assumptions.len();
                self.events.push(Happened { event, results: results.clone(), assumed });
            }
            return results;
        }
        if never {
            return fresh(terms, &event, self.cut, Side::Target);
        }
        // A fence is noted when it is known which of the source's it is: it may be one more, or one that orders more.
        let is_fence = matches!(event.kind, EventKind::Sync(Sync::Fence(_)));
        if !is_fence {
            self.partners.note(Side::Target, &event, self.cut);
        }
        event.path = self.sweeper.sweep(terms, event.path);
        for arg in &mut event.args {
            arg.bits = self.sweeper.sweep(terms, arg.bits);
        }
        let mut candidates = self.events.candidates(&event, &self.partners);
        // What is the same as it stands comes first.
        candidates.sort_by_key(|&at| {
            let source = &self.events.get(at).event;
            let differs =
                source.path != event.path || source.args.iter().zip(&event.args).any(|(a, b)| a.bits != b.bits);
            (differs, self.events.is_taken(at))
        });
        // A shared register is seldom written the same by what does not look the same, and it need not be.
        candidates.truncate(if event.kind == EventKind::OneLane { 2 } else { 8 });
        // Where it is not the same as a candidate, it may be the same as another, or as none: no reason to look for inputs.
        let seeker = if event.setting.makes.is_empty() { self.sweeper.seeker.take() } else { None };
        let mut why = None;
        for at in candidates {
            let &Happened { event: ref source, assumed, .. } = self.events.get(at);
            let source = source.clone();
            // What is free of its operands is what it is in one event of the target.
            if self.events.is_taken(at)
                && source.args.iter().any(|arg| !arg.is_defined(terms))
                && !left_out(Guard::EventFreeOnce)
            {
                continue;
            }
            self.counted += 1;
            let same_path = terms.eq(1, source.path, event.path);
            let mut same_before = terms.constant(1, 1);
            for (version, &before) in source.setting.makes.iter().zip(&source.setting.before) {
                let here = event.setting.makes.iter().position(|other| other == version);
                let same = match here {
                    Some(here) => terms.eq(32, before, event.setting.before[here]),
                    None => terms.constant(1, 0),
                };
                same_before = terms.and(1, same_before, same);
            }
            let differs = if !self.holds(terms, assumed, same_before) && !left_out(Guard::EventOrder) {
                Some("what is in memory before".to_owned())
            } else if !self.holds(terms, assumed, same_path) && !left_out(Guard::EventPath) {
                Some(format!("its path {} for {}", terms.brief(event.path), terms.brief(source.path)))
            } else {
                let mut args = source.args.iter().zip(&event.args);
                let bad = args.position(|(&a, &b)| {
                    let goal = agreement(terms, source.path, a, b);
                    !self.holds(terms, assumed, goal) && !left_out(Guard::EventOperands)
                });
                bad.map(|i| {
                    let [source, target] = [&source, &event].map(|event| terms.brief(event.args[i].bits));
                    format!("operand {i}, {target} for {source},")
                })
            };
            let Some(differs) = differs else {
                self.sweeper.seeker = self.sweeper.seeker.take().or(seeker);
                let mut results = self.events.get(at).results.clone();
                if is_fence {
                    // Of what only the target orders there is no new version.
                    let made: FxHashMap<Slot, Term> = source.setting.makes.iter().copied().zip(results).collect();
                    let versions = event.setting.makes.iter().zip(&event.setting.before);
                    results = versions.map(|(version, &before)| made.get(version).copied().unwrap_or(before)).collect();
                    event.setting.makes = source.setting.makes;
                    self.partners.note(Side::Target, &event, self.cut);
                }
                self.events.take(at, &event, &mut self.partners);
                // Where the target has lost its meaning before, it has not done this.
                for obligation in self.obligations.iter_mut().filter(|it| it.assumed > assumed) {
                    if left_out(Guard::LostBefore) {
                        break;
                    }
                    obligation.assumed = assumed;
                }
                return results;
            };
            why.get_or_insert(differs);
        }
        self.sweeper.seeker = self.sweeper.seeker.take().or(seeker);
        if is_fence {
            // One more than the source has: if it was to be another one, that will be missing.
            return event.setting.before.iter().copied().collect();
        }
        if !event.setting.before.is_empty() && left_out(Guard::EventAdded) {
            let mut results = fresh(terms, &event, self.cut, Side::Target);
            results.truncate(event.results.len());
            results.extend(event.setting.before.iter().copied());
            return results;
        }
        if event.setting.makes.is_empty() {
            // Nobody sees it but by its results, of which nothing is known.
            self.partners.miss(event.site);
        }
        if event.kind != EventKind::OneLane {
            let why = why.map_or_else(String::new, |why| format!(": {why} is not shown to be the same"));
            let what = format!("the source has no `{}` like that of the target (site {}){why}", event.what, event.site);
            if !event.setting.makes.is_empty() {
                self.fail(|| what);
            } else {
                self.missed.get_or_insert(what);
            }
        }
        fresh(terms, &event, self.cut, Side::Target)
    }

    fn demand(&mut self, terms: &mut Terms, path: Term, holds: Term, why: &'static str) {
        let elsewhere = terms.not(1, path);
        let goal = terms.or(1, elsewhere, holds);
        match self.side {
            Side::Source => {
                self.vacuous |= self.cut == Cut::Entry && terms.as_constant(goal) == Some(0);
                self.assumptions.push(goal);
            }
            Side::Target if left_out(Guard::TargetDemands) => {}
            Side::Target => self.obligations.push(Obligation::at_end(why.to_owned(), goal)),
        }
    }
}

/// Results that nothing is known of.
fn fresh(terms: &mut Terms, event: &Event, cut: Cut, side: Side) -> SmallVec<[Term; 4]> {
    let widths = event.results.iter().copied().chain(event.setting.makes.iter().map(|_| 32));
    let kind = cut.kind(if event.uniform { VariableKind::WAVE } else { VariableKind::LANE });
    let variables = widths.enumerate().map(|(i, width)| {
        // A value of fewer bits in another round is another result.
        let name = format!("result {i} of {width} bits of {side:?} {} from {cut:?}", event.site);
        terms.variable_of(kind, width.into(), &name)
    });
    variables.collect()
}
