//! List scheduling before register allocation, block by block.
//!
//! The next instruction is one that does not have to wait, if there is one; among these, one that ends more live ranges
//! than it begins; among these, the one with clearly the longest latency after it, else the first in the code. So loads
//! are issued early, as long as registers are left for their results, and no more than 8 at a time; comparisons are
//! separated from their branches; and if no instruction is ready, the one with the fewest nops is next. Pieces of a
//! vector are extracted as soon as it is available.
//!
//! A block whose original order needs no more nops is not changed.
//!
//! A block never uses more registers than the block with the highest original need, in whole vec4, both measured alike
//! (`registers`): otherwise it is not changed. Instructions that would exceed six sevenths of that are delayed while
//! any other is left: this leaves the allocator room to build vectors without moves.
//!
//! Only the first 48 ready instructions in code order are compared, so the cost per instruction is independent of the
//! block's length, and distant instructions stay distant.

use super::dependencies::{DependencyBuilder, DependencyGraph, ScheduleRules};
use super::live_out::live_out;
use super::registers::{Effect, RegisterUse, Units};
use crate::delays::latency::{Sync, issue_slots, sync};
use crate::ir3::{Block, Instr, InstrData, Opcode, Place, Program, RegFile, Value};
use crate::target::{RegisterFiles, Target};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The maximum number of ready instructions that are compared.
const WINDOW: usize = 48;

/// The maximum number of outstanding results of textures or memory, and of special functions.
const OUTSTANDING: usize = 8;

/// The fraction of the limit up to which register use is not restricted.
const AT_EASE: (u32, u32) = (6, 7);

/// Waiting times that differ by less are treated as equal: adjacent instructions should stay adjacent.
const PATIENCE: u32 = 16;

/// Returns true if there is a block with instructions to order, and no registers have been assigned in it.
#[must_use]
pub fn is_needed(program: &Program) -> bool {
    let longest = program.layout.iter().map(|&block| program.blocks[block].instrs.len()).max();
    longest > Some(2) && !program.iter_instrs().any(|(_, instr)| has_registers(&program.instrs[instr]))
}

fn has_registers(data: &InstrData) -> bool {
    let given = |place: &Place| matches!(place, Place::Reg(_) | Place::Relative { .. });
    data.dsts.iter().any(|dst| given(&dst.place)) || data.srcs.iter().any(|src| src.place().is_some_and(given))
}

/// Schedules each block, for register files of the given size.
pub fn run(program: &mut Program, target: &Target, files: RegisterFiles, rules: ScheduleRules) {
    let live = live_out(program);
    let mut registers = RegisterUse::new(target);
    let peaks: Vec<Units> =
        program.layout.iter().map(|&block| peak(program, block, live.live_out(block), &mut registers)).collect();
    let most = peaks.iter().fold(Units::default(), |most, peak| std::array::from_fn(|i| most[i].max(peak[i])));
    // General registers are allocated in whole vec4.
    let limit = [
        most[0].next_multiple_of(8).min(files.full),
        most[1].next_multiple_of(4).min(files.half),
        most[2].min(files.shared),
    ];
    let mut scheduler = Scheduler {
        target,
        predicates: rules.registers,
        limit,
        registers,
        builder: DependencyBuilder::new(program, target, rules),
        graph: DependencyGraph::default(),
        nodes: Vec::new(),
        ready: BinaryHeap::new(),
        window: Vec::new(),
        slot: 0,
        time: 0,
        nops: [0; 2],
        outstanding: Default::default(),
        out: Vec::new(),
    };
    for (position, &peak) in peaks.iter().enumerate() {
        let block = program.layout[position];
        if scheduler.block(program, block, live.live_out(block), peak) {
            std::mem::swap(&mut program.blocks[block].instrs, &mut scheduler.out);
        }
    }
}

/// The register need of a block in its original order.
fn peak(program: &Program, block: Block, live_out: &[Value], registers: &mut RegisterUse) -> Units {
    let list = &program.blocks[block].instrs;
    registers.begin(program, list, live_out);
    for &instr in list.iter().filter(|&&instr| program.instrs[instr].opcode != Opcode::Phi) {
        registers.issue(program, &program.instrs[instr]);
    }
    registers.peak
}

/// The state of an instruction of the region.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The number of predecessors that have not been issued.
    waits_for: u32,
    /// The slot from which no nops are needed; after issue, the slot after it.
    slot: u32,
    /// The time from which nothing has to be waited for.
    time: u32,
}

struct Scheduler<'a> {
    target: &'a Target,
    /// The number of predicate registers.
    predicates: u32,
    limit: Units,
    registers: RegisterUse,
    builder: DependencyBuilder<'a>,
    graph: DependencyGraph,
    nodes: Vec<Node>,
    /// The ready instructions, first in the code first, and those of them that are compared.
    ready: BinaryHeap<Reverse<u32>>,
    window: Vec<u32>,
    /// Issued slots, including nops.
    slot: u32,
    /// The same plus other waiting times.
    time: u32,
    /// Nops of the block in its new order, and in its original order.
    nops: [u32; 2],
    /// The times of outstanding results that are waited for with `(ss)`, and with `(sy)`.
    outstanding: [Vec<u32>; 2],
    out: Vec<Instr>,
}

impl Scheduler<'_> {
    /// Schedules a block into `out`. Returns false if the original order should be kept.
    fn block(&mut self, program: &Program, block: Block, live_out: &[Value], before: Units) -> bool {
        let list = &program.blocks[block].instrs;
        self.out.clear();
        self.registers.begin(program, list, live_out);
        (self.slot, self.time) = (0, 0);
        self.nops = [0; 2];
        self.outstanding.iter_mut().for_each(Vec::clear);
        let is_fence = |&instr: &Instr| program.instrs[instr].opcode.is_scheduling_fence();
        let mut rest = &list[..];
        while !rest.is_empty() {
            let stretch = rest.iter().position(is_fence).unwrap_or(rest.len());
            if stretch > 0 {
                self.stretch(program, &rest[..stretch], &rest[stretch..]);
            }
            rest = &rest[stretch..];
            let fences = rest.iter().position(|instr| !is_fence(instr)).unwrap_or(rest.len());
            for &instr in &rest[..fences] {
                let data = &program.instrs[instr];
                if data.opcode != Opcode::Phi {
                    self.registers.issue(program, data);
                }
                self.slot += issue_slots(data, self.target);
                self.out.push(instr);
            }
            rest = &rest[fences..];
        }
        let fits = (0..3).all(|i| self.registers.peak[i] <= self.limit[i].max(before[i]));
        fits && self.nops[0] < self.nops[1] && self.out != *list
    }

    /// Appends a region without fences.
    fn stretch(&mut self, program: &Program, stretch: &[Instr], rest: &[Instr]) {
        self.builder.build(program, stretch, rest, &mut self.graph);
        self.nops[1] += self.nops_as_it_stands(program, stretch);
        self.restart();
        self.ready.extend((0..).zip(&self.nodes).filter(|(_, node)| node.waits_for == 0).map(|(i, _)| Reverse(i)));
        loop {
            while self.window.len() < WINDOW {
                let Some(Reverse(node)) = self.ready.pop() else { break };
                self.window.push(node);
            }
            let keys = self.window.iter().enumerate().map(|(at, &node)| (self.key(program, stretch, node), at));
            let Some((_, at)) = keys.min() else { break };
            let node = self.window.swap_remove(at);
            self.issue(program, stretch, node);
        }
        self.nops[0] += self.nops_behind();
    }

    /// Resets the region to unissued.
    fn restart(&mut self) {
        self.nodes.clear();
        let start = Node { waits_for: 0, slot: self.slot, time: self.time };
        self.nodes.extend(self.graph.predecessors.iter().map(|&waits_for| Node { waits_for, ..start }));
    }

    /// The nops of a region in code order. The region is unissued afterwards.
    fn nops_as_it_stands(&mut self, program: &Program, stretch: &[Instr]) -> u32 {
        self.restart();
        let (start, mut nops) = (self.slot, 0);
        for (node, &instr) in stretch.iter().enumerate() {
            let data = &program.instrs[instr];
            let mut slot = self.nodes[node].slot.max(self.slot);
            if !data.opcode.is_meta() {
                nops += slot - self.slot;
                slot += issue_slots(data, self.target);
                self.slot = slot;
            }
            self.nodes[node].slot = slot;
            for edge in self.graph.successors(node) {
                let to = &mut self.nodes[edge.to as usize];
                to.slot = to.slot.max(slot + edge.latency.slots);
            }
        }
        nops += self.nops_behind();
        self.slot = start;
        nops
    }

    /// The nops of the rest of the block for the region, all of which has been issued.
    fn nops_behind(&self) -> u32 {
        let waits = self.graph.read_behind.iter().map(|&(node, slots)| self.nodes[node as usize].slot + slots);
        waits.map(|ready| ready.saturating_sub(self.slot)).max().unwrap_or(0)
    }

    /// The priority; the least is next.
    fn key(&self, program: &Program, stretch: &[Instr], node: u32) -> Key {
        let instr = stretch[node as usize];
        let data = &program.instrs[instr];
        // A prefetch has written its register when the first instruction is issued, so that nothing goes before it.
        if data.opcode == Opcode::Split || data.opcode.is_prefetched() {
            return Key { position: node, ..Key::default() };
        }
        let Effect { change, most } = self.registers.effect(program, data);
        let grows = (0..3).any(|i| most[i] > 0 && self.registers.used[i] as i32 + most[i] > at_ease(self.limit[i]));
        let sum = change[0] + change[1] + change[2];
        let waits = &self.nodes[node as usize];
        let waited = match sync(data, self.target) {
            Sync::Distance => 0,
            Sync::Ss => self.waited(0),
            Sync::Sy => self.waited(1),
        };
        let crowded = data.dsts.iter().any(|dst| dst.class.file == RegFile::Predicate)
            && self.registers.predicates >= self.predicates;
        let wait = if data.opcode.is_meta() {
            0
        } else {
            waits.slot.saturating_sub(self.slot).max(waits.time.saturating_sub(self.time))
        };
        Key {
            machine: true,
            grows,
            crowded: crowded || waited >= OUTSTANDING,
            wait,
            effect: sum.signum(),
            height: Reverse(self.graph.height[node as usize] / PATIENCE),
            position: node,
        }
    }

    fn waited(&self, which: usize) -> usize {
        self.outstanding[which].iter().filter(|&&time| time > self.time).count()
    }

    fn issue(&mut self, program: &Program, stretch: &[Instr], node: u32) {
        let instr = stretch[node as usize];
        let data = &program.instrs[instr];
        let Node { slot, time, .. } = self.nodes[node as usize];
        let (slot, time) = if data.opcode.is_meta() {
            // It takes no time, and its users wait for it as long as it would have to wait itself.
            (slot.max(self.slot), time.max(self.time))
        } else {
            let nops = slot.saturating_sub(self.slot);
            self.nops[0] += nops;
            self.slot += nops;
            self.time = time.max(self.time + nops);
            let slots = issue_slots(data, self.target);
            self.slot += slots;
            self.time += slots;
            (self.slot, self.time)
        };
        self.registers.issue(program, data);
        self.nodes[node as usize].slot = slot;
        let mut longest = 0;
        for edge in self.graph.successors(node as usize) {
            let to = &mut self.nodes[edge.to as usize];
            to.slot = to.slot.max(slot + edge.latency.slots);
            to.time = to.time.max(time + edge.latency.soft);
            to.waits_for -= 1;
            longest = longest.max(edge.latency.soft);
            if to.waits_for == 0 {
                self.ready.push(Reverse(edge.to));
            }
        }
        let which = match sync(data, self.target) {
            Sync::Distance => None,
            Sync::Ss => Some(0),
            Sync::Sy => Some(1),
        };
        if let Some(which) = which {
            let (now, outstanding) = (self.time, &mut self.outstanding[which]);
            outstanding.retain(|&time| time > now);
            outstanding.push(time + longest);
            // Further outstanding results make no difference.
            if outstanding.len() > OUTSTANDING {
                outstanding.sort_unstable();
                outstanding.remove(0);
            }
        }
        self.out.push(instr);
    }
}

/// The part of a limit that may be used without restriction.
const fn at_ease(limit: u32) -> i32 {
    (limit * AT_EASE.0 / AT_EASE.1) as i32
}

/// The priority of an instruction, compared lexicographically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Pieces of vectors come first.
    machine: bool,
    /// True if it takes registers that should be left free.
    grows: bool,
    /// True if it needs a predicate register that is not free, or would have too many outstanding results.
    crowded: bool,
    /// The time that it would wait.
    wait: u32,
    /// The change in register use.
    effect: i32,
    /// The approximate latency of the instructions that depend on it.
    height: Reverse<u32>,
    position: u32,
}

impl Default for Key {
    fn default() -> Self {
        Self { machine: false, grows: false, crowded: false, wait: 0, effect: 0, height: Reverse(0), position: 0 }
    }
}
