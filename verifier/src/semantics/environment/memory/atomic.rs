//! What atomics do to a word.

use crate::semantics::arithmetic::concrete::Concrete;
use crate::semantics::arithmetic::domain::{Domain, Format};
use crate::semantics::arithmetic::{float, integer};

/// What an atomic does to a 32-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atomic {
    /// Adds.
    Add,
    /// Subtracts.
    Sub,
    /// Signed minimum.
    Smin,
    /// Unsigned minimum.
    Umin,
    /// Signed maximum.
    Smax,
    /// Unsigned maximum.
    Umax,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Replaces.
    Exchange,
    /// Replaces what equals the comparand.
    CompareExchange,
    /// Float addition.
    Fadd,
    /// Float minimum.
    Fmin,
    /// Float maximum.
    Fmax,
    /// Replaces what equals the comparand as a float.
    FcompareExchange,
    /// Adds 1, to 0 from the operand on.
    IncrementWrap,
    /// Subtracts 1, to the operand from 0 or from above the operand.
    DecrementWrap,
}

impl Atomic {
    /// The new contents of a word.
    #[inline]
    pub fn apply(self, old: u32, data: u32, compare: u32) -> u32 {
        self.replace(Format::F32, old.into(), data.into(), compare.into()) as u32
    }

    /// The new contents of a double word. Floats of 64 bits are those of Rust.
    pub fn apply_wide(self, old: u64, data: u64, compare: u64) -> u64 {
        self.replace(Format::F64, old, data, compare)
    }

    /// The new contents of a word that is as wide as a float of the format.
    #[inline(always)]
    fn replace(self, f: Format, old: u64, data: u64, compare: u64) -> u64 {
        let (d, w) = (&mut Concrete, f.width());
        match self {
            Atomic::Add => d.add(w, old, data),
            Atomic::Sub => d.sub(w, old, data),
            Atomic::Smin => integer::imin(d, w, old, data),
            Atomic::Umin => old.min(data),
            Atomic::Smax => integer::imax(d, w, old, data),
            Atomic::Umax => old.max(data),
            Atomic::And => old & data,
            Atomic::Or => old | data,
            Atomic::Xor => old ^ data,
            Atomic::Exchange => data,
            Atomic::CompareExchange => d.ite(w, u64::from(old == compare), data, old),
            Atomic::Fadd => d.fadd(f, old, data),
            Atomic::Fmin => float::fmin(d, f, old, data),
            Atomic::Fmax => float::fmax(d, f, old, data),
            Atomic::FcompareExchange => {
                let equal = d.feq(f, old, compare);
                d.ite(w, equal, data, old)
            }
            Atomic::IncrementWrap => d.ite(w, u64::from(old >= data), 0, old.wrapping_add(1)),
            Atomic::DecrementWrap => d.ite(w, u64::from(old == 0 || old > data), data, old.wrapping_sub(1)),
        }
    }

    /// Whether it has a comparand.
    pub const fn compares(self) -> bool {
        matches!(self, Atomic::CompareExchange | Atomic::FcompareExchange)
    }
}
