//! Comparisons: `a < b` is `b > a`, and it is `!(a >= b)`.

use crate::equivalent_pairs::edit::RewriteSite;
use ir3_compiler::ir3::{Attrs, Condition, Opcode, RegFile, Src};

const fn turned_condition(condition: Condition) -> Condition {
    use Condition::*;
    match condition {
        Lt => Gt,
        Le => Ge,
        Gt => Lt,
        Ge => Le,
        Eq => Eq,
        Ne => Ne,
    }
}

const fn inverse(condition: Condition) -> Condition {
    use Condition::*;
    match condition {
        Lt => Ge,
        Le => Gt,
        Gt => Le,
        Ge => Lt,
        Eq => Ne,
        Ne => Eq,
    }
}

/// Swaps the operands and mirrors the condition.
pub(super) fn turned(at: &mut RewriteSite<'_>) -> bool {
    let mut data = at.data().clone();
    let (Opcode::CmpsF | Opcode::CmpsS | Opcode::CmpsU, Attrs::Compare(condition)) = (data.opcode, &mut data.attrs)
    else {
        return false;
    };
    *condition = turned_condition(*condition);
    if data.srcs.len() != 2 {
        return false;
    }
    data.srcs.swap(0, 1);
    at.replace(data)
}

/// Inverts the result of the opposite comparison. With a NaN both comparisons are false, so floats are left alone.
pub(super) fn inverted(at: &mut RewriteSite<'_>) -> bool {
    let data = at.data();
    let (Opcode::CmpsS | Opcode::CmpsU, Attrs::Compare(condition)) = (data.opcode, &data.attrs) else { return false };
    let (opcode, condition) = (data.opcode, *condition);
    let srcs: Vec<Src> = data.srcs.to_vec();
    let class = at.class();
    if srcs.len() != 2 || class.file != RegFile::General {
        return false;
    }
    let Some(opposite) = at.before(opcode, &srcs, Attrs::Compare(inverse(condition))) else { return false };
    at.becomes(Opcode::XorB, &[opposite, Src::immediate(1, class.half)], Attrs::None)
}
