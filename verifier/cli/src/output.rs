//! Output: text for people, one JSON object a line (docs/json.md), or JUnit's XML.
//!
//! Standard output has one format: text is printed only if that is the format. An error is an object in JSON, and a
//! line of standard error otherwise. Standard output that cannot be written ends the program; a closed pipe (`| head`)
//! does so quietly.

use crate::Format;
use crate::contents;
use crate::exit::{Exit, Unwritten};
use crate::junit;
use indicatif::style::TemplateError;
use indicatif::{ProgressBar, ProgressStyle};
use ir3_harness::check::{Check, Summary};
use ir3_harness::version;
use ir3_programs::mesa::input::{self, FilePosition, InputError};
use serde::Serialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

/// The version of the objects: a greater one if a field is removed or changes its meaning.
pub const SCHEMA: u32 = 1;

static FORMAT: OnceLock<Format> = OnceLock::new();

fn format() -> Format {
    FORMAT.get().copied().unwrap_or(Format::Human)
}

/// The first object.
#[derive(Serialize)]
struct Run<'a> {
    schema: u32,
    version: &'static str,
    commit: Option<&'static str>,
    command: &'a str,
}

/// Begins the output of a command.
pub fn begin(format: Format, command: &str) {
    FORMAT.get_or_init(|| format);
    if format == Format::Json {
        json("run", &Run { schema: SCHEMA, version: version::VERSION, commit: version::COMMIT, command });
    }
}

/// The last object.
#[derive(Serialize)]
struct End {
    code: u8,
    result: &'static str,
}

/// Ends the output of a command. Later output of other threads is not written: the lock of standard output is held
/// until the program exits.
pub fn end(exit: Exit) {
    let out = io::stdout().lock();
    match format() {
        Format::Json => json("end", &End { code: exit.code(), result: exit.name() }),
        Format::Junit => print(junit::document().as_bytes()),
        Format::Human => {}
    }
    print(b"");
    std::mem::forget(out);
}

/// The progress of a campaign over programs, on standard error; `None` if their number has no limit.
///
/// # Errors
/// None: the templates are constants.
pub fn campaign_bar(programs: Option<u64>) -> Result<ProgressBar, TemplateError> {
    let (bar, template) = match programs {
        Some(n) => (ProgressBar::new(n), "{bar:30} {pos}/{len} programs, {elapsed}, {msg}"),
        None => (ProgressBar::no_length(), "{spinner} {pos} programs, {elapsed}, {msg}"),
    };
    Ok(bar.with_style(ProgressStyle::with_template(template)?))
}

/// Writes to standard output, and ends the program if that is not possible.
fn print(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
        if error.kind() != io::ErrorKind::BrokenPipe {
            eprintln!("ir3-equiv: {}", Unwritten::new(Path::new("standard output"), error));
        }
        // Without destructors: other threads may be running.
        signal_hook::low_level::exit(Exit::Unwritten.code().into());
    }
}

/// Prints a line for each reason with its count, the most frequent first.
pub fn reasons(title: &str, reasons: &BTreeMap<String, u64>) {
    let mut sorted: Vec<_> = reasons.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (reason, count) in sorted {
        line(&format!("{count:6}  {title}: {reason}"));
    }
}

/// Prints a line for people.
pub fn line(line: &str) {
    text(&format!("{line}\n"));
}

/// Prints text for people, unchanged.
pub fn text(text: &str) {
    if format() == Format::Human {
        print(text.as_bytes());
    }
}

/// An object, with its type.
#[derive(Serialize)]
struct Typed<'a, T> {
    r#type: &'static str,
    #[serde(flatten)]
    value: &'a T,
}

/// Prints an object, a struct or map, as one line of JSON.
pub fn json(kind: &'static str, value: &impl Serialize) {
    if format() != Format::Json {
        return;
    }
    match serde_json::to_string(&Typed { r#type: kind, value }) {
        Ok(text) => print(format!("{text}\n").as_bytes()),
        Err(error) => eprintln!("ir3-equiv: {error}"),
    }
}

/// A message, as JSON.
#[derive(Serialize)]
struct Message<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<String>,
}

fn message(kind: &'static str, message: &str, causes: Vec<String>) {
    match format() {
        Format::Json => return json(kind, &Message { message, causes }),
        Format::Junit if kind == "error" => junit::problem("input", message),
        Format::Junit | Format::Human => {}
    }
    to_standard_error(kind, message, &causes);
}

fn to_standard_error(kind: &str, message: &str, causes: &[String]) {
    let kind = if kind == "error" { "" } else { "warning: " };
    // A broken standard error has nowhere to be reported.
    let mut err = io::stderr().lock();
    let _ = writeln!(err, "ir3-equiv: {kind}{message}");
    for cause in causes {
        let _ = writeln!(err, "  caused by: {cause}");
    }
}

/// Prints an error, and its causes.
pub fn error(error: &(dyn Error + 'static)) {
    let causes = std::iter::successors(error.source(), |&cause| cause.source()).map(ToString::to_string).collect();
    message("error", &error.to_string(), causes);
    let more = match error.downcast_ref::<InputError>() {
        _ if format() != Format::Human => None,
        Some(InputError::NoNir { path }) if path.is_file() => {
            Some(format!("    {}\n", contents::without(path, "the nir that ir3 received")))
        }
        Some(error) => excerpt(error),
        None => None,
    };
    if let Some(more) = more {
        let _ = write!(io::stderr().lock(), "{more}");
    }
}

/// The columns of a line that an excerpt shows.
const EXCERPT: usize = 100;

/// The line of an error, with a caret below the place.
fn excerpt(error: &InputError) -> Option<String> {
    let FilePosition { path, line, column } = error.place()?;
    let text = input::text_of(path, std::fs::read(path).ok()?).ok()?;
    let line = text.lines().nth(*line as usize - 1)?;
    let shown: Vec<char> = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let at = (*column as usize - 1).min(shown.len());
    let first = at.saturating_sub(EXCERPT - 20).min(shown.len());
    let part: String = shown[first..].iter().take(EXCERPT).collect();
    if part.trim().is_empty() {
        return None;
    }
    Some(format!("    {}\n    {}^\n", part.trim_end(), " ".repeat(at - first)))
}

/// Prints the items that were added to a text that leaves out a part of its program.
pub fn taken(name: &str, taken: &[String]) {
    if !taken.is_empty() {
        note(&format!("{name}: a piece of a program; taken: {}", taken.join("; ")));
    }
}

/// Prints an error that is only a text.
pub fn problem(text: &str) {
    message("error", text, Vec::new());
}

/// Prints an error of a program: in JUnit's XML a suite of its own.
pub fn problem_of(program: &str, text: &str) {
    let whole = format!("{program}: {text}");
    if format() != Format::Junit {
        return problem(&whole);
    }
    junit::problem(program, text);
    to_standard_error("error", &whole, &[]);
}

/// Prints a note that is no error.
pub fn note(text: &str) {
    message("note", text, Vec::new());
}

/// Prints the number of programs of logs that do not name their GPU, by the GPU that was guessed.
pub fn guessed_gpus(guessed: &BTreeMap<&'static str, u64>) {
    for (gpu, count) in guessed {
        let plural = if *count == 1 { "" } else { "s" };
        note(&format!(
            "the log does not name the GPU of {count} program{plural}: checked as {gpu}; name it with `--gpu`"
        ));
    }
}

/// Prints a document unchanged: as text, or as one object with the kind of the text.
pub fn document(name: &str, kind: impl std::fmt::Display, document: &str) {
    json("text", &serde_json::json!({ "name": name, "kind": kind.to_string(), "text": document }));
    text(document);
}

/// The heading of a table of checks.
pub fn heading_of(width: usize) -> String {
    format!("{:width$}  {:6}  {:20}  {:12}  {:>8}  reason", "program", "gpu", "stage", "verdict", "ms")
}

/// Prints the heading of a table of checks.
pub fn heading(width: usize) {
    line(&heading_of(width));
}

/// A row of the table of checks.
pub fn row(width: usize, check: &Check) -> String {
    let verdict = match check.verdict {
        "tested" => format!("tested {}", check.lanes),
        other => other.to_owned(),
    };
    let row = format!(
        "{:width$}  {:6}  {:20}  {:12}  {:8.2}  {}",
        shorten(&check.program, width),
        check.gpu,
        check.stage,
        verdict,
        check.seconds * 1e3,
        check.reason.as_deref().unwrap_or("")
    );
    row.trim_end().to_owned()
}

/// Prints one row.
pub fn check(width: usize, check: &Check) {
    match format() {
        Format::Json => json("check", check),
        Format::Junit => junit::check(check),
        Format::Human => line(&row(width, check)),
    }
}

/// Prints the verdicts of the whole.
pub fn summary(summary: &Summary) {
    json("summary", summary);
    line(&summary.to_string());
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
