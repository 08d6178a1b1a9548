//! The command line output in `docs/` is the output of the command line.
//!
//! In a block of `console`, each line that begins with `$ ` is a command, followed by its output. The commands of a
//! document are run one after the other in an empty folder. Times, rates, and the numbers in the names of folders
//! differ from run to run or from version to version, so they are ignored; everything else must be the same.
//! `IR3_BLESS=1 cargo test --test suite walkthrough::` writes the current output into the documents.

use ir3_harness::version;
use std::path::Path;
use std::process::Command;

/// The arguments of a command, with the one path that a `*` matches.
fn arguments(folder: &Path, command: &str) -> Vec<String> {
    let expand = |word: &str| {
        let Some((before, after)) = word.split_once('*') else { return word.to_owned() };
        let (parent, start) = before.rsplit_once('/').unwrap_or((".", before));
        let entries = std::fs::read_dir(folder.join(parent)).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(start)).collect();
        names.sort();
        assert_eq!(names.len(), 1, "{command}: `{word}` is {names:?}");
        format!("{parent}/{}{after}", names[0])
    };
    command.split_whitespace().map(expand).collect()
}

/// Runs a command, and returns its output.
fn run(folder: &Path, command: &str) -> String {
    let words = arguments(folder, command);
    match words[0].as_str() {
        "ir3-equiv" => {
            let output = Command::new(env!("CARGO_BIN_EXE_ir3-equiv")).args(&words[1..]).current_dir(folder).output();
            let output = output.expect("the program of this package");
            let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            text.concat()
        }
        "cat" => std::fs::read_to_string(folder.join(&words[1])).unwrap_or_else(|error| panic!("{command}: {error}")),
        "ls" => {
            let entries = std::fs::read_dir(folder.join(&words[1])).expect("a folder");
            let mut names: Vec<String> = entries
                .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned() + "\n")
                .collect();
            names.sort();
            names.concat()
        }
        other => panic!("found the command `{other}`, expected ir3-equiv, cat or ls"),
    }
}

/// A document with the current output of its commands.
fn rerun(document: &str, folder: &Path) -> String {
    let mut out = String::new();
    let mut shown = false;
    let mut skipping = false;
    for line in document.lines() {
        if line.starts_with("```") {
            shown = line == "```console";
            skipping = false;
        }
        if let Some(command) = line.strip_prefix("$ ").filter(|_| shown) {
            out.push_str(line);
            out.push('\n');
            // The commit is another one each time. A fence in the output would end the block.
            for printed in run(folder, command).replace(version::LINE, version::VERSION).lines() {
                out.push_str(printed.replace("```", "'''").trim_end());
                out.push('\n');
            }
            skipping = true;
        } else if !skipping {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// A line without the parts that differ from run to run: times and rates, and the last part of a bundle's name.
fn plain(line: &str) -> String {
    let counts = line.contains(" per CPU second") || line.contains(" boundaries: ") || line.contains(" boundary: ");
    let words = line.split(' ').map(|word| {
        let number = word.trim_end_matches([',', ';', ')']);
        let time = number.contains('.') && number.parse::<f64>().is_ok();
        if time || counts && word.contains(|c: char| c.is_ascii_digit()) {
            return "#".to_owned();
        }
        let hash = |part: &str| part.len() >= 8 && part.as_bytes()[..8].iter().all(u8::is_ascii_hexdigit);
        match word.rsplit_once('-') {
            Some((name, end)) if hash(end) => format!("{name}-#{}", &end[8..]),
            _ => word.to_owned(),
        }
    });
    let plain = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    plain.trim_end().to_owned()
}

#[test]
fn documents_show_what_is_printed() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut met = 0;
    for entry in std::fs::read_dir(&docs).expect("the documents") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let document = std::fs::read_to_string(&path).expect("a text");
        if !document.contains("```console") {
            continue;
        }
        met += 1;
        let folder = std::env::temp_dir().join(format!("ir3-equiv-walkthrough-{}-{met}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let now = rerun(&document, &folder);
        std::fs::remove_dir_all(&folder).expect("the folder is ours");
        if std::env::var_os("IR3_BLESS").is_some() {
            std::fs::write(&path, &now).expect("the document can be written");
            continue;
        }
        let (old, new): (Vec<String>, Vec<String>) =
            (document.lines().map(plain).collect(), now.lines().map(plain).collect());
        for (number, (old, new)) in old.iter().zip(&new).enumerate() {
            assert_eq!(old, new, "{}:{}: IR3_BLESS=1 writes what is printed now", path.display(), number + 1);
        }
        assert_eq!(old.len(), new.len(), "{}: IR3_BLESS=1 writes what is printed now", path.display());
    }
    assert!(met > 0, "there are no documents with commands");
}

#[test]
fn what_differs_from_run_to_run_does_not_count() {
    assert_eq!(plain("5 steps, 0.3 s  x"), plain("5 steps, 12.0 s x"));
    assert_eq!(plain("found/select-a660-12-0123abcd/x"), "found/select-a660-12-#/x");
    assert_ne!(plain("expected 1"), plain("expected 2"));
    assert_ne!(plain("cmps.f.lt r0.x"), plain("cmps.f.le r0.x"));
}
