//! Programs to be compared, in one file: the one before, a line `// after`, and the one after.
//!
//! Several programs may follow one: then each line `// after NAME` names the pair. The comments at the beginning of a
//! pair (of the file, or after such a line) are its head.

use super::input::{InputError, Source};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The line before a program after. A name may follow.
pub const SEPARATOR: &str = "// after";

/// Two programs of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPair {
    /// The name, if the line between the programs has one.
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
/// If there is none, or a file of the family cannot be read.
pub fn read_named(folder: &Path, name: &str) -> Result<TextPair, InputError> {
    let file = folder.join(format!("{name}.pair"));
    let (family, name) = name.rsplit_once('/').unwrap_or((".", name));
    let mut files = vec![file.clone()];
    if !file.is_file() {
        let entries = std::fs::read_dir(folder.join(family));
        let entries = entries.map_err(|cause| InputError::Unreadable { path: folder.join(family), cause })?;
        files = entries.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<PathBuf>>();
        files.sort();
    }
    for path in &files {
        let pairs = read_pairs(path)?;
        let is_it = |pair: &TextPair| pair.name.as_deref().map_or(*path == file, |its| its == name);
        if let Some(pair) = pairs.into_iter().find(is_it) {
            return Ok(pair);
        }
    }
    Err(InputError::Missing { path: file })
}

fn split(path: &Path, text: &str) -> Result<Vec<TextPair>, InputError> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let name_of = |line: &str| match line.trim_end().strip_prefix(SEPARATOR)? {
        "" => Some(None),
        name => Some(Some(name.strip_prefix(' ')?.trim().to_owned())),
    };
    let separators: Vec<(usize, Option<String>)> =
        lines.iter().enumerate().filter_map(|(at, line)| Some((at, name_of(line)?))).collect();
    let names: BTreeSet<&Option<String>> = separators.iter().map(|(_, name)| name).collect();
    let [first, ..] = &separators[..] else { return Err(InputError::NoPair { path: path.to_owned(), found: 0 }) };
    if separators.len() > 1 && (names.len() < separators.len() || names.contains(&None)) {
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
    let before = source(0, first.0)?;
    let ends = separators.iter().skip(1).map(|(at, _)| *at).chain([lines.len()]);
    let pairs = separators.iter().zip(ends).map(|((at, name), end)| {
        let from = if name.is_some() { at + 1 } else { 0 };
        let sources = [before.clone(), source(at + 1, end)?];
        Ok(TextPair { name: name.clone(), head: head(from), line: from + 1, sources })
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
            assert!(error.contains(&format!("found {found} lines `// after`")), "{error}");
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
}
