//! Lines of Mesa's log without prefixes and colours.
//!
//! Mesa writes `MESA: info: ` before each line that it logs, and a log of a log has it twice; a terminal may have added
//! control sequences. On Android it logs through the system, whose lines begin with a time and a tag, or with a tag
//! alone. A warning that another part of the driver logged in between is not part of the program: it reads as an empty
//! line.

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
            if has_controls(raw) { Cow::Owned(visible(raw).map(|(_, c)| c).collect()) } else { Cow::Borrowed(raw) };
        let (mut prefix, mut is_message) = logcat(&plain).unwrap_or_default();
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
        // Blanks at the end, as a copy from a terminal has, are no part of the name of a pass.
        let text = match plain {
            Cow::Borrowed(whole) => Cow::Borrowed(whole[prefix..].trim_end()),
            Cow::Owned(mut whole) => {
                let mut text = whole.split_off(prefix);
                text.truncate(text.trim_end().len());
                Cow::Owned(text)
            }
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

/// The length of the prefix of a line of Mesa in Android's log, and whether it is a warning or an error:
/// `01-17 11:45:42.123  1234  1240 I MESA    : `, or `I/MESA    ( 1234): `.
fn logcat(line: &str) -> Option<(usize, bool)> {
    let is_time = line.starts_with(|c: char| c.is_ascii_digit()) && line.get(2..3) == Some("-");
    let (before, rest) = match is_time {
        true => {
            line.split_once(" MESA ").or_else(|| line.split_once(" MESA:").map(|(a, _)| (a, &line[a.len() + 5..])))?
        }
        false => line.get(..6)?.ends_with("/MESA").then(|| (&line[..1], &line[6..])).filter(|_| line.len() > 6)?,
    };
    let level = before.chars().next_back().filter(|level| "VDIWEF".contains(*level))?;
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(process) => process.split_once(')')?.1,
        None => rest,
    };
    let text = rest.strip_prefix(':')?;
    // The level is a word of its own.
    let is_word = !is_time || before.len() >= 2 && before[..before.len() - 1].ends_with(' ');
    let text = text.strip_prefix(' ').unwrap_or(text);
    is_word.then(|| (line.len() - text.len(), "WEF".contains(level)))
}

/// Returns true if a line has a control sequence.
fn has_controls(raw: &str) -> bool {
    raw.contains(ESCAPE) || raw.match_indices('[').any(|(at, _)| colour(&raw[at..]).is_some())
}

/// The characters of a line that a terminal shows, with their positions.
fn visible(raw: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut place, mut rest) = (0, raw);
    std::iter::from_fn(move || {
        while let Some(length) = control(rest) {
            place += rest[..length].chars().count();
            rest = &rest[length..];
        }
        let c = rest.chars().next()?;
        rest = &rest[c.len_utf8()..];
        place += 1;
        Some((place - 1, c))
    })
}

/// The length of the control sequence with which a text begins: ESC, `[`, parameters, and one final byte; an
/// unterminated one extends to the end of the line. Copies of a terminal have colours with `^[` for ESC, or without it.
fn control(text: &str) -> Option<usize> {
    let Some(rest) = text.strip_prefix(ESCAPE) else {
        return match text.strip_prefix("^[") {
            Some(rest) => colour(rest).map(|length| 2 + length),
            None => colour(text),
        };
    };
    let next = rest.chars().next().map_or(0, char::len_utf8);
    Some(match rest.strip_prefix('[') {
        Some(parameters) => match parameters.find(|c| ('@'..='~').contains(&c)) {
            Some(last) => 1 + next + last + 1,
            None => text.len(),
        },
        None => 1 + next,
    })
}

/// The length of a colour, as `[0;34m`, with which a text begins.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix('[')?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    (end > 0 && parameters[end..].starts_with('m')).then_some(end + 2)
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
            ("01-17 11:45:42.123  1234  1240 I MESA    : block1 {", "block1 {", 43),
            ("01-17 11:45:42.123  1234  1240 I MESA    :", "", 42),
            ("01-17 11:45:42.123  1234  1240 W MESA    : busy", "", 0),
            ("I/MESA    ( 1234): \tmov x", "\tmov x", 19),
            ("E/MESA    ( 1234): lost", "", 0),
            (
                "01-17 11:45:42.123  1234  1240 I Gralloc : MESA : x",
                "01-17 11:45:42.123  1234  1240 I Gralloc : MESA : x",
                0,
            ),
            ("12-bit MESA : x", "12-bit MESA : x", 0),
            ("x/MESA : y", "x/MESA : y", 0),
            ("cut \x1b[3", "cut", 0),
            ("cut \x1b", "cut", 0),
            ("MESA: info: AFTER: ir3_cp: ", "AFTER: ir3_cp:", 12),
            // Copied from a terminal.
            ("[1;32mMESA: info: [0mmov[0m x, imm[0.5,1,0x1]", "mov x, imm[0.5,1,0x1]", 12),
            ("^[[1;32mMESA: info: ^[[0mmov x[3], y[m", "mov x[3], y[m", 12),
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
            ("cut \x1b[3", 3, 4),
        ] {
            assert_eq!(LogLine::of(raw).column(raw, at), column, "{raw:?}");
        }
    }
}
