//! Shifts. Shifts by constants are slices; a count of at least the width gives 0, or copies of the sign.

use super::{Op, Term, Terms};

impl Terms {
    /// Left shift.
    pub(super) fn shift_left(&mut self, w: u32, a: Term, count: Term) -> Term {
        match (self.as_constant(a), self.as_constant(count)) {
            (Some(0), _) => a,
            (_, Some(0)) => a,
            (_, Some(count)) if count >= w.into() => self.number(w, 0),
            (_, Some(count)) if w > 1 => self.multiple(w, a, 1 << count),
            _ => self.plain(Op::Shl, w, &[a, count]),
        }
    }

    /// Logical right shift.
    pub(super) fn shift_right(&mut self, w: u32, a: Term, count: Term) -> Term {
        match (self.as_constant(a), self.as_constant(count)) {
            (Some(0), _) => a,
            (_, Some(count)) if count >= w.into() => self.number(w, 0),
            (_, Some(count)) => self.shifted_right(w, a, count as u32),
            _ => self.plain(Op::Lshr, w, &[a, count]),
        }
    }

    /// Logical right shift by less than the width.
    pub(super) fn shifted_right(&mut self, w: u32, a: Term, count: u32) -> Term {
        let part = self.slice(a, count, w - count);
        self.extend(part, w)
    }

    /// Arithmetic right shift.
    pub(super) fn shift_right_signed(&mut self, w: u32, a: Term, count: Term) -> Term {
        match (self.as_constant(a), self.as_constant(count)) {
            (Some(0), _) => a,
            (Some(bits), _) if bits == crate::arithmetic::concrete::mask(w) => a,
            (_, Some(count)) => {
                let count = count.min(u64::from(w) - 1) as u32;
                let part = self.slice(a, count, w - count);
                self.extend_signed(part, w)
            }
            _ => self.plain(Op::Ashr, w, &[a, count]),
        }
    }
}
