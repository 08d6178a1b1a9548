//! The rounds of a proof.

use super::behind::Behind;
use super::events::{Events, Happened, Partners};
use super::inputs::Seeker;
use super::relation::{Header, Part, Way};
use super::sweep::{Side, Sweeper};
use super::{Failure, Limits, Proof};
use crate::semantics::domain::Domain;
use crate::semantics::memory::Space;
use crate::solver::Solver;
use crate::symbolic::{
    Code, Cut, Event, EventKind, Facts, Goal, Goals, Oracle, Run, Site, Slot, UNIFORM, Value, is_helper, leave_as_one,
    run, slot, version_name,
};
use crate::terms::{Term, Terms};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// More rounds than this are not tried: each splits a class, so there is an end, but not soon.
const ROUNDS: usize = 64;

/// Something that must hold if the source has a meaning.
struct Obligation {
    /// What it is about.
    what: String,
    /// The term.
    goal: Term,
}

/// What is known while two programs are run side by side.
struct Engine<'a> {
    sweeper: Sweeper<'a>,
    headers: Vec<Header>,
    /// What shared registers hold behind each loop.
    behind: Vec<Behind>,
    facts: Facts,
    /// Memories that may hold poison.
    poisonous: FxHashSet<Space>,
    partners: Partners,
    /// The relation holds still: what it is for is to be shown.
    last: bool,
    /// Where the segment at work begins, and whose it is.
    cut: Cut,
    side: Side,
    events: Events,
    /// What must hold in this segment for the source to have a meaning.
    assumptions: Vec<Term>,
    obligations: Vec<Obligation>,
    /// What went wrong first.
    failure: Option<String>,
    /// From which address on a lane's own memory is like registers, and why it is not.
    own_from: Option<u32>,
    lost: Option<&'static str>,
    /// Where lanes go from each cut point, and whether some do and others do not.
    goals: FxHashMap<(Side, Cut), Goals>,
    /// What is written to shared registers, if it is the same in all segments that come there.
    written: FxHashMap<(Side, Site), Option<Value>>,
    /// What was found out in this round is not what was assumed in it.
    surprised: bool,
    /// The source has no meaning, whatever the input.
    vacuous: bool,
    counted: usize,
}

impl Engine<'_> {
    fn fail(&mut self, what: impl FnOnce() -> String) {
        if self.failure.is_none() {
            self.failure = Some(what());
        }
    }

    /// Where lanes go from a cut point, as far as that is known.
    fn goals_of(&self, side: Side, cut: Cut) -> &[(Goal, bool)] {
        self.goals.get(&(side, cut)).map_or(&[], |goals| goals)
    }

    /// Where lanes go from a cut point. What was once found to be so is never taken back, so there is an end.
    fn learn_goals(&mut self, terms: &Terms, side: Side, run: &Run) {
        let known = self.goals.entry((side, self.cut)).or_default();
        for (goal, part) in run.goals(terms, &self.facts) {
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
    fn forget(&mut self) {
        self.headers.iter_mut().for_each(Header::forget);
        self.behind.iter_mut().for_each(|behind| *behind = Behind::default());
        self.goals.clear();
        self.written.clear();
    }

    /// Whether, where `path` holds and the source's value is defined, the target's is too and is the same.
    fn agrees(&mut self, terms: &mut Terms, path: Term, source: Value, target: Value) -> bool {
        let goal = agreement(terms, path, source, target);
        self.sweeper.holds(terms, &self.assumptions, goal)
    }
}

/// That the target's value is right on a path.
fn agreement(terms: &mut Terms, path: Term, source: Value, target: Value) -> Term {
    let (undefined, bad) = (source.any_poison(terms), target.any_poison(terms));
    let width = terms.width(source.bits);
    if terms.width(target.bits) != width {
        return terms.constant(1, 0);
    }
    let same = terms.eq(width, source.bits, target.bits);
    let good = terms.not(1, bad);
    let right = terms.and(1, same, good);
    let right = terms.or(1, undefined, right);
    let elsewhere = terms.not(1, path);
    terms.or(1, elsewhere, right)
}

impl Oracle for Engine<'_> {
    fn start(&mut self, terms: &mut Terms, at: Slot) -> Value {
        match self.cut {
            Cut::Entry if slot::is_version(at) => {
                let name = terms.name(&format!("{} at entry", version_name(at)));
                let bits = terms.variable(32, name);
                Value::defined(terms, bits)
            }
            Cut::Entry if at == slot::DEMOTED => {
                let no = terms.constant(1, 0);
                Value::defined(terms, no)
            }
            Cut::Entry => Value::undefined(terms),
            Cut::Header(number) => {
                let side = self.side;
                let header = &mut self.headers[number as usize];
                if slot::is_version(at) || at == slot::DEMOTED {
                    let bits = header.term(terms, number, (side, at, Part::Bits));
                    return Value::defined(terms, bits);
                }
                let [bits, low, high] = Part::ALL.map(|part| header.term(terms, number, (side, at, part)));
                if side == Side::Source {
                    self.sweeper.learn(terms, bits);
                }
                Value { bits, poison: [low, high] }
            }
        }
    }

    fn value(&mut self, terms: &mut Terms, value: Value) -> Value {
        if self.sweeper.is_late() {
            // What comes out does not matter any more, but it should come soon.
            return Value { bits: terms.constant(terms.width(value.bits), 0), ..value };
        }
        let Value { bits, poison: [low, high] } = value;
        match self.side {
            Side::Source => {
                let bits = self.sweeper.with_products(terms, bits);
                let bits = self.sweeper.with_numbers(terms, bits);
                self.sweeper.learn(terms, bits);
                let bits = self.sweeper.close(terms, bits);
                self.sweeper.learn(terms, low);
                if high != low {
                    self.sweeper.learn(terms, high);
                }
                Value { bits, ..value }
            }
            Side::Target => {
                let bits = self.sweeper.sweep(terms, bits);
                let bits = self.sweeper.close(terms, bits);
                let poison = if low == high {
                    [self.sweeper.sweep(terms, low); 2]
                } else {
                    [low, high].map(|poison| self.sweeper.sweep(terms, poison))
                };
                Value { bits, poison }
            }
        }
    }

    fn holds_poison(&self, space: Space) -> bool {
        space == Space::Scratch || self.poisonous.contains(&space)
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

    fn goals(&self, cut: Cut) -> &[(Goal, bool)] {
        self.goals_of(self.side, cut)
    }

    fn written_everywhere(&mut self, site: Site, value: Option<Value>) -> bool {
        let written = self.written.entry((self.side, site)).or_insert(value);
        if written.is_some() && *written != value {
            self.surprised = true;
            *written = None;
        }
        written.is_some()
    }

    fn others(&mut self, terms: &mut Terms, block: u32, slot: Slot) -> Option<Value> {
        let (side, cut) = (self.side, self.cut);
        if slot::is_version(slot) {
            let done = self.partners.done_by_others(side, block, slot)?;
            let name = terms.name(&format!("{} behind {done} of others from {cut:?}", version_name(slot)));
            let bits = terms.variable(32, name);
            return Some(Value::defined(terms, bits));
        }
        let mut variable = |what: &str, width: u32| {
            let name =
                terms.name(&format!("{UNIFORM}{what} of {side:?} {slot} behind block {block} of others from {cut:?}"));
            terms.variable(width, name)
        };
        Some(Value { bits: variable("bits", 32), poison: [variable("low poison", 1), variable("high poison", 1)] })
    }

    fn own_from(&self) -> Option<u32> {
        self.own_from
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
            if event.setting.alone
                && let Some(results) = self.events.same(&event)
            {
                return results;
            }
            let results = fresh(terms, &event, self.cut, Side::Source);
            if let EventKind::Memory(space) = event.kind
                && !self.holds_poison(space)
                && let Some(stored) = event.args.last()
                && terms.as_constant(stored.poison[0]) != Some(0)
            {
                self.poisonous.insert(space);
                self.surprised = true;
            }
            for term in event.args.iter().map(|arg| arg.bits).chain([event.path]).chain(results.iter().copied()) {
                self.sweeper.learn(terms, term);
            }
            if !never {
                self.partners.note(Side::Source, &event, self.cut);
                self.events.push(Happened { event, results: results.clone() });
            }
            return results;
        }
        if never {
            return fresh(terms, &event, self.cut, Side::Target);
        }
        self.partners.note(Side::Target, &event, self.cut);
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
        candidates.truncate(8);
        let mut why = None;
        for at in candidates {
            let source = self.events.get(at).event.clone();
            self.counted += 1;
            let same_path = terms.eq(1, source.path, event.path);
            let same_before = match (source.setting.before, event.setting.before) {
                (Some(source), Some(target)) => terms.eq(32, source, target),
                _ => terms.constant(1, 1),
            };
            let differs = if !self.sweeper.holds(terms, &self.assumptions, same_before) {
                Some("what is in memory before".to_owned())
            } else if !self.sweeper.holds(terms, &self.assumptions, same_path) {
                Some(format!("its path {} for {}", terms.brief(event.path), terms.brief(source.path)))
            } else {
                let args = || source.args.iter().zip(&event.args);
                let bad = args().position(|(&a, &b)| !self.agrees(terms, source.path, a, b));
                bad.map(|i| {
                    let [source, target] = [&source, &event].map(|event| terms.brief(event.args[i].bits));
                    format!("operand {i}, {target} for {source},")
                })
            };
            let Some(differs) = differs else {
                let results = self.events.get(at).results.clone();
                self.events.take(at, &event, &mut self.partners);
                return results;
            };
            why.get_or_insert(differs);
        }
        if event.kind != EventKind::OneLane {
            let why = why.map_or_else(String::new, |why| format!(": {why} is not shown to be the same"));
            self.fail(|| {
                format!("the source has no `{}` like that of the target (site {}){why}", event.what, event.site)
            });
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
            Side::Target => self.obligations.push(Obligation { what: why.to_owned(), goal }),
        }
    }
}

/// Results that nothing is known of.
fn fresh(terms: &mut Terms, event: &Event, cut: Cut, side: Side) -> SmallVec<[Term; 4]> {
    let version = match event.kind {
        EventKind::Memory(_) | EventKind::Constants => Some(32),
        EventKind::Lanes | EventKind::OneLane => None,
    };
    let widths = event.results.iter().copied().chain(version);
    let prefix = if event.uniform { UNIFORM } else { "" };
    let names = widths.enumerate().map(|(i, width)| {
        let name = terms.name(&format!("{prefix}result {i} of {side:?} {} from {cut:?}", event.site));
        terms.variable(width.into(), name)
    });
    names.collect()
}

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
}

/// Shows that `target` does what `source` does.
pub(super) fn prove<S: Code, T: Code>(
    source: &S,
    target: &T,
    Choice { own_from, products, deep }: Choice,
    limits: &Limits,
    solver: &mut dyn Solver,
) -> Result<Proof, Failure> {
    let loops = source.graph().loops.len();
    if loops != target.graph().loops.len() {
        let what = format!("{loops} loops in the source, {} in the target", target.graph().loops.len());
        return Err(Failure::not_shown(what));
    }
    let [had, has] = [source.scratch_bytes(), target.scratch_bytes()];
    if has < had && source.uses_scratch() && own_from != Some(0) {
        return Err(Failure::not_shown(format!(
            "a lane has {had} bytes of its own in the source, {has} in the target"
        )));
    }
    let mut terms = Terms::new();
    let mut engine = Engine {
        sweeper: Sweeper::new(solver, *limits),
        headers: (0..loops).map(|_| Header::default()).collect(),
        behind: (0..loops).map(|_| Behind::default()).collect(),
        facts: Facts::default(),
        poisonous: FxHashSet::default(),
        partners: Partners::default(),
        last: false,
        cut: Cut::Entry,
        side: Side::Source,
        events: Events::default(),
        assumptions: Vec::new(),
        obligations: Vec::new(),
        failure: None,
        own_from,
        lost: None,
        goals: FxHashMap::default(),
        written: FxHashMap::default(),
        surprised: false,
        vacuous: false,
        counted: 0,
    };
    // First, what locations matter; then the relation; when it holds still, whether it is enough.
    engine.sweeper.scouting = loops > 0;
    engine.sweeper.products = products;
    engine.sweeper.deep = deep;
    let mut last = loops == 0;
    for round in 1..=ROUNDS {
        engine.partners.begin();
        engine.failure = None;
        engine.counted = 0;
        engine.last = last;
        engine.sweeper.seeker = (last && limits.inputs).then(|| Seeker::new(source.launch()));
        let (changed, cuts) = one_round(source, target, &mut terms, &mut engine)?;
        if engine.sweeper.late {
            let at = engine.failure.take().map(|what| format!("; {what}")).unwrap_or_default();
            return Err(Failure::Time(at));
        }
        if let Some(why) = engine.lost {
            return Err(Failure::not_shown(why));
        }
        if engine.vacuous {
            return Err(Failure::Vacuous);
        }
        if changed {
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
        if let Some((target, source)) = engine.partners.apart() {
            engine.fail(|| {
                format!("other lanes meet at site {target} of the target than at site {source} of the source")
            });
        }
        return match engine.failure {
            Some(what) => {
                let inputs = engine.sweeper.seeker.map(|seeker| seeker.found).unwrap_or_default();
                Err(Failure::NotShown { what, inputs })
            }
            None => Ok(Proof {
                assumptions: assumptions(&terms, &engine),
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
fn assumptions(terms: &Terms, engine: &Engine<'_>) -> Vec<&'static str> {
    let mut list: Vec<&'static str> = engine.sweeper.lemmas.iter().copied().collect();
    if terms.has_float_arithmetic() {
        list.push(super::FLOATS);
    }
    list
}

/// Runs all segments that are reached. Whether the relation has changed, and how many there were.
fn one_round<S: Code, T: Code>(
    source: &S,
    target: &T,
    terms: &mut Terms,
    engine: &mut Engine<'_>,
) -> Result<(bool, usize), Failure> {
    let mut reached = vec![Cut::Entry];
    let mut ways: FxHashMap<u32, Vec<Way>> = FxHashMap::default();
    let mut at = 0;
    while let Some(&cut) = reached.get(at) {
        at += 1;
        let mut segment = both(source, target, cut, terms, engine)?;
        compare_ways(&segment, terms, engine);
        let count = segment.source.transitions.len().min(segment.target.transitions.len());
        for i in 0..count {
            let (goal, path) = (segment.source.transitions[i].goal, segment.source.transitions[i].path);
            match goal {
                Goal::Header(number) => {
                    let there = source.graph().loops[number as usize].header;
                    let back = match cut {
                        Cut::Entry => false,
                        Cut::Header(from) => {
                            let own = source.graph().loops[from as usize].header;
                            source.graph().loops[number as usize].contains(own)
                        }
                    };
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
                header.refine(terms, ways, &engine.facts);
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
                changed |= header.refine(terms, ways, &engine.facts);
            }
        }
        return Ok((changed, reached.len()));
    }
    for (number, header) in engine.headers.iter_mut().enumerate() {
        let Some(ways) = ways.get(&(number as u32)) else { continue };
        changed |= header.refine(terms, ways, &engine.facts);
    }
    Ok((changed, reached.len()))
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
    if let Some(event) = engine.events.left_over() {
        let what = format!("the target has no `{}` like that of the source (site {})", event.what, event.site);
        engine.fail(|| what);
    }
    Ok(Segment { cut, source, target })
}

/// Both sides must go the same ways.
fn compare_ways(segment: &Segment, terms: &mut Terms, engine: &mut Engine<'_>) {
    let goals = |run: &Run| -> Vec<Goal> { run.transitions.iter().map(|transition| transition.goal).collect() };
    let (a, b) = (goals(&segment.source), goals(&segment.target));
    if a != b {
        engine.fail(|| format!("from {:?} the source goes to {a:?}, the target to {b:?}", segment.cut));
        return;
    }
    for (a, b) in segment.source.transitions.iter().zip(&segment.target.transitions) {
        let path = engine.sweeper.sweep(terms, b.path);
        let goal = terms.eq(1, a.path, path);
        let what = format!("the way from {:?} to {:?}", segment.cut, a.goal);
        engine.obligations.push(Obligation { what, goal });
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
            Part::LowPoison => value.poison[0],
            Part::HighPoison => value.poison[1],
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
    engine.obligations.push(Obligation { what: "which lanes are demoted".to_owned(), goal });
    for version in slot::versions() {
        let (a, b) = value(version, terms, engine);
        // A lane's own memory, and the constant file, are not seen.
        if version == slot::memory(Space::Scratch) || version == slot::CONSTANTS {
            continue;
        }
        let goal = terms.eq(32, a.bits, b.bits);
        engine.obligations.push(Obligation { what: format!("memory {version} at the end"), goal });
    }
    // Nobody looks at what helper lanes and demoted ones write.
    let helper = is_helper(terms, source.launch());
    let unseen = terms.or(1, helper, a.bits);
    let seen = terms.not(1, unseen);
    let path = terms.and(1, path, seen);
    for (base, component) in source.outputs() {
        let (a, b) = value(slot::output(base, component), terms, engine);
        let goal = agreement(terms, path, a, b);
        engine.obligations.push(Obligation { what: format!("output {base}.{component}"), goal });
    }
}

/// Shows what must hold at the end of a segment.
fn discharge(terms: &mut Terms, engine: &mut Engine<'_>) {
    for Obligation { what, goal } in std::mem::take(&mut engine.obligations) {
        engine.counted += 1;
        if engine.failure.is_some() || !engine.last {
            continue;
        }
        if !engine.sweeper.holds(terms, &engine.assumptions, goal) {
            let cut = engine.cut;
            let goal = terms.brief(goal);
            engine.fail(|| format!("{what} (from {cut:?}): {goal}"));
        }
    }
}
