//! One solver for dataflow analyses.
//!
//! An analysis has a direction, a lattice of facts and a transfer function. The fact at the *input* of a block (its
//! start, for a forward analysis) is the join of the outputs over all edges; the fact at its *output* is the result of
//! the transfer function. All facts start at the least element, `Default::default()`. Inputs only grow: an output is
//! joined to the previous input. The solution is the least fixed point if the transfer function is monotone; otherwise
//! it is a sound one.
//!
//! A block is visited again if the output of a block that it depends on has changed ([`Worklist`]). Blocks are visited
//! in the order that the caller gives, reversed for a backward analysis. For structured code in layout order, the
//! number of visits of a block is about one plus its loop depth.
//!
//! Liveness of SSA values needs no fixed point: [`liveness`](super::liveness) is its sparse form.

use crate::graph::Graph;
use crate::maps::map_of;
use cranelift_entity::{EntityRef, SecondaryMap};

/// The positions of an order that have to be visited, in passes over the order.
///
/// A pass visits them in order; a position added after the current one belongs to the same pass.
pub struct Worklist {
    waiting: Vec<bool>,
    at: usize,
    /// True if another round is needed.
    again: bool,
}

impl Worklist {
    /// An empty worklist of an order of `count` positions.
    pub fn new(count: usize) -> Self {
        Self { waiting: vec![false; count], at: 0, again: false }
    }

    /// A worklist of all positions.
    pub fn full(count: usize) -> Self {
        Self { waiting: vec![true; count], at: 0, again: false }
    }

    /// Adds a position: it is visited in this pass if it comes later, else in the next one.
    pub fn add(&mut self, position: usize) {
        self.waiting[position] = true;
        self.again |= position < self.at;
    }

    /// Adds a position without requesting a further pass for it.
    fn add_without_round(&mut self, position: usize) {
        self.waiting[position] = true;
    }

    /// Requests another round, for all positions that are left after this one.
    fn request_round(&mut self) {
        self.again = true;
    }
}

impl Iterator for Worklist {
    type Item = usize;

    /// The position to be visited next.
    fn next(&mut self) -> Option<usize> {
        loop {
            if let Some(step) = self.waiting[self.at..].iter().position(|&waiting| waiting) {
                let position = self.at + step;
                self.waiting[position] = false;
                self.at = position + 1;
                return Some(position);
            }
            self.at = 0;
            if !std::mem::take(&mut self.again) {
                return None;
            }
        }
    }
}

/// The direction in which facts flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Facts flow from the starts of blocks to their ends, and on to the successors.
    Forward,
    /// Facts flow from the ends of blocks to their starts, and on to the predecessors.
    Backward,
}

/// An edge of the graph, in its own direction even for a backward analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge<N> {
    /// The predecessor.
    pub from: N,
    /// The successor.
    pub to: N,
}

/// The difference between the output of a block and that of its last visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The facts are equal.
    None,
    /// Only an estimate changed, for which alone no further pass is made: facts are exact when the solver stops,
    /// estimates may not be.
    Estimate,
    /// A fact changed.
    Fact,
}

/// An analysis of the blocks `N`.
pub trait Analysis<N> {
    /// An element of the lattice; the default is the least one.
    type Fact: Clone + Default + PartialEq;

    /// The direction in which facts flow.
    const DIRECTION: Direction;

    /// Joins the output of the block at one end of `edge` to the input of the block at the other end.
    fn join(&mut self, input: &mut Self::Fact, output: &Self::Fact, edge: Edge<N>);

    /// The transfer function: the output of a block with this input.
    fn transfer(&mut self, block: N, input: &Self::Fact) -> Self::Fact;

    /// The change of an output.
    fn change(&self, before: &Self::Fact, after: &Self::Fact) -> Change {
        if before == after { Change::None } else { Change::Fact }
    }
}

/// Facts at both ends of all blocks.
pub struct Solution<N: EntityRef, F: Clone> {
    /// The facts at the starts.
    pub start: SecondaryMap<N, F>,
    /// The facts at the ends.
    pub end: SecondaryMap<N, F>,
}

/// Solves an analysis for the blocks of `order`, which lists each block once; the facts of all others stay the least.
pub fn solve<G: Graph, A: Analysis<G::Node>>(
    graph: &G,
    order: &[G::Node],
    analysis: &mut A,
) -> Solution<G::Node, A::Fact> {
    let count = order.len();
    let at = |position: usize| match A::DIRECTION {
        Direction::Forward => order[position],
        Direction::Backward => order[count - 1 - position],
    };
    let last = order.iter().map(|block| block.index() + 1).max().unwrap_or(0);
    // Plus one; 0 for a block that is not in the order.
    let mut positions: SecondaryMap<G::Node, u32> = map_of(last);
    for position in 0..count {
        positions[at(position)] = position as u32 + 1;
    }
    let mut inputs: SecondaryMap<G::Node, A::Fact> = map_of(last);
    let mut outputs: SecondaryMap<G::Node, A::Fact> = map_of(last);
    let mut worklist = Worklist::full(count);
    while let Some(position) = worklist.next() {
        let block = at(position);
        let mut input = std::mem::take(&mut inputs[block]);
        match A::DIRECTION {
            Direction::Forward => graph
                .predecessors(block)
                .for_each(|from| analysis.join(&mut input, &outputs[from], Edge { from, to: block })),
            Direction::Backward => {
                graph.successors(block).for_each(|to| analysis.join(&mut input, &outputs[to], Edge { from: block, to }))
            }
        }
        let output = analysis.transfer(block, &input);
        inputs[block] = input;
        let change = analysis.change(&outputs[block], &output);
        if change == Change::None {
            continue;
        }
        outputs[block] = output;
        if change == Change::Fact {
            worklist.request_round();
        }
        let mut wake = |dependent: G::Node| {
            if let Some(position) = positions[dependent].checked_sub(1) {
                worklist.add_without_round(position as usize);
            }
        };
        match A::DIRECTION {
            Direction::Forward => graph.successors(block).for_each(&mut wake),
            Direction::Backward => graph.predecessors(block).for_each(&mut wake),
        }
    }
    match A::DIRECTION {
        Direction::Forward => Solution { start: inputs, end: outputs },
        Direction::Backward => Solution { start: outputs, end: inputs },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::tests::{Edges, Node};

    /// Sets of up to 32 entities, with those that each block generates and kills.
    struct Sets<const FORWARD: bool> {
        generates: Vec<u32>,
        kills: Vec<u32>,
        visits: Vec<usize>,
    }

    impl<const FORWARD: bool> Analysis<Node> for Sets<FORWARD> {
        type Fact = u32;

        const DIRECTION: Direction = if FORWARD { Direction::Forward } else { Direction::Backward };

        fn join(&mut self, input: &mut u32, output: &u32, _: Edge<Node>) {
            *input |= output;
        }

        fn transfer(&mut self, block: Node, input: &u32) -> u32 {
            self.visits.push(block.index());
            input & !self.kills[block.index()] | self.generates[block.index()]
        }
    }

    fn sets<const FORWARD: bool>(
        edges: &[(usize, usize)],
        generates: &[u32],
        kills: &[u32],
    ) -> (Vec<u32>, Vec<u32>, Vec<usize>) {
        let graph = Edges(edges.to_vec());
        let order: Vec<Node> = (0..generates.len()).map(Node::new).collect();
        let mut sets = Sets::<FORWARD> { generates: generates.to_vec(), kills: kills.to_vec(), visits: Vec::new() };
        let solution = solve(&graph, &order, &mut sets);
        let list = |map: &SecondaryMap<Node, u32>| order.iter().map(|&node| map[node]).collect();
        (list(&solution.start), list(&solution.end), sets.visits)
    }

    /// 0 → 1; 1 → 2 | 3; 2 → 1: block 4, which nothing reaches, goes to 3.
    const LOOP: [(usize, usize); 5] = [(0, 1), (1, 2), (1, 3), (2, 1), (4, 3)];

    #[test]
    fn reaching_definitions() {
        // Definition i is in block i; that of block 2 is of the same variable as that of block 0.
        let (start, end, visits) = sets::<true>(&LOOP, &[1, 2, 4, 8, 16], &[4, 0, 1, 0, 0]);
        assert_eq!(start, [0, 1 | 2 | 4, 1 | 2 | 4, 1 | 2 | 4 | 16, 0]);
        assert_eq!(end, [1, 1 | 2 | 4, 2 | 4, 1 | 2 | 4 | 8 | 16, 16]);
        // The loop once more, and the blocks after it, but no block without a change; 3 waits for the change of 4 too.
        assert_eq!(visits, [0, 1, 2, 3, 4, 1, 2, 3]);
    }

    #[test]
    fn live_variables() {
        // Variable 0 is defined in 0 and read in 2, 1 defined in 1 and read in 3, 2 read in 1 and never defined.
        let (start, end, visits) = sets::<false>(&LOOP, &[0, 4, 1, 2, 0], &[1, 2, 0, 0, 0]);
        assert_eq!(start, [4, 1 | 4, 1 | 4, 2, 2]);
        assert_eq!(end, [1 | 4, 1 | 2 | 4, 1 | 4, 0, 2]);
        // A value that is live around the loop enters by 1, which is visited after 2.
        assert_eq!(visits, [4, 3, 2, 1, 0, 4, 2, 1]);
    }

    /// Two nested loops; facts that the inner one generates flow around both.
    #[test]
    fn facts_come_around_nested_loops() {
        let edges = [(0, 1), (1, 2), (2, 3), (3, 2), (3, 4), (4, 1), (4, 5)];
        let (start, end, _) = sets::<true>(&edges, &[0, 0, 0, 1, 2, 0], &[0; 6]);
        assert_eq!(start, [0, 3, 3, 3, 3, 3]);
        assert_eq!(end, [0, 3, 3, 3, 3, 3]);
        let (start, end, _) = sets::<false>(&edges, &[0, 0, 1, 0, 0, 2], &[0; 6]);
        assert_eq!(start, [3, 3, 3, 3, 3, 2]);
        assert_eq!(end, [3, 3, 3, 3, 3, 0]);
    }

    /// An order without a block leaves that block's facts alone, and does not need it.
    #[test]
    fn blocks_out_of_order_have_the_least_fact() {
        let graph = Edges(LOOP.to_vec());
        let order: Vec<Node> = (0..4).map(Node::new).collect();
        let mut sets = Sets::<true> { generates: vec![1, 2, 4, 8, 16], kills: vec![0; 5], visits: Vec::new() };
        let solution = solve(&graph, &order, &mut sets);
        assert_eq!(solution.start[Node::new(3)], 1 | 2 | 4);
        assert_eq!(solution.end[Node::new(4)], 0);
    }

    /// Distance to the end, by the number of blocks; that there is one is the fact.
    struct Distance(Vec<usize>);

    impl Analysis<Node> for Distance {
        type Fact = Option<u32>;

        const DIRECTION: Direction = Direction::Backward;

        fn join(&mut self, input: &mut Option<u32>, output: &Option<u32>, _: Edge<Node>) {
            *input = input.iter().chain(output).copied().min();
        }

        fn transfer(&mut self, block: Node, input: &Option<u32>) -> Option<u32> {
            self.0.push(block.index());
            if block.index() == 4 { Some(0) } else { input.map(|distance| distance + 1) }
        }

        fn change(&self, before: &Option<u32>, after: &Option<u32>) -> Change {
            match (before, after) {
                _ if before == after => Change::None,
                (Some(_), Some(_)) => Change::Estimate,
                _ => Change::Fact,
            }
        }
    }

    #[test]
    fn no_round_is_made_for_estimates_alone() {
        // 2 leads to the end by way of 3, and by way of 1, which is shorter.
        let graph = Edges(vec![(0, 2), (2, 1), (1, 4), (2, 3), (3, 5), (5, 6), (6, 4)]);
        let order: Vec<Node> = [1, 0, 2, 3, 5, 6, 4].map(Node::new).to_vec();
        let mut distance = Distance(Vec::new());
        let solution = solve(&graph, &order, &mut distance);
        // The round after the first is made for facts; 2 and 0 are visited in it for the estimate.
        assert_eq!(distance.0, [4, 6, 5, 3, 2, 0, 1, 2, 0]);
        assert_eq!(solution.start[Node::new(0)], Some(3));
        // The second pass finds that 7 leads to the end. The third, requested for that, finds that the path by 7 is
        // shorter for 2. Block 9 comes before 2 in each pass: its estimate stays the longer path.
        let graph = Edges(vec![(0, 1), (1, 2), (2, 3), (3, 5), (5, 6), (6, 4), (2, 7), (7, 8), (8, 4), (9, 2)]);
        let order: Vec<Node> = [8, 7, 0, 1, 2, 9, 3, 5, 6, 4].map(Node::new).to_vec();
        let mut distance = Distance(Vec::new());
        let solution = solve(&graph, &order, &mut distance);
        assert_eq!(distance.0, [4, 6, 5, 3, 9, 2, 1, 0, 7, 8, 9, 7, 2, 1, 0]);
        let start = |node: usize| solution.start[Node::new(node)];
        assert_eq!([start(0), start(2), start(9)], [Some(5), Some(3), Some(5)]);
    }
}
