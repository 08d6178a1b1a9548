//! List scheduling after register allocation, block by block.
//!
//! Before allocation, the scheduler does not know where moves, spills and reloads will be, nor which registers are reused. Here
//! registers are known, and so is each delay: the [`Scoreboard`] that counts nops says how many the next instruction
//! would need. An instruction stays after those that write what it reads or writes, and after those that read what
//! it writes; memory and lanes order the others as before allocation ([`Effects`]). That is enough for the three `xor.b` of a swap, too:
//! what reads or writes one of the two registers is ordered with each of them, so only others can come between.
//!
//! Of the instructions that are ready, the next one is: a varying, since the last one releases memory; a `kill` that need not
//! wait; a special function, texture or load that need not wait; then the one that waits the least, up to three slots; else the
//! one with the longest latency after it. Waits are nops, and the expected time until `(ss)` or `(sy)` ends.
//!
//! A block whose original order waits no longer than the new one is not changed. Only the first 48 ready instructions in code
//! order are compared.

use super::dependencies::{Effects, Resources, ScheduleRules};
use crate::delays::latency::{Latency, Sync, sync};
use crate::delays::nops::Scoreboard;
use crate::ir3::opcode::Effect;
use crate::ir3::register_set::{RegisterSet, UNITS};
use crate::ir3::{Block, Category, Instr, InstrData, Opcode, Program, RegFile, RepeatLink};
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The maximum number of ready instructions that are compared.
const WINDOW: usize = 48;

/// A wait of so many slots is accepted now rather than later.
const SHORT: u32 = 3;

/// Schedules each block of a program with registers.
pub fn run(program: &mut Program, target: &Target) {
    let mut changes = Vec::new();
    let mut scheduler = Scheduler {
        program,
        target,
        board: Scoreboard::new(program, target),
        nodes: Vec::new(),
        node_of: SecondaryMap::with_capacity(program.instrs.len()),
        writers: vec![0; UNITS],
        readers: vec![Vec::new(); UNITS],
    };
    for &block in &program.layout {
        if let Some(order) = scheduler.block(block) {
            changes.push((block, order));
        }
    }
    for (block, order) in changes {
        program.blocks[block].instrs = order;
    }
}

/// An instruction of the region.
struct Node {
    instr: Instr,
    reads: RegisterSet,
    writes: RegisterSet,
    /// Later nodes, each maybe more than once.
    successors: Vec<u32>,
    /// The number of edges to it from nodes that have not been issued.
    waits_for: u32,
    /// The time from it to the end of the region, at least.
    height: u32,
    kind: Sync,
}

/// What is expected to be waited for while instructions are issued.
#[derive(Clone, Copy, Default)]
struct Expected {
    /// Results that are waited for with `(ss)`, and with `(sy)`.
    results: [RegisterSet; 2],
    /// What may still be read, likewise.
    reads: [RegisterSet; 2],
    /// When these waits end.
    ends: [u32; 2],
    /// The current time: issued slots and waits.
    time: u32,
}

impl Expected {
    fn wait(&self, node: &Node) -> u32 {
        let waits = |which: usize| {
            node.reads.meets(&self.results[which])
                || node.writes.meets(&self.results[which])
                || node.writes.meets(&self.reads[which])
        };
        [0, 1]
            .into_iter()
            .filter(|&which| waits(which))
            .map(|which| self.ends[which])
            .max()
            .unwrap_or(0)
            .saturating_sub(self.time)
    }

    /// Issues an instruction after `wait`, in `slots`.
    fn issue(&mut self, node: &Node, wait: u32, slots: u32, latency: u32) {
        self.time += wait;
        for which in [0, 1] {
            if self.ends[which] <= self.time {
                (self.results[which], self.reads[which]) = (RegisterSet::EMPTY, RegisterSet::EMPTY);
            }
        }
        self.time += slots;
        let which = match node.kind {
            Sync::Distance => return,
            Sync::Ss => 0,
            Sync::Sy => 1,
        };
        self.results[which].add(&node.writes);
        self.reads[which].add(&node.reads);
        self.ends[which] = self.ends[which].max(self.time + latency);
    }
}

struct Scheduler<'a> {
    program: &'a Program,
    target: &'a Target,
    board: Scoreboard<'a>,
    nodes: Vec<Node>,
    /// The node of an instruction, plus one.
    node_of: SecondaryMap<Instr, u32>,
    /// The last node that wrote a unit, plus one, and those that have read it since.
    writers: Vec<u32>,
    readers: Vec<Vec<u32>>,
}

impl Scheduler<'_> {
    /// The new order of a block; `None` if it is no better than the old one.
    fn block(&mut self, block: Block) -> Option<Vec<Instr>> {
        let program = self.program;
        let list = &program.blocks[block].instrs;
        if list.len() < 3 {
            return None;
        }
        let mut out = Vec::with_capacity(list.len());
        let is_fixed = |&instr: &Instr| {
            let opcode = program.instrs[instr].opcode;
            opcode.is_scheduling_fence() || opcode.is_prefetched()
        };
        let mut rest = &list[..];
        while !rest.is_empty() {
            let region = rest.iter().position(is_fixed).unwrap_or(rest.len());
            self.region(&rest[..region], &mut out);
            rest = &rest[region..];
            let fixed = rest.iter().position(|instr| !is_fixed(instr)).unwrap_or(rest.len());
            out.extend_from_slice(&rest[..fixed]);
            rest = &rest[fixed..];
        }
        (out != *list && self.cost(&out) < self.cost(list)).then_some(out)
    }

    /// The slots and waits of a block in some order.
    fn cost(&mut self, list: &[Instr]) -> u32 {
        self.board.restart();
        let mut expected = Expected::default();
        for &instr in list {
            let data = &self.program.instrs[instr];
            if !data.opcode.is_meta() {
                self.issue(&mut expected, &self.node(instr));
            }
        }
        expected.time
    }

    fn issue(&mut self, expected: &mut Expected, node: &Node) {
        let data = &self.program.instrs[node.instr];
        let start = self.board.cycle();
        let nops = self.board.issue(data);
        let wait = expected.wait(node).max(nops);
        let latency = Latency::of(data, self.target).soft;
        expected.issue(node, wait, self.board.cycle() - start - nops, latency);
    }

    fn node(&self, instr: Instr) -> Node {
        let (program, target, data) = (self.program, self.target, &self.program.instrs[instr]);
        let (mut reads, mut writes) = (RegisterSet::EMPTY, RegisterSet::EMPTY);
        data.srcs.iter().for_each(|src| reads.add(&RegisterSet::of_src(program, target, src)));
        data.dsts.iter().for_each(|dst| writes.add(&RegisterSet::of_dst(program, target, dst)));
        // Stores are read from later, too.
        let stores = matches!(data.opcode.info().effect, Effect::Store | Effect::StoreAny | Effect::StoreConsts);
        let kind = match sync(data, target) {
            Sync::Distance if stores => Sync::Ss,
            kind => kind,
        };
        Node { instr, reads, writes, successors: Vec::new(), waits_for: 0, height: 0, kind }
    }

    /// Appends a region without fences in its new order.
    fn region(&mut self, region: &[Instr], out: &mut Vec<Instr>) {
        self.build(region);
        self.board.restart();
        let mut expected = Expected::default();
        let mut ready: BinaryHeap<Reverse<u32>> =
            (0..).zip(&self.nodes).filter(|(_, node)| node.waits_for == 0).map(|(at, _)| Reverse(at)).collect();
        let mut window: Vec<u32> = Vec::new();
        loop {
            while window.len() < WINDOW {
                let Some(Reverse(node)) = ready.pop() else { break };
                window.push(node);
            }
            let keys = window.iter().enumerate().map(|(at, &node)| (self.key(node, &expected), at));
            let Some((_, at)) = keys.min() else { break };
            let at = window.swap_remove(at) as usize;
            let successors = std::mem::take(&mut self.nodes[at].successors);
            let node = self.node(region[at]);
            self.issue(&mut expected, &node);
            out.push(node.instr);
            for to in successors {
                let waits_for = &mut self.nodes[to as usize].waits_for;
                *waits_for -= 1;
                if *waits_for == 0 {
                    ready.push(Reverse(to));
                }
            }
        }
    }

    /// The priority of an instruction; the least is next.
    fn key(&self, at: u32, expected: &Expected) -> (u8, u32, Reverse<u32>, u32) {
        let node = &self.nodes[at as usize];
        let data = &self.program.instrs[node.instr];
        let nops = self.board.delay(data);
        let wait = nops.max(expected.wait(node));
        let height = Reverse(node.height);
        let (class, wait) = match data.opcode {
            Opcode::BaryF | Opcode::FlatB | Opcode::Ldlv => (0, 0),
            Opcode::Kill | Opcode::Demote if nops == 0 => (1, 0),
            _ if node.kind != Sync::Distance && wait == 0 => (2, 0),
            _ if wait <= SHORT => (3, wait),
            _ => (4, 0),
        };
        (class, wait, height, at)
    }

    /// Builds the graph of a region.
    fn build(&mut self, region: &[Instr]) {
        let program = self.program;
        self.nodes.clear();
        let rules = ScheduleRules { predicates: true, registers: self.target.num_predicates };
        let mut resources: Vec<(Resources, Option<u32>, Vec<u32>)> =
            Resources::all().iter().map(|resource| (resource, None, Vec::new())).collect();
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for (at, &instr) in (0..).zip(region) {
            let node = self.node(instr);
            let data = &program.instrs[instr];
            for unit in node.reads.units() {
                if let Some(writer) = self.writers[unit].checked_sub(1) {
                    edges.push((writer, at));
                }
                self.readers[unit].push(at);
            }
            for unit in node.writes.units() {
                if let Some(writer) = self.writers[unit].checked_sub(1) {
                    edges.push((writer, at));
                }
                self.writers[unit] = at + 1;
                edges.extend(self.readers[unit].drain(..).filter(|&reader| reader != at).map(|reader| (reader, at)));
            }
            let effects = Effects::of(data, self.target, rules);
            for (resource, writer, readers) in &mut resources {
                // Addresses are registers here.
                let is_address = Resources::A0 | Resources::A1;
                if is_address.contains(*resource) {
                    continue;
                }
                if effects.writes.contains(*resource) {
                    edges.extend(writer.replace(at).map(|writer| (writer, at)));
                    edges.extend(readers.drain(..).map(|reader| (reader, at)));
                } else if effects.reads.contains(*resource) {
                    edges.extend(writer.map(|writer| (writer, at)));
                    readers.push(at);
                }
            }
            let link = match data.link {
                RepeatLink::After(previous) => Some(previous),
                _ => None,
            };
            let others = data.false_deps.iter().copied().chain(link);
            edges.extend(others.filter_map(|dep| self.node_of[dep].checked_sub(1)).map(|earlier| (earlier, at)));
            self.node_of[instr] = at + 1;
            self.nodes.push(node);
        }
        edges.sort_unstable();
        edges.dedup();
        for &(from, to) in &edges {
            self.nodes[from as usize].successors.push(to);
            self.nodes[to as usize].waits_for += 1;
        }
        for at in (0..self.nodes.len()).rev() {
            let node = &self.nodes[at];
            let below = node.successors.iter().map(|&to| {
                let later = &self.nodes[to as usize];
                let latency = if node.writes.meets(&later.reads) { self.latency(node, later) } else { 0 };
                later.height + latency
            });
            self.nodes[at].height = below.max().unwrap_or(0);
        }
        for node in &self.nodes {
            self.node_of[node.instr] = 0;
            for unit in node.reads.units().chain(node.writes.units()) {
                self.writers[unit] = 0;
                self.readers[unit].clear();
            }
        }
    }

    /// The expected time from an instruction to one that reads its result.
    fn latency(&self, from: &Node, to: &Node) -> u32 {
        let (producer, consumer) = (&self.program.instrs[from.instr], &self.program.instrs[to.instr]);
        let reads =
            |&index: &usize| RegisterSet::of_src(self.program, self.target, &consumer.srcs[index]).meets(&from.writes);
        let index = (0..consumer.srcs.len()).find(reads).unwrap_or(0);
        Latency::between(producer, consumer, index, self.target).soft
    }
}

/// Removes moves of registers to themselves.
pub fn remove_self_moves(program: &mut Program) {
    let is_self_move = |data: &InstrData| {
        data.opcode == Opcode::Mov
            && data.opcode.category() == Category::Move
            && data.move_types().is_some_and(|(src, dst)| src == dst)
            && data.srcs.len() == 1
            && data.srcs[0].mods.is_empty()
            && data.dsts[0].class == data.srcs[0].class
            && data.dsts[0].class.file != RegFile::Address
            && data.dsts[0].place.reg().is_some()
            && data.srcs[0].place() == Some(&data.dsts[0].place)
    };
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let instrs = &program.instrs;
        program.blocks[block].instrs.retain(|&instr| !is_self_move(&instrs[instr]));
    }
}
