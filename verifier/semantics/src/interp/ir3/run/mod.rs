//! Running a decoded program.

mod lanes;
mod memory;

use super::op::{Condition, ConstWidth, Copies, DecodedEdge, DecodedOp, Terminator};
use super::storage::{Active, Loc, Read, Storage};
use super::watch::Watch;
use super::{Decoded, InputSlot};
use crate::arithmetic::concrete::Concrete;
use crate::arithmetic::rows::{ALL_LANES, LANES, Row};
use crate::environment::env::{Env, lanes};
use crate::interp::filling::Filled;
use crate::interp::waves;
use crate::interp::waves::{Stop, WaveState};
use crate::interp::{ConstFile, End, OperationSite, Outcome, Outputs, Scratch, UndefinedReason};
use crate::operations::undefined;
use crate::operations::undefined::Partly;
use crate::operations::{Kernel, Select};
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{InputKind, Instr};
use smallvec::SmallVec;

/// A running wave.
pub(super) struct RunningWave<'a> {
    program: &'a Decoded,
    env: &'a Env,
    pub(super) state: WaveState,
    pub(super) storage: Storage,
    pub(super) active: Active,
    /// Lanes that have not ended.
    pub(super) alive: u64,
    /// The wave runs the preamble.
    runs_preamble: bool,
    consts: &'a mut ConstFile,
    /// Buffers for operands that are not whole slots, and for results before they are written.
    buffers: [Row; 4],
    /// The poisoned bits of a result before it is written.
    open: Row,
    /// The sources of moves, all of which are read before any destination is written.
    stage: Vec<Row>,
    /// The lanes that wait at each block.
    pending: Vec<u64>,
    /// The current block, and its next operation if it has begun.
    at: (usize, Option<u32>),
}

impl AsMut<WaveState> for RunningWave<'_> {
    fn as_mut(&mut self) -> &mut WaveState {
        &mut self.state
    }
}

/// An error ends the run.
pub(super) type RunResult = Result<(), End>;

/// Runs `program` once.
pub(super) fn run(program: &Decoded, env: &Env, fuel: u64, scratch: &mut Scratch) -> Outcome {
    run_watched(program, env, fuel, scratch, &mut ())
}

/// Runs `program` once, with an observer.
pub(super) fn run_watched<W: Watch>(
    program: &Decoded,
    env: &Env,
    fuel: u64,
    scratch: &mut Scratch,
    watch: &mut W,
) -> Outcome {
    let mut other = waves::second_scratch(program.waves, scratch);
    let mut wave = RunningWave::new(program, env, 0, scratch);
    let mut second = other.as_mut().map(|scratch| RunningWave::new(program, env, 1, scratch));
    let (outcome, memory) = waves::run(
        env,
        &mut wave,
        second.as_mut(),
        |wave| wave.run_to_barrier(fuel, watch),
        |wave| wave.run_to_barrier(fuel, &mut ()),
    );
    let (borrowed, borrowed_second) = (wave.finish(), second.map(RunningWave::finish));
    borrowed.return_buffers(scratch);
    if let (Some(scratch), Some(borrowed)) = (&mut other, borrowed_second) {
        borrowed.return_buffers(scratch);
    }
    waves::return_buffers(scratch, memory, other);
    outcome
}

/// The buffers that a wave borrows for its run.
pub(super) struct Borrowed {
    storage: Storage,
    stage: Vec<Row>,
    pending: Vec<u64>,
}

impl Borrowed {
    pub(super) fn return_buffers(self, scratch: &mut Scratch) {
        scratch.rows = self.storage.words;
        scratch.poison = self.storage.poison;
        scratch.partial = self.storage.partial;
        scratch.open = self.storage.open;
        scratch.temporaries = self.stage;
        scratch.masks = self.pending;
    }
}

impl<'a> RunningWave<'a> {
    /// Creates a wave at the start of the program, with borrowed buffers.
    pub(super) fn new(program: &'a Decoded, env: &'a Env, number: u32, scratch: &'a mut Scratch) -> Self {
        scratch.prepare(env, program.slots as usize, program.scratch_size);
        let mut pending = std::mem::take(&mut scratch.masks);
        pending.resize(program.blocks.len(), 0);
        let storage = Storage {
            words: std::mem::take(&mut scratch.rows),
            poison: std::mem::take(&mut scratch.poison),
            partial: std::mem::take(&mut scratch.partial),
            open: std::mem::take(&mut scratch.open),
            filled: scratch.filling.map(|filling| Filled::new(filling, program.slots, &program.narrow)),
        };
        let outputs = Outputs::declared(&program.declared);
        let memory = std::mem::take(&mut scratch.memory);
        let mut state = WaveState::new(env, program.launch, program.waves, number, memory, outputs);
        state.decisions = scratch.filling.map(|_| 0);
        let mut wave = RunningWave {
            program,
            env,
            storage,
            active: Active::none(),
            alive: state.lanes,
            runs_preamble: scratch.preamble_words.is_none(),
            state,
            stage: std::mem::take(&mut scratch.temporaries),
            consts: &mut scratch.consts,
            buffers: [[0; LANES]; 4],
            open: [0; LANES],
            pending,
            at: (0, None),
        };
        wave.start();
        wave
    }

    pub(super) fn finish(self) -> Borrowed {
        let Self { storage, stage, pending, .. } = self;
        Borrowed { storage, stage, pending }
    }

    /// Runs to the next barrier, or to the end.
    fn run_to_barrier<W: Watch>(&mut self, fuel: u64, watch: &mut W) -> Result<Stop, End> {
        let mut pending = std::mem::take(&mut self.pending);
        let stop = self.blocks(fuel, &mut pending, watch);
        self.pending = pending;
        stop
    }

    /// Initialises the slots that do not depend on lanes.
    fn start(&mut self) {
        let program = self.program;
        self.storage.reset(program.slots as usize);
        self.stage.resize(self.stage.len().max(program.stage), [0; LANES]);
        for &(bits, slot) in &program.immediates {
            self.storage.splat(slot, bits, false);
        }
        let mut row = [0; LANES];
        for param in &program.driver_params {
            self.env.system_value(self.state.launch, param.value, param.component.into(), &mut row);
            self.consts.write(param.word.into(), row[0], false);
        }
        for &(word, bits) in &program.driver_immediates {
            self.consts.write(word.into(), bits, false);
        }
        for &(word, width, slot) in &program.consts {
            let (value, poison) = self.consts.read(self.env, word.into());
            self.storage.splat(slot, converted(value, width), poison);
        }
    }

    /// Runs block after block until no lane is left, or to the next barrier.
    fn blocks<W: Watch>(&mut self, fuel: u64, pending: &mut [u64], watch: &mut W) -> Result<Stop, End> {
        let program = self.program;
        let (mut at, mut begun) = self.at;
        let mut mask = self.alive;
        loop {
            let block = &program.blocks[at];
            let start = begun.take().unwrap_or(block.start);
            if start == block.start {
                self.state.executed += u64::from(block.instructions.max(1));
                if self.state.executed > fuel {
                    return Err(End::OutOfFuel);
                }
                self.active.set(mask, self.alive);
                watch.enter(at, self.active.mask);
            }
            for op in start..block.end {
                watch.between(op + at as u32, self.active.mask, &mut self.storage, &mut self.state.memory);
                if let DecodedOp::Sync(sync) = program.ops[op as usize] {
                    if self.active.mask == 0 {
                        continue;
                    }
                    self.state.memory.trace_sync(sync, op, self.active.mask);
                    if self.state.sync_log.record(sync, &self.state.memory) {
                        self.at = (at, Some(op + 1));
                        return Ok(Stop::Barrier);
                    }
                    continue;
                }
                self.op(&program.ops[op as usize])?;
            }
            watch.between(block.end + at as u32, self.active.mask, &mut self.storage, &mut self.state.memory);
            let next = if self.active.mask == 0 { None } else { self.terminate(&block.terminator, pending)? };
            (at, mask) = match next {
                // All lanes are in one block.
                Some(to) => (to as usize, self.alive),
                None => {
                    let Some(first) = pending.iter().position(|&lanes| lanes != 0) else { return Ok(Stop::Done) };
                    (first, std::mem::take(&mut pending[first]))
                }
            };
        }
    }

    /// Moves the active lanes along the edges of a terminator; returns the next block if all active lanes go there.
    pub(super) fn terminate(&mut self, terminator: &Terminator, pending: &mut [u64]) -> Result<Option<u32>, End> {
        let mask = self.active.mask;
        match terminator {
            Terminator::End(start, end) => {
                for i in *start..*end {
                    let (output, component, read) = self.program.outputs[i as usize];
                    let (words, poison) = self.storage.read(&read, &mut self.buffers[0]);
                    self.state.outputs.write(output.base, output.component + component as u8, mask, words, poison);
                }
                self.alive &= !mask;
                Ok(None)
            }
            Terminator::Jump(edge) => Ok(self.leave(edge, mask, pending)),
            Terminator::Skip(condition, edge, instr) => {
                let awake = mask & !self.taken(condition, *instr)?;
                if awake != 0 {
                    return Err(self.undefined(UndefinedReason::Predication, *instr, awake));
                }
                Ok(self.leave(edge, mask, pending))
            }
            Terminator::Branch(condition, yes, no, instr) => {
                let taken = self.taken(condition, *instr)?;
                let yes = if taken == 0 { None } else { self.leave(yes, taken, pending) };
                let rest = mask & !taken;
                let no = if rest == 0 { None } else { self.leave(no, rest, pending) };
                Ok(yes.or(no))
            }
        }
    }

    /// Moves some of the active lanes along an edge.
    fn leave(&mut self, edge: &DecodedEdge, lanes: u64, pending: &mut [u64]) -> Option<u32> {
        if edge.copies.start != edge.copies.end {
            if lanes != self.active.mask {
                self.active.set(lanes, self.alive);
            }
            self.copies(&edge.copies);
        }
        if lanes == self.alive {
            return Some(edge.to);
        }
        pending[edge.to as usize] |= lanes;
        None
    }

    /// The active lanes that take the first edge of a branch.
    pub(super) fn taken(&mut self, condition: &Condition, instr: Instr) -> Result<u64, End> {
        let mask = self.active.mask;
        Ok(match condition {
            Condition::Is(a) => self.predicate(a, instr, UndefinedReason::Branch)?,
            Condition::And(a, b) => {
                let ((a, no_a), (b, no_b)) = (self.test(a), self.test(b));
                // If one of them is false, the other does not matter.
                let fails = !a & !no_a | !b & !no_b;
                self.decided((no_a | no_b) & !fails, a & b & !fails, instr)?
            }
            Condition::Or(a, b) => {
                let ((a, no_a), (b, no_b)) = (self.test(a), self.test(b));
                let holds = a & !no_a | b & !no_b;
                self.decided((no_a | no_b) & !holds, holds, instr)?
            }
            Condition::Any(a) => {
                if self.predicate(a, instr, UndefinedReason::Branch)? != 0 {
                    mask
                } else {
                    0
                }
            }
            Condition::All(a) => {
                if self.predicate(a, instr, UndefinedReason::Branch)? == mask {
                    mask
                } else {
                    0
                }
            }
            Condition::First => mask & mask.wrapping_neg(),
            Condition::Last => waves::go_on_at_getlast(mask),
            Condition::RunsPreamble if !self.program.ends_preamble => {
                return Err(self.undefined(UndefinedReason::PreambleEnd, instr, mask));
            }
            Condition::RunsPreamble if self.runs_preamble => mask,
            Condition::RunsPreamble => 0,
        })
    }

    /// The active lanes in which a predicate holds; it must be defined there.
    fn predicate(&mut self, read: &Read, instr: Instr, reason: UndefinedReason) -> Result<u64, End> {
        let (holds, poison) = self.test(read);
        let undefined = poison & self.active.mask;
        if undefined != 0 {
            return Err(self.undefined(reason, instr, undefined));
        }
        self.state.decide([holds]);
        Ok(holds)
    }

    /// The lanes that take a branch; ends the run if it is undefined in an active lane.
    fn decided(&mut self, poison: u64, taken: u64, instr: Instr) -> Result<u64, End> {
        match poison & self.active.mask {
            0 => self.state.decide([taken]),
            lanes => return Err(self.undefined(UndefinedReason::Branch, instr, lanes)),
        }
        Ok(taken)
    }

    /// The active lanes in which a value is not 0, and the lanes in which it is poison.
    fn test(&mut self, read: &Read) -> (u64, u64) {
        let (words, poison) = self.storage.read(read, &mut self.buffers[0]);
        let mut holds = 0;
        for (lane, &word) in words.iter().enumerate() {
            holds |= u64::from(word != 0) << lane;
        }
        let poison = if poison & self.active.mask == 0 {
            poison
        } else {
            self.storage.undecided(read, words, poison & self.active.mask)
        };
        (holds & self.active.mask, poison)
    }

    fn undefined(&self, reason: UndefinedReason, instr: Instr, lanes: u64) -> End {
        let site = self.program.sites.iter().find(|&&(at, _)| at == instr);
        let operation = site.map_or("an instruction", |&(_, name)| name);
        End::Undefined { reason, origin: OperationSite { operation, instr: instr.index() as u32, line: 0 }, lanes }
    }

    /// Ends or demotes the lanes where a predicate holds.
    fn kill(&mut self, read: &Read, instr: Instr, demote: bool) -> RunResult {
        let lanes = self.predicate(read, instr, UndefinedReason::Kill)?;
        self.state.killed |= lanes;
        if demote {
            self.state.helpers |= lanes;
        } else if lanes != 0 {
            self.alive &= !lanes;
            self.active.set(self.active.mask & !lanes, self.alive);
        }
        Ok(())
    }

    pub(super) fn op(&mut self, op: &DecodedOp) -> RunResult {
        if self.active.mask == 0 {
            return Ok(());
        }
        let Self { storage, active, buffers, open, .. } = self;
        let [a, b, c, out] = buffers;
        match op {
            DecodedOp::Alu1 { kernel, src, dst } => {
                let (x, poison) = storage.read(src, a);
                (kernel.run)(out, x);
                let poison = define(storage, poison & active.mask, Kernel::One(kernel), &[(x, src)], out, open);
                storage.write_partly(*dst, out, poison, open, active);
            }
            DecodedOp::Alu2 { kernel, srcs, dst } => {
                let (x, px) = storage.read(&srcs[0], a);
                let (y, py) = storage.read(&srcs[1], b);
                (kernel.run)(out, x, y);
                let operands = [(x, &srcs[0]), (y, &srcs[1])];
                let poison = define(storage, (px | py) & active.mask, Kernel::Two(kernel), &operands, out, open);
                storage.write_partly(*dst, out, poison, open, active);
            }
            DecodedOp::Alu3 { kernel, srcs, dst } => {
                let (x, px) = storage.read(&srcs[0], a);
                let (y, py) = storage.read(&srcs[1], b);
                let (z, pz) = storage.read(&srcs[2], c);
                (kernel.run)(out, x, y, z);
                let operands = [(x, &srcs[0]), (y, &srcs[1]), (z, &srcs[2])];
                let poison = (px | py | pz) & active.mask;
                let poison = define(storage, poison, Kernel::Three(kernel), &operands, out, open);
                storage.write_partly(*dst, out, poison, open, active);
            }
            DecodedOp::Select { select, srcs, dst } => {
                let (condition, undefined) = storage.read(&srcs[usize::from(select.condition)], a);
                let mask = (select.test.run)(condition);
                let (yes, py) = storage.read(&srcs[usize::from(select.yes)], b);
                let (no, pn) = storage.read(&srcs[usize::from(select.no)], c);
                Select::blend(out, mask, yes, no);
                let poison = Select::poison(mask, undefined, py, pn) & active.mask;
                let mut operands = [(condition, &srcs[0]), (condition, &srcs[1]), (condition, &srcs[2])];
                operands[usize::from(select.yes)].0 = yes;
                operands[usize::from(select.no)].0 = no;
                let poison = define(storage, poison, Kernel::Select(*select), &operands, out, open);
                storage.write_partly(*dst, out, poison, open, active);
            }
            DecodedOp::Apply { apply, src, dst } => {
                let poison = storage.fetch_partly(src, out, active.mask, open);
                *a = *out;
                (apply.run)(out);
                for lane in lanes(poison) {
                    let word = undefined::partly_modified(apply, Partly::new(a[lane], open[lane]));
                    (out[lane], open[lane]) = (word.bits, word.open);
                }
                storage.write_partly(*dst, out, poison, open, active);
            }
            DecodedOp::Copy(src, dst) => {
                let poison = storage.fetch_partly(src, out, active.mask, open);
                storage.write_partly(*dst, out, poison, open, active);
            }
            DecodedOp::Truth(src, dst) => {
                let mut poison = storage.fetch(src, out) & active.mask;
                if poison != 0 {
                    poison = storage.undecided(src, out, poison);
                    open.fill(1);
                }
                out.iter_mut().for_each(|word| *word = u32::from(*word != 0));
                storage.write_partly(*dst, out, poison, open, active);
            }
            DecodedOp::Copies(copies) => self.copies(copies),
            DecodedOp::Input(input) => {
                let InputSlot { kind, component, half, dst, clash } = self.program.inputs[*input as usize];
                match kind {
                    InputKind::System(value) => self.env.system_value(self.state.launch, value, component, out),
                    InputKind::Attribute { base, component: first } => {
                        self.env.attribute(base.into(), u32::from(first) + component, out);
                    }
                }
                if half {
                    out.iter_mut().for_each(|word| *word &= 0xffff);
                }
                storage.write(dst, out, if clash { ALL_LANES } else { 0 }, active);
            }
            DecodedOp::Gather { array, offset, index, to } => {
                let undefined = storage.fetch(index, a);
                let mut poison = 0;
                for lane in lanes(active.mask) {
                    let element = offset + i32::from(a[lane] as i16);
                    let exists = (0..array.length as i32).contains(&element) && undefined >> lane & 1 == 0;
                    (out[lane], open[lane]) = if exists {
                        let loc = array.loc(element as u32);
                        (storage.lane(loc, lane).0, storage.open_of(loc, lane))
                    } else {
                        (0, u32::MAX)
                    };
                    poison |= u64::from(open[lane] != 0) << lane;
                }
                let to = super::storage::Write { loc: Loc::whole(*to), shared: false };
                storage.write_partly(to, out, poison, open, active);
            }
            DecodedOp::Scatter { array, offset, index, from, instr } => {
                let undefined = storage.fetch(index, a);
                open.fill(0);
                storage.fetch_partly(from, b, active.mask, open);
                let mut outside = undefined & active.mask;
                for lane in lanes(active.mask & !undefined) {
                    let element = offset + i32::from(a[lane] as i16);
                    if (0..array.length as i32).contains(&element) {
                        storage.set_lane(array.loc(element as u32), lane, b[lane], open[lane]);
                    } else {
                        outside |= 1 << lane;
                    }
                }
                self.state.decide(lanes(active.mask).map(|lane| a[lane].into()));
                if outside != 0 {
                    return Err(self.undefined(UndefinedReason::Address, *instr, outside));
                }
            }
            DecodedOp::GatherConst { offset, index, width, to } => {
                let undefined = storage.fetch(index, a);
                let mut poison = undefined;
                for lane in lanes(active.mask) {
                    let word = offset + i32::from(a[lane] as i16);
                    let (value, bad) = self.consts.read(self.env, word as u32);
                    out[lane] = converted(value, *width);
                    poison |= u64::from(bad) << lane;
                }
                let to = super::storage::Write { loc: Loc::whole(*to), shared: false };
                storage.write(to, out, poison, active);
            }
            DecodedOp::Memory(access) => return self.access(*access),
            DecodedOp::Texture(access) => return self.sample(*access),
            DecodedOp::Kill(predicate, instr) => return self.kill(predicate, *instr, false),
            DecodedOp::Demote(predicate, instr) => return self.kill(predicate, *instr, true),
            DecodedOp::Decided(predicate, instr) => {
                self.predicate(predicate, *instr, UndefinedReason::LaneNumber)?;
            }
            op => self.cross_lane(op),
        }
        Ok(())
    }

    /// Executes moves, all at once.
    fn copies(&mut self, copies: &Copies) {
        let list = &self.program.copies[copies.start as usize..copies.end as usize];
        let Self { storage, active, buffers: [.., out], open, .. } = self;
        if !copies.staged {
            for (read, write) in list {
                let poison = storage.fetch_partly(read, out, active.mask, open);
                storage.write_partly(*write, out, poison, open, active);
            }
            return;
        }
        // Three rows each: the words, the bits that are poison, and the mask of lanes where some are, in two words.
        for ((read, _), rows) in list.iter().zip(self.stage.chunks_exact_mut(3)) {
            let [words, open, masks] = rows else { continue };
            let poison = storage.fetch_partly(read, words, active.mask, open);
            masks[..2].copy_from_slice(&[poison as u32, (poison >> 32) as u32]);
        }
        for ((_, write), rows) in list.iter().zip(self.stage.chunks_exact(3)) {
            let [words, open, [low, high, ..]] = rows else { continue };
            storage.write_partly(*write, words, u64::from(*low) | u64::from(*high) << 32, open, active);
        }
    }
}

/// The poison of a result whose operands are partly poison: the lanes with poisoned bits, and these bits.
#[inline]
fn define(
    storage: &Storage,
    poison: u64,
    kernel: Kernel,
    operands: &[(&Row, &Read)],
    out: &mut Row,
    open: &mut Row,
) -> u64 {
    if poison == 0 { 0 } else { define_lanes(storage, poison, kernel, operands, out, open) }
}

#[cold]
fn define_lanes(
    storage: &Storage,
    mut poison: u64,
    kernel: Kernel,
    operands: &[(&Row, &Read)],
    out: &mut Row,
    open: &mut Row,
) -> u64 {
    for lane in lanes(poison) {
        let operand = |(row, read): &(&Row, &Read)| Partly::new(row[lane], storage.open_bits(read, lane));
        let operands: SmallVec<[Partly; 4]> = operands.iter().map(operand).collect();
        let result = undefined::partly(kernel, &operands)[0];
        (out[lane], open[lane]) = (result.bits, result.open);
        if result.open == 0 {
            poison &= !(1 << lane);
        }
    }
    poison
}

/// The value that an operand of this width reads from a word of the constant file.
fn converted(word: u32, width: ConstWidth) -> u32 {
    width.of(&mut Concrete, word.into()) as u32
}
