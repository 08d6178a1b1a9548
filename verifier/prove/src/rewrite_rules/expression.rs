//! The two sides of a rule: operations of the semantics on operands.

use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::arithmetic::rows::{LANES, Row, splat};
use ir3_semantics::operations::Words;
use ir3_semantics::operations::{Kernel, Modify, Select};
use ir3_semantics::terms::{Term, Terms};
use std::collections::BTreeSet;
use std::fmt;

/// A value of one component: a word, or two for 64 bits.
#[derive(Clone, Debug)]
pub enum Expression {
    /// An operand of the rule.
    Operand(usize),
    /// A number.
    Constant {
        /// The number.
        value: u64,
        /// Its words.
        words: usize,
    },
    /// The result of an operation.
    Call {
        /// The name of the operation, with its modifiers.
        name: String,
        /// The operation.
        kernel: Kernel,
        /// The modifier that is applied to the result.
        clamp: Option<&'static Modify>,
        /// Number of words of the result.
        words: usize,
        /// The operands.
        args: Vec<Expression>,
    },
}

/// The expression as a term: `inot(iand(a, b))`.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operand(number) => match ('a'..='z').nth(*number) {
                Some(letter) => write!(f, "{letter}"),
                None => write!(f, "operand {number}"),
            },
            Self::Constant { value, .. } => write!(f, "{value:#x}"),
            Self::Call { name, args, .. } => {
                write!(f, "{name}(")?;
                for (number, arg) in args.iter().enumerate() {
                    write!(f, "{}{arg}", if number > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

impl Expression {
    /// The subterms, each once, operands of a call before the call; the expression itself is the last.
    pub fn subterms(&self) -> Vec<&Self> {
        let mut terms: Vec<&Self> = match self {
            Self::Operand(_) | Self::Constant { .. } => Vec::new(),
            Self::Call { args, .. } => args.iter().flat_map(Self::subterms).collect(),
        };
        terms.push(self);
        let mut texts = BTreeSet::new();
        terms.retain(|term| texts.insert(term.to_string()));
        terms
    }

    /// Returns true if an operand of the rule occurs.
    pub fn reads(&self, number: usize) -> bool {
        self.subterms().iter().any(|term| matches!(term, Self::Operand(other) if *other == number))
    }

    /// The value as terms, given the words of the rule's operands.
    pub fn meaning(&self, d: &mut Terms, operands: &[Words]) -> Words {
        let (kernel, clamp, args) = match self {
            Self::Operand(number) => return operands[*number].clone(),
            Self::Constant { value, words } => {
                return halves(*value, *words).map(|word| d.constant(32, word.into())).collect();
            }
            Self::Call { kernel, clamp, args, .. } => (kernel, clamp, args),
        };
        let args: Vec<Words> = args.iter().map(|arg| arg.meaning(d, operands)).collect();
        let mut out = match kernel {
            Kernel::One(one) => Words::from_elem((one.meaning)(d, args[0][0]), 1),
            Kernel::Two(two) => Words::from_elem((two.meaning)(d, args[0][0], args[1][0]), 1),
            Kernel::Three(three) => Words::from_elem((three.meaning)(d, args[0][0], args[1][0], args[2][0]), 1),
            Kernel::Select(select) => {
                let [condition, yes, no] =
                    [select.condition, select.yes, select.no].map(|index| &args[usize::from(index)]);
                let holds = select.holds(d, condition);
                let pairs = yes.iter().zip(no);
                pairs.map(|(&yes, &no)| d.ite(32, holds, yes, no)).collect()
            }
            Kernel::Rows(rows) => {
                let words: Vec<Term> = args.iter().flatten().copied().collect();
                (rows.meaning)(d, &words)
            }
        };
        if let Some(clamp) = clamp {
            for word in &mut out {
                *word = (clamp.meaning)(d, *word);
            }
        }
        out
    }

    /// The value for constants, by the kernels of the interpreter.
    pub fn run(&self, operands: &[Vec<u32>]) -> Vec<u32> {
        let (kernel, clamp, words, args) = match self {
            Self::Operand(number) => return operands[*number].clone(),
            Self::Constant { value, words } => return halves(*value, *words).collect(),
            Self::Call { kernel, clamp, words, args, .. } => (kernel, clamp, *words, args),
        };
        let args: Vec<Vec<Row>> = args.iter().map(|arg| arg.run(operands).into_iter().map(splat).collect()).collect();
        let mut out = vec![[0; LANES]; words];
        match kernel {
            Kernel::One(one) => (one.run)(&mut out[0], &args[0][0]),
            Kernel::Two(two) => (two.run)(&mut out[0], &args[0][0], &args[1][0]),
            Kernel::Three(three) => (three.run)(&mut out[0], &args[0][0], &args[1][0], &args[2][0]),
            Kernel::Select(select) => {
                let [condition, yes, no] =
                    [select.condition, select.yes, select.no].map(|index| &args[usize::from(index)]);
                let mask = select.mask(condition);
                for (word, out) in out.iter_mut().enumerate() {
                    Select::blend(out, mask, &yes[word], &no[word]);
                }
            }
            Kernel::Rows(rows) => {
                let sources: Vec<&Row> = args.iter().flatten().collect();
                (rows.run)(&mut out, &sources);
            }
        }
        if let Some(clamp) = clamp {
            for row in &mut out {
                (clamp.run)(row);
            }
        }
        out.into_iter().map(|row| row[0]).collect()
    }
}

/// The words of a number, the low one first.
fn halves(value: u64, words: usize) -> impl Iterator<Item = u32> {
    (0..words).map(move |word| (value >> (32 * word)) as u32)
}
