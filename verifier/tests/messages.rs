//! Inputs that a user gets wrong: each has a message with the place, the found and the expected text, or works.

use crate::common::folder::{Folder, run};
use std::fs;
use std::path::Path;

/// A log of one shader, without words.
const LOG: &str = include_str!("../../corpus/mesa/copies.log");

fn corpus(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name).display().to_string()
}

/// Runs a command on a log with this text.
fn of_log(name: &str, text: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let folder = Folder::new(&format!("messages-{name}"));
    fs::write(folder.path().join("x.log"), text).expect("a file");
    run(folder.path(), &[&["mesa", "x.log"], arguments].concat())
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    let missing: Vec<&&str> = parts.iter().filter(|part| !text.contains(**part)).collect();
    assert!(missing.is_empty(), "{missing:?} in {text}");
}

#[test]
fn folders_of_tests_are_named() {
    let folder = Folder::new("messages-tests");
    for command in ["verify", "check"] {
        let (code, text) = run(folder.path(), &[command, &corpus("file/saturation")]);
        assert_eq!(code, Some(2), "{text}");
        contains(&text, &["file/saturation: found no program in the folder but ", " file tests (`// test PASS`)"]);
    }
    let (code, text) = run(folder.path(), &["verify", &corpus("pairs/half")]);
    assert_eq!(code, Some(2), "{text}");
    contains(&text, &["pairs/half: found no program in the folder but ", "`ir3-equiv check` compares"]);
    let (code, text) = run(folder.path(), &["check", &corpus("half")]);
    assert_eq!(code, Some(2), "{text}");
    contains(&text, &["half: found no pair in the folder, expected .pair files"]);
    let (code, text) = run(folder.path(), &["check", &corpus("half"), &corpus("half")]);
    assert_eq!(code, Some(2), "{text}");
    contains(&text, &["half: found a folder, expected a file"]);
}

/// A folder of pairs, and a file with several.
#[test]
fn folders_of_pairs_are_compared() {
    let folder = Folder::new("messages-pairs");
    let program = |operation: &str| format!("{operation} r0.x, r0.y, r0.z\n");
    let several = format!(
        "{}// after exchanged\n{}// after other\n{}",
        program("add.u"),
        "add.u r0.x, r0.z, r0.y\n",
        program("mull.u")
    );
    fs::write(folder.path().join("a.pair"), several).expect("a file");
    fs::write(folder.path().join("b.pair"), format!("{}// after\n{}", program("add.u"), program("add.u")))
        .expect("a file");
    let (code, text) = run(folder.path(), &["check", "."]);
    assert_eq!(code, Some(1), "{text}");
    contains(
        &text,
        &["a.pair (exchanged)", "a.pair (other)", "b.pair", "3 programs, 3 boundaries: 2 proved, 0 tested, 1 refuted"],
    );
}

/// The folder of a refuted pass of a log: `check` and `show` take it, `verify` and `triage` name it.
#[test]
fn folders_of_refuted_passes_are_read() {
    let folder = Folder::new("messages-bundles");
    fs::write(folder.path().join("bad.log"), LOG.replace("add.f", "mul.f")).expect("a file");
    let (code, text) = run(folder.path(), &["mesa", "bad.log", "--failures", "failures", "--html", "pages"]);
    assert_eq!(code, Some(1), "{text}");
    contains(&text, &["written to failures/", "page pages/"]);
    let list = |path: &str| -> Vec<String> {
        let entries = fs::read_dir(folder.path().join(path)).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(list("pages").len(), 1 + list("failures").len());
    let failure = format!("failures/{}", list("failures")[0]);

    let (code, text) = run(folder.path(), &["check", &failure]);
    assert_eq!(code, Some(1), "{text}");
    contains(&text, &["a660", "refuted"]);
    let (code, text) = run(folder.path(), &["show", &failure, "-o", "-"]);
    assert_eq!(code, Some(0), "{text}");
    contains(&text, &["<h1>bad.log#0: ", "refuted: the two programs differ"]);
    let (code, text) = run(folder.path(), &["show", "failures"]);
    assert_eq!((code, text.lines().count()), (Some(0), list("failures").len()), "{text}");
    assert!(folder.path().join(&failure).join("report.html").is_file());
    let (code, text) = run(folder.path(), &["show", "failures", "-o", "one.html"]);
    assert_eq!(code, Some(2), "{text}");
    contains(&text, &["failures: found 2 failures, expected one"]);
    let (code, text) = run(folder.path(), &["show", "pages"]);
    assert_eq!(code, Some(2), "{text}");
    contains(&text, &["pages: found no failure, expected a folder"]);

    let (code, text) = run(folder.path(), &["verify", &failure]);
    assert_eq!(code, Some(2), "{text}");
    contains(&text, &["found the two programs of a refuted pair, expected a program to compile"]);
    let (code, text) = run(folder.path(), &["triage", "failures"]);
    assert_eq!(code, Some(2), "{text}");
    contains(&text, &["found a refuted pair, which cannot be compiled again, expected a bundle"]);

    fs::write(folder.path().join(&failure).join("pair.json"), "{\"title\": \"x\", \"gpu\": \"a999\"}").expect("a file");
    let (code, text) = run(folder.path(), &["show", &failure]);
    assert_eq!(code, Some(2), "{text}");
    contains(&text, &["pair.json: found the GPU `a999`, expected a known GPU"]);
}

#[test]
fn logs_without_a_common_section_are_named() {
    let folder = Folder::new("messages-sections");
    for pass in ["one", "two"] {
        let text = format!("AFTER: {pass}:\nblock0 {{\n\t0001:0000:000: end\n}}\n");
        fs::write(folder.path().join(format!("{pass}.log")), text).expect("a file");
    }
    let (code, text) = run(folder.path(), &["check", "one.log", "two.log"]);
    assert_eq!(code, Some(4), "{text}");
    contains(&text, &["found no section that both logs have", "the first has `one`, the second `two`"]);
}

/// An instruction without its numbers among others that have some; machine code in a file of this name is read.
#[test]
fn an_instruction_without_numbers_is_named() {
    let folder = Folder::new("messages-numbers");
    let text =
        "block0 {\n\t0001:0000:001: \tmov.u32u32 r0.x, r0.y\n\tadd.f r0.x, r0.y, r0.z\n\t0003:0001:000: \tend\n}\n";
    fs::write(folder.path().join("x.ir3"), text).expect("a file");
    let (code, text) = run(folder.path(), &["run", "x.ir3"]);
    assert_eq!(code, Some(2), "{text}");
    contains(
        &text,
        &["x.ir3:3:2: found `add.f`, expected the numbers of the instruction before it (`0002:0001:000:`)"],
    );
    fs::write(folder.path().join("y.ir3"), "add.f r0.x, r0.y, r0.z\nend\n").expect("a file");
    let (code, text) = run(folder.path(), &["run", "y.ir3"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn wrapped_logs_are_named() {
    let wrapped: String = LOG
        .lines()
        .flat_map(|line| line.as_bytes().chunks(60))
        .map(|piece| format!("{}\n", std::str::from_utf8(piece).expect("a log in ASCII")))
        .collect();
    let (code, text) = of_log("wrapped", &wrapped, &[]);
    assert_eq!(code, Some(2), "{text}");
    contains(
        &text,
        &[
            "x.log:",
            ":61: found ",
            " lines that are broken off at this column",
            "expected each line of Mesa as one line",
        ],
    );
}

#[test]
fn a_log_without_its_beginning_is_named() {
    let cut: String = LOG.lines().skip(10).map(|line| format!("{line}\n")).collect();
    let (code, text) = of_log("start", &cut, &[]);
    assert_eq!(code, Some(3), "{text}");
    contains(&text, &["x.log:1:13: found `div 32x2  %1 = @load_input", "the beginning of the log is missing"]);
    assert!(!text.contains("IR3_SHADER_DEBUG"), "{text}");
}

#[test]
fn lost_lines_are_named() {
    let without = |part: &str| -> String {
        let line = LOG.lines().position(|line| line.contains(part)).expect("the line");
        LOG.lines().enumerate().filter(|(at, _)| *at != line).map(|(_, line)| format!("{line}\n")).collect()
    };
    let (_, text) = of_log("definition", &without("_meta:in ssa_1"), &[]);
    contains(&text, &["found `ssa_1`, expected a value that is defined: a line before it is missing or damaged"]);
    let (_, text) = of_log("headline", &without("Native code for"), &[]);
    contains(&text, &["expected the next line of the same program, or a headline before this one"]);
    // An instruction of the final assembly, which has a count.
    let (_, text) = of_log("assembly", &without("info: mov.u32u32 r0.x, r0.z"), &[]);
    contains(&text, &[" instructions in the final assembly, expected ", " as in its statistics: a line is missing"]);
    let (_, text) = of_log("whole", LOG, &[]);
    assert!(!text.contains("is missing"), "{text}");
}

#[test]
fn a_gpu_of_another_generation_is_refused() {
    let line = 1 + LOG.lines().position(|line| line.contains("; gpu gen 6")).expect("the line");
    for gpu in ["a750", "a320"] {
        let (code, text) = of_log("generation", LOG, &["--gpu", gpu]);
        assert_eq!(code, Some(2), "{text}");
        contains(
            &text,
            &[&format!("x.log:{line}:1: found a log of a6xx, expected one of "), &format!("that of {gpu}")],
        );
    }
    let (code, text) = of_log("same-generation", LOG, &["--gpu", "a618"]);
    assert_eq!(code, Some(0), "{text}");
}
