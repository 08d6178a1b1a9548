//! Every shader of the real logs, and every program of `corpus/`, goes through the whole pipeline. What is refused is
//! counted by its reason; what comes out has physical registers only, and, in the end, machine instructions only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ir3_compiler::ir3::{Opcode, Place, Program};
use ir3_compiler::nir;
use ir3_compiler::pipeline::{ErrorKind, Options, Stage, compile};
use ir3_compiler::target::Target;

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

/// Rules of the last two stages.
fn check(stage: Stage, program: &Program, name: &str) {
    for (block, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        if stage >= Stage::RegisterAllocation {
            assert_ne!(data.opcode, Opcode::Phi, "{name}: {stage}");
            let places =
                data.dsts.iter().map(|dst| dst.place).chain(data.srcs.iter().filter_map(|s| s.place().copied()));
            for place in places {
                assert!(
                    matches!(place, Place::Reg(_) | Place::Relative { .. }),
                    "{name}: {stage}: {place:?} in {instr} ({}) of {block}",
                    data.opcode
                );
            }
        }
        if stage == Stage::LowerCopies {
            assert!(!data.opcode.is_meta() || matches!(data.opcode, Opcode::Input | Opcode::TexPrefetch), "{name}");
        }
    }
}

#[derive(Default)]
struct Tally {
    compiled: usize,
    instructions: [usize; 5],
    times: [Duration; 5],
    refused: BTreeMap<String, Vec<String>>,
    internal: usize,
}

impl Tally {
    fn add(&mut self, name: &str, shader: &nir::Shader, target: &Target) {
        let mut start = Instant::now();
        let result = compile(shader, target, &Options::default(), &mut |stage, program| {
            self.times[stage as usize] += start.elapsed();
            self.instructions[stage as usize] += program.instruction_count();
            check(stage, program, name);
            start = Instant::now();
        });
        match result {
            Ok(_) => self.compiled += 1,
            Err(error) => {
                self.internal += usize::from(error.kind == ErrorKind::Internal);
                let reason = format!("{:?}", error.kind);
                self.refused.entry(reason).or_default().push(format!("{name}: {error}"));
            }
        }
    }

    fn report(&self, what: &str) {
        let refused: usize = self.refused.values().map(Vec::len).sum();
        println!("{what}: {} compiled, {refused} refused", self.compiled);
        for stage in Stage::ALL {
            let (time, count) = (self.times[stage as usize], self.instructions[stage as usize]);
            let each = time.as_nanos() / count.max(1) as u128;
            println!("  {stage:20} {count:8} instructions, {time:10.2?}, {each} ns each");
        }
        for (reason, places) in &self.refused {
            println!("  {:4} {reason}:", places.len());
            places.iter().take(3).for_each(|place| println!("       {place}"));
        }
    }
}

#[test]
fn every_real_shader_compiles_or_needs_spilling() {
    let Some(shared) = shared() else {
        println!("skipped: ../shared is absent");
        return;
    };
    let mut gpus: Vec<PathBuf> = fs::read_dir(shared.join("mesa/train")).unwrap().flatten().map(|e| e.path()).collect();
    gpus.sort();
    let mut internal = 0;
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
        internal += tally.internal;
    }
    assert_eq!(internal, 0, "internal errors");
}

#[test]
fn every_program_of_the_corpus_compiles_for_every_generation() {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus"), "nir", &mut paths);
    for gpu in ["a330", "a420", "a530", "a618", "a660", "a750"] {
        let target = Target::by_name(gpu).unwrap();
        let mut tally = Tally::default();
        for path in &paths {
            let shader = nir::read(&fs::read_to_string(path).unwrap()).unwrap();
            tally.add(&path.display().to_string(), &shader, &target);
        }
        tally.report(gpu);
        assert_eq!(tally.internal, 0, "{gpu}: internal errors");
    }
}
