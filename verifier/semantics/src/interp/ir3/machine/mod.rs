//! The machine: runs final code as unforgivingly as the hardware does.
//!
//! *Control flow.* The wave has one position, and executes the instruction there, branch offsets and layout included.
//! Lanes that diverge wait on a branch stack, and join at `(jp)`, as `prove::hazards::flow` describes; `predt` and
//! `predf` make lanes inactive until `prede`. Lanes that wait where nothing has them join end the run as undefined.
//!
//! *Time.* Each issue slot is counted. A result that is read before its slots have passed is poison for that read. A
//! result of another unit is poison until the `(ss)` or `(sy)` that covers it, and poison for good if it is overwritten
//! before that; a source that is overwritten while it may not have been read makes the results of its reader poison.
//! That is the worst order of completion; others are tried too ([`Completion`]). The rules of time are those of
//! `semantics::machine`, the results of instructions are defined by their decoded operations.
//!
//! *Releases.* A use of varyings, helper lanes or an address after their release ends the run as undefined, if hazards
//! do ([`Hazards`]).

mod choices;
mod constants;
mod decode;
mod relative;
mod releases;
#[cfg(test)]
mod tests;
mod time;

use super::op::Terminator;
use super::run::{Borrowed, RunningWave};
use super::slots::RegisterBases;
use super::storage::{Loc, Storage};
use super::{Decoded, Unsupported};
use crate::environment::env::{Env, lanes, nice, nice_float};

use crate::interp::waves::{self, Stop, WaveState};
use crate::interp::{End, OperationSite, Outcome, Scratch, UndefinedReason};
use crate::machine::rules::Slots;
use crate::machine::steps::{FinalCode, NotFinal, StepError, Steps};
use crate::machine::units::{self, Piece};
use crate::pair::PairFacts;
use crate::support::random::hash;
use choices::Choices;
use constants::ConstWrites;
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{InstrData, InstrFlags, Opcode, Program};
use ir3_compiler::machine::Code;
use ir3_compiler::target::Target;
use relative::Elements;
use releases::{Released, Releases};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use time::Clock;

/// The time at which results of other units than the ALU are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Results are available as late as possible: when a reader waits for them.
    Latest,
    /// Results are available at once.
    Earliest,
    /// Some results are available at once, the others as late as possible.
    Random(u64),
}

/// The effect of a hazard: a result that is read or overwritten before it is available, a source that is overwritten
/// before it has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hazards {
    /// It ends the run as undefined, at the instruction.
    End,
    /// It makes registers poison: a value that nothing observable depends on does no harm.
    Poison,
}

/// The contents of registers at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The inputs of the interface; the others are poison.
    Interface,
    /// The inputs, and arbitrary values of a seed, the same in every run, in the others: for code whose interface is
    /// not known.
    Arbitrary(u64),
}

/// Final code that is ready to run, any number of times.
#[derive(Clone, Debug)]
pub struct Machine {
    decoded: Decoded,
    steps: Steps,
    /// For each position, true if lanes that wait there join.
    joins: Vec<bool>,
    opcodes: Vec<Opcode>,
    releases: Releases,
    /// The instructions with relative accesses.
    relative: FxHashMap<usize, InstrData>,
    target: Target,
    bases: RegisterBases,
    prefetched: Vec<Piece>,
    branch_stack: usize,
    start: Start,
    hazards: Hazards,
    choices: Option<Choices>,
}

impl Machine {
    /// Decodes a final program: its inputs and outputs are those that it names. A hazard ends a run.
    ///
    /// # Errors
    /// If it is not final, or as [`Machine::new`].
    pub fn of_program(program: &Program, target: &Target) -> Result<Self, Unsupported> {
        let code = FinalCode::of_program(program, target).map_err(|error| match error {
            NotFinal::Code(error) => {
                Unsupported { what: format!("a program that is not final: {}", error.what), place: error.place }
            }
            NotFinal::Register(error) => no_register(error),
        })?;
        Self::of_final(code, target)
    }

    /// Like [`of_program`](Self::of_program), of code with its steps.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn of_final(code: FinalCode, target: &Target) -> Result<Self, Unsupported> {
        Ok(Self { hazards: Hazards::End, ..Self::with_steps(code, target, Start::Interface)? })
    }

    /// Decodes final code.
    ///
    /// # Errors
    /// If an instruction is not supported, or the text does not determine its meaning.
    pub fn new(code: &Code, target: &Target, start: Start) -> Result<Self, Unsupported> {
        Self::with_steps(FinalCode::new(code.clone(), target).map_err(no_register)?, target, start)
    }

    fn with_steps(code: FinalCode, target: &Target, start: Start) -> Result<Self, Unsupported> {
        let FinalCode { code, steps } = code;
        let releases = Releases::of(&code, &steps, target);
        let joins = code.instrs.values().map(|instr| instr.data.flags.contains(InstrFlags::JP)).collect();
        let opcodes = code.instrs.values().map(|instr| instr.data.opcode).collect();
        let relative = code
            .instrs
            .iter()
            .filter(|(_, instr)| relative::is_relative(&instr.data))
            .map(|(ip, instr)| (ip.index(), instr.data.clone()))
            .collect();
        let prefetched = units::prefetched(&code, target);
        let (decoded, bases) = decode::decode(code, &steps, target)?;
        Ok(Self {
            decoded,
            steps,
            joins,
            opcodes,
            releases,
            relative,
            target: *target,
            bases,
            prefetched,
            branch_stack: target.branchstack_size as usize,
            start,
            hazards: Hazards::Poison,
            choices: None,
        })
    }

    /// Returns the machine with branches chosen by a seed, independent of their predicates: each path of the code is
    /// that of some seed.
    #[must_use]
    pub fn with_choices(self, code: &Code, seed: u64) -> Self {
        Self { choices: Some(Choices::new(code, seed)), ..self }
    }

    /// Returns the machine for the code as one program of a pair.
    #[must_use]
    pub fn in_pair(self, facts: PairFacts) -> Self {
        Self { decoded: self.decoded.in_pair(facts), ..self }
    }

    /// Returns the machine with other consequences of hazards.
    #[must_use]
    pub fn with_hazards(self, hazards: Hazards) -> Self {
        Self { hazards, ..self }
    }

    /// Runs the code in an environment, for at most `fuel` instructions.
    pub fn run(&self, env: &Env, completion: Completion, fuel: u64, scratch: &mut Scratch) -> Outcome {
        let mut other = waves::second_scratch(self.decoded.waves, scratch);
        let mut wave = MachineWave::new(self, env, completion, 0, scratch);
        let mut second = other.as_mut().map(|scratch| MachineWave::new(self, env, completion, 1, scratch));
        let (outcome, memory) = waves::run(
            env,
            &mut wave,
            second.as_mut(),
            |wave| wave.run_to_barrier(fuel),
            |wave| wave.run_to_barrier(fuel),
        );
        let (borrowed, borrowed_second) = (wave.finish(), second.map(MachineWave::finish));
        borrowed.return_buffers(scratch);
        if let (Some(scratch), Some(borrowed)) = (&mut other, borrowed_second) {
            borrowed.return_buffers(scratch);
        }
        waves::return_buffers(scratch, memory, other);
        outcome
    }
}

fn no_register(error: StepError) -> Unsupported {
    Unsupported { what: format!("`{}`: no register {}", error.opcode, error.number), place: error.at.to_string() }
}

/// A running wave.
struct MachineWave<'a> {
    machine: &'a Machine,
    wave: RunningWave<'a>,
    clock: Clock,
    released: Released,
    const_writes: ConstWrites,
    elements: Elements,
    /// The position.
    at: usize,
    /// Lanes that wait, by position.
    waiting: SmallVec<[(usize, u64); 4]>,
    /// The lanes that were active before predication.
    predicated: Option<u64>,
    /// The inputs have been written.
    begun: bool,
    /// The number of executions of each branch, if these are chosen.
    executions: Vec<u64>,
}

impl AsMut<WaveState> for MachineWave<'_> {
    fn as_mut(&mut self) -> &mut WaveState {
        self.wave.as_mut()
    }
}

/// The block of an instruction: the first one has the inputs.
const fn block_of(at: usize) -> usize {
    at + 1
}

impl<'a> MachineWave<'a> {
    fn new(machine: &'a Machine, env: &'a Env, completion: Completion, number: u32, scratch: &'a mut Scratch) -> Self {
        let mut wave = RunningWave::new(&machine.decoded, env, number, scratch);
        if let Start::Arbitrary(seed) = machine.start {
            fill(&mut wave.storage, &machine.bases, seed);
        }
        let clock = Clock::new(completion, Slots::of(&machine.target));
        Self {
            machine,
            wave,
            clock,
            released: Released::default(),
            const_writes: ConstWrites::default(),
            elements: Elements::default(),
            at: 0,
            waiting: SmallVec::new(),
            predicated: None,
            begun: false,
            executions: machine.choices.as_ref().map(Choices::executions).unwrap_or_default(),
        }
    }

    fn finish(self) -> Borrowed {
        self.wave.finish()
    }

    /// Runs to the next barrier, or to the end.
    fn run_to_barrier(&mut self, fuel: u64) -> Result<Stop, End> {
        if !std::mem::replace(&mut self.begun, true) {
            self.activate(self.wave.alive);
            let block = &self.machine.decoded.blocks[0];
            for op in block.start..block.end {
                self.wave.op(&self.machine.decoded.ops[op as usize])?;
            }
            self.clock.prefetched(&self.machine.prefetched, self.wave.alive);
        }
        loop {
            // If predication leaves no lane active, the wave still continues to its end.
            if self.wave.active.mask == 0 && self.predicated.is_none() && !self.turn()? {
                return Ok(Stop::Done);
            }
            if self.at >= self.machine.joins.len() {
                return Err(self.undefined(UndefinedReason::LeavesCode));
            }
            if self.machine.joins[self.at] && !self.waiting.is_empty() {
                self.join();
            }
            self.wave.state.executed += 1;
            if self.wave.state.executed > fuel {
                return Err(End::OutOfFuel);
            }
            let at = self.at;
            let stops = self.step()?;
            if self.at == at && stops {
                self.at += 1;
                return Ok(Stop::Barrier);
            }
        }
    }

    fn activate(&mut self, lanes: u64) {
        self.wave.active.set(lanes, self.wave.alive);
    }

    /// The lanes that wait at this position become active.
    fn join(&mut self) {
        let here = self.at;
        let mut lanes = self.wave.active.mask;
        self.waiting.retain(|(at, mask)| {
            let joins = *at == here;
            lanes |= if joins { *mask } else { 0 };
            !joins
        });
        self.activate(lanes);
    }

    /// The wave continues with the first lanes that wait, at this position or after it; returns false if none wait.
    /// (Lanes that were killed right before a position where others wait leave the wave at it.)
    fn turn(&mut self) -> Result<bool, End> {
        let next = self.waiting.iter().map(|&(at, _)| at).filter(|&at| at >= self.at).min();
        let Some(next) = next else {
            // Lanes that wait at an earlier position never run again.
            return if self.waiting.is_empty() {
                Ok(false)
            } else {
                Err(self.undefined(UndefinedReason::Reconvergence))
            };
        };
        self.at = next;
        if !self.machine.joins[next] {
            return Err(self.undefined(UndefinedReason::Reconvergence));
        }
        self.activate(0);
        self.join();
        Ok(true)
    }

    fn wait(&mut self, at: usize, lanes: u64) -> Result<(), End> {
        match self.waiting.iter_mut().find(|(other, _)| *other == at) {
            Some((_, mask)) => *mask |= lanes,
            None => self.waiting.push((at, lanes)),
        }
        if self.waiting.len() > self.machine.branch_stack {
            return Err(self.undefined(UndefinedReason::Reconvergence));
        }
        Ok(())
    }

    /// The active lanes go to a position.
    fn go(&mut self, to: usize) -> Result<(), End> {
        let passes = self.waiting.iter().any(|&(at, _)| at > self.at && at < to);
        if passes {
            self.wait(to, self.wave.active.mask)?;
            self.activate(0);
            self.turn()?;
        } else {
            self.at = to;
        }
        Ok(())
    }

    /// Executes the instruction at the position; returns true at a barrier.
    fn step(&mut self) -> Result<bool, End> {
        let machine = self.machine;
        let at = self.at;
        let step = &machine.steps.steps[at];
        let lanes = self.wave.active.mask;
        self.clock.wait(step);
        let groups = self.elements_of(at);
        let early = match &groups {
            None => self.clock.begin(step, &machine.steps, &machine.steps, lanes),
            Some(groups) => {
                let mut early = SmallVec::new();
                for &(address, lanes) in groups {
                    if let Some(steps) = self.elements.of(at, &machine.relative[&at], address, &machine.target) {
                        early.extend(self.clock.begin(&steps.steps[0], steps, &machine.steps, lanes));
                    }
                }
                early
            }
        };
        if let Some((reason, lanes)) = self.clock.hazard().filter(|_| machine.hazards == Hazards::End) {
            return Err(self.undefined_in(reason, lanes));
        }
        let consts = self.const_writes.step(step, machine.steps.const_words(&step.const_reads));
        let broken = self.released.step(at, step, &machine.releases).or(consts);
        if let Some(reason) = broken.filter(|_| machine.hazards == Hazards::End) {
            return Err(self.undefined(reason));
        }
        let saved = if early.is_empty() { SmallVec::new() } else { self.poison_reads(&early) };
        let ended = self.wave.state.killed;
        let result = self.execute(at);
        self.restore(&saved, at);
        let next = result?;
        let ended = self.wave.state.killed & !ended;
        if ended != 0 && machine.hazards == Hazards::End && machine.releases.stays(at) {
            return Err(self.undefined_in(UndefinedReason::StaysInLoop, ended));
        }
        match &groups {
            None => self.clock.add(at, step, &machine.steps, lanes),
            Some(groups) => {
                for &(address, lanes) in groups {
                    if let Some(steps) = self.elements.of(at, &machine.relative[&at], address, &machine.target) {
                        self.clock.add(at, &steps.steps[0], steps, lanes);
                    }
                }
            }
        }
        self.clock.pass(step);
        let lost = self.clock.take_poisoned();
        for &(bit, lanes) in &lost {
            machine.bases.poison(&mut self.wave.storage, bit, lanes);
        }
        if let Some(lanes) = self.clock.take_overwritten() {
            return Err(self.undefined_in(UndefinedReason::Overwritten, lanes));
        }
        match next {
            Next::Barrier => return Ok(true),
            Next::Ended => {}
            Next::To(to) => self.go(to)?,
            Next::Split { taken, target, other } => {
                let rest = self.wave.active.mask & !taken;
                let (first, later) =
                    if target < other { ((target, taken), (other, rest)) } else { ((other, rest), (target, taken)) };
                self.wait(later.0, later.1)?;
                self.activate(first.1);
                self.go(first.0)?;
            }
        }
        Ok(false)
    }

    /// The values of `a0.x` in the active lanes, with their lanes, if the instruction accesses registers relative to
    /// it.
    fn elements_of(&self, at: usize) -> Option<SmallVec<[(i16, u64); 4]>> {
        if self.machine.relative.is_empty() || !self.machine.relative.contains_key(&at) {
            return None;
        }
        let mut groups: SmallVec<[(i16, u64); 4]> = SmallVec::new();
        let slot = self.machine.bases.address()?;
        for lane in lanes(self.wave.active.mask) {
            let (value, poisoned) = self.wave.storage.lane(Loc::whole(slot), lane);
            let address = value as i16;
            match groups.iter_mut().find(|(known, _)| *known == address) {
                // An access at an undefined address has an undefined result.
                _ if poisoned => {}
                Some((_, lanes)) => *lanes |= 1 << lane,
                None => groups.push((address, 1 << lane)),
            }
        }
        Some(groups)
    }

    /// Executes the operations of an instruction; returns where the wave continues.
    fn execute(&mut self, at: usize) -> Result<Next, End> {
        let machine = self.machine;
        let block = &machine.decoded.blocks[block_of(at)];
        for op in block.start..block.end {
            let op = &machine.decoded.ops[op as usize];
            if let super::op::DecodedOp::Sync(sync) = *op {
                if self.wave.state.sync_log.record(sync, &self.wave.state.memory) {
                    return Ok(Next::Barrier);
                }
                continue;
            }
            self.wave.op(op)?;
        }
        let position = |to: u32| to as usize - 1;
        match &block.terminator {
            Terminator::End(..) if !matches!(machine.opcodes[at], Opcode::End | Opcode::Chmask) => {
                self.at = at + 1;
                Err(self.undefined(UndefinedReason::LeavesCode))
            }
            terminator @ Terminator::End(..) => {
                self.wave.terminate(terminator, &mut [])?;
                self.activate(0);
                Ok(Next::Ended)
            }
            Terminator::Jump(edge) => {
                if machine.opcodes[at] == Opcode::Prede
                    && let Some(lanes) = self.predicated.take()
                {
                    self.activate(lanes & self.wave.alive);
                }
                Ok(Next::To(position(edge.to)))
            }
            Terminator::Skip(condition, edge, instr) => {
                let lanes = *self.predicated.get_or_insert(self.wave.active.mask) & self.wave.alive;
                self.activate(lanes);
                let skipped = self.wave.taken(condition, *instr)?;
                self.activate(lanes & !skipped);
                Ok(Next::To(position(edge.to)))
            }
            Terminator::Branch(condition, yes, no, instr) => {
                let mut taken = self.wave.taken(condition, *instr)?;
                if let Some(choices) = &machine.choices {
                    taken = choices.choose(at, taken, self.wave.active.mask, &mut self.executions);
                }
                let (target, other) = (position(yes.to), position(no.to));
                Ok(if taken == self.wave.active.mask {
                    Next::To(target)
                } else if taken == 0 {
                    Next::To(other)
                } else {
                    Next::Split { taken, target, other }
                })
            }
        }
    }

    /// Makes registers poison for one instruction; returns their contents.
    fn poison_reads(&mut self, early: &[(u16, u64)]) -> SmallVec<[Saved; 4]> {
        let storage = &mut self.wave.storage;
        let mut saved = SmallVec::new();
        for &(bit, lanes) in early {
            let Some((slot, parts)) = self.machine.bases.slot(bit) else { continue };
            let at = 2 * slot as usize;
            let masks = [storage.poison[at], storage.poison[at + 1]];
            saved.push(Saved { bit, slot, masks, parts, partial: storage.partial[slot as usize] });
            self.machine.bases.poison(storage, bit, lanes);
        }
        saved
    }

    /// Restores the registers that an instruction does not write.
    fn restore(&mut self, saved: &[Saved], at: usize) {
        let steps = &self.machine.steps;
        let written = |bit: u16| {
            let writes = steps.operands(&steps.steps[at].writes);
            writes.iter().any(|operand| (operand.piece.bit..operand.piece.bit + operand.piece.width).contains(&bit))
        };
        for Saved { bit, slot, masks, parts, partial } in saved.iter().rev() {
            if written(*bit) {
                continue;
            }
            let at = 2 * *slot as usize;
            for part in 0..2 {
                if parts[part] {
                    self.wave.storage.poison[at + part] = masks[part];
                }
            }
            self.wave.storage.partial[*slot as usize] = *partial;
        }
    }

    fn undefined(&self, reason: UndefinedReason) -> End {
        self.undefined_in(reason, self.wave.alive)
    }

    fn undefined_in(&self, reason: UndefinedReason, lanes: u64) -> End {
        let operation = self.machine.opcodes.get(self.at).map_or("the end of the code", |opcode| opcode.name());
        End::Undefined { reason, origin: OperationSite { operation, instr: self.at as u32, line: 0 }, lanes }
    }
}

/// Poison masks of a slot before they were changed.
struct Saved {
    bit: u16,
    slot: u32,
    masks: [u64; 2],
    parts: [bool; 2],
    partial: u64,
}

/// The continuation of the wave.
enum Next {
    /// It waits for other waves.
    Barrier,
    /// The active lanes have ended.
    Ended,
    /// All active lanes go there.
    To(usize),
    /// Some lanes go to the target, others to the other position.
    Split { taken: u64, target: usize, other: usize },
}

/// Gives registers values; the kind of values is that of the seed's last two bits.
fn fill(storage: &mut Storage, bases: &RegisterBases, seed: u64) {
    for (slots, uniform) in bases.fillable() {
        for slot in slots {
            for lane in 0..64u64 {
                let value = hash(&[seed, u64::from(slot), if uniform { 0 } else { lane }]);
                storage.words[slot as usize][lane as usize] = match seed & 3 {
                    0 => nice(value),
                    1 => nice_float(value),
                    2 => value as u32 % 9,
                    _ => value as u32 & 0x3fff_ffff,
                };
            }
            storage.poison[2 * slot as usize] = 0;
            storage.poison[2 * slot as usize + 1] = 0;
        }
    }
}
