//! Two programs in one file, to be compared: the one before, a line `// after`, and the one after.

use super::input::{InputError, Source};
use std::path::Path;

/// The line between the programs.
pub const SEPARATOR: &str = "// after";

/// Reads both programs of a file. Positions in the second one are those in the file.
///
/// # Errors
/// If the file cannot be read, has not exactly one such line, or a part of it is of no known kind.
pub fn read_pair(path: &Path) -> Result<[Source; 2], InputError> {
    let Source { path, text, .. } = Source::read(path)?;
    split(&path, &text)
}

fn split(path: &Path, text: &str) -> Result<[Source; 2], InputError> {
    let separators = text.lines().enumerate().filter(|(_, line)| line.trim_end() == SEPARATOR).map(|(at, _)| at);
    let [separator] = <[usize; 1]>::try_from(separators.collect::<Vec<_>>())
        .map_err(|found| InputError::NoPair { path: path.to_owned(), found: found.len() })?;
    let before: String = text.split_inclusive('\n').take(separator).collect();
    let after: String = text.split_inclusive('\n').skip(separator + 1).collect();
    // Blank lines in the place of the first program.
    let after = "\n".repeat(separator + 1) + &after;
    Ok([Source::from_bytes(path, before.into_bytes())?, Source::from_bytes(path, after.into_bytes())?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_two_programs_is_refused() {
        let program = "block1 {\n\tend\n}\n";
        let written = |text: &str| split(Path::new("a.pair"), text).map_err(|error| error.to_string());
        let [before, after] = written(&format!("// one\n{program}// after\n{program}")).expect("two programs");
        assert_eq!(before.text, format!("// one\n{program}"));
        assert_eq!(after.text, format!("\n\n\n\n\n{program}"));
        for (text, found) in [(program.to_owned(), 0), (format!("{program}// after\n// after\n{program}"), 2)] {
            let error = written(&text).expect_err("no pair");
            assert!(error.contains(&format!("found {found} lines `// after`")), "{error}");
        }
    }
}
