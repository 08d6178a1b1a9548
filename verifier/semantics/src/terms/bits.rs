//! Complement, and, exclusive or. An or is the complement of an and of complements, so De Morgan's laws need no rule.
//!
//! An `And` has its constant first, then two or more terms in order, none of them an `And`, no two of them complements.
//! Subterms of a disjunction in it (a complement of an `And`) that the other terms decide are dropped. The same holds
//! for an `Xor`; complements are moved from its terms into its constant, or around it.
//!
//! If an argument is a concatenation, or a mask selects part of a vector, the operation is done piece by piece: a mask
//! of adjacent bits is a slice with zeros around.

use super::{Args, MANY, Op, Term, Terms};
use crate::arithmetic::concrete::mask;

/// A mask with more runs of equal bits than this does not cut.
const RUNS: u32 = 8;
/// The same for the constant of an exclusive or.
const FLIPPED_RUNS: u32 = 3;

/// The set of bits that differ from the bit below, without bit 0.
fn changes(w: u32, bits: u64) -> u64 {
    (bits ^ bits << 1) & mask(w) & !1
}

impl Terms {
    /// The complement.
    pub(super) fn complement(&mut self, t: Term) -> Term {
        let w = self.width(t);
        match self.op(t) {
            Op::Constant(bits) => return self.number(w, !bits),
            Op::Not => return self.arg(t, 0),
            // A longer sum would not be merged into another sum.
            Op::Add if self.nodes[t].args.len() <= MANY => {
                let ones = self.number(w, u64::MAX);
                return self.difference(w, ones, t);
            }
            Op::Mul if self.coefficient(t).is_some() => {
                let ones = self.number(w, u64::MAX);
                return self.difference(w, ones, t);
            }
            Op::Sext => {
                let of = self.complement(self.arg(t, 0));
                return self.extend_signed(of, w);
            }
            Op::Concat | Op::Zext => {
                let pieces = self.pieces(t);
                let mut parts: Args = pieces.iter().map(|&piece| self.complement(piece)).collect();
                parts.reverse();
                return self.join(&parts);
            }
            Op::Xor => {
                if let Some(bits) = self.as_constant(self.arg(t, 0)) {
                    let mut args = self.args(t);
                    args[0] = self.number(w, !bits);
                    return self.exclusive(w, &args);
                }
            }
            Op::Ite => {
                if let Some((condition, a, b)) = self.constant_choice(t) {
                    return self.choose(w, condition, !a & mask(w), !b & mask(w));
                }
            }
            _ => {}
        }
        self.intern(Op::Not, w, &[t])
    }

    /// Returns true if two terms are complements by their form.
    pub(super) fn are_opposite(&self, a: Term, b: Term) -> bool {
        self.op(a) == Op::Not && self.arg(a, 0) == b || self.op(b) == Op::Not && self.arg(b, 0) == a
    }

    /// The complement, if it is a node already; if it is not, no set of terms contains it.
    pub(super) fn known_complement(&self, t: Term) -> Option<Term> {
        match self.op(t) {
            Op::Not => Some(self.arg(t, 0)),
            _ => self.find(Op::Not, self.width(t), &[t]),
        }
    }

    /// The or of all terms.
    pub(super) fn any_of(&mut self, w: u32, args: &[Term]) -> Term {
        let args: Args = args.iter().map(|&arg| self.complement(arg)).collect();
        let none = self.all_of(w, &args);
        self.complement(none)
    }

    /// The and of all terms.
    pub(super) fn all_of(&mut self, w: u32, args: &[Term]) -> Term {
        let mut bits = mask(w);
        let mut set = Args::new();
        let count: usize = args.iter().map(|&arg| self.flat_len(Op::And, arg)).sum();
        for &arg in args {
            match self.op(arg) {
                Op::Constant(other) => bits &= other,
                Op::And if count <= MANY => {
                    for &inner in &self.nodes[arg].args {
                        match self.op(inner) {
                            Op::Constant(other) => bits &= other,
                            _ => set.push(inner),
                        }
                    }
                }
                _ => set.push(arg),
            }
        }
        if bits == 0 {
            return self.number(w, 0);
        }
        set.sort_unstable();
        set.dedup();
        if set.iter().any(|&t| self.op(t) == Op::Not && set.binary_search(&self.arg(t, 0)).is_ok()) {
            return self.number(w, 0);
        }
        if let Some(fewer) = self.decided_clauses(w, &set) {
            let mut fewer = fewer;
            if bits != mask(w) {
                fewer.push(self.number(w, bits));
            }
            return self.all_of(w, &fewer);
        }
        if w == 1 {
            if let Some(term) = self.of_equalities(&set) {
                return term;
            }
            if let Some(term) = self.common_factor(&set) {
                return term;
            }
        } else if let Some(term) = self.and_of_parts(w, bits, &set) {
            return term;
        }
        self.node_with_constant(Op::And, w, bits, mask(w), &set)
    }

    /// The form of an and of extensions or concatenations.
    fn and_of_parts(&mut self, w: u32, bits: u64, set: &[Term]) -> Option<Term> {
        if let &[only] = set
            && bits != mask(w)
            && let Some((condition, a, b)) = self.constant_choice(only)
        {
            return Some(self.choose(w, condition, a & bits, b & bits));
        }
        // A mask of one bit is a choice.
        let is_sign = |terms: &Self, t: Term| terms.op(t) == Op::Sext && terms.width(terms.arg(t, 0)) == 1;
        if set.len() + usize::from(bits != mask(w)) > 1
            && let Some(at) = set.iter().position(|&t| is_sign(self, t))
        {
            let mut rest = Args::from_slice(set);
            let sign = rest.remove(at);
            let condition = self.arg(sign, 0);
            rest.push(self.number(w, bits));
            let rest = self.all_of(w, &rest);
            let zero = self.number(w, 0);
            return Some(self.choice(condition, rest, zero));
        }
        if let Some(term) = self.of_extended(Op::And, w, bits, mask(w), set) {
            return Some(term);
        }
        let mut cuts = 0;
        if changes(w, bits).count_ones() < RUNS {
            cuts |= changes(w, bits);
        }
        self.cut_up(Op::And, w, bits, cuts, set)
    }

    /// The exclusive or of terms.
    pub(super) fn exclusive(&mut self, w: u32, args: &[Term]) -> Term {
        let mut bits = 0;
        let mut set = Args::new();
        let count: usize = args.iter().map(|&arg| self.flat_len(Op::Xor, arg)).sum();
        for &arg in args {
            let mut arg = arg;
            if self.op(arg) == Op::Not {
                bits ^= mask(w);
                arg = self.arg(arg, 0);
            }
            match self.op(arg) {
                Op::Constant(other) => bits ^= other,
                Op::Xor if count <= MANY => {
                    for &inner in &self.nodes[arg].args {
                        match self.op(inner) {
                            Op::Constant(other) => bits ^= other,
                            _ => set.push(inner),
                        }
                    }
                }
                _ => set.push(arg),
            }
        }
        // Pairs of equal terms cancel.
        set.sort_unstable();
        let mut kept = Args::new();
        for t in set {
            if kept.last() == Some(&t) {
                kept.pop();
            } else {
                kept.push(t);
            }
        }
        let set = kept;
        match set[..] {
            [] => return self.number(w, bits),
            [only] if bits == 0 => return only,
            [only] if bits == mask(w) => return self.complement(only),
            _ => {}
        }
        if w > 1 {
            if let [only] = set[..]
                && let Some((condition, a, b)) = self.constant_choice(only)
            {
                return self.choose(w, condition, a ^ bits, b ^ bits);
            }
            let whole = bits == mask(w);
            let inner = if whole { 0 } else { bits };
            if let Some(term) = self.of_extended(Op::Xor, w, inner, 0, &set) {
                return if whole { self.complement(term) } else { term };
            }
            let cuts = if changes(w, bits).count_ones() < FLIPPED_RUNS { changes(w, bits) } else { 0 };
            if let Some(term) = self.cut_up(Op::Xor, w, bits, cuts, &set) {
                return term;
            }
        }
        if bits == mask(w) {
            let flipped = self.intern(Op::Xor, w, &set);
            return self.intern(Op::Not, w, &[flipped]);
        }
        self.node_with_constant(Op::Xor, w, bits, 0, &set)
    }

    /// The bits in reverse order. Two reversals cancel; a bit, and copies of one, are their own reversal.
    pub(super) fn reversed(&mut self, w: u32, t: Term) -> Term {
        match self.op(t) {
            Op::Reverse => self.arg(t, 0),
            _ if w == 1 => t,
            Op::Sext if self.width(self.arg(t, 0)) == 1 => t,
            _ => self.plain(Op::Reverse, w, &[t]),
        }
    }

    /// The number of arguments that a term adds to an operation that it is merged into.
    fn flat_len(&self, op: Op, t: Term) -> usize {
        let t = if op == Op::Xor && self.op(t) == Op::Not { self.arg(t, 0) } else { t };
        if self.op(t) == op { self.nodes[t].args.len() } else { 1 }
    }

    fn node_with_constant(&mut self, op: Op, w: u32, bits: u64, neutral: u64, set: &[Term]) -> Term {
        let mut args = Args::new();
        if bits != neutral || set.is_empty() {
            args.push(self.number(w, bits));
        }
        args.extend_from_slice(set);
        if args.len() == 1 { args[0] } else { self.intern(op, w, &args) }
    }

    /// An operation on sign extensions is the sign extension of the operation.
    fn of_extended(&mut self, op: Op, w: u32, bits: u64, neutral: u64, set: &[Term]) -> Option<Term> {
        let &first = set.first()?;
        if self.op(first) != Op::Sext || set.len() < 2 && bits == neutral {
            return None;
        }
        let n = self.width(self.arg(first, 0));
        let fits = bits >> (n - 1) == 0 || bits >> (n - 1) == mask(w) >> (n - 1);
        let all = set.iter().all(|&t| self.op(t) == Op::Sext && self.width(self.arg(t, 0)) == n);
        if !fits || !all {
            return None;
        }
        let mut args: Args = set.iter().map(|&t| self.arg(t, 0)).collect();
        args.push(self.number(n, bits));
        let part = self.rebuild(op, n, &args);
        Some(self.extend_signed(part, w))
    }

    /// The operation piece by piece, if there are cuts.
    fn cut_up(&mut self, op: Op, w: u32, bits: u64, mut cuts: u64, set: &[Term]) -> Option<Term> {
        for &t in set {
            cuts |= self.cuts(t);
        }
        if cuts == 0 {
            return None;
        }
        let mut args = Args::from_slice(set);
        args.push(self.number(w, bits));
        Some(self.piecewise(w, cuts, &args, |terms, n, parts| terms.rebuild(op, n, parts)))
    }
}
