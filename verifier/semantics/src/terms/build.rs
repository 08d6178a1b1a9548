//! The domain, and [`Terms::rebuild`]: every node is made by one of the constructors of the other files.

use super::{Op, Term, Terms};
use crate::arithmetic::concrete::Concrete;
use crate::arithmetic::domain::{Domain, Format, Function, Rounding};
use crate::terms::FloatOp;
use smallvec::SmallVec;

impl Terms {
    /// The node, not normalised, or the constant if all arguments are constants.
    pub(super) fn plain(&mut self, op: Op, width: u32, args: &[Term]) -> Term {
        let mut bits = SmallVec::<[u64; 4]>::new();
        for &arg in args {
            match self.as_constant(arg) {
                Some(value) => bits.push(value),
                None => return self.intern(op, width, args),
            }
        }
        let widths: SmallVec<[u32; 4]> = args.iter().map(|&arg| self.width(arg)).collect();
        let value = super::evaluate::operation(op, width, &widths, &bits);
        self.number(width, value)
    }
}

pub(super) fn rebuild(terms: &mut Terms, op: Op, width: u32, args: &[Term]) -> Term {
    let w = args.first().map_or(width, |&arg| terms.width(arg));
    match op {
        Op::Constant(bits) => terms.number(width, bits),
        Op::Variable(_) | Op::Apply(_) => terms.intern(op, width, args),
        Op::Opaque if terms.as_constant(args[0]).is_some() => args[0],
        Op::Opaque => terms.intern(op, width, args),
        Op::Not => terms.complement(args[0]),
        Op::And => terms.all_of(width, args),
        Op::Xor => terms.exclusive(width, args),
        Op::Add => terms.sum(width, args),
        Op::Mul => terms.product(width, args),
        Op::Udiv => terms.quotient(width, args[0], args[1]),
        Op::Urem => terms.remainder(width, args[0], args[1]),
        Op::Shl => terms.shift_left(width, args[0], args[1]),
        Op::Lshr => terms.shift_right(width, args[0], args[1]),
        Op::Ashr => terms.shift_right_signed(width, args[0], args[1]),
        Op::Eq => terms.equal(args[0], args[1]),
        Op::Ult => terms.below(args[0], args[1]),
        Op::Slt => terms.below_signed(args[0], args[1]),
        Op::Ite => terms.choice(args[0], args[1], args[2]),
        Op::Zext => terms.extend(args[0], width),
        Op::Sext => terms.extend_signed(args[0], width),
        Op::Extract(low) => terms.slice(args[0], low.into(), width),
        Op::Concat => terms.join(args),
        Op::UmulHigh => terms.product_high(w, false, args[0], args[1]),
        Op::SmulHigh => terms.product_high(w, true, args[0], args[1]),
        Op::Popcount | Op::Clz => terms.plain(op, width, args),
        Op::Reverse => terms.reversed(width, args[0]),
        Op::Float(op) => terms.float(op, width, args),
    }
}

impl Domain for Terms {
    type V = Term;

    fn constant(&mut self, w: u32, bits: u64) -> Term {
        self.number(w, bits)
    }
    fn not(&mut self, _: u32, a: Term) -> Term {
        self.complement(a)
    }
    fn and(&mut self, w: u32, a: Term, b: Term) -> Term {
        self.all_of(w, &[a, b])
    }
    fn or(&mut self, w: u32, a: Term, b: Term) -> Term {
        self.any_of(w, &[a, b])
    }
    fn xor(&mut self, w: u32, a: Term, b: Term) -> Term {
        self.exclusive(w, &[a, b])
    }
    fn add(&mut self, w: u32, a: Term, b: Term) -> Term {
        self.sum(w, &[a, b])
    }
    fn sub(&mut self, w: u32, a: Term, b: Term) -> Term {
        self.difference(w, a, b)
    }
    fn mul(&mut self, w: u32, a: Term, b: Term) -> Term {
        self.product(w, &[a, b])
    }
    fn udiv(&mut self, w: u32, a: Term, b: Term) -> Term {
        self.quotient(w, a, b)
    }
    fn urem(&mut self, w: u32, a: Term, b: Term) -> Term {
        self.remainder(w, a, b)
    }
    fn shl(&mut self, w: u32, a: Term, count: Term) -> Term {
        self.shift_left(w, a, count)
    }
    fn lshr(&mut self, w: u32, a: Term, count: Term) -> Term {
        self.shift_right(w, a, count)
    }
    fn ashr(&mut self, w: u32, a: Term, count: Term) -> Term {
        self.shift_right_signed(w, a, count)
    }
    fn eq(&mut self, _: u32, a: Term, b: Term) -> Term {
        self.equal(a, b)
    }
    fn ult(&mut self, _: u32, a: Term, b: Term) -> Term {
        self.below(a, b)
    }
    fn slt(&mut self, _: u32, a: Term, b: Term) -> Term {
        self.below_signed(a, b)
    }
    fn ite(&mut self, _: u32, condition: Term, a: Term, b: Term) -> Term {
        self.choice(condition, a, b)
    }
    fn zext(&mut self, _: u32, to: u32, a: Term) -> Term {
        self.extend(a, to)
    }
    fn sext(&mut self, _: u32, to: u32, a: Term) -> Term {
        self.extend_signed(a, to)
    }
    fn extract(&mut self, _: u32, a: Term, low: u32, n: u32) -> Term {
        self.slice(a, low, n)
    }
    fn concat(&mut self, _: u32, high: Term, _: u32, low: Term) -> Term {
        self.join(&[high, low])
    }
    fn umul_high(&mut self, w: u32, a: Term, b: Term) -> Term {
        self.product_high(w, false, a, b)
    }
    fn smul_high(&mut self, w: u32, a: Term, b: Term) -> Term {
        self.product_high(w, true, a, b)
    }
    fn popcount(&mut self, w: u32, a: Term) -> Term {
        self.plain(Op::Popcount, w, &[a])
    }
    fn clz(&mut self, w: u32, a: Term) -> Term {
        self.plain(Op::Clz, w, &[a])
    }
    fn reverse(&mut self, w: u32, a: Term) -> Term {
        self.reversed(w, a)
    }
    fn fadd(&mut self, f: Format, a: Term, b: Term) -> Term {
        self.float(FloatOp::Add(f), f.width(), &[a, b])
    }
    fn fmul(&mut self, f: Format, a: Term, b: Term) -> Term {
        self.float(FloatOp::Mul(f), f.width(), &[a, b])
    }
    fn ffma(&mut self, f: Format, a: Term, b: Term, c: Term) -> Term {
        self.float(FloatOp::Fma(f), f.width(), &[a, b, c])
    }
    fn fdiv(&mut self, f: Format, a: Term, b: Term) -> Term {
        self.float(FloatOp::Div(f), f.width(), &[a, b])
    }
    fn fround(&mut self, f: Format, rounding: Rounding, a: Term) -> Term {
        self.float(FloatOp::Round(f, rounding), f.width(), &[a])
    }
    fn feq(&mut self, f: Format, a: Term, b: Term) -> Term {
        self.float(FloatOp::Eq(f), 1, &[a, b])
    }
    fn flt(&mut self, f: Format, a: Term, b: Term) -> Term {
        self.float(FloatOp::Lt(f), 1, &[a, b])
    }
    fn fle(&mut self, f: Format, a: Term, b: Term) -> Term {
        self.float(FloatOp::Le(f), 1, &[a, b])
    }
    fn fconvert(&mut self, from: Format, to: Format, rounding: Rounding, a: Term) -> Term {
        self.float(FloatOp::Convert(from, to, rounding), to.width(), &[a])
    }
    fn float_to_int(&mut self, from: Format, w: u32, signed: bool, rounding: Rounding, a: Term) -> Term {
        self.float(FloatOp::ToInt { from, width: w as u8, signed, rounding }, w, &[a])
    }
    fn int_to_float(&mut self, w: u32, signed: bool, to: Format, rounding: Rounding, a: Term) -> Term {
        self.float(FloatOp::FromInt { width: w as u8, signed, to, rounding }, to.width(), &[a])
    }
    fn function(&mut self, f: Format, function: Function, a: Term) -> Term {
        self.float(FloatOp::Function(f, function), f.width(), &[a])
    }
    fn fpow(&mut self, f: Format, a: Term, b: Term) -> Term {
        self.float(FloatOp::Pow(f), f.width(), &[a, b])
    }
}

/// Evaluates the operation on machine integers.
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
