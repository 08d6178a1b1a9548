//! Inputs whose registers are given.
//!
//! An input that names its register must have that one, and nothing can be moved in front of the first instruction.
//! So where any input does, the places of all are decided here, before registers are counted: the given ones, and in
//! the gaps between them the others, the wide ones first. What lies below the last unit of theirs is what the
//! start of the program needs, gaps included.

use super::Error;
use super::file::{UNITS, Units};
use super::forest::{FULL, HALF, Sums, kind};
use super::liveness::Liveness;
use super::parallel_copy::unit_of;
use crate::ir3::{Opcode, Place, Program, RegFile, Value};

/// The places of all inputs.
pub struct Inputs {
    /// First unit of each.
    pub places: Vec<(Value, u16)>,
    /// Units in front of which they all stand: full and half ones, by [`kind`].
    pub ends: Sums,
}

/// Decides the places, if any is given. `arrays` are the units of arrays; those of halves stand at the bottom.
pub fn run(program: &Program, liveness: &Liveness, merged: bool, arrays: &Sums) -> Result<Option<Inputs>, Error> {
    let mut given = Vec::new();
    let mut free = Vec::new();
    for &instr in &program.blocks[program.entry()].instrs {
        let data = &program.instrs[instr];
        if data.opcode != Opcode::Input {
            break;
        }
        for dst in data.dsts.iter().filter(|dst| dst.class.file == RegFile::General) {
            match dst.place {
                Place::Assigned(value, reg) => given.push((value, unit_of(dst.class, reg))),
                Place::Value(value) => free.push(value),
                _ => {}
            }
        }
    }
    if given.is_empty() {
        return Ok(None);
    }
    let mut taken = [Units::default(); 2];
    let file = |value: Value| usize::from(program.values[value].class.half && !merged);
    taken[usize::from(!merged)].insert(0, arrays[HALF].min(u32::from(UNITS)) as u16);
    let mut inputs = Inputs { places: Vec::with_capacity(given.len() + free.len()), ends: Sums::default() };
    let mut put = |value: Value, at: u16, taken: &mut [Units; 2]| {
        let len = liveness.units(value);
        taken[file(value)].insert(at, len);
        inputs.places.push((value, at));
        let end = &mut inputs.ends[kind(program.values[value].class)];
        *end = u32::from(at + len).max(*end);
    };
    for (value, at) in given {
        let len = liveness.units(value);
        if at + len > UNITS || !taken[file(value)].is_free(at, len) {
            return Err(Error::Malformed { what: format!("the register of input {value} is taken") });
        }
        put(value, at, &mut taken);
    }
    // The wide ones have less choice.
    free.sort_by_key(|&value| std::cmp::Reverse(liveness.units(value)));
    for value in free {
        let (len, align) = (liveness.units(value), program.values[value].class.component_units());
        let Some(at) = taken[file(value)].find_gap(len, align, 0, UNITS) else {
            return Err(Error::spilling(u32::from(UNITS) + u32::from(len), UNITS, false));
        };
        put(value, at, &mut taken);
    }
    if merged {
        inputs.ends[FULL] = inputs.ends[FULL].max(inputs.ends[HALF].next_multiple_of(2));
    }
    Ok(Some(inputs))
}
