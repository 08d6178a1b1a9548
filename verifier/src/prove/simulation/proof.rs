//! The rounds of a proof.

use super::behind::Behind;
use super::engine::{Engine, Obligation, Undefined, agreement};
use super::events::Events;
use super::inputs::Seeker;
use super::memories::Memories;
use super::relation::{Atom, Header, Part, Way};
use super::sweep::Side;
use super::{Failure, Limits, Proof};
use crate::prove::solver::Solver;
use crate::prove::symbolic::{Code, Cut, Goal, Graph, Oracle, Run, Slot, Value, is_helper, leave_as_one, run, slot};
use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::assumptions;
use crate::semantics::assumptions::Uses;
use crate::semantics::environment::memory::Space;
use crate::semantics::interp::OutputSlot;
use crate::semantics::terms::{Term, Terms};
use crate::support::guards::{Guard, left_out};
use rustc_hash::FxHashMap;

/// More rounds than this are not tried: each splits a class, so there is an end, but not soon.
const ROUNDS: usize = 64;

/// Both sides of a segment.
struct Segment {
    cut: Cut,
    source: Run,
    target: Run,
}

impl Segment {
    /// What a location of one side holds on a way out, known or swept.
    fn value_at<S: Code, T: Code>(
        &mut self,
        side: Side,
        (source, target): (&S, &T),
        transition: usize,
        slot: Slot,
        terms: &mut Terms,
        engine: &mut Engine<'_>,
    ) -> Value {
        engine.side = side;
        let value = match side {
            Side::Source => self.source.value_at(source, terms, engine, transition, slot),
            Side::Target => self.target.value_at(target, terms, engine, transition, slot),
        };
        engine.value(terms, value)
    }
}

/// What may be chosen in a proof.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    /// A lane's own memory is like registers from this address on: see [`own_from`](Oracle::own_from).
    pub own_from: Option<u32>,
    /// See [`Sweeper::products`].
    pub products: bool,
    /// See [`Sweeper::deep`].
    pub deep: u8,
    /// No image is a buffer: see [`Memories`].
    pub images_apart: bool,
    /// What is chosen for undefined words of the source.
    pub undefined: Undefined,
}

/// Shows that `target` does what `source` does.
pub(super) fn prove<S: Code, T: Code>(
    source: &S,
    target: &T,
    Choice { own_from, products, deep, images_apart, undefined }: Choice,
    has_undefined: &mut bool,
    limits: &Limits,
    solver: &mut dyn Solver,
) -> Result<Proof, Failure> {
    let loops = source.graph().loops.len();
    if loops != target.graph().loops.len() {
        let what = format!("{loops} loops in the source, {} in the target", target.graph().loops.len());
        return Err(Failure::not_shown(what));
    }
    let around = |graph: &Graph| -> Vec<Vec<u32>> {
        graph.loops.iter().map(|l| graph.loops_around(l.header).collect()).collect()
    };
    if around(source.graph()) != around(target.graph()) && !left_out(Guard::EventLoops) {
        return Err(Failure::not_shown(
            "loops stand in others, in the order of the blocks, in one of the programs only",
        ));
    }
    let outputs = source.outputs();
    if let Some(other) = target.outputs().iter().find(|output| !outputs.contains(output)) {
        return Err(Failure::not_shown(format!("the target has {other}, the source has not")));
    }
    let [had, has] = [source.scratch_bytes(), target.scratch_bytes()];
    if has < had && source.uses_scratch() && own_from != Some(0) && !left_out(Guard::ScratchSize) {
        return Err(Failure::not_shown(format!(
            "a lane has {had} bytes of its own in the source, {has} in the target"
        )));
    }
    let mut terms = Terms::new();
    let memories = Memories::new(source, target, images_apart);
    let places = [source.places(), target.places()];
    let both_loops = [&source.graph().loops[..], &target.graph().loops];
    let mut engine = Engine::new(solver, limits, both_loops, places, own_from, memories, undefined);
    // First, what locations matter; then the relation; when it holds still, whether it is enough.
    engine.sweeper.scouting = loops > 0;
    engine.sweeper.products = products;
    engine.sweeper.deep = deep;
    engine.printed_shapes = source.prints_shapes() && target.prints_shapes();
    engine.is_selection = !source.prints_shapes() && target.prints_shapes();
    // The other language.
    engine.printed_formats = !source.prints_shapes() && !target.prints_shapes();
    let mut last = loops == 0;
    for round in 1..=ROUNDS {
        engine.partners.begin();
        engine.failure = None;
        engine.missed = None;
        engine.counted = 0;
        engine.last = last;
        engine.sweeper.seeker = (last && limits.inputs).then(|| Seeker::new(source.launch()));
        let (changed, cuts) = one_round(source, target, &mut terms, &mut engine)?;
        *has_undefined |= engine.has_undefined;
        if engine.sweeper.late {
            let at = engine.failure.take().map(|what| format!("; {what}")).unwrap_or_default();
            return Err(Failure::Time(at));
        }
        if let Some(why) = engine.lost {
            return Err(Failure::not_shown(why));
        }
        if engine.vacuous && !left_out(Guard::Vacuous) {
            return Err(Failure::Vacuous);
        }
        if changed && !left_out(Guard::Fixpoint) {
            last = loops == 0;
            continue;
        }
        if engine.sweeper.scouting {
            engine.sweeper.scouting = false;
            engine.forget();
            continue;
        }
        if !last {
            last = true;
            continue;
        }
        if let Some((target, source)) = engine.partners.apart()
            && !left_out(Guard::EventSegments)
        {
            engine.fail(|| {
                format!("other lanes meet at site {target} of the target than at site {source} of the source")
            });
        }
        if engine.failure.is_none() {
            let possible = engine.paths.condition(&mut terms);
            match engine.sweeper.is_possible(&mut terms, possible) {
                Some(true) => {}
                Some(false) if left_out(Guard::Vacuous) => {}
                Some(false) => return Err(Failure::Vacuous),
                None => engine.meaning_unknown = true,
            }
        }
        if let Some(site) = engine.partners.torn()
            && !left_out(Guard::EventTorn)
        {
            engine.fail(|| format!("site {site} of the target is an event of the source in some segments only"));
        }
        return match engine.failure {
            Some(mut what) => {
                if let Some(missed) = engine.missed {
                    what = format!("{what}; {missed}");
                }
                let inputs = engine.sweeper.seeker.map(|seeker| seeker.found).unwrap_or_default();
                Err(Failure::NotShown { what, inputs })
            }
            None => Ok(Proof {
                assumptions: assumptions(source.uses().or(target.uses()), &terms, &engine, images_apart),
                cuts,
                rounds: round,
                queries: engine.sweeper.queries,
                obligations: engine.counted,
            }),
        };
    }
    Err(Failure::not_shown(format!("the relation still changes after {ROUNDS} rounds")))
}

/// What a proof takes for granted.
fn assumptions(uses: Uses, terms: &Terms, engine: &Engine<'_>, images_apart: bool) -> Vec<&'static str> {
    let mut list: Vec<&'static str> = uses.assumptions().collect();
    list.extend(&engine.assumed);
    if terms.has_float_arithmetic() {
        list.push(assumptions::FLOATS);
    }
    if terms.has_floats() {
        list.push(assumptions::DENORMALS);
    }
    if engine.meaning_unknown {
        list.push(assumptions::SOURCE_DEFINED);
    }
    if images_apart && engine.memories.has_images_and_buffers() {
        list.push(assumptions::NO_ALIAS);
    }
    list.extend(&engine.sweeper.lemmas);
    list
}

/// Runs all segments that are reached. Whether the relation has changed, and how many there were.
fn one_round<S: Code, T: Code>(
    source: &S,
    target: &T,
    terms: &mut Terms,
    engine: &mut Engine<'_>,
) -> Result<(bool, usize), Failure> {
    let of_wave = |atom: Atom| is_of_wave(source, target, atom);
    let mut reached = vec![Cut::Entry];
    let mut ways: FxHashMap<u32, Vec<Way>> = FxHashMap::default();
    let mut at = 0;
    while let Some(&cut) = reached.get(at) {
        at += 1;
        let mut segment = both(source, target, cut, terms, engine)?;
        compare_ways(&segment, terms, engine);
        note_paths(source, &segment, engine);
        let count = segment.source.transitions.len().min(segment.target.transitions.len());
        for i in 0..count {
            let (goal, path) = (segment.source.transitions[i].goal, segment.source.transitions[i].path);
            match goal {
                Goal::Header(number) => {
                    let there = source.graph().loops[number as usize].header;
                    let back = is_back(source.graph(), cut, number);
                    // Lanes that have left a loop one after the other are not in the same iteration of it.
                    let mixed = !leave_as_one(source.graph(), cut, there, &|cut| engine.goals_of(Side::Source, cut));
                    let terms_there = arrive(source, target, &mut segment, i, number, terms, engine);
                    let way = Way { terms: terms_there, back, mixed };
                    ways.entry(number).or_default().push(way);
                    if !reached.contains(&Cut::Header(number)) {
                        reached.push(Cut::Header(number));
                    }
                }
                Goal::End => at_end(source, target, &mut segment, i, path, terms, engine),
                Goal::Killed => {}
            }
        }
        discharge(terms, engine);
        if engine.sweeper.late {
            return Ok((true, reached.len()));
        }
        // The first time, later segments need the relation that this one finds.
        for (&number, ways) in &ways {
            let header = &mut engine.headers[number as usize];
            let asked = header.atoms().count();
            if header.classes() == 0 && asked > 0 && ways.iter().all(|way| way.terms.len() == asked) {
                header.refine(terms, ways, &engine.facts, of_wave);
            }
        }
    }
    let mut changed =
        std::mem::take(&mut engine.surprised) | (!engine.headers.is_empty() && engine.partners.has_changed());
    if engine.sweeper.scouting {
        engine.behind.iter_mut().for_each(|behind| *behind = Behind::default());
    }
    for behind in &mut engine.behind {
        changed |= behind.refine();
    }
    // A location that was asked for in this round is in no class; nor is any of a loop that is not reached.
    let has_new = |(number, header): (usize, &Header)| ways.contains_key(&(number as u32)) && header.has_new();
    let has_new = engine.headers.iter().enumerate().any(has_new);
    if has_new && !engine.sweeper.scouting {
        engine.forget();
        return Ok((true, reached.len()));
    }
    if engine.sweeper.scouting {
        // What is a number on the first way into a loop may be another later, and more loops are reached then.
        changed |= has_new;
        for (number, header) in engine.headers.iter_mut().enumerate() {
            let asked = header.atoms().count();
            let of_all = |ways: &&Vec<Way>| ways.iter().all(|way| way.terms.len() == asked);
            if let Some(ways) = ways.get(&(number as u32)).filter(of_all) {
                changed |= header.refine(terms, ways, &engine.facts, of_wave);
            }
        }
        return Ok((changed, reached.len()));
    }
    for (number, header) in engine.headers.iter_mut().enumerate() {
        let Some(ways) = ways.get(&(number as u32)) else { continue };
        changed |= header.refine(terms, ways, &engine.facts, of_wave);
    }
    Ok((changed, reached.len()))
}

/// Returns true if an atom belongs to a shared register: whoever is at a cut point, finds the same in it.
fn is_of_wave<S: Code, T: Code>(source: &S, target: &T, (side, slot, _): Atom) -> bool {
    match side {
        Side::Source => source.shared_slots().contains(&slot),
        Side::Target => target.shared_slots().contains(&slot),
    }
}

/// Returns true if a segment from a cut point goes back to a header: that of a loop around it, or its own.
fn is_back(graph: &Graph, from: Cut, to: u32) -> bool {
    match from {
        Cut::Entry => false,
        Cut::Header(from) => graph.loops[to as usize].contains(graph.loops[from as usize].header),
    }
}

/// Notes what the source assumes in a segment, and where it goes on.
fn note_paths<S: Code>(source: &S, segment: &Segment, engine: &mut Engine<'_>) {
    let forward = |goal| match goal {
        Goal::Header(number) => !is_back(source.graph(), segment.cut, number),
        Goal::End | Goal::Killed => true,
    };
    let exits = segment.source.transitions.iter().map(|transition| (transition.goal, transition.path));
    engine.paths.note(segment.cut, &engine.assumptions, exits.filter(|&(goal, _)| forward(goal)).collect());
}

/// Runs both sides of a segment.
fn both<S: Code, T: Code>(
    source: &S,
    target: &T,
    cut: Cut,
    terms: &mut Terms,
    engine: &mut Engine<'_>,
) -> Result<Segment, Failure> {
    engine.cut = cut;
    engine.behind.iter_mut().for_each(Behind::begin);
    engine.events = Events::default();
    engine.partners.begin_segment();
    engine.assumptions.clear();
    engine.obligations.clear();
    engine.sweeper.begin();
    engine.registers.clear();
    if let Cut::Header(number) = cut {
        let header = &mut engine.headers[number as usize];
        let atoms: Vec<Atom> = header.atoms().filter(|&atom| is_of_wave(source, target, atom)).collect();
        for atom in atoms {
            let term = header.term(terms, number, atom);
            engine.registers.entry(term).or_default().push((atom.0, atom.1));
        }
    }
    let facts = std::mem::take(&mut engine.facts);
    engine.side = Side::Source;
    let source = run::run(source, cut, terms, engine, &facts);
    engine.side = Side::Target;
    let target = source.and_then(|source| {
        for transition in &source.transitions {
            engine.sweeper.learn(terms, transition.path);
        }
        Ok((source, run::run(target, cut, terms, engine, &facts)?))
    });
    engine.facts = facts;
    let (source, target) = target?;
    if !engine.headers.is_empty() {
        for (side, run) in [(Side::Source, &source), (Side::Target, &target)] {
            engine.learn_goals(terms, side, run);
        }
    }
    if let Some(event) = engine.events.left_over()
        && !left_out(Guard::Stores)
    {
        let what = format!("the target has no `{}` like that of the source (site {})", event.what, event.site);
        engine.fail(|| what);
    }
    Ok(Segment { cut, source, target })
}

/// Both sides must go the same ways.
fn compare_ways(segment: &Segment, terms: &mut Terms, engine: &mut Engine<'_>) {
    let goals = |run: &Run| -> Vec<Goal> { run.transitions.iter().map(|transition| transition.goal).collect() };
    let (a, b) = (goals(&segment.source), goals(&segment.target));
    if a != b && !left_out(Guard::Exits) {
        engine.fail(|| format!("from {:?} the source goes to {a:?}, the target to {b:?}", segment.cut));
        return;
    }
    for (a, b) in segment.source.transitions.iter().zip(&segment.target.transitions) {
        let path = engine.sweeper.sweep(terms, b.path);
        let goal = terms.eq(1, a.path, path);
        let goal = unless_left_out(terms, Guard::Exits, goal);
        let what = format!("the way from {:?} to {:?}", segment.cut, a.goal);
        engine.obligations.push(Obligation::at_end(what, goal));
    }
}

/// The terms of all atoms of a header on a way to it.
fn arrive<S: Code, T: Code>(
    source: &S,
    target: &T,
    segment: &mut Segment,
    transition: usize,
    number: u32,
    terms: &mut Terms,
    engine: &mut Engine<'_>,
) -> Vec<Term> {
    let mut list = Vec::new();
    let mut values: FxHashMap<(Side, Slot), Value> = FxHashMap::default();
    let mut at = 0;
    // Looking an atom up may ask for one more, if the way is from this header.
    while let Some((side, slot, part)) = engine.headers[number as usize].atom(at) {
        at += 1;
        let value = match values.get(&(side, slot)) {
            Some(&value) => value,
            None => {
                let value = segment.value_at(side, (source, target), transition, slot, terms, engine);
                values.insert((side, slot), value);
                value
            }
        };
        list.push(match part {
            Part::Bits => value.bits,
            Part::Free => value.free,
        });
    }
    list
}

/// What both sides leave behind.
fn at_end<S: Code, T: Code>(
    source: &S,
    target: &T,
    segment: &mut Segment,
    transition: usize,
    path: Term,
    terms: &mut Terms,
    engine: &mut Engine<'_>,
) {
    let mut value = |slot: Slot, terms: &mut Terms, engine: &mut Engine<'_>| {
        let a = segment.value_at(Side::Source, (source, target), transition, slot, terms, engine);
        (a, segment.value_at(Side::Target, (source, target), transition, slot, terms, engine))
    };
    let (a, b) = value(slot::DEMOTED, terms, engine);
    let goal = agreement(terms, path, a, b);
    let goal = unless_left_out(terms, Guard::Demoted, goal);
    engine.obligations.push(Obligation::at_end("which lanes are demoted".to_owned(), goal));
    for version in slot::versions() {
        let (a, b) = value(version, terms, engine);
        // A lane's own memory, and the constant file, are not seen.
        if version == slot::memory(Space::Scratch) || version == slot::CONSTANTS {
            continue;
        }
        let goal = terms.eq(32, a.bits, b.bits);
        let goal = unless_left_out(terms, Guard::Stores, goal);
        engine.obligations.push(Obligation::at_end(format!("memory {version} at the end"), goal));
    }
    // Nobody looks at what helper lanes and demoted ones write.
    let helper = is_helper(terms, source.launch());
    let unseen = terms.or(1, helper, a.bits);
    let seen = terms.not(1, unseen);
    let path = terms.and(1, path, seen);
    for OutputSlot { base, component, .. } in source.outputs() {
        let (a, b) = value(slot::output(base, component), terms, engine);
        let goal = agreement(terms, path, a, b);
        let goal = unless_left_out(terms, Guard::Outputs, goal);
        engine.obligations.push(Obligation::at_end(format!("output {base}.{component}"), goal));
    }
}

/// A goal that a guard asks for.
fn unless_left_out(terms: &mut Terms, guard: Guard, goal: Term) -> Term {
    if terms.as_constant(goal) != Some(1) && left_out(guard) { terms.constant(1, 1) } else { goal }
}

/// Shows what must hold at the end of a segment.
fn discharge(terms: &mut Terms, engine: &mut Engine<'_>) {
    for Obligation { what, goal, assumed } in std::mem::take(&mut engine.obligations) {
        engine.counted += 1;
        if engine.failure.is_some() || !engine.last {
            continue;
        }
        if !engine.holds(terms, assumed, goal) {
            let cut = engine.cut;
            let goal = terms.brief(goal);
            engine.fail(|| format!("{what} (from {cut:?}): {goal}"));
        }
    }
}
