//! The properties that nir declares of its operations, as claims.
//!
//! An operation that commutes has the same result when its first two operands are exchanged; one that associates when
//! the first or the last two of three operands are combined first. A third operand of the operation keeps its position:
//! `op(op(a, b, k), c, k') = op(a, op(b, c, k'), k)`.

use super::{Claim, ClaimVerdict, Expression, Statement};
use ir3_compiler::nir::{BaseType, FloatControls, Op, Property};
use ir3_semantics::operations::nir_alu;

/// The table in which properties of integers are listed.
pub const TABLE: &str = "properties";
/// The table of those of floats.
pub const FLOATS: &str = "properties-of-floats";

/// The properties that the table of nir declares: a claim for each operation, property and width.
pub fn all() -> Vec<Statement> {
    Op::ALL.into_iter().flat_map(|op| of(TABLE, op, op.info().properties)).collect()
}

/// The claims about one operation, to be listed in a table; those about floats are in a table of their own.
pub(super) fn of(table: &'static str, op: Op, properties: &[Property]) -> Vec<Statement> {
    let info = op.info();
    let mut all = Vec::new();
    for &property in properties {
        for width in widths(op) {
            let floats = info.inputs.iter().any(|input| input.ty.base == BaseType::Float);
            let table = if floats { FLOATS } else { table };
            let name = match property {
                Property::Commutes => format!("{op} commutes"),
                Property::Associates => format!("{op} associates"),
            };
            let claim = match property {
                Property::Associates if rounds(op) => Err(ClaimVerdict::Inexact),
                _ => sides(op, property, width).ok_or_else(|| ClaimVerdict::Unknown("no such operation".into())),
            };
            let claim = claim.map(|(left, right)| Claim {
                table,
                rule: name.clone(),
                width,
                operands: vec![width; operands_of([&left, &right])],
                left,
                right,
            });
            all.push(Statement { table, rule: name, claim });
        }
    }
    all
}

/// The number of operands up to the last one that is read: at most two vectors of 16.
fn operands_of(sides: [&Expression; 2]) -> usize {
    (0..32).rev().find(|&number| sides.iter().any(|side| side.reads(number))).map_or(0, |last| last + 1)
}

/// Returns true if the result of an operation on floats is rounded.
fn rounds(op: Op) -> bool {
    matches!(op, Op::Fadd | Op::Fmul | Op::Fmulz)
}

/// The widths of an operation whose first operand has no fixed one.
fn widths(op: Op) -> Vec<u8> {
    let input = op.info().inputs[0].ty;
    match (input.size, input.base) {
        (0, BaseType::Float) => vec![16, 32, 64],
        (0, BaseType::Bool) => vec![1],
        (0, _) => vec![1, 8, 16, 32, 64],
        (fixed, _) => vec![fixed],
    }
}

/// Both sides of a claim, if the operation exists at this width.
fn sides(op: Op, property: Property, width: u8) -> Option<(Expression, Expression)> {
    let count = op.info().inputs.len();
    Some(match property {
        Property::Commutes => {
            // A vector is an operand for each of its components.
            let size = usize::from(op.info().inputs[0].components.max(1));
            let [first, second] = [0, size].map(|start| (start..start + size).map(Expression::Operand));
            let rest = || (2 * size..2 * size + count - 2).map(Expression::Operand);
            let left = first.clone().chain(second.clone()).chain(rest());
            let right = second.chain(first).chain(rest());
            (call(op, width, left.collect())?, call(op, width, right.collect())?)
        }
        Property::Associates => {
            let [a, b, c] = [0, 1, 2].map(Expression::Operand);
            let with = |first, second, third: usize| -> Option<Expression> {
                let rest = (2..count).map(|_| Expression::Operand(third));
                call(op, width, [first, second].into_iter().chain(rest).collect())
            };
            let left = with(with(a.clone(), b.clone(), 3)?, c.clone(), 4)?;
            let right = with(a, with(b, c, 4)?, 3)?;
            (left, right)
        }
    })
}

/// The operation, where its operands without a width have `width`.
fn call(op: Op, width: u8, args: Vec<Expression>) -> Option<Expression> {
    let info = op.info();
    let bits = |declared: u8| if declared == 0 { width } else { declared };
    let sources: Vec<u8> = info.inputs.iter().map(|input| bits(input.ty.size)).collect();
    let result = bits(info.output.ty.size);
    Some(Expression::Call {
        name: op.name().to_owned(),
        kernel: nir_alu::kernel(op, result, &sources, FloatControls::OPEN)?,
        clamp: None,
        words: usize::from(result).div_ceil(32),
        args,
    })
}
