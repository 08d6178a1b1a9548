//! The verdicts on all boundaries of a compilation.

use super::compilation::refusal;
use super::engine::COMPILER;
use super::interpreter::{Refutation, SourceRuns};
use super::sensitivity::{Sensitivity, SiteCount};
use super::{Crash, EngineKind, Judgment, Unknown, Verdict};
use ir3_compiler::ir3;
use ir3_compiler::pipeline::{CompileError, Stage};
use ir3_semantics::environment::env::Env;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// CPU time of the parts of a check.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Compiling.
    pub compile: Duration,
    /// Running and comparing.
    pub run: Duration,
    /// Proving.
    pub prove: Duration,
}

impl Times {
    pub(super) fn add(&mut self, other: &Self) {
        self.compile += other.compile;
        self.run += other.run;
        self.prove += other.prove;
    }

    /// The sum.
    pub fn total(&self) -> Duration {
        self.compile + self.run + self.prove
    }
}

/// Accesses to spill slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spills {
    /// `stp`.
    pub stores: u64,
    /// `ldp`.
    pub loads: u64,
}

impl Spills {
    /// Counts the accesses of a program, without those of the shader itself to scratch memory.
    pub(super) fn count(program: &ir3::Program) -> Self {
        let mut spills = Self::default();
        for (_, instr) in program.iter_instrs() {
            match program.instrs[instr].opcode {
                ir3::Opcode::Stp | ir3::Opcode::SpillMacro => spills.stores += 1,
                ir3::Opcode::Ldp | ir3::Opcode::ReloadMacro => spills.loads += 1,
                _ => {}
            }
        }
        spills
    }
}

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
    /// The share of the program on which the runs depend, if it was measured.
    pub sensitivity: Option<Sensitivity>,
}

/// A panic of the compiler or of an engine.
#[derive(Clone, Debug)]
pub struct Panic {
    /// The stage in which it happened.
    pub stage: Stage,
    /// File, line and column.
    pub place: String,
    /// The message.
    pub message: String,
    /// True if it was the compiler.
    pub is_of_compiler: bool,
}

/// The verdicts on a compilation.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// The verdicts on its boundaries, in order. If a stage refuses the program or panics, it is the last.
    pub boundaries: Vec<BoundaryVerdict>,
    /// The number of stages that changed nothing: there is nothing to compare.
    pub unchanged: usize,
    /// The runs of the source.
    pub source: SourceRuns,
    /// Accesses to spill slots in the program.
    pub spills: Spills,
    /// The reason why the compiler refused the program.
    pub refusal: Option<CompileError>,
    /// The panic that ended the check.
    pub panic: Option<Panic>,
    /// The environments of the runs.
    pub envs: Vec<Env>,
    /// CPU time.
    pub times: Times,
    /// Boundaries that a prover proved and a run refutes.
    pub wrong_proofs: Vec<(Stage, EngineKind, String)>,
}

impl Verification {
    /// The verdict on a program whose compilation had to be stopped in a stage: a crash, with a reason.
    pub fn stopped(stage: Stage, why: &str) -> Self {
        let mut verification = Self::default();
        let crash = Verdict::Unknown(Unknown::Crashed(Crash::from(why.to_owned())));
        verification.push(stage, Judgment::of(crash, COMPILER));
        verification
    }

    /// Adds the verdict on the boundary of a stage.
    pub(crate) fn push(&mut self, stage: Stage, judgment: Judgment) {
        let Judgment { verdict, engine, time, sensitivity, wrong_proofs, .. } = judgment;
        self.wrong_proofs.extend(wrong_proofs.into_iter().map(|(prover, why)| (stage, prover, why)));
        self.boundaries.push(BoundaryVerdict { stage, verdict, engine, time, sensitivity });
    }

    /// Adds the time of a judgment.
    pub(super) fn count(&mut self, judgment: &Judgment) {
        self.times.prove += judgment.proving;
        self.times.run += judgment.time.saturating_sub(judgment.proving);
    }

    /// Adds the refusal of the compiler.
    pub(super) fn refuse(&mut self, error: CompileError) {
        self.push(error.stage, Judgment::of(Verdict::Unknown(refusal(&error)), COMPILER));
        self.refusal = Some(error);
    }

    /// Adds a panic.
    pub(super) fn panicked(&mut self, engine: &'static str, panic: Panic) {
        let crash = Crash { message: panic.message.clone(), place: Some(panic.place.clone()) };
        self.push(panic.stage, Judgment::of(Verdict::Unknown(Unknown::Crashed(crash)), engine));
        self.panic = Some(panic);
    }

    /// Adds a refutation of the last program by its source, which no boundary shows.
    pub(crate) fn add_refutation(&mut self, refutation: Refutation) {
        let Some(stage) = Stage::from_name(refutation.stage) else { return };
        let verdict = Verdict::Refuted(Box::new(refutation));
        self.push(stage, Judgment::of(verdict, EngineKind::Interpreter.name()));
    }

    /// Returns true if the compiler refused the program.
    pub fn is_rejected(&self) -> bool {
        let by_compiler = |last: &BoundaryVerdict| {
            last.engine == COMPILER && !matches!(last.verdict, Verdict::Unknown(Unknown::Crashed(_)))
        };
        self.boundaries.last().is_some_and(by_compiler)
    }

    /// The first refutation.
    pub fn refutation(&self) -> Option<&Refutation> {
        self.boundaries.iter().find_map(|row| match &row.verdict {
            Verdict::Refuted(refutation) => Some(&**refutation),
            _ => None,
        })
    }

    /// The stage in which the compiler or an engine crashed, and the reason.
    pub fn crash(&self) -> Option<(Stage, &Crash)> {
        self.boundaries.iter().find_map(|row| match &row.verdict {
            Verdict::Unknown(Unknown::Crashed(crash)) => Some((row.stage, crash)),
            _ => None,
        })
    }

    /// The environment of the first failure: `Some(None)` for a crash, or for a difference in the environments of the
    /// runs.
    pub fn failing_env(&self) -> Option<Option<&Env>> {
        if self.crash().is_some() {
            return Some(None);
        }
        let refutation = self.refutation()?;
        Some(Some(&refutation.env).filter(|env| !self.envs.contains(env)))
    }

    /// The sites of the programs on which the runs depend, over all boundaries that were measured.
    pub fn sites(&self) -> SiteCount {
        let mut sum = SiteCount::default();
        for sites in self.boundaries.iter().filter_map(|row| Some(row.sensitivity?.sites())) {
            sum.seen += sites.seen;
            sum.all += sites.all;
        }
        sum
    }
}
