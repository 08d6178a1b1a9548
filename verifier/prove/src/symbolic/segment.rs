//! A segment of a program that has been executed, and the values of locations at its blocks and exits.
//!
//! A value is looked up on demand, and merged from the exits of the predecessors where these differ; each result is
//! kept.

use super::wave::Goals;
use super::{Cut, Goal, Oracle, Slot, SymbolicProgram, SymbolicValue, VariableFacts};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::terms::{Term, Terms};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// An edge into a block.
#[derive(Clone, Debug)]
pub(super) struct IncomingEdge {
    pub(super) from: u32,
    pub(super) condition: Term,
    /// The writes on the edge: the phis of the block.
    pub(super) writes: SmallVec<[(Slot, SymbolicValue); 2]>,
}

/// A block that has been executed in the segment.
#[derive(Debug)]
pub(super) struct ExecutedBlock {
    pub(super) edges: SmallVec<[IncomingEdge; 2]>,
    /// The immediate dominator, and the number of dominators of this block.
    pub(super) dominator: u32,
    pub(super) depth: u32,
    /// The values of locations at the entry that were looked up.
    pub(super) entry: FxHashMap<Slot, SymbolicValue>,
    /// The values that the block writes.
    pub(super) exit: FxHashMap<Slot, SymbolicValue>,
}

/// An exit of the segment.
#[derive(Debug)]
pub struct Transition {
    /// The target.
    pub goal: Goal,
    /// The condition under which the lane takes it: that of one of the edges.
    pub path: Term,
    pub(super) edges: SmallVec<[IncomingEdge; 2]>,
    /// The versions and shared registers when the wave arrives there.
    pub(super) wave: FxHashMap<Slot, SymbolicValue>,
}

/// A segment that has been executed.
#[derive(Debug)]
pub struct Run {
    pub(super) cut: Cut,
    pub(super) nodes: FxHashMap<u32, ExecutedBlock>,
    /// The blocks that write each slot.
    pub(super) writers: FxHashMap<Slot, SmallVec<[u32; 2]>>,
    /// The exits, one for each goal, in the order of the goals.
    pub transitions: Vec<Transition>,
    pub(super) start: u32,
    /// The slots that phis define, in order.
    pub(super) phis: Vec<Slot>,
}

impl Run {
    /// The goals of the segment, each with true if some lanes reach it and others do not.
    pub fn goals(&self, terms: &Terms, facts: &VariableFacts) -> Goals {
        let goals = self.transitions.iter();
        goals.map(|transition| (transition.goal, !facts.uniform(terms, transition.path))).collect()
    }

    /// Returns true if some lane may reach a position.
    pub fn has_reached(&self, position: u32) -> bool {
        self.nodes.contains_key(&position)
    }

    /// The value of a location at exit number `transition`.
    pub fn value_at<C: SymbolicProgram, O: Oracle>(
        &mut self,
        code: &C,
        terms: &mut Terms,
        oracle: &mut O,
        transition: usize,
        slot: Slot,
    ) -> SymbolicValue {
        if let Some(value) = code.fixed(terms, slot) {
            return value;
        }
        let exit = &self.transitions[transition];
        if let Some(&value) = exit.wave.get(&slot) {
            return value;
        }
        if code.shared_slots().contains(&slot) {
            return oracle.first_query(terms, exit.goal, slot);
        }
        let edges = self.transitions[transition].edges.clone();
        let mut values: SmallVec<[(Term, SymbolicValue); 4]> = SmallVec::new();
        for edge in &edges {
            // An edge without a source.
            if edge.from == u32::MAX {
                return oracle.start(terms, slot);
            }
            let value = match at_edge(self, edge, slot) {
                Some(value) => value,
                None => look_up(self, terms, oracle, edge.from, slot),
            };
            values.push((edge.condition, value));
        }
        let is_phi = self.phis.binary_search(&slot).is_ok();
        merge(terms, oracle, is_phi, &values)
    }
}

pub(super) fn choose(terms: &mut Terms, condition: Term, yes: SymbolicValue, no: SymbolicValue) -> SymbolicValue {
    let width = terms.width(yes.bits);
    let mut pick = |width, yes, no| if yes == no { yes } else { terms.ite(width, condition, yes, no) };
    SymbolicValue { bits: pick(width, yes.bits, no.bits), free: pick(width, yes.free, no.free) }
}

/// Merges the values of several edges. Only the conditions that distinguish the edges count. Where the operand of a phi
/// may be anything, it may be that of another edge.
fn merge<O: Oracle>(terms: &mut Terms, oracle: &O, is_phi: bool, values: &[(Term, SymbolicValue)]) -> SymbolicValue {
    if is_phi
        && oracle.takes_other_value()
        && let Some(&(_, other)) = values.iter().find(|(_, value)| !value.is_free(terms))
    {
        let taken = |&(condition, value): &(Term, SymbolicValue)| {
            let bits = if value.is_free(terms) { other.bits } else { value.bits };
            (condition, SymbolicValue { bits, ..value })
        };
        let values: SmallVec<[(Term, SymbolicValue); 4]> = values.iter().map(taken).collect();
        return merged(terms, &values);
    }
    merged(terms, values)
}

/// The conjuncts of the condition of an edge.
type Conjuncts = SmallVec<[Term; 4]>;

/// The maximum number of edges whose conditions are searched for the branches that distinguish them.
const BRANCHES: usize = 24;

fn merged(terms: &mut Terms, values: &[(Term, SymbolicValue)]) -> SymbolicValue {
    let (&(_, first), rest) = values.split_first().expect("a block that is reached has an edge into it");
    if rest.iter().all(|&(_, value)| value == first) {
        return first;
    }
    let edges: SmallVec<[(Conjuncts, SymbolicValue); 4]> =
        values.iter().map(|&(condition, value)| (terms.conjuncts(condition), value)).collect();
    let all: SmallVec<[&(Conjuncts, SymbolicValue); 4]> = edges.iter().collect();
    if edges.len() <= BRANCHES { by_branches(terms, &all) } else { in_order(terms, &all) }
}

/// Selects by a condition that all edges depend on, then among those on either side of it. A branch before all others
/// is such a condition. So values that meet at once, as after jumps to jumps have been threaded, are the same term as
/// those that meet one after the other.
fn by_branches(terms: &mut Terms, edges: &[&(Conjuncts, SymbolicValue)]) -> SymbolicValue {
    let (&(first_conditions, first), rest) = edges.split_first().expect("an edge");
    if rest.iter().all(|(_, value)| value == first) {
        return *first;
    }
    let shortest = edges.iter().min_by_key(|(conditions, _)| conditions.len()).expect("an edge");
    let candidates: Conjuncts = first_conditions.iter().chain(&shortest.0).copied().collect();
    for condition in candidates {
        let opposite = terms.not(1, condition);
        let opposite = terms.conjuncts(opposite);
        let (yes, no): (SmallVec<[_; 4]>, SmallVec<[_; 4]>) =
            edges.iter().copied().partition(|(conditions, _)| conditions.contains(&condition));
        let is_opposite =
            |(conditions, _): &&(Conjuncts, SymbolicValue)| opposite.iter().all(|it| conditions.contains(it));
        if !no.is_empty() && no.iter().all(is_opposite) {
            let (yes, no) = (by_branches(terms, &yes), by_branches(terms, &no));
            return choose(terms, condition, yes, no);
        }
    }
    in_order(terms, edges)
}

/// Selects by the conditions of the edges, one after the other.
fn in_order(terms: &mut Terms, edges: &[&(Conjuncts, SymbolicValue)]) -> SymbolicValue {
    let (&first, rest) = edges.split_first().expect("an edge");
    let common: SmallVec<[Term; 8]> =
        first.0.iter().copied().filter(|term| rest.iter().all(|(list, _)| list.contains(term))).collect();
    let mut conditions = Conjuncts::new();
    for (list, _) in edges {
        let own: SmallVec<[Term; 8]> = list.iter().copied().filter(|term| !common.contains(term)).collect();
        conditions.push(terms.conjunction(&own));
    }
    let mut result = edges[edges.len() - 1].1;
    for i in (0..edges.len() - 1).rev() {
        result = choose(terms, conditions[i], edges[i].1, result);
    }
    result
}

/// Looks up a location at the entry of a block of the segment.
pub(super) fn look_up<O: Oracle>(
    run: &mut Run,
    terms: &mut Terms,
    oracle: &mut O,
    block: u32,
    slot: Slot,
) -> SymbolicValue {
    let writers = run.writers.get(&slot).map_or(&[][..], |list| list);
    if let Some(&value) = run.nodes[&block].entry.get(&slot) {
        return value;
    }
    match *writers {
        [] => return at_start(run, terms, oracle, slot),
        // The only writer dominates the block, so no other value reaches it.
        [writer] if writer != block => {
            let depth = run.nodes[&writer].depth;
            let mut at = block;
            while run.nodes[&at].depth > depth {
                at = run.nodes[&at].dominator;
            }
            let node = &run.nodes[&writer];
            if at == writer
                && let Some(&value) = node.exit.get(&slot).or_else(|| node.entry.get(&slot))
            {
                return value;
            }
        }
        _ => {}
    }
    let mut stack: SmallVec<[u32; 16]> = smallvec![block];
    while let Some(&at) = stack.last() {
        if run.nodes[&at].entry.contains_key(&slot) {
            stack.pop();
            continue;
        }
        if at == run.start {
            let value = at_start(run, terms, oracle, slot);
            run.nodes.get_mut(&at).expect("the first block").entry.insert(slot, value);
            continue;
        }
        let node = &run.nodes[&at];
        let mut values: SmallVec<[(Term, SymbolicValue); 4]> = SmallVec::new();
        let before = stack.len();
        for edge in &node.edges {
            match at_edge(run, edge, slot) {
                Some(value) => values.push((edge.condition, value)),
                None => stack.push(edge.from),
            }
        }
        if stack.len() == before {
            let is_phi = run.phis.binary_search(&slot).is_ok();
            let value = merge(terms, oracle, is_phi, &values);
            run.nodes.get_mut(&at).expect("on the stack").entry.insert(slot, value);
        }
    }
    run.nodes[&block].entry[&slot]
}

/// The value of a location on an edge, if it is known already.
fn at_edge(run: &Run, edge: &IncomingEdge, slot: Slot) -> Option<SymbolicValue> {
    if let Some(&(_, value)) = edge.writes.iter().rev().find(|(written, _)| *written == slot) {
        return Some(value);
    }
    let node = &run.nodes[&edge.from];
    node.exit.get(&slot).or_else(|| node.entry.get(&slot)).copied()
}

fn at_start<O: Oracle>(run: &mut Run, terms: &mut Terms, oracle: &mut O, slot: Slot) -> SymbolicValue {
    let start = run.start;
    if let Some(&value) = run.nodes.get(&start).and_then(|node| node.entry.get(&slot)) {
        return value;
    }
    let value = oracle.start(terms, slot);
    if let Some(node) = run.nodes.get_mut(&start) {
        node.entry.insert(slot, value);
    }
    value
}
