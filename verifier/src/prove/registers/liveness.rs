//! What is still to be read, so that what is known of other things can be forgotten.
//!
//! A *thing* is an SSA value, or a piece of scratch memory, where slots are; registers are no things, as there are but few. From
//! each use backwards to the definitions, over the edges that lanes take and those of the wave. Forgetting is always right: it only
//! makes less known. So a guess will do where slots are: their base is 0, or what is moved to it right in front.
//!
//! The compiler has the same algorithm (`ir3_compiler::ir3::liveness`). It is not used here: the register checker shares
//! no analysis of liveness with the allocator that it checks, so that a fault of one cannot hide a fault of the other.

use super::location::{Locations, Piece};
use super::slots::Access;
use super::wave::WaveEdges;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap, entity_impl};
use ir3_compiler::ir3::{Block, InstrData, Opcode, Place, Program, Src, SrcOperand};

/// A value, or, behind all of them, a piece of scratch memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Thing(u32);
entity_impl!(Thing);

/// Things that are live at the start of each block, those that its phis define among them.
pub struct LiveIn {
    things: Lists<Block, Thing>,
    /// The block that is asked about, and of each piece the last one where it was live.
    block: Block,
    live: Vec<PackedOption<Block>>,
}

impl LiveIn {
    /// Computes them. `wave` are the blocks that the wave may come from.
    pub fn new(program: &Program, uses: Uses, wave: &WaveEdges) -> Self {
        let Uses { uses, definitions, phis: mut things, .. } = uses;
        let mut above: Vec<Block> = Vec::new();
        // The last thing that was found to be live in a block, and to be defined there.
        let mut is_above = SecondaryMap::<Block, PackedOption<Thing>>::new();
        let mut is_defined = SecondaryMap::<Block, PackedOption<Thing>>::new();
        is_above.resize(program.blocks.len());
        is_defined.resize(program.blocks.len());
        for thing in uses.keys() {
            definitions.of(thing).for_each(|block| is_defined[block] = thing.into());
            above.extend(uses.of(thing).filter_map(|use_of| match use_of {
                Use::Within(block) => Some(block),
                Use::AtEnd(block) => (is_defined[block] != thing.into()).then_some(block),
            }));
            while let Some(block) = above.pop() {
                if is_above[block] == thing.into() {
                    continue;
                }
                is_above[block] = thing.into();
                things.push(block, thing);
                let preds = program.blocks[block].predecessors.iter().chain(&wave[block]).copied();
                above.extend(preds.filter(|&pred| is_defined[pred] != thing.into()));
            }
        }
        Self { things, block: program.entry(), live: Vec::new() }
    }

    /// From now on the start of this block is asked about.
    pub fn goto(&mut self, block: Block, locations: &Locations<'_>) {
        self.live.resize(locations.count as usize, None.into());
        self.block = block;
        for thing in self.things.of(block) {
            for piece in locations.thing(thing) {
                self.live[piece as usize] = block.into();
            }
        }
    }

    /// Whether a piece of a thing is live there.
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

/// Where things are written, and read elsewhere.
pub struct Uses {
    uses: Lists<Thing, Use>,
    definitions: Lists<Thing, Block>,
    /// What the phis of each block define.
    phis: Lists<Block, Thing>,
    /// The number that has been moved to a register right in front, but for accesses to slots.
    moved: Option<(Place, u32)>,
}

impl Uses {
    /// Before the first instruction.
    pub fn new(program: &Program) -> Self {
        let things = program.values.len() + program.scratch_size.div_ceil(2) as usize;
        let phis = Lists::new(program.blocks.len());
        Self { uses: Lists::new(things), definitions: Lists::new(things), phis, moved: None }
    }

    /// Adds those of the next instruction.
    pub fn add(&mut self, program: &Program, block: Block, data: &InstrData) {
        let is_phi = data.opcode == Opcode::Phi;
        for (index, src) in data.srcs.iter().enumerate() {
            let Some(value) = src.value() else { continue };
            if !is_phi {
                self.read(Thing::new(value.index()), block);
            } else if let Some(&pred) = program.blocks[block].predecessors.get(index) {
                self.uses.push(Thing::new(value.index()), Use::AtEnd(pred));
            }
        }
        if let Some(access) = Access::new(data) {
            let number = self.moved.filter(|(place, _)| access.base.place() == Some(place));
            let base = number.map_or(0, |(_, number)| number);
            let slots = program.scratch_size / 2;
            let things =
                access.units(base).filter(|&unit| unit < slots).map(|unit| program.values.len() + unit as usize);
            for thing in things.map(Thing::new) {
                if access.is_store { self.written(thing, block) } else { self.read(thing, block) }
            }
        } else {
            self.moved = match (data.opcode, &data.dsts[..], &data.srcs[..]) {
                (Opcode::Mov, [dst], [Src { operand: SrcOperand::Immediate(number), .. }]) => {
                    Some((dst.place, *number))
                }
                _ => None,
            };
        }
        for value in data.dsts.iter().filter_map(|dst| dst.value()) {
            self.written(Thing::new(value.index()), block);
            if is_phi {
                self.phis.push(block, Thing::new(value.index()));
            }
        }
    }

    fn read(&mut self, thing: Thing, block: Block) {
        if self.definitions.last(thing) != Some(block) {
            self.uses.push(thing, Use::Within(block));
        }
    }

    fn written(&mut self, thing: Thing, block: Block) {
        if self.definitions.last(thing) != Some(block) {
            self.definitions.push(thing, block);
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

    fn keys(&self) -> impl Iterator<Item = K> + use<K, V> {
        self.last.keys()
    }

    fn last(&self, key: K) -> Option<V> {
        self.of(key).next()
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
