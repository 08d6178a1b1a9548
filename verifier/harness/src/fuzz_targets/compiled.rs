//! Fuzz targets that compile a nir program.
//!
//! Comparing every boundary decodes and runs ten programs, which takes longer than the compilation. So most inputs are
//! compared end to end: the source with the result of the last stage, which is all that a user of the compiler
//! observes. Every sixteenth input is compared at each boundary, where a stage must also preserve values that the
//! previous stage left defined. Inputs whose ends differ are compared at each boundary, too, to find the stage.

use crate::check::hook_of;
use crate::check::{Boundary, BoundaryKind, BoundaryVerdict, Engines, Judge, Origin, Plant, Policy, Unknown, Verdict};
use crate::fuzz_targets::program::{ProgramInput, with_checker};
use crate::fuzz_targets::{TargetFailure, stats};
use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;

/// Compiles the program through all stages and compares it. Returns true if the compiler accepts the program: then the
/// input is interesting.
///
/// # Errors
/// If a boundary is refuted: the first one.
pub fn ra_equiv(input: &ProgramInput) -> Result<bool, TargetFailure> {
    ra_equiv_with(input, None)
}

/// Like [`ra_equiv`], with a hook that plants a bug after stages.
///
/// # Errors
/// If a boundary is refuted: the first one.
pub fn ra_equiv_with(input: &ProgramInput, plant: Option<Plant<'_>>) -> Result<bool, TargetFailure> {
    compiled(input, Options::default(), plant)
}

/// Compiles the program through selection, copy propagation and dead code elimination, and compares it. Returns true if
/// the compiler accepts the program.
///
/// # Errors
/// If a boundary is refuted: the first one.
pub fn select(input: &ProgramInput) -> Result<bool, TargetFailure> {
    select_with(input, None)
}

/// Like [`select`], with a hook that plants a bug after stages.
///
/// # Errors
/// If a boundary is refuted: the first one.
pub fn select_with(input: &ProgramInput, plant: Option<Plant<'_>>) -> Result<bool, TargetFailure> {
    compiled(input, Options { last: Stage::DeadCode, ..Options::default() }, plant)
}

fn compiled(input: &ProgramInput, options: Options, mut plant: Option<Plant<'_>>) -> Result<bool, TargetFailure> {
    let env = input.env();
    if !input.env_seed.is_multiple_of(16) {
        let plant: Option<Plant<'_>> = match &mut plant {
            Some(plant) => Some(&mut **plant),
            None => None,
        };
        let ends =
            with_checker(&input.target, options, |checker| end_to_end(input, &env, &options, plant, checker.scratch()));
        match ends {
            Ends::Agree => {
                stats::compared();
                return Ok(true);
            }
            Ends::Meaningless => return Ok(true),
            Ends::Refused => return Ok(false),
            Ends::Differ => {}
        }
    }
    let report = with_checker(&input.target, options, |checker| checker.program_or_panic(&input.shader, &[env], plant));
    for BoundaryVerdict { stage, verdict, .. } in &report.boundaries {
        if let Verdict::Refuted(refutation) = verdict {
            return Err(TargetFailure::new(format_args!("{stage} refuted"), &refutation.difference));
        }
    }
    if report.boundaries.last().is_some_and(|row| matches!(row.verdict, Verdict::Tested { .. })) {
        stats::compared();
    }
    Ok(report.refusal.is_none())
}

/// The outcome of the comparison of source and result alone.
enum Ends {
    /// The result refines the source.
    Agree,
    /// The source has undefined behaviour in that environment, or does not finish.
    Meaningless,
    /// The compiler refused the program.
    Refused,
    /// The ends differ, or one of them cannot be run: compare each boundary.
    Differ,
}

fn end_to_end(
    input: &ProgramInput,
    env: &Env,
    options: &Options,
    plant: Option<Plant<'_>>,
    scratch: &mut Scratch,
) -> Ends {
    let ProgramInput { shader, target, .. } = input;
    let mut hook = hook_of(plant, None);
    let Ok(Some(program)) = Compilation::new(shader, target, options).with_hook(Some(&mut hook)).finish() else {
        return Ends::Refused;
    };
    let boundary = Boundary {
        kind: BoundaryKind::Whole,
        origin: Origin::Compiled,
        ..Boundary::of_texts(ProgramRef::Nir(shader), ProgramRef::Ir3(&program))
    };
    let engines = Engines::interpreter();
    match Judge::new(Policy::new(&engines), *target, std::slice::from_ref(env), scratch).judge(&boundary).verdict {
        Verdict::Tested { .. } => Ends::Agree,
        Verdict::Unknown(Unknown::Vacuous(_) | Unknown::OutOfFuel) => Ends::Meaningless,
        Verdict::Proved { .. } | Verdict::Refuted(_) | Verdict::Unknown(_) => Ends::Differ,
    }
}
