//! The state of a simulation proof.

use super::Limits;
use super::events::{EventPairs, SourceEvents};
use super::failure::{Observable, Obstacle};
use super::header_facts::HeaderFacts;
use super::loop_exits::LoopExitRelation;
use super::meaning::Paths;
use super::memories::Memories;
use super::promises::Promises;
use super::proof::Rules;
use super::relation::HeaderRelation;
use super::stores::StoreGroups;
use super::sweep::{Side, Sweeper};
use super::undecided::UndefinedWords;
use crate::solver::Solver;
use crate::symbolic::{
    Cut, ElementAccess, EntryStores, EventOperation, EventSite, Goal, Goals, GraphLoop, LaneTerms, Run, Slot,
    SymbolicProgram, SymbolicValue, VariableFacts,
};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::environment::env::Launch;
use ir3_semantics::interp::Places;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Term, Terms};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::rc::Rc;

/// A condition that must hold if the source is defined.
pub(super) struct Obligation {
    /// The observable that is equal if it holds.
    pub(super) observable: Observable,
    /// The condition.
    pub(super) goal: Term,
    /// The number of the source's assumptions that it may use, in their order; `usize::MAX` for all.
    pub(super) assumed: usize,
}

impl Obligation {
    /// An obligation at the end of a segment, after all assumptions of the source.
    pub(super) fn at_end(observable: Observable, goal: Term) -> Self {
        Self { observable, goal, assumed: usize::MAX }
    }
}

/// The value that is chosen for an undefined word of the source. Any choice is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UndefinedChoice {
    /// The value 0, which Mesa's selection uses if an instruction reads an undefined value.
    Zero,
    /// All bits set: true.
    Ones,
    /// The undefined word of the target in the same place.
    Same,
    /// The other operand of a phi or of a selection; elsewhere the undefined word of the target in the same place.
    Other,
}

/// The state of a proof.
pub(super) struct SimulationState<'a> {
    pub(super) sweeper: Sweeper<'a>,
    pub(super) headers: Vec<HeaderRelation>,
    pub(super) header_facts: Vec<HeaderFacts>,
    /// The facts at the cut point of the current segment.
    pub(super) facts_here: Vec<Term>,
    /// The conditions that the source has computed in this segment.
    pub(super) conditions: Vec<Term>,
    /// The relations of shared registers after each loop.
    pub(super) loop_exits: Vec<LoopExitRelation>,
    /// The shared registers that something reads after a loop, by the number of the loop.
    pub(super) read_after: FxHashSet<(Side, u32, Slot)>,
    /// Those that were first read in this iteration.
    pub(super) first_read_after: FxHashSet<(Side, u32, Slot)>,
    pub(super) facts: VariableFacts,
    /// The memories of both programs, and which of them may alias.
    pub(super) memories: Memories,
    pub(super) partners: EventPairs,
    /// True in the last iteration: the relation is stable, and the obligations are proved.
    pub(super) last: bool,
    /// The cut point where the current segment begins, and its program.
    pub(super) cut: Cut,
    pub(super) side: Side,
    pub(super) events: SourceEvents,
    /// The conditions under which the source is defined in this segment.
    pub(super) assumptions: Vec<Term>,
    pub(super) obligations: Vec<Obligation>,
    /// The segments of the source, for the vacuity check.
    pub(super) paths: Paths,
    /// The first failure.
    pub(super) failure: Option<Obstacle>,
    /// The first event of the target that the source does not have, and that is observed by its results only.
    pub(super) missed: Option<Obstacle>,
    /// The address from which on scratch memory is treated as registers, and the reason why it cannot be.
    pub(super) scratch_slots_from: Option<u32>,
    /// The choice for undefined words of the source, and whether there are any.
    pub(super) undefined: UndefinedChoice,
    pub(super) has_undefined: bool,
    pub(super) undefined_words: UndefinedWords,
    /// The loops of both programs.
    pub(super) loops: [&'a [GraphLoop]; 2],
    /// The shared registers of both programs that have a given term at the cut point.
    pub(super) registers: FxHashMap<Term, SmallVec<[(Side, Slot); 2]>>,
    /// Facts about the locations of the source and of the target.
    pub(super) places: [&'a Places; 2],
    /// The words of the constant file that the source's preamble has stored, with their values; `None` if the target
    /// stores words too.
    pub(super) kept: Option<FxHashMap<u32, Term>>,
    /// The stores to known words of the constant file in the segment of each program from the entry.
    pub(super) entry_stores: [Rc<EntryStores>; 2],
    /// The words of the constant file that either program may read; `None` if that is not known.
    pub(super) read_constants: Option<FxHashSet<u32>>,
    pub(super) give_up: Option<&'static str>,
    /// The goals of each cut point, each with true if some lanes reach it and others do not.
    pub(super) goals: FxHashMap<(Side, Cut), Goals>,
    /// The value written to a shared register at each site, if it is the same in all segments that reach the site.
    pub(super) written: FxHashMap<(Side, EventSite), Option<SymbolicValue>>,
    /// True if this iteration invalidated an assumption: iterate again.
    pub(super) invalidated: bool,
    /// True if the source is nir and the target is not.
    pub(super) is_selection: bool,
    /// True if both texts print the shapes of textures.
    pub(super) printed_shapes: bool,
    /// True if both texts are nir, and name formats and dimensions of images.
    pub(super) both_nir: bool,
    /// True if both programs mark the accesses that are volatile.
    pub(super) names_volatile: bool,
    /// The resources from which the source has loads that may go through the cache of textures.
    pub(super) cacheable: FxHashSet<Term>,
    /// The assumptions that were used, except lemmas, by short names.
    pub(super) assumed: BTreeSet<&'static str>,
    /// True if the source has undefined behaviour on every input.
    pub(super) vacuous: bool,
    /// True if it is unknown whether the source is defined on any input.
    pub(super) meaning_unknown: bool,
    pub(super) counted: usize,
    /// See [`Choice::narrow`](super::proof::Choice::narrow).
    pub(super) narrow: bool,
    /// The promises of programs in nir.
    pub(super) promises: Promises,
    /// See [`Choice::rules`](super::proof::Choice::rules).
    pub(super) rules: Rules,
    /// Values of other lanes.
    pub(super) lane_terms: LaneTerms,
    /// Stores of the target without partners.
    pub(super) groups: StoreGroups,
    /// The stores of the source that are moved out of a loop.
    pub(super) sunk: Vec<(EventSite, EventOperation, ElementAccess)>,
    /// True if stores of the target are paired in groups.
    pub(super) grouped: bool,
    /// The launch parameters.
    pub(super) launch: Launch,
    /// True if loops are only executed to count their iterations.
    pub(super) counting: bool,
    /// True if a lane may have reached a position beyond the copies of a loop.
    pub(super) beyond: bool,
}

impl<'a> SimulationState<'a> {
    /// The state before the first iteration, for programs with this number of loops.
    pub(super) fn new(
        solver: &'a mut dyn Solver,
        limits: &Limits,
        loops: [&'a [GraphLoop]; 2],
        places: [&'a Places; 2],
        scratch_slots_from: Option<u32>,
        memories: Memories,
        undefined: UndefinedChoice,
    ) -> Self {
        Self {
            sweeper: Sweeper::new(solver, *limits),
            headers: loops[0].iter().map(|_| HeaderRelation::default()).collect(),
            header_facts: loops[0].iter().map(|_| HeaderFacts::default()).collect(),
            facts_here: Vec::new(),
            conditions: Vec::new(),
            loop_exits: loops[0].iter().map(|_| LoopExitRelation::default()).collect(),
            read_after: FxHashSet::default(),
            first_read_after: FxHashSet::default(),
            loops,
            registers: FxHashMap::default(),
            facts: VariableFacts::default(),
            memories,
            partners: EventPairs::default(),
            last: false,
            cut: Cut::Entry,
            side: Side::Source,
            events: SourceEvents::default(),
            assumptions: Vec::new(),
            obligations: Vec::new(),
            paths: Paths::default(),
            failure: None,
            missed: None,
            scratch_slots_from,
            undefined,
            has_undefined: false,
            undefined_words: UndefinedWords::default(),
            places,
            kept: None,
            entry_stores: Default::default(),
            read_constants: None,
            give_up: None,
            goals: FxHashMap::default(),
            written: FxHashMap::default(),
            invalidated: false,
            is_selection: false,
            printed_shapes: false,
            both_nir: false,
            names_volatile: false,
            cacheable: FxHashSet::default(),
            assumed: BTreeSet::new(),
            vacuous: false,
            meaning_unknown: false,
            counted: 0,
            narrow: false,
            promises: Promises::default(),
            rules: Rules::default(),
            lane_terms: LaneTerms::default(),
            groups: StoreGroups::default(),
            sunk: Vec::new(),
            grouped: false,
            launch: Launch::default(),
            counting: false,
            beyond: false,
        }
    }

    /// The state in which the iterations of the loops of one program are counted.
    pub(super) fn of_one<C: SymbolicProgram>(
        solver: &'a mut dyn Solver,
        limits: &Limits,
        loops: &'a [GraphLoop],
        side: Side,
        code: &'a C,
    ) -> Self {
        let places = [code.places(); 2];
        let memories = Memories::new(code, code, false);
        let mut state = Self::new(solver, limits, [loops; 2], places, None, memories, UndefinedChoice::Zero);
        state.side = side;
        state.sweeper.scouting = true;
        state.counting = true;
        state
    }

    pub(super) fn fail(&mut self, obstacle: impl FnOnce() -> Obstacle) {
        if self.failure.is_none() {
            self.failure = Some(obstacle());
            // Otherwise another iteration may succeed.
            self.sweeper.failed = self.last && !self.invalidated;
        }
    }

    /// Begins an iteration: adds the registers that were first read after a loop in the previous one. With more of
    /// them there may be a larger relation.
    pub(super) fn begin_iteration(&mut self) {
        if !self.first_read_after.is_empty() {
            self.read_after.extend(self.first_read_after.drain());
            self.loop_exits.iter_mut().for_each(|relation| *relation = LoopExitRelation::default());
        }
    }

    /// The goals of a cut point, as far as known.
    pub(super) fn goals_of(&self, side: Side, cut: Cut) -> &[(Goal, bool)] {
        self.goals.get(&(side, cut)).map_or(&[], |goals| goals)
    }

    /// Records the goals of a cut point. Goals are only ever added, so this terminates.
    pub(super) fn learn_goals(&mut self, terms: &Terms, side: Side, run: &Run) {
        let known = self.goals.entry((side, self.cut)).or_default();
        for (goal, part) in run.goals(terms, &self.facts) {
            let part = part && !left_out(Guard::Divergence);
            match known.iter_mut().find(|known| known.0 == goal) {
                Some(known) => {
                    self.invalidated |= part && !known.1;
                    known.1 |= part;
                }
                None => {
                    self.invalidated = true;
                    known.push((goal, part));
                }
            }
        }
    }

    /// Forgets the assumptions about cut points: with more locations there may be a larger relation.
    pub(super) fn forget(&mut self) {
        self.headers.iter_mut().for_each(HeaderRelation::forget);
        self.loop_exits.iter_mut().for_each(|relation| *relation = LoopExitRelation::default());
        self.goals.clear();
        self.written.clear();
    }

    /// Assumes the facts at the cut point of a segment.
    pub(super) fn assume_header_facts(&mut self, terms: &mut Terms) {
        self.conditions.clear();
        self.facts_here = match self.cut {
            Cut::Entry => Vec::new(),
            Cut::Header(number) => {
                self.header_facts[number as usize].conditions(terms, number, &mut self.headers[number as usize])
            }
        };
        self.assumptions.extend(&self.facts_here);
    }

    /// A path from a cut point, with the facts there.
    pub(super) fn with_header_facts(&mut self, terms: &mut Terms, cut: Cut, path: Term) -> Term {
        debug_assert_eq!(cut, self.cut);
        let facts = terms.conjunction(&self.facts_here);
        terms.and(1, path, facts)
    }

    /// The condition of the source, or its complement, that a condition of the target is where the facts at the cut
    /// point hold.
    pub(super) fn known_condition(&mut self, terms: &mut Terms, condition: Term) -> Term {
        if self.facts_here.is_empty() || terms.as_constant(condition).is_some() {
            return condition;
        }
        let facts = terms.conjunction(&self.facts_here);
        let opposite = terms.not(1, condition);
        if self.conditions.iter().any(|&known| known == condition || known == opposite) {
            return condition;
        }
        for known in self.conditions.clone() {
            let opposite = terms.not(1, known);
            for known in [known, opposite] {
                let goal = terms.eq(1, condition, known);
                if self.sweeper.follows(terms, facts, goal) {
                    return known;
                }
            }
        }
        condition
    }

    /// Returns true if the goal is proved under the first `assumed` assumptions.
    pub(super) fn holds(&mut self, terms: &mut Terms, assumed: usize, goal: Term) -> bool {
        let all = self.assumptions.len();
        let assumed = if assumed < all && left_out(Guard::AssumedBefore) { all } else { assumed.min(all) };
        let assumptions = &self.assumptions[..assumed];
        self.sweeper.holds(terms, assumptions, goal)
    }
}

/// The condition that on a path the target's value refines the source's.
pub(super) fn agreement(terms: &mut Terms, path: Term, source: SymbolicValue, target: SymbolicValue) -> Term {
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
