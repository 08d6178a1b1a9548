//! Mutated texts: the reader and the validator return errors, and never panic. A text that is read can be written and
//! read again.

use std::sync::LazyLock;

use crate::common::final_forms::final_forms;
use crate::common::logs::{logs, text};
use ir3_compiler::nir;
use proptest::prelude::*;

/// A text with every kind of construct.
const SAMPLE: &str = include_str!("everything.nir");

/// Final-form sections of a few real logs, if there are any, and the sample.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut texts = vec![SAMPLE.to_owned()];
    let folders = logs();
    for paths in ["a320", "a540", "a660", "a750"].iter().filter_map(|&folder| folders.get(folder)) {
        for path in paths.iter().step_by(7) {
            let first = final_forms(&text(path)).into_iter().next();
            texts.extend(first.filter(|section| (10..400).contains(&section.lines().count())));
        }
    }
    if texts.len() == 1 {
        println!("only the sample is mutated");
    }
    texts
});

/// One change to a text. Positions are fractions of its length, in 65536ths.
#[derive(Clone, Debug)]
enum Edit {
    DeleteBytes {
        at: u16,
        count: u8,
    },
    SetByte {
        at: u16,
        byte: u8,
    },
    Insert {
        at: u16,
        token: &'static str,
    },
    DeleteLine {
        at: u16,
    },
    SwapLines {
        a: u16,
        b: u16,
    },
    RepeatLine {
        from: u16,
        to: u16,
    },
    /// Copies a token to another position.
    MoveToken {
        from: u16,
        to: u16,
    },
    Cut {
        at: u16,
    },
}

const TOKENS: &[&str] = &[
    "%",
    "%0",
    "%4294967295",
    "(",
    ")",
    ".",
    ",",
    "=",
    "-1",
    "x16",
    "64",
    "0x",
    "}",
    "{",
    "if",
    "loop",
    "block",
    "b0",
    "\u{1b}[1m",
    "//",
    "é",
    "\r",
    "MESA: info: ",
    "wrmask=",
    "phi",
    "vec16",
    "18446744073709551616",
    "\n",
    "con ",
    "io location=",
    "nan",
    "1.5",
];

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any::<u16>(), 1..12u8).prop_map(|(at, count)| Edit::DeleteBytes { at, count }),
        (any::<u16>(), 32..127u8).prop_map(|(at, byte)| Edit::SetByte { at, byte }),
        (any::<u16>(), prop::sample::select(TOKENS)).prop_map(|(at, token)| Edit::Insert { at, token }),
        any::<u16>().prop_map(|at| Edit::DeleteLine { at }),
        (any::<u16>(), any::<u16>()).prop_map(|(a, b)| Edit::SwapLines { a, b }),
        (any::<u16>(), any::<u16>()).prop_map(|(from, to)| Edit::RepeatLine { from, to }),
        (any::<u16>(), any::<u16>()).prop_map(|(from, to)| Edit::MoveToken { from, to }),
        any::<u16>().prop_map(|at| Edit::Cut { at }),
    ]
}

fn place(at: u16, length: usize) -> usize {
    usize::from(at) * length / 65536
}

fn apply(text: &str, edit: &Edit) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut lines: Vec<&str> = text.lines().collect();
    if bytes.is_empty() || lines.is_empty() {
        return String::new();
    }
    match *edit {
        Edit::DeleteBytes { at, count } => {
            let at = place(at, bytes.len());
            bytes.drain(at..(at + usize::from(count)).min(text.len()));
        }
        Edit::SetByte { at, byte } => bytes[place(at, text.len())] = byte,
        Edit::Insert { at, token } => {
            let at = place(at, bytes.len());
            bytes.splice(at..at, token.bytes());
        }
        Edit::Cut { at } => bytes.truncate(place(at, text.len())),
        Edit::MoveToken { from, to } => {
            let tokens: Vec<&str> = text.split(' ').collect();
            let mut moved = tokens.clone();
            moved[place(to, tokens.len())] = tokens[place(from, tokens.len())];
            return moved.join(" ");
        }
        Edit::DeleteLine { at } => {
            lines.remove(place(at, lines.len()));
            return lines.join("\n");
        }
        Edit::SwapLines { a, b } => {
            let count = lines.len();
            lines.swap(place(a, count), place(b, count));
            return lines.join("\n");
        }
        Edit::RepeatLine { from, to } => {
            let line = lines[place(from, lines.len())];
            lines.insert(place(to, lines.len()), line);
            return lines.join("\n");
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn the_sample_is_good() {
    let shader = nir::read(SAMPLE).unwrap_or_else(|error| panic!("{error}"));
    nir::validate(&shader).unwrap_or_else(|errors| panic!("{}", errors[0]));
    assert_eq!(nir::read(&nir::write(&shader)).as_ref(), Ok(&shader));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn broken_texts_get_answers(index in any::<prop::sample::Index>(), edits in prop::collection::vec(edit(), 1..4)) {
        let mut text = TEXTS[index.index(TEXTS.len())].clone();
        for edit in &edits {
            text = apply(&text, edit);
        }
        match nir::read(&text) {
            Err(error) => {
                prop_assert!(error.line >= 1 && error.column >= 1);
                prop_assert!(!error.found.is_empty() && !error.expected.is_empty());
            }
            Ok(shader) => {
                if let Err(errors) = nir::validate(&shader) {
                    prop_assert!(errors.iter().all(|error| !error.to_string().is_empty()));
                }
                let written = nir::write(&shader);
                let again = nir::read(&written).map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?;
                prop_assert_eq!(&again, &shader);
            }
        }
    }
}
