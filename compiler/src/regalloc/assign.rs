//! Registers for general and shared values: one walk over the blocks.
//!
//! Blocks are visited so that each one comes behind its dominator and behind one of its predecessors. In SSA form a
//! value that is live somewhere where another is defined was defined before it, so it is enough to know what is live
//! while walking: a definition takes a free place, a last read frees it.
//!
//! A value keeps its first place, its *home*, unless free registers are left but no gap is long enough. Then live values
//! are moved together by a parallel copy in front of the instruction (see [`repack`](super::repack)). From there on the
//! value is elsewhere; each block notes what is not at home at its start and at its end, and where an edge brings
//! together two places of a value, [`edges`](super::edges) moves it, along with the phis.

use super::Error;
use super::file::Units;
use super::parallel_copy::reg_of;
use super::repack::Room;
use super::simple_liveness::{Liveness, Pressure, members, pressure, units};
use super::vectors::{Groups, Parts};
use crate::ir3::{
    ArrayAccess, Block, Dst, Instr, InstrData, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, RegFile, Src,
    SrcOperand, Value, WriteMask, opcode::Latency,
};
use crate::target::{RegisterFiles, Target};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Whether a destination is written while sources are still to be read.
pub fn is_early(data: &InstrData, dst: &Dst) -> bool {
    dst.flags.contains(OperandFlags::EARLY_CLOBBER) || data.opcode.info().latency == Latency::Macro
}

/// Number of the general file of full registers; merged, of all general registers.
pub const FULL: usize = 0;
/// Number of a separate file of half registers.
pub const HALF: usize = 1;
/// Number of the shared file.
pub const SHARED: usize = 2;

/// A value to be placed.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub value: Value,
    pub class: RegClass,
    /// Units.
    pub len: u16,
    /// It must not share units with what is read.
    pub early: bool,
    /// It takes the place of this value.
    pub tied: Option<Value>,
    /// File.
    pub file: usize,
    /// Chosen first unit.
    pub at: u16,
}

/// The state of the walk.
pub struct Assigner<'a> {
    pub program: &'a mut Program,
    merged: bool,
    /// Units that there are.
    limits: RegisterFiles,
    pub liveness: Liveness,
    parts: Parts,
    groups: Groups,
    /// Units that are taken, by live values and arrays.
    taken: [Units; 3],
    /// What is live here.
    live: Vec<u64>,
    /// Units of arrays.
    reserved: [Units; 3],
    /// Units in front of which arrays of halves stand, and behind which arrays of full registers.
    pub bounds: [(u16, u16); 3],
    array_base: SecondaryMap<crate::ir3::Array, u16>,
    /// Full registers start here as long as there is room: in front is what halves need.
    floor: u16,
    /// First place of each value.
    pub home: SecondaryMap<Value, u16>,
    /// Its place now.
    pub place: SecondaryMap<Value, u16>,
    /// Values that left their home in this block or on the way to it.
    away: Vec<Value>,
    /// What is not at home at the start of a block, and at its end.
    pub start: SecondaryMap<Block, Vec<(Value, u16)>>,
    pub end: SecondaryMap<Block, Vec<(Value, u16)>>,
    wanted: Vec<Wanted>,
    killed: Vec<Value>,
    out: Vec<Instr>,
}

impl<'a> Assigner<'a> {
    /// Prepares the walk.
    pub fn new(program: &'a mut Program, target: &Target, limits: RegisterFiles) -> Result<Self, Error> {
        let parts = Parts::new(program);
        let liveness = Liveness::new(program, &parts.origin);
        let entry = program.entry();
        if let Some(value) =
            members(liveness.live_in(entry)).find(|&v| program.values[v].class.file == RegFile::General)
        {
            return Err(Error::Malformed { what: format!("{value} is read where it is not defined") });
        }
        liveness.mark_kills(program);
        let groups = Groups::new(program, &parts, &liveness);
        let mut this = Self {
            merged: target.merged_regs,
            limits,
            parts,
            groups,
            taken: [Units::default(); 3],
            live: Vec::new(),
            reserved: [Units::default(); 3],
            bounds: [limits.full, limits.half, limits.shared].map(|units| (0, units as u16)),
            array_base: SecondaryMap::new(),
            floor: 0,
            home: SecondaryMap::with_capacity(program.values.len()),
            place: SecondaryMap::with_capacity(program.values.len()),
            away: Vec::new(),
            start: SecondaryMap::new(),
            end: SecondaryMap::new(),
            wanted: Vec::new(),
            killed: Vec::new(),
            out: Vec::new(),
            liveness,
            program,
        };
        this.reserve_arrays()?;
        if this.merged {
            let Pressure { half, .. } = pressure(this.program, &this.liveness, |value| this.parts.of(value));
            let halves = u32::from(this.bounds[FULL].0) + half;
            this.floor = halves.min(limits.half).next_multiple_of(2) as u16;
        }
        Ok(this)
    }

    /// The file of a class, and how many units of it the class reaches.
    pub fn file_of(&self, class: RegClass) -> (usize, u16) {
        let RegisterFiles { full, half, shared, shared_half } = self.limits;
        let (file, reach) = match (class.file, class.half) {
            (RegFile::Shared, true) => (SHARED, shared_half),
            (RegFile::Shared, false) => (SHARED, shared),
            (_, true) if self.merged => (FULL, half.min(full)),
            (_, true) => (HALF, half),
            (_, false) => (FULL, full),
        };
        (file, reach as u16)
    }

    /// Arrays of halves stand at the bottom, arrays of full registers at the top, all the time.
    fn reserve_arrays(&mut self) -> Result<(), Error> {
        for array in self.program.arrays.keys() {
            let data = &self.program.arrays[array];
            let (class, len) = (data.class, u32::from(data.length) * u32::from(data.class.component_units()));
            if class.file != RegFile::General {
                return Err(Error::Malformed { what: format!("{array} is not in general registers") });
            }
            let (file, reach) = self.file_of(class);
            let (low, high) = &mut self.bounds[file];
            let room = if class.half { reach.min(*high) } else { *high } - *low;
            if len > u32::from(room) {
                return Err(Error::spilling(u32::from(reach - room) + len, reach, class.half));
            }
            let len = len as u16;
            let base = if class.half {
                *low += len;
                *low - len
            } else {
                *high -= len;
                *high
            };
            self.reserved[file].insert(base, len);
            self.array_base[array] = base;
        }
        Ok(())
    }

    /// Walks over the blocks in this order.
    pub fn run(&mut self, order: &[Block]) -> Result<(), Error> {
        let mut visited = SecondaryMap::<Block, bool>::with_capacity(self.program.blocks.len());
        for &block in order {
            let from = self.program.blocks[block].predecessors.iter().copied().find(|&pred| visited[pred]);
            self.run_block(block, from)?;
            visited[block] = true;
        }
        Ok(())
    }

    fn run_block(&mut self, block: Block, from: Option<Block>) -> Result<(), Error> {
        self.taken = self.reserved;
        if let Some(from) = from {
            for &(value, at) in &self.end[from] {
                if self.liveness.is_live_in(block, value) {
                    self.place[value] = at;
                    self.away.push(value);
                }
            }
        }
        for value in members(self.liveness.live_in(block)) {
            let data = &self.program.values[value];
            let (file, _) = self.file_of(data.class);
            let len = units(self.program, value) as u16;
            self.taken[file].insert(self.place[value], len);
        }
        self.live.clear();
        self.live.extend_from_slice(self.liveness.live_in(block));
        let list = std::mem::take(&mut self.program.blocks[block].instrs);
        self.out.clear();
        self.out.reserve(list.len() + 4);
        let phis = list.iter().take_while(|&&i| self.program.instrs[i].opcode == Opcode::Phi).count();
        self.place_phis(&list[..phis])?;
        // Whatever has been moved up to here is at its new place when the block starts.
        self.note_places(block, true);
        let inputs = list[phis..].iter().take_while(|&&i| self.program.instrs[i].opcode == Opcode::Input).count();
        let (inputs, rest) = list[phis..].split_at(inputs);
        self.run_inputs(inputs)?;
        for &instr in rest {
            self.run_instr(instr)?;
        }
        // The phis stay until the edges are done.
        let mut list = list;
        list.truncate(phis);
        list.extend_from_slice(&self.out);
        self.program.blocks[block].instrs = list;
        self.note_places(block, false);
        for value in self.away.drain(..) {
            self.place[value] = self.home[value];
        }
        Ok(())
    }

    /// Notes which values are not at home, at the start or at the end of a block.
    fn note_places(&mut self, block: Block, start: bool) {
        if self.away.is_empty() {
            return;
        }
        self.away.sort_unstable();
        self.away.dedup();
        let mut list = Vec::new();
        for &value in &self.away {
            let live =
                if start { self.liveness.is_live_in(block, value) } else { self.liveness.is_live_out(block, value) };
            if live && self.place[value] != self.home[value] {
                list.push((value, self.place[value]));
            }
        }
        let notes = if start { &mut self.start } else { &mut self.end };
        notes[block] = list;
    }

    /// All phis of a block are written at once, before anything in it is read.
    fn place_phis(&mut self, phis: &[Instr]) -> Result<(), Error> {
        if phis.is_empty() {
            return Ok(());
        }
        self.wanted.clear();
        self.killed.clear();
        for &phi in phis {
            for k in 0..self.program.instrs[phi].dsts.len() {
                self.want(phi, k)?;
            }
        }
        // The edges bring everything to wherever it is to be, so a new order costs no instruction here.
        self.place_wanted()?;
        self.commit();
        Ok(())
    }

    /// Inputs are all there before the first instruction: each has its registers for itself, components that nobody
    /// reads included.
    fn run_inputs(&mut self, inputs: &[Instr]) -> Result<(), Error> {
        self.wanted.clear();
        self.killed.clear();
        for &input in inputs {
            for k in 0..self.program.instrs[input].dsts.len() {
                self.want(input, k)?;
            }
        }
        if !self.wanted.is_empty() {
            // Nothing is live yet, so there is nothing to move.
            self.place_wanted()?;
        }
        self.commit();
        for &input in inputs {
            self.rewrite_destinations(input)?;
            self.out.push(input);
        }
        Ok(())
    }

    /// Adds a destination to what is to be placed.
    fn want(&mut self, instr: Instr, k: usize) -> Result<(), Error> {
        let data = &self.program.instrs[instr];
        let dst = &data.dsts[k];
        if !matches!(dst.class.file, RegFile::General | RegFile::Shared) {
            return match dst.place {
                Place::Reg(_) => Ok(()),
                _ => Err(Error::unsupported(self.program, instr, "a predicate or address")),
            };
        }
        let Some(value) = dst.value() else { return Ok(()) };
        if matches!(dst.place, Place::Array(_)) {
            return Err(Error::unsupported(self.program, instr, "an array in SSA form"));
        }
        let tied = if dst.flags.contains(OperandFlags::TIED) {
            let nth = data.dsts[..k].iter().filter(|dst| dst.flags.contains(OperandFlags::TIED)).count();
            let tied = data.srcs.iter().filter(|src| src.flags.contains(OperandFlags::TIED)).nth(nth);
            tied.and_then(|src| src.value())
        } else {
            None
        };
        let class = self.program.values[value].class;
        let (file, _) = self.file_of(class);
        let early = is_early(data, dst);
        let len = units(self.program, value) as u16;
        self.wanted.push(Wanted { value, class, len, early, tied, file, at: 0 });
        Ok(())
    }

    fn run_instr(&mut self, instr: Instr) -> Result<(), Error> {
        self.wanted.clear();
        self.killed.clear();
        for k in 0..self.program.instrs[instr].dsts.len() {
            self.want(instr, k)?;
        }
        for src in &self.program.instrs[instr].srcs {
            if let (true, Some(value)) = (src.flags.contains(OperandFlags::FIRST_KILL), src.value()) {
                self.killed.push(value);
            }
        }
        if !self.wanted.is_empty()
            && let Some(copy) = self.place_wanted()?
        {
            self.out.push(copy);
        }
        self.rewrite_sources(instr)?;
        self.commit();
        self.rewrite_destinations(instr)?;
        self.out.push(instr);
        Ok(())
    }

    /// Frees what is read for the last time, and puts what was wanted in its place.
    fn commit(&mut self) {
        for &value in &self.killed {
            let (file, _) = self.file_of(self.program.values[value].class);
            self.taken[file].remove(self.place[value], units(self.program, value) as u16);
            self.live[value.index() / 64] &= !(1 << (value.index() % 64));
        }
        for wanted in &self.wanted {
            let value = wanted.value;
            self.home[value] = wanted.at;
            self.place[value] = wanted.at;
            if self.parts.of(value).is_empty() {
                if self.liveness.is_used(value) {
                    self.taken[wanted.file].insert(wanted.at, wanted.len);
                    self.live[value.index() / 64] |= 1 << (value.index() % 64);
                }
                continue;
            }
            let unit = wanted.class.component_units();
            for (component, part) in self.parts.with_components(value) {
                let at = wanted.at + component * unit;
                self.home[part] = at;
                self.place[part] = at;
                if self.liveness.is_used(part) {
                    self.taken[wanted.file].insert(at, unit);
                    self.live[part.index() / 64] |= 1 << (part.index() % 64);
                }
            }
        }
    }

    /// Finds a place for everything that is wanted; moves what is live if there is no other way, and returns the
    /// parallel copy that does so.
    fn place_wanted(&mut self) -> Result<Option<Instr>, Error> {
        let mut before = self.taken;
        let mut after = before;
        for &value in &self.killed {
            let (file, _) = self.file_of(self.program.values[value].class);
            after[file].remove(self.place[value], units(self.program, value) as u16);
        }
        let mut failed = [false; 3];
        for tied in [true, false] {
            for i in 0..self.wanted.len() {
                let wanted = self.wanted[i];
                if wanted.tied.is_some() != tied {
                    continue;
                }
                let taken = if wanted.early { &before[wanted.file] } else { &after[wanted.file] };
                let at = match wanted.tied {
                    Some(source) => Some(self.place[source]),
                    None => self.choose(&wanted, taken),
                };
                match at {
                    Some(at) => {
                        self.wanted[i].at = at;
                        before[wanted.file].insert(at, wanted.len);
                        after[wanted.file].insert(at, wanted.len);
                    }
                    None => failed[wanted.file] = true,
                }
            }
        }
        let mut moved = Vec::new();
        for file in (FULL..=SHARED).filter(|&file| failed[file]) {
            self.repack(file, &mut moved)?;
        }
        for wanted in &self.wanted {
            self.groups.placed(wanted.value, wanted.at);
        }
        Ok(if moved.is_empty() { None } else { Some(self.copy_of(&moved)) })
    }

    /// A place for one value: where its group wants it, else where the whole group fits, else the first gap.
    fn choose(&mut self, wanted: &Wanted, taken: &Units) -> Option<u16> {
        let (_, limit) = self.file_of(wanted.class);
        let align = wanted.class.component_units();
        let len = wanted.len;
        let wish = self.groups.wish(wanted.value);
        if let Some(at) = wish.at
            && at % align == 0
            && at + len <= limit
            && taken.is_free(at, len)
        {
            return Some(at);
        }
        let floor = if wanted.file == FULL && !wanted.class.half { self.floor } else { 0 };
        for from in [floor, 0] {
            if wish.at.is_none() && wish.extent > len {
                let gap = taken.find_gap(wish.extent, align, from, limit);
                if let Some(at) = gap {
                    return Some(at + wish.before);
                }
            }
            if let Some(at) = taken.find_gap(len, align, from, limit) {
                return Some(at);
            }
            if floor == 0 {
                break;
            }
        }
        None
    }

    fn repack(&mut self, file: usize, moved: &mut Vec<(Value, u16)>) -> Result<(), Error> {
        if file == SHARED {
            // Lanes that wait elsewhere would not find a shared value that was moved.
            return Err(Error::NeedsSpilling { needed: 33, available: 32, file: "shared" });
        }
        let is_here = |&value: &Value| self.file_of(self.program.values[value].class).0 == file;
        let mut live: Vec<Value> = members(&self.live).filter(is_here).collect();
        live.sort_unstable_by_key(|&value| self.place[value]);
        let (low, high) = self.bounds[file];
        let (full, half) = (self.file_of(RegClass::FULL).1, self.file_of(RegClass::HALF).1);
        let room = Room { low, high, full, half };
        let first_moved = moved.len();
        super::repack::run(self.program, file, room, &live, &self.killed, &mut self.wanted, moved)?;
        // Only what really moves.
        let mut i = first_moved;
        while let Some(&(value, at)) = moved.get(i) {
            if self.place[value] == at {
                moved.swap_remove(i);
            } else {
                i += 1;
            }
        }
        for &(value, _) in &moved[first_moved..] {
            self.taken[file].remove(self.place[value], units(self.program, value) as u16);
        }
        for (value, at) in &mut moved[first_moved..] {
            self.taken[file].insert(*at, units(self.program, *value) as u16);
            self.away.push(*value);
            // The pair becomes the old place.
            std::mem::swap(&mut self.place[*value], at);
        }
        for wanted in self.wanted.iter_mut().filter(|wanted| wanted.file == file) {
            if let Some(tied) = wanted.tied {
                wanted.at = self.place[tied];
            }
        }
        Ok(())
    }

    /// A parallel copy of values from their old places to where they are now.
    fn copy_of(&mut self, moved: &[(Value, u16)]) -> Instr {
        let mut copy = InstrData::new(Opcode::ParallelCopy);
        for &(value, old) in moved {
            let data = &self.program.values[value];
            let mask = WriteMask::first(u32::from(data.components));
            let reg = |unit| Place::Reg(reg_of(data.class, unit));
            copy.dsts.push(Dst::new(reg(self.place[value]), data.class, mask));
            copy.srcs.push(Src::reg(reg(old), data.class, mask));
        }
        self.program.instrs.push(copy)
    }

    fn rewrite_sources(&mut self, instr: Instr) -> Result<(), Error> {
        for k in 0..self.program.instrs[instr].srcs.len() {
            let src = &self.program.instrs[instr].srcs[k];
            let place = match src.place() {
                Some(Place::Array(access)) => self.array_place(instr, *access)?,
                Some(Place::Value(value) | Place::Assigned(value, _)) => {
                    Place::Reg(self.register(instr, *value, src.class)?)
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
                Place::Value(value) | Place::Assigned(value, _) => Place::Reg(self.register(instr, value, dst.class)?),
                _ => continue,
            };
            self.program.instrs[instr].dsts[k].place = place;
        }
        Ok(())
    }

    fn register(&self, instr: Instr, value: Value, class: RegClass) -> Result<PhysReg, Error> {
        if self.program.values[value].class != class {
            return Err(Error::unsupported(self.program, instr, "an operand of another class than its value"));
        }
        Ok(reg_of(class, self.place[value]))
    }

    fn array_place(&self, instr: Instr, access: ArrayAccess) -> Result<Place, Error> {
        if access.value.is_some() {
            return Err(Error::unsupported(self.program, instr, "an array in SSA form"));
        }
        let data = &self.program.arrays[access.array];
        let base = reg_of(data.class, self.array_base[access.array]).0 as i16 + access.offset;
        if access.relative {
            return Ok(Place::Relative { offset: base, size: data.length });
        }
        if access.offset < 0 || access.offset as u16 >= data.length {
            return Err(Error::Malformed { what: format!("element {} of {}", access.offset, access.array) });
        }
        Ok(Place::Reg(PhysReg(base as u16)))
    }
}
