//! Register assignment for general and shared values: one pass over the blocks.
//!
//! Blocks are visited so that each one comes after its dominator and after one of its predecessors; it starts with the
//! registers at the end of that predecessor. Each live root has a range of units, which contains its pieces. A result
//! takes, in this order (`choose`): its place in its merge set; a gap for the whole set; the place of a source that
//! dies; a gap. If none of these exists, a few live values are moved (`evict`), or all are compacted (`compact`), by a
//! parallel copy before the instruction. Copies are parallel copies themselves and include such moves (`copies`). If a
//! value has different places at the ends of an edge, it is moved at the end of the predecessor (`edges`).
//!
//! # Why it never fails
//!
//! Assume that the units that [`pressure`](super::pressure) counts at each point fit. *Before* an instruction all
//! roots, early results included, can be packed without gaps, and after it the values that stay live and the results;
//! `compact` gives one order that is both. At a copy, and at the start of a block, the places before and after need not
//! even agree, as the moves between them are one parallel copy.

use super::Error;
use super::file::UnitSet;
use super::forest::{self, FULL, Forest, HALF, ValueList};
use super::parallel_copy::reg_of;
use super::pressure::{Analysis, Pressure};
use super::step::{Manner, Step};
use crate::arms::{Arm, Counter};
use crate::ir3::{
    Array, ArrayAccess, Block, Dst, Instr, InstrData, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, Src,
    SrcOperand, Value, WriteMask,
};
use crate::maps::map_of;
use crate::target::{RegisterFiles, Target};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

mod arrays;
mod choose;
mod compact;
mod copies;
mod edges;
mod evict;
mod fixed;
mod pending;

pub use fixed::{FixedPlaces, run_fixed};
use pending::Pending;

/// Units of the largest file.
const UNITS: usize = super::file::UNITS as usize;

/// Units beyond the need of the program that are taken before registers are reused, as far as that costs no waves: the
/// scheduler after allocation cannot move an instruction over another one that uses the register of its result.
pub const REUSED_LATE: u32 = 3 * 8;

/// No place yet.
const UNASSIGNED: u16 = u16::MAX;

/// One of the moves of a parallel copy.
#[derive(Clone, Copy, Debug)]
struct PendingMove {
    /// The moved value; all moves of a vector have the vector. None if the destination is given.
    value: PackedOption<Value>,
    class: RegClass,
    components: u16,
    src: SrcOperand,
    /// Class of the source: a copy may come from the other file.
    from: RegClass,
    /// First unit of the destination.
    to: u16,
}

/// A value at the end of a block.
#[derive(Clone, Copy)]
struct ExitValue {
    value: Value,
    at: u16,
    /// The root that contains it, and the offset in it.
    root: Value,
    offset: u16,
}

/// A value at the start of a block with several predecessors; for a phi, the phi too.
#[derive(Clone, Copy)]
struct EntryValue {
    value: Value,
    at: u16,
    phi: PackedOption<Instr>,
}

/// The state of the pass.
pub struct Assigner<'a> {
    program: &'a mut Program,
    analysis: &'a Analysis,
    target: &'a Target,
    counter: &'a Counter,
    merged: bool,
    /// The number of units that each kind of register can address, by [`forest::kind`].
    class_limit: [u16; 4],
    /// The end of live arrays of halves, and the start of live arrays of full registers, by file.
    bounds: [(u16, u16); 3],
    /// The target size in units, by file: whole vec4. A place above it, up to the class limit, saves a move but costs
    /// a register.
    preferred_limit: [u16; 3],
    /// Full registers start here while enough are free: the units below are for halves.
    floor: u16,
    array_base: SecondaryMap<Array, u16>,
    /// Units of the arrays that are live here.
    reserved: [UnitSet; 3],
    forest: Forest,
    /// Contents of the files: the taken units, and the root in each unit.
    taken: [UnitSet; 3],
    owner: Box<[[PackedOption<Value>; UNITS]; 3]>,
    place: SecondaryMap<Value, u16>,
    /// The preferred start of each set, by the place of its first placed member.
    preferred: Vec<i32>,
    /// The start of the search for a gap, by file: after the last placed root, so that registers are reused late.
    cursor: [u16; 3],
    /// Units of roots that die at this instruction, and of its results, by file.
    dying: [UnitSet; 3],
    results: [UnitSet; 3],
    /// Results that have not come.
    pending: Pending,
    /// Values moved for this instruction, with their previous place.
    moved: Vec<(Value, u16)>,
    /// Moves of the current copy.
    moves: Vec<PendingMove>,
    visited: SecondaryMap<Block, bool>,
    /// The last visited block.
    last_block: Option<Block>,
    exits: Vec<ExitValue>,
    exit_of: SecondaryMap<Block, (u32, u32)>,
    starts: Vec<EntryValue>,
    start_of: SecondaryMap<Block, (u32, u32)>,
    /// The phi that reads a copy, and the place of a phi at the start of its block.
    phi_of: SecondaryMap<Value, PackedOption<Value>>,
    phi_place: SecondaryMap<Value, u16>,
    /// The parallel copy at the end of each block.
    last: SecondaryMap<Block, Vec<PendingMove>>,
    /// Scratch of `edges`: the index of a value in a list of moves, and in the exits of the last queried block.
    index: SecondaryMap<Value, (u32, u32)>,
    indexed: Option<Block>,
    out: Vec<Instr>,
    /// Live values may be moved to free registers.
    splitting: bool,
    /// The places of all values, if they are chosen before the pass. Then no value is ever moved.
    fixed: Option<&'a SecondaryMap<Value, u16>>,
}

/// The registers that a program may use, and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The size of the files.
    pub files: RegisterFiles,
    /// The units of the full file that are taken before registers are reused; a few more than the program needs unless
    /// given.
    pub preferred: Option<u32>,
    /// Live values may be moved to free registers.
    pub splitting: bool,
}

/// Chooses the registers of a program that needs no more than the files have.
///
/// # Errors
/// If the program needs more registers, or if values must not be moved and no gap fits one.
pub fn run(
    program: &mut Program,
    analysis: &Analysis,
    target: &Target,
    settings: Settings,
    pressure: &Pressure,
    counter: &Counter,
) -> Result<(), Error> {
    let mut step = Step::new(program);
    let mut assigner = Assigner::new(program, analysis, target, settings, pressure, None, counter)?;
    for &block in &analysis.liveness.order {
        assigner.run_block(block, &mut step)?;
    }
    assigner.emit_last_copies();
    Ok(())
}

impl<'a> Assigner<'a> {
    fn new(
        program: &'a mut Program,
        analysis: &'a Analysis,
        target: &'a Target,
        settings: Settings,
        pressure: &Pressure,
        fixed: Option<&'a FixedPlaces>,
        counter: &'a Counter,
    ) -> Result<Self, Error> {
        let Settings { files: limits, preferred, splitting } = settings;
        let merged = target.merged_regs;
        let full = limits.full & !1;
        let half = if merged { limits.half.min(full) } else { limits.half };
        let reused_late = || REUSED_LATE + pending::unread_results(program, analysis, target);
        let size = preferred.unwrap_or_else(|| pressure.full.next_multiple_of(8) + reused_late()).min(full);
        let preferred_limit = [size, pressure.half.next_multiple_of(4).min(half), limits.shared];
        let preferred_limit = if fixed.is_some() { [full, half, limits.shared] } else { preferred_limit };
        let preferred_limit = preferred_limit.map(|units| units.min(UNITS as u32) as u16);
        let values = program.values.len();
        let map = |fill: u16| {
            let mut map = SecondaryMap::with_default(fill);
            map.resize(values);
            map
        };
        let mut this = Self {
            target,
            counter,
            merged,
            class_limit: [full, half, limits.shared, limits.shared_half].map(|units| units.min(UNITS as u32) as u16),
            bounds: preferred_limit.map(|units| (0, units)),
            preferred_limit,
            floor: 0,
            array_base: SecondaryMap::new(),
            reserved: [UnitSet::default(); 3],
            forest: Forest::new(program, &analysis.sets),
            taken: [UnitSet::default(); 3],
            owner: Box::new([[None.into(); UNITS]; 3]),
            place: map(UNASSIGNED),
            preferred: vec![i32::MIN; analysis.sets.set_count()],
            cursor: [0; 3],
            dying: [UnitSet::default(); 3],
            results: [UnitSet::default(); 3],
            pending: Pending::default(),
            moved: Vec::new(),
            moves: Vec::new(),
            visited: map_of(program.blocks.len()),
            last_block: None,
            exits: Vec::with_capacity(values),
            exit_of: map_of(program.blocks.len()),
            starts: Vec::with_capacity(values),
            start_of: map_of(program.blocks.len()),
            phi_of: map_of(values),
            phi_place: map(UNASSIGNED),
            last: map_of(program.blocks.len()),
            index: map_of(values),
            indexed: None,
            out: Vec::with_capacity(program.instrs.len()),
            splitting,
            fixed: fixed.map(|fixed| &fixed.places),
            program,
            analysis,
        };
        this.place_arrays()?;
        this.prefer_outputs();
        if this.merged && full > half {
            this.floor = pressure.half.next_multiple_of(2).min(u32::from(this.class_limit[HALF])) as u16;
        }
        Ok(this)
    }

    /// Prefers the given register for the source of an output copy.
    fn prefer_outputs(&mut self) {
        let analysis = self.analysis;
        for &(value, at) in analysis.outputs.iter().flat_map(|outputs| &outputs.places) {
            let data = &self.program.values[value];
            let src = self.program.instrs[data.instr].srcs.get(usize::from(data.dst)).and_then(Src::value);
            if let Some(src) = src.filter(|&src| self.units(src) != 0) {
                self.prefer(src, at);
            }
        }
    }

    /// The index of a class's file: 0 full or merged, 1 half, 2 shared.
    fn file(&self, class: RegClass) -> usize {
        match forest::kind(class) {
            HALF if !self.merged => 1,
            FULL | HALF => 0,
            _ => 2,
        }
    }

    fn class(&self, value: Value) -> RegClass {
        self.program.values[value].class
    }

    fn units(&self, value: Value) -> u16 {
        self.analysis.liveness.units(value)
    }

    /// Marks the units of a root as taken.
    fn occupy(&mut self, root: Value) {
        let (file, at, len) = (self.file(self.class(root)), self.place[root], self.units(root));
        self.taken[file].insert(at, len);
        self.owner[file][usize::from(at)..usize::from(at + len)].fill(root.into());
    }

    /// Marks them as free.
    fn vacate(&mut self, root: Value) {
        let (file, at, len) = (self.file(self.class(root)), self.place[root], self.units(root));
        self.taken[file].remove(at, len);
        self.owner[file][usize::from(at)..usize::from(at + len)].fill(None.into());
    }

    /// Sets the place of a root, and of all its pieces.
    fn set_place(&mut self, root: Value, at: u16) {
        self.place[root] = at;
        let sets = &self.analysis.sets;
        let start = sets.interval(root).start;
        for piece in self.forest.within(sets, root) {
            self.place[piece] = at + (sets.interval(piece).start - start) as u16;
        }
    }

    /// Adds a value that is a piece of a live one.
    fn insert_piece(&mut self, value: Value) {
        self.place_piece(value);
        let (program, analysis) = (&*self.program, self.analysis);
        self.forest.insert(program, &analysis.liveness, &analysis.sets, value, &mut ValueList::new());
    }

    /// Sets the place of a value by that of the live value that contains it.
    fn place_piece(&mut self, value: Value) {
        let sets = &self.analysis.sets;
        if let Some(whole) = self.forest.container(sets, value) {
            self.place[value] = self.place[whole] + (sets.interval(value).start - sets.interval(whole).start) as u16;
        }
    }

    /// Adds a root that has no place yet; absorbed roots lose theirs.
    fn insert_root(&mut self, value: Value) {
        let (program, analysis) = (&*self.program, self.analysis);
        let mut absorbed = ValueList::new();
        self.forest.insert(program, &analysis.liveness, &analysis.sets, value, &mut absorbed);
        for &root in &absorbed {
            self.vacate(root);
        }
    }

    /// Places a root.
    fn put(&mut self, root: Value, at: u16) {
        self.set_place(root, at);
        self.occupy(root);
        self.prefer(root, at);
    }

    /// Removes values after their last use.
    fn remove_killed(&mut self, killed: &[Value]) {
        let analysis = self.analysis;
        let mut exposed = ValueList::new();
        for &value in killed {
            if self.forest.remove(&analysis.sets, value, &mut exposed) {
                self.vacate(value);
                for &root in &exposed {
                    self.occupy(root);
                }
            }
        }
    }

    /// Sets the preferred start of the set of `value`, unless it has one.
    fn prefer(&mut self, value: Value, at: u16) {
        let sets = &self.analysis.sets;
        let set = sets.set_of(value);
        let interval = sets.set_interval(set);
        if self.preferred[set] == i32::MIN && interval.units() > 0 {
            let start = i32::from(at) - (sets.interval(value).start - interval.start) as i32;
            let class_limit = self.class_limit[forest::kind(self.class(value))];
            if start >= 0 && start + i32::from(interval.units()) <= i32::from(class_limit) {
                self.preferred[set] = start;
            }
        }
    }

    /// Moves a root; records its place before this instruction, unless the instruction defines it.
    fn relocate(&mut self, root: Value, to: u16, is_new: bool) {
        let from = self.place[root];
        if from == to {
            return;
        }
        if !is_new && !self.moved.iter().any(|&(value, _)| value == root) {
            self.moved.push((root, from));
        }
        self.set_place(root, to);
    }

    fn run_block(&mut self, block: Block, step: &mut Step) -> Result<(), Error> {
        let list = std::mem::take(&mut self.program.blocks[block].instrs);
        self.pending = Pending::default();
        let rest = &list[self.program.start_len(&list)..];
        self.start_block(block, &list[..self.program.ready_len(&list)], step)?;
        let end = self.program.body_len(rest);
        for (i, &instr) in rest.iter().enumerate() {
            let analysis = self.analysis;
            step.read(self.program, &analysis.liveness, &analysis.sets, &self.forest, instr);
            self.moved.clear();
            let crowded = self.reserve_arrays(2 * analysis.indices.instr[instr], false, step);
            if !step.is_copy {
                self.compute(instr, step, crowded)?;
                continue;
            }
            let is_last = i + 1 == end && self.program.instrs[instr].opcode == Opcode::ParallelCopy;
            self.copy(instr, step, block, is_last)?;
        }
        let mut list = list;
        list.clear();
        list.extend_from_slice(&self.out);
        self.program.blocks[block].instrs = list;
        self.end_block(block)
    }

    /// Handles an instruction that computes. `crowded` are the files in which an array needs the registers of values
    /// that find no others.
    fn compute(&mut self, instr: Instr, step: &Step, crowded: [bool; 3]) -> Result<(), Error> {
        if step.results.is_empty() {
            for file in (0..3).filter(|&file| crowded[file]) {
                self.compact(file, step)?;
            }
            if !self.moved.is_empty() {
                self.emit_moves(step);
            }
            self.rewrite_sources(instr, step)?;
            self.remove_killed(&step.killed);
            self.unmark_kills(instr, step);
            self.rewrite_destinations(instr)?;
            self.emit(instr);
            return Ok(());
        }
        self.results = [UnitSet::default(); 3];
        self.dying = [UnitSet::default(); 3];
        for &root in &step.dying {
            let (file, at, len) = (self.file(self.class(root)), self.place[root], self.units(root));
            self.dying[file].insert(at, len);
        }
        self.wait_for_sources(instr);
        let mut failed = crowded;
        // Early results first: they have fewer choices.
        for early in [true, false] {
            for result in &step.results {
                let value = result.value;
                if early != (result.manner != Manner::Late) || matches!(result.manner, Manner::InPlace(_)) {
                    continue;
                }
                let file = self.file(self.class(value));
                let found = self.choose(value, early, instr, step).or_else(|| self.evict(value, early, step));
                match found {
                    Some(at) => {
                        self.place[value] = at;
                        self.results[file].insert(at, self.units(value));
                    }
                    None => failed[file] = true,
                }
            }
        }
        for file in (0..3).filter(|&file| failed[file]) {
            self.counter.count(Arm::AssignCompact);
            self.compact(file, step)?;
        }
        for result in &step.results {
            if let Manner::InPlace(root) = result.manner {
                self.place[result.value] = self.place[root];
            }
        }
        self.emit_moves(step);
        self.rewrite_sources(instr, step)?;
        self.remove_killed(&step.killed);
        self.unmark_kills(instr, step);
        for result in &step.results {
            let at = self.place[result.value];
            if self.analysis.liveness.is_used(result.value) {
                self.insert_root(result.value);
                self.put(result.value, at);
            }
        }
        self.rewrite_destinations(instr)?;
        self.emit(instr);
        Ok(())
    }

    /// Emits the moves that free registers for an instruction, and the copies of overwritten sources.
    fn emit_moves(&mut self, step: &Step) {
        let mut moves = std::mem::take(&mut self.moves);
        moves.clear();
        for &(root, from) in &self.moved {
            if self.place[root] != from {
                moves.push(self.move_of(root, from, self.place[root]));
            }
        }
        for result in &step.results {
            if let Manner::Copied(src) = result.manner {
                let from = self.place_before(src);
                if from != self.place[result.value] {
                    moves.push(PendingMove {
                        value: result.value.into(),
                        ..self.move_of(src, from, self.place[result.value])
                    });
                }
            }
        }
        if let Some(copy) = self.parallel_copy(&moves) {
            self.emit(copy);
        }
        self.moves = moves;
    }

    /// The place of a value before the moves for this instruction.
    fn place_before(&self, value: Value) -> u16 {
        let sets = &self.analysis.sets;
        let root = self.forest.root_of(sets, value);
        match self.moved.iter().find(|&&(moved, _)| moved == root) {
            Some(&(_, from)) => from + (sets.interval(value).start - sets.interval(root).start) as u16,
            None => self.place[value],
        }
    }

    /// The move of a whole value from one place to another.
    fn move_of(&self, value: Value, from: u16, to: u16) -> PendingMove {
        let data = &self.program.values[value];
        let src = SrcOperand::Place(Place::Reg(reg_of(data.class, from)));
        PendingMove { value: value.into(), class: data.class, components: data.components, src, from: data.class, to }
    }

    /// Creates a parallel copy, unless there is nothing to copy.
    fn parallel_copy(&mut self, moves: &[PendingMove]) -> Option<Instr> {
        let moves_something = |item: &&PendingMove| {
            let there = SrcOperand::Place(Place::Reg(reg_of(item.class, item.to)));
            !(item.src == there && item.from == item.class) && item.src != SrcOperand::Undef
        };
        let count = moves.iter().filter(moves_something).count();
        if count == 0 {
            return None;
        }
        let mut copy = InstrData::new(Opcode::ParallelCopy);
        copy.dsts.reserve(count);
        copy.srcs.reserve(count);
        for item in moves.iter().filter(moves_something) {
            let mask = WriteMask::first(u32::from(item.components));
            copy.dsts.push(Dst::new(Place::Reg(reg_of(item.class, item.to)), item.class, mask));
            copy.srcs.push(Src::new(item.src, item.from, mask));
        }
        Some(self.program.instrs.push(copy))
    }

    /// Clears the kill flag of registers that a live value shares.
    fn unmark_kills(&mut self, instr: Instr, step: &Step) {
        let sets = &self.analysis.sets;
        for &value in &step.killed {
            if self.forest.container(sets, value).is_some() || self.forest.within(sets, value).next().is_some() {
                let at = reg_of(self.class(value), self.place[value]);
                for src in self.program.instrs[instr].srcs.iter_mut() {
                    if src.place() == Some(&Place::Reg(at)) {
                        src.flags.remove(OperandFlags::KILL | OperandFlags::FIRST_KILL);
                    }
                }
            }
        }
    }

    fn rewrite_sources(&mut self, instr: Instr, step: &Step) -> Result<(), Error> {
        for k in 0..self.program.instrs[instr].srcs.len() {
            let src = &self.program.instrs[instr].srcs[k];
            let place = match src.place() {
                Some(Place::Array(access)) => self.array_place(instr, *access)?,
                Some(Place::Value(value) | Place::Assigned(value, _)) if self.units(*value) != 0 => {
                    let value = *value;
                    if self.class(value) != src.class {
                        let what = "an operand of another class than its value";
                        return Err(Error::unsupported(self.program, instr, what));
                    }
                    if matches!(src.place(), Some(Place::Assigned(_, reg)) if *reg != reg_of(src.class, self.place[value]))
                    {
                        let what = "a source with a given register that is not the program's last";
                        return Err(Error::unsupported(self.program, instr, what));
                    }
                    let data = &self.program.instrs[instr];
                    let tied = step.results.iter().find(|result| {
                        matches!(result.manner, Manner::Copied(_))
                            && super::merge_sets::tied_source(data, usize::from(result.dst)) == Some(k)
                    });
                    if let Some(result) = tied {
                        let at = self.place[result.value];
                        let src = &mut self.program.instrs[instr].srcs[k];
                        src.flags.remove(OperandFlags::KILL | OperandFlags::FIRST_KILL);
                        Place::Reg(reg_of(src.class, at))
                    } else {
                        Place::Reg(reg_of(src.class, self.place[value]))
                    }
                }
                Some(Place::Assigned(_, reg)) => Place::Reg(*reg),
                Some(Place::Value(_)) => {
                    return Err(Error::unsupported(self.program, instr, "a predicate or address"));
                }
                _ => continue,
            };
            self.program.instrs[instr].srcs[k].operand = SrcOperand::Place(place);
        }
        Ok(())
    }

    fn rewrite_destinations(&mut self, instr: Instr) -> Result<(), Error> {
        for k in 0..self.program.instrs[instr].dsts.len() {
            let dst = &self.program.instrs[instr].dsts[k];
            let place = match dst.place {
                Place::Array(access) => self.array_place(instr, access)?,
                Place::Value(value) | Place::Assigned(value, _) if self.units(value) != 0 => {
                    Place::Reg(reg_of(dst.class, self.place[value]))
                }
                Place::Assigned(_, reg) => Place::Reg(reg),
                Place::Value(_) => {
                    return Err(Error::unsupported(self.program, instr, "a predicate or address"));
                }
                _ => continue,
            };
            self.program.instrs[instr].dsts[k].place = place;
        }
        Ok(())
    }
}
