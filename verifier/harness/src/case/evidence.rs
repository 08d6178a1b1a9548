//! The evidence of a failure: the result of running a case.

use super::{Case, Symptom};
use crate::check::{Checker, Panic, Unknown, Verdict, Verification, plant_of};
use crate::guard::{self, Setting, Stopped};
use crate::reduce::Failure;
use ir3_compiler::pipeline::Stage;
use ir3_programs::planted_bugs::PlantedBug;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Difference;
use ir3_semantics::support::panics::catch;
use serde::{Deserialize, Serialize};

/// The verdict of an engine at a boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineVerdict {
    /// The engine.
    pub engine: String,
    /// The stage at which the boundary is.
    pub stage: String,
    /// `tested`, `refuted` or `unknown`.
    pub verdict: String,
    /// The number of lanes that agreed.
    #[serde(default)]
    pub lanes: u64,
    /// The reason, unless the boundary passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The result of one run of a case.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The failure of this run; `None` if the program does not fail.
    pub symptom: Option<Symptom>,
    /// The program before the stage that fails.
    pub before: Option<Snapshot>,
    /// The program after it, if there is one.
    pub after: Option<Snapshot>,
    /// The observed difference.
    pub difference: Option<Difference>,
    /// The place of the compiler's panic.
    pub panic: Option<String>,
    /// The verdicts of all engines at all boundaries.
    pub verdicts: Vec<EngineVerdict>,
}

impl Evidence {
    /// Compiles and runs a case.
    pub fn of(case: &Case) -> Self {
        let envs: Vec<Env> = case.env.iter().cloned().collect();
        let mut checker = Checker::new(case.target, case.options);
        if let Some(stopped) = stopped(case) {
            let mut evidence = Self::of_stop(stopped);
            let before = catch(|| {
                let mut change = case.plant.map(PlantedBug::change);
                checker.before(&case.program, stopped.stage, plant_of(&mut change))
            });
            evidence.before = before.ok();
            return evidence;
        }
        if matches!(case.symptom.failure, Failure::Stopped(_)) && guard::guard().is_none() {
            // Nobody could stop it here.
            return Self::default();
        }
        let mut change = case.plant.map(PlantedBug::change);
        let report = checker.program(&case.program, &envs, plant_of(&mut change));
        let mut evidence = match &report.panic {
            None => Self::of_report(&report),
            Some(panic) => Self::of_panic(panic),
        };
        // For refusals and panics, the program that the stage received.
        if evidence.before.is_none()
            && let Some(symptom) = &evidence.symptom
        {
            let before = catch(|| {
                let mut change = case.plant.map(PlantedBug::change);
                checker.before(&case.program, symptom.stage, plant_of(&mut change))
            });
            evidence.before = before.ok();
        }
        evidence
    }

    /// The name of the file of the program before the stage.
    pub fn before_name(&self) -> &'static str {
        match self.before {
            Some(Snapshot::Ir3(_)) => "before.ir3",
            Some(Snapshot::Vec4(_)) => "before.vec4",
            Some(Snapshot::Nir(_)) | None => "before.nir",
        }
    }

    /// The name of the file of the program after the stage.
    pub fn after_name(&self) -> &'static str {
        match self.after {
            Some(Snapshot::Nir(_)) => "after.nir",
            Some(Snapshot::Vec4(_)) => "after.vec4",
            Some(Snapshot::Ir3(_)) | None => "after.ir3",
        }
    }

    fn of_report(report: &Verification) -> Self {
        let verdicts = report.boundaries.iter().map(|row| EngineVerdict {
            engine: "interpreter".to_owned(),
            stage: row.stage.name().to_owned(),
            verdict: row.verdict.name().to_owned(),
            lanes: row.verdict.lanes(),
            reason: row.verdict.reason(),
        });
        let refutation = report.refutation();
        let symptom = Failure::of(report).map(|failure| {
            let (stage, message) = match &failure {
                Failure::Refuted { stage, .. } => {
                    (*stage, refutation.map(|refutation| refutation.difference.to_string()).unwrap_or_default())
                }
                Failure::Refused { stage, .. } => {
                    (*stage, report.refusal.as_ref().map(|error| error.reason.to_string()).unwrap_or_default())
                }
                Failure::Unsupported { stage, .. } => (*stage, unsupported(report).unwrap_or_default()),
                // Reports contain neither panics nor stopped compilations.
                Failure::Panic { place } => (Stage::Select, place.clone()),
                Failure::Stopped(stopped) => (stopped.stage, stopped.to_string()),
            };
            Symptom { failure, stage, message }
        });
        Self {
            symptom,
            before: refutation.map(|refutation| refutation.before.clone()),
            after: refutation.map(|refutation| refutation.after.clone()),
            difference: refutation.map(|refutation| refutation.difference.clone()),
            panic: None,
            verdicts: verdicts.collect(),
        }
    }

    fn of_stop(stopped: Stopped) -> Self {
        let message = stopped.to_string();
        let verdict = EngineVerdict {
            engine: "interpreter".to_owned(),
            stage: stopped.stage.name().to_owned(),
            verdict: "unknown".to_owned(),
            lanes: 0,
            reason: Some(message.clone()),
        };
        let symptom = Symptom { failure: Failure::Stopped(stopped), stage: stopped.stage, message };
        Self { symptom: Some(symptom), verdicts: vec![verdict], ..Self::default() }
    }

    fn of_panic(&Panic { stage, ref place, ref message, .. }: &Panic) -> Self {
        let verdict = EngineVerdict {
            engine: "interpreter".to_owned(),
            stage: stage.name().to_owned(),
            verdict: "unknown".to_owned(),
            lanes: 0,
            reason: Some(format!("crashed at {place}: {message}")),
        };
        Self {
            symptom: Some(Symptom {
                failure: Failure::Panic { place: place.clone() },
                stage,
                message: message.clone(),
            }),
            before: None,
            after: None,
            difference: None,
            panic: Some(place.clone()),
            verdicts: vec![verdict],
        }
    }
}

/// The reason why the compilation of a case has to be stopped, if there is a guard to detect it.
fn stopped(case: &Case) -> Option<Stopped> {
    let limits = guard::guard()?.limits;
    let plant = case.plant.map(PlantedBug::shared);
    guard::probe(&case.program, &Setting::new(case.target, case.options, plant.as_ref(), limits)?)
}

/// The complete reason why the interpreter does not support a program.
fn unsupported(report: &Verification) -> Option<String> {
    report.boundaries.iter().find_map(|row| match &row.verdict {
        Verdict::Unknown(Unknown::Unsupported(reason)) => Some(reason.to_string()),
        _ => None,
    })
}
