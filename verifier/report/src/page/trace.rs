//! The values of the traced lane on both sides, down to the first difference and a little further.

use super::sides::parts;
use crate::difference::{FirstDifference, Relation, TraceCell, TraceRow};
use maud::{Markup, html};

/// The number of rows after the first difference.
const AFTER: usize = 12;

/// Renders the aligned traces.
pub(super) fn render(difference: &FirstDifference) -> Markup {
    let rows: Vec<TraceRow> = difference.rows().collect();
    let end = rows.iter().position(|row| row.first).map_or(rows.len(), |first| rows.len().min(first + 1 + AFTER));
    let plain: Vec<Option<()>> =
        rows[..end].iter().map(|row| (row.relation != Relation::Different).then_some(())).collect();
    let left_out = difference.steps_left_out();
    html! {
        p.note {
            "The instructions that the lane executes, in order. Values are hexadecimal: what an instruction writes, or what it "
            "reads where it writes nothing; → is a store."
        }
        div.trace {
            div.sidehead aria-hidden="true" { span { "before" } span { "after" } }
            @if left_out > 0 { p.note { (left_out) " earlier instructions are left out." } }
            @for part in parts(&plain) {
                @if part.collapsed.is_some() {
                    details.equal {
                        summary { (part.range.len()) " steps without a difference" }
                        (table(&rows[part.range.clone()]))
                    }
                } @else {
                    (table(&rows[part.range.clone()]))
                }
            }
        }
        @for (cells, name) in difference.computations().iter().zip(["expected", "actual"]) {
            @if !cells.is_empty() {
                details open[cells.len() <= 12] {
                    summary { "Computation of the " (name) " value: " (cells.len()) @if cells.len() == 1 { " step" } @else { " steps" } }
                    div.trace {
                        table.code {
                            @for cell in cells { tr.same { td.a { (content(cell)) } } }
                        }
                    }
                }
            }
        }
    }
}

fn table(rows: &[TraceRow]) -> Markup {
    html! {
        table.code {
            @for row in rows {
                tr class=(class(row)) {
                    td.a { @if let Some(cell) = &row.before { (content(cell)) } }
                    td.b { @if let Some(cell) = &row.after { (content(cell)) } }
                }
                @if row.first { tr.here { td colspan="2" { "▲ first difference" } } }
            }
        }
    }
}

fn class(row: &TraceRow) -> &'static str {
    match (row.relation, row.first) {
        (_, true) => "wrong first",
        (Relation::Different, _) => "wrong",
        (Relation::Alone, _) => "unpaired",
        (Relation::Same, _) => "same",
    }
}

fn content(cell: &TraceCell) -> Markup {
    html! { code { (cell.text) } " " span.v { (cell.values) } }
}
