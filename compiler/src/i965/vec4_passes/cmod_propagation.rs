//! Conditional modifiers: a comparison of a result with zero is done by the instruction that computes the result.
//!
//! From each instruction that only writes the flag (`cmp x, 0`, `mov.nz x`, `and.nz x, 1`) the block is scanned backwards for the producer of `x`.
//! If the producer can have the conditional modifier, the comparison is removed; it is removed too if it only tests a bool that a `cmp` has made,
//! since that wrote the flag already. Nothing between the two may write the flag, and nothing may read it if the producer did not write it before.

use super::live_variables::{FlagRules, LiveVariables};
use crate::i965::vec4::{Cmod, DstFile, Instr, Mask, Opcode, Program, RegType, SrcFile, Swizzle};

/// The form of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The producer writes all channels that the comparison writes. The first version of the pass did not look.
    pub writemasks: bool,
    /// Each channel of the comparison reads the channel that the producer writes to the same bit of the flag.
    pub swizzles: bool,
    /// Channels of the flag that only the producer's writemask has are dead, so that writing them does not matter.
    pub live_channels: bool,
    /// A `cmp` producer gives its flag to tests for `.nz` of its bool only: its flag is no comparison of its result.
    pub cmp_results: bool,
    /// A producer that wrote the flag with another condition than `.nz` does not make a test for `.nz` redundant.
    pub same_condition: bool,
    /// Clamped results are not compared by the producer, which compares before it clamps.
    pub saturated: bool,
}

/// Propagates conditional modifiers. Returns true if something changed.
pub fn run(program: &mut Program, rules: Rules) -> bool {
    let LiveVariables { blocks, out } = LiveVariables::of(program, FlagRules::CORRECT);
    let mut dead = vec![false; program.instrs.len()];
    for (range, live) in blocks.ranges.into_iter().zip(out) {
        let mut flag_after = live;
        for at in range.clone().rev() {
            let after = flag_after.flag;
            if compares_with_zero(&program.instrs[at]) {
                dead[at] = propagate(&mut program.instrs[range.start..=at], after, rules);
            }
            if !dead[at] {
                flag_after.flag_before(&program.instrs[at], FlagRules::CORRECT);
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
fn propagate(instrs: &mut [Instr], after: Mask, rules: Rules) -> bool {
    let Some((compare, before)) = instrs.split_last_mut() else { return false };
    let SrcFile::Vgrf(register) = compare.srcs[0].file else { return false };
    let mut flag_read = false;
    for producer in before.iter_mut().rev() {
        if producer.dst.file == DstFile::Vgrf(register) {
            return match decide(producer, compare, flag_read, after, rules) {
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

fn decide(producer: &Instr, compare: &Instr, flag_read: bool, after: Mask, rules: Rules) -> Decision {
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
    // The first version of the pass writes the flag of x, and readers of other channels read the old flag.
    let reads_own = reads_own || !rules.writemasks && written == Mask(1) && src.swizzle == Swizzle::replicate(0);
    if rules.swizzles && !reads_own {
        return Decision::Keep;
    }
    if !fits || rules.writemasks && !compare.dst.mask.without(written).is_empty() {
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
    let cmp_differs = rules.cmp_results && producer.opcode == Opcode::Cmp;
    if producer.writes_flag() {
        let is_nz = producer.cmod == Some(Cmod::Nz) && !cmp_differs && types[0] == types[1];
        if cmod == Cmod::Nz
            && !src.negate
            && (is_nz || !rules.same_condition)
            && !(rules.saturated && producer.saturate)
        {
            return Decision::Redundant;
        }
    }
    // Signed and unsigned numbers are equal to zero together, and nothing else.
    if types[0] != types[1] && !matches!(cmod, Cmod::Z | Cmod::Nz) {
        return Decision::Keep;
    }
    if cmp_differs || rules.saturated && producer.saturate {
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
        let keeps_others = !rules.live_channels || (others & after).is_empty();
        if !wrote && !flag_read && keeps_others {
            return Decision::Propagate(cmod);
        }
    }
    Decision::Keep
}
