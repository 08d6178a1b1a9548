//! Every shader of the real logs, and every program of `corpus/`, is selected for its GPU. What is refused is counted
//! by its reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ir3_compiler::target::Target;
use ir3_compiler::{nir, select};

/// `../shared` of the workspace, or where `IR3_SHARED` says.
fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let path = std::env::var_os("IR3_SHARED").map_or(beside, PathBuf::from);
    path.is_dir().then_some(path)
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// The final-form sections of a log, without the headline.
fn sections(text: &str) -> Vec<String> {
    let mut sections = Vec::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        let plain = line.strip_prefix("MESA: info: ").unwrap_or(line);
        if plain.starts_with("NIR (final form)") {
            current = Some(String::new());
        } else if plain.starts_with("AFTER: ") {
            sections.extend(current.take());
        } else if let Some(section) = &mut current {
            section.push_str(line);
            section.push('\n');
        }
    }
    sections.extend(current);
    sections
}

/// What was selected, and what was refused why.
#[derive(Default)]
struct Tally {
    selected: usize,
    instructions: usize,
    refused: BTreeMap<String, Vec<String>>,
}

impl Tally {
    fn add(&mut self, name: &str, shader: &nir::Shader, target: &Target) {
        match select::run(shader, target) {
            Ok(program) => {
                self.selected += 1;
                self.instructions += program.instruction_count();
            }
            Err(error) => {
                let reason = format!("{}: {}", error.operation, error.reason);
                self.refused.entry(reason).or_default().push(format!("{name}: {error}"));
            }
        }
    }

    fn report(&self, what: &str) {
        let refused: usize = self.refused.values().map(Vec::len).sum();
        println!("{what}: {} selected ({} instructions), {refused} refused", self.selected, self.instructions);
        for (reason, places) in &self.refused {
            println!("  {:4} {reason}, first in {}", places.len(), places[0]);
        }
    }
}

#[test]
fn every_real_shader_is_selected() {
    let Some(shared) = shared() else {
        println!("skipped: ../shared is absent");
        return;
    };
    let train = shared.join("mesa/train");
    let mut gpus: Vec<PathBuf> = fs::read_dir(&train).unwrap().flatten().map(|entry| entry.path()).collect();
    gpus.sort();
    let mut refused = 0;
    for folder in gpus {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let target = Target::by_name(name.strip_suffix("-spillall").unwrap_or(&name)).unwrap();
        let mut tally = Tally::default();
        let mut logs = Vec::new();
        files(&folder, "log", &mut logs);
        for path in logs {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            for section in sections(&text) {
                let shader = nir::read(&section).unwrap();
                tally.add(&path.display().to_string(), &shader, &target);
            }
        }
        tally.report(&name);
        refused += tally.refused.values().map(Vec::len).sum::<usize>();
    }
    assert_eq!(refused, 0, "shaders that were refused");
}

#[test]
fn every_program_of_the_corpus_is_selected() {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus"), "nir", &mut paths);
    let target = Target::by_name("a660").unwrap();
    let mut tally = Tally::default();
    for path in &paths {
        let shader = nir::read(&fs::read_to_string(path).unwrap()).unwrap();
        tally.add(&path.display().to_string(), &shader, &target);
    }
    tally.report("corpus");
    assert!(tally.refused.is_empty(), "programs that were refused");
}
