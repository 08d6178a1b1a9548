//! Commutativity: `a + b` is `b + a`.

use crate::equivalent_pairs::edit::RewriteSite;
use ir3_compiler::ir3::Opcode;
use ir3_compiler::ir3::opcode::Numeric;

/// Swaps the first two operands of commutative integer operations: those of the compiler's table, and `andg`, which no
/// pass swaps. A comparison would have to be mirrored.
pub(super) fn integers(at: &mut RewriteSite<'_>) -> bool {
    let opcode = at.data().opcode;
    let commutes = opcode.commutes() && opcode.info().numeric != Numeric::Float && !opcode.has_condition();
    (commutes || opcode == Opcode::Andg) && exchange(at)
}

/// Swaps the first two operands of commutative float operations. Minima and maxima are left out: which of two NaNs is
/// the result is not specified.
pub(super) fn floats(at: &mut RewriteSite<'_>) -> bool {
    let opcode = at.data().opcode;
    let of_nans = matches!(opcode, Opcode::MinF | Opcode::MaxF);
    let commutes = opcode.commutes() && opcode.info().numeric == Numeric::Float && !opcode.has_condition();
    commutes && !of_nans && exchange(at)
}

fn exchange(at: &mut RewriteSite<'_>) -> bool {
    let mut data = at.data().clone();
    if data.srcs.len() < 2 || (data.srcs[0].operand, data.srcs[0].mods) == (data.srcs[1].operand, data.srcs[1].mods) {
        return false;
    }
    data.srcs.swap(0, 1);
    at.replace(data)
}
