//! Operations on floats. The rules hold for all values, NaNs of any sign and fraction included, with results bit for
//! bit.
//!
//! The operands of sums, products and equalities are in order. No operation but a power and a product depends on the
//! bits of a NaN, so [`canonical`](crate::arithmetic::float::canonical) is removed from the operands of the others. It
//! does not change a result of arithmetic, whose NaNs are canonical already, except for products: these have the sign
//! of their operands, which is moved out of the operands. An operation on a choice between two constants is a choice
//! between two constants. A float that is an integer is rounded to itself, and an exact conversion from an integer and
//! back is that integer.

use super::{Args, FloatOp, Op, Term, Terms};
use crate::arithmetic::domain::{Format, Rounding};

/// The number of nested operations that the search for a float that is an integer looks through.
const NESTED: u8 = 4;

impl Terms {
    /// An operation on floats.
    pub(super) fn float(&mut self, op: FloatOp, width: u32, args: &[Term]) -> Term {
        let mut args = Args::from_slice(args);
        let mut op = op;
        if let FloatOp::FromInt { width, signed, .. } = &mut op {
            (args[0], *signed) = self.as_word(args[0], *signed);
            *width = self.width(args[0]) as u8;
        }
        self.exact(&mut op, args[0]);
        if !matches!(op, FloatOp::Pow(_) | FloatOp::Mul(_) | FloatOp::FromInt { .. }) {
            for arg in &mut args {
                *arg = self.before_canonical(*arg).unwrap_or(*arg);
            }
        }
        if let [arg] = args[..]
            && let Some((condition, numbers)) = self.one_of_two(arg)
        {
            let [yes, no] = numbers.map(|bits| {
                let number = self.number(self.width(arg), bits);
                self.plain(Op::Float(op), width, &[number])
            });
            return self.choice(condition, yes, no);
        }
        if let FloatOp::Mul(f) = op {
            let [(a, minus_a), (b, minus_b)] = [self.sign_apart(f, args[0]), self.sign_apart(f, args[1])];
            if minus_a || minus_b {
                let product = self.float(op, width, &[a, b]);
                let sign = self.number(width, if minus_a == minus_b { 0 } else { f.sign() });
                return self.exclusive(width, &[product, sign]);
            }
        }
        match op {
            FloatOp::Round(f, _) if self.is_integral(f, args[0], NESTED) => return args[0],
            FloatOp::Add(f) if self.are_opposite_integers(f, args[0], args[1]) => return self.number(width, 0),
            FloatOp::ToInt { from, signed, .. } => {
                if let Some(integer) = self.converted_back(from, args[0], width, signed) {
                    return integer;
                }
            }
            FloatOp::Add(_) | FloatOp::Mul(_) | FloatOp::Fma(_) | FloatOp::Eq(_) => args[..2].sort_unstable(),
            FloatOp::Lt(_) if args[0] == args[1] => return self.number(1, 0),
            FloatOp::Le(f) if args[0] == args[1] => return self.float(FloatOp::Eq(f), 1, &args),
            _ => {}
        }
        if let FloatOp::Eq(f) = op
            && args[0] == args[1]
            && let Op::Float(FloatOp::FromInt { to, .. }) = self.op(args[0])
            && to == f
        {
            // The result of a conversion from an integer is never a NaN.
            return self.number(1, 1);
        }
        self.plain(Op::Float(op), width, &args)
    }

    /// Normalises the rounding mode of a conversion to a float that is exact for all values of its operand.
    fn exact(&self, op: &mut FloatOp, operand: Term) {
        match op {
            FloatOp::Convert(from, to, rounding) if from.width() < to.width() => *rounding = Rounding::Even,
            FloatOp::FromInt { width, to, rounding, .. } => {
                let bits = match self.op(operand) {
                    Op::Sext => self.width(self.arg(operand, 0)),
                    _ => u32::from(*width) - self.zeros_on_top(operand),
                };
                // All integers of this many bits, signed or unsigned, are exact.
                if bits <= to.fraction() + 1 {
                    *rounding = Rounding::Even;
                }
            }
            _ => {}
        }
    }

    /// Returns true if rounding a float to an integer, in any direction, gives the same bits: it is an integer,
    /// infinite or the canonical NaN. `depth` bounds the search.
    fn is_integral(&mut self, f: Format, t: Term, depth: u8) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        match self.op(t) {
            Op::Float(FloatOp::Round(g, _) | FloatOp::FromInt { to: g, .. }) => f == g,
            // A conversion of an integer to fewer bits rounds to an integer.
            Op::Float(FloatOp::Convert(from, to, _)) => f == to && self.is_integral(from, self.arg(t, 0), depth),
            // So does a sum: floats that are no integers are smaller than all integers that are not exact.
            Op::Float(FloatOp::Add(_) | FloatOp::Fma(_)) => {
                self.args(t).iter().all(|&arg| self.is_integer(f, arg, depth))
            }
            Op::Ite => [1, 2].into_iter().all(|arm| self.is_integer(f, self.arg(t, arm), depth)),
            _ => self.is_integer_and_number(f, t),
        }
    }

    /// Returns true if an operand, which may be a constant, is an integer or infinite.
    fn is_integer(&mut self, f: Format, t: Term, depth: u8) -> bool {
        match self.as_constant(t) {
            Some(_) => self.plain(Op::Float(FloatOp::Round(f, Rounding::Zero)), f.width(), &[t]) == t,
            None => self.is_integral(f, t, depth),
        }
    }

    /// Returns true if a float is an integer or infinite, with any sign bit.
    fn is_integer_and_number(&mut self, f: Format, t: Term) -> bool {
        let is_converted =
            |terms: &Self, t: Term| matches!(terms.op(t), Op::Float(FloatOp::FromInt { to, .. }) if to == f);
        match self.op(t) {
            Op::Float(FloatOp::FromInt { to, .. }) => to == f,
            // A negation.
            Op::Xor | Op::Concat => {
                let sign = self.number(f.width(), f.sign());
                let opposite = self.exclusive(f.width(), &[t, sign]);
                is_converted(self, opposite)
            }
            // An absolute value.
            Op::Zext => {
                let rest = self.arg(t, 0);
                self.width(rest) == f.width() - 1 && self.op(rest) == Op::Extract(0) && {
                    let whole = self.arg(rest, 0);
                    self.width(whole) == f.width() && is_converted(self, whole)
                }
            }
            _ => false,
        }
    }

    /// Returns true if two floats are a finite integer and its negation: their sum is +0.
    fn are_opposite_integers(&mut self, f: Format, a: Term, b: Term) -> bool {
        let is_finite = |terms: &Self, t: Term| match terms.op(t) {
            Op::Float(FloatOp::FromInt { to, rounding, .. }) => {
                // Half floats end at 65504; all integers of 64 bits are far below the largest of the others.
                f == to && (f != Format::F16 || rounding == Rounding::Zero || terms.integer_bits(t).0 <= 15)
            }
            _ => false,
        };
        if !is_finite(self, a) && !is_finite(self, b) {
            return false;
        }
        let sign = self.number(f.width(), f.sign());
        self.exclusive(f.width(), &[a, sign]) == b
    }

    /// The number of bits of the operand of a conversion from an integer, without the sign, and whether it may be
    /// negative.
    fn integer_bits(&self, converted: Term) -> (u32, bool) {
        let operand = self.arg(converted, 0);
        let Op::Float(FloatOp::FromInt { signed, .. }) = self.op(converted) else { return (self.width(operand), true) };
        match self.op(operand) {
            Op::Sext if signed => (self.width(self.arg(operand, 0)) - 1, true),
            _ if signed => (self.width(operand) - 1, true),
            _ => (self.width(operand) - self.zeros_on_top(operand), false),
        }
    }

    /// The integer of which a float is the exact conversion, as a vector of `w` bits, if it has at most as many.
    fn converted_back(&mut self, f: Format, t: Term, w: u32, signed: bool) -> Option<Term> {
        match self.op(t) {
            Op::Float(FloatOp::FromInt { to, .. }) if to == f => {}
            _ => return None,
        }
        let (bits, negative) = self.integer_bits(t);
        if bits > f.fraction() + 1 || bits > w - u32::from(signed) || negative && !signed {
            return None;
        }
        let operand = self.arg(t, 0);
        Some(match self.width(operand) {
            wide if wide > w => self.slice(operand, 0, w),
            _ if negative => self.extend_signed(operand, w),
            _ => self.extend(operand, w),
        })
    }

    /// An integer as a word, if it fits, and whether it is signed: an integer whose sign is known to be 0 is unsigned.
    fn as_word(&mut self, t: Term, signed: bool) -> (Term, bool) {
        let signed = signed && self.zeros_on_top(t) == 0;
        let width = self.width(t);
        let is_word = width > 32 && matches!(self.op(t), Op::Zext | Op::Sext) && self.width(self.arg(t, 0)) <= 32;
        let word = match (is_word, self.op(t)) {
            (true, Op::Zext) => self.extend(self.arg(t, 0), 32),
            (true, _) if signed => self.extend_signed(self.arg(t, 0), 32),
            _ if width < 32 && signed => self.extend_signed(t, 32),
            _ if width < 32 => self.extend(t, 32),
            _ => t,
        };
        (word, signed)
    }

    /// The earlier of a factor and its negation, and whether that is the negation.
    fn sign_apart(&mut self, f: Format, t: Term) -> (Term, bool) {
        match self.op(t) {
            Op::Constant(bits) if bits & f.sign() != 0 => (self.number(f.width(), bits ^ f.sign()), true),
            // The forms that a term with an inverted bit can have.
            Op::Xor | Op::Concat => {
                let sign = self.number(f.width(), f.sign());
                let opposite = self.exclusive(f.width(), &[t, sign]);
                if opposite < t { (opposite, true) } else { (t, false) }
            }
            _ => (t, false),
        }
    }

    /// The condition of a choice between two constants, and the constants.
    fn one_of_two(&self, t: Term) -> Option<(Term, [u64; 2])> {
        if self.op(t) == Op::Zext && self.width(self.arg(t, 0)) == 1 {
            return Some((self.arg(t, 0), [1, 0]));
        }
        self.constant_choice(t).map(|(condition, yes, no)| (condition, [yes, no]))
    }

    /// The term of a condition that a float is not a NaN.
    fn number_test(&self, condition: Term) -> Option<(Format, Term)> {
        match self.op(condition) {
            Op::Float(FloatOp::Eq(f)) if self.arg(condition, 0) == self.arg(condition, 1) => {
                Some((f, self.arg(condition, 0)))
            }
            _ => None,
        }
    }

    /// The operand of a term that canonicalises NaNs.
    fn before_canonical(&self, t: Term) -> Option<Term> {
        if self.op(t) != Op::Ite {
            return None;
        }
        let (f, tested) = self.number_test(self.arg(t, 0))?;
        (self.arg(t, 1) == tested && self.as_constant(self.arg(t, 2)) == Some(f.nan())).then_some(tested)
    }

    /// Returns true if every NaN that a term can be is canonical.
    fn is_canonical(&self, f: Format, t: Term) -> bool {
        match self.op(t) {
            Op::Float(op) => match op {
                FloatOp::Add(g)
                | FloatOp::Fma(g)
                | FloatOp::Div(g)
                | FloatOp::Round(g, _)
                | FloatOp::Convert(_, g, _)
                | FloatOp::FromInt { to: g, .. }
                | FloatOp::Function(g, _)
                | FloatOp::Pow(g) => f == g,
                FloatOp::Mul(_) | FloatOp::Eq(_) | FloatOp::Lt(_) | FloatOp::Le(_) | FloatOp::ToInt { .. } => false,
            },
            Op::Ite => self.before_canonical(t).is_some() && self.number_test(self.arg(t, 0)).is_some_and(|x| x.0 == f),
            _ => false,
        }
    }

    /// A choice by whether a float is a NaN whose arms are equal there anyway.
    pub(super) fn not_a_number(&self, condition: Term, a: Term, b: Term) -> Option<Term> {
        let (f, tested) = self.number_test(condition)?;
        (a == tested && self.as_constant(b) == Some(f.nan()) && self.is_canonical(f, tested)).then_some(a)
    }
}
