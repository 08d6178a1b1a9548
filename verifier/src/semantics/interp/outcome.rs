//! What a run leaves behind, and how two runs are compared.

use std::collections::BTreeMap;
use std::fmt;

use crate::semantics::arithmetic::rows::{ALL_LANES, Row};
use crate::semantics::environment::Binding;
use crate::semantics::environment::env::{Env, lanes};
use crate::semantics::environment::memory::{Loads, Space, Stored, WrittenWord};
use crate::semantics::environment::sync::Synchronized;
use crate::semantics::header::HeaderDifference;

/// A program that an interpreter refuses: it names the operation and where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: the interpreter does not support {what}")]
pub struct Unsupported {
    /// The operation, or what about it.
    pub what: String,
    /// Its line or its number in the program.
    pub place: String,
}

/// Where in its program something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The name of the operation.
    pub operation: &'static str,
    /// The number of the instruction in the program's table of instructions.
    pub instr: u32,
    /// The line that it was read from; 0 where there is none.
    pub line: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{} (instruction {})", self.operation, self.instr),
            line => write!(f, "{} (line {line})", self.operation),
        }
    }
}

/// Why a run has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndefinedReason {
    /// A branch on poison.
    Branch,
    /// A lane ended or not by poison.
    Kill,
    /// A store or atomic at a poisoned address, or into a buffer named by poison.
    Address,
    /// A cross-lane operation whose lane number or predicate is poison.
    LaneNumber,
    /// The second of a pair of predications, with another predicate than the first.
    Predication,
    /// Buffers are one in this environment, and the program says that they are not.
    Alias,
}

impl fmt::Display for UndefinedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UndefinedReason::Branch => "a branch on an undefined condition",
            UndefinedReason::Kill => "a lane ends by an undefined condition",
            UndefinedReason::Address => "a write to an undefined address",
            UndefinedReason::LaneNumber => "a cross-lane operation with an undefined lane",
            UndefinedReason::Predication => "a predication that ends with another predicate",
            UndefinedReason::Alias => "a buffer that is declared `restrict` is another one too",
        })
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All lanes came to their end.
    Finished,
    /// The fuel was used up: nothing is known.
    OutOfFuel,
    /// What the program did has no meaning.
    Undefined {
        /// Why.
        reason: UndefinedReason,
        /// Where.
        origin: Origin,
        /// In which lanes.
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
    /// The bits; those of 16-bit outputs are zero-extended. 0 where they are poison, whatever the registers held: an
    /// earlier run may have left something there.
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
    /// The outputs of a program that has written none yet: poison everywhere.
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

    /// Writes a component in some lanes. It must have been declared.
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
    pub fn get(&self, base: u16, component: u8) -> Option<&OutputRow> {
        let at = self.rows.binary_search_by_key(&(base, component), |row| (row.base, row.component));
        at.ok().map(|at| &self.rows[at])
    }
}

/// What a run can be observed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The outputs.
    pub outputs: Outputs,
    /// The words of memory that it wrote, ordered by space, binding and word.
    pub memory: Vec<WrittenWord>,
    /// The environment, which tells what words hold that were not written.
    pub env: Env,
    /// The lanes that were killed or demoted.
    pub killed: u64,
    /// The helper lanes, from the start or since they were demoted.
    pub helpers: u64,
    /// The lanes that were there at the start: not part of what is compared.
    pub lanes: u64,
    /// What was loaded.
    pub loads: Loads,
    /// What was stored, in order, if the run was to keep that: see [`Scratch::logged`](super::Scratch::logged).
    pub stored: Vec<Stored>,
    /// Barriers and fences that the wave executed, and then those of the second one if there is one.
    pub synchronized: Vec<Synchronized>,
    /// Instructions that the wave executed; where there are two, both.
    pub executed: u64,
}

/// What came out of a comparison that found no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The target did what the source did.
    Same,
    /// The source's run has no meaning, so the target may do anything.
    Vacuous,
    /// One of the runs used up its fuel.
    OutOfFuel,
}

/// The first thing that a target did otherwise than its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// An output of the target that the source does not have, whatever its value, or that has another width there.
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
        /// Which memory.
        space: Space,
        /// Which array of it.
        binding: Binding,
        /// Which byte: the first of the word that differs.
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
    /// Which lanes were killed.
    Killed {
        /// In the source.
        expected: u64,
        /// In the target.
        actual: u64,
    },
    /// Fewer loads than the source has volatile ones.
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
        /// How many the source executed before.
        number: u32,
        /// What the source executes; nothing where it has ended.
        expected: Option<Synchronized>,
        /// What the target executes beyond that.
        actual: Option<Synchronized>,
    },
    /// The source has a meaning, the target has none.
    Undefined {
        /// Why.
        reason: UndefinedReason,
        /// Where in the target.
        origin: Origin,
        /// In which lanes.
        lanes: u64,
    },
    /// The source ends, the target was given many times the instructions and did not.
    Endless {
        /// Instructions that the source executed.
        expected: u64,
        /// Instructions that the target executed before it was given up.
        actual: u64,
    },
    /// The programs say different things of themselves, whatever they do.
    Header(HeaderDifference),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::OtherOutput(slot) => write!(f, "the target has {slot}, the source has not"),
            Difference::Output { base, component, lane, expected, actual } => {
                write!(f, "output {base}.{} of lane {lane}: expected {}, ", letter(*component), Bits(*expected))?;
                match actual {
                    Some(bits) => write!(f, "got {}", Bits(*bits)),
                    None => f.write_str("got an undefined value"),
                }
            }
            Difference::Memory { space, binding, byte, expected, actual, defined, poisoned } => {
                write!(f, "{} {binding} at byte {byte}: expected {}", space.name(), Bits(*expected))?;
                if *defined != u32::MAX {
                    write!(f, " (bits {defined:#010x})")?;
                }
                write!(f, ", got {}", Bits(*actual))?;
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
                    let [device, shared] = expected.stored;
                    write!(f, "barrier or fence {number}: expected {} ", expected.sync)?;
                    write!(f, "after stores of {device} bytes of device memory and {shared} of shared memory")
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

/// A word in hexadecimal, and as what it may be.
struct Bits(u32);

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x} ({}, {:?})", self.0, self.0 as i32, f32::from_bits(self.0))
    }
}

fn letter(component: u8) -> char {
    ['x', 'y', 'z', 'w'].get(usize::from(component)).copied().unwrap_or('?')
}

impl Outcome {
    /// The first difference from this run, of a source, to a run of the target in the same environment; or what it
    /// means that there is none.
    ///
    /// A target that runs out of fuel where its source ended says nothing here: it may need more of it. Of a source that loses its
    /// meaning, what it stored before counts, if both runs kept that.
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
        // A volatile load is a load of the target, whatever that says of it; there may be others besides.
        for (class, space) in [Space::Ssbo, Space::Shared].into_iter().enumerate() {
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

    /// The first difference; none if the target did what the source did, or nothing is known.
    pub fn first_difference(&self, target: &Outcome) -> Option<Difference> {
        self.compare(target).err()
    }

    /// Compares what was stored before the source lost its meaning: the target must have stored the same at some time, for what it does
    /// later is its own affair.
    ///
    /// Where the target loses its meaning too, it may do so in other lanes and before it has come to the stores of the rest. Of lanes in which
    /// both lose it by a branch or a kill, which nothing moves across, all earlier stores are done.
    fn compare_stored(&self, target: &Outcome, reason: UndefinedReason, lanes: u64) -> Result<(), Difference> {
        use UndefinedReason::{Alias, Branch, Kill};
        let counted = match &target.end {
            _ if reason == Alias => 0,
            End::Finished => u64::MAX,
            // Which of two waves it was is not known.
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
        let place = |stored: &Stored| (stored.space, stored.binding, stored.word);
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
            // Where the source is defined, the target must be, and have the same.
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
