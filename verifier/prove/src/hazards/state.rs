//! The lattice of the hazard analysis: the operations that may be outstanding at a point of the program, on any path to
//! it.
//!
//! A greater state has more registers with outstanding operations, or later times. The join of two paths is the union
//! of the sets and the maximum of the times. There are finitely many states (times are relative to the point, and at
//! most a few slots), so the analysis terminates.

use ir3_semantics::machine::consts::ConstWrites;
use ir3_semantics::machine::rules::Wait;
use ir3_semantics::machine::units::{A1_BIT, OTHER_WORD, SHARED_WORD, WORDS};
use std::ops::{Index, IndexMut};

/// A set of registers, one bit per half register (`units`).
pub type Mask = [u64; WORDS];

/// The sets of registers with outstanding operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Results that are available after `(ss)`.
    Ss,
    /// Results that are available after `(sy)`.
    Sy,
    /// Sources that may not have been read before the next `(ss)`.
    SourceSs,
    /// Sources that may not have been read before the next `(ss)` or `(sy)`.
    SourceSsOrSy,
    /// Half shared registers that the scalar ALU writes: reads of the full register need an `(ss)`, even its own.
    ScalarHalf,
    /// Full shared registers that the scalar ALU writes: reads of their halves need an `(ss)`, even its own.
    ScalarFull,
    /// Sources that the scalar ALU may not have read; it runs in order itself.
    ScalarSource,
    /// Registers that were written after helper lanes ended, so that helper lanes have not written them. No flag
    /// removes them.
    WithoutHelpers,
}

/// The number of sets.
const SETS: usize = 8;

/// The outstanding operations of the whole wave, for any active lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaveFacts(u8);

impl WaveFacts {
    /// A barrier without an `(ss)` after it.
    pub const BARRIER_SS: Self = Self(1 << 0);
    /// A barrier without a `(sy)` after it.
    pub const BARRIER_SY: Self = Self(1 << 1);
    /// A varying that is being read from local memory.
    pub const VARYING: Self = Self(1 << 2);
    /// The memory of varyings has been released.
    pub const INPUTS_ENDED: Self = Self(1 << 3);
    /// Helper lanes have ended.
    pub const HELPERS_ENDED: Self = Self(1 << 4);
    /// No `(ei)` has been executed.
    pub const INPUTS_HELD: Self = Self(1 << 5);

    /// Returns true if one of these facts holds.
    pub const fn has(self, facts: Self) -> bool {
        self.0 & facts.0 != 0
    }

    /// Adds facts.
    pub const fn add(&mut self, facts: Self) {
        self.0 |= facts.0;
    }

    /// Removes facts.
    pub const fn remove(&mut self, facts: Self) {
        self.0 &= !facts.0;
    }
}

/// Slots until a register may be read: by the ALU as a half and as a full register, and by others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// The entry of the table of times.
    pub entry: u16,
    /// Slots until the ALU may read it as a half register.
    pub half: u8,
    /// Slots until the ALU may read it as a full register.
    pub full: u8,
    /// Slots until any other unit may read it.
    pub others: u8,
}

/// The outstanding operations of instructions that access one lane of each quad, by the number of the lane: results of
/// different lanes in the same register do not conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuadLanes {
    /// Results that are available after `(sy)`.
    pub results: [Mask; 4],
    /// Sources that may not have been read before the next `(ss)` or `(sy)`.
    pub sources: [Mask; 4],
}

/// The outstanding operations at a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    sets: [Mask; SETS],
    /// The outstanding operations of single quad lanes; `None` in nearly all programs.
    pub quads: Option<Box<QuadLanes>>,
    /// Facts about the wave.
    pub wave: WaveFacts,
    /// Writes to the constant file, by the flag that waits for them ([`Wait`]); those without one end with the
    /// preamble.
    pub consts: [ConstWrites; 3],
    /// True if `a0.x`, which each lane has, has been released.
    pub address_released: bool,
    /// The pending times, sorted by entry. Registers without an entry may be read.
    pub times: Vec<Pending>,
}

impl Index<Set> for State {
    type Output = Mask;

    fn index(&self, set: Set) -> &Mask {
        &self.sets[set as usize]
    }
}

impl IndexMut<Set> for State {
    fn index_mut(&mut self, set: Set) -> &mut Mask {
        &mut self.sets[set as usize]
    }
}

impl State {
    /// The effect of `(ss)`.
    pub fn wait_ss(&mut self) {
        let kept = [Set::Sy, Set::WithoutHelpers].map(|set| (set, self[set]));
        self.sets = [[0; WORDS]; SETS];
        kept.into_iter().for_each(|(set, mask)| self[set] = mask);
        if let Some(quads) = &mut self.quads {
            quads.sources = Default::default();
        }
        self.consts[Wait::Ss as usize] = ConstWrites::default();
        self.wave.remove(WaveFacts::BARRIER_SS);
        self.wave.remove(WaveFacts::VARYING);
    }

    /// The effect of `(sy)`.
    pub fn wait_sy(&mut self) {
        self[Set::Sy] = [0; WORDS];
        self[Set::SourceSsOrSy] = [0; WORDS];
        self.quads = None;
        self.wave.remove(WaveFacts::BARRIER_SY);
        self.consts[Wait::Sy as usize] = ConstWrites::default();
    }

    /// Joins the state at the end of a predecessor; returns true if this one changed. `lanes` is false for a physical
    /// edge that the lanes do not take: then only facts that all lanes share are joined.
    pub fn join(&mut self, other: &Self, lanes: bool) -> bool {
        let mut changed = false;
        let mut unite = |word: &mut u64, bits: u64| {
            changed |= bits & !*word != 0;
            *word |= bits;
        };
        for (set, from) in self.sets.iter_mut().zip(&other.sets) {
            if lanes {
                set.iter_mut().zip(from).for_each(|(word, &bits)| unite(word, bits));
            } else {
                unite(&mut set[SHARED_WORD], from[SHARED_WORD]);
                unite(&mut set[OTHER_WORD], from[OTHER_WORD] & A1_BIT);
            }
        }
        if let Some(from) = other.quads.as_ref().filter(|_| lanes) {
            let own = self.quads.get_or_insert_default();
            let pairs = own.results.iter_mut().zip(&from.results).chain(own.sources.iter_mut().zip(&from.sources));
            pairs.for_each(|(set, from)| set.iter_mut().zip(from).for_each(|(word, &bits)| unite(word, bits)));
        }
        let wave = self.wave;
        self.wave.add(other.wave);
        changed |= wave != self.wave;
        for (own, &from) in self.consts.iter_mut().zip(&other.consts) {
            changed |= own.extend(from);
        }
        if lanes && other.address_released {
            changed |= !std::mem::replace(&mut self.address_released, true);
        }
        if lanes && !other.times.is_empty() {
            let before = self.times.len();
            for &pending in &other.times {
                match self.times.binary_search_by_key(&pending.entry, |own| own.entry) {
                    Ok(at) => {
                        let own = &mut self.times[at];
                        let later = Pending {
                            entry: own.entry,
                            half: own.half.max(pending.half),
                            full: own.full.max(pending.full),
                            others: own.others.max(pending.others),
                        };
                        changed |= later != *own;
                        *own = later;
                    }
                    Err(at) => self.times.insert(at, pending),
                }
            }
            changed |= self.times.len() > before;
        }
        changed
    }
}
