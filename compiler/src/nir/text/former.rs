//! Lines of a function as Mesa 23.1 prints them, in the syntax of today.
//!
//! Mesa 23.2 gave nir another syntax: `vec4 32 ssa_1 = intrinsic load_input (ssa_0) (base=0 /*0*/)` became
//! `32x4 %1 = @load_input (%0) (base=0)`. No line of the one can be taken for a line of the other. Atomics had an
//! intrinsic for each operation.

use std::fmt::Write;

/// The beginnings of lines that only the former syntax has.
const BEGINNINGS: [&str; 5] = ["vec", "intrinsic ", "block block_", "/*", "if ssa_"];

/// The operations of atomics in the names of intrinsics, and those of today.
const ATOMICS: [(&str, &str); 16] = [
    ("add", "iadd"),
    ("imin", "imin"),
    ("umin", "umin"),
    ("imax", "imax"),
    ("umax", "umax"),
    ("and", "iand"),
    ("or", "ior"),
    ("xor", "ixor"),
    ("exchange", "xchg"),
    ("comp_swap", "cmpxchg"),
    ("fadd", "fadd"),
    ("fmin", "fmin"),
    ("fmax", "fmax"),
    ("fcomp_swap", "fcmpxchg"),
    ("inc_wrap", "inc_wrap"),
    ("dec_wrap", "dec_wrap"),
];

/// The line in today's syntax, without its indentation and prefix; empty for a comment. `None` if it is not one of the
/// former syntax.
pub(super) fn line(text: &str) -> Option<String> {
    let text = text.trim();
    if !BEGINNINGS.iter().any(|start| text.starts_with(start)) {
        return None;
    }
    let (code, comment) = without_comments(text);
    let code = code.trim_end();
    let mut line = match code.split_once(" = ") {
        Some((value, rest)) => format!("{} = {}", declaration(value)?, instruction(rest)),
        None => instruction(code),
    };
    line = renamed(&line);
    match (comment, line.strip_suffix('{')) {
        // The control of an `if`, or the name of a variable.
        (Some(comment), Some(condition)) => {
            line = condition.trim_end().to_owned();
            let _ = write!(line, "  // {comment} {{");
        }
        (Some(comment), None) => {
            let _ = write!(line, "  // {comment}");
        }
        (None, _) => {}
    }
    Some(line)
}

/// The text without its comments and the spaces before them, and the last comment that is more than the number of an
/// index.
fn without_comments(text: &str) -> (String, Option<&str>) {
    let mut code = String::new();
    let mut last = None;
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        let (comment, after) = comment.split_once("*/").unwrap_or((comment, ""));
        code.push_str(before.trim_end());
        let is_name = before.ends_with('\t') || after.trim_start().starts_with('{');
        last = is_name.then_some(comment.trim());
        rest = after;
    }
    code.push_str(rest);
    (code, last)
}

/// `vec4 32 con ssa_1` as `con 32x4 ssa_1`.
fn declaration(value: &str) -> Option<String> {
    let words: Vec<&str> = value.split_whitespace().collect();
    let (vector, size, divergence, name) = match words[..] {
        [vector, size, name] => (vector, size, "", name),
        [vector, size, divergence @ ("con" | "div"), name] => (vector, size, divergence, name),
        _ => return None,
    };
    let width = match vector.strip_prefix("vec")? {
        "1" => size.to_owned(),
        count => format!("{size}x{count}"),
    };
    Some(format!("{divergence} {width} {name}").trim_start().to_owned())
}

/// The computation of the value. Intrinsics had parentheses around no sources, and no indices, too.
fn instruction(text: &str) -> String {
    let Some(rest) = text.strip_prefix("intrinsic ") else { return text.to_owned() };
    let (name, operands) = rest.split_once(' ').unwrap_or((rest, ""));
    let operands = operands.strip_prefix("()").unwrap_or(operands).trim();
    let operands =
        operands.strip_suffix("()").filter(|rest| rest.is_empty() || rest.ends_with(' ')).unwrap_or(operands).trim();
    match atomic(name) {
        Some((name, operation)) if operands.matches('(').count() == 1 => {
            format!("@{name} {operands} (atomic_op={operation})")
        }
        Some((name, operation)) => {
            let open = operands.strip_suffix(')').unwrap_or(operands);
            format!("@{name} {open}, atomic_op={operation})")
        }
        None => format!("@{name} {operands}"),
    }
}

/// `ssbo_atomic_add_ir3` as `ssbo_atomic_ir3` and its operation.
fn atomic(name: &str) -> Option<(String, &'static str)> {
    let (memory, operation) = name.split_once("_atomic_")?;
    let (operation, suffix) = match operation.strip_suffix("_ir3") {
        Some(operation) => (operation, "_ir3"),
        None => (operation, ""),
    };
    let swap = if operation.ends_with("comp_swap") { "_swap" } else { "" };
    let &(_, today) = ATOMICS.iter().find(|&&(former, _)| former == operation)?;
    Some((format!("{memory}_atomic{swap}{suffix}"), today))
}

/// Values and blocks with the names of today: `ssa_1` as `%1`, `block_2` as `b2`.
fn renamed(text: &str) -> String {
    let mut renamed = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        renamed.push_str(&rest[..start]);
        let word = &rest[start..];
        let word = &word[..word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(word.len())];
        let number = |prefix: &str| {
            let digits = word.strip_prefix(prefix)?;
            (!digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit())).then_some(digits)
        };
        match (number("ssa_"), number("block_")) {
            (Some(value), _) => renamed.push_str(&format!("%{value}")),
            (_, Some(block)) => renamed.push_str(&format!("b{block}")),
            _ => renamed.push_str(word),
        }
        rest = &rest[start + word.len()..];
    }
    renamed.push_str(rest);
    renamed
}
