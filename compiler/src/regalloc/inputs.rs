//! Inputs with given registers, and prefetches.
//!
//! An input that names its register must have that one, and no move can precede the first instruction. So if any input
//! does, the [places of all](super::given), and of the results of prefetches, are decided before registers are counted.
//!
//! A prefetch reads its coordinates from `r0.x`, and the command that starts it has six bits for the register of its
//! result (Mesa: `ir3_compiler_nir.c`, `SP_FS_PREFETCH_CMD` of a6xx.xml). So the coordinates are given, and the results
//! are placed with the inputs, which are few.

use super::Error;
use super::forest::Sums;
use super::given::{PlacementItem, arrange};
use super::liveness::Liveness;
use crate::ir3::{Instr, PhysReg, Place, Program, RegFile, Value, ValueData};
use smallvec::SmallVec;

/// The places of all inputs and results of prefetches.
pub struct GivenInputs {
    /// First unit of each.
    pub places: Vec<(Value, u16)>,
    /// The end of all of them: full and half ones, by [`kind`](super::forest::kind).
    pub ends: Sums,
}

/// Chooses the places, if any is given. `arrays` are the extents of the stacks of arrays; that of halves starts at the
/// bottom.
///
/// # Errors
/// If the given registers overlap, or not all inputs have a place, or the result of a prefetch has none that can be
/// named.
pub fn run(program: &Program, liveness: &Liveness, merged: bool, arrays: &Sums) -> Result<Option<GivenInputs>, Error> {
    let mut values = Vec::new();
    let mut items = Vec::new();
    let list = &program.blocks[program.entry()].instrs;
    let (inputs, prefetches): (Vec<Instr>, Vec<Instr>) =
        list[..program.ready_len(list)].iter().partition(|&&instr| !program.instrs[instr].opcode.is_prefetched());
    let coordinates: SmallVec<[Value; 1]> =
        prefetches.iter().filter_map(|&instr| program.instrs[instr].srcs.first()?.value()).collect();
    for data in prefetches.iter().chain(&inputs).map(|&instr| &program.instrs[instr]) {
        for dst in data.dsts.iter().filter(|dst| dst.class.file == RegFile::General) {
            let (value, given) = match dst.place {
                Place::Assigned(value, reg) => (value, Some(reg)),
                Place::Value(value) if coordinates.contains(&value) => (value, Some(PhysReg::PREFETCH_COORDINATES)),
                Place::Value(value) => (value, None),
                _ => continue,
            };
            values.push(value);
            items.push(PlacementItem { class: program.values[value].class, units: liveness.units(value), given });
        }
    }
    if items.iter().all(|item| item.given.is_none()) {
        return Ok(None);
    }
    let (places, ends) = arrange(&items, merged, arrays, |k| format!("input {}", values[k]))?;
    let places: Vec<(Value, u16)> = values.into_iter().zip(places).collect();
    for &(value, at) in &places {
        let ValueData { instr, class, .. } = program.values[value];
        let end = (at + liveness.units(value)) / class.component_units();
        if program.instrs[instr].opcode.is_prefetched() && end > PhysReg::PREFETCH_RESULTS_END {
            return Err(Error::unsupported(program, instr, "a result beyond r15.w"));
        }
    }
    Ok(Some(GivenInputs { places, ends }))
}
