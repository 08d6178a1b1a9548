//! Equality of expressions that mix sums with bitwise operations, by their truth table.
//!
//! A term that is a linear combination of bitwise expressions of some *atoms* is, modulo 2^w, the sum over all bit
//! positions k of 2^k times the same linear combination of *bits*: the values of the expressions on the atoms' bits at
//! k. (A constant c counts as -c times the constant of all ones; a choice by one bit selects one of two sums in every
//! position, so its condition is an atom that has the same bit everywhere.) So two such terms are equal if the sums of
//! bits are, for every choice of bits: that is the whole theory of `x + y = (x ^ y) + 2 * (x & y)`, of `~x = -x - 1`,
//! of De Morgan's laws and of minima by masks (Zhou and others, *Information Hiding in Software with Mixed
//! Boolean-Arithmetic Transforms*, 2007).
//!
//! A sum that is an operand of a bitwise operation is an atom with one more fact: the atom minus the sum is 0.
//! Multiples of that difference may be subtracted before two terms are compared, other multiples for each choice of the
//! conditions.

use super::{Op, Term, Terms};
use crate::arithmetic::concrete::mask;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The number of atoms: a table has 2^10 rows at most.
const ATOMS: usize = 10;

/// The number of steps.
const STEPS: usize = 400;

/// The nesting depth of operations, which are expanded recursively.
const NESTED: usize = 64;

/// The number of a step.
type StepIndex = u32;

/// A step of the computation of a term's sum of bits: modulo 2^64, of which the low bits are used.
#[derive(Clone, Debug)]
enum BitStep {
    /// The bit of an atom, by its number.
    Atom(usize),
    /// A constant.
    Number(u64),
    Not(StepIndex),
    And(Vec<StepIndex>),
    Xor(Vec<StepIndex>),
    Sum(Vec<StepIndex>),
    Times(u64, StepIndex),
    /// The second if the bit is 1, else the third.
    Choice(StepIndex, StepIndex, StepIndex),
}

/// The steps to the terms of a query.
struct TruthTable<'a> {
    terms: &'a mut Terms,
    width: u32,
    choices: bool,
    known: bool,
    nested: usize,
    steps: Vec<BitStep>,
    atoms: FxHashMap<Term, usize>,
    /// Atoms that are sums, each with an expression that is 0: the atom minus its sum.
    zeros: Vec<(usize, StepIndex)>,
    bits: FxHashMap<Term, StepIndex>,
    sums: FxHashMap<Term, StepIndex>,
}

impl Terms {
    /// Returns true if two terms are equal for all bits of their atoms, or by their carries. `false` means unknown.
    pub fn are_same_by_table(&mut self, a: Term, b: Term) -> bool {
        self.are_same_in_pieces(a, b) || self.are_same_by_tables(a, b)
    }

    fn are_same_by_tables(&mut self, a: Term, b: Term) -> bool {
        // A subterm that is not expanded is one atom instead of several.
        let settings = [(false, false), (true, false), (false, true), (true, true)];
        settings.into_iter().any(|(choices, known)| self.are_same_by_one_table(a, b, choices, known))
            || self.are_same_by_carries(a, b)
    }

    /// Like [`are_same_by_table`](Self::are_same_by_table), piece by piece for concatenations.
    fn are_same_in_pieces(&mut self, a: Term, b: Term) -> bool {
        let cuts = self.cuts(a) | self.cuts(b);
        let width = self.width(a);
        let ends = (1..=width).filter(|&bit| bit == width || cuts >> bit & 1 != 0);
        let mut low = 0;
        for end in ends.collect::<Vec<_>>() {
            let (x, y) = (self.slice(a, low, end - low), self.slice(b, low, end - low));
            if x != y && !self.are_same_by_tables(x, y) {
                return false;
            }
            low = end;
        }
        cuts != 0
    }

    /// Compares by one table, which expands choices if `choices`, and uses that an atom equals its sum if `known`.
    fn are_same_by_one_table(&mut self, a: Term, b: Term, choices: bool, known: bool) -> bool {
        let width = self.width(a);
        let mut table = TruthTable {
            terms: self,
            width,
            choices,
            known,
            nested: 0,
            steps: Vec::new(),
            atoms: FxHashMap::default(),
            zeros: Vec::new(),
            bits: FxHashMap::default(),
            sums: FxHashMap::default(),
        };
        let (a, b) = match (table.sum(a), table.sum(b)) {
            (Some(a), Some(b)) => (a, b),
            _ => return false,
        };
        table.is_zero_everywhere(a, b)
    }
}

impl TruthTable<'_> {
    fn push(&mut self, step: BitStep) -> Option<StepIndex> {
        self.steps.push(step);
        (self.steps.len() <= STEPS).then_some(self.steps.len() as StepIndex - 1)
    }

    fn atom(&mut self, term: Term) -> Option<(StepIndex, bool)> {
        let next = self.atoms.len();
        let number = *self.atoms.entry(term).or_insert(next);
        let at = self.push(BitStep::Atom(number))?;
        (number < ATOMS).then_some((at, number == next))
    }

    /// Counts an expansion. With too many there is no table.
    fn go_deeper(&mut self) -> Option<()> {
        self.nested += 1;
        (self.nested <= NESTED).then_some(())
    }

    /// A term as a sum of bits.
    fn sum(&mut self, term: Term) -> Option<StepIndex> {
        if let Some(&at) = self.sums.get(&term) {
            return Some(at);
        }
        self.go_deeper()?;
        let node = self.terms.node(term).clone();
        let at = match node.op {
            _ if self.width == 1 => self.bit(term),
            Op::Constant(number) => self.push(BitStep::Number(number.wrapping_neg())),
            Op::Add => {
                let args = node.args.iter().map(|&arg| self.sum(arg)).collect::<Option<_>>()?;
                self.push(BitStep::Sum(args))
            }
            Op::Mul => match self.terms.coefficient(term) {
                Some((factor, rest)) => {
                    let rest = self.sum(rest)?;
                    self.push(BitStep::Times(factor, rest))
                }
                None => self.bit(term),
            },
            Op::Not => {
                let of = self.sum(node.args[0])?;
                let (one, minus) = (self.push(BitStep::Number(1))?, self.push(BitStep::Times(u64::MAX, of))?);
                self.push(BitStep::Sum(vec![one, minus]))
            }
            Op::Ite if self.choices => {
                let condition = self.bit(node.args[0])?;
                let (yes, no) = (self.sum(node.args[1])?, self.sum(node.args[2])?);
                self.push(BitStep::Choice(condition, yes, no))
            }
            Op::Zext if self.terms.width(node.args[0]) == 1 => {
                let bit = self.bit(node.args[0])?;
                self.push(BitStep::Times(u64::MAX, bit))
            }
            _ => self.bit(term),
        }?;
        self.sums.insert(term, at);
        self.nested -= 1;
        Some(at)
    }

    /// A term as a bit in every position. A term of one bit, in a wider table, has the same bit in all positions.
    fn bit(&mut self, term: Term) -> Option<StepIndex> {
        if let Some(&at) = self.bits.get(&term) {
            return Some(at);
        }
        self.go_deeper()?;
        let node = self.terms.node(term).clone();
        let list = |table: &mut Self| node.args.iter().map(|&arg| table.bit(arg)).collect::<Option<Vec<StepIndex>>>();
        let w = self.terms.width(term);
        let at = match node.op {
            Op::Constant(number) if number == 0 || number == mask(w) => {
                self.push(BitStep::Number((number != 0).into()))
            }
            Op::Not => {
                let of = self.bit(node.args[0])?;
                self.push(BitStep::Not(of))
            }
            Op::And => {
                let args = list(self)?;
                self.push(BitStep::And(args))
            }
            Op::Xor => {
                let args = list(self)?;
                self.push(BitStep::Xor(args))
            }
            Op::Ite if self.choices => {
                let args = list(self)?;
                self.push(BitStep::Choice(args[0], args[1], args[2]))
            }
            Op::Sext if self.terms.width(node.args[0]) == 1 => self.bit(node.args[0]),
            Op::Constant(_) | Op::Add | Op::Mul | Op::Concat | Op::Zext | Op::Sext => self.one_of_two(term),
            _ => Some(self.atom(term)?.0),
        }?;
        self.bits.insert(term, at);
        self.nested -= 1;
        Some(at)
    }

    /// An atom whose complement has another form: the earlier term of the two.
    fn one_of_two(&mut self, term: Term) -> Option<StepIndex> {
        let other = self.terms.complement(term);
        let least = term.min(other);
        let (at, new) = self.atom(least)?;
        if new && self.known && self.terms.width(term) == self.width {
            let is_sum = |op| matches!(op, Op::Constant(_) | Op::Add | Op::Mul | Op::Zext);
            if is_sum(self.terms.node(least).op) {
                let number = self.atoms[&least];
                // The sum of an atom without such a fact is the atom.
                let sum = self.sum_of_atom(least, at)?;
                let minus = self.push(BitStep::Times(u64::MAX, sum))?;
                let zero = self.push(BitStep::Sum(vec![at, minus]))?;
                self.zeros.push((number, zero));
            }
        }
        if least == term { Some(at) } else { self.push(BitStep::Not(at)) }
    }

    /// The sum that equals an atom.
    fn sum_of_atom(&mut self, term: Term, at: StepIndex) -> Option<StepIndex> {
        let node = self.terms.node(term);
        let opaque = match node.op {
            Op::Mul => self.terms.coefficient(term).is_none(),
            Op::Zext => self.terms.width(node.args[0]) != 1,
            _ => false,
        };
        if opaque { Some(at) } else { self.sum(term) }
    }

    fn is_zero_everywhere(&self, a: StepIndex, b: StepIndex) -> bool {
        let mut values = vec![0; self.steps.len()];
        let difference = |row: usize, values: &mut Vec<u64>| {
            self.fill(row, values);
            values[a as usize].wrapping_sub(values[b as usize])
        };
        let bits = mask(self.width);
        let rows = || 0..1usize << self.atoms.len();
        // Conditions are the same in all positions: there is a table for each choice of them.
        let conditions: usize =
            self.atoms.iter().filter(|&(&atom, _)| self.is_condition(atom)).map(|(_, i)| 1 << i).sum();
        rows().filter(|row| row & !conditions == 0).all(|chosen| {
            let at_none = difference(chosen, &mut values);
            // The row in which only the atom is 1 gives the multiple of its difference to subtract.
            let alone =
                |&(atom, _): &(usize, StepIndex)| difference(chosen | 1 << atom, &mut values).wrapping_sub(at_none);
            let times: SmallVec<[u64; 4]> = self.zeros.iter().map(alone).collect();
            rows().filter(|row| row & conditions == chosen).all(|row| {
                let all = difference(row, &mut values);
                let zeros = self.zeros.iter().zip(&times).map(|(&(_, at), n)| n.wrapping_mul(values[at as usize]));
                zeros.fold(all, u64::wrapping_sub) & bits == 0
            })
        })
    }

    fn is_condition(&self, atom: Term) -> bool {
        self.width > 1 && self.terms.width(atom) == 1
    }

    /// Evaluates all steps in a row of the table.
    fn fill(&self, row: usize, values: &mut [u64]) {
        for (i, step) in self.steps.iter().enumerate() {
            let of = |at: StepIndex| values[at as usize];
            values[i] = match step {
                &BitStep::Atom(number) => row as u64 >> number & 1,
                &BitStep::Number(number) => number,
                &BitStep::Not(at) => 1 ^ of(at),
                BitStep::And(list) => list.iter().fold(1, |all, &at| all & of(at)),
                BitStep::Xor(list) => list.iter().fold(0, |all, &at| all ^ of(at)),
                BitStep::Sum(list) => list.iter().fold(0, |all, &at| all.wrapping_add(of(at))),
                &BitStep::Times(factor, at) => factor.wrapping_mul(of(at)),
                &BitStep::Choice(condition, yes, no) => of(if of(condition) == 1 { yes } else { no }),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::arithmetic::domain::Domain;
    use crate::terms::{Term, Terms, value};
    use proptest::prelude::*;

    fn variables(terms: &mut Terms, width: u32) -> Vec<Term> {
        (0..3)
            .map(|i| {
                let name = terms.name(&format!("x{i}"));
                terms.variable(width, name)
            })
            .collect()
    }

    #[test]
    fn what_is_deep_is_no_table() {
        let mut terms = Terms::new();
        let t = &mut terms;
        let v = variables(t, 32);
        let mut value = v[0];
        for _ in 0..100_000 {
            let more = t.add(32, value, v[1]);
            value = t.xor(32, more, v[2]);
        }
        let other = t.xor(32, value, v[0]);
        assert!(!t.are_same_by_table(value, other));
    }

    #[test]
    fn sums_and_masks() {
        let mut terms = Terms::new();
        let t = &mut terms;
        let v = variables(t, 32);
        let (x, y, z) = (v[0], v[1], v[2]);
        let (or, and, xor, sum) = (t.or(32, x, y), t.and(32, x, y), t.xor(32, x, y), t.add(32, x, y));
        let by_parts = t.add(32, and, or);
        assert!(t.are_same_by_table(sum, by_parts));
        let without = t.sub(32, sum, and);
        assert!(t.are_same_by_table(or, without));
        assert!(!t.are_same_by_table(xor, without));
        // A sum in a bitwise operation: its definition is needed.
        let (low, high) = (t.and(32, sum, z), t.or(32, sum, z));
        let (by_bits, all) = (t.add(32, low, high), t.add(32, sum, z));
        assert!(t.are_same_by_table(by_bits, all));
        let one = t.constant(32, 1);
        let more = t.add(32, all, one);
        assert!(!t.are_same_by_table(by_bits, more));
        // A choice, by a mask.
        let less = t.slt(32, x, y);
        let chosen = t.ite(32, less, sum, z);
        let mask = t.sext(1, 32, less);
        let difference = t.xor(32, sum, z);
        let masked = t.and(32, difference, mask);
        let masked = t.xor(32, masked, z);
        assert!(t.are_same_by_table(chosen, masked));
        let other = t.xor(32, masked, mask);
        assert!(!t.are_same_by_table(chosen, other));
    }

    /// A random expression of these operations, made from random bytes.
    fn expression(terms: &mut Terms, width: u32, choices: &[u8]) -> Term {
        let mut list = variables(terms, width);
        for step in choices.chunks_exact(3) {
            let pick = |i: usize| list[step[i] as usize % list.len()];
            let (a, b) = (pick(1), pick(2));
            let new = match step[0] % 8 {
                0 => terms.add(width, a, b),
                1 => terms.sub(width, a, b),
                2 => terms.and(width, a, b),
                3 => terms.or(width, a, b),
                4 => terms.xor(width, a, b),
                5 => terms.not(width, a),
                6 => {
                    let condition = terms.slt(width, list[0], a);
                    terms.ite(width, condition, a, b)
                }
                _ => terms.constant(width, (i64::from(step[1]) - 128) as u64),
            };
            list.push(new);
        }
        list[list.len() - 1]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        /// Terms that the table proves equal have equal values.
        #[test]
        fn it_never_says_same_of_what_differs(
            a in prop::collection::vec(any::<u8>(), 3..18),
            b in prop::collection::vec(any::<u8>(), 3..18),
            x in any::<[u64; 3]>(),
            narrow in any::<bool>(),
        ) {
            let width = if narrow { 2 } else { 32 };
            let mut terms = Terms::new();
            let (a, b) = (expression(&mut terms, width, &a), expression(&mut terms, width, &b));
            if terms.are_same_by_table(a, b) {
                let of = |term| value(&terms, term, &|name| x[usize::from(terms.text(name).as_bytes()[1] - b'0')]);
                prop_assert_eq!(of(a), of(b));
            }
        }
    }
}
