//! The constructors, which normalise.

use super::{FloatOp, Op, Term, Terms};
use crate::semantics::concrete::{Concrete, mask};
use crate::semantics::domain::{Domain, Format, Function, Rounding};

/// Folds constants; anything else stays as it is.
fn plain(terms: &mut Terms, op: Op, width: u32, args: &[Term]) -> Term {
    let mut bits = smallvec::SmallVec::<[u64; 4]>::new();
    for &arg in args {
        match terms.as_constant(arg) {
            Some(value) => bits.push(value),
            None => return terms.intern(op, width, args),
        }
    }
    if matches!(op, Op::Variable(_) | Op::Apply(_)) {
        return terms.intern(op, width, args);
    }
    let widths: smallvec::SmallVec<[u32; 4]> = args.iter().map(|&arg| terms.width(arg)).collect();
    let value = super::evaluate::operation(op, width, &widths, &bits);
    terms.constant(width, value)
}

pub(super) fn rebuild(terms: &mut Terms, op: Op, width: u32, args: &[Term]) -> Term {
    plain(terms, op, width, args)
}

impl Domain for Terms {
    type V = Term;

    fn constant(&mut self, w: u32, bits: u64) -> Term {
        self.intern(Op::Constant(bits & mask(w)), w, &[])
    }
    fn not(&mut self, w: u32, a: Term) -> Term {
        plain(self, Op::Not, w, &[a])
    }
    fn and(&mut self, w: u32, a: Term, b: Term) -> Term {
        plain(self, Op::And, w, &[a, b])
    }
    fn or(&mut self, w: u32, a: Term, b: Term) -> Term {
        let (a, b) = (self.not(w, a), self.not(w, b));
        let neither = self.and(w, a, b);
        self.not(w, neither)
    }
    fn xor(&mut self, w: u32, a: Term, b: Term) -> Term {
        plain(self, Op::Xor, w, &[a, b])
    }
    fn add(&mut self, w: u32, a: Term, b: Term) -> Term {
        plain(self, Op::Add, w, &[a, b])
    }
    fn sub(&mut self, w: u32, a: Term, b: Term) -> Term {
        let minus = self.constant(w, u64::MAX);
        let b = self.mul(w, minus, b);
        self.add(w, a, b)
    }
    fn mul(&mut self, w: u32, a: Term, b: Term) -> Term {
        plain(self, Op::Mul, w, &[a, b])
    }
    fn udiv(&mut self, w: u32, a: Term, b: Term) -> Term {
        plain(self, Op::Udiv, w, &[a, b])
    }
    fn urem(&mut self, w: u32, a: Term, b: Term) -> Term {
        plain(self, Op::Urem, w, &[a, b])
    }
    fn shl(&mut self, w: u32, a: Term, count: Term) -> Term {
        plain(self, Op::Shl, w, &[a, count])
    }
    fn lshr(&mut self, w: u32, a: Term, count: Term) -> Term {
        plain(self, Op::Lshr, w, &[a, count])
    }
    fn ashr(&mut self, w: u32, a: Term, count: Term) -> Term {
        plain(self, Op::Ashr, w, &[a, count])
    }
    fn eq(&mut self, _w: u32, a: Term, b: Term) -> Term {
        plain(self, Op::Eq, 1, &[a, b])
    }
    fn ult(&mut self, _w: u32, a: Term, b: Term) -> Term {
        plain(self, Op::Ult, 1, &[a, b])
    }
    fn slt(&mut self, _w: u32, a: Term, b: Term) -> Term {
        plain(self, Op::Slt, 1, &[a, b])
    }
    fn ite(&mut self, w: u32, condition: Term, a: Term, b: Term) -> Term {
        plain(self, Op::Ite, w, &[condition, a, b])
    }
    fn zext(&mut self, w: u32, to: u32, a: Term) -> Term {
        if w == to { a } else { plain(self, Op::Zext, to, &[a]) }
    }
    fn sext(&mut self, w: u32, to: u32, a: Term) -> Term {
        if w == to { a } else { plain(self, Op::Sext, to, &[a]) }
    }
    fn extract(&mut self, w: u32, a: Term, low: u32, n: u32) -> Term {
        if n == w { a } else { plain(self, Op::Extract(low as u8), n, &[a]) }
    }
    fn concat(&mut self, w_high: u32, high: Term, w_low: u32, low: Term) -> Term {
        plain(self, Op::Concat, w_high + w_low, &[high, low])
    }
    fn umul_high(&mut self, w: u32, a: Term, b: Term) -> Term {
        plain(self, Op::UmulHigh, w, &[a, b])
    }
    fn smul_high(&mut self, w: u32, a: Term, b: Term) -> Term {
        plain(self, Op::SmulHigh, w, &[a, b])
    }
    fn popcount(&mut self, w: u32, a: Term) -> Term {
        plain(self, Op::Popcount, w, &[a])
    }
    fn clz(&mut self, w: u32, a: Term) -> Term {
        plain(self, Op::Clz, w, &[a])
    }
    fn reverse(&mut self, w: u32, a: Term) -> Term {
        plain(self, Op::Reverse, w, &[a])
    }
    fn fadd(&mut self, f: Format, a: Term, b: Term) -> Term {
        plain(self, Op::Float(FloatOp::Add(f)), f.width(), &[a, b])
    }
    fn fmul(&mut self, f: Format, a: Term, b: Term) -> Term {
        plain(self, Op::Float(FloatOp::Mul(f)), f.width(), &[a, b])
    }
    fn ffma(&mut self, f: Format, a: Term, b: Term, c: Term) -> Term {
        plain(self, Op::Float(FloatOp::Fma(f)), f.width(), &[a, b, c])
    }
    fn fdiv(&mut self, f: Format, a: Term, b: Term) -> Term {
        plain(self, Op::Float(FloatOp::Div(f)), f.width(), &[a, b])
    }
    fn fround(&mut self, f: Format, rounding: Rounding, a: Term) -> Term {
        plain(self, Op::Float(FloatOp::Round(f, rounding)), f.width(), &[a])
    }
    fn feq(&mut self, f: Format, a: Term, b: Term) -> Term {
        plain(self, Op::Float(FloatOp::Eq(f)), 1, &[a, b])
    }
    fn flt(&mut self, f: Format, a: Term, b: Term) -> Term {
        plain(self, Op::Float(FloatOp::Lt(f)), 1, &[a, b])
    }
    fn fle(&mut self, f: Format, a: Term, b: Term) -> Term {
        plain(self, Op::Float(FloatOp::Le(f)), 1, &[a, b])
    }
    fn fconvert(&mut self, from: Format, to: Format, rounding: Rounding, a: Term) -> Term {
        plain(self, Op::Float(FloatOp::Convert(from, to, rounding)), to.width(), &[a])
    }
    fn float_to_int(&mut self, from: Format, w: u32, signed: bool, rounding: Rounding, a: Term) -> Term {
        plain(self, Op::Float(FloatOp::ToInt { from, width: w as u8, signed, rounding }), w, &[a])
    }
    fn int_to_float(&mut self, w: u32, signed: bool, to: Format, rounding: Rounding, a: Term) -> Term {
        plain(self, Op::Float(FloatOp::FromInt { width: w as u8, signed, to, rounding }), to.width(), &[a])
    }
    fn function(&mut self, f: Format, function: Function, a: Term) -> Term {
        plain(self, Op::Float(FloatOp::Function(f, function)), f.width(), &[a])
    }
    fn fpow(&mut self, f: Format, a: Term, b: Term) -> Term {
        plain(self, Op::Float(FloatOp::Pow(f)), f.width(), &[a, b])
    }
}

/// The operation on machine integers.
pub(super) fn float(d: &mut Concrete, op: FloatOp, a: &[u64]) -> u64 {
    match op {
        FloatOp::Add(f) => d.fadd(f, a[0], a[1]),
        FloatOp::Mul(f) => d.fmul(f, a[0], a[1]),
        FloatOp::Fma(f) => d.ffma(f, a[0], a[1], a[2]),
        FloatOp::Div(f) => d.fdiv(f, a[0], a[1]),
        FloatOp::Round(f, rounding) => d.fround(f, rounding, a[0]),
        FloatOp::Eq(f) => d.feq(f, a[0], a[1]),
        FloatOp::Lt(f) => d.flt(f, a[0], a[1]),
        FloatOp::Le(f) => d.fle(f, a[0], a[1]),
        FloatOp::Convert(from, to, rounding) => d.fconvert(from, to, rounding, a[0]),
        FloatOp::ToInt { from, width, signed, rounding } => d.float_to_int(from, width.into(), signed, rounding, a[0]),
        FloatOp::FromInt { width, signed, to, rounding } => d.int_to_float(width.into(), signed, to, rounding, a[0]),
        FloatOp::Function(f, function) => d.function(f, function, a[0]),
        FloatOp::Pow(f) => d.fpow(f, a[0], a[1]),
    }
}
