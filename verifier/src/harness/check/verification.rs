//! All engines together on the boundaries of one compilation.
//!
//! A boundary is a stage that changed the program; stages that did not are counted apart. The register checker decides
//! first, as it takes microseconds; the SMT engine has the rest; the interpreter refutes. Of their answers
//!
//! - a refutation counts before everything: a run shows the difference;
//! - then a crash, then a proof;
//! - what the register checker followed and could not prove is unknown, whatever runs say: it is complete for most
//!   moves, so a failure is more likely a bug that no input reached than a weak proof;
//! - what is left was only run. That is a pass if the runs depend on enough of the program ([`Sensitivity`]), and
//!   otherwise unknown.

use super::sensitivity::{Sensitivity, SensitivityProbe};
use super::snapshots::{Snapshots, StageSnapshots, hook_of};
use super::{Answer, Checker, EngineKind, Engines, ProgramReport, Unknown, Verdict, contradiction, plant_of};
use crate::programs::Question;
use crate::programs::planted_bugs::PlantedBug;
use crate::semantics::environment::env::Env;
use crate::support::panics::catch;
use cpu_time::ThreadTime;
use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::ir3;
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use std::time::Duration;

/// The least sensitivity at which a boundary that was only run is a pass.
pub const LEAST_SENSITIVITY: f64 = 0.8;
/// Environments are added while the sensitivity grows by this much.
const LEAST_GROWTH: f64 = 0.01;
/// The number of environments that are added at a time.
const BATCH: usize = 2;
/// Environments, at most.
pub const MOST_RUNS: usize = 16;

/// The verdict on one boundary.
#[derive(Clone, Debug)]
pub struct BoundaryVerdict {
    /// The stage.
    pub stage: Stage,
    /// The verdict of all engines together.
    pub verdict: Verdict,
    /// The name of the engine that decided.
    pub engine: &'static str,
    /// CPU time of all engines.
    pub time: Duration,
}

/// The verdicts on a compilation.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// The verdicts on its boundaries, in order. If a stage refuses the program or panics, it is the last.
    pub boundaries: Vec<BoundaryVerdict>,
    /// The number of stages that changed nothing.
    pub unchanged: usize,
    /// The report of the runs, if there were any.
    pub report: ProgramReport,
    /// The environments of the runs.
    pub envs: Vec<Env>,
    /// The share of the final program on which the runs depend, if it was measured.
    pub sensitivity: Option<Sensitivity>,
    /// Boundaries that a prover proved and a run refutes.
    pub wrong_proofs: Vec<(Stage, EngineKind, String)>,
}

/// A compilation to verify.
#[derive(Clone, Copy)]
pub struct VerifiedCompilation<'a> {
    /// The program.
    pub shader: &'a Shader,
    /// The GPU.
    pub target: &'a Target,
    /// The options of the compiler.
    pub options: &'a Options,
    /// A planted bug.
    pub plant: Option<&'a PlantedBug>,
    /// The limit of instructions of a run.
    pub fuel: u64,
}

impl VerifiedCompilation<'_> {
    fn check(&self, envs: &[Env]) -> ProgramReport {
        let mut change = self.change();
        Checker::new(*self.target, *self.options).with_fuel(self.fuel).program(self.shader, envs, plant_of(&mut change))
    }

    fn change(&self) -> Option<impl FnMut(Stage, &mut ir3::Program)> {
        self.plant.map(|plant| |stage, program: &mut ir3::Program| plant.apply(stage, program))
    }

    /// The final program. `None` if the compiler refuses the shader, or panics.
    fn compiled(&self) -> Option<ir3::Program> {
        catch(|| {
            let mut change = self.change();
            let mut hook = hook_of(plant_of(&mut change), None);
            let mut compilation = Compilation::new(self.shader, self.target, self.options).with_hook(Some(&mut hook));
            while let Some(step) = compilation.step() {
                step.ok()?;
            }
            match compilation.program() {
                ProgramRef::Ir3(program) => Some(program.clone()),
                ProgramRef::Nir(_) => None,
            }
        })
        .ok()
        .flatten()
    }

    /// The answers of the provers on each stage that changed something. What the compiler does wrong is in the report
    /// of the runs.
    fn proofs(&self, engines: &Engines) -> Vec<(Stage, Vec<Answer>)> {
        let mut change = self.change();
        let mut hook = hook_of(plant_of(&mut change), None);
        let compilation = Compilation::new(self.shader, self.target, self.options).with_hook(Some(&mut hook));
        let mut snapshots = Snapshots::new(compilation);
        let mut proofs = Vec::new();
        while let Ok(Some(Ok(StageSnapshots { stage, before, after }))) = catch(|| snapshots.next()) {
            let question =
                Question { stage: Some(stage), before: &before, after: &after, machine: self.target, envs: &[] };
            proofs.push((stage, engines.ask_until_known(&question)));
        }
        proofs
    }
}

impl Engines {
    /// Verifies a compilation with all selected engines. With `more`, environments are added while the runs come to
    /// depend on more of the program and something is not proved; `more` makes the environment of a number.
    pub fn verify(
        &self,
        compilation: &VerifiedCompilation<'_>,
        mut envs: Vec<Env>,
        more: Option<&dyn Fn(usize) -> Env>,
    ) -> Verification {
        let proofs = if self.prove() { compilation.proofs(self) } else { Vec::new() };
        let start = ThreadTime::now();
        let mut sensitivity = None;
        let mut probe_time = Duration::ZERO;
        let mut report = ProgramReport::default();
        if self.has(EngineKind::Interpreter) {
            let is_open = !self.prove() || proofs.iter().any(|(_, answers)| super::proofs(answers).next().is_none());
            let program = compilation.compiled();
            let probe = program.and_then(|program| SensitivityProbe::new(&program, compilation.target).ok());
            if let Some(mut probe) = probe {
                envs.iter().for_each(|env| probe.run(env, compilation.fuel));
                let mut last = probe.sensitivity().share();
                while let Some(more) = more.filter(|_| is_open && envs.len() < MOST_RUNS && last < 1.0) {
                    for _ in 0..BATCH {
                        let env = more(envs.len());
                        probe.run(&env, compilation.fuel);
                        envs.push(env);
                    }
                    let share = probe.sensitivity().share();
                    if share < last + LEAST_GROWTH {
                        break;
                    }
                    last = share;
                }
                sensitivity = Some(probe.sensitivity());
            }
            probe_time = start.elapsed();
            report = compilation.check(&envs);
        }
        let mut verification =
            Verification { unchanged: report.unchanged, sensitivity, envs, ..Verification::default() };
        verification.combine(&report, proofs);
        report.times.run += probe_time;
        verification.report = report;
        verification
    }
}

impl Verification {
    /// The first refutation.
    pub fn refutation(&self) -> Option<&super::Refutation> {
        self.boundaries.iter().find_map(|boundary| match &boundary.verdict {
            Verdict::Refuted(refutation) => Some(&**refutation),
            _ => None,
        })
    }

    /// Combines the runs and the proofs, which are both in the order of the stages.
    fn combine(&mut self, report: &ProgramReport, proofs: Vec<(Stage, Vec<Answer>)>) {
        let mut stages: Vec<Stage> = report.boundaries.iter().map(|(stage, ..)| *stage).collect();
        stages.extend(proofs.iter().map(|(stage, _)| *stage));
        stages.sort_unstable();
        stages.dedup();
        let mut proofs = proofs.into_iter().peekable();
        let mut runs = report.boundaries.iter().peekable();
        for stage in stages {
            let mut answers = proofs.next_if(|(at, _)| *at == stage).map(|(_, answers)| answers).unwrap_or_default();
            for answer in &mut answers {
                if let Verdict::Refuted(refutation) = &mut answer.verdict {
                    refutation.stage = stage.name();
                }
            }
            let run = runs.next_if(|(at, ..)| *at == stage);
            if let Some((_, verdict, time)) = run {
                answers.push(Answer { engine: EngineKind::Interpreter, verdict: verdict.clone(), time: *time });
            }
            if let Some((provers, why)) = contradiction(&answers) {
                self.wrong_proofs.extend(provers.into_iter().map(|prover| (stage, prover, why.clone())));
            }
            let time = answers.iter().map(|answer| answer.time).sum();
            let sensitivity = self.sensitivity.as_ref();
            if let Some((verdict, engine)) = combined(answers, sensitivity) {
                self.boundaries.push(BoundaryVerdict { stage, verdict, engine: engine.name(), time });
            }
        }
    }
}

/// The rank of an answer: the highest counts. See the module.
fn rank(answer: &Answer) -> u8 {
    match (&answer.verdict, answer.engine) {
        (Verdict::Refuted(_), _) => 6,
        (Verdict::Unknown(Unknown::Crashed(_)), _) => 5,
        (Verdict::Proved { .. }, _) => 4,
        (Verdict::Unknown(Unknown::NotShown(_)), EngineKind::Registers) => 3,
        (Verdict::Tested { .. }, _) => 2,
        // The reason why runs say nothing comes before the reason why there is no proof.
        (Verdict::Unknown(_), EngineKind::Interpreter) => 1,
        (Verdict::Unknown(_), _) => 0,
    }
}

/// The verdict that follows from the answers of all engines. `None` if no engine applied.
fn combined(answers: Vec<Answer>, sensitivity: Option<&Sensitivity>) -> Option<(Verdict, EngineKind)> {
    // Of equal ranks the last counts: the stronger prover.
    let answer = answers.into_iter().max_by_key(rank)?;
    let verdict = match (answer.verdict, sensitivity) {
        (Verdict::Tested { .. }, Some(sensitivity)) if sensitivity.share() < LEAST_SENSITIVITY => {
            Verdict::Unknown(Unknown::Insensitive(*sensitivity))
        }
        (verdict, _) => verdict,
    };
    Some((verdict, answer.engine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::check::NotShown;
    use crate::harness::check::sensitivity::SiteCount;
    use crate::prove::simulation::Obstacle;

    fn answer(engine: EngineKind, verdict: Verdict) -> Answer {
        Answer { engine, verdict, time: Duration::ZERO }
    }

    fn tested() -> Answer {
        answer(EngineKind::Interpreter, Verdict::Tested { lanes: 64 })
    }

    fn not_shown(engine: EngineKind) -> Answer {
        let why = NotShown::Simulation { obstacle: Box::new(Obstacle::Nesting), left_out: None };
        answer(engine, Verdict::Unknown(Unknown::NotShown(why)))
    }

    fn verdict(answers: Vec<Answer>, seen: u32) -> String {
        let results = SiteCount { seen, all: 100 };
        let sensitivity = Sensitivity { results, ..Sensitivity::default() };
        combined(answers, Some(&sensitivity)).expect("a verdict").0.to_string()
    }

    #[test]
    fn a_proof_counts_more_than_runs() {
        let proved = answer(EngineKind::Smt, Verdict::Proved { assumptions: Vec::new() });
        assert_eq!(verdict(vec![not_shown(EngineKind::Registers), proved, tested()], 10), "proved");
    }

    #[test]
    fn what_the_register_checker_could_not_prove_does_not_pass() {
        let answers = vec![not_shown(EngineKind::Registers), not_shown(EngineKind::Smt), tested()];
        assert_eq!(verdict(answers, 100), "unknown");
        assert_eq!(verdict(vec![not_shown(EngineKind::Smt), tested()], 100), "tested 64");
    }

    #[test]
    fn runs_that_see_little_do_not_pass() {
        assert_eq!(verdict(vec![tested()], 79), "unknown");
        assert_eq!(verdict(vec![tested()], 80), "tested 64");
    }

    #[test]
    fn a_proof_that_a_run_refutes_is_wrong() {
        use crate::programs::generator::{self, Features, Profile};
        use crate::programs::planted_bugs;
        // A prover that proves everything.
        let target = Target::default();
        let options = Options::default();
        let plant = &planted_bugs::ALL[0];
        let refuted = (0..200).find_map(|seed| {
            let shader = generator::from_seed(seed, Profile::Mixed, Features::ALL).shader;
            let plant = Some(plant);
            let compilation =
                VerifiedCompilation { shader: &shader, target: &target, options: &options, plant, fuel: 100_000 };
            let report = compilation.check(&[Env::from_seed(seed)]);
            report.refutation().is_some().then_some(report)
        });
        let report = refuted.expect("a program in which the bug matters");
        let proved = || vec![answer(EngineKind::Smt, Verdict::Proved { assumptions: Vec::new() })];
        let proofs = report.boundaries.iter().map(|(stage, ..)| (*stage, proved())).collect();
        let mut verification = Verification::default();
        verification.combine(&report, proofs);
        assert_eq!(verification.wrong_proofs.len(), 1);
        assert!(verification.refutation().is_some());
    }
}
