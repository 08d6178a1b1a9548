//! Where in scratch memory each spilled value is.
//!
//! A phi of memory shares its slot with its sources; every other value has one of its own, those of a vector's parts in
//! a row. The slots stand behind the scratch memory that the shader has itself.

use super::limit::Plan;
use super::scalars::{general_result, general_value};
use crate::ir3::{Opcode, Program, Value};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Bytes of scratch memory of a shader that has some and does not say how much.
const UNKNOWN_BYTES: u32 = 4096;

/// Bytes that the shader has for itself.
fn own_bytes(program: &Program) -> u32 {
    let is_scratch = |opcode| matches!(opcode, Opcode::Stp | Opcode::Ldp);
    let accesses = || program.iter_instrs().any(|(_, instr)| is_scratch(program.instrs[instr].opcode));
    if program.scratch_size == 0 && accesses() { UNKNOWN_BYTES } else { program.scratch_size }
}

/// Slots and their places.
pub struct Slots {
    /// Representative of the values that share a slot.
    parent: Vec<u32>,
    /// Byte address of each representative's slot, plus one.
    address: SecondaryMap<Value, u32>,
    /// Behind the last slot.
    pub end: u32,
}

impl Slots {
    /// Gives a slot to each value that is in memory, in the order of values.
    pub fn new(program: &Program, plan: &Plan) -> Self {
        let count = program.values.len();
        let mut this = Self {
            parent: (0..count as u32).collect(),
            address: SecondaryMap::with_capacity(count),
            end: own_bytes(program).next_multiple_of(4),
        };
        let in_memory = || program.values.keys().filter(|&value| plan.memory[value]);
        for phi in in_memory().filter(|&value| plan.memory_phis[value]) {
            let data = &program.instrs[program.values[phi].instr];
            for source in data.srcs.iter().filter_map(general_value) {
                this.unite(phi, source);
            }
        }
        // Full ones first, so that nothing is lost to alignment; parts of a vector in a row.
        for half in [false, true] {
            let splits = program.iter_instrs().map(|(_, instr)| &program.instrs[instr]);
            let splits = splits.filter(|data| data.opcode == Opcode::Split);
            let parts = splits.filter_map(|data| data.dsts.first().and_then(general_result));
            for value in parts.filter(|&part| plan.memory[part]).chain(in_memory()) {
                if program.values[value].class.half != half {
                    continue;
                }
                let of = this.find(value);
                if this.address[of] == 0 {
                    this.address[of] = this.end + 1;
                    this.end += if half { 2 } else { 4 };
                }
            }
        }
        this.end = this.end.next_multiple_of(4);
        this
    }

    fn find(&mut self, value: Value) -> Value {
        let mut at = value.index() as u32;
        while self.parent[at as usize] != at {
            let up = self.parent[at as usize];
            self.parent[at as usize] = self.parent[up as usize];
            at = up;
        }
        Value::new(at as usize)
    }

    fn unite(&mut self, a: Value, b: Value) {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[b.index()] = a.index() as u32;
    }

    /// The slot of a value: its byte address, if it has one.
    pub fn of(&mut self, value: Value) -> Option<u32> {
        let of = self.find(value);
        self.address[of].checked_sub(1)
    }
}
