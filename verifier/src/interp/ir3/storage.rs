//! Where the values of a running wave live.
//!
//! One *slot* holds one 32-bit value in each of the 64 lanes. Whatever an operand can name has slots: each component
//! of an SSA value, each register, each element of an array, and also each immediate and each word of the constant
//! file that the program mentions, so that reading an operand is indexing. A half register of a merged register file
//! is one half of a full register's slot ([`Part`]); everywhere else a 16-bit value has a slot of its own and is kept
//! zero-extended.
//!
//! Each slot has two poison masks, for its low and its high 16 bits; a lane of a full value is poison if either says
//! so. Shared registers hold one value for the wave: all lanes of their slots are kept equal.

use crate::semantics::{LANES, Modify, Row};

/// Which bits of a slot an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// The low half of a merged register.
    Low,
    /// The high half of a merged register.
    High,
}

/// A component of an operand: a slot, or half of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loc {
    /// The slot.
    pub slot: u32,
    /// The bits of it.
    pub part: Part,
}

impl Loc {
    /// A whole slot.
    pub const fn whole(slot: u32) -> Self {
        Self { slot, part: Part::Whole }
    }

    /// Whether a write to one may change the other.
    pub fn overlaps(self, other: Self) -> bool {
        self.slot == other.slot && (self.part == other.part || self.part == Part::Whole || other.part == Part::Whole)
    }
}

/// What is done to an operand as it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Modifier {
    /// Nothing.
    None,
    /// The other truth value.
    Invert,
    /// Its low 16 bits are taken.
    Low,
    /// What the instruction's modifiers say.
    Apply(&'static Modify),
}

/// A source component.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// Where it is.
    pub loc: Loc,
    /// What is done to it.
    pub modifier: Modifier,
}

impl Read {
    /// A source as it stands.
    pub const fn plain(loc: Loc) -> Self {
        Self { loc, modifier: Modifier::None }
    }
}

/// A destination component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    /// Where it is.
    pub loc: Loc,
    /// One value for the wave, that of the first active lane.
    pub shared: bool,
}

/// The lanes that execute.
pub(crate) struct Active {
    /// One bit a lane.
    pub mask: u64,
    /// They are all the lanes that there still are, so nobody can tell what is written to the others.
    pub all: bool,
    /// All ones in the lanes of the mask (only kept while `all` is false).
    words: Row,
}

impl Active {
    /// No lane.
    pub const fn none() -> Self {
        Self { mask: 0, all: false, words: [0; LANES] }
    }

    /// Makes `mask` the executing lanes, of those in `alive`.
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
    /// Two masks a slot.
    pub poison: Vec<u64>,
}

impl Storage {
    /// Makes `slots` slots, all poison; their memory is reused.
    pub fn reset(&mut self, slots: usize) {
        if self.words.len() < slots {
            self.words.resize(slots, [0; LANES]);
        }
        if self.poison.len() < 2 * slots {
            self.poison.resize(2 * slots, !0);
        }
        self.poison[..2 * slots].fill(!0);
    }

    #[inline]
    fn masks(&mut self, slot: u32) -> &mut [u64; 2] {
        let at = 2 * slot as usize;
        (&mut self.poison[at..at + 2]).try_into().expect("two masks a slot")
    }

    /// Gives a slot one value in all lanes.
    pub fn splat(&mut self, slot: u32, value: u32, poison: bool) {
        self.words[slot as usize] = [value; LANES];
        *self.masks(slot) = [if poison { !0 } else { 0 }; 2];
    }

    /// A source's value and poison. `buffer` is used where the value does not stand in a slot as it is.
    #[inline]
    pub fn read<'a>(&'a self, read: &Read, buffer: &'a mut Row) -> (&'a Row, u64) {
        let slot = read.loc.slot as usize;
        let (low, high) = (self.poison[2 * slot], self.poison[2 * slot + 1]);
        let words = &self.words[slot];
        let poison = match read.loc.part {
            Part::Whole => {
                if matches!(read.modifier, Modifier::None) {
                    return (words, low | high);
                }
                *buffer = *words;
                low | high
            }
            Part::Low => {
                for (out, word) in buffer.iter_mut().zip(words) {
                    *out = word & 0xffff;
                }
                low
            }
            Part::High => {
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

    /// Copies a source to a buffer; its poison.
    #[inline]
    pub fn fetch(&self, read: &Read, out: &mut Row) -> u64 {
        if read.loc.part == Part::Whole && matches!(read.modifier, Modifier::None) {
            let slot = read.loc.slot as usize;
            *out = self.words[slot];
            return self.poison[2 * slot] | self.poison[2 * slot + 1];
        }
        // Anything but a slot as it is goes through the buffer.
        self.read(read, out).1
    }

    /// The value and poison of one lane.
    pub fn lane(&self, loc: Loc, lane: usize) -> (u32, bool) {
        let word = self.words[loc.slot as usize][lane];
        let at = 2 * loc.slot as usize;
        let (low, high) = (self.poison[at], self.poison[at + 1]);
        let (value, poison) = match loc.part {
            Part::Whole => (word, low | high),
            Part::Low => (word & 0xffff, low),
            Part::High => (word >> 16, high),
        };
        (value, poison >> lane & 1 != 0)
    }

    /// Writes one lane.
    pub fn set_lane(&mut self, loc: Loc, lane: usize, value: u32, poison: bool) {
        let word = &mut self.words[loc.slot as usize][lane];
        let at = 2 * loc.slot as usize;
        let masks = &mut self.poison[at..at + 2];
        let bit = 1 << lane;
        let mark = |mask: &mut u64| if poison { *mask |= bit } else { *mask &= !bit };
        match loc.part {
            Part::Whole => {
                *word = value;
                masks.iter_mut().for_each(mark);
            }
            Part::Low => {
                *word = *word & !0xffff | value & 0xffff;
                mark(&mut masks[0]);
            }
            Part::High => {
                *word = *word & 0xffff | value << 16;
                mark(&mut masks[1]);
            }
        }
    }

    /// Writes a result in the executing lanes.
    #[inline]
    pub fn write(&mut self, write: Write, words: &Row, poison: u64, active: &Active) {
        if write.shared {
            return self.write_shared(write.loc, words, poison, active.mask);
        }
        let slot = write.loc.slot as usize;
        let target = &mut self.words[slot];
        let masks = &mut self.poison[2 * slot..2 * slot + 2];
        let blend = |mask: &mut u64| {
            *mask = if active.all { poison } else { *mask & !active.mask | poison & active.mask };
        };
        match write.loc.part {
            Part::Whole => {
                masks.iter_mut().for_each(blend);
                if active.all {
                    *target = *words;
                } else {
                    for ((out, word), lane) in target.iter_mut().zip(words).zip(&active.words) {
                        *out = *out & !lane | word & lane;
                    }
                }
            }
            Part::Low => {
                blend(&mut masks[0]);
                write_half::<0>(target, words, active);
            }
            Part::High => {
                blend(&mut masks[1]);
                write_half::<16>(target, words, active);
            }
        }
    }

    /// Writes a shared register: the value of the first active lane, or poison where the active lanes disagree, for
    /// the machine takes one of them and no program may depend on which.
    fn write_shared(&mut self, loc: Loc, words: &Row, poison: u64, mask: u64) {
        if mask == 0 {
            return;
        }
        let value = words[mask.trailing_zeros() as usize];
        let differs = (0..LANES).any(|lane| mask >> lane & 1 != 0 && words[lane] != value);
        let undefined = differs || poison & mask != 0;
        let everywhere = Active { mask: !0, all: true, words: [0; LANES] };
        let poison = if undefined { !0 } else { 0 };
        self.write(Write { loc, shared: false }, &[value; LANES], poison, &everywhere);
    }
}

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
