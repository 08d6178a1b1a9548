//! Differences between two texts, by lines.

/// Lines of context around a difference.
const CONTEXT: usize = 2;

/// A line of either text, or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffLine<'a> {
    Both(&'a str),
    Expected(&'a str),
    Found(&'a str),
}

/// The lines of both texts in order, by a longest common subsequence.
fn lines<'a>(expected: &'a str, found: &'a str) -> Vec<DiffLine<'a>> {
    let (a, b): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    // The length of the longest common subsequence of the suffixes that begin at a line of each.
    let mut longest = vec![vec![0u32; b.len() + 1]; a.len() + 1];
    for (i, line) in a.iter().enumerate().rev() {
        for (j, other) in b.iter().enumerate().rev() {
            longest[i][j] =
                if line == other { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::with_capacity(a.len().max(b.len()));
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            lines.push(DiffLine::Both(a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || i < a.len() && longest[i + 1][j] >= longest[i][j + 1] {
            lines.push(DiffLine::Expected(a[i]));
            i += 1;
        } else {
            lines.push(DiffLine::Found(b[j]));
            j += 1;
        }
    }
    lines
}

/// Prints the lines that differ, `-` expected and `+` found, with the lines around them.
pub fn diff(expected: &str, found: &str) -> String {
    let lines = lines(expected, found);
    let differs = |line: &DiffLine<'_>| !matches!(line, DiffLine::Both(_));
    let mut out = String::new();
    let mut last_was_printed = true;
    for (i, line) in lines.iter().enumerate() {
        let around = &lines[i.saturating_sub(CONTEXT)..lines.len().min(i + CONTEXT + 1)];
        let is_printed = around.iter().any(differs);
        if is_printed {
            if !last_was_printed {
                out += "  …\n";
            }
            let (sign, text) = match line {
                DiffLine::Both(text) => ("  ", text),
                DiffLine::Expected(text) => ("- ", text),
                DiffLine::Found(text) => ("+ ", text),
            };
            out += sign;
            out += text;
            out.push('\n');
        }
        last_was_printed = is_printed;
    }
    out
}

/// The first line of `expected`, from 0, at which the texts differ.
pub fn first_difference(expected: &str, found: &str) -> usize {
    expected.lines().zip(found.lines()).take_while(|(a, b)| a == b).count()
}

#[test]
fn lines_that_differ_are_printed_with_their_neighbours() {
    let expected = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
    let found = "1\n2\n3\n4 \n5\n6\n7\n8\n9\n10\n11\n11.5\n12\n";
    assert_eq!(diff(expected, found), "  …\n  2\n  3\n- 4\n+ 4 \n  5\n  6\n  …\n  10\n  11\n+ 11.5\n  12\n");
    assert_eq!(first_difference(expected, found), 3);
    assert_eq!(diff("", "1\n"), "+ 1\n");
    assert_eq!(diff("1\n", "1\n"), "");
    assert_eq!(first_difference("1\n", "1\n2\n"), 1);
}
