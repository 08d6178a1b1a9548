//! The registers of arrays, which come and go with their live ranges.
//!
//! The place of an array is known before the pass (`array_ranges`). Where an array becomes live, the values in its
//! registers are moved away, by the parallel copy before the access, or, at the start of a block, on the edges. A value
//! that is live while an array is live is kept off its registers in the first place, if there is another gap.

use super::{Array, ArrayAccess, Assigner, Instr, PhysReg, Place, UNASSIGNED};
use crate::ir3::Value;
use crate::regalloc::Error;
use crate::regalloc::array_ranges;
use crate::regalloc::file::UnitSet;
use crate::regalloc::forest::{self, ValueList};
use crate::regalloc::parallel_copy::reg_of;
use crate::regalloc::step::Step;

impl Assigner<'_> {
    /// The file, first unit and number of units of an array.
    fn array_units(&self, array: Array) -> (usize, u16, u16) {
        let file = self.file(self.program.arrays[array].class);
        (file, self.array_base[array], array_ranges::units(self.program, array) as u16)
    }

    /// Chooses the bases of all arrays that the program accesses.
    ///
    /// # Errors
    /// If an array is longer than its file.
    pub(super) fn place_arrays(&mut self) -> Result<(), Error> {
        for &array in self.analysis.arrays.accessed() {
            let class = self.program.arrays[array].class;
            let (units, class_limit) =
                (array_ranges::units(self.program, array), self.class_limit[forest::kind(class)]);
            if units > u32::from(class_limit) {
                return Err(Error::spilling(units, class_limit, class.half));
            }
            let base = self.analysis.arrays.base(self.program, array, self.preferred_limit[self.file(class)]);
            self.array_base[array] = base;
            self.program.arrays[array].base = Some(reg_of(class, base));
        }
        Ok(())
    }

    /// Reserves the registers of the arrays that are live at a point, and moves values out of them. Returns the files
    /// in which values find no other gap, for [`compact`](Self::compact). At the start of a block, the values are
    /// where a predecessor had them.
    pub(super) fn reserve_arrays(&mut self, point: u32, is_start: bool, step: &Step) -> [bool; 3] {
        let mut failed = [false; 3];
        let analysis = self.analysis;
        if analysis.arrays.is_empty() {
            return failed;
        }
        let live = analysis.arrays.at(point);
        let mut reserved = [UnitSet::default(); 3];
        for &array in &live.arrays {
            let (file, at, len) = self.array_units(array);
            reserved[file].insert(at, len);
        }
        if reserved == self.reserved && !is_start {
            return failed;
        }
        let full_file = self.file(crate::ir3::RegClass::FULL);
        let half_file = self.file(crate::ir3::RegClass::HALF);
        self.bounds = self.preferred_limit.map(|units| (0, units));
        self.bounds[full_file].1 = self.bounds[full_file].1.saturating_sub(live.extents[forest::FULL] as u16);
        self.bounds[half_file].0 = live.extents[forest::HALF] as u16;
        for file in 0..2 {
            let old = std::mem::replace(&mut self.reserved[file], reserved[file]);
            let begun = if is_start { reserved[file] } else { reserved[file].without(&old) };
            self.taken[file] = reserved[file];
            for root in self.roots(file) {
                self.taken[file].insert(self.place[root], self.units(root));
            }
            if begun == UnitSet::default() || self.fixed.is_some() {
                continue;
            }
            let overlaps =
                |&root: &Value| self.place[root] != UNASSIGNED && !begun.is_free(self.place[root], self.units(root));
            let mut roots: ValueList = self.roots(file).into_iter().filter(overlaps).collect();
            // Wide values first: they have fewer choices.
            roots.sort_by_key(|&root| std::cmp::Reverse(self.units(root)));
            for root in roots {
                match self.place_outside_arrays(root, file).filter(|_| self.splitting) {
                    Some(at) => {
                        self.vacate(root);
                        // The registers that it frees belong to an array.
                        self.taken[file] = self.taken[file].with(&reserved[file]);
                        self.relocate(root, at, step.is_new(root));
                        self.occupy(root);
                    }
                    None => failed[file] = true,
                }
            }
        }
        failed
    }

    /// A gap for a value in the registers of an array.
    fn place_outside_arrays(&self, root: Value, file: usize) -> Option<u16> {
        let (align, class_limit) = self.align_and_limit(root);
        let len = self.units(root);
        let avoided = self.avoided(root).unwrap_or_default().with(&self.taken[file]);
        avoided.find_gap(len, align, 0, class_limit).or_else(|| self.taken[file].find_gap(len, align, 0, class_limit))
    }

    /// The units that a value should not have, as an array will need them while the value lives, and those beyond the
    /// registers that the program takes anyway; none without such an array.
    pub(super) fn avoided(&self, value: Value) -> Option<UnitSet> {
        let analysis = self.analysis;
        if analysis.arrays.is_empty() {
            return None;
        }
        let (class, segments) = (self.class(value), analysis.liveness.segments(value));
        let mut units = UnitSet::default();
        for &array in analysis.arrays.accessed() {
            let (file, at, len) = self.array_units(array);
            if file == self.file(class) && analysis.arrays.is_live_in(array, segments) {
                units.insert(at, len);
            }
        }
        if units == UnitSet::default() {
            return None;
        }
        let (_, class_limit) = self.align_and_limit(value);
        let preferred_limit = self.preferred_limit[self.file(class)].min(class_limit);
        units.insert(preferred_limit, class_limit - preferred_limit);
        Some(units)
    }

    /// The registers of an access.
    pub(super) fn array_place(&self, instr: Instr, access: ArrayAccess) -> Result<Place, Error> {
        if access.value.is_some() {
            return Err(Error::unsupported(self.program, instr, "an array in SSA form"));
        }
        let data = &self.program.arrays[access.array];
        let base = reg_of(data.class, self.array_base[access.array]).0 as i16 + access.offset;
        if access.relative {
            return Ok(Place::Relative { offset: base, size: data.length });
        }
        if access.offset < 0 || access.offset as u16 >= data.length {
            return Err(Error::Malformed { what: format!("element {} of {}", access.offset, access.array) });
        }
        Ok(Place::Reg(PhysReg(base as u16)))
    }
}
