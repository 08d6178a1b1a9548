//! Planted miscompilations: mutants of the programs after a stage that behave differently, for every engine to find.
//!
//! A mutant is a boundary of a generated program's compilation, with one mutation (of [`mutations::KINDS`]) of the
//! program after the stage. It is kept if it is valid, and if the interpreter shows in one of several environments that
//! it differs from the program before the stage. So no engine may prove a mutant, and an engine that searches for
//! counterexamples has missed those that it does not refute.

use ir3_compiler::compilation::Compilation;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::pipeline::{Options, RegisterLimit, Stage};
use ir3_compiler::{ir3, nir, target::Target};
use ir3_harness::check::{Snapshots, StageSnapshots};
use ir3_harness::check::{Verdict, compare_snapshots};
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::mutations;
use ir3_programs::mutations::{KINDS, Sites};
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_programs::{Case, Question};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use std::collections::VecDeque;

/// The number of environments in which a mutant is compared.
const RUNS: u32 = 6;

/// A planted miscompilation.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The kind of mutation.
    pub kind: &'static str,
    /// The stage of the boundary.
    pub stage: Stage,
    /// The profile of the program.
    pub profile: Profile,
    /// The seed of the program.
    pub seed: u64,
    /// The program before the stage.
    pub before: Snapshot,
    /// The mutated program after it.
    pub after: Snapshot,
}

impl Case for Mutant {
    fn question<'a>(&'a self, machine: &'a Target, envs: &'a [Env]) -> Question<'a> {
        Question { stage: Some(self.stage), before: (&self.before).into(), after: (&self.after).into(), machine, envs }
    }

    fn envs(&self) -> Vec<Env> {
        // Other environments than those in which it was compared.
        env_seeds(program_seed(self.seed, 0x6b69_6c6c), 2).into_iter().map(Env::from_seed).collect()
    }
}

/// The names of all kinds of mutations.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name).chain(mutations::nir::KINDS.iter().map(|kind| kind.name))
}

/// Counts of the mutations that were tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Mutations that were made.
    pub changes: u64,
    /// Mutations with an invalid result.
    pub invalid: u64,
    /// Mutations without a difference in any run.
    pub same: u64,
}

/// A stream of mutants, a function of its seed.
pub struct Mutants {
    machine: Target,
    seed: u64,
    program: u64,
    /// The number of mutants of each kind, in the order of [`kinds`].
    kept: Vec<u64>,
    /// The limit for one kind.
    most: u64,
    ready: VecDeque<Mutant>,
    /// Counts of the mutations so far.
    pub tried: Tried,
}

impl Mutants {
    /// Begins a stream of mutants of the programs of `seed`, at most `most` of one kind.
    #[must_use]
    pub fn new(seed: u64, most: u64, machine: &Target) -> Self {
        let kept = vec![0; kinds().count()];
        Self { machine: *machine, seed, program: 0, kept, most, ready: VecDeque::new(), tried: Tried::default() }
    }

    /// Makes the mutants of the next program: one for each stage that changed something.
    fn next_program(&mut self) {
        let number = self.program;
        self.program += 1;
        let seed = program_seed(self.seed, number);
        let profile = Profile::ALL[(number % Profile::ALL.len() as u64) as usize];
        let shader = generator::from_seed(seed, profile, Features::of(&self.machine)).shader;
        let registers = match number % 3 {
            0 => RegisterLimit::Minimum((seed % 6) as u16),
            _ => RegisterLimit::Target,
        };
        let options = Options { registers, ..Options::default() };
        let machine = self.machine;
        let snapshots = Snapshots::new(Compilation::new(&shader, &machine, &options));
        for StageSnapshots { stage, before, after } in snapshots.map_while(Result::ok) {
            let position = Stage::ALL.iter().position(|&other| other == stage).map_or(0x6e, |position| position as u64);
            let of =
                Planting { before: &before, stage, profile, seed, random: program_seed(seed, 0x6d75_7400 + position) };
            match &after {
                Snapshot::Nir(shader) => self.plant_in_nir(shader, &of),
                Snapshot::Ir3(program) => self.plant(program, &of),
                Snapshot::Vec4(_) => unreachable!("mutants are made of programs in ir3"),
            }
        }
    }

    /// Returns `count` kinds from `first` on, in ascending order of the mutants they have, so that rare kinds are used
    /// for all programs that they apply to.
    fn rarest(&self, first: usize, count: usize, random: u64) -> Vec<usize> {
        let mut kinds: Vec<usize> = (first..first + count).filter(|&kind| self.kept[kind] < self.most).collect();
        kinds.sort_by_key(|&kind| (self.kept[kind], program_seed(random, kind as u64)));
        kinds.truncate(10);
        kinds
    }

    /// Plants one mutation that makes a difference.
    fn plant(&mut self, program: &ir3::Program, of: &Planting<'_>) {
        let sites = Sites::new(program);
        let form = Form::of(program);
        for kind in self.rarest(0, KINDS.len(), of.random) {
            let mut mutant = program.clone();
            let random = program_seed(of.random, kind as u64 + 100);
            if !KINDS[kind].apply(&mut mutant, &sites, random) || mutant == *program {
                continue;
            }
            let valid = validate(&mutant, &self.machine, form).is_ok();
            if self.keep(kind, KINDS[kind].name, valid, Snapshot::Ir3(Box::new(mutant)), of) {
                return;
            }
        }
    }

    /// Like [`plant`](Self::plant), in a nir program.
    fn plant_in_nir(&mut self, shader: &nir::Shader, of: &Planting<'_>) {
        let kinds = mutations::nir::KINDS;
        for kind in self.rarest(KINDS.len(), kinds.len(), of.random) {
            let mut mutant = shader.clone();
            let the_kind = &kinds[kind - KINDS.len()];
            if !the_kind.apply(&mut mutant.entry, program_seed(of.random, kind as u64)) || mutant == *shader {
                continue;
            }
            let valid = nir::validate(&mutant).is_ok();
            if self.keep(kind, the_kind.name, valid, Snapshot::Nir(Box::new(mutant)), of) {
                return;
            }
        }
    }

    /// Keeps a mutant if it is valid and differs.
    fn keep(&mut self, kind: usize, name: &'static str, valid: bool, after: Snapshot, of: &Planting<'_>) -> bool {
        let &Planting { before, stage, profile, seed, .. } = of;
        self.tried.changes += 1;
        if !valid {
            self.tried.invalid += 1;
            return false;
        }
        let envs: Vec<Env> = env_seeds(seed, RUNS).into_iter().map(Env::from_seed).collect();
        let (verdict, _) = compare_snapshots(before, &after, &self.machine, &envs);
        if !matches!(verdict, Verdict::Refuted(_)) {
            self.tried.same += 1;
            return false;
        }
        self.kept[kind] += 1;
        self.ready.push_back(Mutant { kind: name, stage, profile, seed, before: before.clone(), after });
        true
    }
}

/// The boundary that is mutated.
struct Planting<'a> {
    before: &'a Snapshot,
    stage: Stage,
    profile: Profile,
    seed: u64,
    random: u64,
}

/// The stream ends after this number of programs without a new mutant: every kind that occurs has enough.
const BARREN: u64 = 2000;

impl Iterator for Mutants {
    type Item = Mutant;

    fn next(&mut self) -> Option<Mutant> {
        let last = self.program + BARREN;
        while self.ready.is_empty() && self.program < last {
            self.next_program();
        }
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::compare_all;
    use ir3_harness::check::{Answer, EngineKind, Engines};
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_seed_gives_one_series_and_nothing_is_proved() {
        let machine = Target::default();
        let mut kinds = Vec::new();
        let mut each = |number: u64, mutant: &Mutant, answers: &[Answer]| {
            kinds.push((number, mutant.kind, mutant.seed, mutant.stage));
            for Answer { engine, verdict, .. } in answers {
                assert!(
                    !matches!(verdict, Verdict::Proved { .. }),
                    "{}: {} after {}, seed {}",
                    engine.name(),
                    mutant.kind,
                    mutant.stage,
                    mutant.seed
                );
            }
        };
        let mutants = Mutants::new(1, 40, &machine).take(120);
        // The fast engines; `tests/proofs` has the other one.
        let panel = Engines { kinds: vec![EngineKind::Interpreter, EngineKind::Registers], ..Engines::default() };
        compare_all(mutants, &machine, &panel, 2, None, &AtomicBool::new(false), &mut each);
        kinds.sort_unstable();
        let again: Vec<_> = (0..)
            .zip(Mutants::new(1, 40, &machine).take(120))
            .map(|(number, mutant)| (number, mutant.kind, mutant.seed, mutant.stage))
            .collect();
        assert_eq!(kinds, again);
        let different = |of: fn(&(u64, &'static str, u64, Stage)) -> String| {
            kinds.iter().map(of).collect::<std::collections::BTreeSet<_>>().len()
        };
        assert!(different(|row| row.1.to_owned()) >= 30 && different(|row| row.3.to_string()) >= 12);
    }
}
