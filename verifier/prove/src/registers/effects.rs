//! The effects of an opcode other than its results, as the register checker defines them.
//!
//! The compiler's table of opcodes has columns for the same. The checker does not read them: a wrong column there is a
//! fault of the compiler that the checker has to find. A test compares the two.

use ir3_compiler::ir3::{InstrData, Opcode, Src};
use ir3_semantics::machine::units;

/// Returns true if an opcode writes the constant file, so that a constant may be another one after it.
pub(super) const fn writes_constants(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(opcode, Stc | Stsc | LdcK | LdgK | PushConstsLoadMacro)
}

/// Returns true if an opcode writes its result in one lane of each quad only, and others before it have written the
/// other lanes.
pub(super) const fn writes_one_lane_of_a_quad(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Samgp1 | Opcode::Samgp2 | Opcode::Samgp3)
}

/// Returns true if a memory opcode writes memory, or may be seen to by another one.
pub(super) fn writes_memory(opcode: Opcode) -> bool {
    use Opcode::*;
    let stores = matches!(opcode, Stg | StgA | Stl | Stp | Stib | Stlw | Stgb | SpillMacro);
    stores || matches!(opcode, G2l | L2g | Prefetch) || opcode.name().starts_with("atomic.")
}

/// Returns true if a result belongs to the wave and a source to a lane: the result is that of one of the active lanes.
pub(super) fn is_of_one_lane(data: &InstrData) -> bool {
    let of_lane = |src: &Src| src.place().is_some_and(|place| !units::is_of_wave(place, src.class));
    data.dsts.iter().any(|dst| units::is_of_wave(&dst.place, dst.class)) && data.srcs.iter().any(of_lane)
}

/// Returns true if an opcode of two sources has the same result when these are exchanged, with their modifiers.
pub(super) const fn commutes(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        AddF | MulF
            | MinF
            | MaxF
            | AddU
            | AddS
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
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::ir3::Category;

    #[test]
    fn the_compilers_columns_say_the_same() {
        for opcode in Opcode::ALL {
            assert_eq!(writes_constants(opcode), opcode.writes_consts(), "{opcode}");
            if opcode.category() == Category::Memory {
                let written = writes_memory(opcode) || writes_constants(opcode);
                assert_eq!(written, opcode.has_side_effect(), "{opcode}");
            }
            // The column is tested by the meaning of the operations.
            assert!(!commutes(opcode) || opcode.commutes(), "{opcode}");
        }
    }
}
