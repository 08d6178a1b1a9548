//! Lines of Mesa's log without prefixes and colours.
//!
//! Mesa writes `MESA: info: ` before each line that it logs, and a log of a log has it twice; a terminal may have added
//! control sequences. A warning that another part of the driver logged in between is not part of the program: it reads
//! as an empty line.

use std::borrow::Cow;

const ESCAPE: char = '\x1b';

/// A line without log prefix and control sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// The remaining text.
    pub text: Cow<'a, str>,
    /// Characters of the prefix, control sequences not counted.
    pub prefix: u32,
}

impl LogLine<'_> {
    /// Removes the prefix and the control sequences from one line.
    #[must_use]
    pub fn of(raw: &str) -> LogLine<'_> {
        let raw = raw.trim_end_matches('\r');
        let plain =
            if raw.contains(ESCAPE) { Cow::Owned(visible(raw).map(|(_, c)| c).collect()) } else { Cow::Borrowed(raw) };
        let (mut prefix, mut is_message) = (0, false);
        while let Some(rest) = plain[prefix..].trim_start_matches([' ', '\t']).strip_prefix("MESA: ") {
            if rest.starts_with("warning:") || rest.starts_with("error:") {
                is_message = true;
                break;
            }
            let Some(rest) = rest.strip_prefix("info:").or_else(|| rest.strip_prefix("debug:")) else { break };
            // An editor that trims trailing blanks leaves `MESA: info:` for an empty line.
            prefix = plain.len() - rest.strip_prefix(' ').unwrap_or(rest).len();
        }
        if is_message {
            return LogLine { text: Cow::Borrowed(""), prefix: 0 };
        }
        let text = match plain {
            Cow::Borrowed(whole) => Cow::Borrowed(&whole[prefix..]),
            Cow::Owned(mut whole) => Cow::Owned(whole.split_off(prefix)),
        };
        LogLine { text, prefix: prefix as u32 }
    }

    /// The column in the raw line, from 1, of a byte of the text.
    #[must_use]
    pub fn column(&self, raw: &str, at: usize) -> usize {
        let raw = raw.trim_end_matches('\r');
        let chars = self.text.get(..at).unwrap_or(&self.text).chars().count();
        // All characters of a prefix are one byte long.
        let place = visible(raw).nth(self.prefix as usize + chars);
        place.map_or_else(|| raw.chars().count(), |(place, _)| place) + 1
    }
}

/// The characters of a line that a terminal shows, with their positions. A control sequence is ESC, `[`, parameters,
/// and one final byte; an unterminated one extends to the end of the line.
fn visible(raw: &str) -> impl Iterator<Item = (usize, char)> {
    let mut chars = raw.chars().enumerate();
    std::iter::from_fn(move || {
        loop {
            let (place, c) = chars.next()?;
            if c != ESCAPE {
                return Some((place, c));
            }
            if chars.next().is_some_and(|(_, c)| c == '[') {
                chars.by_ref().find(|(_, c)| ('@'..='~').contains(c));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_colours_are_removed() {
        for (raw, text, prefix) in [
            ("MESA: info: block1 {", "block1 {", 12),
            ("MESA: info: ", "", 12),
            ("MESA: info:", "", 11),
            ("MESA: debug: \tx", "\tx", 13),
            ("MESA: info: MESA: info: x", "x", 24),
            ("\x1b[1;32mMESA: info: \x1b[0mmov\x1b[0m x", "mov x", 12),
            ("\x1b[KMESA: info: mov", "mov", 12),
            ("no \x1b[31mprefix\x1b[m\r", "no prefix", 0),
            ("MESA: warning: busy", "", 0),
            ("MESA: info: MESA: error: lost", "", 0),
            ("MESA_SHADER", "MESA_SHADER", 0),
            ("MESA: other", "MESA: other", 0),
            ("cut \x1b[3", "cut ", 0),
            ("cut \x1b", "cut ", 0),
        ] {
            let line = LogLine::of(raw);
            assert_eq!((&*line.text, line.prefix), (text, prefix), "{raw:?}");
        }
    }

    #[test]
    fn columns_are_those_of_the_raw_line() {
        for (raw, at, column) in [
            ("mov x", 4, 5),
            ("MESA: info: mov x", 4, 17),
            ("\x1b[1;32mMESA: info: \x1b[0mmov\x1b[0m x", 4, 32),
            ("mov x\r", 5, 6),
            ("\x1b[Kmov", 0, 4),
            ("cut \x1b[3", 4, 8),
        ] {
            assert_eq!(LogLine::of(raw).column(raw, at), column, "{raw:?}");
        }
    }
}
