//! The blocks of a decoded program in layout order, and its loops.
//!
//! A wave runs the first block in the layout in which lanes wait, with all lanes that wait there. Suppose that
//! every edge goes forward except those to loop headers, that a loop is entered by its header only, and that lanes go
//! back from its last block only. Then the lanes in a loop are in the same iteration; the code after the loop runs when
//! all lanes have left it; and between two cut points every block is run once, in layout order, by all lanes that reach
//! it. (Lanes that go back from another block do not wait for those that are still on their way to the last one: the
//! header comes first.)
//!
//! Each position of the graph has a block of the program, and a block may be at several positions: a loop can be
//! [rotated](Graph::rotated), or [unrolled](Graph::unrolled).

use super::{EventKind, Oracle, Slot, Unsupported};
use fixedbitset::FixedBitSet;
use indexmap::IndexSet;
use ir3_semantics::environment::memory::Space;
use ir3_semantics::support::guards::{Guard, left_out};
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

/// The effects of the blocks of a loop that lanes outside of it can observe.
#[derive(Clone, Debug, Default)]
pub struct BlockEffects {
    /// The events that make new versions.
    pub events: Vec<EventKind>,
    /// The shared registers that are written.
    pub shared: Vec<Slot>,
}

impl BlockEffects {
    /// Adds the effects of `others`.
    pub fn extend(&mut self, others: Self) {
        self.events.extend(others.events);
        self.shared.extend(others.shared);
    }

    /// The versions that change.
    pub fn changed<O: Oracle>(&self, oracle: &O) -> Vec<Slot> {
        let mut changed: Vec<Slot> = self.events.iter().flat_map(|&kind| oracle.makes(kind)).collect();
        changed.sort_unstable();
        changed.dedup();
        changed
    }
}

/// A loop: the blocks from its header to the last block that goes back to it.
#[derive(Clone, Debug)]
pub struct GraphLoop {
    /// Position of the header.
    pub header: u32,
    /// Position of the last block.
    pub last: u32,
    /// The effects of its blocks.
    pub effects: BlockEffects,
}

impl GraphLoop {
    /// Returns true if a position is in the loop.
    pub fn contains(&self, block: u32) -> bool {
        (self.header..=self.last).contains(&block)
    }
}

/// The block at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCopy {
    /// The block of the program.
    pub block: u32,
    /// The number of earlier positions with the same block.
    pub copy: u32,
}

/// The control-flow graph of a program, with its loops.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The successors of each position.
    pub successors: Vec<SmallVec<[u32; 2]>>,
    /// The block at each position.
    pub placed: Vec<BlockCopy>,
    /// The loops, in the order of their headers.
    pub loops: Vec<GraphLoop>,
    /// The effects of each block of the program.
    pub effects: Vec<BlockEffects>,
    /// The positions that lanes reach from more than one cut point.
    pub several: FixedBitSet,
    /// The positions that no lane reaches if each unrolled loop has at most as many iterations as copies.
    pub beyond: SmallVec<[u32; 2]>,
    /// A loop whose stores are executed after it.
    pub sunk: Option<SunkStores>,
}

/// A loop whose stores are executed after it: see `symbolic::sinking`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SunkStores {
    /// The positions of the header and of the last block.
    pub header: u32,
    pub last: u32,
    /// The position to which all lanes leave it.
    pub exit: u32,
    /// The memory.
    pub space: Space,
}

impl SunkStores {
    /// Returns true if a position is in the loop.
    pub fn contains(&self, position: u32) -> bool {
        (self.header..=self.last).contains(&position)
    }
}

/// The positions that are reachable from the entry.
fn reached(successors: &[SmallVec<[u32; 2]>]) -> FixedBitSet {
    let mut reached = FixedBitSet::with_capacity(successors.len());
    let mut work = vec![0];
    while let Some(block) = work.pop() {
        if !reached.put(block as usize) {
            work.extend(successors[block as usize].iter().copied());
        }
    }
    reached
}

/// All edges between reachable positions.
fn edges(successors: &[SmallVec<[u32; 2]>], reached: &FixedBitSet) -> Vec<(u32, u32)> {
    let from = reached.ones().map(|block| block as u32);
    from.flat_map(|from| successors[from as usize].iter().map(move |&to| (from, to))).collect()
}

/// The positions that are reached from more than one cut point, with no cut point in between.
fn reached_from_several(successors: &[SmallVec<[u32; 2]>], loops: &[GraphLoop]) -> FixedBitSet {
    let is_header = |block: u32| loops.iter().any(|l| l.header == block);
    let (mut once, mut several) =
        (FixedBitSet::with_capacity(successors.len()), FixedBitSet::with_capacity(successors.len()));
    for start in loops.iter().map(|l| l.header).chain((!is_header(0)).then_some(0)) {
        let mut seen = FixedBitSet::with_capacity(successors.len());
        let mut work = vec![start];
        while let Some(block) = work.pop() {
            if !seen.put(block as usize) {
                work.extend(successors[block as usize].iter().copied().filter(|&to| !is_header(to)));
            }
        }
        several.union_with(&(&once & &seen));
        once.union_with(&seen);
    }
    several
}

impl Graph {
    /// Finds the loops of a list of successors. `effects` returns the effects of a block.
    ///
    /// # Errors
    /// If a loop can be entered without its header.
    pub fn new(
        successors: Vec<SmallVec<[u32; 2]>>,
        effects: impl Fn(u32) -> BlockEffects,
    ) -> Result<Self, Unsupported> {
        let count = successors.len();
        let reached = reached(&successors);
        let edges = edges(&successors, &reached);
        let effects: Vec<BlockEffects> = (0..count as u32).map(effects).collect();
        let mut last: Vec<Option<u32>> = vec![None; count];
        for &(from, to) in edges.iter().filter(|(from, to)| to <= from) {
            last[to as usize] = last[to as usize].max(Some(from));
        }
        let mut loops = Vec::new();
        for (header, last) in last.iter().enumerate() {
            let Some(last) = *last else { continue };
            let header = header as u32;
            let mut found = GraphLoop { header, last, effects: BlockEffects::default() };
            let enters = |&(from, to): &(u32, u32)| !found.contains(from) && found.contains(to) && to != header;
            if let Some((from, to)) = edges.iter().copied().find(enters)
                && !left_out(Guard::LoopEntry)
            {
                let what = format!("block {from} enters the loop of block {header} at block {to}");
                return Err(Unsupported(what));
            }
            let early = |&(from, to): &(u32, u32)| to <= header && found.contains(from) && from != last;
            let other = |&(from, to): &(u32, u32)| to < header && from == last;
            if let Some((from, to)) = edges.iter().copied().find(|edge| early(edge) || other(edge))
                && !left_out(Guard::LoopBack)
            {
                let what =
                    format!("lanes go from block {from} back to block {to} that others in a loop do not wait for");
                return Err(Unsupported(what));
            }
            for block in (header..=last).filter(|&block| reached.contains(block as usize)) {
                found.effects.extend(effects[block as usize].clone());
            }
            found.effects.shared.sort_unstable();
            found.effects.shared.dedup();
            let events = &mut found.effects.events;
            *events = events.iter().copied().collect::<IndexSet<_, FxBuildHasher>>().into_iter().collect();
            loops.push(found);
        }
        let placed = (0..count as u32).map(|block| BlockCopy { block, copy: 0 }).collect();
        let several = reached_from_several(&successors, &loops);
        Ok(Self { successors, placed, loops, effects, several, beyond: SmallVec::new(), sunk: None })
    }

    /// Returns the number of the loop with this header.
    pub fn loop_at(&self, header: u32) -> Option<u32> {
        self.loops.binary_search_by_key(&header, |l| l.header).ok().map(|at| at as u32)
    }

    /// The numbers of the loops that contain a position: lanes there are in one iteration of each, no matter if they
    /// stay in it or have left it.
    pub fn loops_around(&self, position: u32) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.loops).filter(move |(_, l)| l.contains(position)).map(|(number, _)| number)
    }

    /// Returns the next position after `from` at which `block` is.
    pub fn position(&self, from: u32, block: u32) -> Option<u32> {
        self.successors[from as usize].iter().copied().find(|&to| self.placed[to as usize].block == block)
    }

    /// Returns the graph with a loop rotated. Let H be the header and B a block through which every path of the loop
    /// goes. The blocks from H to before B are placed before the loop and again at its end, and B becomes the header.
    /// The blocks before B must have an exit of the loop (or nothing is gained) and contain no other loop.
    ///
    /// The wave runs the same blocks of the program in the same order, with the same lanes: H…B B…last, H…B B…last, …
    /// and the code after the loop once all lanes have left it. In the loop all lanes are in one iteration and run each
    /// block once. Only the start of an iteration has moved. Between two cut points every block is still run once, in
    /// the order of the positions, by all lanes that reach it.
    pub fn rotated(&self, number: u32) -> Option<Self> {
        let GraphLoop { header, last, .. } = *self.loops.get(number as usize)?;
        let edges = edges(&self.successors, &reached(&self.successors));
        let leads_out = |front: u32| edges.iter().any(|&(from, to)| (header..front).contains(&from) && to > last);
        let is_entered = |front: u32| {
            let mut entries =
                edges.iter().filter(|&&(from, to)| (header..front).contains(&from) && to >= front && to <= last);
            entries.all(|&(_, to)| to == front)
        };
        let no_other = |front: u32| self.loops.iter().all(|l| l.header <= header || l.header > front);
        let front = (header + 1..=last)
            .find(|&front| leads_out(front) && (is_entered(front) || left_out(Guard::RotatedEntry)))
            .filter(|&front| no_other(front))?;
        let more = front - header;
        let moved = |at: u32| if at > last { at + more } else { at };
        // The second copies, at the end of the loop, of the blocks between the header and the new header.
        let again = |at: u32| last + 1 + (at - header);
        let of = |from: u32| self.successors[from as usize].iter().copied();
        let mut successors: Vec<SmallVec<[u32; 2]>> = Vec::with_capacity(self.successors.len() + more as usize);
        let mut blocks: Vec<u32> = Vec::with_capacity(successors.capacity());
        for at in 0..self.successors.len() as u32 {
            let in_body = (front..=last).contains(&at);
            let to = of(at).map(|to| if in_body && to == header { again(header) } else { moved(to) });
            successors.push(to.collect());
            blocks.push(self.placed[at as usize].block);
            if at == last {
                for at in header..front {
                    let inside = |to: u32| if (header..front).contains(&to) { again(to) } else { moved(to) };
                    successors.push(of(at).map(inside).collect());
                    blocks.push(self.placed[at as usize].block);
                }
            }
        }
        let mut loops = self.loops.clone();
        for (i, l) in loops.iter_mut().enumerate() {
            (l.header, l.last) =
                if i == number as usize { (front, last + more) } else { (moved(l.header), moved(l.last)) };
        }
        let several = reached_from_several(&successors, &loops);
        let beyond = self.beyond.iter().map(|&at| moved(at)).collect();
        let effects = self.effects.clone();
        Some(Self { successors, placed: copies(&blocks), loops, effects, several, beyond, sunk: None })
    }

    /// Returns the graph with a loop replaced by `times` copies of its blocks. The last copy exits to a position
    /// [beyond](Self::beyond) them, at the end, where nothing is executed: the caller has to show that no lane reaches
    /// it.
    ///
    /// Then the wave runs the same blocks in the same order, with the same lanes. In the loop all lanes are in one
    /// iteration, and the code after it is run when all of them have left it, as the copies are before it in the
    /// layout.
    pub fn unrolled(&self, number: u32, times: u32) -> Self {
        let GraphLoop { header, last, .. } = self.loops[number as usize];
        let size = last - header + 1;
        let more = size * (times - 1);
        let moved = |at: u32| if at > last { at + more } else { at };
        let beyond = self.successors.len() as u32 + more;
        let mut successors: Vec<SmallVec<[u32; 2]>> = Vec::with_capacity(beyond as usize + 1);
        let mut blocks: Vec<u32> = Vec::with_capacity(beyond as usize + 1);
        for at in 0..self.successors.len() as u32 {
            if at == header {
                for copy in 0..times {
                    let inside = |to: u32| match to {
                        to if to == header && copy + 1 == times => beyond,
                        to if to == header => header + (copy + 1) * size,
                        to if (header..=last).contains(&to) => to + copy * size,
                        to => moved(to),
                    };
                    for at in header..=last {
                        successors.push(self.successors[at as usize].iter().map(|&to| inside(to)).collect());
                        blocks.push(self.placed[at as usize].block);
                    }
                }
            }
            if !(header..=last).contains(&at) {
                successors.push(self.successors[at as usize].iter().map(|&to| moved(to)).collect());
                blocks.push(self.placed[at as usize].block);
            }
        }
        successors.push(SmallVec::new());
        blocks.push(self.placed[header as usize].block);
        let mut loops: Vec<GraphLoop> = Vec::with_capacity(self.loops.len());
        for (i, l) in self.loops.iter().enumerate() {
            let is_inside = (header..=last).contains(&l.header) && l.last <= last;
            let copies = if i == number as usize { 0..0 } else { 0..if is_inside { times } else { 1 } };
            for copy in copies {
                let shift = copy * size;
                let (header, last) =
                    if is_inside { (l.header + shift, l.last + shift) } else { (moved(l.header), moved(l.last)) };
                loops.push(GraphLoop { header, last, effects: l.effects.clone() });
            }
        }
        loops.sort_by_key(|l| l.header);
        let several = reached_from_several(&successors, &loops);
        let beyond = self.beyond.iter().map(|&at| moved(at)).chain([beyond]).collect();
        let effects = self.effects.clone();
        Self { successors, placed: copies(&blocks), loops, effects, several, beyond, sunk: None }
    }

    /// Returns the graph with the stores of a loop sunk out of it, if the loop stores to one memory, contains no other
    /// loop, has no barriers or fences, and all lanes leave it to the block right after it: nothing is run in between.
    pub fn with_sunk_stores(&self, number: u32) -> Option<Self> {
        let l = &self.loops[number as usize];
        let (header, last) = (l.header, l.last);
        let mut stores = l.effects.events.iter().filter(|event| !matches!(event, EventKind::Load(_)));
        let (Some(&EventKind::Memory(space)), None) = (stores.next(), stores.next()) else { return None };
        let reached = reached(&self.successors);
        let edges = edges(&self.successors, &reached);
        let mut exits = edges.iter().filter(|&&(from, to)| l.contains(from) && !l.contains(to)).map(|&(_, to)| to);
        let exit = exits.next()?;
        let ends = (header..=last).any(|at| reached.contains(at as usize) && self.successors[at as usize].is_empty());
        let has_inner = self.loops.iter().any(|other| other.header > header && other.header <= last);
        let follows = exit > last && (last + 1..exit).all(|at| !reached.contains(at as usize));
        if !follows || exits.any(|to| to != exit) || ends || has_inner || self.loop_at(exit).is_some() {
            return None;
        }
        let mut graph = self.clone();
        graph.loops[number as usize].effects.events.retain(|event| *event != EventKind::Memory(space));
        graph.sunk = Some(SunkStores { header, last, exit, space });
        Some(graph)
    }
}

/// The blocks at all positions, with the number of the copy of each.
fn copies(blocks: &[u32]) -> Vec<BlockCopy> {
    let mut copies: FxHashMap<u32, u32> = FxHashMap::default();
    let placed = blocks.iter().map(|&block| {
        let count = copies.entry(block).or_default();
        *count += 1;
        BlockCopy { block, copy: *count - 1 }
    });
    placed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn graph(successors: &[&[u32]]) -> Result<Graph, Unsupported> {
        let successors = successors.iter().map(|list| SmallVec::from_slice(list)).collect();
        Graph::new(successors, |_| BlockEffects::default())
    }

    #[test]
    fn a_loop_that_tests_first() {
        // The header leaves the loop through a block that is inside it.
        let plain = graph(&[&[1], &[2, 3], &[5], &[4], &[1], &[]]).unwrap();
        assert_eq!((plain.loops[0].header, plain.loops[0].last), (1, 4));
        let rotated = plain.rotated(0).unwrap();
        assert_eq!((rotated.loops[0].header, rotated.loops[0].last), (3, 6));
        let blocks: Vec<(u32, u32)> = rotated.placed.iter().map(|at| (at.block, at.copy)).collect();
        assert_eq!(blocks, [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (1, 1), (2, 1), (5, 0)]);
        let expected: [SmallVec<[u32; 2]>; 8] = [
            smallvec![1],
            smallvec![2, 3],
            smallvec![7],
            smallvec![4],
            smallvec![5],
            smallvec![6, 3],
            smallvec![7],
            smallvec![],
        ];
        assert_eq!(rotated.successors[..], expected);
        assert_eq!(
            (rotated.position(4, 1), rotated.position(5, 3), rotated.position(0, 1)),
            (Some(5), Some(3), Some(1))
        );
        // It tests at its end now.
        assert!(rotated.rotated(0).is_none());
    }

    #[test]
    fn loops_around_and_inside() {
        // 1 around 3, which tests first; 1 has its test at the end.
        let plain = graph(&[&[1], &[2], &[3], &[4, 5], &[3], &[6, 1], &[]]);
        let plain = plain.unwrap();
        assert!(plain.rotated(0).is_none());
        let rotated = plain.rotated(1).unwrap();
        assert_eq!((rotated.loops[0].header, rotated.loops[0].last), (1, 6));
        assert_eq!((rotated.loops[1].header, rotated.loops[1].last), (4, 5));
        assert_eq!(rotated.successors[5][..], [4, 6]);
        assert_eq!(rotated.successors[6][..], [7, 1]);
    }

    #[test]
    fn an_unrolled_loop_with_another_one_inside() {
        // 1 around 2, which is alone in its loop; 1 is left from its last block.
        let plain = graph(&[&[1], &[2], &[2, 3], &[1, 4], &[]]).unwrap();
        let unrolled = plain.unrolled(0, 2);
        let blocks: Vec<(u32, u32)> = unrolled.placed.iter().map(|at| (at.block, at.copy)).collect();
        assert_eq!(blocks, [(0, 0), (1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (3, 1), (4, 0), (1, 2)]);
        let expected: [SmallVec<[u32; 2]>; 9] = [
            smallvec![1],
            smallvec![2],
            smallvec![2, 3],
            smallvec![4, 7],
            smallvec![5],
            smallvec![5, 6],
            smallvec![8, 7],
            smallvec![],
            smallvec![],
        ];
        assert_eq!(unrolled.successors[..], expected);
        assert_eq!(unrolled.beyond[..], [8]);
        let loops: Vec<(u32, u32)> = unrolled.loops.iter().map(|l| (l.header, l.last)).collect();
        assert_eq!(loops, [(2, 2), (5, 5)]);
        // The one inside, of the first of these copies.
        let again = unrolled.unrolled(0, 3);
        assert_eq!((again.beyond[..].to_vec(), again.loops[0].header), (vec![10, 11], 7));
        assert_eq!([2, 3, 4].map(|at| again.successors[at].to_vec()), [[3, 5], [4, 5], [11, 5]]);
    }

    #[test]
    fn loops_in_which_lanes_diverge_across_iterations() {
        // From the middle back to the header: lanes that go on have not reached the end.
        assert!(graph(&[&[1], &[2, 3], &[1], &[1, 4], &[]]).is_err());
        // From the last block of an inner loop back to the outer one.
        assert!(graph(&[&[1], &[2], &[2, 1], &[]]).is_err());
        assert!(graph(&[&[1], &[2], &[3], &[2, 4], &[1, 5], &[]]).is_ok());
    }
}
