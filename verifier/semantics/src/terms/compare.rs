//! Comparisons of integers.
//!
//! An equality of sums is normalised by their difference: multiples on the side on which they are positive, constants
//! on the right. An equality of concatenations is one of their pieces. In an `Eq` a constant comes first; in a
//! less-than it comes last, and a comparison that depends only on the sign or on high bits being zero is normalised to
//! that. A choice with a constant arm is compared arm by arm.

use super::sums::Sum;
use super::{Args, DEEP, Op, Term, Terms};
use crate::arithmetic::concrete::{mask, signed};

impl Terms {
    /// Equality of two terms.
    pub(super) fn equal(&mut self, a: Term, b: Term) -> Term {
        let w = self.width(a);
        if a == b {
            return self.number(1, 1);
        }
        if w == 1 {
            let differ = self.exclusive(1, &[a, b]);
            return self.complement(differ);
        }
        let is_sum = |terms: &Self, t: Term| terms.op(t) == Op::Add || terms.coefficient(t).is_some();
        if is_sum(self, a) || is_sum(self, b) {
            let (a, b) = self.two_sides(a, b);
            return self.equal_terms(w, a, b);
        }
        self.equal_terms(w, a, b)
    }

    /// Two sums with the same difference, or its negation, that have no summand in common.
    fn two_sides(&mut self, a: Term, b: Term) -> (Term, Term) {
        let difference = self.linear_difference(a, b);
        let w = difference.width;
        let half = 1 << (w - 1);
        let leading = difference.summands.iter().map(|&(_, factor)| factor).find(|&factor| factor != half);
        let flip = leading.is_some_and(|factor| factor > half);
        let (mut left, mut right) = (Sum::new(w), Sum::new(w));
        let sign = |bits: u64| if flip { bits.wrapping_neg() & mask(w) } else { bits };
        right.constant = sign(difference.constant).wrapping_neg() & mask(w);
        for &(term, factor) in &difference.summands {
            let factor = sign(factor);
            if factor <= half {
                left.summands.push((term, factor));
            } else {
                right.summands.push((term, factor.wrapping_neg() & mask(w)));
            }
        }
        (self.finish(left), self.finish(right))
    }

    fn equal_terms(&mut self, w: u32, a: Term, b: Term) -> Term {
        if a == b {
            return self.number(1, 1);
        }
        // A constant first.
        let (a, b) = if self.as_constant(b).is_some() { (b, a) } else { (a, b) };
        let number = self.as_constant(a);
        if let (Some(x), Some(y)) = (number, self.as_constant(b)) {
            return self.number(1, u64::from(x == y));
        }
        if [a, b].iter().any(|&t| matches!(self.op(t), Op::Not | Op::Xor)) {
            return self.equal_flipped(w, a, b);
        }
        let (cut_a, cut_b) = (self.cuts(a), self.cuts(b));
        let cuts = if number.is_some() { cut_b } else { cut_a & cut_b };
        if cuts != 0 {
            return self.equal_pieces(w, cuts, a, b);
        }
        if let Some(term) = self.equal_extended(w, a, b) {
            return term;
        }
        if let Some(term) = self.equal_choice(a, b) {
            return term;
        }
        self.ordered_equality(a, b)
    }

    fn ordered_equality(&mut self, a: Term, b: Term) -> Term {
        let constant_last = self.as_constant(b).is_some();
        let (a, b) = if constant_last || self.as_constant(a).is_none() && a > b { (b, a) } else { (a, b) };
        self.intern(Op::Eq, 1, &[a, b])
    }

    /// Normalises an equality of exclusive ors: all terms are on one side and the constant on the other, except for two
    /// terms without a constant.
    fn equal_flipped(&mut self, w: u32, a: Term, b: Term) -> Term {
        let differ = self.exclusive(w, &[a, b]);
        let zero = self.number(w, 0);
        let (terms, bits) = match self.op(differ) {
            Op::Constant(bits) => return self.number(1, u64::from(bits == 0)),
            Op::Not if self.op(self.arg(differ, 0)) == Op::Xor => (self.args(self.arg(differ, 0)), mask(w)),
            Op::Not => {
                let (of, ones) = (self.arg(differ, 0), self.number(w, u64::MAX));
                return self.equal(of, ones);
            }
            Op::Xor => {
                let mut terms = self.args(differ);
                let bits = self.as_constant(terms[0]);
                if bits.is_some() {
                    terms.remove(0);
                }
                (terms, bits.unwrap_or(0))
            }
            _ => return self.equal(differ, zero),
        };
        match terms[..] {
            [one] => {
                let bits = self.number(w, bits);
                self.equal(one, bits)
            }
            [x, y] if bits == 0 => self.equal(x, y),
            _ => {
                let all = self.intern(Op::Xor, w, &terms);
                let bits = self.number(w, bits);
                self.ordered_equality(bits, all)
            }
        }
    }

    fn equal_pieces(&mut self, w: u32, cuts: u64, a: Term, b: Term) -> Term {
        let mut all = Args::new();
        let mut low = 0;
        while low < w {
            let above = (low + 1..w).find(|&bit| cuts >> bit & 1 != 0).unwrap_or(w);
            let (x, y) = (self.slice(a, low, above - low), self.slice(b, low, above - low));
            all.push(self.equal(x, y));
            low = above;
        }
        self.all_of(1, &all)
    }

    fn equal_extended(&mut self, w: u32, a: Term, b: Term) -> Option<Term> {
        if self.op(b) != Op::Sext {
            return None;
        }
        let of = self.arg(b, 0);
        let n = self.width(of);
        match self.op(a) {
            Op::Constant(bits) => {
                if signed(n, bits & mask(n)) as u64 & mask(w) != bits {
                    return Some(self.number(1, 0));
                }
                let bits = self.number(n, bits);
                Some(self.equal(bits, of))
            }
            Op::Sext if self.width(self.arg(a, 0)) == n => Some(self.equal(self.arg(a, 0), of)),
            _ => None,
        }
    }

    /// Compares a choice arm by arm, if one of the results is known.
    fn equal_choice(&mut self, a: Term, b: Term) -> Option<Term> {
        for (choice, other) in [(a, b), (b, a)] {
            if self.op(choice) != Op::Ite || self.depths[choice] > DEEP {
                continue;
            }
            let (condition, x, y) = (self.arg(choice, 0), self.arg(choice, 1), self.arg(choice, 2));
            let is_number = |terms: &Self, t: Term| terms.as_constant(t).is_some();
            let known = is_number(self, other) && (is_number(self, x) || is_number(self, y));
            if known || x == other || y == other {
                let (x, y) = (self.equal(x, other), self.equal(y, other));
                return Some(self.choice(condition, x, y));
            }
        }
        None
    }

    /// Unsigned less than.
    pub(super) fn below(&mut self, a: Term, b: Term) -> Term {
        let w = self.width(a);
        if a == b {
            return self.number(1, 0);
        }
        if w == 1 {
            let not_a = self.complement(a);
            return self.all_of(1, &[not_a, b]);
        }
        let extended = |terms: &Self, t: Term| match terms.op(t) {
            op @ (Op::Zext | Op::Sext) => Some((op, terms.width(terms.arg(t, 0)))),
            _ => None,
        };
        match (self.as_constant(a), self.as_constant(b)) {
            (Some(x), Some(y)) => return self.number(1, u64::from(x < y)),
            (Some(x), None) if x == mask(w) => return self.number(1, 0),
            (Some(x), None) => {
                let next = self.number(w, x + 1);
                let less = self.below(b, next);
                return self.complement(less);
            }
            (None, Some(y)) => {
                if let Some(term) = self.below_number(w, a, y) {
                    return term;
                }
            }
            (None, None) => {}
        }
        let zeros = self.zeros_on_top(a).min(self.zeros_on_top(b));
        if zeros > 0 {
            let (a, b) = (self.slice(a, 0, w - zeros), self.slice(b, 0, w - zeros));
            return self.below(a, b);
        }
        if extended(self, a).is_some() && extended(self, a) == extended(self, b) {
            return self.below(self.arg(a, 0), self.arg(b, 0));
        }
        self.compared_choice(Op::Ult, a, b)
    }

    /// The number of high bits that are 0 by the form of a term.
    pub fn zeros_on_top(&self, t: Term) -> u32 {
        match self.op(t) {
            Op::Zext => self.width(t) - self.width(self.arg(t, 0)),
            Op::Constant(bits) => (bits.leading_zeros() + self.width(t) - 64).min(self.width(t) - 1),
            _ => 0,
        }
    }

    /// Another form of `a < number`, if there is one.
    fn below_number(&mut self, w: u32, a: Term, number: u64) -> Option<Term> {
        if number == 0 {
            return Some(self.number(1, 0));
        }
        if number == mask(w) {
            let largest = self.number(w, number);
            let same = self.equal(a, largest);
            return Some(self.complement(same));
        }
        if number.is_power_of_two() {
            let low = number.trailing_zeros();
            let high = self.slice(a, low, w - low);
            let zero = self.number(w - low, 0);
            return Some(self.equal(high, zero));
        }
        if self.op(a) == Op::Zext {
            let of = self.arg(a, 0);
            let n = self.width(of);
            if number > mask(n) {
                return Some(self.number(1, 1));
            }
            let number = self.number(n, number);
            return Some(self.below(of, number));
        }
        None
    }

    /// Signed less than.
    pub(super) fn below_signed(&mut self, a: Term, b: Term) -> Term {
        let w = self.width(a);
        if a == b {
            return self.number(1, 0);
        }
        if w == 1 {
            let not_b = self.complement(b);
            return self.all_of(1, &[a, not_b]);
        }
        let smallest = 1 << (w - 1);
        match (self.as_constant(a), self.as_constant(b)) {
            (Some(x), Some(y)) => return self.number(1, u64::from(signed(w, x) < signed(w, y))),
            (Some(x), None) if x == smallest - 1 => return self.number(1, 0),
            (Some(x), None) => {
                let next = self.number(w, x.wrapping_add(1));
                let less = self.below_signed(b, next);
                return self.complement(less);
            }
            (None, Some(0)) => return self.slice(a, w - 1, 1),
            (None, Some(y)) if y == smallest => return self.number(1, 0),
            (None, Some(y)) => {
                if y == smallest - 1 {
                    let same = self.equal(a, b);
                    return self.complement(same);
                }
                if y == smallest + 1 {
                    let bound = self.number(w, smallest);
                    return self.equal(a, bound);
                }
            }
            (None, None) => {}
        }
        if self.zeros_on_top(a) > 0 && self.zeros_on_top(b) > 0 {
            return self.below(a, b);
        }
        if let (Op::Zext, Some(y)) = (self.op(a), self.as_constant(b)) {
            // The constant is negative, or it would have high zero bits.
            return self.number(1, u64::from(signed(w, y) >= 0));
        }
        if self.op(a) == Op::Sext {
            let of = self.arg(a, 0);
            let n = self.width(of);
            if self.op(b) == Op::Sext && self.width(self.arg(b, 0)) == n {
                return self.below_signed(of, self.arg(b, 0));
            }
            if let Some(y) = self.as_constant(b) {
                let y = signed(w, y);
                let (low, high) = (-1i64 << (n - 1), (mask(n) >> 1) as i64);
                if y > high || y <= low {
                    return self.number(1, u64::from(y > high));
                }
                let y = self.number(n, y as u64);
                return self.below_signed(of, y);
            }
        }
        self.compared_choice(Op::Slt, a, b)
    }

    fn compared_choice(&mut self, op: Op, a: Term, b: Term) -> Term {
        let is_number = |terms: &Self, t: Term| terms.as_constant(t).is_some();
        if is_number(self, b) && self.op(a) == Op::Ite && self.depths[a] <= DEEP {
            let (condition, x, y) = (self.arg(a, 0), self.arg(a, 1), self.arg(a, 2));
            if is_number(self, x) || is_number(self, y) {
                let (x, y) = (self.rebuild(op, 1, &[x, b]), self.rebuild(op, 1, &[y, b]));
                return self.choice(condition, x, y);
            }
        }
        self.intern(op, 1, &[a, b])
    }
}
