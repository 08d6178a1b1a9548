//! Spilling: values that get no register are stored to memory and reloaded.
//!
//! 1. `scalars`: vectors are split at their definitions and collected at their uses;
//! 2. `next_use`: the distance of the next use of each value;
//! 3. `belady`: the values in registers at each point (`pressure_units`: their count);
//! 4. `rewrite` with `slots`: stores, reloads, and phis where several names of one value join; `unused` removes dead
//!    code, and `combine_reloads` merges reloads.
//!
//! The result is in SSA form, with `spill.macro` and `reload.macro` for accesses to slots. These address scratch memory
//! by a base register, which holds 0, and an offset of any size.
//!
//! The result fits: the [pressure](super::pressure), which register assignment relies on, is checked in the end. If
//! counting scalars separately from vectors was too optimistic, the plan is recomputed for fewer registers, and in the
//! end for none: then every value is in memory except where an instruction reads or writes it. The need of the result
//! is then the *minimum* for the program; if that does not fit, it is refused, with the instruction that needs most.
//! For a program that is far from the limit, `bound` decides this quickly.

mod belady;
mod combine_reloads;
mod merge_set_spilling;
pub mod prefetch;
mod pressure_bound;
mod pressure_units;
mod rewrite;
mod scalars;
mod slots;
pub mod spill_everywhere;
mod unused;

use super::liveness::Liveness;
use super::pressure::{Analysis, Point, Pressure};
use super::{Analysed, Carried, Coalescing, Error, RegisterLimit, next_use, order, run_limited, unsplit};
use crate::arms::Counter;
use crate::features::{Feature, Features};
use crate::ir3::Program;
use crate::ir3::dominance::{Dominators, EdgeKind};
use crate::ir3::loops::Loops;
use crate::target::{RegisterFiles, Target};
use pressure_units::{Capacity, Fixed};
pub(super) use slots::own_scratch_bytes;

/// The number of plans, each for fewer registers, before all values are spilled.
const ATTEMPTS: u32 = 4;

/// The number of attempts if live ranges are not split: the whole file, a vec4 at a time.
const UNSPLIT_ATTEMPTS: u32 = 48;

/// Returns true if a program does not fit within the limit without spilling.
///
/// # Errors
/// If the program cannot be analysed.
pub(crate) fn is_needed(
    program: &Program,
    target: &Target,
    limit: RegisterLimit,
    features: Features,
    carried: &mut Carried,
) -> Result<bool, Error> {
    let files = limit.files(target);
    if matches!(limit, RegisterLimit::Minimum(_)) && target.pvtmem {
        return Ok(true);
    }
    if features.contains(Feature::LiveRangeSplitting)
        && quick_bound(program, target).is_some_and(|(full, half)| full <= files.full && half <= files.half)
    {
        return Ok(false);
    }
    Ok(!fits(&carried.pressure(program, target, Coalescing::of(features))?, &files)
        || !is_assignable(program, target, limit, features)?)
}

/// An upper bound on the need, if it can be computed quickly: units of the full file, and of half registers.
pub(super) fn quick_bound(program: &Program, target: &Target) -> Option<(u32, u32)> {
    // The bound ignores gaps between given registers.
    if super::outputs::any_given(program) { None } else { pressure_bound::run(program, target.merged_regs) }
}

/// The need of the program without spilling.
pub(super) fn pressure(program: &Program, target: &Target, coalescing: Coalescing) -> Result<Pressure, Error> {
    Ok(Analysed::new(&mut program.clone(), target, coalescing)?.pressure)
}

/// Returns true if the general registers suffice. The others are not spilled to memory.
fn fits(pressure: &Pressure, files: &RegisterFiles) -> bool {
    pressure.full <= files.full && pressure.half <= files.half
}

/// Returns true if registers can be assigned to a program whose pressure fits. Always, if live ranges are split.
fn is_assignable(program: &Program, target: &Target, limit: RegisterLimit, features: Features) -> Result<bool, Error> {
    Ok(features.contains(Feature::LiveRangeSplitting) || unsplit::fits(program, target, limit, features)?)
}

/// The error of register assignment for a program with all values in memory, if it fails because live ranges are not
/// split.
fn unsplit_or_error(program: &Program, target: &Target, limit: RegisterLimit, features: Features) -> Result<(), Error> {
    if features.contains(Feature::LiveRangeSplitting) {
        Ok(())
    } else {
        run_limited(&mut program.clone(), target, limit, features, &Counter::default())
    }
}

/// The files of a limit relative to the minimum, which is the need of a program with all values spilled.
fn minimum_files(minimum: &Pressure, target: &Target, limit: RegisterLimit) -> RegisterFiles {
    let mut files = limit.files(target);
    if let RegisterLimit::Minimum(more) = limit {
        let more = u32::from(more);
        files.full = files.full.min(minimum.full.next_multiple_of(2) + 2 * more);
        files.half = files.half.min(minimum.half + if target.merged_regs { 2 * more } else { more });
    }
    files
}

/// Spills until the program fits within the limit. A program that fits is not changed, unless its registers are as few
/// as possible and it [samples before it starts](prefetch).
///
/// # Errors
/// If the program does not fit even with all values spilled, or the target has no memory for spills.
pub(crate) fn run(
    program: &mut Program,
    target: &Target,
    limit: RegisterLimit,
    features: Features,
    carried: &mut Carried,
) -> Result<(), Error> {
    let mut files = limit.files(target);
    let mut now = carried.pressure(program, target, Coalescing::of(features))?;
    let is_minimum = matches!(limit, RegisterLimit::Minimum(_));
    if fits(&now, &files) && !is_minimum && is_assignable(program, target, limit, features)? {
        return Ok(());
    }
    if !target.pvtmem {
        no_private_memory(&now, target, &files)?;
        return unsplit_or_error(program, target, limit, features);
    }
    if prefetch::run(program) {
        carried.analysed = None;
        now = carried.pressure(program, target, Coalescing::of(features))?;
    }
    // The registers beyond the minimum may suffice, however few the minimum is.
    if is_minimum
        && fits(&now, &minimum_files(&Pressure::default(), target, limit))
        && is_assignable(program, target, limit, features)?
    {
        return Ok(());
    }
    if !features.contains(Feature::PartialSpilling) {
        carried.analysed = None;
        return merge_set_spilling::run(program, target, limit, features, &|files| fits(&now, files));
    }
    let mut scalars = program.clone();
    scalars::run(&mut scalars);
    let order = order(&scalars);
    let liveness = Liveness::unmarked(&scalars, order.clone())?;
    let loops = Loops::new(&scalars, &Dominators::new(&scalars, EdgeKind::Logical));
    let next = next_use::run(&scalars, &order, &loops, scalars::GENERAL);
    let fixed = Fixed::new(&scalars, &order)?;
    let none = Capacity { full: 0, half: 0, merged: target.merged_regs };
    let within = |capacity: Capacity| {
        let plan = belady::run(&scalars, &order, &loops, &next, capacity, &fixed);
        let mut program = scalars.clone();
        rewrite::run(&mut program, &order, &plan, &liveness);
        unused::run(&mut program);
        combine_reloads::run(&mut program);
        program
    };
    let mut least = None;
    if is_minimum {
        let minimum = Analysed::new(least.insert(within(none)), target, Coalescing::of(features))?.pressure;
        files = minimum_files(&minimum, target, limit);
        if fits(&now, &files) && is_assignable(program, target, limit, features)? {
            return Ok(());
        }
    }
    let mut capacity = Capacity::new(files, target.merged_regs);
    let attempts = if features.contains(Feature::LiveRangeSplitting) { ATTEMPTS } else { UNSPLIT_ATTEMPTS };
    for _ in 0..attempts {
        let mut spilled = within(capacity);
        let analysed = Analysed::new(&mut spilled, target, Coalescing::of(features))?;
        let now = analysed.pressure;
        let has_room = fits(&now, &files);
        if has_room && is_assignable(&spilled, target, limit, features)? {
            *program = spilled;
            carried.analysed = Some((analysed, None));
            return Ok(());
        }
        if least.is_none()
            && let Some(error) = neediest(least.insert(within(none)), target, &files, Coalescing::of(features))?
        {
            return Err(error);
        }
        // A vec4 less, where only gaps are missing.
        let gap = if has_room { 8 } else { 0 };
        capacity.full = (capacity.full + files.full).saturating_sub(now.full.max(files.full) + gap);
        capacity.half = (capacity.half + files.half).saturating_sub(now.half.max(files.half) + gap);
    }
    *program = least.unwrap_or_else(|| within(none));
    carried.analysed = None;
    match neediest(program, target, &files, Coalescing::of(features))? {
        Some(error) => Err(error),
        None => unsplit_or_error(program, target, limit, features),
    }
}

pub(crate) fn no_private_memory(now: &Pressure, target: &Target, files: &RegisterFiles) -> Result<(), Error> {
    let (needed, available, file) = if now.full > files.full {
        (now.full.div_ceil(2), files.full / 2, "full")
    } else if now.half > files.half {
        (now.half, files.half, "half")
    } else {
        return Ok(());
    };
    Err(Error::NoPrivateMemory { target: target.name, needed, available, file })
}

/// The error for the point with the highest need, if that exceeds the limit.
fn neediest(
    program: &mut Program,
    target: &Target,
    files: &RegisterFiles,
    coalescing: Coalescing,
) -> Result<Option<Error>, Error> {
    let analysis = Analysis::coalesced(program, target, coalescing)?;
    let mut worst: Option<(u32, Point, Pressure)> = None;
    analysis.walk(program, |point, _, now| {
        let excess = now.full.saturating_sub(files.full).max(now.half.saturating_sub(files.half));
        if excess > worst.map_or(0, |(most, ..)| most) {
            worst = Some((excess, point, now));
        }
    });
    Ok(worst.and_then(|(_, point, now)| {
        let instr = match point {
            Point::Start(block) => program.blocks[block].instrs.first().copied()?,
            Point::Read(instr) | Point::Write(instr) | Point::After(instr) => instr,
        };
        let (needed, available, file) = if now.full > files.full {
            (now.full.div_ceil(2), files.full / 2, "full")
        } else {
            (now.half, files.half, "half")
        };
        Some(Error::Instruction { instr, opcode: program.instrs[instr].opcode.name(), needed, available, file })
    }))
}
