//! The checks of a case.

use super::case::{CasePass, Expected, FileCase};
use super::diff::{diff, first_difference};
use ir3_compiler::delays::nops;
use ir3_compiler::ir3::validate::Form;
use ir3_compiler::pipeline::{self, Stage};
use ir3_compiler::{i965::vec4, ir3, nir};
use ir3_harness::check::{Boundary, BoundaryKind, Engines, Smt, Unknown, Verdict, compare_snapshots};
use ir3_programs::seeds::env_seeds;
pub use ir3_prove::simulation::Limits;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The number of environments in which both programs run.
const RUNS: u32 = 8;

/// A planted bug: a change of an ir3 output, which the checks must find.
pub type OutputBug = fn(&mut ir3::Program);

/// The reason why a case fails.
#[derive(Debug)]
pub enum CaseFailure {
    /// The output differs.
    Output {
        /// The output of the pass.
        found: Expected,
        /// File, line, difference.
        message: String,
    },
    /// Any other reason, with file and line.
    Other(String),
}

impl fmt::Display for CaseFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output { message, .. } | Self::Other(message) => f.write_str(message),
        }
    }
}

/// The prover's limits: every proof takes milliseconds.
pub fn limits() -> Limits {
    Limits::default()
}

/// Checks a case; `plant` changes the output first.
///
/// # Errors
/// The first problem, with the file and a line of it.
pub fn check(case: &FileCase, limits: &Limits, plant: Option<OutputBug>) -> Result<(), CaseFailure> {
    let fail = |line: usize, problem: String| CaseFailure::Other(format!("{}:{line}: {problem}", case.name));
    let input = read(case)?;
    validate(&input, case, true).map_err(|broken| fail(1, format!("the input is invalid: {broken}")))?;
    let output = catch_unwind(AssertUnwindSafe(|| {
        let mut output = run(case, &input)?;
        if let (Snapshot::Ir3(program), Some(plant)) = (&mut output, plant) {
            plant(program);
        }
        Ok(output)
    }));
    let output = output.map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
        fail(1, format!("the pass panicked: {}", message.unwrap_or_default()))
    })?;
    // The text first: it shows most of a change, and only text can be blessed.
    compare_texts(case, &input, &output)?;
    let Ok(output) = output else { return Ok(()) };
    validate(&output, case, false)
        .map_err(|broken| fail(case.expect_line, format!("the output is invalid: {broken}")))?;
    let envs: Vec<Env> = env_seeds(3, RUNS).into_iter().map(Env::from_seed).collect();
    match compare_snapshots(&input, &output, &case.target, &envs).0 {
        Verdict::Tested { .. } => {}
        Verdict::Refuted(refutation) => {
            return Err(fail(1, format!("refuted by the interpreter: {}", refutation.difference)));
        }
        other => return Err(fail(1, format!("not run: {}", other.reason().unwrap_or_default()))),
    }
    let moves_values = matches!(case.pass, CasePass::Stage(stage) if stage.moves_values());
    let smt = Smt { limits: *limits, ..Smt::default() };
    let verdict = match moves_values {
        true => {
            let boundary =
                Boundary { kind: BoundaryKind::Moves, ..Boundary::of_texts((&input).into(), (&output).into()) };
            Some(Engines::provers(smt).judge(&boundary, &case.target, &[]).verdict)
        }
        false => Some(smt.compare(&input, &output, &case.target)),
    };
    match verdict {
        Some(Verdict::Refuted(refutation)) => Err(fail(1, format!("refuted by the prover: {}", refutation.difference))),
        Some(Verdict::Unknown(Unknown::Crashed(message))) => Err(fail(1, format!("the prover crashed: {message}"))),
        Some(Verdict::Proved { .. }) if !case.is_proved => {
            Err(fail(1, "proved: take prove=unknown out of the first line".to_owned()))
        }
        Some(Verdict::Proved { .. }) => Ok(()),
        _ if !case.is_proved => Ok(()),
        other => {
            let reason = other.and_then(|verdict| verdict.reason()).unwrap_or_default();
            Err(fail(1, format!("not proved: {reason} (`prove=unknown` in the first line accepts that)")))
        }
    }
}

fn read(case: &FileCase) -> Result<Snapshot, CaseFailure> {
    let located = |error: String| CaseFailure::Other(format!("{}:{error}", case.name));
    match case.pass.reads() {
        "nir" => nir::text::read(&case.input)
            .map(|shader| Snapshot::Nir(Box::new(shader)))
            .map_err(|e| located(e.to_string())),
        "vec4" => vec4::text::read(&case.input)
            .map(|program| Snapshot::Vec4(Box::new(program)))
            .map_err(|e| located(e.to_string())),
        _ => ir3::text::read(&case.input)
            .map(|program| Snapshot::Ir3(Box::new(program)))
            .map_err(|e| located(e.to_string())),
    }
}

/// Checks the rules of the program's language.
fn validate(program: &Snapshot, case: &FileCase, is_input: bool) -> Result<(), String> {
    match program {
        Snapshot::Nir(shader) => nir::validate(shader)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        Snapshot::Vec4(program) => vec4::validate(program).map_err(|broken| broken.to_string()),
        Snapshot::Ir3(program) => {
            // After this stage only machine instructions are left, in any program.
            let form = match case.pass {
                CasePass::Stage(stage) if stage >= Stage::LowerCopies && !is_input => Form::Machine,
                CasePass::Delays => Form::Machine,
                _ => Form::of(program),
            };
            ir3::validate::validate(program, &case.target, form)
                .map_err(|broken| broken.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        }
    }
}

/// Runs the pass.
///
/// # Errors
/// The reason why the pass refuses the program.
fn run(case: &FileCase, input: &Snapshot) -> Result<Snapshot, String> {
    match (case.pass, input) {
        (CasePass::Stage(stage @ (Stage::Vec4Select | Stage::ScalarSelect)), Snapshot::Nir(shader)) => {
            let program =
                pipeline::select_vec4(stage, shader, &case.options).map_err(|error| error.reason.to_string())?;
            Ok(Snapshot::Vec4(Box::new(program)))
        }
        (CasePass::Stage(Stage::Select), Snapshot::Nir(shader)) => {
            let program = pipeline::select(shader, &case.target).map_err(|error| error.reason.to_string())?;
            Ok(Snapshot::Ir3(Box::new(program)))
        }
        (CasePass::Stage(stage), Snapshot::Nir(shader)) => {
            let mut shader = Cow::Borrowed(&**shader);
            pipeline::run_nir_stage(stage, &mut shader, &case.target, &case.options)
                .map_err(|error| error.reason.to_string())?;
            Ok(Snapshot::Nir(Box::new(shader.into_owned())))
        }
        (CasePass::Stage(stage), Snapshot::Vec4(program)) => {
            let mut program = program.clone();
            pipeline::run_vec4_stage(stage, &mut program, &case.options).map_err(|error| error.reason.to_string())?;
            Ok(Snapshot::Vec4(program))
        }
        (CasePass::Stage(stage), Snapshot::Ir3(program)) => {
            let mut program = program.clone();
            pipeline::run_stage(stage, &mut program, &case.target, &case.options)
                .map_err(|error| error.reason.to_string())?;
            Ok(Snapshot::Ir3(program))
        }
        (CasePass::Delays, Snapshot::Ir3(program)) => {
            let mut program = program.clone();
            nops::insert(&mut program, &case.target);
            Ok(Snapshot::Ir3(program))
        }
        (CasePass::Delays, Snapshot::Nir(_) | Snapshot::Vec4(_)) => Err("only ir3 has delays".to_owned()),
    }
}

fn compare_texts(case: &FileCase, input: &Snapshot, output: &Result<Snapshot, String>) -> Result<(), CaseFailure> {
    let found = match output {
        Ok(output) if output.text() == input.text() => Expected::Unchanged,
        Ok(output) => Expected::Text(output.text()),
        Err(why) => Expected::Refused(why.clone()),
    };
    let holds = match (&case.expected, &found) {
        (Expected::Refused(part), Expected::Refused(why)) => why.contains(part.as_str()),
        (expected, found) => expected == found,
    };
    if holds {
        return Ok(());
    }
    let (line, message) = match (&case.expected, &found) {
        (Expected::Text(expected), Expected::Text(found)) => {
            (1 + first_difference(expected, found), format!("the output differs:\n{}", diff(expected, found)))
        }
        (Expected::Unchanged, Expected::Text(found)) => {
            (0, format!("the output differs, expected the input:\n{}", diff(&input.text(), found)))
        }
        (Expected::Text(_), Expected::Unchanged) => {
            (0, "nothing changed, expected `// expect unchanged`, or another input".to_owned())
        }
        (_, Expected::Refused(why)) => (0, format!("the output differs: refused: {why}")),
        (Expected::Refused(why), _) => (0, format!("the output differs: not refused, expected `{why}`")),
        (Expected::Unchanged, Expected::Unchanged) => (0, String::new()),
    };
    let message = format!("{}:{}: {message}", case.name, case.expect_line + line);
    Err(CaseFailure::Output { found, message })
}
