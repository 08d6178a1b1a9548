//! A line of text with a cursor, and errors with positions in it.

use crate::log_line::LogLine;
use std::borrow::Cow;
use std::fmt;

/// A syntax error and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1; colour codes and prefixes count.
    pub column: usize,
    /// The text found there.
    pub found: String,
    /// The text expected there.
    pub expected: String,
    /// The full message without the position.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

/// An error within a line.
#[derive(Debug)]
pub(super) struct LineError {
    /// Byte offset in the stripped line.
    pub at: usize,
    /// The text expected there.
    pub expected: Cow<'static, str>,
}

pub(super) type Parsed<T> = Result<T, Box<LineError>>;

pub(super) fn fail<T>(at: usize, expected: impl Into<Cow<'static, str>>) -> Parsed<T> {
    Err(Box::new(LineError { at, expected: expected.into() }))
}

impl LineError {
    /// Adds the line's number and its original text, with prefix and colours.
    pub(super) fn located(&self, line: usize, original: &str) -> ParseError {
        let bare = LogLine::of(original);
        let rest = bare.text.get(self.at..).unwrap_or("");
        let end = rest.find([' ', '\t', ',', '}']).filter(|&end| end > 0).unwrap_or(rest.len()).min(rest.len());
        let token: String = rest[..end].chars().take(60).collect();
        let found = if rest.is_empty() { "the end of the line".to_owned() } else { format!("`{token}`") };
        ParseError {
            line,
            column: bare.column(original, self.at),
            message: format!("expected {}, found {found}", self.expected),
            found,
            expected: self.expected.to_string(),
        }
    }
}

/// A position in a line.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    line: &'a str,
    pos: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self { line, pos: 0 }
    }

    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.line[self.pos..]
    }

    pub(super) fn at_end(&self) -> bool {
        self.pos == self.line.len()
    }

    pub(super) fn peek(&self) -> u8 {
        self.line.as_bytes().get(self.pos).copied().unwrap_or(0)
    }

    /// Consumes `text` if it is next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.line.as_bytes()[self.pos..].starts_with(text.as_bytes());
        if found {
            self.pos += text.len();
        }
        found
    }

    pub(super) fn expect(&mut self, text: &'static str) -> Parsed<()> {
        if self.eat(text) { Ok(()) } else { fail(self.pos, format!("`{text}`")) }
    }

    pub(super) fn skip_spaces(&mut self) {
        while matches!(self.peek(), b' ' | b'\t') {
            self.pos += 1;
        }
    }

    /// Consumes everything up to the first of `stops`, or to the end.
    pub(super) fn until(&mut self, stops: &[char]) -> &'a str {
        let rest = self.rest();
        let end = rest.find(stops).unwrap_or(rest.len());
        self.pos += end;
        &rest[..end]
    }

    /// A decimal number.
    pub(super) fn number<T: TryFrom<u64>>(&mut self, what: &'static str) -> Parsed<T> {
        let start = self.pos;
        let mut value = 0u64;
        while self.peek().is_ascii_digit() {
            value = value.saturating_mul(10).saturating_add(u64::from(self.peek() - b'0'));
            self.pos += 1;
        }
        match T::try_from(value) {
            Ok(value) if self.pos > start => Ok(value),
            _ => {
                self.pos = start;
                fail(start, what)
            }
        }
    }

    /// A decimal number with an optional sign.
    pub(super) fn signed<T: TryFrom<i64>>(&mut self, what: &'static str) -> Parsed<T> {
        let start = self.pos;
        let negative = self.eat("-");
        let magnitude: u32 = self.number(what)?;
        let value = if negative { -i64::from(magnitude) } else { i64::from(magnitude) };
        T::try_from(value).or_else(|_| fail(start, what))
    }

    /// A hexadecimal number after `0x`.
    pub(super) fn hex(&mut self, what: &'static str) -> Parsed<u32> {
        let start = self.pos;
        if !self.eat("0x") {
            return fail(start, what);
        }
        let mut value = 0u64;
        let first = self.pos;
        while let Some(digit) = char::from(self.peek()).to_digit(16) {
            value = (value << 4 | u64::from(digit)).min(u64::from(u32::MAX) + 1);
            self.pos += 1;
        }
        match u32::try_from(value) {
            Ok(value) if self.pos > first => Ok(value),
            _ => fail(start, what),
        }
    }

    /// One of `x`, `y`, `z`, `w`.
    pub(super) fn component(&mut self) -> Parsed<u16> {
        let component = match self.peek() {
            b'x' => 0,
            b'y' => 1,
            b'z' => 2,
            b'w' => 3,
            _ => return fail(self.pos, "a component"),
        };
        self.pos += 1;
        Ok(component)
    }
}
