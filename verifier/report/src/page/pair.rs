//! The page of a refuted pair of texts.

use super::document::{document, inline};
use super::listing::Listing;
use super::run::LaneRun;
use super::{sides, trace};
use crate::pair::PairEvidence;
use maud::html;

/// Returns the page of a refuted pair.
pub fn of_pair(evidence: &PairEvidence<'_>) -> String {
    let PairEvidence { title, refutation, first, .. } = evidence;
    let run = first.as_ref().map(LaneRun::new).unwrap_or_default();
    let [before, after] = [&refutation.before, &refutation.after].map(Listing::new);
    let rows = sides::align(&before, &after, &run);
    let instructions = first.as_ref().and_then(|first| first.instructions());
    let body = html! {
        header {
            p.kind { "ir3-equiv " (env!("CARGO_PKG_VERSION")) " · " b { "refuted: the two programs differ" } }
            h1 { (title) }
            p.message { (inline(&refutation.difference.to_string())) }
            @if let Some(lines) = &instructions {
                div.pair {
                    @for (side, class, line) in [("Before", "expected", &lines[0]), ("After", "actual", &lines[1])] {
                        div class=(class) {
                            h3 { (side) }
                            p.at { "first difference" code { (line.as_deref().unwrap_or("no such step")) } }
                        }
                    }
                }
            }
            p.note { "See it again, with the files of the folder that " code { "check --failures" } " writes:" }
            div.command.mono { (evidence.command()) }
        }
        nav aria-label="Parts of this page" {
            a href="#programs" { "Before and after" }
            @if first.is_some() { a href="#values" { "Values" } }
            a href="#input" { "Input" }
        }
        main {
            section id="programs" {
                h2 { "Before and after" }
                (sides::render(&before, &after, &run, &rows, "check"))
            }
            @if let Some(difference) = first {
                section id="values" {
                    h2 { "Values of lane " (difference.lane) }
                    (trace::render(difference))
                }
            }
            section id="input" {
                h2 { "Input" }
                pre { (refutation.env.to_json()) }
            }
        }
    };
    document(title, body).into_string()
}
