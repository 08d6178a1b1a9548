//! Reconvergence of lanes: physical edges and reconvergence points.
//!
//! A wave always runs the waiting lanes of the block that is earliest in the code, all of them together. When lanes
//! diverge at a branch, the later of its two successors waits while the earlier one runs; the wave switches to it as
//! soon as its active lanes are about to jump past it. This switch is not a control-flow edge of the program, because
//! no lane takes it. But a register that all lanes share is live along it: it is a *physical* edge.
//!
//! For each block A let `W(A)` be the blocks where lanes may wait while A runs. All of them are after A in the code,
//! since A was the earliest. The sets are the least ones such that
//!
//! - on an edge from A to its successor C, all blocks that wait after C continue to wait: `W(C) ⊇ W(A) ∩ >C`; if lanes
//!   may diverge at the end of A, its other successor waits too;
//! - if a successor of A is after some T of `W(A)`, the wave may switch from A to T (a physical edge), and the
//!   successors of A wait: `W(T) ⊇ (W(A) ∪ succ(A)) ∩ >T`. A block without successors passes every waiting block.
//!
//! A block where lanes may wait is a *reconvergence point*: lanes that took different edges reconverge only there. Only
//! there can active lanes include some that waited while others ran a block which they had run before.
//!
//! If the last lane of a wave ends in the middle of a block, the wave switches to a waiting block without one of these
//! edges. This does not affect the values of registers: one that is live in the waiting block is live on every path to
//! it. It affects the required waits ([`Waiting::while_running`]).

use super::dataflow::Worklist;
use super::{Block, BlockData, Opcode, Program};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// For each block, the blocks where lanes may wait while it runs.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Position in the layout plus one; 0 for a block that is not in it.
    position: SecondaryMap<Block, u32>,
    /// For each position, the later positions where lanes may wait, sorted.
    sets: Vec<SmallVec<[u32; 4]>>,
    /// True for each position where lanes may wait.
    points: Vec<bool>,
}

/// Returns true if lanes may diverge at the end of a block, or if that is unknown.
pub fn may_diverge(program: &Program, block: Block) -> bool {
    let data = &program.blocks[block];
    if data.successors().count() < 2 {
        return false;
    }
    let terminators = data.instrs.iter().rev().map(|&instr| program.instrs[instr].opcode);
    let parts = terminators.take_while(|opcode| opcode.is_terminator()).any(Opcode::elects_lane);
    parts || data.divergent.unwrap_or(true)
}

/// Returns true if lanes become inactive after a block by predication instead of waiting at a block.
fn is_predicated(program: &Program, block: Block) -> bool {
    let last = program.blocks[block].instrs.last().map(|&instr| program.instrs[instr].opcode);
    last.is_some_and(Opcode::is_predication)
}

impl Waiting {
    /// Computes the sets; `diverges` returns true for blocks at whose ends lanes may diverge.
    pub fn new(program: &Program, diverges: impl Fn(Block) -> bool) -> Self {
        let mut this = Self::without_divergence(program);
        let blocks: Vec<Block> = program.layout.iter().copied().filter(|&block| diverges(block)).collect();
        this.extend(program, &blocks, diverges);
        this
    }

    /// The sets of a program whose lanes never diverge: all of them are empty.
    pub fn without_divergence(program: &Program) -> Self {
        let count = program.layout.len();
        let mut this = Self {
            position: map_of(program.blocks.len()),
            sets: vec![SmallVec::new(); count],
            points: vec![false; count],
        };
        for (i, &block) in program.layout.iter().enumerate() {
            this.position[block] = i as u32 + 1;
        }
        this
    }

    /// Extends the sets for lanes that may diverge at the ends of `more` blocks too; `diverges` includes these. Returns
    /// the blocks whose sets have changed or that have become reconvergence points, each once, in code order.
    pub fn extend(&mut self, program: &Program, more: &[Block], diverges: impl Fn(Block) -> bool) -> Vec<Block> {
        if more.is_empty() {
            return Vec::new();
        }
        let count = program.layout.len();
        let mut changed = vec![false; count];
        let mut worklist = Worklist::new(count);
        let positions = more.iter().filter_map(|&block| self.position[block].checked_sub(1));
        positions.for_each(|position| worklist.add(position as usize));
        let mut pending: SmallVec<[u32; 8]> = SmallVec::new();
        // Blocks are visited in code order, as the wave runs them.
        while let Some(at) = worklist.next() {
            let block = program.layout[at];
            let steps = self.successors(&program.blocks[block]);
            let parts = steps.len() > 1 && diverges(block);
            let waiting = self.sets[at].clone();
            let mut flow = |this: &mut Self, to: u32, pending: &[u32]| {
                if this.add(to, pending, &mut changed) {
                    worklist.add(to as usize);
                }
            };
            for &to in &steps {
                pending.clear();
                pending.extend_from_slice(&waiting);
                if parts {
                    pending.extend(steps.iter().copied().filter(|&other| other != to));
                }
                flow(self, to, &pending);
            }
            pending.clear();
            pending.extend_from_slice(&waiting);
            pending.extend_from_slice(&steps);
            for &to in waiting.iter().filter(|&&to| steps_over(&steps, to)) {
                flow(self, to, &pending);
            }
        }
        (0..count).filter(|&at| changed[at]).map(|at| program.layout[at]).collect()
    }

    /// The positions of a block's logical successors.
    fn successors(&self, data: &BlockData) -> SmallVec<[u32; 2]> {
        data.successors().filter_map(|next| self.position[next].checked_sub(1)).collect()
    }

    /// Adds the positions after `at` to the set of `at`; returns true if the set changed.
    fn add(&mut self, at: u32, pending: &[u32], changed: &mut [bool]) -> bool {
        let mut grows = false;
        for &other in pending.iter().filter(|&&other| other > at) {
            let set = &mut self.sets[at as usize];
            if let Err(slot) = set.binary_search(&other) {
                set.insert(slot, other);
                grows = true;
                changed[at as usize] = true;
                if !std::mem::replace(&mut self.points[other as usize], true) {
                    changed[other as usize] = true;
                }
            }
        }
        grows
    }

    /// Returns true if lanes may wait at `block` while others run elsewhere.
    pub fn is_point(&self, block: Block) -> bool {
        self.position[block].checked_sub(1).is_some_and(|at| self.points[at as usize])
    }

    /// Returns true if lanes may wait, while `running` runs, at a block that is not after `until`. Such lanes may have
    /// run `running` before; their reads in `until` of values defined there see the values of that earlier execution.
    pub fn waits_between(&self, running: Block, until: Block) -> bool {
        let (Some(at), Some(until)) = (self.position[running].checked_sub(1), self.position[until].checked_sub(1))
        else {
            return true;
        };
        self.sets[at as usize].first().is_some_and(|&first| first <= until)
    }

    /// The blocks where lanes may wait while `block` runs, in the order of the code.
    pub fn while_running<'a>(&'a self, program: &'a Program, block: Block) -> impl Iterator<Item = Block> + 'a {
        let set = self.position[block].checked_sub(1).map_or(&[][..], |at| &self.sets[at as usize]);
        set.iter().map(|&at| program.layout[at as usize])
    }
}

/// Returns true if continuing at one of `steps`, or ending, passes a block.
fn steps_over(steps: &[u32], block: u32) -> bool {
    steps.is_empty() || steps.iter().any(|&to| to > block)
}

/// Computes where lanes wait, without lanes that predication deactivates: an instruction reactivates those, not a
/// block.
pub fn points(program: &Program) -> Waiting {
    Waiting::new(program, |block| may_diverge(program, block) && !is_predicated(program, block))
}

/// Computes the physical edges and reconvergence points of a program, replacing the old ones.
pub fn run(program: &mut Program) {
    let waiting = Waiting::new(program, |block| may_diverge(program, block));
    // Without predication both are the same.
    let is_predicated = program.layout.iter().any(|&block| is_predicated(program, block));
    let points = if is_predicated { points(program).points } else { waiting.points.clone() };
    for position in 0..program.layout.len() {
        let data = &mut program.blocks[program.layout[position]];
        data.physical_successors.clear();
        data.physical_predecessors.clear();
    }
    for (position, set) in waiting.sets.iter().enumerate() {
        let block = program.layout[position];
        let steps = waiting.successors(&program.blocks[block]);
        let waits = set.iter().filter(|&&to| steps_over(&steps, to) && !steps.contains(&to));
        let mut edges = steps.clone();
        edges.extend(waits.copied());
        for to in edges {
            let to = program.layout[to as usize];
            program.blocks[block].physical_successors.push(to);
            program.blocks[to].physical_predecessors.push(block);
        }
        program.blocks[block].reconvergence_point = points[position];
    }
}

/// Infers the uniformity of each branch of a final program from the `(jp)` marks: lanes wait at blocks that satisfy
/// `is_marked`, and at no others. A branch is divergent if that does not contradict the marks. (The result is the
/// intent of the program: if lanes diverge at another branch, the program has a bug, and no later branch is affected by
/// this.)
pub fn infer_uniform(program: &mut Program, is_marked: impl Fn(&Program, Block) -> bool) {
    let mut undecided = Vec::new();
    let positions: SecondaryMap<Block, usize> = {
        let mut map = map_of(program.blocks.len());
        program.layout.iter().enumerate().for_each(|(position, &block)| map[block] = position);
        map
    };
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let data = &program.blocks[block];
        if data.successors().count() < 2 || is_predicated(program, block) {
            continue;
        }
        let terminators = data.instrs.iter().rev().map(|&instr| program.instrs[instr].opcode);
        let mut terminators = terminators.take_while(|opcode| opcode.is_terminator());
        let asks_all = terminators.any(Opcode::is_uniform_branch);
        let later = data.successors().max_by_key(|&next| positions[next]);
        let waits = later.is_some_and(|later| is_marked(program, later));
        program.blocks[block].divergent = Some(waits && !asks_all);
        if waits && !asks_all {
            undecided.push(block);
        }
    }
    let agrees = |program: &Program, waiting: &Waiting| {
        program.layout.iter().all(|&block| !waiting.is_point(block) || is_marked(program, block))
    };
    let is_divergent = |program: &Program, block| may_diverge(program, block) && !is_predicated(program, block);
    if agrees(program, &points(program)) {
        return;
    }
    // One by one: those of which the marks allow all at once are as many as possible.
    undecided.iter().for_each(|&block| program.blocks[block].divergent = Some(false));
    let mut waiting = Waiting::new(program, |block| is_divergent(program, block));
    for block in undecided {
        program.blocks[block].divergent = Some(true);
        let mut more = waiting.clone();
        more.extend(program, &[block], |block| is_divergent(program, block));
        if agrees(program, &more) {
            waiting = more;
        } else {
            program.blocks[block].divergent = Some(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::InstrData;

    /// Inference from the marks is idempotent; divergent branches that a mark needs stay divergent.
    #[test]
    fn marks_say_which_branches_are_uniform() {
        let shapes: [&[(&[usize], bool)]; 3] = [
            &[(&[1, 2], false), (&[3], false), (&[3], false), (&[], false)],
            &[(&[1, 2], true), (&[3], false), (&[3], false), (&[], false)],
            &[(&[1], false), (&[2, 4], false), (&[3, 4], true), (&[5], false), (&[1], false), (&[], false)],
        ];
        for shape in shapes {
            let before = graph(shape);
            let mut after = before.clone();
            after.blocks.values_mut().for_each(|data| data.divergent = None);
            infer_uniform(&mut after, |program, block| program.blocks[block].reconvergence_point);
            run(&mut after);
            assert_eq!(points(&after), points(&before));
        }
    }

    /// A program of blocks in layout order: the successors of each, and true if lanes diverge at its end.
    fn graph(blocks: &[(&[usize], bool)]) -> Program {
        let mut program = Program::default();
        program.layout = blocks.iter().map(|_| program.blocks.push(BlockData::default())).collect();
        for (i, &(successors, divergent)) in blocks.iter().enumerate() {
            let from = program.layout[i];
            for (slot, &to) in successors.iter().enumerate() {
                program.add_edge(from, slot, program.layout[to]);
            }
            if successors.len() > 1 {
                program.blocks[from].divergent = Some(divergent);
            }
        }
        run(&mut program);
        program
    }

    fn physical(program: &Program) -> Vec<Vec<usize>> {
        let number = |block: &Block| program.layout.iter().position(|b| b == block).unwrap();
        let edges = |block: &Block| {
            let mut list: Vec<usize> = program.blocks[*block].physical_successors.iter().map(number).collect();
            list.sort_unstable();
            list
        };
        for &block in &program.layout {
            for next in &program.blocks[block].physical_successors {
                assert!(program.blocks[*next].physical_predecessors.contains(&block));
            }
        }
        program.layout.iter().map(edges).collect()
    }

    fn points(program: &Program) -> Vec<usize> {
        (0..program.layout.len()).filter(|&i| program.blocks[program.layout[i]].reconvergence_point).collect()
    }

    #[test]
    fn if_and_else() {
        let program = graph(&[(&[1, 2], true), (&[3], false), (&[3], false), (&[], false)]);
        assert_eq!(physical(&program), [vec![1, 2], vec![2, 3], vec![3], vec![]]);
        assert_eq!(points(&program), [2, 3]);
        let program = graph(&[(&[1, 2], false), (&[3], false), (&[3], false), (&[], false)]);
        assert_eq!(physical(&program), [vec![1, 2], vec![3], vec![3], vec![]]);
        assert_eq!(points(&program), [0; 0]);
    }

    /// `loop { if uniform { if divergent { break } } }`: lanes wait at the exit while the others go on.
    #[test]
    fn a_loop_that_lanes_leave_one_by_one() {
        let program =
            graph(&[(&[1], false), (&[2, 4], false), (&[3, 4], true), (&[5], false), (&[1], false), (&[], false)]);
        // The break in 3 passes 4, where the others wait; no lane is at the exit until all are.
        assert_eq!(physical(&program), [vec![1], vec![2, 4], vec![3, 4], vec![4, 5], vec![1], vec![]]);
        assert_eq!(points(&program), [4, 5]);
        let waiting = Waiting::new(&program, |block| may_diverge(&program, block));
        let [one, five] = [1, 5].map(|i| program.layout[i]);
        assert!(waiting.waits_between(one, five));
        assert!(!waiting.waits_between(one, program.layout[4]) || waiting.is_point(program.layout[4]));
        assert_eq!(waiting.while_running(&program, one).collect::<Vec<_>>(), [five]);
    }

    /// `loop { if a { continue }  if b { break } }` with the continue block last: lanes that continue wait there, lanes
    /// that break wait at the exit.
    #[test]
    fn continues_wait_for_the_end_of_the_loop() {
        let program =
            graph(&[(&[1], false), (&[4, 2], true), (&[5, 3], true), (&[4], false), (&[1], false), (&[], false)]);
        assert_eq!(physical(&program), [vec![1], vec![2, 4], vec![3, 4, 5], vec![4], vec![1], vec![]]);
        assert_eq!(points(&program), [4, 5]);
    }

    /// One arm ends the program and passes the other arm.
    #[test]
    fn an_arm_that_ends() {
        let program = graph(&[(&[1, 2], true), (&[], false), (&[], false)]);
        assert_eq!(physical(&program), [vec![1, 2], vec![2], vec![]]);
    }

    /// Two loops, the inner one inside an arm: its back edge keeps the other arm waiting.
    #[test]
    fn a_loop_in_an_arm() {
        let program =
            graph(&[(&[1, 4], true), (&[2], false), (&[1, 3], false), (&[5], false), (&[5], false), (&[], false)]);
        assert_eq!(physical(&program), [vec![1, 4], vec![2], vec![1, 3], vec![4, 5], vec![5], vec![]]);
        assert_eq!(points(&program), [4, 5]);
    }

    /// Lanes diverge at a terminator that elects one lane, even if the block is marked as not divergent.
    #[test]
    fn one_lane_is_chosen() {
        let mut program = graph(&[(&[1, 2], false), (&[2], false), (&[], false)]);
        assert_eq!(points(&program), [0; 0]);
        let getone = program.instrs.push(InstrData::new(Opcode::Getone));
        let entry = program.entry();
        program.blocks[entry].instrs.push(getone);
        run(&mut program);
        assert_eq!(points(&program), [2]);
    }

    /// On random graphs with random branch decisions per lane, every step of a wave is on a physical edge, and every
    /// waiting lane is at a block of the computed sets.
    #[test]
    fn waves_walk_on_physical_edges() {
        let mut state = 1u64;
        let mut random = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        let (mut steps, mut waits) = (0, 0);
        for _ in 0..3000 {
            let count = 3 + random(8);
            let mut shape: Vec<(Vec<usize>, bool)> = Vec::new();
            for i in 0..count {
                let mut next: Vec<usize> = Vec::new();
                for _ in 0..1 + random(2) {
                    let to = if random(3) > 0 { (i + 1 + random(3)).min(count - 1) } else { 1 + random(count - 1) };
                    if i + 1 < count && !next.contains(&to) {
                        next.push(to);
                    }
                }
                shape.push((next, random(2) == 0));
            }
            let list: Vec<(&[usize], bool)> = shape.iter().map(|(next, divergent)| (&next[..], *divergent)).collect();
            let program = graph(&list);
            let edges = physical(&program);
            let waiting = Waiting::new(&program, |block| may_diverge(&program, block));
            for _ in 0..4 {
                let mut lanes = vec![0usize; 4];
                for _ in 0..60 {
                    let Some(&at) = lanes.iter().filter(|&&at| at < count).min() else { break };
                    for &lane in lanes.iter().filter(|&&lane| lane > at && lane < count) {
                        waits += 1;
                        let there = program.layout[lane];
                        assert!(waiting.while_running(&program, program.layout[at]).any(|block| block == there));
                    }
                    let (next, divergent) = &shape[at];
                    let together = random(2);
                    for lane in &mut lanes {
                        if *lane == at {
                            let choice = if *divergent { random(2) } else { together };
                            *lane = if next.is_empty() { count } else { next[choice % next.len()] };
                        }
                    }
                    let Some(&to) = lanes.iter().filter(|&&at| at < count).min() else { break };
                    steps += 1;
                    assert!(edges[at].contains(&to), "{at} to {to}: {shape:?}");
                }
            }
        }
        assert!(steps > 50_000 && waits > 20_000, "{steps} steps, {waits} waits");
    }
}
