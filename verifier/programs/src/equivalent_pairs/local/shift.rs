//! Shifts: `x << k` is `x * 2^k`, and it is `x << j << (k - j)`.

use crate::equivalent_pairs::edit::RewriteSite;
use ir3_compiler::ir3::{Attrs, Mods, Opcode, Src, SrcOperand};

/// The opcode, the shifted value and the shift amount, if that is an immediate between 1 and the width less 1.
fn shift(at: &RewriteSite<'_>) -> Option<(Opcode, Src, u32)> {
    let (opcode, srcs) = at.uniform()?;
    let (Opcode::ShlB | Opcode::ShrB | Opcode::AshrB, [x, count]) = (opcode, &srcs[..]) else { return None };
    let SrcOperand::Immediate(k) = count.operand else { return None };
    let width = u32::from(at.class().bits());
    ((1..width).contains(&k) && count.mods.is_empty()).then_some((opcode, *x, k))
}

/// A 16-bit left shift as a product.
pub(super) fn product(at: &mut RewriteSite<'_>) -> bool {
    let Some((Opcode::ShlB, x, k)) = shift(at) else { return false };
    if !at.class().half || !x.mods.is_empty() {
        return false;
    }
    let Some(factor) = at.number(1 << k) else { return false };
    at.becomes(Opcode::MullU, &[x, factor], Attrs::None)
}

/// The last step of a left shift as `x + x`.
pub(super) fn doubled(at: &mut RewriteSite<'_>) -> bool {
    let Some((Opcode::ShlB, x, k)) = shift(at) else { return false };
    if !x.mods.is_empty() || matches!(x.operand, SrcOperand::Immediate(_)) {
        return false;
    }
    let half_way = match k {
        1 => x,
        _ => match at.before(Opcode::ShlB, &[x, Src::immediate(k - 1, x.class.half)], Attrs::None) {
            Some(src) => src,
            None => return false,
        },
    };
    at.becomes(Opcode::AddU, &[half_way, half_way], Attrs::None)
}

/// One shift as two.
pub(super) fn in_two(at: &mut RewriteSite<'_>) -> bool {
    let Some((opcode, x, k)) = shift(at).filter(|&(_, _, k)| k > 1) else { return false };
    let j = 1 + at.random.below(k as usize - 1) as u32;
    let half = x.class.half;
    let Some(first) = at.before(opcode, &[x, Src::immediate(j, half)], Attrs::None) else { return false };
    at.becomes(opcode, &[first, Src::immediate(k - j, half)], Attrs::None)
}

/// A 32-bit left shift as the multiplication by a power of two that the backend would emit.
pub(super) fn by_parts(at: &mut RewriteSite<'_>) -> bool {
    let Some((Opcode::ShlB, x, k)) = shift(at) else { return false };
    if at.class().half || x.mods != Mods::empty() || x.value().is_none() {
        return false;
    }
    let mut product = || {
        let factor = at.number(1 << k)?;
        let low = at.before(Opcode::MullU, &[x, factor], Attrs::None)?;
        let middle = at.before(Opcode::MadshM16, &[x, factor, low], Attrs::None)?;
        Some((factor, middle))
    };
    let Some((factor, middle)) = product() else { return false };
    at.becomes(Opcode::MadshM16, &[factor, x, middle], Attrs::None)
}
