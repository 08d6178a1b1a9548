//! Sets of registers as bits, of any number of registers.

/// A set of register numbers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Bits(Vec<u64>);

impl Bits {
    /// The empty set, with a capacity for the numbers below `count`.
    pub fn new(count: u32) -> Self {
        Self(vec![0; count.div_ceil(64) as usize])
    }

    /// Adds a number.
    pub fn insert(&mut self, at: u32) {
        self.0[at as usize / 64] |= 1 << (at % 64);
    }

    /// Returns true if the number is in the set.
    pub fn contains(&self, at: u32) -> bool {
        self.0.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// Removes a number.
    pub fn remove(&mut self, at: u32) {
        if let Some(word) = self.0.get_mut(at as usize / 64) {
            *word &= !(1 << (at % 64));
        }
    }

    /// Adds the numbers of `[first, end)` that are below the capacity.
    pub fn insert_range(&mut self, first: u32, end: u32) {
        let end = end.min(self.0.len() as u32 * 64);
        let mut at = first;
        while at < end {
            let (word, low) = (at / 64, at % 64);
            let count = (64 - low).min(end - at);
            self.0[word as usize] |= u64::MAX >> (64 - count) << low;
            at += count;
        }
    }

    /// Removes all numbers.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// The numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(i as u32 * 64 + bit)
            })
        })
    }

    /// The number of elements.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The largest number below `end`.
    pub fn last_below(&self, end: u32) -> Option<u32> {
        let end = end.min(self.0.len() as u32 * 64);
        let mut word = (end / 64) as usize;
        let mut mask = (1u64 << (end % 64)) - 1;
        loop {
            let found = self.0.get(word).map_or(0, |bits| bits & mask);
            if found != 0 {
                return Some(word as u32 * 64 + 63 - found.leading_zeros());
            }
            word = word.checked_sub(1)?;
            mask = u64::MAX;
        }
    }

    /// The first number from `from` on, and then from 0 on, that is here and not in the other set.
    pub fn next_without(&self, other: &Self, from: u32) -> Option<u32> {
        let first = from as usize / 64;
        let free = |word: usize| self.0[word] & !other.0[word];
        let found = |word: usize, bits: u64| (bits != 0).then(|| word as u32 * 64 + bits.trailing_zeros());
        let count = self.0.len();
        if first >= count {
            return (0..count).find_map(|word| found(word, free(word)));
        }
        let above = u64::MAX << (from % 64);
        found(first, free(first) & above)
            .or_else(|| (first + 1..count).find_map(|word| found(word, free(word))))
            .or_else(|| (0..first).find_map(|word| found(word, free(word))))
            .or_else(|| found(first, free(first) & !above))
    }
}
