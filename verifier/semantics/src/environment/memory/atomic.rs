//! The effect of atomics on a word.

use crate::arithmetic::concrete::Concrete;
use crate::arithmetic::domain::{Domain, Format};
use crate::arithmetic::{float, integer};

/// The effect of an atomic on a 32-bit word.
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
    /// Replaces the word.
    Exchange,
    /// Replaces the word if it equals the comparand.
    CompareExchange,
    /// Float addition.
    Fadd,
    /// Float minimum.
    Fmin,
    /// Float maximum.
    Fmax,
    /// Replaces the word if it equals the comparand as a float.
    FcompareExchange,
    /// Adds 1; sets 0 if the word is at least the operand.
    IncrementWrap,
    /// Subtracts 1; sets the operand if the word is 0 or above the operand.
    DecrementWrap,
}

impl Atomic {
    /// The new contents of a 32-bit word.
    #[inline]
    pub fn apply(self, old: u32, data: u32, compare: u32) -> u32 {
        self.replace(Format::F32, old.into(), data.into(), compare.into()) as u32
    }

    /// The new contents of a 64-bit word. Floats of 64 bits are Rust's.
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

    /// Returns true if it has a comparand.
    pub const fn compares(self) -> bool {
        matches!(self, Atomic::CompareExchange | Atomic::FcompareExchange)
    }
}
