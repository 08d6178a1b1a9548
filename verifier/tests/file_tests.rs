//! File tests: one program in, one program out, in the project's text.
//!
//! A case is `corpus/file/<pass>/<case>.ir3`, `.nir` or `.vec4`:
//!
//! ```text
//! // test saturation gpu=a660
//! // A clamp of a sum is folded into the sum.
//! block1 { …the input… }
//! // expect
//! block1 { …the output… }
//! ```
//!
//! The runner reads and validates the input, runs the pass, validates the output and compares its text with the
//! expected one. It also compares both programs: by the interpreter in a few environments, and by the provers, the
//! register checker first if the pass is one of moves, spilling and register assignment. So a wrong output cannot be
//! blessed: a refuted case fails, and so does one that is not proved, unless its first line has `prove=unknown`.
//!
//! `case.rs` has the first line with its options and the forms of `// expect`. `BLESS=1` writes the output;
//! `CASES=fold/` runs the cases with that in their names. docs/contributing.md has how to add one.

mod case;
mod diff;
mod run;

use case::{Expected, FileCase};
use ir3_compiler::ir3::{Instr, InstrFlags, Mods, Program};
use ir3_semantics::support::threads;
use run::{CaseFailure, Limits, check, limits};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The least number of cases.
const LEAST: usize = 150;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/file")
}

/// The files of all cases, in order, and an error for each file that is no case.
fn files(folder: &Path) -> (Vec<PathBuf>, Vec<String>) {
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        paths
    };
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    for path in list(folder).into_iter().flat_map(|pass| if pass.is_dir() { list(&pass) } else { vec![pass] }) {
        let is_case = path.extension().is_some_and(|end| ["ir3", "nir", "vec4"].iter().any(|&known| end == known));
        match is_case && path.parent() != Some(folder) {
            true => cases.push(path),
            false => {
                problems.push(format!("{}: found no case, expected <pass>/<case>.ir3, .nir or .vec4", path.display()))
            }
        }
    }
    (cases, problems)
}

/// Checks a file; with `blesses`, writes the output that was found. Returns the name of its pass.
fn check_file(path: &Path, blesses: bool, limits: &Limits) -> Result<&'static str, String> {
    let name = path.strip_prefix(folder().parent().and_then(Path::parent).unwrap_or(path)).unwrap_or(path);
    let name = name.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    let case = FileCase::parse(&name, &text)?;
    let pass = case.pass.name();
    match check(&case, limits, None) {
        Ok(()) => Ok(pass),
        Err(CaseFailure::Output { found, .. }) if blesses => {
            let text = case.blessed(&text, &found);
            check(&FileCase::parse(&name, &text)?, limits, None).map_err(|problem| problem.to_string())?;
            fs::write(path, text).map_err(|error| format!("{name}: {error}"))?;
            Ok(pass)
        }
        Err(problem) => Err(problem.to_string()),
    }
}

#[test]
fn every_case_passes() {
    let start = Instant::now();
    let only = std::env::var("CASES").unwrap_or_default();
    let blesses = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let (mut paths, problems) = files(&folder());
    paths.retain(|path| path.to_string_lossy().contains(&only));
    let limits = limits();
    let problems = Mutex::new(problems);
    let passes = Mutex::new(BTreeMap::<&str, usize>::new());
    threads::for_each(2, paths.iter(), &AtomicBool::new(false), |_, path| match check_file(path, blesses, &limits) {
        Ok(pass) => *passes.lock().expect("no panic").entry(pass).or_default() += 1,
        Err(problem) => problems.lock().expect("no panic").push(problem),
    });
    println!("{} cases in {:.1} s: {:?}", paths.len(), start.elapsed().as_secs_f64(), passes.into_inner());
    let mut problems = problems.into_inner().expect("no panic");
    problems.sort();
    assert!(problems.is_empty(), "{} of {} cases:\n\n{}", problems.len(), paths.len(), problems.join("\n"));
    assert!(!only.is_empty() || paths.len() >= LEAST, "{} cases", paths.len());
}

const SATURATION: &str = "// test saturation
// A clamp of a sum is folded into the sum.
// {stage=vertex}
// {output=0.x}
block1 {
	0001:0000:001: 	_meta:in ssa_1 // {input=attribute(0.x)}
	0002:0001:001: 	_meta:in ssa_2 // {input=attribute(0.y)}
	0003:0002:002: 	add.f ssa_3, ssa_1, (neg)ssa_2
	0004:0003:001: 	(sat)max.f ssa_4, ssa_3, ssa_3
	0005:0004:000: 	end ssa_4 (0)
}
// expect
// {stage=vertex}
// {output=0.x}
block1 {
	0001:0000:001: 	_meta:in ssa_1 // {input=attribute(0.x)}
	0002:0001:001: 	_meta:in ssa_2 // {input=attribute(0.y)}
	0003:0002:001: 	(sat)add.f ssa_3, ssa_1, (neg)ssa_2
	0005:0003:000: 	end ssa_3 (0)
	/* keeps:
	 */
}
";

/// Parses the text of a case.
fn case(text: &str) -> FileCase {
    FileCase::parse("saturation/sum.ir3", text).expect("a case")
}

/// The error of a text that passes no check.
fn problem(text: &str, plant: Option<run::OutputBug>) -> String {
    match FileCase::parse("saturation/sum.ir3", text) {
        Ok(case) => check(&case, &limits(), plant).expect_err("a problem").to_string(),
        Err(problem) => problem,
    }
}

#[test]
fn the_example_passes() {
    check(&case(SATURATION), &limits(), None).expect("it passes");
}

#[test]
fn a_wrong_header_is_an_error_with_file_and_line() {
    let first = |line: &str| SATURATION.replacen("// test saturation", line, 1);
    for (text, expected) in [
        (first("// saturation"), ":1: found `// saturation`, expected `// test <pass>` and options"),
        (first("// test"), ":1: found no pass, expected"),
        (
            first("// test saturate"),
            ":1: found the pass `saturate`, expected one of split-additions, de-morgan, inline-preamble, vec4-select,",
        ),
        (first("// test fold"), ":1: found the pass `fold` in the folder of saturation"),
        (first("// test saturation a660"), ":1: found `a660`, expected an option as key=value"),
        (first("// test saturation gpu=a1"), ":1: found the GPU `a1`"),
        (
            first("// test saturation cpu=a660"),
            ":1: found the option `cpu`, expected gpu, disable, skip, max-registers,",
        ),
        (
            first("// test saturation disable=x"),
            ":1: found the feature `x`, expected one of split-additions, de-morgan,",
        ),
        (first("// test saturation max-registers=x"), ":1: found `x`, expected a number, `min`"),
        (first("// test saturation prove=no"), ":1: found `prove=no`, expected prove=unknown"),
        (first("// test saturation gpu=a660 gpu=a540"), ":1: found gpu twice"),
        (SATURATION.replace("// A clamp", "# A clamp"), ":2: found no comment, expected a description of the case"),
        (SATURATION.replace("// expect\n", ""), ":21: found the end of the file, expected a line `// expect`"),
        (SATURATION.replace("// expect", "// expect nothing"), ":12: found `// expect nothing`, expected `// expect`,"),
        (SATURATION.replace("// expect", "// expect unchanged"), ":13: found text after `// expect unchanged`"),
        (SATURATION.replace("// expect", "// expect refused: x"), ":13: found text after `// expect refused`"),
        (SATURATION.replace("// expect", "// expect\n// expect"), ":13: found a second `// expect`"),
        (SATURATION.replace("add.f", "add.g"), ":8:18: expected an opcode, found `add.g`"),
        (SATURATION.replacen("end ssa_4 (0)", "jump", 1), ":1: the input is invalid: block1"),
    ] {
        let found = problem(&text, None);
        assert!(found.starts_with(&format!("saturation/sum.ir3{expected}")), "{found}\nexpected {expected}");
    }
    let nir = FileCase::parse("saturation/sum.nir", SATURATION).expect_err("a wrong language");
    assert_eq!(nir, "saturation/sum.nir:1: found a file of nir, expected one of ir3, which saturation reads");
}

#[test]
fn a_wrong_expectation_fails_at_its_line() {
    let found = problem(&SATURATION.replace("(sat)add.f ssa_3, ssa_1, (neg)", "(sat)add.f ssa_3, (neg)ssa_1, "), None);
    assert!(found.starts_with("saturation/sum.ir3:18: the output differs"), "{found}");
    let lines = [
        "\n- \t0003:0002:001: \t(sat)add.f ssa_3, (neg)ssa_1, ssa_2\n",
        "\n+ \t0003:0002:001: \t(sat)add.f ssa_3, ssa_1, (neg)ssa_2\n",
    ];
    assert!(lines.iter().all(|line| found.contains(line)), "{found}");
    let (before, _) = SATURATION.split_once("// expect\n").expect("two parts");
    let found = problem(&format!("{before}// expect unchanged\n"), None);
    assert!(found.starts_with("saturation/sum.ir3:12: the output differs"), "{found}");
    let found = problem(&format!("{before}// expect refused: floats\n"), None);
    assert!(found.starts_with("saturation/sum.ir3:12: the output differs"), "{found}");
    assert!(problem(&SATURATION[..SATURATION.len() - 2], None).contains(":22: the output differs"));
}

#[test]
fn an_output_that_is_the_input_is_said_to_be_unchanged() {
    let text = SATURATION.replace("(sat)", "");
    let (before, _) = text.split_once("// expect\n").expect("two parts");
    check(&case(&format!("{before}// expect unchanged\n")), &limits(), None).expect("it passes");
    let found = problem(&text, None);
    assert!(found.starts_with("saturation/sum.ir3:12: nothing changed, expected `// expect unchanged`"), "{found}");
}

/// The instruction with a serial number of the text.
fn by_serial(program: &Program, serial: u32) -> Instr {
    program
        .iter_instrs()
        .map(|(_, instr)| instr)
        .find(|&instr| program.serials[instr] == serial)
        .expect("an instruction")
}

/// Blesses the output of the pass with a bug, and returns the reason why that fails nevertheless.
fn blessed_problem(text: &str, plant: run::OutputBug) -> String {
    let before = case(text);
    let Err(CaseFailure::Output { found, .. }) = check(&before, &limits(), Some(plant)) else {
        panic!("no other output")
    };
    let blessed = before.blessed(text, &found);
    assert_ne!(blessed, text);
    problem(&blessed, Some(plant))
}

#[test]
fn a_planted_bug_fails_though_its_output_is_expected() {
    let found = blessed_problem(SATURATION, |program| {
        let sum = by_serial(program, 3);
        program.instrs[sum].srcs[1].mods = Mods::empty();
    });
    assert!(found.starts_with("saturation/sum.ir3:1: refuted by the interpreter: "), "{found}");
}

#[test]
fn an_invalid_output_fails() {
    let found = blessed_problem(SATURATION, |program| {
        let sum = by_serial(program, 3);
        program.instrs[sum].srcs.pop();
    });
    assert!(found.starts_with("saturation/sum.ir3:12: the output is invalid: block1: add.f (0003): "), "{found}");
}

#[test]
fn what_is_not_proved_fails_unless_the_first_line_says_so() {
    let mut limits = limits();
    limits.time = std::time::Duration::ZERO;
    let check = |text: &str| check(&case(text), &limits, None).map_err(|problem| problem.to_string());
    let found = check(SATURATION).expect_err("there was no time");
    assert!(found.starts_with("saturation/sum.ir3:1: not proved: "), "{found}");
    check(&SATURATION.replacen("// test saturation", "// test saturation prove=unknown", 1)).expect("it passes");
}

#[test]
fn a_panic_of_the_pass_fails_its_case_only() {
    let found = problem(
        SATURATION,
        Some(|program| {
            let sum = by_serial(program, 3);
            assert!(!program.instrs[sum].flags.contains(InstrFlags::SAT), "planted");
        }),
    );
    assert!(found.starts_with("saturation/sum.ir3:1: the pass panicked: planted"), "{found}");
}

#[test]
fn blessing_keeps_the_input_and_writes_what_was_found() {
    let (before, after) = SATURATION.split_once("// expect\n").expect("two parts");
    let found = Expected::Text(after.to_owned());
    for old in ["// expect\n", "// expect unchanged\n", "// expect refused: x\n", "// expect\nblock1 {\n"] {
        let old = format!("{before}{old}");
        assert_eq!(case(&old).blessed(&old, &found), SATURATION);
    }
    let unchanged = case(SATURATION).blessed(SATURATION, &Expected::Unchanged);
    assert_eq!(unchanged, format!("{before}// expect unchanged\n"));
    let refused = case(SATURATION).blessed(SATURATION, &Expected::Refused("floats".to_owned()));
    assert_eq!(refused, format!("{before}// expect refused: floats\n"));
}

#[test]
fn files_that_are_no_cases_are_named() {
    let folder = crate::common::folder::Folder::new("file-tests");
    let pass = folder.path().join("fold");
    fs::create_dir_all(&pass).expect("a folder");
    for name in ["fold/a.ir3", "fold/b.txt", "c.ir3"] {
        fs::write(folder.path().join(name), "").expect("a file");
    }
    let (cases, problems) = files(folder.path());
    assert_eq!(cases, [pass.join("a.ir3")]);
    assert!(problems.len() == 2 && problems[0].contains("c.ir3: found no case") && problems[1].contains("b.txt"));
}
