//! Nops: the number required before each instruction by the latency of the ALU.
//!
//! A scoreboard is kept in code order: for every register, the cycle from which the ALU may read it, and the one from
//! which other units may. A cycle is an issue slot; only ALU instructions and control flow take one ([`issue_slots`]).
//! The rules:
//! - the ALU can read its results after [`DelaySlots::near`] slots; other units, reads in the other width, and reads of
//!   predicates and addresses need [`DelaySlots::far`];
//! - an element of a repetition is written and read in its own slot, and so are the two moves of a swap; for a relative
//!   access the element is unknown, so all are written last and read first;
//! - the third source of a multiply-add is read [`DelaySlots::third_source`] slots late;
//! - shared registers, and results of other units, are waited for by other means and are ignored here.
//!
//! Half registers are the halves of full ones, so a write changes the times of both. Mesa does so for GPUs with
//! separate files too, and there is no evidence that less is enough there.
//!
//! At the start of a block a register's time is the latest over all logical predecessors: a
//! [dataflow analysis](crate::ir3::dataflow), in which times at a start never decrease, so it terminates. In an early
//! preamble users of addresses wait with `(ss)`. After `prede`, and after the second of `predt` and `predf`, some GPUs
//! need extra nops.

use super::latency::issue_slots;
use crate::ir3::dataflow::{Analysis, Direction, Edge, solve};
use crate::ir3::dominance::{Cfg, EdgeKind};
use crate::ir3::{
    ArrayAccess, Block, Category, Instr, InstrData, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, RegFile,
    SrcOperand, WriteMask, register_set,
};
use crate::maps::map_of;
use crate::target::{DelaySlots, Generation, Target};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;
use std::ops::Range;

/// The nops that a program with registers needs.
#[derive(Clone, Debug)]
pub struct Delays {
    before: SecondaryMap<Instr, u8>,
    after: SecondaryMap<Instr, u8>,
}

impl Delays {
    /// Computes the nops of a program with registers. Existing nops count for the time they take.
    #[must_use]
    pub fn of(program: &Program, target: &Target) -> Self {
        let after = after(program, target);
        let before = map_of(program.instrs.len());
        let mut times = Times {
            program,
            delays: Self { before, after },
            board: Scoreboard::new(program, target),
            merged: Vec::new(),
        };
        solve(&Cfg::new(program, EdgeKind::Logical), &program.layout, &mut times);
        times.delays
    }

    /// The number of nops before an instruction.
    #[must_use]
    pub fn before(&self, instr: Instr) -> u32 {
        u32::from(self.before[instr])
    }

    /// The number of nops after it, as a separate instruction: some GPUs need them where lanes are reactivated.
    #[must_use]
    pub fn after(&self, instr: Instr) -> u32 {
        u32::from(self.after[instr])
    }
}

/// The pending times at the starts and ends of blocks, by register; the join takes the later time of each.
struct Times<'a> {
    program: &'a Program,
    /// The delays of the last visit of each block.
    delays: Delays,
    board: Scoreboard<'a>,
    /// Scratch list for joins.
    merged: Vec<Pending>,
}

impl Analysis<Block> for Times<'_> {
    /// The times in the order of registers.
    type Fact = Vec<Pending>;

    const DIRECTION: Direction = Direction::Forward;

    fn join(&mut self, entry: &mut Vec<Pending>, exit: &Vec<Pending>, _: Edge<Block>) {
        let mut old = entry.iter().copied().peekable();
        self.merged.clear();
        for &Pending { slot, ready } in exit {
            while let Some(before) = old.next_if(|before| before.slot < slot) {
                self.merged.push(before);
            }
            let same = old.next_if(|same| same.slot == slot);
            self.merged.push(Pending { slot, ready: same.map_or(ready, |same| same.ready.max(ready)) });
        }
        self.merged.extend(old);
        entry.clone_from(&self.merged);
    }

    fn transfer(&mut self, block: Block, entry: &Vec<Pending>) -> Vec<Pending> {
        self.board.begin(entry);
        for &instr in &self.program.blocks[block].instrs {
            self.delays.before[instr] = self.board.issue(&self.program.instrs[instr]) as u8;
            self.board.cycle += u32::from(self.delays.after[instr]);
        }
        self.board.pending()
    }
}

/// The nops after the second of a pair of `predt` and `predf`.
const AFTER_PREDTF: u8 = 5;
const AFTER_PREDE: u8 = 7;

fn after(program: &Program, target: &Target) -> SecondaryMap<Instr, u8> {
    let mut after = SecondaryMap::new();
    let mut open = false;
    for (_, instr) in program.iter_instrs() {
        match program.instrs[instr].opcode {
            Opcode::Predt | Opcode::Predf => {
                if open && target.quirks.predtf_nop {
                    after[instr] = AFTER_PREDTF;
                }
                open = true;
            }
            Opcode::Prede => {
                if target.quirks.prede_nop {
                    after[instr] = AFTER_PREDE;
                }
                open = false;
            }
            _ => {}
        }
    }
    after
}

/// The maximum number of nops in `(nopN)`.
const MOST_CARRIED: u32 = 3;
/// The maximum number of repetitions of a nop.
const MOST_REPEATED: u32 = 5;

/// Inserts the nops: from a6xx on as `(nopN)` of the instruction before, if that is a cat2 or cat3 without repetition;
/// else as repetitions of an existing nop; else as a new one.
pub fn insert(program: &mut Program, target: &Target) {
    let delays = Delays::of(program, target);
    program.rewrite_lists(|program, instr, out| {
        let mut delay = delays.before(instr);
        // Meta instructions are skipped.
        let last = || out.iter().rev().copied().find(|&last| !program.instrs[last].opcode.is_meta());
        if delay > 0
            && let Some(last) = last()
        {
            let scalar = super::latency::is_scalar_alu(&program.instrs[instr], target);
            let data = &mut program.instrs[last];
            let carries = matches!(data.opcode.category(), Category::Alu2 | Category::Alu3) && data.repeat == 0;
            if target.generation >= Generation::A6xx && carries && !scalar {
                let more = delay.min(MOST_CARRIED.saturating_sub(u32::from(data.nop)));
                data.nop += more as u8;
                delay -= more;
            } else if data.opcode == Opcode::Nop {
                let more = delay.min(MOST_REPEATED.saturating_sub(u32::from(data.repeat)));
                data.repeat += more as u8;
                delay -= more;
            }
        }
        let mut nop = |count: u32| {
            let nop = InstrData { repeat: count as u8 - 1, ..InstrData::new(Opcode::Nop) };
            program.instrs.push(nop)
        };
        if delay > 0 {
            out.push(nop(delay));
        }
        out.push(instr);
        if delays.after(instr) > 0 {
            out.push(nop(delays.after(instr)));
        }
    });
}

/// The times from which a register may be read: absolute cycles on the scoreboard, relative to the block's end in
/// between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ready {
    alu: u32,
    others: u32,
}

impl Ready {
    /// The later of both times.
    fn max(self, other: Self) -> Self {
        Self { alu: self.alu.max(other.alu), others: self.others.max(other.others) }
    }
}

/// A register, by its index on the scoreboard, with pending times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pending {
    slot: u16,
    ready: Ready,
}

/// The registers on the scoreboard that an instruction reads.
#[derive(Clone, Debug)]
pub struct Reads {
    /// True if the ALU reads them.
    alu: bool,
    sources: SmallVec<[Read; 3]>,
}

/// The registers on the scoreboard that an instruction writes, and the cycles that it takes.
#[derive(Clone, Debug)]
pub struct Writes {
    /// True if it is of the ALU.
    alu: bool,
    /// Issue slots, and nops after them.
    slots: u32,
    nops: u32,
    results: SmallVec<[Written; 1]>,
}

/// A result of an instruction.
#[derive(Clone, Debug)]
struct Written {
    slots: Range<u16>,
    /// The components that are written.
    mask: WriteMask,
    /// The slots after the issue of the instruction in which it is written.
    late: u32,
    /// True if each register is written a slot after the one before it.
    advances: bool,
}

/// A source of an instruction.
#[derive(Clone, Debug)]
struct Read {
    slots: Range<u16>,
    /// The slots after the issue of the instruction in which it is read.
    late: u8,
    /// True if each register is read a slot after the one before it.
    advances: bool,
}

const FULL: Range<u16> = 0..192;
/// The half registers: with a merged file there are twice as many as full ones, though no instruction reaches the
/// second half.
const HALF: Range<u16> = FULL.end..FULL.end + 384;
const PREDICATES: Range<u16> = HALF.end..HALF.end + 4;
const ADDRESSES: Range<u16> = PREDICATES.end..PREDICATES.end + 2;

/// The times from which registers may be read, in the block that is issued.
pub struct Scoreboard<'a> {
    program: &'a Program,
    target: &'a Target,
    /// The times by register. Times that are not greater than `cycle` are equivalent to 0.
    ready: Vec<Ready>,
    /// Registers that were written in this block, with duplicates.
    touched: Vec<u16>,
    cycle: u32,
}

impl<'a> Scoreboard<'a> {
    /// Creates a scoreboard on which all registers are ready.
    #[must_use]
    pub fn new(program: &'a Program, target: &'a Target) -> Self {
        Self {
            program,
            target,
            ready: vec![Ready::default(); usize::from(ADDRESSES.end)],
            touched: Vec::with_capacity(usize::from(ADDRESSES.end)),
            cycle: 0,
        }
    }

    /// The number of slots that have been issued.
    #[must_use]
    pub const fn cycle(&self) -> u32 {
        self.cycle
    }

    /// Lets all registers be ready, for another block.
    pub fn restart(&mut self) {
        self.begin(&[]);
    }

    /// Starts a new block.
    fn begin(&mut self, entry: &[Pending]) {
        for slot in self.touched.drain(..) {
            self.ready[usize::from(slot)] = Ready::default();
        }
        self.cycle = 0;
        for &Pending { slot, ready } in entry {
            self.raise(slot, ready);
        }
    }

    fn raise(&mut self, slot: u16, ready: Ready) {
        let now = &mut self.ready[usize::from(slot)];
        if *now == Ready::default() {
            self.touched.push(slot);
        }
        *now = now.max(ready);
    }

    /// The pending times for the next block, relative to the current cycle.
    fn pending(&mut self) -> Vec<Pending> {
        self.touched.sort_unstable();
        self.touched.dedup();
        let left = |&slot: &u16| {
            let Ready { alu, others } = self.ready[usize::from(slot)];
            let ready = Ready { alu: alu.saturating_sub(self.cycle), others: others.saturating_sub(self.cycle) };
            (ready != Ready::default()).then_some(Pending { slot, ready })
        };
        self.touched.iter().filter_map(left).collect()
    }

    /// Issues an instruction; returns the number of nops it needs before it.
    pub fn issue(&mut self, data: &InstrData) -> u32 {
        let alu = data.opcode.is_alu();
        let ready = self.ready_of(alu, sources(self.program, self.target, data));
        let delay = ready.saturating_sub(self.cycle);
        let slots = issue_slots(data, self.target);
        self.cycle += delay + slots.min(1);
        self.write(alu, results(self.program, data));
        self.cycle += slots.saturating_sub(1) + u32::from(data.nop);
        delay
    }

    /// Issues an instruction of these writes after `delay` nops.
    pub fn issue_after(&mut self, writes: &Writes, delay: u32) {
        self.cycle += delay + writes.slots.min(1);
        self.write(writes.alu, writes.results.iter().cloned());
        self.cycle += writes.slots.saturating_sub(1) + writes.nops;
    }

    /// The registers that an instruction reads, for [`Scoreboard::delay`].
    #[must_use]
    pub fn reads(&self, data: &InstrData) -> Reads {
        Reads { alu: data.opcode.is_alu(), sources: sources(self.program, self.target, data).collect() }
    }

    /// The registers that an instruction writes, and the cycles that it takes, with its issue slots.
    #[must_use]
    pub fn writes(&self, data: &InstrData, slots: u32) -> Writes {
        let results = results(self.program, data).collect();
        Writes { alu: data.opcode.is_alu(), slots, nops: u32::from(data.nop), results }
    }

    /// The cycle from which an instruction of these reads needs no nops before it.
    #[must_use]
    pub fn ready_at(&self, reads: &Reads) -> u32 {
        self.ready_of(reads.alu, reads.sources.iter().cloned())
    }

    fn ready_of(&self, alu: bool, sources: impl Iterator<Item = Read>) -> u32 {
        let mut cycle = 0;
        for Read { slots, late, advances } in sources {
            let mut late = u32::from(late);
            for ready in &self.ready[usize::from(slots.start)..usize::from(slots.end)] {
                let ready = if alu { ready.alu } else { ready.others };
                cycle = cycle.max(ready.saturating_sub(late));
                late += u32::from(advances);
            }
        }
        cycle
    }

    /// The number of nops that an instruction of these reads needs before it, if it is next.
    #[must_use]
    pub fn delay(&self, reads: &Reads) -> u32 {
        self.ready_at(reads).saturating_sub(self.cycle)
    }

    /// Sets the times of the results of an instruction, one cycle after it was issued.
    fn write(&mut self, alu: bool, results: impl Iterator<Item = Written>) {
        for Written { slots, mask, late, advances } in results {
            let mut written = self.cycle + late;
            for (component, slot) in (0..).zip(slots) {
                // An array may have more registers than a mask has bits: all of it is written.
                if component >= 32 || mask.contains(component) {
                    self.write_slot(slot, alu, written);
                }
                written += u32::from(advances);
            }
        }
    }

    fn write_slot(&mut self, slot: u16, alu: bool, written: u32) {
        let DelaySlots { near, far, .. } = self.target.delay_slots;
        let (near, far) =
            (Ready { alu: written + near, others: written + far }, Ready { alu: written + far, others: written + far });
        if slot >= PREDICATES.start {
            self.raise(slot, far);
            return;
        }
        let aliases = aliases(slot);
        if !alu {
            self.ready[usize::from(slot)] = Ready::default();
            // The other half of a register that is written in part may still be on its way. Where the files are split,
            // halves are other registers, whose times are tracked separately from this only when an instruction waits
            // for them.
            if self.target.merged_regs && FULL.contains(&slot) {
                aliases.for_each(|alias| self.ready[usize::from(alias)] = Ready::default());
            }
            return;
        }
        self.raise(slot, near);
        aliases.for_each(|alias| self.raise(alias, far));
    }
}

/// The registers on the scoreboard that an instruction reads.
fn sources<'p>(program: &'p Program, target: &'p Target, data: &'p InstrData) -> impl Iterator<Item = Read> + 'p {
    let reads_none = data.opcode.is_output() || data.opcode.is_meta() || is_dummy(data);
    let srcs = if reads_none { &[] } else { &data.srcs[..] };
    srcs.iter().enumerate().filter_map(move |(index, src)| {
        let SrcOperand::Place(place) = &src.operand else { return None };
        let slots = Slots::of(program, src.class, place, src.mask.span())?;
        let mut late = 0;
        if matches!(data.opcode, Opcode::Gat | Opcode::Swz) {
            late += index as u8;
        }
        if index == 2 && data.opcode.reads_third_late() {
            late += target.delay_slots.third_source as u8;
        }
        let advances = data.repeat > 0 && !slots.relative;
        Some(Read { slots: slots.range, late, advances })
    })
}

/// The registers on the scoreboard that an instruction writes.
fn results<'p>(program: &'p Program, data: &'p InstrData) -> impl Iterator<Item = Written> + 'p {
    let writes_none = data.opcode.is_meta() || is_early_address(data);
    let dsts = if writes_none { &[] } else { &data.dsts[..] };
    (0..dsts.len()).filter_map(|index| result(program, data, index))
}

/// The registers of one result; `None` if they are not on the scoreboard.
fn result(program: &Program, data: &InstrData, index: usize) -> Option<Written> {
    let dst = &data.dsts[index];
    let slots = Slots::of(program, dst.class, &dst.place, dst.mask.span())?;
    let mut late = 0;
    if matches!(data.opcode, Opcode::Sct | Opcode::Swz) {
        late += index as u32;
    }
    if slots.relative {
        late += u32::from(data.repeat);
    }
    let advances = data.repeat > 0 && !slots.relative;
    // Textures may leave components out.
    let has_holes = data.repeat == 0 && !slots.relative;
    let mask = if has_holes { dst.mask } else { WriteMask(u32::MAX) };
    Some(Written { slots: slots.range, mask, late, advances })
}

/// Returns true for a `bary.f` whose result is discarded: it only releases the memory of the varyings.
fn is_dummy(data: &InstrData) -> bool {
    let is_nowhere = data.dsts.first().is_some_and(|dst| dst.place.reg() == Some(PhysReg::INVALID));
    data.opcode == Opcode::BaryF && is_nowhere
}

/// Returns true for a move to `a1.x` in an early preamble, whose users wait with `(ss)`. It is marked by `(r)` without
/// a repetition.
fn is_early_address(data: &InstrData) -> bool {
    let is_a1 = data.dsts.first().is_some_and(|dst| dst.place.reg() == Some(PhysReg::A1_X));
    is_a1 && data.repeat == 0 && data.srcs.first().is_some_and(|src| src.flags.contains(OperandFlags::R))
}

/// The registers of the other width that share storage with a register.
fn aliases(slot: u16) -> Range<u16> {
    if slot < FULL.end {
        let first = HALF.start + 2 * slot;
        first..first + 2
    } else {
        let full = (slot - HALF.start) / 2;
        full..full + 1
    }
}

/// The registers of an operand on the scoreboard.
struct Slots {
    range: Range<u16>,
    /// True if the accessed element is unknown.
    relative: bool,
}

impl Slots {
    fn of(program: &Program, class: RegClass, place: &Place, span: u32) -> Option<Self> {
        let (first, count, relative) = match *place {
            Place::Relative { offset, size } => {
                let (first, count) = register_set::around(offset, size);
                (first, count, true)
            }
            Place::Array(ArrayAccess { base, array, relative: true, .. }) => {
                (i32::from(base.expand()?.0), u32::from(program.arrays[array].length), true)
            }
            Place::Array(ArrayAccess { base, offset, .. }) => {
                (i32::from(base.expand()?.0) + i32::from(offset), span, false)
            }
            _ => (i32::from(place.reg()?.0), span, false),
        };
        let (file, origin) = match class.file {
            RegFile::General => (if class.half { HALF } else { FULL }, 0),
            RegFile::Predicate => (PREDICATES, PhysReg::P0_X.0),
            RegFile::Address => (ADDRESSES, PhysReg::A0_X.0),
            RegFile::Shared => return None,
        };
        // `r63.x` is no register.
        let first =
            u16::try_from(first.max(0) - i32::from(origin)).ok().filter(|&first| first < file.end - file.start)?;
        let start = file.start + first;
        let end = (u32::from(start) + count).min(u32::from(file.end)) as u16;
        Some(Self { range: start..end, relative })
    }
}
