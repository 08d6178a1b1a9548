//! Into which blocks predicates are live.
//!
//! From each read the value is live on every way back to its definition. Values are treated one after another, so a
//! number for each block says whether it has been seen.

use super::Error;
use super::survey::Survey;
use crate::ir3::{Block, Program, RegFile, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// A value is live into a block.
struct Entry {
    value: Value,
    block: Block,
    /// The next one of the block, plus one.
    next: u32,
}

/// The values that are live into each block.
pub struct Liveness {
    /// By value.
    entries: Vec<Entry>,
    /// The first one of each block, plus one.
    heads: SecondaryMap<Block, u32>,
}

impl Liveness {
    pub fn new(program: &Program, survey: &Survey) -> Result<Self, Error> {
        let mut reads: Vec<(Value, Block)> = Vec::new();
        for &block in &survey.order {
            for op in &survey.ops[survey.range(block)] {
                for src in program.instrs[op.instr].srcs.iter().filter(|src| src.class.file == RegFile::Predicate) {
                    reads.extend(src.value().map(|value| (value, block)));
                }
            }
        }
        reads.retain(|&(value, block)| survey.def_block[value].expand() != Some(block));
        reads.sort_unstable();
        let mut this = Self { entries: Vec::new(), heads: SecondaryMap::with_capacity(program.blocks.len()) };
        let mut seen: SecondaryMap<Block, PackedOption<Value>> = SecondaryMap::with_capacity(program.blocks.len());
        let mut stack = Vec::new();
        for (value, block) in reads {
            let def = survey.def_block[value].expand();
            stack.push(block);
            while let Some(block) = stack.pop() {
                if Some(block) == def || seen[block].expand() == Some(value) {
                    continue;
                }
                if block == program.entry() {
                    return Err(Error::Malformed { what: format!("{value} is read where it is not defined") });
                }
                seen[block] = value.into();
                let next = std::mem::replace(&mut this.heads[block], this.entries.len() as u32 + 1);
                this.entries.push(Entry { value, block, next });
                stack.extend_from_slice(&program.blocks[block].predecessors);
            }
        }
        Ok(this)
    }

    /// The values that are live into a block.
    pub fn live_in(&self, block: Block) -> impl Iterator<Item = Value> + '_ {
        let mut at = self.heads[block];
        std::iter::from_fn(move || {
            let entry = &self.entries[at.checked_sub(1)? as usize];
            at = entry.next;
            Some(entry.value)
        })
    }

    /// The blocks that a value is live into.
    pub fn blocks(&self, value: Value) -> impl Iterator<Item = Block> + '_ {
        let start = self.entries.partition_point(|entry| entry.value < value);
        self.entries[start..].iter().take_while(move |entry| entry.value == value).map(|entry| entry.block)
    }
}
