//! Places that are decided before register assignment: some are given, the others fill the gaps.
//!
//! Inputs ([`inputs`](super::inputs)) and outputs ([`outputs`](super::outputs)) may name their registers. All values
//! that are live with them at that point get their places here: the given ones first, then the others, wide ones first,
//! in the gaps. The last unit bounds the need of the program at that point, gaps included.

use super::Error;
use super::file::{UNITS, UnitSet};
use super::forest::{FULL, HALF, Sums, kind};
use super::parallel_copy::unit_of;
use crate::ir3::{PhysReg, RegClass};

/// A value that needs a place.
pub struct PlacementItem {
    /// Class of its registers, which are general registers.
    pub class: RegClass,
    /// Number of units.
    pub units: u16,
    /// Its first register, if given.
    pub given: Option<PhysReg>,
}

/// Chooses the first unit of each item; returns the end of all of them, by [`kind`]. `arrays` are the extents of the
/// stacks of arrays; that of halves starts at the bottom. `name` describes an item in an error.
///
/// # Errors
/// If a given register does not exist or is given twice, or there are too few registers for all.
pub fn arrange(
    items: &[PlacementItem],
    merged: bool,
    arrays: &Sums,
    name: impl Fn(usize) -> String,
) -> Result<(Vec<u16>, Sums), Error> {
    let file = |item: &PlacementItem| usize::from(item.class.half && !merged);
    let mut taken = [UnitSet::default(); 2];
    taken[usize::from(!merged)].insert(0, arrays[HALF].min(u32::from(UNITS)) as u16);
    let mut places = vec![0; items.len()];
    let mut ends = Sums::default();
    let mut put = |k: usize, at: u16, taken: &mut [UnitSet; 2]| {
        let PlacementItem { class, units, .. } = items[k];
        taken[file(&items[k])].insert(at, units);
        places[k] = at;
        let end = &mut ends[kind(class)];
        *end = u32::from(at + units).max(*end);
    };
    for (k, item) in items.iter().enumerate() {
        let Some(reg) = item.given else { continue };
        if reg.0 >= UNITS || unit_of(item.class, reg) + item.units > UNITS {
            return Err(Error::Malformed { what: format!("there is no register {reg} for {}", name(k)) });
        }
        let at = unit_of(item.class, reg);
        if !taken[file(item)].is_free(at, item.units) {
            return Err(Error::Malformed { what: format!("the register of {} is taken", name(k)) });
        }
        put(k, at, &mut taken);
    }
    // Wide items first: they have fewer choices.
    let mut free: Vec<usize> = (0..items.len()).filter(|&k| items[k].given.is_none()).collect();
    free.sort_by_key(|&k| std::cmp::Reverse(items[k].units));
    for k in free {
        let PlacementItem { class, units, .. } = items[k];
        let Some(at) = taken[file(&items[k])].find_gap(units, class.component_units(), 0, UNITS) else {
            return Err(Error::spilling(u32::from(UNITS) + u32::from(units), UNITS, false));
        };
        put(k, at, &mut taken);
    }
    if merged {
        ends[FULL] = ends[FULL].max(ends[HALF].next_multiple_of(2));
    }
    Ok((places, ends))
}
