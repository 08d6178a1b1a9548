//! Arrays of registers, and phis after allocation.
//!
//! Mesa prints a first register of an array if it prints no offset from `a0.x`. Before allocation it means nothing if
//! the access names a version of the array. Before `ir3_array_to_ssa` there are no versions: the number that is printed
//! is that of the last write in the same block. After allocation all operands of a phi are in one register; one that is
//! undefined has an arbitrary register number in the text.

use super::phases::Phase;
use ir3_compiler::ir3::{InstrData, Opcode, OperandFlags, Place, Program, SrcOperand, WriteMask};
use ir3_programs::mesa::{Section, SectionKind};

/// The pass that makes versions of arrays.
const MAKES_VERSIONS: &str = "ir3_array_to_ssa";

/// The number of programs before the pass that makes versions of arrays. A log may lack the section of that pass.
pub(super) fn without_versions(passes: &[Section], phases: &[Phase]) -> usize {
    let is_it = |section: &Section| matches!(&section.kind, SectionKind::Ir3After { pass } if pass == MAKES_VERSIONS);
    let selected = phases.iter().take_while(|&&phase| phase == Phase::Selected).count();
    passes.iter().position(is_it).unwrap_or(selected)
}

/// Removes meaningless attributes of arrays and phis from the program of a text.
pub(super) fn complete(program: &mut Program, before_versions: bool) {
    let has_values = program.iter_instrs().any(|(_, instr)| {
        let data = &program.instrs[instr];
        data.opcode != Opcode::Input && data.dsts.iter().any(|dst| dst.value().is_some())
    });
    for data in program.instrs.values_mut() {
        whole_array(data);
        if before_versions && data.dsts.iter().any(|dst| matches!(dst.place, Place::Array(_))) {
            // The version that the same block wrote before: there are none.
            data.srcs.retain(|src| {
                !(src.flags.contains(OperandFlags::TIED) && matches!(src.place(), Some(Place::Array(_))))
            });
            data.dsts.iter_mut().for_each(|dst| dst.flags -= OperandFlags::TIED);
        }
        let places = data.dsts.iter_mut().map(|dst| &mut dst.place).chain(data.srcs.iter_mut().filter_map(|src| {
            match &mut src.operand {
                SrcOperand::Place(place) => Some(place),
                _ => None,
            }
        }));
        for place in places {
            let Place::Array(access) = place else { continue };
            if has_values {
                access.base = None.into();
            }
            if before_versions {
                access.value = None.into();
            }
        }
        if data.opcode != Opcode::Phi {
            continue;
        }
        let Some(register) = data.dsts.first().and_then(|dst| register_of(&dst.place)) else { continue };
        for src in &mut data.srcs {
            if src.place().and_then(register_of).is_some_and(|other| other != register) {
                src.operand = SrcOperand::Undef;
            }
        }
    }
}

/// Gives the array that is spilled or reloaded as a whole all of its components: the text has their number as an
/// operand, and no mask.
fn whole_array(data: &mut InstrData) {
    let Some(SrcOperand::Immediate(count)) = data.srcs.get(2).map(|src| src.operand) else { return };
    let mask = WriteMask::first(count);
    match data.opcode {
        Opcode::SpillMacro if matches!(data.srcs[1].place(), Some(Place::Array(_))) => data.srcs[1].mask = mask,
        Opcode::ReloadMacro => {
            let arrays = data.dsts.iter_mut().filter(|dst| matches!(dst.place, Place::Array(_)));
            arrays.for_each(|dst| dst.mask = mask);
        }
        _ => {}
    }
}

/// The register of an operand that has no value.
fn register_of(place: &Place) -> Option<ir3_compiler::ir3::PhysReg> {
    match place {
        Place::Reg(register) => Some(*register),
        Place::Array(access) if access.value.is_none() => access.base.expand(),
        _ => None,
    }
}
