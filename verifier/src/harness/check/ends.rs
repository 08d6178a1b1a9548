//! The comparison of a compilation end to end: its source with its last program.
//!
//! That is all that a user of the compiler observes, and takes a fraction of the time of a comparison at each boundary: one decoding and one
//! run instead of some fifteen. It is weaker in three ways. A mistake that a later stage undoes is not seen; what a stage leaves undefined
//! later stages may change; and the rules of ir3 are checked of the last program only. So a campaign compares every boundary of some
//! programs, and of each that does not agree here, which names the stage.

use super::checker::{changed, terms_of};
use super::interpreter::{Refutation, beside_driver, compare_runs, source_run, source_runs};
use super::{Checker, Executable, Execution, Plant, ProgramReport, Spills, Verdict, hook_of, postconditions};
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use crate::semantics::header::Header;
use crate::semantics::interp::{self, Outcome};
use crate::support::panics::catch;
use crate::support::watch::watched;
use cpu_time::ThreadTime;
use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::nir;
use ir3_compiler::pipeline::Stage;
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
    /// The last program does what the source does, and keeps the rules. The report has one boundary.
    Agree(Box<ProgramReport>),
    /// It does something else.
    Differ(Box<Refutation>),
    /// There is no answer: the compiler refuses the program or breaks a rule, an engine does not support it, or the source has no meaning.
    Open,
}

impl Checker {
    /// Compiles a shader with a change planted after stages, and compares its last program with the outcomes of the source. A panic is no
    /// answer. The times are those of this comparison, whatever comes of it.
    pub fn ends(
        &mut self,
        shader: &nir::Shader,
        source: &SourceOutcomes,
        plant: Option<Plant<'_>>,
    ) -> (Ends, super::Times) {
        let start = ThreadTime::now();
        let mut other = Duration::ZERO;
        let ends = catch(|| self.compare_ends(shader, source, plant, &mut other)).unwrap_or_else(|_| {
            // The panic left the buffers in an undefined state.
            self.forget_buffers();
            None
        });
        let times = super::Times { compile: start.elapsed().saturating_sub(other), run: other };
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
        other: &mut Duration,
    ) -> Option<Ends> {
        let begin = ThreadTime::now();
        let (mut envs, mut outcomes) = (source.envs.clone(), source.outcomes.clone());
        if interp::nir::promises_no_alias(shader) {
            envs.iter_mut().for_each(|env| env.one_buffer = Some(false));
            outcomes = self.run_nir(shader, &envs).ok()?;
        }
        let mut header = Header::of(ProgramRef::Nir(shader));
        *other += begin.elapsed();
        let (target, options) = (*self.target(), *self.options());
        let mut report = ProgramReport::default();
        let mut hook = hook_of(plant, self.nir_plant());
        let mut compilation = Compilation::new(shader, &target, &options).with_hook(Some(&mut hook));
        let mut terms = postconditions::Terms::default();
        let mut last = None;
        while let Some(stage) = compilation.next_stage() {
            if stage == Stage::RegisterAllocation {
                let begin = ThreadTime::now();
                terms = watched(|| terms_of(stage, compilation.program(), &target, &options));
                *other += begin.elapsed();
            }
            watched(|| compilation.step())?.ok()?;
            last = Some(stage);
            let ProgramRef::Ir3(program) = compilation.program() else { continue };
            match stage {
                Stage::Select => {
                    let begin = ThreadTime::now();
                    if changed(&mut header, compilation.program()).is_some() {
                        return None;
                    }
                    // Only now is it known where the driver's words are.
                    if let Some(decoded) = beside_driver(compilation.shader(), program) {
                        envs.iter_mut().for_each(|env| *env = env.with_driver_words(decoded.launch(), &program.consts));
                        let fuel = self.fuel();
                        let run = |env: &Env| {
                            let fuel = env.fuel.unwrap_or(fuel);
                            source_run(self.scratch(), |scratch| decoded.run(env, fuel, scratch))
                        };
                        outcomes = envs.iter().map(run).collect();
                    }
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
        let (runs, vacuous) = source_runs(&outcomes);
        report.source = runs;
        let is_fine = changed(&mut header, compilation.program()).is_none()
            && postconditions::broken(last, compilation.program(), &target, &terms, None).is_none();
        let executable =
            is_fine.then(|| Executable::new(compilation.program(), &target, Execution::after(last)).ok())??;
        let run = |env: &Env, fuel, scratch: &mut interp::Scratch| executable.run(env, fuel, scratch);
        let compared = compare_runs(&envs, &mut outcomes, &vacuous, self.scratch(), run);
        *other += begin.elapsed();
        match compared {
            Ok(verdict @ Verdict::Tested { .. }) => {
                report.boundaries.push((last, verdict, begin.elapsed()));
                Some(Ends::Agree(Box::new(report)))
            }
            Ok(_) => None,
            Err((number, difference)) => Some(Ends::Differ(Box::new(Refutation {
                stage: last.name(),
                before: Snapshot::Nir(Box::new(shader.clone())),
                after: Snapshot::from(compilation.program()),
                env: envs.get(number).cloned().unwrap_or_default(),
                difference,
            }))),
        }
    }
}
