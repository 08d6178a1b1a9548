//! Texts of machine code: listings as in Mesa's logs, words in hexadecimal, and assembly with labels.
//!
//! A line of a listing is an instruction's position, its word as two halves, and its text: `0012[03000000_00000000]
//! end`. A label has a line of its own, with the position and the word of the instruction that follows. In assembly the
//! positions and words are left out; `.word 0x…` is any word, and a comment goes from `;` or `//` to the end of the line.

use super::encoding::{self, NotAnInstruction, Position};
use crate::target::Generation;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// A line of a listing that is an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListingLine<'a> {
    /// The line in the text, from 0 on.
    pub line: u32,
    /// Position.
    pub ip: u32,
    /// Word.
    pub word: u64,
    /// Text.
    pub text: &'a str,
}

/// Code in a text that has several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing<'a> {
    /// The generation, if a line before says it: `; gpu gen 6, …`.
    pub generation: Option<Generation>,
    /// The instructions.
    pub lines: Vec<ListingLine<'a>>,
}

/// A line that is no line of machine code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: expected {expected}")]
pub struct ListingError {
    /// Line, from 1 on.
    pub line: usize,
    /// Column, from 1 on.
    pub column: usize,
    /// What was expected.
    pub expected: String,
}

/// The position, the word and the text of a line of a listing; the text of a label ends in a colon.
fn listing_line(line: &str) -> Option<(u32, u64, &str)> {
    let (ip, rest) = line.split_once('[')?;
    let (word, text) = rest.split_once(']')?;
    let (high, low) = word.split_once('_')?;
    let digits = |text: &str| text.len() == 8 && text.bytes().all(|c| c.is_ascii_hexdigit());
    if ip.is_empty() || !ip.bytes().all(|c| c.is_ascii_digit()) || !digits(high) || !digits(low) {
        return None;
    }
    let half = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((ip.parse().ok()?, half(high)? << 32 | half(low)?, text.trim()))
}

fn generation(line: &str) -> Option<Generation> {
    let number: u32 = line.split_once("; gpu gen ")?.1.split(',').next()?.parse().ok()?;
    Generation::ALL.into_iter().find(|generation| generation.number() == number)
}

/// The listings in a text, such as a log; each begins with position 0. Lines that are none of a listing are skipped.
pub fn listings(text: &str) -> Vec<Listing<'_>> {
    let mut listings: Vec<Listing> = Vec::new();
    let mut said = None;
    for (index, line) in text.lines().enumerate() {
        said = generation(line).or(said);
        let Some((ip, word, text)) = listing_line(line) else { continue };
        if text.ends_with(':') {
            continue;
        }
        if ip == 0 || listings.is_empty() {
            listings.push(Listing { generation: said, lines: Vec::new() });
        }
        if let Some(listing) = listings.last_mut() {
            listing.lines.push(ListingLine { line: index as u32, ip, word, text });
        }
    }
    listings
}

/// Words in hexadecimal: 16 digits, with `0x` before them and `_` between the halves if you like; one or more a line.
///
/// # Errors
/// At the first that is none.
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

/// Something that stands in disassembled code.
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
}

/// Disassembles code: labels before the instructions to which others branch.
pub fn disassemble(generation: Generation, words: &[u64]) -> Vec<Item> {
    let count = words.len() as u32;
    let mut targets = FxHashSet::default();
    let texts: Vec<_> = words
        .iter()
        .enumerate()
        .map(|(ip, &word)| {
            let mut text = String::new();
            let position = Position { ip: ip as u32, count };
            encoding::disassemble(generation, word, Some(position), &mut text)?;
            if let Some((_, label)) = text.split_once("#l") {
                let digits = label.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
                targets.extend(digits.parse::<u32>());
            }
            Ok(text)
        })
        .collect();
    let mut items = Vec::with_capacity(words.len());
    for (ip, (text, &word)) in texts.into_iter().zip(words).enumerate() {
        if targets.contains(&(ip as u32)) {
            items.push(Item::Label(ip as u32));
        }
        items.push(Item::Instr(ip as u32, word, text));
    }
    items
}

/// The items as a listing, as in Mesa's logs.
pub fn write(items: &[Item]) -> String {
    let mut out = String::new();
    let word_at = |from: usize| {
        items[from..].iter().find_map(|item| if let Item::Instr(_, word, _) = item { Some(*word) } else { None })
    };
    for (i, item) in items.iter().enumerate() {
        let (Item::Label(ip) | Item::Instr(ip, ..)) = item;
        let word = word_at(i).unwrap_or_default();
        let _ = writeln!(out, "{ip:04}[{:08x}_{:08x}] {}", word >> 32, word & 0xffff_ffff, item.assembly());
    }
    out
}

/// The items as assembly, without positions and words.
pub fn write_plain(items: &[Item]) -> String {
    items.iter().map(|item| item.assembly() + "\n").collect()
}

/// Assembles code. Lines of a listing are taken by their text.
///
/// # Errors
/// At the first line that is no instruction, or that uses a label which is not there or is there twice.
pub fn assemble(generation: Generation, text: &str) -> Result<Vec<u64>, ListingError> {
    let mut labels: FxHashMap<&str, u32> = FxHashMap::default();
    let mut lines = Vec::new();
    for (index, original) in text.lines().enumerate() {
        let line = listing_line(original).map_or(original, |(_, _, text)| text);
        let line = line.split_once("//").map_or(line, |(before, _)| before);
        let bare = line.split_once(';').map_or(line, |(before, _)| before).trim();
        let column = bare.as_ptr() as usize - original.as_ptr() as usize + 1;
        // Mesa prints the width of a fragment shader's dispatch before its assembly.
        if bare.is_empty() || bare.strip_prefix("SIMD").is_some_and(|width| width.parse::<u32>().is_ok()) {
            continue;
        }
        if let Some(label) = bare.strip_suffix(':') {
            let is_name = label.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
                && label.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if !is_name || labels.insert(label, lines.len() as u32).is_some() {
                let expected = "a label that is there once".to_owned();
                return Err(ListingError { line: index + 1, column, expected });
            }
            continue;
        }
        lines.push((index, column, line.trim_start()));
    }
    let find = |name: &str| labels.get(name).copied();
    let assemble = |(ip, &(index, column, line)): (usize, &(usize, usize, &str))| {
        let error = |at: usize, expected: String| ListingError { line: index + 1, column: column + at, expected };
        if let Some(rest) = line.strip_prefix(".word") {
            let token = rest.split(';').next().unwrap_or_default().trim();
            return word(token).ok_or_else(|| error(5, "a word in hexadecimal, 16 digits".to_owned()));
        }
        let assembled = encoding::assemble(generation, line, ip as u32, &find);
        assembled.map_err(|failure| error(failure.column - 1, failure.expected.into_owned()))
    };
    lines.iter().enumerate().map(assemble).collect()
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
