//! The boundaries of a vec4 program that was given as text or generated: one for each pass that changes it.

use super::boundary::{Boundary, BoundaryKind};
use super::engine::COMPILER;
use super::postconditions::broken_vec4;
use super::{Crash, Execution, Judge, Judgment, Policy, Unknown, Verdict, Verification};
use ir3_compiler::i965::vec4::Program;
use ir3_compiler::pipeline::{Change, Options, Stage, run_vec4_stage};
use ir3_compiler::target::{GEN7, GEN7_SCALAR};
use ir3_programs::planted_bugs::PlantedBug;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::watch::watched;

/// Runs the passes on a vec4 program and has each boundary judged, up to the first failure. A proof is tested by runs,
/// too: programs are small.
pub fn verify_vec4(
    program: &Program,
    options: &Options,
    bug: Option<&PlantedBug>,
    policy: &Policy<'_>,
    envs: Vec<Env>,
) -> Verification {
    let mut verification = Verification { envs, ..Verification::default() };
    let envs = verification.envs.clone();
    let target = if program.mode.is_scalar() { GEN7_SCALAR } else { GEN7 };
    let mut scratch = Scratch::default();
    let policy = Policy { runs_proved: policy.runs(), ..*policy };
    let mut judge = Judge::new(policy, target, &envs, &mut scratch);
    let mut before = program.clone();
    for stage in Stage::on_mode(program.mode).filter(|&stage| options.runs(stage)) {
        let mut after = before.clone();
        let run = || watched(|| run_vec4_stage(stage, &mut after, options));
        // A program that breaks a rule is as bad as a panic.
        let ran = catch(run)
            .map_err(Crash::from)
            .and_then(|ran| ran.map_err(|error| Crash::from(error.to_string())))
            .and_then(|change| broken_vec4(stage, &after).map_or(Ok(change), |why| Err(Crash::from(why))));
        let changed = match ran {
            Ok(change) => change == Change::Something,
            Err(crash) => {
                verification.push(stage, Judgment::of(Verdict::Unknown(Unknown::Crashed(crash)), COMPILER));
                break;
            }
        };
        let planted = bug.is_some_and(|bug| bug.apply_gen7(stage, &mut after));
        if !changed && !planted {
            verification.unchanged += 1;
            continue;
        }
        let sides = [&before, &after].map(|program| Snapshot::Vec4(Box::new(program.clone())));
        let judgment = judge.judge(&Boundary {
            kind: BoundaryKind::Computes,
            runs_before: Execution::Untimed,
            runs_after: Execution::Untimed,
            follows: false,
            ..Boundary::of_stage(stage, (&sides[0]).into(), (&sides[1]).into())
        });
        verification.count(&judgment);
        let is_over = judgment.verdict.is_refuted();
        verification.push(stage, judgment);
        if is_over {
            break;
        }
        before = after;
    }
    verification
}
