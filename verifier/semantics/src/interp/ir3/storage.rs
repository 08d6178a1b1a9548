//! The storage of a running wave.
//!
//! One *slot* holds one 32-bit value in each of the 64 lanes. Every possible operand has slots: each component of an
//! SSA value, each register, each element of an array, and also each immediate and each word of the constant file that
//! the program mentions, so that reading an operand is indexing. A half register of a merged register file is one half
//! of a full register's slot ([`SlotPart`]); everywhere else a 16-bit value has a slot of its own and is kept
//! zero-extended.
//!
//! Each slot has two poison masks, for its low and its high 16 bits; a lane of a full value is poison if either mask
//! has it. A separate row has the bits that are poison, for lanes that are marked as partly poison; the others are
//! poison as a whole. Shared registers hold one value for the wave: all lanes of their slots are kept equal.

use crate::arithmetic::rows::{LANES, Row};
use crate::environment::env::lanes;
use crate::interp::filling::Filled;
use crate::operations::Modify;
use crate::operations::undefined::{Partly, partly_modified};

/// The bits of a slot that an operand names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotPart {
    /// All bits.
    Whole,
    /// The low half of a merged register.
    Low,
    /// The high half of a merged register.
    High,
}

/// A component of an operand: a slot, or half of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loc {
    /// The slot.
    pub slot: u32,
    /// The bits of it.
    pub part: SlotPart,
}

impl Loc {
    /// A whole slot.
    pub const fn whole(slot: u32) -> Self {
        Self { slot, part: SlotPart::Whole }
    }

    /// Returns true if a write to one may change the other.
    pub fn overlaps(self, other: Self) -> bool {
        self.slot == other.slot
            && (self.part == other.part || self.part == SlotPart::Whole || other.part == SlotPart::Whole)
    }
}

/// A modifier that is applied to an operand when it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Modifier {
    /// No modifier.
    None,
    /// Negates a truth value.
    Invert,
    /// Takes the low 16 bits.
    Low,
    /// Applies the instruction's modifiers.
    Apply(&'static Modify),
}

/// A source component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read {
    /// The location.
    pub loc: Loc,
    /// The modifier.
    pub modifier: Modifier,
}

impl Read {
    /// A source without a modifier.
    pub const fn plain(loc: Loc) -> Self {
        Self { loc, modifier: Modifier::None }
    }
}

/// A destination component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The location.
    pub loc: Loc,
    /// Writes one value for the wave, that of the first active lane.
    pub shared: bool,
}

/// The active lanes.
pub(crate) struct Active {
    /// One bit per lane.
    pub mask: u64,
    /// All lanes that have not ended are active, so writes to the others cannot be observed.
    pub all: bool,
    /// All ones in the lanes of the mask (only kept while `all` is false).
    words: Row,
}

impl Active {
    /// No lane.
    pub const fn none() -> Self {
        Self { mask: 0, all: false, words: [0; LANES] }
    }

    /// Makes the lanes of `mask` active, of those in `alive`.
    pub fn set(&mut self, mask: u64, alive: u64) {
        self.mask = mask;
        self.all = mask == alive;
        if !self.all {
            for (lane, word) in self.words.iter_mut().enumerate() {
                *word = 0u32.wrapping_sub((mask >> lane & 1) as u32);
            }
        }
    }
}

/// The slots of a wave.
#[derive(Default)]
pub(crate) struct Storage {
    /// The rows.
    pub words: Vec<Row>,
    /// Two masks per slot.
    pub poison: Vec<u64>,
    /// The lanes of a slot whose poisoned bits are those in `open`. Elsewhere all bits are.
    pub partial: Vec<u64>,
    /// The mask of poisoned bits.
    pub open: Vec<Row>,
    /// The values of undefined bits, if they have any: nothing is poison then.
    pub filled: Option<Filled>,
}

impl Storage {
    /// Creates `slots` slots, all poison; their memory is reused.
    pub fn reset(&mut self, slots: usize) {
        if self.words.len() < slots {
            self.words.resize(slots, [0; LANES]);
        }
        if self.poison.len() < 2 * slots {
            self.poison.resize(2 * slots, !0);
        }
        self.partial[..slots].fill(0);
        if let Some(filled) = &self.filled {
            self.poison[..2 * slots].fill(0);
            for (slot, words) in self.words[..slots].iter_mut().enumerate() {
                filled.fill(slot as u32, words, !0, |_| u32::MAX);
            }
            return;
        }
        self.poison[..2 * slots].fill(!0);
    }

    #[inline]
    fn masks(&mut self, slot: u32) -> &mut [u64; 2] {
        let at = 2 * slot as usize;
        (&mut self.poison[at..at + 2]).try_into().expect("two masks a slot")
    }

    /// Sets a slot to one value in all lanes.
    pub fn splat(&mut self, slot: u32, value: u32, poison: bool) {
        self.words[slot as usize] = [value; LANES];
        let poison = match &self.filled {
            Some(filled) if poison => {
                // One value for all lanes.
                self.words[slot as usize] = [filled.bits(slot, 0); LANES];
                false
            }
            _ => poison,
        };
        *self.masks(slot) = [if poison { !0 } else { 0 }; 2];
    }

    /// A source's value and poison. `buffer` is used if the value is not a whole slot.
    #[inline]
    pub fn read<'a>(&'a self, read: &Read, buffer: &'a mut Row) -> (&'a Row, u64) {
        let slot = read.loc.slot as usize;
        let (low, high) = (self.poison[2 * slot], self.poison[2 * slot + 1]);
        let words = &self.words[slot];
        let poison = match read.loc.part {
            SlotPart::Whole => {
                if matches!(read.modifier, Modifier::None) {
                    return (words, low | high);
                }
                *buffer = *words;
                low | high
            }
            SlotPart::Low => {
                for (out, word) in buffer.iter_mut().zip(words) {
                    *out = word & 0xffff;
                }
                low
            }
            SlotPart::High => {
                for (out, word) in buffer.iter_mut().zip(words) {
                    *out = word >> 16;
                }
                high
            }
        };
        match read.modifier {
            Modifier::None => {}
            Modifier::Invert => buffer.iter_mut().for_each(|word| *word = *word & 1 ^ 1),
            Modifier::Low => buffer.iter_mut().for_each(|word| *word &= 0xffff),
            Modifier::Apply(apply) => (apply.run)(buffer),
        }
        (buffer, poison)
    }

    /// The poisoned bits of one lane of a source.
    pub fn open_bits(&self, read: &Read, lane: usize) -> u32 {
        let open = self.open_of(read.loc, lane);
        match read.modifier {
            Modifier::None => open,
            Modifier::Invert => open & 1,
            Modifier::Low => open & 0xffff,
            Modifier::Apply(_) if open == 0 => 0,
            Modifier::Apply(apply) => partly_modified(apply, Partly::new(self.lane(read.loc, lane).0, open)).open,
        }
    }

    /// The poisoned bits of one lane.
    pub fn open_of(&self, loc: Loc, lane: usize) -> u32 {
        let slot = loc.slot as usize;
        let bit = |mask: u64| (mask >> lane & 1) as u32;
        let [low, high] = [self.poison[2 * slot], self.poison[2 * slot + 1]].map(bit);
        let bits = if bit(self.partial[slot]) != 0 { self.open[slot][lane] } else { u32::MAX };
        let bits = bits & ((low * 0xffff) | (high * 0xffff_0000));
        match loc.part {
            SlotPart::Whole => bits,
            SlotPart::Low => bits & 0xffff,
            SlotPart::High => bits >> 16,
        }
    }

    /// Writes the poisoned bits of a source to a buffer, for these lanes. Returns the lanes with any.
    #[cold]
    fn opened(&self, read: &Read, mask: u64, open: &mut Row) -> u64 {
        lanes(mask).fold(0, |poison, lane| {
            open[lane] = self.open_bits(read, lane);
            poison | u64::from(open[lane] != 0) << lane
        })
    }

    /// The lanes, among those of `mask`, in which poisoned bits decide whether a source, whose words are given, is 0.
    #[cold]
    pub fn undecided(&self, read: &Read, words: &Row, mask: u64) -> u64 {
        lanes(mask).fold(0, |poison, lane| {
            let open = self.open_bits(read, lane);
            poison | u64::from(open != 0 && words[lane] & !open == 0) << lane
        })
    }

    /// Copies a source to a buffer, and its poisoned bits in active lanes to another; returns the lanes with any.
    #[inline]
    pub fn fetch_partly(&self, read: &Read, out: &mut Row, mask: u64, open: &mut Row) -> u64 {
        let poison = self.fetch(read, out) & mask;
        if poison == 0 { 0 } else { self.opened(read, poison, open) }
    }

    /// Copies a source to a buffer; returns its poison.
    #[inline]
    pub fn fetch(&self, read: &Read, out: &mut Row) -> u64 {
        if read.loc.part == SlotPart::Whole && matches!(read.modifier, Modifier::None) {
            let slot = read.loc.slot as usize;
            *out = self.words[slot];
            return self.poison[2 * slot] | self.poison[2 * slot + 1];
        }
        // Any other source is read through the buffer.
        self.read(read, out).1
    }

    /// The value and poison of one lane.
    pub fn lane(&self, loc: Loc, lane: usize) -> (u32, bool) {
        let word = self.words[loc.slot as usize][lane];
        let value = match loc.part {
            SlotPart::Whole => word,
            SlotPart::Low => word & 0xffff,
            SlotPart::High => word >> 16,
        };
        (value, self.poisoned(loc) >> lane & 1 != 0)
    }

    /// A lane of an operand, with its modifiers; `None` if it is poison.
    pub fn operand(&self, read: Read, lane: usize) -> Option<u32> {
        let (value, poison) = self.lane(read.loc, lane);
        let value = match read.modifier {
            Modifier::None => value,
            Modifier::Invert => value & 1 ^ 1,
            Modifier::Low => value & 0xffff,
            Modifier::Apply(apply) => {
                let mut row = [value; LANES];
                (apply.run)(&mut row);
                row[lane]
            }
        };
        (!poison).then_some(value)
    }

    /// The lanes in which a location is poison.
    pub fn poisoned(&self, loc: Loc) -> u64 {
        let at = 2 * loc.slot as usize;
        let (low, high) = (self.poison[at], self.poison[at + 1]);
        match loc.part {
            SlotPart::Whole => low | high,
            SlotPart::Low => low,
            SlotPart::High => high,
        }
    }

    /// Writes one lane; the bits of `open` are poison.
    pub fn set_lane(&mut self, loc: Loc, lane: usize, value: u32, open: u32) {
        if let Some(filled) = &self.filled
            && open != 0
        {
            let value = value & !open | filled.bits(loc.slot, lane) & open;
            return self.set_lane(loc, lane, value, 0);
        }
        let word = &mut self.words[loc.slot as usize][lane];
        match loc.part {
            SlotPart::Whole => *word = value,
            SlotPart::Low => *word = *word & !0xffff | value & 0xffff,
            SlotPart::High => *word = *word & 0xffff | value << 16,
        }
        self.set_lane_open(loc, lane, open);
    }

    /// Sets the poisoned bits of a lane.
    fn set_lane_open(&mut self, loc: Loc, lane: usize, open: u32) {
        let other = self.open_of(Loc::whole(loc.slot), lane);
        let open = match loc.part {
            SlotPart::Whole => open,
            SlotPart::Low => other & 0xffff_0000 | open & 0xffff,
            SlotPart::High => other & 0xffff | open << 16,
        };
        let bit = 1 << lane;
        let mark = |mask: &mut u64, poison: bool| *mask = *mask & !bit | if poison { bit } else { 0 };
        let [low, high] = self.masks(loc.slot);
        mark(low, open & 0xffff != 0);
        mark(high, open >> 16 != 0);
        self.open[loc.slot as usize][lane] = open;
        self.partial[loc.slot as usize] |= bit;
    }

    /// Writes a result in the active lanes; in lanes of `poison` the bits in `open` are poison.
    #[inline]
    pub fn write_partly(&mut self, write: Write, words: &Row, poison: u64, open: &Row, active: &Active) {
        if poison & active.mask == 0 {
            return self.write(write, words, 0, active);
        }
        self.write_open(write, words, poison, open, active);
    }

    #[cold]
    fn write_open(&mut self, write: Write, words: &Row, poison: u64, open: &Row, active: &Active) {
        if write.shared {
            return self.write_shared(write.loc, words, poison, open, active.mask);
        }
        if let Some(filled) = &self.filled {
            let mut row = *words;
            filled.fill(write.loc.slot, &mut row, poison & active.mask, |lane| open[lane]);
            return self.write(write, &row, 0, active);
        }
        // The write below makes the lanes defined; the other half of the slot stays.
        self.write(write, words, 0, active);
        for lane in lanes(poison & active.mask) {
            self.set_lane_open(write.loc, lane, open[lane]);
        }
    }

    /// Writes a result in the active lanes; lanes of `poison` are poison as a whole.
    #[inline]
    pub fn write(&mut self, write: Write, words: &Row, poison: u64, active: &Active) {
        if write.shared {
            return self.write_shared(write.loc, words, poison, &ALL_OPEN, active.mask);
        }
        if (write.loc.part != SlotPart::Whole || self.filled.is_some()) && poison & active.mask != 0 {
            return self.write_open(write, words, poison, &ALL_OPEN, active);
        }
        let slot = write.loc.slot as usize;
        let target = &mut self.words[slot];
        let masks = &mut self.poison[2 * slot..2 * slot + 2];
        let blend = |mask: &mut u64| {
            *mask = if active.all { poison } else { *mask & !active.mask | poison & active.mask };
        };
        match write.loc.part {
            SlotPart::Whole => {
                masks.iter_mut().for_each(blend);
                self.partial[slot] &= !poison;
                if active.all {
                    *target = *words;
                } else {
                    for ((out, word), lane) in target.iter_mut().zip(words).zip(&active.words) {
                        *out = *out & !lane | word & lane;
                    }
                }
            }
            SlotPart::Low => {
                blend(&mut masks[0]);
                write_half::<0>(target, words, active);
            }
            SlotPart::High => {
                blend(&mut masks[1]);
                write_half::<16>(target, words, active);
            }
        }
    }

    /// Writes a shared register: the value of the first active lane. The bits in which the active lanes disagree are
    /// poison: the machine takes one of them, and no program may depend on which.
    fn write_shared(&mut self, loc: Loc, words: &Row, poison: u64, open: &Row, mask: u64) {
        if mask == 0 {
            return;
        }
        let everywhere = Active { mask: !0, all: true, words: [0; LANES] };
        let value = words[mask.trailing_zeros() as usize];
        let differ = (0..LANES).filter(|lane| mask >> lane & 1 != 0).fold(0, |bits, lane| bits | words[lane] ^ value);
        let open = lanes(poison & mask).fold(differ, |bits, lane| bits | open[lane]);
        if let Some(filled) = &self.filled {
            let value = value & !open | filled.bits(loc.slot, 0) & open;
            return self.write(Write { loc, shared: false }, &[value; LANES], 0, &everywhere);
        }
        let poison = if open == 0 { 0 } else { !0 };
        self.write_partly(Write { loc, shared: false }, &[value; LANES], poison, &[open; LANES], &everywhere);
    }
}

/// The poisoned bits of lanes that are poison as a whole.
static ALL_OPEN: Row = [u32::MAX; LANES];

fn write_half<const SHIFT: u32>(target: &mut Row, words: &Row, active: &Active) {
    let keep = !(0xffffu32 << SHIFT);
    if active.all {
        for (out, word) in target.iter_mut().zip(words) {
            *out = *out & keep | (word & 0xffff) << SHIFT;
        }
    } else {
        for ((out, word), lane) in target.iter_mut().zip(words).zip(&active.words) {
            *out = *out & (keep | !lane) | (word & 0xffff & lane) << SHIFT;
        }
    }
}
