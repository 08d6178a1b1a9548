//! Physical edges compared with the waves that take them: every step of a run is along one, and a missing edge is
//! noticed.

use ir3_compiler::compilation;
use ir3_compiler::ir3::{Program, reconvergence};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;
use ir3_semantics::interp::ir3::Decoded;
use std::collections::BTreeSet;

/// The steps that runs of a program make, by positions in the layout.
fn steps(program: &Program, target: &Target, seed: u64) -> BTreeSet<(usize, usize)> {
    let mut steps = BTreeSet::new();
    let Ok(decoded) = Decoded::new(program, target) else { return steps };
    for seed in env_seeds(seed, 2) {
        let mut step = |from, to| {
            steps.insert((from, to));
        };
        decoded.run_stepping(&Env::from_seed(seed), 100_000, &mut Scratch::default(), &mut step);
    }
    steps
}

/// The physical edges of a program, by positions. True for those that are logical edges too.
fn edges(program: &Program) -> Vec<((usize, usize), bool)> {
    let position = |block| program.layout.iter().position(|&b| b == block).expect("a block of the layout");
    let of = |(from, &block): (usize, &_)| {
        let data = &program.blocks[block];
        let logical: Vec<_> = data.successors().collect();
        let edges = data.physical_successors.iter().map(move |&to| ((from, position(to)), logical.contains(&to)));
        edges.collect::<Vec<_>>()
    };
    program.layout.iter().enumerate().flat_map(of).collect()
}

#[test]
fn every_step_is_along_a_physical_edge() {
    let (mut programs, mut taken, mut physical_only, mut physical_only_taken) = (0, 0, 0, 0);
    for target in ["a660", "a630"].map(|name| Target::by_name(name).expect("a GPU")) {
        for number in 0..200 {
            let profile = [Profile::Branchy, Profile::Loops, Profile::Uniform, Profile::Subgroups][number as usize % 4];
            let seed = program_seed(0x9e, number);
            let shader = generator::from_seed(seed, profile, Features::of(&target)).shader;
            let options = Options { last: Stage::Predicates, ..Options::default() };
            let Ok(mut program) = compilation::compile(&shader, &target, &options, &mut |_, _| {}) else { continue };
            reconvergence::run(&mut program);
            let edges = edges(&program);
            let steps = steps(&program, &target, seed);
            for step in &steps {
                assert!(edges.iter().any(|(edge, _)| edge == step), "{profile} {seed}: {step:?} is no physical edge");
            }
            programs += 1;
            taken += steps.len();
            for (edge, _) in edges.iter().filter(|(_, logical)| !logical) {
                physical_only += 1;
                physical_only_taken += usize::from(steps.contains(edge));
            }
        }
    }
    println!(
        "{programs} programs, {taken} edges taken; of {physical_only} edges that are only physical {physical_only_taken} are taken"
    );
    assert!(programs >= 300 && physical_only > 900, "{programs} programs, {physical_only} edges");
    // A run would notice if one of these were missing. The others are for lanes that did not diverge in these few runs.
    assert!(physical_only_taken > 100, "{physical_only_taken} of {physical_only} taken");
}
