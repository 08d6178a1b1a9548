//! The comparison of a compilation end to end: its source with its last program.
//!
//! That is all that a user of the compiler observes, and takes a fraction of the time of a comparison at each boundary:
//! one decoding and one run instead of some fifteen. It is weaker in three ways. A mistake that a later stage undoes is
//! not seen; values that a stage leaves undefined later stages may change; and the rules of ir3 are checked of the last
//! program only. So a campaign compares every boundary of some programs, and of each that does not agree here, which
//! names the stage.
//!
//! The stages up to the first that reads the register limit run once for several limits: a copy of the compilation
//! continues with each of them.

use super::boundary::{Boundary, BoundaryKind};
use super::compilation::terms_of;
use super::{
    Checker, EngineKind, Engines, Executable, Execution, Judge, Judgment, Plant, Policy, Refutation, Spills, Times,
    Verdict, Verification, hook_of, postconditions,
};
use cpu_time::ThreadTime;
use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::ir3::Program;
use ir3_compiler::nir;
use ir3_compiler::pipeline::{Options, RegisterLimit, Stage};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::{self, Outcome, Scratch};
use ir3_semantics::machine::steps::FinalCode;
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
    /// The last program agrees with the source, and keeps the rules. The report has one boundary, and that of the first
    /// limit has the runs of the source.
    Agree(Box<Verification>),
    /// The last program is not compared: after allocation it is the one of an earlier limit.
    Same,
    /// The last program differs from the source.
    Differ(Box<Refutation>),
    /// No result: the compiler refuses the program or breaks a rule, an engine does not support it, or the source is
    /// undefined.
    Open,
}

impl Ends {
    /// Returns true if nothing is left to be compared.
    pub fn is_pass(&self) -> bool {
        matches!(self, Self::Agree(_) | Self::Same)
    }
}

/// The results of comparisons end to end with some register limits, in their order.
#[derive(Debug, Default)]
pub struct EndsOfLimits {
    /// The results. None comes after one that is no pass.
    pub ends: Vec<Ends>,
    /// CPU time, for any results.
    pub times: Times,
}

/// The state of the comparisons.
struct Comparing<'a> {
    results: &'a mut Vec<Ends>,
    /// Time outside of the compiler.
    other: &'a mut Duration,
    /// The programs after allocation, while further limits follow.
    allocated: Vec<Program>,
    /// The number of limits.
    limits: usize,
}

impl Comparing<'_> {
    /// Runs a function, and adds its time to that outside of the compiler.
    fn other<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let begin = ThreadTime::now();
        let result = run();
        *self.other += begin.elapsed();
        result
    }
}

impl Checker {
    /// Compiles a shader with a hook that plants a change after stages, and compares its last program with the outcomes
    /// of the source. A panic gives [`Ends::Open`].
    pub fn ends(&mut self, shader: &nir::Shader, source: &SourceOutcomes, plant: Option<Plant<'_>>) -> Ends {
        let limit = self.options().registers;
        self.ends_of_limits(shader, source, &[limit], plant).ends.pop().unwrap_or(Ends::Open)
    }

    /// As [`ends`](Self::ends), with each of some register limits instead of that of the options, up to the first
    /// result that is no pass.
    pub fn ends_of_limits(
        &mut self,
        shader: &nir::Shader,
        source: &SourceOutcomes,
        limits: &[RegisterLimit],
        plant: Option<Plant<'_>>,
    ) -> EndsOfLimits {
        let start = ThreadTime::now();
        let (mut results, mut other) = (Vec::new(), Duration::ZERO);
        let mut scratch = std::mem::take(self.scratch());
        let comparing =
            Comparing { results: &mut results, other: &mut other, allocated: Vec::new(), limits: limits.len() };
        let ended = catch(|| self.compare_ends(shader, source, limits, plant, &mut scratch, comparing));
        // A panic leaves the buffers in an undefined state.
        if ended.is_ok() {
            *self.scratch() = scratch;
        }
        if results.len() < limits.len() && results.iter().all(Ends::is_pass) {
            results.push(Ends::Open);
        }
        let times = Times { compile: start.elapsed().saturating_sub(other), run: other, ..Times::default() };
        EndsOfLimits { ends: results, times }
    }

    fn compare_ends(
        &mut self,
        shader: &nir::Shader,
        source: &SourceOutcomes,
        limits: &[RegisterLimit],
        plant: Option<Plant<'_>>,
        scratch: &mut Scratch,
        mut comparing: Comparing<'_>,
    ) -> Option<()> {
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
        *comparing.other += begin.elapsed();
        let (&first, later) = limits.split_first()?;
        let options = Options { registers: first, ..*self.options() };
        let mut hook = hook_of(plant, self.nir_plant());
        let target = *self.target();
        let compilation = Compilation::new(shader, &target, &options).with_hook(Some(&mut hook));
        self.cover(|covered| covered.begin(shader));
        let mut later: Vec<(RegisterLimit, Option<Compilation<'_, '_>>)> =
            later.iter().map(|&limit| (limit, None)).collect();
        self.finish_compilation(shader, compilation, first, &mut judge, &mut later, &mut comparing)?;
        for (limit, copy) in later {
            let compilation = copy?.with_hook(Some(&mut hook));
            self.finish_compilation(shader, compilation, limit, &mut judge, &mut [], &mut comparing)?;
        }
        Some(())
    }

    /// Runs a compilation to its end, and compares its last program with the source. Copies it for the later limits,
    /// each before the first stage that reads it. `None` if there is no result, or a difference.
    fn finish_compilation<'s>(
        &mut self,
        shader: &nir::Shader,
        mut compilation: Compilation<'s, '_>,
        limit: RegisterLimit,
        judge: &mut Judge<'_>,
        later: &mut [(RegisterLimit, Option<Compilation<'s, '_>>)],
        comparing: &mut Comparing<'_>,
    ) -> Option<()> {
        let target = *self.target();
        let options = Options { registers: limit, ..*self.options() };
        let counted = compilation.counter().clone();
        let mut terms = postconditions::Terms::default();
        let mut report = Verification::default();
        let mut last = None;
        while let Some(stage) = compilation.next_stage() {
            for (limit, copy) in later.iter_mut().filter(|(_, copy)| copy.is_none()) {
                if compilation.next_reads_limit(*limit) {
                    *copy = compilation.with_limit(*limit);
                }
            }
            if stage == Stage::RegisterAllocation {
                terms = comparing.other(|| watched(|| terms_of(stage, compilation.program(), &target, &options)));
            }
            watched(|| compilation.step())?.ok()?;
            self.cover(|covered| covered.seen.add_stage(stage, compilation.program()));
            last = Some(stage);
            let ProgramRef::Ir3(program) = compilation.program() else { continue };
            match stage {
                Stage::Select => comparing.other(|| judge.add_driver_words(compilation.shader(), program)),
                Stage::RegisterAllocation => {
                    let broken = || postconditions::broken_allocation(stage, program, &target, &terms);
                    if comparing.other(broken).is_some() {
                        return None;
                    }
                    // No later stage reads the limit.
                    if comparing.allocated.contains(program) {
                        comparing.results.push(Ends::Same);
                        return Some(());
                    }
                    if comparing.results.len() + 1 < comparing.limits {
                        comparing.allocated.push(program.clone());
                    }
                    // From here on no stage may move an input or output.
                    terms = postconditions::Terms::given_of(program);
                }
                Stage::LowerSpills => report.spills = Spills::count(program),
                _ => {}
            }
        }
        let (last, ProgramRef::Ir3(program)) = (last?, compilation.program()) else { return None };
        self.cover(|covered| covered.seen.add_arms(&compilation.counter().since(&counted)));
        let verdict = comparing.other(|| {
            let executable = match last.is_final() {
                true => {
                    let code = FinalCode::of_program(program, &target).ok()?;
                    if postconditions::broken_final(last, program, &code, &target, &terms).is_some() {
                        return None;
                    }
                    Executable::of_final(code, &target)
                }
                false if postconditions::broken(last, ProgramRef::Ir3(program), &target, &terms, None).is_some() => {
                    return None;
                }
                false => Executable::new(ProgramRef::Ir3(program), &target, Execution::Untimed),
            };
            let whole = Boundary {
                kind: BoundaryKind::Whole,
                ..Boundary::of_stage(last, ProgramRef::Nir(shader), compilation.program())
            };
            Some(judge.judge_end(&whole, &executable.ok()?))
        })?;
        if comparing.results.is_empty() {
            report.source = judge.source_runs();
        }
        let ends = match verdict {
            verdict @ Verdict::Tested { .. } => {
                report.push(last, Judgment::of(verdict, EngineKind::Interpreter.name()));
                Ends::Agree(Box::new(report))
            }
            Verdict::Refuted(refutation) => Ends::Differ(refutation),
            Verdict::Proved { .. } | Verdict::Unknown(_) => return None,
        };
        let is_pass = ends.is_pass();
        comparing.results.push(ends);
        is_pass.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::plant_of;
    use ir3_compiler::target::Target;
    use ir3_programs::generator::{self, Features, Profile};
    use ir3_programs::planted_bugs;

    const LIMITS: [RegisterLimit; 4] =
        [RegisterLimit::Target, RegisterLimit::Minimum(0), RegisterLimit::Minimum(3), RegisterLimit::Registers(60)];

    fn source(checker: &mut Checker, shader: &nir::Shader, seed: u64) -> SourceOutcomes {
        checker.source_outcomes(shader, &[Env::from_seed(seed)]).expect("it runs")
    }

    /// Programs pass with all limits, whichever of them is the first.
    #[test]
    fn programs_pass_with_each_limit() {
        let (mut agree, mut same) = (0, 0);
        for (seed, gpu) in (1..9).flat_map(|seed| ["a540", "a660", "a750"].map(|gpu| (seed, gpu))) {
            let target = Target::by_name(gpu).expect("a GPU");
            let shader = generator::from_seed(seed, Profile::Pressure, Features::of(&target)).shader;
            let mut checker = Checker::new(target, Options::default());
            let source = source(&mut checker, &shader, seed);
            let mut limits = LIMITS;
            limits.rotate_left(seed as usize % 4);
            let results = checker.ends_of_limits(&shader, &source, &limits, None).ends;
            let alone: Vec<bool> = limits
                .map(|registers| {
                    checker.retarget(target, Options { registers, ..Options::default() });
                    matches!(checker.ends(&shader, &source, None), Ends::Agree(_))
                })
                .to_vec();
            let passes = alone.iter().position(|agrees| !agrees).map_or(limits.len(), |at| at + 1);
            assert_eq!(results.len(), passes, "{seed}, {gpu}: {alone:?}, {results:?}");
            agree += results.iter().filter(|ends| matches!(ends, Ends::Agree(_))).count();
            same += results.iter().filter(|ends| matches!(ends, Ends::Same)).count();
        }
        assert!(agree > 60 && same > 0, "{agree}, {same}");
    }

    /// A bug that only programs with spills have is found with the limit that needs them.
    #[test]
    fn the_limit_of_a_bug_is_found() {
        let plant = planted_bugs::by_name("wrong-slot").expect("a planted bug");
        let target = Target::default();
        let found = (1..60).any(|seed| {
            let shader = generator::from_seed(seed, Profile::Mixed, Features::of(&target)).shader;
            let mut checker = Checker::new(target, Options::default());
            let source = source(&mut checker, &shader, seed);
            let mut change = Some(plant.change());
            let results = checker.ends_of_limits(&shader, &source, &LIMITS, plant_of(&mut change)).ends;
            matches!(&results[..], [Ends::Agree(_), Ends::Differ(_)])
        });
        assert!(found);
    }
}
