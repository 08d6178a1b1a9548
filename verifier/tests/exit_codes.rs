//! The table of exit codes in README, row by row; files that cannot be written; and signals.

use crate::common;
use crate::common::folder::Folder;
use ir3_compiler::target::Target;
use ir3_harness::check::cache::{Cache, VerdictKey};
use ir3_programs::input;
use ir3_programs::mesa::pair_file::read_pairs;
use ir3_programs::seeds::program_seed;
use std::fs::{self, File};
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ir3-equiv");

fn command(folder: &Path, arguments: &str) -> Command {
    common::folder::command(folder, arguments.split_whitespace())
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
    expect(&folder, "fuzz --seed 1 --from 18446744073709551615 --programs 2", 2);
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

/// A limit on the size of files (512 or 1,024 bytes, by shell) is a folder that cannot be written: results are printed.
#[test]
fn a_limit_on_files_loses_no_failure() {
    let folder = folder("file-limit");
    let refuted = |arguments: &str| {
        let script = format!("ulimit -f 1; exec {PROGRAM} {arguments}");
        let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().expect("a shell");
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {text}");
        assert!(text.contains("cannot be written: File too large"), "{arguments}: {text}");
        text
    };
    let text = refuted("verify good.nir --plant inverted-branch --seed 1");
    assert!(text.contains(" 1 refuted"), "{text}");
    let text = refuted("fuzz --seed 1 --programs 200 --jobs 1 --gpu a660 --plant inverted-branch");
    assert!(text.contains("refuted: program 2 (") && text.contains(" 1 refuted"), "{text}");
}

/// Refusals, and runs without anything to check, are reported once.
#[test]
fn messages_say_what_was_found() {
    let folder = folder("messages");
    for (arguments, code, message) in [
        ("assemble /dev/null", 4, "/dev/null: found no instruction"),
        ("disassemble /dev/null", 4, "/dev/null: found no word"),
        ("ir3-selftest words /dev/null", 4, "found no word"),
        ("run good.nir --env /dev/null", 2, "/dev/null: EOF while parsing a value at line 1 column 0"),
        ("compile good.nir --round-robin old", 2, "--allocator <ALLOCATOR>"),
        ("--version", 0, "ir3-equiv "),
        ("fuzz --help", 0, "--profile <PROFILE>"),
    ] {
        let text = expect(&folder, arguments, code);
        assert!(text.contains(message), "{arguments}: {text}");
    }
}

/// A part of a campaign that was interrupted is named.
#[test]
fn an_interrupted_part_is_named() {
    let folder = folder("parts");
    expect(&folder, "fuzz --seed 1 --programs 4 --shard 1/1 --failures part", 0);
    expect(&folder, "merge part", 0);
    let path = folder.path().join("part/results.json");
    let text = fs::read_to_string(&path).expect("a file");
    assert!(text.contains("\"interrupted\": false"), "{text}");
    fs::write(&path, text.replace("\"interrupted\": false", "\"interrupted\": true")).expect("a file");
    let text = expect(&folder, "merge part", 3);
    assert!(text.contains("part 1/1 was interrupted"), "{text}");
}

/// A byte order mark is no part of a text, and has no column.
#[test]
fn a_byte_order_mark_is_skipped() {
    let folder = folder("mark");
    let mark = |name: &str, to: &str| {
        let text = fs::read_to_string(folder.path().join(name)).expect("a file");
        fs::write(folder.path().join(to), format!("\u{feff}{text}")).expect("a file");
    };
    mark("good.nir", "marked.nir");
    mark("bad.nir", "worse.nir");
    expect(&folder, "verify marked.nir", 0);
    expect(&folder, "run marked.nir", 0);
    let place = |name: &str| {
        let text = expect(&folder, &format!("verify {name}"), 2);
        text.split(name).nth(1).map(str::to_owned).expect("its place")
    };
    assert_eq!(place("worse.nir"), place("bad.nir"));
}

/// A process for the compiler that does not start is one error, and no failure of the compiler.
#[test]
fn a_worker_that_does_not_start_is_bad_input() {
    let folder = folder("start");
    for arguments in ["verify good.nir", "fuzz --seed 1 --programs 2"] {
        let output = command(folder.path(), arguments).env("TMPDIR", "/nothing").output().expect("our own program");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {text}");
        assert!(text.contains("does not start: /nothing/ir3-equiv-"), "{arguments}: {text}");
        let text = expect(&folder, &format!("{arguments} --memory 1M"), 2);
        assert!(text.contains("with 1 MiB of memory, does not start: "), "{arguments}: {text}");
    }
    // A limit that is lower than that of the option counts.
    let script = format!("ulimit -v 1500000; exec {PROGRAM} verify good.nir");
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().expect("a shell");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// A file of an option is tried before the first program.
#[test]
fn the_file_of_the_coverage_is_tried_first() {
    let folder = folder("coverage-file");
    let text = expect(&folder, "fuzz --seed 1 --programs 100000 --coverage nothing/cov.json", 74);
    assert!(text.contains("nothing/cov.json: cannot be written") && !text.contains("programs of"), "{text}");
}

/// A failed write of a table leaves the old one, and hides no verdict.
#[test]
fn a_coverage_table_is_replaced_when_it_is_complete() {
    let folder = folder("coverage-limit");
    expect(&folder, "fuzz --gpu a660 --seed 1 --programs 4 --coverage cov.json", 0);
    let before = fs::read_to_string(folder.path().join("cov.json")).expect("a file");
    let script = format!("ulimit -f 1; exec {PROGRAM} fuzz --gpu a660 --seed 1 --programs 4 --coverage cov.json");
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().expect("a shell");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert_eq!(output.status.code(), Some(74), "{text}");
    assert!(text.contains("cov.json: cannot be written: File too large") && text.contains("4 programs, "), "{text}");
    assert_eq!(fs::read_to_string(folder.path().join("cov.json")).expect("a file"), before);
}

#[test]
fn what_is_not_reached_is_3_and_nothing_checked_4() {
    let folder = folder("unknown");
    // The interpreter proves nothing.
    expect(&folder, "verify good.nir --engine interpreter --require proved", 3);
    // The register checker does not apply to selection, for one.
    let text = expect(&folder, "verify good.nir --engine registers --plant inverted-branch --require proved", 3);
    assert!(
        text.contains("select                unknown") && text.contains("no selected engine compares them"),
        "{text}"
    );
    // Nothing fits into one register.
    let text = expect(&folder, "verify good.nir --engine registers --max-registers 1", 4);
    assert!(text.contains("unknown: needs spilling"), "{text}");
    let text = expect(&folder, "verify good.nir --engine interpreter --max-registers 1", 4);
    assert!(text.contains("unknown: needs spilling"), "{text}");
    let text = expect(&folder, "fuzz --seed 2 --gpu a660 --engine registers --max-registers 1 --programs 12", 4);
    // Every program is counted by its reason, and the first of them are named.
    assert!(text.contains("12 × spill: needs spilling\n  program 0 (alu, a660, seed"), "{text}");
    assert!(text.contains("): needs spilling: ") && text.contains("  and 2 more\n"), "{text}");
}

/// A forged proof in a cache: the prover is unsound, and a run shows it.
#[test]
fn an_unsound_prover_is_5() {
    let folder = folder("unsound");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/pairs");
    let target = Target::default();
    let pairs = fs::read_dir(corpus).expect("pairs").flat_map(|family| {
        let files = fs::read_dir(family.expect("a family").path()).into_iter().flatten();
        files.map(|file| file.expect("a file").path()).collect::<Vec<_>>()
    });
    let forged = pairs.filter_map(|pair| pair.to_str().map(str::to_owned)).find(|pair| {
        let pairs = read_pairs(Path::new(pair)).unwrap_or_default();
        let is_plain = pairs.len() == 1 && !pairs[0].head.iter().any(|line| line.contains("gpu="));
        is_plain && run(folder.path(), &format!("check {pair} --engine interpreter")).0 == Some(1)
    });
    let pair = forged.expect("a pair that differs");
    let texts = read_pairs(Path::new(&pair)).expect("a pair");
    let [before, after] = input::load_pair(&texts[0], None).expect("a pair").map(|side| side.text());
    let cache = Cache::new(&folder.path().join("cache")).expect("a folder");
    let key = VerdictKey::of(&[target.name, "Uninterpreted", &before, &after]);
    cache.put(key, &Vec::<String>::new());
    let text = expect(&folder, &format!("check {pair} --engine interpreter,smt --cache cache"), 5);
    assert!(text.contains("proved a boundary that a run refutes"), "{text}");
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
        "completions bash",
        "check good.nir good.nir",
        "generate",
        "reduce good.nir --plant inverted-branch",
        "reduce good.nir --test true",
        "show good.bundle -o -",
        "triage .",
        "rules --no-lemmas --timeout 1ms",
        "ir3-selftest kill-matrix --mutants 1 --engine registers",
        "run good.nir",
        "--format json stats good.nir",
    ] {
        let full = File::options().write(true).open("/dev/full").expect("/dev/full");
        let output = command(folder.path(), arguments).stdout(full).output().expect("our own program");
        assert_eq!(output.status.code(), Some(74), "{arguments}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{arguments}: {output:?}");
    }
    // A file in the place of a folder: no user can write into that, not even root.
    fs::write(folder.path().join("file"), "").expect("a file");
    for arguments in [
        "verify good.nir --failures file/x",
        "verify good.nir --engine smt --cache file/x",
        "verify good.nir --engine smt --emit-smt file/x",
        "check good.nir good.nir --engine smt --cache file/x",
        "fuzz --seed 1 --programs 1 --failures file/x",
        "rules --no-lemmas --emit-smt file/x",
        "rules --no-lemmas --html file/x",
        "verify good.nir --html file/x",
        "check good.nir good.nir --engine smt --emit-smt file/x",
        "fuzz --seed 1 --programs 1 --cache file/x",
        "fuzz --seed 1 --programs 1 --emit-smt file/x",
        "generate --bytes file/x",
        "reduce good.nir --plant inverted-branch -o file/x",
        "reduce good.nir --test true -o file/x",
        "reduce good.nir good.nir -o file/x",
        "show good.bundle -o file/x",
        "ir3-selftest kill-matrix --mutants 1 --cache file/x",
        "ir3-selftest prover-mutants --found file/x",
    ] {
        let text = expect(&folder, arguments, 74);
        // It is tried before the first program.
        assert!(text.contains("cannot be written") && !text.contains(" programs, "), "{arguments}: {text}");
    }
    // A folder that was only tried is gone.
    expect(&folder, "verify good.nir --failures some/folder", 0);
    assert!(!folder.path().join("some").exists());
}

/// Failures in the middle of a run: a folder that could be written before the first program.
#[test]
fn what_cannot_be_written_later_is_74_too() {
    let folder = folder("unwritten-later");
    let pairs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/pairs/arithmetic");
    let check = format!("check {} --engine smt", pairs.join("absolute-by-max.pair").display());
    expect(&folder, &format!("{check} --emit-smt queries"), 0);
    // The files of the queries become folders.
    let queries = fs::read_dir(folder.path().join("queries")).expect("queries");
    let queries: Vec<_> = queries.map(|file| file.expect("a file").path()).collect();
    assert!(!queries.is_empty());
    for path in &queries {
        fs::remove_file(path).and_then(|()| fs::create_dir(path)).expect("our own folder");
    }
    let text = expect(&folder, &format!("{check} --emit-smt queries"), 74);
    assert!(text.contains("queries cannot be written to queries"), "{text}");
    // So do the files of proofs.
    expect(&folder, &format!("{check} --cache proofs"), 0);
    for part in fs::read_dir(folder.path().join("proofs")).expect("proofs") {
        let part = part.expect("a folder").path();
        fs::remove_dir_all(&part).and_then(|()| fs::write(&part, "")).expect("our own folder");
    }
    let text = expect(&folder, &format!("{check} --cache proofs"), 74);
    assert!(text.contains("proofs cannot be written to proofs"), "{text}");
}

/// Every command that runs programs has `--fuel`, and a bundle keeps it.
#[test]
fn fuel_is_given_wherever_programs_run() {
    let folder = folder("fuel");
    expect(&folder, "run good.nir --fuel 5", 3);
    let runs = "check good.nir good.nir --engine interpreter";
    assert!(expect(&folder, &format!("{runs} --fuel 5"), 3).contains("out of fuel"));
    let (code, text) = run(folder.path(), &format!("{runs} --fuel 5000"));
    assert!(matches!(code, Some(0 | 3)) && !text.contains("out of fuel"), "{text}");
    assert!(expect(&folder, "fuzz --seed 1 --programs 4 --fuel 2", 4).contains("out of fuel"));
    expect(&folder, "ir3-selftest pairs --count 2 --engine interpreter --fuel 2", 0);
    expect(&folder, "reduce good.nir --plant inverted-branch --fuel 5", 2);
    expect(&folder, "reduce good.nir --plant inverted-branch --fuel 7654", 0);
    let bundle = fs::read_dir(folder.path().join("good.bundle")).expect("a bundle");
    let mut texts = bundle.filter_map(|file| fs::read_to_string(file.expect("a file").path()).ok());
    assert!(texts.any(|text| text.contains("\"fuel\": 7654")));
    expect(&folder, "verify good.bundle", 1);
    expect(&folder, "run good.nir --fuel 0", 2);
}

/// The rows of a slow log are printed before its end.
#[test]
fn a_log_is_read_as_it_comes() {
    let folder = folder("slow");
    let nir = fs::read_to_string(folder.path().join("good.nir")).expect("a file");
    let nir: String = nir.lines().filter(|line| !line.starts_with("//")).map(|line| format!("{line}\n")).collect();
    let headline = "NIR (final form) for CL shader (null):\n";
    let rest = "Native code for unnamed\n; CL: outputs:\n; gpu gen 7, mergedregs 1\n";
    let mut child = command(folder.path(), "--format json verify - --engine interpreter")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("our own program");
    let mut input = child.stdin.take().expect("a pipe");
    let out = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let (send, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || out.lines().try_for_each(|line| send.send(line.expect("text")).ok()));
    let next = |what: &str| loop {
        let line = lines.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("no row of {what}"));
        if line.contains("\"check\"") && line.contains(what) {
            break line;
        }
    };
    input.write_all(format!("{headline}{nir}\n{rest}{headline}").as_bytes()).expect("it reads");
    assert!(next("<stdin>#0").contains("a750"));
    // The end of the log belongs to another generation.
    let other = rest.replace("gen 7", "gen 6");
    input.write_all(format!("{nir}\n{rest}{headline}{nir}\n{other}").as_bytes()).expect("it reads");
    next("<stdin>#1");
    drop(input);
    assert_eq!(child.wait().expect("it is ours").code(), Some(2));
    let rest: Vec<String> = lines.iter().collect();
    assert!(rest.iter().any(|line| line.contains("found a log of a6xx, expected one of a7xx")), "{rest:?}");
    assert!(!rest.iter().any(|line| line.contains("<stdin>#2")), "{rest:?}");
}

/// Sends a signal at a random moment, and returns the exit code, the output, and the time that it took to end.
fn interrupted(mut command: Command, signal: &str, after: Duration) -> (Option<i32>, String, Duration) {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("our own program");
    // `wait` would close it, and its reader would end by itself.
    let _input = child.stdin.take();
    // Until it handles signals: this line is printed after that.
    let mut out = child.stdout.take().expect("a pipe");
    let mut first = [0];
    let _ = out.read(&mut first);
    std::thread::sleep(after);
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill").success());
    let start = Instant::now();
    let status = child.wait().expect("it is ours");
    let time = start.elapsed();
    let mut text = String::from_utf8_lossy(&first).into_owned();
    let _ = out.read_to_string(&mut text);
    let _ = child.stderr.take().expect("a pipe").read_to_string(&mut text);
    (status.code(), text, time)
}

/// The moments at which each command gets a signal: few, or the number that `ci/signals` sets.
fn moments(few: u64) -> u64 {
    let asked = std::env::var("IR3_MOMENTS").ok();
    asked.map_or(few, |asked| asked.parse().expect("a number"))
}

/// The arguments of the commands that run long, with the files that they need in a folder. `MOMENT` is replaced by a
/// number that is different each time.
fn long_commands(folder: &Folder) -> Vec<String> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let fibonacci = corpus.join("control-flow/fibonacci.nir").display().to_string();
    for (name, arguments) in [
        ("before.ir3", format!("compile {fibonacci}")),
        ("after.ir3", format!("compile {fibonacci} --plant inverted-branch")),
    ] {
        let text = expect(folder, &arguments, 0);
        fs::write(folder.path().join(name), text).expect("a file");
    }
    expect(folder, "generate --bytes big --count 1 --instructions 1000", 0);
    fs::write(folder.path().join("slow.sh"), "#!/bin/sh\nsleep 0.3\n").expect("a file");
    let failures = "--programs 60 --plant dropped-copy --keep-going --no-reduce --failures failures";
    expect(folder, &format!("fuzz --seed 1 {failures}"), 1);
    let verify = format!("verify {} --engine interpreter,registers,smt --jobs 1", corpus.display());
    let commands = [
        verify.as_str(),
        "fuzz --seed 1 --jobs 1",
        "ir3-selftest planted-bugs --findings 2",
        "ir3-selftest kill-matrix --mutants 100000 --jobs 1",
        "ir3-selftest pairs --count 100000 --jobs 1",
        "ir3-selftest agreement --programs 100000 --jobs 1",
        "reduce big/seed-1-0 --plant dropped-copy --jobs 1 -o big-MOMENT.bundle",
        "reduce before.ir3 --test sh --test-arg slow.sh --jobs 1 -o slow-MOMENT.ir3",
        "reduce before.ir3 after.ir3 --jobs 1 -o pair-MOMENT",
        "triage failures --jobs 1",
        "rules",
        // Reads a pipe without a writer.
        "verify -",
        "compile -",
    ];
    commands.iter().map(|&command| format!("--format json {command}")).collect()
}

#[test]
#[cfg(unix)]
fn signals_end_in_order() {
    let folder = folder("signals");
    let mut commands: Vec<_> = long_commands(&folder).into_iter().map(|it| (None, it)).collect();
    // This one needs a build of its own.
    if let Ok(program) = std::env::var("IR3_PROVER_MUTANTS") {
        let pairs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/pairs");
        commands.push((Some(program), format!("--format json prover-mutants --jobs 1 --pairs {}", pairs.display())));
    }
    for (number, (program, arguments)) in commands.into_iter().enumerate() {
        for moment in 0..moments(if number < 2 { 2 } else { 1 }) {
            let after = Duration::from_micros(program_seed(number as u64, moment) % 300_000);
            let (signal, code) = if moment % 2 == 1 { ("-TERM", 143) } else { ("-INT", 130) };
            let arguments = arguments.replace("MOMENT", &moment.to_string());
            let command = match &program {
                None => command(folder.path(), &arguments),
                Some(program) => {
                    let mut command = Command::new(program);
                    command.args(arguments.split_whitespace()).current_dir(folder.path());
                    command
                }
            };
            let (found, text, time) = interrupted(command, signal, after);
            assert_eq!(found, Some(code), "{arguments}: {text}");
            // On a machine that is not busy it takes less than a second.
            assert!(time < Duration::from_secs(5), "{arguments}: {time:?}");
            // Output up to the last complete line.
            let last = text.lines().rfind(|line| line.starts_with('{')).unwrap_or_default();
            assert!(last.contains("\"type\":\"end\"") && last.contains("\"interrupted\""), "{arguments}: {text}");
            println!("{signal} after {after:?}, {time:?}: {arguments}");
        }
    }
}
