//! The outcome of a run, and the comparison of two outcomes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::arithmetic::rows::{ALL_LANES, Row};
use crate::environment::Binding;
use crate::environment::aliases::MemoryName;
use crate::environment::env::{Env, lanes};
use crate::environment::memory::{Loads, SEEN, Space, StoredWord, WrittenWord};
use crate::environment::sync::Synchronized;
use crate::header::HeaderDifference;
use crate::interp::TiedPlace;
use rustc_hash::FxHashSet;

/// The error for a program that an interpreter refuses: it names the operation and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: the interpreter does not support {what}")]
pub struct Unsupported {
    /// The operation, or the property of it that is not supported.
    pub what: String,
    /// Its line or its number in the program.
    pub place: String,
}

/// The position of an operation in its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationSite {
    /// The name of the operation.
    pub operation: &'static str,
    /// The number of the instruction in the program's table of instructions.
    pub instr: u32,
    /// The line that it was read from; 0 if it was not read from a text.
    pub line: u32,
}

impl fmt::Display for OperationSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{} (instruction {})", self.operation, self.instr),
            line => write!(f, "{} (line {line})", self.operation),
        }
    }
}

/// The reason why a run is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndefinedReason {
    /// A branch on poison.
    Branch,
    /// The condition of a kill is poison.
    Kill,
    /// A store or atomic has a poisoned address or buffer.
    Address,
    /// A cross-lane operation has a poisoned lane number or predicate.
    LaneNumber,
    /// The second of a pair of predications has another predicate than the first.
    Predication,
    /// Lanes wait at a position where nothing has them join, or more of them than the branch stack holds.
    Reconvergence,
    /// A register is overwritten before an instruction of another unit has read it.
    Overwritten,
    /// A result is read before it is available.
    ReadBeforeResult,
    /// A register is written that another unit still writes.
    WriteBeforeResult,
    /// A varying is read after the release of their memory, or they are released while one is read, before the end of
    /// the preamble, or too late.
    Varyings,
    /// Words of the constant file are read, or the preamble ends, before a write to them is known to be there.
    Constants,
    /// Helper lanes are used after their end.
    HelperLanes,
    /// An address is used after its release.
    AddressReleased,
    /// A lane ends in a loop, and does not leave it.
    StaysInLoop,
    /// Control flow leaves the code.
    LeavesCode,
    /// Lanes name different descriptors, and the access is not marked for that.
    Descriptor,
    /// Something but words of the constant file leaves the preamble: waves that do not run it have not got it.
    Preamble,
    /// The preamble is left without its end, for which other waves wait.
    PreambleEnd,
    /// An access promises that its address is aligned, and it is not.
    Alignment,
    /// Buffers are one in this environment, and the program promises that they do not alias.
    Alias,
}

impl fmt::Display for UndefinedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UndefinedReason::Branch => "a branch on an undefined condition",
            UndefinedReason::Kill => "a lane ends by an undefined condition",
            UndefinedReason::Address => "a write to an undefined address",
            UndefinedReason::LaneNumber => "a cross-lane operation with an undefined lane or condition",
            UndefinedReason::Predication => "a predication that ends with another predicate",
            UndefinedReason::Reconvergence => "lanes that wait where nothing has them join",
            UndefinedReason::Overwritten => "a register that is overwritten before an earlier instruction has read it",
            UndefinedReason::ReadBeforeResult => "a result that is read before it is there",
            UndefinedReason::WriteBeforeResult => "a register that is written while an earlier result is outstanding",
            UndefinedReason::Constants => "constants that are still being written",
            UndefinedReason::Varyings => "varyings that are read or released at the wrong time",
            UndefinedReason::HelperLanes => "helper lanes that are used after their end",
            UndefinedReason::AddressReleased => "an address that is used after its release",
            UndefinedReason::StaysInLoop => "a lane that ends in a loop and does not leave it",
            UndefinedReason::LeavesCode => "control flow that leaves the code",
            UndefinedReason::Descriptor => "a descriptor that differs between lanes, where it has to be the same",
            UndefinedReason::Preamble => "a value that leaves the preamble, which other waves do not run",
            UndefinedReason::PreambleEnd => "an exit of the preamble that does not end it",
            UndefinedReason::Alignment => "an address that does not have the alignment of the access",
            UndefinedReason::Alias => "a buffer that is declared `restrict` is another one too",
        })
    }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All lanes ended.
    Finished,
    /// The fuel was used up: the run has no result.
    OutOfFuel,
    /// The program executed undefined behaviour.
    Undefined {
        /// The reason.
        reason: UndefinedReason,
        /// The operation.
        origin: OperationSite,
        /// The mask of lanes.
        lanes: u64,
    },
}

/// A component of an output that a program may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputSlot {
    /// Driver location.
    pub base: u16,
    /// Component.
    pub component: u8,
    /// True if it has 16 bits.
    pub half: bool,
}

impl fmt::Display for OutputSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, component, half } = *self;
        write!(f, "output {base}.{} of {} bits", letter(component), if half { 16 } else { 32 })
    }
}

/// One component of an output in all lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputRow {
    /// Driver location.
    pub base: u16,
    /// Component.
    pub component: u8,
    /// True if it has 16 bits.
    pub half: bool,
    /// The bits; those of 16-bit outputs are zero-extended. 0 where they are poison, for any contents of the
    /// registers: an earlier run may have left a value there.
    pub values: Row,
    /// The lanes whose value is poison, or was never written.
    pub poison: u64,
}

/// The outputs of a run, ordered by location and component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    rows: Vec<OutputRow>,
}

impl Outputs {
    /// Creates the outputs of a program, none of them written: poison everywhere.
    pub fn declared(slots: &[OutputSlot]) -> Outputs {
        let row = |&OutputSlot { base, component, half }: &OutputSlot| OutputRow {
            base,
            component,
            half,
            values: [0; 64],
            poison: ALL_LANES,
        };
        let mut rows: Vec<OutputRow> = slots.iter().map(row).collect();
        rows.sort_by_key(|row| (row.base, row.component, row.half));
        rows.dedup_by_key(|row| (row.base, row.component));
        Outputs { rows }
    }

    /// Writes a component in some lanes. The component must have been declared.
    pub fn write(&mut self, base: u16, component: u8, mask: u64, values: &Row, poison: u64) {
        let at = self.rows.binary_search_by_key(&(base, component), |row| (row.base, row.component));
        let row = &mut self.rows[at.expect("outputs are declared where a program is decoded")];
        for lane in lanes(mask) {
            row.values[lane] = if poison >> lane & 1 == 0 { values[lane] } else { 0 };
        }
        row.poison = row.poison & !mask | poison & mask;
    }

    /// All rows.
    pub fn rows(&self) -> &[OutputRow] {
        &self.rows
    }

    /// The row of a component.
    pub(super) fn get(&self, base: u16, component: u8) -> Option<&OutputRow> {
        let at = self.rows.binary_search_by_key(&(base, component), |row| (row.base, row.component));
        at.ok().map(|at| &self.rows[at])
    }
}

/// Everything observable of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The end of the run.
    pub end: End,
    /// The outputs.
    pub outputs: Outputs,
    /// The words of memory that the run wrote, ordered by space, binding and word.
    pub memory: Vec<WrittenWord>,
    /// The environment, which gives the contents of words that were not written.
    pub env: Env,
    /// The lanes that were killed or demoted.
    pub killed: u64,
    /// The helper lanes: those from the start, and demoted lanes.
    pub helpers: u64,
    /// The lanes at the start: not compared.
    pub lanes: u64,
    /// The bytes that were loaded.
    pub loads: Loads,
    /// The stores, in order, if the run kept a log: see [`Scratch::logged`](super::Scratch::logged).
    pub stored: Vec<StoredWord>,
    /// The places that have one undefined value: they are equal in a target.
    pub tied: Vec<Vec<TiedPlace>>,
    /// The results of operations on floats of nir that need not be exact, and of exact ones, as hashes: not compared.
    pub floats: [FxHashSet<u64>; 2],
    /// The outcome of a wave that does not run the preamble, if it is another one.
    pub other_waves: Option<Box<Outcome>>,
    /// The operations and accesses of nir that broke their promises (`nuw`, `nsw`, `align_mul`), with their operands,
    /// as hashes: not compared.
    pub broken: FxHashSet<u64>,
    /// Barriers and fences that the wave executed, and then those of the second wave if there is one.
    pub synchronized: Vec<Synchronized>,
    /// The names of the freedoms that a device has in this run, if the environment has the modes of one: not compared.
    pub freedoms: BTreeSet<&'static str>,
    /// The number of instructions that all waves executed.
    pub executed: u64,
    /// A hash of the values that branches, ends of lanes and writes depended on, if undefined bits have values in the
    /// run: not compared.
    pub decisions: u64,
}

/// The result of a comparison that found no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The target has the source's behaviour.
    Same,
    /// The source's run is undefined, so the target may do anything.
    Vacuous,
    /// One of the runs used up its fuel.
    OutOfFuel,
}

/// The first difference between the behaviour of a target and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// An output of the target that the source does not have, with any value, or that has another width in the source.
    OtherOutput(OutputSlot),
    /// An output.
    Output {
        /// Driver location.
        base: u16,
        /// Component.
        component: u8,
        /// Lane.
        lane: u8,
        /// The source's bits.
        expected: u32,
        /// The target's bits; `None` for poison.
        actual: Option<u32>,
    },
    /// A word of memory.
    Memory {
        /// The kind of memory.
        space: Space,
        /// The binding of the array.
        binding: Binding,
        /// The address of the first byte of the word.
        byte: u32,
        /// The source's word.
        expected: u32,
        /// The target's word.
        actual: u32,
        /// The bits of the word where the source is defined.
        defined: u32,
        /// The bits of the word where the target is poison.
        poisoned: u32,
    },
    /// The lanes that were killed.
    Killed {
        /// The killed lanes in the source.
        expected: u64,
        /// The killed lanes in the target.
        actual: u64,
    },
    /// Fewer loads than the source has volatile loads.
    Loads {
        /// The memory, or one of several that are counted together.
        space: Space,
        /// Bytes that volatile and coherent loads of the source load.
        expected: u32,
        /// Bytes that all loads of the target load.
        actual: u32,
    },
    /// A barrier or fence.
    Synchronization {
        /// The number of barriers and fences of the source before it.
        number: u32,
        /// The operation of the source; `None` if it has ended.
        expected: Option<Synchronized>,
        /// The additional operation of the target.
        actual: Option<Synchronized>,
    },
    /// The source is defined, the target is undefined.
    Undefined {
        /// The reason.
        reason: UndefinedReason,
        /// The operation of the target.
        origin: OperationSite,
        /// The mask of lanes.
        lanes: u64,
    },
    /// The source ends; the target did not within many times the instructions.
    Endless {
        /// Instructions that the source executed.
        expected: u64,
        /// Instructions that the target executed before its run was stopped.
        actual: u64,
    },
    /// The declarations of the programs differ.
    Header(HeaderDifference),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::OtherOutput(slot) => write!(f, "the target has {slot}, the source has not"),
            Difference::Output { base, component, lane, expected, actual } => {
                write!(f, "output {base}.{} of lane {lane}: expected {}, ", letter(*component), HexWord(*expected))?;
                match actual {
                    Some(bits) => write!(f, "got {}", HexWord(*bits)),
                    None => f.write_str("got an undefined value"),
                }
            }
            Difference::Memory { space, binding, byte, expected, actual, defined, poisoned } => {
                let name = MemoryName::of(*space, *binding);
                write!(f, "{name} at byte {byte}: expected {}", HexWord(*expected))?;
                if *defined != u32::MAX {
                    write!(f, " (bits {defined:#010x})")?;
                }
                write!(f, ", got {}", HexWord(*actual))?;
                if poisoned & defined != 0 {
                    write!(f, " with undefined bits {poisoned:#010x}")?;
                }
                Ok(())
            }
            Difference::Killed { expected, actual } => {
                write!(f, "killed lanes: expected {expected:#018x}, got {actual:#018x}")
            }
            Difference::Loads { space, expected, actual } => {
                let which = if *space == Space::Shared { "shared memory" } else { "buffers and images" };
                write!(f, "volatile loads of {which}: expected {expected} bytes, all loads are of {actual}")
            }
            Difference::Synchronization { number, expected, actual } => match (expected, actual) {
                (Some(expected), _) => {
                    let [buffers, shared, images] = expected.stored;
                    write!(f, "barrier or fence {number}: expected {} ", expected.sync)?;
                    write!(
                        f,
                        "after stores of {buffers} bytes of buffers, {shared} of shared memory and {images} of images"
                    )
                }
                (None, Some(actual)) => write!(f, "barrier or fence {number}: expected none, got {}", actual.sync),
                (None, None) => write!(f, "barrier or fence {number}"),
            },
            Difference::Undefined { reason, origin, lanes } => {
                write!(f, "the target has no meaning: {reason}, at {origin}, in lanes {lanes:#018x}")
            }
            Difference::Endless { expected, actual } => {
                write!(
                    f,
                    "the target does not end: the source did after {expected} instructions, the target not after {actual}"
                )
            }
            Difference::Header(difference) => difference.fmt(f),
        }
    }
}

/// Prints a word in hexadecimal, as an integer and as a float.
struct HexWord(u32);

impl fmt::Display for HexWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x} ({}, {:?})", self.0, self.0 as i32, f32::from_bits(self.0))
    }
}

fn letter(component: u8) -> char {
    ['x', 'y', 'z', 'w'].get(usize::from(component)).copied().unwrap_or('?')
}

impl Outcome {
    /// Compares this run, of a source, with a run of the target in the same environment.
    ///
    /// A target that runs out of fuel where its source ended is no difference: it may need more fuel. If the source
    /// becomes undefined, its earlier stores are compared, if both runs kept a log.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare(&self, target: &Outcome) -> Result<Compared, Difference> {
        match (&self.end, &target.end) {
            (End::Undefined { reason, lanes, .. }, _) => {
                return self.compare_stored(target, *reason, *lanes).map(|()| Compared::Vacuous);
            }
            (End::OutOfFuel, _) | (_, End::OutOfFuel) => return Ok(Compared::OutOfFuel),
            (End::Finished, End::Undefined { reason, origin, lanes }) => {
                return Err(Difference::Undefined { reason: *reason, origin: origin.clone(), lanes: *lanes });
            }
            (End::Finished, End::Finished) => {}
        }
        if self.killed != target.killed {
            return Err(Difference::Killed { expected: self.killed, actual: target.killed });
        }
        self.compare_outputs(target)?;
        self.compare_memory(target)?;
        self.compare_tied(target)?;
        // A volatile load of the source is a load of the target, volatile or not; the target may have more.
        for (class, space) in SEEN.into_iter().enumerate() {
            let (expected, actual) = (self.loads.volatile[class], target.loads.all[class]);
            if actual < expected {
                return Err(Difference::Loads { space, expected, actual });
            }
        }
        if let Some((number, which)) = Synchronized::first_difference(&self.synchronized, &target.synchronized) {
            let number = number as u32;
            return Err(Difference::Synchronization { number, expected: which.ok(), actual: which.err() });
        }
        Ok(Compared::Same)
    }

    /// A liberty or a promise of the target that this run does not have: the target has a result of an operation on
    /// floats that need not be exact, which only exact ones have here, or breaks a promise that is not broken here.
    pub fn loosened_by(&self, target: &Outcome) -> Option<&'static str> {
        let [free, exact] = &self.floats;
        if target.floats[0].iter().any(|result| exact.contains(result) && !free.contains(result)) {
            return Some("that an operation on floats need not be exact");
        }
        (!target.broken.is_subset(&self.broken))
            .then_some("that a sum does not overflow, or that an address is aligned")
    }

    /// Returns the first difference; `None` if the runs agree, or a run has no result.
    pub fn first_difference(&self, target: &Outcome) -> Option<Difference> {
        self.compare(target).err()
    }

    /// Compares the stores before the source becomes undefined: the target must have stored the same at some time; its
    /// later stores are unconstrained.
    ///
    /// If the target becomes undefined too, it may do so in other lanes and before the stores of the remaining lanes.
    /// In lanes in which both become undefined by a branch or a kill, which no store moves across, all earlier stores
    /// are done.
    fn compare_stored(&self, target: &Outcome, reason: UndefinedReason, lanes: u64) -> Result<(), Difference> {
        use UndefinedReason::{Alias, Branch, Kill, LaneNumber};
        let counted = match &target.end {
            _ if reason == Alias => 0,
            End::Finished => u64::MAX,
            // The outcome does not distinguish the two waves. A store may have been moved across a vote, whose
            // condition became a branch later.
            End::Undefined { .. } if reason == LaneNumber => 0,
            End::Undefined { reason: Branch | Kill, lanes: others, .. }
                if self.synchronized.is_empty() && target.synchronized.is_empty() =>
            {
                lanes & others
            }
            End::Undefined { .. } | End::OutOfFuel => 0,
        };
        if counted == 0 || self.stored.is_empty() {
            return Ok(());
        }
        let place = |stored: &StoredWord| (stored.space, stored.binding, stored.word);
        let mut last = BTreeMap::new();
        for stored in &self.stored {
            last.insert(place(stored), *stored);
        }
        for (at, expected) in last.into_iter().filter(|(_, stored)| counted >> stored.lane & 1 != 0) {
            let differs = |value: u32, poison: u32| !expected.poison & (poison | expected.value ^ value) != 0;
            let mut found = (self.env.memory_word(expected.space, expected.binding, expected.word), 0);
            for stored in target.stored.iter().filter(|stored| place(stored) == at) {
                found = (stored.value, stored.poison);
                if !differs(found.0, found.1) {
                    break;
                }
            }
            let (actual, poisoned) = found;
            if differs(actual, poisoned) {
                return Err(Difference::Memory {
                    space: expected.space,
                    binding: expected.binding,
                    byte: expected.word * 4,
                    expected: expected.value,
                    actual,
                    defined: !expected.poison,
                    poisoned,
                });
            }
        }
        Ok(())
    }

    fn compare_outputs(&self, target: &Outcome) -> Result<(), Difference> {
        for &OutputRow { base, component, half, .. } in target.outputs.rows() {
            if self.outputs.get(base, component).is_none_or(|row| row.half != half) {
                return Err(Difference::OtherOutput(OutputSlot { base, component, half }));
            }
        }
        let live = self.lanes & !self.killed & !self.helpers;
        for expected in self.outputs.rows() {
            let OutputRow { base, component, .. } = *expected;
            let actual = target.outputs.get(base, component);
            for lane in lanes(live & !expected.poison) {
                let bits = actual.filter(|row| row.poison >> lane & 1 == 0).map(|row| row.values[lane]);
                if bits != Some(expected.values[lane]) {
                    return Err(Difference::Output {
                        base,
                        component,
                        lane: lane as u8,
                        expected: expected.values[lane],
                        actual: bits,
                    });
                }
            }
        }
        Ok(())
    }

    fn compare_memory(&self, target: &Outcome) -> Result<(), Difference> {
        let key = |word: &WrittenWord| (word.space, word.binding, word.word);
        let (mut a, mut b) = (self.memory.iter().peekable(), target.memory.iter().peekable());
        loop {
            // A word that only one side wrote has its initial contents on the other.
            let unwritten = |word: &WrittenWord| WrittenWord {
                value: self.env.memory_word(word.space, word.binding, word.word),
                poison: 0,
                ..*word
            };
            let (expected, actual) = match (a.peek(), b.peek()) {
                (None, None) => return Ok(()),
                (Some(&x), Some(&y)) if key(x) == key(y) => {
                    a.next();
                    b.next();
                    (*x, *y)
                }
                (Some(&x), other) if other.is_none_or(|y| key(x) < key(y)) => {
                    a.next();
                    (*x, unwritten(x))
                }
                (_, Some(&y)) => {
                    b.next();
                    (unwritten(y), *y)
                }
                (Some(_), None) => unreachable!("the guard above holds where the target has no more words"),
            };
            // In all bits that the source defines, the target must be defined and equal.
            let differs = !expected.poison & (actual.poison | expected.value ^ actual.value);
            let differs = |byte: u32| differs >> (byte * 8) & 0xff != 0;
            if let Some(byte) = (0..4).find(|&byte| differs(byte)) {
                return Err(Difference::Memory {
                    space: expected.space,
                    binding: expected.binding,
                    byte: expected.word * 4 + byte,
                    expected: expected.value,
                    actual: actual.value,
                    defined: !expected.poison,
                    poisoned: actual.poison,
                });
            }
        }
    }
}
