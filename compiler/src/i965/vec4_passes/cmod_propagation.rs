//! Conditional modifiers: a comparison of a result with zero is done by the instruction that computes the result.
//!
//! From each instruction that only writes the flag (`cmp x, 0`, `mov.nz x`, `and.nz x, 1`) the block is scanned
//! backwards for the producer of `x`. If the producer can have the conditional modifier, the comparison is removed; it
//! is removed too if it only tests a bool that a `cmp` has made, since that wrote the flag already. Nothing between the
//! two may write the flag, and nothing may read it if the producer did not write it before.

use super::live_variables::{Flag, LiveVariables};
use crate::i965::vec4::{Cmod, DstFile, Instr, Mask, Opcode, Program, RegType, SrcFile, Swizzle};

const MODEL: Flag = Flag { channels: true };

/// Propagates conditional modifiers. Returns true if something changed.
pub fn run(program: &mut Program) -> bool {
    let LiveVariables { blocks, out } = LiveVariables::of(program, MODEL);
    let mut dead = vec![false; program.instrs.len()];
    for (range, live) in blocks.ranges.into_iter().zip(out) {
        let mut flag_after = live;
        for at in range.clone().rev() {
            let after = flag_after.flag;
            if compares_with_zero(&program.instrs[at]) {
                dead[at] = propagate(&mut program.instrs[range.start..=at], after);
            }
            if !dead[at] {
                flag_after.flag_before(&program.instrs[at], MODEL);
            }
        }
    }
    program.remove(&dead);
    dead.contains(&true)
}

/// Returns true if an instruction only writes the flag, by a comparison of a register with zero.
fn compares_with_zero(instr: &Instr) -> bool {
    if instr.dst.file != DstFile::Null || instr.predicate.is_some() {
        return false;
    }
    let Some(src) = instr.srcs.first() else { return false };
    if !matches!(src.file, SrcFile::Vgrf(_)) || src.abs {
        return false;
    }
    match instr.opcode {
        Opcode::Cmp => instr.srcs[1].is_zero(),
        Opcode::Mov => instr.cmod == Some(Cmod::Nz) && src.ty == instr.dst.ty,
        Opcode::And => instr.cmod == Some(Cmod::Nz) && instr.srcs[1].as_immediate() == Some(1),
        _ => false,
    }
}

/// The decision about a producer.
enum Decision {
    /// The comparison is removed: the flag has its result.
    Redundant,
    /// The producer gets this conditional modifier.
    Propagate(Cmod),
    /// Keeps the comparison.
    Keep,
}

/// Looks for the producer of the operand of the last instruction, a comparison. Returns true if the comparison is to be
/// removed. `after` are the channels of the flag that are live after it.
fn propagate(instrs: &mut [Instr], after: Mask) -> bool {
    let Some((compare, before)) = instrs.split_last_mut() else { return false };
    let SrcFile::Vgrf(register) = compare.srcs[0].file else { return false };
    let mut flag_read = false;
    for producer in before.iter_mut().rev() {
        if producer.dst.file == DstFile::Vgrf(register) {
            return match decide(producer, compare, flag_read, after) {
                Decision::Redundant => true,
                Decision::Propagate(cmod) => {
                    producer.cmod = Some(cmod);
                    true
                }
                Decision::Keep => false,
            };
        }
        if producer.writes_flag() {
            return false;
        }
        flag_read |= producer.reads_flag();
    }
    false
}

fn decide(producer: &Instr, compare: &Instr, flag_read: bool, after: Mask) -> Decision {
    let src = &compare.srcs[0];
    let cmod = compare.cmod.unwrap_or(Cmod::Nz);
    // A predicated `sel` writes all channels.
    let is_predicated = producer.predicate.is_some() && producer.opcode != Opcode::Sel;
    if is_predicated || producer.exec_size != compare.exec_size || producer.group != compare.group {
        return Decision::Keep;
    }
    let written = producer.dst.mask;
    let fits = match (written, src.swizzle) {
        (Mask(1), _) => true,
        (Mask::ALL, swizzle) => swizzle == Swizzle::IDENTITY,
        _ => false,
    };
    let reads_own = compare.dst.mask.channels().all(|channel| usize::from(src.swizzle.0[channel]) == channel);
    if !reads_own || !fits || !compare.dst.mask.without(written).is_empty() {
        return Decision::Keep;
    }
    let is_integer = compare.dst.ty != RegType::F && src.ty != RegType::F;
    if cmod == Cmod::Nz && producer.opcode == Opcode::Cmp && is_integer {
        return Decision::Redundant;
    }
    // A test of the lowest bit is one for zero only of bools.
    if compare.opcode == Opcode::And {
        return Decision::Keep;
    }
    let types = [producer.dst.ty, src.ty];
    if types[0] != types[1] && types.contains(&RegType::F) {
        return Decision::Keep;
    }
    // The flag of a comparison is no comparison of its result with zero.
    let cmp_differs = producer.opcode == Opcode::Cmp;
    if producer.writes_flag() {
        let is_nz = producer.cmod == Some(Cmod::Nz) && !cmp_differs && types[0] == types[1];
        if cmod == Cmod::Nz && !src.negate && is_nz && !producer.saturate {
            return Decision::Redundant;
        }
    }
    // Signed and unsigned numbers are equal to zero together, and nothing else.
    if types[0] != types[1] && !matches!(cmod, Cmod::Z | Cmod::Nz) {
        return Decision::Keep;
    }
    // Clamped results are compared before they are clamped.
    if cmp_differs || producer.saturate {
        return Decision::Keep;
    }
    let cmod = if src.negate { cmod.swapped() } else { cmod };
    // The negation of the least integer is itself.
    if src.negate && src.ty != RegType::F && !matches!(cmod, Cmod::Z | Cmod::Nz) {
        return Decision::Keep;
    }
    if producer.opcode.can_do_cmod() || producer.opcode == Opcode::Cmp {
        let wrote = producer.writes_flag();
        if wrote && producer.cmod == Some(cmod) {
            return Decision::Redundant;
        }
        let others = written.without(compare.dst.mask);
        let keeps_others = (others & after).is_empty();
        if !wrote && !flag_read && keeps_others {
            return Decision::Propagate(cmod);
        }
    }
    Decision::Keep
}
