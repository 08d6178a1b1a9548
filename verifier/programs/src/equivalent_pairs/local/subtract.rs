//! Differences: `x - y` is `x + (-y)`, and `-y` is `~y + 1`.

use crate::equivalent_pairs::edit::{RewriteSite, complement};
use ir3_compiler::ir3::{Attrs, Mods, Opcode, Src};

fn difference(at: &RewriteSite<'_>) -> Option<[Src; 2]> {
    let (opcode, srcs) = at.uniform()?;
    match (opcode, &srcs[..]) {
        (Opcode::SubU | Opcode::SubS, &[a, b]) => Some([a, b]),
        _ => None,
    }
}

fn negative(at: &mut RewriteSite<'_>, src: Src) -> Option<Src> {
    at.before(Opcode::AbsnegS, &[src.with_mods(Mods::NEG)], Attrs::None)
}

/// `x - y` as `x + (-y)`.
pub(super) fn negated(at: &mut RewriteSite<'_>) -> bool {
    let Some([a, b]) = difference(at) else { return false };
    let Some(b) = negative(at, b) else { return false };
    at.becomes(Opcode::AddU, &[a, b], Attrs::None)
}

/// `x - y` as `x + ~y + 1`, or as `~(~x + y)`.
pub(super) fn by_complement(at: &mut RewriteSite<'_>) -> bool {
    let Some([a, b]) = difference(at) else { return false };
    if at.random.chance(50) {
        let Some(inverse) = at.before(Opcode::NotB, &[b], Attrs::None) else { return false };
        let Some(sum) = at.before(Opcode::AddU, &[a, inverse], Attrs::None) else { return false };
        at.becomes(Opcode::AddU, &[sum, Src::immediate(1, b.class.half)], Attrs::None)
    } else {
        let Some(inverse) = at.before(Opcode::OrB, &[complement(a), complement(a)], Attrs::None) else { return false };
        let Some(sum) = at.before(Opcode::AddU, &[inverse, b], Attrs::None) else { return false };
        at.becomes(Opcode::NotB, &[sum], Attrs::None)
    }
}

/// `x + y` as `x - (-y)`.
pub(super) fn of_sum(at: &mut RewriteSite<'_>) -> bool {
    let Some((Opcode::AddU | Opcode::AddS, srcs)) = at.uniform() else { return false };
    let &[a, b] = &srcs[..] else { return false };
    let Some(b) = negative(at, b) else { return false };
    at.becomes(Opcode::SubU, &[a, b], Attrs::None)
}
