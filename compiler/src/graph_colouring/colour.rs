//! Colours an ir3 program: within the fewest registers first, as an occupancy-bound machine wants it, and then within
//! more.
//!
//! Round robin would spread the values over the whole file, and each register that a program names may cost waves. So
//! the file is first as large as the SSA allocator's, then as large as costs no waves, then as the limit allows.

use super::Rotation;
use super::ir3_graph::{Problem, unmergeable_values};
use super::select::{Uncoloured, select, wrong_node};
use super::simplify::simplify;
use crate::ir3::{Program, Value};
use crate::regalloc::assign::{FixedPlaces, REUSED_LATE};
use crate::regalloc::merge_sets::WIDEST;
use crate::regalloc::pressure::{Analysis, Pressure};
use crate::regalloc::{Error, RegisterLimit, target_size};
use crate::target::{RegisterFiles, Target};
use rustc_hash::FxHashSet;

/// The number of times that merge sets are split before a program is refused.
const SEPARATIONS: u32 = 64;

/// A graph that was not coloured.
pub struct Failure {
    /// The graph.
    pub problem: Problem,
    /// The node that found no register.
    pub uncoloured: Uncoloured,
}

impl Failure {
    /// The error for a program that needs spilling.
    pub fn error(&self, program: &Program, files: &RegisterFiles) -> Error {
        let value = self.problem.values(self.uncoloured.node).first().copied();
        let half = value.is_some_and(|value| program.values[value].class.half);
        let (file, available) = if half { ("half", files.half) } else { ("full", files.full / 2) };
        match value {
            Some(value) => Error::Uncoloured { value, available, file },
            None => Error::Malformed { what: "a node without values".to_owned() },
        }
    }
}

/// Separates values that must not be merged, for a file of this size.
pub fn prepare(program: &Program, analysis: &mut Analysis, files: &RegisterFiles) -> FxHashSet<Value> {
    // A set that is a large part of the file can hardly be placed.
    let widest = (files.full / 3).clamp(8, u32::from(WIDEST)) as u16;
    let mut apart = FxHashSet::default();
    analysis.separate(program, &[], widest);
    loop {
        let count = apart.len();
        apart.extend(unmergeable_values(program, analysis));
        if apart.len() == count {
            return apart;
        }
        separate(program, analysis, &apart, widest);
    }
}

fn separate(program: &Program, analysis: &mut Analysis, apart: &FxHashSet<Value>, widest: u16) {
    let mut list: Vec<Value> = apart.iter().copied().collect();
    list.sort_unstable();
    analysis.separate(program, &list, widest);
}

/// Colours a program with files of this size. `cost` is the cost of spilling a value.
///
/// # Errors
/// If the allocator breaks one of its invariants, or the arrays do not fit.
pub fn attempt(
    program: &Program,
    analysis: &Analysis,
    files: RegisterFiles,
    merged: bool,
    cost: &dyn Fn(Value) -> f32,
    rotation: Rotation,
) -> Result<Result<FixedPlaces, Box<Failure>>, Error> {
    let problem = Problem::new(program, analysis, &files, merged, cost)?;
    let stack = simplify(&problem.graph, &problem.classes);
    match select(&problem.graph, &problem.classes, &stack, rotation) {
        Ok(registers) => {
            if let Some(node) = wrong_node(&problem.graph, &problem.classes, &registers) {
                return Err(Error::Malformed {
                    what: format!("{node} of the interference graph has a wrong register"),
                });
            }
            let places = problem.places(program, analysis, &registers);
            Ok(Ok(FixedPlaces { places, files }))
        }
        Err(uncoloured) if !uncoloured.is_optimistic => {
            let what = format!("{} is sure of a register by p and q, and finds none", uncoloured.node);
            Err(Error::Malformed { what })
        }
        Err(uncoloured) => Ok(Err(Box::new(Failure { problem, uncoloured }))),
    }
}

/// Like [`attempt`], but splits merge sets for which a node finds no register: their values are copied.
///
/// # Errors
/// Those of [`attempt`], and if the program cannot be coloured.
pub fn attempt_with_splits(
    program: &Program,
    analysis: &mut Analysis,
    files: RegisterFiles,
    merged: bool,
    rotation: Rotation,
) -> Result<FixedPlaces, Error> {
    let mut apart = prepare(program, analysis, &files);
    let widest = (files.full / 3).clamp(8, u32::from(WIDEST)) as u16;
    let mut last = None;
    for _ in 0..SEPARATIONS {
        let failure = match attempt(program, analysis, files, merged, &|_| 0.0, rotation)? {
            Ok(fixed) => return Ok(fixed),
            Err(failure) => failure,
        };
        last = Some(failure.error(program, &files));
        let problem = &failure.problem;
        let node = failure.uncoloured.node;
        let count = apart.len();
        let merged_sets = |node| Some(problem.values(node)).filter(|values| values.len() > 1);
        apart.extend(merged_sets(node).into_iter().flatten());
        if apart.len() == count {
            let neighbours = problem.graph.neighbours(node).iter();
            apart.extend(neighbours.filter_map(|next| merged_sets(next.node)).flatten());
        }
        if apart.len() == count {
            break;
        }
        loop {
            separate(program, analysis, &apart, widest);
            let count = apart.len();
            apart.extend(unmergeable_values(program, analysis));
            if apart.len() == count {
                break;
            }
        }
    }
    Err(last.unwrap_or_else(|| Error::Malformed { what: "no attempt at colouring".to_owned() }))
}

/// The sizes of the files to try, the smallest first.
fn sizes(program: &Program, pressure: &Pressure, target: &Target, limit: RegisterLimit) -> Vec<RegisterFiles> {
    let all = limit.files(target);
    let with = |full: u32, half: u32| {
        let full = full.min(all.full) & !1;
        RegisterFiles { full, half: if target.merged_regs { full } else { half }.min(all.half), ..all }
    };
    let half = pressure.half.next_multiple_of(4);
    let mut list: Vec<RegisterFiles> = Vec::new();
    if matches!(limit, RegisterLimit::Minimum(_)) {
        list.extend((0..32).map(|more| with(pressure.full.next_multiple_of(2) + 2 * more, half + 2 * more)));
    } else {
        let without_loss = target_size(program, pressure, target, all);
        list.push(with((pressure.full.next_multiple_of(8) + REUSED_LATE).min(without_loss.full), half));
        list.push(with(without_loss.full, half));
    }
    list.push(all);
    list.dedup_by_key(|files| (files.full, files.half));
    list
}

/// Colours a program with as few registers as possible.
///
/// # Errors
/// If it cannot be coloured within the limit.
pub fn with_few_registers(
    program: &Program,
    analysis: &mut Analysis,
    pressure: &Pressure,
    target: &Target,
    limit: RegisterLimit,
    rotation: Rotation,
) -> Result<FixedPlaces, Error> {
    let sizes = sizes(program, pressure, target, limit);
    for files in &sizes {
        prepare(program, analysis, files);
        match attempt(program, analysis, *files, target.merged_regs, &|_| 0.0, rotation) {
            Ok(Ok(fixed)) => return Ok(fixed),
            // The arrays do not fit: they may in a larger file.
            Ok(Err(_)) | Err(Error::NeedsSpilling { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    attempt_with_splits(program, analysis, limit.files(target), target.merged_regs, rotation)
}
