//! The fixed-point iteration of a proof.

use super::events::SourceEvents;
use super::failure::{Observable, Obstacle};
use super::inputs::InputSearch;
use super::loop_exits::LoopExitRelation;
use super::memories::Memories;
use super::promises::{Kept, Promises};
use super::refinement::{propose, refine};
use super::relation::{Arrival, Atom, AtomPart, HeaderRelation};
use super::state::{Obligation, SimulationState, UndefinedChoice, agreement};
use super::sweep::Side;
use super::{Limits, Proof, SimulationFailure};
use crate::solver::Solver;
use crate::symbolic::{
    Cut, Goal, Graph, Oracle, Run, Slot, SymbolicProgram, SymbolicValue, is_helper, leave_convergently, run, slot,
};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::assumptions;
use ir3_semantics::assumptions::Uses;
use ir3_semantics::environment::memory::Space;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Term, Terms};
use rustc_hash::{FxHashMap, FxHashSet};

/// A segment of both programs.
struct SegmentPair {
    cut: Cut,
    source: Run,
    target: Run,
}

impl SegmentPair {
    /// The value of a location of one program at an exit.
    fn raw_value_at<S: SymbolicProgram, T: SymbolicProgram>(
        &mut self,
        side: Side,
        (source, target): (&S, &T),
        transition: usize,
        slot: Slot,
        terms: &mut Terms,
        state: &mut SimulationState<'_>,
    ) -> SymbolicValue {
        state.side = side;
        match side {
            Side::Source => self.source.value_at(source, terms, state, transition, slot),
            Side::Target => self.target.value_at(target, terms, state, transition, slot),
        }
    }

    /// The value of a location of one program at an exit, known or swept.
    fn value_at<S: SymbolicProgram, T: SymbolicProgram>(
        &mut self,
        side: Side,
        programs: (&S, &T),
        transition: usize,
        slot: Slot,
        terms: &mut Terms,
        state: &mut SimulationState<'_>,
    ) -> SymbolicValue {
        let value = self.raw_value_at(side, programs, transition, slot, terms, state);
        state.value(terms, value)
    }
}

/// The choices of a proof attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// Scratch memory is treated as registers from this address on: see
    /// [`scratch_slots_from`](Oracle::scratch_slots_from).
    pub scratch_slots_from: Option<u32>,
    /// See [`Sweeper::products`].
    pub products: bool,
    /// See [`Sweeper::deep`].
    pub deep: u8,
    /// No image aliases a buffer: see [`Memories`].
    pub disjoint_images: bool,
    /// The choice for undefined words of the source.
    pub undefined: UndefinedChoice,
    /// Words that are shown to be narrow on all paths to a header are so in the loop: see [`HeaderRelation`].
    pub narrow: bool,
    /// Only the operations that had a partner in the attempts so far have its value where they break their promises:
    /// see [`Promises`].
    pub partners: bool,
    /// Further optional rules.
    pub rules: Rules,
}

/// The results of earlier attempts.
#[derive(Default)]
pub(super) struct Found {
    /// The source has undefined words.
    pub has_undefined: bool,
    /// The operations of the source with promises that the target has too.
    pub partners: FxHashSet<u32>,
}

/// Rules that cost time and seldom apply: they are tried where there is no proof without them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Linear functions and bounds of values in loops: see [`HeaderRelation`] and
    /// [`HeaderFacts`](super::header_facts::HeaderFacts).
    pub invariants: bool,
    /// The values that other lanes compute, as functions of their inputs.
    pub lanes: bool,
    /// Loads of values that the same lane has stored, and stores in another order.
    pub stores: bool,
}

/// Proves that `target` refines `source`.
pub(super) fn prove<S: SymbolicProgram, T: SymbolicProgram>(
    source: &S,
    target: &T,
    Choice { scratch_slots_from, products, deep, disjoint_images, undefined, narrow, partners, rules }: Choice,
    Found { has_undefined, partners: found }: &mut Found,
    limits: &Limits,
    solver: &mut dyn Solver,
) -> Result<Proof, SimulationFailure> {
    let loops = source.graph().loops.len();
    if loops != target.graph().loops.len() {
        let loops = Obstacle::Loops { source: loops, target: target.graph().loops.len() };
        return Err(SimulationFailure::not_shown(loops));
    }
    let around = |graph: &Graph| -> Vec<Vec<u32>> {
        graph.loops.iter().map(|l| graph.loops_around(l.header).collect()).collect()
    };
    if around(source.graph()) != around(target.graph()) && !left_out(Guard::EventLoops) {
        return Err(SimulationFailure::not_shown(Obstacle::Nesting));
    }
    let outputs = source.outputs();
    if let Some(&other) = target.outputs().iter().find(|output| !outputs.contains(output)) {
        return Err(SimulationFailure::not_shown(Obstacle::Output(other)));
    }
    let [had, has] = [source.scratch_bytes(), target.scratch_bytes()];
    if has < had && source.uses_scratch() && scratch_slots_from != Some(0) && !left_out(Guard::ScratchSize) {
        return Err(SimulationFailure::not_shown(Obstacle::Scratch { source: had, target: has }));
    }
    let allowed = source.liberties();
    if let Some(liberty) = target.liberties().iter().find(|liberty| !allowed.contains(liberty)) {
        return Err(SimulationFailure::not_shown(Obstacle::Liberty(liberty.clone())));
    }
    let may_cache = source.may_cache();
    if !target.cached().iter().all(|space| may_cache.contains(space)) {
        let what = "that no store comes before a load through the cache of textures".to_owned();
        return Err(SimulationFailure::not_shown(Obstacle::Liberty(what)));
    }
    let mut terms = Terms::new();
    let memories = Memories::new(source, target, disjoint_images);
    let places = [source.places(), target.places()];
    let both_loops = [&source.graph().loops[..], &target.graph().loops];
    let mut state = SimulationState::new(solver, limits, both_loops, places, scratch_slots_from, memories, undefined);
    // First find the locations that matter; then the relation; when that is stable, check the obligations.
    state.sweeper.scouting = loops > 0;
    state.sweeper.products = products;
    state.sweeper.deep = deep;
    state.narrow = narrow;
    state.promises = Promises::new(if partners { Kept::At(found.clone()) } else { Kept::All });
    state.rules = rules;
    state.launch = source.launch();
    state.printed_shapes = source.prints_shapes() && target.prints_shapes();
    state.is_selection = !source.prints_shapes() && target.prints_shapes();
    state.both_nir = !source.prints_shapes() && !target.prints_shapes();
    state.names_volatile = !state.is_selection || target.marks_volatile();
    if !state.names_volatile && !source.volatile().is_empty() {
        state.assumed.insert(assumptions::VOLATILE);
    }
    // Both are nir, one of them perhaps lifted.
    if state.both_nir {
        state.headers.iter_mut().for_each(HeaderRelation::with_bools);
    }
    // Only the source reads its stores to the constant file.
    state.kept = (source.stores_constants() && !target.stores_constants()).then(FxHashMap::default);
    state.read_constants =
        source.read_constants().zip(target.read_constants()).map(|(one, other)| one.union(&other).copied().collect());
    let mut last = loops == 0;
    // Each iteration splits a class, makes a fact weaker, or finds a location, so the iteration ends; a chain of values
    // that is passed on from register to register takes as many iterations as it is long.
    let mut iterations = 0;
    loop {
        iterations += 1;
        state.begin_iteration();
        state.partners.begin();
        state.grouped = false;
        state.failure = None;
        state.missed = None;
        state.counted = 0;
        state.last = last;
        state.sweeper.failed = false;
        state.sweeper.search = (last && limits.inputs).then(|| InputSearch::new(source.launch()));
        let (changed, cuts) = iterate(source, target, &mut terms, &mut state)?;
        *has_undefined |= state.has_undefined;
        found.extend(&state.promises.partners);
        if state.sweeper.is_late() {
            return Err(SimulationFailure::OutOfTime(state.failure.take().map(Box::new)));
        }
        if let Some(why) = state.give_up {
            return Err(SimulationFailure::not_shown(Obstacle::Opaque(why)));
        }
        if state.vacuous && !left_out(Guard::Vacuous) {
            return Err(SimulationFailure::Vacuous);
        }
        if changed && !left_out(Guard::Fixpoint) {
            last = loops == 0;
            continue;
        }
        if state.sweeper.scouting {
            state.sweeper.scouting = false;
            state.forget();
            continue;
        }
        if !last {
            last = true;
            continue;
        }
        if let Some((target, source)) = state.partners.with_different_lanes()
            && !left_out(Guard::EventSegments)
        {
            state.fail(|| Obstacle::Lanes { source, target });
        }
        if state.grouped && state.partners.has_counted() && !left_out(Guard::StoreCounted) {
            state.fail(|| Obstacle::Opaque("stores in another order, interleaved with those of other lanes"));
        }
        if state.failure.is_none() {
            let possible = state.paths.condition(&mut terms);
            match state.sweeper.is_possible(&mut terms, possible) {
                Some(true) => {}
                Some(false) if left_out(Guard::Vacuous) => {}
                Some(false) => return Err(SimulationFailure::Vacuous),
                None => state.meaning_unknown = true,
            }
        }
        if let Some(site) = state.partners.torn()
            && !left_out(Guard::EventTorn)
        {
            state.fail(|| Obstacle::Segments { site });
        }
        return match state.failure {
            Some(mut obstacle) => {
                if let Obstacle::Condition { missing, .. } = &mut obstacle {
                    *missing = state.missed.map(Box::new);
                }
                let inputs = state.sweeper.search.map(|search| search.found).unwrap_or_default();
                Err(SimulationFailure::NotShown { obstacle: Box::new(obstacle), inputs })
            }
            None => Ok(Proof {
                assumptions: assumptions(uses(source, target), &terms, &state, disjoint_images),
                cuts,
                iterations,
                queries: state.sweeper.queries,
                obligations: state.counted,
            }),
        };
    }
}

/// The features of two programs. Reads of the target beyond an array may return anything; only the source is assumed to
/// stay in its arrays.
fn uses(source: &impl SymbolicProgram, target: &impl SymbolicProgram) -> Uses {
    source.uses().or(Uses { arrays: false, ..target.uses() })
}

/// The assumptions of a proof.
fn assumptions(uses: Uses, terms: &Terms, state: &SimulationState<'_>, disjoint_images: bool) -> Vec<&'static str> {
    let mut list: Vec<&'static str> = uses.assumptions().collect();
    list.extend(&state.assumed);
    if terms.has_float_arithmetic() {
        list.push(assumptions::FLOATS);
    }
    if terms.has_floats() {
        list.push(assumptions::DENORMALS);
    }
    if state.meaning_unknown {
        list.push(assumptions::SOURCE_DEFINED);
    }
    if disjoint_images && state.memories.has_images_and_buffers() {
        list.push(assumptions::NO_ALIAS);
    }
    list.extend(&state.sweeper.lemmas);
    list
}

/// Executes all reachable segments. Returns true if the relation has changed, and the number of segments.
fn iterate<S: SymbolicProgram, T: SymbolicProgram>(
    source: &S,
    target: &T,
    terms: &mut Terms,
    state: &mut SimulationState<'_>,
) -> Result<(bool, usize), SimulationFailure> {
    let of_wave = |atom: Atom| is_of_wave(source, target, atom);
    let mut reached = vec![Cut::Entry];
    let mut arrivals: FxHashMap<u32, Vec<Arrival>> = FxHashMap::default();
    let mut at = 0;
    while let Some(&cut) = reached.get(at) {
        at += 1;
        let mut segment = both(source, target, cut, terms, state)?;
        compare_exits(&segment, terms, state);
        note_paths(source, &segment, state);
        let count = segment.source.transitions.len().min(segment.target.transitions.len());
        for i in 0..count {
            let (goal, path) = (segment.source.transitions[i].goal, segment.source.transitions[i].path);
            match goal {
                Goal::Header(number) => {
                    let there = source.graph().loops[number as usize].header;
                    let back = is_back(source.graph(), cut, number);
                    // Lanes that have left a loop in different iterations are mixed.
                    let mixed =
                        !leave_convergently(source.graph(), cut, there, &|cut| state.goals_of(Side::Source, cut));
                    let terms_there = arrive(source, target, &mut segment, i, number, terms, state);
                    let path = state.with_header_facts(terms, cut, path);
                    let arrival = Arrival { terms: terms_there, path, back, mixed };
                    arrivals.entry(number).or_default().push(arrival);
                    if !reached.contains(&Cut::Header(number)) {
                        reached.push(Cut::Header(number));
                    }
                }
                Goal::End => at_end(source, target, &mut segment, i, path, terms, state),
                Goal::Killed => {}
            }
        }
        discharge(terms, state);
        if state.sweeper.late {
            return Ok((true, reached.len()));
        }
        // Terms that were not swept would split the relation.
        if state.sweeper.failed {
            return Ok((false, reached.len()));
        }
        // In the first iteration, later segments need the relation that this one finds.
        for (&number, arrivals) in &arrivals {
            let header = &state.headers[number as usize];
            let queried = header.atoms().count();
            if header.classes() == 0 && queried > 0 && arrivals.iter().all(|arrival| arrival.terms.len() == queried) {
                refine(number, arrivals, of_wave, terms, state);
            }
        }
    }
    let mut changed =
        std::mem::take(&mut state.invalidated) | (!state.headers.is_empty() && state.partners.has_changed());
    if state.sweeper.scouting {
        state.loop_exits.iter_mut().for_each(|relation| *relation = LoopExitRelation::default());
    }
    for relation in &mut state.loop_exits {
        changed |= relation.refine();
    }
    // A location that was first queried in this iteration is in no class; nor is any of an unreachable loop.
    let has_new =
        |(number, header): (usize, &HeaderRelation)| arrivals.contains_key(&(number as u32)) && header.has_new();
    let has_new = state.headers.iter().enumerate().any(has_new);
    if has_new && !state.sweeper.scouting {
        state.forget();
        return Ok((true, reached.len()));
    }
    if state.sweeper.scouting {
        // A constant on the first path into a loop may be another value later, and then more loops are reachable.
        changed |= has_new;
        for number in 0..state.headers.len() as u32 {
            let queried = state.headers[number as usize].atoms().count();
            let of_all = |arrivals: &&Vec<Arrival>| arrivals.iter().all(|arrival| arrival.terms.len() == queried);
            if let Some(arrivals) = arrivals.get(&number).filter(of_all) {
                changed |= refine(number, arrivals, of_wave, terms, state);
            }
        }
        return Ok((changed, reached.len()));
    }
    for number in 0..state.headers.len() as u32 {
        let Some(arrivals) = arrivals.get(&number) else { continue };
        changed |= refine(number, arrivals, of_wave, terms, state);
    }
    if !changed && state.rules.invariants {
        for number in 0..state.headers.len() as u32 {
            let Some(arrivals) = arrivals.get(&number) else { continue };
            changed |= propose(number, arrivals, of_wave, terms, state);
        }
        // With more facts there may be a larger relation.
        if changed {
            state.forget();
        }
    }
    Ok((changed, reached.len()))
}

/// Returns true if an atom belongs to a shared register: all lanes at the cut point find the same value in it.
fn is_of_wave<S: SymbolicProgram, T: SymbolicProgram>(source: &S, target: &T, (side, slot, _): Atom) -> bool {
    match side {
        Side::Source => source.shared_slots().contains(&slot),
        Side::Target => target.shared_slots().contains(&slot),
    }
}

/// Returns true if a segment from a cut point goes back to a header: of a loop around it, or its own.
fn is_back(graph: &Graph, from: Cut, to: u32) -> bool {
    match from {
        Cut::Entry => false,
        Cut::Header(from) => graph.loops[to as usize].contains(graph.loops[from as usize].header),
    }
}

/// Records the assumptions of the source in a segment, and its exits.
fn note_paths<S: SymbolicProgram>(source: &S, segment: &SegmentPair, state: &mut SimulationState<'_>) {
    let forward = |goal| match goal {
        Goal::Header(number) => !is_back(source.graph(), segment.cut, number),
        Goal::End | Goal::Killed => true,
    };
    let exits = segment.source.transitions.iter().map(|transition| (transition.goal, transition.path));
    state.paths.note(segment.cut, &state.assumptions, exits.filter(|&(goal, _)| forward(goal)).collect());
}

/// Executes both sides of a segment.
fn both<S: SymbolicProgram, T: SymbolicProgram>(
    source: &S,
    target: &T,
    cut: Cut,
    terms: &mut Terms,
    state: &mut SimulationState<'_>,
) -> Result<SegmentPair, SimulationFailure> {
    state.cut = cut;
    state.loop_exits.iter_mut().for_each(LoopExitRelation::begin);
    state.events = SourceEvents::default();
    state.partners.begin_segment();
    state.assumptions.clear();
    state.obligations.clear();
    state.groups.begin();
    state.sweeper.begin();
    state.registers.clear();
    state.promises.begin();
    if cut == Cut::Entry
        && let Some(kept) = &mut state.kept
        && !left_out(Guard::KeptBefore)
    {
        kept.clear();
    }
    if let Cut::Header(number) = cut {
        let header = &mut state.headers[number as usize];
        let atoms: Vec<Atom> = header.atoms().filter(|&atom| is_of_wave(source, target, atom)).collect();
        for atom in atoms {
            let term = header.term(terms, number, atom);
            state.registers.entry(term).or_default().push((atom.0, atom.1));
        }
    }
    state.assume_header_facts(terms);
    let facts = std::mem::take(&mut state.facts);
    state.side = Side::Source;
    let source = run::run(source, cut, terms, state, &facts);
    state.side = Side::Target;
    let target = source.and_then(|source| {
        for transition in &source.transitions {
            state.sweeper.learn(terms, transition.path);
        }
        Ok((source, run::run(target, cut, terms, state, &facts)?))
    });
    state.facts = facts;
    let (source, target) = target?;
    if let Cut::Header(number) = cut
        && state.rules.invariants
    {
        let transitions = [&source, &target].into_iter().flat_map(|run| &run.transitions);
        let conditions = transitions.map(|transition| transition.path).collect();
        state.header_facts[number as usize].note(conditions);
    }
    if !state.headers.is_empty() {
        for (side, run) in [(Side::Source, &source), (Side::Target, &target)] {
            state.learn_goals(terms, side, run);
        }
    }
    if let Some(event) = state.groups.left_over() {
        let added = Obstacle::Added { event: event.operation, site: event.site, differs: None };
        state.fail(|| added);
    }
    let unread = state.kept.is_some().then_some(slot::CONSTANTS);
    if let Some(event) = state.events.left_over(unread)
        && !left_out(Guard::Stores)
    {
        let removed = Obstacle::Removed { event: event.operation, site: event.site };
        state.fail(|| removed);
    }
    Ok(SegmentPair { cut, source, target })
}

/// Checks that both sides take the same exits.
fn compare_exits(segment: &SegmentPair, terms: &mut Terms, state: &mut SimulationState<'_>) {
    let goals = |run: &Run| -> Vec<Goal> { run.transitions.iter().map(|transition| transition.goal).collect() };
    let (a, b) = (goals(&segment.source), goals(&segment.target));
    if a != b && !left_out(Guard::Exits) {
        state.fail(|| Obstacle::Exits { from: segment.cut, source: a, target: b });
        return;
    }
    for (a, b) in segment.source.transitions.iter().zip(&segment.target.transitions) {
        let path = state.sweeper.sweep(terms, b.path);
        let goal = terms.eq(1, a.path, path);
        let goal = unless_left_out(terms, Guard::Exits, goal);
        let path = Observable::Path { from: segment.cut, to: a.goal };
        state.obligations.push(Obligation::at_end(path, goal));
    }
}

/// The terms of all atoms of a header on a path to it.
fn arrive<S: SymbolicProgram, T: SymbolicProgram>(
    source: &S,
    target: &T,
    segment: &mut SegmentPair,
    transition: usize,
    number: u32,
    terms: &mut Terms,
    state: &mut SimulationState<'_>,
) -> Vec<Term> {
    let mut list = Vec::new();
    let mut values: FxHashMap<(Side, Slot), [SymbolicValue; 2]> = FxHashMap::default();
    let mut at = 0;
    // Looking up an atom may add another one, if the path starts at this header.
    while let Some((side, slot, part)) = state.headers[number as usize].atom(at) {
        at += 1;
        let [word, value] = match values.get(&(side, slot)) {
            Some(&known) => known,
            None => {
                let word = segment.raw_value_at(side, (source, target), transition, slot, terms, state);
                let known = [word, state.value(terms, word)];
                values.insert((side, slot), known);
                known
            }
        };
        list.push(match part {
            AtomPart::Bits => value.bits,
            AtomPart::Free => value.free,
            // The halves are swept on their own, as the other program may have them in two words.
            AtomPart::Low | AtomPart::High => {
                state.side = side;
                let half = terms.extract(32, word.bits, part.first_bit(), 16);
                let half = SymbolicValue::defined(terms, half);
                state.value(terms, half).bits
            }
        });
        // Linear functions are of whole words, and a sum may look like two halves.
        if part == AtomPart::Bits && terms.width(value.bits) == 32 && !state.rules.invariants {
            state.invalidated |= state.headers[number as usize].split(terms, (side, slot), value.bits);
        }
    }
    list
}

/// Compares the final states of both sides.
fn at_end<S: SymbolicProgram, T: SymbolicProgram>(
    source: &S,
    target: &T,
    segment: &mut SegmentPair,
    transition: usize,
    path: Term,
    terms: &mut Terms,
    state: &mut SimulationState<'_>,
) {
    let mut value = |slot: Slot, terms: &mut Terms, state: &mut SimulationState<'_>| {
        let a = segment.value_at(Side::Source, (source, target), transition, slot, terms, state);
        (a, segment.value_at(Side::Target, (source, target), transition, slot, terms, state))
    };
    let (a, b) = value(slot::DEMOTED, terms, state);
    let goal = agreement(terms, path, a, b);
    let goal = unless_left_out(terms, Guard::Demoted, goal);
    state.obligations.push(Obligation::at_end(Observable::Demoted, goal));
    for version in slot::versions() {
        let (a, b) = value(version, terms, state);
        // Scratch memory and the constant file are not observed.
        if version == slot::memory(Space::Scratch) || version == slot::CONSTANTS {
            continue;
        }
        let goal = terms.eq(32, a.bits, b.bits);
        let goal = unless_left_out(terms, Guard::Stores, goal);
        state.obligations.push(Obligation::at_end(Observable::Memory(version), goal));
    }
    // Writes of helper lanes and demoted lanes are not observed.
    let helper = is_helper(terms, source.launch());
    let unseen = terms.or(1, helper, a.bits);
    let seen = terms.not(1, unseen);
    let path = terms.and(1, path, seen);
    for output in source.outputs() {
        let (a, b) = value(slot::output(output.base, output.component), terms, state);
        let goal = agreement(terms, path, a, b);
        let goal = unless_left_out(terms, Guard::Outputs, goal);
        state.obligations.push(Obligation::at_end(Observable::Output(output), goal));
    }
}

/// Returns the goal, or true if the guard is left out.
fn unless_left_out(terms: &mut Terms, guard: Guard, goal: Term) -> Term {
    if terms.as_constant(goal) != Some(1) && left_out(guard) { terms.constant(1, 1) } else { goal }
}

/// Proves the obligations of a segment.
fn discharge(terms: &mut Terms, state: &mut SimulationState<'_>) {
    for Obligation { observable, goal, assumed } in std::mem::take(&mut state.obligations) {
        state.counted += 1;
        if state.failure.is_some() || !state.last {
            continue;
        }
        if !state.holds(terms, assumed, goal) {
            let (from, goal) = (state.cut, terms.brief(goal));
            state.fail(|| Obstacle::Condition { observable, from, goal, missing: None });
        }
    }
}
