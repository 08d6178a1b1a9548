//! Three `xor.b` that exchange two registers, on targets without `swz`.
//!
//! An exchange preserves poisoned bits, so it is modelled as one operation, and not as three operations on poison.

use ir3_compiler::ir3::{Dst, InstrData, Opcode, Place, RegFile, WriteMask};

/// The registers that three instructions exchange, if they are an exchange.
pub fn exchange([first, second, third]: [&InstrData; 3]) -> Option<(&Dst, &Dst)> {
    let (a, b) = (first.dsts.first()?, second.dsts.first()?);
    let is_step = |data: &InstrData, dst: &Dst| {
        let reads = |dst: &Dst| {
            data.srcs.iter().any(|src| src.place() == Some(&dst.place) && src.class == dst.class && src.mods.is_empty())
        };
        data.opcode == Opcode::XorB
            && data.repeat == 0
            && matches!(data.dsts[..], [ref found] if found.place == dst.place && found.class == dst.class)
            && matches!(dst.place, Place::Reg(_))
            && dst.mask == WriteMask::SCALAR
            && dst.class.file != RegFile::Predicate
            && data.srcs.len() == 2
            && reads(a)
            && reads(b)
    };
    let steps = is_step(first, a) && is_step(second, b) && is_step(third, a);
    (a.place != b.place && steps).then_some((a, b))
}
