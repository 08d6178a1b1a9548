//! Random single mutations of a program, like the effect of a miscompilation on one instruction.
//!
//! A [`MutationKind`] changes one aspect: an operand, the operation, a copy, a memory access, control flow. [`Sites`]
//! are the live instructions of a program; a kind is tried at one after the other, starting at a random one, until it
//! applies. The result is a function of the program and one random number.
//!
//! [`nir`] has a few mutations for programs before selection.
//!
//! A mutant need not be valid, and it may be equivalent to the program: users run the validator and the interpreter.

mod control;
mod copies;
mod interface;
mod memory;
pub mod nir;
mod operands;
mod operations;
mod textures;

use ir3_compiler::ir3::{Block, Instr, InstrData, Program};
use std::collections::HashSet;

/// An instruction to be mutated, and the random number for the choices.
pub struct MutationSite {
    /// The block.
    pub block: Block,
    /// Index in the block.
    pub index: usize,
    /// The instruction.
    pub instr: Instr,
    /// Random bits.
    pub random: u64,
}

impl MutationSite {
    /// Picks one of `items`.
    fn pick<T: Copy>(&self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[(self.random >> 8) as usize % items.len()])
    }

    /// Picks one of `items` other than `current`.
    fn other<T: Copy + PartialEq>(&self, items: &[T], current: T) -> Option<T> {
        let others: Vec<T> = items.iter().copied().filter(|&item| item != current).collect();
        self.pick(&others)
    }

    fn coin(&self) -> bool {
        self.random >> 40 & 1 != 0
    }
}

/// Mutates the instruction of a site; false if nothing was changed.
pub type MutationFn = fn(&mut Program, &MutationSite) -> bool;

/// A kind of mutation.
pub struct MutationKind {
    /// Its name in tables.
    pub name: &'static str,
    change: MutationFn,
}

impl MutationKind {
    /// Mutates the first site that the kind applies to, starting at a random one; returns false if it applies to none.
    pub fn apply(&self, program: &mut Program, sites: &Sites, random: u64) -> bool {
        let sites = &sites.0;
        let start = random as usize % sites.len().max(1);
        (0..sites.len()).any(|i| {
            let (block, index, instr) = sites[(start + i) % sites.len()];
            (self.change)(program, &MutationSite { block, index, instr, random })
        })
    }
}

const fn kind(name: &'static str, change: MutationFn) -> MutationKind {
    MutationKind { name, change }
}

/// All kinds.
pub static KINDS: &[MutationKind] = &[
    kind("swap sources", operands::swap_sources),
    kind("other source", operands::other_source),
    kind("other destination", operands::other_destination),
    kind("drop instruction", memory::drop_instruction),
    kind("swap instructions", operands::swap_instructions),
    kind("drop store", memory::drop_store),
    kind("repeat store later", memory::repeat_store),
    kind("immediate +-1", operands::immediate),
    kind("constant +-1", operands::constant),
    kind("other condition", operations::condition),
    kind("source modifier", operands::modifier),
    kind("saturation", operations::saturation),
    kind("other operation", operations::operation),
    kind("constant result", operations::constant_result),
    kind("operation left out", operations::left_out),
    kind("split offset", copies::split_offset),
    kind("swap in collect", copies::swap_in_collect),
    kind("drop a copy", copies::drop_copy),
    kind("swap copies", copies::swap_copies),
    kind("swap in phi", copies::swap_in_phi),
    kind("other phi source", copies::phi_source),
    kind("loop-carried value", copies::loop_carried),
    kind("invert branch", control::invert_branch),
    kind("other predicate", control::other_predicate),
    kind("swap successors", control::swap_successors),
    kind("branch target", control::branch_target),
    kind("move types", operations::move_types),
    kind("rounding", operations::rounding),
    kind("memory components", memory::memory_components),
    kind("memory offset", memory::memory_offset),
    kind("memory type", memory::memory_type),
    kind("memory space", memory::memory_space),
    kind("memory order", memory::memory_order),
    kind("drop barrier", memory::drop_barrier),
    kind("store over barrier", memory::store_over_barrier),
    kind("descriptor set", memory::descriptor_set),
    kind("texture index", textures::texture_index),
    kind("sampler index", textures::sampler_index),
    kind("texture flags", textures::texture_flags),
    kind("texture type", textures::texture_type),
    kind("output slot", interface::output_slot),
    kind("input kind", interface::input_kind),
    kind("input component", interface::input_component),
    kind("other half", operands::other_half),
    kind("write mask", operands::write_mask),
    kind("driver param", interface::driver_param),
    kind("kill for demote", control::kill),
];

/// The live instructions of a program: all of them in registers; in SSA form those with an effect and those that they
/// depend on.
pub struct Sites(Vec<(Block, usize, Instr)>);

impl Sites {
    /// Finds the sites of `program`.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let live = live(program);
        let mut sites = Vec::new();
        for &block in &program.layout {
            for (index, &instr) in program.blocks[block].instrs.iter().enumerate() {
                if live.contains(&instr) {
                    sites.push((block, index, instr));
                }
            }
        }
        Self(sites)
    }
}

fn live(program: &Program) -> HashSet<Instr> {
    let mut live = HashSet::new();
    let mut work: Vec<Instr> = Vec::new();
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        let root = data.dsts.iter().all(|dst| dst.value().is_none()) || data.opcode.has_side_effect();
        if root {
            work.push(instr);
        }
    }
    while let Some(instr) = work.pop() {
        if live.insert(instr) {
            work.extend(
                program.instrs[instr].srcs.iter().filter_map(|src| src.value()).map(|v| program.values[v].instr),
            );
        }
    }
    live
}

fn data<'a>(program: &'a mut Program, site: &MutationSite) -> &'a mut InstrData {
    &mut program.instrs[site.instr]
}
