//! The table of exit codes in README, row by row; what cannot be written; and signals.

use crate::common::folder::Folder;
use ir3_compiler::target::Target;
use ir3_verifier::harness::report;
use ir3_verifier::programs::seeds::program_seed;
use ir3_verifier::prove::solver::cache::{Cache, VerdictKey};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"));
    command.args(arguments.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    command
}

/// The exit code, and both outputs.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String) {
    let output = command(folder, arguments).output().expect("our own program");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code(), text)
}

/// A folder with a program that passes, and one that is not valid.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(&format!("exit-codes-{name}"));
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    fs::copy(corpus.join("control-flow/fibonacci.nir"), folder.path().join("good.nir")).expect("a file");
    fs::write(folder.path().join("bad.nir"), "shader: what\n").expect("a file");
    folder
}

fn expect(folder: &Folder, arguments: &str, code: i32) -> String {
    let (found, text) = run(folder.path(), arguments);
    assert_eq!(found, Some(code), "{arguments}: {text}");
    text
}

#[test]
fn a_pass_is_0_and_a_refutation_1() {
    let folder = folder("passed");
    let text = expect(&folder, "verify good.nir", 0);
    assert!(text.starts_with("1 program, "), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(expect(&folder, "verify good.nir --verbose", 0).lines().count() > 10);
    let text = expect(&folder, "verify good.nir --plant inverted-branch --seed 1", 1);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains(" 1 refuted") && lines[1].starts_with("program "), "{text}");
    assert!(text.contains("written to"), "{text}");
    expect(&folder, "fuzz --seed 1 --programs 4", 0);
}

#[test]
fn bad_input_is_2() {
    let folder = folder("bad");
    expect(&folder, "verify bad.nir good.nir", 2);
    expect(&folder, "verify nothing.nir", 2);
    for zero in
        ["verify good.nir --runs 0", "verify good.nir --jobs 0", "verify good.nir --timeout 0s", "fuzz --programs 0"]
    {
        expect(&folder, zero, 2);
    }
    for other in
        ["verify good.nir --timeout 10", "run good.nir --format junit", "verify good.nir --gpu a999", "nonsense"]
    {
        expect(&folder, other, 2);
    }
    // Every GPU is named.
    assert!(expect(&folder, "verify good.nir --gpu a999", 2).contains("a750"));
}

/// A log names its generation, and standard input is a file.
#[test]
fn the_generation_of_a_log_counts() {
    let folder = folder("log");
    let nir = fs::read_to_string(folder.path().join("good.nir")).expect("a file");
    let nir: String = nir.lines().filter(|line| !line.starts_with("//")).map(|line| format!("{line}\n")).collect();
    let log = format!(
        "NIR (final form) for CL shader (null):\n{nir}\nNative code for unnamed\n; CL: outputs:\n; gpu gen 7, mergedregs 1\n"
    );
    fs::write(folder.path().join("x.log"), &log).expect("a file");
    assert!(expect(&folder, "verify x.log --verbose", 0).contains("a750"));
    assert!(expect(&folder, "verify x.log --verbose --gpu a730", 0).contains("a730"));
    let text = expect(&folder, "verify x.log --gpu a660", 2);
    assert!(text.contains("found a log of a7xx, expected one of a6xx"), "{text}");
    let mut child = command(folder.path(), "verify - --verbose")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("our own program");
    child.stdin.take().expect("a pipe").write_all(log.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it is ours");
    assert!(String::from_utf8_lossy(&output.stdout).contains("<stdin>"), "{output:?}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn what_is_not_reached_is_3_and_nothing_checked_4() {
    let folder = folder("unknown");
    // The interpreter proves nothing.
    expect(&folder, "verify good.nir --engine interpreter --require proved", 3);
    // Nothing fits into one register.
    let text = expect(&folder, "verify good.nir --engine registers --max-registers 1", 4);
    assert!(text.contains("unknown: needs spilling"), "{text}");
    let text = expect(&folder, "verify good.nir --engine interpreter --max-registers 1", 4);
    assert!(text.contains("unknown: needs spilling"), "{text}");
    expect(&folder, "fuzz --seed 1 --engine registers --max-registers 1 --programs 2", 4);
}

/// A proof that nobody has made, in a cache: the prover is unsound, and a run shows it.
#[test]
fn an_unsound_prover_is_5() {
    let folder = folder("unsound");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/pairs");
    let target = Target::default();
    let pairs = fs::read_dir(corpus).expect("pairs").flat_map(|family| {
        let files = fs::read_dir(family.expect("a family").path()).into_iter().flatten();
        files.map(|file| file.expect("a file").path()).collect::<Vec<_>>()
    });
    let refuted = pairs.filter_map(|before| {
        let after = before.to_str()?.replace(".before.", ".after.");
        (after != before.to_str()? && Path::new(&after).is_file()).then(|| (before.clone(), after))
    });
    let forged =
        refuted.map(|(before, after)| (before.to_str().expect("UTF-8").to_owned(), after)).find(|(before, after)| {
            let expected = fs::read_to_string(before).expect("a pair");
            let plain = !expected.lines().next().is_some_and(|line| line.contains("gpu="));
            plain && run(folder.path(), &format!("check {before} {after} --engine interpreter")).0 == Some(1)
        });
    let (before, after) = forged.expect("a pair that differs");
    let load = |path: &str| report::load(Path::new(path), None).expect("a pair").remove(0).program.text();
    let cache = Cache::new(&folder.path().join("cache")).expect("a folder");
    let key = VerdictKey::of(&[target.name, "Uninterpreted", &load(&before), &load(&after)]);
    cache.put(key, &Vec::<String>::new());
    let text = expect(&folder, &format!("check {before} {after} --engine interpreter,smt --cache cache"), 5);
    assert!(text.contains("proved what a run refutes"), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_written_is_74() {
    let folder = folder("unwritten");
    for arguments in [
        "verify good.nir",
        "fuzz --seed 1 --programs 1",
        "compile good.nir",
        "--help",
        "man",
        "run good.nir",
        "--format json stats good.nir",
    ] {
        let full = File::options().write(true).open("/dev/full").expect("/dev/full");
        let output = command(folder.path(), arguments).stdout(full).output().expect("our own program");
        assert_eq!(output.status.code(), Some(74), "{arguments}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{arguments}: {output:?}");
    }
    // A file where a folder should be: nobody can write into that, root included.
    fs::write(folder.path().join("file"), "").expect("a file");
    for arguments in [
        "verify good.nir --failures file/x",
        "verify good.nir --engine smt --cache file/x",
        "verify good.nir --engine smt --emit-smt file/x",
        "check good.nir good.nir --engine smt --cache file/x",
        "fuzz --seed 1 --programs 1 --failures file/x",
        "rules --no-lemmas --emit-smt file/x",
    ] {
        let text = expect(&folder, arguments, 74);
        // It is tried before the first program.
        assert!(text.contains("cannot be written") && !text.contains(" programs, "), "{arguments}: {text}");
    }
    // A folder that was only tried is gone.
    expect(&folder, "verify good.nir --failures some/folder", 0);
    assert!(!folder.path().join("some").exists());
}

/// Sends a signal at a random moment, and returns the exit code and the output.
fn interrupted(folder: &Path, arguments: &str, signal: &str, after: Duration) -> (Option<i32>, String) {
    let mut child = command(folder, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("our own program");
    // `wait` would close it, and what reads it would end by itself.
    let _input = child.stdin.take();
    // Until it handles signals: this line is printed after that.
    let mut out = child.stdout.take().expect("a pipe");
    let mut first = [0];
    let _ = out.read(&mut first);
    std::thread::sleep(after);
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill").success());
    let status = child.wait().expect("it is ours");
    let mut text = String::from_utf8_lossy(&first).into_owned();
    let _ = out.read_to_string(&mut text);
    let _ = child.stderr.take().expect("a pipe").read_to_string(&mut text);
    (status.code(), text)
}

#[test]
#[cfg(unix)]
fn signals_end_in_order() {
    let folder = folder("signals");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    fs::create_dir_all(folder.path().join("failures")).expect("a folder");
    let verify = format!("--format json verify {} --engine interpreter,registers,smt --jobs 1", corpus.display());
    for (number, arguments) in [
        verify.as_str(),
        "--format json fuzz --seed 1 --jobs 1",
        "--format json self-test planted-bugs --findings 2",
        "--format json self-test kill-matrix --mutants 100000 --jobs 1",
        "--format json self-test pairs --count 100000 --jobs 1",
        "--format json self-test agreement --programs 100000 --jobs 1",
        // Reads a pipe that nobody writes.
        "--format json verify -",
        "--format json compile -",
    ]
    .into_iter()
    .enumerate()
    {
        for moment in 0..if number < 2 { 5 } else { 2 } {
            let after = Duration::from_micros(program_seed(number as u64, moment) % 300_000);
            let (signal, code) = if moment == 1 { ("-TERM", 143) } else { ("-INT", 130) };
            let (found, text) = interrupted(folder.path(), arguments, signal, after);
            assert_eq!(found, Some(code), "{arguments}: {text}");
            // It has come to its last line.
            let last = text.lines().rfind(|line| line.starts_with('{')).unwrap_or_default();
            assert!(last.contains("\"type\":\"end\"") && last.contains("\"interrupted\""), "{arguments}: {text}");
        }
    }
}
