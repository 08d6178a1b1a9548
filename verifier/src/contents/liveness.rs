//! Which SSA values are still to be read, so that what is known of others can be forgotten.
//!
//! Backward, over the logical edges; shared values over the physical ones, too. Forgetting is always right: it only makes
//! less known.

use cranelift_entity::{EntityRef, SecondaryMap};
use fixedbitset::FixedBitSet;
use ir3_compiler::ir3::{Block, Opcode, Program, Value};

/// Values that are live at the end of each block, those that phis behind it read among them.
pub struct LiveOut(SecondaryMap<Block, FixedBitSet>);

impl LiveOut {
    /// Computes them.
    pub fn new(program: &Program) -> Self {
        let count = program.values.len();
        let mut out: SecondaryMap<Block, FixedBitSet> = SecondaryMap::with_capacity(program.blocks.len());
        let mut live_in: SecondaryMap<Block, FixedBitSet> = SecondaryMap::with_capacity(program.blocks.len());
        let mut changed = true;
        while changed {
            changed = false;
            for &block in program.layout.iter().rev() {
                let data = &program.blocks[block];
                let mut live = FixedBitSet::with_capacity(count);
                for next in data.successors().chain(data.physical_successors.iter().copied()) {
                    live.union_with(&live_in[next]);
                    read_by_phis(program, block, next, &mut live);
                }
                out[block].clone_from(&live);
                for &instr in data.instrs.iter().rev() {
                    let data = &program.instrs[instr];
                    for value in data.dsts.iter().filter_map(|dst| dst.value()) {
                        live.set(value.index(), false);
                    }
                    if data.opcode != Opcode::Phi {
                        data.srcs.iter().filter_map(|src| src.value()).for_each(|value| live.insert(value.index()));
                    }
                }
                if live != live_in[block] {
                    live_in[block] = live;
                    changed = true;
                }
            }
        }
        Self(out)
    }

    /// Whether a value is live at the end of a block.
    pub fn contains(&self, block: Block, value: Value) -> bool {
        self.0[block].contains(value.index())
    }
}

fn read_by_phis(program: &Program, from: Block, to: Block, live: &mut FixedBitSet) {
    let data = &program.blocks[to];
    for &phi in &data.instrs {
        let phi = &program.instrs[phi];
        if phi.opcode != Opcode::Phi {
            break;
        }
        for (&pred, src) in data.predecessors.iter().zip(&phi.srcs) {
            if pred == from {
                src.value().into_iter().for_each(|value| live.insert(value.index()));
            }
        }
    }
}
