//! Writes many changes of the compiler into one copy of its sources, each with a number that switches it on when the program runs.
//!
//! Two kinds: mutants (small changes at places that are looked for, [`mutants`]) and bugs (the patches of corpus/bugs,
//! [`bugs`]). Either way, a change is a piece of text around a part of the original, `if crate::mutant(7) { changed }
//! else { original }`, so that everything else stays unchanged, line by line. Mutants that do not compile are left out:
//! the messages of rustc name them ([`check`]).
//!
//! `IR3_MUTANT=7` switches number 7 on. `IR3_MUTANT=reached` switches none on, and appends the numbers whose places are reached to the
//! file `IR3_MUTANT_REACHED`.

mod bugs;
mod check;
mod mutants;
mod splice;
mod tree;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The folder with the sources that are changed, in a tree.
const SOURCES: &str = "compiler/src";
/// The example that prints the compiler's results for programs, in a tree.
const OUTPUTS: &str = "verifier/examples/mutant_outputs.rs";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["mutants", copy, list] => {
            tree::copy(Path::new(copy)).and_then(|()| mutants::run(Path::new(copy), Path::new(list), None))
        }
        ["mutants", copy, list, most] => most.parse().map_err(Into::into).and_then(|most| {
            tree::copy(Path::new(copy))?;
            mutants::run(Path::new(copy), Path::new(list), Some(most))
        }),
        ["bugs", copy, list] => tree::copy(Path::new(copy)).and_then(|()| bugs::run(Path::new(copy), Path::new(list))),
        _ => Err(
            "usage: mutate mutants TREE LIST [MOST] | mutate bugs TREE LIST (in the root of the repository; TREE is the copy)"
                .into(),
        ),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mutate: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The Rust files below a folder, without tests, in the order of their names.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
            let path = entry?.path();
            let is_test = path.file_stem().is_some_and(|name| name == "tests");
            if path.is_dir() && !is_test {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !is_test {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Writes a file if its text differs: unchanged files are not built again.
fn write(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Adds the switch to the root of the compiler in a tree.
fn write_switch(tree: &Path, places: usize) -> Result<(), Box<dyn Error>> {
    let root = tree.join(SOURCES).join("lib.rs");
    let text = fs::read_to_string(Path::new(SOURCES).join("lib.rs"))?;
    let switch = include_str!("switch.rs").replace("PLACES: usize = 1", &format!("PLACES: usize = {}", places + 1));
    write(&tree.join(SOURCES).join("mutant_switch.rs"), &switch)?;
    // Parentheses around mutants are only needed in some places, and so on.
    write(&root, &format!("#![allow(warnings, arithmetic_overflow, unconditional_panic)]\n{text}mod mutant_switch;\nuse mutant_switch::mutant;\n"))
}
