//! Every program of `corpus/` says what it is about, reads, is valid, reads back the same after it was written, and
//! compiles for the GPUs that have what it needs.

use std::fs;
use std::path::{Path, PathBuf};

use ir3_compiler::target::Target;
use ir3_compiler::{nir, pipeline};

fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            programs(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "nir") {
            found.push(path);
        }
    }
}

/// All programs, in order.
fn corpus() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    programs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus"), &mut paths);
    paths.sort();
    assert!(paths.len() >= 40, "only {} programs", paths.len());
    paths
}

#[test]
fn every_program_is_valid_and_round_trips() {
    let paths = corpus();
    let mut failures = Vec::new();
    for path in &paths {
        let name = path.display();
        let text = fs::read_to_string(path).unwrap();
        if !text.starts_with("// ") {
            failures.push(format!("{name}:1:1: found no comment that says what the program is about"));
        }
        let shader = match nir::read(&text) {
            Ok(shader) => shader,
            Err(error) => {
                failures.push(format!("{name}:{error}"));
                continue;
            }
        };
        if let Err(errors) = nir::validate(&shader) {
            failures.extend(errors.iter().map(|error| format!("{name}: {error}")));
            continue;
        }
        let written = nir::write(&shader);
        match nir::read(&written) {
            Ok(again) if again == shader => {}
            Ok(_) => failures.push(format!("{name}: reads back as another program:\n{written}")),
            Err(error) => failures.push(format!("{name}: what is written does not read: {error}\n{written}")),
        }
    }
    assert!(failures.is_empty(), "{} of {} programs:\n{}", failures.len(), paths.len(), failures.join("\n"));
}

#[test]
fn every_program_compiles() {
    let mut failures = Vec::new();
    for name in ["a660", "a750"] {
        let target = Target::by_name(name).unwrap();
        for path in corpus() {
            let shader = nir::read(&fs::read_to_string(&path).unwrap()).unwrap();
            let result = pipeline::compile(&shader, &target, &pipeline::Options::default(), &mut |_, _| {});
            if let Err(error) = result {
                failures.push(format!("{} for {name}: {}", path.display(), error.reason));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
