//! The tokens of ir3, and errors with positions in a line.

pub(super) use crate::cursor::Cursor;
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

/// The tokens of ir3.
impl Cursor<'_> {
    pub(super) fn expect(&mut self, text: &'static str) -> Parsed<()> {
        if self.eat(text) { Ok(()) } else { fail(self.pos(), format!("`{text}`")) }
    }

    /// A decimal number.
    pub(super) fn number<T: TryFrom<u64>>(&mut self, what: &'static str) -> Parsed<T> {
        let digits = self.peek_while(|c| c.is_ascii_digit());
        // A number that does not fit in 64 bits fits in no other type.
        match digits.parse::<u64>().ok().and_then(|value| T::try_from(value).ok()) {
            Some(value) => {
                self.take(digits);
                Ok(value)
            }
            None => fail(self.pos(), what),
        }
    }

    /// A decimal number with an optional sign.
    pub(super) fn signed<T: TryFrom<i64>>(&mut self, what: &'static str) -> Parsed<T> {
        let start = self.pos();
        let negative = self.eat("-");
        let magnitude: u32 = self.number(what)?;
        let value = if negative { -i64::from(magnitude) } else { i64::from(magnitude) };
        T::try_from(value).or_else(|_| fail(start, what))
    }

    /// A hexadecimal number after `0x`.
    pub(super) fn hex(&mut self, what: &'static str) -> Parsed<u32> {
        let start = self.pos();
        if !self.eat("0x") {
            return fail(start, what);
        }
        let digits = self.take_while(|c| c.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).or_else(|_| fail(start, what))
    }

    /// One of `x`, `y`, `z`, `w`.
    pub(super) fn component(&mut self) -> Parsed<u16> {
        let component = ["x", "y", "z", "w"].iter().position(|letter| self.eat(letter));
        component.map_or_else(|| fail(self.pos(), "a component"), |component| Ok(component as u16))
    }
}
