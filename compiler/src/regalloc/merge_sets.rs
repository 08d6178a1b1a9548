//! Merge sets: values that can be one variable, or pieces of one.
//!
//! Copies that disappear when both ends have the same place relate values: a phi and its sources, a vector and its
//! parts, a copy and its source, a result and the operand that it is tied to. A *merge set* is a set of values with an
//! offset for each, in units, such that
//!
//! > two members whose units overlap and that are live at the same time have equal contents there, and one contains the
//! > other.
//!
//! So the members that are live at a point form a forest: vectors, and in them the pieces that are values of their own.
//! A piece needs no register but the one that it has in the vector. In `vec4 bar = texture(…) + baz` the four parts of
//! the texture's result and the four of bar are one set of four registers: `bar.x` begins where the texture's `x` has
//! ended.
//!
//! Sets start with one value each and are merged greedily (after Boissinot and others, "Revisiting Out-of-SSA
//! Translation for Correctness, Code Quality, and Efficiency"), phis first, then everything in program order. Two sets
//! may merge if their live segments do not interfere: the segments of a set are kept sorted, the smaller set is looked
//! up in the larger one, and its segments are inserted from the back, where most of them belong. If the lookup would
//! take long (hundreds of overlapping segments), the sets are not merged.
//!
//! In the end every set takes a range of one global numbering of units, and each value an interval of it. Then "is a
//! piece of" is containment of intervals.

use super::Coalescing;
use super::liveness::{Liveness, Segment};
use crate::ir3::{Attrs, InstrData, Opcode, OperandFlags, Program, RegFile, RepeatLink, Value};
use crate::maps::map_of;
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

/// Maximum width of a set in units: no vector of the machine is wider, and a wider gap is rarely available.
pub const WIDEST: u16 = 64;

/// Maximum number of steps of a search for overlapping segments.
const PATIENCE: u32 = 400;

/// An interval of the global numbering of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    /// First unit.
    pub start: u32,
    /// The unit after the last.
    pub end: u32,
}

impl Interval {
    /// Returns true if the interval contains `other`.
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Returns true if both have a unit in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Number of units.
    pub const fn units(self) -> u16 {
        (self.end - self.start) as u16
    }
}

/// The location of a value in the global numbering, and its set.
#[derive(Clone, Copy, Default)]
struct Placed {
    interval: Interval,
    set: u32,
    /// True if its set has no other member.
    is_alone: bool,
}

/// The merge sets of a program.
pub struct MergeSets {
    placed: SecondaryMap<Value, Placed>,
    /// The interval of each set.
    sets: Vec<Interval>,
    /// For each value, the start of its components in `origins`.
    components: SecondaryMap<Value, u32>,
    /// The component that each component is a copy of, through copies, splits and collects.
    origins: Vec<u32>,
}

impl MergeSets {
    /// Computes the merge sets of a program in conventional SSA. Each value of `apart` has a set of its own; no other
    /// set is merged to more than `widest` units, and none has values that must not be merged.
    pub fn new(program: &Program, liveness: &Liveness, apart: &[Value], widest: u16, coalescing: Coalescing) -> Self {
        let mut this = Self {
            placed: map_of(program.values.len()),
            sets: Vec::with_capacity(program.values.len()),
            components: map_of(program.values.len()),
            origins: Vec::new(),
        };
        this.find_origins(program, liveness);
        let mut merging = Merging {
            program,
            liveness,
            values: &this,
            coalescing,
            set: vec![NONE; program.values.len()],
            at: vec![0; program.values.len()],
            apart: SecondaryMap::new(),
            widest: i32::from(widest.min(WIDEST)),
            sets: Vec::with_capacity(program.values.len()),
        };
        apart.iter().for_each(|&value| merging.apart[value] = true);
        merging.run();
        let Merging { set, at, sets, .. } = merging;
        this.number(liveness, &set, &at, &sets);
        this
    }

    /// The units of a value in the global numbering.
    pub fn interval(&self, value: Value) -> Interval {
        self.placed[value].interval
    }

    /// The index of the value's set.
    pub fn set_of(&self, value: Value) -> usize {
        self.placed[value].set as usize
    }

    /// Returns true if the set of a value has no other member.
    pub fn is_alone(&self, value: Value) -> bool {
        self.placed[value].is_alone
    }

    /// The interval of a set.
    pub fn set_interval(&self, set: usize) -> Interval {
        self.sets[set]
    }

    /// Number of sets.
    pub fn set_count(&self) -> usize {
        self.sets.len()
    }

    /// Returns true if `piece`, which `whole` contains, is a copy of that part of `whole`.
    pub fn is_copy_of_piece(&self, program: &Program, whole: Value, piece: Value) -> bool {
        let unit = u32::from(program.values[whole].class.component_units());
        let offset = (self.interval(piece).start - self.interval(whole).start) / unit;
        self.is_equal(program, whole, offset, piece)
    }

    /// Returns true if `piece` is a copy of `whole` from component `offset` on.
    fn is_equal(&self, program: &Program, whole: Value, offset: u32, piece: Value) -> bool {
        let n = program.values[piece].components as usize;
        let a = (self.components[whole] + offset) as usize;
        let b = self.components[piece] as usize;
        self.origins[a..a + n] == self.origins[b..b + n]
    }

    /// In numbering order, definitions precede their uses.
    fn find_origins(&mut self, program: &Program, liveness: &Liveness) {
        let mut total = 0u32;
        for (value, data) in program.values.iter() {
            self.components[value] = total;
            total += u32::from(data.components);
        }
        self.origins.extend(0..total);
        let is_same = |a: Value, b: Value| {
            program.values[a].class == program.values[b].class && liveness.units(a) != 0 && liveness.units(b) != 0
        };
        for &block in &liveness.order {
            for &instr in &program.blocks[block].instrs {
                let data = &program.instrs[instr];
                let offset = match (data.opcode, &data.attrs) {
                    (Opcode::Split, Attrs::Split { offset }) => u32::from(*offset),
                    (Opcode::ParallelCopy | Opcode::Collect, _) => 0,
                    _ => continue,
                };
                for (k, src) in data.srcs.iter().enumerate() {
                    let (n, component) = if data.opcode == Opcode::Collect { (0, k as u32) } else { (k, 0) };
                    let (Some(dst), Some(src)) = (data.dsts.get(n).and_then(|dst| dst.value()), src.value()) else {
                        continue;
                    };
                    if !is_same(dst, src) {
                        continue;
                    }
                    let wanted = if data.opcode == Opcode::Collect { 1 } else { program.values[dst].components };
                    let there = u32::from(program.values[src].components).saturating_sub(offset);
                    let room = u32::from(program.values[dst].components).saturating_sub(component);
                    for c in 0..u32::from(wanted).min(there).min(room) {
                        self.origins[(self.components[dst] + component + c) as usize] =
                            self.origins[(self.components[src] + offset + c) as usize];
                    }
                }
            }
        }
    }

    /// Assigns each set its units of the global numbering, in the order of the values.
    fn number(&mut self, liveness: &Liveness, set: &[u32], at: &[i32], sets: &[Set]) {
        let mut number = vec![NONE; sets.len()];
        let mut next = 0u32;
        for (i, (&old, &at)) in set.iter().zip(at).enumerate() {
            let value = Value::new(i);
            let units = u32::from(liveness.units(value));
            if units == 0 {
                continue;
            }
            let low = sets.get(old as usize).map_or(at, |set| set.low);
            let mut is_new = true;
            if let Some(number) = number.get_mut(old as usize) {
                is_new = *number == NONE;
                if is_new {
                    *number = self.sets.len() as u32;
                }
                self.placed[value].set = *number;
            } else {
                self.placed[value].set = self.sets.len() as u32;
            }
            if is_new {
                let len = sets.get(old as usize).map_or(units, |set| (set.high - set.low) as u32);
                self.sets.push(Interval { start: next, end: next + len });
                // Full registers start at even units.
                next += len.next_multiple_of(2);
            }
            let start = self.sets[self.set_of(value)].start + (at - low) as u32;
            self.placed[value].interval = Interval { start, end: start + units };
            self.placed[value].is_alone = sets.get(old as usize).is_none_or(|set| set.is_of(value));
        }
    }
}

const NONE: u32 = u32::MAX;

/// A live segment of a member.
#[derive(Clone, Copy)]
struct Member {
    live: Segment,
    value: Value,
    /// The latest end of this segment and the ones before it.
    reach: u32,
}

/// A set under construction.
struct Set {
    /// Segments of all members, by their starts.
    members: SmallVec<[Member; 4]>,
    /// First unit and the unit after the last, on the scale of the offsets.
    low: i32,
    high: i32,
}

impl Set {
    /// Returns true if a value is the only member.
    fn is_of(&self, value: Value) -> bool {
        self.members.iter().all(|member| member.value == value)
    }

    fn insert(&mut self, live: Segment, value: Value) {
        let later = self.members.iter().rev().take_while(|other| other.live.start > live.start).count();
        let at = self.members.len() - later;
        let before = at.checked_sub(1).map_or(0, |before| self.members[before].reach);
        let reach = live.end.max(before);
        self.members.insert(at, Member { live, value, reach });
        for other in self.members[at + 1..].iter_mut().take_while(|other| other.reach < reach) {
            other.reach = reach;
        }
    }
}

struct Merging<'a> {
    program: &'a Program,
    liveness: &'a Liveness,
    values: &'a MergeSets,
    coalescing: Coalescing,
    set: Vec<u32>,
    /// Offset in the set.
    at: Vec<i32>,
    apart: SecondaryMap<Value, bool>,
    widest: i32,
    sets: Vec<Set>,
}

impl Merging<'_> {
    fn run(&mut self) {
        if self.coalescing == Coalescing::Nothing {
            return;
        }
        let program = self.program;
        for &block in &self.liveness.order {
            for &instr in &program.blocks[block].instrs {
                let data = &program.instrs[instr];
                if data.opcode != Opcode::Phi {
                    break;
                }
                let Some(dst) = data.dsts.first().and_then(|dst| dst.value()) else { continue };
                for src in data.srcs.iter().filter_map(|src| src.value()) {
                    self.merge(dst, src, 0);
                }
            }
        }
        for &block in &self.liveness.order {
            for &instr in &program.blocks[block].instrs {
                self.merge_operands(&program.instrs[instr]);
            }
        }
    }

    fn merge_operands(&mut self, data: &InstrData) {
        let Some(dst) = data.dsts.first() else { return };
        let Some(value) = dst.value().filter(|_| dst.class.file == RegFile::General) else { return };
        let unit = i32::from(dst.class.component_units());
        match (data.opcode, &data.attrs) {
            (Opcode::Split | Opcode::Collect, _) if self.coalescing < Coalescing::Vectors => {}
            (Opcode::Split, Attrs::Split { offset }) => {
                if let Some(vector) = data.srcs.first().and_then(|src| src.value()) {
                    self.merge(vector, value, i32::from(*offset) * unit);
                }
            }
            (Opcode::Collect, _) => {
                for (k, src) in data.srcs.iter().enumerate() {
                    if let Some(src) = src.value() {
                        self.merge(value, src, k as i32 * unit);
                    }
                }
            }
            (Opcode::ParallelCopy, _) => {
                for (dst, src) in data.dsts.iter().zip(&data.srcs) {
                    if let (Some(dst), Some(src), RegFile::General) = (dst.value(), src.value(), dst.class.file) {
                        self.merge(src, dst, 0);
                    }
                }
            }
            _ => {
                if let Some(src) = tied_source(data, 0).and_then(|k| data.srcs[k].value()) {
                    self.merge(src, value, 0);
                }
                if let RepeatLink::After(before) = data.link() {
                    self.merge_repeated(data, &self.program.instrs[before]);
                }
            }
        }
    }

    /// Merges operands of an instruction that may be combined with the previous one.
    fn merge_repeated(&mut self, data: &InstrData, before: &InstrData) {
        let pairs = (data.dsts.iter().zip(&before.dsts).map(|(new, old)| (old.value(), new.value(), new.class)))
            .chain(data.srcs.iter().zip(&before.srcs).map(|(new, old)| (old.value(), new.value(), new.class)));
        for (old, new, class) in pairs {
            if let (Some(old), Some(new), RegFile::General) = (old, new, class.file)
                && old != new
            {
                self.merge(old, new, i32::from(class.component_units()));
            }
        }
    }

    /// Merges the sets of two values so that `b` starts `shift` units after the start of `a`, if they do not interfere.
    fn merge(&mut self, a: Value, b: Value, shift: i32) {
        let is_placed = |value: Value| self.liveness.units(value) != 0;
        if !is_placed(a) || !is_placed(b) || self.program.values[a].class != self.program.values[b].class || a == b {
            return;
        }
        if self.apart[a] || self.apart[b] {
            return;
        }
        let (set_a, set_b) = (self.set_of(a), self.set_of(b));
        if set_a == set_b {
            return;
        }
        let (at_a, at_b) = (self.at[a.index()], self.at[b.index()]);
        // The origin of the other set relative to the larger one.
        let (large, small, shift) = if self.sets[set_a].members.len() >= self.sets[set_b].members.len() {
            (set_a, set_b, at_a + shift - at_b)
        } else {
            (set_b, set_a, at_b - shift - at_a)
        };
        let low = self.sets[large].low.min(self.sets[small].low + shift);
        let high = self.sets[large].high.max(self.sets[small].high + shift);
        if high - low > self.widest || self.interfere(large, small, shift) {
            return;
        }
        let moved = std::mem::take(&mut self.sets[small].members);
        for member in &moved {
            let i = member.value.index();
            if self.set[i] != large as u32 {
                self.set[i] = large as u32;
                self.at[i] += shift;
            }
        }
        let set = &mut self.sets[large];
        set.low = low;
        set.high = high;
        set.members.reserve(moved.len());
        for member in moved {
            set.insert(member.live, member.value);
        }
    }

    /// The set of a value; creates it if needed.
    fn set_of(&mut self, value: Value) -> usize {
        let set = &mut self.set[value.index()];
        if *set == NONE {
            *set = self.sets.len() as u32;
            let mut members = SmallVec::new();
            members.extend(self.liveness.segments(value).iter().map(|&live| Member { live, value, reach: live.end }));
            self.sets.push(Set { members, low: 0, high: i32::from(self.liveness.units(value)) });
        }
        self.set[value.index()] as usize
    }

    /// Returns true if two sets interfere with the origin of `small` at `shift` of `large`.
    fn interfere(&self, large: usize, small: usize, shift: i32) -> bool {
        let mut patience = PATIENCE;
        let set = &self.sets[large];
        for member in &self.sets[small].members {
            let earlier = set.members.partition_point(|other| other.live.start < member.live.end);
            for other in set.members[..earlier].iter().rev() {
                if other.reach <= member.live.start {
                    break;
                }
                patience -= 1;
                if patience == 0 {
                    return true;
                }
                if other.live.end > member.live.start
                    && self.conflict(
                        other.value,
                        self.at[other.value.index()],
                        member.value,
                        self.at[member.value.index()] + shift,
                    )
                {
                    return true;
                }
            }
        }
        false
    }

    /// Returns true if two values that are live at the same time cannot both be at these units.
    fn conflict(&self, a: Value, at_a: i32, b: Value, at_b: i32) -> bool {
        let (len_a, len_b) = (i32::from(self.liveness.units(a)), i32::from(self.liveness.units(b)));
        if at_a + len_a <= at_b || at_b + len_b <= at_a {
            return false;
        }
        let unit = i32::from(self.program.values[a].class.component_units());
        let (whole, piece, offset) = if at_a <= at_b && at_b + len_b <= at_a + len_a {
            (a, b, at_b - at_a)
        } else if at_b <= at_a && at_a + len_a <= at_b + len_b {
            (b, a, at_a - at_b)
        } else {
            return true;
        };
        !self.values.is_equal(self.program, whole, (offset / unit) as u32, piece)
    }
}

/// The source that destination `k` is tied to.
pub fn tied_source(data: &InstrData, k: usize) -> Option<usize> {
    let is_tied = |flags: OperandFlags| flags.contains(OperandFlags::TIED);
    if !is_tied(data.dsts.get(k)?.flags) {
        return None;
    }
    let nth = data.dsts[..k].iter().filter(|dst| is_tied(dst.flags)).count();
    let mut tied = data.srcs.iter().enumerate().filter(|(_, src)| is_tied(src.flags));
    tied.nth(nth).map(|(k, _)| k)
}
