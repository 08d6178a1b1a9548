//! The messages of rustc about the changed tree.

use serde_json::Value;
use std::collections::BTreeSet;
use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

/// An error of rustc.
#[derive(Debug)]
pub struct Message {
    /// The text that rustc prints.
    pub rendered: String,
    /// The file of each primary span, in the tree, and its bytes.
    pub spans: Vec<(String, Range<usize>)>,
}

/// The errors of the compiler package in a tree.
pub fn errors(tree: &Path) -> Result<Vec<Message>, Box<dyn Error>> {
    let output = Command::new("cargo")
        .args(["check", "--profile", "bugs", "--locked", "--message-format", "json", "-p", "ir3-compiler", "--lib"])
        .current_dir(tree)
        .stderr(Stdio::piped())
        .output()?;
    let mut seen = BTreeSet::new();
    let mut messages = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
        let message = &value["message"];
        if value["reason"] != "compiler-message" || message["level"] != "error" {
            continue;
        }
        let rendered = message["rendered"].as_str().unwrap_or_default().to_string();
        let spans: Vec<_> = message["spans"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|span| span["is_primary"] == true)
            .map(place)
            .collect();
        if !spans.is_empty() && seen.insert(rendered.clone()) {
            messages.push(Message { rendered, spans });
        }
    }
    if !output.status.success() && messages.is_empty() {
        return Err(format!(
            "cargo check failed without a message that has a place:\n{}",
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    Ok(messages)
}

/// The place of a span; that of the outermost macro call, if it is in an expansion.
fn place(span: &Value) -> (String, Range<usize>) {
    let mut span = span;
    while span["expansion"]["span"].is_object() {
        span = &span["expansion"]["span"];
    }
    let byte = |name: &str| span[name].as_u64().unwrap_or(0) as usize;
    (span["file_name"].as_str().unwrap_or_default().to_string(), byte("byte_start")..byte("byte_end"))
}
