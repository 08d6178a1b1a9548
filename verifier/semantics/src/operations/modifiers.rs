//! Modifiers of single operands and results: signs, complements, the clamp of a saturating float operation.
//!
//! Operands have 16 bits (`half`) or 32.

use crate::arithmetic::concrete::Concrete;
use crate::arithmetic::domain::{Domain, Format};
use crate::arithmetic::rows::Row;
use crate::arithmetic::{float, integer};
use crate::operations::kernels;
use crate::operations::kernels::modify;
use crate::operations::values::Modify;
use crate::terms::{Term, Terms};

const F16: Format = Format::F16;
const F32: Format = Format::F32;

/// [`float::fsat`] of binary32.
pub const SATURATE32: &Modify = modify!(32 | d, a | float::fsat(d, F32, a));

/// [`float::fsat`] of binary16: of the low half, for any high half (`mov` to a half type in a full register).
pub const SATURATE16: &Modify = modify!(
    32 | d,
    a | {
        let a = d.extract(32, a, 0, 16);
        float::fsat(d, F16, a)
    }
);

/// All bits flipped.
pub fn complement(half: bool) -> &'static Modify {
    if half { modify!(16 | d, a | d.not(16, a)) } else { modify!(32 | d, a | d.not(32, a)) }
}

/// Applies the absolute value of a float, then its negation, or one of both; `None` for neither.
pub fn of_float(half: bool, neg: bool, abs: bool) -> Option<&'static Modify> {
    Some(match (neg, abs, half) {
        (false, false, _) => return None,
        (true, false, true) => modify!(16 | d, a | float::fneg(d, F16, a)),
        (true, false, false) => modify!(32 | d, a | float::fneg(d, F32, a)),
        (false, true, true) => modify!(16 | d, a | float::fabs(d, F16, a)),
        (false, true, false) => modify!(32 | d, a | float::fabs(d, F32, a)),
        (true, true, true) => modify!(
            16 | d,
            a | {
                let a = float::fabs(d, F16, a);
                float::fneg(d, F16, a)
            }
        ),
        (true, true, false) => modify!(
            32 | d,
            a | {
                let a = float::fabs(d, F32, a);
                float::fneg(d, F32, a)
            }
        ),
    })
}

/// Applies the absolute value of an integer, then its negation, or one of both; `None` for neither.
pub fn of_integer(half: bool, neg: bool, abs: bool) -> Option<&'static Modify> {
    Some(match (neg, abs, half) {
        (false, false, _) => return None,
        (true, false, true) => modify!(16 | d, a | integer::ineg(d, 16, a)),
        (true, false, false) => modify!(32 | d, a | integer::ineg(d, 32, a)),
        (false, true, true) => modify!(16 | d, a | integer::iabs(d, 16, a)),
        (false, true, false) => modify!(32 | d, a | integer::iabs(d, 32, a)),
        (true, true, true) => modify!(
            16 | d,
            a | {
                let a = integer::iabs(d, 16, a);
                integer::ineg(d, 16, a)
            }
        ),
        (true, true, false) => modify!(
            32 | d,
            a | {
                let a = integer::iabs(d, 32, a);
                integer::ineg(d, 32, a)
            }
        ),
    })
}
