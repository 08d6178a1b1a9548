//! The values of terms, for given values of their variables.
//!
//! A sample is an assignment of values to all variables and of meanings to all uninterpreted functions, by a hash of
//! their names. Terms that differ in a sample differ; terms that agree in all samples may be equal.
//!
//! A comparison that seldom holds has one value in all samples, so one arm of a choice by it is never observed. In a
//! *steered* sample such a comparison has a random value, by a hash of its node. Terms that differ there may be equal,
//! but those with the same comparisons that agree there are much more likely to be equal.

use super::{Name, Op, Term, Terms, build};
use crate::arithmetic::concrete::{Concrete, mask, signed};
use crate::arithmetic::domain::{Domain, Format};
use crate::support::random::{hash, text_hash};
use cranelift_entity::{EntityRef, SecondaryMap};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The number of samples on which a term is evaluated.
pub const SAMPLES: usize = 32;

/// The values of a term in the samples.
pub type Sample = [u64; SAMPLES];

/// The number of steered samples on which a term is evaluated.
const STEERED: usize = 8;

/// The values of a term in steered samples.
pub type Steered = [u64; STEERED];

/// Evaluates an operation on constants. Shift counts may be anything.
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

/// Evaluates an operation in `N` samples at once. `args` has the rows of the arguments, `widths` their widths.
pub(super) fn rows<const N: usize>(op: Op, width: u32, widths: &[u32], args: &[&[u64; N]]) -> [u64; N] {
    // The operations that most terms have: one loop over the samples each.
    let mut out = match op {
        Op::Constant(bits) => [bits; N],
        Op::Not => args[0].map(|a| !a),
        Op::And => folded(args, |a, b| a & b),
        Op::Xor => folded(args, |a, b| a ^ b),
        Op::Add => folded(args, u64::wrapping_add),
        Op::Mul => folded(args, u64::wrapping_mul),
        Op::Eq => folded(args, |a, b| u64::from(a == b)),
        Op::Ult => folded(args, |a, b| u64::from(a < b)),
        Op::Ite => std::array::from_fn(|i| if args[0][i] & 1 != 0 { args[1][i] } else { args[2][i] }),
        Op::Zext | Op::Opaque => *args[0],
        Op::Sext => args[0].map(|a| signed(widths[0], a) as u64),
        Op::Extract(low) => args[0].map(|a| a >> low),
        Op::Concat => std::array::from_fn(|i| args[0][i] << widths[1] | args[1][i]),
        _ => {
            let mut operands = SmallVec::<[u64; 4]>::new();
            return std::array::from_fn(|i| {
                operands.clear();
                operands.extend(args.iter().map(|row| row[i]));
                operation(op, width, widths, &operands)
            });
        }
    };
    let mask = mask(width);
    out.iter_mut().for_each(|value| *value &= mask);
    out
}

/// The rows of the arguments, combined from the first to the last.
fn folded<const N: usize>(args: &[&[u64; N]], f: impl Fn(u64, u64) -> u64) -> [u64; N] {
    let mut out = *args[0];
    for row in &args[1..] {
        out.iter_mut().zip(*row).for_each(|(out, &value)| *out = f(*out, value));
    }
    out
}

/// The cached values of terms in samples: a term is evaluated when its values are first needed.
#[derive(Default)]
pub struct Samples {
    /// The number of the row of each term, plus 1; 0 if it has not been evaluated.
    numbers: SecondaryMap<Term, u32>,
    values: Vec<Sample>,
    steered: Vec<Steered>,
    /// A hash of the values of each row, and one of its values in steered samples too.
    hashes: Vec<[u64; 2]>,
    /// The terms to evaluate, each before its arguments.
    work: Vec<Term>,
}

impl Samples {
    /// The values of a term in the samples.
    pub fn of(&mut self, terms: &Terms, term: Term) -> &Sample {
        let row = self.row(terms, term);
        &self.values[row]
    }

    /// A hash of the values of a term in the samples: terms of another hash differ.
    pub fn hash_of(&mut self, terms: &Terms, term: Term) -> u64 {
        let row = self.row(terms, term);
        self.hashes[row][0]
    }

    /// A hash of the values of a term in the samples and in steered samples.
    pub fn steered_hash_of(&mut self, terms: &Terms, term: Term) -> u64 {
        let row = self.row(terms, term);
        self.hashes[row][1]
    }

    /// The values of a term in steered samples.
    pub fn steered(&mut self, terms: &Terms, term: Term) -> &Steered {
        let row = self.row(terms, term);
        &self.steered[row]
    }

    /// The row of a term; evaluates it, and the subterms that have not been evaluated.
    fn row(&mut self, terms: &Terms, term: Term) -> usize {
        if let Some(row) = self.numbers[term].checked_sub(1) {
            return row as usize;
        }
        let mut work = std::mem::take(&mut self.work);
        work.push(term);
        while let Some(&next) = work.last() {
            if self.numbers[next] != 0 {
                work.pop();
                continue;
            }
            let before = work.len();
            work.extend(terms.node(next).args.iter().copied().filter(|&arg| self.numbers[arg] == 0));
            if work.len() == before {
                work.pop();
                self.add(terms, next);
            }
        }
        self.work = work;
        self.numbers[term] as usize - 1
    }

    /// Evaluates a term whose arguments have been evaluated.
    fn add(&mut self, terms: &Terms, term: Term) {
        let value: Sample = self.evaluate(terms, term, &self.values, 0);
        let node = terms.node(term);
        let compares = matches!(node.op, Op::Eq | Op::Ult | Op::Slt | Op::Float(_)) && node.width == 1;
        let is_constant = compares && value == [value[0]; SAMPLES];
        let steered = if is_constant && matches!(&node.args[..], [a, b] if a == b) {
            // A float compared with itself is a number: not a NaN.
            [1; STEERED]
        } else if is_constant {
            std::array::from_fn(|i| hash(&[term.index() as u64, i as u64]) & 1)
        } else {
            self.evaluate(terms, term, &self.steered, SAMPLES)
        };
        let of_values = hash(&value);
        self.hashes.push([of_values, hash(&[of_values, hash(&steered)])]);
        self.values.push(value);
        self.steered.push(steered);
        self.numbers[term] = self.values.len() as u32;
    }

    /// Evaluates a term from the values of its arguments; `first` is the number of the first sample.
    fn evaluate<const N: usize>(&self, terms: &Terms, term: Term, values: &[[u64; N]], first: usize) -> [u64; N] {
        let node = terms.node(term);
        let width = u32::from(node.width);
        let args: SmallVec<[&[u64; N]; 4]> =
            node.args.iter().map(|&arg| &values[self.numbers[arg] as usize - 1]).collect();
        match node.op {
            Op::Variable(name) => {
                let name_hash = text_hash(terms.text(name));
                std::array::from_fn(|i| value_of(name_hash, first + i, width))
            }
            Op::Apply(name) => {
                let name_hash = text_hash(terms.text(name));
                std::array::from_fn(|i| {
                    let key = args.iter().fold(name_hash, |key, arg| hash(&[key, arg[i]]));
                    value_of(key, first + i, width)
                })
            }
            op => {
                let widths: SmallVec<[u32; 4]> = node.args.iter().map(|&arg| terms.width(arg)).collect();
                rows(op, width, &widths, &args)
            }
        }
    }
}

/// The value of a variable or function: a hash, now and then a corner case of operations.
fn value_of(key: u64, sample: usize, width: u32) -> u64 {
    let h = hash(&[key, sample as u64]);
    let bits = hash(&[h]);
    // In some samples everything is small: then more values are equal, or overflow. In some, everything is a float near
    // 1, so that long computations do not end in a NaN.
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
    // The exponent of 1, or one or two less, and seldom a negative sign.
    let fraction = format.fraction();
    let one = mask(width - 2) >> fraction;
    let exponent = one - bits % 3;
    let sign = u64::from(bits >> 8 & 3 == 0);
    sign << (width - 1) | exponent << fraction | bits >> 12 & mask(fraction)
}

/// Evaluates a term for given values of its variables. An uninterpreted function is a hash of its name and arguments.
pub fn value(terms: &Terms, term: Term, variables: &dyn Fn(Name) -> u64) -> u64 {
    let given = |term: Term| match terms.node(term).op {
        Op::Variable(name) => Some(variables(name)),
        _ => None,
    };
    values(terms, &[term], &given)[&term]
}

/// Evaluates terms and all their subterms, for given values of variables and of applications of uninterpreted
/// functions. Without a given value, one is a hash of its name and of the arguments' values.
pub fn values(terms: &Terms, of: &[Term], given: &dyn Fn(Term) -> Option<u64>) -> FxHashMap<Term, u64> {
    // Only the subterms, arguments first.
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
