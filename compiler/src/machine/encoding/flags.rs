//! The flags that the words of an opcode can have.
//!
//! They are found by decoding: each pair of fields and of other bits of each encoding is set to values that fields of
//! flags and modes have, so the table is the only list.

use super::decode;
use super::table::{Encoding, Table};
use crate::ir3::{InstrFlags, Opcode};
use crate::target::Generation;
use std::sync::{LazyLock, OnceLock};

/// Fields of flags and modes have at most this many bits; of wider ones 0 and the single bits are tried.
const MODE_BITS: u32 = 3;

/// The flags that a word of an opcode can have; `None` if the generation has no word of the opcode.
#[must_use]
pub fn word_flags(generation: Generation, opcode: Opcode) -> Option<InstrFlags> {
    static FOUND: LazyLock<Vec<OnceLock<Option<InstrFlags>>>> =
        LazyLock::new(|| (0..Generation::ALL.len() * Opcode::ALL.len()).map(|_| OnceLock::new()).collect());
    let table = generation as usize * Opcode::ALL.len();
    *FOUND[table + opcode as usize].get_or_init(|| search(generation, opcode))
}

fn search(generation: Generation, opcode: Opcode) -> Option<InstrFlags> {
    // One word has both names.
    let opcode = if opcode == Opcode::Demote { Opcode::Kill } else { opcode };
    let encodings = Table::of(generation).of_opcode(opcode);
    (!encodings.is_empty()).then(|| {
        let decoded = encodings.iter().flat_map(|encoding| words(encoding)).filter_map(|word| {
            let decoded = decode(generation, word).ok()?;
            (decoded.data.opcode == opcode).then_some(decoded.data.flags)
        });
        decoded.fold(InstrFlags::empty(), InstrFlags::union)
    })
}

/// The words of an encoding in which at most two fields, or bits outside of them, are set; and the same where all wide
/// fields are.
fn words(encoding: &Encoding) -> Vec<u64> {
    let set = |word: u64, (mask, value): (u64, u64)| word & !mask | value;
    let mut free = !encoding.mask;
    let mut choices = Vec::new();
    let mut wide = encoding.template;
    for field in encoding.fields() {
        free &= !field.bits.mask();
        let is_wide = field.bits.width() > MODE_BITS;
        // Of a wide field each bit alone: one of them may be a flag.
        let values: Vec<u64> = match is_wide {
            true => std::iter::once(0).chain((0..field.bits.width()).map(|bit| 1 << bit)).collect(),
            false => (0..1 << field.bits.width()).collect(),
        };
        choices.extend(values.into_iter().map(|value| (field.bits.mask(), field.bits.put(value))));
        if is_wide {
            wide = set(wide, (field.bits.mask(), field.bits.put(1)));
        }
    }
    choices.extend((0..u64::BITS).map(|bit| 1 << bit).filter(|bit| free & bit != 0).map(|bit| (bit, bit)));
    let pair = |word, first, second| set(set(word, first), second);
    let of = |word| {
        let choices = &choices;
        choices.iter().flat_map(move |&first| choices.iter().map(move |&second| pair(word, first, second)))
    };
    [encoding.template, wide].into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_the_fields() {
        let of = |opcode| word_flags(Generation::A6xx, opcode).unwrap_or_default();
        let waits = InstrFlags::SY | InstrFlags::SS | InstrFlags::JP;
        assert!(of(Opcode::AddF).contains(waits | InstrFlags::SAT | InstrFlags::UL));
        assert!(!of(Opcode::AddF).intersects(InstrFlags::NONUNIFORM | InstrFlags::ARRAY | InstrFlags::GLOBAL));
        assert!(of(Opcode::Sam).contains(
            InstrFlags::DIM_3D | InstrFlags::ARRAY | InstrFlags::PROJ | InstrFlags::SHADOW | InstrFlags::OFFSET
        ));
        assert!(of(Opcode::Sam).contains(InstrFlags::S2EN | InstrFlags::BINDLESS | InstrFlags::NONUNIFORM));
        assert!(of(Opcode::Isam).contains(InstrFlags::VECTOR | InstrFlags::IMM_OFFSET | InstrFlags::A1EN));
        assert!(!of(Opcode::Isam).intersects(InstrFlags::PROJ | InstrFlags::SHADOW));
        assert!(of(Opcode::Ldib).contains(InstrFlags::BINDLESS | InstrFlags::NONUNIFORM | InstrFlags::IMM_OFFSET));
        assert!(of(Opcode::Ldc).contains(InstrFlags::BINDLESS | InstrFlags::UNIFORM | InstrFlags::NONUNIFORM));
        assert!(!of(Opcode::Ldg).intersects(InstrFlags::BINDLESS | InstrFlags::NONUNIFORM | InstrFlags::A1EN));
        assert!(of(Opcode::BaryF).contains(InstrFlags::EI));
        assert_eq!(of(Opcode::Demote), of(Opcode::Kill));
    }

    #[test]
    fn a_generation_lacks_opcodes() {
        for (opcode, first) in [
            (Opcode::AddF, Generation::A3xx),
            (Opcode::Ldgb, Generation::A3xx),
            (Opcode::Shrm, Generation::A6xx),
            (Opcode::Shfl, Generation::A6xx),
            (Opcode::Ccinv, Generation::A7xx),
        ] {
            let has = |generation| word_flags(generation, opcode).is_some();
            assert!(has(first), "{opcode}");
            let before = Generation::ALL.into_iter().filter(|&generation| generation < first);
            assert_eq!(before.filter(|&generation| has(generation)).count(), 0, "{opcode}");
        }
        assert_eq!(word_flags(Generation::A6xx, Opcode::Phi), None);
        assert_eq!(word_flags(Generation::A6xx, Opcode::Ldgb), None);
    }

    /// No word has a flag that is not found: random words of all generations.
    #[test]
    fn words_have_no_other_flags() {
        let mut state = 1u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut decoded = 0;
        for generation in Generation::ALL {
            for encoding in super::super::table::encodings().iter().filter(|it| it.generations.contains(&generation)) {
                for _ in 0..200 {
                    let word = random() & !encoding.mask | encoding.value;
                    let Ok(found) = decode(generation, word) else { continue };
                    let possible = word_flags(generation, found.data.opcode).unwrap_or_default();
                    assert!(possible.contains(found.data.flags), "{word:016x} {:?} {possible:?}", found.data);
                    decoded += 1;
                }
            }
        }
        assert!(decoded > 20_000, "{decoded}");
    }
}
