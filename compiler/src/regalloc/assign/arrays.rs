//! The registers of arrays, which have them for the whole program: arrays of halves at the bottom of their file, those of full registers at the top of the
//! target size.

use crate::ir3::{Array, Program};
use crate::regalloc::Error;
use crate::regalloc::file::UnitSet;
use crate::regalloc::forest::{self, FULL, HALF};

/// The places of all arrays.
#[derive(Default)]
pub struct ArrayLayout {
    /// The first unit of each array.
    pub bases: Vec<(Array, u16)>,
    /// Their units, by file.
    pub reserved: [UnitSet; 3],
    /// The end of arrays of halves, and the start of arrays of full registers, by file.
    pub bounds: [(u16, u16); 3],
}

/// Places the arrays within `bounds`. `reach` is the number of units of each kind of register, by [`forest::kind`].
///
/// # Errors
/// If there is no room.
pub fn lay_out(
    program: &Program,
    merged: bool,
    reach: [u16; 4],
    bounds: [(u16, u16); 3],
) -> Result<ArrayLayout, Error> {
    let mut layout = ArrayLayout { bounds, ..ArrayLayout::default() };
    for (array, data) in program.arrays.iter() {
        let (class, len) = (data.class, u32::from(data.length) * u32::from(data.class.component_units()));
        let file = match forest::kind(class) {
            HALF if !merged => 1,
            FULL | HALF => 0,
            _ => 2,
        };
        let reach = reach[forest::kind(class)];
        let (low, high) = &mut layout.bounds[file];
        let room = (if class.half { reach.min(*high) } else { *high }).saturating_sub(*low);
        if len > u32::from(room) {
            return Err(Error::spilling(u32::from(reach - room) + len, reach, class.half));
        }
        let len = len as u16;
        let base = if class.half {
            *low += len;
            *low - len
        } else {
            *high -= len;
            *high
        };
        layout.reserved[file].insert(base, len);
        layout.bases.push((array, base));
    }
    Ok(layout)
}
