//! Terms: what a program computes, as a graph in which equal expressions are one node.
//!
//! A [`Term`] is a bit vector of 1 to 64 bits, as a function of [variables](Terms::variable). [`Terms`] is a
//! [`Domain`](crate::semantics::domain::Domain), so every definition in `semantics` makes terms as well as numbers.
//!
//! Each constructor normalises, so that most of what two programs compute alike is the same node before anyone is asked: see
//! `build`. A rule there must hold for all values of all variables and for any meaning of the uninterpreted
//! functions; `evaluate` gives every term a value, and the property tests hold each constructor against it.

mod build;
mod evaluate;

pub use evaluate::{SAMPLES, Sample, Samples};

use crate::semantics::domain::{Format, Function, Rounding};
use cranelift_entity::{PrimaryMap, entity_impl};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// An expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(u32);
entity_impl!(Term, "t");

/// A name of a variable or of an uninterpreted function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(u32);
entity_impl!(Name, "name");

/// An operation on floats, whose results may be taken as uninterpreted functions of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are those of `Domain`")]
pub enum FloatOp {
    Add(Format),
    Mul(Format),
    Fma(Format),
    Div(Format),
    Round(Format, Rounding),
    /// One bit.
    Eq(Format),
    /// One bit.
    Lt(Format),
    /// One bit.
    Le(Format),
    Convert(Format, Format, Rounding),
    ToInt {
        from: Format,
        width: u8,
        signed: bool,
        rounding: Rounding,
    },
    FromInt {
        width: u8,
        signed: bool,
        to: Format,
        rounding: Rounding,
    },
    Function(Format, Function),
    Pow(Format),
}

/// What a node does with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// A number.
    Constant(u64),
    /// A value that is not known.
    Variable(Name),
    /// Complement.
    Not,
    /// Conjunction of two or more.
    And,
    /// Exclusive or of two or more.
    Xor,
    /// Sum of two or more, modulo 2^width.
    Add,
    /// Low half of the product of two or more.
    Mul,
    /// Unsigned quotient; all ones for a divisor of 0.
    Udiv,
    /// Unsigned remainder; the dividend for a divisor of 0.
    Urem,
    /// Left shift. Counts from the width on give 0.
    Shl,
    /// Logical right shift. Counts from the width on give 0.
    Lshr,
    /// Arithmetic right shift. Counts from the width on give copies of the sign.
    Ashr,
    /// Equality, one bit.
    Eq,
    /// Unsigned less than, one bit.
    Ult,
    /// Signed less than, one bit.
    Slt,
    /// The second argument where the first, of one bit, is 1; else the third.
    Ite,
    /// Zero extension to the node's width.
    Zext,
    /// Sign extension to the node's width.
    Sext,
    /// The bits from this one on, as many as the node is wide.
    Extract(u8),
    /// The first argument above the second.
    Concat,
    /// High half of the unsigned product.
    UmulHigh,
    /// High half of the signed product.
    SmulHigh,
    /// Number of ones.
    Popcount,
    /// Number of zeros above the highest one.
    Clz,
    /// The bits in reverse order.
    Reverse,
    /// An operation on floats.
    Float(FloatOp),
    /// An uninterpreted function of any number of arguments.
    Apply(Name),
}

/// A node of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// What it does.
    pub op: Op,
    /// Bits of the result, 1 to 64.
    pub width: u8,
    /// The arguments.
    pub args: SmallVec<[Term; 3]>,
}

/// The graph. Terms only grow: an argument's number is less than that of the node that has it.
#[derive(Default)]
pub struct Terms {
    nodes: PrimaryMap<Term, Node>,
    numbers: FxHashMap<Node, Term>,
    names: PrimaryMap<Name, Box<str>>,
    by_name: FxHashMap<Box<str>, Name>,
}

impl Terms {
    /// No terms.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node.
    pub fn node(&self, term: Term) -> &Node {
        &self.nodes[term]
    }

    /// Bits of a term.
    pub fn width(&self, term: Term) -> u32 {
        self.nodes[term].width.into()
    }

    /// The number that a term is, if it is one.
    pub fn as_constant(&self, term: Term) -> Option<u64> {
        match self.nodes[term].op {
            Op::Constant(bits) => Some(bits),
            _ => None,
        }
    }

    /// A name, always the same for the same text.
    pub fn name(&mut self, text: &str) -> Name {
        if let Some(&name) = self.by_name.get(text) {
            return name;
        }
        let name = self.names.push(text.into());
        self.by_name.insert(text.into(), name);
        name
    }

    /// The text of a name.
    pub fn text(&self, name: Name) -> &str {
        &self.names[name]
    }

    /// The variable of a name. One name has one width.
    pub fn variable(&mut self, width: u32, name: Name) -> Term {
        self.intern(Op::Variable(name), width, &[])
    }

    /// An uninterpreted function, by its name, of arguments.
    pub fn apply(&mut self, width: u32, function: Name, args: &[Term]) -> Term {
        self.intern(Op::Apply(function), width, args)
    }

    /// The node, as it stands: nothing is normalised.
    fn intern(&mut self, op: Op, width: u32, args: &[Term]) -> Term {
        let node = Node { op, width: width as u8, args: SmallVec::from_slice(args) };
        if let Some(&term) = self.numbers.get(&node) {
            return term;
        }
        let term = self.nodes.push(node.clone());
        self.numbers.insert(node, term);
        term
    }

    /// The node of an operation on other arguments, normalised. The arguments are as wide as the operation wants them.
    pub fn rebuild(&mut self, op: Op, width: u32, args: &[Term]) -> Term {
        build::rebuild(self, op, width, args)
    }
}
