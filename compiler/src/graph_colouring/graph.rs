//! Interference graphs.
//!
//! Nodes have a class, maybe a given register, and a cost of spilling. An edge has the units of both nodes that are
//! live at the same time ([`Part`]): two vectors of which only some components are live together may overlap in the
//! others. If pairs of units of several points are combined, an edge has the smallest ranges that contain them all.
//!
//! Edges are collected in a list that is sorted now and then, so a graph takes memory in proportion to its edges, not
//! to the square of its nodes.

use super::classes::{Class, Classes, Part, Register};
use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};

/// A node: the unit of colouring, which gets one register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(u32);
entity_impl!(Node, "node");

#[derive(Clone, Copy, Debug)]
struct NodeData {
    class: Class,
    given: Option<Register>,
    cost: f32,
}

/// A neighbour of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The neighbour.
    pub node: Node,
    /// The units of the node itself that interfere.
    pub own: Part,
    /// The units of the neighbour that interfere.
    pub other: Part,
}

/// An edge between two nodes, of which the first has the lower number.
#[derive(Clone, Copy)]
struct Edge {
    nodes: (Node, Node),
    parts: (Part, Part),
}

/// Writes edges in the order of one of their nodes; those with the same one keep their order. `starts` has an element
/// for each node.
fn sort_by_node(edges: &[Edge], sorted: &mut [Edge], starts: &mut [u32], node: impl Fn(&Edge) -> Node) {
    starts.fill(0);
    edges.iter().for_each(|edge| starts[node(edge).index()] += 1);
    let mut total = 0;
    for start in starts.iter_mut() {
        total += std::mem::replace(start, total);
    }
    for edge in edges {
        let next = &mut starts[node(edge).index()];
        sorted[*next as usize] = *edge;
        *next += 1;
    }
}

/// Edges that are collected before they are sorted for the first time.
const FIRST_SORT: usize = 1 << 16;

/// Collects the nodes and edges of an interference graph.
pub struct GraphBuilder {
    nodes: PrimaryMap<Node, NodeData>,
    edges: Vec<Edge>,
    /// The number of edges at which they are sorted next.
    limit: usize,
}

impl Default for GraphBuilder {
    fn default() -> Self {
        Self { nodes: PrimaryMap::new(), edges: Vec::new(), limit: FIRST_SORT }
    }
}

impl GraphBuilder {
    /// Adds a node of a class. It cannot be spilled until it has a [cost](Self::set_cost).
    pub fn add_node(&mut self, class: Class) -> Node {
        self.nodes.push(NodeData { class, given: None, cost: 0.0 })
    }

    /// Sets the register of a node.
    pub fn set_given(&mut self, node: Node, register: Register) {
        self.nodes[node].given = Some(register);
    }

    /// Sets the cost of spilling a node; 0 if that is impossible.
    pub fn set_cost(&mut self, node: Node, cost: f32) {
        self.nodes[node].cost = cost;
    }

    /// Adds an edge between two nodes that are live at the same time as a whole.
    pub fn add_interference(&mut self, a: Node, b: Node) {
        self.add_overlap(a, Part::WHOLE, b, Part::WHOLE);
    }

    /// Adds an edge between two nodes of which these units are live at the same time.
    pub fn add_overlap(&mut self, a: Node, own: Part, b: Node, other: Part) {
        if a == b {
            return;
        }
        let edge = if a < b {
            Edge { nodes: (a, b), parts: (own, other) }
        } else {
            Edge { nodes: (b, a), parts: (other, own) }
        };
        if self.edges.last().is_some_and(|last| last.nodes == edge.nodes && last.parts == edge.parts) {
            return;
        }
        self.edges.push(edge);
        if self.edges.len() >= self.limit {
            self.merge_edges();
            self.limit = (2 * self.edges.len()).max(FIRST_SORT);
        }
    }

    /// Sorts the edges, and merges those between the same nodes.
    fn merge_edges(&mut self) {
        // Counting sort: the second pass keeps the order of the first among edges of the same first node.
        if !self.edges.is_sorted_by_key(|edge| edge.nodes) {
            let mut scratch = self.edges.clone();
            let mut starts = vec![0u32; self.nodes.len()];
            sort_by_node(&self.edges, &mut scratch, &mut starts, |edge| edge.nodes.1);
            sort_by_node(&scratch, &mut self.edges, &mut starts, |edge| edge.nodes.0);
        }
        self.edges.dedup_by(|next, edge| {
            let is_same = next.nodes == edge.nodes;
            if is_same {
                edge.parts = (edge.parts.0.hull(next.parts.0), edge.parts.1.hull(next.parts.1));
            }
            is_same
        });
    }

    /// The graph.
    pub fn finish(mut self) -> Graph {
        self.merge_edges();
        let mut starts = vec![0u32; self.nodes.len() + 1];
        for Edge { nodes: (a, b), .. } in &self.edges {
            starts[a.index()] += 1;
            starts[b.index()] += 1;
        }
        let mut total = 0;
        for start in &mut starts {
            total += std::mem::replace(start, total);
        }
        let nowhere = Neighbour { node: Node(0), own: Part::WHOLE, other: Part::WHOLE };
        let mut neighbours = vec![nowhere; total as usize];
        // Filled from the front; in the end each start has become the next one's.
        for &Edge { nodes: (a, b), parts: (of_a, of_b) } in &self.edges {
            for (from, own, node, other) in [(a, of_a, b, of_b), (b, of_b, a, of_a)] {
                let next = &mut starts[from.index()];
                neighbours[*next as usize] = Neighbour { node, own, other };
                *next += 1;
            }
        }
        starts.rotate_right(1);
        starts[0] = 0;
        Graph { nodes: self.nodes, starts, neighbours }
    }
}

/// An interference graph.
pub struct Graph {
    nodes: PrimaryMap<Node, NodeData>,
    /// The start of each node's neighbours, and the end of the last one's.
    starts: Vec<u32>,
    neighbours: Vec<Neighbour>,
}

impl Graph {
    /// The nodes.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = Node> + use<> {
        (0..self.nodes.len() as u32).map(Node)
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of edges.
    pub fn edge_count(&self) -> usize {
        self.neighbours.len() / 2
    }

    /// The class of a node.
    pub fn class(&self, node: Node) -> Class {
        self.nodes[node].class
    }

    /// The given register of a node.
    pub fn given(&self, node: Node) -> Option<Register> {
        self.nodes[node].given
    }

    /// The cost of spilling a node; 0 if that is impossible.
    pub fn cost(&self, node: Node) -> f32 {
        self.nodes[node].cost
    }

    /// The neighbours of a node.
    pub fn neighbours(&self, node: Node) -> &[Neighbour] {
        &self.neighbours[self.starts[node.index()] as usize..self.starts[node.index() + 1] as usize]
    }

    /// The sum of `q` over all neighbours of a node: a bound on the registers of its class that they block.
    pub fn q_total(&self, classes: &Classes, node: Node) -> u32 {
        let class = self.class(node);
        self.neighbours(node).iter().map(|next| classes.q(class, self.class(next.node))).sum()
    }
}
