//! Selects: with the condition inverted, as bits, and in place of minima.

use crate::programs::equivalent_pairs::edit::At;
use ir3_compiler::ir3::{Attrs, Condition, Mods, Opcode, Src};

const fn select(half: bool) -> Opcode {
    if half { Opcode::SelB16 } else { Opcode::SelB32 }
}

/// a if c else b, as b if c = 0 else a
pub(super) fn turned(at: &mut At<'_>) -> bool {
    let Some((opcode @ (Opcode::SelB16 | Opcode::SelB32), srcs)) = at.uniform() else { return false };
    let &[a, c, b] = &srcs[..] else { return false };
    let zero = Src::immediate(0, c.class.half);
    let Some(opposite) = at.before(Opcode::CmpsU, &[c, zero], Attrs::Compare(Condition::Eq)) else { return false };
    at.becomes(opcode, &[b, opposite, a], Attrs::None)
}

/// a if c else a, whatever c, is no select: the rule makes one of a value that is copied. Its condition is a comparison of
/// the value with itself, which is as undefined as the value is.
pub(super) fn of_a_copy(at: &mut At<'_>) -> bool {
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
pub(super) fn smaller(at: &mut At<'_>) -> bool {
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
