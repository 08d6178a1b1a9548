//! The components of shared values, numbered. Each is placed separately, but those of a vector consecutively.

use super::is_value;
use crate::ir3::{Attrs, Block, Instr, Opcode, Place, Program, RegFile, Value};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;

/// One component of a shared value.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// The value.
    pub value: Value,
    /// Number of units.
    pub units: u8,
}

/// All components of all shared values.
pub struct Elements {
    /// The components, those of a value consecutively.
    pub list: Vec<Element>,
    /// First component plus one, and the number of components.
    index: SecondaryMap<Value, (u32, u16)>,
    /// True for vectors with a use other than a split.
    whole: SecondaryMap<Value, bool>,
}

impl Elements {
    /// Numbers the components; a split of a shared vector has no component of its own.
    pub fn new(program: &Program, accesses: &[(Block, Instr)]) -> Self {
        let index = map_of(program.values.len());
        let mut this = Self { list: Vec::new(), index, whole: map_of(program.values.len()) };
        for &(_, instr) in accesses {
            let data = &program.instrs[instr];
            if split_of(program, instr).is_some() {
                continue;
            }
            for src in data.srcs.iter().filter(|src| src.class.file == RegFile::Shared) {
                if let Some(value) = src.value().filter(|&value| program.values[value].components > 1) {
                    this.whole[value] = true;
                }
            }
            for dst in data.dsts.iter().filter(|dst| is_value(&dst.place, dst.class)) {
                let Place::Value(value) = dst.place else { continue };
                let count = program.values[value].components;
                this.index[value] = (this.list.len() as u32 + 1, count);
                let units = dst.class.component_units() as u8;
                this.list.extend((0..count).map(|_| Element { value, units }));
            }
        }
        // A split may precede its vector in the layout, if blocks are not in the order of dominance.
        for &(_, instr) in accesses {
            if let Some((split, vector, offset)) = split_of(program, instr) {
                let (first, count) = this.index[vector];
                if first != 0 && offset < count {
                    this.index[split] = (first + u32::from(offset), 1);
                }
            }
        }
        this
    }

    /// The components of a value: the first, and their number.
    pub fn of(&self, value: Value) -> Option<(u32, u16)> {
        let (first, count) = self.index[value];
        Some((first.checked_sub(1)?, count))
    }

    /// Returns true if the vector has a use other than a split.
    pub fn is_read_whole(&self, vector: Value) -> bool {
        self.whole[vector]
    }

    /// The indices of the components of `value`.
    pub fn range(&self, value: Value) -> std::ops::Range<u32> {
        self.of(value).map_or(0..0, |(first, count)| first..first + u32::from(count))
    }
}

/// The value, the vector and the component of a split of a shared vector.
pub fn split_of(program: &Program, instr: Instr) -> Option<(Value, Value, u16)> {
    let data = &program.instrs[instr];
    let (Opcode::Split, Attrs::Split { offset }) = (data.opcode, &data.attrs) else { return None };
    let (dst, src) = (data.dsts.first()?, data.srcs.first()?);
    if !is_value(&dst.place, dst.class) || src.class != dst.class {
        return None;
    }
    Some((dst.value()?, src.value()?, *offset))
}
