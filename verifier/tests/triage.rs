//! The flow of `fuzz` and `triage`; one bug is one group.

use crate::common::effort::effort;
use ir3_programs::generator::Profile;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A folder that is removed at the end of its test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ir3-equiv-triage-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn command(arguments: &str, folder: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"));
    command.args(arguments.split_whitespace()).arg(folder).stdin(Stdio::null());
    command
}

/// Runs the program with `folder` as its last argument: the exit code, standard output, standard error.
fn run(arguments: &str, folder: &str) -> (Option<i32>, String, String) {
    let output = command(arguments, folder).output().expect("our own program");
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code(), out, err)
}

/// The groups in the output of a run with `--format json`.
fn groups(output: &str) -> Vec<Value> {
    let lines = output.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    lines.filter(|line| line["type"] == "group").collect()
}

fn count(group: &Value) -> u64 {
    group["count"].as_u64().expect("a number")
}

#[test]
fn nothing_found_is_a_pass() {
    let root = Temporary::new("pass");
    let (code, out, err) = run("fuzz --seed 1 --programs 24 --failures", &root.path("found"));
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(!root.0.join("found").exists());
    let (code, _, err) = run("triage", &root.path("found"));
    assert_eq!(code, Some(2));
    assert!(err.contains("found"), "{err}");
}

#[test]
fn the_first_failure_ends_a_campaign_and_is_reduced() {
    let root = Temporary::new("first");
    let found = root.path("found");
    let (code, out, err) = run("fuzz --seed 1 --gpu a660 --jobs 1 --plant inverted-branch --failures", &found);
    assert_eq!(code, Some(1), "{out}{err}");
    let line = |start: &str| out.lines().filter_map(|line| line.strip_prefix(start)).collect::<Vec<_>>();
    let written = line("  written to ");
    assert_eq!(written.len(), 1, "{out}");
    // The group, the size before and after, the folder, the command.
    assert_eq!(line("copy-propagation, refuted (").len(), 1, "{out}");
    let size = out.lines().find(|line| line.contains(" instructions to ")).expect("the sizes");
    assert!(size.ends_with(&format!(", in {}", written[0])), "{size}");
    let numbers: Vec<usize> =
        size.split_whitespace().filter_map(|word| word.trim_end_matches(',').parse().ok()).collect();
    assert!(matches!(numbers[..], [before, after] if after < before && after <= 10), "{size}");
    let again = line("  see it again: ir3-equiv ");
    let [again] = again[..] else { panic!("found {again:?}, expected one command") };
    let (verify, folder) = again.split_once(' ').expect("a path");
    let (code, out, err) = run(verify, folder);
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("it fails as recorded in its bundle"), "{out}");

    // The same without a reduction: `triage` reduces.
    let found = root.path("unreduced");
    let (code, out, _) =
        run("fuzz --seed 1 --gpu a660 --jobs 1 --no-reduce --plant inverted-branch --failures", &found);
    assert_eq!(code, Some(1));
    assert!(out.contains("instructions, not reduced, in "), "{out}");
    let (code, out, _) = run("triage --no-reduce", &found);
    assert_eq!(code, Some(1));
    assert!(out.contains("not reduced"), "{out}");
    let (code, out, _) = run("triage", &found);
    assert_eq!(code, Some(1));
    assert!(out.contains("copy-propagation, refuted (") && out.contains(" instructions to "), "{out}");
}

#[test]
fn refusals_are_failures_when_asked() {
    let root = Temporary::new("refusals");
    // Nothing fits into two registers; none of these programs is one of parallel copies alone.
    let fuzz = "fuzz --seed 2 --gpu a660 --max-registers 2 --programs 12";
    let (code, out, err) = run(&format!("{fuzz} --failures"), &root.path("none"));
    // Nothing was checked.
    assert_eq!(code, Some(4), "{out}{err}");
    assert!(out.contains("rejected 100.00 %"), "{out}");
    assert!(!root.0.join("none").exists());
    let arguments = format!("{fuzz} --keep-going --refusals --format json --failures");
    let (code, out, err) = run(&arguments, &root.path("found"));
    assert_eq!(code, Some(1), "{out}{err}");
    let groups = groups(&out);
    assert!(!groups.is_empty() && groups.iter().all(|group| group["kind"] == "refused"), "{out}");
}

#[test]
fn the_result_does_not_depend_on_threads() {
    let root = Temporary::new("threads");
    let result = |jobs: u32, name: &str| {
        let found = root.path(name);
        let arguments = format!(
            "fuzz --seed 1 --gpu a660 --keep-going --programs 24 --plant wrong-constant --jobs {jobs} --format json --failures"
        );
        let (code, out, err) = run(&arguments, &found);
        assert_eq!(code, Some(1), "{out}{err}");
        let groups = groups(&out);
        let text: Vec<String> = groups.iter().map(|group| group.to_string().replace(&found, "")).collect();
        assert!(groups.iter().map(count).sum::<u64>() > 5, "{out}");
        assert!(groups.iter().all(|group| group["count"] == group["reduced"]), "{out}");
        text
    };
    assert_eq!(result(1, "one"), result(2, "two"));
}

#[test]
fn what_is_no_bundle_is_named() {
    let root = Temporary::new("malformed");
    let found = root.path("found");
    let (code, out, err) = run(
        "fuzz --seed 1 --gpu a660 --keep-going --no-reduce --programs 24 --plant inverted-branch --failures",
        &found,
    );
    assert_eq!(code, Some(1), "{out}{err}");
    let bundles: Vec<PathBuf> =
        out.lines().filter_map(|line| line.strip_prefix("  written to ")).map(PathBuf::from).collect();
    let [gone, bad, ..] = &bundles[..] else { panic!("{out}") };
    let edit = |path: &Path, from: &str, to: &str| {
        let text = fs::read_to_string(path).expect("a file");
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).expect("a file");
    };
    // Without the planted bug it passes: it is neither a failure nor a problem.
    edit(&gone.join("bundle.json"), "\"inverted-branch\"", "null");
    let (code, out, err) = run("triage --no-reduce", &found);
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains(&format!("{}: does not fail any more", gone.display())), "{out}");
    // The remains of a killed process are removed silently.
    let partial = Path::new(&found).join(".something.4194303.partial");
    fs::create_dir_all(&partial).expect("a folder");
    fs::write(partial.join("bundle.json"), "{").expect("a file");
    edit(&bad.join("bundle.json"), "\"copy-propagation\"", "\"copy-prop\"");
    let stranger = Path::new(&found).join("stranger");
    fs::create_dir_all(&stranger).expect("a folder");
    fs::write(stranger.join("notes.txt"), "nothing").expect("a file");
    let (code, out, err) = run("triage --no-reduce", &found);
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(err.contains(&bad.display().to_string()) && err.contains("copy-prop"), "{err}");
    assert!(err.contains(&format!("{}: found no bundle.json", stranger.display())), "{err}");
    assert!(!partial.exists() && !err.contains(".partial") && !out.contains(".partial"), "{out}{err}");
    // The others are still listed.
    assert!(out.contains("copy-propagation"), "{out}");
}

/// Ctrl-C: failures found so far are kept, and `triage` continues with them.
#[test]
#[cfg(unix)]
fn an_interrupted_campaign_is_gone_on_with() {
    let root = Temporary::new("interrupt");
    let found = root.path("found");
    let mut command = command(
        "fuzz --seed 1 --gpu a660 --profile branchy --keep-going --time 10m --jobs 2 --plant inverted-branch --failures",
        &found,
    );
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("our own program");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    while text.matches("  written to ").count() < 2 {
        assert!(out.read_line(&mut text).expect("text") > 0, "{text}");
    }
    let kill = Command::new("kill").arg("-INT").arg(child.id().to_string()).status().expect("kill");
    assert!(kill.success());
    out.read_to_string(&mut text).expect("text");
    assert_eq!(child.wait().expect("it is ours").code(), Some(1), "{text}");
    assert!(text.contains("; interrupted") && text.contains("to go on: ir3-equiv triage "), "{text}");
    let announced = text.lines().filter_map(|line| line.strip_prefix("  written to ")).count();
    let (code, out, err) = run("triage --format json", &found);
    assert_eq!(code, Some(1), "{out}{err}");
    let groups = groups(&out);
    assert_eq!(groups.iter().map(count).sum::<u64>(), announced as u64, "{out}");
    assert!(groups.iter().all(|group| group["count"] == group["reduced"]), "{out}");
}

/// The groups of a bug, found in this many programs.
fn groups_of(root: &Temporary, plant: &str, programs: u32) -> Vec<Value> {
    // Reduced programs of all operations differ by their operations.
    let profiles = Profile::SHAPED.map(|profile| format!("--profile {profile}")).join(" ");
    let arguments = format!(
        "fuzz --seed 1 --gpu a660 {profiles} --keep-going --format json --programs {programs} --plant {plant} --failures"
    );
    let (code, out, err) = run(&arguments, &root.path(plant));
    assert_eq!(code, Some(1), "{plant}: {out}{err}");
    let groups = groups(&out);
    for group in &groups {
        println!("{plant}: {} × {} {} {}", group["count"], group["stage"], group["differences"], group["shape"]);
    }
    groups
}

/// Each of two planted bugs has one main group, another one than the other bug.
fn are_two_groups(name: &str, (one, programs): (&str, u32), (other, programs_other): (&str, u32)) {
    let root = Temporary::new(name);
    let main = |plant: &str, programs: u32| {
        let groups = groups_of(&root, plant, programs);
        let all: u64 = groups.iter().map(count).sum();
        assert!(count(&groups[0]) * 3 >= all, "{plant}: {groups:?}");
        assert!(groups.len() <= 8, "{plant}: {groups:?}");
        (groups[0]["stage"].clone(), groups[0]["shape"].clone())
    };
    assert_ne!(main(one, programs), main(other, programs_other), "{one} and {other}");
    // Both together.
    let (code, out, err) = run("triage --format json", &root.path(""));
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(groups(&out).len() >= 2, "{out}");
}

// Enough programs for about half a dozen failures; a cycle of copies is rare.

#[test]
fn bugs_of_copies_are_two_groups() {
    // In `ci/campaigns`: dozens of reductions take long.
    if effort() > 1 {
        are_two_groups("copies", ("dropped-copy", 12), ("copy-cycle", 60));
    }
}

#[test]
fn bugs_of_allocation_are_two_groups() {
    are_two_groups("allocation", ("live-range", 16), ("half-overlap", 12));
}

#[test]
fn bugs_of_selection_are_two_groups() {
    // In `ci/campaigns`.
    if effort() > 1 {
        are_two_groups("selection", ("wrong-condition", 80), ("wrong-constant", 32));
    }
}

#[test]
fn bugs_of_effects_are_two_groups() {
    // In `ci/campaigns`.
    if effort() > 1 {
        are_two_groups("effects", ("lost-store", 12), ("inverted-branch", 12));
    }
}

/// Only a few of many similar failures are reduced, and the table shows that.
#[test]
fn not_all_are_reduced_where_there_are_many() {
    let root = Temporary::new("many");
    let profiles = Profile::SHAPED.map(|profile| format!("--profile {profile}")).join(" ");
    let arguments = format!(
        "fuzz --seed 1 --gpu a660 {profiles} --keep-going --format json --programs 16 --plant dropped-copy --reduce-limit 2 --failures"
    );
    let (code, out, err) = run(&arguments, &root.path("found"));
    assert_eq!(code, Some(1), "{out}{err}");
    let groups = groups(&out);
    let sum = |field: &str| groups.iter().map(|group| group[field].as_u64().expect("a number")).sum::<u64>();
    assert!(sum("reduced") < sum("count") && sum("reduced") > 0, "{out}");
    // Most of the others have a distinguishing difference.
    let unknown: u64 = groups.iter().filter(|group| group["shape"].is_null()).map(count).sum();
    assert!(unknown * 4 < sum("count"), "{out}");
}
