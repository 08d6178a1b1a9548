//! a + b is b + a.

use crate::programs::equivalent_pairs::edit::At;
use ir3_compiler::ir3::Opcode;

/// Integer operations whose first two operands may change places.
pub(super) fn integers(at: &mut At<'_>) -> bool {
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

/// The same of floats. (Of a minimum of two NaNs it is not said which one it is.)
pub(super) fn floats(at: &mut At<'_>) -> bool {
    use Opcode::*;
    matches!(at.data().opcode, AddF | MulF | MadF16 | MadF32) && exchange(at)
}

fn exchange(at: &mut At<'_>) -> bool {
    let mut data = at.data().clone();
    if data.srcs.len() < 2 || (data.srcs[0].operand, data.srcs[0].mods) == (data.srcs[1].operand, data.srcs[1].mods) {
        return false;
    }
    data.srcs.swap(0, 1);
    at.replace(data)
}
