//! Selects: with the condition inverted, in place of a copy, and in place of minima and maxima.

use crate::equivalent_pairs::edit::RewriteSite;
use ir3_compiler::ir3::{Attrs, Condition, Mods, Opcode, Src};

const fn select(half: bool) -> Opcode {
    if half { Opcode::SelB16 } else { Opcode::SelB32 }
}

/// `a if c else b` as `b if c = 0 else a`.
pub(super) fn turned(at: &mut RewriteSite<'_>) -> bool {
    let Some((opcode @ (Opcode::SelB16 | Opcode::SelB32), srcs)) = at.uniform() else { return false };
    let &[a, c, b] = &srcs[..] else { return false };
    let zero = Src::immediate(0, c.class.half);
    let Some(opposite) = at.before(Opcode::CmpsU, &[c, zero], Attrs::Compare(Condition::Eq)) else { return false };
    at.becomes(opcode, &[b, opposite, a], Attrs::None)
}

/// `a` as `a if c else a`, for a value that is copied. The condition compares the value with itself, so it is undefined
/// only where the value is.
pub(super) fn of_a_copy(at: &mut RewriteSite<'_>) -> bool {
    let Some((Opcode::Mov, srcs)) = at.uniform() else { return false };
    let &[a] = &srcs[..] else { return false };
    let plain = at.data().move_types().is_some_and(|(from, to)| from == to);
    if !plain || a.value().is_none() || a.mods != Mods::empty() {
        return false;
    }
    let half = a.class.half;
    let Some(same) = at.before(Opcode::CmpsU, &[a, a], Attrs::Compare(Condition::Ne)) else { return false };
    at.becomes(select(half), &[a, same, a], Attrs::None)
}

/// A minimum or maximum as a comparison and a select.
pub(super) fn smaller(at: &mut RewriteSite<'_>) -> bool {
    let Some((opcode, srcs)) = at.uniform() else { return false };
    let (compare, condition) = match opcode {
        Opcode::MinU => (Opcode::CmpsU, Condition::Lt),
        Opcode::MinS => (Opcode::CmpsS, Condition::Lt),
        Opcode::MaxU => (Opcode::CmpsU, Condition::Gt),
        Opcode::MaxS => (Opcode::CmpsS, Condition::Gt),
        _ => return false,
    };
    let &[a, b] = &srcs[..] else { return false };
    let Some(first) = at.before(compare, &[a, b], Attrs::Compare(condition)) else { return false };
    at.becomes(select(a.class.half), &[a, first, b], Attrs::None)
}
