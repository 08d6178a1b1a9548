//! A compiler that does not terminate, or takes all memory: found, named, reduced and reproduced. And related
//! functions: the processes of a campaign, its comparisons end to end, and its parts on several machines.

use crate::common::folder::Folder;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs the program: its exit code, and both outputs.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"));
    command.args(arguments.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    let output = command.output().expect("our own program");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code(), text)
}

/// The bundles in a folder.
fn bundles(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of failures");
    entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.join("bundle.json").exists()).collect()
}

/// The number before some words of a text.
fn number(text: &str, after: &str) -> u64 {
    let at = text.find(after).unwrap_or_else(|| panic!("no `{after}` in {text}"));
    let digits = text[..at].trim_end().rsplit(|c: char| !c.is_ascii_digit() && c != ',').next().unwrap_or_default();
    digits.replace(',', "").parse().unwrap_or_else(|_| panic!("no number before `{after}` in {text}"))
}

/// A planted bug that stops the compiler: the campaign survives it, names it, reduces it; `verify` shows it again, of
/// the bundle and of the program, and so does a second reduction.
fn is_found(plant: &str, stage: &str, kind: &str, limits: &str, most: u64) {
    let folder = Folder::new(&format!("guard-{plant}"));
    let fuzz =
        format!("fuzz --seed 1 --profile alu --programs 400 --jobs 1 --plant {plant} {limits} --failures failures");
    let (code, text) = run(folder.path(), &fuzz);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("{kind}: program ")) && text.contains(&format!("stage {stage}: {kind}")), "{text}");
    let found = bundles(&folder.path().join("failures"));
    assert!(!found.is_empty(), "{text}");
    for bundle in &found {
        let name = bundle.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(name.starts_with(&format!("{stage}-{kind}-")), "{name}");
        let saved = std::fs::read_to_string(bundle.join("bundle.json")).expect("a bundle");
        assert!(saved.contains("\"minimal\": true") && saved.contains(&format!("\"why\": \"{kind}\"")), "{saved}");
        let (code, text) = run(folder.path(), &format!("verify {} {limits}", bundle.display()));
        assert!(code == Some(1) && text.contains("it fails as recorded in its bundle"), "{code:?} {text}");
        let again = format!("verify {}/program.nir --plant {plant} {limits} --failures again", bundle.display());
        let (code, text) = run(folder.path(), &again);
        assert!(code == Some(1) && text.contains(kind) && text.contains("written to again/"), "{code:?} {text}");
        let program = std::fs::read_to_string(bundle.join("program.nir")).expect("a program");
        let instructions = program.lines().filter(|line| line.contains('=') || line.contains("@store")).count() as u64;
        assert!(instructions <= most, "{program}");
    }
}

#[test]
fn an_endless_loop_is_found() {
    is_found("endless-loop", "copy-propagation", "out-of-time", "--stage-time 500ms", 16);
}

#[test]
fn an_allocation_explosion_is_found() {
    is_found("allocation-explosion", "schedule", "out-of-memory", "--memory 400M", 20);
}

/// The reason of a worker's end is before the list of its calls.
#[test]
fn with_backtraces_the_reason_is_found() {
    let folder = Folder::new("guard-backtrace");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"));
    let arguments =
        "fuzz --seed 1 --profile alu --programs 400 --jobs 1 --no-reduce --plant allocation-explosion --memory 400M";
    command.args(arguments.split_whitespace()).current_dir(folder.path()).env("RUST_BACKTRACE", "1");
    let output = command.output().expect("our own program");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(1) && text.contains("out-of-memory: program "), "{output:?}");
}

/// With `--keep-going`, programs after one that stops the compiler are checked like all others.
#[test]
fn a_campaign_goes_on_after_the_compiler_was_stopped() {
    let folder = Folder::new("guard-goes-on");
    let of = |jobs: u32| {
        let (code, text) = run(
            folder.path(),
            &format!(
                "fuzz --seed 3 --programs 20 --jobs {jobs} --keep-going --no-reduce --profile alu --profile vectors --plant endless-loop \
                 --stage-time 300ms --failures failures-{jobs}"
            ),
        );
        assert_eq!(code, Some(1), "{text}");
        let summary = text.lines().find(|line| line.contains(" boundaries: ")).expect("a summary");
        assert_eq!(number(summary, " programs, "), 20, "{text}");
        let found = bundles(&folder.path().join(format!("failures-{jobs}"))).len() as u64;
        assert!(found > 0 && text.contains(&format!("crashed {found}")), "{found}: {text}");
        found
    };
    assert_eq!(of(1), of(3));
}

/// One program in sixteen is compared at every boundary, or all.
#[test]
fn what_programs_are_checked_with_is_counted() {
    let folder = Folder::new("guard-ends");
    let (code, text) = run(folder.path(), "fuzz --seed 6 --programs 80");
    assert_eq!(code, Some(0), "{text}");
    let ends = number(&text, " programs; at every boundary");
    assert!(ends > 60 && ends < 80, "{text}");
    let all = number(&text, " boundaries: ");
    let (code, text) = run(folder.path(), "fuzz --seed 6 --programs 80 --every-boundary");
    assert!(code == Some(0) && text.contains("checked end to end: 0 programs; at every boundary: 80"), "{text}");
    assert!(number(&text, " boundaries: ") > 3 * all, "{text}");
}

/// The parts of a campaign are the campaign, for any number of parts.
#[test]
fn parts_of_a_campaign_are_merged() {
    let folder = Folder::new("guard-shards");
    let what = "--seed 7 --programs 24 --keep-going --plant wrong-constant";
    let (_, whole) = run(folder.path(), &format!("fuzz {what} --no-reduce --failures whole"));
    let names = |folders: &[&str]| {
        let all = folders.iter().flat_map(|name| bundles(&folder.path().join(name)));
        let mut names: Vec<_> = all.map(|path| path.file_name().expect("a name").to_owned()).collect();
        names.sort();
        names
    };
    let expected = names(&["whole"]);
    assert!(expected.len() > 1, "{whole}");
    let parts = ["1/3", "2/3", "3/3"];
    let folders = parts.map(|part| part.replace('/', "-of-"));
    for (part, name) in parts.iter().zip(&folders) {
        let (code, text) = run(folder.path(), &format!("fuzz {what} --no-reduce --shard {part} --failures {name}"));
        assert_eq!(code, Some(1), "{text}");
    }
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    assert_eq!(names(&folders), expected);
    let (code, text) = run(folder.path(), &format!("merge {} --no-reduce", folders.join(" ")));
    assert_eq!(code, Some(1), "{text}");
    for words in [" programs of ", " boundaries: ", " refuted, ", " programs; at every boundary"] {
        assert_eq!(number(&text, words), number(&whole, words), "{words}: {text}\n{whole}");
    }
    let (code, text) = run(folder.path(), &format!("merge {} --no-reduce", folders[1..].join(" ")));
    assert!(code == Some(1) && text.contains("parts are missing: 1"), "{text}");
    let (code, text) = run(folder.path(), &format!("merge {0} {0}", folders[0]));
    assert!(code == Some(2) && text.contains("a second time"), "{text}");
    run(folder.path(), &format!("fuzz {what} --no-reduce --shard 1/2 --failures 1-of-2"));
    let (code, text) = run(folder.path(), "merge 1-of-2 2-of-3");
    assert!(code == Some(2) && text.contains("expected one of 2"), "{text}");
    let (code, text) = run(folder.path(), "merge whole");
    assert!(code == Some(2) && text.contains("results.json"), "{text}");
}

/// The parts of `verify` are the programs of the whole.
#[test]
fn parts_of_verify_are_merged() {
    let folder = Folder::new("guard-verify");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/booleans");
    let verify = |rest: &str| run(folder.path(), &format!("verify {} --engine interpreter {rest}", corpus.display()));
    let (_, whole) = verify("");
    for part in 1..=3 {
        verify(&format!("--shard {part}/3 --failures part-{part}"));
    }
    let (_, text) = run(folder.path(), "merge part-1 part-2 part-3");
    for words in [" programs, ", " boundaries: ", " tested, "] {
        assert_eq!(number(&text, words), number(&whole, words), "{words}: {text}\n{whole}");
    }
}
