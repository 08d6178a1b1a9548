//! The proving engines on one compilation: each stage that changed something.

use super::snapshots::{Snapshots, StageSnapshots, hook_of};
use crate::harness::check::interpreter::refusal;
use crate::harness::check::{Plant, Smt, Unknown, Verdict};
use crate::prove::registers;
use crate::semantics::Snapshot;
use crate::support::panics::{Panicked, catch};
use cpu_time::ThreadTime;
use ir3_compiler::compilation::Compilation;
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use std::time::Duration;

/// Which engines prove, the first one first.
#[derive(Clone, Debug)]
pub struct Provers {
    /// The register checker, after moves, spilling and register assignment.
    pub registers: bool,
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
        plant: Option<Plant<'_>>,
    ) -> Vec<Proved> {
        let mut verdicts = Vec::new();
        let mut hook = hook_of(plant, None);
        let mut snapshots = Snapshots::new(Compilation::new(shader, target, options).with_hook(Some(&mut hook)));
        let crashed = |stage, Panicked { message, place }: Panicked, engine| {
            let verdict = Verdict::Unknown(Unknown::Crashed(format!("{message}, at {place}")));
            Proved { stage, engine, verdict, time: Duration::ZERO }
        };
        loop {
            match catch(|| snapshots.next()) {
                Ok(None) => break,
                Ok(Some(Ok(StageSnapshots { stage, before, after }))) => {
                    // An engine that crashes leaves the other boundaries to be proved.
                    match catch(|| self.boundary(stage, &before, &after, target)) {
                        Ok(proved) => verdicts.extend(proved),
                        Err(panicked) => verdicts.push(crashed(stage, panicked, "prover")),
                    }
                }
                Ok(Some(Err(error))) => {
                    let verdict = Verdict::Unknown(refusal(&error));
                    verdicts.push(Proved { stage: error.stage, engine: "compiler", verdict, time: Duration::ZERO });
                }
                Err(panicked) => {
                    verdicts.extend(snapshots.last_stage().map(|stage| crashed(stage, panicked, "compiler")));
                    break;
                }
            }
        }
        verdicts
    }

    /// One boundary; nothing if no engine that was asked follows the stage.
    pub fn boundary(&self, stage: Stage, before: &Snapshot, after: &Snapshot, target: &Target) -> Option<Proved> {
        let start = ThreadTime::now();
        let (engine, mut verdict) = self.judge(stage.moves_values(), before, after, target)?;
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
        let by_registers = if self.registers && moves_values { by_registers(before, after, target) } else { None };
        match (by_registers, &self.smt) {
            (None | Some(Verdict::Unknown(_)), Some(smt)) => Some(("smt", smt.judge(before, after, target))),
            (verdict, _) => verdict.map(|verdict| ("registers", verdict)),
        }
    }
}

/// The verdict of the register checker; `None` for nir.
pub(crate) fn by_registers(before: &Snapshot, after: &Snapshot, target: &Target) -> Option<Verdict> {
    let (Snapshot::Ir3(from), Snapshot::Ir3(to)) = (before, after) else { return None };
    Some(match registers::prove(from, to, target) {
        Ok(proof) => Verdict::Proved { assumptions: proof.assumptions },
        Err(registers::Failure::Unsupported { site, what }) => {
            Verdict::Unknown(Unknown::Unsupported(format!("{site}: {what}")))
        }
        Err(failure) => Verdict::Unknown(Unknown::NotShown(failure.to_string())),
    })
}
