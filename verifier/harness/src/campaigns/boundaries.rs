//! The stage boundaries of generated programs as a stream, for provers.

use crate::campaigns::register_limits::Limits;
use crate::check::{Snapshots, StageSnapshots};
use ir3_compiler::compilation::Compilation;
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_programs::{Case, Question};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use std::collections::VecDeque;

/// A stage of the compilation of a random program.
#[derive(Clone, Debug)]
pub struct Boundary {
    /// The number of the program.
    pub program: u64,
    /// The profile of the program.
    pub profile: Profile,
    /// Its seed.
    pub seed: u64,
    /// The stage.
    pub stage: Stage,
    /// The program before the stage.
    pub before: Snapshot,
    /// The program after the stage.
    pub after: Snapshot,
    /// The number of environments that the interpreter tries.
    pub runs: u32,
}

impl Case for Boundary {
    fn question<'a>(&'a self, machine: &'a Target, envs: &'a [Env]) -> Question<'a> {
        Question { stage: Some(self.stage), before: (&self.before).into(), after: (&self.after).into(), machine, envs }
    }

    fn envs(&self) -> Vec<Env> {
        env_seeds(self.seed, self.runs).into_iter().map(Env::from_seed).collect()
    }
}

/// The programs of a campaign: those that `fuzz` generates from the same seed, with fewer instructions.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// The seed of the campaign.
    pub seed: u64,
    /// The number of the first one.
    pub first: u64,
    /// The number of programs.
    pub programs: u64,
    /// The approximate limit of instructions of a program.
    pub size: u32,
}

/// Generates the boundaries of each program, without stages that changed nothing.
pub fn boundaries(series: Series, runs: u32, machine: &Target, options: Options) -> impl Iterator<Item = Boundary> {
    let machine = *machine;
    let mut numbers = series.first..series.first + series.programs;
    let mut ready = VecDeque::new();
    std::iter::from_fn(move || {
        while ready.is_empty() {
            let number = numbers.next()?;
            of_program(number, &series, runs, &machine, options, &mut ready);
        }
        ready.pop_front()
    })
}

fn of_program(
    number: u64,
    series: &Series,
    runs: u32,
    machine: &Target,
    options: Options,
    ready: &mut VecDeque<Boundary>,
) {
    let profile = Profile::ALL[(number % Profile::ALL.len() as u64) as usize];
    let seed = program_seed(series.seed, number);
    let shader = generator::from_seed_within(seed, series.size, profile, Features::of(machine)).shader;
    let options = Options { registers: Limits::ByProfile.of(profile, seed), ..options };
    let snapshots = Snapshots::new(Compilation::new(&shader, machine, &options));
    ready.extend(snapshots.map_while(Result::ok).map(|StageSnapshots { stage, before, after }| Boundary {
        program: number,
        profile,
        seed,
        stage,
        before,
        after,
        runs,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Checker;

    const SERIES: Series = Series { seed: 1, first: 3, programs: 4, size: u32::MAX };

    #[test]
    fn programs_are_those_of_a_campaign() {
        let machine = Target::default();
        for size in [40, u32::MAX] {
            for boundary in boundaries(Series { size, ..SERIES }, 1, &machine, Options::default()) {
                let Boundary { seed, profile, ref before, .. } = boundary;
                let Snapshot::Nir(shader) = before else { continue };
                let whole = generator::from_seed(seed, profile, Features::of(&machine)).shader;
                // The generator checks the limit only at the end of a region; a stage of nir may add instructions.
                let most = if size == u32::MAX { 2 * whole.instruction_count() } else { 600 };
                assert!(shader.instruction_count() <= most, "{profile} {seed}: {}", shader.instruction_count());
            }
        }
    }

    /// A program that a stage of nir changed is still compared with the result of selection.
    #[test]
    fn selection_has_a_verdict_of_its_own() {
        let mut checker = Checker::new(Target::default(), Options::default());
        let (mut seen, mut number) = (0, 0);
        while seen < 3 {
            let seed = program_seed(9, number);
            number += 1;
            let shader = generator::from_seed(seed, Profile::Predicates, Features::ALL).shader;
            let boundaries = checker.program(&shader, &Env::from_seeds(&env_seeds(seed, 1)), None).boundaries;
            if !boundaries.iter().any(|row| row.stage == Stage::DeMorgan) {
                continue;
            }
            seen += 1;
            // A boundary without a comparison takes no time.
            let select = boundaries.iter().find(|row| row.stage == Stage::Select);
            assert!(select.is_some_and(|row| !row.time.is_zero()), "seed {seed}");
        }
    }

    #[test]
    fn boundaries_follow_each_other() {
        let machine = Target::default();
        let all: Vec<Boundary> = boundaries(SERIES, 1, &machine, Options::default()).collect();
        assert!(all.len() > 4 * 8);
        for pair in all.windows(2).filter(|pair| pair[0].program == pair[1].program) {
            assert!(pair[0].stage < pair[1].stage);
            if let (Snapshot::Ir3(after), Snapshot::Ir3(before)) = (&pair[0].after, &pair[1].before) {
                assert_eq!(after, before);
            }
        }
        let numbers: std::collections::BTreeSet<u64> = all.iter().map(|boundary| boundary.program).collect();
        assert_eq!(numbers.into_iter().collect::<Vec<_>>(), [3, 4, 5, 6]);
    }
}
