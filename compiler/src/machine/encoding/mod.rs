//! The encoding of instructions: one table.
//!
//! An encoding is a `table::Row` of one of the files by category: a mnemonic, the bits that tell the
//! instruction, the generations that have it, and a `table::Form`, which instructions of one layout share: its
//! `field::Field`s (a name, bits, a `field::Kind` that determines their text, and the role of the source that they
//! hold, for memory instructions), and a text in
//! which the names of fields stand in braces, `{SY}{NAME} {DST}, {SRC1}`. `print` and `parse` interpret it.
//!
//! The text is that of Mesa's disassembler. Words that differ from what their text assembles to (bits that the hardware
//! ignores, as far as is known; floats whose text is rounded) have a comment with the difference, which the assembler
//! reads back: so every word that is an instruction survives both ways.

mod alu;
mod barrier;
mod field;
mod flags;
mod flow;
mod instr;
mod memory;
mod moves;
mod parse;
mod print;
mod table;
#[cfg(test)]
mod tests;
mod texture;
mod widths;

pub use field::FieldName;
pub use flags::word_flags;
pub use instr::{DecodeError, Decoded, EncodeError, decode, encode};
pub use parse::{AssembleError, Labels, assemble};
pub use print::Position;

use crate::target::Generation;
use print::Printer;
use std::fmt::Write;
use table::Table;

/// A word that no instruction of the generation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnInstruction {
    /// No encoding has its fixed bits.
    #[error("not an instruction of a{generation}xx: {word:016x}", generation = .generation.number())]
    Unknown {
        /// The word.
        word: u64,
        /// The generation.
        generation: Generation,
    },
    /// A field holds none of its values.
    #[error("not an instruction: {word:016x}, `{name}` with an unknown {field}")]
    Field {
        /// The word.
        word: u64,
        /// The mnemonic.
        name: &'static str,
        /// The field.
        field: FieldName,
    },
}

/// The mnemonic of a word.
pub fn mnemonic(generation: Generation, word: u64) -> Option<&'static str> {
    Table::of(generation).find(word).map(|encoding| encoding.name)
}

/// Returns true if a line is an instruction of some generation, or begins like one: it has flags and a mnemonic with a
/// dot.
pub fn begins_instruction(line: &str) -> bool {
    let mut rest = line.trim_start();
    while let Some((_, after)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        rest = after.trim_start();
    }
    let mnemonic =
        &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_').unwrap_or(rest.len())];
    let is_name = |name: &str| Generation::ALL.into_iter().any(|its| !Table::of(its).named(name).is_empty());
    let mut name = mnemonic;
    while name.contains('.') {
        if is_name(name)
            || is_name(&name[..name.rfind('.').unwrap_or(0)]) && rest[mnemonic.len()..].starts_with([' ', '\t'])
        {
            return true;
        }
        name = &name[..name.rfind('.').unwrap_or(0)];
    }
    is_name(mnemonic) && Generation::ALL.into_iter().any(|its| assemble(its, line, 0, &|_| Some(0)).is_ok())
}

/// Writes the text of a word.
///
/// # Errors
/// If the word is no instruction of the generation.
pub fn disassemble(
    generation: Generation,
    word: u64,
    position: Option<Position>,
    out: &mut String,
) -> Result<(), NotAnInstruction> {
    let Some(encoding) = Table::of(generation).find(word) else {
        return Err(NotAnInstruction::Unknown { word, generation });
    };
    let start = out.len();
    let mut printer = Printer { encoding, word, generation, position, out };
    if let Err(field) = printer.run() {
        out.truncate(start);
        return Err(NotAnInstruction::Field { word, name: encoding.name, field });
    }
    let labels = |name: &str| name.strip_prefix('l').and_then(|digits| digits.parse().ok());
    let ip = position.map_or(0, |position| position.ip);
    if let Ok(said) = assemble(generation, &out[start..], ip, &labels)
        && said != word
    {
        let _ = write!(out, "\t; dontcare bits in {}: {:016x}", encoding.name, said ^ word);
    }
    Ok(())
}
