//! De Morgan's rules, exclusive or by other operations, and signs of floats by bitwise operations.

use crate::equivalent_pairs::edit::{RewriteSite, complement};
use ir3_compiler::ir3::{Attrs, Mods, Opcode, RegFile, Src, WriteMask};

/// Opcode and operands of a bitwise operation on general registers of one width, or on predicates.
fn operands(at: &RewriteSite<'_>) -> Option<(Opcode, [Src; 2])> {
    let data = at.data();
    let class = at.class();
    let (Opcode::AndB | Opcode::OrB | Opcode::XorB, &[a, b]) = (data.opcode, &data.srcs[..]) else { return None };
    let alike = |src: &Src| src.class == class && src.mask == WriteMask::SCALAR;
    (data.flags.is_empty() && alike(&a) && alike(&b)).then_some((data.opcode, [a, b]))
}

/// `a & b` as `~(~a | ~b)`, and the dual rule.
pub(super) fn de_morgan(at: &mut RewriteSite<'_>) -> bool {
    let Some((opcode, [a, b])) = operands(at) else { return false };
    let other = match opcode {
        Opcode::AndB => Opcode::OrB,
        Opcode::OrB => Opcode::AndB,
        _ => return false,
    };
    let Some(opposite) = at.before(other, &[complement(a), complement(b)], Attrs::None) else { return false };
    at.becomes(Opcode::NotB, &[opposite], Attrs::None)
}

/// `a ^ b` as `(a | b) & ~(a & b)`.
pub(super) fn exclusive_or(at: &mut RewriteSite<'_>) -> bool {
    let Some((Opcode::XorB, [a, b])) = operands(at) else { return false };
    let Some(either) = at.before(Opcode::OrB, &[a, b], Attrs::None) else { return false };
    let Some(both) = at.before(Opcode::AndB, &[a, b], Attrs::None) else { return false };
    at.becomes(Opcode::AndB, &[either, complement(both)], Attrs::None)
}

/// `a ^ b` as `(a | b) - (a & b)`.
pub(super) fn exclusive_difference(at: &mut RewriteSite<'_>) -> bool {
    let Some((Opcode::XorB, [a, b])) = operands(at).filter(|_| at.class().file == RegFile::General) else {
        return false;
    };
    let Some(either) = at.before(Opcode::OrB, &[a, b], Attrs::None) else { return false };
    let Some(both) = at.before(Opcode::AndB, &[a, b], Attrs::None) else { return false };
    at.becomes(Opcode::SubU, &[either, both], Attrs::None)
}

/// Negation and absolute value of a float by its sign bit.
pub(super) fn sign_bit(at: &mut RewriteSite<'_>) -> bool {
    let Some((Opcode::AbsnegF, srcs)) = at.uniform() else { return false };
    let &[mut src] = &srcs[..] else { return false };
    let sign = if src.class.half { 0x8000 } else { 0x8000_0000 };
    let (opcode, mask) = match (src.mods.contains(Mods::NEG), src.mods.contains(Mods::ABS)) {
        (true, false) => (Opcode::XorB, sign),
        (false, true) => (Opcode::AndB, sign - 1),
        (true, true) => (Opcode::OrB, sign),
        (false, false) => return false,
    };
    src.mods = Mods::empty();
    let Some(mask) = at.number(mask) else { return false };
    at.becomes(opcode, &[src, mask], Attrs::None)
}
