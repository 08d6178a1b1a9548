//! The proving engines on one compilation: each stage that changed something.

use super::checker::refusal;
use super::{Plant, Smt, Snapshot, Unknown, Verdict};
use crate::contents;
use crate::panics::{Panicked, catch};
use cpu_time::ThreadTime;
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{self, Change, CompileError, Options, Stage};
use ir3_compiler::target::Target;
use std::borrow::Cow;
use std::time::Duration;

/// Which engines prove, the first one first.
#[derive(Clone, Debug)]
pub struct Provers {
    /// Register contents, behind the stages that only move values about.
    pub contents: bool,
    /// Terms and a solver, behind any stage, for what is not proved by then.
    pub smt: Option<Smt>,
}

/// The verdict of a prover on a boundary.
#[derive(Clone, Debug)]
pub struct Proved {
    /// The stage.
    pub stage: Stage,
    /// Who says so.
    pub engine: &'static str,
    /// What.
    pub verdict: Verdict,
    /// CPU time.
    pub time: Duration,
}

impl Provers {
    /// Why a proof could not be written to the cache, if that has happened.
    pub fn cache_failure(&self) -> Option<&str> {
        self.smt.as_ref()?.cache.as_ref()?.failure()
    }

    /// Compiles a program and says of each stage that changed something whether that is proved. A stage that refuses the
    /// program is the last.
    pub fn program(
        &self,
        shader: &Shader,
        target: &Target,
        options: &Options,
        mut plant: Option<Plant<'_>>,
    ) -> Vec<Proved> {
        let mut verdicts = Vec::new();
        let mut at = Stage::Select;
        let done = catch(|| {
            let refused = |error: CompileError| Proved {
                stage: error.stage,
                engine: "compiler",
                verdict: Verdict::Unknown(refusal(&error)),
                time: Duration::ZERO,
            };
            let mut source = Cow::Borrowed(shader);
            for stage in Stage::NIR.into_iter().filter(|&stage| options.runs(stage)) {
                at = stage;
                let before = source.clone();
                if pipeline::rewrite_stage(stage, &mut source, target) == Change::Something {
                    let [before, after] = [before, source.clone()].map(|it| Snapshot::Nir(Box::new(it.into_owned())));
                    verdicts.extend(self.boundary(stage, &before, &after, target));
                }
            }
            if !options.runs(Stage::Select) {
                return;
            }
            at = Stage::Select;
            let mut program = match pipeline::select(&source, target) {
                Ok(program) => program,
                Err(error) => return verdicts.push(refused(error)),
            };
            let mut before = Snapshot::Nir(Box::new(source.into_owned()));
            for stage in Stage::ALL.into_iter().filter(|&stage| options.runs(stage)) {
                at = stage;
                let change = match pipeline::run_stage(stage, &mut program, target, options) {
                    Ok(change) => change,
                    Err(error) => return verdicts.push(refused(error)),
                };
                let mut planted = false;
                if let Some(plant) = &mut plant {
                    plant(stage, &mut program);
                    planted = true;
                }
                if change == Change::Nothing && !planted && stage != Stage::Select {
                    continue;
                }
                let after = Snapshot::Ir3(Box::new(program.clone()));
                verdicts.extend(self.boundary(stage, &before, &after, target));
                before = after;
            }
        });
        if let Err(Panicked { message, place }) = done {
            let verdict = Verdict::Unknown(Unknown::Crashed(format!("{message}, at {place}")));
            verdicts.push(Proved { stage: at, engine: "prover", verdict, time: Duration::ZERO });
        }
        verdicts
    }

    /// One boundary; nothing if no engine that was asked follows the stage.
    pub fn boundary(&self, stage: Stage, before: &Snapshot, after: &Snapshot, target: &Target) -> Option<Proved> {
        let start = ThreadTime::now();
        let (engine, mut verdict) = self.judge(contents::moves_values(stage), before, after, target)?;
        if let Verdict::Refuted(refutation) = &mut verdict {
            refutation.stage = stage.name();
        }
        Some(Proved { stage, engine, verdict, time: start.elapsed() })
    }

    /// Any two programs: who says what. Nothing if no engine that was asked follows them.
    pub fn pair(&self, before: &Snapshot, after: &Snapshot, target: &Target) -> Option<(&'static str, Verdict)> {
        let judged = catch(|| self.judge(true, before, after, target));
        judged.unwrap_or_else(|Panicked { message, place }| {
            Some(("prover", Verdict::Unknown(Unknown::Crashed(format!("{message}, at {place}")))))
        })
    }

    fn judge(
        &self,
        moves_values: bool,
        before: &Snapshot,
        after: &Snapshot,
        target: &Target,
    ) -> Option<(&'static str, Verdict)> {
        let by_contents = if self.contents && moves_values { by_contents(before, after, target) } else { None };
        match (by_contents, &self.smt) {
            (None | Some(Verdict::Unknown(_)), Some(smt)) => Some(("smt", smt.judge(before, after, target))),
            (verdict, _) => verdict.map(|verdict| ("contents", verdict)),
        }
    }
}

/// What the register contents say; nothing of nir.
pub(super) fn by_contents(before: &Snapshot, after: &Snapshot, target: &Target) -> Option<Verdict> {
    let (Snapshot::Ir3(from), Snapshot::Ir3(to)) = (before, after) else { return None };
    Some(match contents::prove(from, to, target) {
        Ok(proof) => Verdict::Proved { assumptions: proof.assumptions },
        Err(contents::Failure::Unsupported { site, what }) => {
            Verdict::Unknown(Unknown::Unsupported(format!("{site}: {what}")))
        }
        Err(failure) => Verdict::Unknown(Unknown::NotShown(failure.to_string())),
    })
}
