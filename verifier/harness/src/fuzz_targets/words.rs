//! Fuzz target for machine code: a word is an instruction, which is reproduced from its text and from its instruction
//! in ir3, or it is refused.

use crate::campaigns::words::Counts;
use crate::fuzz_targets::{TargetFailure, stats};
use arbitrary::{Arbitrary, Unstructured};
use ir3_compiler::target::Generation;
use std::fmt;

/// Words of a generation.
#[derive(Clone)]
pub struct WordsInput {
    /// The generation.
    pub generation: Generation,
    /// The words.
    pub words: Vec<u64>,
}

impl<'a> Arbitrary<'a> for WordsInput {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let generation = *u.choose(&Generation::ALL)?;
        let bytes = u.bytes(u.len() / 8 * 8)?;
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        stats::count(bytes.len(), words.len());
        Ok(Self { generation, words })
    }
}

impl fmt::Debug for WordsInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "a{}xx", self.generation.number())?;
        self.words.iter().try_for_each(|word| writeln!(f, "{word:016x}"))
    }
}

/// Tries each word. The input is interesting if one is an instruction.
///
/// # Errors
/// A word that does not come back.
pub fn words(input: &WordsInput) -> Result<bool, TargetFailure> {
    let mut counts = Counts::default();
    for &word in &input.words {
        if let Err(what) = counts.word(input.generation, word) {
            return Err(TargetFailure::new("words", format_args!("{word:016x}: {what}")));
        }
    }
    let is_interesting = counts.instructions > 0;
    if is_interesting {
        stats::compared();
    }
    Ok(is_interesting)
}
