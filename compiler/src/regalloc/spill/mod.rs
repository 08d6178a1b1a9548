//! Spilling: values that get no register are stored to memory and reloaded.
//!
//! 1. `scalars`: vectors are split at their definitions and collected at their uses;
//! 2. `next_use`: the distance of the next use of each value;
//! 3. `limit`: which values are in registers at each point (`room`: how they are counted);
//! 4. `rewrite` with `slots`: stores, reloads, and phis where several names of one value join; `unused` removes dead
//!    code, and `together` merges reloads.
//!
//! The result is in SSA form, with `spill.macro` and `reload.macro` for accesses to slots. These address scratch memory
//! by a base register, which holds 0, and an offset of any size.
//!
//! The result fits: the [pressure](super::pressure), which register assignment relies on, is checked in the end. If
//! counting scalars apart from vectors was too optimistic, the plan is computed again for less room, and in the end for
//! none: then every value is in memory except where an instruction reads or writes it. The need of the result is then
//! the *minimum* for the program; if that does not fit, it is refused, with the instruction that needs most. For a
//! program that is far from the limit, `bound` decides this quickly.

mod bound;
pub mod everywhere;
mod limit;
mod rewrite;
mod room;
mod scalars;
mod slots;
mod together;
mod unused;

use super::liveness::Liveness;
use super::pressure::{Analysis, Point, Pressure};
use super::{Error, RegisterLimit, next_use, order};
use crate::ir3::Program;
use crate::ir3::dominance::{Dominators, EdgeKind};
use crate::ir3::loops::Loops;
use crate::target::{RegisterFiles, Target};
use room::{Fixed, Room};
pub(super) use slots::own_scratch_bytes;

/// The number of plans, each for less room, before all values are spilled.
const ATTEMPTS: u32 = 4;

/// Returns true if a program does not fit within the limit without spilling.
///
/// # Errors
/// If the program cannot be analysed.
pub fn is_needed(program: &Program, target: &Target, limit: RegisterLimit) -> Result<bool, Error> {
    let files = limit.files(target);
    if matches!(limit, RegisterLimit::Minimum(_)) && target.pvtmem {
        return Ok(true);
    }
    if quick_bound(program, target).is_some_and(|(full, half)| full <= files.full && half <= files.half) {
        return Ok(false);
    }
    Ok(!fits(&pressure(program, target)?, &files))
}

/// An upper bound on the need, if it can be computed quickly: units of the full file, and of half registers.
pub(super) fn quick_bound(program: &Program, target: &Target) -> Option<(u32, u32)> {
    // The bound ignores gaps between given registers.
    if super::outputs::any_given(program) { None } else { bound::run(program, target.merged_regs) }
}

/// The need of the program without spilling.
pub(super) fn pressure(program: &Program, target: &Target) -> Result<Pressure, Error> {
    analyse(&mut program.clone(), target)
}

/// Like [`pressure`], but may convert the program to conventional SSA.
fn analyse(program: &mut Program, target: &Target) -> Result<Pressure, Error> {
    let analysis = Analysis::new(program, target)?;
    Ok(analysis.max_pressure(program))
}

/// Returns true if the general registers suffice. The others are not spilled to memory.
fn fits(pressure: &Pressure, files: &RegisterFiles) -> bool {
    pressure.full <= files.full && pressure.half <= files.half
}

/// Spills until the program fits within the limit. A program that fits is not changed.
///
/// # Errors
/// If the program does not fit even with all values spilled, or the target has no memory for spills.
pub fn run(program: &mut Program, target: &Target, limit: RegisterLimit) -> Result<(), Error> {
    let mut files = limit.files(target);
    let now = pressure(program, target)?;
    if fits(&now, &files) && !matches!(limit, RegisterLimit::Minimum(_)) {
        return Ok(());
    }
    if !target.pvtmem {
        return no_private_memory(&now, target, &files);
    }
    let mut scalars = program.clone();
    scalars::run(&mut scalars);
    let order = order(&scalars);
    let liveness = Liveness::new(&mut scalars.clone(), order.clone())?;
    let loops = Loops::new(&scalars, &Dominators::new(&scalars, EdgeKind::Logical));
    let next = next_use::run(&scalars, &order, &loops, scalars::GENERAL);
    let fixed = Fixed::new(&scalars, &order)?;
    let none = Room { full: 0, half: 0, merged: target.merged_regs };
    let within = |room: Room| {
        let plan = limit::run(&scalars, &order, &loops, &next, room, &fixed);
        let mut program = scalars.clone();
        rewrite::run(&mut program, &order, &plan, &liveness);
        unused::run(&mut program);
        together::run(&mut program);
        program
    };
    let mut least = None;
    if let RegisterLimit::Minimum(more) = limit {
        let spilled = least.insert(within(none));
        let (more, least) = (u32::from(more), analyse(spilled, target)?);
        files.full = files.full.min(least.full.next_multiple_of(2) + 2 * more);
        files.half = files.half.min(least.half + if target.merged_regs { 2 * more } else { more });
        if fits(&now, &files) {
            return Ok(());
        }
    }
    let mut room = Room::new(files, target.merged_regs);
    for _ in 0..ATTEMPTS {
        let mut spilled = within(room);
        let now = analyse(&mut spilled, target)?;
        if fits(&now, &files) {
            *program = spilled;
            return Ok(());
        }
        if least.is_none()
            && let Some(error) = neediest(least.insert(within(none)), target, &files)?
        {
            return Err(error);
        }
        room.full = (room.full + files.full).saturating_sub(now.full.max(files.full));
        room.half = (room.half + files.half).saturating_sub(now.half.max(files.half));
    }
    *program = least.unwrap_or_else(|| within(none));
    match neediest(program, target, &files)? {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

pub(super) fn no_private_memory(now: &Pressure, target: &Target, files: &RegisterFiles) -> Result<(), Error> {
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
fn neediest(program: &mut Program, target: &Target, files: &RegisterFiles) -> Result<Option<Error>, Error> {
    let analysis = Analysis::new(program, target)?;
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
