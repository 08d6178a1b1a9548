//! Running a decoded shader.

mod arrays;
mod freedoms;
mod lanes;
mod memory;
mod notes;
mod precision;

pub use freedoms::{DENORMALS, is_open};
pub use precision::has_error;

use super::Decoded;
use super::op::{Adapt, DecodedCode, DecodedOp, EnvironmentInput, List, R, UNDEFINED};
use super::watch::{RunView, Watch};
use crate::arithmetic::concrete::Concrete;
use crate::arithmetic::float;
use crate::arithmetic::rows::{ALL_LANES, LANES, Row, splat};
use crate::environment::env::{CONST_WORDS, Env, lanes};
use crate::interp::filling::Filled;
use crate::interp::waves;
use crate::interp::waves::{Stop, WaveState};
use crate::interp::{ConstFile, End, Outcome, Outputs, Scratch, UndefinedReason};
use crate::operations::undefined;
use crate::operations::undefined::Partly;
use crate::operations::{Kernel, Select};
use crate::pair::PairFacts;
use smallvec::SmallVec;

/// A running wave.
struct RunningWave<'a> {
    code: &'a DecodedCode,
    facts: PairFacts,
    env: &'a Env,
    state: WaveState,
    rows: &'a mut [Row],
    poison: &'a mut [u64],
    /// The lanes of each row that are poison only in the bits of `open`; other poisoned lanes are poison as a whole.
    partial: &'a mut [u64],
    open: &'a mut [Row],
    /// The values of undefined bits, if they have any.
    filled: Option<Filled>,
    /// The wave runs the preamble.
    runs_preamble: bool,
    /// Lanes that wait, by slot.
    slots: &'a mut [u64],
    temporaries: &'a mut Vec<Row>,
    consts: &'a mut ConstFile,
    active: u64,
    /// The next operation.
    pc: u32,
}

impl AsMut<WaveState> for RunningWave<'_> {
    fn as_mut(&mut self) -> &mut WaveState {
        &mut self.state
    }
}

/// An error ends the run.
type RunResult = Result<(), End>;

pub(super) fn run(program: &Decoded, env: &Env, fuel: u64, scratch: &mut Scratch) -> Outcome {
    run_watched(program, env, fuel, scratch, &mut ())
}

/// Runs a shader once, with an observer.
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
    waves::return_buffers(scratch, memory, other);
    outcome
}

/// The lanes where a row is not 0.
#[inline]
fn nonzero(row: &Row) -> u64 {
    let mut mask = 0;
    for (lane, &value) in row.iter().enumerate() {
        mask |= u64::from(value != 0) << lane;
    }
    mask
}

/// Replaces some lanes of a row.
#[inline]
fn blend(dst: &mut Row, mask: u64, src: &Row) {
    if mask == ALL_LANES {
        *dst = *src;
    } else {
        for lane in 0..LANES {
            if mask >> lane & 1 != 0 {
                dst[lane] = src[lane];
            }
        }
    }
}

impl<'a> RunningWave<'a> {
    /// Creates a wave at the start of the shader, with borrowed buffers.
    fn new(program: &'a Decoded, env: &'a Env, number: u32, scratch: &'a mut Scratch) -> Self {
        let code = &program.code;
        scratch.prepare(env, code.rows as usize, program.scratch_size);
        scratch.masks.resize(code.slots as usize, 0);
        let filled = scratch.filling.map(|filling| Filled::new(filling, code.rows, &code.narrow));
        let (keeps_promises, runs_preamble) = (scratch.keeps_promises, scratch.preamble_words.is_none());
        let Scratch { rows, poison, partial, open, temporaries, masks, memory, consts, .. } = scratch;
        poison[..code.rows as usize].fill(0);
        poison[UNDEFINED as usize] = ALL_LANES;
        rows[UNDEFINED as usize] = [0; LANES];
        partial[UNDEFINED as usize] = 0;
        if let Some(filled) = &filled {
            poison[UNDEFINED as usize] = 0;
            filled.fill(UNDEFINED, &mut rows[UNDEFINED as usize], ALL_LANES, |_| u32::MAX);
        }
        for &(row, bits) in &code.constants {
            rows[row as usize] = splat(bits);
        }
        let outputs = Outputs::declared(&code.declared);
        let mut state = WaveState::new(env, program.launch, program.waves, number, std::mem::take(memory), outputs);
        state.decisions = filled.as_ref().map(|_| 0);
        state.keeps_promises = keeps_promises;
        let active = state.lanes;
        let slots = masks;
        let facts = program.facts;
        RunningWave {
            code,
            facts,
            env,
            state,
            rows,
            poison,
            partial,
            open,
            filled,
            runs_preamble,
            slots,
            temporaries,
            consts,
            active,
            pc: 0,
        }
    }

    /// Runs to the next barrier, or to the end.
    fn run_to_barrier<W: Watch>(&mut self, fuel: u64, watch: &mut W) -> Result<Stop, End> {
        if self.pc == 0
            && let Some(&(_, origin)) = self.code.unaliased.iter().find(|&&(name, _)| !self.env.keeps_alone(name))
        {
            return Err(self.undefined(UndefinedReason::Alias, origin, self.active));
        }
        self.execute(fuel, watch)
    }

    fn execute<W: Watch>(&mut self, fuel: u64, watch: &mut W) -> Result<Stop, End> {
        let code = self.code;
        let mut pc = self.pc;
        let compares_floats = self.facts.both_nir && !code.floats.is_empty();
        let modes = self.env.device.and_then(|device| device.modes);
        let mut last = pc;
        loop {
            if (compares_floats || modes.is_some())
                && let Some(&site) = code.floats.get(&last)
            {
                if let Some(modes) = &modes {
                    self.open_result(last, site, modes);
                }
                if compares_floats {
                    self.note_float(last, site.exact);
                }
            }
            last = pc;
            let op = code.ops[pc as usize];
            let view =
                RunView { rows: self.rows, poison: self.poison, memory: &mut self.state.memory, active: self.active };
            watch.before(pc, code, view);
            pc += 1;
            match op {
                DecodedOp::One { kernel, dst, a, keep } => {
                    let poison = self.poison[a as usize];
                    self.compute(dst, keep, poison, |out, rows| (kernel.run)(out, &rows[a as usize]));
                    self.define(poison, Kernel::One(kernel), &[a], dst, 1);
                }
                DecodedOp::Two { kernel, dst, a, b, keep } => {
                    let poison = self.poison[a as usize] | self.poison[b as usize];
                    self.compute(dst, keep, poison, |out, rows| {
                        (kernel.run)(out, &rows[a as usize], &rows[b as usize])
                    });
                    self.define(poison, Kernel::Two(kernel), &[a, b], dst, 1);
                }
                DecodedOp::Three { kernel, dst, a, b, c, keep } => {
                    let rows = [a, b, c];
                    let [a, b, c] = rows.map(|row| row as usize);
                    let poison = self.poison[a] | self.poison[b] | self.poison[c];
                    self.compute(dst, keep, poison, |out, rows| (kernel.run)(out, &rows[a], &rows[b], &rows[c]));
                    self.define(poison, Kernel::Three(kernel), &rows, dst, 1);
                }
                DecodedOp::Select { select, dst, a, b, c, keep } => {
                    let mut rows = [a; 3];
                    rows[usize::from(select.yes)] = b;
                    rows[usize::from(select.no)] = c;
                    let [a, b, c] = [a, b, c].map(|row| row as usize);
                    let mask = (select.test.run)(&self.rows[a]);
                    let poison = Select::poison(mask, self.poison[a], self.poison[b], self.poison[c]);
                    self.compute(dst, keep, poison, |out, rows| Select::blend(out, mask, &rows[b], &rows[c]));
                    self.define(poison, Kernel::Select(select), &rows, dst, 1);
                }
                DecodedOp::Wide(index) => self.wide(index),
                DecodedOp::Sum(index) => self.sum(index),
                DecodedOp::AddConst { dst, a, constant } => {
                    let poison = self.poison[a as usize];
                    self.compute(dst, true, poison, |out, rows| {
                        for (out, value) in out.iter_mut().zip(&rows[a as usize]) {
                            *out = value.wrapping_add(constant);
                        }
                    });
                    if poison & self.active != 0 {
                        self.add_to_partial(a, constant, dst);
                    }
                }
                DecodedOp::Input { input, dst } => self.input(&code.inputs[input as usize], dst),
                DecodedOp::Lanes(index) => self.across_lanes(&code.lanes[index as usize])?,
                DecodedOp::ArrayLoad(index) => self.array_load(&code.arrays[index as usize]),
                DecodedOp::ArrayStore(index) => self.array_store(&code.arrays[index as usize])?,
                DecodedOp::ArrayInit { first, count, .. } => {
                    let rows = first as usize..(first + count) as usize;
                    self.poison[rows.clone()].iter_mut().for_each(|poison| *poison |= self.active);
                    self.partial[rows.clone()].iter_mut().for_each(|partial| *partial &= !self.active);
                    rows.for_each(|row| blend(&mut self.rows[row], self.active, &[0; LANES]));
                }
                DecodedOp::Access(index) => self.access(&code.accesses[index as usize])?,
                DecodedOp::Texture(index) => self.texture(&code.textures[index as usize])?,
                DecodedOp::StoreOutput(index) => {
                    let output = &code.outputs[index as usize];
                    let row = output.row as usize;
                    self.state.outputs.write(
                        output.base,
                        output.component,
                        self.active,
                        &self.rows[row],
                        self.poison[row],
                    );
                    self.output_ties(output.base, output.component, output.row);
                }
                DecodedOp::StoreConst(index) => {
                    let output = &code.outputs[index as usize];
                    let (row, lane) = (output.row as usize, self.active.trailing_zeros() as usize);
                    let poison = self.poison[row] >> lane & 1 != 0;
                    self.consts.write(output.base.into(), self.rows[row][lane], poison);
                }
                DecodedOp::Moves { list, staged } => self.moves(list, staged),
                DecodedOp::Kill { condition, demote, origin, empty } => {
                    self.kill(condition, demote, origin)?;
                    if self.active == 0 {
                        pc = empty;
                    }
                }
                DecodedOp::Block(count) => {
                    self.state.executed += u64::from(count);
                    if self.state.executed > fuel {
                        return Err(End::OutOfFuel);
                    }
                }
                DecodedOp::If { condition, slot, otherwise, origin } => {
                    let taken = self.condition(condition, origin, UndefinedReason::Branch)?;
                    self.slots[slot as usize] = self.active & !taken;
                    self.active = taken;
                    if taken == 0 {
                        pc = otherwise;
                    }
                }
                DecodedOp::Else { slot, end } => {
                    std::mem::swap(&mut self.slots[slot as usize], &mut self.active);
                    if self.active == 0 {
                        pc = end;
                    }
                }
                DecodedOp::EndIf { slot, empty } | DecodedOp::Exit { slot, empty } => {
                    self.active |= std::mem::take(&mut self.slots[slot as usize]);
                    if self.active == 0 {
                        pc = empty;
                    }
                }
                DecodedOp::Loop { slot } => self.slots[slot as usize] = 0,
                DecodedOp::Break { slot, empty } | DecodedOp::Continue { slot, empty } => {
                    self.slots[slot as usize] |= std::mem::take(&mut self.active);
                    pc = empty;
                }
                DecodedOp::Gather { slot, exit } => {
                    self.active |= std::mem::take(&mut self.slots[slot as usize]);
                    if self.active == 0 {
                        pc = exit;
                    }
                }
                DecodedOp::Again { start } => pc = start,
                DecodedOp::Return { empty } => {
                    self.active = 0;
                    pc = empty;
                }
                DecodedOp::Sync(sync) => {
                    self.state.memory.trace_sync(sync, pc - 1, self.active);
                    if self.state.sync_log.record(sync, &self.state.memory) {
                        self.pc = pc;
                        return Ok(Stop::Barrier);
                    }
                }
                DecodedOp::End => return Ok(Stop::Done),
            }
        }
    }

    /// Computes a row from rows before it.
    #[inline]
    fn compute(&mut self, dst: R, keep: bool, poison: u64, kernel: impl FnOnce(&mut Row, &[Row])) {
        let dst = dst as usize;
        let (before, rest) = self.rows.split_at_mut(dst);
        if keep && self.active != ALL_LANES {
            let mut out = [0; LANES];
            kernel(&mut out, before);
            blend(&mut rest[0], self.active, &out);
            self.poison[dst] = self.poison[dst] & !self.active | poison & self.active;
        } else {
            kernel(&mut rest[0], before);
            self.poison[dst] = poison;
        }
    }

    /// Writes a row in the active lanes; lanes of `poison` are poison as a whole.
    #[inline]
    fn write(&mut self, row: R, value: &Row, poison: u64) {
        if self.filled.is_some() && poison & self.active != 0 {
            return self.write_partly(row, value, poison, &[u32::MAX; LANES]);
        }
        self.write_bits(row, value, poison);
        if poison & self.active != 0 {
            self.number_lanes(row);
        }
    }

    #[inline]
    fn write_bits(&mut self, row: R, value: &Row, poison: u64) {
        blend(&mut self.rows[row as usize], self.active, value);
        let old = &mut self.poison[row as usize];
        *old = *old & !self.active | poison & self.active;
        self.partial[row as usize] &= !self.active;
    }

    /// Writes a row in the active lanes; in lanes of `poison` the bits in `open` are poison.
    #[inline]
    fn write_partly(&mut self, row: R, value: &Row, poison: u64, open: &Row) {
        if let Some(filled) = &self.filled
            && poison & self.active != 0
        {
            let mut value = *value;
            filled.fill(row, &mut value, poison & self.active, |lane| open[lane]);
            return self.write(row, &value, 0);
        }
        self.write_bits(row, value, poison);
        if poison & self.active != 0 {
            self.set_open(row, poison, open);
            self.number_lanes(row);
        }
    }

    #[cold]
    fn set_open(&mut self, row: R, poison: u64, open: &Row) {
        let row = row as usize;
        for lane in lanes(poison & self.active) {
            self.set_lane_open(row, lane, open[lane]);
        }
    }

    fn set_lane_open(&mut self, row: usize, lane: usize, open: u32) {
        let bit = 1 << lane;
        self.open[row][lane] = open;
        self.partial[row] |= bit;
        self.poison[row] = self.poison[row] & !bit | if open == 0 { 0 } else { bit };
    }

    /// The poisoned bits of a lane.
    fn open_bits(&self, row: R, lane: usize) -> u32 {
        let row = row as usize;
        match (self.poison[row] >> lane & 1, self.partial[row] >> lane & 1) {
            (0, _) => 0,
            (_, 0) => u32::MAX,
            _ => self.open[row][lane],
        }
    }

    /// The poisoned bits of some lanes.
    #[cold]
    fn opened(&self, row: R, mask: u64) -> Row {
        let mut open = [0; LANES];
        lanes(mask & self.poison[row as usize]).for_each(|lane| open[lane] = self.open_bits(row, lane));
        open
    }

    /// Adds a constant: the bits of the sum below the lowest poisoned bit are defined.
    #[cold]
    fn add_to_partial(&mut self, a: R, constant: u32, dst: R) {
        for lane in lanes(self.poison[dst as usize] & self.active) {
            let open = self.open_bits(a, lane);
            let open = open | open.wrapping_neg();
            self.rows[dst as usize][lane] = (self.rows[a as usize][lane].wrapping_add(constant)) & !open;
            self.set_lane_open(dst as usize, lane, open);
        }
    }

    fn wide(&mut self, index: u32) {
        let wide = &self.code.wide[index as usize];
        let (dst, count) = (wide.dst as usize, wide.count as usize);
        let poison = wide.srcs.iter().fold(0, |poison, &row| poison | self.poison[row as usize]);
        let (before, rest) = self.rows.split_at_mut(dst);
        let mut srcs = [&before[0]; super::decode::MAX_SOURCES];
        for (src, &row) in srcs.iter_mut().zip(&wide.srcs) {
            *src = &before[row as usize];
        }
        let srcs = &srcs[..wide.srcs.len()];
        if wide.keep && self.active != ALL_LANES {
            // No operation has more results than a vector has components, of two words.
            let mut out = [[0; LANES]; 8];
            (wide.kernel.run)(&mut out[..count], srcs);
            for (row, out) in rest.iter_mut().zip(&out[..count]) {
                blend(row, self.active, out);
            }
            for old in &mut self.poison[dst..dst + count] {
                *old = *old & !self.active | poison & self.active;
            }
        } else {
            (wide.kernel.run)(&mut rest[..count], srcs);
            self.poison[dst..dst + count].fill(poison);
        }
        self.define(poison, Kernel::Rows(wide.kernel), &wide.srcs, wide.dst, wide.count);
    }

    /// Defines a result of partly undefined operands where it does not depend on the undefined bits.
    #[inline]
    fn define(&mut self, poison: u64, kernel: Kernel, srcs: &[R], dst: R, count: u32) {
        if poison & self.active != 0 {
            self.define_lanes(poison & self.active, kernel, srcs, dst, count);
        }
    }

    #[cold]
    fn define_lanes(&mut self, poisoned: u64, kernel: Kernel, srcs: &[R], dst: R, count: u32) {
        for lane in lanes(poisoned) {
            let operand = |&row: &R| Partly::new(self.rows[row as usize][lane], self.open_bits(row, lane));
            let operands: SmallVec<[Partly; 8]> = srcs.iter().map(operand).collect();
            let results = undefined::partly(kernel, &operands);
            for (i, result) in results.into_iter().enumerate().take(count as usize) {
                let row = dst as usize + i;
                self.rows[row][lane] = result.bits;
                self.set_lane_open(row, lane, result.open);
            }
        }
        for row in dst..dst + count {
            self.number_lanes(row);
        }
    }

    /// The active lanes where a row is not 0; it must not be poison in any.
    fn condition(&mut self, row: R, origin: u32, reason: UndefinedReason) -> Result<u64, End> {
        let poison = self.poison[row as usize] & self.active;
        if poison != 0 {
            return Err(self.undefined(reason, origin, poison));
        }
        let holds = nonzero(&self.rows[row as usize]) & self.active;
        self.state.decide([holds]);
        Ok(holds)
    }

    #[cold]
    fn undefined(&self, reason: UndefinedReason, origin: u32, lanes: u64) -> End {
        End::Undefined { reason, origin: self.code.origins[origin as usize].clone(), lanes }
    }

    fn kill(&mut self, condition: Option<R>, demote: bool, origin: u32) -> RunResult {
        let lanes = match condition {
            Some(row) => self.condition(row, origin, UndefinedReason::Kill)?,
            None => self.active,
        };
        self.state.killed |= lanes;
        if demote {
            self.state.helpers |= lanes;
        } else {
            self.active &= !lanes;
        }
        Ok(())
    }

    fn moves(&mut self, (start, end): List, staged: bool) {
        let list = &self.code.moves[start as usize..end as usize];
        if !staged {
            for &(to, from) in list {
                self.copy_row(to, from);
            }
            return;
        }
        let mut stage = std::mem::take(self.temporaries);
        stage.clear();
        stage.extend(list.iter().map(|&(_, from)| self.rows[from as usize]));
        // Two more rows per move have its poison.
        for &(_, from) in list {
            let poison = self.poison[from as usize];
            let mut row = [0; LANES];
            (row[0], row[1]) = (poison as u32, (poison >> 32) as u32);
            stage.push(row);
        }
        let poisoned = list.iter().any(|&(_, from)| self.poison[from as usize] & self.active != 0);
        if poisoned {
            stage.extend(list.iter().map(|&(_, from)| self.opened(from, self.active)));
        }
        let (values, poisons) = stage.split_at(list.len());
        for (i, (&(to, _), value)) in list.iter().zip(values).enumerate() {
            let poison = u64::from(poisons[i][0]) | u64::from(poisons[i][1]) << 32;
            match poisons.get(list.len() + i) {
                Some(open) => self.write_partly(to, value, poison, open),
                None => self.write(to, value, poison),
            }
        }
        *self.temporaries = stage;
    }

    /// Copies a row in the active lanes.
    #[inline]
    fn copy_row(&mut self, to: R, from: R) {
        let row = self.rows[from as usize];
        let poison = self.poison[from as usize];
        if poison & self.active == 0 {
            self.write(to, &row, 0);
        } else {
            let open = self.opened(from, self.active);
            self.write_partly(to, &row, poison, &open);
        }
    }

    fn input(&mut self, input: &EnvironmentInput, dst: R) {
        let mut row = [0; LANES];
        let mut poison = 0;
        match *input {
            EnvironmentInput::System(value, component, adapt, second) => {
                self.env.system_value(self.state.launch, value, component, &mut row);
                if second.is_some() && self.facts.both_nir {
                    row.iter_mut().for_each(|x| *x = x.wrapping_add(1));
                }
                if adapt != Adapt::No {
                    row.iter_mut().for_each(|x| *x = adapt.of(&mut Concrete, u64::from(*x)) as u32);
                }
            }
            EnvironmentInput::Attribute(base, component, half) => {
                self.env.attribute(base, component, &mut row);
                if half {
                    row.iter_mut().for_each(|x| *x &= 0xffff);
                }
            }
            EnvironmentInput::Varying { location, offset, ij, half } => {
                poison |= offset.map_or(0, |row| self.poison[row as usize]);
                if let Some([i, j]) = ij {
                    poison |= self.poison[i as usize] | self.poison[j as usize];
                }
                match (offset, ij) {
                    (None, None) => self.env.flat(location, half, &mut row),
                    (None, Some([i, j])) => {
                        self.env.interpolate(location, &self.rows[i as usize], &self.rows[j as usize], half, &mut row);
                    }
                    (Some(offset), ij) => {
                        for lane in lanes(self.active) {
                            let location = location.wrapping_add(self.rows[offset as usize][lane].wrapping_mul(4));
                            row[lane] = match ij {
                                None => flat(self.env, location, lane, half),
                                Some([i, j]) => {
                                    let [p0, p1, p2] = self.env.varying(location, self.env.primitive(lane));
                                    let (i, j) = (self.rows[i as usize][lane], self.rows[j as usize][lane]);
                                    let value = float::interpolate(p0, p1, p2, i, j);
                                    if half { float::f32_to_f16(value) } else { value }
                                }
                            };
                        }
                    }
                }
            }
            EnvironmentInput::Const { word, offset, half } => {
                let narrow = if half { 0xffff } else { u32::MAX };
                match offset {
                    None => {
                        let (value, bad) = self.consts.read(self.env, word);
                        row = splat(value & narrow);
                        poison = if bad { ALL_LANES } else { 0 };
                    }
                    Some(offset) => {
                        poison = self.poison[offset as usize];
                        for lane in lanes(self.active & !poison) {
                            let word = word.wrapping_add(self.rows[offset as usize][lane]);
                            let (value, bad) = match self.env.driver.get(&(word % CONST_WORDS)) {
                                Some(&value) => (value, false),
                                None => self.consts.read(self.env, word),
                            };
                            row[lane] = value & narrow;
                            poison |= u64::from(bad) << lane;
                        }
                    }
                }
            }
            EnvironmentInput::Helper => {
                row.iter_mut().enumerate().for_each(|(lane, x)| *x = (self.state.helpers >> lane & 1) as u32)
            }
            EnvironmentInput::RunsPreamble => row.fill(u32::from(self.runs_preamble)),
        }
        self.write(dst, &row, poison);
    }
}

/// A flat input.
fn flat(env: &Env, location: u32, lane: usize, half: bool) -> u32 {
    let [value, ..] = env.varying(location, env.primitive(lane));
    if half { value & 0xffff } else { value }
}
