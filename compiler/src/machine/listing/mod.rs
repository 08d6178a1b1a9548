//! Texts of machine code: listings of Mesa's tools, words in hexadecimal, and assembly with labels.
//!
//! Lines of listings are those of `ir3-disasm`, of the hex listing in a log, and of `cffdump` and `crashdec`
//! ([`Format`]). In assembly the positions and words are left out; `.word 0x…` is any word, a comment goes from `;` or
//! `//` to the end of the line, and lines that begin with `@` are those of `computerator` and of logs ([`Directive`]).
//! As there, flags at the end of a line are those of the next instruction.

mod directive;
mod line;
#[cfg(test)]
mod tests;

pub use directive::Directive;
pub use line::{Format, generation};

use super::encoding::{self, NotAnInstruction, Position};
use crate::target::Generation;
use line::Line;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// A line of a listing that is an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListingLine<'a> {
    /// The line number in the text, counted from 0.
    pub line: u32,
    /// The position of the instruction in the code, in words.
    pub ip: u32,
    /// The instruction word.
    pub word: u64,
    /// The text of the instruction; empty if the line was cut off before it.
    pub text: &'a str,
}

/// One listing of a text that may contain several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<'a> {
    /// The generation, if a line before names it: `; gpu gen 6, …`, `gpu_id: 630`.
    pub generation: Option<Generation>,
    /// The tool that printed it.
    pub format: Format,
    /// The instructions.
    pub lines: Vec<ListingLine<'a>>,
}

impl Listing<'_> {
    /// The words.
    pub fn words(&self) -> Vec<u64> {
        self.lines.iter().map(|line| line.word).collect()
    }

    /// The first pair of lines between which positions are missing.
    pub fn gap(&self) -> Option<[&ListingLine<'_>; 2]> {
        self.lines
            .array_windows()
            .find(|[before, after]| after.ip != before.ip + 1)
            .map(|[before, after]| [before, after])
    }
}

/// A line that is no line of machine code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: expected {expected}")]
pub struct ListingError {
    /// Line, from 1 on.
    pub line: usize,
    /// Column, from 1 on.
    pub column: usize,
    /// The expected text.
    pub expected: String,
}

/// Returns true for a line of a listing.
pub fn is_listing_line(line: &str) -> bool {
    Line::read(line).is_some()
}

/// Returns the listings in a text, such as a log. A listing starts at position 0, or where positions do not increase.
/// All other lines are skipped.
pub fn listings(text: &str) -> Vec<Listing<'_>> {
    let mut listings: Vec<Listing> = Vec::new();
    let mut named = None;
    for (index, line) in text.lines().enumerate() {
        let Some(read) = Line::read(line) else {
            named = generation(line).or(named);
            continue;
        };
        let Line { format, ip, word, text } = read;
        let line = ListingLine { line: index as u32, ip, word, text };
        if let Some(listing) = listings.last_mut().filter(|listing| listing.format == format)
            && let Some(last) = listing.lines.last_mut()
        {
            if last.ip == ip && last.word == word && line::is_label(last.text) {
                *last = line;
                continue;
            }
            if ip > last.ip {
                listing.lines.push(line);
                continue;
            }
        }
        listings.push(Listing { generation: named, format, lines: vec![line] });
    }
    for listing in &mut listings {
        // A label has the position of an instruction; the line of that may be cut off.
        listing.lines.iter_mut().filter(|line| line::is_label(line.text)).for_each(|line| line.text = "");
    }
    listings
}

/// Parses words in hexadecimal: 16 digits, optionally with `0x` before them and `_` between the halves; one or more
/// words a line.
///
/// # Errors
/// At the first token that is not a word.
pub fn words(text: &str) -> Result<Vec<u64>, ListingError> {
    let mut words = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for token in line.split([' ', '\t', ',']).filter(|token| !token.is_empty()) {
            let column = token.as_ptr() as usize - line.as_ptr() as usize + 1;
            match word(token) {
                Some(word) => words.push(word),
                None => {
                    let expected = "a word in hexadecimal, 16 digits".to_owned();
                    return Err(ListingError { line: index + 1, column, expected });
                }
            }
        }
    }
    Ok(words)
}

fn word(token: &str) -> Option<u64> {
    let digits = token.strip_prefix("0x").unwrap_or(token);
    let digits = digits.replacen('_', "", 1);
    let fits = digits.len() == 16 && digits.bytes().all(|c| c.is_ascii_hexdigit());
    fits.then(|| u64::from_str_radix(&digits, 16).ok()).flatten()
}

/// An entry of disassembled code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A label, `l30`, before the instruction at this position.
    Label(u32),
    /// A word at a position, with its text.
    Instr(u32, u64, Result<String, NotAnInstruction>),
}

impl Item {
    /// Its line in assembly.
    pub fn assembly(&self) -> String {
        match self {
            Self::Label(ip) => format!("l{ip}:"),
            Self::Instr(_, _, Ok(text)) => text.clone(),
            Self::Instr(_, word, Err(error)) => format!(".word 0x{word:016x}\t; {error}"),
        }
    }

    /// Its text in Mesa's tools.
    fn listed(&self) -> String {
        match self {
            Self::Instr(_, word, Err(NotAnInstruction::Unknown { .. })) => format!("no match: {word:016x}"),
            _ => self.assembly(),
        }
    }
}

/// Disassembles code: labels before the instructions to which others branch.
pub fn disassemble(generation: Generation, words: &[u64]) -> Vec<Item> {
    disassemble_at(generation, words, 0)
}

/// Like [`disassemble`], for code whose first instruction has this position.
pub fn disassemble_at(generation: Generation, words: &[u64], first: u32) -> Vec<Item> {
    let count = first + words.len() as u32;
    let mut targets = FxHashSet::default();
    let texts: Vec<_> = (first..)
        .zip(words)
        .map(|(ip, &word)| {
            let mut text = String::new();
            encoding::disassemble(generation, word, Some(Position { ip, count }), &mut text)?;
            if let Some((_, label)) = text.split_once("#l") {
                let digits = label.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
                targets.extend(digits.parse::<u32>());
            }
            Ok(text)
        })
        .collect();
    let mut items = Vec::with_capacity(words.len());
    for ((ip, text), &word) in (first..).zip(texts).zip(words) {
        if targets.contains(&ip) {
            items.push(Item::Label(ip));
        }
        items.push(Item::Instr(ip, word, text));
    }
    items
}

/// The items, each with its position and the word of its instruction.
fn with_words(items: &[Item]) -> impl Iterator<Item = (u32, u64, &Item)> {
    let mut words: Vec<(u32, u64, &Item)> = Vec::with_capacity(items.len());
    let mut next = 0;
    for item in items.iter().rev() {
        let ip = match item {
            Item::Label(ip) => *ip,
            Item::Instr(ip, word, _) => {
                next = *word;
                *ip
            }
        };
        words.push((ip, next, item));
    }
    words.into_iter().rev()
}

/// The items as the hex listing in Mesa's logs.
pub fn write(items: &[Item]) -> String {
    let mut out = String::new();
    for (ip, word, item) in with_words(items) {
        let _ = writeln!(out, "{ip:04}[{:08x}_{:08x}] {}", word >> 32, word & 0xffff_ffff, item.listed());
    }
    out
}

/// The items as `ir3-disasm` prints them.
pub fn write_disasm(items: &[Item]) -> String {
    let mut out = String::new();
    for (ip, word, item) in with_words(items) {
        let _ = writeln!(out, "{ip:3}[{:08x}_{:08x}] {}", word >> 32, word & 0xffff_ffff, item.listed());
    }
    out
}

/// The items as `cffdump` and `crashdec` print them, without tabs before the lines: up to the fourth `nop` after the
/// end, or up to `chsh`.
pub fn write_dump(items: &[Item]) -> String {
    let mut out = String::new();
    let (mut cycles, mut nops, mut has_end) = (0, 0, false);
    for (ip, word, item) in with_words(items) {
        let text = item.listed();
        let category = word >> 61;
        let _ = writeln!(
            out,
            ":{category}:{ip:04}:{:04}[{:08x}x_{:08x}x] {text}",
            cycles + ip,
            word >> 32,
            word & 0xffff_ffff
        );
        let Item::Instr(_, _, Ok(text)) = item else { continue };
        let count = |flag: &str| {
            let rest = text.split_once(flag).map_or("", |(_, rest)| rest);
            rest.split(')').next().and_then(|digits| digits.parse::<u32>().ok()).unwrap_or_default()
        };
        cycles += count("(rpt") + count("(nop");
        let mnemonic = text.rsplit(')').next().unwrap_or_default().trim();
        nops = if mnemonic == "nop" { nops + u32::from(has_end) } else { 0 };
        has_end |= mnemonic == "end";
        if nops > 3 || mnemonic == "chsh" {
            break;
        }
    }
    out
}

/// The items as assembly, without positions and words.
pub fn write_plain(items: &[Item]) -> String {
    items.iter().map(|item| item.assembly() + "\n").collect()
}

/// Code that was assembled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assembled {
    /// The words.
    pub words: Vec<u64>,
    /// The line of each word in the text, from 0 on.
    pub lines: Vec<u32>,
    /// The lines that begin with `@`, with their numbers.
    pub directives: Vec<(u32, Directive)>,
}

/// An instruction before it is assembled.
struct Statement<'a> {
    line: usize,
    column: usize,
    /// Flags from the end of the line before.
    flags: String,
    text: &'a str,
}

/// `(rpt5)nop` and `(ss)(sy)nop`.
const FULL_NOP: u64 = 0x0000_0500_0000_0000;
const FULL_SYNC: u64 = 0x1000_1000_0000_0000;

/// Assembles code. Lines of a listing are taken by their text.
///
/// # Errors
/// At the first line that is no instruction, or that uses a label which is not defined or defined twice.
pub fn assemble(generation: Generation, text: &str) -> Result<Vec<u64>, ListingError> {
    assembled(generation, text).map(|code| code.words)
}

/// Like [`assemble`], with the lines of the instructions and the directives.
///
/// # Errors
/// As for [`assemble`].
pub fn assembled(generation: Generation, text: &str) -> Result<Assembled, ListingError> {
    let mut labels: FxHashMap<&str, u32> = FxHashMap::default();
    let mut code = Assembled::default();
    // Words that are known, and instructions.
    let mut statements: Vec<Result<(usize, u64), Statement>> = Vec::new();
    let (mut nops, mut syncs) = (false, false);
    let mut flags = String::new();
    for (index, original) in text.lines().enumerate() {
        let line = Line::read(original).map_or(original, |line| line.text);
        let line = line.split_once("//").map_or(line, |(before, _)| before);
        let bare = line.split_once(';').map_or(line, |(before, _)| before).trim();
        let column = |part: &str| part.as_ptr() as usize - original.as_ptr() as usize + 1;
        let error = |part: &str, expected: &str| ListingError {
            line: index + 1,
            column: column(part),
            expected: expected.to_owned(),
        };
        // Mesa prints the width of a fragment shader's dispatch before its assembly.
        if bare.is_empty() || bare.strip_prefix("SIMD").is_some_and(|width| width.parse::<u32>().is_ok()) {
            continue;
        }
        if bare.starts_with('@') {
            let directive = Directive::read(bare).map_err(|(at, expected)| error(&bare[at..], expected))?;
            match directive {
                Directive::FullNop(is_on) => nops = is_on,
                Directive::FullSync(is_on) => syncs = is_on,
                _ => {}
            }
            code.directives.push((index as u32, directive));
            continue;
        }
        let (mut rest, mut is_labelled) = (line.trim_start(), false);
        while let Some((label, after)) =
            rest.split_once(':').filter(|(label, _)| !label.contains([' ', '\t', '(', ';']))
        {
            let is_name = label.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
                && label.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if !is_name || labels.insert(label, statements.len() as u32).is_some() {
                return Err(error(rest, "a label that is there once"));
            }
            (rest, is_labelled) = (after.trim_start(), true);
        }
        if is_labelled && rest.split(';').next().is_some_and(|bare| bare.trim().is_empty()) {
            continue;
        }
        let (text, trailing) = without_trailing_flags(rest);
        if text.trim().is_empty() {
            flags += &trailing;
            continue;
        }
        statements.extend(
            [(nops, FULL_NOP), (syncs, FULL_SYNC)]
                .into_iter()
                .filter(|(is_on, _)| *is_on)
                .map(|(_, word)| Ok((index, word))),
        );
        statements.push(Err(Statement {
            line: index,
            column: column(rest),
            flags: std::mem::replace(&mut flags, trailing),
            text,
        }));
    }
    if !flags.is_empty() {
        let (line, column) = (text.lines().count(), text.lines().last().map_or(0, str::len) + 1);
        return Err(ListingError { line, column, expected: format!("an instruction after {flags}") });
    }
    let find = |name: &str| labels.get(name).copied();
    for (ip, statement) in statements.iter().enumerate() {
        let (line, word) = match statement {
            Ok(known) => *known,
            Err(Statement { line, column, flags, text }) => {
                let error =
                    |at: usize, expected: String| ListingError { line: line + 1, column: column + at, expected };
                let raw = [".word", "no match:", "raw "]
                    .iter()
                    .find_map(|start| Some((start.len(), text.strip_prefix(start)?)));
                let word = if let Some((at, rest)) = raw {
                    let token = rest.split(';').next().unwrap_or_default().trim();
                    word(token).ok_or_else(|| error(at, "a word in hexadecimal, 16 digits".to_owned()))?
                } else {
                    encoding::assemble(generation, &format!("{flags}{text}"), ip as u32, &find).map_err(|failure| {
                        error((failure.column - 1).saturating_sub(flags.len()), failure.expected.into_owned())
                    })?
                };
                (*line, word)
            }
        };
        code.words.push(word);
        code.lines.push(line as u32);
    }
    Ok(code)
}

/// A line without the flags at its end, which are those of the next instruction: `nop(sy)`, or `(sy)` alone.
fn without_trailing_flags(line: &str) -> (&str, String) {
    let mut text = line.split(';').next().unwrap_or_default();
    let mut flags = String::new();
    while let Some(open) = text.trim_end().strip_suffix(')').and_then(|body| body.rfind('(')) {
        let flag = text[open..].trim_end();
        let name = &flag[1..flag.len() - 1];
        let is_count =
            |start: &str| name.strip_prefix(start).is_some_and(|count| matches!(count.as_bytes(), [b'0'..=b'7']));
        if !["sy", "ss", "jp", "eq", "sat", "ul"].contains(&name) && !is_count("rpt") && !is_count("nop") {
            break;
        }
        flags.insert_str(0, flag);
        text = &text[..open];
    }
    // Without them, a comment may have bits of the word.
    if flags.is_empty() { (line, flags) } else { (text, flags) }
}

/// The code as bytes, each word with its least significant byte first.
pub fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The words of bytes; `None` if a part of a word is left.
pub fn from_bytes(bytes: &[u8]) -> Option<Vec<u64>> {
    let (words, rest) = bytes.as_chunks::<8>();
    rest.is_empty().then(|| words.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
}
