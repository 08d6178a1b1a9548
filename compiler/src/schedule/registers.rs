//! Register use of a partially scheduled block.
//!
//! A value occupies its registers from the instruction that defines it to its last use. The pieces extracted from a
//! vector are the vector: if it has no other use, each piece is live for its own uses only.
//!
//! This is an estimate, not the allocator's pressure; both orders of a block are measured alike.

use crate::ir3::{Instr, InstrData, Opcode, Program, RegFile, Value};
use crate::maps::map_of;
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;
use std::ops::Range;

/// Units of a half register: of full registers (and half ones in a merged file), of half ones, of shared ones.
pub type Units = [u32; 3];

/// The uses of a value.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// The number of instructions of the block that still read it.
    left: u32,
    /// True if it is read after the block.
    out: bool,
    /// The numbers of these instructions, combined by exclusive or: of the last one its number.
    readers: u32,
    /// The units that it occupies from its definition on, and the units freed after its last use.
    born: u16,
    dies: u16,
}

/// The registers of a value.
#[derive(Clone, Copy, Debug, Default)]
struct Registers {
    /// The index in [`Units`]; none for predicates and addresses.
    class: Option<u8>,
    is_predicate: bool,
    units: u16,
}

/// The values that each instruction reads, each once.
struct Sources {
    values: Vec<Value>,
    /// The range of an instruction in `values`.
    ranges: SecondaryMap<Instr, (u32, u32)>,
}

impl Sources {
    fn new(program: &Program) -> Self {
        let mut values = Vec::with_capacity(program.values.len());
        let mut ranges = map_of(program.instrs.len());
        for (_, instr) in program.iter_instrs() {
            let start = values.len();
            let data = &program.instrs[instr];
            for value in data.srcs.iter().filter_map(|src| src.value()) {
                if data.srcs.len() > 16 || !values[start..].contains(&value) {
                    values.push(value);
                }
            }
            if data.srcs.len() > 16 {
                let mut many = values.split_off(start);
                many.sort_unstable();
                many.dedup();
                values.append(&mut many);
            }
            ranges[instr] = (start as u32, values.len() as u32);
        }
        Self { values, ranges }
    }

    fn of(&self, instr: Instr) -> &[Value] {
        let (start, end) = self.ranges[instr];
        &self.values[start as usize..end as usize]
    }
}

/// The state at the start of a block.
pub struct Start {
    /// Positions in [`RegisterUse::starts`].
    values: Range<usize>,
    used: Units,
    predicates: u32,
}

/// Registers in use.
pub struct RegisterUse {
    registers: SecondaryMap<Value, Registers>,
    sources: Sources,
    usage: SecondaryMap<Value, Usage>,
    touched: Vec<Value>,
    /// The uses of values at the starts of blocks.
    starts: Vec<(Value, Usage)>,
    /// The current use.
    pub used: Units,
    /// The maximum so far in the block.
    pub peak: Units,
    /// Predicates with remaining uses.
    pub predicates: u32,
}

impl RegisterUse {
    /// Creates a counter for a target's registers.
    pub fn new(program: &Program, target: &Target) -> Self {
        let mut registers = map_of(program.values.len());
        for (value, data) in &program.values {
            let class = match data.class.file {
                RegFile::General => Some(u8::from(data.class.half && !target.merged_regs)),
                RegFile::Shared => Some(2),
                RegFile::Predicate | RegFile::Address => None,
            };
            let is_predicate = data.class.file == RegFile::Predicate;
            registers[value] = Registers { class, is_predicate, units: data.class.component_units() * data.components };
        }
        Self {
            registers,
            sources: Sources::new(program),
            usage: map_of(program.values.len()),
            touched: Vec::new(),
            starts: Vec::with_capacity(program.values.len()),
            used: Units::default(),
            peak: Units::default(),
            predicates: 0,
        }
    }

    fn class(&self, value: Value) -> Option<usize> {
        self.registers[value].class.map(usize::from)
    }

    fn units(&self, value: Value) -> u16 {
        self.registers[value].units
    }

    /// Starts a block once more.
    pub fn begin_again(&mut self, start: &Start) {
        self.reset();
        for &(value, usage) in &self.starts[start.values.clone()] {
            self.usage[value] = usage;
            self.touched.push(value);
        }
        (self.used, self.peak, self.predicates) = (start.used, start.used, start.predicates);
    }

    fn reset(&mut self) {
        for value in self.touched.drain(..) {
            self.usage[value] = Usage::default();
        }
    }

    /// Starts a block, whose instructions are `list`.
    pub fn begin(&mut self, program: &Program, list: &[Instr], live_out: &[Value]) -> Start {
        self.reset();
        self.used = Units::default();
        self.predicates = 0;
        for &value in live_out {
            self.touch(value);
            self.usage[value].out = true;
        }
        for &instr in list.iter().filter(|&&instr| program.instrs[instr].opcode != Opcode::Phi) {
            let (start, end) = self.sources.ranges[instr];
            for at in start as usize..end as usize {
                let value = self.sources.values[at];
                self.touch(value);
                let usage = &mut self.usage[value];
                usage.left += 1;
                usage.readers ^= instr.as_u32();
            }
        }
        for &instr in list {
            self.piece(&program.instrs[instr]);
        }
        // The values that are live in: all that the block does not define, plus its phis.
        for i in 0..self.touched.len() {
            let value = self.touched[i];
            self.add(value, self.usage[value].born);
        }
        for &instr in list.iter().filter(|&&instr| program.instrs[instr].opcode != Opcode::Phi) {
            for value in program.instrs[instr].dsts.iter().filter_map(|dst| dst.value()) {
                if self.is_touched(value) {
                    self.remove(value, self.usage[value].born);
                }
            }
        }
        self.peak = self.used;
        let first = self.starts.len();
        self.starts.extend(self.touched.iter().map(|&value| (value, self.usage[value])));
        Start { values: first..self.starts.len(), used: self.used, predicates: self.predicates }
    }

    fn is_touched(&self, value: Value) -> bool {
        self.usage[value].left > 0 || self.usage[value].out
    }

    fn touch(&mut self, value: Value) {
        if !self.is_touched(value) {
            let units = self.units(value);
            self.usage[value] = Usage { born: units, dies: units, ..Usage::default() };
            self.touched.push(value);
        }
    }

    /// Handles a piece of a vector.
    fn piece(&mut self, data: &InstrData) {
        if data.opcode != Opcode::Split {
            return;
        }
        let (Some(piece), Some(vector)) =
            (data.dsts.first().and_then(|dst| dst.value()), data.srcs.first().and_then(|src| src.value()))
        else {
            return;
        };
        let units = if self.is_touched(piece) { self.units(piece) } else { 0 };
        let whole = self.units(vector);
        let usage = &mut self.usage[vector];
        if usage.out {
            // The vector stays live, and with it the piece.
            if !self.usage[piece].out {
                (self.usage[piece].born, self.usage[piece].dies) = (0, 0);
            }
        } else {
            // The first extracted piece: from here on the vector is its pieces.
            if usage.dies == whole && usage.born == whole && whole > 0 {
                (usage.born, usage.dies) = (0, 0);
            }
            usage.born += units;
            self.usage[piece].born = 0;
        }
    }

    fn add(&mut self, value: Value, units: u16) {
        match self.class(value) {
            Some(class) => self.used[class] += u32::from(units),
            None => self.predicates += u32::from(self.registers[value].is_predicate),
        }
    }

    fn remove(&mut self, value: Value, units: u16) {
        match self.class(value) {
            Some(class) => self.used[class] = self.used[class].saturating_sub(u32::from(units)),
            None => self.predicates -= u32::from(self.registers[value].is_predicate),
        }
    }

    /// The change in register use if an instruction is next.
    pub fn effect(&self, program: &Program, instr: Instr) -> Effect {
        let data = &program.instrs[instr];
        let mut change = [0; 3];
        for &value in self.sources.of(instr) {
            let usage = &self.usage[value];
            if let (1, false, Some(class)) = (usage.left, usage.out, self.class(value)) {
                change[class] -= i32::from(usage.dies);
            }
        }
        let mut most = change;
        for value in data.dsts.iter().filter_map(|dst| dst.value()) {
            if let Some(class) = self.class(value) {
                let born = if self.is_touched(value) { self.usage[value].born } else { 0 };
                change[class] += i32::from(born);
                most[class] += i32::from(self.written(data, value, born));
            }
        }
        Effect { change, most }
    }

    /// Issues the next instruction of the block. If some value has one use left, the instruction with that use has
    /// another [effect](Self::effect) now, and no other one has: these are added to `last_readers`.
    pub fn issue(&mut self, program: &Program, instr: Instr, last_readers: &mut SmallVec<[Instr; 4]>) {
        let data = &program.instrs[instr];
        let (start, end) = self.sources.ranges[instr];
        for at in start as usize..end as usize {
            let value = self.sources.values[at];
            let usage = &mut self.usage[value];
            usage.left -= 1;
            usage.readers ^= instr.as_u32();
            let usage = *usage;
            if usage.left == 1 && !usage.out {
                last_readers.push(Instr::from_u32(usage.readers));
            }
            if usage.left == 0 && !usage.out {
                self.remove(value, usage.dies);
            }
        }
        let mut unread = Units::default();
        for value in data.dsts.iter().filter_map(|dst| dst.value()) {
            let born = self.usage[value].born;
            if self.is_touched(value) {
                self.add(value, born);
            }
            if let Some(class) = self.class(value) {
                unread[class] += u32::from(self.written(data, value, born) - born);
            }
        }
        for (peak, (used, unread)) in self.peak.iter_mut().zip(self.used.into_iter().zip(unread)) {
            *peak = (*peak).max(used + unread);
        }
    }

    /// The units that a result occupies while it is written; `born` of them have uses.
    fn written(&self, data: &InstrData, value: Value, born: u16) -> u16 {
        // A piece exists already.
        if data.opcode == Opcode::Split { born } else { self.units(value).max(born) }
    }
}

/// The change in register use by an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The change after it.
    pub change: [i32; 3],
    /// The most registers while it writes: unused results are written too.
    pub most: [i32; 3],
}
