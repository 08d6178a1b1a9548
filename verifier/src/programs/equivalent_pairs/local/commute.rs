//! Commutativity: `a + b` is `b + a`.

use crate::programs::equivalent_pairs::edit::RewriteSite;
use ir3_compiler::ir3::Opcode;

/// Swaps the first two operands of commutative integer operations.
pub(super) fn integers(at: &mut RewriteSite<'_>) -> bool {
    use Opcode::*;
    let commutes = matches!(
        at.data().opcode,
        AddU | AddS
            | MinU
            | MinS
            | MaxU
            | MaxS
            | AndB
            | OrB
            | XorB
            | MulU24
            | MulS24
            | MullU
            | MadU16
            | MadS16
            | MadU24
            | MadS24
            | Andg
    );
    commutes && exchange(at)
}

/// Swaps the first two operands of commutative float operations. Minima and maxima are left out: which of two NaNs is
/// the result is not specified.
pub(super) fn floats(at: &mut RewriteSite<'_>) -> bool {
    use Opcode::*;
    matches!(at.data().opcode, AddF | MulF | MadF16 | MadF32) && exchange(at)
}

fn exchange(at: &mut RewriteSite<'_>) -> bool {
    let mut data = at.data().clone();
    if data.srcs.len() < 2 || (data.srcs[0].operand, data.srcs[0].mods) == (data.srcs[1].operand, data.srcs[1].mods) {
        return false;
    }
    data.srcs.swap(0, 1);
    at.replace(data)
}
