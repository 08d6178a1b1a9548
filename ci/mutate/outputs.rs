//! Prints the results of the compiler on the programs of a campaign, one line each: the hash of the last program, and
//! its cost. `ci/mutants` compares the lines of a mutant with those of the original compiler. An example of the copied
//! verifier, not a part of the package `mutate`.
//!
//! `outputs GPU SEED PROGRAMS`

use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::i965::vec4;
use ir3_compiler::stats::Stats;
use ir3_programs::generator::{self, Features};
use ir3_programs::seeds::program_seed;
use ir3_verifier::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};

fn line(target: &Target, campaign: u64, number: u64) -> String {
    let profile = Profile::ALL[(number % Profile::ALL.len() as u64) as usize];
    let seed = program_seed(campaign, number);
    let shader = generator::from_seed(seed, profile, Features::of(target)).shader;
    let options = Options { registers: Limits::ByProfile.of(profile, seed), ..Options::default() };
    let mut compilation = Compilation::new(&shader, target, &options);
    while let Some(step) = compilation.step() {
        if let Err(error) = step {
            return format!("refused: {error}");
        }
    }
    let (text, cost) = match compilation.program() {
        ProgramRef::Nir(shader) => (nir::text::write(shader), String::new()),
        ProgramRef::Vec4(program) => (vec4::text::write(program), String::new()),
        ProgramRef::Ir3(program) => (ir3::text::write(program), format!("{:?}", Stats::of_final(program, target))),
    };
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x} {} {cost}", hasher.finish(), text.lines().count())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [gpu, seed, programs] = &args[..] else { panic!("outputs GPU SEED PROGRAMS") };
    std::panic::set_hook(Box::new(|_| ()));
    let target = Target::by_name(gpu).expect("a GPU");
    let seed = seed.parse().expect("a seed");
    for number in 0..programs.parse().expect("a number of programs") {
        println!(
            "{number} {}",
            std::panic::catch_unwind(|| line(&target, seed, number)).unwrap_or_else(|_| "crash".into())
        );
    }
}
