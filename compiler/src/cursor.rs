//! A position in a line of text, for the readers of both languages. It moves over spaces, words and given tokens; the
//! meaning of a token, and the errors, belong to the readers.

/// A line, and a position in it.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    line: &'a str,
    pos: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(line: &'a str) -> Self {
        Self { line, pos: 0 }
    }

    /// The byte offset in the line.
    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    /// The text before the cursor.
    pub(crate) fn before(&self) -> &'a str {
        &self.line[..self.pos]
    }

    /// The text after the cursor.
    pub(crate) fn rest(&self) -> &'a str {
        &self.line[self.pos..]
    }

    pub(crate) fn at_end(&self) -> bool {
        self.pos == self.line.len()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.pos).copied()
    }

    /// The longest prefix of characters that satisfy `is`; the cursor does not move.
    pub(crate) fn peek_while(&self, is: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        &rest[..rest.find(|c| !is(c)).unwrap_or(rest.len())]
    }

    /// Consumes `text`, which was peeked.
    pub(crate) fn take(&mut self, text: &str) {
        self.pos += text.len();
    }

    /// Consumes `text` if it is next.
    pub(crate) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.take(text);
        }
        found
    }

    /// Consumes and returns the longest prefix of characters that satisfy `is`.
    pub(crate) fn take_while(&mut self, is: impl Fn(char) -> bool) -> &'a str {
        let text = self.peek_while(is);
        self.take(text);
        text
    }

    /// Consumes and returns everything up to the first of `stops`, or to the end.
    pub(crate) fn until(&mut self, stops: &[char]) -> &'a str {
        self.take_while(|c| !stops.contains(&c))
    }

    pub(crate) fn skip_spaces(&mut self) {
        self.take_while(|c| matches!(c, ' ' | '\t'));
    }
}
