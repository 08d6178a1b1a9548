//! Terms: the values that a program computes, as a graph in which equal expressions are one node (hash consing).
//!
//! A [`Term`] is a bit vector of 1 to 64 bits, as a function of [variables](Terms::variable). [`Terms`] is a
//! [`Domain`](crate::arithmetic::domain::Domain), so every definition in `semantics` makes terms as well as constants.
//!
//! Each constructor normalises, so that most values that two programs compute alike are the same node before a solver
//! is used. The rules are in the files of the constructors:
//!
//! - `bits`: complement, and, exclusive or; `conditions`: the same for conditions of paths
//! - `sums`: linear forms; `products`: other multiplications, and division; `shifts`
//! - `parts`: pieces of vectors, extensions, concatenation
//! - `compare`, `choices`, `floats`
//!
//! A rule must hold for all values of all variables and for all meanings of the uninterpreted functions; `evaluate`
//! gives every term a value, and the property tests compare each constructor with it. Constructors are idempotent:
//! rebuilding a normalised node from its own arguments gives the node.

mod bits;
mod build;
mod carries;
mod choices;
mod compare;
mod conditions;
mod evaluate;
mod floats;
mod mixed;
mod parts;
mod products;
mod shifts;
mod show;
mod sums;
mod table;
#[cfg(test)]
mod tests;
mod trials;

pub use evaluate::{SAMPLES, Sample, Samples, Steered, operation, value, values};
pub use trials::Trials;

use crate::arithmetic::concrete::mask;
use crate::arithmetic::domain::{Format, Function, Rounding};
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use table::NodeTable;

/// An expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(u32);
entity_impl!(Term, "t");

/// The interned name of a variable or of an uninterpreted function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(u32);
entity_impl!(Name, "name");

/// The lanes that share the value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// Each lane has its own value.
    Lane,
    /// All lanes of the wave have the same value.
    Wave,
    /// All waves of the draw or dispatch have the same value.
    Draw,
}

/// The time during which a variable keeps its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// The whole run: it is an input of the program, or is computed before the first loop.
    Run,
    /// A cut point, or one moment of a segment.
    Moment,
}

/// The properties of a variable that proofs about several lanes depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VariableKind {
    /// The lanes that share the value.
    pub extent: Extent,
    /// The time during which it keeps its value.
    pub lifetime: Lifetime,
}

impl VariableKind {
    /// An input of a single lane: nothing may be concluded for other lanes.
    pub const LANE: Self = Self { extent: Extent::Lane, lifetime: Lifetime::Run };
    /// An input that is the same in all lanes of the wave.
    pub const WAVE: Self = Self { extent: Extent::Wave, lifetime: Lifetime::Run };
    /// An input that is the same in all waves.
    pub const DRAW: Self = Self { extent: Extent::Draw, lifetime: Lifetime::Run };

    /// Returns the kind with the same extent and the lifetime of one moment.
    #[must_use]
    pub const fn passing(self) -> Self {
        Self { lifetime: Lifetime::Moment, ..self }
    }
}

/// The prefix of the names of variables that are the same in all lanes. No rule depends on it: it distinguishes their
/// names from those of variables of other kinds, for readers too.
const WAVE_PREFIX: &str = "uniform ";

/// A text, and its role at the first use.
struct NameData {
    text: Box<str>,
    role: Option<Role>,
}

/// The role of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    Variable {
        width: u32,
        kind: VariableKind,
    },
    Function {
        /// The width of the result.
        width: u32,
        operands: SmallVec<[u8; 8]>,
    },
}

/// An operation on floats, whose results may be treated as uninterpreted functions of the operands.
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

/// The operation of a node on its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// A constant.
    Constant(u64),
    /// An unknown value.
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
    /// Left shift. A count of at least the width gives 0.
    Shl,
    /// Logical right shift. A count of at least the width gives 0.
    Lshr,
    /// Arithmetic right shift. A count of at least the width gives copies of the sign.
    Ashr,
    /// Equality, one bit.
    Eq,
    /// Unsigned less than, one bit.
    Ult,
    /// Signed less than, one bit.
    Slt,
    /// The second argument if the first, of one bit, is 1; else the third.
    Ite,
    /// Zero extension to the node's width.
    Zext,
    /// Sign extension to the node's width.
    Sext,
    /// The bits starting at this one, as many as the node is wide.
    Extract(u8),
    /// Concatenation; the first argument has the high bits.
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
    /// The argument. No other constructor looks through it.
    Opaque,
}

/// A node of the term graph: an operation on argument terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TermNode {
    /// The operation.
    pub op: Op,
    /// The width of the result in bits, 1 to 64.
    pub width: u8,
    /// The arguments.
    pub args: SmallVec<[Term; 3]>,
}

impl TermNode {
    fn is(&self, op: Op, width: u8, args: &[Term]) -> bool {
        self.op == op && self.width == width && *self.args == *args
    }
}

/// A list of arguments under construction.
type Args = SmallVec<[Term; 8]>;

/// Associative operations flatten up to this many arguments, which bounds the time of every constructor.
const MANY: usize = 64;

/// A slice is moved from the result of an operation to its arguments only if at most this many such operations are
/// nested below.
const DEEP: u8 = 64;

/// The graph. It only grows: an argument has a lower number than the nodes that use it.
#[derive(Default)]
pub struct Terms {
    nodes: PrimaryMap<Term, TermNode>,
    /// The nesting depth of operations that slices are moved through, up to `u8::MAX`.
    depths: SecondaryMap<Term, u8>,
    /// Slices that were made: the term, the lowest bit and the number of bits.
    slices: FxHashMap<(Term, u8, u8), Term>,
    /// The same slices by term: the lowest bit and the slice.
    parts: FxHashMap<Term, SmallVec<[(u8, Term); 2]>>,
    numbers: NodeTable,
    names: PrimaryMap<Name, NameData>,
    by_name: FxHashMap<Box<str>, Name>,
}

impl Terms {
    /// Creates an empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns true if there are float operations or float comparisons.
    pub fn has_floats(&self) -> bool {
        self.nodes.values().any(|node| matches!(node.op, Op::Float(_)))
    }

    /// Returns true if there is float arithmetic; comparisons are not arithmetic.
    pub fn has_float_arithmetic(&self) -> bool {
        let compares = |op| matches!(op, FloatOp::Eq(_) | FloatOp::Lt(_) | FloatOp::Le(_));
        self.nodes.values().any(|node| matches!(node.op, Op::Float(op) if !compares(op)))
    }

    /// The node of a term.
    pub fn node(&self, term: Term) -> &TermNode {
        &self.nodes[term]
    }

    /// The width of a term in bits.
    pub fn width(&self, term: Term) -> u32 {
        self.nodes[term].width.into()
    }

    /// The value of a term, if it is a constant.
    pub fn as_constant(&self, term: Term) -> Option<u64> {
        match self.nodes[term].op {
            Op::Constant(bits) => Some(bits),
            _ => None,
        }
    }

    /// Interns a name.
    pub fn name(&mut self, text: &str) -> Name {
        if let Some(&name) = self.by_name.get(text) {
            return name;
        }
        let name = self.names.push(NameData { text: text.into(), role: None });
        self.by_name.insert(text.into(), name);
        name
    }

    /// The text of a name.
    pub fn text(&self, name: Name) -> &str {
        &self.names[name].text
    }

    /// The text of the name of a variable, or of a function.
    pub fn label(&self, name: Name) -> &str {
        match &self.names[name] {
            NameData { text, role: Some(Role::Variable { kind, .. }) } if kind.extent != Extent::Lane => {
                text.strip_prefix(WAVE_PREFIX).unwrap_or(text)
            }
            NameData { text, .. } => text,
        }
    }

    /// The variable of a name; a new one is an input of each lane.
    ///
    /// # Panics
    /// If the name has another width already, or is that of a function.
    pub fn variable(&mut self, width: u32, name: Name) -> Term {
        let kind = self.kind(name).unwrap_or(VariableKind::LANE);
        self.declare(name, Role::Variable { width, kind });
        self.intern(Op::Variable(name), width, &[])
    }

    /// The variable of a text and a kind.
    ///
    /// # Panics
    /// If there is one of that text with another kind or width: two values would be taken for one.
    pub fn variable_of(&mut self, kind: VariableKind, width: u32, text: &str) -> Term {
        let name = match kind.extent {
            Extent::Lane => self.name(text),
            Extent::Wave | Extent::Draw => self.name(&format!("{WAVE_PREFIX}{text}")),
        };
        self.declare(name, Role::Variable { width, kind });
        self.intern(Op::Variable(name), width, &[])
    }

    /// The kind of the variable with this name, if there is one.
    pub fn kind(&self, name: Name) -> Option<VariableKind> {
        match self.names[name].role {
            Some(Role::Variable { kind, .. }) => Some(kind),
            _ => None,
        }
    }

    /// An application of an uninterpreted function.
    ///
    /// # Panics
    /// If the name has other widths already, or is that of a variable.
    pub fn apply(&mut self, width: u32, function: Name, args: &[Term]) -> Term {
        let operands = args.iter().map(|&arg| self.nodes[arg].width).collect();
        self.declare(function, Role::Function { width, operands });
        self.intern(Op::Apply(function), width, args)
    }

    /// Checks that a name is used with its first role. If one name denoted two values, a prover would prove them equal.
    fn declare(&mut self, name: Name, role: Role) {
        let NameData { text, role: known } = &mut self.names[name];
        match known {
            Some(known) => assert_eq!(*known, role, "the name `{text}` denotes two terms"),
            None => *known = Some(role),
        }
    }

    /// The slices of a term that have normal forms of their own, which do not show the term; each with its lowest bit.
    pub fn parts_taken(&self, whole: Term) -> &[(u8, Term)] {
        self.parts.get(&whole).map_or(&[], |list| list)
    }

    /// A term of at most this depth: below it, subterms are made [opaque](Op::Opaque). Slices of it, and sums with it,
    /// are then small, however long the computation was.
    pub fn shallow(&mut self, term: Term, limit: u8) -> Term {
        if self.depths[term] <= limit || self.width(term) == 1 {
            return term;
        }
        match self.op(term) {
            Op::Sext => {
                let of = self.shallow(self.arg(term, 0), limit);
                let width = self.width(term);
                self.extend_signed(of, width)
            }
            _ if self.has_pieces(term) => {
                let mut pieces = self.pieces(term);
                pieces.iter_mut().for_each(|piece| *piece = self.shallow(*piece, limit));
                pieces.reverse();
                self.join(&pieces)
            }
            _ => self.intern(Op::Opaque, self.width(term), &[term]),
        }
    }

    /// Interns a node without normalising it.
    fn intern(&mut self, op: Op, width: u32, args: &[Term]) -> Term {
        let width = width as u8;
        let hash = table::hash_of(op, width, args);
        if let Some(known) = self.numbers.find(hash, |term| self.nodes[term].is(op, width, args)) {
            return known;
        }
        let depth = match op {
            Op::Not | Op::And | Op::Xor | Op::Add | Op::Mul | Op::Ite | Op::Concat | Op::Zext | Op::Sext => {
                let below = args.iter().map(|&arg| self.depths[arg]).max().unwrap_or(0);
                below.saturating_add(1)
            }
            _ => 0,
        };
        let term = self.nodes.push(TermNode { op, width, args: SmallVec::from_slice(args) });
        self.depths[term] = depth;
        self.numbers.insert(hash, term);
        term
    }

    /// The node, if it exists.
    fn find(&self, op: Op, width: u32, args: &[Term]) -> Option<Term> {
        let width = width as u8;
        self.numbers.find(table::hash_of(op, width, args), |term| self.nodes[term].is(op, width, args))
    }

    /// The operation of a term.
    fn op(&self, term: Term) -> Op {
        self.nodes[term].op
    }

    /// An argument of a term.
    fn arg(&self, term: Term, index: usize) -> Term {
        self.nodes[term].args[index]
    }

    /// The arguments of a term.
    fn args(&self, term: Term) -> Args {
        SmallVec::from_slice(&self.nodes[term].args)
    }

    /// A constant.
    fn number(&mut self, width: u32, bits: u64) -> Term {
        self.intern(Op::Constant(bits & mask(width)), width, &[])
    }

    /// The node of an operation on other arguments, normalised. The arguments have the widths that the operation
    /// requires.
    pub fn rebuild(&mut self, op: Op, width: u32, args: &[Term]) -> Term {
        build::rebuild(self, op, width, args)
    }
}
