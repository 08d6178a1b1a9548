//! List scheduling before register allocation, block by block.
//!
//! The next instruction is one that reads a varying, as long as registers are left for it: the last such read releases
//! the memory of all varyings. Else it is one that does not have to wait, if there is one; among these, one that ends
//! more live ranges than it begins; among these, the one with the longest latency after it, else the first in the code.
//! So loads are issued early, as long as registers are left for their results, and no more than 8 at a time;
//! comparisons are separated from their branches; and if no instruction is ready, the one with the fewest nops is next.
//! Pieces of a vector are extracted as soon as it is available.
//!
//! A block whose original order takes no more time, nops and expected waits together, is not changed, unless it reads
//! its last varying later.
//!
//! The limit is the number of registers with which the program has the same waves as with the need of its original
//! order, both measured alike (`registers`). Instructions that would exceed six sevenths of it are delayed while any
//! other is left: this leaves the allocator free registers to build vectors without moves. A block that exceeds it
//! nevertheless is not changed. A program of few waves is first scheduled for a limit that gives it more: there, of the
//! instructions that exceed the six sevenths, the one whose result is used first is next. That order is taken if its
//! nops are worth the waves. A program of more waves that waits for textures, memory and special functions at least
//! half of the time is scheduled once more, for the registers that leave half of the waves. That order is taken if the
//! waves are not worth the time that it saves. Without [occupancy](ScheduleRules::occupancy) the limit is the need of
//! the original order, in whole vec4, and no other one is tried.
//!
//! Only the first 48 ready instructions in code order are compared, so the cost per instruction is independent of the
//! block's length, and distant instructions stay distant.

use super::dependencies::{DependencyBuilder, DependencyGraph, ScheduleRules};
use super::live_out::live_out;
use super::registers::{Effect, RegisterUse, Start, Units};
use super::{Bounded, insert_by_bound, position_of_least};
use crate::delays::latency::Sync;
use crate::ir3::{Block, Instr, InstrData, Opcode, Place, Program, RegFile, Value, workload};
use crate::target::occupancy::Workload;
use crate::target::{RegisterFiles, Target};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The maximum number of ready instructions that are compared.
const WINDOW: usize = 48;

/// The maximum number of outstanding results of textures or memory, and of special functions.
const OUTSTANDING: usize = 8;

/// The fraction of the limit up to which register use is not restricted.
const PRESSURE_THRESHOLD: (u32, u32) = (6, 7);

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
    let mut registers = RegisterUse::new(program, target);
    let blocks: Vec<InOrder> =
        program.layout.iter().map(|&block| in_order(program, block, live.live_out(block), &mut registers)).collect();
    let most = blocks.iter().fold(Units::default(), |most, block| std::array::from_fn(|i| most[i].max(block.peak[i])));
    // General registers are allocated in whole vec4.
    let need = [
        most[0].next_multiple_of(8).min(files.full),
        most[1].next_multiple_of(4).min(files.half),
        most[2].min(files.shared),
    ];
    let work = workload(program);
    let limits =
        if rules.occupancy { limits(&work, target, need, files) } else { SmallVec::from_iter([(false, need)]) };
    let builder = DependencyBuilder::new(program, target, rules);
    let longest = program.layout.iter().map(|&block| program.blocks[block].instrs.len()).max().unwrap_or(0);
    let mut scheduler = Scheduler {
        predicates: rules.registers,
        limit: need,
        thresholds: [0; 3],
        is_tight: false,
        registers,
        facts: Facts::of_all(program, &builder),
        builder,
        graph: DependencyGraph::default(),
        nodes: Vec::with_capacity(longest),
        ready: BinaryHeap::with_capacity(longest),
        window: Vec::with_capacity(WINDOW),
        slot: 0,
        time: 0,
        nops: [0; 2],
        times: [0; 2],
        first_use: Vec::new(),
        orders: Vec::new(),
        outstanding: Default::default(),
        last_readers: SmallVec::new(),
        out: Vec::with_capacity(longest),
    };
    let mut best: Option<Schedule> = None;
    let most = limits.last().map_or(need, |last| last.1);
    let relaxed_limit = relaxed_limit(&work, target, most, files).filter(|_| rules.occupancy);
    let mut within = |is_tight, limit: Units| {
        (scheduler.is_tight, scheduler.limit) = (is_tight, limit);
        let (slots, time) = scheduler.program(program, &blocks)?;
        let waves = target.occupancy(&work, limit[0].div_ceil(8)).waves;
        Some(Schedule { orders: std::mem::take(&mut scheduler.orders), slots, time, waves })
    };
    for (is_tight, limit) in limits {
        let Some(next) = within(is_tight, limit) else { continue };
        best = Some(match best {
            Some(tight) if tight.waves_pay_for_slots(&next) => tight,
            _ => next,
        });
    }
    if let (Some(limit), Some(now)) = (relaxed_limit, &best)
        && now.waits_much()
        && let Some(next) = within(false, limit)
        && !now.waves_pay_for_time(&next)
    {
        best = Some(next);
    }
    for (block, order) in best.into_iter().flat_map(|best| best.orders) {
        program.blocks[block].instrs = order;
    }
}

/// New orders of blocks.
struct Schedule {
    orders: Vec<(Block, Vec<Instr>)>,
    /// The slots and nops of the program.
    slots: u32,
    /// The slots, plus the expected other waits.
    time: u32,
    waves: u32,
}

impl Schedule {
    /// Returns true if the waves that this schedule has more than another one are worth its slots.
    const fn waves_pay_for_slots(&self, other: &Self) -> bool {
        more_waves_pay_off([self.slots, self.waves], [other.slots, other.waves])
    }

    /// Returns true if these waves are worth its time.
    const fn waves_pay_for_time(&self, other: &Self) -> bool {
        more_waves_pay_off([self.time, self.waves], [other.time, other.waves])
    }

    /// Returns true if at least half of the time is spent with waits for textures, memory and special functions.
    const fn waits_much(&self) -> bool {
        self.time >= 2 * self.slots
    }
}

/// Returns true if more waves are worth more slots, or time: waves hide waits of each other, but no more than a part of
/// the time is spent with these.
const fn more_waves_pay_off([cost, waves]: [u32; 2], [other_cost, other_waves]: [u32; 2]) -> bool {
    const PART: u32 = 2;
    let (cost, waves) = (cost.saturating_sub(other_cost), waves.saturating_sub(other_waves));
    PART * cost * other_waves <= other_cost * waves
}

/// Up to this many waves, an order of fewer registers that gets more of them is preferred.
const FEW_WAVES: u32 = 6;

/// The fraction of the need to which an order is expected to lower it at most.
const LOWERED: (u32, u32) = (3, 5);

/// The limits to try, in order, with the mark of those for which the order has to be one of few registers. The last one
/// always fits: as many registers as cost no waves.
fn limits(work: &Workload, target: &Target, need: Units, files: RegisterFiles) -> SmallVec<[(bool, Units); 2]> {
    let vec4 = need[0].div_ceil(8);
    let limit = |vec4: u32| [(8 * vec4).min(files.full), need[1], need[2]];
    let now = target.occupancy(work, vec4);
    let mut limits = SmallVec::new();
    if now.waves <= FEW_WAVES {
        let has_more_waves = |&fewer: &u32| {
            let then = target.occupancy(work, fewer);
            then.double == now.double && then.waves > now.waves
        };
        let least = (vec4 * LOWERED.0).div_ceil(LOWERED.1);
        limits.extend((least..vec4).rev().find(has_more_waves).map(|fewer| (true, limit(fewer))));
    }
    limits.push((false, limit(target.registers_without_loss(work, vec4))));
    limits
}

/// The limit beyond the given one that leaves half of its waves, and not few, if there is one.
fn relaxed_limit(work: &Workload, target: &Target, limit: Units, files: RegisterFiles) -> Option<Units> {
    let vec4 = limit[0].div_ceil(8);
    let now = target.occupancy(work, vec4);
    let least = now.waves.div_ceil(2).max(FEW_WAVES);
    let fits = |&more: &u32| {
        let then = target.occupancy(work, more);
        then.double == now.double && then.waves >= least
    };
    let most = (vec4 + 1..=files.full / 8).rev().find(fits)?;
    Some([8 * most, limit[1], limit[2]])
}

/// The result for a block.
enum Verdict {
    /// The original order stays.
    Keep,
    /// The new order is better.
    Replace,
    /// Neither order is within the limit.
    Exceeds,
}

/// A block in its original order.
struct InOrder {
    start: Start,
    /// The register need.
    peak: Units,
}

fn in_order(program: &Program, block: Block, live_out: &[Value], registers: &mut RegisterUse) -> InOrder {
    let list = &program.blocks[block].instrs;
    let start = registers.begin(program, list, live_out);
    let mut last_readers = SmallVec::new();
    for &instr in list.iter().filter(|&&instr| program.instrs[instr].opcode != Opcode::Phi) {
        last_readers.clear();
        registers.issue(program, instr, &mut last_readers);
    }
    InOrder { start, peak: registers.peak }
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

/// The properties of an instruction that do not depend on the order.
#[derive(Clone, Copy, Debug)]
struct Facts {
    /// The flag with which users wait for its result.
    sync: Sync,
    /// The issue slots.
    slots: u32,
    is_meta: bool,
    /// True if it is next as soon as it is ready.
    is_first: bool,
    writes_predicate: bool,
    reads_varying: bool,
}

impl Facts {
    fn of_all(program: &Program, builder: &DependencyBuilder<'_>) -> SecondaryMap<Instr, Facts> {
        let nothing = Self {
            sync: Sync::Distance,
            slots: 0,
            is_meta: false,
            is_first: false,
            writes_predicate: false,
            reads_varying: false,
        };
        let mut facts = SecondaryMap::with_default(nothing);
        facts.resize(program.instrs.len());
        for (_, instr) in program.iter_instrs() {
            let (data, timing) = (&program.instrs[instr], builder.timing(instr));
            facts[instr] = Self {
                sync: timing.sync,
                slots: timing.slots,
                is_meta: data.opcode.is_meta(),
                // A prefetch has written its register when the first instruction is issued, so that nothing goes before
                // it.
                is_first: data.opcode == Opcode::Split || data.opcode.is_prefetched(),
                writes_predicate: data.dsts.iter().any(|dst| dst.class.file == RegFile::Predicate),
                reads_varying: data.opcode.reads_varying(),
            };
        }
        facts
    }
}

/// A ready instruction that is compared.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    node: u32,
    /// The packed [`Key`], without the fields that depend on [`Now`].
    key: u128,
    /// Its [`Node::slot`] and [`Node::time`], which are final; 0 if it takes no time.
    slot: u32,
    time: u32,
    sync: Sync,
    writes_predicate: bool,
    /// The most registers that it adds while it writes.
    most: [i32; 3],
}

impl Bounded for Candidate {
    fn bound(&self) -> u128 {
        self.key
    }
}

/// The state with which ready instructions are compared.
struct Now {
    slot: u32,
    time: u32,
    /// Registers that may be taken without restriction.
    room: [i32; 3],
    /// True if a further predicate needs a register that is not free.
    predicates_full: bool,
    /// True if as many results as allowed are waited for, by [`Sync`].
    outstanding_full: [bool; 3],
}

struct Scheduler<'a> {
    /// The number of predicate registers.
    predicates: u32,
    limit: Units,
    /// The parts of the limit that may be used without restriction.
    thresholds: [i32; 3],
    /// True if the program has to take fewer registers than in its original order.
    is_tight: bool,
    registers: RegisterUse,
    builder: DependencyBuilder<'a>,
    graph: DependencyGraph,
    facts: SecondaryMap<Instr, Facts>,
    nodes: Vec<Node>,
    /// The ready instructions, first in the code first, and those of them that are compared.
    ready: BinaryHeap<Reverse<u32>>,
    window: Vec<Candidate>,
    /// Issued slots, including nops.
    slot: u32,
    /// The slots, plus other waiting times.
    time: u32,
    /// Nops of the block in its new order, and in its original order.
    nops: [u32; 2],
    /// Estimated cycles of the block: new order, original order.
    times: [u32; 2],
    /// The position of the first instruction that uses the result of each; pieces of vectors count as the vector.
    first_use: Vec<u32>,
    /// The times of outstanding results that are waited for with `(ss)`, and with `(sy)`.
    outstanding: [Vec<u32>; 2],
    /// The instructions with the last use of a value that the last issued instruction reads.
    last_readers: SmallVec<[Instr; 4]>,
    out: Vec<Instr>,
    orders: Vec<(Block, Vec<Instr>)>,
}

impl Scheduler<'_> {
    /// Schedules all blocks: those that change are in `orders`. Returns the slots and nops of the program, or none if
    /// some block is not within the limit.
    fn program(&mut self, program: &Program, blocks: &[InOrder]) -> Option<(u32, u32)> {
        let (mut all, mut time) = (0, 0);
        self.thresholds = self.limit.map(pressure_threshold);
        self.orders.clear();
        for (&block, in_order) in program.layout.iter().zip(blocks) {
            let verdict = self.block(program, block, in_order);
            let list = &program.blocks[block].instrs;
            all += list.iter().map(|&instr| self.facts[instr].slots).sum::<u32>();
            match verdict {
                Verdict::Keep => (all, time) = (all + self.nops[1], time + self.times[1]),
                Verdict::Replace => {
                    (all, time) = (all + self.nops[0], time + self.times[0]);
                    self.orders.push((block, self.out.clone()));
                }
                Verdict::Exceeds => return None,
            }
        }
        Some((all, time))
    }

    /// Schedules a block into `out`.
    fn block(&mut self, program: &Program, block: Block, in_order: &InOrder) -> Verdict {
        let list = &program.blocks[block].instrs;
        self.out.clear();
        self.registers.begin_again(&in_order.start);
        (self.slot, self.time) = (0, 0);
        (self.nops, self.times) = ([0; 2], [0; 2]);
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
                if program.instrs[instr].opcode != Opcode::Phi {
                    self.last_readers.clear();
                    self.registers.issue(program, instr, &mut self.last_readers);
                }
                let slots = self.facts[instr].slots;
                self.slot += slots;
                self.time += slots;
                self.out.push(instr);
            }
            rest = &rest[fences..];
        }
        let fits = |need: Units| (0..3).all(|i| need[i] <= self.limit[i]);
        let last_varying = |order: &[Instr]| order.iter().rposition(|&instr| self.facts[instr].reads_varying);
        let cost = |which: usize| (self.times[which], self.nops[which]);
        let is_better = match cost(0).cmp(&cost(1)) {
            Ordering::Equal => last_varying(&self.out) < last_varying(list),
            order => order.is_lt(),
        };
        match (fits(self.registers.peak), fits(in_order.peak)) {
            (true, true) if !is_better || self.out == *list => Verdict::Keep,
            (true, _) => Verdict::Replace,
            (false, true) => Verdict::Keep,
            (false, false) if self.is_tight => Verdict::Exceeds,
            (false, false) => Verdict::Keep,
        }
    }

    /// Appends a region without fences.
    fn stretch(&mut self, program: &Program, stretch: &[Instr], rest: &[Instr]) {
        self.builder.build(program, stretch, rest, &mut self.graph);
        self.restart();
        let start = self.time;
        self.as_it_stands(stretch);
        self.restart();
        if self.is_tight {
            self.find_first_uses(program, stretch);
        }
        self.ready.extend((0..).zip(&self.nodes).filter(|(_, node)| node.waits_for == 0).map(|(i, _)| Reverse(i)));
        loop {
            while self.window.len() < WINDOW {
                let Some(Reverse(node)) = self.ready.pop() else { break };
                let candidate = self.candidate(program, stretch, node);
                insert_by_bound(&mut self.window, candidate);
            }
            let now = self.now();
            let key = |candidate: &Candidate| self.key(candidate, &now);
            let Some(at) = position_of_least(&self.window, key) else { break };
            let Candidate { node, .. } = self.window.remove(at);
            self.last_readers.clear();
            self.issue(program, stretch, node);
            for i in 0..self.last_readers.len() {
                let reader = self.last_readers[i];
                let Some(at) = self.window.iter().position(|other| stretch[other.node as usize] == reader) else {
                    continue;
                };
                let Candidate { node, .. } = self.window.remove(at);
                let candidate = self.candidate(program, stretch, node);
                insert_by_bound(&mut self.window, candidate);
            }
        }
        let nops_after = self.nops_after();
        self.nops[0] += nops_after;
        self.times[0] += self.time - start + nops_after;
    }

    /// Computes `first_use`.
    fn find_first_uses(&mut self, program: &Program, stretch: &[Instr]) {
        self.first_use.clear();
        self.first_use.resize(stretch.len(), u32::MAX);
        for node in (0..stretch.len()).rev() {
            let uses =
                self.graph.successors(node).iter().map(|edge| match program.instrs[stretch[edge.to as usize]].opcode {
                    Opcode::Split => self.first_use[edge.to as usize],
                    _ => edge.to,
                });
            self.first_use[node] = uses.min().unwrap_or(u32::MAX);
        }
    }

    /// Resets the region to unissued.
    fn restart(&mut self) {
        self.nodes.clear();
        let start = Node { waits_for: 0, slot: self.slot, time: self.time };
        self.nodes.extend(self.graph.predecessors.iter().map(|&waits_for| Node { waits_for, ..start }));
    }

    /// Adds the nops and the time of a region in code order to those of the original order.
    fn as_it_stands(&mut self, stretch: &[Instr]) {
        let (start, begun) = (self.slot, self.time);
        for (node, &instr) in stretch.iter().enumerate() {
            let Facts { is_meta, slots, .. } = self.facts[instr];
            let Node { slot, time, .. } = self.nodes[node];
            let (mut slot, mut time) = (slot.max(self.slot), time.max(self.time));
            if !is_meta {
                let nops = slot - self.slot;
                self.nops[1] += nops;
                time = time.max(self.time + nops);
                (slot, time) = (slot + slots, time + slots);
                (self.slot, self.time) = (slot, time);
            }
            (self.nodes[node].slot, self.nodes[node].time) = (slot, time);
            for edge in self.graph.successors(node) {
                let to = &mut self.nodes[edge.to as usize];
                to.slot = to.slot.max(slot + edge.latency.slots);
                to.time = to.time.max(time + edge.latency.soft);
            }
        }
        let nops_after = self.nops_after();
        self.nops[1] += nops_after;
        self.times[1] += self.time - begun + nops_after;
        (self.slot, self.time) = (start, begun);
    }

    /// The nops of the rest of the block for the region, all of which has been issued.
    fn nops_after(&self) -> u32 {
        let waits = self.graph.read_after.iter().map(|&(node, slots)| self.nodes[node as usize].slot + slots);
        waits.map(|ready| ready.saturating_sub(self.slot)).max().unwrap_or(0)
    }

    /// The current state.
    fn now(&self) -> Now {
        Now {
            slot: self.slot,
            time: self.time,
            room: std::array::from_fn(|i| (self.thresholds[i] - self.registers.used[i] as i32).max(0)),
            predicates_full: self.registers.predicates >= self.predicates,
            outstanding_full: [Sync::Distance, Sync::Ss, Sync::Sy]
                .map(|sync| outstanding_index(sync).is_some_and(|which| self.is_full(which))),
        }
    }

    /// A ready instruction, with its current effect on register use.
    fn candidate(&self, program: &Program, stretch: &[Instr], node: u32) -> Candidate {
        let instr = stretch[node as usize];
        let facts = self.facts[instr];
        if facts.is_first {
            let key = Key { node, ..Key::default() }.packed();
            let (sync, writes_predicate) = (Sync::Distance, false);
            return Candidate { node, key, slot: 0, time: 0, sync, writes_predicate, most: [0; 3] };
        }
        let Node { slot, time, .. } = self.nodes[node as usize];
        let (slot, time) = if facts.is_meta { (0, 0) } else { (slot, time) };
        let Effect { change, most } = self.registers.effect(program, instr);
        let key = Key {
            machine: true,
            no_varying: !facts.reads_varying,
            effect: change.iter().sum::<i32>().signum(),
            height: self.graph.height[node as usize],
            node,
            ..Key::default()
        };
        let Facts { sync, writes_predicate, .. } = facts;
        Candidate { node, key: key.packed(), slot, time, sync, writes_predicate, most }
    }

    /// The packed [`Key`]; the least is next.
    fn key(&self, candidate: &Candidate, now: &Now) -> u128 {
        let Candidate { node, key, slot, time, sync, writes_predicate, most } = candidate;
        let grows = most[0] > now.room[0] || most[1] > now.room[1] || most[2] > now.room[2];
        let first_use = if grows && self.is_tight { self.first_use[*node as usize] } else { 0 };
        let crowded = *writes_predicate && now.predicates_full || now.outstanding_full[*sync as usize];
        let wait = slot.saturating_sub(now.slot).max(time.saturating_sub(now.time));
        key | Key { grows, first_use, crowded, wait, ..Key::NOTHING }.packed()
    }

    /// Returns true if as many results as allowed are outstanding.
    fn is_full(&self, which: usize) -> bool {
        let all = &self.outstanding[which];
        all.len() >= OUTSTANDING && all.iter().filter(|&&time| time > self.time).count() >= OUTSTANDING
    }

    /// Issues an instruction. Those whose effect on register use changes are added to `last_readers`.
    fn issue(&mut self, program: &Program, stretch: &[Instr], node: u32) {
        let instr = stretch[node as usize];
        let facts = self.facts[instr];
        let Node { slot, time, .. } = self.nodes[node as usize];
        let (slot, time) = if facts.is_meta {
            // It takes no time, and its users wait for it as long as it would have to wait itself.
            (slot.max(self.slot), time.max(self.time))
        } else {
            let nops = slot.saturating_sub(self.slot);
            self.nops[0] += nops;
            self.slot += nops;
            self.time = time.max(self.time + nops);
            self.slot += facts.slots;
            self.time += facts.slots;
            (self.slot, self.time)
        };
        self.registers.issue(program, instr, &mut self.last_readers);
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
        if let Some(which) = outstanding_index(facts.sync) {
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

/// The index in [`Scheduler::outstanding`].
const fn outstanding_index(sync: Sync) -> Option<usize> {
    match sync {
        Sync::Distance => None,
        Sync::Ss => Some(0),
        Sync::Sy => Some(1),
    }
}

/// The part of a limit that may be used without restriction.
const fn pressure_threshold(limit: u32) -> i32 {
    (limit * PRESSURE_THRESHOLD.0 / PRESSURE_THRESHOLD.1) as i32
}

/// The priority of an instruction, compared field by field in this order.
#[derive(Clone, Copy, Debug, Default)]
struct Key {
    /// Pieces of vectors come first.
    machine: bool,
    /// True if it takes registers that should be left free.
    grows: bool,
    /// If it does and registers are few, the position of the first use of its result in the original order.
    first_use: u32,
    /// True if it needs a predicate register that is not free, or would have too many outstanding results.
    crowded: bool,
    /// False if it reads a varying: the last of these reads releases the memory of all varyings.
    no_varying: bool,
    /// The time that it would wait.
    wait: u32,
    /// The sign of the change in register use.
    effect: i32,
    /// The approximate latency of the instructions that depend on it: the longest first.
    height: u32,
    /// Its position in the region.
    node: u32,
}

impl Key {
    /// The key of which no bit is set.
    const NOTHING: Self = Self {
        machine: false,
        grows: false,
        first_use: 0,
        crowded: false,
        no_varying: false,
        wait: 0,
        effect: -1,
        height: u32::MAX,
        node: 0,
    };

    /// The number of bits of a position, and of a time. No region has so many instructions, nor does one wait so long.
    const POSITION: u32 = 28;
    const TIME: u32 = 30;

    /// The key as one number, whose order is that of the fields. Those that change while an instruction is ready are in
    /// the upper half.
    fn packed(&self) -> u128 {
        let first = u64::from(self.machine) << 61
            | u64::from(self.grows) << 60
            | u64::from(self.first_use.min((1 << Self::POSITION) - 1)) << 32
            | u64::from(self.crowded) << 31
            | u64::from(self.no_varying) << 30
            | u64::from(self.wait.min((1 << Self::TIME) - 1));
        let second = ((self.effect + 1) as u64) << (32 + Self::POSITION)
            | u64::from(!self.height) << Self::POSITION
            | u64::from(self.node & ((1 << Self::POSITION) - 1));
        u128::from(first) << 64 | u128::from(second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packed keys are in the order of the fields, each of which decides over all after it.
    #[test]
    fn packed_keys_are_compared_by_field() {
        let most = Key {
            machine: true,
            grows: true,
            first_use: u32::MAX,
            crowded: true,
            no_varying: true,
            wait: u32::MAX,
            effect: 1,
            height: 0,
            node: 7,
        };
        let least = Key::NOTHING;
        assert_eq!(least.packed(), 0);
        let keys = [
            least,
            Key { node: 7, ..least },
            Key { height: 0, ..least },
            Key { effect: 0, ..least },
            Key { effect: 1, height: 0, ..least },
            Key { wait: 1, ..least },
            Key { wait: u32::MAX, effect: 1, height: 0, ..least },
            Key { no_varying: true, ..least },
            Key { crowded: true, ..least },
            Key { first_use: 1, ..least },
            Key { first_use: u32::MAX, crowded: true, no_varying: true, wait: u32::MAX, effect: 1, height: 0, ..least },
            Key { grows: true, ..least },
            Key { machine: false, ..most },
            Key { machine: true, ..least },
            most,
        ];
        assert!(keys.windows(2).all(|pair| pair[0].packed() < pair[1].packed()));
    }
}
