//! The 32-bit division by a float reciprocal, as selection emits it, and its proof.
//!
//! For a divisor `d` that is not 0 let `r` be the result of the float estimate and one Newton step in integers: a
//! function of `d` alone. Suppose that `2^32 - r d` lies between 0 and `2 d`. Then for each dividend `n` the estimate
//! `q`, the high word of `n r`, is at most `n / d`, and more than `n r / 2^32 - 1 = n / d - n (2^32 - r d) / (2^32 d) -
//! 1`, which is at least `n / d - 3`. So `n - q d` is not negative and less than `3 d`. Each of the two corrections
//! adds 1 to the quotient and subtracts `d` from the remainder, unless that is less than `d` already; so both make the
//! result exact. No intermediate product overflows: `q d` is at most `n`.
//!
//! The bounds of `2^32 - r d` are checked for each of the 2^32 - 1 divisors, not for a sample.

use ir3_semantics::arithmetic::concrete::Concrete;
use ir3_semantics::arithmetic::domain::{Domain, Format, Function, Rounding};
use ir3_semantics::arithmetic::integer;
use ir3_semantics::support::threads;
use ir3_semantics::terms::{FloatOp, Op, Term, Terms};
use std::ops::RangeInclusive;
use std::sync::OnceLock;

const F: Format = Format::F32;

/// The scale of the reciprocal: slightly less than 2^32.
const SCALE: u64 = 0x4f7f_fffe;

/// The estimate of 2^32 / d.
fn estimate<D: Domain>(d: &mut D, divisor: D::V) -> D::V {
    let float = d.int_to_float(32, false, F, Rounding::Even, divisor);
    let reciprocal = d.function(F, Function::Reciprocal, float);
    let scale = d.constant(32, SCALE);
    let scaled = d.fmul(F, reciprocal, scale);
    d.float_to_int(F, 32, false, Rounding::Zero, scaled)
}

/// The estimate after a Newton step.
fn refined<D: Domain>(d: &mut D, estimate: D::V, divisor: D::V) -> D::V {
    let zero = d.constant(32, 0);
    let opposite = d.sub(32, zero, divisor);
    let error = d.mul(32, estimate.clone(), opposite);
    let correction = d.umul_high(32, estimate.clone(), error);
    d.add(32, estimate, correction)
}

/// The quotient and the remainder; unspecified if the divisor is 0.
fn sequence<D: Domain>(d: &mut D, n: D::V, divisor: D::V) -> [D::V; 2] {
    let reciprocal = estimate(d, divisor.clone());
    let reciprocal = refined(d, reciprocal, divisor.clone());
    let mut quotient = d.umul_high(32, n.clone(), reciprocal);
    let product = d.mul(32, quotient.clone(), divisor.clone());
    let mut remainder = d.sub(32, n, product);
    for _ in 0..2 {
        let enough = d.ult(32, remainder.clone(), divisor.clone());
        let one = d.constant(32, 1);
        let next = d.add(32, quotient.clone(), one);
        quotient = d.ite(32, enough.clone(), quotient, next);
        let less = d.sub(32, remainder.clone(), divisor.clone());
        remainder = d.ite(32, enough, remainder, less);
    }
    [quotient, remainder]
}

/// The left side: the quotient or the remainder of the sequence.
fn left(d: &mut Terms, n: Term, divisor: Term, remainder: bool) -> Term {
    sequence(d, n, divisor)[usize::from(remainder)]
}

/// The right side: the quotient or the remainder if the divisor is not 0, else an opaque term for the result of the
/// sequence. A statement for any value of that term holds for its actual value, so it is never expanded.
fn right(d: &mut Terms, n: Term, divisor: Term, remainder: bool) -> Term {
    let name = d.name(if remainder { "remainder by zero" } else { "quotient by zero" });
    let anything = d.apply(32, name, &[n, divisor]);
    let by_zero = integer::is_zero(d, 32, divisor);
    let exact = if remainder { d.urem(32, n, divisor) } else { d.udiv(32, n, divisor) };
    d.ite(32, by_zero, anything, exact)
}

/// Both sides of the lemma for the quotient.
pub(super) fn quotient(d: &mut Terms, n: Term, divisor: Term) -> [Term; 2] {
    [left(d, n, divisor, false), right(d, n, divisor, false)]
}

/// Both sides of the lemma for the remainder.
pub(super) fn remainder(d: &mut Terms, n: Term, divisor: Term) -> [Term; 2] {
    [left(d, n, divisor, true), right(d, n, divisor, true)]
}

/// Returns the divisor, if the term is a reciprocal.
pub(super) fn divisor(terms: &Terms, term: Term) -> Option<Term> {
    let of = |term: Term| terms.node(term).args[0];
    let is_reciprocal = terms.node(term).op == Op::Float(FloatOp::Function(F, Function::Reciprocal));
    let integer = FloatOp::FromInt { width: 32, signed: false, to: F, rounding: Rounding::Even };
    (is_reciprocal && terms.node(of(term)).op == Op::Float(integer)).then(|| of(of(term)))
}

/// Returns true if 2^32 - r d lies between 0 and 2 d for each of these divisors, none of which is 0.
pub fn holds_for(divisors: RangeInclusive<u32>) -> bool {
    let d = &mut Concrete;
    // Neighbours are mostly one float, which has one estimate.
    let mut last = None;
    for divisor in divisors {
        let bits = d.int_to_float(32, false, F, Rounding::Even, divisor.into());
        let estimate = match last {
            Some((of, estimate)) if of == bits => estimate,
            _ => estimate(d, divisor.into()),
        };
        last = Some((bits, estimate));
        let reciprocal = refined(d, estimate, divisor.into());
        let below = (1i128 << 32) - i128::from(reciprocal) * i128::from(divisor);
        if !(0..=2 * i128::from(divisor)).contains(&below) {
            return false;
        }
    }
    true
}

/// The proof: all divisors, on all cores, computed once.
pub(super) fn is_proved() -> bool {
    static PROVED: OnceLock<bool> = OnceLock::new();
    *PROVED.get_or_init(prove)
}

fn prove() -> bool {
    let workers = threads::default_jobs() as u64;
    let most = u64::from(u32::MAX);
    let share = most.div_ceil(workers);
    let shares: Vec<u64> = (0..workers).collect();
    let holds = |i: &u64| holds_for((1 + i * share) as u32..=((i + 1) * share).min(most) as u32);
    threads::map(shares.len(), &shares, holds).into_iter().all(|holds| holds)
}
