//! The registers that relative accesses reach.
//!
//! An instruction names the register that is added to `a0.x`: that of some element, and the text also the number of
//! elements, but not where the array starts. Allocation may also have moved it. So an access reaches all registers of
//! all arrays of that size that have the named register. Where no size is given, as in words, it reaches the whole
//! file.

use super::units;
use ir3_compiler::ir3::RegClass;

/// The first register that a relative access may reach, and the number of registers.
pub fn extent(offset: i16, size: u16, class: RegClass, merged: bool) -> (u16, u16) {
    let file = units::file_size(class, merged);
    match u16::try_from(offset) {
        Ok(named) if size > 0 && named < file => {
            let first = (named + 1).saturating_sub(size);
            (first, (named + size).min(file) - first)
        }
        _ => (0, file),
    }
}
