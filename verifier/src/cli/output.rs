//! Output to the terminal and to pipes. A closed pipe (`| head`) ends the program quietly.

use crate::Format;
use ir3_verifier::harness::check::{Check, Summary};
use serde::Serialize;
use std::error::Error;
use std::io::{self, Write};

/// Prints a line; exits if the pipe is closed.
pub fn line(text: &str) {
    let mut out = io::stdout().lock();
    if writeln!(out, "{text}").is_err() {
        std::process::exit(0);
    }
}

/// Prints text as it is.
pub fn text(text: &str) {
    let mut out = io::stdout().lock();
    if out.write_all(text.as_bytes()).is_err() {
        std::process::exit(0);
    }
}

/// Prints that proofs could not be written to the cache. The verdicts do not depend on it.
pub fn cache_failure(why: Option<&str>) {
    if let Some(why) = why {
        eprintln!("ir3-equiv: warning: proofs are not written to the cache {why}");
    }
}

/// Prints an error to standard error.
pub fn error(error: &(dyn Error + 'static)) {
    eprintln!("ir3-equiv: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        eprintln!("  caused by: {error}");
        cause = error.source();
    }
}

/// Prints a value as one line of JSON.
pub fn json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => line(&text),
        Err(e) => error(&e),
    }
}

/// The heading of a table of checks.
pub fn heading(format: Format, width: usize) {
    if format == Format::Human {
        line(&format!("{:width$}  {:20}  {:12}  {:>8}  reason", "program", "stage", "verdict", "ms"));
    }
}

/// Prints one row.
pub fn check(format: Format, width: usize, check: &Check) {
    match format {
        Format::Json => json(check),
        Format::Human => {
            let verdict = match check.verdict {
                "tested" => format!("tested {}", check.lanes),
                other => other.to_owned(),
            };
            let reason = check.reason.as_deref().unwrap_or("");
            let row = format!(
                "{:width$}  {:20}  {:12}  {:8.2}  {}",
                shorten(&check.program, width),
                check.stage,
                verdict,
                check.seconds * 1e3,
                reason
            );
            line(row.trim_end());
        }
    }
}

/// The summary of a run, as JSON.
#[derive(Serialize)]
struct SummaryLine<'a> {
    summary: &'a Summary,
}

/// Prints the counts at the end.
pub fn summary(format: Format, summary: &Summary) {
    match format {
        Format::Json => json(&SummaryLine { summary }),
        Format::Human => line(&summary.to_string()),
    }
}

/// Keeps the end of a text that is too long, after an ellipsis.
fn shorten(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let tail: String = text.chars().skip(count + 1 - width).collect();
    format!("…{tail}")
}
