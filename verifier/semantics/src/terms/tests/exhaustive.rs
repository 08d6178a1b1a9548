//! All expressions of two operations on few bits, for all values of their variables.

use crate::arithmetic::concrete::{Concrete, mask};
use crate::arithmetic::domain::Domain;
use crate::terms::{Op, Term, Terms, evaluate};
use cranelift_entity::EntityRef;

/// The variables' widths: 128 choices of values in all.
const VARIABLES: [u32; 4] = [1, 1, 2, 3];
const CHOICES: usize = 128;
type NodeValues = [u8; CHOICES];

struct All {
    terms: Terms,
    /// The values of all terms, in order.
    values: Vec<NodeValues>,
}

impl All {
    /// Evaluates a term by its nodes.
    fn values_of(&mut self, term: Term) -> NodeValues {
        while self.values.len() < self.terms.len() {
            let node = self.terms.node(Term::new(self.values.len()));
            let widths: Vec<u32> = node.args.iter().map(|&arg| self.terms.width(arg)).collect();
            let values = match node.op {
                Op::Variable(name) => {
                    let index: usize = self.terms.text(name).parse().unwrap();
                    let below: u32 = VARIABLES[..index].iter().sum();
                    std::array::from_fn(|i| (i as u64 >> below & mask(VARIABLES[index])) as u8)
                }
                op => self.computed(op, node.width.into(), &widths, &node.args),
            };
            self.values.push(values);
        }
        self.values[term.index()]
    }

    fn computed(&self, op: Op, width: u32, widths: &[u32], args: &[Term]) -> NodeValues {
        std::array::from_fn(|i| {
            let mut numbers = [0; 64];
            for (number, arg) in numbers.iter_mut().zip(args) {
                *number = self.values[arg.index()][i].into();
            }
            evaluate::operation(op, width, widths, &numbers[..args.len()]) as u8
        })
    }

    /// Makes the operation, and compares its values.
    fn make(&mut self, op: Op, width: u32, args: &[Term]) -> Term {
        let widths: Vec<u32> = args.iter().map(|&arg| self.terms.width(arg)).collect();
        let expected = self.computed(op, width, &widths, args);
        let term = self.terms.rebuild(op, width, args);
        let found = self.values_of(term);
        let shown = |all: &Self| args.iter().map(|&arg| all.terms.show(arg)).collect::<Vec<_>>().join(", ");
        assert!(found == expected, "{op:?} {}\nis not\n{}", shown(self), self.terms.show(term));
        assert_eq!(self.terms.width(term), width);
        let node = self.terms.node(term).clone();
        let again = self.terms.rebuild(node.op, width, &node.args);
        assert!(again == term, "{}\nbecomes\n{}", self.terms.show(term), self.terms.show(again));
        term
    }
}

const BINARY: [Op; 9] = [Op::And, Op::Xor, Op::Add, Op::Mul, Op::Shl, Op::Lshr, Op::Ashr, Op::Udiv, Op::Urem];
const COMPARISONS: [Op; 3] = [Op::Eq, Op::Ult, Op::Slt];

#[test]
fn two_operations_on_few_bits() {
    let mut all = All { terms: Terms::new(), values: Vec::new() };
    let mut sets: [Vec<Term>; 5] = Default::default();
    for (i, &width) in VARIABLES.iter().enumerate() {
        let name = all.terms.name(&i.to_string());
        sets[width as usize].push(all.terms.variable(width, name));
    }
    let conditions = sets[1].clone();
    for width in 1..=4 {
        for bits in 0..=mask(width) {
            sets[width as usize].push(all.terms.constant(width, bits));
        }
    }
    for set in &sets {
        for &term in set {
            all.values_of(term);
        }
    }
    // One operation.
    let plain = sets.clone();
    for width in 1..=4 {
        let mut made = Vec::new();
        for &a in &plain[width as usize] {
            made.push(all.make(Op::Not, width, &[a]));
            for &b in &plain[width as usize] {
                made.extend(BINARY.map(|op| all.make(op, width, &[a, b])));
                made.extend(conditions.iter().map(|&c| all.make(Op::Ite, width, &[c, a, b])));
                sets[1].extend(COMPARISONS.map(|op| all.make(op, 1, &[a, b])));
            }
        }
        for narrow in 1..width {
            for &a in &plain[narrow as usize] {
                made.extend([Op::Zext, Op::Sext].map(|op| all.make(op, width, &[a])));
                for &b in &plain[(width - narrow) as usize] {
                    made.push(all.make(Op::Concat, width, &[a, b]));
                }
            }
        }
        for wide in width + 1..=4 {
            for &a in &plain[wide as usize] {
                made.extend((0..=wide - width).map(|low| all.make(Op::Extract(low as u8), width, &[a])));
            }
        }
        sets[width as usize].extend(made);
    }
    for set in &mut sets {
        set.sort_unstable();
        set.dedup();
    }
    // Two.
    for width in 1..=4 {
        for &a in &sets[width as usize] {
            all.make(Op::Not, width, &[a]);
            for wide in width + 1..=4 {
                all.make(Op::Zext, wide, &[a]);
                all.make(Op::Sext, wide, &[a]);
            }
            for n in 1..width {
                for low in 0..=width - n {
                    all.make(Op::Extract(low as u8), n, &[a]);
                }
            }
        }
        // All pairs of narrow operands, a share of the others.
        let set = sets[width as usize].clone();
        let step = set.len().div_ceil(97) | 1;
        for (i, &a) in set.iter().enumerate() {
            for &b in set.iter().skip(i % step).step_by(step) {
                for op in BINARY {
                    all.make(op, width, &[a, b]);
                }
                for op in COMPARISONS {
                    all.make(op, 1, &[a, b]);
                }
                all.make(Op::Ite, width, &[conditions[0], a, b]);
            }
            for other in 1..=4 - width {
                let low = &sets[other as usize];
                let step = low.len().div_ceil(97) | 1;
                for &b in low.clone().iter().skip(i % step).step_by(step) {
                    all.make(Op::Concat, width + other, &[a, b]);
                }
            }
        }
    }
}

#[test]
fn high_halves_of_multiples() {
    let mut terms = Terms::new();
    for w in [5, 32, 33, 48, 63, 64] {
        let name = terms.name(&format!("x{w}"));
        let x = terms.variable(w, name);
        let numbers = (0..w).flat_map(|shift| [1u64 << shift, (1 << shift) + 1, mask(w) << shift & mask(w)]);
        for number in numbers {
            let k = terms.constant(w, number);
            let (unsigned, signed) = (terms.umul_high(w, k, x), terms.smul_high(w, x, k));
            for value in [0, 1, 2, 3, mask(w), mask(w) - 1, 1 << (w - 1), 0x1234_5678_9abc_def1 & mask(w)] {
                let found = |term| crate::terms::value(&terms, term, &|_| value);
                assert_eq!(found(unsigned), Concrete.umul_high(w, number, value));
                assert_eq!(found(signed), Concrete.smul_high(w, number, value));
            }
        }
    }
}
