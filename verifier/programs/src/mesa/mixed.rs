//! Detection of lines of two programs in one section.
//!
//! Threads that compile at the same time print at the same time. No program has a number of an instruction or of a
//! block twice, none begins a block in another one, and none has lines of the other language.

use super::{Section, SectionKind};
use std::collections::BTreeSet;

/// The line of a section's text, from 1 on, at which lines of two programs are mixed.
pub fn mixed_at(section: &Section) -> Option<u32> {
    let sign: fn(&mut Seen, &str) -> bool = match section.kind {
        SectionKind::Ir3After { .. } => Seen::ir3,
        SectionKind::NirFinal { .. } => Seen::nir,
        _ => return None,
    };
    let mut seen = Seen::default();
    (1..).zip(section.text.lines()).find(|(_, line)| sign(&mut seen, line)).map(|(number, _)| number)
}

/// The previous lines.
#[derive(Default)]
struct Seen {
    is_open: bool,
    numbers: BTreeSet<u32>,
    blocks: BTreeSet<u32>,
    has_header: bool,
}

impl Seen {
    /// Returns true if a line cannot follow in a program after a pass.
    fn ir3(&mut self, line: &str) -> bool {
        if line == "}" {
            return !std::mem::take(&mut self.is_open);
        }
        if let Some(block) = ir3_block(line) {
            return std::mem::replace(&mut self.is_open, true) || !self.blocks.insert(block);
        }
        match ir3_instr(line) {
            Some(number) => !self.is_open || !self.numbers.insert(number),
            None => is_nir(line) || is_assembly(line),
        }
    }

    /// Returns true if a line cannot follow in a nir program.
    fn nir(&mut self, line: &str) -> bool {
        if line.starts_with("shader: ") {
            return std::mem::replace(&mut self.has_header, true);
        }
        if line.starts_with("impl ") {
            self.blocks.clear();
            self.numbers.clear();
            return false;
        }
        let trimmed = line.trim_start();
        let undivided = ["con ", "div "].iter().find_map(|start| trimmed.strip_prefix(start)).unwrap_or(trimmed);
        if let Some(block) = undivided.strip_prefix("block b").and_then(leading_number) {
            return !self.blocks.insert(block);
        }
        let defined = trimmed.split_once(" = ").and_then(|(start, _)| start.rsplit_once('%'));
        if let Some(number) = defined.and_then(|(_, number)| number.parse().ok()) {
            return !self.numbers.insert(number);
        }
        ir3_block(line).is_some()
            || line.starts_with('\t') && ir3_instr(line.trim_start()).is_some()
            || is_assembly(line)
    }
}

fn leading_number(text: &str) -> Option<u32> {
    text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())].parse().ok()
}

/// `block7 {`
fn ir3_block(line: &str) -> Option<u32> {
    let line = line.strip_prefix("(jp)").unwrap_or(line);
    line.strip_prefix("block").filter(|_| line.ends_with('{')).and_then(leading_number)
}

/// `0014:0001:000: …`, with one tab before it at most; the lines of kept instructions have two.
fn ir3_instr(line: &str) -> Option<u32> {
    let line = line.strip_prefix('\t').unwrap_or(line);
    let mut parts = line.splitn(4, ':');
    let number = parts.next()?.parse().ok()?;
    let position = parts.next()?;
    let is_position = position.len() >= 4 && position.bytes().all(|c| c.is_ascii_digit());
    (is_position && parts.next().is_some()).then_some(number)
}

fn is_nir(line: &str) -> bool {
    let trimmed = line.trim_start();
    let starts = ["shader: ", "impl ", "decl_function ", "decl_var ", "con ", "div "];
    starts.iter().any(|start| trimmed.starts_with(start)) || trimmed.starts_with("block b") && trimmed.contains(':')
}

/// The lines around the final code.
fn is_assembly(line: &str) -> bool {
    line.starts_with("; ") || line.starts_with("@const")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesa::Log;
    use std::path::Path;

    fn section(text: &str) -> Section {
        let log = Log::read(Path::new("x.log"), &format!("AFTER: ir3_cp:\n{text}")).expect("a log");
        log.sections.into_iter().next().expect("a section")
    }

    #[test]
    fn signs_of_two_programs_are_found() {
        let good = "block1 {\n\t0001:0000:000: \tnop\n\t0002:0000:000: \tend\n\t/* keeps:\n\t\t0002:0000:000: \tend\n\t */\n}\n";
        assert_eq!(mixed_at(&section(good)), None);
        for (from, to, line) in [
            ("\t0002:0000:000: \tend\n\t/*", "\t0001:0000:000: \tend\n\t/*", 3),
            ("\t0002:0000:000: \tend\n\t/*", "block1 {\n}\n\t/*", 3),
            ("\t0002:0000:000: \tend\n\t/*", "    con 32 %0 = load_const (0x0)\n\t/*", 3),
            ("\t0002:0000:000: \tend\n\t/*", "; 5 instr\n\t/*", 3),
        ] {
            assert!(good.contains(from));
            assert_eq!(mixed_at(&section(&good.replacen(from, to, 1))), Some(line), "{to}");
        }
    }
}
