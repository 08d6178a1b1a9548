//! Every real shader compiles, and after each stage the program is valid, every memory and texture access says what it does, and the program's text reads
//! back to it.

use std::fs;
use std::path::{Path, PathBuf};

use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{self, access::Access};
use ir3_compiler::pipeline::{self, Options, Stage};
use ir3_compiler::{nir, target::Target};

/// `../shared` of the workspace, or where `IR3_SHARED` says.
fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let path = std::env::var_os("IR3_SHARED").map_or(beside, PathBuf::from);
    path.is_dir().then_some(path)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    paths.sort();
    paths
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

#[test]
fn every_real_shader_compiles() {
    let Some(shared) = shared() else {
        println!("skipped: ../shared is absent");
        return;
    };
    let mut failures = Vec::new();
    for folder in entries(&shared.join("mesa/train")) {
        let gpu = folder.file_name().unwrap().to_string_lossy().into_owned();
        let target = Target::by_name(gpu.strip_suffix("-spillall").unwrap_or(&gpu)).unwrap();
        let (mut programs, mut accesses) = (0, 0);
        for path in entries(&folder) {
            for section in sections(&String::from_utf8_lossy(&fs::read(&path).unwrap())) {
                let shader = nir::read(&section).unwrap();
                let mut fail = |what: String| failures.push(format!("{}: {what}", path.display()));
                let mut look = |stage, program: &ir3::Program| {
                    for (_, instr) in program.iter_instrs() {
                        match Access::of(&program.instrs[instr]) {
                            Ok(access) => accesses += usize::from(access.is_some()),
                            Err(unknown) => fail(format!("{stage}: {unknown}")),
                        }
                    }
                    let form = match stage {
                        Stage::Select | Stage::CopyPropagation | Stage::DeadCode => Form::Ssa,
                        Stage::RegisterAllocation => Form::Registers,
                        Stage::LowerCopies => Form::Machine,
                    };
                    for violation in validate(program, &target, form).err().unwrap_or_default() {
                        fail(format!("{stage}: {:?}: {violation}", violation.rule));
                    }
                    match ir3::text::read(&ir3::text::write(program)) {
                        Ok(read) if Some(&read) == program.canonical().as_ref() => {}
                        Ok(_) => fail(format!("{stage}: the text reads back to another program")),
                        Err(error) => fail(format!("{stage}: {error}")),
                    }
                };
                let result = pipeline::compile(&shader, &target, &Options::default(), &mut look);
                if let Err(error) = result {
                    fail(error.to_string());
                }
                programs += 1;
            }
        }
        println!("{gpu}: {programs} compiled, {accesses} accesses seen");
    }
    assert!(failures.is_empty(), "{} failures, first {}", failures.len(), failures[0]);
}
