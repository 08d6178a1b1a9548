//! Where components of shared values live, along the physical edges.
//!
//! From each read the component is live on every way back to its definition. A phi's source is read at the end of the
//! predecessor.

use super::elements::{Elements, split_of};
use crate::ir3::{Block, Instr, Opcode, Program, RegFile, Src};
use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;

/// A set of components for the start and for the end of each block.
pub struct Liveness {
    words: usize,
    live_in: Vec<u64>,
    live_out: Vec<u64>,
    /// Whether anybody reads the component.
    used: Vec<bool>,
}

impl Liveness {
    /// Computes where components live.
    pub fn new(program: &Program, elements: &Elements) -> Self {
        let words = elements.list.len().div_ceil(64);
        let size = words * program.blocks.len();
        let mut this =
            Self { words, live_in: vec![0; size], live_out: vec![0; size], used: vec![false; elements.list.len()] };
        let mut def_block: Vec<PackedOption<Block>> = vec![None.into(); elements.list.len()];
        for (block, instr) in program.iter_instrs() {
            if split_of(program, instr).is_some() {
                continue;
            }
            for value in program.instrs[instr].dsts.iter().filter_map(|dst| dst.value()) {
                elements.range(value).for_each(|element| def_block[element as usize] = block.into());
            }
        }
        let mut stack = Vec::new();
        for (block, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            for (k, src) in data.srcs.iter().enumerate() {
                let pred = program.blocks[block].predecessors.get(k).copied().filter(|_| data.opcode == Opcode::Phi);
                for element in reads(program, elements, instr, src) {
                    this.used[element as usize] = true;
                    let def = def_block[element as usize].expand();
                    let at = pred.unwrap_or(block);
                    if pred.is_some() {
                        insert(&mut this.live_out[at.index() * words..], element);
                    }
                    if def != Some(at) {
                        stack.push(at);
                    }
                    while let Some(at) = stack.pop() {
                        if !insert(&mut this.live_in[at.index() * words..], element) {
                            continue;
                        }
                        for &pred in &program.blocks[at].physical_predecessors {
                            insert(&mut this.live_out[pred.index() * words..], element);
                            if def != Some(pred) {
                                stack.push(pred);
                            }
                        }
                    }
                }
            }
        }
        this
    }

    /// The components that live into a block, those of its phis not among them.
    pub fn live_in(&self, block: Block) -> impl Iterator<Item = u32> + '_ {
        members(&self.live_in[block.index() * self.words..][..self.words])
    }

    /// Whether anybody reads a component.
    pub fn is_used(&self, element: u32) -> bool {
        self.used[element as usize]
    }

    /// The components whose last read is in a block, each with the instruction; those of the last instruction come
    /// first.
    pub fn kills(&self, program: &Program, elements: &Elements, block: Block) -> Vec<(Instr, u32)> {
        let mut kills = Vec::new();
        let mut live = self.live_out[block.index() * self.words..][..self.words].to_vec();
        for &instr in program.blocks[block].instrs.iter().rev() {
            if program.instrs[instr].opcode == Opcode::Phi {
                break;
            }
            for src in &program.instrs[instr].srcs {
                for element in reads(program, elements, instr, src) {
                    if insert(&mut live, element) {
                        kills.push((instr, element));
                    }
                }
            }
        }
        kills
    }
}

/// The components that a source reads. A split reads nothing: it is another name.
fn reads(program: &Program, elements: &Elements, instr: Instr, src: &Src) -> impl Iterator<Item = u32> + use<> {
    let value = src.value().filter(|_| src.class.file == RegFile::Shared && split_of(program, instr).is_none());
    let range = value.map_or(0..0, |value| elements.range(value));
    let (first, mask) = (range.start, src.mask);
    range.filter(move |element| mask.contains(element - first))
}

/// Adds a component to a set; whether it was not there.
fn insert(set: &mut [u64], element: u32) -> bool {
    let word = &mut set[element as usize / 64];
    let bit = 1 << (element % 64);
    let fresh = *word & bit == 0;
    *word |= bit;
    fresh
}

fn members(set: &[u64]) -> impl Iterator<Item = u32> + '_ {
    set.iter()
        .enumerate()
        .flat_map(|(i, &word)| (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| i as u32 * 64 + bit))
}
