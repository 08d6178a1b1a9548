//! Simplification: the order in which nodes are coloured.
//!
//! A node that gets a register for any registers of its neighbours (`q_total < p`, see [`classes`](super::classes)) is
//! removed from the graph and pushed onto a stack, which may make others such nodes. If none remains, the node with the
//! least `q_total` is pushed *optimistically*: its neighbours may happen to leave it a register. The nodes are popped,
//! and coloured, in the reverse order. The proof that the others always get a register: when one is popped, its
//! coloured neighbours are those that had not been pushed before it, and the sum of their `q` was less than `p`.
//!
//! Sweeps go from the highest node down, as in Mesa. Nodes with a given register are never pushed.

use super::bits::Bits;
use super::classes::Classes;
use super::graph::{Graph, Node};
use cranelift_entity::{EntityRef, SecondaryMap};

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
        least: None,
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

/// The nodes that are left, by `q_total`: a tree of minima. Most changes of a node do not change the least of its
/// neighbourhood, and end there.
struct ByTotal {
    /// The number of leaves, a power of two.
    leaves: usize,
    /// The key of node `i` at `leaves + i`, and at `k` the least of those at `2 k` and `2 k + 1`.
    keys: Vec<u64>,
}

impl ByTotal {
    /// Greater than all keys of nodes.
    const NONE: u64 = u64::MAX;

    /// The key of a node: the least is the one with the least `q_total`, and of those the highest node.
    fn key(node: Node, q_total: u32) -> u64 {
        u64::from(q_total) << 32 | u64::from(u32::MAX - 1 - node.as_u32())
    }

    /// The tree of these nodes, of `count`.
    fn new(count: usize, nodes: impl Iterator<Item = (Node, u32)>) -> Self {
        let leaves = count.next_power_of_two();
        let mut keys = vec![Self::NONE; 2 * leaves];
        for (node, q_total) in nodes {
            keys[leaves + node.index()] = Self::key(node, q_total);
        }
        for at in (1..leaves).rev() {
            keys[at] = keys[2 * at].min(keys[2 * at + 1]);
        }
        Self { leaves, keys }
    }

    /// Gives a node another key.
    fn set(&mut self, node: Node, key: u64) {
        let mut at = self.leaves + node.index();
        self.keys[at] = key;
        while at > 1 {
            let least = self.keys[at].min(self.keys[at ^ 1]);
            at /= 2;
            if std::mem::replace(&mut self.keys[at], least) == least {
                return;
            }
        }
    }

    /// The first node, if one is left.
    fn first(&self) -> Option<Node> {
        let key = self.keys[1];
        (key != Self::NONE).then(|| Node::from_u32(u32::MAX - 1 - key as u32))
    }
}

struct Simplifier<'a> {
    graph: &'a Graph,
    classes: &'a Classes,
    /// The sum of `q` over the neighbours of each node that are not on the stack.
    q_total: SecondaryMap<Node, u32>,
    /// Nodes that are not on the stack.
    left: Bits,
    /// The nodes among them that get a register in any case.
    ready: Bits,
    /// The nodes that are left, by `q_total`. Made when it is first needed.
    least: Option<ByTotal>,
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
        if let Some(least) = &mut self.least {
            least.set(node, ByTotal::NONE);
        }
        let class = self.graph.class(node);
        for next in self.graph.neighbours(node) {
            let other = next.node;
            if !self.left.contains(other.index() as u32) {
                continue;
            }
            self.q_total[other] -= self.classes.q(self.graph.class(other), class);
            self.note(other);
            if let Some(least) = &mut self.least {
                least.set(other, ByTotal::key(other, self.q_total[other]));
            }
        }
    }

    /// The node with the least `q_total` of those that are left, of those the highest one.
    fn least(&mut self) -> Option<Node> {
        let (left, q_total) = (&self.left, &self.q_total);
        let all = || {
            let nodes = left.iter().map(|at| Node::new(at as usize));
            ByTotal::new(self.graph.len(), nodes.map(|node| (node, q_total[node])))
        };
        self.least.get_or_insert_with(all).first()
    }
}
