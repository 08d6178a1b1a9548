//! Associativity: `(a + b) + c` is `a + (b + c)` for sums, 16-bit products and bitwise operations.

use crate::equivalent_pairs::edit::{RewriteSite, is_plain};
use ir3_compiler::ir3::{Attrs, Opcode, RegClass, RegFile, Src, WriteMask};

/// Returns true if the operation is associative on operands and results of this class. Of a 24-bit product only the
/// lowest 16 bits are.
fn is_associative(opcode: Opcode, class: RegClass) -> bool {
    use Opcode::*;
    match opcode {
        AddU | AddS | AndB | OrB | XorB | MinU | MaxU | MinS | MaxS => true,
        MulU24 | MulS24 | MullU => class.half,
        _ => false,
    }
}

/// The operands of the instruction that defines source `i`, if it has the same opcode.
fn inner(at: &RewriteSite<'_>, opcode: Opcode, srcs: &[Src], i: usize) -> Option<[Src; 2]> {
    let class = at.class();
    let data = at.definition(&srcs[i]).filter(|data| data.opcode == opcode && is_plain(data))?;
    let alike =
        data.dsts[0].class == class && data.srcs.iter().all(|src| src.class == class && src.mask == WriteMask::SCALAR);
    match data.srcs[..] {
        [a, b] if alike => Some([a, b]),
        _ => None,
    }
}

/// `(a + b) + c` as `a + (b + c)`.
pub(super) fn to_the_right(at: &mut RewriteSite<'_>) -> bool {
    reassociate(at, 0)
}

/// `a + (b + c)` as `(a + b) + c`.
pub(super) fn to_the_left(at: &mut RewriteSite<'_>) -> bool {
    reassociate(at, 1)
}

fn reassociate(at: &mut RewriteSite<'_>, nested: usize) -> bool {
    let Some((opcode, srcs)) = at.uniform() else { return false };
    let class = at.class();
    if class.file != RegFile::General || srcs.len() != 2 || !is_associative(opcode, class) {
        return false;
    }
    let Some([first, second]) = inner(at, opcode, &srcs, nested) else { return false };
    let (stays, meets) = if nested == 0 { (first, [second, srcs[1]]) } else { (second, [srcs[0], first]) };
    let Some(sum) = at.before(opcode, &meets, Attrs::None) else { return false };
    let operands = if nested == 0 { [stays, sum] } else { [sum, stays] };
    at.becomes(opcode, &operands, Attrs::None)
}
