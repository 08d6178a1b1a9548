//! The choice of cut points: loop headers or, if no proof is found that way, the block after the test at the start of
//! the loop.
//!
//! A `while` loop and the same loop as `if` and `do while` agree at no header: what one does at the beginning of an
//! iteration the other does at the end of the previous one. [`Graph::rotated`] returns an equivalent program whose
//! iterations begin elsewhere, and says why it is equivalent. So a proof about that graph is a proof about the program.

use super::memories::Memories;
use super::proof::Choice;
use super::state::UndefinedChoice;
use super::{Limits, Proof, SimulationFailure, proof};
use crate::prove::solver::Solver;
use crate::prove::symbolic::{Graph, RecutProgram, SymbolicProgram};
use cpu_time::ThreadTime;
use smallvec::{SmallVec, smallvec};

/// Depths of the source's terms: long programs need shallow ones, some short programs need deeper ones.
const DEPTHS: [u8; 2] = [4, 6];

/// The share of the time limit for all other choices when the first has failed. These find few proofs, and if the first
/// choice took long on a program, so do the others.
const MORE: f64 = 0.2;

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
    let mut has_undefined = false;
    let mut failure = None;
    let mut until = limits.time;
    for (deep, graphs) in DEPTHS.iter().flat_map(|&deep| graphs.iter().map(move |graphs| (deep, graphs))) {
        // If there is an input on which they may differ, deeper terms are not tried.
        if deep != DEPTHS[0]
            && matches!(&failure, Some(SimulationFailure::NotShown { inputs, .. }) if !inputs.is_empty())
        {
            break;
        }
        let (source, target) =
            (RecutProgram { code: source, graph: &graphs.0 }, RecutProgram { code: target, graph: &graphs.1 });
        let choices = memories.iter().flat_map(|&own| images.iter().map(move |&apart| (own, apart)));
        let choices = choices.flat_map(|choice| undefined.iter().map(move |&undefined| (choice, undefined)));
        // Ranges of what loops compute take queries of their own.
        let ranges: &[bool] = if source.graph.loops.is_empty() { &[false] } else { &[false, true] };
        for (((scratch_slots_from, images_apart), undefined), narrow) in
            choices.flat_map(|choice| ranges.iter().map(move |&narrow| (choice, narrow)))
        {
            // Nothing is undefined, so there is nothing to choose.
            if undefined != of_undefined(products)[0] && !has_undefined {
                continue;
            }
            let Some(time) = until.checked_sub(start.elapsed()) else { break };
            let choice = Choice { scratch_slots_from, products, deep, images_apart, undefined, narrow };
            let limits = Limits { time, inputs: limits.inputs && failure.is_none(), ..*limits };
            match proof::prove(&source, &target, choice, &mut has_undefined, &limits, solver) {
                // The first failure is the most informative.
                Err(why @ SimulationFailure::NotShown { .. }) if failure.is_none() => {
                    failure = Some(why);
                    until = until.min(start.elapsed() + limits.time.mul_f64(MORE));
                }
                Err(SimulationFailure::NotShown { .. } | SimulationFailure::OutOfTime(_)) if failure.is_some() => {}
                proof => return proof,
            }
        }
    }
    Err(failure.unwrap_or(SimulationFailure::OutOfTime(None)))
}

/// The choices for undefined words of the source, best first: a selected instruction reads 0.
fn of_undefined(selected: bool) -> [UndefinedChoice; 3] {
    match selected {
        true => [UndefinedChoice::Zero, UndefinedChoice::Same, UndefinedChoice::Ones],
        false => [UndefinedChoice::Same, UndefinedChoice::Zero, UndefinedChoice::Ones],
    }
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
