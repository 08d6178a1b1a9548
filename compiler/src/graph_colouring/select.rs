//! Selection: nodes are popped off the stack. Each takes the first register that no neighbour has, searching from a
//! starting point.
//!
//! With *round robin* the starting point moves to the register after the one that was taken. So values that are defined
//! close together get different registers, and the scheduler after allocation has fewer false dependencies. But this
//! fragments the file, and makes it less likely that an optimistic node gets a register. The [`Rotation`] decides which
//! nodes move the starting point.

use super::bits::Bits;
use super::classes::{Classes, Register};
use super::graph::{Graph, Node};
use super::simplify::Stack;
use cranelift_entity::SecondaryMap;

crate::words! {
    /// The nodes after which the search starts at the next register.
    #[derive(Default)]
    pub enum Rotation {
        /// The first optimistic node, and the nodes below it on the stack: the change as it was proposed to Mesa.
        #[default]
        Document = "document",
        /// The nodes below the first optimistic node: the change as it landed in Mesa.
        Landed = "landed",
        /// All nodes: Mesa before the change.
        Old = "old",
        /// No node: each takes the lowest free register.
        FirstFit = "first-fit",
    }
}

impl Rotation {
    /// Returns true if the starting point moves after the node at this place of the stack, counted from the bottom.
    fn rotates(self, at: usize, optimistic_start: Option<usize>) -> bool {
        match self {
            Self::Document => optimistic_start.is_none_or(|start| at <= start),
            Self::Landed => optimistic_start.is_none_or(|start| at <= start + 1),
            Self::Old => true,
            Self::FirstFit => false,
        }
    }
}

/// A register for each node.
pub type Colouring = SecondaryMap<Node, Option<Register>>;

/// A node that has found no register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncoloured {
    /// The node.
    pub node: Node,
    /// False if simplification has proved that it gets one: `p` or `q` is wrong.
    pub is_optimistic: bool,
    /// The nodes that have registers, in the order in which they got them; those with given ones are not among them.
    pub coloured: Vec<Node>,
}

/// Chooses registers. `rotation` determines which nodes rotate.
///
/// # Errors
/// The first node that finds none.
pub fn select(graph: &Graph, classes: &Classes, stack: &Stack, rotation: Rotation) -> Result<Colouring, Uncoloured> {
    let mut registers = Colouring::with_capacity(graph.len());
    registers.resize(graph.len());
    for node in graph.nodes() {
        registers[node] = graph.given(node);
    }
    let mut blocked = Bits::new(classes.units());
    let mut coloured = Vec::new();
    let mut start = 0;
    for (at, entry) in stack.entries.iter().enumerate().rev() {
        let node = entry.node;
        let class = graph.class(node);
        blocked.clear();
        for next in graph.neighbours(node) {
            if let Some(register) = registers[next.node] {
                classes.block(&mut blocked, class, next.own, graph.class(next.node), next.other, register);
            }
        }
        let Some(found) = classes.members(class).next_without(&blocked, start) else {
            return Err(Uncoloured { node, is_optimistic: entry.is_optimistic, coloured });
        };
        registers[node] = Some(Register(found as u16));
        coloured.push(node);
        if rotation.rotates(at, stack.optimistic_start) {
            start = found + 1;
        }
    }
    Ok(registers)
}

/// Returns true if a node with a given register has a neighbour whose given register overlaps it.
pub fn has_given_conflict(graph: &Graph, classes: &Classes, node: Node) -> bool {
    let mut blocked = Bits::new(classes.units());
    for next in graph.neighbours(node) {
        if let Some(other) = graph.given(next.node) {
            classes.block(&mut blocked, graph.class(node), next.own, graph.class(next.node), next.other, other);
        }
    }
    graph.given(node).is_some_and(|own| blocked.contains(u32::from(own.0)))
}

/// Finds two neighbours whose registers conflict where both are live, or a register outside of its class.
pub fn wrong_node(graph: &Graph, classes: &Classes, registers: &Colouring) -> Option<Node> {
    let mut blocked = Bits::new(classes.units());
    graph.nodes().find(|&node| {
        let Some(own) = registers[node] else { return true };
        let class = graph.class(node);
        blocked.clear();
        for next in graph.neighbours(node) {
            if let Some(other) = registers[next.node] {
                classes.block(&mut blocked, class, next.own, graph.class(next.node), next.other, other);
            }
        }
        let at = u32::from(own.0);
        blocked.contains(at) || graph.given(node).map_or(!classes.members(class).contains(at), |given| given != own)
    })
}
