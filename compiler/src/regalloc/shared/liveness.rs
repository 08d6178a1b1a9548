//! Liveness of components of shared values, along the physical edges.
//!
//! From each read the component is live on every path back to its definition. A phi's source is read at the end of the
//! predecessor.

use super::elements::{Elements, split_of};
use crate::ir3::liveness::{LiveSets, Use};
use crate::ir3::{Block, Instr, Opcode, Program, RegFile, Src};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, EntitySet, entity_impl};

/// A component, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Element(u32);
entity_impl!(Element);

/// The blocks in which components are live.
pub struct Liveness {
    sets: LiveSets<Element>,
    /// Components with a use.
    used: EntitySet<Element>,
}

impl Liveness {
    /// Computes the live components.
    pub fn new(program: &Program, accesses: &[(Block, Instr)], elements: &Elements) -> Self {
        let mut def_block: Vec<PackedOption<Block>> = vec![None.into(); elements.list.len()];
        for &(block, instr) in accesses {
            if split_of(program, instr).is_some() {
                continue;
            }
            for value in program.instrs[instr].dsts.iter().filter_map(|dst| dst.value()) {
                elements.range(value).for_each(|element| def_block[element as usize] = block.into());
            }
        }
        let mut used = EntitySet::new();
        let mut uses = Vec::new();
        for &(block, instr) in accesses {
            let data = &program.instrs[instr];
            for (k, src) in data.srcs.iter().enumerate() {
                let pred = program.blocks[block].predecessors.get(k).copied().filter(|_| data.opcode == Opcode::Phi);
                let (block, at_end) = pred.map_or((block, false), |pred| (pred, true));
                for entity in reads(program, elements, instr, src).map(Element) {
                    used.insert(entity);
                    uses.push(Use { entity, block, at_end });
                }
            }
        }
        let def = |element: Element| def_block[element.index()].expand();
        let sets = LiveSets::new(program, uses, def, |block| &program.blocks[block].physical_predecessors);
        Self { sets, used }
    }

    /// The components that are live at the start of a block, those of its phis not among them, in order.
    pub fn live_in(&self, block: Block) -> impl Iterator<Item = u32> + '_ {
        self.sets.live_in(block).iter().map(|element| element.as_u32())
    }

    /// Returns true if anybody reads a component.
    pub fn is_used(&self, element: u32) -> bool {
        self.used.contains(Element(element))
    }

    /// The components whose last read is in a block, each with the instruction; those of the last instruction come
    /// first.
    pub fn kills(&self, program: &Program, elements: &Elements, block: Block) -> Vec<(Instr, u32)> {
        let mut kills = Vec::new();
        let mut live = EntitySet::new();
        live.extend(self.sets.live_out(block).iter().copied());
        for &instr in program.blocks[block].instrs.iter().rev() {
            if program.instrs[instr].opcode == Opcode::Phi {
                break;
            }
            for src in &program.instrs[instr].srcs {
                for element in reads(program, elements, instr, src) {
                    if live.insert(Element(element)) {
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
