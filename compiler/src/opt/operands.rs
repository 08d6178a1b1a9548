//! Places an operand into a slot that can encode it.

use crate::ir3::legality::valid_source;
use crate::ir3::{Attrs, Condition, Instr, Program, Src};
use crate::target::Target;

/// Makes `new` the source `slot`, or, if the slot cannot encode it, the other source of a commutative operation;
/// returns true if it did. `may` is called before the change.
pub fn place(
    program: &mut Program,
    target: &Target,
    instr: Instr,
    slot: usize,
    new: Src,
    may: impl FnOnce() -> bool,
) -> bool {
    let data = &mut program.instrs[instr];
    if valid_source(target, data, slot, &new) {
        let placed = may();
        if placed {
            data.srcs[slot] = new;
        }
        return placed;
    }
    if slot > 1 || !data.opcode.commutes() {
        return false;
    }
    let old = std::mem::replace(&mut data.srcs[slot], new);
    data.srcs.swap(0, 1);
    let valid = [0, 1].iter().all(|&k| valid_source(target, data, k, &data.srcs[k])) && may();
    if !valid {
        data.srcs.swap(0, 1);
        data.srcs[slot] = old;
    } else if let Attrs::Compare(condition) = &mut data.attrs {
        *condition = mirrored(*condition);
    }
    valid
}

/// The equivalent condition for swapped operands.
fn mirrored(condition: Condition) -> Condition {
    match condition {
        Condition::Lt => Condition::Gt,
        Condition::Le => Condition::Ge,
        Condition::Gt => Condition::Lt,
        Condition::Ge => Condition::Le,
        Condition::Eq | Condition::Ne => condition,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::{BlockData, Builder, Opcode, RegClass};

    #[test]
    fn operands_change_places_and_comparisons_are_mirrored() {
        let mut program = Program::default();
        let block = program.blocks.push(BlockData::default());
        program.layout.push(block);
        let mut b = Builder::new(&mut program, block);
        let x = b.define(Opcode::Input, RegClass::FULL, 1, &[], Attrs::Input(None));
        let x = b.src(x);
        let less = b.compare(Opcode::CmpsS, Condition::Lt, RegClass::FULL, x, x);
        let mad = b.alu(Opcode::MadF32, RegClass::FULL, &[x, x, x]);
        let target = Target::default();
        let word = Src::constant(5, false);
        let [less, mad] = [less, mad].map(|value| program.values[value].instr);
        // The second source of mad must be a register.
        assert!(place(&mut program, &target, mad, 1, word, || true));
        assert_eq!(program.instrs[mad].srcs[..], [word, x, x]);
        assert!(!place(&mut program, &target, mad, 1, word, || true));
        assert!(place(&mut program, &target, less, 0, word, || true));
        assert_eq!(program.instrs[less].attrs, Attrs::Compare(Condition::Lt));
        assert!(!place(&mut program, &target, less, 0, Src::constant(6, false), || false));
        // Two words of the constant file cannot be encoded in any order.
        assert!(!place(&mut program, &target, less, 1, Src::constant(6, false), || true));
        assert_eq!(program.instrs[less].srcs[..], [word, x]);
        assert_eq!(mirrored(Condition::Lt), Condition::Gt);
        assert_eq!(mirrored(mirrored(Condition::Ge)), Condition::Ge);
    }
}
