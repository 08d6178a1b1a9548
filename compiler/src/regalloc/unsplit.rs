//! Register assignment without splitting of live ranges.
//!
//! A value keeps the registers that it gets first. So there may be no gap for a result though enough registers are
//! free. As a simple allocator does, this one then takes more registers, up to the limit: first as many as cost no more
//! waves, then those of the next lower number of waves, and so on. If they do not suffice, spilling tries again with
//! more values in memory.

use super::pressure::{Analysis, Pressure};
use super::{Error, RegisterLimit, assign, first_size};
use crate::arms::Counter;
use crate::features::{Feature, Features};
use crate::ir3::{Program, workload};
use crate::target::{RegisterFiles, Target};

/// Assigns registers to a program that needs no more than the limit allows.
///
/// # Errors
/// If some value finds no gap, or the program is not supported.
pub fn run(
    program: &mut Program,
    target: &Target,
    analysis: &Analysis,
    pressure: &Pressure,
    limit: RegisterLimit,
    features: Features,
    counter: &Counter,
) -> Result<(), Error> {
    let mut size = first_size(program, pressure, target, limit, features);
    let mut preferred = None;
    loop {
        let mut attempt = program.clone();
        let settings = assign::Settings { files: size, preferred, splitting: false };
        let error = match assign::run(&mut attempt, analysis, target, settings, pressure, counter) {
            Ok(()) => {
                *program = attempt;
                return Ok(());
            }
            Err(error @ (Error::Fragmented { .. } | Error::NeedsSpilling { .. })) => error,
            Err(error) => return Err(error),
        };
        let next = larger(program, target, size, limit, features);
        // The program may use all registers of the last size, and of each after it.
        if preferred == Some(size.full) && next == size {
            return Err(error);
        }
        preferred = Some(next.full);
        size = next;
    }
}

/// Returns true if registers can be assigned to a program within a limit. It is in the form that spilling leaves.
///
/// # Errors
/// If the program is not supported.
pub fn fits(program: &Program, target: &Target, limit: RegisterLimit, features: Features) -> Result<bool, Error> {
    match super::run_limited(&mut program.clone(), target, limit, features, &Counter::default()) {
        Ok(()) => Ok(true),
        Err(Error::Fragmented { .. } | Error::NeedsSpilling { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The next size of the files, or the same if the limit allows no more.
fn larger(
    program: &Program,
    target: &Target,
    size: RegisterFiles,
    limit: RegisterLimit,
    features: Features,
) -> RegisterFiles {
    let all = limit.files(target);
    let full = match limit {
        RegisterLimit::Minimum(_) => size.full + 2,
        _ if features.contains(Feature::Occupancy) => {
            target.registers_without_loss(&workload(program), size.full / 8 + 1) * 8
        }
        _ => (size.full + 1).next_multiple_of(8),
    };
    let full = full.max(size.full).min(all.full);
    let half = if target.merged_regs { full } else { size.half + 4 };
    RegisterFiles { full, half: half.min(all.half), ..size }
}
