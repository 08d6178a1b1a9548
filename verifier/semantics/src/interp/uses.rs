//! The uses of values, and the values whose undefined bits may be anything at each use.
//!
//! Each use of an undefined operand may see another value, and so may each use of a move or a phi of nothing else. The
//! result of an operation on it is *one* value, and so is a phi of it and of something else. Such a value may be
//! anything at its use if that is its only one, and if its operands have no other use either: then nothing else is
//! observed of it.
//!
//! A value is a location here: a row of nir, a slot of ir3. One that is written in several places counts as used
//! several times if it is read in several places, whichever writes reach them.

use fixedbitset::FixedBitSet;
use smallvec::SmallVec;

/// The locations that an operation reads.
pub type Operands = SmallVec<[u32; 8]>;

/// A definition of a location.
pub enum Definition {
    /// A move.
    Move(u32),
    /// The result of an operation.
    Operation {
        /// The locations that it reads.
        reads: Operands,
        /// The result may be undefined where no operand is.
        may_be_undefined: bool,
        /// The result is seen elsewhere too: it is in memory, or one of several results.
        is_one_value: bool,
    },
}

/// The definitions and uses of all locations of a program.
pub struct UseTable {
    definitions: Vec<SmallVec<[Definition; 1]>>,
    read: FixedBitSet,
    several: FixedBitSet,
    /// The locations that may be read before they are written.
    open: FixedBitSet,
    /// The elements of arrays: each load is a use of its own.
    elements: FixedBitSet,
}

/// Facts about the uses of locations.
#[derive(Clone, Debug, Default)]
pub struct ValueUses {
    raw: FixedBitSet,
    several: FixedBitSet,
    independent: FixedBitSet,
}

impl ValueUses {
    /// Returns true if the undefined bits of a location may have any value at its use, independent of other
    /// observations.
    pub fn is_independent(&self, at: u32) -> bool {
        self.independent.contains(at as usize)
    }

    /// Returns true if several uses see the one value of a location, though it may be undefined.
    pub fn is_one_value(&self, at: u32) -> bool {
        self.several.contains(at as usize) && !self.raw.contains(at as usize)
    }
}

impl UseTable {
    /// A table of this many locations.
    pub fn new(locations: u32) -> Self {
        let set = FixedBitSet::with_capacity(locations as usize);
        let mut definitions = Vec::new();
        definitions.resize_with(locations as usize, SmallVec::new);
        Self { definitions, read: set.clone(), several: set.clone(), open: set.clone(), elements: set }
    }

    /// Adds a definition.
    pub fn define(&mut self, at: u32, definition: Definition) {
        self.definitions[at as usize].push(definition);
    }

    /// Adds a use. `repeated`: it sees one value several times, because it is in a loop and the definition is not.
    pub fn read(&mut self, at: u32, repeated: bool) {
        if self.read.put(at as usize) || repeated {
            self.several.insert(at as usize);
        }
    }

    /// Records that a location may be read before it is written.
    pub fn opens(&mut self, at: u32) {
        self.open.insert(at as usize);
    }

    /// Records that a location is an element of an array.
    pub fn is_element(&mut self, at: u32) {
        self.elements.insert(at as usize);
    }

    /// The facts that follow; `undefined` is the location that is undefined at each use.
    pub fn finish(self, undefined: Option<u32>) -> ValueUses {
        let count = self.definitions.len();
        let is_undefined = |at: usize| undefined.is_some_and(|undefined| undefined as usize == at);
        // Moves of undefined values only: found by leaving out the others.
        let mut raw = FixedBitSet::with_capacity(count);
        for (at, definitions) in self.definitions.iter().enumerate() {
            let is_moved = definitions.iter().all(|definition| matches!(definition, Definition::Move(_)));
            raw.set(at, is_undefined(at) || is_moved && !definitions.is_empty());
        }
        self.keep(&mut raw, |raw, at, definition| match definition {
            Definition::Move(from) => raw.contains(*from as usize),
            Definition::Operation { .. } => is_undefined(at),
        });
        let tainted = self.tainted(&raw);
        let mut independent = FixedBitSet::with_capacity(count);
        for at in 0..count {
            independent.set(at, raw.contains(at) || self.elements.contains(at) || !self.several.contains(at));
        }
        let is_free = |independent: &FixedBitSet, &read: &u32| {
            let read = read as usize;
            let is_used_once = self.elements.contains(read) || !self.several.contains(read);
            !tainted.contains(read) || raw.contains(read) || independent.contains(read) && is_used_once
        };
        self.keep(&mut independent, |independent, at, definition| match definition {
            _ if raw.contains(at) => true,
            // All loads read the value that is stored in an array.
            Definition::Move(from) if self.elements.contains(at) => {
                !tainted.contains(*from as usize) || raw.contains(*from as usize)
            }
            Definition::Move(from) => is_free(independent, from),
            Definition::Operation { reads, is_one_value, .. } => {
                !is_one_value && reads.iter().all(|read| is_free(independent, read))
            }
        });
        ValueUses { raw, several: self.several, independent }
    }

    /// Removes locations from a set until all definitions of those left satisfy `holds`.
    fn keep(&self, set: &mut FixedBitSet, holds: impl Fn(&FixedBitSet, usize, &Definition) -> bool) {
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (at, definitions) in self.definitions.iter().enumerate() {
                if set.contains(at) && !definitions.iter().all(|definition| holds(set, at, definition)) {
                    set.set(at, false);
                    changed = true;
                }
            }
        }
    }

    /// The locations that may be undefined.
    fn tainted(&self, raw: &FixedBitSet) -> FixedBitSet {
        let mut tainted = raw.clone();
        tainted.union_with(&self.open);
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (at, definitions) in self.definitions.iter().enumerate() {
                let is_tainted = |definition: &Definition| match definition {
                    Definition::Move(from) => tainted.contains(*from as usize),
                    Definition::Operation { reads, may_be_undefined, .. } => {
                        *may_be_undefined || reads.iter().any(|&read| tainted.contains(read as usize))
                    }
                };
                if !tainted.contains(at) && definitions.iter().any(is_tainted) {
                    tainted.insert(at);
                    changed = true;
                }
            }
        }
        tainted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(reads: &[u32]) -> Definition {
        Definition::Operation { reads: reads.into(), may_be_undefined: false, is_one_value: false }
    }

    /// A table in which location 0 is undefined and location 1 is defined.
    fn table(definitions: Vec<(u32, Definition)>, reads: &[u32]) -> ValueUses {
        let mut table = UseTable::new(8);
        table.define(1, operation(&[]));
        definitions.into_iter().for_each(|(at, definition)| table.define(at, definition));
        reads.iter().for_each(|&at| table.read(at, false));
        table.finish(Some(0))
    }

    #[test]
    fn what_is_computed_is_one_value() {
        // 2 = 0 + 1, used once, or twice.
        let sum = || vec![(2, operation(&[0, 1]))];
        assert!(table(sum(), &[0, 1, 2]).is_independent(2));
        let twice = table(sum(), &[0, 1, 2, 2]);
        assert!(!twice.is_independent(2) && twice.is_one_value(2));
        assert!(twice.is_independent(0) && !twice.is_one_value(0));
        // 3 = 2 + 1: it depends on 2, which is used elsewhere.
        let chain = || vec![(2, operation(&[0, 1])), (3, operation(&[2, 1]))];
        assert!(table(chain(), &[0, 1, 2, 1, 3]).is_independent(3));
        assert!(!table(chain(), &[0, 1, 2, 1, 3, 2]).is_independent(3));
        // 1 is used several times, but never undefined.
        assert!(table(sum(), &[0, 1, 1, 1, 2]).is_independent(2));
    }

    #[test]
    fn a_move_of_what_is_undefined_is_undefined() {
        let moved = table(vec![(2, Definition::Move(0)), (3, Definition::Move(2))], &[0, 2, 3, 3]);
        assert!(moved.is_independent(3) && !moved.is_one_value(3));
        // A phi of an undefined value and another one.
        let phi = || vec![(2, Definition::Move(0)), (2, Definition::Move(1))];
        assert!(table(phi(), &[0, 1, 2]).is_independent(2));
        assert!(!table(phi(), &[0, 1, 2, 2]).is_independent(2));
        // Two phis of each other and of an undefined value.
        let both = vec![
            (2, Definition::Move(0)),
            (2, Definition::Move(3)),
            (3, Definition::Move(2)),
            (3, Definition::Move(0)),
        ];
        assert!(table(both, &[0, 2, 3, 3, 2]).is_independent(3));
    }

    #[test]
    fn a_use_in_a_loop_is_several() {
        let mut table = UseTable::new(2);
        table.define(1, operation(&[0]));
        table.read(1, true);
        let uses = table.finish(Some(0));
        assert!(uses.is_one_value(1) && !uses.is_independent(1));
    }
}
