//! The effect of one instruction on the set of live values, shared by the pressure analysis and the assigner.
//!
//! An instruction that computes reads its sources, and then writes its results. A result may take the place of a root
//! that dies here, with all pieces in it. A root of which a piece stays live keeps its place until the instruction is
//! done.
//!
//! Copies (parallel copies, collects and splits) are different. They only define which values exist from now on: all
//! moves that one of them needs, together with moves of values that occupy its registers, are one parallel copy. So the
//! relative positions of registers before and after do not matter, and a result whose registers already hold it, as a
//! piece of a value that stays live, needs none.

use super::forest::Forest;
use super::liveness::{Liveness, is_early};
use super::merge_sets::{MergeSets, tied_source};
use crate::ir3::{Instr, OperandFlags, Program, Value};
use crate::maps::map_of;
use cranelift_entity::SecondaryMap;

/// The origin of a result's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Written after all sources have been read.
    Late,
    /// Written while sources are still read.
    Early,
    /// Takes the registers of this root, which dies.
    InPlace(Value),
    /// Tied to a source that must be copied to the result's registers first.
    Copied(Value),
    /// A copy that already exists as a piece of this live value.
    Piece(Value),
    /// A copy without uses.
    Dropped,
}

/// A value that an instruction defines, and the origin of its registers.
#[derive(Clone, Copy, Debug)]
pub struct StepResult {
    /// The value.
    pub value: Value,
    /// The origin of its registers.
    pub manner: Manner,
    /// The index of its destination.
    pub dst: u16,
}

/// One instruction, or all phis or all inputs of a block.
#[derive(Default)]
pub struct Step {
    /// True if it only copies or only defines: results and moves are one parallel copy.
    pub is_copy: bool,
    /// Values at their last use.
    pub killed: Vec<Value>,
    /// Roots that die with all pieces in them, except those whose place a result takes.
    pub dying: Vec<Value>,
    /// The defined values.
    pub results: Vec<StepResult>,
    /// The number of the step that last killed each value.
    killed_at: SecondaryMap<Value, u32>,
    number: u32,
    /// Values have given places: those of different merge sets are different.
    has_fixed_places: bool,
}

impl Step {
    /// Creates a step for the values of a program.
    pub fn new(program: &Program) -> Self {
        Self { killed_at: map_of(program.values.len()), ..Self::default() }
    }

    /// The steps where each value has one place for its whole life: a tied result is in the registers of its source
    /// only if both are merged.
    pub fn with_fixed_places(program: &Program) -> Self {
        Self { has_fixed_places: true, ..Self::new(program) }
    }

    fn start(&mut self) {
        self.number += 1;
        self.killed.clear();
        self.dying.clear();
        self.results.clear();
        self.is_copy = false;
    }

    /// Reads several instructions without sources here that write simultaneously: phis, inputs, and prefetches, whose
    /// sources are read later.
    pub fn read_definitions(&mut self, program: &Program, liveness: &Liveness, instrs: &[Instr]) {
        self.start();
        self.is_copy = true;
        for &instr in instrs {
            for dst in &program.instrs[instr].dsts {
                if let Some(value) = dst.value().filter(|&value| liveness.units(value) != 0) {
                    self.results.push(StepResult { value, manner: Manner::Late, dst: 0 });
                }
            }
        }
    }

    /// Reads an instruction that is neither phi nor input. The results of a prefetch are available already.
    pub fn read(&mut self, program: &Program, liveness: &Liveness, sets: &MergeSets, forest: &Forest, instr: Instr) {
        self.start();
        let data = &program.instrs[instr];
        self.is_copy = data.opcode.is_copy();
        for src in data.srcs.iter().filter(|src| src.flags.contains(OperandFlags::FIRST_KILL)) {
            if let Some(value) = src.value().filter(|&value| liveness.units(value) != 0) {
                self.killed.push(value);
                self.killed_at[value] = self.number;
            }
        }
        if !self.is_copy {
            self.find_dying(sets, forest);
        }
        let dsts = if data.opcode.is_prefetched() { &[] } else { data.dsts.as_slice() };
        for (k, dst) in dsts.iter().enumerate() {
            let Some(value) = dst.value().filter(|&value| liveness.units(value) != 0) else { continue };
            let manner = if self.is_copy {
                self.copy_manner(program, liveness, sets, forest, value)
            } else if let Some(src) = tied_source(data, k).and_then(|k| data.srcs[k].value()) {
                self.tied_manner(liveness, sets, forest, value, src)
            } else if is_early(data, dst) {
                Manner::Early
            } else {
                Manner::Late
            };
            self.results.push(StepResult { value, manner, dst: k as u16 });
        }
    }

    /// Returns true if a value has no place before this step. A piece has one: that of the value it is a copy of.
    pub fn is_new(&self, value: Value) -> bool {
        self.results.iter().any(|result| result.value == value && !matches!(result.manner, Manner::Piece(_)))
    }

    fn is_killed(&self, value: Value) -> bool {
        self.killed_at[value] == self.number
    }

    fn find_dying(&mut self, sets: &MergeSets, forest: &Forest) {
        for i in 0..self.killed.len() {
            let value = self.killed[i];
            // A value that is alone in its set is a root, and need not be in the forest.
            let is_root = sets.is_alone(value) || forest.is_root(value);
            if is_root && forest.within(sets, value).all(|other| self.is_killed(other)) {
                self.dying.push(value);
            }
        }
    }

    fn copy_manner(
        &self,
        program: &Program,
        liveness: &Liveness,
        sets: &MergeSets,
        forest: &Forest,
        value: Value,
    ) -> Manner {
        if !liveness.is_used(value) {
            return Manner::Dropped;
        }
        match forest.container(sets, value) {
            // A value that stays live has equal contents, by the invariant of merge sets. A dying one may differ.
            Some(whole) if !self.is_killed(whole) || sets.is_copy_of_piece(program, whole, value) => {
                Manner::Piece(whole)
            }
            _ => Manner::Late,
        }
    }

    fn tied_manner(
        &mut self,
        liveness: &Liveness,
        sets: &MergeSets,
        forest: &Forest,
        value: Value,
        src: Value,
    ) -> Manner {
        let root = forest.root_of(sets, src);
        let same = sets.interval(root).start == sets.interval(src).start
            && liveness.units(root) == liveness.units(value)
            && liveness.units(src) == liveness.units(value)
            && (!self.has_fixed_places || sets.interval(src) == sets.interval(value));
        if let (true, Some(i)) = (same, self.dying.iter().position(|&dying| dying == root)) {
            self.dying.remove(i);
            return Manner::InPlace(root);
        }
        Manner::Copied(src)
    }
}
