//! Texts that were copied from somewhere: other encodings, and additions of mail, web pages and tools around each line.
//!
//! All of it is removed line by line, so that lines keep their numbers.

use std::borrow::Cow;

/// The compressions that are recognised by their first bytes, and the command that undoes each.
const COMPRESSED: [(&[u8], &str, &str); 5] = [
    (&[0x1f, 0x8b], "gzip", "gunzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "unzstd"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"PK\x03\x04", "zip", "unzip"),
];

/// The compression of a file and the command that undoes it, by its first bytes.
pub fn compression(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    COMPRESSED.iter().find(|(magic, ..)| bytes.starts_with(magic)).map(|&(_, name, command)| (name, command))
}

/// Decodes UTF-16, which has a mark at its start, or a zero in every second byte.
pub fn from_utf16(bytes: &[u8]) -> Option<String> {
    let start = &bytes[..bytes.len().min(64)];
    let zeros = |parity: usize| start.iter().skip(parity).step_by(2).filter(|&&byte| byte == 0).count() * 4;
    let is_wide = |parity: usize| start.len() >= 8 && zeros(parity) > start.len() && zeros(1 - parity) == 0;
    let (skipped, little) = match bytes {
        [0xff, 0xfe, ..] => (2, true),
        [0xfe, 0xff, ..] => (2, false),
        _ if is_wide(1) => (0, true),
        _ if is_wide(0) => (0, false),
        _ => return None,
    };
    let pairs = bytes[skipped..].chunks_exact(2).map(|pair| [pair[0], pair[1]]);
    let units = pairs.map(|pair| if little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) });
    Some(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

/// Returns true if a text, or its start, has something that [`unwrap`] removes.
pub fn is_wrapped(text: &str) -> bool {
    matches!(unwrap(text), Cow::Owned(_))
}

/// Removes quotation marks of mail, numbers of lines, fences, and the tags and entities of web pages.
pub fn unwrap(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if text.contains(['\u{a0}', '\u{200b}', '\u{feff}']) {
        text = Cow::Owned(text.replace('\u{a0}', " ").replace(['\u{200b}', '\u{feff}'], ""));
    }
    for step in [without_html, without_fences, without_quotes, without_numbers] {
        if let Some(plain) = step(&text) {
            text = Cow::Owned(plain);
        }
    }
    text
}

/// Replaces each line.
fn map_lines<'a>(text: &'a str, line: impl Fn(&'a str) -> &'a str) -> String {
    text.split_inclusive('\n')
        .flat_map(|full| {
            let bare = full.trim_end_matches(['\n', '\r']);
            [line(bare), &full[bare.len()..]]
        })
        .collect()
}

const TAGS: [&str; 20] = [
    "html",
    "head",
    "body",
    "pre",
    "code",
    "br",
    "p",
    "div",
    "span",
    "td",
    "tr",
    "table",
    "tbody",
    "a",
    "b",
    "i",
    "font",
    "blockquote",
    "li",
    "ul",
];

/// The length of a tag at the start of a text, and its name.
fn tag(text: &str) -> Option<(usize, &str)> {
    let inner = text.strip_prefix('<')?;
    let inner = inner.strip_prefix('/').unwrap_or(inner);
    let name = &inner[..inner.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inner.len())];
    let is_end = inner[name.len()..].starts_with(['>', ' ', '/']);
    (is_end && TAGS.contains(&&*name.to_ascii_lowercase())).then_some(())?;
    Some((text.find('>')? + 1, name))
}

fn entity(text: &str) -> Option<(usize, char)> {
    let end = text[..text.len().min(10)].find(';')?;
    let name = &text[1..end];
    let c = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => match name.strip_prefix("#x").map(|digits| u32::from_str_radix(digits, 16)) {
            Some(number) => char::from_u32(number.ok()?)?,
            None => char::from_u32(name.strip_prefix('#')?.parse().ok()?)?,
        },
    };
    Some((end + 1, c))
}

fn without_html(text: &str) -> Option<String> {
    let (mut out, mut any, mut at) = (String::with_capacity(text.len()), false, 0);
    while let Some(next) = text[at..].find(['<', '&']).map(|next| at + next) {
        out.push_str(&text[at..next]);
        let rest = &text[next..];
        if let Some((length, name)) = tag(rest) {
            any = true;
            at = next + length;
            if name.eq_ignore_ascii_case("br") && !text[at..].starts_with(['\n', '\r']) && !text[at..].is_empty() {
                out.push('\n');
            }
        } else if let Some((length, c)) = rest.starts_with('&').then(|| entity(rest)).flatten() {
            any = true;
            at = next + length;
            out.push(c);
        } else {
            out.push_str(&rest[..1]);
            at = next + 1;
        }
    }
    out.push_str(&text[at..]);
    any.then_some(out)
}

fn without_fences(text: &str) -> Option<String> {
    let is_fence = |line: &str| {
        let line = line.trim();
        line.starts_with("```") && !line[3..].contains([' ', '`']) || line.starts_with("~~~")
    };
    text.lines().any(is_fence).then(|| map_lines(text, |line| if is_fence(line) { "" } else { line }))
}

/// The lines that have more than blanks.
fn full_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty())
}

fn without_quotes(text: &str) -> Option<String> {
    let (mut plain, mut any) = (Cow::Borrowed(text), false);
    while full_lines(&plain).next().is_some() && full_lines(&plain).all(|line| line.trim_start().starts_with('>')) {
        let stripped = map_lines(&plain, |line| {
            let Some(rest) = line.trim_start().strip_prefix('>') else { return line };
            rest.strip_prefix(' ').unwrap_or(rest)
        });
        (plain, any) = (Cow::Owned(stripped), true);
    }
    any.then(|| plain.into_owned())
}

/// The number at the start of a line, the separator, and the rest.
fn numbered(line: &str) -> Option<(u32, &str)> {
    let line = line.trim_start();
    let digits = &line[..line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len())];
    let rest = &line[digits.len()..];
    let rest = match rest.chars().next() {
        None => "",
        // `0001:0001:000: mov …` and `0007:0019[…` are lines of their own.
        Some(':' | '|' | ')' | '.') if !rest[1..].starts_with(|c: char| c.is_ascii_digit()) => &rest[1..],
        Some('\t') => return Some((digits.parse().ok()?, &rest[1..])),
        Some(' ') => rest,
        _ => return None,
    };
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    Some((digits.parse().ok()?, rest.strip_prefix("│ ").or_else(|| rest.strip_prefix("| ")).unwrap_or(rest)))
}

fn without_numbers(text: &str) -> Option<String> {
    // A start of the text ends in the middle of a line.
    let whole = match text.ends_with('\n') {
        true => text,
        false => text.rsplit_once('\n').map_or(text, |(whole, _)| whole),
    };
    let mut lines = full_lines(whole);
    let (first, _) = numbered(lines.next()?)?;
    let mut before = first;
    let mut count = 1;
    for line in lines {
        let (number, _) = numbered(line)?;
        // Blank lines have numbers, or not.
        if number <= before || number - before > 3 {
            return None;
        }
        (before, count) = (number, count + 1);
    }
    (count > 1).then(|| map_lines(text, |line| numbered(line).map_or(line, |(_, rest)| rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappings_are_removed() {
        for (text, expected) in [
            ("> nop\n> end\n", "nop\nend\n"),
            (">> nop\n>\n>> end\n", "nop\n\nend\n"),
            ("  1: nop\n  2: end\n", "nop\nend\n"),
            ("1\tnop\n2\tend\n", "nop\nend\n"),
            ("7 | nop\n8 | end\n", "nop\nend\n"),
            ("```asm\nnop\n```\n", "\nnop\n\n"),
            ("<pre>mov r0.x, r&lt;a0.x + 5&gt;<br>end</pre>\n", "mov r0.x, r<a0.x + 5>\nend\n"),
            ("<span class=\"x\">nop</span>\nend&#59;\n", "nop\nend;\n"),
            ("nop\u{a0}\nend\n", "nop \nend\n"),
        ] {
            assert_eq!(unwrap(text), expected, "{text}");
        }
        for text in [
            "mov.u32u32 r0.x, r<a0.x + 5>\nend\n",
            "0001:0001:000: nop\n0002:0002:000: end\n",
            "0000:0000[00000000x_00000000x] nop\n0001:0001[03000000x_00000000x] end\n",
            "  0[00000000_00000000] nop\n  1[03000000_00000000] end\n",
            "a > b\n> c\n",
            "1: nop\nend\n",
        ] {
            assert!(matches!(unwrap(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn encodings_are_recognised() {
        let wide: Vec<u8> = "nop\nend\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(from_utf16(&wide).as_deref(), Some("nop\nend\n"));
        let marked: Vec<u8> = "\u{feff}end\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(from_utf16(&marked).as_deref(), Some("end\n"));
        assert_eq!(from_utf16(b"nop\nend\nnop\n"), None);
        assert_eq!(compression(&[0x1f, 0x8b, 8]), Some(("gzip", "gunzip")));
        assert_eq!(compression(b"nop"), None);
    }
}
