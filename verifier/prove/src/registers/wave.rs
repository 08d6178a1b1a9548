//! The control flow of a wave, which differs from that of its lanes: while some lanes wait, others run.
//!
//! A wave runs, of the blocks in which lanes wait, the one that is earliest in the code, with all lanes that wait
//! there. So all lanes that wait while a block runs are in later blocks; and when it has run, the wave goes to the
//! earliest of those and of the block's successors. The sets of blocks in which lanes may wait grow until nothing
//! changes.
//!
//! Lanes may diverge at every block with two successors, unless the condition is a subgroup vote or is shown to be
//! uniform ([`uniform`](super::uniform)). What the programs say of that is not trusted, nor are their physical edges;
//! and this is not the compiler's code for the same analysis, which may be wrong.

use super::uniform::{Together, uniform_branches};
use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::{Block, Opcode, Program};
use ir3_semantics::support::guards::{Guard, left_out};
use smallvec::SmallVec;

/// The predecessors of each block on edges of the wave.
pub(super) type WaveEdges = SecondaryMap<Block, SmallVec<[Block; 2]>>;

/// Positions in the layout.
type Positions = SmallVec<[u32; 4]>;

/// The control flow of the wave in a program.
#[derive(Default)]
pub(super) struct WaveFlow {
    /// The edges.
    pub comes_from: WaveEdges,
    /// The blocks inside of which its last lane may end.
    pub ends_within: SecondaryMap<Block, bool>,
}

impl WaveFlow {
    /// Computes the edges.
    pub fn new(program: &Program, together: &Together) -> Self {
        let mut ends_within = SecondaryMap::new();
        for (block, instr) in program.iter_instrs() {
            if program.instrs[instr].opcode == Opcode::Kill && !left_out(Guard::RegistersEndsWithin) {
                ends_within[block] = true;
            }
        }
        Self { comes_from: edges(program, together, &ends_within), ends_within }
    }
}

/// The blocks whose first instruction may come after another lane has run one of the blocks `writers`, while the lanes
/// that run it waited for that.
pub(super) fn waits_for(comes_from: &WaveEdges, program: &Program, writers: &[Block]) -> SecondaryMap<Block, bool> {
    let mut goes_to = WaveEdges::new();
    for &block in &program.layout {
        comes_from[block].iter().for_each(|&pred| goes_to[pred].push(block));
    }
    let before_writers = reached(comes_from, writers.iter().copied(), None);
    let mut found = SecondaryMap::new();
    for &block in &program.layout {
        let preds = program.blocks[block].predecessors.iter();
        let others =
            preds.flat_map(|&pred| &goes_to[pred]).copied().filter(|&next| next != block && before_writers[next]);
        let meanwhile = reached(&goes_to, others, Some(block));
        if writers.iter().any(|&writer| meanwhile[writer]) {
            let before = reached(comes_from, comes_from[block].iter().copied(), Some(block));
            found[block] = writers.iter().any(|&writer| meanwhile[writer] && before[writer]);
        }
    }
    found
}

/// The blocks that paths from some blocks reach which do not pass through `without`.
fn reached(edges: &WaveEdges, from: impl Iterator<Item = Block>, without: Option<Block>) -> SecondaryMap<Block, bool> {
    let mut seen = SecondaryMap::<Block, bool>::new();
    let mut stack: SmallVec<[Block; 16]> = from.collect();
    while let Some(block) = stack.pop() {
        if Some(block) != without && !std::mem::replace(&mut seen[block], true) {
            stack.extend(edges[block].iter().copied());
        }
    }
    seen
}

fn edges(program: &Program, together: &Together, ends_within: &SecondaryMap<Block, bool>) -> WaveEdges {
    let mut position = SecondaryMap::<Block, u32>::with_capacity(program.blocks.len());
    (0..).zip(&program.layout).for_each(|(at, &block)| position[block] = at);
    let mut waits: Vec<Positions> = vec![Positions::new(); program.layout.len()];
    let mut grown = vec![true; program.layout.len()];
    let uniform = uniform_branches(program, together);
    while let Some(first) = grown.iter().position(|&grown| grown) {
        for at in first..grown.len() {
            if !std::mem::take(&mut grown[at]) {
                continue;
            }
            let here = waits[at].clone();
            let next = steps(program, at, &position);
            let block = program.layout[at];
            let parts = !uniform[block] && !votes(program, block) && !left_out(Guard::WaveDiverges);
            let mut go = |to: u32, others: &[u32]| {
                let waiting = &mut waits[to as usize];
                let before = waiting.len();
                let all = here.iter().chain(others).copied().filter(|&other| other > to);
                all.for_each(|other| {
                    if !waiting.contains(&other) {
                        waiting.push(other)
                    }
                });
                grown[to as usize] |= waiting.len() > before;
            };
            next.iter().for_each(|&to| go(to, if parts { &next } else { &[] }));
            turns(ends_within[program.layout[at]], &here, &next).for_each(|to| go(to, &next));
        }
    }
    let mut edges = WaveEdges::new();
    for (at, &block) in program.layout.iter().enumerate() {
        let next = steps(program, at, &position);
        for to in next.iter().copied().chain(turns(ends_within[block], &waits[at], &next)) {
            let from = &mut edges[program.layout[to as usize]];
            if from.last() != Some(&block) {
                from.push(block);
            }
        }
    }
    edges
}

fn steps(program: &Program, at: usize, position: &SecondaryMap<Block, u32>) -> Positions {
    program.blocks[program.layout[at]].successors().map(|to| position[to]).collect()
}

/// The positions to which the wave may go from a block though none of the lanes that ran the block goes there: blocks
/// in which lanes wait, if all lanes of the block go further, or end.
fn turns<'a>(ends_within: bool, waits: &'a [u32], next: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
    let ends = ends_within || next.is_empty();
    waits.iter().copied().filter(move |to| (ends || next.iter().any(|next| next > to)) && !left_out(Guard::WaveTurns))
}

fn votes(program: &Program, block: Block) -> bool {
    let last = program.blocks[block].instrs.last().map(|&instr| program.instrs[instr].opcode);
    matches!(last, Some(Opcode::Bany | Opcode::Ball))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::ir3::BlockData;
    use ir3_compiler::ir3::reconvergence;

    /// Both computations agree on random edges between blocks, without votes and ends.
    #[test]
    fn the_compiler_finds_the_same_edges() {
        let mut random = ir3_semantics::support::random::Random::new(1);
        for _ in 0..2000 {
            let count = 2 + random.below(8);
            let mut program = Program::default();
            program.layout = (0..count).map(|_| program.blocks.push(BlockData::default())).collect();
            for from in 0..count - 1 {
                program.add_edge(program.layout[from], 0, program.layout[from + 1]);
                let to = 1 + random.below(count - 1);
                if to != from + 1 && random.chance(60) {
                    program.add_edge(program.layout[from], 1, program.layout[to]);
                }
            }
            reconvergence::run(&mut program);
            let edges = WaveFlow::new(&program, &Together::new(&program)).comes_from;
            for &block in &program.layout {
                let mut found: Vec<Block> = edges[block].to_vec();
                let mut expected: Vec<Block> = program.blocks[block].physical_predecessors.to_vec();
                found.sort_unstable();
                expected.sort_unstable();
                assert_eq!(found, expected, "{program:?}");
            }
        }
    }
}
