//! The campaign on the passes of vec4: generated vec4 programs, each boundary compared by all engines, refutations made
//! smaller.

use ir3_compiler::i965::vec4::Program;
use ir3_compiler::pipeline::{Options, Stage};
use ir3_harness::check::{Engines, Policy, Search, Summary, Verdict, Verification, verify_vec4};
use ir3_harness::reduce::minimal_vec4;
use ir3_programs::planted_bugs::PlantedBug;
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_programs::vec4_code;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::threads;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// The environments of a program.
const ENVS: u32 = 8;

/// The parameters of a campaign.
pub struct Vec4Campaign {
    /// The seed.
    pub seed: u64,
    /// The number of programs.
    pub programs: u64,
    /// About the most instructions of a program.
    pub size: u32,
    /// The forms of the passes.
    pub options: Options,
    /// A planted bug.
    pub bug: Option<&'static PlantedBug>,
    /// The engines.
    pub engines: Engines,
    /// Threads.
    pub jobs: usize,
    /// The number of refutations that are made smaller; no more programs are checked after them.
    pub findings: usize,
}

/// A refutation, and the smallest program found that is refuted at the same stage.
pub struct Finding {
    /// The number of the program.
    pub number: u64,
    /// The stage.
    pub stage: Stage,
    /// The smallest program.
    pub program: Program,
}

/// The results of a campaign.
#[derive(Default)]
pub struct Vec4Counts {
    /// The verdicts.
    pub summary: Summary,
    /// Boundaries that were proved and that a run refutes, as numbers of programs and stages: a prover is unsound.
    pub wrong_proofs: Vec<(u64, Stage)>,
    /// Refutations.
    pub findings: Vec<Finding>,
}

impl Vec4Campaign {
    /// The environments of a program.
    fn envs(&self, number: u64) -> Vec<Env> {
        Env::from_seeds(&env_seeds(program_seed(self.seed, number), ENVS))
    }

    /// Verifies a program.
    fn verify(&self, program: &Program, number: u64, policy: &Policy<'_>) -> Verification {
        verify_vec4(program, &self.options, self.bug, policy, self.envs(number))
    }

    /// Returns the stage at which a program is refuted.
    fn refuted_at(&self, program: &Program, number: u64) -> Option<Stage> {
        let boundaries = self.verify(program, number, &Policy::new(&self.engines)).boundaries;
        boundaries.iter().find(|row| matches!(row.verdict, Verdict::Refuted(_))).map(|row| row.stage)
    }

    /// Runs the campaign.
    pub fn run(&self, interrupted: &AtomicBool) -> Vec4Counts {
        let counts = Mutex::new(Vec4Counts::default());
        let lock = || counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let stop = AtomicBool::new(false);
        threads::for_each(self.jobs, 0..self.programs, interrupted, |_, number| {
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                return;
            }
            let program = vec4_code::from_seed(program_seed(self.seed, number), self.size);
            let measuring = Policy::new(&self.engines).with_search(Search::MEASURING);
            let verification = self.verify(&program, number, &measuring);
            let refuted = verification.boundaries.iter().find(|row| matches!(row.verdict, Verdict::Refuted(_)));
            let finding = refuted.map(|row| {
                let stage = row.stage;
                let fails = |smaller: &Program| self.refuted_at(smaller, number) == Some(stage);
                Finding { number, stage, program: minimal_vec4(&program, &fails) }
            });
            let mut counts = lock();
            counts.summary.programs += 1;
            counts.summary.unchanged += verification.unchanged as u64;
            verification.boundaries.iter().for_each(|row| counts.summary.count(&row.verdict));
            counts.summary.seconds += verification.boundaries.iter().map(|row| row.time.as_secs_f64()).sum::<f64>();
            counts.wrong_proofs.extend(verification.wrong_proofs.iter().map(|(stage, ..)| (number, *stage)));
            counts.findings.extend(finding);
            if counts.findings.len() >= self.findings {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        });
        let mut counts = counts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        counts.findings.sort_by_key(|finding| (finding.program.instrs.len(), finding.number));
        counts.summary.interrupted = interrupted.load(std::sync::atomic::Ordering::Relaxed);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::compilation::compile_vec4;
    use ir3_compiler::target::GEN7;
    use ir3_harness::check::{Checker, EngineKind, Smt};
    use ir3_programs::Question;
    use ir3_programs::generator::{self, Profile};
    use ir3_programs::planted_bugs::vec4::{ALL, SELECTION};
    use ir3_semantics::Snapshot;

    fn campaign(options: Options, bug: Option<&'static PlantedBug>) -> Vec4Campaign {
        let engines = Engines { kinds: vec![EngineKind::Interpreter], smt: Smt::default() };
        Vec4Campaign { seed: 1, programs: 4000, size: 40, options, bug, engines, jobs: 1, findings: 1 }
    }

    #[test]
    fn each_planted_bug_is_refuted_at_its_stage() {
        for bug in &ALL {
            let counts = campaign(Options::default(), Some(bug)).run(&AtomicBool::new(false));
            let stages: Vec<Stage> = counts.findings.iter().map(|finding| finding.stage).collect();
            assert_eq!(stages, [bug.stage], "{}", bug.name);
        }
    }

    #[test]
    fn each_planted_bug_of_selection_is_refuted() {
        let options = Options { last: Stage::Vec4Select, ..Options::default() };
        let features = generator::Features::of(&GEN7);
        for bug in &SELECTION {
            let is_refuted = |seed| {
                let shader = generator::from_seed(seed, Profile::Mixed, features).shader;
                let mut program = compile_vec4(&shader, &GEN7, &options).expect("it compiles");
                let right = program.clone();
                if !bug.apply_gen7(Stage::Vec4Select, &mut program) {
                    return false;
                }
                let envs = Env::from_seeds(&env_seeds(seed, 4));
                let before = Snapshot::Nir(Box::new(shader));
                let [right, wrong] = [right, program].map(|program| {
                    let (after, machine) = (Snapshot::Vec4(Box::new(program)), &GEN7);
                    let stage = Some(Stage::Vec4Select);
                    let (before, after) = ((&before).into(), (&after).into());
                    let question = Question { stage, before, after, machine, envs: &envs };
                    let answers = campaign(options, None).engines.answers(&question);
                    answers.iter().any(|answer| matches!(answer.verdict, Verdict::Refuted(_)))
                });
                assert!(!right, "{}: seed {seed}", bug.name);
                wrong
            };
            assert!((0..100).any(is_refuted), "{}", bug.name);
        }
    }

    /// Programs from nir reach these planted bugs; selection emits none of the shapes of the others.
    #[test]
    fn planted_bugs_are_refuted_in_compiled_programs() {
        let reached = ["lost-inverse", "cmod-other-writemask"];
        let features = generator::Features::of(&GEN7);
        let mut checker = Checker::new(GEN7, Options::default());
        for bug in ALL.iter().filter(|bug| reached.contains(&bug.name)) {
            let is_refuted = |seed: u64| {
                let profile = [Profile::Branchy, Profile::Mixed, Profile::Vectors][seed as usize % 3];
                let shader = generator::from_seed(seed, profile, features).shader;
                let report = checker.program(&shader, &Env::from_seeds(&env_seeds(seed, 1)), Some(&mut bug.change()));
                report.refutation().is_some_and(|refutation| refutation.stage == bug.stage.name())
            };
            assert!((0..600).any(is_refuted), "{}", bug.name);
        }
    }

    #[test]
    fn the_default_is_not_refuted() {
        let counts = Vec4Campaign { programs: 600, ..campaign(Options::default(), None) }.run(&AtomicBool::new(false));
        let found: Vec<String> =
            counts.findings.iter().map(|f| ir3_compiler::i965::vec4::text::write(&f.program)).collect();
        assert!(found.is_empty(), "{}", found.join("\n"));
        assert!(counts.summary.checks > 600, "{}", counts.summary.checks);
    }
}
