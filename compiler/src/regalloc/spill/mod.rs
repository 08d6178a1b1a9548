//! Values that find no register go to memory and come back.
//!
//! 1. `scalars`: vectors are taken apart where they are defined and put together where they are read;
//! 2. `next_use`: how far away the next use of each value is;
//! 3. `limit`: which values are in registers where (`room`: how they are counted);
//! 4. `rewrite` with `slots`: stores, reloads, and phis where names of one value meet; `unused` cleans up, and
//!    `together` makes one reload of several.
//!
//! What comes out is in SSA form, with `spill.macro` and `reload.macro` for accesses to slots. These address scratch
//! memory by a base register, which holds 0, and an offset of any size. It fits: the [pressure](super::pressure), by
//! which registers are assigned, is asked in the end. Of a program that is far from the limit, `bound` tells so quickly.

mod bound;
mod limit;
mod next_use;
mod rewrite;
mod room;
mod scalars;
mod slots;
mod together;
mod unused;

use super::pressure::{Analysis, Pressure};
use super::{Error, RegisterLimit, order};
use crate::ir3::Program;
use crate::target::{RegisterFiles, Target};
use room::{BASE, Room, Units};

/// How often the room is made smaller than it is, because counting vectors and their parts apart was too optimistic.
const ATTEMPTS: u32 = 4;

/// Whether a program does not fit within the limit as it is.
pub fn is_needed(program: &Program, target: &Target, limit: RegisterLimit) -> Result<bool, Error> {
    let files = limit.files(target);
    if matches!(limit, RegisterLimit::Minimum(_)) {
        return Ok(true);
    }
    if quick_bound(program, target).is_some_and(|(full, half)| full <= files.full && half <= files.half) {
        return Ok(false);
    }
    Ok(!fits(&pressure(program, target)?, &files))
}

/// No more than this is needed, if a quick look can tell: units of the full file, and of half registers.
pub(super) fn quick_bound(program: &Program, target: &Target) -> Option<(u32, u32)> {
    bound::run(program, target.merged_regs)
}

/// What the program needs if it is assigned registers as it is.
pub(super) fn pressure(program: &Program, target: &Target) -> Result<Pressure, Error> {
    let mut copy = program.clone();
    let analysis = Analysis::new(&mut copy, target)?;
    Ok(analysis.max_pressure(&copy))
}

/// Whether the general registers suffice. The others are not spilled to memory.
fn fits(pressure: &Pressure, files: &RegisterFiles) -> bool {
    pressure.full <= files.full && pressure.half <= files.half
}

/// Spills until the program fits within the limit. A program that fits as it is stays as it is.
pub fn run(program: &mut Program, target: &Target, limit: RegisterLimit) -> Result<(), Error> {
    let mut scalars = program.clone();
    scalars::run(&mut scalars);
    let (full, half) = room::minimum(&scalars, target.merged_regs);
    let mut files = limit.files(target);
    if let RegisterLimit::Minimum(more) = limit {
        let more = u32::from(more);
        let half_more = if target.merged_regs { 2 * more } else { more };
        files.full = files.full.min(full + 2 * more);
        files.half = files.half.min(half + half_more);
        if fits(&pressure(program, target)?, &files) {
            return Ok(());
        }
    }
    let lack = if half > files.half { (half, files.half, "half") } else { (full.div_ceil(2), files.full / 2, "full") };
    let (needed, available, file) = lack;
    if needed > available {
        return Err(Error::Instruction { needed, available, file });
    }
    if !target.pvtmem {
        let now = pressure(program, target)?;
        let (needed, available, file) = if now.full > files.full {
            (now.full.div_ceil(2), files.full / 2, "full")
        } else {
            (now.half, files.half, "half")
        };
        return Err(Error::NoPrivateMemory { target: target.name, needed, available, file });
    }
    let mut room = Room::new(files, target.merged_regs);
    for _ in 0..ATTEMPTS {
        let spilled = within(&scalars, room)?;
        let now = pressure(&spilled, target)?;
        if fits(&now, &files) {
            *program = spilled;
            return Ok(());
        }
        room.full = (room.full + files.full).saturating_sub(now.full.max(files.full)).max(full);
        room.half = (room.half + files.half).saturating_sub(now.half.max(files.half)).max(half);
    }
    Err(Error::Malformed { what: format!("spilled, and does not fit into {} full registers", files.full / 2) })
}

/// Spills a program of scalars until these fit.
fn within(scalars: &Program, room: Room) -> Result<Program, Error> {
    let mut program = scalars.clone();
    let order = order(&program);
    let loops = next_use::Loops::new(&program, &order);
    let next = next_use::NextUse::new(&program, &order, &loops);
    let fixed = Units::of_arrays(&program) + BASE;
    let plan = limit::run(&program, &order, &loops, &next, room, fixed).map_err(|lack| Error::Malformed {
        what: format!("{} needs {:?}, which is more than the least that was found, {room:?}", lack.instr, lack.needed),
    })?;
    rewrite::run(&mut program, &order, &plan);
    unused::run(&mut program);
    together::run(&mut program);
    Ok(program)
}
