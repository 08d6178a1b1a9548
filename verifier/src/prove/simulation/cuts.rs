//! Where loops are cut: at their headers, or, where no proof is found that way, behind the test that they begin with.
//!
//! A loop `while` and the same loop as `if` and `do while` agree at no header: what one does at the beginning of an iteration
//! the other does at the end of the one before. [`Graph::rotated`] gives a program in which the iterations begin elsewhere; it
//! says why its wave does the same. So a proof about that graph is one about the program, whichever is found.

use super::engine::Undefined;
use super::memories::Memories;
use super::proof::Choice;
use super::{Failure, Limits, Proof, proof};
use crate::prove::solver::Solver;
use crate::prove::symbolic::{Code, Graph, View};
use cpu_time::ThreadTime;
use smallvec::{SmallVec, smallvec};

/// How deep terms of the source are: long programs want them shallow, and some short ones need more.
const DEPTHS: [u8; 2] = [4, 6];

/// How much of the time there is, when the first choice has failed, for all others: few proofs are found by these, and a program of which
/// the first took long has no better chance with the next.
const MORE: f64 = 0.2;

/// Shows that `target` does what `source` does, with the first choice of cut points, and of what a lane's own memory is taken
/// for, that does. `products` if the target may have sequences where the source has products.
pub(super) fn prove<S: Code, T: Code>(
    source: &S,
    target: &T,
    products: bool,
    limits: &Limits,
    solver: &mut dyn Solver,
) -> Result<Proof, Failure> {
    let start = ThreadTime::now();
    let memories = memories(source, target);
    // Without the assumption first.
    let images: &[bool] =
        if Memories::new(source, target, false).has_images_and_buffers() { &[false, true] } else { &[false] };
    let graphs = graphs(source.graph(), target.graph());
    let undefined = of_undefined(products);
    let mut has_undefined = false;
    let mut failure = None;
    let mut until = limits.time;
    for (deep, graphs) in DEPTHS.iter().flat_map(|&deep| graphs.iter().map(move |graphs| (deep, graphs))) {
        // With an input on which it may be different it is not tried again with deeper terms.
        if deep != DEPTHS[0] && matches!(&failure, Some(Failure::NotShown { inputs, .. }) if !inputs.is_empty()) {
            break;
        }
        let (source, target) = (View { code: source, graph: &graphs.0 }, View { code: target, graph: &graphs.1 });
        let choices = memories.iter().flat_map(|&own| images.iter().map(move |&apart| (own, apart)));
        for ((own_from, images_apart), undefined) in
            choices.flat_map(|choice| undefined.iter().map(move |&undefined| (choice, undefined)))
        {
            // Where nothing is undefined there is nothing to be chosen.
            if undefined != of_undefined(products)[0] && !has_undefined {
                continue;
            }
            let Some(time) = until.checked_sub(start.elapsed()) else { break };
            let choice = Choice { own_from, products, deep, images_apart, undefined };
            let limits = Limits { time, inputs: limits.inputs && failure.is_none(), ..*limits };
            match proof::prove(&source, &target, choice, &mut has_undefined, &limits, solver) {
                // The first one says most.
                Err(why @ Failure::NotShown { .. }) if failure.is_none() => {
                    failure = Some(why);
                    until = until.min(start.elapsed() + limits.time.mul_f64(MORE));
                }
                Err(Failure::NotShown { .. } | Failure::Time(_)) if failure.is_some() => {}
                proof => return proof,
            }
        }
    }
    Err(failure.unwrap_or_else(|| Failure::Time(String::new())))
}

/// What may be chosen for undefined words of the source, the best choice first: an instruction that is selected reads 0.
fn of_undefined(selected: bool) -> [Undefined; 3] {
    match selected {
        true => [Undefined::Zero, Undefined::Same, Undefined::Ones],
        false => [Undefined::Same, Undefined::Zero, Undefined::Ones],
    }
}

/// From which addresses on a lane's own memory may be taken for registers, the best choice first.
fn memories<S: Code, T: Code>(source: &S, target: &T) -> SmallVec<[Option<u32>; 2]> {
    let (had, has) = (source.scratch_bytes(), target.scratch_bytes());
    match (source.uses_scratch(), target.uses_scratch()) {
        (false, false) => smallvec![None],
        (false, true) | (true, false) => smallvec![Some(0)],
        (true, true) if has > had => smallvec![Some(had), Some(0)],
        (true, true) => smallvec![None, Some(0)],
    }
}

/// Graphs of both programs, the best choice first.
fn graphs(source: &Graph, target: &Graph) -> Vec<(Graph, Graph)> {
    let loops = source.loops.len();
    // Where all edges are the same, headers are as good as anything.
    if loops == 0 || loops != target.loops.len() || source.successors == target.successors {
        return vec![(source.clone(), target.clone())];
    }
    let tests_first = |graph: &Graph| (0..loops as u32).map(|number| graph.rotated(number).is_some()).collect();
    let (of_source, of_target): (Vec<bool>, Vec<bool>) = (tests_first(source), tests_first(target));
    let only = |a: &[bool], b: &[bool]| a.iter().zip(b).map(|(&a, &b)| a && !b).collect::<Vec<bool>>();
    let none = vec![false; loops];
    // Where one tests first and the other does not; none; all that can be.
    let mut wanted = vec![(only(&of_source, &of_target), only(&of_target, &of_source))];
    for choice in [(none.clone(), none.clone()), (of_source, none.clone()), (none, of_target)] {
        if !wanted.contains(&choice) {
            wanted.push(choice);
        }
    }
    wanted.iter().map(|(a, b)| (rotated(source, a), rotated(target, b))).collect()
}

/// A graph with some of its loops rotated.
fn rotated(graph: &Graph, which: &[bool]) -> Graph {
    let mut graph = graph.clone();
    for number in (0..which.len()).filter(|&number| which[number]) {
        // What was to be rotated may be in what another one has twice.
        if let Some(rotated) = graph.rotated(number as u32) {
            graph = rotated;
        }
    }
    graph
}
