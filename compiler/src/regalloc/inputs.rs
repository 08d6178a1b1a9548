//! Inputs whose registers are given.
//!
//! An input that names its register must have that one, and nothing can be moved in front of the first instruction.
//! So where any input does, the [places of all](super::given) are decided before registers are counted.

use super::Error;
use super::forest::Sums;
use super::given::{Item, arrange};
use super::liveness::Liveness;
use crate::ir3::{Opcode, Place, Program, RegFile, Value};

/// The places of all inputs.
pub struct Inputs {
    /// First unit of each.
    pub places: Vec<(Value, u16)>,
    /// Units in front of which they all stand: full and half ones, by [`kind`](super::forest::kind).
    pub ends: Sums,
}

/// Decides the places, if any is given. `arrays` are the units of arrays; those of halves stand at the bottom.
pub fn run(program: &Program, liveness: &Liveness, merged: bool, arrays: &Sums) -> Result<Option<Inputs>, Error> {
    let mut values = Vec::new();
    let mut items = Vec::new();
    for &instr in &program.blocks[program.entry()].instrs {
        let data = &program.instrs[instr];
        if data.opcode != Opcode::Input {
            break;
        }
        for dst in data.dsts.iter().filter(|dst| dst.class.file == RegFile::General) {
            let (value, given) = match dst.place {
                Place::Assigned(value, reg) => (value, Some(reg)),
                Place::Value(value) => (value, None),
                _ => continue,
            };
            values.push(value);
            items.push(Item { class: program.values[value].class, units: liveness.units(value), given });
        }
    }
    if items.iter().all(|item| item.given.is_none()) {
        return Ok(None);
    }
    let (places, ends) = arrange(&items, merged, arrays, |k| format!("input {}", values[k]))?;
    Ok(Some(Inputs { places: values.into_iter().zip(places).collect(), ends }))
}
