//! The contents of a file, for messages about missing parts.

use ir3_programs::input::machine_code::machine_code;
use ir3_programs::mesa::{Log, SectionKind, input};
use std::collections::BTreeMap;
use std::path::Path;

/// A message: the contents of the file, and that the wanted part is missing.
pub fn without(path: &Path, wanted: &str) -> String {
    let name = path.display();
    let text = std::fs::read(path).ok().and_then(|bytes| input::text_of(path, bytes).ok());
    let Some(text) = text else { return format!("{name}: found no text, expected {wanted}") };
    let lines = text.lines().count();
    let sections = match Log::read(path, &text) {
        Ok(log) => log.sections,
        Err(error) => return format!("{error}; expected {wanted}"),
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for section in sections.iter().filter(|section| section.kind != SectionKind::Other) {
        *counts.entry(section.title()).or_default() += 1;
    }
    let found: Vec<String> = counts
        .iter()
        .map(|(title, count)| match count {
            1 => format!("`{title}`"),
            _ => format!("{count} times `{title}`"),
        })
        .collect();
    let programs =
        if found.is_empty() { machine_code(path, &text, None).map_or(0, |programs| programs.len()) } else { 0 };
    let found = match (found.is_empty(), programs) {
        (false, _) => found.join(", "),
        (true, 0) => format!("{lines} lines and no section of a log of ir3"),
        (true, count) => {
            let plural = if count == 1 { "" } else { "s" };
            return format!(
                "{name}: found {count} program{plural} in machine code, which `hazards`, `run`, `check`, `stats` and `disassemble` take; expected {wanted}"
            );
        }
    };
    format!("{name}: found {found}, expected {wanted}; ir3 prints it with {PRINTED_BY}")
}

/// The variable that has Mesa print all sections.
const PRINTED_BY: &str = "`IR3_SHADER_DEBUG=disasm,optmsgs,nocache`";
