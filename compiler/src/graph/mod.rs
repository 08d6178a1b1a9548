//! Algorithms on directed graphs whose nodes are typed indices: control-flow graphs of either language, and uses of
//! values.

mod dominance;

pub use dominance::DominatorTree;

use cranelift_entity::{EntityRef, EntitySet};

/// A directed graph. Its edges must be consistent: every successor has its predecessor.
pub trait Graph {
    /// A node.
    type Node: EntityRef;

    /// The nodes that edges lead to from `node`.
    fn successors(&self, node: Self::Node) -> impl Iterator<Item = Self::Node> + '_;

    /// The nodes from which edges lead to `node`.
    fn predecessors(&self, node: Self::Node) -> impl Iterator<Item = Self::Node> + '_;
}

/// Nodes that a search has found, and those of them that it has yet to visit.
pub struct Search<N: EntityRef> {
    found: EntitySet<N>,
    stack: Vec<N>,
}

impl<N: EntityRef> Search<N> {
    /// Adds a node; it is visited once, however often it is added.
    pub fn add(&mut self, node: N) {
        if self.found.insert(node) {
            self.stack.push(node);
        }
    }
}

/// The nodes that are reached from `roots`, these included. `visit` adds the nodes that a node leads to.
pub fn reachable<N: EntityRef>(
    roots: impl IntoIterator<Item = N>,
    mut visit: impl FnMut(N, &mut Search<N>),
) -> EntitySet<N> {
    let mut search = Search { found: EntitySet::new(), stack: Vec::new() };
    roots.into_iter().for_each(|root| search.add(root));
    while let Some(node) = search.stack.pop() {
        visit(node, &mut search);
    }
    search.found
}

/// The nodes that are reached from `entry`, in postorder of a depth-first search. Reversed, each node follows its
/// dominators and after one of its predecessors.
pub fn postorder<G: Graph>(graph: &G, entry: G::Node) -> Vec<G::Node> {
    let mut order = Vec::new();
    let mut seen = EntitySet::new();
    let mut stack = vec![(entry, false)];
    while let Some((node, done)) = stack.pop() {
        if done {
            order.push(node);
            continue;
        }
        if !seen.insert(node) {
            continue;
        }
        stack.push((node, true));
        stack.extend(
            graph.successors(node).filter(|&successor| !seen.contains(successor)).map(|successor| (successor, false)),
        );
    }
    order
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use cranelift_entity::entity_impl;

    /// A node of a graph in a test.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub(crate) struct Node(u32);
    entity_impl!(Node, "node");

    /// A graph by its edges.
    pub(crate) struct Edges(pub(crate) Vec<(usize, usize)>);

    impl Graph for Edges {
        type Node = Node;

        fn successors(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
            self.0.iter().filter(move |edge| edge.0 == node.index()).map(|edge| Node::new(edge.1))
        }

        fn predecessors(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
            self.0.iter().filter(move |edge| edge.1 == node.index()).map(|edge| Node::new(edge.0))
        }
    }

    #[test]
    fn unreachable_nodes_are_in_no_order() {
        let graph = Edges(vec![(0, 1), (1, 2), (2, 1), (2, 3), (4, 3)]);
        let order: Vec<usize> = postorder(&graph, Node(0)).into_iter().map(Node::index).collect();
        assert_eq!(order, [3, 2, 1, 0]);
        let found = reachable([Node(0)], |node, search| graph.successors(node).for_each(|next| search.add(next)));
        assert_eq!((0..5).filter(|&i| found.contains(Node(i))).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(found.keys().count(), 4);
    }
}
