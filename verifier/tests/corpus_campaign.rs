//! `fuzz --corpus`: programs to start from, and those that are kept.

use crate::common::folder::Folder;
use ir3_compiler::nir;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The exit code of `ir3-equiv fuzz` in a folder, and both outputs.
fn fuzz(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"));
    command.arg("fuzz").args(arguments).current_dir(folder).stdin(Stdio::null());
    let output = command.output().expect("our own program");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code(), text)
}

fn programs(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    paths
}

/// A campaign keeps programs, and the next one starts from them and has less to keep.
#[test]
fn a_campaign_goes_on_from_what_it_kept() {
    let folder = Folder::new("corpus-campaign");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/algorithms");
    let corpus = corpus.to_str().expect("a path in UTF-8");
    let given = ["--gpu", "a660", "--seed", "5", "--programs", "20", "--jobs", "1", "--corpus", "kept"];
    let (code, text) = fuzz(folder.path(), &[&given[..], &["--corpus", corpus]].concat());
    // Variants may have no meaning, which is no failure.
    assert!(matches!(code, Some(0 | 3)), "{text}");
    let kept = programs(&folder.path().join("kept"));
    assert!(!kept.is_empty() && text.contains(&format!("{} programs kept in kept", kept.len())), "{text}");
    for path in &kept {
        let shader = nir::read(&fs::read_to_string(path).expect("a text")).expect("a program");
        assert!(nir::validate(&shader).is_ok(), "{}", path.display());
    }
    let (code, text) = fuzz(folder.path(), &given);
    assert!(matches!(code, Some(0 | 3)), "{text}");
    assert!(text.contains(&format!("corpus: {} programs", kept.len())), "{text}");
    let more = programs(&folder.path().join("kept")).len() - kept.len();
    assert!(more < kept.len(), "{more} more than {}", kept.len());
}

#[test]
fn what_is_no_corpus_has_a_message() {
    let folder = Folder::new("corpus-messages");
    fs::write(folder.path().join("file"), "").expect("a file");
    let given = |paths: &[&str]| {
        let paths = paths.iter().flat_map(|path| ["--corpus", path]);
        fuzz(folder.path(), &["--programs", "1"].into_iter().chain(paths).collect::<Vec<_>>())
    };
    let (code, text) = given(&["file"]);
    assert!(code.is_some_and(|code| code > 1) && text.contains("file: "), "{text}");
    let (code, text) = given(&["new", "missing"]);
    assert!(code.is_some_and(|code| code > 1) && text.contains("missing: "), "{text}");
}
