//! Machine code: words, their texts, and their instructions in ir3.
//!
//! A word is an instruction or is refused. If it is one, its text assembles to the same word; if ir3 has the
//! instruction, then encoding it is refused, or decoding the result gives the same instruction. Words that a compiler
//! has emitted are not refused.

use ir3_compiler::ir3::InstrData;
use ir3_compiler::machine::encoding::{self, EncodeError, Position};
use ir3_compiler::machine::listing;
use ir3_compiler::target::Generation;
use ir3_semantics::support::random::hash;
use serde::Serialize;
use std::collections::BTreeSet;

/// The words of one call of [`random`].
pub const CHUNK: u64 = 1_000_000;

/// Counts of the words that were tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Words.
    pub words: u64,
    /// Words that are instructions.
    pub instructions: u64,
    /// Words whose instruction ir3 has.
    pub decoded: u64,
    /// Words whose instruction of ir3 was encoded again, and not refused.
    pub encoded: u64,
    /// Words that failed.
    pub wrong: u64,
    /// The first failures.
    pub failures: Vec<String>,
}

impl Counts {
    fn fail(&mut self, what: impl FnOnce() -> String) {
        self.wrong += 1;
        if self.failures.len() < 20 {
            self.failures.push(what());
        }
    }

    /// Tries a word. Returns its text, if it is an instruction.
    ///
    /// # Errors
    /// Returns the fault of the word.
    pub fn word(&mut self, generation: Generation, word: u64) -> Result<Option<String>, String> {
        self.with_encoder(encoding::encode, generation, word)
    }

    fn with_encoder(&mut self, encode: Encoder, generation: Generation, word: u64) -> Result<Option<String>, String> {
        self.words += 1;
        let mut text = String::new();
        if encoding::disassemble(generation, word, None, &mut text).is_err() {
            return match encoding::decode(generation, word) {
                Ok(_) => Err("ir3 has an instruction for a word that is none".into()),
                Err(_) => Ok(None),
            };
        }
        self.instructions += 1;
        match encoding::assemble(generation, &text, 0, &|_| None) {
            Ok(back) if back == word => {}
            Ok(back) => return Err(format!("`{text}` assembles to {back:016x}")),
            Err(error) => return Err(format!("`{text}` does not assemble: {error}")),
        }
        if let Ok(decoded) = encoding::decode(generation, word) {
            self.decoded += 1;
            if let Ok(back) = encode(generation, &decoded.data, decoded.distance) {
                self.encoded += 1;
                if encoding::decode(generation, back).as_ref() != Ok(&decoded) {
                    return Err(format!("`{text}`: its instruction is encoded as {back:016x}, which is another one"));
                }
            }
        }
        Ok(Some(text))
    }
}

/// [`encoding::encode`], or one with a planted bug.
type Encoder = fn(Generation, &InstrData, Option<i32>) -> Result<u64, EncodeError>;

/// Tries `count` words of a seed on all generations in turn: some of random bits, some of code that was made up, with a
/// few bits changed.
pub fn random(seed: u64, count: u64, counts: &mut Counts) {
    let mut known: Vec<u64> = vec![0; 256];
    let mut state = hash(&[seed]) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for i in 0..count {
        let generation = Generation::ALL[(i % 5) as usize];
        let noise = next();
        let word = match noise % 4 {
            0 => next(),
            // Most categories have few instructions.
            1 => next() & !(next() & next()),
            _ => {
                let changes = next();
                let old = known[(changes >> 32 & 0xff) as usize];
                (0..changes % 4).fold(old, |word, k| word ^ 1 << (changes >> (8 * k + 2) & 63))
            }
        };
        match counts.word(generation, word) {
            Ok(Some(_)) => known[(noise >> 8 & 0xff) as usize] = word,
            Ok(None) => {}
            Err(what) => counts.fail(|| format!("a{}xx {word:016x}: {what}", generation.number())),
        }
    }
}

/// Tries every line of the listings in a log, and adds their mnemonics.
pub fn listings(name: &str, log: &str, counts: &mut Counts, mnemonics: &mut BTreeSet<String>) {
    for listing in listing::listings(log) {
        let Some(generation) = listing.generation else {
            counts.fail(|| format!("{name}: a listing without a generation"));
            continue;
        };
        let count = listing.lines.len() as u32;
        for line in &listing.lines {
            let place = || format!("{name}:{}", line.line + 1);
            if let Err(what) = counts.word(generation, line.word) {
                counts.fail(|| format!("{}: {what}", place()));
            }
            if let Ok(decoded) = encoding::decode(generation, line.word)
                && let Err(error) = encoding::encode(generation, &decoded.data, decoded.distance)
            {
                counts.fail(|| format!("{}: `{}` is not encoded again: {error}", place(), line.text));
            }
            let mut ours = String::new();
            let position = Position { ip: line.ip, count };
            if let Err(error) = encoding::disassemble(generation, line.word, Some(position), &mut ours) {
                ours = error.to_string();
            }
            if ours != line.text {
                counts.fail(|| format!("{}: `{ours}`, expected `{}`", place(), line.text));
            }
            let labels = |name: &str| name.strip_prefix('l').and_then(|digits| digits.parse().ok());
            match encoding::assemble(generation, line.text, line.ip, &labels) {
                Ok(word) if word == line.word => {}
                Ok(word) => counts.fail(|| format!("{}: `{}` assembles to {word:016x}", place(), line.text)),
                Err(error) => counts.fail(|| format!("{}: `{}`: {error}", place(), line.text)),
            }
            mnemonics.extend(encoding::mnemonic(generation, line.word).map(str::to_owned));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::ir3::InstrFlags;

    const TEXTS: [&str; 3] =
        ["add.f r0.x, r0.y, (neg)r0.z", "sam (f32)(xyzw)r0.x, r1.x, s#0, t#1", "ldl.u32 r0.x, l[r0.y+4], 1"];

    fn failures(encode: Encoder) -> Vec<String> {
        let mut counts = Counts::default();
        let words = TEXTS.map(|text| encoding::assemble(Generation::A6xx, text, 0, &|_| None).expect("an instruction"));
        words.iter().filter_map(|&word| counts.with_encoder(encode, Generation::A6xx, word).err()).collect()
    }

    #[test]
    fn a_wrong_encoder_fails() {
        let planted: [(Encoder, usize); 3] = [
            (encoding::encode, 0),
            // A wait is added.
            (
                |generation, data, distance| {
                    let flags = data.flags | InstrFlags::SY;
                    encoding::encode(generation, &InstrData { flags, ..data.clone() }, distance)
                },
                3,
            ),
            // The first two sources of an addition are exchanged.
            (
                |generation, data, distance| {
                    let mut data = data.clone();
                    if data.opcode.commutes() {
                        data.srcs.swap(0, 1);
                    }
                    encoding::encode(generation, &data, distance)
                },
                1,
            ),
        ];
        for (encode, expected) in planted {
            let failures = failures(encode);
            assert_eq!(failures.len(), expected, "{failures:?}");
            assert!(failures.iter().all(|failure| failure.contains("which is another one")), "{failures:?}");
        }
    }
}
