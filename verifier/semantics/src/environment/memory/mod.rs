//! Memory: arrays of 32-bit words that get their initial contents at the first access.
//!
//! Every address is valid: a word beyond the end of its array is mapped into it by a hash, so high address bits matter
//! and no access is out of bounds. The exception is scratch memory, which spilled values share with the shader: it has
//! the size that the program declares, and [`Memory::outside`] returns the lanes beyond it.
//!
//! Each word has a stamp; a word whose stamp is not the current run's has its initial contents, which are a function of
//! the environment. So a reset is one addition, and a run pays only for the words that it touches. Written words are
//! marked in a bitmap, in whose order [`Memory::written`] lists them.

mod atomic;
mod space;
mod trace;

pub use atomic::Atomic;
pub use space::{
    DISTINCT_BYTES, IMAGE_CELLS, MAX_SCRATCH_BYTES, NEAR_BYTES, SCRATCH_BYTES, Space, TexelView, image_cell,
    size_property, word_of,
};
pub use trace::{
    AccessKind, AccessTrace, OrderedCode, Perturbation, PerturbedWords, TracedAccess, TracedEvent, TracedSync,
    TracedWord,
};

use smallvec::SmallVec;

use crate::arithmetic::rows::{LANES, Row};
use crate::environment::Binding;
use crate::environment::aliases::AliasClasses;
use crate::environment::env::{Env, lanes as lanes_of};
use crate::support::random::hash;

/// The mask of all bits of a word.
const WHOLE: u32 = u32::MAX;

/// An array of words with stamps.
#[derive(Clone, Debug, Default)]
pub struct Words {
    value: Vec<u32>,
    /// The mask of poisoned bits of each word.
    poison: Vec<u32>,
    /// The run in which the word was last touched.
    stamp: Vec<u32>,
    /// A bit for each word that was written in this run.
    written: Vec<u64>,
    /// The number of the current run.
    run: u32,
}

impl Words {
    /// Creates an array of `words` words, none of them touched.
    pub fn new(words: u32) -> Words {
        let n = words as usize;
        Words { value: vec![0; n], poison: vec![0; n], stamp: vec![0; n], written: vec![0; n.div_ceil(64)], run: 1 }
    }

    /// Resets all words to their initial contents.
    pub fn reset(&mut self) {
        self.written.fill(0);
        self.run = self.run.wrapping_add(1);
        if self.run == 0 {
            self.stamp.fill(0);
            self.run = 1;
        }
    }

    /// Grows the array to at least this many words. Existing words stay.
    fn grow(&mut self, words: usize) {
        if self.value.len() < words {
            self.value.resize(words, 0);
            self.poison.resize(words, 0);
            self.stamp.resize(words, 0);
            self.written.resize(words.div_ceil(64), 0);
        }
    }

    /// Grows the array if it does not have a word.
    #[inline]
    fn grow_for(&mut self, index: usize) {
        if index >= self.value.len() {
            self.grow((index + 1).next_power_of_two());
        }
    }

    /// Reads a word and its poisoned bits; `initial` gives both for a word that was not touched yet.
    #[inline]
    pub fn read(&mut self, index: u32, initial: impl FnOnce() -> (u32, u32)) -> (u32, u32) {
        let i = index as usize;
        self.grow_for(i);
        if self.stamp[i] != self.run {
            (self.value[i], self.poison[i]) = initial();
            self.stamp[i] = self.run;
        }
        (self.value[i], self.poison[i])
    }

    /// Replaces a word.
    #[inline]
    pub fn write(&mut self, index: u32, value: u32, poison: u32) {
        let i = index as usize;
        self.grow_for(i);
        self.stamp[i] = self.run;
        self.written[i / 64] |= 1 << (i % 64);
        self.value[i] = value;
        self.poison[i] = poison;
    }

    /// The words that were written, in order: index, value, poisoned bits.
    pub fn written_words(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        self.written().map(|word| (word, self.value[word as usize], self.poison[word as usize]))
    }

    /// The words that were written, in order.
    fn written(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.written.iter().enumerate().filter(|(_, bits)| **bits != 0);
        words.flat_map(|(i, &bits)| lanes_of(bits).map(move |bit| (i * 64 + bit) as u32))
    }
}

/// An array in a memory.
#[derive(Clone, Debug)]
struct MemoryArray {
    space: Space,
    binding: Binding,
    words: Words,
}

/// The final contents of a word that a run wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenWord {
    /// The kind of memory.
    pub space: Space,
    /// The binding of the array.
    pub binding: Binding,
    /// The index of the word.
    pub word: u32,
    /// The contents, with 0 in poisoned bits, independent of the stored value.
    pub value: u32,
    /// The mask of poisoned bits.
    pub poison: u32,
}

/// A store of one lane to a word, in the log of a traced run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredWord {
    /// The kind of memory.
    pub space: Space,
    /// The binding of the array.
    pub binding: Binding,
    /// The index of the word.
    pub word: u32,
    /// The contents after the store.
    pub value: u32,
    /// The mask of poisoned bits after the store.
    pub poison: u32,
    /// The number of the lane.
    pub lane: u8,
}

/// The bytes that all lanes together have loaded, by kind of memory ([`SEEN`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loads {
    /// The bytes of all loads.
    pub all: [u32; SEEN.len()],
    /// The bytes of volatile or coherent loads.
    pub volatile: [u32; SEEN.len()],
}

/// The kinds of memory that other waves see, each with its own counters; global memory counts as storage buffers.
pub const SEEN: [Space; 3] = [Space::Ssbo, Space::Shared, Space::Image];

/// The index of the counter of a kind of memory in [`SEEN`].
#[inline]
const fn class(space: Space) -> Option<usize> {
    match space {
        Space::Ssbo | Space::Global => Some(0),
        Space::Shared => Some(1),
        Space::Image => Some(2),
        Space::Scratch => None,
    }
}

/// The index of an array in its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayIndex(usize);

/// The lanes of an access that access one array.
#[derive(Clone, Copy, Debug)]
pub struct AccessPart {
    /// The array.
    pub array: ArrayIndex,
    /// The mask of the lanes.
    pub lanes: u64,
    /// The mask of the address bits that are significant in the array.
    pub window: u64,
}

/// The memory of a run. [`reset`](Memory::reset) it before each run.
///
/// Accesses take a function from the lane to the byte address. Lanes are served in order, the lowest first; an access
/// of several components is one call per component, in order.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    arrays: Vec<MemoryArray>,
    /// The number of arrays in use by the current run; the others keep their storage for a later one.
    live: usize,
    /// Bytes of scratch memory per lane; 0 for [`SCRATCH_BYTES`].
    scratch_bytes: u32,
    /// The log of stores; `None` unless it is [kept](Memory::keep_log).
    log: Option<Vec<StoredWord>>,
    /// Bytes that the wave has stored so far, by kind of memory ([`SEEN`]).
    stored: [u32; SEEN.len()],
    aliases: AliasClasses,
    /// The trace of accesses, if one was started.
    trace: Option<Box<AccessTrace>>,
    /// The perturbed load, if any: see [`perturb`](Self::perturb).
    perturbation: Option<Perturbation>,
    /// The current instruction, and the number of its execution.
    site: u32,
    execution: u32,
    loads: Loads,
    /// The number of the running wave.
    wave: u32,
}

impl Memory {
    /// Starts or ends the log of stores.
    pub fn keep_log(&mut self, keep: bool) {
        self.log = keep.then(Vec::new);
    }

    /// Suspends the log, and returns it.
    pub fn suspend_log(&mut self) -> Option<Vec<StoredWord>> {
        self.log.take()
    }

    /// Resumes a suspended log.
    pub fn resume_log(&mut self, log: Option<Vec<StoredWord>>) {
        self.log = log;
    }

    /// Sets the number of the running wave: each has scratch memory of its own.
    pub fn set_wave(&mut self, wave: u32) {
        self.wave = wave;
    }

    /// Bytes that the running wave has stored so far, by kind of memory ([`SEEN`]).
    pub fn stored(&self) -> [u32; SEEN.len()] {
        self.stored
    }

    /// Sets the bytes that the wave has stored, where another wave is resumed: see [`stored`](Self::stored).
    pub fn set_stored(&mut self, stored: [u32; SEEN.len()]) {
        self.stored = stored;
    }

    /// Counts a load of `bits` bits in each of some lanes.
    #[inline]
    pub fn note_load(&mut self, array: ArrayIndex, lanes: u64, bits: u8, volatile: bool) {
        let Some(class) = class(self.arrays[array.0].space) else { return };
        let bytes = lanes.count_ones() * u32::from(bits / 8);
        self.loads.all[class] = self.loads.all[class].wrapping_add(bytes);
        if volatile {
            self.loads.volatile[class] = self.loads.volatile[class].wrapping_add(bytes);
        }
    }

    /// The bytes loaded so far.
    pub fn loads(&self) -> Loads {
        self.loads
    }

    fn count(&mut self, array: ArrayIndex, lanes: u64, bytes: u32) {
        let Some(class) = class(self.arrays[array.0].space) else { return };
        self.stored[class] = self.stored[class].wrapping_add(lanes.count_ones() * bytes);
    }

    /// Returns the stores since the last call.
    pub fn take_log(&mut self) -> Vec<StoredWord> {
        self.log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    #[cold]
    fn note(&mut self, array: ArrayIndex, lanes: u64, (words, bits): (u32, u8), address: impl Fn(usize) -> u64) {
        let (Some(log), array) = (&mut self.log, &self.arrays[array.0]) else { return };
        // Only the lane itself sees its scratch memory, which spilled values share.
        if array.space == Space::Scratch {
            return;
        }
        for lane in lanes_of(lanes) {
            for i in 0..words {
                let word = array.word(lane, address(lane).wrapping_add(u64::from(i) * 4), bits);
                let MemoryArray { space, binding, ref words } = *array;
                let (value, poison) = (words.value[word as usize], words.poison[word as usize]);
                log.push(StoredWord { space, binding, word, value, poison, lane: lane as u8 });
            }
        }
    }

    /// Resets everything; the storage is kept.
    pub fn reset(&mut self) {
        for array in &mut self.arrays[..self.live] {
            array.words.reset();
        }
        self.live = 0;
        self.wave = 0;
        self.execution = 0;
        self.stored = [0; SEEN.len()];
        self.loads = Loads::default();
    }

    /// Sets the bytes of scratch memory per lane; 0 if the program does not declare them. Called before the first
    /// access.
    pub fn set_scratch_bytes(&mut self, bytes: u32) {
        self.scratch_bytes = bytes.min(MAX_SCRATCH_BYTES);
    }

    fn scratch_bytes(&self) -> u32 {
        if self.scratch_bytes == 0 { SCRATCH_BYTES } else { self.scratch_bytes }
    }

    /// The lanes whose access of `bits` bits is out of bounds of the lane's scratch memory. Loads give poison there,
    /// and stores are undefined behaviour.
    pub fn outside(&self, array: ArrayIndex, bits: u8, lanes: u64, address: impl Fn(usize) -> u64) -> u64 {
        if self.arrays[array.0].space != Space::Scratch {
            return 0;
        }
        let end = u64::from(self.scratch_bytes());
        let is_outside = |lane: usize| address(lane) + u64::from(bits / 8) > end;
        lanes_of(lanes).fold(0, |mask, lane| mask | u64::from(is_outside(lane)) << lane)
    }

    /// Sets the alias classes. Called before the first access.
    pub fn set_aliases(&mut self, aliases: AliasClasses) {
        self.aliases = aliases;
    }

    /// The arrays of an access by some lanes, each with its lanes. There is one array, except for global memory, whose
    /// regions may be in several.
    pub fn parts(
        &mut self,
        space: Space,
        binding: Binding,
        lanes: u64,
        address: impl Fn(usize) -> u64,
    ) -> SmallVec<[AccessPart; 2]> {
        self.trace_name(space, binding);
        let mut parts = SmallVec::new();
        let splits = self.aliases.splits(space);
        let mut rest = lanes;
        while rest != 0 {
            let first = address(rest.trailing_zeros() as usize);
            let place = self.aliases.place(space, binding, first);
            let is_here = |lane: &usize| self.aliases.place(space, binding, address(*lane)) == place;
            let group = match splits {
                true => lanes_of(rest).filter(is_here).fold(0, |group, lane| group | 1 << lane),
                false => rest,
            };
            let array = self.array(place.space, place.binding);
            parts.push(AccessPart { array, lanes: group, window: place.window });
            rest &= !group;
        }
        parts
    }

    /// The array of a binding; creates it at the first access.
    pub fn array(&mut self, space: Space, binding: Binding) -> ArrayIndex {
        let binding = if space == Space::Scratch { Binding::bound(self.wave) } else { binding };
        let found = self.arrays[..self.live].iter().position(|a| a.binding == binding && a.space == space);
        ArrayIndex(found.unwrap_or_else(|| self.add(space, binding)))
    }

    #[cold]
    fn add(&mut self, space: Space, binding: Binding) -> usize {
        match self.arrays[self.live..].iter().position(|array| array.space == space) {
            Some(spare) => {
                self.arrays.swap(self.live, self.live + spare);
                self.arrays[self.live].binding = binding;
            }
            None => {
                self.arrays.push(MemoryArray { space, binding, words: Words::new(space.words()) });
                let last = self.arrays.len() - 1;
                self.arrays.swap(self.live, last);
            }
        }
        if space == Space::Scratch {
            let words = self.scratch_bytes().div_ceil(4) as usize * LANES;
            self.arrays[self.live].words.grow(words);
        }
        self.live += 1;
        self.live - 1
    }

    /// Loads `bits` (8, 16 or 32) at each lane's address. Returns the mask of lanes whose result is poison, and writes
    /// their poisoned bits to `open`.
    ///
    /// An unaligned address accesses another word, which a hash determines.
    #[expect(clippy::too_many_arguments, reason = "an access has that many properties")]
    pub fn load(
        &mut self,
        env: &Env,
        array: ArrayIndex,
        bits: u8,
        lanes: u64,
        address: impl Fn(usize) -> u64,
        dst: &mut Row,
        open: &mut Row,
    ) -> u64 {
        let number = array;
        let outside = self.outside(array, bits, lanes, &address);
        let mut poisoned = 0;
        if self.trace.is_some() {
            self.trace_access(AccessKind::Load, array, (bits, lanes & !outside), &address, None);
        }
        let array = &mut self.arrays[array.0];
        for lane in lanes_of(lanes & !outside) {
            let address = address(lane);
            let word = array.word(lane, address, bits);
            let (value, poison) = array.read(env, word);
            let (shift, mask) = part(address, bits);
            dst[lane] = value >> shift & mask;
            let poison = poison >> shift & mask;
            if poison != 0 {
                open[lane] = poison;
                poisoned |= 1 << lane;
            }
        }
        for lane in lanes_of(outside) {
            open[lane] = u32::MAX;
        }
        self.flip(number, (bits, lanes & !outside), &address, dst);
        poisoned | outside
    }

    /// Stores `bits` (8, 16 or 32) at each lane's address; in lanes of `poison`, the bits in `open` are poison. Lanes
    /// [`outside`](Self::outside) store nothing.
    #[expect(clippy::too_many_arguments, reason = "an access has that many properties")]
    pub fn store(
        &mut self,
        env: &Env,
        array: ArrayIndex,
        bits: u8,
        lanes: u64,
        address: impl Fn(usize) -> u64,
        data: &Row,
        poison: u64,
        open: &Row,
    ) {
        let number = array;
        let lanes = lanes & !self.outside(array, bits, lanes, &address);
        self.count(array, lanes, u32::from(bits / 8));
        let before = self.traced_values(env, array, (bits, lanes), &address);
        let array = &mut self.arrays[array.0];
        for lane in lanes_of(lanes) {
            let address = address(lane);
            let word = array.word(lane, address, bits);
            let open = if poison >> lane & 1 != 0 { open[lane] } else { 0 };
            if bits == 32 {
                array.words.write(word, data[lane], open);
                continue;
            }
            let (old, old_poison) = array.read(env, word);
            let (shift, mask) = part(address, bits);
            let replace = |old: u32, new: u32| old & !(mask << shift) | (new & mask) << shift;
            array.words.write(word, replace(old, data[lane]), replace(old_poison, open));
        }
        if self.log.is_some() {
            self.note(number, lanes, (1, bits), &address);
        }
        self.trace_write(AccessKind::Store, number, (bits, lanes), &address, before);
    }

    /// Applies an atomic to the word at each lane's address, and reads the old contents. Returns the mask of lanes
    /// whose result is poison. A poisoned operand makes the word poison.
    #[expect(clippy::too_many_arguments, reason = "an access has that many properties")]
    pub fn atomic(
        &mut self,
        env: &Env,
        array: ArrayIndex,
        op: Atomic,
        lanes: u64,
        address: impl Fn(usize) -> u64,
        data: &Row,
        compare: &Row,
        poison: u64,
        dst: &mut Row,
    ) -> u64 {
        let number = array;
        self.count(array, lanes, 4);
        let before = self.traced_values(env, array, (32, lanes), &address);
        let array = &mut self.arrays[array.0];
        let mut poisoned = 0;
        for lane in lanes_of(lanes) {
            let word = array.word(lane, address(lane), 32);
            let (old, old_poison) = array.read(env, word);
            let new = op.apply(old, data[lane], compare[lane]);
            let operand = poison >> lane & 1 != 0;
            let bad = operand || old_poison != 0 && op != Atomic::Exchange;
            // Only an exchange stores its operand, so that its defined bits are known.
            let new = if bad && op != Atomic::Exchange { 0 } else { new };
            array.words.write(word, new, if bad { WHOLE } else { 0 });
            dst[lane] = old;
            poisoned |= u64::from(old_poison != 0) << lane;
        }
        if self.log.is_some() {
            self.note(number, lanes, (1, 32), &address);
        }
        self.trace_write(AccessKind::Atomic, number, (32, lanes), &address, before);
        poisoned
    }

    /// [`atomic`](Memory::atomic) on 64 bits: the word at the address is the low one, the word at the next address the
    /// high one.
    #[expect(clippy::too_many_arguments, reason = "an access has that many properties")]
    pub fn atomic_wide(
        &mut self,
        env: &Env,
        array: ArrayIndex,
        op: Atomic,
        lanes: u64,
        address: impl Fn(usize) -> u64,
        data: [&Row; 2],
        compare: [&Row; 2],
        poison: u64,
        dst: [&mut Row; 2],
    ) -> u64 {
        let number = array;
        self.count(array, lanes, 8);
        let high = |lane: usize| address(lane).wrapping_add(4);
        let before = self.traced_values(env, array, (32, lanes), &address);
        let before_high = self.traced_values(env, array, (32, lanes), high);
        let array = &mut self.arrays[array.0];
        let mut poisoned = 0;
        let both = |rows: [&Row; 2], lane: usize| u64::from(rows[0][lane]) | u64::from(rows[1][lane]) << 32;
        let [dst_low, dst_high] = dst;
        for lane in lanes_of(lanes) {
            let address = address(lane);
            let words = [address, address.wrapping_add(4)].map(|address| array.word(lane, address, 32));
            let [(low, low_poison), (high, high_poison)] = words.map(|word| array.read(env, word));
            let old_poison = low_poison | high_poison;
            let old = u64::from(low) | u64::from(high) << 32;
            let new = op.apply_wide(old, both(data, lane), both(compare, lane));
            let bad = poison >> lane & 1 != 0 || old_poison != 0 && op != Atomic::Exchange;
            let poison = if bad { WHOLE } else { 0 };
            let new = if bad && op != Atomic::Exchange { 0 } else { new };
            array.words.write(words[0], new as u32, poison);
            array.words.write(words[1], (new >> 32) as u32, poison);
            (dst_low[lane], dst_high[lane]) = (low, high);
            poisoned |= u64::from(old_poison != 0) << lane;
        }
        if self.log.is_some() {
            self.note(number, lanes, (2, 32), &address);
        }
        self.trace_write(AccessKind::Atomic, number, (32, lanes), &address, before);
        self.trace_write(AccessKind::Atomic, number, (32, lanes), high, before_high);
        poisoned
    }

    /// The words that the run read or wrote, except scratch memory, ordered by space, binding and word.
    pub fn touched(&self) -> Vec<(Space, Binding, u32)> {
        let live = self.arrays[..self.live].iter().filter(|array| array.space != Space::Scratch);
        let mut out: Vec<_> = live
            .flat_map(|array| {
                let stamps = array.words.stamp.iter().zip(0..);
                let touched = stamps.filter(|(stamp, _)| **stamp == array.words.run);
                touched.map(|(_, word)| (array.space, array.binding, word))
            })
            .collect();
        out.sort_unstable();
        out
    }

    /// The words outside of scratch memory that the run wrote and of which all 32 bits are poison: space, buffer, number
    /// of the word, and the value that is stored.
    pub fn undefined_words(&self) -> impl Iterator<Item = (Space, Binding, u32, u32)> + '_ {
        let seen = self.arrays[..self.live].iter().filter(|array| array.space != Space::Scratch);
        seen.flat_map(|array| {
            let words = array.words.written().map(|word| word as usize);
            let words = words.filter(|&word| array.words.poison[word] == WHOLE);
            words.map(|word| (array.space, array.binding, word as u32, array.words.value[word]))
        })
    }

    /// The observable words that the run wrote, ordered by space, binding and word.
    pub fn written(&self) -> Vec<WrittenWord> {
        let live = &self.arrays[..self.live];
        let mut order: SmallVec<[&MemoryArray; 16]> =
            live.iter().filter(|array| array.space != Space::Scratch).collect();
        order.sort_unstable_by_key(|array| (array.space, array.binding));
        let mut out = Vec::new();
        for array in order {
            out.extend(array.words.written().map(|word| {
                let (value, poison) = (array.words.value[word as usize], array.words.poison[word as usize]);
                let value = value & !poison;
                WrittenWord { space: array.space, binding: array.binding, word, value, poison }
            }));
        }
        out
    }
}

impl MemoryArray {
    #[inline]
    fn word(&self, lane: usize, address: u64, bits: u8) -> u32 {
        let size = u64::from(bits / 8).max(1);
        match self.space {
            // The words of all lanes at one address are adjacent. The address is within the lane's size.
            Space::Scratch => (address >> 2) as u32 * LANES as u32 + lane as u32,
            // The result of an unaligned access is unspecified, so it must not be that of the aligned one.
            space if !address.is_multiple_of(size) => (hash(&[address, size]) % u64::from(space.words())) as u32,
            space => word_of(address, space.words()),
        }
    }

    #[inline]
    fn read(&mut self, env: &Env, word: u32) -> (u32, u32) {
        let MemoryArray { space, binding, words } = self;
        words.read(word, || match space {
            // Scratch memory is uninitialized when the lane starts.
            Space::Scratch => (0, WHOLE),
            // Shared memory is uninitialized on a Vulkan device, too.
            Space::Shared if env.device.is_some_and(|device| device.modes.is_some()) => (0, WHOLE),
            space => (env.memory_word(*space, *binding, word), 0),
        })
    }
}

/// The position of an access of `bits` bits in its word: shift, and mask before the shift.
#[inline]
fn part(address: u64, bits: u8) -> (u32, u32) {
    let byte = address as u32 & 3;
    match bits {
        8 => (byte * 8, 0xff),
        16 => ((byte & 2) * 8, 0xffff),
        _ => (0, u32::MAX),
    }
}
