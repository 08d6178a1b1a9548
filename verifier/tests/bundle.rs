//! Failures as folders: written completely, read back, replaced, with readable reports.

use ir3_compiler::nir::text;
use ir3_harness::version;
use ir3_report::bundle;
use ir3_report::bundle::ReadError;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::common::folder;

use folder::{Folder, planted, refused};

fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_refusal_is_written_read_and_reduced_in_place() {
    let root = Folder::new("refusal");
    let case = refused();
    let path = bundle::write(root.path(), &case).expect("a folder");
    assert_eq!(path, root.path().join(case.folder_name()));
    assert_eq!(bundle::read(&path).expect("our own folder"), case);
    assert_eq!(names(&path), ["README.md", "before.nir", "bundle.json", "program.nir"]);
    let result = bundle::reduce(&path, 1, &mut |_| true).expect("a reduction");
    assert!(result.case.minimal && result.case.program.instruction_count() <= 6);
    let read = bundle::read(&path).expect("our own folder");
    assert_eq!(read, result.case);
    let original = read.original.as_ref().expect("what it was");
    assert_eq!(text::write(&original.program), text::write(&case.program));
    // The name stays, and no other folder is left.
    assert_eq!(read.folder_name(), case.folder_name());
    assert_eq!(names(root.path()), [case.folder_name()]);
    // A campaign finds it again: the reduced program stays.
    assert_eq!(bundle::write(root.path(), &case).expect("a folder"), path);
    assert_eq!(bundle::read(&path).expect("our own folder"), read);
    assert_eq!(bundle::list(root.path()).expect("a folder"), [path]);
}

#[test]
fn a_crash_has_a_bundle_too() {
    let root = Folder::new("crash");
    let path = bundle::write(root.path(), &planted("crash")).expect("a folder");
    let result = bundle::reduce(&path, 1, &mut |_| true).expect("a reduction");
    let gpu = result.case.target.name;
    let readme = fs::read_to_string(path.join("README.md")).expect("a report");
    assert!(readme.starts_with(&format!("# copy-propagation: panic on {gpu}: ")), "{readme}");
    assert!(readme.contains("panics in `copy-propagation`, at verifier/programs/src/planted_bugs/ssa.rs:"), "{readme}");
    assert_eq!(names(&path), ["README.md", "before.ir3", "bundle.json", "original", "program.nir"]);
}

/// An interrupted reduction leaves its last state, and continues from there.
#[test]
fn a_reduction_goes_on() {
    let root = Folder::new("goes-on");
    let path = bundle::write(root.path(), &planted("wrong-constant")).expect("a folder");
    let first = bundle::reduce(&path, 1, &mut |progress| progress.taken < 2).expect("a reduction");
    assert!(!first.case.minimal && first.progress.taken == 2);
    assert_eq!(bundle::read(&path).expect("a whole folder"), first.case);
    let readme = fs::read_to_string(path.join("README.md")).expect("a report");
    assert!(readme.contains("not at its end"), "{readme}");
    let second = bundle::reduce(&path, 1, &mut |_| true).expect("a reduction");
    assert!(second.case.minimal && second.before == first.case.program.instruction_count());
    assert_eq!(second.case.original, first.case.original);
    assert_eq!(names(root.path()), [path.file_name().expect("a name").to_string_lossy()]);
}

/// The remains of a killed process: a partial folder of a process that has ended; an old folder without its name, where
/// names cannot be exchanged; a checkpoint.
#[test]
fn half_written_folders_are_ignored() {
    let root = Folder::new("partial");
    let case = planted("lost-store");
    let name = case.folder_name();
    // No process has this number.
    let partial = root.path().join(format!(".{name}.4194999.partial"));
    fs::create_dir_all(&partial).expect("a folder");
    fs::write(partial.join("bundle.json"), "{ \"format\": 2, \"ver").expect("a file");
    assert_eq!(bundle::list(root.path()).expect("a folder"), Vec::<std::path::PathBuf>::new());
    let path = bundle::write(root.path(), &case).expect("a folder");
    assert_eq!(bundle::list(root.path()).expect("a folder"), std::slice::from_ref(&path));
    bundle::clean(root.path()).expect("a folder");
    assert_eq!(names(root.path()), std::slice::from_ref(&name));
    // Killed between the two renames.
    fs::rename(&path, root.path().join(format!(".{name}.old"))).expect("the folder is ours");
    assert_eq!(bundle::read(&path).expect("it is recovered"), case);
    assert_eq!(names(root.path()), std::slice::from_ref(&name));
    // Killed after both renames.
    fs::create_dir(root.path().join(format!(".{name}.old"))).expect("a folder");
    bundle::clean(root.path()).expect("a folder");
    assert_eq!((names(root.path()), bundle::read(&path).expect("it is whole")), (vec![name.clone()], case.clone()));
    // Only a bundle is replaced.
    let other = root.path().join("notes");
    fs::create_dir(&other).expect("a folder");
    fs::write(other.join("text"), "mine").expect("a file");
    let error = bundle::write_at(&other, &case).expect_err("somebody's notes").to_string();
    assert!(error.contains("found something else there"), "{error}");
    assert_eq!(names(&other), ["text"]);
}

#[test]
fn what_is_no_bundle_is_refused_with_the_file_and_what_it_should_be() {
    let root = Folder::new("malformed");
    let path = bundle::write(root.path(), &planted("lost-store")).expect("a folder");
    let json = fs::read_to_string(path.join("bundle.json")).expect("our own file");
    let program = fs::read_to_string(path.join("program.nir")).expect("our own file");
    let error = |file: &str, text: &str| {
        let old = fs::read_to_string(path.join(file)).expect("our own file");
        fs::write(path.join(file), text).expect("our own file");
        let error = bundle::read(&path).expect_err("it is malformed").to_string();
        fs::write(path.join(file), old).expect("our own file");
        error
    };
    let with = |from: &str, to: &str| {
        assert!(json.contains(from), "{json}");
        error("bundle.json", &json.replace(from, to))
    };
    let file = path.join("bundle.json").display().to_string();
    for (found, expected) in [
        (with("\"format\": 2", "\"format\": 1"), "found format `1`, expected 2"),
        (with("a660", "a1000"), "found gpu `a1000`, expected a GPU such as a660"),
        (with("\"lost-store\"", "\"lost-sheep\""), "found plant `lost-sheep`, expected one of wrong-condition, "),
        (
            with("\"stage\": \"dead-code\"", "\"stage\": \"dead\""),
            "found stage `dead`, expected one of split-additions, de-morgan, inline-preamble, vec4-select, ",
        ),
        (with("\"memory\"", "\"colour\""), "found difference `colour`, expected one of output, memory, "),
        (with("\"minimal\": false,", ""), "missing field `minimal`"),
        (error("bundle.json", &json[..json.len() / 2]), "EOF while parsing"),
        (error("bundle.json", ""), "EOF while parsing"),
    ] {
        assert!(found.starts_with(&file) && found.contains(expected), "{found}: {expected}");
    }
    let found = error("program.nir", &program[..program.len() * 2 / 3]);
    assert!(
        found.starts_with(&path.join("program.nir").display().to_string()) && found.contains("expected"),
        "{found}"
    );
    let found = error("env.json", "{}");
    assert!(found.contains("env.json:1:2: missing field `seed`"), "{found}");
    fs::remove_file(path.join("program.nir")).expect("our own file");
    let found = bundle::read(&path).expect_err("there is no program");
    assert!(matches!(found, ReadError::NoFile { .. }) && found.to_string().contains("program.nir: found no such file"));
    let found = bundle::read(&root.path().join("nothing")).expect_err("there is nothing").to_string();
    assert!(found.contains("found no such folder, expected a bundle"), "{found}");
}

/// Runs `ir3-equiv` in a folder.
fn ir3_equiv(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ir3-equiv")).args(arguments).current_dir(folder).output();
    let output = output.expect("the program of this package");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code(), text)
}

/// The report and the difference of a bug are compared word for word; and the command in the report reproduces the bug.
/// With `BLESS=1` the files are written anew. The bug is in selection: output of later stages changes more often.
#[test]
fn reports_are_the_snapshots() {
    let root = Folder::new("snapshots");
    let snapshots = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    for name in ["wrong-condition", "dropped-copy", "lost-store"] {
        let path = bundle::write(root.path(), &planted(name)).expect("a folder");
        bundle::reduce(&path, 2, &mut |_| true).expect("a reduction");
        let files: &[&str] = if name == "wrong-condition" { &["README.md", "difference.txt"] } else { &[] };
        for file in files {
            // The commit is another one each time.
            let text = fs::read_to_string(path.join(file)).expect("our own file").replace(version::LINE, "VERSION");
            let snapshot = snapshots.join(format!("{name}.{file}"));
            if std::env::var_os("BLESS").is_some() {
                fs::create_dir_all(&snapshots).expect("a folder");
                fs::write(&snapshot, &text).expect("a file");
            }
            let expected = fs::read_to_string(&snapshot).unwrap_or_default();
            assert_eq!(text, expected, "{} (BLESS=1 writes it anew)", snapshot.display());
        }
        // The indented lines of its section are commands.
        let readme = fs::read_to_string(path.join("README.md")).expect("our own file");
        let section =
            readme.split("## See it\n").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section");
        let commands: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        assert_eq!(commands.len(), 1, "{section}");
        let arguments: Vec<&str> = commands[0].split(' ').skip(1).collect();
        let (code, output) = ir3_equiv(&path, &arguments);
        assert_eq!(code, Some(1), "{output}");
        assert!(output.contains("refuted") && output.contains("it fails as recorded in its bundle"), "{output}");
        // From another folder, by the path in the report.
        let (code, output) = ir3_equiv(root.path(), &["verify", &path.to_string_lossy()]);
        assert_eq!(code, Some(1), "{output}");
        assert!(output.contains("it fails as recorded in its bundle"), "{output}");
    }
    // So it does from the folder of all of them.
    let (code, output) = ir3_equiv(root.path(), &["verify", "."]);
    assert_eq!((code, output.matches("it fails as recorded in its bundle").count()), (Some(1), 3), "{output}");
}
