//! Liveness, to forget facts about dead values.
//!
//! An *entity* is an SSA value, or a piece of scratch memory if there are spill slots; registers are few and are not
//! tracked. Liveness flows backwards from each use to the definitions, over the edges of lanes and of the wave.
//! Forgetting is always sound: it only removes facts. So an approximation suffices for the addresses of slots: their
//! base is 0, or the immediate that is moved to it immediately before. A computed address may be any.
//!
//! The compiler has the same algorithm (`ir3_compiler::ir3::liveness`). It is not used here: the register checker
//! shares no analysis of liveness with the allocator that it checks, so that a fault of one cannot hide a fault of the
//! other.

use super::location::{Locations, Piece};
use super::slots::SlotAccess;
use super::wave::WaveEdges;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap, entity_impl};
use ir3_compiler::ir3::{Block, InstrData, Opcode, Place, Program, Src, SrcOperand};

/// An SSA value or, after all of them, a piece of scratch memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LiveEntity(u32);
entity_impl!(LiveEntity);

/// The entities that are live at the start of each block, including those that its phis define.
pub struct LiveIn {
    entities: LinkedLists<Block, LiveEntity>,
    /// The block that is queried, and for each piece the last block where it was live.
    block: Block,
    live: Vec<PackedOption<Block>>,
}

impl LiveIn {
    /// Computes the live-in sets. `wave`: the predecessors of each block on edges of the wave.
    pub fn new(program: &Program, uses: DefUseLists, wave: &WaveEdges) -> Self {
        let DefUseLists { uses, definitions, phis: mut entities, .. } = uses;
        let mut above: Vec<Block> = Vec::new();
        // The last entity that was found to be live in a block, and to be defined there.
        let mut is_above = SecondaryMap::<Block, PackedOption<LiveEntity>>::new();
        let mut is_defined = SecondaryMap::<Block, PackedOption<LiveEntity>>::new();
        is_above.resize(program.blocks.len());
        is_defined.resize(program.blocks.len());
        for entity in uses.keys() {
            definitions.of(entity).for_each(|block| is_defined[block] = entity.into());
            above.extend(uses.of(entity).filter_map(|use_of| match use_of {
                LiveUse::Within(block) => Some(block),
                LiveUse::AtEnd(block) => (is_defined[block] != entity.into()).then_some(block),
            }));
            while let Some(block) = above.pop() {
                if is_above[block] == entity.into() {
                    continue;
                }
                is_above[block] = entity.into();
                entities.push(block, entity);
                let preds = program.blocks[block].predecessors.iter().chain(&wave[block]).copied();
                above.extend(preds.filter(|&pred| is_defined[pred] != entity.into()));
            }
        }
        Self { entities, block: program.entry(), live: Vec::new() }
    }

    /// Selects the block whose start is queried.
    pub fn goto(&mut self, block: Block, locations: &Locations<'_>) {
        self.live.resize(locations.count as usize, None.into());
        self.block = block;
        for entity in self.entities.of(block) {
            for piece in locations.entity(entity) {
                self.live[piece as usize] = block.into();
            }
        }
    }

    /// Returns true if a piece of an entity is live there.
    pub fn is_live(&self, piece: Piece) -> bool {
        self.live[piece as usize].expand() == Some(self.block)
    }
}

#[derive(Clone, Copy)]
enum LiveUse {
    /// A use in a block, with no definition before it there.
    Within(Block),
    /// A use by a phi of a successor.
    AtEnd(Block),
}

/// The definitions of entities, and their uses in other blocks.
pub struct DefUseLists {
    uses: LinkedLists<LiveEntity, LiveUse>,
    definitions: LinkedLists<LiveEntity, Block>,
    /// The entities that the phis of each block define.
    phis: LinkedLists<Block, LiveEntity>,
    /// The immediate that was moved to a register immediately before, ignoring accesses to slots.
    moved: Option<(Place, u32)>,
}

impl DefUseLists {
    /// The state before the first instruction.
    pub fn new(program: &Program) -> Self {
        let entities = program.values.len() + program.scratch_size.div_ceil(2) as usize;
        let phis = LinkedLists::new(program.blocks.len());
        Self { uses: LinkedLists::new(entities), definitions: LinkedLists::new(entities), phis, moved: None }
    }

    /// Adds the definitions and uses of the next instruction.
    pub fn add(&mut self, program: &Program, block: Block, data: &InstrData) {
        let is_phi = data.opcode == Opcode::Phi;
        for (index, src) in data.srcs.iter().enumerate() {
            let Some(value) = src.value() else { continue };
            if !is_phi {
                self.read(LiveEntity::new(value.index()), block);
            } else if let Some(&pred) = program.blocks[block].predecessors.get(index) {
                self.uses.push(LiveEntity::new(value.index()), LiveUse::AtEnd(pred));
            }
        }
        let slots = program.scratch_size / 2;
        if is_indexed(program, data) {
            let pieces = program.values.len()..program.values.len() + slots as usize;
            pieces.map(LiveEntity::new).for_each(|entity| self.read(entity, block));
        } else if let Some(access) = SlotAccess::new(data) {
            let number = self.moved.filter(|(place, _)| access.base.place() == Some(place));
            let base = number.map_or(0, |(_, number)| number);
            let entities =
                access.units(base).filter(|&unit| unit < slots).map(|unit| program.values.len() + unit as usize);
            for entity in entities.map(LiveEntity::new) {
                if access.is_store { self.written(entity, block) } else { self.read(entity, block) }
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
            self.written(LiveEntity::new(value.index()), block);
            if is_phi {
                self.phis.push(block, LiveEntity::new(value.index()));
            }
        }
    }

    fn read(&mut self, entity: LiveEntity, block: Block) {
        if self.definitions.last(entity) != Some(block) {
            self.uses.push(entity, LiveUse::Within(block));
        }
    }

    fn written(&mut self, entity: LiveEntity, block: Block) {
        if self.definitions.last(entity) != Some(block) {
            self.definitions.push(entity, block);
        }
    }
}

/// Returns true if an instruction accesses scratch memory at an address that is computed.
fn is_indexed(program: &Program, data: &InstrData) -> bool {
    let base = SlotAccess::new(data).and_then(|access| match access.base.place() {
        Some(Place::Value(value)) => Some(*value),
        _ => None,
    });
    base.is_some_and(|value| program.instrs[program.values[value].instr].opcode == Opcode::ShlB)
}

/// Many short linked lists, in one array.
struct LinkedLists<K: EntityRef, V> {
    /// For each list, one more than the index of its last item.
    last: SecondaryMap<K, u32>,
    /// The items, each with one more than the index of the previous one.
    items: Vec<(V, u32)>,
}

impl<K: EntityRef, V: Copy> LinkedLists<K, V> {
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
