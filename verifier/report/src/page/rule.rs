//! The page of a refuted rewrite rule.

use super::document::document;
use ir3_prove::rewrite_rules::{Claim, ClaimVerdict, Expression};
use maud::{Markup, html};

/// The title of the page.
pub(super) fn title(claim: &Claim) -> String {
    format!("rewrite rule {} (table {}) is wrong at {} bits", claim.rule, claim.table, claim.width)
}

/// Returns the page of a rule that is refuted, or not decided. `command` shows the verdict again.
pub fn of_rule(claim: &Claim, verdict: &ClaimVerdict, command: &str) -> String {
    let sides = [("pattern", &claim.left), ("replacement", &claim.right)];
    let body = html! {
        header {
            p.kind { "ir3-equiv " (env!("CARGO_PKG_VERSION")) " · " b { "refuted: the two sides of a rewrite rule differ" } }
            h1 { (title(claim)) }
            dl.facts {
                div { dt { "Table" } dd { (claim.table) } }
                div { dt { "Rule" } dd { (claim.rule) } }
                div { dt { "Width" } dd { (claim.width) @if claim.width == 1 { " bit" } @else { " bits" } } }
            }
            p { code { (claim.left) } " is replaced by " code { (claim.right) } @if let ClaimVerdict::Refuted { .. } = verdict { ", which is another value for these operands:" } }
            @match verdict {
                ClaimVerdict::Refuted { operands, left, right } => {
                    (operand_table(claim, operands))
                    div.pair {
                        @for ((name, side), (class, value)) in sides.iter().zip([("expected", left), ("actual", right)]) {
                            div class=(class) {
                                h3 { @if class == "expected" { "Expected: the " } @else { "Actual: the " } (name) }
                                p.value { code { (hexadecimal(*value, claim.width)) } }
                                p.at { (numbers(*value, claim.width)) }
                                p.at { code { (side) } }
                                p.bits { (bits(*value, left ^ right, claim.width)) }
                            }
                        }
                    }
                }
                other => p.message { (other) },
            }
            p.note { "See it again:" }
            div.command.mono { (command) }
        }
        @if let ClaimVerdict::Refuted { operands, .. } = verdict {
            main {
                section id="values" {
                    h2 { "How both sides compute" }
                    div.graphs {
                        @for (name, side) in sides {
                            figure {
                                figcaption { (name) }
                                (computation(claim, side, operands))
                            }
                        }
                    }
                }
            }
        }
    };
    document(&title(claim), body).into_string()
}

/// The operands that occur in the rule.
fn operand_table(claim: &Claim, operands: &[u64]) -> Markup {
    let occurs = |number: usize| [&claim.left, &claim.right].iter().any(|side| side.reads(number));
    html! {
        table.plain {
            thead { tr { th { "operand" } th { "value" } th { "as numbers" } } }
            tbody {
                @for (number, (&value, &width)) in operands.iter().zip(&claim.operands).enumerate().filter(|(number, _)| occurs(*number)) {
                    tr {
                        td { code { (Expression::Operand(number)) } }
                        td { code { (hexadecimal(value, width)) } }
                        td { (numbers(value, width)) }
                    }
                }
            }
        }
    }
}

/// The subterms of a side with their values, operands first.
fn computation(claim: &Claim, side: &Expression, operands: &[u64]) -> Markup {
    html! {
        table.plain {
            thead { tr { th { "term" } th { "value" } } }
            tbody {
                @for term in side.subterms() {
                    tr {
                        td { code { (term) } }
                        td { code { (hexadecimal(claim.value(term, operands), claim.width)) } }
                    }
                }
            }
        }
    }
}

fn hexadecimal(value: u64, width: u8) -> String {
    format!("{value:#0digits$x}", digits = usize::from(width).div_ceil(4) + 2)
}

/// A value as a signed and as an unsigned number, and as a float where the width has floats.
fn numbers(value: u64, width: u8) -> String {
    let shift = 64 - u32::from(width.clamp(1, 64));
    let signed = ((value << shift) as i64) >> shift;
    let integer = match width {
        1 => if value & 1 == 1 { "true" } else { "false" }.to_owned(),
        _ if signed < 0 => format!("{value}, {signed} signed"),
        _ => value.to_string(),
    };
    match width {
        16 => format!("{integer}, {:?} as a float", half::f16::from_bits(value as u16)),
        32 => format!("{integer}, {:?} as a float", f32::from_bits(value as u32)),
        64 => format!("{integer}, {:?} as a float", f64::from_bits(value)),
        _ => integer,
    }
}

/// The bits of a value in groups of eight, those that differ marked.
fn bits(value: u64, differ: u64, width: u8) -> Markup {
    html! {
        @for bit in (0..width).rev() {
            @let digit = value >> bit & 1;
            @if differ >> bit & 1 == 1 { b { (digit) } } @else { (digit) }
            @if bit % 8 == 0 && bit > 0 { " " }
        }
    }
}
