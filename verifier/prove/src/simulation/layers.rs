//! Queries in which some subterms are abstracted by variables.
//!
//! A statement that holds for all values of a subterm holds for its actual value. So a query may be posed with subterms
//! replaced by variables: it is smaller, and if the abstraction is valid, so is the query. If it is not, the abstracted
//! subterms may matter, and the next *layer* of the query has in their places their operands, down to the next subterms
//! that may be abstracted.

use indexmap::IndexSet;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::terms::{Op, Term, Terms, VariableKind};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The maximum number of nodes of each term that are considered; deeper ones are abstracted.
const CONE: usize = 400;

/// The maximum number of nodes of a layer.
const LARGE: usize = 1_000;

/// Some terms, and the depth to which queries expand them so far.
pub struct Layers {
    roots: SmallVec<[Term; 4]>,
    seen: FxHashSet<Term>,
    /// The subterms that are abstracted at first.
    hidden: FxHashSet<Term>,
    /// The terms among them that have been expanded.
    opened: FxHashSet<Term>,
    state: LayerState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LayerState {
    /// No layer has been made.
    First,
    /// One has been made, with all hidden subterms abstracted.
    Second,
    /// Deeper ones follow.
    Between,
    /// The last one has been made: nothing was abstracted in it, or it is too large.
    Last,
}

impl Layers {
    /// The layers of a pair: the subterms that both have in common are hidden.
    pub fn of_pair(terms: &mut Terms, a: Term, b: Term) -> Self {
        let (of_a, of_b) = (cone(terms, a), cone(terms, b));
        let common = of_a.intersection(&of_b).copied().collect();
        Self::new(terms, &[a, b], of_a.union(&of_b).copied().collect(), common)
    }

    /// The layers of several conditions: only opaque subterms are hidden.
    pub fn of_goal(terms: &mut Terms, conditions: &[Term]) -> Self {
        let mut seen = FxHashSet::default();
        conditions.iter().for_each(|&root| seen.extend(cone(terms, root)));
        Self::new(terms, conditions, seen, FxHashSet::default())
    }

    fn new(terms: &mut Terms, roots: &[Term], seen: FxHashSet<Term>, mut hidden: FxHashSet<Term>) -> Self {
        for &term in &seen {
            match terms.node(term).op {
                // Solvers cannot do divisions.
                Op::Opaque | Op::Udiv | Op::Urem => {
                    hidden.insert(term);
                }
                // A sum and its complement, which is a sum too, are one unknown.
                Op::Add => {
                    let width = terms.width(term);
                    let other = terms.not(width, term);
                    if seen.contains(&other) {
                        hidden.extend([term, other]);
                    }
                }
                _ => {}
            }
        }
        let roots = SmallVec::from_slice(roots);
        Self { roots, seen, hidden, opened: FxHashSet::default(), state: LayerState::First }
    }

    fn stops(&self, terms: &Terms, term: Term) -> bool {
        !terms.node(term).args.is_empty()
            && (!self.seen.contains(&term) || self.hidden.contains(&term) && !self.opened.contains(&term))
    }

    /// Returns the terms of the next layer, `depth` deeper than the last one, if there is one.
    pub fn next(&mut self, terms: &mut Terms, depth: usize) -> Option<SmallVec<[Term; 4]>> {
        for _ in 0..depth {
            match self.state {
                LayerState::First => self.state = LayerState::Second,
                LayerState::Second => {
                    self.state = LayerState::Between;
                    if !self.settle(terms) {
                        self.open(terms);
                    }
                }
                LayerState::Between => {
                    self.open(terms);
                    self.settle(terms);
                }
                LayerState::Last => break,
            }
        }
        if self.state == LayerState::Last {
            return None;
        }
        let mut done = self.frontier(terms).parts;
        let roots = self.roots.clone();
        Some(roots.into_iter().map(|root| self.replace(terms, root, &mut done)).collect())
    }

    /// The subterms of a layer, and those of them that are abstracted; `leaves` are not expanded.
    fn reach(&self, terms: &Terms, leaves: &FxHashMap<Term, Term>) -> (FxHashSet<Term>, Vec<Term>) {
        let (mut visited, mut closed) = (FxHashSet::default(), Vec::new());
        let mut work = self.roots.to_vec();
        while let Some(term) = work.pop() {
            if leaves.contains_key(&term) || !visited.insert(term) {
                continue;
            }
            if self.stops(terms, term) {
                closed.push(term);
            } else {
                work.extend(terms.node(term).args.iter().copied());
            }
        }
        closed.retain(|term| self.seen.contains(term));
        (visited, closed)
    }

    /// The current layer. A subterm with a form of its own that is a part of an abstracted one becomes a part of the
    /// variable.
    fn frontier(&self, terms: &mut Terms) -> Frontier {
        let (visited, mut abstracted) = self.reach(terms, &FxHashMap::default());
        let unknown_parts: FxHashSet<Term> = abstracted.iter().copied().collect();
        abstracted.sort_unstable();
        // A hidden subterm outside of the layer may be shared by several abstracted parts.
        let within = abstracted.len();
        let outside = self.hidden.iter().copied().filter(|term| !visited.contains(term) && self.stops(terms, *term));
        abstracted.extend(outside);
        abstracted[within..].sort_unstable();
        let (mut parts, mut used) = (FxHashMap::default(), Vec::new());
        for (i, whole) in abstracted.into_iter().enumerate() {
            for name in names(terms, whole) {
                for (low, part) in terms.parts_taken(name).to_vec() {
                    let is_seen = if i < within { visited.contains(&part) } else { unknown_parts.contains(&part) };
                    if is_seen && !self.roots.contains(&part) && !parts.contains_key(&part) {
                        let (width, known) = (terms.width(part), unknown(terms, name));
                        let of_it = terms.extract(terms.width(name), known, low.into(), width);
                        parts.insert(part, of_it);
                        used.push(whole);
                    }
                }
            }
        }
        let (mut visited, mut closed) = self.reach(terms, &parts);
        closed.extend(used.into_iter().filter(|&whole| visited.insert(whole)));
        Frontier { visited, closed, parts }
    }

    /// Expands subterms whose operands are in the layer anyway, for example a comparison of two of its terms. The query
    /// then is more precise, with no more unknowns. Returns true if there were any.
    fn settle(&mut self, terms: &mut Terms) -> bool {
        let mut any = false;
        loop {
            let Frontier { mut visited, mut closed, .. } = self.frontier(terms);
            for &term in &closed {
                visited.extend(names(terms, term));
            }
            closed.retain(|&term| {
                let node = terms.node(term);
                is_easy(terms, term) && node.args.iter().all(|&arg| is_within(terms, &visited, arg, WITHIN))
            });
            if closed.is_empty() || visited.len() > LARGE {
                return any;
            }
            any = true;
            for term in closed {
                self.opened.extend(names(terms, term));
            }
        }
    }

    /// Expands all subterms that the last layer abstracted.
    fn open(&mut self, terms: &mut Terms) {
        let Frontier { visited, closed, .. } = self.frontier(terms);
        if closed.is_empty() || visited.len() > LARGE {
            self.state = LayerState::Last;
        }
        self.opened.extend(closed);
    }

    /// Replaces the hidden subterms of a term by variables.
    fn replace(&self, terms: &mut Terms, root: Term, done: &mut FxHashMap<Term, Term>) -> Term {
        let mut stack = vec![root];
        while let Some(&term) = stack.last() {
            if done.contains_key(&term) {
                stack.pop();
                continue;
            }
            if self.stops(terms, term) {
                let variable = unknown(terms, term);
                done.insert(term, variable);
                continue;
            }
            let node = terms.node(term);
            let before = stack.len();
            stack.extend(node.args.iter().filter(|arg| !done.contains_key(arg)));
            if stack.len() == before {
                let args: SmallVec<[Term; 4]> = node.args.iter().map(|arg| done[arg]).collect();
                let new = match node.op {
                    Op::Opaque => args[0],
                    _ if args[..] == node.args[..] => term,
                    op => {
                        let width = node.width.into();
                        terms.rebuild(op, width, &args)
                    }
                };
                done.insert(term, new);
            }
        }
        done[&root]
    }
}

/// The boundary of a layer.
struct Frontier {
    visited: FxHashSet<Term>,
    /// The subterms that are abstracted.
    closed: Vec<Term>,
    /// Parts of abstracted subterms, as parts of their variables.
    parts: FxHashMap<Term, Term>,
}

/// A term, and its complement if it is a sum: the complement is a sum too, and they are one unknown.
fn names(terms: &mut Terms, term: Term) -> SmallVec<[Term; 2]> {
    let mut names: SmallVec<[Term; 2]> = SmallVec::from_slice(&[term]);
    if terms.node(term).op == Op::Add {
        names.push(terms.not(terms.width(term), term));
    }
    names
}

/// The maximum number of operations between a term and the terms of a layer that it depends on.
const WITHIN: u8 = 3;

/// Returns true if a term depends on `others` only, by at most `operations` operations.
fn is_within(terms: &Terms, others: &FxHashSet<Term>, term: Term, operations: u8) -> bool {
    others.contains(&term)
        || terms.as_constant(term).is_some()
        || operations > 0
            && is_easy(terms, term)
            && terms.node(term).args.iter().all(|&arg| is_within(terms, others, arg, operations - 1))
}

/// Returns true if solvers handle an operation well.
fn is_easy(terms: &Terms, term: Term) -> bool {
    let node = terms.node(term);
    match node.op {
        Op::Mul => terms.as_constant(node.args[0]).is_some(),
        Op::Udiv | Op::Urem | Op::UmulHigh | Op::SmulHigh | Op::Float(_) | Op::Apply(_) | Op::Variable(_) => false,
        _ => true,
    }
}

/// The nodes of a term that are nearest to its root.
fn cone(terms: &Terms, root: Term) -> IndexSet<Term, FxBuildHasher> {
    let (mut seen, mut at) = (IndexSet::<Term, FxBuildHasher>::default(), 0);
    seen.insert(root);
    while let Some(&term) = seen.get_index(at).filter(|_| seen.len() < CONE) {
        at += 1;
        seen.extend(terms.node(term).args.iter().copied());
    }
    seen
}

/// The variable for a term. For a sum and its complement there is one variable, of which one of them is the complement.
fn unknown(terms: &mut Terms, term: Term) -> Term {
    let width = terms.width(term);
    if terms.node(term).op == Op::Add {
        let other = terms.not(width, term);
        if other < term && terms.node(other).op == Op::Add {
            let variable = variable(terms, other);
            return terms.not(width, variable);
        }
    }
    variable(terms, term)
}

fn variable(terms: &mut Terms, term: Term) -> Term {
    let width = terms.width(term);
    terms.variable_of(VariableKind::LANE.passing(), width, &format!("common {term:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables<const N: usize>(terms: &mut Terms, names: [&str; N]) -> [Term; N] {
        names.map(|text| {
            let name = terms.name(text);
            terms.variable(32, name)
        })
    }

    /// `x * y + 3` on a variable, `x` being opaque, in a chain of `steps` steps.
    fn chain(terms: &mut Terms, steps: usize) -> Term {
        let [x, y] = variables(terms, ["x", "y"]);
        let three = terms.constant(32, 3);
        (0..steps).fold(x, |value, _| {
            let product = terms.mul(32, value, y);
            let sum = terms.add(32, product, three);
            terms.shallow(sum, 1)
        })
    }

    #[test]
    fn each_layer_looks_deeper() {
        let mut terms = Terms::new();
        let t = &mut terms;
        let value = chain(t, 4);
        let one = t.constant(32, 1);
        let more = t.add(32, value, one);
        let mut layers = Layers::of_pair(t, value, more);
        let mut sizes = Vec::new();
        while let Some(layer) = layers.next(t, 1) {
            assert_ne!(layer[0], layer[1], "different terms stay different");
            sizes.push(cone(t, layer[1]).len());
        }
        assert!(sizes.len() > 2 && sizes.is_sorted(), "{sizes:?}");
        // The last layer abstracts nothing.
        let [x, y] = variables(t, ["x", "y"]);
        let whole = layers.replace(t, more, &mut FxHashMap::default());
        let all = cone(t, whole);
        assert!(all.contains(&x) && all.contains(&y));
        assert!(all.iter().all(|&term| t.node(term).op != Op::Opaque));
    }

    #[test]
    fn a_sum_and_its_complement_are_one_unknown() {
        let mut terms = Terms::new();
        let t = &mut terms;
        let [x, y, z] = variables(t, ["x", "y", "z"]);
        let sum = t.add(32, x, y);
        let other = t.not(32, sum);
        let (a, b) = (t.and(32, sum, z), t.or(32, other, z));
        let layer = Layers::of_pair(t, a, b).next(t, 1).unwrap();
        // ~(sum & ~z) is ~sum | z: with one variable for both, the normal form shows it.
        let not_z = t.not(32, z);
        let hidden = unknown(t, sum.min(other));
        let complement = t.not(32, hidden);
        let expected = if sum < other { (hidden, complement) } else { (complement, hidden) };
        assert_eq!(layer[0], t.and(32, expected.0, z));
        let inner = t.and(32, expected.0, not_z);
        assert_eq!(layer[1], t.not(32, inner));
    }

    #[test]
    fn what_is_in_a_layer_is_known_in_it() {
        let mut terms = Terms::new();
        let t = &mut terms;
        let [x, y, z] = variables(t, ["x", "y", "z"]).map(|variable| {
            let square = t.mul(32, variable, variable);
            t.shallow(square, 0)
        });
        // x < y is common to both; the second layer shows that it compares x and y, which are also there.
        let less = t.ult(32, x, y);
        let (a, b) = (t.ite(32, less, x, z), t.ite(32, less, y, z));
        let mut layers = Layers::of_pair(t, a, b);
        let first = layers.next(t, 1).unwrap();
        let second = layers.next(t, 1).unwrap();
        let compares = |t: &Terms, root: Term| cone(t, root).iter().any(|&term| t.node(term).op == Op::Ult);
        assert!(!compares(t, first[0]) && compares(t, second[0]));
        // Neither expands the factors of x.
        assert!(cone(t, second[0]).iter().all(|&term| t.node(term).op != Op::Mul));
    }

    #[test]
    fn a_part_of_what_is_unknown_is_part_of_its_variable() {
        let mut terms = Terms::new();
        let t = &mut terms;
        let [x, y, z] = variables(t, ["x", "y", "z"]);
        let product = t.xor(32, x, y);
        let whole = t.and(32, product, z);
        let byte = t.extract(32, whole, 0, 8);
        assert_ne!(t.node(byte).op, Op::Extract(0), "the part has a form of its own");
        let (wide, signed) = (t.zext(8, 32, byte), t.sext(8, 32, byte));
        let (a, b) = (t.add(32, whole, wide), t.add(32, whole, signed));
        let layer = Layers::of_pair(t, a, b).next(t, 1).unwrap();
        let hidden = unknown(t, whole);
        let byte = t.extract(32, hidden, 0, 8);
        let (wide, signed) = (t.zext(8, 32, byte), t.sext(8, 32, byte));
        assert_eq!(layer[0], t.add(32, hidden, wide));
        assert_eq!(layer[1], t.add(32, hidden, signed));
    }
}
