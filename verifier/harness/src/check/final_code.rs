//! Final code: the flat program of a boundary, and its first hazard.

use super::boundary::{Boundary, Origin};
use ir3_compiler::ir3::{ArrayAccess, InstrData, OperandFlags, Place, Program, RegClass, SrcOperand};
use ir3_compiler::machine::Code;
use ir3_compiler::target::Target;
use ir3_prove::hazards::{self, Basis, Facts};
use ir3_semantics::machine::arrays::{ArrayBases, Side};

/// The sides of an instruction.
pub(crate) const SIDES: [Side; 2] = [Side::Read, Side::Write];

/// The reason why final code is not proved free of hazards. Of texts the rules of Mesa's practice do not count.
pub(super) fn hazard(program: &Program, boundary: &Boundary<'_>, target: &Target) -> Option<String> {
    let (_, code, arrays) = match final_code(program) {
        Ok(parts) => parts,
        Err(error) => return Some(error),
    };
    let super::FinalFacts { releases_unknown, branch_stack, early_preamble } = boundary.facts;
    let facts = Facts { releases_unknown, arrays, branch_stack, early_preamble, ..Facts::of_program(program) };
    let counts = |basis: Basis| boundary.origin == Origin::Compiled || basis == Basis::Machine;
    match hazards::check(&code, &facts, target) {
        Ok(report) => report.hazards.iter().find(|hazard| counts(hazard.kind.basis())).map(ToString::to_string),
        Err(error) => Some(error.to_string()),
    }
}

/// A final program whose accesses of arrays name registers, its code, and the starts of the arrays.
///
/// # Errors
/// If the program is not final.
pub(crate) fn final_code(program: &Program) -> Result<(Program, Code, ArrayBases), String> {
    let mut plain = program.clone();
    let mut bases = ArrayBases::default();
    for data in plain.instrs.values_mut() {
        let places = data.dsts.iter_mut().map(|dst| &mut dst.place).chain(data.srcs.iter_mut().filter_map(|src| {
            match &mut src.operand {
                SrcOperand::Place(place) => Some(place),
                _ => None,
            }
        }));
        for place in places {
            if let Place::Array(ArrayAccess { array, offset, relative: true, base, .. }) = *place
                && let Some(start) = base.expand()
            {
                let offset = (i32::from(start.0) + i32::from(offset)) as i16;
                *place = Place::Relative { offset, size: program.arrays[array].length };
            }
        }
    }
    let code = Code::from_program(&plain).map_err(|error| error.to_string())?;
    let instrs = program.iter_instrs().map(|(_, instr)| &program.instrs[instr]).filter(|data| !data.opcode.is_meta());
    for (ip, data) in code.instrs.keys().zip(instrs) {
        for side in SIDES {
            if let Some((Place::Array(access), _)) = only_access(data, side)
                && let Some(start) = access.base.expand()
            {
                bases.insert(ip, side, start.0);
            }
        }
    }
    Ok((plain, code, bases))
}

/// The relative access of one side, if it has exactly one. A source that is the old state of an array that the
/// instruction writes is none; neither is an access of a repeated instruction.
pub(crate) fn only_access(data: &InstrData, side: Side) -> Option<(Place, RegClass)> {
    let is_relative = |place: &Place| match place {
        Place::Relative { .. } => true,
        Place::Array(access) => access.relative,
        _ => false,
    };
    let mut found = match side {
        Side::Write => {
            let dsts = data.dsts.iter().filter(|dst| is_relative(&dst.place));
            dsts.map(|dst| (dst.place, dst.class)).collect::<Vec<_>>()
        }
        Side::Read => {
            let srcs = data.srcs.iter().filter(|src| !src.flags.contains(OperandFlags::TIED));
            srcs.filter_map(|src| Some((*src.place().filter(|place| is_relative(place))?, src.class))).collect()
        }
    };
    if found.len() == 1 && data.repeat == 0 { found.pop() } else { None }
}
