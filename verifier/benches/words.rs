//! Speed of the compiler from nir to words, over the logs of `../shared/mesa/train`.
//!
//! `cargo bench -p ir3-verifier --bench words` prints, for each folder and for all, the instructions per CPU second,
//! those of nir and those of the final programs (nops included), and the time of a program; then the share of each
//! stage, over all folders. `cargo bench -p ir3-verifier --bench words -- a660` takes that folder only.

use cpu_time::ThreadTime;
use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_programs::input::load;
use ir3_semantics::Snapshot;
use std::path::Path;

/// Runs over all shaders, of which the fastest counts.
const RUNS: usize = 5;

const FOLDERS: [&str; 7] = ["a320", "a420", "a540", "a618", "a660", "a660-more", "a750"];

/// The compiled programs, and the time.
#[derive(Clone, Copy, Default)]
struct Totals {
    programs: usize,
    nir: usize,
    words: usize,
    seconds: f64,
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.programs += other.programs;
        self.nir += other.nir;
        self.words += other.words;
        self.seconds += other.seconds;
    }

    fn print(&self, name: &str) {
        let Self { programs, nir, words, seconds } = *self;
        let speed = |count: usize| count as f64 / seconds / 1e3;
        let each = seconds / programs as f64 * 1e6;
        println!("{name:12} {programs:>8} {nir:>8} {:>8.0} {words:>8} {:>8.0} {each:>8.0}", speed(nir), speed(words));
    }
}

fn shaders(folder: &Path, target: Target) -> Vec<Shader> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    let named = files.iter().flat_map(|file| load(file, Some(target)).expect("a log"));
    let shaders = named.filter_map(|named| match named.program {
        Snapshot::Nir(shader) => Some(*shader),
        Snapshot::Vec4(_) | Snapshot::Ir3(_) => None,
    });
    shaders.collect()
}

/// Compiles each shader once.
fn compile(shaders: &[Shader], target: Target) -> Totals {
    let mut totals = Totals::default();
    for shader in shaders {
        let start = ThreadTime::now();
        let compilation = Compilation::new(shader, &target, &Options::default());
        let program = compilation.finish().expect("it is supported").expect("it is selected");
        let seconds = start.elapsed().as_secs_f64();
        let words = program.iter_instrs().filter(|&(_, instr)| !program.instrs[instr].opcode.is_meta()).count();
        totals.add(Totals { programs: 1, nir: shader.entry.instruction_count(), words, seconds });
    }
    totals
}

/// Adds the time of each stage.
fn compile_by_stage(shaders: &[Shader], target: Target, stages: &mut Vec<(Stage, f64)>) {
    for shader in shaders {
        let mut compilation = Compilation::new(shader, &target, &Options::default());
        let mut start = ThreadTime::now();
        while let Some(step) = compilation.step() {
            let stage = step.expect("it is supported").stage;
            let seconds = start.elapsed().as_secs_f64();
            match stages.iter_mut().find(|(known, _)| *known == stage) {
                Some((_, sum)) => *sum += seconds,
                None => stages.push((stage, seconds)),
            }
            start = ThreadTime::now();
        }
        assert!(matches!(compilation.program(), ProgramRef::Ir3(_)), "it is selected");
    }
}

fn main() {
    let root = std::env::var_os("IR3_SHARED").unwrap_or_else(|| "../shared".into());
    let train = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(root).join("mesa/train");
    if !train.is_dir() {
        println!("skipped: {} is absent", train.display());
        return;
    }
    let chosen: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    println!(
        "{:12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "folder", "programs", "nir", "k nir/s", "final", "k fin/s", "us each"
    );
    let (mut all, mut stages) = (Totals::default(), Vec::new());
    for folder in FOLDERS.into_iter().filter(|&folder| chosen.is_empty() || chosen.iter().any(|name| name == folder)) {
        let target = Target::by_name(folder.split('-').next().unwrap_or(folder)).expect("a GPU");
        let shaders = shaders(&train.join(folder), target);
        let runs = (0..RUNS).map(|_| compile(&shaders, target));
        let best = runs.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("a run");
        best.print(folder);
        all.add(best);
        (0..RUNS).for_each(|_| compile_by_stage(&shaders, target, &mut stages));
    }
    all.print("all");
    let sum: f64 = stages.iter().map(|(_, seconds)| seconds).sum();
    println!();
    for (stage, seconds) in stages {
        println!("{stage:22} {:>7.2} ms {:>5.1} %", seconds * 1e3 / RUNS as f64, 100.0 * seconds / sum);
    }
}
