//! Undefined values that several places have in common.
//!
//! The result of an operation on an undefined value is *one* value, though it may be anything: an output and a word of
//! memory that both have it are equal ([`ValueUses`](super::uses::ValueUses)). So a run of nir gives each such value a
//! number of its own, which takes the place of its bits: copies of the value have the number too, results of operations
//! on it have not. At the end, the places with one number must be equal in the target.

use super::{Difference, Outcome};
use crate::environment::Binding;
use crate::environment::memory::{Memory, Space};
use crate::support::random::hash;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A place that others see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TiedPlace {
    /// A component of an output in a lane: driver location, component, lane.
    Output(u16, u8, u8),
    /// A word of memory.
    Word(Space, Binding, u32),
}

/// The numbers of undefined values in a run.
#[derive(Debug, Default)]
pub(super) struct Ties {
    numbers: FxHashSet<u32>,
    outputs: FxHashMap<(u16, u8, u8), u32>,
}

impl Ties {
    /// Returns true if the bits of an undefined word are the number of a value.
    pub fn is_number(&self, bits: u32) -> bool {
        self.numbers.contains(&bits)
    }

    /// A number for another value; `wave` is the number of the running wave.
    pub fn number(&mut self, wave: u32) -> u32 {
        let mut number = hash(&[0x7469_6564, wave.into(), self.numbers.len() as u64]) as u32;
        while number == 0 || !self.numbers.insert(number) {
            number = number.wrapping_mul(5).wrapping_add(1);
        }
        number
    }

    /// Returns true if an output has the number of a value.
    pub fn has_outputs(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Records the undefined value of an output of a lane; `None` if the output is defined.
    pub fn output(&mut self, base: u16, component: u8, lane: usize, bits: Option<u32>) {
        let place = (base, component, lane as u8);
        match bits.filter(|&bits| self.is_number(bits)) {
            Some(bits) => drop(self.outputs.insert(place, bits)),
            None => drop(self.outputs.remove(&place)),
        }
    }

    /// The places that have one value at the end of a run of one wave: groups of at least two.
    pub fn groups(&self, memory: &Memory) -> Vec<Vec<TiedPlace>> {
        if self.numbers.is_empty() {
            return Vec::new();
        }
        let mut groups: BTreeMap<u32, Vec<TiedPlace>> = BTreeMap::new();
        for (&(base, component, lane), &number) in &self.outputs {
            groups.entry(number).or_default().push(TiedPlace::Output(base, component, lane));
        }
        for (space, binding, word, bits) in memory.undefined_words() {
            if self.is_number(bits) {
                groups.entry(bits).or_default().push(TiedPlace::Word(space, binding, word));
            }
        }
        let mut groups: Vec<Vec<TiedPlace>> = groups.into_values().filter(|places| places.len() > 1).collect();
        groups.iter_mut().for_each(|places| places.sort_unstable());
        groups
    }
}

impl Outcome {
    /// Compares places that have one undefined value with each other.
    pub(super) fn compare_tied(&self, target: &Outcome) -> Result<(), Difference> {
        let live = self.lanes & !self.killed & !self.helpers;
        // The word, and its undefined bits.
        let found = |place: TiedPlace| match place {
            TiedPlace::Output(base, component, lane) => match target.outputs.get(base, component) {
                Some(row) if row.poison >> lane & 1 == 0 => (row.values[usize::from(lane)], 0),
                _ => (0, u32::MAX),
            },
            TiedPlace::Word(space, binding, word) => {
                let at = target
                    .memory
                    .binary_search_by_key(&(space, binding, word), |word| (word.space, word.binding, word.word));
                match at {
                    Ok(at) => (target.memory[at].value, target.memory[at].poison),
                    Err(_) => (target.env.memory_word(space, binding, word), 0),
                }
            }
        };
        let is_seen = |place: &&TiedPlace| match **place {
            TiedPlace::Output(_, _, lane) => live >> lane & 1 != 0,
            TiedPlace::Word(..) => true,
        };
        for group in &self.tied {
            let mut places = group.iter().filter(is_seen).copied();
            let Some((expected, open)) = places.next().map(found) else { continue };
            for place in places {
                let (actual, poisoned) = found(place);
                let poisoned = poisoned | open;
                if expected == actual && poisoned == 0 {
                    continue;
                }
                return Err(match place {
                    TiedPlace::Output(base, component, lane) => Difference::Output {
                        base,
                        component,
                        lane,
                        expected,
                        actual: (poisoned == 0).then_some(actual),
                    },
                    TiedPlace::Word(space, binding, word) => Difference::Memory {
                        space,
                        binding,
                        byte: word * 4,
                        expected,
                        actual,
                        defined: u32::MAX,
                        poisoned: if poisoned == 0 { 0 } else { u32::MAX },
                    },
                });
            }
        }
        Ok(())
    }
}
