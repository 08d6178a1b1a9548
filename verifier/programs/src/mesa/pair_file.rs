//! Programs to be compared, in one file: the one before, a line `// after`, and the one after.
//!
//! A file may have several pairs: a line `// pair NAME` begins each of them. Several programs may follow one: then each
//! line `// after NAME` names the pair. The comments at the beginning of a pair are its head.

use super::input::{InputError, Source};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The line before a program after. A name may follow.
pub const SEPARATOR: &str = "// after";

/// The line before a pair of a file with several, followed by its name.
pub const SECTION: &str = "// pair";

/// Two programs of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPair {
    /// The name, if the line between the programs or the one before the pair has one.
    pub name: Option<String>,
    /// The comments before the program: lines that begin with `// `, without that.
    pub head: Vec<String>,
    /// The number of the first line of the head, from 1 on.
    pub line: usize,
    /// The programs before and after. Positions in both are those in the file.
    pub sources: [Source; 2],
}

/// Reads the pairs of a file.
///
/// # Errors
/// If the file cannot be read, has no line `// after`, has several without names or with equal ones, or a part of it is
/// of no known kind.
pub fn read_pairs(path: &Path) -> Result<Vec<TextPair>, InputError> {
    let Source { path, text, .. } = Source::read(path)?;
    split(&path, &text)
}

/// Reads the pair `FAMILY/NAME` below a folder: the file `FAMILY/NAME.pair`, or the pair `NAME` of another file of the
/// family.
///
/// # Errors
/// If no file of the family has the pair, or one of them cannot be read.
pub fn read_named(folder: &Path, name: &str) -> Result<TextPair, InputError> {
    let file = folder.join(format!("{name}.pair"));
    let (family, name) = name.rsplit_once('/').unwrap_or((".", name));
    let entries = std::fs::read_dir(folder.join(family));
    let entries = entries.map_err(|cause| InputError::Unreadable { path: folder.join(family), cause })?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    // Most pairs are in a file of their own.
    files.sort_by_key(|path| (*path != file, path.clone()));
    for path in &files {
        let pairs = read_pairs(path)?;
        let is_it = |pair: &TextPair| pair.name.as_deref().map_or(*path == file, |its| its == name);
        if let Some(pair) = pairs.into_iter().find(is_it) {
            return Ok(pair);
        }
    }
    Err(InputError::Missing { path: file })
}

/// The name in a line with a marker: `Some(None)` without one, `None` for another line.
fn name_after<'a>(line: &'a str, marker: &str) -> Option<Option<&'a str>> {
    match line.trim_end().strip_prefix(marker)? {
        "" => Some(None),
        name => Some(Some(name.strip_prefix(' ')?.trim())),
    }
}

fn split(path: &Path, text: &str) -> Result<Vec<TextPair>, InputError> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_start = |at: &usize| name_after(lines[*at], SECTION).flatten().is_some();
    let starts: Vec<usize> = (0..lines.len()).filter(is_start).collect();
    let mut pairs = Vec::new();
    if starts.is_empty() {
        pairs = section(path, &lines, 0..lines.len(), None)?;
    }
    for (number, &start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(lines.len());
        let name = name_after(lines[start], SECTION).flatten();
        pairs.extend(section(path, &lines, start + 1..end, name)?);
    }
    let names: BTreeSet<&Option<String>> = pairs.iter().map(|pair| &pair.name).collect();
    if pairs.len() > 1 && (names.len() < pairs.len() || names.contains(&None)) {
        return Err(InputError::NoPair { path: path.to_owned(), found: pairs.len() });
    }
    Ok(pairs)
}

/// The pairs of some lines: one program before, and at least one after it.
fn section(
    path: &Path,
    lines: &[&str],
    range: Range<usize>,
    own_name: Option<&str>,
) -> Result<Vec<TextPair>, InputError> {
    let separators: Vec<(usize, Option<&str>)> =
        range.clone().filter_map(|at| Some((at, name_after(lines[at], SEPARATOR)?))).collect();
    let Some(&(first, _)) = separators.first() else {
        return Err(InputError::NoPair { path: path.to_owned(), found: 0 });
    };
    if separators.len() > 1 && separators.iter().any(|(_, name)| name.is_none()) {
        return Err(InputError::NoPair { path: path.to_owned(), found: separators.len() });
    }
    let source = |from: usize, to: usize| {
        // Blank lines in the place of those before it.
        let text = "\n".repeat(from) + &lines[from..to].concat();
        Source::from_bytes(path, text.into_bytes())
    };
    let head = |from: usize| -> Vec<String> {
        let comments = lines[from..].iter().map_while(|line| line.trim_end().strip_prefix("// "));
        comments.take_while(|line| !line.starts_with('{')).map(str::to_owned).collect()
    };
    let before = source(range.start, first)?;
    let ends = separators.iter().skip(1).map(|(at, _)| *at).chain([range.end]);
    let pairs = separators.iter().zip(ends).map(|(&(at, name), end)| {
        let from = if name.is_some() { at + 1 } else { range.start };
        let sources = [before.clone(), source(at + 1, end)?];
        let name = name.or(own_name).map(str::to_owned);
        Ok(TextPair { name, head: head(from), line: from + 1, sources })
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "block1 {\n\tend\n}\n";

    fn written(text: &str) -> Result<Vec<TextPair>, String> {
        split(Path::new("a.pair"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_without_two_programs_is_refused() {
        let pairs = written(&format!("// one\n{PROGRAM}// after\n{PROGRAM}")).expect("two programs");
        let [TextPair { name: None, head, line: 1, sources: [before, after] }] = &pairs[..] else {
            panic!("{pairs:?}")
        };
        assert_eq!(head, &["one"]);
        assert_eq!(before.text, format!("// one\n{PROGRAM}"));
        assert_eq!(after.text, format!("\n\n\n\n\n{PROGRAM}"));
        for (text, found) in [
            (PROGRAM.to_owned(), 0),
            (format!("{PROGRAM}// after\n// after\n{PROGRAM}"), 2),
            (format!("{PROGRAM}// after a\n{PROGRAM}// after a\n{PROGRAM}"), 2),
            (format!("{PROGRAM}// after a\n{PROGRAM}// after\n{PROGRAM}"), 2),
        ] {
            let error = written(&text).expect_err("no pair");
            assert!(error.contains(&format!("found {found} line")) && error.contains("`// after`"), "{error}");
        }
    }

    #[test]
    fn several_programs_follow_one() {
        let text =
            format!("// all\n{PROGRAM}// after one\n// first\n// {{stage=vertex}}\n{PROGRAM}// after two\n{PROGRAM}");
        let pairs = written(&text).expect("two pairs");
        let names: Vec<_> = pairs.iter().map(|pair| (pair.name.as_deref(), &pair.head[..], pair.line)).collect();
        assert_eq!(names, [(Some("one"), &["first".to_owned()][..], 6), (Some("two"), &[], 12)]);
        let befores: BTreeSet<&str> = pairs.iter().map(|pair| &*pair.sources[0].text).collect();
        assert_eq!(befores.into_iter().collect::<Vec<_>>(), [format!("// all\n{PROGRAM}")]);
        assert_eq!(pairs[1].sources[1].text, "\n".repeat(11) + PROGRAM);
    }

    #[test]
    fn a_file_has_several_pairs() {
        let pair = |name: &str| format!("// pair {name}\n// about {name}\n{PROGRAM}// after\n{PROGRAM}");
        let pairs = written(&(pair("one") + &pair("two"))).expect("two pairs");
        let heads: Vec<_> = pairs.iter().map(|pair| (pair.name.as_deref(), pair.head.concat(), pair.line)).collect();
        assert_eq!(heads, [(Some("one"), "about one".to_owned(), 2), (Some("two"), "about two".to_owned(), 11)]);
        assert_eq!(pairs[1].sources[0].text, format!("{}// about two\n{PROGRAM}", "\n".repeat(10)));
        assert!(written(&(pair("one") + &pair("one"))).is_err());
        assert!(written(&format!("{}// pair two\n{PROGRAM}", pair("one"))).is_err());
    }
}
