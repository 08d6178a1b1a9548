//! Broken and changed logs of the real compiler: cut or mixed parts are named, and changes are refuted at their pass.

use super::common;
use crate::common::folder::{Folder, run};
use ir3_harness::check::{EngineKind, Engines};
use ir3_harness::mesa::Settings;
use ir3_selftest::broken_logs::{Breakage, BrokenOutcome, broken, outcome, whole};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Two results of one pair of inputs, which a parallel copy moves into the registers of the output.
const LOG: &str = include_str!("../../corpus/mesa/copies.log");

fn registers() -> Engines {
    Engines { kinds: vec![EngineKind::Registers], ..Engines::default() }
}

fn settings(engines: &Engines) -> Settings<'_> {
    Settings { engines, runs: 1, most_runs: 1, seed: 1, fuel: 10_000, limit: Duration::from_secs(1) }
}

/// Breaks a log in all ways, and checks the results. Returns the kinds of damage.
fn break_log(path: &Path, text: &str, other: &str, cuts: usize, sections: usize) -> BTreeSet<Breakage> {
    let engines = registers();
    let settings = settings(&engines);
    let unbroken = whole(path, text, None, &settings);
    assert_eq!((unbroken.unread, &unbroken.panic), (0, &None), "{}: {:?}", path.display(), unbroken.messages);
    assert!(unbroken.checked > 3, "{}", path.display());
    let logs = broken(path, text, other, cuts, sections, 1);
    for log in &logs {
        let outcome = outcome(path, log, None, &settings);
        let fault = outcome.fault(log, &unbroken);
        assert_eq!(fault, None, "{}: {} at {}", path.display(), log.breakage.name(), log.at);
    }
    logs.iter().map(|log| log.breakage).collect()
}

#[test]
fn a_small_log_is_broken_in_all_ways() {
    let ways = break_log(Path::new("x.log"), LOG, LOG, 120, 12);
    assert_eq!(ways, Breakage::ALL.into_iter().collect());
}

/// One log of each folder, the first that is not large.
#[test]
fn real_logs_are_broken_in_all_ways() {
    let Some(paths) = common::logs() else { return };
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    let mut chosen: Vec<(PathBuf, String)> = Vec::new();
    for path in paths {
        let folder = path.parent().expect("a folder").to_owned();
        let text = fs::read_to_string(&path).expect("a log");
        if text.len() < 60_000 && text.len() > 8_000 && folders.insert(folder) {
            chosen.push((path, text));
        }
    }
    assert!(chosen.len() >= 10, "{folders:?}");
    for (number, (path, text)) in chosen.iter().enumerate() {
        let (_, other) = &chosen[(number + 1) % chosen.len()];
        break_log(path, text, other, 5, 3);
    }
}

/// A log with a list of words, if the logs are there.
fn listed_log() -> Option<(PathBuf, String)> {
    let name = "a540/SPIRV-Cross__shaders-msl-no-opt__comp__return.comp.log";
    let path = common::logs()?.into_iter().find(|path| path.ends_with(name)).expect("the log");
    let text = fs::read_to_string(&path).expect("a log");
    Some((path, text))
}

/// A log that ends in the list of the words has the same code as assembly before it.
#[test]
fn a_list_of_words_that_is_cut_leaves_the_assembly() {
    let Some((path, text)) = listed_log() else { return };
    let engines = registers();
    let unbroken = whole(&path, &text, None, &settings(&engines));
    let cut = whole(&path, &text[..text.len() - 900], None, &settings(&engines));
    assert_eq!((cut.checked, cut.unread, cut.panic), (unbroken.checked, 1, None), "{:?}", cut.messages);
    assert!(
        cut.messages.iter().any(|message| message.contains("lines of the hex listing are lost: found ")),
        "{:?}",
        cut.messages
    );
}

/// A lost line of the list of words is noticed by the numbers of the others, or by the length of the assembly.
#[test]
fn missing_words_leave_the_assembly() {
    let Some((path, text)) = listed_log() else { return };
    let engines = registers();
    let unbroken = whole(&path, &text, None, &settings(&engines));
    let is_word = |line: &&str| line.trim_start().get(4..5) == Some("[") && line.contains('_');
    let words: Vec<&str> = text.lines().filter(is_word).collect();
    assert!(words.len() > 5, "{words:?}");
    for word in [words[0], words[2], words[4]] {
        let lost = text.replacen(&format!("{word}\n"), "", 1);
        let result = whole(&path, &lost, None, &settings(&engines));
        assert_eq!((result.checked, result.unread, result.panic), (unbroken.checked, 1, None), "{:?}", result.messages);
        let is_named = |message: &String| message.contains("lines of the hex listing are lost: found word ");
        assert!(result.messages.iter().any(is_named), "{word}: {:?}", result.messages);
    }
}

#[test]
fn blanks_at_the_end_of_lines_do_not_matter() {
    let folder = Folder::new("mesa-broken-blanks");
    fs::write(folder.path().join("x.log"), LOG.replace('\n', "  \n")).expect("a file");
    let (code, text) = run(folder.path(), &["mesa", "x.log"]);
    fs::write(folder.path().join("x.log"), LOG).expect("a file");
    let (expected_code, expected) = run(folder.path(), &["mesa", "x.log"]);
    let names = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| line.contains("proved"));
        rows.map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!((code, names(&text)), (expected_code, names(&expected)));
    assert!(names(&text).len() > 4, "{text}");
}

/// Two threads that compile print whole sections in turn.
#[test]
fn sections_of_two_shaders_in_turn_are_not_refuted() {
    let folder = Folder::new("mesa-broken-sections");
    let other = LOG.replace("add.f", "mul.f").replace("fadd", "fmul").replace("0123456789abcdef", "1123456789abcdef");
    assert_ne!(other, LOG);
    let at = LOG.find("MESA: info: AFTER: nir->ir3:").expect("a section");
    let (nir, rest) = LOG.split_at(at);
    let (other_nir, other_rest) = other.split_at(other.find("MESA: info: AFTER: nir->ir3:").expect("a section"));
    fs::write(folder.path().join("x.log"), format!("{nir}{other_nir}{rest}{other_rest}")).expect("a file");
    let (code, text) = run(folder.path(), &["mesa", "x.log"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("sections of two shaders are mixed") && text.contains(" 0 refuted"), "{text}");
}

/// A log that ends in its nir has no boundary that could report it.
#[test]
fn nir_that_is_cut_is_named() {
    let engines = registers();
    // The section ends where a section may: in the line before its block.
    let cut = &LOG[..LOG.find("impl main").expect("nir") + 6];
    let outcome = whole(Path::new("x.log"), cut, None, &settings(&engines));
    assert_eq!((outcome.checked, outcome.unread), (0, 1), "{:?}", outcome.messages);
    assert!(outcome.messages.iter().any(|message| message.starts_with("x.log:")), "{:?}", outcome.messages);
}

/// The campaign reports faults.
#[test]
fn faults_are_seen() {
    let engines = registers();
    let settings = settings(&engines);
    let path = Path::new("x.log");
    let unbroken = whole(path, LOG, None, &settings);
    let logs = broken(path, LOG, LOG, 3, 3, 1);
    let log = |breakage| logs.iter().find(|log| log.breakage == breakage).expect("one of each");
    let noisy = log(Breakage::Lines);
    let last_cut = logs.iter().rfind(|log| log.breakage == Breakage::Cut).expect("a cut");
    let good = outcome(path, noisy, None, &settings);
    assert_eq!(good.fault(noisy, &unbroken), None);
    let panicked = BrokenOutcome { panic: Some("x".to_owned()), ..good.clone() };
    assert!(panicked.fault(noisy, &unbroken).is_some_and(|fault| fault.contains("panic")));
    let lost = BrokenOutcome::default();
    assert!(lost.fault(noisy, &unbroken).is_some());
    assert!(lost.fault(last_cut, &unbroken).is_some_and(|fault| fault.contains("intact")));
    assert!(good.fault(log(Breakage::Mixed), &unbroken).is_some_and(|fault| fault.contains("not named")));
    let refuted = BrokenOutcome { refuted: vec!["ir3_cp".to_owned()], ..outcome(path, last_cut, None, &settings) };
    assert!(refuted.fault(last_cut, &unbroken).is_some_and(|fault| fault.contains("ir3_cp is refuted")));
    let silent =
        BrokenOutcome { unread: 1, messages: vec!["bad".to_owned()], ..outcome(path, last_cut, None, &settings) };
    assert!(silent.fault(last_cut, &unbroken).is_some_and(|fault| fault.contains("no message with a line")));
}

/// A section with lines of two shaders: exit code 2, and the line.
#[test]
fn mixed_logs_end_with_exit_code_2() {
    let folder = Folder::new("mesa-broken");
    let line = "MESA: info: \t0005:0000:000: \tadd.f ssa_5, ssa_2, ssa_4\n";
    assert!(LOG.contains(line));
    let mixed = LOG.replacen(line, &format!("{line}{line}"), 1);
    let number = 2 + mixed[..mixed.find(line).expect("it")].lines().count();
    fs::write(folder.path().join("mixed.log"), mixed).expect("a file");
    let (code, text) = run(folder.path(), &["mesa", "mixed.log"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains(&format!("lines of two shaders are mixed at line {number}: ")), "{text}");
}

/// A log of a Mesa without `MESA_DEBUG` is read, with a note; it is not taken for a mixed or broken one.
#[test]
fn logs_without_serial_numbers_are_read() {
    let folder = Folder::new("mesa-serials");
    let without: String = LOG
        .lines()
        .map(|line| match line.find(|c: char| c.is_ascii_digit()) {
            Some(at) if line.starts_with("MESA: info: \t") && line[..at].ends_with('\t') => {
                let rest = line[at..].split_once(':').map_or("", |(_, rest)| rest);
                format!("{}{rest}\n", &line[..at])
            }
            _ => format!("{line}\n"),
        })
        .collect();
    assert!(without.contains("MESA: info: \t0000:000: \t"), "{without}");
    fs::write(folder.path().join("release.log"), without).expect("a file");
    let (code, text) = run(folder.path(), &["mesa", "release.log"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("no serial numbers in the log of 1 program"), "{text}");
    assert!(text.contains(" 0 refuted, 0 unknown") && !text.contains("are mixed"), "{text}");
}

/// Changes of a log are refuted at their pass; with an engine that only proves, they are not, and the campaign reports
/// it.
#[test]
fn changed_logs_are_refuted() {
    let folder = Folder::new("log-mutants");
    fs::write(folder.path().join("copies.log"), LOG).expect("a file");
    let arguments = ["ir3-selftest", "log-mutants", "copies.log", "--mutants", "40", "--seed", "3"];
    let (code, text) = run(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("register") && !text.contains("MISSED"), "{text}");
    let blind = [&arguments[..], &["--engine", "registers"]].concat();
    let (code, text) = run(folder.path(), &blind);
    assert_eq!(code, Some(3), "{text}");
}
