//! The comparison of a compilation end to end: its source with its last program.
//!
//! That is all that a user of the compiler observes, and takes a fraction of the time of a comparison at each boundary:
//! one decoding and one run instead of some fifteen. It is weaker in three ways. A mistake that a later stage undoes is
//! not seen; values that a stage leaves undefined later stages may change; and the rules of ir3 are checked of the last
//! program only. So a campaign compares every boundary of some programs, and of each that does not agree here, which
//! names the stage.

use super::boundary::{Boundary, BoundaryKind};
use super::compilation::terms_of;
use super::{
    Checker, Engines, Judge, Plant, Policy, Refutation, Spills, Times, Verdict, Verification, hook_of, postconditions,
};
use cpu_time::ThreadTime;
use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::nir;
use ir3_compiler::pipeline::Stage;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::{self, Outcome, Scratch};
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::watch::watched;
use std::time::Duration;

/// A source with its runs.
#[derive(Debug, Default)]
pub struct SourceOutcomes {
    /// The environments.
    pub envs: Vec<Env>,
    /// The outcome in each.
    pub outcomes: Vec<Outcome>,
}

/// The result of a comparison end to end.
#[derive(Debug)]
pub enum Ends {
    /// The last program agrees with the source, and keeps the rules. The report has one boundary.
    Agree(Box<Verification>),
    /// The last program differs from the source.
    Differ(Box<Refutation>),
    /// No result: the compiler refuses the program or breaks a rule, an engine does not support it, or the source is
    /// undefined.
    Open,
}

impl Checker {
    /// Compiles a shader with a hook that plants a change after stages, and compares its last program with the outcomes
    /// of the source. A panic gives [`Ends::Open`]. The times of the comparison are returned for any result.
    pub fn ends(&mut self, shader: &nir::Shader, source: &SourceOutcomes, plant: Option<Plant<'_>>) -> (Ends, Times) {
        let start = ThreadTime::now();
        let mut other = Duration::ZERO;
        let mut scratch = std::mem::take(self.scratch());
        let ends = catch(|| self.compare_ends(shader, source, plant, &mut scratch, &mut other));
        // A panic leaves the buffers in an undefined state.
        if ends.is_ok() {
            *self.scratch() = scratch;
        }
        let ends = ends.ok().flatten();
        let times = Times { compile: start.elapsed().saturating_sub(other), run: other, ..Times::default() };
        let ends = match ends {
            Some(Ends::Agree(mut report)) => {
                report.times = times;
                Ends::Agree(report)
            }
            Some(ends) => ends,
            None => Ends::Open,
        };
        (ends, times)
    }

    fn compare_ends(
        &mut self,
        shader: &nir::Shader,
        source: &SourceOutcomes,
        plant: Option<Plant<'_>>,
        scratch: &mut Scratch,
        other: &mut Duration,
    ) -> Option<Ends> {
        let begin = ThreadTime::now();
        let (mut envs, mut outcomes) = (source.envs.clone(), source.outcomes.clone());
        let promised = interp::nir::unaliased(shader);
        if envs.iter().any(|env| !promised.is_subset(&env.alone)) {
            envs.iter_mut().for_each(|env| *env = env.keeping(&promised));
            outcomes = self.run_nir(shader, &envs).ok()?;
        }
        let engines = Engines::interpreter();
        let policy = Policy { fuel: self.fuel(), ..Policy::new(&engines) };
        let mut judge = Judge::new(policy, *self.target(), &envs, scratch);
        judge.begin_with(outcomes);
        *other += begin.elapsed();
        let (target, options) = (*self.target(), *self.options());
        let mut report = Verification::default();
        let mut hook = hook_of(plant, self.nir_plant());
        let mut compilation = Compilation::new(shader, &target, &options).with_hook(Some(&mut hook));
        self.cover(|covered| covered.begin(shader));
        let mut terms = postconditions::Terms::default();
        let mut last = None;
        while let Some(stage) = compilation.next_stage() {
            if stage == Stage::RegisterAllocation {
                let begin = ThreadTime::now();
                terms = watched(|| terms_of(stage, compilation.program(), &target, &options));
                *other += begin.elapsed();
            }
            watched(|| compilation.step())?.ok()?;
            self.cover(|covered| covered.seen.add_stage(stage, compilation.program()));
            last = Some(stage);
            let ProgramRef::Ir3(program) = compilation.program() else { continue };
            match stage {
                Stage::Select => {
                    let begin = ThreadTime::now();
                    judge.add_driver_words(compilation.shader(), program);
                    *other += begin.elapsed();
                }
                Stage::RegisterAllocation => {
                    let begin = ThreadTime::now();
                    if postconditions::broken(stage, compilation.program(), &target, &terms, None).is_some() {
                        return None;
                    }
                    // From here on no stage may move an input or output.
                    terms = postconditions::Terms::given_of(program);
                    *other += begin.elapsed();
                }
                Stage::LowerSpills => report.spills = Spills::count(program),
                _ => {}
            }
        }
        let begin = ThreadTime::now();
        let (last, ProgramRef::Ir3(_)) = (last?, compilation.program()) else { return None };
        self.cover(|covered| covered.seen.add_arms(compilation.counter()));
        if postconditions::broken(last, compilation.program(), &target, &terms, None).is_some() {
            return None;
        }
        let whole = Boundary {
            kind: BoundaryKind::Whole,
            ..Boundary::of_stage(last, ProgramRef::Nir(shader), compilation.program())
        };
        let judgment = judge.judge(&whole);
        report.source = judge.source_runs();
        *other += begin.elapsed();
        match judgment.verdict {
            Verdict::Tested { .. } => {
                report.push(last, judgment);
                Some(Ends::Agree(Box::new(report)))
            }
            Verdict::Refuted(refutation) => Some(Ends::Differ(refutation)),
            Verdict::Proved { .. } | Verdict::Unknown(_) => None,
        }
    }
}
