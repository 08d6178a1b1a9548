//! Taking log prefixes and colours off a line.
//!
//! Mesa puts `MESA: info: ` before each line that goes through its log, and a terminal may have put colours around that.
//! A warning that another part of the driver logged in between is no part of the program; it reads as a blank line.

use std::borrow::Cow;

/// A line without its log prefix and colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stripped<'a> {
    /// What is left.
    pub text: Cow<'a, str>,
    /// How many characters stood before it.
    pub prefix: u32,
}

/// Takes the prefix and the colours off one line.
#[must_use]
pub fn line(raw: &str) -> Stripped<'_> {
    let plain = without_colours(raw);
    let Some(rest) = plain.strip_prefix("MESA: ") else {
        return Stripped { text: plain, prefix: 0 };
    };
    if let Some(rest) = rest.strip_prefix("info:").or_else(|| rest.strip_prefix("debug:")) {
        // An editor that trims trailing blanks leaves `MESA: info:` of an empty line.
        let text = rest.strip_prefix(' ').unwrap_or(rest);
        let prefix = (plain.len() - text.len()) as u32;
        let text = match plain {
            Cow::Borrowed(whole) => Cow::Borrowed(&whole[prefix as usize..]),
            Cow::Owned(_) => Cow::Owned(text.to_owned()),
        };
        return Stripped { text, prefix };
    }
    if rest.starts_with("warning:") || rest.starts_with("error:") {
        return Stripped { text: Cow::Borrowed(""), prefix: 0 };
    }
    Stripped { text: plain, prefix: 0 }
}

/// Takes the prefix and the colours off every line of a text. The lines stay the same in number.
#[must_use]
pub fn text(raw: &str) -> Cow<'_, str> {
    if !raw.contains("MESA: ") && !raw.contains('\x1b') && !raw.contains('\r') {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    for raw_line in raw.lines() {
        out.push_str(&line(raw_line).text);
        out.push('\n');
    }
    Cow::Owned(out)
}

/// Removes terminal control sequences: escape, `[`, parameters, and one final byte.
fn without_colours(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\x1b') {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\x1b' {
            out.push(c);
        } else if chars.next() == Some('[') {
            chars.by_ref().find(|c| ('@'..='~').contains(c));
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_colours_go() {
        for (raw, text, prefix) in [
            ("MESA: info: block1 {", "block1 {", 12),
            ("MESA: info: ", "", 12),
            ("MESA: info:", "", 11),
            ("MESA: debug: \tx", "\tx", 13),
            ("\x1b[1;32mMESA: info: \x1b[0mmov\x1b[0m x", "mov x", 12),
            ("no \x1b[31mprefix\x1b[m", "no prefix", 0),
            ("MESA: warning: busy", "", 0),
            ("MESA: error: lost", "", 0),
            ("MESA_SHADER", "MESA_SHADER", 0),
            ("MESA: other", "MESA: other", 0),
            ("cut \x1b[3", "cut ", 0),
            ("cut \x1b", "cut ", 0),
        ] {
            let stripped = line(raw);
            assert_eq!((&*stripped.text, stripped.prefix), (text, prefix), "{raw:?}");
        }
    }

    #[test]
    fn a_text_keeps_its_lines() {
        assert_eq!(text("MESA: info: a\r\nMESA: warning: w\nb\n"), "a\n\nb\n");
        assert!(matches!(text("a\nb"), Cow::Borrowed("a\nb")));
    }
}
