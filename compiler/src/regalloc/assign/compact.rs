//! The order without gaps that a register file can have before an instruction.
//!
//! When no gap is long enough though enough registers are free, all live values are put in this order, from the bottom:
//!
//! ```text
//! halves that live on | early halves | halves read last here, full ones read last here | early full | full ones that live on
//! ```
//!
//! Results may take the place of values at their last use, from both of their ends: halves from the bottom, full
//! registers from the top. *Early* results, which are written while sources are still read, are separate. Before the
//! instruction this takes the halves, rounded up to an even number, and the full registers that are live or written
//! early; after it, the values that stay live and the results. These are the sums that
//! [`pressure`](crate::regalloc::pressure) counts, so if they fit, this order fits.

use super::Assigner;
use crate::ir3::Value;
use crate::regalloc::Error;
use crate::regalloc::forest::{FULL, HALF, SHARED, kind};
use crate::regalloc::step::{Manner, Step};

/// A result to be placed.
#[derive(Clone, Copy)]
struct Wanted {
    value: Value,
    len: u32,
    half: bool,
    early: bool,
}

impl Assigner<'_> {
    /// Chooses a new place for each value in a file, and for all results of the step that have no place in it yet.
    pub(super) fn compact(&mut self, file: usize, step: &Step) -> Result<(), Error> {
        if file == 2 {
            let available = u32::from(self.class_limit[SHARED]) / 2;
            return Err(Error::NeedsSpilling { needed: available + 1, available, file: "shared" });
        }
        if !self.splitting {
            let half = file == 1;
            let (class_limit, unit) = if half { (self.class_limit[HALF], 1) } else { (self.class_limit[FULL], 2) };
            let file = if half { "half" } else { "full" };
            return Err(Error::Fragmented { available: u32::from(class_limit) / unit, file });
        }
        let roots = self.roots(file);
        let is_half = |value: Value| self.class(value).half;
        let dies = |value: Value| step.dying.contains(&value);
        let wanted: Vec<Wanted> = (step.results.iter())
            .filter(|result| {
                let is_here = self.file(self.class(result.value)) == file && !roots.contains(&result.value);
                let is_wanted = matches!(result.manner, Manner::Late | Manner::Early | Manner::Copied(_));
                is_here && is_wanted && (self.forest.is_root(result.value) || !step.is_copy)
            })
            .map(|result| Wanted {
                value: result.value,
                len: u32::from(self.units(result.value)),
                half: is_half(result.value),
                early: result.manner != Manner::Late,
            })
            .collect();
        let sum_live = |half: bool, dying: bool| -> u32 {
            let counts = |&&value: &&Value| is_half(value) == half && dies(value) == dying;
            roots.iter().filter(counts).map(|&value| u32::from(self.units(value))).sum()
        };
        let sum_wanted = |half: bool, early: bool| -> u32 {
            wanted.iter().filter(|wanted| wanted.half == half && wanted.early == early).map(|wanted| wanted.len).sum()
        };
        let even = |unit: u32| unit.next_multiple_of(2);
        let (low, high) = self.bounds[file];

        let early_half = u32::from(low) + sum_live(true, false);
        let middle = early_half + sum_wanted(true, true);
        let dying_half_end = middle + sum_live(true, true);
        let new_half_end = middle + sum_wanted(true, false);
        let (dying_full, new_full) = (sum_live(false, true), sum_wanted(false, false));
        let middle_end = (even(dying_half_end) + dying_full).max(even(new_half_end) + new_full);
        let full = middle_end + sum_wanted(false, true);
        let half_end = dying_half_end.max(new_half_end);
        let living_full = sum_live(false, false);
        // An odd number of halves costs a unit only if full registers follow.
        let end = if full + living_full > even(half_end) { full + living_full } else { half_end };

        if half_end > u32::from(self.class_limit[HALF]) && half_end > u32::from(low) {
            return Err(Error::spilling(half_end, self.class_limit[HALF], true));
        }
        if end > u32::from(high) {
            // The file of halves, if separate, has been checked.
            let class_limit = self.class_limit[FULL];
            return Err(Error::spilling(end + u32::from(class_limit) - u32::from(high), class_limit, false));
        }

        // The next place of each kind.
        let mut places: Vec<(Value, u32)> = Vec::with_capacity(roots.len());
        let mut next_half = [u32::from(low), middle];
        let mut next_full = [full, middle_end - dying_full];
        for &value in &roots {
            let dying = usize::from(dies(value));
            let next = if is_half(value) { &mut next_half[dying] } else { &mut next_full[dying] };
            places.push((value, *next));
            *next += u32::from(self.units(value));
        }
        let mut next_half = [middle, early_half];
        let mut next_full = [middle_end - new_full, middle_end];
        let mut result_places: Vec<(Value, u32)> = Vec::with_capacity(wanted.len());
        for item in &wanted {
            let early = usize::from(item.early);
            let next = if item.half { &mut next_half[early] } else { &mut next_full[early] };
            result_places.push((item.value, *next));
            *next += item.len;
        }
        self.clear_file(file);
        for (value, at) in places {
            self.relocate(value, at as u16, step.is_new(value));
            self.occupy(value);
        }
        for (value, at) in result_places {
            if step.is_copy || kind(self.class(value)) >= SHARED {
                self.put(value, at as u16);
            } else {
                self.place[value] = at as u16;
            }
        }
        Ok(())
    }
}
