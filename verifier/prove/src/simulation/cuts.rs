//! The choice of cut points: loop headers or, if no proof is found that way, the block after the test at the start of
//! the loop.
//!
//! A `while` loop and the same loop as `if` and `do while` agree at no header: the one tests at the beginning of an
//! iteration, the other at the end of the previous one. [`Graph::rotated`] returns an equivalent program whose
//! iterations begin elsewhere, with the reason for the equivalence. So a proof about that graph is a proof about the
//! program.
//!
//! A loop that all lanes leave after a known number of iterations is no loop in [`Graph::unrolled`]: where there is no
//! proof with it, it is replaced by copies of its blocks in both programs, as the other one may have unrolled it, or
//! computed its result.

use super::memories::Memories;
use super::proof::{Choice, Found, Rules};
use super::state::{SimulationState, UndefinedChoice};
use super::sweep::Side;
use super::{Limits, Proof, SimulationFailure, proof};
use crate::solver::Solver;
use crate::symbolic::{Cut, Graph, RecutProgram, SymbolicProgram, VariableFacts, run};
use cpu_time::ThreadTime;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::Terms;
use smallvec::{SmallVec, smallvec};
use std::time::Duration;

/// Depths of the source's terms: long programs need shallow ones, some short programs need deeper ones.
const DEPTHS: [u8; 2] = [4, 6];

/// The share of the time limit for all other choices when the first has failed. These find few proofs, and if the first
/// choice took long on a program, so do the others.
const MORE: f64 = 0.2;

/// The share of the time limit for the choices with more rules, after those …
const WITH_RULES: f64 = 0.5;

/// … and if the first choice took more than this share of the limit: they take at least as long.
const LONG: f64 = 0.35;
const WITH_RULES_AFTER_LONG: f64 = 0.1;

/// The maximum number of loops whose stores are moved out, one at a time.
const SUNK: usize = 4;

/// The maximum number of iterations of a loop that is unrolled …
const ITERATIONS: u32 = 64;

/// … and of the positions of a graph with unrolled loops.
const POSITIONS: u32 = 1024;

/// Proves that `target` refines `source`, with the first choice that succeeds: of cut points, and of the scratch memory
/// that is treated as registers. `products`: the target may have sequences where the source has products.
pub(super) fn prove<S: SymbolicProgram, T: SymbolicProgram>(
    source: &S,
    target: &T,
    products: bool,
    limits: &Limits,
    solver: &mut dyn Solver,
) -> Result<Proof, SimulationFailure> {
    let start = ThreadTime::now();
    let memories = memories(source, target);
    // First without the assumption.
    let images: &[bool] =
        if Memories::new(source, target, false).has_images_and_buffers() { &[false, true] } else { &[false] };
    let graphs = graphs(source.graph(), target.graph());
    let undefined = of_undefined(products);
    let mut found = Found::default();
    let is_lifted = !source.prints_shapes() && !target.prints_shapes();
    let partners: &[bool] = if is_lifted && source.has_sums() { &[false, true] } else { &[false] };
    let mut attempts = Attempts { source, target, limits, until: limits.time, start, failure: None, is_long: false };
    for (deep, graphs) in DEPTHS.iter().flat_map(|&deep| graphs.iter().map(move |graphs| (deep, graphs))) {
        // If an input was found on which they may differ, deeper terms are not tried.
        if deep != DEPTHS[0] && attempts.has_inputs() {
            break;
        }
        let choices = memories.iter().flat_map(|&own| images.iter().map(move |&apart| (own, apart)));
        let choices = choices.flat_map(|choice| undefined.iter().map(move |&undefined| (choice, undefined)));
        // Ranges of values in loops take queries of their own.
        let ranges: &[bool] = if graphs.0.loops.is_empty() { &[false] } else { &[false, true] };
        let choices = choices.flat_map(|choice| ranges.iter().map(move |&narrow| (choice, narrow)));
        for ((((scratch_slots_from, disjoint_images), undefined), narrow), partners) in
            choices.flat_map(|choice| partners.iter().map(move |&partners| (choice, partners)))
        {
            // Nothing is undefined, so there is nothing to choose.
            if undefined != of_undefined(products)[0] && !found.has_undefined {
                continue;
            }
            let rules = Rules::default();
            let choice =
                Choice { scratch_slots_from, products, deep, disjoint_images, undefined, narrow, partners, rules };
            match attempts.prove(graphs, choice, &mut found, solver) {
                Attempt::Done(result) => return result,
                Attempt::Failed => {}
                Attempt::OutOfTime => break,
            }
        }
    }
    attempts.extend(limits.time.mul_f64(if attempts.is_long { WITH_RULES_AFTER_LONG } else { WITH_RULES }));
    let rules = Rules {
        invariants: true,
        lanes: source.uses().lanes || target.uses().lanes,
        stores: !source.memories().is_empty(),
    };
    for graphs in &with_rules(source, target, graphs, &attempts.limits_left(), solver) {
        let rules = Rules { invariants: !graphs.0.loops.is_empty(), ..rules };
        let is_known =
            graphs.0.successors == source.graph().successors && graphs.1.successors == target.graph().successors;
        let is_known = is_known && graphs.0.sunk.is_none();
        if is_known && rules == Rules::default() {
            continue;
        }
        for (&disjoint_images, &undefined) in
            images.iter().flat_map(|apart| undefined.iter().map(move |it| (apart, it)))
        {
            if undefined != of_undefined(products)[0] && !found.has_undefined {
                continue;
            }
            let (deep, scratch_slots_from, narrow, partners) = (DEPTHS[0], memories[0], false, false);
            let choice =
                Choice { scratch_slots_from, products, deep, disjoint_images, undefined, narrow, partners, rules };
            match attempts.prove(graphs, choice, &mut found, solver) {
                Attempt::Done(result) => return result,
                Attempt::Failed => {}
                Attempt::OutOfTime => break,
            }
        }
    }
    Err(attempts.failure.unwrap_or(SimulationFailure::OutOfTime(None)))
}

/// The pairs of graphs for the attempts with more rules, best first: the first ones of those without, both with all
/// loops rotated, with loops unrolled, and with stores sunk out of a loop of the source.
fn with_rules<S: SymbolicProgram, T: SymbolicProgram>(
    source: &S,
    target: &T,
    graphs: Vec<(Graph, Graph)>,
    limits: &Limits,
    solver: &mut dyn Solver,
) -> Vec<(Graph, Graph)> {
    let (of_source, of_target) = (source.graph(), target.graph());
    let mut list: Vec<(Graph, Graph)> =
        graphs.into_iter().filter(|(a, b)| a.loops.len() == b.loops.len()).take(2).collect();
    let count = of_source.loops.len();
    if count == 0 && of_target.loops.is_empty() {
        return list;
    }
    if count == of_target.loops.len() {
        let all = vec![true; count];
        let both = (rotated(of_source, &all), rotated(of_target, &all));
        if list.iter().all(|(a, b)| a.successors != both.0.successors || b.successors != both.1.successors) {
            list.push(both);
        }
    }
    let sunk: Vec<(Graph, Graph)> = list
        .iter()
        .flat_map(|(a, b)| {
            (0..a.loops.len() as u32).filter_map(|number| Some((a.with_sunk_stores(number)?, b.clone())))
        })
        .take(SUNK)
        .collect();
    let unrolled = (unrolled(source, Side::Source, limits, solver), unrolled(target, Side::Target, limits, solver));
    list.extend(match unrolled {
        (None, None) => None,
        (a, b) => Some((a.unwrap_or_else(|| of_source.clone()), b.unwrap_or_else(|| of_target.clone()))),
    });
    list.extend(sunk);
    list
}

/// The attempts at a proof of two programs.
struct Attempts<'a, S, T> {
    source: &'a S,
    target: &'a T,
    limits: &'a Limits,
    /// The time at which the attempts end, from `start` on.
    until: Duration,
    start: ThreadTime,
    /// The first failure, which is the most informative.
    failure: Option<SimulationFailure>,
    /// True if it took long.
    is_long: bool,
}

/// The outcome of an attempt.
enum Attempt {
    /// The attempts end with this result.
    Done(Result<Proof, SimulationFailure>),
    /// There is no proof with these choices.
    Failed,
    /// There is no time left.
    OutOfTime,
}

impl<S: SymbolicProgram, T: SymbolicProgram> Attempts<'_, S, T> {
    /// Proves the programs with some graphs and choices.
    fn prove(
        &mut self,
        graphs: &(Graph, Graph),
        choice: Choice,
        found: &mut Found,
        solver: &mut dyn Solver,
    ) -> Attempt {
        let (source, target) = (
            RecutProgram { code: self.source, graph: &graphs.0 },
            RecutProgram { code: self.target, graph: &graphs.1 },
        );
        let Some(time) = self.until.checked_sub(self.start.elapsed()) else { return Attempt::OutOfTime };
        let limits = Limits { time, inputs: self.limits.inputs && self.failure.is_none(), ..*self.limits };
        let result = proof::prove(&source, &target, choice, found, &limits, solver);
        match result {
            Err(why @ SimulationFailure::NotShown { .. }) if self.failure.is_none() => {
                self.failure = Some(why);
                self.is_long = self.start.elapsed() > self.limits.time.mul_f64(LONG);
                self.until = self.until.min(self.start.elapsed() + self.limits.time.mul_f64(MORE));
                Attempt::Failed
            }
            Err(SimulationFailure::NotShown { .. } | SimulationFailure::OutOfTime(_)) if self.failure.is_some() => {
                Attempt::Failed
            }
            result => Attempt::Done(result),
        }
    }

    /// Returns true if there is an input on which the programs may differ.
    fn has_inputs(&self) -> bool {
        matches!(&self.failure, Some(SimulationFailure::NotShown { inputs, .. }) if !inputs.is_empty())
    }

    /// Allows more time, within the limit.
    fn extend(&mut self, time: Duration) {
        self.until = self.limits.time.min(self.start.elapsed() + time);
    }

    /// The limits with the time that is left.
    fn limits_left(&self) -> Limits {
        Limits { time: self.until.saturating_sub(self.start.elapsed()), ..*self.limits }
    }
}

/// The graph of a program with the loops unrolled that all lanes leave after a known number of iterations; `None` if
/// there are none.
fn unrolled<C: SymbolicProgram>(code: &C, side: Side, limits: &Limits, solver: &mut dyn Solver) -> Option<Graph> {
    let mut graph = code.graph().clone();
    let mut changed = false;
    // Inner loops first.
    let mut number = graph.loops.len() as u32;
    while let Some(next) = number.checked_sub(1) {
        number = next;
        if let Some(times) = iterations(code, side, &graph, number, limits, solver) {
            graph = graph.unrolled(number, times);
            changed = true;
        }
    }
    changed.then_some(graph)
}

/// The number of iterations of a loop after which all lanes have left it, for any inputs, if that is known.
fn iterations<C: SymbolicProgram>(
    code: &C,
    side: Side,
    graph: &Graph,
    number: u32,
    limits: &Limits,
    solver: &mut dyn Solver,
) -> Option<u32> {
    let l = &graph.loops[number as usize];
    let size = l.last - l.header + 1;
    let most = ITERATIONS.min(POSITIONS.saturating_sub(graph.successors.len() as u32) / size);
    if most < 2 {
        return None;
    }
    let candidate = graph.unrolled(number, most);
    let program = RecutProgram { code, graph: &candidate };
    let mut state = SimulationState::of_one(solver, limits, &candidate.loops, side, code);
    let mut terms = Terms::new();
    let cuts = std::iter::once(Cut::Entry).chain((0..candidate.loops.len() as u32).map(Cut::Header));
    let mut times = 0;
    for cut in cuts {
        state.cut = cut;
        let run = run::run(&program, cut, &mut terms, &mut state, &VariableFacts::default()).ok()?;
        if state.beyond && !left_out(Guard::Beyond) || state.sweeper.late {
            return None;
        }
        let last = (0..most).rfind(|copy| run.has_reached(l.header + copy * size));
        times = times.max(last.map_or(0, |copy| copy + 1));
    }
    (times > 0).then_some(times)
}

/// The choices for undefined words of the source, best first: a selected instruction reads 0.
fn of_undefined(selected: bool) -> [UndefinedChoice; 4] {
    use UndefinedChoice::{Ones, Other, Same, Zero};
    if selected { [Zero, Same, Ones, Other] } else { [Same, Zero, Ones, Other] }
}

/// The addresses from which on scratch memory may be treated as registers, best first.
fn memories<S: SymbolicProgram, T: SymbolicProgram>(source: &S, target: &T) -> SmallVec<[Option<u32>; 2]> {
    let (had, has) = (source.scratch_bytes(), target.scratch_bytes());
    match (source.uses_scratch(), target.uses_scratch()) {
        (false, false) => smallvec![None],
        (false, true) | (true, false) => smallvec![Some(0)],
        (true, true) if has > had => smallvec![Some(had), Some(0)],
        (true, true) => smallvec![None, Some(0)],
    }
}

/// Pairs of graphs of the two programs, best first.
fn graphs(source: &Graph, target: &Graph) -> Vec<(Graph, Graph)> {
    let loops = source.loops.len();
    // All edges are the same, so headers are as good as any cut point.
    if loops == 0 || loops != target.loops.len() || source.successors == target.successors {
        return vec![(source.clone(), target.clone())];
    }
    let tests_first = |graph: &Graph| (0..loops as u32).map(|number| graph.rotated(number).is_some()).collect();
    let (of_source, of_target): (Vec<bool>, Vec<bool>) = (tests_first(source), tests_first(target));
    let only = |a: &[bool], b: &[bool]| a.iter().zip(b).map(|(&a, &b)| a && !b).collect::<Vec<bool>>();
    let none = vec![false; loops];
    // Those that test first in one program only; none; all that can be rotated.
    let mut wanted = vec![(only(&of_source, &of_target), only(&of_target, &of_source))];
    for choice in [(none.clone(), none.clone()), (of_source, none.clone()), (none, of_target)] {
        if !wanted.contains(&choice) {
            wanted.push(choice);
        }
    }
    wanted.iter().map(|(a, b)| (rotated(source, a), rotated(target, b))).collect()
}

/// Rotates some loops of a graph.
fn rotated(graph: &Graph, which: &[bool]) -> Graph {
    let mut graph = graph.clone();
    for number in (0..which.len()).filter(|&number| which[number]) {
        // The loop may be in code that another rotation has copied.
        if let Some(rotated) = graph.rotated(number as u32) {
            graph = rotated;
        }
    }
    graph
}
