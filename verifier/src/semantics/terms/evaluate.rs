//! The values of terms, for numbers in the place of variables.
//!
//! A sample is one choice of a value for every variable and of a meaning for every uninterpreted function, by a hash of its
//! name. Terms that differ in a sample differ; terms that agree in all samples may be equal.
//!
//! A comparison that seldom holds has one value in all samples, and what is chosen by it is never seen. In a *steered* sample such a comparison
//! is anything, by a hash of its node. Terms that differ there may be equal, but those that are made of the same comparisons and agree
//! there are much more likely to be.

use super::{Name, Op, Term, Terms, build};
use crate::semantics::arithmetic::concrete::{Concrete, mask, signed};
use crate::semantics::arithmetic::domain::{Domain, Format};
use crate::support::random::hash;
use cranelift_entity::{EntityRef, SecondaryMap};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// How many samples a term is evaluated on.
pub const SAMPLES: usize = 32;

/// The values of a term.
pub type Sample = [u64; SAMPLES];

/// How many steered samples a term is evaluated on.
pub const STEERED: usize = 8;

/// The values of a term in steered samples.
pub type Steered = [u64; STEERED];

/// An operation on numbers. Shift counts may be anything.
pub fn operation(op: Op, width: u32, widths: &[u32], a: &[u64]) -> u64 {
    let d = &mut Concrete;
    let w = widths.first().copied().unwrap_or(width);
    let value = match op {
        Op::Constant(bits) => bits,
        Op::Variable(_) | Op::Apply(_) => unreachable!("not an operation on numbers"),
        Op::Not => !a[0],
        Op::And => a.iter().fold(u64::MAX, |x, y| x & y),
        Op::Xor => a.iter().fold(0, |x, y| x ^ y),
        Op::Add => a.iter().fold(0, |x: u64, &y| x.wrapping_add(y)),
        Op::Mul => a.iter().fold(1, |x: u64, &y| x.wrapping_mul(y)),
        Op::Udiv => a[0].checked_div(a[1]).unwrap_or(u64::MAX),
        Op::Urem => a[0].checked_rem(a[1]).unwrap_or(a[0]),
        Op::Shl => {
            if a[1] >= w.into() {
                0
            } else {
                a[0] << a[1]
            }
        }
        Op::Lshr => {
            if a[1] >= w.into() {
                0
            } else {
                a[0] >> a[1]
            }
        }
        Op::Ashr => (signed(w, a[0]) >> a[1].min(u64::from(w) - 1)) as u64,
        Op::Eq => u64::from(a[0] == a[1]),
        Op::Ult => u64::from(a[0] < a[1]),
        Op::Slt => u64::from(signed(w, a[0]) < signed(w, a[1])),
        Op::Ite => {
            if a[0] & 1 != 0 {
                a[1]
            } else {
                a[2]
            }
        }
        Op::Zext => a[0],
        Op::Sext => signed(w, a[0]) as u64,
        Op::Extract(low) => a[0] >> low,
        Op::Concat => a[0] << widths[1] | a[1],
        Op::UmulHigh => d.umul_high(w, a[0], a[1]),
        Op::SmulHigh => d.smul_high(w, a[0], a[1]),
        Op::Opaque => a[0],
        Op::Popcount => d.popcount(w, a[0]),
        Op::Clz => d.clz(w, a[0]),
        Op::Reverse => d.reverse(w, a[0]),
        Op::Float(op) => build::float(d, op, a),
    };
    value & mask(width)
}

/// The values of terms on samples, kept: each term is evaluated once.
#[derive(Default)]
pub struct Samples {
    values: Vec<Sample>,
    steered: Vec<Steered>,
    widths: SecondaryMap<Term, u8>,
}

impl Samples {
    /// The values of a term.
    pub fn of(&mut self, terms: &Terms, term: Term) -> &Sample {
        // Arguments have lower numbers, so everything up to the term can be evaluated in order.
        while self.values.len() <= term.index() {
            let next = Term::new(self.values.len());
            let value: Sample = self.evaluate(terms, next, &self.values, 0);
            let node = terms.node(next);
            let compares = matches!(node.op, Op::Eq | Op::Ult | Op::Slt | Op::Float(_)) && node.width == 1;
            let is_constant = compares && value == [value[0]; SAMPLES];
            let steered = if is_constant && matches!(&node.args[..], [a, b] if a == b) {
                // What is compared by others is a number.
                [1; STEERED]
            } else if is_constant {
                std::array::from_fn(|i| hash(&[next.index() as u64, i as u64]) & 1)
            } else {
                self.evaluate(terms, next, &self.steered, SAMPLES)
            };
            self.widths[next] = terms.width(next) as u8;
            self.values.push(value);
            self.steered.push(steered);
        }
        &self.values[term.index()]
    }

    /// The values of a term in steered samples.
    pub fn steered(&mut self, terms: &Terms, term: Term) -> &Steered {
        self.of(terms, term);
        &self.steered[term.index()]
    }

    /// The values of a term, by those of its arguments; `first` is the number of the first sample.
    fn evaluate<const N: usize>(&self, terms: &Terms, term: Term, values: &[[u64; N]], first: usize) -> [u64; N] {
        let node = terms.node(term);
        let width = u32::from(node.width);
        let widths: SmallVec<[u32; 4]> = node.args.iter().map(|&arg| self.widths[arg].into()).collect();
        let mut out = [0; N];
        let mut args = SmallVec::<[u64; 4]>::new();
        for (i, out) in out.iter_mut().enumerate() {
            args.clear();
            args.extend(node.args.iter().map(|arg| values[arg.index()][i]));
            let i = first + i;
            *out = match node.op {
                Op::Variable(name) => value_of(text_hash(terms.text(name)), i, width),
                Op::Apply(name) => {
                    let key = args.iter().fold(text_hash(terms.text(name)), |key, &arg| hash(&[key, arg]));
                    value_of(key, i, width)
                }
                op => operation(op, width, &widths, &args),
            };
        }
        out
    }
}

fn text_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// The value of something that may have any: now and then one of the numbers at which operations have their corners.
fn value_of(key: u64, sample: usize, width: u32) -> u64 {
    let h = hash(&[key, sample as u64]);
    let bits = hash(&[h]);
    // In some, everything is small: then there is more that is equal, or that overflows. In some, everything is a float near 1, of which
    // long computations can be made that are no NaN in the end.
    let value = match h % 8 {
        _ if sample < 6 => bits % 3,
        _ if sample < 8 => (bits % 2).wrapping_neg(),
        _ if sample < 16 => float_near_one(width, bits),
        0 => bits % 4,
        1 => u64::MAX - bits % 3,
        2 => 1 << (width - 1) | bits & 1,
        3 => bits & 0xff,
        _ => bits,
    };
    value & mask(width)
}

/// A float between 1/4 and 2 of either sign, if there is a format of this width; else the bits.
pub(super) fn float_near_one(width: u32, bits: u64) -> u64 {
    let Some(format) = Format::of_width(width) else { return bits };
    // The exponent of 1, or one or two less, and a sign that is seldom.
    let fraction = format.fraction();
    let one = mask(width - 2) >> fraction;
    let exponent = one - bits % 3;
    let sign = u64::from(bits >> 8 & 3 == 0);
    sign << (width - 1) | exponent << fraction | bits >> 12 & mask(fraction)
}

/// The value of a term for given values of the variables. An uninterpreted function is one by the hash of its name.
pub fn value(terms: &Terms, term: Term, variables: &dyn Fn(Name) -> u64) -> u64 {
    let given = |term: Term| match terms.node(term).op {
        Op::Variable(name) => Some(variables(name)),
        _ => None,
    };
    values(terms, &[term], &given)[&term]
}

/// The values of terms and of all that they are made of, for given values of variables and of applications of uninterpreted functions. One
/// that has none given is a hash of the name, and of the arguments' values.
pub fn values(terms: &Terms, of: &[Term], given: &dyn Fn(Term) -> Option<u64>) -> FxHashMap<Term, u64> {
    // Only what the terms are made of, arguments first.
    let mut needed = FxHashMap::<Term, u64>::default();
    let mut stack = of.to_vec();
    while let Some(&top) = stack.last() {
        let node = terms.node(top);
        if needed.contains_key(&top) {
            stack.pop();
            continue;
        }
        let missing = stack.len();
        stack.extend(node.args.iter().filter(|arg| !needed.contains_key(arg)));
        if stack.len() > missing {
            continue;
        }
        stack.pop();
        let width = u32::from(node.width);
        let widths: SmallVec<[u32; 4]> = node.args.iter().map(|&arg| terms.width(arg)).collect();
        let args: SmallVec<[u64; 4]> = node.args.iter().map(|arg| needed[arg]).collect();
        let value = match node.op {
            Op::Variable(name) | Op::Apply(name) => {
                let hashed = || args.iter().fold(text_hash(terms.text(name)), |key, &arg| hash(&[key, arg]));
                given(top).unwrap_or_else(hashed) & mask(width)
            }
            op => operation(op, width, &widths, &args),
        };
        needed.insert(top, value);
    }
    needed
}
