//! Drivers that crash, hang, print too much, and so on: each is an answer with its name, and the worker continues.

#![cfg(target_os = "linux")]

mod common;

use common::{Answer, compile, shader, worker};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The driver of examples/stand_in.rs, which cargo builds with the tests.
fn stand_in() -> PathBuf {
    worker().parent().expect("a folder").join("examples/libstand_in.so")
}

fn command(doing: &str) -> Command {
    let mut command = Command::new(worker());
    command.arg("--driver").arg(stand_in()).args(["--time", "1", "--memory", "200", "--output", "4"]);
    command.args(["--set", &format!("STAND_IN={doing}")]);
    command
}

/// The answer for a driver that does something, which is the same for a second module.
fn answer(doing: &str) -> Answer {
    let (first, answers) = compile(command(doing), &[shader("fill.wgsl"), shader("fill.wgsl")]);
    assert_eq!(first, "ready stand-in,", "{doing}");
    let [answer, again] = answers.try_into().expect("two answers");
    assert_eq!((&answer.kind, &answer.reason), (&again.kind, &again.reason), "{doing}");
    answer
}

/// Checks the kind and a part of the reason.
fn expect(doing: &str, kind: &str, reason: &str) -> Answer {
    let answer = answer(doing);
    assert_eq!(answer.kind, kind, "{doing}: {answer:?}");
    assert!(answer.reason.contains(reason), "{doing}: {answer:?}");
    answer
}

#[test]
fn a_driver_that_compiles_is_compiled() {
    assert!(expect("nothing", "compiled", "").log.starts_with("NIR (final form)"));
}

#[test]
fn a_driver_that_crashes_is_named_with_the_signal() {
    expect("crash", "crashed", "signal 11 (invalid address) at libstand_in.so+0x");
    expect("overflow", "crashed", "signal 11 (invalid address) at libstand_in.so+0x");
    expect("abort", "crashed", "signal 6");
    expect("kill", "crashed", "signal 9");
}

#[test]
fn a_driver_that_hangs_is_stopped() {
    for doing in ["loop", "sleep", "closed"] {
        let start = Instant::now();
        expect(doing, "hung", "not done after");
        assert!(start.elapsed() < Duration::from_secs(10), "{doing}");
    }
}

#[test]
fn a_driver_that_takes_all_memory_is_stopped() {
    expect("memory", "memory", "200 MiB");
    expect("no-memory", "memory", "OUT_OF_HOST_MEMORY");
}

#[test]
fn a_driver_that_prints_without_end_is_stopped_and_its_log_is_cut() {
    let answer = expect("flood", "flooded", "4 MiB");
    assert_eq!(answer.log.len(), 4 << 20);
}

#[test]
fn a_driver_that_prints_nothing_is_no_success() {
    expect("silent", "silent", "no shader");
}

#[test]
fn a_driver_that_exits_is_named_with_the_code() {
    expect("exit", "exited", "code 3");
    expect("quit", "exited", "code 0");
}

#[test]
fn a_driver_that_refuses_is_named_with_the_call() {
    expect("refuse", "refused", "vkCreateComputePipelines");
}

#[test]
fn a_process_that_the_driver_leaves_does_not_hold_up_the_answer() {
    let start = Instant::now();
    expect("leave", "compiled", "");
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[test]
fn the_device_of_the_kernel_is_that_of_this_process() {
    assert!(expect("kernel", "compiled", "").log.starts_with("0 msm [1, 12, 0]\n"));
}

#[test]
fn a_driver_that_fails_while_it_is_loaded_is_named() {
    let first = |doing| compile(command(doing), &[]).0;
    assert!(first("load-refuse").starts_with("failed vkCreateInstance: ERROR_INCOMPATIBLE_DRIVER"));
    let none = first("no-device");
    assert!(none.starts_with("failed the driver finds no device"), "{none}");
    // The process ends with it: its parent sees its signal or code.
    assert_eq!((first("load-abort"), first("load-exit")), (String::new(), String::new()));
}

#[test]
fn a_driver_that_is_not_there_or_is_none_is_named() {
    let start = |path: &str| {
        let mut command = Command::new(worker());
        command.args(["--driver", path]);
        compile(command, &[]).0
    };
    assert!(start("/nowhere/driver.so").starts_with("failed /nowhere/driver.so: "));
    assert!(start("libc.so.6").contains("not a Vulkan driver"));
}

#[test]
fn a_limit_on_files_is_named_as_what_it_is() {
    let mut limited = Command::new("sh");
    let worker = worker();
    let (worker, driver) = (worker.display(), stand_in());
    limited.args(["-c", &format!("ulimit -f 1000; exec {worker} --driver {}", driver.display())]);
    let (first, _) = compile(limited, &[]);
    assert!(first.starts_with("failed the limit on the size of files (RLIMIT_FSIZE)"), "{first}");
}

#[test]
fn what_is_no_shader_is_refused_before_the_driver_sees_it() {
    let folder = std::env::temp_dir().join(format!("ir3-turnip-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let written = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let head = [0x0723_0203, 0x0001_0500, 0, 8, 0];
    // OpCapability Float64, OpMemoryModel Logical GLSL450.
    let float64 = [&head[..], &[0x0002_0011, 10, 0x0003_000e, 0, 1]].concat();
    let paths = [
        written("text.spv", b"no module"),
        written("cut.spv", &words(&head[..3])),
        written("float64.spv", &words(&float64)),
        written("empty.spv", &words(&[&head[..], &[0x0003_000e, 0, 1]].concat())),
        written("wrong.wgsl", b"@compute @workgroup_size(1)\nfn main() {\n    let x: i32 = 1.5;\n}\n"),
        written("wrong.comp", b"#version 450\nvoid main() {\n  undefined_name = 1;\n}\n"),
        folder.join("absent.spv"),
        shader("fill.wgsl"),
    ];
    // A driver that crashes on every input.
    let (_, answers) = compile(command("abort"), &paths);
    let kinds: Vec<&str> = answers.iter().map(|answer| &*answer.kind).collect();
    let expected =
        ["invalid", "invalid", "unsupported", "unsupported", "untranslated", "untranslated", "unreadable", "crashed"];
    assert_eq!(kinds, expected, "{answers:#?}");
    assert!(answers[2].reason.contains("Float64"), "{:?}", answers[2]);
    assert!(answers[4].reason.starts_with("3:"), "{:?}", answers[4]);
    assert!(answers[5].reason.starts_with("3:"), "{:?}", answers[5]);
    std::fs::remove_dir_all(folder).expect("to remove it");
}

#[test]
fn a_command_line_that_is_not_valid_ends_the_worker() {
    let start = |arguments: &[&str]| {
        let mut command = Command::new(worker());
        command.args(arguments);
        compile(command, &[]).0
    };
    assert!(start(&[]).starts_with("failed --driver is missing"));
    assert!(start(&["--driver", "x", "--gpu", "a540"]).starts_with("failed turnip has no a540"));
    assert!(start(&["--driver", "x", "--time", "0"]).starts_with("failed --time: found `0`"));
    assert!(start(&["--driver", "x", "--set", "y"]).starts_with("failed --set: found `y`, expected NAME=VALUE"));
}
