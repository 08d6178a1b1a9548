//! Parts of vectors: slices, extensions, concatenation.
//!
//! A concatenation has one form, made by [`Terms::assemble`] from its pieces, lowest first. Adjacent slices of one term
//! become one piece; high zeros are a `Zext`, low zeros a multiplication by a power of two (so that shifts are
//! coefficients of sums), and the rest is a chain of `Concat`, the highest piece outermost. [`Terms::pieces`] is the
//! inverse.
//!
//! A slice is moved into every operation whose result bits depend on the same bits of its arguments only (and, for low
//! slices, into sums and products), so an `Extract` is of a term that cannot be split.

use super::{Args, DEEP, Op, Term, Terms};
use crate::arithmetic::concrete::{mask, signed};
use smallvec::SmallVec;

/// The largest number of operations that are compared to find that two pieces are parts of one term.
const RELATED: u32 = 6;

impl Terms {
    /// `n` bits starting at bit `low`.
    pub(super) fn slice(&mut self, t: Term, low: u32, n: u32) -> Term {
        let w = self.width(t);
        if n == w {
            return t;
        }
        match self.op(t) {
            Op::Constant(bits) => return self.number(n, bits >> low),
            Op::Extract(before) => {
                let of = self.arg(t, 0);
                return self.slice(of, low + u32::from(before), n);
            }
            Op::Concat => return self.slice_of_concat(self.arg(t, 0), self.arg(t, 1), low, n),
            Op::Zext => {
                let of = self.arg(t, 0);
                let m = self.width(of);
                if low >= m {
                    return self.number(n, 0);
                }
                let part = self.slice(of, low, n.min(m - low));
                return self.extend(part, n);
            }
            Op::Sext => {
                let of = self.arg(t, 0);
                let m = self.width(of);
                let low = low.min(m - 1);
                let part = self.slice(of, low, n.min(m - low));
                return self.extend_signed(part, n);
            }
            _ => {}
        }
        if let Some((fixed, bits, rest)) = self.without_fixed_bits(t) {
            if low + n <= fixed {
                return self.number(n, bits >> low);
            }
            if low >= fixed {
                return self.slice(rest, low - fixed, n);
            }
            let high = self.slice(rest, 0, low + n - fixed);
            let bottom = self.number(fixed - low, bits >> low);
            return self.join(&[high, bottom]);
        }
        let through = match self.op(t) {
            Op::Not | Op::And | Op::Xor | Op::Ite => true,
            Op::Add | Op::Mul => low + n < w,
            _ => false,
        };
        if !through && self.op(t) == Op::Add {
            // For a sum and its complement, which is a sum too, slice the earlier term.
            let other = self.complement(t);
            if other < t && self.op(other) == Op::Add {
                let part = self.intern(Op::Extract(low as u8), n, &[other]);
                return self.complement(part);
            }
        }
        if !through || self.depths[t] > DEEP {
            return self.intern(Op::Extract(low as u8), n, &[t]);
        }
        let key = (t, low as u8, n as u8);
        if let Some(&known) = self.slices.get(&key) {
            return known;
        }
        let slice = self.slice_through(t, low, n);
        self.slices.insert(key, slice);
        if self.as_constant(slice).is_none() {
            self.parts.entry(t).or_default().push((low as u8, slice));
        }
        slice
    }

    fn slice_of_concat(&mut self, high: Term, bottom: Term, low: u32, n: u32) -> Term {
        let m = self.width(bottom);
        if low + n <= m {
            self.slice(bottom, low, n)
        } else if low >= m {
            self.slice(high, low - m, n)
        } else {
            let bottom = self.slice(bottom, low, m - low);
            let high = self.slice(high, 0, low + n - m);
            self.join(&[high, bottom])
        }
    }

    /// The operation on slices of the arguments.
    fn slice_through(&mut self, t: Term, low: u32, n: u32) -> Term {
        let args = self.args(t);
        let op = self.op(t);
        match op {
            Op::Ite => {
                let (a, b) = (self.slice(args[1], low, n), self.slice(args[2], low, n));
                self.choice(args[0], a, b)
            }
            Op::Add | Op::Mul if low > 0 => {
                // Higher bits have no effect.
                let narrow = self.slice(t, 0, low + n);
                self.slice(narrow, low, n)
            }
            _ => {
                let args: Args = args.iter().map(|&arg| self.slice(arg, low, n)).collect();
                self.rebuild(op, n, &args)
            }
        }
    }

    /// For a multiple of a power of two by its form: the exponent, and the quotient, whose high bits are unspecified.
    fn without_low_zeros(&mut self, t: Term) -> Option<(u32, Term)> {
        let zeros = self.low_zeros(t);
        (zeros > 0).then(|| (zeros, self.scaled_down(t, zeros)))
    }

    /// For a sum or product whose lowest bits depend on its constant only: their number, their value, and the rest,
    /// whose high bits are unspecified.
    fn without_fixed_bits(&mut self, t: Term) -> Option<(u32, u64, Term)> {
        let number = match self.op(t) {
            Op::Add => self.as_constant(self.arg(t, 0)).unwrap_or(0),
            _ => 0,
        };
        let fixed = self.fixed_low_bits(t);
        (fixed > 0).then(|| (fixed, number & mask(fixed), self.scaled_down(t, fixed)))
    }

    /// The pieces of a vector, lowest first.
    pub(super) fn pieces(&mut self, t: Term) -> Args {
        let mut out = Args::new();
        self.push_pieces(t, &mut out);
        out
    }

    fn push_pieces(&mut self, t: Term, out: &mut Args) {
        let w = self.width(t);
        match self.op(t) {
            Op::Concat => {
                let (high, low) = (self.arg(t, 0), self.arg(t, 1));
                self.push_pieces(low, out);
                self.push_pieces(high, out);
            }
            Op::Zext => {
                let of = self.arg(t, 0);
                self.push_pieces(of, out);
                let zeros = self.number(w - self.width(of), 0);
                out.push(zeros);
            }
            Op::Add | Op::Mul => match self.without_low_zeros(t) {
                Some((zeros, rest)) => {
                    let zero = self.number(zeros, 0);
                    out.push(zero);
                    let rest = self.slice(rest, 0, w - zeros);
                    self.push_pieces(rest, out);
                }
                None => out.push(t),
            },
            _ => out.push(t),
        }
    }

    /// Returns true if a vector is a concatenation.
    pub(super) fn has_pieces(&self, t: Term) -> bool {
        match self.op(t) {
            Op::Concat | Op::Zext => true,
            Op::Add | Op::Mul => self.low_zeros(t) > 0,
            _ => false,
        }
    }

    /// The bits at which the pieces of a vector begin, without 0, as a set.
    pub(super) fn cuts(&mut self, t: Term) -> u64 {
        if !self.has_pieces(t) {
            return 0;
        }
        let (mut cuts, mut at) = (0, 0);
        for piece in self.pieces(t) {
            cuts |= 1 << at;
            at += self.width(piece);
        }
        cuts & !1
    }

    /// A vector of parts, the first highest.
    pub(super) fn join(&mut self, parts: &[Term]) -> Term {
        let mut pieces = Args::new();
        for &part in parts.iter().rev() {
            self.push_pieces(part, &mut pieces);
        }
        self.assemble(&pieces)
    }

    /// The concatenation of some pieces, lowest first, none of which is a concatenation.
    pub(super) fn assemble(&mut self, pieces: &[Term]) -> Term {
        let mut merged = Args::new();
        for &piece in pieces {
            let mut piece = piece;
            while let Some(&below) = merged.last() {
                let Some(both) = self.related(piece, below, RELATED) else { break };
                merged.pop();
                if self.has_pieces(both) {
                    // A merged piece may be a concatenation itself.
                    let mut all = merged;
                    self.push_pieces(both, &mut all);
                    merged = all;
                    let Some(last) = merged.pop() else { break };
                    piece = last;
                    break;
                }
                piece = both;
            }
            merged.push(piece);
        }
        self.vector(&merged)
    }

    /// The concatenation of pieces that cannot be merged.
    fn vector(&mut self, pieces: &[Term]) -> Term {
        let w: u32 = pieces.iter().map(|&piece| self.width(piece)).sum();
        let (lowest, highest) = (pieces[0], pieces[pieces.len() - 1]);
        if pieces.len() == 1 {
            return lowest;
        }
        if self.as_constant(lowest) == Some(0) {
            let rest = self.vector(&pieces[1..]);
            return self.scaled_up(w, self.width(lowest), rest);
        }
        if let Some(bits) = self.as_constant(highest) {
            let used = 64 - bits.leading_zeros();
            if used < self.width(highest) {
                let mut rest = Args::from_slice(&pieces[..pieces.len() - 1]);
                if used > 0 {
                    rest.push(self.number(used, bits));
                }
                let rest = self.vector(&rest);
                return self.zeros_above(rest, w);
            }
        }
        let below = self.vector(&pieces[..pieces.len() - 1]);
        self.intern(Op::Concat, w, &[highest, below])
    }

    /// Zero-extends a term without high zeros.
    fn zeros_above(&mut self, t: Term, to: u32) -> Term {
        match self.constant_choice(t) {
            Some((condition, a, b)) if self.width(t) > 1 => self.choose(to, condition, a, b),
            _ => self.intern(Op::Zext, to, &[t]),
        }
    }

    /// Zero extension.
    pub(super) fn extend(&mut self, t: Term, to: u32) -> Term {
        let w = self.width(t);
        if w == to {
            return t;
        }
        match self.op(t) {
            Op::Constant(bits) => self.number(to, bits),
            Op::Zext => {
                let of = self.arg(t, 0);
                self.zeros_above(of, to)
            }
            _ if self.has_pieces(t) => {
                let zeros = self.number(to - w, 0);
                self.join(&[zeros, t])
            }
            _ => self.zeros_above(t, to),
        }
    }

    /// Sign extension.
    pub(super) fn extend_signed(&mut self, t: Term, to: u32) -> Term {
        let w = self.width(t);
        if w == to {
            return t;
        }
        match self.op(t) {
            Op::Constant(bits) => self.number(to, signed(w, bits) as u64),
            Op::Sext => {
                let of = self.arg(t, 0);
                self.extend_signed(of, to)
            }
            Op::Zext => self.extend(t, to),
            _ if self.has_pieces(t) => {
                let mut pieces = self.pieces(t);
                if let Some(top) = pieces.last_mut() {
                    *top = self.extend_signed(*top, to - w + self.width(*top));
                }
                self.assemble(&pieces)
            }
            _ => match self.constant_choice(t) {
                Some((condition, a, b)) if w > 1 => {
                    self.choose(to, condition, signed(w, a) as u64 & mask(to), signed(w, b) as u64 & mask(to))
                }
                _ => self.intern(Op::Sext, to, &[t]),
            },
        }
    }

    /// The term of which two adjacent pieces are slices, if there is one. `effort` bounds the search.
    fn related(&mut self, high: Term, low: Term, effort: u32) -> Option<Term> {
        let (m, n) = (self.width(high), self.width(low));
        let w = m + n;
        match (self.op(high), self.op(low)) {
            (Op::Constant(a), Op::Constant(b)) => return Some(self.number(w, a << n | b)),
            (Op::Extract(at), Op::Extract(below)) if self.arg(high, 0) == self.arg(low, 0) => {
                return (u32::from(at) == u32::from(below) + n).then(|| self.slice(self.arg(high, 0), below.into(), w));
            }
            (Op::Extract(at), _) if u32::from(at) >= n => {
                // The low slice may have been moved into the operation.
                let of = self.arg(high, 0);
                if self.slice(of, u32::from(at) - n, n) == low {
                    return Some(self.slice(of, u32::from(at) - n, w));
                }
            }
            _ => {}
        }
        if let Some(sign) = self.copies(high)
            && self.slice(low, n - 1, 1) == sign
            && self.as_constant(low).is_none()
        {
            return Some(self.extend_signed(low, w));
        }
        if let Some(both) = self.related_choices(high, low) {
            return Some(both);
        }
        if effort == 0 || self.op(high) != self.op(low) {
            return None;
        }
        match self.op(high) {
            Op::Not => {
                let both = self.related(self.arg(high, 0), self.arg(low, 0), effort - 1)?;
                Some(self.complement(both))
            }
            Op::Ite if self.arg(high, 0) == self.arg(low, 0) => {
                let a = self.join(&[self.arg(high, 1), self.arg(low, 1)]);
                let b = self.join(&[self.arg(high, 2), self.arg(low, 2)]);
                Some(self.choice(self.arg(high, 0), a, b))
            }
            op @ (Op::And | Op::Xor) => {
                let (a, mut b) = (self.args(high), self.args(low));
                if a.len() != b.len() || a.len() > 4 {
                    return None;
                }
                let mut both = Args::new();
                for x in a {
                    let (at, whole) =
                        (0..b.len()).find_map(|i| Some((i, self.related(x, b[i], effort.min(3) - 1)?)))?;
                    b.swap_remove(at);
                    both.push(whole);
                }
                Some(self.rebuild(op, w, &both))
            }
            _ => None,
        }
    }

    /// The bit of which a vector has copies.
    fn copies(&self, t: Term) -> Option<Term> {
        match self.op(t) {
            Op::Constant(_) => None,
            _ if self.width(t) == 1 => Some(t),
            Op::Sext if self.width(self.arg(t, 0)) == 1 => Some(self.arg(t, 0)),
            _ => None,
        }
    }

    /// Merges choices between constants by one condition, of more than a bit.
    fn related_choices(&mut self, high: Term, low: Term) -> Option<Term> {
        let (m, n) = (self.width(high), self.width(low));
        let one = |terms: &Self, t: Term| match terms.op(t) {
            Op::Constant(bits) => Some((None, bits, bits)),
            _ if terms.width(t) == 1 => None,
            _ => terms.constant_choice(t).map(|(condition, a, b)| (Some(condition), a, b)),
        };
        let ((c, a, b), (d, x, y)) = (one(self, high)?, one(self, low)?);
        let condition = c.or(d)?;
        if d.is_some_and(|d| d != condition) {
            return None;
        }
        Some(self.choose(m + n, condition, a << n | x, b << n | y))
    }

    /// Applies an operation to vectors piece by piece, cut at `cuts`.
    pub(super) fn piecewise(
        &mut self,
        w: u32,
        cuts: u64,
        args: &[Term],
        mut each: impl FnMut(&mut Self, u32, &[Term]) -> Term,
    ) -> Term {
        let mut pieces = SmallVec::<[Term; 8]>::new();
        let mut low = 0;
        while low < w {
            let above = (low + 1..w).find(|&bit| cuts >> bit & 1 != 0).unwrap_or(w);
            let n = above - low;
            let parts: Args = args.iter().map(|&arg| self.slice(arg, low, n)).collect();
            pieces.push(each(self, n, &parts));
            low = above;
        }
        pieces.reverse();
        self.join(&pieces)
    }
}
