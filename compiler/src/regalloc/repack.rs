//! The best order that a register file can have in front of an instruction.
//!
//! When no gap is long enough though registers are free, all live values are put in this order, from the bottom:
//!
//! ```text
//! halves that live on | early halves | halves read last here, full ones read last here | early full | full ones that live on
//! ```
//!
//! Results may take the place of what is read last, from both of its ends: halves from the bottom, full registers from
//! the top. *Early* results, that are written while sources are still to be read, stand apart. Nothing can be denser,
//! but for one unit of alignment and for what halves cannot reach: if this does not fit, the program needs spilling.

use super::Error;
use super::assign::Wanted;
use super::simple_liveness::units;
use crate::ir3::{Program, Value};

/// The room that there is in a file, in units.
#[derive(Clone, Copy)]
pub struct Room {
    /// Arrays stand in front of this.
    pub low: u16,
    /// And from here on.
    pub high: u16,
    /// All full registers.
    pub full: u16,
    /// What halves reach.
    pub half: u16,
}

/// Chooses a place for each of `live` (added to `moved`, whether it changes or not) and for everything `wanted` in
/// file `file`. Places of tied results are not set.
pub fn run(
    program: &Program,
    file: usize,
    Room { low, high, full: all, half: reach }: Room,
    live: &[Value],
    killed: &[Value],
    wanted: &mut [Wanted],
    moved: &mut Vec<(Value, u16)>,
) -> Result<(), Error> {
    let len = |value: Value| units(program, value);
    let is_half = |value: Value| program.values[value].class.half;
    let tied: Vec<Value> = wanted.iter().filter_map(|wanted| wanted.tied).collect();
    let dies = |value: Value| killed.contains(&value) && !tied.contains(&value);
    let sum_live = |half: bool, dying: bool| -> u32 {
        live.iter().filter(|&&v| is_half(v) == half && dies(v) == dying).map(|&v| len(v)).sum()
    };
    let sum_wanted = |wanted: &[Wanted], half: bool, early: bool| -> u32 {
        let counts = |w: &&Wanted| w.file == file && w.tied.is_none() && w.class.half == half && w.early == early;
        wanted.iter().filter(counts).map(|w| u32::from(w.len)).sum()
    };
    let even = |unit: u32| unit.next_multiple_of(2);

    let early_half = u32::from(low) + sum_live(true, false);
    let middle = early_half + sum_wanted(wanted, true, true);
    let dying_half_end = middle + sum_live(true, true);
    let new_half_end = middle + sum_wanted(wanted, true, false);
    let (dying_full, new_full) = (sum_live(false, true), sum_wanted(wanted, false, false));
    let middle_end = (even(dying_half_end) + dying_full).max(even(new_half_end) + new_full);
    let full = middle_end + sum_wanted(wanted, false, true);
    let half_end = dying_half_end.max(new_half_end);
    let living_full = sum_live(false, false);
    // An odd number of halves costs a unit only where full registers follow.
    let end = if full + living_full > even(half_end) { full + living_full } else { half_end };

    if half_end > u32::from(reach) && half_end > u32::from(low) {
        return Err(Error::spilling(half_end, reach, true));
    }
    if end > u32::from(high) {
        // The file of halves, where it is one, has been looked at.
        return Err(Error::spilling(end + u32::from(all) - u32::from(high), all, false));
    }

    // Where the next one of each kind goes.
    let mut next_half = [u32::from(low), middle];
    let mut next_full = [full, middle_end - dying_full];
    for &value in live {
        let dying = usize::from(dies(value));
        let next = if is_half(value) { &mut next_half[dying] } else { &mut next_full[dying] };
        moved.push((value, *next as u16));
        *next += len(value);
    }
    let mut next_half = [middle, early_half];
    let mut next_full = [middle_end - new_full, middle_end];
    for wanted in wanted.iter_mut().filter(|w| w.file == file && w.tied.is_none()) {
        let early = usize::from(wanted.early);
        let next = if wanted.class.half { &mut next_half[early] } else { &mut next_full[early] };
        wanted.at = *next as u16;
        *next += u32::from(wanted.len);
    }
    Ok(())
}
