//! Sets of units of one register file.

/// Units of the largest file.
pub const UNITS: u16 = 384;
const WORDS: usize = UNITS as usize / 64;

/// A set of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct UnitSet([u64; WORDS]);

impl UnitSet {
    /// The part of `[start, start + len)` in word `word`, as a mask.
    fn mask(word: usize, start: u16, len: u16) -> u64 {
        let first = i32::from(start) - word as i32 * 64;
        let last = first + i32::from(len);
        let below = |n: i32| if n >= 64 { u64::MAX } else { (1 << n.max(0)) - 1 };
        below(last) & !below(first)
    }

    fn words(start: u16, len: u16) -> std::ops::Range<usize> {
        usize::from(start / 64)..usize::from((start + len).div_ceil(64)).min(WORDS)
    }

    /// The word that contains `[start, start + len)`, as for a register, and its part of it as a mask.
    fn one_word(start: u16, len: u16) -> Option<(usize, u64)> {
        let first = start % 64;
        (0 < len && first + len <= 64 && start < UNITS)
            .then(|| (usize::from(start / 64), u64::MAX >> (64 - len) << first))
    }

    /// Adds `[start, start + len)`.
    pub fn insert(&mut self, start: u16, len: u16) {
        if let Some((word, mask)) = Self::one_word(start, len) {
            self.0[word] |= mask;
            return;
        }
        for word in Self::words(start, len) {
            self.0[word] |= Self::mask(word, start, len);
        }
    }

    /// The union of both sets.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
        self
    }

    /// The units that are not in the other set.
    #[must_use]
    pub fn without(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= !other);
        self
    }

    /// Removes `[start, start + len)`.
    pub fn remove(&mut self, start: u16, len: u16) {
        if let Some((word, mask)) = Self::one_word(start, len) {
            self.0[word] &= !mask;
            return;
        }
        for word in Self::words(start, len) {
            self.0[word] &= !Self::mask(word, start, len);
        }
    }

    /// The last unit of `[start, start + len)` that is in the set.
    fn last_in(&self, start: u16, len: u16) -> Option<u16> {
        Self::words(start, len).rev().find_map(|word| {
            let found = self.0[word] & Self::mask(word, start, len);
            (found != 0).then(|| word as u16 * 64 + 63 - found.leading_zeros() as u16)
        })
    }

    /// Returns true if no unit of `[start, start + len)` is in the set.
    pub fn is_free(&self, start: u16, len: u16) -> bool {
        if let Some((word, mask)) = Self::one_word(start, len) {
            return self.0[word] & mask == 0;
        }
        self.last_in(start, len).is_none()
    }

    /// The first multiple of `align` at or after `from` where `len` units up to `limit` are not in the set.
    pub fn find_gap(&self, len: u16, align: u16, from: u16, limit: u16) -> Option<u16> {
        let mut at = from.next_multiple_of(align);
        if len <= 2 && len == align {
            return self.find_scalar(len, at, limit);
        }
        while at + len <= limit {
            match self.last_in(at, len) {
                None => return Some(at),
                Some(taken) => at = (taken + 1).next_multiple_of(align),
            }
        }
        None
    }

    /// [`UnitSet::find_gap`] for one register: one word at a time.
    fn find_scalar(&self, len: u16, from: u16, limit: u16) -> Option<u16> {
        for word in usize::from(from / 64)..WORDS {
            let taken = self.0[word];
            let mut free = if len == 1 { !taken } else { !(taken | taken >> 1) & 0x5555_5555_5555_5555 };
            if word == usize::from(from / 64) {
                free &= u64::MAX << (from % 64);
            }
            if free != 0 {
                let at = word as u16 * 64 + free.trailing_zeros() as u16;
                return (at + len <= limit).then_some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_the_first_ones() {
        let mut units = UnitSet::default();
        let mut slow = [false; UNITS as usize];
        let mut state = 1u32;
        for _ in 0..3000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let start = (state >> 8) as u16 % 380;
            let len = 1 + (state >> 28) as u16 % 4;
            let add = state >> 20 & 3 != 0;
            for unit in start..start + len {
                slow[usize::from(unit)] = add;
            }
            if add {
                units.insert(start, len)
            } else {
                units.remove(start, len)
            }
            for (len, align) in [(1, 1), (2, 2), (4, 2), (3, 1), (8, 2), (70, 2)] {
                let from = (state >> 12) as u16 % 200;
                let free = |at: u16| (at..at + len).all(|unit| !slow[usize::from(unit)]);
                let expected = (from..UNITS).find(|&at| at % align == 0 && at + len <= 300 && free(at));
                assert_eq!(units.find_gap(len, align, from, 300), expected);
            }
        }
    }
}
