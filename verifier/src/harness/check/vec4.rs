//! Verification of the passes on a vec4 program that was given as text or generated: every boundary from the program itself on.

use super::engine::{COMPILER, NO_ENGINE};
use super::postconditions::broken_vec4;
use super::verification::combined;
use super::{
    Answer, BoundaryVerdict, EngineKind, Engines, Sensitivity, SensitivityProbe, Unknown, Verdict, Verification,
    contradiction,
};
use crate::programs::Question;
use crate::programs::planted_bugs::PlantedBug;
use crate::semantics::Snapshot;
use crate::semantics::environment::env::Env;
use crate::support::panics::catch;
use crate::support::watch::watched;
use ir3_compiler::pipeline::{Change, Options, Stage, run_vec4_stage};
use ir3_compiler::target::{GEN7, GEN7_SCALAR};
use ir3_compiler::vec4::Program;
use std::time::Duration;

/// The share of a program's values on which its runs depend.
fn sensitivity(program: &Snapshot, envs: &[Env]) -> Sensitivity {
    match SensitivityProbe::of(program, &GEN7) {
        Some(mut probe) => {
            envs.iter().for_each(|env| probe.run(env, env.fuel()));
            probe.sensitivity()
        }
        // What could not be measured is no pass.
        None => Sensitivity::NONE,
    }
}

impl Engines {
    /// Verifies the passes on a vec4 program with all selected engines. Where runs alone
    /// decide, they are a pass if they depend on enough of the program.
    pub fn verify_vec4(
        &self,
        program: &Program,
        options: &Options,
        bug: Option<&PlantedBug>,
        envs: Vec<Env>,
    ) -> Verification {
        self.boundaries_of_vec4(program, options, bug, envs, true)
    }

    /// Like [`verify_vec4`](Self::verify_vec4), but what the runs depend on is not measured, as in campaigns.
    pub(crate) fn test_vec4(
        &self,
        program: &Program,
        options: &Options,
        bug: Option<&PlantedBug>,
        envs: Vec<Env>,
    ) -> Verification {
        self.boundaries_of_vec4(program, options, bug, envs, false)
    }

    fn boundaries_of_vec4(
        &self,
        program: &Program,
        options: &Options,
        bug: Option<&PlantedBug>,
        envs: Vec<Env>,
        is_measured: bool,
    ) -> Verification {
        let mut verification = Verification { envs, ..Verification::default() };
        let mut before = program.clone();
        let stages = Stage::on_mode(program.mode).filter(|&stage| options.runs(stage));
        let target = if program.mode.is_scalar() { &GEN7_SCALAR } else { &GEN7 };
        for stage in stages {
            let mut after = before.clone();
            let run = || watched(|| run_vec4_stage(stage, &mut after, options) == Change::Something);
            // A program that breaks a rule is as bad as a panic.
            let ran = catch(run)
                .map_err(|panic| panic.message)
                .and_then(|changed| broken_vec4(stage, &after).map_or(Ok(changed), Err));
            let changed = match ran {
                Ok(changed) => changed,
                Err(message) => {
                    let verdict = Verdict::Unknown(Unknown::Crashed(message));
                    let time = Duration::ZERO;
                    verification.boundaries.push(BoundaryVerdict { stage, verdict, engine: COMPILER, time });
                    break;
                }
            };
            let planted = bug.is_some_and(|bug| bug.apply_gen7(stage, &mut after));
            if !changed && !planted {
                verification.unchanged += 1;
                continue;
            }
            let sides = [&before, &after].map(|program| Snapshot::Vec4(Box::new(program.clone())));
            let (machine, envs) = (target, &verification.envs[..]);
            let question = Question { stage: Some(stage), before: &sides[0], after: &sides[1], machine, envs };
            // Runs come first: a difference that they find needs no proof. A proof that they contradict is wrong.
            let answers = self.ask(&question);
            if let Some((provers, why)) = contradiction(&answers) {
                verification.wrong_proofs.extend(provers.into_iter().map(|prover| (stage, prover, why.clone())));
            }
            let time = answers.iter().map(|answer: &Answer| answer.time).sum();
            let proofs = answers.iter().filter(|answer| answer.engine != EngineKind::Interpreter);
            verification.proving += proofs.map(|answer| answer.time).sum::<Duration>();
            // Only runs need to know what they depend on.
            let is_proved = answers.iter().any(|answer| matches!(answer.verdict, Verdict::Proved { .. }));
            let sensitivity = (is_measured && !is_proved).then(|| sensitivity(&sides[1], envs));
            let (verdict, engine) = combined(answers, sensitivity.as_ref())
                .map_or_else(|| (Verdict::not_compared(), NO_ENGINE), |(verdict, engine)| (verdict, engine.name()));
            let is_refuted = matches!(verdict, Verdict::Refuted(_));
            verification.boundaries.push(BoundaryVerdict { stage, verdict, engine, time });
            if is_refuted {
                break;
            }
            before = after;
        }
        verification
    }
}
