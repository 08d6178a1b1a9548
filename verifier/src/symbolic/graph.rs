//! The blocks of a decoded program in the order of the layout, and its loops.
//!
//! A wave runs, of the blocks where lanes wait, the one that comes first, with all lanes that wait there. So if every edge goes
//! forward but those to the headers of loops, and a loop can be entered by its header only, then: the lanes in a
//! loop are in the same iteration; what follows the loop is run when all have left it; and between two cut points
//! every block is run once, in the order of the layout, by all lanes that come there.

use super::{Slot, Unsupported};
use fixedbitset::FixedBitSet;
use smallvec::SmallVec;

/// What the blocks of a loop do that lanes outside of it can see.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Versions that change: numbers of slots.
    pub versions: Vec<Slot>,
    /// Shared registers that are written.
    pub shared: Vec<Slot>,
}

impl Effects {
    /// These, and others.
    pub fn extend(&mut self, others: Self) {
        self.versions.extend(others.versions);
        self.shared.extend(others.shared);
    }
}

/// A loop: the blocks from its header to the last one that goes back there.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Position of the header.
    pub header: u32,
    /// Position of the last block.
    pub last: u32,
    /// What happens in it.
    pub effects: Effects,
}

impl Loop {
    /// Whether a block is in it.
    pub fn contains(&self, block: u32) -> bool {
        (self.header..=self.last).contains(&block)
    }
}

/// The shape of a program.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Of each block the blocks that may follow it.
    pub successors: Vec<SmallVec<[u32; 2]>>,
    /// The loops, in the order of their headers.
    pub loops: Vec<Loop>,
}

impl Graph {
    /// The loops of a list of successors. `effects` tells what a block does.
    ///
    /// # Errors
    /// If a loop can be entered without its header.
    pub fn new(successors: Vec<SmallVec<[u32; 2]>>, effects: impl Fn(u32) -> Effects) -> Result<Self, Unsupported> {
        let count = successors.len();
        let mut reached = FixedBitSet::with_capacity(count);
        let mut work = vec![0];
        while let Some(block) = work.pop() {
            if !reached.put(block as usize) {
                work.extend(successors[block as usize].iter().copied());
            }
        }
        let mut last: Vec<Option<u32>> = vec![None; count];
        let edges = || {
            let from = reached.ones().map(|block| block as u32);
            from.flat_map(|from| successors[from as usize].iter().map(move |&to| (from, to)))
        };
        for (from, to) in edges().filter(|(from, to)| to <= from) {
            last[to as usize] = last[to as usize].max(Some(from));
        }
        let mut loops = Vec::new();
        for (header, last) in last.iter().enumerate() {
            let Some(last) = *last else { continue };
            let header = header as u32;
            let mut found = Loop { header, last, effects: Effects::default() };
            let enters = |&(from, to): &(u32, u32)| !found.contains(from) && found.contains(to) && to != header;
            if let Some((from, to)) = edges().find(enters) {
                let what = format!("block {from} enters the loop of block {header} at block {to}");
                return Err(Unsupported(what));
            }
            for block in (header..=last).filter(|&block| reached.contains(block as usize)) {
                found.effects.extend(effects(block));
            }
            for list in [&mut found.effects.versions, &mut found.effects.shared] {
                list.sort_unstable();
                list.dedup();
            }
            loops.push(found);
        }
        Ok(Self { successors, loops })
    }

    /// The number of the loop with this header.
    pub fn loop_at(&self, header: u32) -> Option<u32> {
        self.loops.binary_search_by_key(&header, |l| l.header).ok().map(|at| at as u32)
    }
}
