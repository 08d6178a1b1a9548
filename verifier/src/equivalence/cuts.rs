//! Where loops are cut: at their headers, or, where no proof is found that way, behind the test that they begin with.
//!
//! A loop `while` and the same loop as `if` and `do while` agree at no header: what one does at the beginning of an iteration
//! the other does at the end of the one before. [`Graph::rotated`] gives a program in which the iterations begin elsewhere; it
//! says why its wave does the same. So a proof about that graph is one about the program, whichever is found.

use super::{Failure, Limits, Proof, proof};
use crate::solver::Solver;
use crate::symbolic::{Code, Graph, View};
use cpu_time::ThreadTime;

/// Shows that `target` does what `source` does, with the first choice of cut points that does.
pub(super) fn prove<S: Code, T: Code>(
    source: &S,
    target: &T,
    limits: &Limits,
    solver: &mut dyn Solver,
) -> Result<Proof, Failure> {
    let start = ThreadTime::now();
    let plain = proof::prove(source, target, limits, solver);
    let Err(Failure::NotShown(_)) = plain else { return plain };
    for (of_source, of_target) in choices(source.graph(), target.graph()) {
        let Some(time) = limits.time.checked_sub(start.elapsed()) else { break };
        let (source, target) = (View { code: source, graph: of_source }, View { code: target, graph: of_target });
        let other = proof::prove(&source, &target, &Limits { time, ..*limits }, solver);
        if other.is_ok() {
            return other;
        }
    }
    plain
}

/// Other graphs of both programs, without doubles.
fn choices(source: &Graph, target: &Graph) -> Vec<(Graph, Graph)> {
    let loops = source.loops.len();
    if loops == 0 || loops != target.loops.len() {
        return Vec::new();
    }
    let tests_first = |graph: &Graph| (0..loops as u32).map(|number| graph.rotated(number).is_some()).collect();
    let (of_source, of_target): (Vec<bool>, Vec<bool>) = (tests_first(source), tests_first(target));
    let only = |a: &[bool], b: &[bool]| a.iter().zip(b).map(|(&a, &b)| a && !b).collect::<Vec<bool>>();
    let none = vec![false; loops];
    // Where one tests first and the other does not; then all that could have been rotated.
    let mut wanted = vec![(none.clone(), none.clone())];
    for choice in [
        (only(&of_source, &of_target), only(&of_target, &of_source)),
        (of_source, none.clone()),
        (none, of_target),
    ] {
        if !wanted.contains(&choice) {
            wanted.push(choice);
        }
    }
    wanted.iter().skip(1).map(|(a, b)| (rotated(source, a), rotated(target, b))).collect()
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
