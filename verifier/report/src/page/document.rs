//! The frame of a page.

use maud::{DOCTYPE, Markup, PreEscaped, html};

const CSS: &str = include_str!("page.css");

/// Scrolls each graph and chart to the place that differs.
const SCRIPT: &str = include_str!("page.js");

/// A complete document.
pub(super) fn document(title: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(concat!("ir3-equiv ", env!("CARGO_PKG_VERSION")));
                title { (title) }
                style { (PreEscaped(CSS)) }
            }
            body {
                (body)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// Text with code between backticks.
pub(super) fn inline(text: &str) -> Markup {
    html! {
        @for (number, part) in text.split('`').enumerate() {
            @if number % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
