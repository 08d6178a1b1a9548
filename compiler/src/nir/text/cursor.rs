//! The tokens of nir, with the spaces after them, and errors with line and column.

use super::ParseError;
use crate::cursor::Cursor;

/// A position in a line, kept for an error that may come later.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextPosition {
    pub line: u32,
    pub column: u32,
}

/// A cursor over one line of a file.
#[derive(Clone)]
pub(super) struct LineCursor<'a> {
    cursor: Cursor<'a>,
    line: u32,
    /// The number of characters before the text in the line.
    before: u32,
}

impl<'a> LineCursor<'a> {
    pub(super) fn new(text: &'a str, line: u32, before: u32) -> Self {
        let mut cursor = Self { cursor: Cursor::new(text), line, before };
        cursor.spaces();
        cursor
    }

    pub(super) fn line(&self) -> u32 {
        self.line
    }

    pub(super) fn rest(&self) -> &'a str {
        self.cursor.rest()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.cursor.peek()
    }

    pub(super) fn spaces(&mut self) {
        self.cursor.skip_spaces();
    }

    pub(super) fn place(&self) -> TextPosition {
        TextPosition { line: self.line, column: self.before + self.cursor.before().chars().count() as u32 + 1 }
    }

    /// An error at the cursor about the token there.
    pub(super) fn error(&self, expected: impl Into<String>) -> ParseError {
        let rest = self.rest();
        let end = rest.char_indices().skip(1).find(|(_, c)| " \t,()[]{}=".contains(*c)).map_or(rest.len(), |(i, _)| i);
        let token: String = rest[..end].chars().take(60).collect();
        let found = if token.is_empty() { "the end of the line".into() } else { format!("`{token}`") };
        let TextPosition { line, column } = self.place();
        ParseError { line, column, found, expected: expected.into(), message: String::new() }
    }

    /// Consumes `token` and the spaces after it, if it is next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        let found = self.cursor.eat(token);
        if found {
            self.spaces();
        }
        found
    }

    /// Consumes a whole word, if it is next.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let after = self.rest().strip_prefix(word);
        after.is_some_and(|rest| !rest.starts_with(is_word)) && self.eat(word)
    }

    pub(super) fn expect(&mut self, token: &str) -> Result<(), ParseError> {
        match self.eat(token) {
            true => Ok(()),
            false => Err(self.error(format!("`{token}`"))),
        }
    }

    /// The longest prefix of characters that satisfy `is`; the cursor does not move.
    pub(super) fn peek_while(&self, is: impl Fn(char) -> bool) -> &'a str {
        self.cursor.peek_while(is)
    }

    /// Consumes `text`, which was peeked, and the spaces after it.
    pub(super) fn take(&mut self, text: &str) {
        self.cursor.take(text);
        self.spaces();
    }

    /// Consumes `text`, which was peeked, and no spaces.
    pub(super) fn take_exact(&mut self, text: &str) {
        self.cursor.take(text);
    }

    /// The next word of letters, digits and `_`; the cursor does not move.
    pub(super) fn peek_word(&self) -> &'a str {
        self.peek_while(is_word)
    }

    /// A decimal number up to `max`.
    pub(super) fn number(&mut self, max: u64, what: &str) -> Result<u64, ParseError> {
        let digits = self.peek_while(|c| c.is_ascii_digit());
        match digits.parse::<u64>() {
            Ok(number) if number <= max => {
                self.take_exact(digits);
                Ok(number)
            }
            Ok(_) => Err(self.error(format!("{what} of at most {max}"))),
            Err(_) => Err(self.error(what)),
        }
    }

    /// A signed decimal number.
    pub(super) fn signed(&mut self, what: &str) -> Result<i64, ParseError> {
        let digits = self.peek_while(|c| c.is_ascii_digit() || c == '-' || c == '+');
        match digits.parse::<i64>() {
            Ok(number) => {
                self.take_exact(digits);
                Ok(number)
            }
            Err(_) => Err(self.error(what)),
        }
    }

    /// Returns the comment that ends the line, if any; other text is an error.
    pub(super) fn end(&mut self) -> Result<Option<&'a str>, ParseError> {
        self.spaces();
        if self.rest().is_empty() {
            return Ok(None);
        }
        match self.rest().strip_prefix("//") {
            Some(comment) => Ok(Some(comment.trim())),
            None => Err(self.error("the end of the line")),
        }
    }

    /// Returns true if only a comment is left.
    pub(super) fn at_end(&self) -> bool {
        let rest = self.rest();
        rest.is_empty() || rest.starts_with("//")
    }

    /// Consumes and returns the text up to a closing parenthesis, which is consumed too; the cursor is after the
    /// opening one.
    pub(super) fn group(&mut self) -> Result<&'a str, ParseError> {
        let text = self.cursor.until(&[')']);
        if self.cursor.at_end() {
            return Err(self.error("`)`"));
        }
        self.take(")");
        Ok(text)
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
