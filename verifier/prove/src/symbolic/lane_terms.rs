//! Values of other lanes as terms over the variables of these lanes: `read_first(f(x))` is `f(read_first(x))`.
//!
//! All lanes at a point of a segment that come from its cut point run the same code, so the value of another lane is
//! the same term, of the variables of that lane. A variable `x` of one lane becomes the variable "`x` of that lane";
//! uniform values stay unchanged. So an operation that reads another lane is no event: its result is a term, which
//! normalises like any other. Moves by a function of the lane's number ([`LaneMap`]) compose, and a subgroup vote is a
//! disjunction over the lanes, which distributes over disjunctions.
//!
//! This requires that no lane of another segment is active, and that no lane has left a loop in another iteration: such
//! lanes have other terms. The lanes that take part are then those of the group at the cut point for which the path
//! condition holds, in both programs: they are known by the cut point and the condition.
//!
//! The value of an inactive lane is arbitrary. A bit of its own is set if the lane that is read is inactive, and a
//! variable of its own is the value that is read then.

use super::run::SymbolicMachine;
use super::wave::Selection;
use super::{Cut, Oracle, SymbolicValue};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Extent, Op, Term, Terms, VariableKind};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The maximum number of nodes of a term that is carried over to another lane.
const NODES: usize = 2000;

/// The maximum number of parts of a subgroup vote.
const PARTS: u32 = 32;

/// The number of the lane that is read, as a function of the number of the lane that reads it: some of its bits, and a
/// pattern that they are combined with by an exclusive or.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaneMap {
    and: u32,
    xor: u32,
}

impl LaneMap {
    /// The lane itself.
    const OWN: Self = Self::xor(0);

    /// The lane whose number differs in these bits.
    pub const fn xor(bits: u32) -> Self {
        Self { and: u32::MAX, xor: bits }
    }

    /// A lane of the own quad.
    pub const fn of_quad(lane: u32) -> Self {
        Self { and: !3, xor: lane & 3 }
    }

    /// A lane by its number, the same for all.
    pub const fn lane(number: u32) -> Self {
        Self { and: 0, xor: number }
    }

    /// The lane that `self` maps the lane to that `first` maps a lane to.
    fn after(self, first: Self) -> Self {
        Self { and: self.and & first.and, xor: first.xor & self.and ^ self.xor }
    }

    /// The kind of a value of that lane, given that of its own value.
    fn kind(self, own: VariableKind) -> VariableKind {
        if self.and == 0 { VariableKind { extent: Extent::Wave, ..own } } else { own }
    }
}

/// The lanes at a point: those of the group at a cut point for which a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LaneSet {
    cut: Cut,
    condition: Term,
}

/// A lane that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    Map(LaneMap),
    /// The first lane of a set.
    First(LaneSet),
    /// Any other lane of the group at the cut point.
    Another,
}

/// The variables for values of another lane.
#[derive(Debug, Default)]
pub struct LaneTerms {
    /// Values of other lanes: the lane, and the variable of which it is the value.
    moved: FxHashMap<Term, (LaneMap, Term)>,
    /// The bits that are 1 where a lane is none of a set.
    absent: FxHashMap<Term, (LaneMap, LaneSet)>,
}

impl LaneTerms {
    /// The value that a term has in another lane; `None` if the term is too large.
    fn at(&mut self, terms: &mut Terms, source: Source, term: Term) -> Option<Term> {
        let mut done: FxHashMap<Term, Term> = FxHashMap::default();
        let mut stack = vec![term];
        while let Some(&top) = stack.last() {
            if done.contains_key(&top) {
                stack.pop();
                continue;
            }
            if done.len() > NODES {
                return None;
            }
            let node = terms.node(top).clone();
            if let Op::Variable(name) = node.op {
                let kind = terms.kind(name).unwrap_or(VariableKind::LANE);
                let there = match kind.extent {
                    Extent::Lane => self.variable(terms, source, top, kind),
                    Extent::Wave | Extent::Draw => top,
                };
                done.insert(top, there);
                continue;
            }
            let before = stack.len();
            stack.extend(node.args.iter().filter(|arg| !done.contains_key(arg)));
            if stack.len() == before {
                let args: SmallVec<[Term; 4]> = node.args.iter().map(|arg| done[arg]).collect();
                let there =
                    if args[..] == node.args[..] { top } else { terms.rebuild(node.op, node.width.into(), &args) };
                done.insert(top, there);
            }
        }
        done.get(&term).copied()
    }

    /// The value that a term has in any other lane that runs the segment; `None` if the term is too large.
    pub fn another(&mut self, terms: &mut Terms, term: Term) -> Option<Term> {
        self.at(terms, Source::Another, term)
    }

    /// The value that a variable of each lane has in another lane.
    fn variable(&mut self, terms: &mut Terms, source: Source, own: Term, kind: VariableKind) -> Term {
        let width = terms.width(own);
        let map = match source {
            Source::First(set) => {
                let LaneSet { cut, condition } = set;
                let name = format!("{own:?} of {width} bits in the first lane with {condition:?} from {cut:?}");
                return terms.variable_of(cut.kind(VariableKind::WAVE), width, &name);
            }
            Source::Another => {
                return terms.variable_of(kind, width, &format!("{own:?} of {width} bits in another lane"));
            }
            Source::Map(map) => map,
        };
        if let Some(&(inner, set)) = self.absent.get(&own) {
            return self.absent(terms, inner.after(map), set);
        }
        let (inner, base) = self.moved.get(&own).copied().unwrap_or((LaneMap::OWN, own));
        let map = inner.after(map);
        if map == LaneMap::OWN {
            return base;
        }
        let name = format!("{base:?} of {width} bits in lane {:x} {:x}", map.and, map.xor);
        let there = terms.variable_of(map.kind(kind), width, &name);
        self.moved.insert(there, (map, base));
        there
    }

    /// One bit: 1 if a lane is none of a set. The reading lane is one of it.
    fn absent(&mut self, terms: &mut Terms, map: LaneMap, set: LaneSet) -> Term {
        if map == LaneMap::OWN {
            return terms.constant(1, 0);
        }
        let LaneSet { cut, condition } = set;
        let name = format!("lane {:x} {:x} is none of those with {condition:?} from {cut:?}", map.and, map.xor);
        let bit = terms.variable_of(map.kind(cut.kind(VariableKind::LANE)), 1, &name);
        self.absent.insert(bit, (map, set));
        bit
    }

    /// Returns true if all variables of a term are flags of absent lanes.
    fn is_about_absent(&self, terms: &Terms, term: Term) -> bool {
        let mut seen = FxHashSet::default();
        let mut work = vec![term];
        while let Some(term) = work.pop() {
            if !seen.insert(term) {
                continue;
            }
            let node = terms.node(term);
            if matches!(node.op, Op::Variable(_)) && !self.absent.contains_key(&term) {
                return false;
            }
            work.extend_from_slice(&node.args);
        }
        true
    }
}

impl<O: Oracle> SymbolicMachine<'_, O> {
    /// Returns true if the values of the lanes that are here are terms of this segment, and the rules are to be used.
    fn has_lane_terms(&mut self) -> bool {
        self.oracle.lane_terms().is_some() && (!self.may_be_joined() && !self.is_mixed() || left_out(Guard::LaneTerms))
    }

    fn lanes_here(&self, condition: Term) -> LaneSet {
        LaneSet { cut: self.run.cut, condition }
    }

    /// The value of a lane by its number, undefined if it is inactive; `None` if it is no term.
    pub(super) fn moved_by(&mut self, map: LaneMap, value: SymbolicValue) -> Option<SymbolicValue> {
        if !self.has_lane_terms() {
            return None;
        }
        let here = self.lanes_here(self.path());
        let cut = self.run.cut;
        let terms = &mut *self.terms;
        let lanes = self.oracle.lane_terms()?;
        if !value.is_defined(terms) && !lanes.is_about_absent(terms, value.free) {
            return None;
        }
        let bits = lanes.at(terms, Source::Map(map), value.bits)?;
        let free = lanes.at(terms, Source::Map(map), value.free)?;
        let absent = lanes.absent(terms, map, here);
        let absent = if left_out(Guard::LaneAbsent) { terms.constant(1, 0) } else { absent };
        let name =
            format!("{bits:?} read from lane {:x} {:x} with {:?} from {cut:?}", map.and, map.xor, here.condition);
        let anything = terms.variable_of(map.kind(cut.kind(VariableKind::LANE)), 32, &name);
        let all = terms.constant(32, u32::MAX.into());
        Some(SymbolicValue { bits: terms.ite(32, absent, anything, bits), free: terms.ite(32, absent, all, free) })
    }

    /// The value of the first of the lanes in which a condition holds. If there may be none, see
    /// [`Self::first_or_none`]. `None` if it is no term.
    pub(super) fn first_with(&mut self, selected: Term, value: SymbolicValue) -> Option<SymbolicValue> {
        if !self.has_lane_terms() || !value.is_defined(self.terms) {
            return None;
        }
        let path = self.path();
        let condition = self.terms.and(1, path, selected);
        let condition = if left_out(Guard::LaneFirst) { self.terms.constant(1, 1) } else { condition };
        let set = self.lanes_here(condition);
        let bits = self.oracle.lane_terms()?.at(self.terms, Source::First(set), value.bits)?;
        Some(SymbolicValue::defined(self.terms, bits))
    }

    /// The value of the first of the lanes in which a condition holds, undefined if it holds in none; `None` if it is
    /// no term.
    pub(super) fn first_or_none(&mut self, selected: SymbolicValue, value: SymbolicValue) -> Option<SymbolicValue> {
        if !selected.is_defined(self.terms) {
            return None;
        }
        let SymbolicValue { bits, .. } = self.first_with(selected.bits, value)?;
        let some = self.any_with(selected)?;
        let none = self.terms.not(1, some);
        let cut = self.run.cut;
        let name = format!("{bits:?} read where no lane has {:?} with {:?} from {cut:?}", selected.bits, self.path());
        let anything = self.terms.variable_of(cut.kind(VariableKind::WAVE), 32, &name);
        let bits = self.terms.ite(32, none, anything, bits);
        Some(SymbolicValue::free_where(self.terms, bits, none))
    }

    /// One bit: 1 if a condition holds in any lane that is here; `None` if that is no term.
    pub(super) fn any_with(&mut self, selected: SymbolicValue) -> Option<Term> {
        if !self.has_lane_terms() || !selected.is_defined(self.terms) {
            return None;
        }
        let path = self.path();
        let condition = self.terms.and(1, path, selected.bits);
        let mut parts = PARTS;
        let some = self.any_lane(condition, &mut parts);
        self.selections.push(Selection { block: self.block, path, some });
        Some(some)
    }

    /// One bit: 1 if a condition holds in any lane of the group at the cut point.
    fn any_lane(&mut self, condition: Term, parts: &mut u32) -> Term {
        // The lane itself is one of them.
        if self.facts.uniform(self.terms, condition) {
            return condition;
        }
        let conjuncts = self.terms.conjuncts(condition);
        let (uniform, own): (SmallVec<[Term; 4]>, SmallVec<[Term; 4]>) =
            conjuncts.into_iter().partition(|&conjunct| self.facts.uniform(self.terms, conjunct));
        if !uniform.is_empty() {
            let own = self.terms.conjunction(&own);
            let any = self.any_lane(own, parts);
            let same = self.terms.conjunction(&uniform);
            return self.terms.and(1, same, any);
        }
        // A conjunct that is a disjunction.
        let clause = own.iter().position(|&conjunct| {
            let node = self.terms.node(conjunct);
            node.op == Op::Not && self.terms.node(node.args[0]).op == Op::And
        });
        if let Some(clause) = clause {
            let inner = self.terms.node(own[clause]).args[0];
            let alternatives = self.terms.conjuncts(inner);
            if let Some(rest) = parts.checked_sub(alternatives.len() as u32) {
                *parts = rest;
                let mut any = self.terms.constant(1, 0);
                for alternative in alternatives {
                    let mut conjuncts = own.clone();
                    conjuncts[clause] = self.terms.not(1, alternative);
                    let condition = self.terms.conjunction(&conjuncts);
                    let here = self.any_lane(condition, parts);
                    any = self.terms.or(1, any, here);
                }
                return any;
            }
        }
        let cut = self.run.cut;
        self.terms.variable_of(cut.kind(VariableKind::WAVE), 1, &format!("some lane with {condition:?} from {cut:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the lane that is read.
    fn apply(map: LaneMap, lane: u32) -> u32 {
        lane & map.and ^ map.xor
    }

    #[test]
    fn maps_compose() {
        let maps = [LaneMap::xor(1), LaneMap::xor(6), LaneMap::of_quad(2), LaneMap::lane(37), LaneMap::OWN];
        for outer in maps {
            for inner in maps {
                let both = inner.after(outer);
                for lane in 0..64 {
                    assert_eq!(apply(both, lane), apply(inner, apply(outer, lane)), "{inner:?} after {outer:?}");
                }
            }
        }
        assert_eq!(LaneMap::xor(3).after(LaneMap::xor(3)), LaneMap::OWN);
    }

    #[test]
    fn values_of_other_lanes_have_the_form_of_the_own_ones() {
        let (terms, lanes) = (&mut Terms::new(), &mut LaneTerms::default());
        let x = terms.variable_of(VariableKind::LANE, 32, "x");
        let y = terms.variable_of(VariableKind::WAVE, 32, "y");
        let sum = terms.add(32, x, y);
        let set = LaneSet { cut: Cut::Entry, condition: terms.constant(1, 1) };
        let mut at = |terms: &mut Terms, source, term| lanes.at(terms, source, term).unwrap();
        let first = Source::First(set);
        let (of_sum, of_x) = (at(terms, first, sum), at(terms, first, x));
        assert!(of_sum == terms.add(32, of_x, y) && of_x != x);
        assert!(at(terms, first, of_sum) == of_sum && at(terms, first, y) == y);
        let [one, two, three] = [1, 2, 3].map(|bits| Source::Map(LaneMap::xor(bits)));
        let of_two = at(terms, two, sum);
        assert!(at(terms, one, of_two) == at(terms, three, sum) && at(terms, two, of_two) == sum);
        let of_quad = at(terms, Source::Map(LaneMap::of_quad(1)), of_two);
        assert!(of_quad == at(terms, Source::Map(LaneMap::of_quad(3)), sum));
    }
}
