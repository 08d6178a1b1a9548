//! Mutated text is refused with an error, or reads as a program that is the same after writing and reading it back;
//! nothing panics. The inputs are sections of Mesa's logs if there are logs, the reader's own sample otherwise.

use crate::common::logs::{logs, text};
use crate::common::passes::passes;
use ir3_compiler::ir3::text::{read, write};
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::target::Target;
use proptest::prelude::*;
use std::sync::LazyLock;

const SAMPLE: &str = include_str!("../src/ir3/text/sample.ir3");

/// Short sections of all kinds, without prefixes.
static SECTIONS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut sections = vec![SAMPLE.to_owned()];
    let folders = logs();
    for mut logs in ["a420", "a660", "a750-spillall"].iter().filter_map(|&folder| folders.get(folder)).cloned() {
        logs.sort_by_key(|log| (log.metadata().map_or(0, |data| data.len()), log.clone()));
        for log in logs.iter().take(logs.len() / 2).step_by(6) {
            for (_, section) in passes(&text(log)).step_by(3) {
                let lines = section.split_inclusive('\n').filter_map(|line| line.strip_prefix("MESA: info: "));
                sections.push(lines.collect());
            }
        }
    }
    if sections.len() == 1 {
        println!("only the sample is damaged");
    }
    sections
});

/// A mutation of the pieces of a text: lines, or words.
#[derive(Clone, Debug)]
enum Damage {
    Remove(usize),
    Repeat(usize),
    Swap(usize, usize),
    Copy(usize, usize),
    Replace(usize, String),
}

fn damage() -> impl Strategy<Value = Damage> {
    let words = prop_oneof![
        Just("ssa_1"),
        Just("r63.w"),
        Just("hssa_2:5"),
        Just("imm[0.0,9,0x9]"),
        Just("(kill)"),
        Just("(tied)"),
        Just("c<a0.x + -600>"),
        Just("arr[id=1, offset=-1, size=3]"),
        Just("undef"),
        Just("pp0.w"),
        Just("("),
        Just("block1"),
        Just("0001:0000:000:"),
        Just("_meta:phi"),
        Just("mov.u32u32"),
        Just("scan_clusters.macro.add.u"),
        Just("(wrmask=0xffffffff)"),
        Just("99999999999999999999"),
        Just("// {raw}"),
        Just("\u{1b}["),
        Just("é"),
        Just("r<a0.x + 10> (65535)"),
        Just("/* succs: block2 */"),
        Just("}"),
        Just(""),
        Just("hr61.x"),
        Just("!"),
    ];
    prop_oneof![
        any::<usize>().prop_map(Damage::Remove),
        any::<usize>().prop_map(Damage::Repeat),
        any::<(usize, usize)>().prop_map(|(a, b)| Damage::Swap(a, b)),
        any::<(usize, usize)>().prop_map(|(a, b)| Damage::Copy(a, b)),
        (any::<usize>(), words.prop_map(str::to_owned)).prop_map(|(a, word)| Damage::Replace(a, word)),
    ]
}

impl Damage {
    fn apply(&self, pieces: &mut Vec<String>) {
        let count = pieces.len();
        if count == 0 {
            return;
        }
        match self {
            Self::Remove(a) => drop(pieces.remove(a % count)),
            Self::Repeat(a) => pieces.insert(a % count, pieces[a % count].clone()),
            Self::Swap(a, b) => pieces.swap(a % count, b % count),
            Self::Copy(a, b) => pieces[a % count] = pieces[b % count].clone(),
            Self::Replace(a, word) => pieces[a % count] = word.clone(),
        }
    }
}

/// Splits after each of `ends`.
fn split(text: &str, ends: &[char]) -> Vec<String> {
    text.split_inclusive(ends).map(str::to_owned).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn damaged_text_never_panics(
        section in any::<usize>(),
        of_lines in proptest::collection::vec(damage(), 0..3),
        of_words in proptest::collection::vec(damage(), 0..2),
        of_chars in proptest::collection::vec(damage(), 0..2),
    ) {
        let text = &SECTIONS[section % SECTIONS.len()];
        let mut pieces = split(text, &['\n']);
        of_lines.iter().for_each(|damage| damage.apply(&mut pieces));
        let mut pieces = split(&pieces.concat(), &[' ', '\t', '\n', ',']);
        of_words.iter().for_each(|damage| damage.apply(&mut pieces));
        let text = pieces.concat();
        let mut pieces: Vec<String> = text.chars().map(String::from).collect();
        of_chars.iter().for_each(|damage| damage.apply(&mut pieces));
        let text = pieces.concat();
        match read(&text) {
            Ok(program) => {
                for form in [Form::Ssa, Form::Registers, Form::Machine] {
                    for violation in validate(&program, &Target::default(), form).err().unwrap_or_default() {
                        prop_assert!(violation.to_string().contains("expected "));
                    }
                }
                let written = write(&program);
                match read(&written) {
                    Ok(again) => prop_assert!(Some(&again) == program.canonical().as_ref(), "{text}\n{written}"),
                    Err(error) => prop_assert!(false, "{}\n{}\n{}", error, text, written),
                }
            }
            Err(error) => {
                let lines = text.lines().count().max(1);
                prop_assert!((1..=lines).contains(&error.line), "{} of {} lines", error, lines);
                let line = text.lines().nth(error.line - 1).unwrap_or("");
                prop_assert!((1..=line.chars().count() + 1).contains(&error.column), "{error}: {line:?}");
            }
        }
    }
}
