//! What shared registers hold behind a loop that other lanes may have run meanwhile.
//!
//! A lane that is on its way behind a loop knows nothing of what others wrote there last. But whoever was the last to come past the
//! end of the loop, or to end in it, did so in some segment, and what a register held then is known there. So there is a partition of the shared
//! registers of both programs as at a header ([`relation`](super::relation)): what is in one class holds the same when the wave comes past the end
//! of the loop. It begins with all in one class, and is split by what they hold, as each
//! segment that goes past the end has it.

use super::sweep::Side;
use crate::prove::symbolic::{Slot, Value};
use crate::semantics::terms::{Term, Terms, VariableKind};
use crate::support::guards::{Guard, left_out};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// A shared register of one of the programs.
type Register = (Side, Slot);

/// The relation behind a loop.
#[derive(Debug, Default)]
pub struct Behind {
    /// The classes of the parts of each register.
    classes: IndexMap<Register, [u32; 2], FxBuildHasher>,
    /// How many numbers of classes there are.
    count: u32,
    /// What they held in each segment of this round: none yet in the last one.
    ways: Vec<FxHashMap<Register, Value>>,
    changed: bool,
}

impl Behind {
    /// A segment begins.
    pub fn begin(&mut self) {
        if self.ways.last().is_none_or(|way| !way.is_empty()) {
            self.ways.push(FxHashMap::default());
        }
    }

    /// What a register holds in this segment if nobody was in the loop meanwhile; what it holds if somebody was.
    pub fn pass(&mut self, terms: &mut Terms, number: u32, register: Register, held: Value) -> Value {
        if let Some(way) = self.ways.last_mut() {
            way.insert(register, held);
        }
        let classes = *self.classes.entry(register).or_insert_with(|| {
            self.changed = true;
            // Bits, and which of them are free.
            [0, 1]
        });
        self.count = self.count.max(2);
        let mut variable = |class: u32, width: u32| {
            let name = format!("class {class} of {width} bits after loop {number}");
            terms.variable_of(VariableKind::WAVE.passing(), width, &name)
        };
        Value { bits: variable(classes[0], 32), free: variable(classes[1], 32) }
    }

    /// Splits classes by what was held in this round. Whether anything has changed.
    pub fn refine(&mut self) -> bool {
        let mut ways = std::mem::take(&mut self.ways);
        ways.retain(|way| !way.is_empty());
        let mut changed = std::mem::take(&mut self.changed);
        if ways.is_empty() {
            return changed;
        }
        /// The class of before, and what is held on each way; a part that is not known on one is like no other.
        type Key = (u32, SmallVec<[Result<Term, (usize, usize)>; 3]>);
        let mut numbers: FxHashMap<Key, u32> = FxHashMap::default();
        // The first part of a class keeps its number, as at a header.
        let mut taken: FxHashSet<u32> = FxHashSet::default();
        for (i, (register, classes)) in self.classes.iter_mut().enumerate() {
            for (k, class) in classes.iter_mut().enumerate() {
                let held = |way: &FxHashMap<Register, Value>| {
                    way.get(register).map(|value| [value.bits, value.free][k]).ok_or((i, k))
                };
                let key = (*class, ways.iter().map(held).filter(|_| !left_out(Guard::Behind)).collect());
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
