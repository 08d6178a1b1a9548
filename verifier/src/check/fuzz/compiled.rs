//! nir through the compiler.

use super::Failure;
use super::program::{ProgramInput, with_checker};
use crate::check::{Plant, Verdict};
use ir3_compiler::pipeline::{Options, Stage};

/// Takes the program through every stage and compares every boundary. The input is worth keeping where the program was
/// not refused.
///
/// # Errors
/// The first boundary that is refuted.
pub fn ra_equiv(input: &ProgramInput) -> Result<bool, Failure> {
    ra_equiv_with(input, None)
}

/// The same, with a change planted behind stages.
///
/// # Errors
/// The same.
pub fn ra_equiv_with(input: &ProgramInput, plant: Option<Plant<'_>>) -> Result<bool, Failure> {
    compiled(input, Options::default(), plant)
}

/// Takes the program through selection, copy propagation and dead code, and compares these boundaries.
///
/// # Errors
/// The first boundary that is refuted.
pub fn select(input: &ProgramInput) -> Result<bool, Failure> {
    select_with(input, None)
}

/// The same, with a change planted behind stages.
///
/// # Errors
/// The same.
pub fn select_with(input: &ProgramInput, plant: Option<Plant<'_>>) -> Result<bool, Failure> {
    compiled(input, Options { last: Stage::DeadCode, ..Options::default() }, plant)
}

fn compiled(input: &ProgramInput, options: Options, plant: Option<Plant<'_>>) -> Result<bool, Failure> {
    let report =
        with_checker(&input.target, options, |checker| checker.program_in(&input.shader, &[input.env()], plant));
    for (stage, verdict, _) in &report.boundaries {
        if let Verdict::Refuted(refutation) = verdict {
            return Err(Failure::new(format_args!("{stage} refuted"), &refutation.difference));
        }
    }
    Ok(report.refusal.is_none())
}
