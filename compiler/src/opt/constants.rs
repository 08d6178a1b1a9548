//! Moves immediates that no operand can encode to the constant file.
//!
//! An operation of cat2 can encode an integer of ten bits or a float of the table ([`legality`](crate::ir3::legality)),
//! one of cat3 no immediate at all, but both can read words of the constant file. So an immediate that copy propagation
//! has left in a register becomes a word after the last one that the program uses, and the program records the value
//! that the driver must put there ([`ConstLayout`](crate::ir3::ConstLayout)). Equal immediates share a word.
//!
//! A program that reads words relative to an address may read any word, so its immediates are words that the driver
//! fills, as its system values are: selection declares them (`declare`) at the end of the file, below the system
//! values, and a load of nir's that reaches these words reads the driver's values. This pass then uses these words, and
//! no others.
//!
//! The pass does nothing if the program writes to the constant file at unknown addresses. A half operand converts the
//! word that it reads, by the type of its reader: a float operation reads the float of 32 bits with the same value.

use super::operands::place;
use crate::arms::{Arm, Counter};
use crate::ir3::const_words::{NamedConstWords, const_limit};
use crate::ir3::opcode::Numeric;
use crate::ir3::{Category, Instr, Opcode, OperandFlags, Place, Program, RegClass, RegFile, Src, SrcOperand, Type};
use crate::target::Target;
use rustc_hash::{FxHashMap, FxHashSet};

/// Returns true if an operation reads an immediate from a register.
pub fn is_needed(program: &Program) -> bool {
    program
        .iter_instrs()
        .any(|(_, instr)| (0..program.instrs[instr].srcs.len()).any(|slot| immediate(program, instr, slot).is_some()))
}

/// Makes operations read immediates that they cannot encode from the constant file.
pub fn run(program: &mut Program, target: &Target, counter: &Counter) {
    let mut free = free_words(program, target).peekable();
    let has_free = !reads_relative(program);
    let mut words: FxHashMap<u32, u16> = program.consts.immediates.iter().map(|&(word, bits)| (bits, word)).collect();
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        for index in 0..program.blocks[block].instrs.len() {
            let instr = program.blocks[block].instrs[index];
            for slot in 0..program.instrs[instr].srcs.len() {
                let Some(bits) = immediate(program, instr, slot) else { continue };
                let known = words.get(&bits).copied();
                let Some(word) = known.or_else(|| free.peek().copied().filter(|_| has_free)) else {
                    counter.count(Arm::ConstantFull);
                    continue;
                };
                let arm = if known.is_some() { Arm::ConstantKnown } else { Arm::ConstantNew };
                let old = program.instrs[instr].srcs[slot];
                let new = Src { operand: SrcOperand::Const(word), class: RegClass::general(old.class.half), ..old };
                if place(program, target, instr, slot, new, || counter.may(arm)) && known.is_none() {
                    words.insert(bits, word);
                    program.consts.immediates.push((word, bits));
                    free.next();
                }
            }
        }
    }
}

/// Returns true if some word of the constant file is read relative to an address.
fn reads_relative(program: &Program) -> bool {
    let is_relative = |src: &Src| matches!(src.operand, SrcOperand::ConstRelative(_));
    program.iter_instrs().any(|(_, instr)| program.instrs[instr].srcs.iter().any(is_relative))
}

/// Declares the immediates of a program that reads words relative to an address, up to the end of the file. `arrays` is
/// the number of words that the arrays of the shader may have, after the words that are named.
pub(crate) fn declare(program: &mut Program, target: &Target, arrays: u32, counter: &Counter) {
    if !reads_relative(program) {
        return;
    }
    counter.count(Arm::ConstantDeclared);
    let mut free = free_words(program, target).peekable();
    let start = free.peek().map_or(0, |&word| u32::from(word)) + arrays;
    let mut known = FxHashSet::default();
    let mut immediates = Vec::new();
    for (_, instr) in program.iter_instrs() {
        let found = (0..program.instrs[instr].srcs.len()).filter_map(|slot| immediate(program, instr, slot));
        immediates.extend(found.filter(|&bits| known.insert(bits)));
    }
    let words = free.rev().take_while(|&word| u32::from(word) >= start);
    program.consts.immediates.extend(words.zip(immediates));
}

/// The word of the constant file that an operation may read instead of the immediate that its source `slot` has in a
/// register.
fn immediate(program: &Program, instr: Instr, slot: usize) -> Option<u32> {
    let data = &program.instrs[instr];
    // Phis and copies become moves, which can encode any immediate.
    if !matches!(data.opcode.category(), Category::Alu2 | Category::Alu3) {
        return None;
    }
    let src = data.srcs[slot];
    let SrcOperand::Place(Place::Value(value)) = src.operand else { return None };
    let info = &program.values[value];
    let def = &program.instrs[info.instr];
    let [Src { operand: SrcOperand::Immediate(bits), mods, .. }] = def.srcs[..] else { return None };
    let fits = matches!(info.class.file, RegFile::General | RegFile::Shared)
        && info.components == 1
        && mods.is_empty()
        && def.opcode == Opcode::Mov
        && def.flags.is_empty()
        && !src.flags.contains(OperandFlags::TIED);
    if !fits {
        return None;
    }
    use Type::{F16, F32, S16, S32, U16, U32};
    match (info.class.half, def.move_types()?, data.opcode.info().numeric) {
        (false, (U32, U32) | (F32, F32) | (S32, S32), _) => Some(bits),
        (true, (U16, U16) | (F16, F16) | (S16, S16), Numeric::Float) => float_of_half(bits),
        (true, (U16, U16) | (F16, F16) | (S16, S16), Numeric::Int | Numeric::Bits) => Some(bits & 0xffff),
        _ => None,
    }
}

/// The float of 32 bits with the value of one of 16 bits. A NaN has none: a conversion may change its bits.
fn float_of_half(bits: u32) -> Option<u32> {
    let (sign, exponent, fraction) = (bits >> 15 & 1, bits >> 10 & 0x1f, bits & 0x3ff);
    let float = |fraction: u32, exponent: i32| fraction as f32 * 2f32.powi(exponent);
    let magnitude = match exponent {
        0 => float(fraction, -24),
        0x1f if fraction == 0 => f32::INFINITY,
        0x1f => return None,
        _ => float(fraction | 0x400, exponent as i32 - 25),
    };
    Some(magnitude.to_bits() | sign << 31)
}

/// Words of the constant file after all that the program names, but for the vec4s of the driver parameters.
fn free_words(program: &Program, target: &Target) -> impl DoubleEndedIterator<Item = u16> + use<> {
    let params: FxHashSet<u16> = program.consts.driver_params.iter().map(|param| param.word / 4).collect();
    // Words that the driver fills may come after words that are free.
    let named = NamedConstWords::of(program, target, |word| params.contains(&(word / 4)));
    let declared = program.consts.immediates.iter().map(|&(word, _)| u32::from(word) + 1).max().unwrap_or(0);
    let start = named.end.max(declared).next_multiple_of(4);
    let end = if named.has_unknown_stores { 0 } else { const_limit(program, target) };
    (start..end).map(|word| word as u16).filter(move |word| !params.contains(&(word / 4)))
}

#[cfg(test)]
mod tests {
    use super::float_of_half;

    #[test]
    fn halves_have_their_floats() {
        let known = [
            (0x0000, 0.0f32),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x0001, 5.960_464_5e-8),
            (0x83ff, -6.097_555e-5),
            (0x7bff, 65504.0),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ];
        for (half, float) in known {
            assert_eq!(float_of_half(half), Some(float.to_bits()), "{half:#x}");
        }
        assert_eq!(float_of_half(0x8000), Some(0x8000_0000));
        assert_eq!(float_of_half(0x7c01), None);
        assert_eq!(float_of_half(0xfe00), None);
    }
}
