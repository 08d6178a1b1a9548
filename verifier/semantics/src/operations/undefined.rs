//! The results of operations on operands with undefined bits.
//!
//! An undefined value is *some* value, and every use of it may see another one (docs/semantics.md). So a value has, in
//! addition to its bits, two masks:
//! - `free`: bits that may be anything, each alone and all together, independent of the other bits and of other
//!   observations. It is an under-approximation, for the side before a pass: the target may have any value in these
//!   bits, and in no others.
//! - `tainted`: bits that may depend on an undefined value. It is an over-approximation, for the side after a pass.
//!
//! A bit that is tainted and not free is a function of the values chosen for the undefined operands; its value is that
//! for one choice. Sides that compute with different choices may differ there, so nothing is known about it, unless
//! they make the same choice.
//!
//! The rules are by primitive operation, on the definition of an instruction in terms ([`Template`]). A bit that is
//! used twice in it is not free in the result ([`Free::from`]): `x ^ x` is 0. For the same reason a bit of a sum or of
//! a conjunction of two free bits is not free: Mesa folds `isub u, u` to 0, as for any other value.

use crate::arithmetic::concrete::{Concrete, mask};
use crate::arithmetic::domain::{Domain, Format};
use crate::operations::values::{Kernel, LaneTest, Modify};
use crate::support::guards::{Guard, left_out};
use crate::terms::{FloatOp, Op, Term, Terms, operation};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::rc::Rc;

/// A domain whose values may be known constants during the analysis.
pub trait KnownConstants: Domain {
    /// The constant that a value is, if it is known.
    fn known(&self, value: &Self::V) -> Option<u64>;

    /// Returns true if a mask is known to be empty.
    fn is_empty_mask(&self, value: &Self::V) -> bool {
        self.known(value) == Some(0)
    }

    /// Returns true if a mask is known to have all bits or none.
    fn is_uniform_mask(&self, w: u32, value: &Self::V) -> bool {
        self.known(value).is_some_and(|bits| bits == 0 || bits == mask(w))
    }
}

impl KnownConstants for Concrete {
    fn known(&self, value: &u64) -> Option<u64> {
        Some(*value)
    }
}

impl KnownConstants for Terms {
    fn known(&self, value: &Term) -> Option<u64> {
        self.as_constant(*value)
    }

    fn is_uniform_mask(&self, w: u32, value: &Term) -> bool {
        let node = self.node(*value);
        match node.op {
            Op::Constant(bits) => bits == 0 || bits == mask(w),
            Op::Sext => self.width(node.args[0]) == 1,
            Op::Ite => node.args[1..].iter().all(|arg| self.is_uniform_mask(w, arg)),
            _ => w == 1,
        }
    }
}

/// A value and its free bits.
#[derive(Clone, Debug)]
pub struct Free<V> {
    /// The bits; free bits have the value of one choice.
    pub bits: V,
    /// The free bits.
    pub free: V,
    /// The mask of the operands of the instruction that it depends on and that have free bits.
    pub from: u32,
}

/// The mask from its lowest bit on, if it has all bits above that; else empty.
fn upper<D: KnownConstants>(d: &mut D, w: u32, free: D::V) -> D::V {
    if d.is_uniform_mask(w, &free) {
        return free;
    }
    let negated = {
        let zero = d.constant(w, 0);
        d.sub(w, zero, free.clone())
    };
    // The lowest bit and all bits above it.
    let above = d.or(w, free.clone(), negated);
    let is_upper = d.eq(w, above, free.clone());
    let none = d.constant(w, 0);
    d.ite(w, is_upper, free, none)
}

fn is_zero<D: Domain>(d: &mut D, w: u32, a: D::V) -> D::V {
    let zero = d.constant(w, 0);
    d.eq(w, a, zero)
}

/// The complement's meet: `a & !b`.
fn without<D: Domain>(d: &mut D, w: u32, a: D::V, b: D::V) -> D::V {
    let b = d.not(w, b);
    d.and(w, a, b)
}

/// The free bits of the result of a primitive operation on operands of these widths, at least one of which has free
/// bits.
///
/// `from` is that of the operands: operands that depend on a common one give no free bits.
pub fn free<D: KnownConstants>(d: &mut D, op: Op, width: u32, widths: &[u32], args: &[Free<D::V>]) -> D::V {
    let none = d.constant(width, 0);
    let mut from = 0;
    for arg in args {
        if from & arg.from != 0 && !left_out(Guard::FreeCorrelated) {
            return none;
        }
        from |= arg.from;
    }
    if from == 0 {
        return none;
    }
    let w = widths.first().copied().unwrap_or(width);
    match op {
        Op::Not => args[0].free.clone(),
        // One at a time: a bit is free where one of the operands is free and the others let it through.
        Op::And | Op::Xor | Op::Add => {
            let (mut bits, mut sum) = (args[0].bits.clone(), args[0].free.clone());
            for arg in &args[1..] {
                sum = free_of_two(d, op, width, (bits.clone(), sum), (arg.bits.clone(), arg.free.clone()));
                bits = match op {
                    Op::And => d.and(width, bits, arg.bits.clone()),
                    Op::Xor => d.xor(width, bits, arg.bits.clone()),
                    _ => d.add(width, bits, arg.bits.clone()),
                };
            }
            sum
        }
        Op::Mul => {
            let factor = args
                .iter()
                .filter(|arg| arg.from == 0)
                .try_fold(1u64, |product, arg| d.known(&arg.bits).map(|bits| product.wrapping_mul(bits)));
            let mut unknown = args.iter().filter(|arg| arg.from != 0);
            match (factor.map(|factor| factor & mask(width)), unknown.next(), unknown.next()) {
                // An odd factor is a bijection on the values; a power of two shifts them.
                (Some(factor), Some(arg), None) if factor != 0 => {
                    let upper = upper(d, width, arg.free.clone());
                    let count = d.constant(width, factor.trailing_zeros().into());
                    d.shl(width, upper, count)
                }
                _ => none,
            }
        }
        Op::Shl | Op::Lshr | Op::Ashr if args[1].from == 0 => {
            let (value, count) = (args[0].free.clone(), args[1].bits.clone());
            let limit = d.constant(w, w.into());
            let within = d.ult(w, count.clone(), limit);
            let zero = d.constant(w, 0);
            let count = d.ite(w, within.clone(), count, zero);
            let moved = match op {
                Op::Shl => d.shl(w, value, count),
                Op::Lshr => d.lshr(w, value, count),
                _ => {
                    let sign = d.constant(w, 1 << (w - 1));
                    let rest = without(d, w, value, sign);
                    d.lshr(w, rest, count)
                }
            };
            d.ite(w, within, moved, none)
        }
        Op::Eq => {
            let [a, b] = [&args[0], &args[1]];
            let either = d.or(w, a.free.clone(), b.free.clone());
            let both = d.and(w, a.free.clone(), b.free.clone());
            let differ = d.xor(w, a.bits.clone(), b.bits.clone());
            let differ = without(d, w, differ, either.clone());
            let open = is_zero(d, w, differ);
            let defined = is_zero(d, w, either);
            let some = d.not(1, defined);
            let alone = is_zero(d, w, both);
            let open = d.and(1, open, some);
            d.and(1, open, alone)
        }
        Op::Ult | Op::Slt => {
            let flip = d.constant(w, if op == Op::Slt { 1 << (w - 1) } else { 0 });
            let mut ends = |arg: &Free<D::V>| {
                let bits = d.xor(w, arg.bits.clone(), flip.clone());
                let least = without(d, w, bits.clone(), arg.free.clone());
                (least, d.or(w, bits, arg.free.clone()))
            };
            let ((a_least, a_most), (b_least, b_most)) = (ends(&args[0]), ends(&args[1]));
            let may = d.ult(w, a_least, b_most);
            let must = d.ult(w, a_most, b_least);
            let must_not = d.not(1, must);
            let open = d.and(1, may, must_not);
            let both = d.and(w, args[0].free.clone(), args[1].free.clone());
            let alone = is_zero(d, w, both);
            d.and(1, open, alone)
        }
        Op::Ite => d.ite(width, args[0].bits.clone(), args[1].free.clone(), args[2].free.clone()),
        Op::Zext => d.zext(w, width, args[0].free.clone()),
        Op::Sext => {
            // The copies of the sign are the same bit.
            if left_out(Guard::FreeSign) {
                return d.sext(w, width, args[0].free.clone());
            }
            let sign = d.constant(w, 1 << (w - 1));
            let rest = without(d, w, args[0].free.clone(), sign);
            d.zext(w, width, rest)
        }
        Op::Extract(low) => d.extract(w, args[0].free.clone(), low.into(), width),
        Op::Concat => d.concat(widths[0], args[0].free.clone(), widths[1], args[1].free.clone()),
        Op::Reverse => d.reverse(width, args[0].free.clone()),
        Op::Float(op @ (FloatOp::Eq(_) | FloatOp::Lt(_) | FloatOp::Le(_))) => {
            let (all, other, first) = match (args[0].from != 0, args[1].from != 0) {
                (true, false) => (&args[0], &args[1], true),
                (false, true) => (&args[1], &args[0], false),
                _ => return none,
            };
            let ones = d.constant(w, mask(w));
            let whole = d.eq(w, all.free.clone(), ones);
            let open = comparable(d, op, other.bits.clone(), first);
            d.and(1, whole, open)
        }
        _ => none,
    }
}

/// The free bits of a sum, conjunction or exclusive or of two operands.
fn free_of_two<D: KnownConstants>(d: &mut D, op: Op, w: u32, a: (D::V, D::V), b: (D::V, D::V)) -> D::V {
    if op != Op::And && left_out(Guard::FreeOfTwo) {
        return d.or(w, a.1, b.1);
    }
    let only_a = without(d, w, a.1.clone(), b.1.clone());
    let only_b = without(d, w, b.1.clone(), a.1.clone());
    match op {
        Op::And => {
            let from_a = d.and(w, only_a, b.0);
            let from_b = d.and(w, only_b, a.0);
            d.or(w, from_a, from_b)
        }
        Op::Xor => d.or(w, only_a, only_b),
        _ => {
            let (a_none, b_none) = (is_zero(d, w, a.1.clone()), is_zero(d, w, b.1.clone()));
            let (a_upper, b_upper) = (upper(d, w, a.1), upper(d, w, b.1));
            let none = d.constant(w, 0);
            let of_b = d.ite(w, a_none, b_upper, none);
            d.ite(w, b_none, a_upper, of_b)
        }
    }
}

/// Returns true if a comparison with the float `other` can have either result if the other operand may be anything,
/// which is the first one if `first`.
fn comparable<D: Domain>(d: &mut D, op: FloatOp, other: D::V, first: bool) -> D::V {
    let minus = |f: Format| f.infinity() | f.sign();
    match (op, first) {
        // Nothing is less than minus infinity, nor is infinity or a NaN less than anything.
        (FloatOp::Lt(f), true) => {
            let least = d.constant(f.width(), minus(f));
            d.flt(f, least, other)
        }
        (FloatOp::Lt(f), false) => {
            let most = d.constant(f.width(), f.infinity());
            d.flt(f, other, most)
        }
        // Only a NaN is equal to nothing.
        (FloatOp::Eq(f) | FloatOp::Le(f), _) => d.feq(f, other.clone(), other),
        _ => d.constant(1, 0),
    }
}

/// The free bits of a result that is 1 where a word is not 0.
pub fn free_truth<D: KnownConstants>(d: &mut D, w: u32, bits: D::V, free: D::V) -> D::V {
    if d.is_empty_mask(&free) {
        return d.constant(1, 0);
    }
    let rest = without(d, w, bits, free.clone());
    let open = is_zero(d, w, rest);
    let defined = is_zero(d, w, free);
    let some = d.not(1, defined);
    d.and(1, open, some)
}

/// The tainted bits of the result of a primitive operation.
fn tainted(op: Op, width: u32, widths: &[u32], bits: &[u64], taint: &[u64]) -> u64 {
    if taint.iter().all(|&taint| taint == 0) {
        return 0;
    }
    let w = widths.first().copied().unwrap_or(width);
    let all = mask(width);
    // The lowest bit, and all bits above it.
    let smear = |x: u64| x | x.wrapping_neg();
    let lowest = |x: u64| x & x.wrapping_neg();
    let result = match op {
        Op::Not | Op::Zext | Op::Opaque => taint[0],
        Op::Sext | Op::Extract(_) | Op::Reverse | Op::Concat => operation(op, width, widths, taint),
        Op::And => {
            let zeros = bits.iter().zip(taint).fold(0, |zeros, (&bits, &taint)| zeros | !bits & !taint);
            taint.iter().fold(0, |all, &taint| all | taint) & !zeros
        }
        Op::Xor => taint.iter().fold(0, |all, &taint| all | taint),
        Op::Add => smear(taint.iter().fold(0, |all, &taint| all | taint)),
        Op::Mul => {
            let (mut product, mut sum) = (1u64, 0u64);
            for (&bits, &taint) in bits.iter().zip(taint) {
                let (a, b) = (lowest(sum), lowest(taint));
                sum = smear(a.wrapping_mul(bits) & all) | smear(b.wrapping_mul(product) & all);
                sum |= smear(a.wrapping_mul(b) & all);
                product = product.wrapping_mul(bits);
            }
            sum
        }
        Op::Shl | Op::Lshr | Op::Ashr if taint[1] == 0 => operation(op, width, widths, &[taint[0], bits[1]]),
        Op::Eq => {
            let either = taint[0] | taint[1];
            u64::from((bits[0] ^ bits[1]) & !either == 0)
        }
        Op::Ult | Op::Slt => {
            let flip = if op == Op::Slt { 1 << (w - 1) } else { 0 };
            let ends = |i: usize| ((bits[i] ^ flip) & !taint[i], (bits[i] ^ flip) | taint[i]);
            let ((a_least, a_most), (b_least, b_most)) = (ends(0), ends(1));
            u64::from(a_least < b_most && a_most >= b_least)
        }
        Op::Ite => match (taint[0], bits[0] & 1) {
            (0, 1) => taint[1],
            (0, _) => taint[2],
            _ => taint[1] | taint[2] | bits[1] ^ bits[2],
        },
        Op::Float(op @ (FloatOp::Eq(_) | FloatOp::Lt(_) | FloatOp::Le(_))) => match (taint[0], taint[1]) {
            (_, 0) => comparable(&mut Concrete, op, bits[1], true),
            (0, _) => comparable(&mut Concrete, op, bits[0], false),
            _ => 1,
        },
        _ => all,
    };
    result & all
}

/// The definition of an instruction, as a list of primitive operations on its operands.
#[derive(Debug)]
pub struct Template {
    nodes: Vec<TemplateNode>,
    /// The nodes of the results.
    results: SmallVec<[u32; 4]>,
}

#[derive(Debug)]
struct TemplateNode {
    op: Op,
    width: u32,
    /// The number of the operand, if the node is one.
    operand: Option<u32>,
    args: SmallVec<[u32; 3]>,
    widths: SmallVec<[u32; 3]>,
}

/// The largest number of operand words of an instruction.
const OPERANDS: usize = 32;

impl Template {
    /// The template of a function from the words of `operands` operands to the words of the results.
    fn new(operands: usize, meaning: impl FnOnce(&mut Terms, &[Term]) -> SmallVec<[Term; 4]>) -> Self {
        let mut terms = Terms::new();
        let words: SmallVec<[Term; 8]> = (0..operands)
            .map(|i| {
                let name = terms.name(&format!("operand {i}"));
                terms.variable(32, name)
            })
            .collect();
        let results = meaning(&mut terms, &words);
        // Only the subterms of the results, in their order.
        let mut needed = vec![false; terms.len()];
        let mut work = results.to_vec();
        while let Some(term) = work.pop() {
            if !std::mem::replace(&mut needed[term.index()], true) {
                work.extend(terms.node(term).args.iter().copied());
            }
        }
        let mut numbers: FxHashMap<Term, u32> = FxHashMap::default();
        let mut nodes = Vec::new();
        for index in (0..terms.len()).filter(|&index| needed[index]) {
            let term = Term::new(index);
            let node = terms.node(term);
            numbers.insert(term, nodes.len() as u32);
            nodes.push(TemplateNode {
                op: node.op,
                width: node.width.into(),
                operand: words.iter().position(|&word| word == term).map(|i| i as u32),
                args: node.args.iter().map(|arg| numbers[arg]).collect(),
                widths: node.args.iter().map(|&arg| terms.width(arg)).collect(),
            });
        }
        Self { nodes, results: results.iter().map(|term| numbers[term]).collect() }
    }

    /// The template of a kernel: its operands in order; the results. A choice has one result, and its operands in the
    /// order of the instruction.
    pub fn of(kernel: Kernel, operands: usize) -> Rc<Self> {
        debug_assert!(operands <= OPERANDS);
        match kernel {
            Kernel::One(kernel) => cached(key(kernel), || {
                Self::new(1, |terms, words| [(kernel.meaning)(terms, words[0])].into_iter().collect())
            }),
            Kernel::Two(kernel) => cached(key(kernel), || {
                Self::new(2, |terms, words| [(kernel.meaning)(terms, words[0], words[1])].into_iter().collect())
            }),
            Kernel::Three(kernel) => cached(key(kernel), || {
                Self::new(3, |terms, w| [(kernel.meaning)(terms, w[0], w[1], w[2])].into_iter().collect())
            }),
            Kernel::Select(select) => Self::of_test(select.test),
            Kernel::Rows(kernel) => {
                cached(key(kernel), || Self::new(operands, |terms, words| (kernel.meaning)(terms, words)))
            }
        }
    }

    /// The template of a test of one word; its result has one bit.
    fn of_test(test: &'static LaneTest) -> Rc<Self> {
        cached(key(test), || Self::new(1, |terms, words| [(test.meaning)(terms, words[0])].into_iter().collect()))
    }

    /// The template of a modification of a word.
    pub fn of_modify(modify: &'static Modify) -> Rc<Self> {
        cached(key(modify), || Self::new(1, |terms, words| [(modify.meaning)(terms, words[0])].into_iter().collect()))
    }

    /// The free bits of the results, in any domain.
    pub fn free<D: KnownConstants>(
        &self,
        d: &mut D,
        operands: &[(D::V, D::V)],
        mut primitive: impl FnMut(&mut D, Op, u32, &[u32], &[D::V]) -> D::V,
    ) -> SmallVec<[D::V; 4]> {
        let mut values: Vec<Free<D::V>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let value = match (node.operand, node.op) {
                (Some(i), _) => {
                    let (bits, free) = operands[i as usize].clone();
                    let from = if d.is_empty_mask(&free) { 0 } else { 1 << i };
                    Free { bits, free, from }
                }
                (None, Op::Constant(bits)) => {
                    Free { bits: d.constant(node.width, bits), free: d.constant(node.width, 0), from: 0 }
                }
                (None, op) => {
                    let args: SmallVec<[Free<D::V>; 3]> =
                        node.args.iter().map(|&arg| values[arg as usize].clone()).collect();
                    let free = free(d, op, node.width, &node.widths, &args);
                    // Bits that are not free are still a function of the operands.
                    let from = args.iter().fold(0, |from, arg| from | arg.from);
                    let bits: SmallVec<[D::V; 3]> = args.into_iter().map(|arg| arg.bits).collect();
                    let bits = primitive(d, op, node.width, &node.widths, &bits);
                    Free { bits, free, from }
                }
            };
            values.push(value);
        }
        self.results.iter().map(|&result| values[result as usize].free.clone()).collect()
    }

    /// The results of a lane in a run, and the bits of them that may depend on the undefined operands.
    fn partly(&self, operands: &[Partly]) -> SmallVec<[Partly; 8]> {
        let mut bits: SmallVec<[u64; 32]> = SmallVec::new();
        let mut taint: SmallVec<[u64; 32]> = SmallVec::new();
        for node in &self.nodes {
            if let Some(i) = node.operand {
                let operand = operands[i as usize];
                bits.push((operand.bits & !operand.open).into());
                taint.push(operand.open.into());
                continue;
            }
            let of: SmallVec<[u64; 4]> = node.args.iter().map(|&arg| bits[arg as usize]).collect();
            let marks: SmallVec<[u64; 4]> = node.args.iter().map(|&arg| taint[arg as usize]).collect();
            taint.push(tainted(node.op, node.width, &node.widths, &of, &marks));
            bits.push(operation(node.op, node.width, &node.widths, &of));
        }
        let word = |&at: &u32| Partly::new(bits[at as usize] as u32, taint[at as usize] as u32);
        self.results.iter().map(word).collect()
    }
}

/// A word of a lane in a run, of which some bits may be undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partly {
    /// The bits; 0 where they are undefined.
    pub bits: u32,
    /// The undefined bits: they may depend on an undefined value.
    pub open: u32,
}

impl Partly {
    /// A word with these undefined bits.
    pub const fn new(bits: u32, open: u32) -> Self {
        Self { bits: bits & !open, open }
    }
}

/// The results of a kernel in a lane, some of whose operands are partly undefined. A choice has its operands in the
/// order of the instruction.
#[cold]
pub fn partly(kernel: Kernel, operands: &[Partly]) -> SmallVec<[Partly; 8]> {
    let template = Template::of(kernel, operands.len());
    let Kernel::Select(select) = kernel else { return template.partly(operands) };
    let [condition, yes, no] = [select.condition, select.yes, select.no].map(|i| operands[usize::from(i)]);
    let chosen = match template.partly(&[condition])[0] {
        Partly { bits: 0, open: 0 } => no,
        Partly { open: 0, .. } => yes,
        // One of the two: the bits in which they agree are defined.
        _ => Partly::new(yes.bits, yes.open | no.open | yes.bits ^ no.bits),
    };
    [chosen].into_iter().collect()
}

/// The result of a modification of a word.
#[cold]
pub fn partly_modified(modify: &'static Modify, word: Partly) -> Partly {
    Template::of_modify(modify).partly(&[word])[0]
}

fn key<T>(kernel: &'static T) -> usize {
    std::ptr::from_ref(kernel) as usize
}

thread_local! {
    static TEMPLATES: RefCell<FxHashMap<usize, Rc<Template>>> = RefCell::default();
}

/// The template of a kernel by its address: made once per thread, and only if an operand is undefined.
fn cached(key: usize, make: impl FnOnce() -> Template) -> Rc<Template> {
    if let Some(template) = TEMPLATES.with_borrow(|known| known.get(&key).cloned()) {
        return template;
    }
    let template = Rc::new(make());
    TEMPLATES.with_borrow_mut(|known| known.insert(key, template.clone()));
    template
}
