//! The values of shared registers after a loop that other lanes may have executed meanwhile.
//!
//! A lane that has left a loop cannot determine which values other lanes wrote last in the loop. But the last lane of
//! the wave to leave the loop, or to end in it, did so in some segment, and that segment determines the value of each
//! register at this point. So the proof computes a partition of the shared registers of both programs, as at a loop
//! header ([`relation`](super::relation)): registers of one class have the same value when the whole wave has left the
//! loop. The partition starts with a single class, which is split by the values in each segment that leaves the loop.

use super::sweep::Side;
use crate::symbolic::{Slot, SymbolicValue};
use indexmap::IndexMap;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Term, Terms, VariableKind};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// A shared register of one of the programs.
type SharedRegister = (Side, Slot);

/// The relation after a loop.
#[derive(Debug, Default)]
pub struct LoopExitRelation {
    /// The classes of the bits and of the free bits of each register.
    classes: IndexMap<SharedRegister, [u32; 2], FxBuildHasher>,
    /// The number of class numbers in use.
    count: u32,
    /// The values in each segment of this iteration; the last segment has none yet.
    paths: Vec<FxHashMap<SharedRegister, SymbolicValue>>,
    changed: bool,
}

impl LoopExitRelation {
    /// Begins a segment.
    pub fn begin(&mut self) {
        if self.paths.last().is_none_or(|path| !path.is_empty()) {
            self.paths.push(FxHashMap::default());
        }
    }

    /// Records the value in this segment if no lane was in the loop meanwhile; returns the value if some lane was.
    pub fn pass(
        &mut self,
        terms: &mut Terms,
        number: u32,
        register: SharedRegister,
        value: SymbolicValue,
    ) -> SymbolicValue {
        if let Some(path) = self.paths.last_mut() {
            path.insert(register, value);
        }
        let classes = *self.classes.entry(register).or_insert_with(|| {
            self.changed = true;
            // The bits, and the mask of free bits.
            [0, 1]
        });
        self.count = self.count.max(2);
        let mut variable = |class: u32, width: u32| {
            let name = format!("class {class} of {width} bits after loop {number}");
            terms.variable_of(VariableKind::WAVE.passing(), width, &name)
        };
        SymbolicValue { bits: variable(classes[0], 32), free: variable(classes[1], 32) }
    }

    /// Splits classes by the values of this iteration. Returns true if anything has changed.
    pub fn refine(&mut self) -> bool {
        let mut paths = std::mem::take(&mut self.paths);
        paths.retain(|path| !path.is_empty());
        let mut changed = std::mem::take(&mut self.changed);
        if paths.is_empty() {
            return changed;
        }
        /// The old class, and the value on each path; a part without a value on a path is equal to no other.
        type SplitKey = (u32, SmallVec<[Result<Term, (usize, usize)>; 3]>);
        let mut numbers: FxHashMap<SplitKey, u32> = FxHashMap::default();
        // As at a header: the first part of a class keeps its number.
        let mut taken: FxHashSet<u32> = FxHashSet::default();
        for (i, (register, classes)) in self.classes.iter_mut().enumerate() {
            for (k, class) in classes.iter_mut().enumerate() {
                let value = |path: &FxHashMap<SharedRegister, SymbolicValue>| {
                    path.get(register).map(|value| [value.bits, value.free][k]).ok_or((i, k))
                };
                let key = (*class, paths.iter().map(value).filter(|_| !left_out(Guard::Behind)).collect());
                let number = *numbers.entry(key).or_insert_with(|| {
                    if taken.insert(*class) {
                        return *class;
                    }
                    self.count += 1;
                    self.count - 1
                });
                changed |= *class != number;
                *class = number;
            }
        }
        changed
    }
}
