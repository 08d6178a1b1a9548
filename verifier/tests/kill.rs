//! `kill -9` at a random moment of a campaign and of a reduction: no failure that was found is missing afterwards, and
//! nothing half-written is mistaken for a bundle.
//!
//! `IR3_KILLS` is the number of kills of each; `ci/kill` does 50 and prints the counts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ir3_programs::seeds::program_seed;
use ir3_report::bundle;
use ir3_report::triage;

/// A folder that is removed at the end of its test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ir3-equiv-kill-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn kills() -> u64 {
    std::env::var("IR3_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// Runs the program, with its output written to `output`, and kills it after `after`. Returns true if it was killed,
/// false if it had ended before.
fn run(arguments: &[&str], output: &Path, after: Option<Duration>) -> bool {
    let stdout = File::create(output).expect("the folder can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"));
    let mut child = command.args(arguments).stdout(stdout).stderr(Stdio::null()).spawn().expect("our own program");
    if let Some(after) = after {
        sleep(after);
    } else {
        child.wait().expect("it is ours");
    }
    let running = child.try_wait().expect("it is ours").is_none();
    if running {
        // SIGKILL.
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }
    running
}

/// The folders that a campaign has reported as written. A line without its end does not count.
fn announced(output: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(output).expect("the output");
    let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    lines.filter_map(|line| line.strip_prefix("  written to ")).map(PathBuf::from).collect()
}

/// The defect of a bundle, if it has one.
fn complaint(path: &Path) -> Option<String> {
    let case = match bundle::read(path) {
        Ok(case) => case,
        Err(error) => return Some(error.to_string()),
    };
    for file in ["README.md", "bundle.json", "program.nir"] {
        if !path.join(file).is_file() {
            return Some(format!("{}: there is no {file}", path.display()));
        }
    }
    let failure = case.oracle().map(|oracle| oracle.failure().clone());
    (failure.as_ref() != Some(&case.symptom.failure)).then(|| {
        let found = failure.map_or("nothing".to_owned(), |failure| failure.to_string());
        format!("{}: fails with {found}, expected {}", path.display(), case.symptom.failure)
    })
}

/// The contents of a folder after a kill.
#[derive(Default)]
struct Audit {
    /// The number of bundles.
    bundles: usize,
    /// The number of half-written bundles, which are hidden; they are removed by now.
    partial: usize,
    /// A reported bundle that is missing, and every folder that looks like a bundle and is none.
    complaints: Vec<String>,
}

/// The remains of a killed process: half-written files, and the checkpoint of a reduction.
fn hidden(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.map(|entry| entry.expect("a folder of ours").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with('.')).collect()
}

fn half_written(folder: &Path) -> Vec<String> {
    hidden(folder).into_iter().filter(|name| !name.ends_with(".checkpoint.json")).collect()
}

fn audit(folder: &Path, announced: &[PathBuf]) -> Audit {
    let partial = half_written(folder).len();
    if !folder.exists() {
        let complaints = announced.iter().map(|path| format!("{}: lost", path.display())).collect();
        return Audit { complaints, ..Audit::default() };
    }
    let (bundles, problems) = triage::find(folder).expect("a folder of ours");
    let mut complaints: Vec<String> = problems.iter().map(|problem| format!("{problem:?}")).collect();
    complaints.extend(announced.iter().filter(|path| !bundles.contains(path)).map(|path| format!("{path:?}: lost")));
    complaints.extend(bundles.iter().filter_map(|path| complaint(path)));
    complaints.extend(half_written(folder).into_iter().map(|name| format!("{name}: left behind")));
    Audit { bundles: bundles.len(), partial, complaints }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

#[test]
fn a_killed_campaign_loses_nothing() {
    let root = Temporary::new("campaign");
    let output = root.0.join("output");
    let (mut said, mut bundles, mut partial) = (0, 0, 0);
    let mut complaints = Vec::new();
    for kill in 0..kills() {
        let folder = root.0.join(format!("failures-{kill}"));
        let plant = ["dropped-copy", "crash", "inverted-branch", "wrong-constant"][kill as usize % 4];
        let seed = kill.to_string();
        let arguments = [
            "fuzz",
            "--keep-going",
            "--no-reduce",
            "--programs",
            "100000",
            "--jobs",
            "2",
            "--plant",
            plant,
            "--seed",
            &seed,
            "--failures",
            text(&folder),
        ];
        // From before the first program to some hundred bundles.
        let after = Duration::from_micros(program_seed(0xdead, kill) % 1_500_000);
        assert!(run(&arguments, &output, Some(after)), "the campaign came to its end");
        let announced = announced(&output);
        let audit = audit(&folder, &announced);
        said += announced.len();
        bundles += audit.bundles;
        partial += audit.partial;
        complaints.extend(audit.complaints);
        let _ = fs::remove_dir_all(&folder);
    }
    println!(
        "campaign: {} kills; {said} failures announced, {bundles} bundles on disk, \
         {partial} half-written folders left and removed; {} complaints",
        kills(),
        complaints.len()
    );
    assert_eq!(complaints, Vec::<String>::new());
    assert!(bundles >= said && said > 0);
}

/// Finds a planted bug in a few programs, and reduces nothing.
fn fuzz(found: &Path, output: &Path) {
    let options = "fuzz --gpu a660 --seed 1 --keep-going --no-reduce --profile branchy --programs 5 --plant inverted-branch --failures";
    let arguments: Vec<&str> = options.split(' ').chain([text(found)]).collect();
    run(&arguments, output, None);
}

/// Copies a folder of folders.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a temporary folder");
    for entry in fs::read_dir(from).expect("a folder of ours") {
        let path = entry.expect("a folder of ours").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("the folder can be written");
        }
    }
}

#[test]
fn a_killed_reduction_loses_nothing_and_goes_on() {
    let root = Temporary::new("reduction");
    let (output, found) = (root.0.join("output"), root.0.join("found"));
    fuzz(&found, &output);
    let names: Vec<PathBuf> = announced(&output).iter().filter_map(|path| Some(path.file_name()?.into())).collect();
    assert!(names.len() >= 5, "{names:?}");

    let reduce = |folder: &Path, after| run(&["triage", text(folder), "--jobs", "2"], &output, after);
    let whole = root.0.join("whole");
    copy(&found, &whole);
    let start = Instant::now();
    reduce(&whole, None);
    let takes = start.elapsed();

    let (mut partial, mut killed, mut minimal) = (0, 0, 0);
    let mut complaints = Vec::new();
    // Runs that ended before they were killed do not count.
    for kill in 0..kills() * 8 {
        if killed == kills() {
            break;
        }
        let folder = root.0.join(format!("failures-{kill}"));
        copy(&found, &folder);
        let announced: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        let after = Duration::from_micros(program_seed(0xbeef, kill) % (takes.as_micros() as u64).max(1));
        killed += u64::from(reduce(&folder, Some(after)));
        let audit_now = audit(&folder, &announced);
        partial += audit_now.partial;
        complaints.extend(audit_now.complaints);
        if audit_now.bundles != names.len() {
            complaints.push(format!("found {} bundles, expected {}", audit_now.bundles, names.len()));
        }
        let is_minimal = |path: &&PathBuf| bundle::read(path).is_ok_and(|case| case.minimal);
        minimal += announced.iter().filter(is_minimal).count();
        // Another process continues, to the end.
        reduce(&folder, None);
        complaints.extend(audit(&folder, &announced).complaints);
        complaints.extend(hidden(&folder).into_iter().map(|name| format!("{name}: left behind in the end")));
        let left = announced.iter().filter(|path| !is_minimal(path)).count();
        if left > 0 {
            complaints.push(format!("{left} bundles are not reduced in the end"));
        }
        let _ = fs::remove_dir_all(&folder);
    }
    println!(
        "reduction: {killed} kills of reductions of {} bundles in {:.1} s; {minimal} bundles were reduced by then, \
         {partial} half-written folders or files left and removed; all reduced by the next run; {} complaints",
        names.len(),
        takes.as_secs_f64(),
        complaints.len()
    );
    assert_eq!(complaints, Vec::<String>::new());
    assert_eq!(killed, kills());
}

/// The audit reports missing and broken bundles.
#[test]
fn what_is_lost_or_broken_is_seen() {
    let root = Temporary::new("audit");
    let (output, found) = (root.0.join("output"), root.0.join("found"));
    fuzz(&found, &output);
    let announced = announced(&output);
    let [first, second, third, ..] = &announced[..] else { panic!("found {announced:?}, expected three") };
    assert_eq!(audit(&found, &announced).complaints, Vec::<String>::new());
    let sees = |what: &str| {
        let complaints = audit(&found, &announced).complaints;
        assert!(complaints.iter().any(|complaint| complaint.contains(what)), "{what}: {complaints:?}");
    };
    // A half-written folder under its own name.
    let half = found.join("half");
    fs::create_dir_all(&half).expect("a folder");
    fs::write(half.join("program.nir"), "shader:").expect("a file");
    sees("half");
    fs::remove_dir_all(&half).expect("a folder");
    // Half a file.
    let program = first.join("program.nir");
    let whole = fs::read_to_string(&program).expect("a program");
    fs::write(&program, &whole[..whole.len() / 2]).expect("a file");
    sees("program.nir");
    fs::write(&program, &whole).expect("a file");
    assert_eq!(audit(&found, &announced).complaints, Vec::<String>::new());
    // A program that does not fail, and a bundle that is gone.
    fs::remove_file(third.join("env.json")).expect("a file");
    fs::write(third.join("program.nir"), "shader: MESA_SHADER_COMPUTE\ndecl_function main () (entrypoint)\n\nimpl main {\n    block b0:  // preds:\n               // succs: b1\n    block b1:\n}\n").expect("a file");
    sees("expected");
    fs::remove_dir_all(second).expect("a folder");
    sees("lost");
}
