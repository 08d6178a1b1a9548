//! The trace of a run: its accesses to memory that other waves see, and its barriers and fences, in order.

use super::{ArrayIndex, Memory, Space, part};
use crate::arithmetic::rows::Row;
use crate::environment::Binding;
use crate::environment::aliases::MemoryName;
use crate::environment::env::lanes as lanes_of;
use crate::environment::sync::Sync;

/// The maximum number of words in a trace; a longer one is truncated.
const MOST_WORDS: usize = 1 << 20;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessKind {
    /// A load.
    Load,
    /// A store.
    Store,
    /// An atomic.
    Atomic,
}

/// A word that a lane accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedWord {
    /// The number of the lane.
    pub lane: u8,
    /// The mask of the accessed bytes of the word.
    pub bytes: u8,
    /// The bits of the word that the access changed.
    pub changed: u32,
    /// The index of the word in its array.
    pub word: u32,
    /// The byte address in the program's own buffer.
    pub address: u64,
}

/// An access to one array by some lanes: one component of an instruction.
#[derive(Clone, Debug)]
pub struct TracedAccess {
    /// The kind.
    pub kind: AccessKind,
    /// The number of the instruction in the program of the interpreter.
    pub site: u32,
    /// The number of this execution of a memory instruction, from 1 on.
    pub execution: u32,
    /// True if it is volatile or coherent.
    pub volatile: bool,
    /// The buffer or image that the program names.
    pub named: MemoryName,
    /// The array that is accessed: that of the alias class.
    pub array: MemoryName,
    /// The accessed words, by lane.
    pub words: Vec<TracedWord>,
}

/// An event of a trace.
#[derive(Clone, Debug)]
pub enum TracedEvent {
    /// An access.
    Access(TracedAccess),
    /// A barrier or a fence.
    Sync(TracedSync),
}

/// A barrier or a fence.
#[derive(Clone, Copy, Debug)]
pub struct TracedSync {
    /// The accesses that it orders.
    pub sync: Sync,
    /// The number of the operation in the program of the interpreter.
    pub site: u32,
    /// The mask of the lanes that execute it.
    pub lanes: u64,
}

/// An operation of a program whose order with others may matter, whether or not a run executes it.
#[derive(Clone, Copy, Debug)]
pub enum OrderedCode {
    /// An access to memory that other waves see, by the number of its instruction.
    Access {
        /// The number.
        site: u32,
        /// The kind.
        kind: AccessKind,
        /// The memory.
        space: Space,
        /// True if it is volatile or coherent.
        volatile: bool,
    },
    /// A barrier or a fence, by the number of the operation.
    Sync {
        /// The number.
        site: u32,
        /// The accesses that it orders.
        sync: Sync,
    },
}

impl OrderedCode {
    /// Returns true for a volatile load.
    pub const fn is_volatile_load(self) -> bool {
        matches!(self, Self::Access { kind: AccessKind::Load, volatile: true, .. })
    }

    /// Returns true unless it is a plain load, which may be moved freely between two writes.
    pub const fn is_anchor(self) -> bool {
        match self {
            Self::Access { kind, volatile, .. } => volatile || !matches!(kind, AccessKind::Load),
            Self::Sync { .. } => true,
        }
    }
}

/// The trace of a run of one wave.
#[derive(Clone, Debug, Default)]
pub struct AccessTrace {
    /// The events, in order.
    pub events: Vec<TracedEvent>,
    /// True if the trace was truncated.
    pub cut: bool,
    words: usize,
    /// True if the current instruction is volatile.
    volatile: bool,
    /// The name by which it accesses the array.
    named: Option<MemoryName>,
}

/// A change of words that an execution of a load reads.
#[derive(Clone, Copy, Debug)]
pub struct Perturbation {
    /// The number of the execution: [`TracedAccess::execution`].
    pub execution: u32,
    /// The words.
    pub words: PerturbedWords,
}

/// The words that are changed.
#[derive(Clone, Copy, Debug)]
pub enum PerturbedWords {
    /// A word that one lane loads.
    OfLane {
        /// The lane.
        lane: u8,
        /// The index of the word in its array.
        word: u32,
        /// The bits of the word that are flipped.
        bits: u32,
    },
    /// All words that any lane loads, in each lane by other bits.
    All,
}

impl PerturbedWords {
    /// The bits that are flipped where a lane loads a word.
    fn flipped(self, lane: usize, word: u32) -> u32 {
        match self {
            Self::OfLane { lane: its, word: at, bits } if usize::from(its) == lane && at == word => bits,
            Self::OfLane { .. } => 0,
            // Some bits of each byte.
            Self::All => 0x9e37_79b9_u32.wrapping_mul(lane as u32 + 1) | 0x0101_0101,
        }
    }
}

impl Memory {
    /// Starts a trace.
    pub fn start_trace(&mut self) {
        self.trace = Some(Box::default());
    }

    /// Ends the trace, and returns it.
    pub fn take_trace(&mut self) -> AccessTrace {
        self.trace.take().map(|trace| *trace).unwrap_or_default()
    }

    /// Suspends the trace, and returns it.
    pub fn suspend_trace(&mut self) -> Option<Box<AccessTrace>> {
        self.trace.take()
    }

    /// Resumes a suspended trace.
    pub fn resume_trace(&mut self, trace: Option<Box<AccessTrace>>) {
        self.trace = trace;
    }

    /// Sets the perturbation of a loaded word for all runs until the next call; `None` removes it.
    pub fn perturb(&mut self, perturbation: Option<Perturbation>) {
        self.perturbation = perturbation;
    }

    /// Sets the instruction of the accesses that follow.
    #[inline]
    pub fn begin_access(&mut self, site: u32, volatile: bool) {
        self.site = site;
        self.execution = self.execution.wrapping_add(1);
        if let Some(trace) = &mut self.trace {
            trace.volatile = volatile;
        }
    }

    /// Sets the name by which the program accesses the array.
    #[inline]
    pub(super) fn trace_name(&mut self, space: Space, binding: Binding) {
        if let Some(trace) = &mut self.trace {
            trace.named = Some(MemoryName::of(space, binding));
        }
    }

    /// Records a barrier or a fence.
    #[inline]
    pub fn trace_sync(&mut self, sync: Sync, site: u32, lanes: u64) {
        if let Some(trace) = &mut self.trace {
            trace.events.push(TracedEvent::Sync(TracedSync { sync, site, lanes }));
        }
    }

    /// The values of some words before they are written; none if nothing is traced.
    pub(super) fn traced_values(
        &mut self,
        env: &super::Env,
        array: ArrayIndex,
        (bits, lanes): (u8, u64),
        address: impl Fn(usize) -> u64,
    ) -> Option<Row> {
        self.trace.as_ref()?;
        let array = &mut self.arrays[array.0];
        let mut row = [0; 64];
        for lane in lanes_of(lanes) {
            let word = array.word(lane, address(lane), bits);
            row[lane] = array.read(env, word).0;
        }
        Some(row)
    }

    /// Records a write, if there is a trace: then `old` contains the previous words.
    #[inline]
    pub(super) fn trace_write(
        &mut self,
        kind: AccessKind,
        array: ArrayIndex,
        access: (u8, u64),
        address: impl Fn(usize) -> u64,
        old: Option<Row>,
    ) {
        if let Some(old) = old {
            self.trace_access(kind, array, access, address, Some(&old));
        }
    }

    /// Records an access of `bits` bits. If it writes, `old` contains the previous words.
    pub(super) fn trace_access(
        &mut self,
        kind: AccessKind,
        array: ArrayIndex,
        (bits, lanes): (u8, u64),
        address: impl Fn(usize) -> u64,
        old: Option<&Row>,
    ) {
        let (Some(trace), array) = (&mut self.trace, &self.arrays[array.0]) else { return };
        if array.space == Space::Scratch {
            return;
        }
        let count = lanes.count_ones() as usize;
        if trace.words + count > MOST_WORDS {
            trace.cut = true;
            return;
        }
        trace.words += count;
        let words = lanes_of(lanes).map(|lane| {
            let address = address(lane);
            let word = array.word(lane, address, bits);
            let changed = old.map_or(0, |old| old[lane] ^ array.words.value[word as usize]);
            let byte = address as u32 & 3;
            let bytes = match bits {
                8 => 1 << byte,
                16 => 3 << (byte & 2),
                _ => 0xf,
            };
            TracedWord { lane: lane as u8, bytes, changed, word, address }
        });
        let here = MemoryName::of(array.space, array.binding);
        let access = TracedAccess {
            kind,
            site: self.site,
            execution: self.execution,
            volatile: trace.volatile,
            named: trace.named.unwrap_or(here),
            array: here,
            words: words.collect(),
        };
        trace.events.push(TracedEvent::Access(access));
    }

    /// Flips the perturbed bits of loaded elements.
    pub(super) fn flip(
        &self,
        array: ArrayIndex,
        (width, lanes): (u8, u64),
        address: impl Fn(usize) -> u64,
        elements: &mut Row,
    ) {
        let Some(Perturbation { words, .. }) = self.perturbation.filter(|it| it.execution == self.execution) else {
            return;
        };
        for lane in lanes_of(lanes) {
            let address = address(lane);
            let (shift, mask) = part(address, width);
            let word = self.arrays[array.0].word(lane, address, width);
            elements[lane] ^= words.flipped(lane, word) >> shift & mask;
        }
    }
}
