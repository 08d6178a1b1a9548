//! Lowering of terms to the operations that all solvers have.
//!
//! A term of one bit becomes a truth value, as solvers are better at these than at bit vectors of one bit; where a bit
//! vector is needed, it is a selection between 1 and 0. Nothing here recurses: arguments have lower numbers than their
//! users.

use super::floats::{self, Comparison};
use super::{Query, Terms};
use ir3_semantics::arithmetic::concrete::mask;
use ir3_semantics::terms::{FloatOp, Op, Term};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// An operation on two bit vectors of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    And,
    Or,
    Xor,
    Add,
    Mul,
    Udiv,
    Urem,
    Shl,
    Lshr,
    Ashr,
}

/// A relation of two bit vectors of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BitRelation {
    Equal,
    UnsignedLess,
    SignedLess,
}

/// The language of a solver. Bit vectors may have up to 128 bits.
pub(super) trait Logic {
    /// A bit vector.
    type Bits: Clone;
    /// A truth value.
    type Truth: Clone;

    fn number(&mut self, w: u32, bits: u64) -> Self::Bits;
    fn variable(&mut self, w: u32, name: &str) -> Self::Bits;
    fn complement(&mut self, w: u32, a: &Self::Bits) -> Self::Bits;
    fn binary(&mut self, op: Binary, w: u32, a: &Self::Bits, b: &Self::Bits) -> Self::Bits;
    fn test(&mut self, test: BitRelation, a: &Self::Bits, b: &Self::Bits) -> Self::Truth;
    fn choose(&mut self, w: u32, condition: &Self::Truth, a: &Self::Bits, b: &Self::Bits) -> Self::Bits;
    /// Extends from `w` bits to `to` bits, `to` being more than `w`.
    fn extend(&mut self, signed: bool, w: u32, to: u32, a: &Self::Bits) -> Self::Bits;
    /// The `n` bits from bit `low` on.
    fn extract(&mut self, a: &Self::Bits, low: u32, n: u32) -> Self::Bits;
    /// The result has `w` bits.
    fn concat(&mut self, w: u32, high: &Self::Bits, low: &Self::Bits) -> Self::Bits;
    /// Applies an uninterpreted function. Its name determines the number and the widths of its arguments.
    fn apply(&mut self, w: u32, name: &str, args: &[(u32, Self::Bits)]) -> Self::Bits;
    /// A float operation with its exact meaning, if the language has it; the width is that of the result.
    fn float(&mut self, _op: FloatOp, _args: &[Self::Bits]) -> Option<Self::Bits> {
        None
    }

    fn truth(&mut self, value: bool) -> Self::Truth;
    fn condition(&mut self, name: &str) -> Self::Truth;
    fn not(&mut self, a: &Self::Truth) -> Self::Truth;
    fn both(&mut self, a: &Self::Truth, b: &Self::Truth) -> Self::Truth;
    fn either(&mut self, a: &Self::Truth, b: &Self::Truth) -> Self::Truth;
    fn differ(&mut self, a: &Self::Truth, b: &Self::Truth) -> Self::Truth;
    fn choose_truth(&mut self, condition: &Self::Truth, a: &Self::Truth, b: &Self::Truth) -> Self::Truth;
}

/// A lowered term: a truth value if it has one bit.
pub(super) enum LoweredTerm<L: Logic> {
    Bits(L::Bits),
    Truth(L::Truth),
}

impl<L: Logic> Clone for LoweredTerm<L> {
    fn clone(&self) -> Self {
        match self {
            Self::Bits(bits) => Self::Bits(bits.clone()),
            Self::Truth(truth) => Self::Truth(truth.clone()),
        }
    }
}

/// The assumptions, the goal, and the applications of uninterpreted functions.
pub(super) struct Lowered<L: Logic> {
    pub assumptions: Vec<L::Truth>,
    pub goal: L::Truth,
    #[cfg_attr(not(feature = "z3"), expect(dead_code, reason = "only a solver's model has their values"))]
    pub functions: Vec<(Term, LoweredTerm<L>)>,
}

/// Lowers a query. `nodes` are its terms, arguments first.
pub(super) fn lower<L: Logic>(l: &mut L, terms: &Terms, query: &Query, nodes: &[Term]) -> Lowered<L> {
    let mut lowering = Lowering { l, terms, values: FxHashMap::default(), commutative: Vec::new() };
    for &term in nodes {
        let value = lowering.node(term);
        lowering.values.insert(term, value);
    }
    let mut assumptions: Vec<L::Truth> = query.assumptions.iter().map(|&term| lowering.truth(term)).collect();
    lowering.commute(&mut assumptions);
    let goal = lowering.truth(query.goal);
    let applies = |&term: &Term| matches!(terms.node(term).op, Op::Apply(_));
    let functions = nodes.iter().copied().filter(applies).map(|term| (term, lowering.values[&term].clone())).collect();
    Lowered { assumptions, goal, functions }
}

struct Lowering<'a, L: Logic> {
    l: &'a mut L,
    terms: &'a Terms,
    values: FxHashMap<Term, LoweredTerm<L>>,
    /// The terms of commutative operations that have become uninterpreted functions.
    commutative: Vec<Term>,
}

/// The maximum number of commutative operations in a query for which facts are added.
const COMMUTATIVE: usize = 32;

impl<L: Logic> Lowering<'_, L> {
    /// A term as a bit vector.
    fn bits(&mut self, term: Term) -> L::Bits {
        match self.values[&term].clone() {
            LoweredTerm::Bits(bits) => bits,
            LoweredTerm::Truth(truth) => self.bit(&truth),
        }
    }

    /// A term as a truth value: its lowest bit.
    fn truth(&mut self, term: Term) -> L::Truth {
        match self.values[&term].clone() {
            LoweredTerm::Truth(truth) => truth,
            LoweredTerm::Bits(bits) => {
                let last = self.l.extract(&bits, 0, 1);
                self.is_one(&last)
            }
        }
    }

    /// A truth value as a bit vector of one bit.
    fn bit(&mut self, truth: &L::Truth) -> L::Bits {
        let (one, zero) = (self.l.number(1, 1), self.l.number(1, 0));
        self.l.choose(1, truth, &one, &zero)
    }

    fn is_one(&mut self, bit: &L::Bits) -> L::Truth {
        let one = self.l.number(1, 1);
        self.l.test(BitRelation::Equal, bit, &one)
    }

    /// A bit vector of width `w` as the value of a term.
    fn value(&mut self, w: u32, bits: L::Bits) -> LoweredTerm<L> {
        if w == 1 { LoweredTerm::Truth(self.is_one(&bits)) } else { LoweredTerm::Bits(bits) }
    }

    fn node(&mut self, term: Term) -> LoweredTerm<L> {
        let terms = self.terms;
        let node = terms.node(term);
        let w = terms.width(term);
        if w == 1
            && let Some(truth) = self.one_bit(node.op, &node.args)
        {
            return LoweredTerm::Truth(truth);
        }
        let args: Vec<(u32, L::Bits)> = if matches!(node.op, Op::Ite) {
            Vec::new()
        } else {
            node.args.iter().map(|&arg| (terms.width(arg), self.bits(arg))).collect()
        };
        let bits = match node.op {
            Op::Constant(bits) => self.l.number(w, bits),
            Op::Variable(name) => self.l.variable(w, terms.text(name)),
            Op::Not => self.l.complement(w, &args[0].1),
            Op::And => self.fold(Binary::And, w, &args),
            Op::Xor => self.fold(Binary::Xor, w, &args),
            Op::Add => self.fold(Binary::Add, w, &args),
            // A negation: a multiplication would cost solvers far more.
            Op::Mul if args.len() == 2 && terms.as_constant(node.args[0]) == Some(mask(w)) => {
                let complement = self.l.complement(w, &args[1].1);
                let one = self.l.number(w, 1);
                self.l.binary(Binary::Add, w, &complement, &one)
            }
            Op::Mul => self.fold(Binary::Mul, w, &args),
            Op::Udiv => self.fold(Binary::Udiv, w, &args),
            Op::Urem => self.fold(Binary::Urem, w, &args),
            Op::Shl => self.fold(Binary::Shl, w, &args),
            Op::Lshr => self.fold(Binary::Lshr, w, &args),
            Op::Ashr => self.fold(Binary::Ashr, w, &args),
            Op::Eq => return LoweredTerm::Truth(self.l.test(BitRelation::Equal, &args[0].1, &args[1].1)),
            Op::Ult => return LoweredTerm::Truth(self.l.test(BitRelation::UnsignedLess, &args[0].1, &args[1].1)),
            Op::Slt => return LoweredTerm::Truth(self.l.test(BitRelation::SignedLess, &args[0].1, &args[1].1)),
            Op::Ite => {
                let condition = self.truth(node.args[0]);
                let (a, b) = (self.bits(node.args[1]), self.bits(node.args[2]));
                self.l.choose(w, &condition, &a, &b)
            }
            Op::Zext => self.widen(false, args[0].0, w, &args[0].1),
            Op::Sext => self.widen(true, args[0].0, w, &args[0].1),
            Op::Extract(low) => self.l.extract(&args[0].1, low.into(), w),
            Op::Concat => self.l.concat(w, &args[0].1, &args[1].1),
            Op::UmulHigh => self.high(false, w, &args[0].1, &args[1].1),
            Op::SmulHigh => self.high(true, w, &args[0].1, &args[1].1),
            Op::Opaque => args[0].1.clone(),
            Op::Popcount => self.popcount(w, &args[0].1),
            Op::Clz => self.clz(w, &args[0].1),
            Op::Reverse => self.reverse(w, &args[0].1),
            Op::Float(op) => return self.float(term, op, w, &args),
            Op::Apply(name) => self.l.apply(w, &signature(terms.text(name), w, &args), &args),
        };
        self.value(w, bits)
    }

    /// Operations that are simpler on truth values than on bit vectors of one bit.
    fn one_bit(&mut self, op: Op, args: &[Term]) -> Option<L::Truth> {
        let narrow = args.iter().all(|&arg| self.terms.width(arg) == 1);
        match op {
            Op::Constant(bits) => Some(self.l.truth(bits & 1 == 1)),
            Op::Variable(name) => Some(self.l.condition(self.terms.text(name))),
            Op::Not | Op::And | Op::Mul | Op::Xor | Op::Add | Op::Eq | Op::Ult | Op::Slt | Op::Ite if narrow => {
                let args: Vec<L::Truth> = args.iter().map(|&arg| self.truth(arg)).collect();
                Some(self.connective(op, &args))
            }
            _ => None,
        }
    }

    fn connective(&mut self, op: Op, args: &[L::Truth]) -> L::Truth {
        let l = &mut *self.l;
        let mut all = |join: fn(&mut L, &L::Truth, &L::Truth) -> L::Truth| {
            let mut rest = args.iter().skip(1);
            rest.try_fold(args[0].clone(), |sum, arg| Some(join(l, &sum, arg))).unwrap_or_else(|| args[0].clone())
        };
        match op {
            Op::And | Op::Mul => all(L::both),
            Op::Xor | Op::Add => all(L::differ),
            Op::Not => l.not(&args[0]),
            Op::Eq => {
                let differ = l.differ(&args[0], &args[1]);
                l.not(&differ)
            }
            Op::Ult => {
                let zero = l.not(&args[0]);
                l.both(&zero, &args[1])
            }
            // The only bit is the sign.
            Op::Slt => {
                let zero = l.not(&args[1]);
                l.both(&args[0], &zero)
            }
            _ => l.choose_truth(&args[0], &args[1], &args[2]),
        }
    }

    fn fold(&mut self, op: Binary, w: u32, args: &[(u32, L::Bits)]) -> L::Bits {
        let mut sum = args[0].1.clone();
        for (_, arg) in &args[1..] {
            sum = self.l.binary(op, w, &sum, arg);
        }
        sum
    }

    fn widen(&mut self, signed: bool, w: u32, to: u32, a: &L::Bits) -> L::Bits {
        if w == to { a.clone() } else { self.l.extend(signed, w, to, a) }
    }

    fn high(&mut self, signed: bool, w: u32, a: &L::Bits, b: &L::Bits) -> L::Bits {
        let (a, b) = (self.l.extend(signed, w, 2 * w, a), self.l.extend(signed, w, 2 * w, b));
        let product = self.l.binary(Binary::Mul, 2 * w, &a, &b);
        self.l.extract(&product, w, w)
    }

    /// A tree of sums, each one bit wider than its operands.
    fn popcount(&mut self, w: u32, a: &L::Bits) -> L::Bits {
        let mut sums: Vec<L::Bits> = (0..w).map(|bit| self.l.extract(a, bit, 1)).collect();
        let mut width = 1;
        while sums.len() > 1 {
            let wider: Vec<L::Bits> = sums.iter().map(|sum| self.l.extend(false, width, width + 1, sum)).collect();
            width += 1;
            sums = Vec::new();
            for pair in wider.chunks(2) {
                sums.push(match pair {
                    [a, b] => self.l.binary(Binary::Add, width, a, b),
                    _ => pair[0].clone(),
                });
            }
        }
        self.widen(false, width, w, &sums[0])
    }

    fn clz(&mut self, w: u32, a: &L::Bits) -> L::Bits {
        let mut count = self.l.number(w, w.into());
        for bit in 0..w {
            let one = self.l.extract(a, bit, 1);
            let one = self.is_one(&one);
            let here = self.l.number(w, u64::from(w - 1 - bit));
            count = self.l.choose(w, &one, &here, &count);
        }
        count
    }

    fn reverse(&mut self, w: u32, a: &L::Bits) -> L::Bits {
        let mut out = self.l.extract(a, 0, 1);
        for bit in 1..w {
            let low = self.l.extract(a, bit, 1);
            out = self.l.concat(bit + 1, &out, &low);
        }
        out
    }

    fn float(&mut self, term: Term, op: FloatOp, w: u32, args: &[(u32, L::Bits)]) -> LoweredTerm<L> {
        let comparison = match op {
            FloatOp::Eq(f) => Some((f, Comparison::Equal)),
            FloatOp::Lt(f) => Some((f, Comparison::Less)),
            FloatOp::Le(f) => Some((f, Comparison::LessOrEqual)),
            _ => None,
        };
        if let Some((f, comparison)) = comparison {
            return LoweredTerm::Truth(floats::compare(self.l, f, comparison, &args[0].1, &args[1].1));
        }
        let operands: Vec<L::Bits> = args.iter().map(|(_, bits)| bits.clone()).collect();
        let bits = match (self.l.float(op, &operands), op) {
            // The NaN of a product has a sign.
            (Some(bits), FloatOp::Mul(f)) => floats::with_sign_of_product(self.l, f, &bits, &operands),
            (Some(bits), _) => bits,
            (None, _) => {
                if matches!(op, FloatOp::Add(_) | FloatOp::Mul(_) | FloatOp::Fma(_)) {
                    self.commutative.push(term);
                }
                self.l.apply(w, &signature(&format!("{op:?}"), w, args), args)
            }
        };
        self.value(w, bits)
    }

    /// Adds the fact that two applications of a commutative function are equal if the operands of one are those of the
    /// other, exchanged. It is needed where operands are equal under the assumptions only: otherwise they are in order
    /// already. One operand of the first has to be the other one of the second, so that most queries have no such fact.
    fn commute(&mut self, facts: &mut Vec<L::Truth>) {
        if self.commutative.len() > COMMUTATIVE {
            return;
        }
        let list = std::mem::take(&mut self.commutative);
        for (i, &a) in list.iter().enumerate() {
            for &b in &list[..i] {
                let (of_a, of_b) = (self.terms.node(a), self.terms.node(b));
                if of_a.op != of_b.op || of_a.args[0] != of_b.args[1] && of_a.args[1] != of_b.args[0] {
                    continue;
                }
                let mut same = self.l.truth(true);
                for (k, &arg) in of_a.args.iter().enumerate() {
                    let (x, y) = (self.bits(arg), self.bits(of_b.args[[1, 0, 2][k]]));
                    let equal = self.l.test(BitRelation::Equal, &x, &y);
                    same = self.l.both(&same, &equal);
                }
                let (x, y) = (self.bits(a), self.bits(b));
                let equal = self.l.test(BitRelation::Equal, &x, &y);
                let differ = self.l.not(&same);
                facts.push(self.l.either(&differ, &equal));
            }
        }
    }
}

/// The name of a function with the widths of its arguments and its result, so that a name has one type for any
/// caller.
fn signature<B>(name: &str, w: u32, args: &[(u32, B)]) -> String {
    let mut text = format!("{name} :");
    for (width, _) in args {
        // Writing to a string does not fail.
        let _ = write!(text, " {width}");
    }
    let _ = write!(text, " -> {w}");
    text
}
