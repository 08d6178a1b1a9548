//! Sources of the generator's random decisions.
//!
//! Bytes (libFuzzer, proptest) and seeds share one interface, so the same generator serves all three. Bytes run out:
//! then every further draw returns 0, and [`Choices::exhausted`] tells the generator to finish the program. A seed
//! never runs out; the generator draws a size from it first.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A source of decisions.
pub trait Choices {
    /// Draws 8 bits.
    fn byte(&mut self) -> u8;

    /// Returns true if all further draws are 0.
    fn exhausted(&self) -> bool;

    /// Draws the approximate number of instructions of a program.
    fn size(&mut self) -> u32;

    /// Draws 16 bits.
    fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Draws 32 bits.
    fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | (u32::from(self.u16()) << 16)
    }

    /// Draws a number below `n`, nearly uniform; one byte is enough up to 256.
    fn below(&mut self, n: usize) -> usize {
        debug_assert!(n > 0);
        if n <= 256 { (usize::from(self.byte()) * n) >> 8 } else { (usize::from(self.u16()) * n) >> 16 }
    }

    /// Returns true with probability `of_256 / 256`; false if the source is exhausted.
    fn chance(&mut self, of_256: u32) -> bool {
        u32::from(self.byte()) + of_256 >= 256
    }

    /// Returns true with probability 1/2; false if the source is exhausted.
    fn even(&mut self) -> bool {
        self.chance(128)
    }

    /// Draws one element of a non-empty slice.
    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// Decisions from a byte string.
pub struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    /// Reads `bytes` from the beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl Choices for Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }

    fn exhausted(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn size(&mut self) -> u32 {
        u32::MAX
    }
}

/// Decisions from a seed: the same on every machine.
pub struct Seeded {
    rng: ChaCha8Rng,
    buffer: [u8; 256],
    at: usize,
    /// The upper bound of sizes.
    most: u32,
}

impl Seeded {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), buffer: [0; 256], at: 256, most: u32::MAX }
    }

    /// Returns the stream with an upper bound on sizes.
    #[must_use]
    pub fn within(self, most: u32) -> Self {
        Self { most, ..self }
    }
}

impl Choices for Seeded {
    fn byte(&mut self) -> u8 {
        if self.at == self.buffer.len() {
            self.rng.fill_bytes(&mut self.buffer);
            self.at = 0;
        }
        self.at += 1;
        self.buffer[self.at - 1]
    }

    fn exhausted(&self) -> bool {
        false
    }

    /// Mostly tens of instructions, sometimes hundreds.
    fn size(&mut self) -> u32 {
        let size = match self.below(8) {
            0..=3 => 30 + self.below(50) as u32,
            4..=6 => 80 + self.below(120) as u32,
            _ => 200 + self.below(400) as u32,
        };
        size.min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_run_out_into_zeros() {
        let mut bytes = Bytes::new(&[7, 255]);
        assert_eq!(bytes.byte(), 7);
        assert!(!bytes.exhausted());
        assert!(bytes.chance(1));
        assert!(bytes.exhausted());
        assert_eq!(bytes.u32(), 0);
        assert!(!bytes.chance(255));
        assert_eq!(bytes.below(10), 0);
    }

    #[test]
    fn a_seed_gives_one_stream() {
        let draw = |seed| {
            let mut s = Seeded::new(seed);
            (0..600).map(|_| s.byte()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn below_covers_its_range() {
        let mut s = Seeded::new(3);
        let mut seen = [false; 300];
        (0..20_000).for_each(|_| seen[s.below(300)] = true);
        assert!(seen.iter().all(|&x| x));
    }
}
