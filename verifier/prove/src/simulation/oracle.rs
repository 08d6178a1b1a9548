//! The oracle of the symbolic executions of both programs.
//!
//! The source is executed first: its terms are learned and its events recorded. Then the target's values are swept, and
//! its events are matched with those of the source.

use super::events::SourceEvent;
use super::failure::{EventDifference, Observable, Obstacle};
use super::relation::AtomPart;
use super::state::{Obligation, SimulationState, UndefinedChoice, agreement};
use super::sweep::Side;
use crate::symbolic::{
    Cut, ElementAccess, EntryStores, Event, EventKind, EventOperation, EventSite, Goal, LaneTerms, Oracle, Slot,
    SymbolicValue, Versions, slot, version_kind,
};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::assumptions;
use ir3_semantics::environment::memory::Space;
use ir3_semantics::environment::sync::Sync;
use ir3_semantics::operations::wraps::NoWrap;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Term, Terms, VariableKind};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::rc::Rc;

impl SimulationState<'_> {
    /// The variable of an undefined word.
    fn undefined_word(&mut self, terms: &mut Terms, name: &str) -> Term {
        let kind = self.cut.kind(VariableKind::LANE);
        let word = terms.variable_of(kind, 32, &format!("undefined {name}"));
        self.undefined_words.add(terms, word, kind);
        word
    }
}

impl Oracle for SimulationState<'_> {
    fn start(&mut self, terms: &mut Terms, at: Slot) -> SymbolicValue {
        match self.cut {
            Cut::Entry if slot::is_version(at) => {
                let bits = terms.variable_of(version_kind(at), 32, &format!("version {at} at entry"));
                SymbolicValue::defined(terms, bits)
            }
            Cut::Entry if at == slot::DEMOTED => {
                let no = terms.constant(1, 0);
                SymbolicValue::defined(terms, no)
            }
            // Nothing has been stored.
            Cut::Entry if slot::is_pending(at) => {
                let zero = terms.constant(32, 0);
                SymbolicValue::defined(terms, zero)
            }
            Cut::Entry => {
                let places = self.places[self.side as usize];
                match places.names.get(&at) {
                    Some(name) => self.unwritten(terms, &name.to_string()),
                    // The value is not observed, so any constant is right, the same on both sides.
                    None if places.written_first.contains(&at) => {
                        SymbolicValue { bits: terms.constant(32, 0), free: terms.constant(32, u32::MAX.into()) }
                    }
                    None => self.unknown(terms, &format!("slot {at}")),
                }
            }
            Cut::Header(number) => {
                let side = self.side;
                let header = &mut self.headers[number as usize];
                if slot::is_version(at) || at == slot::DEMOTED {
                    let bits = header.term(terms, number, (side, at, AtomPart::Bits));
                    return SymbolicValue::defined(terms, bits);
                }
                let bits = header.term(terms, number, (side, at, AtomPart::Bits));
                let free = header.term(terms, number, (side, at, AtomPart::Free));
                let bits = if header.is_split((side, at)) {
                    let [low, high] = AtomPart::HALVES.map(|part| header.term(terms, number, (side, at, part)));
                    terms.concat(16, high, 16, low)
                } else {
                    bits
                };
                if side == Side::Source {
                    self.sweeper.learn(terms, bits);
                }
                SymbolicValue { bits, free }
            }
        }
    }

    fn unknown(&mut self, terms: &mut Terms, name: &str) -> SymbolicValue {
        let bits = match (self.side, self.undefined) {
            (Side::Source, UndefinedChoice::Zero) => terms.constant(32, 0),
            (Side::Source, UndefinedChoice::Ones) => terms.constant(32, u32::MAX.into()),
            (Side::Target, _) if left_out(Guard::UndefinedTarget) => terms.constant(32, 0),
            // Each undefined word of the target is a fresh variable, so the proof holds for every value it may
            // have. The source may choose: here, the target's word in the same place.
            (Side::Source, UndefinedChoice::Same | UndefinedChoice::Other) | (Side::Target, _) => {
                self.undefined_word(terms, name)
            }
        };
        self.has_undefined |= self.side == Side::Source;
        SymbolicValue { bits, free: terms.constant(32, u32::MAX.into()) }
    }

    // The source chooses, for its own undefined words, those of the target in the same place.
    fn unwritten(&mut self, terms: &mut Terms, name: &str) -> SymbolicValue {
        let target = if self.side == Side::Target && left_out(Guard::UndefinedTarget) {
            terms.constant(32, 0)
        } else {
            self.undefined_word(terms, name)
        };
        SymbolicValue { bits: target, free: terms.constant(32, u32::MAX.into()) }
    }

    // Selection reads 0 where an instruction reads an undefined value, but keeps phis unchanged.
    fn phi(&mut self, terms: &mut Terms, [name, elsewhere]: [&str; 2]) -> SymbolicValue {
        if !self.is_selection || self.side == Side::Source && self.undefined == UndefinedChoice::Ones {
            return self.unknown(terms, name);
        }
        self.has_undefined |= self.side == Side::Source;
        self.unwritten(terms, elsewhere)
    }

    fn takes_other_value(&self) -> bool {
        self.side == Side::Source && self.undefined == UndefinedChoice::Other
    }

    fn wants(&self, goal: Goal, slot: Slot) -> bool {
        match goal {
            Goal::Header(number) => self.headers[number as usize].has((self.side, slot, AtomPart::Bits)),
            Goal::End | Goal::Killed => false,
        }
    }

    fn first_query(&mut self, terms: &mut Terms, goal: Goal, slot: Slot) -> SymbolicValue {
        // Known in the next iteration; but not where the programs reach different headers.
        self.invalidated |= self.wants(goal, slot);
        let (side, cut) = (self.side, self.cut);
        let mut variable = |what: &str| {
            let name = format!("{what} of {side:?} {slot} on the path from {cut:?} to {goal:?}");
            terms.variable_of(VariableKind::LANE.passing(), 32, &name)
        };
        SymbolicValue { bits: variable("bits"), free: variable("free bits") }
    }

    fn value(&mut self, terms: &mut Terms, value: SymbolicValue) -> SymbolicValue {
        if self.sweeper.is_late_by_now() {
            // The result does not matter any more, but it should come soon.
            return SymbolicValue { bits: terms.constant(terms.width(value.bits), 0), ..value };
        }
        let SymbolicValue { bits, free } = value;
        match self.side {
            Side::Source => {
                let bits = self.sweeper.with_products(terms, bits);
                let bits = self.sweeper.with_numbers(terms, bits);
                self.sweeper.learn(terms, bits);
                let bits = self.sweeper.close(terms, bits);
                self.sweeper.learn(terms, free);
                SymbolicValue { bits, free }
            }
            Side::Target => {
                let bits = self.sweeper.sweep(terms, bits);
                let bits = self.sweeper.close(terms, bits);
                SymbolicValue { bits, free: self.sweeper.sweep(terms, free) }
            }
        }
    }

    fn condition(&mut self, terms: &mut Terms, condition: Term) -> Term {
        let condition = SymbolicValue::defined(terms, condition);
        let condition = self.value(terms, condition).bits;
        match self.side {
            Side::Source => {
                self.conditions.push(condition);
                condition
            }
            Side::Target => self.known_condition(terms, condition),
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

    fn is_read_after(&self, number: u32, slot: Slot) -> bool {
        self.read_after.contains(&(self.side, number, slot))
    }

    fn first_read_after(&mut self, terms: &mut Terms, number: u32, slot: Slot) -> SymbolicValue {
        let side = self.side;
        self.invalidated = true;
        self.first_read_after.insert((side, number, slot));
        let mut variable = |what: &str| {
            let name = format!("{what} of {side:?} {slot} after loop {number}");
            terms.variable_of(VariableKind::WAVE.passing(), 32, &name)
        };
        SymbolicValue { bits: variable("bits"), free: variable("free bits") }
    }

    fn after_loop(&mut self, terms: &mut Terms, number: u32, slot: Slot, unchanged: SymbolicValue) -> SymbolicValue {
        let unchanged = self.value(terms, unchanged);
        let side = self.side;
        let value = self.loop_exits[number as usize].pass(terms, number, (side, slot), unchanged);
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

    fn written_everywhere(&mut self, site: EventSite, value: Option<SymbolicValue>) -> bool {
        let written = self.written.entry((self.side, site)).or_insert(value);
        if written.is_some() && *written != value && !left_out(Guard::WrittenEverywhere) {
            self.invalidated = true;
            *written = None;
        }
        written.is_some()
    }

    fn others(&mut self, terms: &mut Terms, block: u32, slot: Slot) -> Option<SymbolicValue> {
        let (side, cut) = (self.side, self.cut);
        if slot::is_version(slot) {
            let done = self.partners.done_by_others(side, block, slot)?;
            let name = format!("version {slot} after {done} of others from {cut:?}");
            let bits = terms.variable_of(cut.kind(version_kind(slot)), 32, &name);
            return Some(SymbolicValue::defined(terms, bits));
        }
        let mut variable = |what: &str, width: u32| {
            let name = format!("{what} of {side:?} {slot} after block {block} of others from {cut:?}");
            terms.variable_of(cut.kind(VariableKind::WAVE), width, &name)
        };
        Some(SymbolicValue { bits: variable("bits", 32), free: variable("free bits", 32) })
    }

    fn scratch_slots_from(&self) -> Option<u32> {
        self.scratch_slots_from
    }

    fn has_printed_shapes(&self) -> bool {
        self.printed_shapes
    }

    fn names_volatile(&self) -> bool {
        self.names_volatile
    }

    fn cached_load(&mut self, resource: Term) {
        match self.side {
            Side::Source => drop(self.cacheable.insert(resource)),
            Side::Target if self.cacheable.contains(&resource) => {}
            Side::Target => drop(self.assumed.insert(assumptions::CACHED)),
        }
    }

    fn are_both_nir(&self) -> bool {
        self.both_nir
    }

    fn keeps_words(&self) -> bool {
        self.side == Side::Source && self.kept.is_some()
    }

    fn keep_word(&mut self, word: u32, value: Term) {
        if let Some(kept) = &mut self.kept {
            kept.insert(word, value);
        }
    }

    fn kept_word(&self, word: u32) -> Option<Term> {
        self.kept.as_ref().filter(|_| self.side == Side::Source)?.get(&word).copied()
    }

    fn keep_entry_stores(&mut self, stores: EntryStores) {
        self.entry_stores[self.side as usize] = Rc::new(stores);
    }

    fn entry_stores(&self) -> Rc<EntryStores> {
        Rc::clone(&self.entry_stores[self.side as usize])
    }

    fn sum(&mut self, terms: &mut Terms, at: (NoWrap, u32), operands: [Term; 2], result: (Term, Term)) -> Term {
        let kind = self.cut.kind(VariableKind::LANE);
        self.promises.sum(terms, self.side, kind, at, operands, result)
    }

    fn alignment(&mut self, terms: &mut Terms, path: Term, address: (Term, bool), alignment: [u32; 2]) -> Option<Term> {
        self.promises.alignment(terms, self.side, path, address, alignment)
    }

    fn float_result(&mut self, terms: &Terms, result: Term, exact: bool) {
        if !self.promises.result(terms, self.side, result, exact) && !left_out(Guard::PromisedExact) {
            self.fail(|| Obstacle::Liberty("that an operation on floats need not be exact".to_owned()));
        }
    }

    fn assume(&mut self, assumption: &'static str) {
        self.assumed.insert(assumption);
    }

    fn lane_terms(&mut self) -> Option<&mut LaneTerms> {
        self.rules.lanes.then_some(&mut self.lane_terms)
    }

    fn forwards_stores(&self) -> bool {
        self.rules.stores
    }

    fn are_disjoint(&mut self, terms: &mut Terms, store: &ElementAccess, access: &ElementAccess) -> bool {
        self.stores_are_disjoint(terms, store, access)
    }

    fn lanes_agree(
        &mut self,
        terms: &mut Terms,
        first: (&ElementAccess, Term),
        second: (&ElementAccess, Term),
    ) -> bool {
        self.stores_agree(terms, first, second)
    }

    fn lanes_disjoint(&mut self, terms: &mut Terms, store: &ElementAccess, access: &ElementAccess) -> bool {
        self.lanes_are_disjoint(terms, store, access)
    }

    fn sunk_place(
        &mut self,
        terms: &mut Terms,
        site: EventSite,
        operation: EventOperation,
        access: &ElementAccess,
    ) -> Option<u32> {
        let known = self.sunk.iter().position(|(other, ..)| *other == site);
        let at = known.unwrap_or(self.sunk.len());
        if known.is_none() {
            // Two stores to one place would be done in another order.
            let others: Vec<ElementAccess> = self.sunk.iter().map(|(.., other)| other.clone()).collect();
            if !others.iter().all(|other| self.stores_are_disjoint(terms, other, access)) && !left_out(Guard::SunkPlace)
            {
                return None;
            }
            // Lanes may have left the loop in this iteration already.
            self.invalidated = true;
            self.sunk.push((site, operation, access.clone()));
        }
        (self.sunk[at].2 == *access || left_out(Guard::SunkPlace)).then_some(at as u32)
    }

    fn sunk_store(&self, number: u32) -> Option<(EventSite, EventOperation, ElementAccess)> {
        self.sunk.get(number as usize).cloned()
    }

    fn never(&mut self, terms: &mut Terms, path: Term) {
        self.beyond = true;
        let (facts, goal) = (terms.conjunction(&self.facts_here), terms.not(1, path));
        if !self.counting && !self.sweeper.follows(terms, facts, goal) && !left_out(Guard::Beyond) {
            self.give_up("a loop that may have more iterations than were counted");
        }
    }

    fn give_up(&mut self, why: &'static str) {
        // The values of locations are not known yet.
        if !self.sweeper.scouting {
            self.give_up.get_or_insert(why);
        }
    }

    fn event(&mut self, terms: &mut Terms, mut event: Event) -> SmallVec<[Term; 4]> {
        // No lane is ever here.
        let never = terms.as_constant(event.path) == Some(0);
        // Nothing observes a word of the constant file that no instruction reads: the version does not change.
        let is_read = |word: u32| self.read_constants.as_ref().is_none_or(|read| read.contains(&word));
        let mut stored = event.stored_words(terms).filter(|_| !event.context.joined);
        if stored.as_mut().is_some_and(|words| !words.any(is_read) || left_out(Guard::StoredRead)) {
            return event.context.before.iter().copied().collect();
        }
        if self.side == Side::Source {
            // If there is only one path to a block, no lane reaches it on another path with other operands.
            if (event.context.alone || left_out(Guard::EventPartner))
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
                self.events.push(SourceEvent { event, results: results.clone(), assumed });
            }
            return results;
        }
        if never {
            return fresh(terms, &event, self.cut, Side::Target);
        }
        // A fence is recorded when its partner is known: it may be an additional one, or one that orders more.
        let is_fence = matches!(event.kind, EventKind::Sync(Sync::Fence(_)));
        if !is_fence {
            self.partners.note(Side::Target, &event, self.cut);
        }
        event.path = self.sweeper.sweep(terms, event.path);
        for arg in &mut event.args {
            arg.bits = self.sweeper.sweep(terms, arg.bits);
        }
        let may_be_grouped = self.rules.stores && event.store.is_some() && event.context.makes.len() == 1;
        let is_grouped = may_be_grouped && self.groups.is_open(event.context.makes[0]);
        let mut candidates = match is_grouped {
            true => SmallVec::new(),
            false => self.events.candidates(terms, &event, &self.partners),
        };
        // Candidates with identical operands come first.
        candidates.sort_by_key(|&at| {
            let source = &self.events.get(at).event;
            let differs =
                source.path != event.path || source.args.iter().zip(&event.args).any(|(a, b)| a.bits != b.bits);
            (differs, self.events.is_taken(at))
        });
        // Writes of a shared register that look different are seldom the same, and they need not be.
        candidates.truncate(if event.kind == EventKind::OneLane { 2 } else { 8 });
        // If it differs from one candidate it may equal another or none: no reason to search for inputs.
        let search = if event.context.makes.is_empty() { self.sweeper.search.take() } else { None };
        let mut why = None;
        for at in candidates {
            let &SourceEvent { event: ref source, assumed, .. } = self.events.get(at);
            let source = source.clone();
            // The free bits of its operands take their values from one event of the target.
            if self.events.is_taken(at)
                && source.args.iter().any(|arg| !arg.is_defined(terms))
                && !left_out(Guard::EventFreeOnce)
            {
                continue;
            }
            self.counted += 1;
            // If both select lanes, these are compared, and not those that take part.
            let is_clear = |event: &Event| selected(event).is_defined(terms);
            let selects = source.selects && event.selects && is_clear(&source) && is_clear(&event);
            let mut part = |event: &Event| {
                if selects { terms.and(1, event.path, selected(event).bits) } else { event.path }
            };
            let (part_of_source, part_of_target) = (part(&source), part(&event));
            let same_path = terms.eq(1, part_of_source, part_of_target);
            let mut same_before = terms.constant(1, 1);
            for (version, before) in self.events.before(at) {
                let here = event.context.makes.iter().position(|&other| other == version);
                let same = match here {
                    Some(here) => terms.eq(32, before, event.context.before[here]),
                    None => terms.constant(1, 0),
                };
                same_before = terms.and(1, same_before, same);
            }
            let differs = if !self.holds(terms, assumed, same_before) && !left_out(Guard::EventOrder) {
                Some(EventDifference::Memory)
            } else if !self.holds(terms, assumed, same_path) && !left_out(Guard::EventPath) {
                Some(EventDifference::Path { source: terms.brief(source.path), target: terms.brief(event.path) })
            } else {
                let compared = source.args.len() - usize::from(selects);
                let mut args = source.args.iter().zip(&event.args).take(compared);
                let bad = args.position(|(&a, &b)| {
                    let goal = agreement(terms, part_of_source, a, b);
                    !self.holds(terms, assumed, goal) && !left_out(Guard::EventOperands)
                });
                bad.map(|index| {
                    let [source, target] = [&source, &event].map(|event| terms.brief(event.args[index].bits));
                    EventDifference::Operand { index, source, target }
                })
            };
            let Some(differs) = differs else {
                self.sweeper.search = self.sweeper.search.take().or(search);
                let mut results = self.events.get(at).results.clone();
                if is_fence {
                    // A memory that only the target orders has no new version.
                    let made: FxHashMap<Slot, Term> = source.context.makes.iter().copied().zip(results).collect();
                    let versions = event.context.makes.iter().zip(&event.context.before);
                    results = versions.map(|(version, &before)| made.get(version).copied().unwrap_or(before)).collect();
                    event.context.makes = source.context.makes;
                    self.partners.note(Side::Target, &event, self.cut);
                }
                self.events.take(at, &event, &mut self.partners);
                if event.kind == EventKind::Constants && !left_out(Guard::EventOrder) {
                    // The words that it stores are those of the source after its partner, in any order of other stores.
                    let unknown = fresh(terms, &event, self.cut, Side::Target)[0];
                    results = SmallVec::from_iter([results[0], self.events.stored(&event, unknown)]);
                }
                // If the target's behaviour is undefined earlier, it has not reached this event.
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
        self.sweeper.search = self.sweeper.search.take().or(search);
        if may_be_grouped {
            return match self.group(terms, &event) {
                Some(version) => SmallVec::from_iter([version]),
                None => fresh(terms, &event, self.cut, Side::Target),
            };
        }
        if is_fence {
            // An additional fence: if it was meant to be another one, that one will be missing.
            return event.context.before.iter().copied().collect();
        }
        if !event.context.before.is_empty() && left_out(Guard::EventAdded) {
            let mut results = fresh(terms, &event, self.cut, Side::Target);
            results.truncate(event.results.len());
            results.extend(event.context.before.iter().copied());
            return results;
        }
        if event.context.makes.is_empty() {
            // It is observed by its results only, which are unknown.
            self.partners.miss(event.site);
        }
        if event.kind != EventKind::OneLane {
            let added = Obstacle::Added { event: event.operation, site: event.site, differs: why };
            if !event.context.makes.is_empty() {
                self.fail(|| added);
            } else {
                self.missed.get_or_insert(added);
            }
        }
        fresh(terms, &event, self.cut, Side::Target)
    }

    fn decided(&mut self, terms: &mut Terms, condition: Term) -> Term {
        self.undefined_words.decided(terms, condition)
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
            Side::Target => self.obligations.push(Obligation::at_end(Observable::Defined(why), goal)),
        }
    }
}

/// The operand that selects lanes.
fn selected(event: &Event) -> SymbolicValue {
    *event.args.last().expect("an event that selects lanes has an operand")
}

/// Fresh results, about which nothing is known.
fn fresh(terms: &mut Terms, event: &Event, cut: Cut, side: Side) -> SmallVec<[Term; 4]> {
    let widths = event.results.iter().copied().chain(event.context.makes.iter().map(|_| 32));
    let kind = cut.kind(if event.uniform { VariableKind::WAVE } else { VariableKind::LANE });
    let variables = widths.enumerate().map(|(i, width)| {
        // The width is part of the name: in another iteration the value may have fewer bits.
        let name = format!("result {i} of {width} bits of {side:?} {} from {cut:?}", event.site);
        terms.variable_of(kind, width.into(), &name)
    });
    variables.collect()
}
