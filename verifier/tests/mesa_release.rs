//! Logs of debug builds in the form that release builds print: the verdicts stay.
//!
//! `IR3_LOGS=all` takes every log.

use crate::common::effort::effort;
use crate::mesa_cut::{PieceKind, Row, corpus, own_log, pieces, real_logs, rows_of, target_of};
use ir3_compiler::target::Target;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The line of an instruction without its serial number, and with addresses for the numbers of blocks.
fn release_line(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("block") {
        let (before, number) = rest.split_at(at + "block".len());
        let digits = number.len() - number.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        text.push_str(before);
        match number[..digits].parse::<u64>() {
            // Blocks lie in memory in an order of their own.
            Ok(number) => text.push_str(&(2_386_000_000 + (number * 7919) % 6007 * 208).to_string()),
            Err(_) => text.push_str(&number[..digits]),
        }
        rest = &number[digits..];
    }
    text.push_str(rest);
    let start = text.find('\t').filter(|_| !text.trim_end().ends_with('{'));
    let serial = start.map(|start| start + text[start..].len() - text[start..].trim_start_matches('\t').len());
    match serial {
        Some(at) if text[at..].len() > 5 && text[at..at + 4].bytes().all(|byte| byte.is_ascii_digit()) => {
            let after = text[at..].find(':').map_or(at, |colon| at + colon + 1);
            format!("{}{}", &text[..at], &text[after..])
        }
        _ => text,
    }
}

/// A log of a debug build as a release build prints it: no serial numbers, no machine words, and blocks that are named
/// by addresses.
fn release_log(log: &str) -> String {
    let mut text = String::new();
    for piece in pieces(log) {
        match piece.kind {
            PieceKind::Pass(_) => text.extend(piece.text.split_inclusive('\n').map(release_line)),
            PieceKind::Again => {}
            _ => text.push_str(&piece.text),
        }
    }
    text
}

/// Verdicts of debug and release form, counted by both names.
#[derive(Default)]
struct Changes {
    counts: BTreeMap<(&'static str, &'static str), usize>,
    wrong: Vec<String>,
}

impl Changes {
    fn add(&mut self, path: &Path, log: &str, target: &Target) {
        let engines = crate::common::engines();
        let debug = rows_of(path, log, target, &engines);
        let release = rows_of(path, &release_log(log), target, &engines);
        assert_eq!(debug.len(), release.len(), "{}", path.display());
        for (Row { name, verdict: is_before, .. }, after) in debug.iter().zip(&release) {
            assert_eq!(*name, after.name, "{}", path.display());
            *self.counts.entry((is_before, after.verdict)).or_default() += 1;
            // Without the elements that an array begins with, less can be shown.
            let is_weaker = after.verdict == "unknown" || after.verdict == "tested" && *is_before == "proved";
            // A proof of the debug form may have run out of time on a busy machine.
            let was_open = *is_before == "unknown" && after.verdict != "refuted";
            if *is_before != after.verdict && !is_weaker && !was_open {
                let line = format!("{}: {name}: {is_before}, then {}: {}", path.display(), after.verdict, after.reason);
                self.wrong.push(line);
            }
        }
    }

    /// Asserts that there are `least` rows, and that `percent` of the verdicts stay.
    fn finish(&self, least: usize, percent: usize) {
        println!("{:?}", self.counts);
        self.wrong.iter().for_each(|line| println!("{line}"));
        assert_eq!(self.wrong, [""; 0]);
        let all: usize = self.counts.values().sum();
        let same: usize =
            self.counts.iter().filter(|((before, after), _)| before == after).map(|(_, count)| count).sum();
        assert!(all >= least && same * 100 >= all * percent, "{same} of {all} stay");
    }
}

#[test]
fn verdicts_on_real_logs_stay_in_their_release_form() {
    let Some(paths) = real_logs() else { return };
    let is_whole = std::env::var("IR3_LOGS").is_ok_and(|logs| logs == "all");
    let mut changes = Changes::default();
    for (number, path) in paths.iter().enumerate() {
        let text = fs::read_to_string(path).expect("a log");
        if is_whole || number % 48 == 13 && text.len() < 400_000 {
            changes.add(path, &text, &target_of(path));
        }
    }
    changes.finish(200, 97);
}

#[test]
fn verdicts_on_our_own_logs_stay_in_their_release_form() {
    let mut changes = Changes::default();
    for (number, path) in corpus().iter().enumerate() {
        for (turn, gpu) in ["a306", "a420", "a540", "a660", "a750"].into_iter().enumerate() {
            let target = Target::by_name(gpu).expect("a GPU");
            if (number % 10 == turn || effort() > 1)
                && let Some(log) = own_log(path, &target)
            {
                changes.add(path, &log, &target);
            }
        }
    }
    changes.finish(150, 94);
}

#[test]
fn a_line_loses_its_serial_number_only() {
    let line = "MESA: info: \t0013:0002:001: \tadd.u ssa_13, ssa_12, imm[0.000000,7,0x7]\n";
    assert_eq!(release_line(line), "MESA: info: \t0002:001: \tadd.u ssa_13, ssa_12, imm[0.000000,7,0x7]\n");
    assert_eq!(release_line("MESA: info: \t\t0004:-002:000: \tend\n"), "MESA: info: \t\t-002:000: \tend\n");
    assert_eq!(release_line("MESA: info: \tpred: block1\n"), "MESA: info: \tpred: block2386397696\n");
}
