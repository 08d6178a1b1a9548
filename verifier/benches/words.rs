//! Speed of the compiler from nir to words, over the logs of `../shared/mesa/train`.
//!
//! `cargo bench -p ir3-verifier --bench words` prints, for each folder, the instructions of the final programs per CPU
//! second, and the share of the time before the final passes, in them, and for the words.

use cpu_time::ThreadTime;
use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::machine::Code;
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_verifier::harness::report::load;
use ir3_verifier::semantics::Snapshot;
use std::path::Path;

/// Runs over all shaders, of which the fastest counts.
const RUNS: usize = 5;

fn main() {
    let root = std::env::var_os("IR3_SHARED").unwrap_or_else(|| "../shared".into());
    let train = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(root).join("mesa/train");
    if !train.is_dir() {
        println!("skipped: {} is absent", train.display());
        return;
    }
    println!("{:12} {:>9} {:>9} {:>9} {:>9} {:>9}", "folder", "programs", "k instr/s", "compile", "final", "words");
    for folder in ["a320", "a420", "a540", "a618", "a660", "a660-more", "a750"] {
        let target = Target::by_name(folder.split('-').next().unwrap_or(folder)).expect("a GPU");
        let mut files: Vec<_> =
            std::fs::read_dir(train.join(folder)).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.sort();
        let named = files.iter().flat_map(|file| load(file, Some(target)).expect("a log"));
        let shaders: Vec<_> = named
            .filter_map(|named| match named.program {
                Snapshot::Nir(shader) => Some(shader),
                Snapshot::Ir3(_) => None,
            })
            .collect();
        let (mut best, mut instructions) = ([f64::INFINITY; 3], 0);
        for _ in 0..RUNS {
            let mut times = [0.0; 3];
            instructions = 0;
            for shader in &shaders {
                let start = ThreadTime::now();
                let mut compilation = Compilation::new(shader, &target, &Options::default());
                compilation.run_through(Stage::LowerSamgq).expect("it is supported");
                times[0] += start.elapsed().as_secs_f64();
                let start = ThreadTime::now();
                compilation.run_through(Stage::Legalize).expect("it is supported");
                times[1] += start.elapsed().as_secs_f64();
                let start = ThreadTime::now();
                let ProgramRef::Ir3(program) = compilation.program() else { unreachable!("after selection") };
                let code = Code::from_program(program).expect("a final program");
                instructions += code.encode(target.generation).expect("it can be encoded").len();
                times[2] += start.elapsed().as_secs_f64();
            }
            if times.iter().sum::<f64>() < best.iter().sum() {
                best = times;
            }
        }
        let all: f64 = best.iter().sum();
        let share = best.map(|time| format!("{:.0} %", 100.0 * time / all));
        let speed = instructions as f64 / all / 1e3;
        println!("{folder:12} {:>9} {speed:>9.0} {:>9} {:>9} {:>9}", shaders.len(), share[0], share[1], share[2]);
    }
}
