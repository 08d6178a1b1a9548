//! Which SSA values are still to be read, so that what is known of others can be forgotten.
//!
//! From each use backwards to the definition, over the logical edges and the physical ones. Forgetting is always right: it only
//! makes less known.

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};
use ir3_compiler::ir3::{Block, Opcode, Program, Value};

/// Values that are live at the end of each block, those that phis behind it read among them, ascending.
pub struct LiveOut(SecondaryMap<Block, Vec<Value>>);

impl LiveOut {
    /// Computes them.
    pub fn new(program: &Program) -> Self {
        let mut live = Self(SecondaryMap::with_capacity(program.blocks.len()));
        let defined = definitions(program);
        let mut above: Vec<Block> = Vec::new();
        let mut is_above = SecondaryMap::<Block, PackedOption<Value>>::with_capacity(program.blocks.len());
        // All uses of one value after the other.
        for (value, use_of) in uses(program, &defined) {
            match use_of {
                Use::Within(block) => above.push(block),
                Use::AtEnd(block) => live.at_end(value, block, &defined, &mut above),
            }
            while let Some(block) = above.pop() {
                if is_above[block].expand() == Some(value) {
                    continue;
                }
                is_above[block] = value.into();
                let data = &program.blocks[block];
                for &pred in data.predecessors.iter().chain(&data.physical_predecessors) {
                    live.at_end(value, pred, &defined, &mut above);
                }
            }
        }
        live
    }

    /// A value is live at the end of a block; where nothing there defines it, at its beginning too.
    fn at_end(
        &mut self,
        value: Value,
        block: Block,
        defined: &SecondaryMap<Value, PackedOption<Block>>,
        above: &mut Vec<Block>,
    ) {
        let all = &mut self.0[block];
        if all.last() != Some(&value) {
            all.push(value);
        }
        if defined[value].expand() != Some(block) {
            above.push(block);
        }
    }

    /// The values that are live at the end of a block.
    pub fn of(&self, block: Block) -> &[Value] {
        &self.0[block]
    }
}

#[derive(Clone, Copy)]
enum Use {
    /// In a block, and not defined there.
    Within(Block),
    /// By a phi behind it.
    AtEnd(Block),
}

/// The block of each value's definition; none where there are several, which keeps the value alive for longer.
fn definitions(program: &Program) -> SecondaryMap<Value, PackedOption<Block>> {
    let mut defined = SecondaryMap::with_capacity(program.values.len());
    let mut seen = SecondaryMap::<Value, bool>::with_capacity(program.values.len());
    for (block, instr) in program.iter_instrs() {
        for value in program.instrs[instr].dsts.iter().filter_map(|dst| dst.value()) {
            let again = std::mem::replace(&mut seen[value], true);
            defined[value] = if again && defined[value] != block.into() { None.into() } else { block.into() };
        }
    }
    defined
}

/// Every use that is not in the block of the definition, by values.
fn uses(program: &Program, defined: &SecondaryMap<Value, PackedOption<Block>>) -> Vec<(Value, Use)> {
    let mut uses = Vec::new();
    for (block, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        for (index, src) in data.srcs.iter().enumerate() {
            let Some(value) = src.value() else { continue };
            if data.opcode == Opcode::Phi {
                uses.extend(program.blocks[block].predecessors.get(index).map(|&pred| (value, Use::AtEnd(pred))));
            } else if defined[value].expand() != Some(block) {
                uses.push((value, Use::Within(block)));
            }
        }
    }
    uses.sort_by_key(|&(value, _)| value.index());
    uses
}
