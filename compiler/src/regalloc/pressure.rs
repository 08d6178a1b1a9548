//! Register pressure: the number of registers that a program needs, computed before any is assigned.
//!
//! All values that are live at a point have registers there, each root of the `forest` its own. The additional need of
//! an instruction depends on the instruction alone ([`Step`]). So the maximum over all points is the need of the
//! program, and it is sufficient for the assigner: before an instruction, a parallel copy can put all registers into
//! any order, and there is an order without gaps (see `assign/compact.rs`).
//!
//! Units are half registers. If the halves are the start of the full file (`merged_regs`), the number of halves is
//! rounded up to an even number of units, and `full` includes them. Arrays count with the extents of their stacks at
//! the point (`array_ranges`). If inputs or outputs have given registers, the gaps between these count, too, at
//! the program's start and end (`given`).

use super::array_ranges::{ArrayRanges, Indices};
use super::forest::{self, FULL, Forest, HALF, SHARED, SHARED_HALF, Sums, ValueList};
use super::inputs::{self, GivenInputs};
use super::liveness::{Liveness, is_early};
use super::merge_sets::{MergeSets, WIDEST};
use super::outputs::{self, GivenOutputs};
use super::step::{Manner, Step};
use super::{Coalescing, Error, cssa};
use crate::ir3::{Block, Instr, InstrData, Opcode, OperandFlags, Program, Value};
use crate::target::{RegisterFiles, Target};

/// The number of required registers, in units of a half register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pressure {
    /// The full file; includes the half registers if these are the start of it.
    pub full: u32,
    /// Half registers.
    pub half: u32,
    /// The shared file, including its half registers.
    pub shared: u32,
    /// Half registers of the shared file.
    pub shared_half: u32,
}

impl Pressure {
    fn of(sums: &Sums, arrays: &Sums, merged: bool) -> Self {
        let half = sums[HALF] + arrays[HALF];
        let halves = if merged { half.next_multiple_of(2) } else { 0 };
        Self {
            full: sums[FULL] + arrays[FULL] + halves,
            half,
            shared: sums[SHARED] + sums[SHARED_HALF].next_multiple_of(2),
            shared_half: sums[SHARED_HALF],
        }
    }

    /// The maximum of both, per field.
    #[must_use]
    fn max(self, other: Self) -> Self {
        Self {
            full: self.full.max(other.full),
            half: self.half.max(other.half),
            shared: self.shared.max(other.shared),
            shared_half: self.shared_half.max(other.shared_half),
        }
    }

    /// The error for the file that is exceeded.
    pub(super) fn excess(&self, files: &RegisterFiles) -> Option<Error> {
        if self.half > files.half {
            Some(Error::NeedsSpilling { needed: self.half, available: files.half, file: "half" })
        } else if self.full > files.full {
            Some(Error::NeedsSpilling { needed: self.full.div_ceil(2), available: files.full / 2, file: "full" })
        } else if self.shared > files.shared || self.shared_half > files.shared_half {
            let needed = self.shared.max(2 * self.shared_half).div_ceil(2);
            Some(Error::NeedsSpilling { needed, available: files.shared / 2, file: "shared" })
        } else {
            None
        }
    }
}

/// A point of a program at which registers are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// The start of a block: its phis (in the first block, inputs and results of prefetches) have been written, and no
    /// other instruction executed.
    Start(Block),
    /// The reads of an instruction: the values that are live before it, and its early results.
    Read(Instr),
    /// Its writes: the values that stay live, and all of its results, including unused ones.
    Write(Instr),
    /// The point after it.
    After(Instr),
}

/// The analyses that register assignment depends on.
pub struct Analysis {
    /// Liveness, with the order in which blocks are visited.
    pub liveness: Liveness,
    /// The merge sets.
    pub sets: MergeSets,
    coalescing: Coalescing,
    merged: bool,
    /// The live ranges of arrays.
    pub(crate) arrays: ArrayRanges,
    /// The indices of instructions and blocks; empty without arrays.
    pub(super) indices: Indices,
    /// The places of the inputs, if some are given.
    pub(crate) inputs: Option<GivenInputs>,
    /// The places of outputs, if some are given.
    pub(crate) outputs: Vec<GivenOutputs>,
}

impl Analysis {
    /// Converts a program to conventional SSA and computes all analyses. `prepare`, `predicates` and `addresses` have
    /// run on the program.
    ///
    /// # Errors
    /// If the program is malformed, or given registers conflict.
    pub fn new(program: &mut Program, target: &Target) -> Result<Self, Error> {
        Self::coalesced(program, target, Coalescing::default())
    }

    /// Like [`Analysis::new`], with these values merged only.
    ///
    /// # Errors
    /// Those of [`Analysis::new`].
    pub fn coalesced(program: &mut Program, target: &Target, coalescing: Coalescing) -> Result<Self, Error> {
        cssa::run(program)?;
        let order = super::order(program);
        let liveness = Liveness::new(program, order)?;
        let arrays = ArrayRanges::new(program, &liveness.order)?;
        let indices = if arrays.is_empty() { Indices::default() } else { Indices::new(program, &liveness.order) };
        let at_entry = arrays.at(2 * indices.start[program.entry()]).extents;
        let inputs = inputs::run(program, &liveness, target.merged_regs, &at_entry)?;
        let extents = |instr| arrays.at(2 * indices.instr[instr]).extents;
        let outputs = outputs::run(program, target.merged_regs, &extents)?;
        let apart = given_outputs(&outputs);
        let sets = MergeSets::new(program, &liveness, &apart, WIDEST, coalescing);
        Ok(Self { liveness, sets, coalescing, merged: target.merged_regs, arrays, indices, inputs, outputs })
    }

    /// Computes the merge sets again, with these values, too, alone in theirs, and no set wider than `widest` units.
    pub(crate) fn separate(&mut self, program: &Program, apart: &[Value], widest: u16) {
        let mut all = given_outputs(&self.outputs);
        all.extend_from_slice(apart);
        self.sets = MergeSets::new(program, &self.liveness, &all, widest, self.coalescing);
    }

    /// The maximum need of the program over all points: that of [`Analysis::walk`]. Most values are alone in their sets:
    /// these are roots while they are live, so the sums of their units follow from the segments, and the forest has the
    /// others only.
    pub fn max_pressure(&self, program: &Program) -> Pressure {
        let alone = self.sums_of_alone(program);
        let mut forest = Forest::new(program, &self.sets);
        let mut step = Step::new(program);
        let mut max = Pressure::default();
        for &block in &self.liveness.order {
            self.enter_with(program, block, &mut forest, |value| !self.sets.is_alone(value));
            let list = &program.blocks[block].instrs;
            let mut index = self.liveness.start(block) as usize;
            step.read_definitions(program, &self.liveness, &list[..program.ready_len(list)]);
            step.results
                .retain(|result| !self.sets.is_alone(result.value) && is_kept(program, &self.liveness, result.value));
            let mut sums = plus(&forest.sums, &alone[2 * index + 1]);
            step.results.iter().for_each(|result| self.count(program, &mut sums, result.value));
            max = max.max(self.at_start(program, block, &sums));
            self.advance(program, &step, &mut forest);
            for &instr in &list[program.start_len(list)..] {
                index += 1;
                let data = &program.instrs[instr];
                let [mut read, mut write] = [forest.sums; 2];
                if self.is_mixed(data) {
                    step.read(program, &self.liveness, &self.sets, &forest, instr);
                    self.count_step(program, data, &step, &mut read, &mut write);
                    step.killed.retain(|&value| !self.sets.is_alone(value));
                    step.results.retain(|result| !self.sets.is_alone(result.value));
                    self.advance(program, &step, &mut forest);
                }
                let array_index = self.indices.instr[instr];
                if !data.opcode.is_copy() {
                    let extents = &self.arrays.at(2 * array_index).extents;
                    max = max.max(self.at_read(instr, &plus(&read, &alone[2 * index]), extents));
                    max = max.max(Pressure::of(&plus(&write, &alone[2 * index + 1]), extents, self.merged));
                }
                let extents = &self.arrays.at(2 * array_index + 2).extents;
                max = max.max(Pressure::of(&plus(&forest.sums, &alone[2 * index + 2]), extents, self.merged));
            }
        }
        max
    }

    /// For each point, the units of the values that are live there and alone in their sets.
    fn sums_of_alone(&self, program: &Program) -> Vec<Sums> {
        // First the change at each point.
        let mut sums = vec![Sums::default(); self.liveness.points() + 1];
        for (value, data) in &program.values {
            let units = u32::from(self.liveness.units(value));
            if units == 0 || !self.sets.is_alone(value) || !is_kept(program, &self.liveness, value) {
                continue;
            }
            let kind = forest::kind(data.class);
            for segment in self.liveness.segments(value) {
                let [start, end] = [segment.start, segment.end].map(|point| point as usize);
                sums[start][kind] = sums[start][kind].wrapping_add(units);
                sums[end][kind] = sums[end][kind].wrapping_sub(units);
            }
        }
        let mut now = Sums::default();
        for change in &mut sums {
            now = plus(&now, change);
            *change = now;
        }
        sums
    }

    /// Returns true if an instruction kills or defines a value that is not alone in its set, or has a tied result.
    fn is_mixed(&self, data: &InstrData) -> bool {
        let is_together = |value: Value| self.liveness.units(value) != 0 && !self.sets.is_alone(value);
        data.dsts.iter().any(|dst| dst.flags.contains(OperandFlags::TIED) || dst.value().is_some_and(is_together))
            || data
                .srcs
                .iter()
                .any(|src| src.flags.contains(OperandFlags::FIRST_KILL) && src.value().is_some_and(is_together))
    }

    /// Adds the effect of an instruction on the sums at its reads and at its writes, without those of values that are
    /// alone in their sets.
    fn count_step(&self, program: &Program, data: &InstrData, step: &Step, read: &mut Sums, write: &mut Sums) {
        for result in &step.results {
            let units = u32::from(self.liveness.units(result.value));
            let kind = forest::kind(program.values[result.value].class);
            let is_alone = self.sets.is_alone(result.value);
            match result.manner {
                Manner::Copied(_) => {
                    let is_counted = is_alone && is_early(data, &data.dsts[usize::from(result.dst)]);
                    read[kind] += if is_counted { 0 } else { units };
                    write[kind] += if is_alone { 0 } else { units };
                }
                // The registers of both are counted once.
                Manner::InPlace(root) => match (is_alone, self.sets.is_alone(root)) {
                    (true, false) => write[kind] -= units,
                    (false, true) => write[kind] += units,
                    _ => {}
                },
                Manner::Early if !is_alone => {
                    read[kind] += units;
                    write[kind] += units;
                }
                Manner::Late if !is_alone => write[kind] += units,
                _ => {}
            }
        }
        for &value in step.dying.iter().filter(|&&value| !self.sets.is_alone(value)) {
            write[forest::kind(program.values[value].class)] -= u32::from(self.liveness.units(value));
        }
    }

    /// The pressure at the start of a block, where values of these sums are live.
    fn at_start(&self, program: &Program, block: Block, sums: &Sums) -> Pressure {
        let extents = self.arrays.at(2 * self.indices.start[block]).extents;
        let mut pressure = Pressure::of(sums, &extents, self.merged);
        if let Some(inputs) = self.inputs.as_ref().filter(|_| block == program.entry()) {
            pressure.full = inputs.ends[FULL] + extents[FULL];
            pressure.half = inputs.ends[HALF].max(extents[HALF]);
        }
        pressure
    }

    /// The pressure at the reads of an instruction, where values of these sums are live.
    fn at_read(&self, instr: Instr, sums: &Sums, extents: &Sums) -> Pressure {
        let mut pressure = Pressure::of(sums, extents, self.merged);
        if let Some(outputs) = self.outputs.iter().find(|outputs| outputs.instr == instr) {
            pressure.full = pressure.full.max(outputs.ends[FULL] + extents[FULL]);
            pressure.half = pressure.half.max(outputs.ends[HALF]).max(extents[HALF]);
        }
        pressure
    }

    /// Visits all points of the program with the pressure and the live values there (at [`Point::Read`] and
    /// [`Point::Write`]: the values that are live before the instruction).
    pub fn walk(&self, program: &Program, mut visit: impl FnMut(Point, &Forest, Pressure)) {
        let mut forest = Forest::new(program, &self.sets);
        let mut step = Step::new(program);
        for &block in &self.liveness.order {
            self.enter(program, block, &mut forest);
            self.walk_block(program, block, &mut forest, &mut step, &mut visit);
        }
    }

    /// Updates the live values from the end of the previous block in the order to the start of this one.
    pub fn enter(&self, program: &Program, block: Block, forest: &mut Forest) {
        self.enter_with(program, block, forest, |_| true);
        debug_assert!(forest.live().iter().all(|&value| self.liveness.is_live_into(value, block)));
    }

    /// Like [`Analysis::enter`], for some of the values.
    fn enter_with(&self, program: &Program, block: Block, forest: &mut Forest, is_of: impl Fn(Value) -> bool) {
        let mut changed = ValueList::new();
        for value in self.liveness.leaving(block).filter(|&value| is_of(value)) {
            forest.remove(&self.sets, value, &mut changed);
        }
        for value in self.liveness.joining(block).filter(|&value| is_of(value)) {
            forest.insert(program, &self.liveness, &self.sets, value, &mut changed);
        }
    }

    fn walk_block(
        &self,
        program: &Program,
        block: Block,
        forest: &mut Forest,
        step: &mut Step,
        visit: &mut impl FnMut(Point, &Forest, Pressure),
    ) {
        let list = &program.blocks[block].instrs;
        let rest = &list[program.start_len(list)..];
        step.read_definitions(program, &self.liveness, &list[..program.ready_len(list)]);
        let mut sums = forest.sums;
        step.results.retain(|result| is_kept(program, &self.liveness, result.value));
        step.results.iter().for_each(|result| self.count(program, &mut sums, result.value));
        visit(Point::Start(block), forest, self.at_start(program, block, &sums));
        self.advance(program, step, forest);
        for &instr in rest {
            step.read(program, &self.liveness, &self.sets, forest, instr);
            let index = self.indices.instr[instr];
            if !step.is_copy {
                let extents = self.arrays.at(2 * index).extents;
                let mut sums = forest.sums;
                for result in &step.results {
                    if matches!(result.manner, Manner::Early | Manner::Copied(_)) {
                        self.count(program, &mut sums, result.value);
                    }
                }
                visit(Point::Read(instr), forest, self.at_read(instr, &sums, &extents));
                for result in &step.results {
                    if result.manner == Manner::Late {
                        self.count(program, &mut sums, result.value);
                    }
                }
                for &value in &step.dying {
                    sums[forest::kind(program.values[value].class)] -= u32::from(self.liveness.units(value));
                }
                visit(Point::Write(instr), forest, Pressure::of(&sums, &extents, self.merged));
            }
            self.advance(program, step, forest);
            let extents = self.arrays.at(2 * index + 2).extents;
            visit(Point::After(instr), forest, Pressure::of(&forest.sums, &extents, self.merged));
        }
    }

    fn count(&self, program: &Program, sums: &mut Sums, value: Value) {
        sums[forest::kind(program.values[value].class)] += u32::from(self.liveness.units(value));
    }

    /// Applies the step to the live values.
    fn advance(&self, program: &Program, step: &Step, forest: &mut Forest) {
        let mut changed = ValueList::new();
        // Pieces first: they take their place from values that may die here.
        for result in step.results.iter().filter(|result| matches!(result.manner, Manner::Piece(_))) {
            forest.insert(program, &self.liveness, &self.sets, result.value, &mut changed);
        }
        for &value in &step.killed {
            forest.remove(&self.sets, value, &mut changed);
        }
        for result in &step.results {
            if !matches!(result.manner, Manner::Piece(_) | Manner::Dropped) && self.liveness.is_used(result.value) {
                forest.insert(program, &self.liveness, &self.sets, result.value, &mut changed);
            }
        }
    }
}

/// The sums of two sets of roots.
fn plus(a: &Sums, b: &Sums) -> Sums {
    std::array::from_fn(|kind| a[kind].wrapping_add(b[kind]))
}

/// The outputs that have a place of their own.
fn given_outputs(outputs: &[GivenOutputs]) -> Vec<Value> {
    outputs.iter().flat_map(|outputs| &outputs.places).map(|&(value, _)| value).collect()
}

/// Returns true if a value at the start of a block needs a place: all but unused phis.
pub(super) fn is_kept(program: &Program, liveness: &Liveness, value: Value) -> bool {
    liveness.is_used(value) || program.instrs[program.values[value].instr].opcode != Opcode::Phi
}
