//! Choices.
//!
//! A condition is never a complement. Between two constants that differ in one bit, a choice is that bit between
//! constants; between 0 and -1 it is a sign extension. An operation that both arms share is moved out of them: an
//! extension, a complement. An arm that is a choice itself is replaced by its arm where the outer condition decides the
//! inner one, and merged where it repeats the other arm.

use super::{Args, Op, Term, Terms};
use crate::arithmetic::concrete::mask;

impl Terms {
    /// The condition and the two constants of a choice between constants.
    pub(super) fn constant_choice(&self, t: Term) -> Option<(Term, u64, u64)> {
        match self.op(t) {
            Op::Ite => {
                let (a, b) = (self.as_constant(self.arg(t, 1))?, self.as_constant(self.arg(t, 2))?);
                Some((self.arg(t, 0), a, b))
            }
            Op::Sext if self.width(self.arg(t, 0)) == 1 => Some((self.arg(t, 0), mask(self.width(t)), 0)),
            _ => None,
        }
    }

    /// The choice between two constants.
    pub(super) fn choose(&mut self, w: u32, condition: Term, a: u64, b: u64) -> Term {
        let different = a ^ b;
        if different == 0 {
            return self.number(w, a);
        }
        if let Some(known) = self.as_constant(condition) {
            return self.number(w, if known != 0 { a } else { b });
        }
        if different.is_power_of_two() {
            let at = different.trailing_zeros();
            let bit = if a & different != 0 { condition } else { self.complement(condition) };
            let mut pieces = Args::new();
            if at > 0 {
                pieces.push(self.number(at, a));
            }
            pieces.push(bit);
            if at + 1 < w {
                pieces.push(self.number(w - at - 1, a >> (at + 1)));
            }
            return self.assemble(&pieces);
        }
        if different == mask(w) && (a == 0 || b == 0) {
            let bit = if a != 0 { condition } else { self.complement(condition) };
            return self.intern(Op::Sext, w, &[bit]);
        }
        let (condition, a, b) =
            if self.op(condition) == Op::Not { (self.arg(condition, 0), b, a) } else { (condition, a, b) };
        let (a, b) = (self.number(w, a), self.number(w, b));
        self.intern(Op::Ite, w, &[condition, a, b])
    }

    /// `a` if the condition holds, else `b`.
    pub(super) fn choice(&mut self, condition: Term, a: Term, b: Term) -> Term {
        let w = self.width(a);
        if let Some(bits) = self.as_constant(condition) {
            return if bits != 0 { a } else { b };
        }
        if a == b {
            return a;
        }
        if self.op(condition) == Op::Not {
            return self.choice(self.arg(condition, 0), b, a);
        }
        if let (Some(x), Some(y)) = (self.as_constant(a), self.as_constant(b)) {
            return if w == 1 {
                if x != 0 { condition } else { self.complement(condition) }
            } else {
                self.choose(w, condition, x, y)
            };
        }
        let (decided_a, decided_b) = (self.arm(a, condition, true), self.arm(b, condition, false));
        if (decided_a, decided_b) != (a, b) {
            return self.choice(condition, decided_a, decided_b);
        }
        if w == 1
            && let Some(bit) = self.choice_of_bits(condition, a, b)
        {
            return bit;
        }
        if let Some(merged) = self.merged(condition, a, b) {
            return merged;
        }
        if let Some(shared) = self.shared(w, condition, a, b) {
            return shared;
        }
        if let Some(term) = self.not_a_number(condition, a, b) {
            return term;
        }
        self.intern(Op::Ite, w, &[condition, a, b])
    }

    /// An arm, simplified by the value of the condition.
    fn arm(&mut self, t: Term, condition: Term, holds: bool) -> Term {
        let mut t = t;
        // Chains of choices are usually short; stopping early is right as well.
        for _ in 0..16 {
            if self.op(t) == Op::Ite {
                match self.decided(self.arg(t, 0), condition, holds) {
                    Some(true) => t = self.arg(t, 1),
                    Some(false) => t = self.arg(t, 2),
                    None => break,
                }
            } else {
                break;
            }
        }
        if let Some((inner, a, b)) = self.constant_choice(t)
            && let Some(known) = self.decided(inner, condition, holds)
        {
            return self.number(self.width(t), if known { a } else { b });
        }
        if self.width(t) == 1
            && let Some(known) = self.decided(t, condition, holds)
        {
            return self.number(1, known.into());
        }
        t
    }

    fn choice_of_bits(&mut self, condition: Term, a: Term, b: Term) -> Option<Term> {
        match (self.as_constant(a), self.as_constant(b)) {
            (Some(0), _) => {
                let other = self.complement(condition);
                return Some(self.all_of(1, &[other, b]));
            }
            (Some(_), _) => return Some(self.any_of(1, &[condition, b])),
            (_, Some(0)) => return Some(self.all_of(1, &[condition, a])),
            (_, Some(_)) => {
                let other = self.complement(condition);
                return Some(self.any_of(1, &[other, a]));
            }
            _ => {}
        }
        if self.are_opposite(a, b) {
            return Some(self.exclusive(1, &[condition, b]));
        }
        None
    }

    /// Merges arms that are choices sharing an arm with the other.
    fn merged(&mut self, condition: Term, a: Term, b: Term) -> Option<Term> {
        if self.op(b) == Op::Ite {
            let (inner, x, y) = (self.arg(b, 0), self.arg(b, 1), self.arg(b, 2));
            if x == a {
                let either = self.any_of(1, &[condition, inner]);
                return Some(self.choice(either, a, y));
            }
            if y == a {
                let other = self.complement(inner);
                let either = self.any_of(1, &[condition, other]);
                return Some(self.choice(either, a, x));
            }
        }
        if self.op(a) == Op::Ite {
            let (inner, x, y) = (self.arg(a, 0), self.arg(a, 1), self.arg(a, 2));
            if y == b {
                let both = self.all_of(1, &[condition, inner]);
                return Some(self.choice(both, x, b));
            }
            if x == b {
                let other = self.complement(inner);
                let both = self.all_of(1, &[condition, other]);
                return Some(self.choice(both, y, b));
            }
        }
        None
    }

    /// Moves an operation that both arms share out of the choice.
    fn shared(&mut self, w: u32, condition: Term, a: Term, b: Term) -> Option<Term> {
        let zeros = self.zeros_on_top(a).min(self.zeros_on_top(b));
        if zeros > 0 {
            let (a, b) = (self.slice(a, 0, w - zeros), self.slice(b, 0, w - zeros));
            let part = self.choice(condition, a, b);
            return Some(self.extend(part, w));
        }
        match (self.op(a), self.op(b)) {
            (Op::Sext, Op::Sext) => {
                let (a, b) = (self.arg(a, 0), self.arg(b, 0));
                if self.width(a) != self.width(b) {
                    return None;
                }
                let part = self.choice(condition, a, b);
                Some(self.extend_signed(part, w))
            }
            (Op::Not, Op::Not | Op::Constant(_)) | (Op::Constant(_), Op::Not) => {
                let (a, b) = (self.complement(a), self.complement(b));
                let part = self.choice(condition, a, b);
                Some(self.complement(part))
            }
            _ => None,
        }
    }
}
