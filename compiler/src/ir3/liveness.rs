//! Liveness: where an entity (an SSA value, a component of one) is live.
//!
//! This is the sparse form of the backward [dataflow analysis](super::dataflow) for entities that are defined once,
//! before they are read: an entity is live on all paths from each use back to its definition. No fixed point is needed,
//! and no table of blocks and entities, if entities are taken one after another: time and space are proportional to the
//! sets at the starts of blocks.
//!
//! A phi's source is read at the end of the predecessor. [`walk`] follows the paths of one entity; [`LiveSets`] lists
//! the entities that are live at the starts and the ends of blocks.

use super::{Block, Program};
use crate::maps::map_of;
use cranelift_entity::packed_option::{PackedOption, ReservedValue};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Called by [`walk`] for the blocks that it finds.
pub trait Visitor<N> {
    /// The entity is live at the start of `block`. Returns true if that was not known: only then are its predecessors
    /// visited.
    fn live_in(&mut self, block: N) -> bool;

    /// The entity is live at the end of `block`. May be called several times.
    fn live_out(&mut self, block: N);
}

/// Follows all paths from `blocks`, where an entity is read that is not defined before it in the same block, back to
/// the block `def` that defines it. `blocks` is empty afterwards. Without a definition they end at blocks without
/// predecessors.
#[inline]
pub fn walk<'a, N: Copy + Eq + 'a>(
    blocks: &mut Vec<N>,
    def: Option<N>,
    predecessors: impl Fn(N) -> &'a [N],
    visitor: &mut impl Visitor<N>,
) {
    while let Some(block) = blocks.pop() {
        if !visitor.live_in(block) {
            continue;
        }
        for &pred in predecessors(block) {
            visitor.live_out(pred);
            if Some(pred) != def {
                blocks.push(pred);
            }
        }
    }
}

/// A read of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use<E> {
    /// The entity.
    pub entity: E,
    /// The block.
    pub block: Block,
    /// It is read at the end of the block, by a phi of a successor, else within it.
    pub at_end: bool,
}

/// Entities that are live at the starts and the ends of blocks.
pub struct LiveSets<E> {
    /// The entities with the blocks that they are live into.
    starts: Vec<(E, Block)>,
    live_in: BlockLists<E>,
    live_out: BlockLists<E>,
}

impl<E: EntityRef + ReservedValue + Ord> LiveSets<E> {
    /// Computes the sets, given the reads of all entities, the blocks that define them, and the predecessors of blocks.
    pub fn new<'a>(
        program: &Program,
        mut uses: Vec<Use<E>>,
        def: impl Fn(E) -> Option<Block>,
        predecessors: impl Fn(Block) -> &'a [Block] + Copy,
    ) -> Self {
        uses.retain(|found| found.at_end || def(found.entity) != Some(found.block));
        uses.sort_unstable();
        uses.dedup();
        let mut marks = Marks::new(program.blocks.len());
        let mut blocks = Vec::new();
        for same in uses.chunk_by(|a, b| a.entity == b.entity) {
            let def = def(same[0].entity);
            marks.entity = same[0].entity.into();
            for found in same {
                if found.at_end {
                    marks.live_out(found.block);
                }
                if def != Some(found.block) {
                    blocks.push(found.block);
                    walk(&mut blocks, def, predecessors, &mut marks);
                }
            }
        }
        let count = program.blocks.len();
        Self {
            live_in: BlockLists::new(&marks.starts, count),
            live_out: BlockLists::new(&marks.ends, count),
            starts: marks.starts,
        }
    }

    /// The entities that are live at the start of a block, in order; definitions of its phis are not among them.
    pub fn live_in(&self, block: Block) -> &[E] {
        self.live_in.of(block)
    }

    /// The entities that are live at the end of a block, in order.
    pub fn live_out(&self, block: Block) -> &[E] {
        self.live_out.of(block)
    }

    /// The blocks at whose starts an entity is live.
    pub fn blocks(&self, entity: E) -> impl Iterator<Item = Block> + '_ {
        let start = self.starts.partition_point(|found| found.0 < entity);
        self.starts[start..].iter().take_while(move |found| found.0 == entity).map(|found| found.1)
    }
}

/// Entities by block, in one array.
struct BlockLists<E> {
    entities: Vec<E>,
    /// The end of the list of each block: it starts at the end of the list before.
    ends: Vec<u32>,
}

impl<E: EntityRef + ReservedValue> BlockLists<E> {
    fn new(pairs: &[(E, Block)], blocks: usize) -> Self {
        let mut ends = vec![0u32; blocks];
        for &(_, block) in pairs {
            ends[block.index()] += 1;
        }
        let mut total = 0;
        for end in &mut ends {
            // For now where the list starts; each entity that is put into it moves that on.
            total += std::mem::replace(end, total);
        }
        let mut entities = vec![E::reserved_value(); pairs.len()];
        for &(entity, block) in pairs {
            let end = &mut ends[block.index()];
            entities[*end as usize] = entity;
            *end += 1;
        }
        Self { entities, ends }
    }

    fn of(&self, block: Block) -> &[E] {
        let start = block.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.entities[start as usize..self.ends[block.index()] as usize]
    }
}

/// Facts about blocks while entities are processed one after another.
struct Marks<E: EntityRef + ReservedValue> {
    entity: PackedOption<E>,
    /// The last entity that was found to be live at the start, and at the end, of each block.
    last_in: SecondaryMap<Block, PackedOption<E>>,
    last_out: SecondaryMap<Block, PackedOption<E>>,
    starts: Vec<(E, Block)>,
    ends: Vec<(E, Block)>,
}

impl<E: EntityRef + ReservedValue> Marks<E> {
    fn new(blocks: usize) -> Self {
        Self {
            entity: None.into(),
            last_in: map_of(blocks),
            last_out: map_of(blocks),
            starts: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl<E: EntityRef + ReservedValue> Visitor<Block> for Marks<E> {
    fn live_in(&mut self, block: Block) -> bool {
        let fresh = std::mem::replace(&mut self.last_in[block], self.entity) != self.entity;
        if fresh {
            self.starts.extend(self.entity.expand().map(|entity| (entity, block)));
        }
        fresh
    }

    fn live_out(&mut self, block: Block) {
        if std::mem::replace(&mut self.last_out[block], self.entity) != self.entity {
            self.ends.extend(self.entity.expand().map(|entity| (entity, block)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::dataflow::{Analysis, Direction, Edge, solve};
    use crate::ir3::dominance::{Cfg, Dominators, EdgeKind};
    use crate::ir3::{BlockData, Value};

    /// The liveness analysis by the general solver: sets of values as bits.
    struct Sets<'a> {
        uses: &'a [Use<Value>],
        defs: &'a [Block],
    }

    impl Sets<'_> {
        fn bits(&self, mut of: impl FnMut(&Use<Value>) -> bool) -> u64 {
            self.uses.iter().filter(|&found| of(found)).fold(0, |bits, found| bits | 1 << found.entity.as_u32())
        }
    }

    impl Analysis<Block> for Sets<'_> {
        type Fact = u64;

        const DIRECTION: Direction = Direction::Backward;

        fn join(&mut self, input: &mut u64, output: &u64, edge: Edge<Block>) {
            *input |= output | self.bits(|found| found.at_end && found.block == edge.from);
        }

        fn transfer(&mut self, block: Block, input: &u64) -> u64 {
            let defs = (0..).zip(self.defs).filter(|(_, def)| **def == block).fold(0, |bits, (i, _)| bits | 1 << i);
            (input | self.bits(|found| !found.at_end && found.block == block)) & !defs
        }
    }

    /// Programs of eight blocks with loops and unreachable blocks, from a generator of pseudo-random numbers.
    #[test]
    fn as_the_solver_has_it() {
        let mut state = 7u32;
        let mut below = |n: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % n
        };
        let mut live = 0;
        for _ in 0..300 {
            let mut program = Program::default();
            let blocks: Vec<Block> = (0..8).map(|_| program.blocks.push(BlockData::default())).collect();
            program.layout.clone_from(&blocks);
            for from in 0..7 {
                for slot in 0..below(3) {
                    // Mostly forward.
                    let to = if below(4) == 0 { 1 + below(7) } else { from + 1 + below(7 - from) };
                    program.add_edge(blocks[from as usize], slot as usize, blocks[to as usize]);
                }
            }
            let dominators = Dominators::new(&program, EdgeKind::Logical);
            let defs: Vec<Block> = (0..16).map(|_| blocks[below(8) as usize]).collect();
            let mut uses = Vec::new();
            for (value, &def) in (0..).map(Value::from_u32).zip(&defs) {
                for _ in 0..below(4) {
                    let block = blocks[below(8) as usize];
                    let at_end = below(3) == 0 && program.blocks[block].successors().count() > 0;
                    if dominators.dominates(def, block) {
                        uses.push(Use { entity: value, block, at_end });
                    }
                }
            }
            let expected =
                solve(&Cfg::new(&program, EdgeKind::Logical), &blocks, &mut Sets { uses: &uses, defs: &defs });
            let sets = LiveSets::new(
                &program,
                uses,
                |value| Some(defs[value.index()]),
                |block| &program.blocks[block].predecessors,
            );
            for &block in &blocks {
                let bits = |list: &[Value]| list.iter().fold(0, |bits, value| bits | 1u64 << value.as_u32());
                assert_eq!(bits(sets.live_in(block)), expected.start[block]);
                assert_eq!(bits(sets.live_out(block)), expected.end[block]);
                assert!(sets.live_in(block).is_sorted() && sets.live_out(block).is_sorted());
                let values = (0..16).map(Value::from_u32);
                let here: Vec<Value> = values.filter(|&value| sets.blocks(value).any(|other| other == block)).collect();
                assert_eq!(here, sets.live_in(block));
                live += here.len();
            }
        }
        assert!(live > 500, "{live}");
    }
}
