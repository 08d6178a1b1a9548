//! The words of the constant file that a program in SSA form names: those that it reads, stores, or reads relative to
//! an address.

use super::{InstrData, Opcode, Program, RegFile, ShaderStage, Src, SrcOperand};
use crate::target::{Generation, Target};
use std::ops::Range;

/// The words that a program names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedConstWords {
    /// The first word that is read or stored; the largest number if there is none. Words before one that is read
    /// relative to an address may be read, too.
    pub start: u32,
    /// The word after the last one that is read or stored. Of words read relative to an address the first one counts.
    pub end: u32,
    /// Some word is read relative to an address.
    pub is_relative: bool,
    /// Some words are stored at an address that is not known.
    pub has_unknown_stores: bool,
}

impl Default for NamedConstWords {
    fn default() -> Self {
        Self { start: u32::MAX, end: 0, is_relative: false, has_unknown_stores: false }
    }
}

impl NamedConstWords {
    /// The words that a program names, but for shared constants and for those read for which `is_ignored` is true.
    pub fn of(program: &Program, target: &Target, is_ignored: impl Fn(u16) -> bool) -> Self {
        let shared = shared_consts(program, target);
        let mut named = Self::default();
        for (_, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            for src in &data.srcs {
                let last = match src.operand {
                    SrcOperand::Const(word) if !is_ignored(word) && !shared.contains(&word.into()) => i32::from(word),
                    SrcOperand::ConstRelative(word)
                        if !u32::try_from(word).is_ok_and(|word| shared.contains(&word)) =>
                    {
                        named.is_relative = true;
                        i32::from(word)
                    }
                    _ => continue,
                };
                named.start = named.start.min(last.max(0).cast_unsigned());
                named.end = named.end.max((last + 1).max(0).cast_unsigned());
            }
            if data.opcode.writes_consts() {
                match stored_words(program, data) {
                    Some(stored) => {
                        (named.start, named.end) = (named.start.min(stored.start), named.end.max(stored.end));
                    }
                    None => named.has_unknown_stores = true,
                }
            }
        }
        named
    }
}

/// The number of words of the constant file that a program may fill, or name for the driver to fill, on a GPU.
pub fn const_limit(program: &Program, target: &Target) -> u32 {
    let limits = &target.const_limits;
    let (all, shared) = match program.stage {
        Some(ShaderStage::Compute) => (limits.compute, 8),
        Some(ShaderStage::Fragment) => (limits.fragment, 8),
        // Mesa leaves twice as much to the shared constants there (`geom_shared_consts_size_quirk`).
        _ => (limits.geometry, 16),
    };
    4 * if shared_consts(program, target).is_empty() { all } else { all - shared }
}

/// The words of the constant file that all stages of a pipeline share on a6xx, if a program reads them. A Vulkan driver
/// has its push constants there (Mesa: `shared_consts_base_offset`). They are loaded on their own: `constlen` does not
/// count them.
///
/// A program that fills the file up to there may have constants of its own in these words: it names the vec4 before
/// them, too.
pub fn shared_consts(program: &Program, target: &Target) -> Range<u32> {
    const SHARED: Range<u32> = 4 * 504..4 * 512;
    if target.generation != Generation::A6xx {
        return 0..0;
    }
    let (mut reads, mut is_full) = (false, false);
    for (_, instr) in program.iter_instrs() {
        for src in &program.instrs[instr].srcs {
            let word = match src.operand {
                SrcOperand::Const(word) => u32::from(word),
                SrcOperand::ConstRelative(word) => u32::try_from(word).unwrap_or(0),
                _ => continue,
            };
            reads |= SHARED.contains(&word);
            is_full |= (SHARED.start - 4..SHARED.start).contains(&word);
        }
    }
    if reads && !is_full { SHARED } else { 0..0 }
}

/// The words of the constant file that an instruction writes, if they are known.
fn stored_words(program: &Program, data: &InstrData) -> Option<Range<u32>> {
    let a1 = match data.srcs.iter().find(|src| src.class.file == RegFile::Address) {
        Some(src) => Some(constant_address(program, src)?),
        None => None,
    };
    let (base, count) = match (data.opcode, &data.srcs[..]) {
        (Opcode::Stc, [Src { operand: SrcOperand::Immediate(base), .. }, stored, ..]) => {
            (base.checked_add(a1.unwrap_or(0))?, stored.mask.span())
        }
        (Opcode::LdcK, _) => (a1?, 4 * u32::from(data.memory()?.components?)),
        _ => return None,
    };
    Some(base..base.checked_add(count)?)
}

/// The constant in an address register, if it is moved there.
fn constant_address(program: &Program, src: &Src) -> Option<u32> {
    let def = &program.instrs[program.values[src.value()?].instr];
    match def.srcs[..] {
        [Src { operand: SrcOperand::Immediate(bits), mods, .. }] if def.opcode == Opcode::Mov && mods.is_empty() => {
            Some(bits & 0xffff)
        }
        _ => None,
    }
}
