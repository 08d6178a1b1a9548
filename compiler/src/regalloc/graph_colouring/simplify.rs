//! Simplification: the order in which nodes are coloured.
//!
//! A node that gets a register whatever its neighbours have (`q_total < p`, see [`classes`](super::classes)) is removed from the graph and pushed
//! onto a stack, which may make others such nodes. If there is none, the node with the least `q_total` is pushed *optimistically*: its neighbours
//! may happen to leave it a register. The nodes are popped, and coloured, in the reverse order. The proof that the others always get a register: when
//! one is popped, its coloured neighbours are those that had not been pushed before it, and the sum of their `q` was less than `p`.
//!
//! Sweeps go from the highest node down, as in Mesa. Nodes with a given register are never pushed.

use super::bits::Bits;
use super::classes::Classes;
use super::graph::{Graph, Node};
use cranelift_entity::{EntityRef, SecondaryMap};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An entry of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The node.
    pub node: Node,
    /// True if it may find no register.
    pub is_optimistic: bool,
}

/// The result of simplification.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The entries, the last one to be coloured first.
    pub entries: Vec<Pushed>,
    /// The height of the stack at the first optimistic push.
    pub optimistic_start: Option<usize>,
}

/// Pushes all nodes without given registers.
pub fn simplify(graph: &Graph, classes: &Classes) -> Stack {
    let mut state = Simplifier {
        graph,
        classes,
        q_total: SecondaryMap::with_capacity(graph.len()),
        left: Bits::new(graph.len() as u32),
        ready: Bits::new(graph.len() as u32),
        heap: None,
        entries: Vec::with_capacity(graph.len()),
    };
    for node in graph.nodes() {
        state.q_total[node] = graph.q_total(classes, node);
        if graph.given(node).is_none() {
            state.left.insert(node.index() as u32);
            state.note(node);
        }
    }
    let mut optimistic_start = None;
    loop {
        let mut progress = false;
        let mut end = graph.len() as u32;
        while let Some(at) = state.ready.last_below(end) {
            state.push(Node::new(at as usize), false);
            progress = true;
            end = at;
        }
        if progress {
            continue;
        }
        let Some(node) = state.least() else { break };
        optimistic_start.get_or_insert(state.entries.len());
        state.push(node, true);
    }
    Stack { entries: state.entries, optimistic_start }
}

/// A node with a `q_total` that it has or had; the largest is the one with the least `q_total`, and of those the highest node.
type ByTotal = Reverse<(u32, Reverse<Node>)>;

struct Simplifier<'a> {
    graph: &'a Graph,
    classes: &'a Classes,
    /// The sum of `q` over the neighbours of each node that are not on the stack.
    q_total: SecondaryMap<Node, u32>,
    /// Nodes that are not on the stack.
    left: Bits,
    /// Those of them that get a register in any case.
    ready: Bits,
    /// The nodes that are left, by `q_total`, the highest one first; also with values that they had before. Made when it is first needed.
    heap: Option<BinaryHeap<ByTotal>>,
    entries: Vec<Pushed>,
}

impl Simplifier<'_> {
    fn note(&mut self, node: Node) {
        if self.q_total[node] < self.classes.p(self.graph.class(node)) {
            self.ready.insert(node.index() as u32);
        }
    }

    fn push(&mut self, node: Node, is_optimistic: bool) {
        self.entries.push(Pushed { node, is_optimistic });
        self.left.remove(node.index() as u32);
        self.ready.remove(node.index() as u32);
        let class = self.graph.class(node);
        for next in self.graph.neighbours(node) {
            let other = next.node;
            if !self.left.contains(other.index() as u32) {
                continue;
            }
            self.q_total[other] -= self.classes.q(self.graph.class(other), class);
            self.note(other);
            if let Some(heap) = &mut self.heap {
                heap.push(Reverse((self.q_total[other], Reverse(other))));
            }
        }
    }

    /// The node with the least `q_total` of those that are left.
    fn least(&mut self) -> Option<Node> {
        let (left, q_total) = (&self.left, &self.q_total);
        let all = || {
            let nodes = left.iter().map(|at| Node::new(at as usize));
            nodes.map(|node| Reverse((q_total[node], Reverse(node)))).collect()
        };
        let heap = self.heap.get_or_insert_with(all);
        while let Some(Reverse((q, Reverse(node)))) = heap.pop() {
            if left.contains(node.index() as u32) && q_total[node] == q {
                return Some(node);
            }
        }
        None
    }
}
