//! Sums: linear forms modulo 2^w.
//!
//! Every linear expression is a constant plus coefficients times terms, each term once, in the order of the terms;
//! subtraction, negation, complement, left shifts and multiplication by constants are all normalised to that. In a sum
//! a concatenation is the sum of its pieces, a choice between two constants is a multiple of its condition, the
//! complement of x is -x - 1.
//!
//! A sum whose summands have no bit in common is a concatenation again; one that is a constant plus a multiple of a bit
//! is a choice.

use super::{Args, MANY, Op, Term, Terms};
use crate::arithmetic::concrete::mask;
use smallvec::SmallVec;

/// A linear form: `constant` plus coefficients times terms, modulo 2^width.
pub(super) struct Sum {
    pub width: u32,
    pub constant: u64,
    pub summands: SmallVec<[(Term, u64); 8]>,
}

impl Sum {
    pub fn new(width: u32) -> Self {
        Sum { width, constant: 0, summands: SmallVec::new() }
    }

    /// Sorts the summands, and merges those of one term.
    fn sort(&mut self) {
        self.constant &= mask(self.width);
        self.summands.sort_unstable_by_key(|&(term, _)| term);
        let mut kept = 0;
        for i in 0..self.summands.len() {
            let (term, coefficient) = self.summands[i];
            if kept > 0 && self.summands[kept - 1].0 == term {
                let sum = &mut self.summands[kept - 1].1;
                *sum = sum.wrapping_add(coefficient) & mask(self.width);
                if *sum == 0 {
                    kept -= 1;
                }
            } else if coefficient & mask(self.width) != 0 {
                self.summands[kept] = (term, coefficient & mask(self.width));
                kept += 1;
            }
        }
        self.summands.truncate(kept);
    }
}

impl Terms {
    /// The sum of terms.
    pub(super) fn sum(&mut self, w: u32, args: &[Term]) -> Term {
        if w == 1 {
            return self.exclusive(1, args);
        }
        let mut sum = Sum::new(w);
        for &arg in args {
            self.add_to(&mut sum, arg, 1);
        }
        self.finish(sum)
    }

    /// `a - b`
    pub(super) fn difference(&mut self, w: u32, a: Term, b: Term) -> Term {
        if w == 1 {
            return self.exclusive(1, &[a, b]);
        }
        let sum = self.linear_difference(a, b);
        self.finish(sum)
    }

    /// The linear form of `a - b`, in order.
    pub(super) fn linear_difference(&mut self, a: Term, b: Term) -> Sum {
        let mut sum = Sum::new(self.width(a));
        self.add_to(&mut sum, a, 1);
        self.add_to(&mut sum, b, u64::MAX);
        sum.sort();
        sum
    }

    /// A term times a constant.
    pub(super) fn multiple(&mut self, w: u32, t: Term, factor: u64) -> Term {
        if factor.is_power_of_two() && factor > 1 && matches!(self.op(t), Op::Zext | Op::Concat) {
            // Pieces are shifted, not expanded.
            let zeros = factor.trailing_zeros();
            let (rest, zero) = (self.slice(t, 0, w - zeros), self.number(zeros, 0));
            return self.join(&[rest, zero]);
        }
        let mut sum = Sum::new(w);
        self.add_to(&mut sum, t, factor);
        self.finish(sum)
    }

    /// The constant factor of a term, and the other factor.
    pub(super) fn coefficient(&self, t: Term) -> Option<(u64, Term)> {
        match self.op(t) {
            Op::Mul => self.as_constant(self.arg(t, 0)).map(|factor| (factor, self.arg(t, 1))),
            _ => None,
        }
    }

    /// Adds a multiple of a term.
    pub(super) fn add_to(&mut self, sum: &mut Sum, t: Term, factor: u64) {
        let w = sum.width;
        let factor = factor & mask(w);
        if factor == 0 {
            return;
        }
        match self.op(t) {
            Op::Constant(bits) => sum.constant = sum.constant.wrapping_add(bits.wrapping_mul(factor)),
            Op::Add if sum.summands.len() + self.nodes[t].args.len() <= MANY => {
                for arg in self.args(t) {
                    self.add_to(sum, arg, factor);
                }
            }
            Op::Mul => match self.coefficient(t) {
                Some((number, rest)) => self.add_to(sum, rest, factor.wrapping_mul(number)),
                None => match self.narrow_product(t, w - factor.trailing_zeros()) {
                    Some(narrow) => {
                        let wide = self.extend(narrow, w);
                        self.add_wide(sum, wide, factor);
                    }
                    None => sum.summands.push((t, factor)),
                },
            },
            Op::Not => {
                sum.constant = sum.constant.wrapping_sub(factor);
                self.add_to(sum, self.arg(t, 0), factor.wrapping_neg());
            }
            Op::Concat => self.add_pieces(sum, t, factor),
            Op::Zext => {
                let of = self.arg(t, 0);
                let n = self.width(of);
                match self.op(of) {
                    Op::Concat => self.add_pieces(sum, t, factor),
                    Op::Not => {
                        sum.constant = sum.constant.wrapping_add(factor.wrapping_mul(mask(n)));
                        let opposite = self.extend(self.arg(of, 0), w);
                        self.add_to(sum, opposite, factor.wrapping_neg());
                    }
                    _ => self.add_extended(sum, t, of, factor),
                }
            }
            Op::Sext => {
                let of = self.arg(t, 0);
                if self.width(of) == 1 {
                    let bit = self.extend(of, w);
                    self.add_to(sum, bit, factor.wrapping_neg());
                } else {
                    self.add_extended(sum, t, of, factor);
                }
            }
            Op::Ite => match self.constant_choice(t) {
                Some((condition, a, b)) => {
                    sum.constant = sum.constant.wrapping_add(factor.wrapping_mul(b));
                    let bit = self.extend(condition, w);
                    self.add_to(sum, bit, factor.wrapping_mul(a.wrapping_sub(b)));
                }
                None => sum.summands.push((t, factor)),
            },
            _ => sum.summands.push((t, factor)),
        }
    }

    /// The product of extended factors in `used` bits, if the factors fit: for a multiple that shifts all other bits
    /// out.
    fn narrow_product(&mut self, t: Term, used: u32) -> Option<Term> {
        let fits = |&arg: &Term| self.op(arg) == Op::Zext && self.width(self.arg(arg, 0)) <= used;
        if used >= self.width(t) || !self.nodes[t].args.iter().all(fits) {
            return None;
        }
        let factors: Args = self.args(t).into_iter().map(|arg| self.arg(arg, 0)).collect();
        let factors: Args = factors.into_iter().map(|factor| self.extend(factor, used)).collect();
        Some(self.product(used, &factors))
    }

    fn add_pieces(&mut self, sum: &mut Sum, t: Term, factor: u64) {
        let mut low = 0;
        for piece in self.pieces(t) {
            let n = self.width(piece);
            let part = self.extend(piece, sum.width);
            self.add_to(sum, part, factor.wrapping_mul(1 << low));
            low += n;
        }
    }

    /// Adds a multiple of an extension. If the factor shifts the extended bits out, sign and zero extension are the
    /// same.
    fn add_extended(&mut self, sum: &mut Sum, t: Term, of: Term, factor: u64) {
        let used = sum.width - factor.trailing_zeros().min(sum.width - 1);
        if used == sum.width || self.width(of) < used {
            sum.summands.push((t, factor));
            return;
        }
        let part = self.slice(of, 0, used);
        self.add_low(sum, part, factor);
    }

    /// Adds a multiple of a narrower term, whose bits above its width are arbitrary: the factor shifts them out.
    fn add_low(&mut self, sum: &mut Sum, t: Term, factor: u64) {
        let w = sum.width;
        match self.op(t) {
            Op::Extract(0) => {
                let of = self.arg(t, 0);
                if self.width(of) >= w {
                    let wide = self.slice(of, 0, w);
                    self.add_to(sum, wide, factor);
                } else {
                    let wide = self.extend(of, w);
                    self.add_wide(sum, wide, factor);
                }
            }
            Op::Add => {
                for arg in self.args(t) {
                    self.add_low(sum, arg, factor);
                }
            }
            Op::Mul => match self.coefficient(t) {
                Some((number, rest)) => self.add_low(sum, rest, factor.wrapping_mul(number)),
                None => {
                    let wide = self.extend(t, w);
                    self.add_wide(sum, wide, factor);
                }
            },
            _ => {
                let wide = self.extend(t, w);
                self.add_wide(sum, wide, factor);
            }
        }
    }

    fn add_wide(&mut self, sum: &mut Sum, t: Term, factor: u64) {
        match self.op(t) {
            Op::Zext if !matches!(self.op(self.arg(t, 0)), Op::Concat | Op::Not) => {
                if factor & mask(sum.width) != 0 {
                    sum.summands.push((t, factor));
                }
            }
            _ => self.add_to(sum, t, factor),
        }
    }

    /// The term of a linear form.
    pub(super) fn finish(&mut self, mut sum: Sum) -> Term {
        self.settle(&mut sum);
        let w = sum.width;
        match sum.summands[..] {
            [] => return self.number(w, sum.constant),
            [(term, 1)] if sum.constant == 0 => return term,
            [(term, factor)] if self.op(term) == Op::Zext && self.width(self.arg(term, 0)) == 1 => {
                let bit = self.arg(term, 0);
                return self.choose(w, bit, sum.constant.wrapping_add(factor) & mask(w), sum.constant);
            }
            _ => {}
        }
        if let Some(pieces) = self.disjoint(&sum) {
            return self.join(&pieces);
        }
        self.node_of_sum(&sum)
    }

    /// Normalises a sum. Factors that have become larger may shift out more bits.
    pub(super) fn settle(&mut self, sum: &mut Sum) {
        let w = sum.width;
        for _ in 0..4 {
            sum.sort();
            let shifted_out = |&(term, factor): &(Term, u64)| {
                matches!(self.op(term), Op::Zext | Op::Sext)
                    && factor.trailing_zeros() > 0
                    && self.width(self.arg(term, 0)) + factor.trailing_zeros() >= w
            };
            if !sum.summands.iter().any(shifted_out) {
                return;
            }
            let before = sum.summands.clone();
            for (term, factor) in std::mem::take(&mut sum.summands) {
                self.add_to(sum, term, factor);
            }
            if sum.summands == before {
                return;
            }
        }
        sum.sort();
    }

    fn node_of_sum(&mut self, sum: &Sum) -> Term {
        let w = sum.width;
        let mut args = Args::new();
        if sum.constant != 0 || sum.summands.is_empty() {
            args.push(self.number(w, sum.constant));
        }
        for &(term, factor) in &sum.summands {
            let of_bit = self.op(term) == Op::Zext && self.width(self.arg(term, 0)) == 1;
            args.push(if factor == 1 {
                term
            } else if of_bit && !factor.is_power_of_two() {
                self.choose(w, self.arg(term, 0), factor, 0)
            } else {
                let factor = self.number(w, factor);
                self.intern(Op::Mul, w, &[factor, term])
            });
        }
        if args.len() == 1 { args[0] } else { self.intern(Op::Add, w, &args) }
    }

    /// The parts, highest first, of a sum whose summands have no bit in common.
    fn disjoint(&mut self, sum: &Sum) -> Option<Args> {
        let w = sum.width;
        if sum.summands.len() > 16 {
            return None;
        }
        let mut constant = sum.constant;
        // The lowest bit, the number of bits, the term.
        let mut fields = SmallVec::<[(u32, u32, Term, bool); 8]>::new();
        for &(term, factor) in &sum.summands {
            let opposite = factor.wrapping_neg() & mask(w);
            let low = factor.trailing_zeros();
            let negative = !factor.is_power_of_two();
            if negative && !opposite.is_power_of_two() {
                return None;
            }
            let of = if self.op(term) == Op::Zext { self.arg(term, 0) } else { term };
            let n = self.width(of).min(w - low);
            // -x is the complement of x, plus one, minus the ones above.
            if negative {
                constant = constant.wrapping_sub(mask(n) << low) & mask(w);
            }
            fields.push((low, n, of, negative));
        }
        // The top bit may have either sign.
        if let Some(top) = fields.iter_mut().find(|field| field.0 == w - 1 && !field.3)
            && constant >> (w - 1) & 1 != 0
        {
            constant ^= 1 << (w - 1);
            top.3 = true;
        }
        let single = fields.len() == 1 && constant == 0;
        if single && !fields[0].3 {
            return None;
        }
        fields.sort_unstable_by_key(|&(low, ..)| low);
        let mut parts = Args::new();
        let mut at = 0;
        for (low, n, of, negative) in fields {
            if low < at || constant >> low & mask(n) != 0 {
                return None;
            }
            if low > at {
                parts.push(self.number(low - at, constant >> at));
            }
            let part = self.slice(of, 0, n);
            parts.push(if negative { self.complement(part) } else { part });
            at = low + n;
        }
        if at < w {
            parts.push(self.number(w - at, constant >> at));
        }
        parts.reverse();
        Some(parts)
    }

    /// The number of low bits that are 0 by the form of a sum or product.
    pub(super) fn low_zeros(&self, t: Term) -> u32 {
        let factor = |t: Term| match self.op(t) {
            Op::Constant(bits) => bits.trailing_zeros(),
            _ => self.coefficient(t).map_or(0, |(factor, _)| factor.trailing_zeros()),
        };
        match self.op(t) {
            Op::Mul => factor(t),
            Op::Add => self.nodes[t].args.iter().map(|&arg| factor(arg)).min().unwrap_or(0),
            _ => 0,
        }
    }

    /// The number of low bits of a sum or product that its constant determines.
    pub(super) fn fixed_low_bits(&self, t: Term) -> u32 {
        match self.op(t) {
            Op::Add if self.as_constant(self.arg(t, 0)).is_some() => {
                let zeros = |&arg: &Term| self.coefficient(arg).map_or(0, |(factor, _)| factor.trailing_zeros());
                self.nodes[t].args[1..].iter().map(zeros).min().unwrap_or(0)
            }
            _ => self.low_zeros(t),
        }
    }

    /// Shifts a sum or product right by low bits that its constant determines. The high bits of the result are
    /// unspecified.
    pub(super) fn scaled_down(&mut self, t: Term, zeros: u32) -> Term {
        let w = self.width(t);
        let mut sum = Sum::new(w);
        let args = if self.op(t) == Op::Add { self.args(t) } else { Args::from_slice(&[t]) };
        for arg in args {
            match (self.as_constant(arg), self.coefficient(arg)) {
                (Some(bits), _) => sum.constant = sum.constant.wrapping_add(bits >> zeros),
                (None, Some((factor, rest))) => self.add_to(&mut sum, rest, factor >> zeros),
                (None, None) => {}
            }
        }
        self.finish(sum)
    }

    /// A vector of `w` bits whose lowest `zeros` are 0, with the term above them.
    pub(super) fn scaled_up(&mut self, w: u32, zeros: u32, t: Term) -> Term {
        let factor = 1 << zeros;
        let mut sum = Sum::new(w);
        if matches!(self.op(t), Op::Extract(0) | Op::Add | Op::Mul) {
            self.add_low(&mut sum, t, factor);
        } else {
            let wide = self.extend(t, w);
            sum.summands.push((wide, factor));
        }
        sum.sort();
        self.node_of_sum(&sum)
    }
}
