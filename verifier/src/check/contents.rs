//! The register-content engine on one compilation: each stage that only moves values about.

use super::checker::refusal;
use super::{Plant, Unknown, Verdict};
use crate::contents::{self, Failure};
use crate::panics::{Panicked, catch};
use cpu_time::ThreadTime;
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{self, Change, CompileError, Options, Stage};
use ir3_compiler::target::Target;
use std::time::Duration;

/// Compiles a program and says of each stage that moves values about whether that is proved. Stages that had nothing to do
/// are left out. A stage that refuses the program is the last.
pub fn contents(
    shader: &Shader,
    target: &Target,
    options: &Options,
    mut plant: Option<Plant<'_>>,
) -> Vec<(Stage, Verdict, Duration)> {
    let mut verdicts = Vec::new();
    let mut at = Stage::Select;
    let done = catch(|| {
        let source = pipeline::rewrite(shader, target, options);
        let refused = |error: CompileError| (error.stage, Verdict::Unknown(refusal(&error)), Duration::ZERO);
        let mut program = match pipeline::select(&source, target) {
            Ok(program) => program,
            Err(error) => return verdicts.push(refused(error)),
        };
        for stage in Stage::ALL.into_iter().filter(|&stage| options.runs(stage)) {
            at = stage;
            let before = contents::moves_values(stage).then(|| program.clone());
            let change = match pipeline::run_stage(stage, &mut program, target, options) {
                Ok(change) => change,
                Err(error) => return verdicts.push(refused(error)),
            };
            if let Some(plant) = &mut plant {
                plant(stage, &mut program);
            }
            let Some(before) = before.filter(|_| change == Change::Something) else { continue };
            let start = ThreadTime::now();
            let verdict = match contents::prove(&before, &program, target) {
                Ok(proof) => Verdict::Proved { assumptions: proof.assumptions },
                Err(Failure::Unsupported { site, what }) => {
                    Verdict::Unknown(Unknown::Unsupported(format!("{site}: {what}")))
                }
                Err(failure) => Verdict::Unknown(Unknown::NotShown(failure.to_string())),
            };
            verdicts.push((stage, verdict, start.elapsed()));
        }
    });
    if let Err(Panicked { message, .. }) = done {
        verdicts.push((at, Verdict::Unknown(Unknown::Crashed(message)), Duration::ZERO));
    }
    verdicts
}
