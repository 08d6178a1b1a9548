//! Dominance: node A dominates node B if every path from the entry to B contains A.
//!
//! After Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm": the immediate dominators are the fixed point
//! of the nearest common dominator of all predecessors. Questions are answered by intervals of a walk of the tree.

use super::Graph;
use crate::maps::map_of;
use cranelift_entity::{EntityRef, SecondaryMap};

/// No immediate dominator: not reachable.
const NONE: u32 = u32::MAX;

/// The dominator tree of a graph.
#[derive(Clone, Debug)]
pub struct DominatorTree<N: EntityRef> {
    order: Vec<N>,
    /// Position in the order plus one; 0 for an unreachable node.
    position: SecondaryMap<N, u32>,
    /// Position of the immediate dominator of each position; the entry's is its own.
    idom: Vec<u32>,
    /// First and last number, in a preorder walk of the tree, of each node's subtree.
    interval: SecondaryMap<N, (u32, u32)>,
}

impl<N: EntityRef> DominatorTree<N> {
    /// Computes the tree. `order` contains all reachable nodes: first the entry, and each other one after its
    /// dominators and after one of its predecessors, as in a reversed [postorder](super::postorder).
    pub fn new<G: Graph<Node = N>>(graph: &G, order: Vec<N>) -> Self {
        let mut position: SecondaryMap<N, u32> = map_of(end(&order));
        for (i, &node) in order.iter().enumerate() {
            position[node] = i as u32 + 1;
        }
        let mut idom = vec![NONE; order.len()];
        if let Some(first) = idom.first_mut() {
            *first = 0;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (i, &node) in order.iter().enumerate().skip(1) {
                let known = graph.predecessors(node).filter_map(|pred| position[pred].checked_sub(1));
                let known = known.filter(|&pred| idom[pred as usize] != NONE);
                let new = known.reduce(|a, b| common_dominator(&idom, a, b));
                if let Some(new) = new
                    && idom[i] != new
                {
                    idom[i] = new;
                    changed = true;
                }
            }
        }
        for (i, &node) in order.iter().enumerate() {
            if idom[i] == NONE {
                position[node] = 0;
            }
        }
        let interval = intervals(&order, &idom);
        Self { order, position, idom, interval }
    }

    /// The nodes in the order that the tree was computed in.
    pub fn order(&self) -> &[N] {
        &self.order
    }

    /// Returns true if a path leads from the entry to `node`.
    pub fn is_reachable(&self, node: N) -> bool {
        self.position[node] != 0
    }

    /// The immediate dominator of a reachable node other than the entry.
    pub fn immediate(&self, node: N) -> Option<N> {
        let position = self.position[node].checked_sub(1).filter(|&position| position != 0)?;
        Some(self.order[self.idom[position as usize] as usize])
    }

    /// Returns true if both nodes are reachable and `a` dominates `b`. Every reachable node dominates itself.
    pub fn dominates(&self, a: N, b: N) -> bool {
        let ((first, last), (at, _)) = (self.interval[a], self.interval[b]);
        self.is_reachable(a) && self.is_reachable(b) && first <= at && at <= last
    }
}

/// The nearest common dominator of two positions. Dominators come first in the order.
fn common_dominator(idom: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        if a > b {
            a = idom[a as usize];
        } else {
            b = idom[b as usize];
        }
    }
    a
}

/// The index after the last one of the nodes.
fn end<N: EntityRef>(order: &[N]) -> usize {
    order.iter().map(|node| node.index() + 1).max().unwrap_or(0)
}

fn intervals<N: EntityRef>(order: &[N], idom: &[u32]) -> SecondaryMap<N, (u32, u32)> {
    let count = order.len();
    // Children come after their parents, so sizes are summed from the end, and numbers are assigned from the start.
    let mut sizes = vec![1u32; count];
    for i in (1..count).rev().filter(|&i| idom[i] != NONE) {
        sizes[idom[i] as usize] += sizes[i];
    }
    let mut interval = map_of(end(order));
    let mut starts = vec![0u32; count];
    let mut next = vec![1u32; count];
    for (i, &node) in order.iter().enumerate().filter(|&(i, _)| idom[i] != NONE) {
        if i > 0 {
            let parent = idom[i] as usize;
            starts[i] = starts[parent] + next[parent];
            next[parent] += sizes[i];
        }
        interval[node] = (starts[i], starts[i] + sizes[i] - 1);
    }
    interval
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::tests::{Edges, Node};
    use crate::graph::{postorder, reachable};

    fn tree(graph: &Edges) -> DominatorTree<Node> {
        let mut order = postorder(graph, Node::new(0));
        order.reverse();
        DominatorTree::new(graph, order)
    }

    #[test]
    fn a_loop_with_a_branch() {
        // 6 is unreachable.
        let edges = vec![(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 1), (4, 5), (6, 5)];
        let tree = tree(&Edges(edges));
        let nodes: Vec<Node> = (0..7).map(Node::new).collect();
        let dominated = |a: usize| -> Vec<usize> { (0..7).filter(|&b| tree.dominates(nodes[a], nodes[b])).collect() };
        assert_eq!(dominated(0), [0, 1, 2, 3, 4, 5]);
        assert_eq!(dominated(1), [1, 2, 3, 4, 5]);
        assert_eq!(dominated(2), [2]);
        assert_eq!(dominated(4), [4, 5]);
        assert_eq!(dominated(6), [0; 0]);
        assert_eq!(tree.immediate(nodes[4]), Some(nodes[1]));
        assert_eq!((tree.immediate(nodes[0]), tree.immediate(nodes[6])), (None, None));
        assert!(!tree.is_reachable(nodes[6]));
    }

    /// Dominance by its definition: `b` is reached, but not without `a`.
    fn dominates(graph: &Edges, a: Node, b: Node) -> bool {
        let reaches = |without: Option<Node>| {
            let entry = Some(Node::new(0)).filter(|&entry| Some(entry) != without);
            let found = reachable(entry, |node, search| {
                graph.successors(node).filter(|&next| Some(next) != without).for_each(|next| search.add(next));
            });
            found.contains(b)
        };
        reaches(None) && (a == b || !reaches(Some(a)))
    }

    /// Graphs of four nodes with up to two successors each, irreducible ones among them.
    #[test]
    fn small_graphs() {
        // The successors of all nodes as a number in base 5; 4 is none.
        for code in (0..5u32.pow(8)).step_by(7) {
            let to = |edge: usize| (code / 5u32.pow(edge as u32) % 5) as usize;
            let edges = (0..8).filter(|&edge| to(edge) < 4).map(|edge| (edge / 2, to(edge))).collect();
            let graph = Edges(edges);
            let tree = tree(&graph);
            for a in (0..4).map(Node::new) {
                for b in (0..4).map(Node::new) {
                    assert_eq!(tree.dominates(a, b), dominates(&graph, a, b), "{code}: {a} {b}");
                }
            }
        }
    }

    /// The order may contain unreachable nodes.
    #[test]
    fn any_order_in_which_dominators_come_first() {
        let graph = Edges(vec![(0, 1), (2, 3), (1, 3)]);
        let tree = DominatorTree::new(&graph, (0..4).map(Node::new).collect());
        assert!(!tree.is_reachable(Node::new(2)));
        assert_eq!(tree.immediate(Node::new(3)), Some(Node::new(1)));
        assert!(!DominatorTree::new(&graph, Vec::new()).is_reachable(Node::new(0)));
    }
}
