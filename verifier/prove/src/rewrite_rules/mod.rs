//! Proofs of rewrite rules, for all operands, independent of any program.
//!
//! Each rule of each table of the compiler is a [`Claim`]: two expressions that are equal for all operands. Both are
//! translated to terms by the semantics of the interpreter, and a solver is queried, unless their normal forms are
//! identical. A counterexample counts only if the two sides differ when they are run on it. [`check_enabled`] refuses a
//! compiler with a rule that is not proved.

mod expression;
pub mod properties;
pub mod proposal;
pub mod tables;

pub use expression::Expression;

use crate::solver::{Answer, Budget, Model, Query, Solver, Z3};
use ir3_compiler::nir_passes::Table;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::operations::Words;
use ir3_semantics::terms::{Name, Terms};
use std::fmt;

/// The claim that two expressions are equal for all operands.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The name of the table.
    pub table: &'static str,
    /// The name of the rule in it.
    pub rule: String,
    /// Width of the operation.
    pub width: u8,
    /// Width of each operand.
    pub operands: Vec<u8>,
    /// The pattern.
    pub left: Expression,
    /// The replacement.
    pub right: Expression,
}

/// The verdict about a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// It holds.
    Proved(ProofMethod),
    /// It does not hold: the operands, and the values of the two sides.
    Refuted {
        /// The operands.
        operands: Vec<u64>,
        /// The left side.
        left: u64,
        /// The right side.
        right: u64,
    },
    /// It has no meaning: the two sides are not of one width.
    IllTyped(String),
    /// Not decided: it holds for numbers, and for floats up to rounding.
    Inexact,
    /// Not decided.
    Unknown(String),
}

/// A claim by its name, or the verdict where there is nothing to prove.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The name of the table.
    pub table: &'static str,
    /// The claimed rule.
    pub rule: String,
    /// The claim.
    pub claim: Result<Claim, ClaimVerdict>,
}

impl Statement {
    /// A statement with the name of a claim.
    pub fn of(claim: Claim) -> Self {
        Self { table: claim.table, rule: claim.rule.clone(), claim: Ok(claim) }
    }

    /// A claim, or the reason why there is no such operation.
    fn or_unknown(table: &'static str, rule: &str, claim: Result<Claim, String>) -> Self {
        Self { table, rule: rule.to_owned(), claim: claim.map_err(ClaimVerdict::Unknown) }
    }

    /// The verdict about it.
    pub fn verdict(&self, solver: &mut dyn Solver, budget: &Budget) -> ClaimVerdict {
        match &self.claim {
            Ok(claim) => claim.verdict(solver, budget),
            Err(verdict) => verdict.clone(),
        }
    }
}

/// The method by which a claim was proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofMethod {
    /// Both sides have the same normal form.
    NormalForm,
    /// Z3 proved it.
    Solver,
}

impl fmt::Display for ProofMethod {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::NormalForm => "normal form",
            Self::Solver => "Z3",
        })
    }
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Proved(how) => write!(f, "proved by {how}"),
            Self::Refuted { operands, left, right } => {
                f.write_str("refuted:")?;
                for operand in operands {
                    write!(f, " {operand:#x}")?;
                }
                write!(f, " give {left:#x} and {right:#x}")
            }
            Self::IllTyped(reason) => write!(f, "refuted: {reason}"),
            Self::Inexact => f.write_str("inexact"),
            Self::Unknown(reason) => write!(f, "unknown: {reason}"),
        }
    }
}

impl Claim {
    /// Proves or refutes the claim.
    pub fn verdict(&self, solver: &mut dyn Solver, budget: &Budget) -> ClaimVerdict {
        let mut d = Terms::new();
        let (names, operands) = self.variables(&mut d);
        let (left, right) = (self.left.meaning(&mut d, &operands), self.right.meaning(&mut d, &operands));
        if left.len() != right.len() {
            return ClaimVerdict::Unknown("the two sides are not of one width".into());
        }
        let mut goal = d.constant(1, 1);
        for (&left, &right) in left.iter().zip(&right) {
            let same = d.eq(32, left, right);
            goal = d.and(1, goal, same);
        }
        let query = Query { assumptions: Vec::new(), goal };
        let plain = query.plain_answer(&d) == Some(Answer::Valid);
        match solver.solve(&d, &query, budget) {
            Answer::Valid if plain => ClaimVerdict::Proved(ProofMethod::NormalForm),
            Answer::Valid => ClaimVerdict::Proved(ProofMethod::Solver),
            Answer::Invalid(model) => self.confirmed(&names, &model),
            Answer::Unknown(reason) => ClaimVerdict::Unknown(reason.to_string()),
        }
    }

    /// Variables for the operands, and the operands' words as terms of them.
    fn variables(&self, d: &mut Terms) -> (Vec<Name>, Vec<Words>) {
        let mut names = Vec::new();
        let mut all = Vec::new();
        for (number, &width) in self.operands.iter().enumerate() {
            let width = u32::from(width);
            let name = d.name(&format!("operand {number}"));
            let variable = d.variable(width, name);
            names.push(name);
            all.push(if width <= 32 {
                Words::from_elem(d.zext(width, 32, variable), 1)
            } else {
                [0, 32].map(|low| d.extract(width, variable, low, 32)).into_iter().collect()
            });
        }
        (names, all)
    }

    /// The value of an expression of the rule, for values of the rule's operands.
    pub fn value(&self, expression: &Expression, operands: &[u64]) -> u64 {
        let words = |(&value, &width): (&u64, &u8)| match width {
            64 => vec![value as u32, (value >> 32) as u32],
            _ => vec![value as u32],
        };
        let rows: Vec<Vec<u32>> = operands.iter().zip(&self.operands).map(words).collect();
        expression.run(&rows).iter().rev().fold(0, |value, &word| value << 32 | u64::from(word))
    }

    /// A refutation, if the two sides differ when they are run.
    fn confirmed(&self, names: &[Name], model: &Model) -> ClaimVerdict {
        let operands: Vec<u64> = names.iter().map(|&name| model.value(name)).collect();
        let [left, right] = [&self.left, &self.right].map(|side| self.value(side, &operands));
        if left == right {
            ClaimVerdict::Unknown("the two sides agree on the solver's counterexample".into())
        } else {
            ClaimVerdict::Refuted { operands, left, right }
        }
    }
}

/// A rule that is not proved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rule {rule} of the table {table} may not be applied: {verdict}")]
pub struct NotProved {
    /// The name of the table.
    pub table: &'static str,
    /// The name of the rule.
    pub rule: String,
    /// The verdict about it.
    pub verdict: ClaimVerdict,
}

/// Refuses a compiler with a nir rewrite that is not proved; takes no longer than a small query for each rule.
///
/// # Errors
/// The first rule that is not proved.
pub fn check_enabled() -> Result<(), NotProved> {
    for table in Table::ALL {
        for rule in table.rules() {
            let verdict = match tables::of_rule(table.name(), rule) {
                Ok(claim) => claim.verdict(&mut Z3::default(), &Budget::default()),
                Err(reason) => ClaimVerdict::Unknown(reason),
            };
            if !matches!(verdict, ClaimVerdict::Proved(_)) {
                return Err(NotProved { table: table.name(), rule: rule.name.into(), verdict });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
