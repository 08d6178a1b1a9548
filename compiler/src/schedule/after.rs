//! List scheduling after register allocation, block by block.
//!
//! Before allocation, the scheduler cannot predict moves, spills and reloads, nor which registers are reused. Here
//! registers are known, and so is each delay: the [`Scoreboard`] that counts nops computes how many the next
//! instruction would need. An instruction stays after those that write its operands or results, and after those that
//! read its results; memory and lanes order the others as before allocation
//! ([`Effects`](super::dependencies::Effects)). That is enough for the three `xor.b` of a swap, too: an instruction
//! that reads or writes one of the two registers is ordered with each of them, so only others can come between.
//!
//! The next one of the ready instructions is: a varying, since the last one releases memory; a `kill` that need not
//! wait; a special function, texture or load that need not wait; then the one that waits the least, up to three slots;
//! else the one with the longest latency after it. Waits are nops, and the expected time until `(ss)` or `(sy)` ends.
//! To overwrite an operand takes an `(ss)`, which ends when the operand has been read, long before a result comes.
//!
//! A block whose original order waits no longer than the new one is not changed, unless it reads its last varying
//! later. Only the first 48 ready instructions in code order are compared.

use super::conflicts::Conflicts;
use super::{Bounded, insert_by_bound, position_of_least};
use crate::delays::latency::{Latency, Sync, Timing};
use crate::delays::nops::{Reads, Scoreboard, Writes};
use crate::ir3::opcode::Effect;
use crate::ir3::register_set::{RegisterSet, Word, list_instr, list_meets_src, lists_meet};
use crate::ir3::{Block, Category, Instr, InstrData, Opcode, Place, Program, RegClass, RegFile, WriteMask};
use crate::target::Target;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The maximum number of ready instructions that are compared.
const WINDOW: usize = 48;

/// A wait of up to this many slots is accepted now rather than later.
const SHORT: u32 = 3;

/// The slots after which a texture, load or special function has usually read its operands.
const READ: u32 = 2;

/// The expected number of words in which an instruction has registers.
const WORDS: usize = 4;

/// The index of waits with `(ss)`. That of `(sy)` is 1.
const SS: usize = 0;

/// Schedules each block of a program with registers.
pub fn run(program: &mut Program, target: &Target) {
    let mut changes = Vec::new();
    let longest = program.layout.iter().map(|&block| program.blocks[block].instrs.len()).max().unwrap_or(0);
    let mut scheduler = Scheduler {
        program,
        target,
        board: Scoreboard::new(program, target),
        nodes: Vec::with_capacity(longest),
        registers: Vec::with_capacity(WORDS * longest),
        graph: Conflicts::new(program, longest),
        ready: BinaryHeap::with_capacity(longest),
        window: Vec::with_capacity(WINDOW),
        out: Vec::with_capacity(longest),
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

/// An instruction of the block.
struct Node {
    instr: Instr,
    opcode: Opcode,
    /// The registers that it reads, up to `middle`, and those that it writes, in [`Scheduler::registers`].
    start: u32,
    middle: u32,
    end: u32,
    /// The reads and the writes in the form of the scoreboard.
    on_board: Reads,
    results: Writes,
    rank: Rank,
    widths: Widths,
    /// The number of edges to it from nodes that have not been issued.
    waits_for: u32,
    /// The time from it to the end of the region, at least.
    height: u32,
    kind: Sync,
    timing: Timing,
}

impl Node {
    fn reads<'r>(&self, registers: &'r [Word]) -> &'r [Word] {
        &registers[self.start as usize..self.middle as usize]
    }

    fn writes<'r>(&self, registers: &'r [Word]) -> &'r [Word] {
        &registers[self.middle as usize..self.end as usize]
    }
}

/// The properties of an instruction that decide which one is next, besides its waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// It reads a varying.
    Varying,
    /// It ends lanes.
    Kill,
    /// A special function, texture or access to memory.
    Unit,
    Other,
}

/// The general operands of instructions.
#[derive(Clone, Copy, Default)]
struct Widths {
    full: bool,
    half: bool,
    /// True if the scoreboard has other registers for an operand than the sets of registers.
    differ: bool,
}

impl Widths {
    fn of(data: &InstrData) -> Self {
        let mut this = Self::default();
        let mut add = |class: RegClass, place: &Place, mask: WriteMask, may_have_holes: bool| {
            let is_general = class.file == RegFile::General;
            this.full |= is_general && !class.half;
            this.half |= is_general && class.half;
            let has_holes = mask.0 & mask.0.wrapping_add(1) != 0;
            let is_outside = is_general && place.reg().is_some_and(|reg| reg.register() >= 48);
            this.differ |= is_outside || has_holes && !may_have_holes;
        };
        data.dsts.iter().for_each(|dst| add(dst.class, &dst.place, dst.mask, data.repeat == 0));
        data.srcs.iter().for_each(|src| {
            if let Some(place) = src.place() {
                add(src.class, place, src.mask, false);
            }
        });
        this
    }

    fn add(self, other: Self) -> Self {
        let Self { full, half, differ } = other;
        Self { full: self.full | full, half: self.half | half, differ: self.differ | differ }
    }

    /// Returns true if what a ready instruction of such a region reads does not change on the scoreboard until it is
    /// issued: whatever writes it has been issued. On the scoreboard, full and half registers overlap even where
    /// the files are separate.
    fn are_ordered(self, target: &Target) -> bool {
        !self.differ && (target.merged_regs || !(self.full && self.half))
    }
}

/// The expected waits while instructions are issued.
#[derive(Clone, Copy, Default)]
struct Expected {
    /// Results that are waited for with `(ss)`, and with `(sy)`.
    results: [RegisterSet; 2],
    /// Registers that may still be read. `(ss)` waits for that, independent of the flag of the result.
    reads: RegisterSet,
    /// The expected ends of these waits.
    ends: [u32; 2],
    /// The current time: issued slots and waits.
    time: u32,
}

impl Expected {
    /// The kinds of results, `(ss)` and `(sy)`, that an instruction waits for, until [`Expected::issue`] adds another.
    fn kinds(&self, node: &Node, registers: &[Word]) -> [bool; 2] {
        [0, 1].map(|which| {
            self.ends[which] > self.time
                && (self.results[which].meets_list(&registers[node.start as usize..node.end as usize])
                    || which == SS && self.reads.meets_list(node.writes(registers)))
        })
    }

    /// The time that an instruction waits for these kinds of results.
    fn wait(&self, kinds: [bool; 2]) -> u32 {
        let end = |which: usize| if kinds[which] { self.ends[which] } else { 0 };
        end(0).max(end(1)).saturating_sub(self.time)
    }

    /// Issues an instruction after `wait`, in `slots`. Returns true if there is one more result to wait for.
    fn issue(&mut self, node: &Node, registers: &[Word], wait: u32, slots: u32) -> bool {
        self.time += wait;
        let which = match node.kind {
            Sync::Distance => None,
            Sync::Ss => Some(SS),
            Sync::Sy => Some(1),
        };
        if let Some(which) = which {
            let ended = |which: usize| self.ends[which] <= self.time;
            if ended(SS) {
                self.reads = RegisterSet::EMPTY;
            }
            for which in [SS, which] {
                if ended(which) {
                    self.results[which] = RegisterSet::EMPTY;
                }
            }
            self.results[which].add_list(node.writes(registers));
            self.reads.add_list(node.reads(registers));
            self.ends[SS] = self.ends[SS].max(self.time + slots + READ);
            self.ends[which] = self.ends[which].max(self.time + slots + node.timing.result.soft);
        }
        self.time += slots;
        which.is_some()
    }
}

/// A ready instruction that is compared.
struct Candidate {
    node: u32,
    rank: Rank,
    height: u32,
    /// Its [`key`] without waits.
    bound: u128,
    /// The cycle from which it needs no nops.
    ready: u32,
    /// The kinds of results that it waits for.
    kinds: [bool; 2],
}

impl Bounded for Candidate {
    fn bound(&self) -> u128 {
        self.bound
    }
}

struct Scheduler<'a> {
    program: &'a Program,
    target: &'a Target,
    board: Scoreboard<'a>,
    /// The instructions of the block, and their registers.
    nodes: Vec<Node>,
    registers: Vec<Word>,
    /// Between the instructions of the region.
    graph: Conflicts,
    /// Ready nodes of the region, first in the code first, and those of them that are compared, in the order of bounds.
    ready: BinaryHeap<Reverse<u32>>,
    window: Vec<Candidate>,
    /// The new order of the block, as positions in the old one.
    out: Vec<usize>,
}

impl Scheduler<'_> {
    /// The new order of a block; `None` if it is no better than the old one.
    fn block(&mut self, block: Block) -> Option<Vec<Instr>> {
        let program = self.program;
        let list = &program.blocks[block].instrs;
        if list.len() < 3 {
            return None;
        }
        self.nodes.clear();
        self.registers.clear();
        for &instr in list {
            let node = self.node(instr);
            self.nodes.push(node);
        }
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let is_fixed = |&instr: &Instr| is_fixed(program, instr);
        // The number of instructions at the start of the new order, and the waits after these: of the only region.
        let mut scheduled = None;
        while out.len() < list.len() {
            let start = out.len();
            let region = list[start..].iter().position(is_fixed).unwrap_or(list.len() - start);
            let expected = self.region(start..start + region, &mut out);
            let is_all_issued = start == 0 && !self.nodes[..region].iter().any(|node| node.opcode.is_meta());
            scheduled = is_all_issued.then_some((region, expected));
            let fixed = list[out.len()..].iter().take_while(|&instr| is_fixed(instr)).count();
            out.extend(out.len()..out.len() + fixed);
        }
        let is_new = out.iter().enumerate().any(|(at, &from)| at != from);
        let is_better = is_new && {
            let new = self.cost(out.iter().copied(), scheduled);
            new < self.cost(0..list.len(), None)
        };
        let order = is_better.then(|| out.iter().map(|&at| list[at]).collect());
        self.out = out;
        order
    }

    /// The slots and waits of a block in some order, and where the last varying is read. `scheduled` instructions have
    /// been issued already, with these waits.
    fn cost(
        &mut self,
        order: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone,
        scheduled: Option<(usize, Expected)>,
    ) -> (u32, Option<usize>) {
        let (issued, mut expected) = scheduled.unwrap_or_else(|| {
            self.board.restart();
            (0, Expected::default())
        });
        for at in order.clone().skip(issued) {
            let node = &self.nodes[at];
            if !node.opcode.is_meta() {
                let kinds = expected.kinds(node, &self.registers);
                issue(&mut self.board, &mut expected, node, &self.registers, kinds);
            }
        }
        let reads_varying = |at: usize| self.nodes[at].rank == Rank::Varying;
        let mut order = order;
        (expected.time, order.rposition(reads_varying))
    }

    fn node(&mut self, instr: Instr) -> Node {
        let (target, data) = (self.target, &self.program.instrs[instr]);
        let start = self.registers.len() as u32;
        let [middle, end] = list_instr(self.program, target, data, &mut self.registers).map(|at| at as u32);
        // Stores are read from later, too.
        let stores = matches!(data.opcode.info().effect, Effect::Store | Effect::StoreAny | Effect::StoreConsts);
        let timing = Timing::of(data, target);
        let kind = match timing.sync {
            Sync::Distance if stores => Sync::Ss,
            kind => kind,
        };
        let rank = match data.opcode {
            opcode if opcode.reads_varying() => Rank::Varying,
            Opcode::Kill | Opcode::Demote => Rank::Kill,
            _ if kind != Sync::Distance => Rank::Unit,
            _ => Rank::Other,
        };
        Node {
            instr,
            opcode: data.opcode,
            start,
            middle,
            end,
            on_board: self.board.reads(data),
            results: self.board.writes(data, timing.slots),
            rank,
            widths: Widths::of(data),
            waits_for: 0,
            height: 0,
            kind,
            timing,
        }
    }

    /// Appends a region without fences in its new order. Positions are those in the block. Returns the waits after it.
    fn region(&mut self, region: Range<usize>, out: &mut Vec<usize>) -> Expected {
        let Self { program, target, board, nodes, registers, graph, ready, window, .. } = self;
        let fixed = nodes[region.end..].iter().take_while(|node| is_fixed(program, node.instr)).count();
        let (nodes, following) = nodes[region.start..region.end + fixed].split_at_mut(region.len());
        build(program, target, nodes, following, registers, graph);
        board.restart();
        let mut expected = Expected::default();
        let is_ordered =
            nodes.iter().fold(Widths::default(), |widths, node| widths.add(node.widths)).are_ordered(target);
        ready.extend((0..).zip(&*nodes).filter(|(_, node)| node.waits_for == 0).map(|(at, _)| Reverse(at)));
        loop {
            while window.len() < WINDOW {
                let Some(Reverse(at)) = ready.pop() else { break };
                let node = &nodes[at as usize];
                let (kinds, ready) = (expected.kinds(node, registers), board.ready_at(&node.on_board));
                let (rank, height) = (node.rank, node.height);
                let bound = key(rank, height, 0, 0, at);
                insert_by_bound(window, Candidate { node: at, rank, height, bound, ready, kinds });
            }
            let cycle = board.cycle();
            let key_now = |candidate: &Candidate| {
                let nops = candidate.ready.saturating_sub(cycle);
                key(candidate.rank, candidate.height, nops, expected.wait(candidate.kinds), candidate.node)
            };
            let Some(at) = position_of_least(window, key_now) else { return expected };
            let Candidate { node: at, kinds, .. } = window.remove(at);
            let node = &nodes[at as usize];
            if issue(board, &mut expected, node, registers, kinds) {
                window
                    .iter_mut()
                    .for_each(|other| other.kinds = expected.kinds(&nodes[other.node as usize], registers));
            }
            if !is_ordered {
                window.iter_mut().for_each(|other| other.ready = board.ready_at(&nodes[other.node as usize].on_board));
            }
            out.push(region.start + at as usize);
            for &to in graph.successors(at as usize) {
                let waits_for = &mut nodes[to as usize].waits_for;
                *waits_for -= 1;
                if *waits_for == 0 {
                    ready.push(Reverse(to));
                }
            }
        }
    }
}

/// Issues an instruction that waits for these kinds of results; returns true if others wait for other results now.
fn issue(
    board: &mut Scoreboard<'_>,
    expected: &mut Expected,
    node: &Node,
    registers: &[Word],
    kinds: [bool; 2],
) -> bool {
    let start = board.cycle();
    let nops = board.delay(&node.on_board);
    board.issue_after(&node.results, nops);
    let wait = expected.wait(kinds).max(nops);
    expected.issue(node, registers, wait, board.cycle() - start - nops)
}

/// The priority of an instruction that needs `nops` and otherwise has to wait for `wait`; the least is next. It is made
/// of a class, a short wait, the height, the highest first, and the position in the code.
fn key(rank: Rank, height: u32, nops: u32, wait: u32, node: u32) -> u128 {
    let wait = nops.max(wait);
    let (class, wait) = match rank {
        Rank::Varying => (0, 0),
        Rank::Kill if nops == 0 => (1, 0),
        Rank::Unit if wait == 0 => (2, 0),
        _ if wait <= SHORT => (3, wait),
        _ => (4, 0),
    };
    u128::from(class << 2 | wait) << 64 | u128::from(u64::from(!height) << 32 | u64::from(node))
}

/// Returns true if an instruction stays between its neighbours.
fn is_fixed(program: &Program, instr: Instr) -> bool {
    let opcode = program.instrs[instr].opcode;
    opcode.is_scheduling_fence() || opcode.is_prefetched()
}

/// Builds the graph of a region, which the instructions `following` follow.
fn build(
    program: &Program,
    target: &Target,
    nodes: &mut [Node],
    following: &[Node],
    registers: &[Word],
    graph: &mut Conflicts,
) {
    graph.begin();
    for node in &*nodes {
        let (reads, writes) = (node.reads(registers), node.writes(registers));
        graph.add(node.instr, &program.instrs[node.instr], reads, writes, target);
    }
    for &(_, to) in graph.finish() {
        nodes[to as usize].waits_for += 1;
    }
    for at in (0..nodes.len()).rev() {
        let node = &nodes[at];
        let writes = node.writes(registers);
        let latency = |later: &Node| latency(program, target, node, writes, later);
        let below = graph.successors(at).iter().map(|&to| {
            let later = &nodes[to as usize];
            later.height + if lists_meet(writes, later.reads(registers)) { latency(later) } else { 0 }
        });
        let readers = following.iter().filter(|later| lists_meet(writes, later.reads(registers)));
        let at_end = readers.map(latency).max().unwrap_or(0);
        // A predicate is often read first in the next block.
        let dsts = &program.instrs[node.instr].dsts;
        let is_predicate = dsts.iter().any(|dst| dst.class.file == RegFile::Predicate);
        let at_end = if is_predicate { at_end.max(node.timing.result.soft) } else { at_end };
        nodes[at].height = below.max().unwrap_or(0).max(at_end);
    }
}

/// The expected time from an instruction, which writes the registers `writes`, to one that reads its result.
fn latency(program: &Program, target: &Target, from: &Node, writes: &[Word], to: &Node) -> u32 {
    let (producer, consumer) = (&program.instrs[from.instr], &program.instrs[to.instr]);
    let index = || {
        // It reads the result, so that of several sources the last one need not be looked at.
        let last = consumer.srcs.iter().rposition(|src| src.place().is_some()).unwrap_or(0);
        let reads = |&index: &usize| list_meets_src(writes, program, target, &consumer.srcs[index]);
        (0..last).find(reads).unwrap_or(last)
    };
    Latency::between((producer, &from.timing), (consumer, &to.timing), index, target).soft
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
