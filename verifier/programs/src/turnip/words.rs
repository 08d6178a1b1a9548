//! The machine code of shaders whose log has none.
//!
//! A release build of Mesa prints the final assembly without its words. They are in the driver's cache of pipelines:
//! somewhere in its bytes, as many words as the assembly has lines, `end` and all nops where the assembly has them.
//! If several sequences fit (those of a vertex shader and of its binning variant), the one whose text is the
//! assembly is taken if there is one only; otherwise the words are not known.

use ir3_compiler::log_line::LogLine;
use ir3_compiler::machine::listing::{self, Item};
use ir3_compiler::target::Generation;
use std::fmt::Write as _;

/// The head of the listing of words, as debug builds print it.
const LISTING: &str = "; hex listing: index[hi_lo] disasm";
/// The heads of sections.
const HEADS: [&str; 3] = ["Native code for", "NIR (", "AFTER: "];

/// The programs of a log, by the result of checking their words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Programs whose listing was added.
    pub listed: usize,
    /// Programs whose words are not in the data.
    pub missing: usize,
    /// Programs that several sequences of words fit.
    pub ambiguous: usize,
}

/// A line of an assembly.
enum Line {
    Label(String),
    Instruction(String),
}

/// The assembly of a section: its instructions, and the labels between them.
#[derive(Default)]
struct Assembly {
    lines: Vec<Line>,
    /// Its statistics follow: the second print of the assembly, which all builds have.
    has_statistics: bool,
    has_listing: bool,
}

impl Assembly {
    fn read(&mut self, line: &str) {
        let text = line.trim();
        if text.starts_with(LISTING) {
            self.has_listing = true;
        } else if text.starts_with(';') {
            self.has_statistics |= text.contains(" prog ") && text.contains(" instr,");
        } else if !text.is_empty() && !text.starts_with('@') && !self.has_statistics {
            let is_label = text.strip_suffix(':').and_then(|name| name.strip_prefix('l'));
            let is_label = is_label.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
            let text = text.to_owned();
            self.lines.push(if is_label { Line::Label(text) } else { Line::Instruction(text) });
        }
    }

    fn instructions(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::Instruction(text) => Some(text.as_str()),
            Line::Label(_) => None,
        })
    }

    fn listing(&self, words: &[u64]) -> String {
        let mut text = format!("{LISTING}\n");
        let mut at = 0;
        for line in &self.lines {
            let word = words.get(at).copied().unwrap_or_default();
            let (name, step) = match line {
                // A label has the word of the instruction after it.
                Line::Label(name) => (name, 0),
                Line::Instruction(name) => (name, 1),
            };
            let _ = writeln!(text, "{at:04}[{:08x}_{:08x}] {name}", word >> 32, word & 0xffff_ffff);
            at += step;
        }
        text
    }

    /// Returns true if words are disassembled to this text.
    fn is_text_of(&self, generation: Generation, words: &[u64]) -> bool {
        let items = listing::disassemble(generation, words);
        let texts = items.iter().filter_map(|item| match item {
            Item::Instr(_, _, text) => Some(text.as_deref().unwrap_or_default()),
            Item::Label(_) => None,
        });
        texts.map(str::split_whitespace).zip(self.instructions().map(str::split_whitespace)).all(|(a, b)| a.eq(b))
    }

    /// The words of the assembly among the bytes.
    fn find(&self, data: &[u8], generation: Generation) -> Result<Vec<u64>, Lack> {
        let mut all = candidates(self, data);
        if all.len() > 1 {
            all.retain(|words| self.is_text_of(generation, words));
            return if all.len() == 1 { Ok(all.swap_remove(0)) } else { Err(Lack::Ambiguous) };
        }
        all.pop().ok_or(Lack::Missing)
    }
}

/// The reason why words are not known.
enum Lack {
    Missing,
    Ambiguous,
}

/// The name of the operation of a line, without its flags in parentheses.
fn operation(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(flag) = rest.strip_prefix('(') {
        rest = flag.split_once(')').map_or("", |(_, rest)| rest.trim_start());
    }
    rest.split_whitespace().next().unwrap_or_default()
}

/// The category of an instruction, and its operation if that is one of flow control.
fn category(word: u64) -> (u64, u64) {
    (word >> 61, (word >> 55) & 0xf)
}

const NOP: (u64, u64) = (0, 0);
const END: (u64, u64) = (0, 6);
const CHSH: (u64, u64) = (0, 10);

/// All different sequences of words that an assembly may be.
fn candidates(assembly: &Assembly, data: &[u8]) -> Vec<Vec<u64>> {
    let names: Vec<&str> = assembly.instructions().map(operation).collect();
    let Some(end) = names.iter().rposition(|name| matches!(*name, "end" | "chsh")) else { return Vec::new() };
    let last = if names[end] == "end" { END } else { CHSH };
    let mut found: Vec<Vec<u64>> = Vec::new();
    for bytes in data.windows(8 * names.len()) {
        let word = |at: usize| {
            let bytes: [u8; 8] = bytes[8 * at..8 * at + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        let fits = category(word(end)) == last
            && word(end) & 0xffff_ffff == 0
            && (end + 1..names.len()).all(|at| word(at) == 0)
            && names.iter().enumerate().all(|(at, name)| (*name == "nop") == (category(word(at)) == NOP));
        if fits {
            let words = (0..names.len()).map(word).collect();
            if !found.contains(&words) {
                found.push(words);
            }
        }
    }
    found
}

/// Adds listings to a log.
pub fn add(log: &str, data: &[u8], generation: Generation) -> (String, Found) {
    let mut text = String::with_capacity(log.len());
    let mut found = Found::default();
    let mut assembly: Option<Assembly> = None;
    let mut close = |assembly: &mut Option<Assembly>, text: &mut String| {
        let Some(assembly) = assembly.take().filter(|it| it.has_statistics && !it.has_listing) else { return };
        match assembly.find(data, generation) {
            Ok(words) => {
                found.listed += 1;
                text.push_str(&assembly.listing(&words));
            }
            Err(Lack::Missing) => found.missing += 1,
            Err(Lack::Ambiguous) => found.ambiguous += 1,
        }
    };
    for line in log.split_inclusive('\n') {
        let plain = LogLine::of(line.trim_end_matches('\n')).text;
        if HEADS.iter().any(|head| plain.starts_with(head)) {
            close(&mut assembly, &mut text);
            assembly = plain.starts_with(HEADS[0]).then(Assembly::default);
        } else if let Some(assembly) = &mut assembly {
            assembly.read(&plain);
        }
        text.push_str(line);
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    close(&mut assembly, &mut text);
    (text, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "Native code for unnamed CL shader  with blake3 13f7:\n@localsize 1, 1, 1\n\x1b[0;32mmov.u32u32 r0.x, 0\n\
        l1:\n(rpt1)nop\nend\nnop\n; CL prog 21/1: 4 instr, 2 nops\n";
    const CODE: [u64; 4] = [0x204c_c000_0000_0000, 0x0000_0100_0000_0000, 0x0300_0000_0000_0000, 0];

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn added(data: &[u8]) -> (String, Found) {
        add(LOG, data, Generation::A6xx)
    }

    #[test]
    fn words_are_found_by_end_and_nops() {
        let mut data = vec![7, 7, 7];
        data.extend(bytes(&CODE));
        let (text, found) = added(&data);
        assert_eq!(found, Found { listed: 1, ..Found::default() });
        let listing = "; hex listing: index[hi_lo] disasm\n0000[204cc000_00000000] mov.u32u32 r0.x, 0\n0001[00000100_00000000] l1:\n\
            0001[00000100_00000000] (rpt1)nop\n0002[03000000_00000000] end\n0003[00000000_00000000] nop\n";
        assert_eq!(text, format!("{LOG}{listing}"));
        // The same code twice is one.
        data.extend(bytes(&CODE));
        assert_eq!(added(&data).1, found);
    }

    #[test]
    fn of_two_codes_that_of_the_text_is_taken() {
        let other = [0x204c_c001_0000_0000, CODE[1], CODE[2], CODE[3]];
        let (text, found) = added(&bytes(&[&other[..], &CODE[..]].concat()));
        assert_eq!(found, Found { listed: 1, ..Found::default() });
        assert!(text.contains("0000[204cc000_00000000]"), "{text}");
        // Neither has the text.
        let third = [0x204c_c002_0000_0000, CODE[1], CODE[2], CODE[3]];
        let (text, found) = added(&bytes(&[&other[..], &third[..]].concat()));
        assert_eq!((text.as_str(), found), (LOG, Found { ambiguous: 1, ..Found::default() }));
    }

    #[test]
    fn words_that_are_not_there_are_missing() {
        let (text, found) = added(&bytes(&[CODE[0], CODE[1], CODE[2] | 1, 0]));
        assert_eq!((text.as_str(), found), (LOG, Found { missing: 1, ..Found::default() }));
        assert_eq!(add("", &[], Generation::A6xx).1, Found::default());
    }

    #[test]
    fn a_log_that_has_words_stays() {
        let log = format!("{LOG}{LISTING}\n0000[204cc000_00000000] mov.u32u32 r0.x, 0\n");
        assert_eq!(add(&log, &bytes(&CODE), Generation::A6xx), (log.clone(), Found::default()));
    }
}
