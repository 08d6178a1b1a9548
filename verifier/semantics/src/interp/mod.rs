//! Interpreters: they run a program once, on 64 lanes at a time, in one environment.
//!
//! A program is decoded once, into flat arrays with every kernel looked up; a run then allocates nothing but its
//! [`Outcome`]. The outcome has everything observable of a run, and [`Outcome::first_difference`] is the one place
//! where two runs are compared: if the source's result is defined, the target's must be defined and equal.

pub mod filling;
pub mod ir3;
pub mod nir;
mod outcome;
mod ties;
pub mod trace;
pub mod uses;
mod waves;

pub use outcome::{
    Compared, Difference, End, OperationSite, Outcome, OutputRow, OutputSlot, Outputs, UndefinedReason, Unsupported,
};
pub use ties::TiedPlace;

use crate::arithmetic::rows::{LANES, Row};
use crate::environment::Binding;
use crate::environment::aliases::AliasClasses;
use crate::environment::env::{CONST_WORDS, Env};
use crate::environment::memory::{AccessTrace, Memory, Perturbation, Words};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// The lanes grouped by the resource that they access, in the order of their first lanes. Without a resource there is
/// one group.
fn groups(resource: Option<impl Fn(usize) -> Binding>, mask: u64) -> impl Iterator<Item = (Binding, u64)> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let Some(resource) = &resource else {
            return Some((Binding::NONE, std::mem::take(&mut rest)));
        };
        let binding = resource(rest.trailing_zeros() as usize);
        let mut group = 0;
        for lane in 0..LANES {
            group |= u64::from(resource(lane) == binding) << lane;
        }
        group &= rest;
        rest &= !group;
        Some((binding, group))
    })
}

/// The lanes of a mask that name another resource than the first of them.
fn naming_another(resource: impl Fn(usize) -> Binding, mask: u64) -> u64 {
    groups(Some(resource), mask).next().map_or(0, |(_, first)| mask & !first)
}

/// Facts about the locations of a program, for symbolic execution.
#[derive(Debug, Default)]
pub struct Places {
    /// The names of words of arrays and registers: the name identifies the same word in another form of the program.
    pub names: FxHashMap<u32, PlaceName>,
    /// The locations that the program writes before it reads them, so that their initial contents are never observed.
    pub written_first: FxHashSet<u32>,
}

/// The name of a location: the same in all forms of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceName {
    /// A word of an array, by the array's number in a text.
    ArrayWord {
        /// The array.
        array: u32,
        /// The word.
        word: u32,
    },
    /// A register, by a number that is the same in every program.
    Register(u32),
}

impl fmt::Display for PlaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ArrayWord { array, word } => f.write_str(&array_word(array, word)),
            Self::Register(number) => write!(f, "register {number}"),
        }
    }
}

/// The name of a word of an array, by the array's number in a text: 1 is the first that nir declares.
pub fn array_word(array: u32, word: u32) -> String {
    format!("word {word} of array {array}")
}

/// Buffers that runs of any programs reuse.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Registers or values, in rows.
    pub rows: Vec<Row>,
    /// The mask of poisoned lanes of each row.
    pub poison: Vec<u64>,
    /// The poisoned lanes of each row of which only some bits are poison.
    pub partial: Vec<u64>,
    /// The poisoned bits of these lanes.
    pub open: Vec<Row>,
    /// A row for each temporary that an interpreter needs at the same time.
    pub temporaries: Vec<Row>,
    /// Masks of lanes that wait somewhere in the control flow.
    pub masks: Vec<u64>,
    /// All memory but the constant file.
    pub memory: Memory,
    /// The constant file.
    pub consts: ConstFile,
    /// The values of undefined bits in the next run, if they are filled.
    pub(crate) filling: Option<filling::Filling>,
    /// The words of the constant file that the wave finds, if it does not run the preamble.
    pub(crate) preamble_words: Option<Vec<(u32, u32, bool)>>,
    /// A broken promise (nir's `nuw`, `nsw`, `align_mul`) is undefined behaviour in the next run. Otherwise the run
    /// only records it.
    pub(crate) keeps_promises: bool,
    /// The buffers of the second of two waves; the memory is that of the first.
    second: Option<Box<Scratch>>,
}

impl Scratch {
    /// Creates empty buffers.
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Runs a program with these buffers; the outcome has the log of its stores, in order.
    pub fn logged(&mut self, run: impl FnOnce(&mut Scratch) -> Outcome) -> Outcome {
        self.memory.keep_log(true);
        let outcome = run(self);
        self.memory.keep_log(false);
        outcome
    }

    /// Runs a program with these buffers, and returns the trace of the accesses of its first wave.
    pub fn traced(&mut self, run: impl FnOnce(&mut Scratch) -> Outcome) -> (Outcome, AccessTrace) {
        self.memory.start_trace();
        let outcome = run(self);
        (outcome, self.memory.take_trace())
    }

    /// Runs a program with these buffers, and with other values where an instruction loads.
    pub fn perturbed(&mut self, perturbation: Perturbation, run: impl FnOnce(&mut Scratch) -> Outcome) -> Outcome {
        self.memory.perturb(Some(perturbation));
        let outcome = run(self);
        self.memory.perturb(None);
        outcome
    }

    /// Runs a program with these buffers and a value for each undefined bit.
    pub fn filled(&mut self, filling: filling::Filling, run: impl FnOnce(&mut Scratch) -> Outcome) -> Outcome {
        self.filling = Some(filling);
        let outcome = run(self);
        self.filling = None;
        outcome
    }

    /// Runs a program with these buffers again, as a wave that does not run the preamble: it finds the words of the
    /// constant file that the last run has left.
    pub fn without_preamble(&mut self, run: impl FnOnce(&mut Scratch) -> Outcome) -> Outcome {
        self.preamble_words = Some(self.consts.written());
        let outcome = run(self);
        self.preamble_words = None;
        outcome
    }

    /// Runs a program with these buffers; a result that breaks a promise is undefined in it.
    pub fn strict(&mut self, run: impl FnOnce(&mut Scratch) -> Outcome) -> Outcome {
        self.keeps_promises = true;
        let outcome = run(self);
        self.keeps_promises = false;
        outcome
    }

    /// Resets the memory and the constant file for a new run, and allocates at least `rows` rows, whose contents are
    /// unspecified. Lanes have `own_bytes` of scratch memory; 0 if the program does not declare it.
    pub fn prepare(&mut self, env: &Env, rows: usize, own_bytes: u32) {
        self.memory.reset();
        self.memory.set_aliases(AliasClasses::of(env));
        self.memory.set_scratch_bytes(own_bytes);
        self.consts.0.reset();
        for &(word, value, poison) in self.preamble_words.iter().flatten() {
            self.consts.write(word, value, poison);
        }
        self.masks.clear();
        if self.rows.len() < rows {
            self.rows.resize(rows, [0; 64]);
            self.poison.resize(rows, 0);
        }
        // The two interpreters have different numbers of masks per row.
        if self.open.len() < rows {
            self.open.resize(rows, [0; 64]);
            self.partial.resize(rows, 0);
        }
    }
}

/// The constant file: one for the wave. Its words come from the environment, unless the driver or the preamble writes
/// them.
#[derive(Debug)]
pub struct ConstFile(Words);

impl Default for ConstFile {
    fn default() -> ConstFile {
        ConstFile(Words::new(CONST_WORDS))
    }
}

impl ConstFile {
    /// Reads a word, and whether it is poison. Indices wrap around at the end of the file.
    #[inline]
    pub fn read(&mut self, env: &Env, index: u32) -> (u32, bool) {
        let index = index % CONST_WORDS;
        let (value, poison) = self.0.read(index, || (env.const_word(index), 0));
        (value, poison != 0)
    }

    /// The words that were written, each with its value and whether it is poison.
    pub fn written(&self) -> Vec<(u32, u32, bool)> {
        self.0.written_words().map(|(word, value, poison)| (word, value, poison != 0)).collect()
    }

    /// Replaces a word.
    #[inline]
    pub fn write(&mut self, index: u32, value: u32, poison: bool) {
        self.0.write(index % CONST_WORDS, value, if poison { u32::MAX } else { 0 });
    }
}
