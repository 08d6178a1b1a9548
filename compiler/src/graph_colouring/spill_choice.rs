//! The node to spill: the one with the largest benefit per cost.
//!
//! The *benefit* of spilling a node is the part of its class that its neighbours may block, the sum of `q / p`: the
//! registers that the node takes from others. The *cost* is given with the node. Candidates are the nodes that were
//! coloured before one failed, and that one: spilling a node that is still on the stack does not help it.

use super::classes::Classes;
use super::graph::{Graph, Node};
use super::select::Uncoloured;

/// The benefit of spilling a node.
pub fn benefit(graph: &Graph, classes: &Classes, node: Node) -> f32 {
    let p = classes.p(graph.class(node)).max(1);
    graph.q_total(classes, node) as f32 / p as f32
}

/// The candidates with a cost, the best first, at most `count`.
pub fn best_spill_nodes(graph: &Graph, classes: &Classes, failure: &Uncoloured, count: usize) -> Vec<Node> {
    let candidates = failure.coloured.iter().chain([&failure.node]).copied().filter(|&node| graph.cost(node) > 0.0);
    let mut rated: Vec<(f32, Node)> =
        candidates.map(|node| (benefit(graph, classes, node) / graph.cost(node), node)).collect();
    rated.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    rated.truncate(count);
    rated.into_iter().map(|(_, node)| node).collect()
}
