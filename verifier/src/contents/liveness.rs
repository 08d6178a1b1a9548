//! Which SSA values are still to be read, so that what is known of others can be forgotten.
//!
//! From each use backwards to the definition, over the logical edges and the physical ones. Forgetting is always right: it only
//! makes less known.

use super::location::{Locations, Piece};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};
use ir3_compiler::ir3::{Block, InstrData, Opcode, Program, Value};

/// Values that are live at the start of each block, those that its phis define among them.
pub struct LiveIn {
    values: Lists<Block, Value>,
    /// The block that is asked about, and of each piece the last one where it was live.
    block: Block,
    live: Vec<PackedOption<Block>>,
}

impl LiveIn {
    /// Computes them.
    pub fn new(program: &Program, uses: Uses) -> Self {
        let Uses { uses, phis: mut values, mut defined, several } = uses;
        several.into_iter().for_each(|value| defined[value] = None.into());
        let is_defined = |value: Value, block: Block| defined[value].expand() == Some(block);
        let mut above: Vec<Block> = Vec::new();
        let mut is_above = SecondaryMap::<Block, PackedOption<Value>>::new();
        is_above.resize(program.blocks.len());
        for value in program.values.keys() {
            above.extend(uses.of(value).filter_map(|use_of| match use_of {
                Use::Within(block) => Some(block),
                Use::AtEnd(block) => (!is_defined(value, block)).then_some(block),
            }));
            while let Some(block) = above.pop() {
                if is_above[block].expand() == Some(value) {
                    continue;
                }
                is_above[block] = value.into();
                values.push(block, value);
                let data = &program.blocks[block];
                let preds = data.predecessors.iter().chain(&data.physical_predecessors).copied();
                above.extend(preds.filter(|&pred| !is_defined(value, pred)));
            }
        }
        Self { values, block: program.entry(), live: Vec::new() }
    }

    /// From now on the start of this block is asked about.
    pub fn goto(&mut self, block: Block, locations: &Locations<'_>) {
        self.live.resize(locations.count as usize, None.into());
        self.block = block;
        for value in self.values.of(block) {
            for piece in locations.value(value) {
                self.live[piece as usize] = block.into();
            }
        }
    }

    /// Whether a piece of a value is live there.
    pub fn is_live(&self, piece: Piece) -> bool {
        self.live[piece as usize].expand() == Some(self.block)
    }
}

#[derive(Clone, Copy)]
enum Use {
    /// In a block, and not behind a definition there.
    Within(Block),
    /// By a phi behind it.
    AtEnd(Block),
}

/// Where values are defined, and read elsewhere.
pub struct Uses {
    uses: Lists<Value, Use>,
    /// What the phis of each block define.
    phis: Lists<Block, Value>,
    /// The block of each value's last definition.
    defined: SecondaryMap<Value, PackedOption<Block>>,
    /// Values that are defined in several blocks. They are taken to live for longer than they do.
    several: Vec<Value>,
}

impl Uses {
    /// Before the first instruction.
    pub fn new(program: &Program) -> Self {
        let values = program.values.len();
        let mut defined = SecondaryMap::new();
        defined.resize(values);
        Self { uses: Lists::new(values), phis: Lists::new(program.blocks.len()), defined, several: Vec::new() }
    }

    /// Adds those of the next instruction.
    pub fn add(&mut self, program: &Program, block: Block, data: &InstrData) {
        let is_phi = data.opcode == Opcode::Phi;
        for (index, src) in data.srcs.iter().enumerate() {
            let Some(value) = src.value() else { continue };
            if is_phi {
                if let Some(&pred) = program.blocks[block].predecessors.get(index) {
                    self.uses.push(value, Use::AtEnd(pred));
                }
            } else if self.defined[value].expand() != Some(block) {
                self.uses.push(value, Use::Within(block));
            }
        }
        for value in data.dsts.iter().filter_map(|dst| dst.value()) {
            if self.defined[value].expand().is_some_and(|other| other != block) {
                self.several.push(value);
            }
            self.defined[value] = block.into();
            if is_phi {
                self.phis.push(block, value);
            }
        }
    }
}

/// Many short lists, in one array.
struct Lists<K: EntityRef, V> {
    /// One more than where the last item of each list is.
    last: SecondaryMap<K, u32>,
    /// The items, each with one more than where the one in front of it is.
    items: Vec<(V, u32)>,
}

impl<K: EntityRef, V: Copy> Lists<K, V> {
    fn new(keys: usize) -> Self {
        let mut last = SecondaryMap::new();
        last.resize(keys);
        Self { last, items: Vec::new() }
    }

    fn push(&mut self, key: K, item: V) {
        self.items.push((item, self.last[key]));
        self.last[key] = self.items.len() as u32;
    }

    fn of(&self, key: K) -> impl Iterator<Item = V> + '_ {
        let mut last = self.last[key];
        std::iter::from_fn(move || {
            let (item, next) = *self.items.get((last as usize).checked_sub(1)?)?;
            last = next;
            Some(item)
        })
    }
}
