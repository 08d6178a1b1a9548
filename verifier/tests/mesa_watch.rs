//! `mesa --watch`: a stream is checked while it runs, in bounded queues, and checked shaders are not checked again.
//! `mesa --compile`.

use crate::common::folder::Folder;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

const LOG: &str = include_str!("../../corpus/mesa/copies.log");

/// The log with another comment: the same shader for engines, another text.
fn variant(number: u32) -> String {
    LOG.replace("// place", &format!("// place {number}"))
}

/// The log with a register that is dropped after `ir3_cp`.
fn refuted() -> String {
    let at = LOG.find("AFTER: ir3_cp:").expect("a section");
    format!("{}{}", &LOG[..at], LOG[at..].replacen("(neg)ssa_3", "ssa_3", 1))
}

fn watch(folder: &Path, arguments: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_ir3-equiv"))
        .args("mesa --watch -".split(' ').chain(arguments.split_whitespace()))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("our own program")
}

/// A whole stream, written at once: the exit code and both outputs.
fn whole(folder: &Path, arguments: &str, stream: &str) -> (Option<i32>, String) {
    let mut child = watch(folder, arguments);
    child.stdin.take().expect("a pipe").write_all(stream.as_bytes()).expect("written");
    all(&child.wait_with_output().expect("an output"))
}

fn all(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
    (output.status.code(), text)
}

fn write(pipe: &mut ChildStdin, text: &str) {
    pipe.write_all(text.as_bytes()).and_then(|()| pipe.flush()).expect("written");
}

/// Reads standard output up to a line that has a text.
fn read_to(reader: &mut impl BufRead, wanted: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        assert!(reader.read_line(&mut seen).expect("a line") > 0, "{wanted} is not in: {seen}");
    }
    seen
}

#[test]
fn a_table_is_there_before_the_end_of_the_stream() {
    let folder = Folder::new("watch-slow");
    let mut child = watch(folder.path(), "--verbose");
    let (mut pipe, mut lines) =
        (child.stdin.take().expect("a pipe"), BufReader::new(child.stdout.take().expect("a pipe")));
    // In pieces that end anywhere.
    for piece in variant(1).as_bytes().chunks(700) {
        pipe.write_all(piece).and_then(|()| pipe.flush()).expect("written");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Nothing follows: the stream is open, and has no next headline.
    let text = read_to(&mut lines, "nir → final code");
    assert!(text.contains("<stdin>#0: VERT (line 1), a660") && text.contains("register allocation"), "{text}");
    assert!(!text.contains("stream:"), "{text}");
    write(&mut pipe, "the application says something\n");
    write(&mut pipe, &refuted());
    let text = read_to(&mut lines, "written to ");
    assert!(text.contains("ir3_cp                        refuted"), "{text}");
    drop(pipe);
    let text = read_to(&mut lines, "stream: 2 shaders: 2 checked, 0 kept, 0 repeated\n");
    assert!(text.contains("2 programs, 16 boundaries"), "{text}");
    assert_eq!(child.wait().expect("the end").code(), Some(1));
}

#[test]
fn a_signal_ends_it_with_what_was_checked() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = Folder::new("watch-signal");
        let mut child = watch(folder.path(), "--verbose");
        let (mut pipe, mut lines) =
            (child.stdin.take().expect("a pipe"), BufReader::new(child.stdout.take().expect("a pipe")));
        let text = variant(1);
        let half = text.find("AFTER: ir3_legalize").expect("a section") + 30;
        write(&mut pipe, &variant(2));
        write(&mut pipe, &text[..half]);
        read_to(&mut lines, "nir → final code");
        let start = Instant::now();
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
        let text = read_to(&mut lines, "stream: ");
        assert!(text.contains("1 program, 8 boundaries: 8 proved"), "{text}");
        assert!(text.contains("stream: 2 shaders: 1 checked, 0 kept, 0 repeated, 1 not checked\n"), "{text}");
        assert_eq!(child.wait().expect("the end").code(), Some(code));
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        let mut errors = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
        let line = LOG.lines().count() + 1;
        assert!(errors.contains(&format!("the shader of line {line} was not complete")), "{errors}");
        drop(pipe);
    }
}

#[test]
fn a_shader_is_checked_once() {
    let folder = Folder::new("watch-twice");
    let noisy = LOG.replace("; hex listing", "frame 7\n; hex listing");
    let (code, text) = whole(folder.path(), "", &format!("{LOG}fps 60\n{LOG}{}{noisy}", variant(1)));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("stream: 4 shaders: 2 checked, 0 kept, 2 repeated\n"), "{text}");
    assert!(text.contains("2 programs, 16 boundaries: 16 proved"), "{text}");
    // Only failures are printed.
    assert!(!text.contains("register allocation"), "{text}");
}

/// The entries of shaders.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder.join("kept/shaders")).expect("a folder");
    let files = |folder: PathBuf| fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    folders.flat_map(|entry| files(entry.expect("a folder").path())).collect()
}

#[test]
fn a_second_run_skips_what_was_checked() {
    let folder = Folder::new("watch-cache");
    let path = folder.path();
    let counts = |text: &str, wanted: &str| assert!(text.contains(&format!("stream: {wanted}")), "{wanted}: {text}");
    let stream = format!("{LOG}{}", variant(1));
    let (code, text) = whole(path, "--cache kept", &stream);
    assert_eq!(code, Some(0), "{text}");
    counts(&text, "2 shaders: 2 checked, 0 kept");
    assert_eq!(entries(path).len(), 2);
    let (code, text) = whole(path, "--cache kept --verbose", &stream);
    assert_eq!(code, Some(0), "{text}");
    counts(&text, "2 shaders: 0 checked, 2 kept");
    assert!(text.contains("a660 (kept)") && text.contains("2 programs, 16 boundaries: 16 proved"), "{text}");
    // Other options, other text.
    for other in ["--seed 2", "--runs 3", "--engine smt", "--timeout 1s", "--gpu a630", "--compile"] {
        let (_, text) = whole(path, &format!("--cache kept {other}"), LOG);
        counts(&text, "1 shader: 1 checked, 0 kept");
    }
    counts(&whole(path, "--cache kept", &variant(2)).1, "1 shader: 1 checked, 0 kept");
    let (_, text) = whole(path, "--cache kept --compile", LOG);
    counts(&text, "1 shader: 0 checked, 1 kept");
    assert!(text.contains("our backend: 1 program"), "{text}");
    // No path and no line number is part of a shader.
    counts(&whole(path, "--cache kept", &format!("text\n{LOG}")).1, "1 shader: 0 checked, 1 kept");
}

#[test]
fn what_was_no_pass_is_none_when_it_is_kept() {
    let folder = Folder::new("watch-kept");
    let path = folder.path();
    let first = whole(path, "--cache kept", &refuted());
    let second = whole(path, "--cache kept", &refuted());
    for (code, text) in [&first, &second] {
        assert_eq!(*code, Some(1), "{text}");
        assert!(text.contains("ir3_cp                        refuted") && text.contains("written to "), "{text}");
        assert!(text.contains("6 proved, 0 tested, 2 refuted"), "{text}");
    }
    assert!(second.1.contains("a660 (kept)") && second.1.contains("1 shader: 0 checked, 1 kept"), "{}", second.1);
    // Its folder is a part of the result.
    fs::remove_dir_all(path.join("ir3-equiv-failures")).expect("a folder");
    let (code, text) = whole(path, "--cache kept", &refuted());
    assert!(code == Some(1) && text.contains("1 shader: 1 checked, 0 kept"), "{text}");
    assert!(path.join("ir3-equiv-failures").is_dir());
    // Unknown, for a time that is too short, or a fuel; the interpreter alone has no proof.
    let (code, text) = whole(path, "--cache kept --engine registers", LOG);
    assert_eq!(code, Some(3), "{text}");
    let (code, text) = whole(path, "--cache kept --engine registers", LOG);
    assert!(code == Some(3) && text.contains("1 kept"), "{text}");
    // Incomplete shaders are not kept.
    let cut = &LOG[..LOG.find("AFTER: ir3_legalize").expect("a section") + 40];
    for _ in 0..2 {
        let (code, text) = whole(path, "--cache kept", cut);
        assert!(code == Some(2) && text.contains("1 checked, 0 kept, 0 repeated, 1 incomplete"), "{text}");
    }
}

#[test]
fn a_corrupt_entry_is_ignored_and_reported() {
    let folder = Folder::new("watch-corrupt");
    let path = folder.path();
    whole(path, "--cache kept", &refuted());
    let [entry] = &entries(path)[..] else { panic!("one entry") };
    let good = fs::read_to_string(entry).expect("an entry");
    assert!(good.contains("refuted"));
    // One that would make a refutation a proof, one that is cut, and one that is another's.
    for bad in [
        good.replace("refuted", "proved"),
        good[..good.len() / 2].to_owned(),
        good.replacen("\"key\":\"", "\"key\":\"0", 1),
        String::new(),
    ] {
        fs::write(entry, &bad).expect("a file");
        let (code, text) = whole(path, "--cache kept", &refuted());
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("1 checked, 0 kept, 0 repeated, 1 corrupt entries of the cache"), "{text}");
        assert!(text.contains("ignored: "), "{text}");
        // It is replaced.
        assert!(whole(path, "--cache kept", &refuted()).1.contains("0 checked, 1 kept"));
    }
}

#[test]
fn too_many_shaders_block_or_are_dropped() {
    let folder = Folder::new("watch-queue");
    let stream: String = (0..60).map(variant).collect();
    let (code, text) = whole(folder.path(), "--queue 1 --jobs 1", &stream);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("stream: 60 shaders: 60 checked, 0 kept, 0 repeated\n"), "{text}");
    let (code, text) = whole(folder.path(), "--queue 1 --jobs 1 --drop", &stream);
    assert_eq!(code, Some(3), "{text}");
    let line = text.lines().find(|line| line.starts_with("stream: 60 shaders: ")).expect("a line");
    let number = |what: &str| -> u32 {
        let before = line.split(what).next().unwrap_or_default().trim_end();
        before.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    };
    assert_eq!(number(" checked") + number(" dropped"), 60, "{line}");
    assert!(number(" dropped") > 0 && number(" checked") > 0, "{line}");
}

#[test]
fn a_stream_without_shaders_shows_nothing() {
    let folder = Folder::new("watch-nothing");
    let (code, text) = whole(folder.path(), "", "hello\n\u{1b}[31mworld\n");
    assert!(code == Some(4) && text.contains("stream: 0 shaders"), "{text}");
    // Bytes that are no text do not end it.
    let mut child = watch(folder.path(), "");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(b"\xff\xfe\x00 game\n").and_then(|()| pipe.write_all(LOG.as_bytes())).expect("written");
    drop(pipe);
    let (code, text) = all(&child.wait_with_output().expect("an output"));
    assert!(code == Some(0) && text.contains("1 shader: 1 checked"), "{text}");
    let output = Command::new(env!("CARGO_BIN_EXE_ir3-equiv")).args(["mesa", "--watch", "a", "b"]).output();
    let (code, text) = all(&output.expect("our own program"));
    assert!(code == Some(2) && text.contains("expected one stream"), "{text}");
}

fn mesa(folder: &Path, arguments: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"));
    let output = command.args(arguments.split_whitespace()).current_dir(folder).stdin(Stdio::null()).output();
    all(&output.expect("our own program"))
}

#[test]
fn the_nir_of_a_log_goes_through_our_backend() {
    let folder = Folder::new("mesa-compile");
    let path = folder.path();
    fs::write(path.join("good.log"), LOG).expect("a file");
    let (code, text) = mesa(path, "mesa --compile good.log");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("good.log#0 (our backend)") && text.contains("our backend: 1 program, "), "{text}");
    assert!(text.contains("  ours/Mesa's: non-nops ") && text.contains("1 of Mesa's 1 programs counted"), "{text}");
    // The same metrics as `stats`, and the same verdicts as `verify`.
    let rows = |arguments: &str, kind: &str| -> Vec<Value> {
        let text = mesa(path, &format!("--format json {arguments}")).1;
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.filter(|line| line["type"] == kind).collect()
    };
    for kind in ["costs", "totals"] {
        let [ours, theirs] = ["mesa --compile good.log", "stats --beside-mesa good.log"].map(|it| rows(it, kind));
        assert_eq!(ours.len(), 1);
        assert!(!ours[0]["ours"].is_null());
        for field in ["ours", "mesa", "is_exact", "exact", "shaders"] {
            assert_eq!(ours[0][field], theirs[0][field], "{kind} {field}");
        }
    }
    let verdicts = |arguments: &str| -> Vec<[Value; 3]> {
        let of = rows(arguments, "check").into_iter().filter(|row| row["program"] != "good.log#0");
        of.map(|row| ["stage", "engine", "verdict"].map(|field| row[field].clone())).collect()
    };
    let ours = verdicts("mesa --compile good.log");
    assert!(ours.len() > 4 && ours == verdicts("verify good.log"), "{ours:?}");
    // A planted bug of our backend is found; Mesa's passes are unchanged.
    let loops = include_str!("../../corpus/control-flow/fibonacci.nir");
    fs::write(path.join("loop.log"), format!("NIR (final form) for CL shader (null):\n{loops}\n{LOG}"))
        .expect("a file");
    let (code, text) = mesa(path, "mesa --compile loop.log --plant inverted-branch");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("2 programs, 8 boundaries: 8 proved, 0 tested, 0 refuted, 0 unknown"), "{text}");
    assert!(text.contains("our backend: 2 programs, ") && text.contains(" 1 refuted, "), "{text}");
    assert!(text.contains("written to ir3-equiv-failures") && text.contains("not compared: the log has no"), "{text}");
    let (code, text) = mesa(path, "mesa good.log --plant inverted-branch");
    assert!(code == Some(2) && text.contains("--compile"), "{text}");
    let (code, text) = mesa(path, "mesa --compile good.log --max-registers min --quiet");
    assert!(code == Some(0) && !text.contains("ours/Mesa's: "), "{text}");
}

/// A shader that our backend refuses is named, with its reason, and counted.
#[test]
fn what_our_backend_refuses_is_named() {
    let folder = Folder::new("mesa-refused");
    let refused = LOG.replace("%2 = fneg %1.y", "%2 = @load_gs_header_ir3");
    fs::write(folder.path().join("x.log"), refused).expect("a file");
    let (code, text) = mesa(folder.path(), "mesa --compile x.log");
    assert!(matches!(code, Some(1 | 3)), "{text}");
    assert!(text.contains("x.log#0 (our backend): refused: ") && text.contains("0 programs, 1 refused"), "{text}");
    assert!(text.contains("load_gs_header_ir3"), "{text}");
}

#[test]
fn one_bad_path_does_not_hide_the_others() {
    let folder = Folder::new("mesa-paths");
    let path = folder.path();
    fs::write(path.join("good.log"), LOG).expect("a file");
    fs::write(path.join("bad.log"), LOG.replace("AFTER: ir3_cp:", "AFTER: ir3_cp:\nMESA: info: AFTER: x:"))
        .expect("a file");
    fs::write(path.join("bytes.log"), b"\xff\xff\n").expect("a file");
    fs::create_dir(path.join("empty")).expect("a folder");
    for bad in ["bad.log", "bytes.log", "none.log", "empty"] {
        for (command, shown) in [
            ("stats --beside-mesa", "1 of Mesa's 1 programs counted"),
            ("stats", "good.log - VERT shader"),
            ("verify", "boundaries: "),
            ("mesa", "good.log#0: VERT"),
            ("hazards", "1 programs"),
        ] {
            if bad == "bad.log" && matches!(command, "hazards" | "stats") {
                continue;
            }
            for order in [format!("{bad} good.log"), format!("good.log {bad}")] {
                let (code, text) = mesa(path, &format!("{command} {order}"));
                assert_eq!(code, Some(2), "{command} {order}: {text}");
                assert!(text.contains(shown) && text.contains(bad), "{command} {order}: {text}");
            }
        }
    }
    let (code, text) = mesa(path, "verify none.log other.log");
    assert!(code == Some(2) && text.contains("none.log") && text.contains("other.log"), "{text}");
}
