//! Slots of scratch memory that hold the same as a register, in every lane that reaches a point.
//!
//! Two groups of lanes that spill one value each on their own paths store one after the other: while the second stores,
//! the first has continued, and its slot has the value that its register had before. That the two slots hold the same
//! afterwards follows if the register of the first still has it, or another one that was loaded from the slot, and if
//! the two groups do not differ there (`uniform`).
//!
//! *The lattice.* A set of copies: of slot and register, one element each. The join is the intersection, over the edges
//! of lanes, as each is a fact about one lane. *The transfer functions.* A write of a register or a store ends the
//! copies that it touches; a store and a load make one. An instruction that only some lanes execute (predication) is on
//! lane edges, too, except for the position at which a lane waits: code that branches in it has no copies at all.
//!
//! Lanes that wait at a position do not execute anything, and nothing else writes their registers or their scratch
//! memory. So the copies at the start of the block where they wait hold as long as they wait. Shared registers are in
//! no copy.

use super::flow::{BlockIndex, Flow};
use super::scratch::{Scratch, ScratchOperation};
use ir3_compiler::ir3::Opcode;
use ir3_compiler::machine::Code;
use ir3_semantics::machine::steps::{Bits, Steps};
use ir3_semantics::machine::units::{OTHER_WORD, SHARED_WORD};
use smallvec::SmallVec;
use std::ops::Range;

/// One element of scratch memory, and the register that holds the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScratchCopy {
    /// Units of scratch memory.
    pub units: Range<u32>,
    word: u8,
    bits: u64,
}

impl ScratchCopy {
    /// The register.
    pub fn register(&self) -> Bits {
        Bits { word: self.word, half: false, bits: self.bits }
    }

    /// The copies that an access makes: element by element.
    pub fn of(operation: &ScratchOperation) -> SmallVec<[Self; 2]> {
        let (ScratchOperation::Load { units, data } | ScratchOperation::Store { units, data }) = operation;
        let Some(units) = units else { return SmallVec::new() };
        let of_lane = |of: &Bits| ![SHARED_WORD, OTHER_WORD].contains(&usize::from(of.word));
        let size = (units.len() / data.len().max(1)) as u32;
        if data.len() as u32 * size != units.end - units.start || !data.iter().all(of_lane) {
            return SmallVec::new();
        }
        let starts = (units.start..).step_by(size.max(1) as usize);
        let copies =
            starts.zip(data).map(|(start, of)| Self { units: start..start + size, word: of.word, bits: of.bits });
        copies.collect()
    }

    fn is_in(&self, units: &Range<u32>) -> bool {
        self.units.start < units.end && units.start < self.units.end
    }

    fn is_written(&self, writes: &[Bits]) -> bool {
        writes.iter().any(|of| of.word == self.word && of.bits & self.bits != 0)
    }
}

/// The copies at the start of each block.
#[derive(Debug, Default)]
pub struct Copies {
    /// `None` for unreachable blocks.
    at_start: Vec<Option<Vec<ScratchCopy>>>,
}

impl Copies {
    /// Computes the copies of a program.
    pub fn new(code: &Code, steps: &Steps, flow: &Flow, scratch: &Scratch) -> Self {
        if scratch.words == 0 || branches_under_predication(code) {
            return Self::default();
        }
        let mut at_start = vec![None; flow.blocks.len()];
        at_start[0] = Some(Vec::new());
        let mut pending = vec![0usize];
        while let Some(block) = pending.pop() {
            let Some(mut copies): Option<Vec<ScratchCopy>> = at_start[block].clone() else { continue };
            for at in flow.blocks[block].ips.clone() {
                transfer(&mut copies, at as usize, steps, scratch);
            }
            for &to in &flow.blocks[block].lanes {
                let changed = match &mut at_start[to as usize] {
                    next @ None => {
                        *next = Some(copies.clone());
                        true
                    }
                    Some(next) => {
                        let before = next.len();
                        next.retain(|copy| copies.contains(copy));
                        next.len() != before
                    }
                };
                if changed {
                    pending.push(to as usize);
                }
            }
        }
        Self { at_start }
    }

    /// Returns true if lanes that wait at a block have the same in both places.
    pub fn holds(&self, block: BlockIndex, copy: &ScratchCopy) -> bool {
        matches!(self.at_start.get(block as usize), Some(Some(copies)) if copies.contains(copy))
    }
}

/// Returns true if lanes may go elsewhere while others are inactive.
fn branches_under_predication(code: &Code) -> bool {
    let mut open = false;
    code.instrs.values().any(|instr| {
        match instr.data.opcode {
            Opcode::Predt | Opcode::Predf => open = true,
            Opcode::Prede => open = false,
            _ => {}
        }
        open && instr.data.opcode.is_terminator()
    })
}

fn transfer(copies: &mut Vec<ScratchCopy>, at: usize, steps: &Steps, scratch: &Scratch) {
    let writes = steps.bits(&steps.steps[at].write_bits);
    copies.retain(|copy| !copy.is_written(writes));
    let Some(operation) = scratch.operation(at) else { return };
    if let ScratchOperation::Store { units, .. } = operation {
        match units {
            Some(units) => copies.retain(|copy| !copy.is_in(units)),
            None => copies.clear(),
        }
    }
    for copy in ScratchCopy::of(operation) {
        if !copies.contains(&copy) {
            copies.push(copy);
        }
    }
}
