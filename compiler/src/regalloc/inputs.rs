//! Inputs with given registers.
//!
//! An input that names its register must have that one, and no move can precede the first instruction. So if any input
//! does, the [places of all](super::given), and of the results of prefetches, are decided before registers are counted.

use super::Error;
use super::forest::Sums;
use super::given::{PlacementItem, arrange};
use super::liveness::Liveness;
use crate::ir3::{Place, Program, RegFile, Value};

/// The places of all inputs and results of prefetches.
pub struct GivenInputs {
    /// First unit of each.
    pub places: Vec<(Value, u16)>,
    /// The end of all of them: full and half ones, by [`kind`](super::forest::kind).
    pub ends: Sums,
}

/// Chooses the places, if any is given. `arrays` are the extents of the stacks of arrays; that of halves starts at the bottom.
///
/// # Errors
/// If the given registers overlap, or not all inputs have a place.
pub fn run(program: &Program, liveness: &Liveness, merged: bool, arrays: &Sums) -> Result<Option<GivenInputs>, Error> {
    let mut values = Vec::new();
    let mut items = Vec::new();
    let list = &program.blocks[program.entry()].instrs;
    for &instr in &list[..program.start_len(list)] {
        let data = &program.instrs[instr];
        for dst in data.dsts.iter().filter(|dst| dst.class.file == RegFile::General) {
            let (value, given) = match dst.place {
                Place::Assigned(value, reg) => (value, Some(reg)),
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
    Ok(Some(GivenInputs { places: values.into_iter().zip(places).collect(), ends }))
}
