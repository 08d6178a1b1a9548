//! Liveness of general and shared values.
//!
//! Programs are in SSA form, so no fixed point is needed: from each use the value is live on every way back to its
//! definition, and the ways are walked block by block, each block once a value. A value that is used in its own block
//! only costs nothing.
//!
//! The source of a phi is read at the end of the predecessor: it is live out there, and not live into the phi's block
//! on that account. Shared registers are written for lanes that are not active too, so their values are live along
//! the physical edges, where the wave may pass while the lanes that need the value wait.

use crate::ir3::{Block, Instr, Opcode, OperandFlags, Program, RegFile, Value};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};

/// A set of values for each block, as one matrix of bits.
struct Sets {
    words: usize,
    bits: Vec<u64>,
}

impl Sets {
    fn new(blocks: usize, values: usize) -> Self {
        let words = values.div_ceil(64);
        Self { words, bits: vec![0; blocks * words] }
    }

    fn row(&self, block: Block) -> &[u64] {
        &self.bits[block.index() * self.words..][..self.words]
    }

    fn contains(&self, block: Block, value: Value) -> bool {
        self.row(block)[value.index() / 64] >> (value.index() % 64) & 1 != 0
    }

    /// Adds a value; whether it was not there.
    fn insert(&mut self, block: Block, value: Value) -> bool {
        let word = &mut self.bits[block.index() * self.words + value.index() / 64];
        let bit = 1 << (value.index() % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }
}

/// The members of a row.
pub fn members(row: &[u64]) -> impl Iterator<Item = Value> + '_ {
    row.iter().enumerate().flat_map(|(i, &word)| {
        std::iter::successors((word != 0).then_some(word), |&rest| Some(rest & (rest - 1)).filter(|&rest| rest != 0))
            .map(move |rest| Value::new(i * 64 + rest.trailing_zeros() as usize))
    })
}

/// Which values are live where.
pub struct Liveness {
    live_in: Sets,
    live_out: Sets,
    /// The block that defines each value.
    def_block: SecondaryMap<Value, PackedOption<Block>>,
    /// Whether anybody reads the value.
    used: SecondaryMap<Value, bool>,
}

impl Liveness {
    /// Computes the liveness of a program. `origin` names the value that is defined in a value's stead: a vector for
    /// its parts, if these come into being with it.
    pub fn new(program: &Program, origin: &SecondaryMap<Value, PackedOption<Value>>) -> Self {
        let values = program.values.len();
        let mut this = Self {
            live_in: Sets::new(program.blocks.len(), values),
            live_out: Sets::new(program.blocks.len(), values),
            def_block: SecondaryMap::with_capacity(values),
            used: SecondaryMap::with_capacity(values),
        };
        for (block, instr) in program.iter_instrs() {
            for value in program.instrs[instr].dsts.iter().filter_map(|dst| dst.value()) {
                this.def_block[value] = block.into();
            }
        }
        for (value, whole) in origin.iter() {
            if let Some(whole) = whole.expand() {
                this.def_block[value] = this.def_block[whole];
            }
        }
        let mut stack = Vec::new();
        for (block, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            for (k, src) in data.srcs.iter().enumerate() {
                let Some(value) = src.value() else { continue };
                this.used[value] = true;
                if data.opcode != Opcode::Phi {
                    if this.def_block[value].expand() != Some(block) {
                        stack.push(block);
                    }
                } else if let Some(&pred) = program.blocks[block].predecessors.get(k) {
                    this.live_out.insert(pred, value);
                    if this.def_block[value].expand() != Some(pred) {
                        stack.push(pred);
                    }
                }
                let physical = src.class.file == RegFile::Shared;
                this.walk_back(program, value, physical, &mut stack);
            }
        }
        for (value, whole) in origin.iter() {
            if let Some(whole) = whole.expand() {
                this.used[whole] |= this.used[value];
            }
        }
        this
    }

    /// `value` is live into the blocks on the stack, and so out of their predecessors.
    fn walk_back(&mut self, program: &Program, value: Value, physical: bool, stack: &mut Vec<Block>) {
        while let Some(block) = stack.pop() {
            if !self.live_in.insert(block, value) {
                continue;
            }
            let data = &program.blocks[block];
            let more: &[Block] = if physical { &data.physical_predecessors } else { &[] };
            for &pred in data.predecessors.iter().chain(more) {
                self.live_out.insert(pred, value);
                if self.def_block[value].expand() != Some(pred) {
                    stack.push(pred);
                }
            }
        }
    }

    /// The values that are live into a block, its phis not among them.
    pub fn live_in(&self, block: Block) -> &[u64] {
        self.live_in.row(block)
    }

    /// Whether `value` is live into `block`.
    pub fn is_live_in(&self, block: Block, value: Value) -> bool {
        self.live_in.contains(block, value)
    }

    /// Whether `value` is live out of `block`.
    pub fn is_live_out(&self, block: Block, value: Value) -> bool {
        self.live_out.contains(block, value)
    }

    /// Whether any instruction reads `value`.
    pub fn is_used(&self, value: Value) -> bool {
        self.used[value]
    }

    /// Marks the last reads of values, and destinations that nobody reads.
    pub fn mark_kills(&self, program: &mut Program) {
        let mut live: Vec<u64> = Vec::new();
        for &block in &program.layout {
            live.clear();
            live.extend_from_slice(self.live_out.row(block));
            for &instr in program.blocks[block].instrs.iter().rev() {
                self.mark_instr(&mut program.instrs[instr], &mut live);
            }
        }
    }

    fn mark_instr(&self, data: &mut crate::ir3::InstrData, live: &mut [u64]) {
        for dst in data.dsts.iter_mut() {
            if let Some(value) = dst.value() {
                dst.flags.set(OperandFlags::UNUSED, !self.used[value]);
            }
        }
        if data.opcode == Opcode::Phi {
            // Read at the ends of the predecessors.
            data.srcs.iter_mut().for_each(|src| src.flags.remove(OperandFlags::KILL | OperandFlags::FIRST_KILL));
            return;
        }
        let bit = |value: Value| (value.index() / 64, 1 << (value.index() % 64));
        for src in data.srcs.iter_mut() {
            if let Some(value) = src.value() {
                let (word, bit) = bit(value);
                src.flags.set(OperandFlags::KILL, live[word] & bit == 0);
            }
        }
        for src in data.srcs.iter_mut() {
            if let Some(value) = src.value() {
                let (word, bit) = bit(value);
                src.flags.set(OperandFlags::FIRST_KILL, live[word] & bit == 0);
                live[word] |= bit;
            }
        }
    }
}

/// Units that are live at most at once: half registers, full registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Half registers.
    pub half: u32,
    /// Full registers, in units of a half.
    pub full: u32,
}

impl Pressure {
    /// Adds the units of a value.
    pub fn add(&mut self, program: &Program, value: Value) {
        *self.of(program, value) += units(program, value);
    }

    /// Takes them away.
    pub fn remove(&mut self, program: &Program, value: Value) {
        let count = self.of(program, value);
        *count = count.saturating_sub(units(program, value));
    }

    fn of(&mut self, program: &Program, value: Value) -> &mut u32 {
        if program.values[value].class.half { &mut self.half } else { &mut self.full }
    }
}

/// Units that a value takes.
pub fn units(program: &Program, value: Value) -> u32 {
    let data = &program.values[value];
    u32::from(data.components) * u32::from(data.class.component_units())
}

/// The greatest number of live half units and full units, each by itself, of the general file; `parts` are the values
/// that come into being with a vector.
pub fn pressure<'a>(program: &Program, liveness: &Liveness, parts: impl Fn(Value) -> &'a [Value]) -> Pressure {
    let is_general = |value: Value| program.values[value].class.file == RegFile::General;
    let mut max = Pressure::default();
    for &block in &program.layout {
        let mut now = Pressure::default();
        members(liveness.live_in(block)).filter(|&v| is_general(v)).for_each(|v| now.add(program, v));
        let note = |max: &mut Pressure, now: &Pressure| {
            *max = Pressure { half: max.half.max(now.half), full: max.full.max(now.full) };
        };
        note(&mut max, &now);
        let instrs = &program.blocks[block].instrs;
        // Inputs are all there before the first instruction, components that nobody reads included.
        let first = instrs.iter().position(|&i| program.instrs[i].opcode != Opcode::Phi).unwrap_or(instrs.len());
        let inputs = instrs[first..].iter().take_while(|&&i| program.instrs[i].opcode == Opcode::Input).count();
        let inputs = &instrs[first..first + inputs];
        let mut together = now;
        for &input in inputs {
            defined(program, input).for_each(|value| together.add(program, value));
        }
        note(&mut max, &together);
        for &instr in instrs {
            step(program, liveness, instr, &parts, &mut now, &mut |now| note(&mut max, now));
        }
    }
    max
}

/// The general values that an instruction defines.
fn defined(program: &Program, instr: Instr) -> impl Iterator<Item = Value> + '_ {
    let values = program.instrs[instr].dsts.iter().filter_map(|dst| dst.value());
    values.filter(|&value| program.values[value].class.file == RegFile::General)
}

fn step<'a>(
    program: &Program,
    liveness: &Liveness,
    instr: Instr,
    parts: &impl Fn(Value) -> &'a [Value],
    now: &mut Pressure,
    note: &mut impl FnMut(&Pressure),
) {
    let data = &program.instrs[instr];
    let is_general = |value: &Value| program.values[*value].class.file == RegFile::General;
    let killed = || {
        let srcs = data.srcs.iter().filter(|src| src.flags.contains(OperandFlags::FIRST_KILL));
        srcs.filter_map(|src| src.value()).filter(is_general)
    };
    let early = data.dsts.iter().any(|dst| super::assign::is_early(data, dst));
    if !early {
        killed().for_each(|value| now.remove(program, value));
    }
    defined(program, instr).for_each(|value| now.add(program, value));
    note(now);
    if early {
        killed().for_each(|value| now.remove(program, value));
    }
    for value in defined(program, instr) {
        let parts = parts(value);
        if !parts.is_empty() || !liveness.is_used(value) {
            now.remove(program, value);
        }
        parts.iter().filter(|&&part| liveness.is_used(part)).for_each(|&part| now.add(program, part));
    }
}
