//! The operations `iadd64_split` as their proposal has them: rules, properties and widths, proved or refuted.

use super::{ClaimVerdict, Statement, properties, tables};
use ir3_compiler::nir::Op;
use ir3_compiler::nir_passes::split_additions::PROPOSED;
use ir3_compiler::nir_passes::{Rule, Term};

/// The table in which they are listed.
pub const TABLE: &str = "iadd64-split-proposed";

/// Everything that the proposal claims.
pub fn all() -> Vec<Statement> {
    let rules = PROPOSED.rules.iter().map(rule);
    let properties = PROPOSED.properties.iter().flat_map(|&(op, properties)| properties::of(TABLE, op, properties));
    rules.chain(properties).chain(PROPOSED.rules.iter().filter_map(width)).collect()
}

fn rule(rule: &Rule) -> Statement {
    tables::statement(TABLE, rule)
}

/// A rule whose sides are declared to have different widths.
fn width(rule: &Rule) -> Option<Statement> {
    let declared =
        |op: Op| PROPOSED.widths.iter().find(|(other, _)| *other == op).map_or(rule.bits, |&(_, width)| width);
    let of = |term| match term {
        Term::Op(op, _) => Some(declared(op)),
        // A variable has the width of the operand in the pattern; a number has any.
        Term::Variable(_) => Some(rule.bits),
        Term::Constant(_) => None,
    };
    let (from, to) = (of(rule.from)?, of(rule.to)?);
    (from != to).then(|| Statement {
        table: TABLE,
        rule: format!("width of {}", rule.name),
        claim: Err(ClaimVerdict::IllTyped(format!("the pattern has {from} bits, and its replacement {to}"))),
    })
}
