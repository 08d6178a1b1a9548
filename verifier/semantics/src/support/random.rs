//! Random numbers that are the same on every machine: a generator (SplitMix64), and a hash of words.

/// A generator of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

/// The increment of a stream's state for each number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Creates the generator of a seed, from its number `number` on.
    pub const fn from_number(seed: u64, number: u64) -> Self {
        Self(seed.wrapping_add(number.wrapping_mul(STEP)))
    }

    /// Creates the generator of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    #[expect(clippy::should_implement_trait, reason = "a stream that never ends has no use for an option")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Returns true with a probability of `percent` in a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns a random element of `items`, if there is one.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[self.below(items.len())])
    }

    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i + 1);
            items.swap(i, j);
        }
    }
}

/// A hash of a text (FNV-1a): the same on every machine and with every version of every library, so names may depend on
/// it.
pub fn text_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Hashes words to 64 bits that depend on all of them and on their order.
#[inline]
pub fn hash(words: &[u64]) -> u64 {
    let mut state = STEP;
    for &word in words {
        state = mix(state, word);
    }
    state
}

/// Adds a word to a hash that has been begun.
#[inline]
pub fn mix(state: u64, word: u64) -> u64 {
    finish((state ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd))
}

#[inline]
fn finish(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^= x >> 29;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ x >> 32
}
