//! Register use of a partially scheduled block.
//!
//! A value occupies its registers from the instruction that defines it to its last use. The pieces extracted from a
//! vector are the vector: if it has no other use, each piece is live for its own uses only.
//!
//! This is an estimate, not the allocator's pressure; both orders of a block are measured alike.

use crate::ir3::{Instr, InstrData, Opcode, Program, RegFile, Value};
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Units of a half register: of full registers (and half ones in a merged file), of half ones, of shared ones.
pub type Units = [u32; 3];

/// The uses of a value.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// The number of instructions of the block that still read it.
    left: u32,
    /// True if it is read after the block.
    out: bool,
    /// The units that it occupies from its definition on, and the units freed after its last use.
    born: u16,
    dies: u16,
}

/// Registers in use.
pub struct RegisterUse {
    merged: bool,
    usage: SecondaryMap<Value, Usage>,
    touched: Vec<Value>,
    /// The current use.
    pub used: Units,
    /// The maximum so far in the block.
    pub peak: Units,
    /// Predicates with remaining uses.
    pub predicates: u32,
}

impl RegisterUse {
    /// Creates a counter for a target's registers.
    pub fn new(target: &Target) -> Self {
        Self {
            merged: target.merged_regs,
            usage: SecondaryMap::new(),
            touched: Vec::new(),
            used: Units::default(),
            peak: Units::default(),
            predicates: 0,
        }
    }

    fn class(&self, program: &Program, value: Value) -> Option<usize> {
        let class = program.values[value].class;
        match class.file {
            RegFile::General => Some(usize::from(class.half && !self.merged)),
            RegFile::Shared => Some(2),
            RegFile::Predicate | RegFile::Address => None,
        }
    }

    fn units(program: &Program, value: Value) -> u16 {
        let data = &program.values[value];
        data.class.component_units() * data.components
    }

    /// Starts a block, whose instructions are `list`.
    pub fn begin(&mut self, program: &Program, list: &[Instr], live_out: &[Value]) {
        for value in self.touched.drain(..) {
            self.usage[value] = Usage::default();
        }
        self.used = Units::default();
        self.predicates = 0;
        for &value in live_out {
            self.touch(program, value);
            self.usage[value].out = true;
        }
        for &instr in list.iter().filter(|&&instr| program.instrs[instr].opcode != Opcode::Phi) {
            for value in sources(&program.instrs[instr]) {
                self.touch(program, value);
                self.usage[value].left += 1;
            }
        }
        for &instr in list {
            self.piece(program, &program.instrs[instr]);
        }
        // The values that are live in: all that the block does not define, plus its phis.
        for i in 0..self.touched.len() {
            let value = self.touched[i];
            self.add(program, value, self.usage[value].born);
        }
        for &instr in list.iter().filter(|&&instr| program.instrs[instr].opcode != Opcode::Phi) {
            for value in program.instrs[instr].dsts.iter().filter_map(|dst| dst.value()) {
                if self.is_touched(value) {
                    self.remove(program, value, self.usage[value].born);
                }
            }
        }
        self.peak = self.used;
    }

    fn is_touched(&self, value: Value) -> bool {
        self.usage[value].left > 0 || self.usage[value].out
    }

    fn touch(&mut self, program: &Program, value: Value) {
        if !self.is_touched(value) {
            let units = Self::units(program, value);
            self.usage[value] = Usage { left: 0, out: false, born: units, dies: units };
            self.touched.push(value);
        }
    }

    /// Handles a piece of a vector.
    fn piece(&mut self, program: &Program, data: &InstrData) {
        if data.opcode != Opcode::Split {
            return;
        }
        let (Some(piece), Some(vector)) =
            (data.dsts.first().and_then(|dst| dst.value()), data.srcs.first().and_then(|src| src.value()))
        else {
            return;
        };
        let units = if self.is_touched(piece) { Self::units(program, piece) } else { 0 };
        let whole = Self::units(program, vector);
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

    fn add(&mut self, program: &Program, value: Value, units: u16) {
        match self.class(program, value) {
            Some(class) => self.used[class] += u32::from(units),
            None => self.predicates += u32::from(program.values[value].class.file == RegFile::Predicate),
        }
    }

    fn remove(&mut self, program: &Program, value: Value, units: u16) {
        match self.class(program, value) {
            Some(class) => self.used[class] = self.used[class].saturating_sub(u32::from(units)),
            None => self.predicates -= u32::from(program.values[value].class.file == RegFile::Predicate),
        }
    }

    /// The change in register use if an instruction is next.
    pub fn effect(&self, program: &Program, data: &InstrData) -> Effect {
        let mut change = [0; 3];
        for value in sources(data) {
            let usage = &self.usage[value];
            if let (1, false, Some(class)) = (usage.left, usage.out, self.class(program, value)) {
                change[class] -= i32::from(usage.dies);
            }
        }
        let mut most = change;
        for value in data.dsts.iter().filter_map(|dst| dst.value()) {
            if let Some(class) = self.class(program, value) {
                let born = if self.is_touched(value) { self.usage[value].born } else { 0 };
                change[class] += i32::from(born);
                most[class] += i32::from(written(program, data, value, born));
            }
        }
        Effect { change, most }
    }

    /// Issues the next instruction of the block.
    pub fn issue(&mut self, program: &Program, data: &InstrData) {
        for value in sources(data) {
            self.usage[value].left -= 1;
            let usage = self.usage[value];
            if usage.left == 0 && !usage.out {
                self.remove(program, value, usage.dies);
            }
        }
        let mut unread = Units::default();
        for value in data.dsts.iter().filter_map(|dst| dst.value()) {
            let born = self.usage[value].born;
            if self.is_touched(value) {
                self.add(program, value, born);
            }
            if let Some(class) = self.class(program, value) {
                unread[class] += u32::from(written(program, data, value, born) - born);
            }
        }
        for (peak, (used, unread)) in self.peak.iter_mut().zip(self.used.into_iter().zip(unread)) {
            *peak = (*peak).max(used + unread);
        }
    }
}

/// The change in register use by an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// After it.
    pub change: [i32; 3],
    /// While it writes: unused results are written too.
    pub most: [i32; 3],
}

/// The units that a result occupies while it is written; `born` of them have uses.
fn written(program: &Program, data: &InstrData, value: Value, born: u16) -> u16 {
    // A piece exists already.
    if data.opcode == Opcode::Split { born } else { RegisterUse::units(program, value).max(born) }
}

/// The values that an instruction reads, each once.
fn sources(data: &InstrData) -> SmallVec<[Value; 4]> {
    let mut values = SmallVec::<[Value; 4]>::new();
    for value in data.srcs.iter().filter_map(|src| src.value()) {
        if data.srcs.len() > 16 || !values.contains(&value) {
            values.push(value);
        }
    }
    if data.srcs.len() > 16 {
        values.sort_unstable();
        values.dedup();
    }
    values
}
