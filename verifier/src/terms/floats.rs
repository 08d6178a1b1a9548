//! Operations on floats. Only what holds for all values, NaNs of any sign and fraction included, with results bit for bit.
//!
//! The operands of sums, products and equalities are in order. No operation but a power looks at the fraction of a NaN,
//! so their operands are taken from before [`canonical`](crate::semantics::float::canonical); and that does nothing to a result of
//! arithmetic, whose NaNs are canonical already.

use super::{Args, FloatOp, Op, Term, Terms};
use crate::semantics::domain::Format;

impl Terms {
    /// An operation on floats.
    pub(super) fn float(&mut self, op: FloatOp, width: u32, args: &[Term]) -> Term {
        let mut args = Args::from_slice(args);
        if !matches!(op, FloatOp::Pow(_) | FloatOp::FromInt { .. }) {
            for arg in &mut args {
                *arg = self.before_canonical(*arg).unwrap_or(*arg);
            }
        }
        match op {
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
            // No integer becomes a NaN.
            return self.number(1, 1);
        }
        self.plain(Op::Float(op), width, &args)
    }

    /// The term that is compared with itself: the condition that it is no NaN.
    fn number_test(&self, condition: Term) -> Option<(Format, Term)> {
        match self.op(condition) {
            Op::Float(FloatOp::Eq(f)) if self.arg(condition, 0) == self.arg(condition, 1) => {
                Some((f, self.arg(condition, 0)))
            }
            _ => None,
        }
    }

    /// The term of which another is the form with the canonical NaN.
    fn before_canonical(&self, t: Term) -> Option<Term> {
        if self.op(t) != Op::Ite {
            return None;
        }
        let (f, tested) = self.number_test(self.arg(t, 0))?;
        (self.arg(t, 1) == tested && self.as_constant(self.arg(t, 2)) == Some(f.nan())).then_some(tested)
    }

    /// Whether a term of a format is a NaN only in its canonical form.
    fn is_canonical(&self, f: Format, t: Term) -> bool {
        match self.op(t) {
            Op::Float(op) => match op {
                FloatOp::Add(g)
                | FloatOp::Mul(g)
                | FloatOp::Fma(g)
                | FloatOp::Div(g)
                | FloatOp::Round(g, _)
                | FloatOp::Convert(_, g, _)
                | FloatOp::FromInt { to: g, .. }
                | FloatOp::Function(g, _)
                | FloatOp::Pow(g) => f == g,
                FloatOp::Eq(_) | FloatOp::Lt(_) | FloatOp::Le(_) | FloatOp::ToInt { .. } => false,
            },
            Op::Ite => self.before_canonical(t).is_some() && self.number_test(self.arg(t, 0)).is_some_and(|x| x.0 == f),
            _ => false,
        }
    }

    /// A choice by whether something is a NaN that chooses what it would be anyway.
    pub(super) fn not_a_number(&self, condition: Term, a: Term, b: Term) -> Option<Term> {
        let (f, tested) = self.number_test(condition)?;
        (a == tested && self.as_constant(b) == Some(f.nan()) && self.is_canonical(f, tested)).then_some(a)
    }
}
