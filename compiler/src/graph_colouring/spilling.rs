//! Spilling for the colouring allocator: nodes are spilled, the best by benefit and cost first, until the rest can be
//! coloured.
//!
//! A node is a merge set of the scalarised program, and all scalars in it are spilled together (`spill_everywhere`).
//! If no candidate remains, merge sets are split; if that does not help either, every value is spilled as in the SSA
//! allocator for the least limit.

use super::Rotation;
use super::colour::{attempt, attempt_with_splits, prepare};
use super::spill_choice::best_spill_nodes;
use crate::ir3::{Program, Value};
use crate::regalloc::pressure::Analysis;
use crate::regalloc::spill::spill_everywhere::Spiller;
use crate::regalloc::spill::{no_private_memory, prefetch};
use crate::regalloc::{Error, RegisterLimit};
use crate::target::{RegisterFiles, Target};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Nodes are spilled one at a time at first; after this many rounds two at a time, and so on.
const ROUNDS: usize = 8;

/// Half registers by which the least limit grows where the program cannot be coloured within it: one full register.
const STEP: u32 = 2;

/// Returns true if a program cannot be coloured within the limit without spilling.
///
/// # Errors
/// If the program cannot be analysed.
pub fn is_spilling_needed(
    program: &Program,
    target: &Target,
    limit: RegisterLimit,
    rotation: Rotation,
) -> Result<bool, Error> {
    if matches!(limit, RegisterLimit::Minimum(_)) && target.pvtmem {
        return Ok(true);
    }
    Ok(!is_colourable(&mut program.clone(), target, limit.files(target), rotation)?)
}

fn is_colourable(
    program: &mut Program,
    target: &Target,
    files: RegisterFiles,
    rotation: Rotation,
) -> Result<bool, Error> {
    let mut analysis = Analysis::new(program, target)?;
    prepare(program, &mut analysis, &files);
    match attempt(program, &analysis, files, target.merged_regs, &|_| 0.0, rotation) {
        Ok(result) => Ok(result.is_ok()),
        Err(Error::NeedsSpilling { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Spills until the program can be coloured within the limit.
///
/// # Errors
/// If it cannot be, or the target has no memory for spills.
pub fn spill(program: &mut Program, target: &Target, limit: RegisterLimit, rotation: Rotation) -> Result<(), Error> {
    let mut files = limit.files(target);
    if !matches!(limit, RegisterLimit::Minimum(_)) && is_colourable(&mut program.clone(), target, files, rotation)? {
        return Ok(());
    }
    if !target.pvtmem {
        let mut copy = program.clone();
        let mut analysis = Analysis::new(&mut copy, target)?;
        let pressure = analysis.max_pressure(&copy);
        return match attempt_with_splits(&copy, &mut analysis, files, target.merged_regs, rotation) {
            Ok(_) => Ok(()),
            Err(error) => {
                no_private_memory(&pressure, target, &files)?;
                Err(error)
            }
        };
    }
    prefetch::run(program);
    let spiller = Spiller::new(program)?;
    if let RegisterLimit::Minimum(more) = limit {
        let mut least = spiller.all_spilled(target.merged_regs);
        let analysis = Analysis::new(&mut least, target)?;
        let least = analysis.max_pressure(&least);
        let more = 2 * u32::from(more);
        files.full = files.full.min(least.full.next_multiple_of(2) + more);
        files.half = files.half.min(least.half + if target.merged_regs { more } else { more / 2 });
        return spill_to_least(program, &spiller, target, files, rotation);
    }
    *program = coloured(&spiller, target, files, rotation)?;
    Ok(())
}

/// Spills until the program can be coloured with as many registers as must be live at one point, or a few more: values
/// that fit there need not have a colour, since a value never moves.
fn spill_to_least(
    program: &mut Program,
    spiller: &Spiller,
    target: &Target,
    mut files: RegisterFiles,
    rotation: Rotation,
) -> Result<(), Error> {
    let all = target.register_files();
    loop {
        if is_colourable(&mut program.clone(), target, files, rotation)? {
            return Ok(());
        }
        match coloured(spiller, target, files, rotation) {
            Ok(spilled) => {
                *program = spilled;
                return Ok(());
            }
            Err(Error::Uncoloured { .. } | Error::NeedsSpilling { .. })
                if (files.full, files.half) != (all.full, all.half) =>
            {
                files.full = (files.full + STEP).min(all.full);
                files.half = (files.half + if target.merged_regs { STEP } else { STEP / 2 }).min(all.half);
            }
            Err(error) => return Err(error),
        }
    }
}

/// The program with enough values spilled that it can be coloured.
fn coloured(spiller: &Spiller, target: &Target, files: RegisterFiles, rotation: Rotation) -> Result<Program, Error> {
    let mut chosen: SecondaryMap<Value, bool> = SecondaryMap::new();
    for round in 0.. {
        let spilled = spiller.spilled(&chosen);
        let mut program = spilled.clone();
        let mut analysis = Analysis::new(&mut program, target)?;
        prepare(&program, &mut analysis, &files);
        let is_candidate = |value: Value| value.index() < spiller.value_count() && !chosen[value];
        let cost = |value: Value| if is_candidate(value) { spiller.cost(value) } else { 0.0 };
        let failure = match attempt(&program, &analysis, files, target.merged_regs, &cost, rotation)? {
            Ok(_) => return Ok(spilled),
            Err(failure) => failure,
        };
        let problem = &failure.problem;
        let nodes = best_spill_nodes(&problem.graph, &problem.classes, &failure.uncoloured, 1 + round / ROUNDS);
        let values = nodes.iter().flat_map(|&node| problem.values(node)).copied();
        let new: Vec<Value> = values.filter(|&value| cost(value) > 0.0).collect();
        if new.is_empty() {
            if attempt_with_splits(&program, &mut analysis, files, target.merged_regs, rotation).is_ok() {
                return Ok(spilled);
            }
            break;
        }
        new.into_iter().for_each(|value| chosen[value] = true);
    }
    let spilled = spiller.all_spilled(target.merged_regs);
    let mut program = spilled.clone();
    let mut analysis = Analysis::new(&mut program, target)?;
    attempt_with_splits(&program, &mut analysis, files, target.merged_regs, rotation)?;
    Ok(spilled)
}
