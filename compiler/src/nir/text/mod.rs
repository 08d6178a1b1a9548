//! nir as text, in the syntax of Mesa's nir_print.
//!
//! [`read`] reads one shader from a log or a file; [`write`](fn@write) writes the text that nir_print would
//! print. Reading a written text gives an equal [`Shader`], and writing a shader that Mesa printed gives Mesa's text
//! again (except for the padding, which depends on a counter that nir_print does not print).
//!
//! Lines may have the prefix of Mesa's log and colour codes. `//` begins a comment. Constants repeated after a source
//! (`%6 (0x0)`) and the edges in comments (`// preds: b0`) are skipped, so a handwritten text needs neither.
//!
//! The syntax of Mesa 23.1 is read, too, but not its registers (`decl_reg`); it is written in that of today.

mod cursor;
mod former;
mod inference;
mod instruction;
mod operands;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;

use super::shader::{Info, Shader, Stage};

/// A syntax error and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The text found there.
    pub found: String,
    /// The text expected there.
    pub expected: String,
    /// The subject of the error, where `expected` alone is not clear; may be empty.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: found {}, expected {}", self.line, self.column, self.found, self.expected)?;
        if !self.message.is_empty() {
            write!(f, " ({})", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseError {}

/// Reads one shader.
///
/// # Errors
/// If the text is no shader, or one that is not valid: the line, and why.
pub fn read(text: &str) -> Result<Shader, ParseError> {
    reader::read(text)
}

/// Reads the header of a program in another language that has the declarations of nir.
///
/// # Errors
/// If a line is no declaration, with its place.
pub(crate) fn read_header(text: &str) -> Result<(Stage, Info), ParseError> {
    reader::read_header(text)
}

/// Writes such a header.
pub(crate) fn write_header(stage: Stage, info: &Info) -> String {
    writer::write_header(stage, info)
}

/// Writes a shader.
pub fn write(shader: &Shader) -> String {
    writer::write(shader)
}

impl fmt::Display for Shader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&write(self))
    }
}

impl std::str::FromStr for Shader {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Shader, ParseError> {
        read(text)
    }
}
