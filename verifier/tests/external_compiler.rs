//! `fuzz --compiler`: our own backend as the compiler under test, and shell scripts as compilers that crash, hang and
//! print nonsense.

use crate::common::effort::effort;
use crate::common::folder::{Folder, run, write_script};
use ir3_compiler::nir;
use ir3_compiler::pipeline::{Options, RegisterLimit};
use ir3_compiler::target::Target;
use ir3_harness::check::{EngineKind, Engines, Verdict};
use ir3_harness::mesa::recover::Recovered;
use ir3_harness::mesa::{CODE, Checked, Settings, WHOLE, check_shader, print};
use ir3_programs::generator::{self, Features, Profile};
use ir3_programs::mesa::shader::shaders_of;
use ir3_programs::seeds::program_seed;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Every section of our own logs is read, every boundary is compared, and none is refuted.
#[test]
fn our_own_logs_are_read_completely() {
    let engines = crate::common::engines();
    let settings =
        Settings { engines: &engines, runs: 1, most_runs: 4, seed: 1, fuel: 10_000, limit: Duration::from_secs(1) };
    // On each GPU other profiles; all of them on each GPU where there is more time.
    let programs = (Profile::SHAPED.len() as u64).div_ceil(7) * effort();
    let (mut boundaries, mut passed, mut refused) = (0, 0, 0);
    for (turn, name) in (0..).zip(["a540", "a660", "a750"]) {
        let target = Target::by_name(name).expect("a GPU");
        let features = Features::of(&target);
        for number in turn * programs..(turn + 1) * programs {
            let profile = Profile::SHAPED[number as usize % Profile::SHAPED.len()];
            let shader = generator::from_seed(program_seed(21, number), profile, features).shader;
            let registers = if number % 4 == 0 { RegisterLimit::Minimum(2) } else { RegisterLimit::Target };
            let options = Options { registers, ..Options::default() };
            let Ok(log) = print::log(&shader, &target, &options, None) else {
                refused += 1;
                continue;
            };
            let mut names = Vec::new();
            let recovered = check_log(&log, &target, &settings, &mut |checked| {
                assert_eq!(checked.wrong_proof, None, "{name} {number}: {}", checked.name);
                assert_ne!(checked.engine, "reader", "{name} {number}: {:?}", checked.verdict);
                let refuted = matches!(checked.verdict, Verdict::Refuted(_));
                assert!(!refuted, "{name} {number}: {}: {:?}\n{log}", checked.name, checked.verdict.reason());
                passed += u32::from(matches!(checked.verdict, Verdict::Proved { .. } | Verdict::Tested { .. }));
                names.push(checked.name);
            });
            assert!(recovered.problems.is_empty(), "{name} {number}: {:?}\n{log}", recovered.problems);
            assert_eq!(names.first().map(String::as_str), Some("nir->ir3"));
            assert!(names.contains(&CODE.to_owned()) && names.contains(&WHOLE.to_owned()), "{names:?}");
            boundaries += names.len() as u32;
        }
    }
    assert!(2 * refused <= 3 * programs, "{refused} of {} programs have no log", 3 * programs);
    assert!(f64::from(passed) >= 0.9 * f64::from(boundaries), "{passed} of {boundaries} boundaries pass");
}

/// Compares the sections of the one shader of a log.
fn check_log(log: &str, target: &Target, settings: &Settings<'_>, each: &mut dyn FnMut(Checked<'_>)) -> Recovered {
    let all = shaders_of(Path::new("x.log"), log);
    assert_eq!(all.len(), 1, "{log}");
    check_shader(Path::new("x.log"), &all[0], target, settings, each)
}

/// No boundary of a log of ours is refuted for programs with every operation and intrinsic: attributes that the text
/// and the lists leave out is recovered exactly, or boundaries that depend on it are not compared.
#[test]
fn no_log_of_an_operation_is_refuted() {
    let engines = Engines { kinds: vec![EngineKind::Interpreter], ..Engines::default() };
    let settings =
        Settings { engines: &engines, runs: 1, most_runs: 1, seed: 1, fuel: 10_000, limit: Duration::from_millis(200) };
    let (mut logs, mut tested) = (0, 0);
    for name in ["a306", "a420", "a540", "a660", "a750"] {
        let target = Target::by_name(name).expect("a GPU");
        for number in 0..4 * effort() {
            let shader =
                generator::from_seed(program_seed(21, number), Profile::Operations, Features::of(&target)).shader;
            // If values are spilled, their slots are after scratch memory of the program's own.
            let registers = if number % 3 == 2 { RegisterLimit::Minimum(0) } else { RegisterLimit::Target };
            let options = Options { registers, ..Options::default() };
            let Ok(log) = print::log(&shader, &target, &options, None) else { continue };
            logs += 1;
            check_log(&log, &target, &settings, &mut |checked| {
                let refuted = matches!(checked.verdict, Verdict::Refuted(_));
                assert!(!refuted, "{name} {number}: {}: {:?}\n{log}", checked.name, checked.verdict.reason());
                tested += u32::from(matches!(checked.verdict, Verdict::Tested { .. }));
            });
        }
    }
    assert!(logs >= 5 && tested >= 50, "{tested} boundaries of {logs} logs");
}

/// After `ir3_lower_spill` no offset alone determines the position of a slot, and the text does not contain the size of
/// scratch memory.
#[test]
fn slots_behind_scratch_memory_of_the_program_are_read() {
    let engines = crate::common::engines();
    let settings =
        Settings { engines: &engines, runs: 1, most_runs: 1, seed: 1, fuel: 10_000, limit: Duration::from_secs(1) };
    let target = Target::by_name("a660").expect("a GPU");
    let shader = nir::read(include_str!("../../corpus/pressure/behind-own-scratch.nir")).expect("a shader");
    let options = Options { registers: RegisterLimit::Minimum(0), ..Options::default() };
    let log = print::log(&shader, &target, &options, None).expect("a log");
    let mut spills = false;
    check_log(&log, &target, &settings, &mut |checked| {
        let proved = matches!(checked.verdict, Verdict::Proved { .. });
        assert!(proved, "{}: {:?}", checked.name, checked.verdict.reason());
        spills |= checked.name == "ir3_lower_spill";
    });
    assert!(spills, "{log}");
}

/// Runs `fuzz` in a folder; the output is JSON.
fn fuzz(folder: &Path, arguments: &[&str]) -> (Output, Vec<Value>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"));
    let output = command
        .args(["--format", "json", "fuzz", "--jobs", "1"])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("our own program");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let values = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    (output, values)
}

/// Five programs, the same each time, that have a form in SPIR-V but for a few.
const FEW: [&str; 6] = ["--seed", "1", "--profile", "branchy", "--programs", "5"];

/// Our own backend as the compiler, with a planted bug.
fn stand_in(folder: &Path, plant: Option<&str>, arguments: &[&str]) -> (Output, Vec<Value>) {
    let compiler = env!("CARGO_BIN_EXE_ir3-equiv");
    let mut all = vec!["--compiler", compiler];
    let of_plant = plant.map(|plant| ["--plant", plant]);
    for argument in ["compile", "--as-mesa-log", "--beside"].iter().chain(of_plant.iter().flatten()) {
        all.extend(["--compiler-arg", *argument]);
    }
    all.extend(arguments);
    fuzz(folder, &all)
}

fn of_type<'a>(values: &'a [Value], name: &str) -> Vec<&'a Value> {
    values.iter().filter(|value| value["type"] == name).collect()
}

#[test]
fn planted_bugs_are_found_at_their_passes_and_reduced() {
    let folder = Folder::new("stand-in");
    for (plant, seed, profile, pass) in
        [("wrong-constant", "1", "alu", "nir->ir3"), ("lost-wait", "1", "memory", "ir3_legalize")]
    {
        let (output, values) = stand_in(
            folder.path(),
            Some(plant),
            &["--seed", seed, "--programs", "60", "--profile", profile, "--engine", "interpreter", "--failures", plant],
        );
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{plant}: {text}");
        let groups = of_type(&values, "compiler-group");
        let [group] = groups[..] else { panic!("{plant}: {text}") };
        let smallest = &group["smallest"];
        assert_eq!(smallest["stage"], pass, "{plant}: {text}");
        assert_eq!(smallest["reduced"], true, "{plant}: {text}");
        for size in ["instructions", "spirv_instructions"] {
            assert!(smallest[size].as_u64().is_some_and(|size| size <= 10), "{plant}: {smallest}");
        }
        let bundle = folder.path().join(smallest["folder"].as_str().expect("a folder"));
        for file in [
            "README.md",
            "program.spv",
            "program.nir",
            "program.log",
            "original.nir",
            "before.txt",
            "after.txt",
            "env.json",
        ] {
            assert!(bundle.join(file).is_file(), "{plant}: no {file}");
        }
        // The log in the folder shows the failure again.
        let again = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"))
            .args(["mesa", "program.log", "--failures", "again"])
            .current_dir(&bundle)
            .stdin(Stdio::null())
            .output()
            .expect("our own program");
        let again = String::from_utf8_lossy(&again.stdout).into_owned();
        let row = again.lines().find(|line| line.contains("refuted")).unwrap_or_else(|| panic!("{plant}: {again}"));
        assert!(row.trim_start().starts_with(pass), "{plant}: {row}");
        // So does the last command of its README, which compares the two sides.
        let readme = fs::read_to_string(bundle.join("README.md")).expect("a file");
        let mut commands = readme.lines().filter_map(|line| line.strip_prefix("    ir3-equiv "));
        let command: Vec<&str> = commands.next_back().expect("a command").split(' ').collect();
        assert!(matches!(command[0], "check" | "hazards"), "{plant}: {command:?}");
        assert_eq!(run(&bundle, &command).0, Some(1), "{plant}: {command:?}");
    }
}

#[test]
fn a_compiler_without_a_bug_passes() {
    let folder = Folder::new("stand-in-passes");
    let (output, values) =
        stand_in(folder.path(), None, &["--seed", "3", "--programs", "12", "--engine", "interpreter", "--keep-going"]);
    let text = String::from_utf8_lossy(&output.stdout);
    // Some boundaries may be unknown: the runs depend on too little of the program.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{text}");
    assert!(of_type(&values, "compiler-failure").is_empty(), "{text}");
    let counts = of_type(&values, "compiler");
    assert!(counts[0]["compiled"].as_u64().is_some_and(|count| count >= 6), "{text}");
    let summary = of_type(&values, "summary");
    assert_eq!(summary[0]["programs"], 12, "{text}");
    assert!(!folder.path().join("ir3-equiv-failures").exists());
}

/// A compiler that is a shell script.
fn script(folder: &Path, name: &str, body: &str) -> String {
    let path = folder.join(name);
    write_script(&path, body);
    path.display().to_string()
}

#[test]
fn each_end_of_a_compiler_is_what_the_contract_says() {
    let folder = Folder::new("contract");
    let path = folder.path();
    let assertion = "echo 'x: a.c:12: f: Assertion `n < 3'\"'\"' failed.' >&2";
    for (name, body, kind, what) in [
        ("aborts", format!("{assertion}; kill -ABRT $$"), "crashed", "a.c:12: f: Assertion `n < 3' failed."),
        ("panics", "exit 101".to_owned(), "crashed", "exit code 101"),
        ("hangs", "sleep 100 & wait".to_owned(), "hung", "hung"),
        (
            "floods",
            "while :; do echo AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA; done".to_owned(),
            "flooded",
            "without end",
        ),
        ("mumbles", "echo nonsense".to_owned(), "unreadable", "no shader"),
        ("cuts", "echo 'NIR (final form) for CL shader (null):'; echo 'impl main {'".to_owned(), "unreadable", "`}`"),
    ] {
        let compiler = script(path, name, &body);
        // As much as the limit in a second is more than some machines print.
        let time = if kind == "flooded" { "60s" } else { "1s" };
        if kind == "flooded" && cfg!(not(target_os = "linux")) {
            continue;
        }
        let start = Instant::now();
        let failures = format!("{name}-failures");
        let limits = ["--compiler-time", time, "--no-reduce", "--failures", &failures];
        let (output, values) = fuzz(path, &[&["--compiler", &*compiler][..], &FEW, &limits].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{name}: {text}");
        assert!(start.elapsed() < Duration::from_secs(90), "{name}");
        let failures = of_type(&values, "compiler-failure");
        let [failure] = failures[..] else { panic!("{name}: {text}") };
        assert_eq!(failure["kind"], kind, "{name}: {text}");
        assert!(failure["failure"].as_str().is_some_and(|text| text.contains(what)), "{name}: {failure}");
    }
}

#[test]
fn refusals_are_counted_and_failures_if_wanted() {
    let folder = Folder::new("refusals");
    let path = folder.path();
    let compiler =
        script(path, "refuses", "test -f \"${1%.spv}.nir\" || exit 101; echo 'error: 12 is too many'; exit 1");
    let arguments = ["--compiler", &compiler, "--seed", "1", "--programs", "5", "--no-reduce", "--failures", "f"];
    let (output, values) = fuzz(path, &arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    // Nothing was compared.
    assert_eq!(output.status.code(), Some(4), "{text}");
    let refused = &of_type(&values, "compiler")[0]["refused"];
    assert!(refused["error: # is too many"].as_u64().is_some_and(|count| count >= 1), "{text}");
    let (output, values) = fuzz(path, &[&arguments[..], &["--refusals"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(of_type(&values, "compiler-failure")[0]["kind"], "refused");
}

#[test]
fn a_compiler_that_cannot_be_started_ends_the_campaign() {
    let folder = Folder::new("no-compiler");
    for (compiler, message) in [
        ("/nowhere/compiler".to_owned(), "cannot be started"),
        (script(folder.path(), "shell", "exit 127"), "exit code 127"),
    ] {
        let (output, values) = fuzz(folder.path(), &[&["--compiler", &*compiler][..], &FEW].concat());
        assert_eq!(output.status.code(), Some(2), "{compiler}");
        let errors = of_type(&values, "error");
        assert!(
            errors.iter().any(|error| error["message"].as_str().is_some_and(|it| it.contains(message))),
            "{values:?}"
        );
    }
}
