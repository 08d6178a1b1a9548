//! The slots of spilled values in scratch memory.
//!
//! A memory phi shares its slot with its sources. If such a source is a copy of a value that is in memory itself, that
//! value shares it too, unless the two sets interfere: then the edge needs no load and store. Every other value has a
//! slot of its own; the slots of a vector's parts are consecutive. The slots follow the scratch memory of the shader
//! itself.
//!
//! Sharing is correct: no two values of a set are live at once. A value is stored at its definition, and loaded only
//! while it is live, so from the store to the last load no other value is stored to the slot: such a value would be
//! live there. (A store is delayed until after the phis, inputs and splits that follow the definition. They read at
//! most vectors, so the delayed value is live until then.) For a phi and its sources this holds by construction: each
//! source is a copy at the end of a predecessor, after all instructions that read the phi there (`scalars`). For all
//! others liveness is checked. If a copy has the slot of its source, the slot already holds the value that it would
//! store.

use super::super::liveness::{Liveness, Segment};
use super::belady::Plan;
use super::scalars::{general_result, general_value};
use crate::ir3::{Opcode, Program, Value};
use crate::maps::map_of;
use cranelift_entity::{EntityRef, SecondaryMap};
use rustc_hash::FxHashMap;

/// Assumed bytes of scratch memory for a shader that uses some of unknown size.
const UNKNOWN_BYTES: u32 = 4096;

/// Bytes of scratch memory that the shader itself uses.
pub fn own_scratch_bytes(program: &Program) -> u32 {
    let is_scratch = |opcode| matches!(opcode, Opcode::Stp | Opcode::Ldp);
    let accesses = || program.iter_instrs().any(|(_, instr)| is_scratch(program.instrs[instr].opcode));
    if program.scratch_size == 0 && accesses() { UNKNOWN_BYTES } else { program.scratch_size }
}

/// The slots of values.
pub struct SpillSlots {
    /// Union-find: the representative of the values that share a slot.
    parent: Vec<u32>,
    /// True for copies whose slot already holds their source.
    there: SecondaryMap<Value, bool>,
    /// Byte address of each representative's slot, plus one.
    address: SecondaryMap<Value, u32>,
    /// The end of the last slot.
    pub end: u32,
}

impl SpillSlots {
    /// Assigns a slot to each value in memory, in the order of values.
    pub fn new(program: &Program, plan: &Plan, liveness: &Liveness) -> Self {
        let count = program.values.len();
        let mut this = Self {
            parent: (0..count as u32).collect(),
            there: SecondaryMap::new(),
            address: map_of(count),
            end: own_scratch_bytes(program).next_multiple_of(4),
        };
        let in_memory = || program.values.keys().filter(|&value| plan.memory[value]);
        for phi in in_memory().filter(|&value| plan.memory_phis[value]) {
            let data = &program.instrs[program.values[phi].instr];
            for source in data.srcs.iter().filter_map(general_value) {
                this.unite(phi, source);
            }
        }
        this.share(program, plan, liveness);
        // Full values first, to avoid padding; parts of a vector consecutively.
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

    /// Merges the slots of memory phi sources with those of the values that they copy, if these are in memory and do
    /// not interfere.
    fn share(&mut self, program: &Program, plan: &Plan, liveness: &Liveness) {
        let mut copies: Vec<(Value, Value)> = Vec::new();
        for phi in program.values.keys().filter(|&value| plan.memory_phis[value]) {
            let data = &program.instrs[program.values[phi].instr];
            for copy in data.srcs.iter().filter_map(general_value) {
                if let Some(of) = copied(program, copy).filter(|&of| plan.memory[of]) {
                    copies.push((copy, of));
                }
            }
        }
        if copies.is_empty() {
            return;
        }
        // The live segments of the members of each set, by representative.
        let mut lives: FxHashMap<Value, Vec<Segment>> = FxHashMap::default();
        for value in program.values.keys().filter(|&value| plan.memory[value]) {
            lives.entry(self.find(value)).or_default().extend(liveness.segments(value));
        }
        lives.values_mut().for_each(|segments| segments.sort_unstable_by_key(|segment| segment.start));
        for &(copy, of) in &copies {
            let (a, b) = (self.find(copy), self.find(of));
            if a == b || interfere(&lives[&a], &lives[&b]) {
                continue;
            }
            self.unite(a, b);
            let more = lives.remove(&b).unwrap_or_default();
            let segments = lives.entry(a).or_default();
            segments.extend(more);
            segments.sort_unstable_by_key(|segment| segment.start);
        }
        for (copy, of) in copies {
            self.there[copy] = self.find(copy) == self.find(of);
        }
    }

    /// Returns true if a value is a copy whose slot already holds its source.
    pub fn is_there(&self, value: Value) -> bool {
        self.there[value]
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

    /// The byte address of a value's slot, if it has one.
    pub fn of(&mut self, value: Value) -> Option<u32> {
        let of = self.find(value);
        self.address[of].checked_sub(1)
    }
}

/// The source value of a copy of one scalar in the same file.
fn copied(program: &Program, value: Value) -> Option<Value> {
    let data = &program.instrs[program.values[value].instr];
    let is_copy = data.opcode == Opcode::ParallelCopy && data.dsts.len() == 1 && data.srcs.len() == 1;
    let of = data.srcs.first().filter(|_| is_copy).and_then(general_value)?;
    (program.values[of].class == program.values[value].class && program.values[of].components == 1).then_some(of)
}

/// Returns true if a segment of one list overlaps one of the other. Both are sorted by their starts.
fn interfere(a: &[Segment], b: &[Segment]) -> bool {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let (mut end_a, mut end_b) = (0, 0);
    loop {
        let from_a = match (a.peek(), b.peek()) {
            (Some(a), Some(b)) => a.start <= b.start,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return false,
        };
        let (list, own, other) = if from_a { (&mut a, &mut end_a, end_b) } else { (&mut b, &mut end_b, end_a) };
        let Some(segment) = list.next() else { return false };
        if segment.start < other {
            return true;
        }
        *own = segment.end.max(*own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_interfere_where_segments_overlap() {
        let mut state = 1u32;
        let mut below = |n: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % n
        };
        let mut found = [0; 2];
        for _ in 0..2000 {
            let mut list = || {
                let mut list: Vec<Segment> = (0..below(4))
                    .map(|_| {
                        let start = below(24);
                        Segment { start, end: start + 1 + below(5) }
                    })
                    .collect();
                list.sort_by_key(|segment| segment.start);
                list
            };
            let (a, b) = (list(), list());
            let slow = a.iter().any(|a| b.iter().any(|b| a.start < b.end && b.start < a.end));
            assert_eq!(interfere(&a, &b), slow, "{a:?} {b:?}");
            found[usize::from(slow)] += 1;
        }
        assert!(found.iter().all(|&n| n > 300), "{found:?}");
    }
}
