//! The words of the constant file that a program in SSA form names: those that it reads, stores, or reads relative to an address.

use super::{InstrData, Opcode, Program, RegFile, ShaderStage, Src, SrcOperand};
use crate::target::Target;
use std::ops::Range;

/// The words that a program names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedConstWords {
    /// The word after the last one that is read or stored. Of words read relative to an address the first one counts.
    pub end: u32,
    /// Some word is read relative to an address.
    pub is_relative: bool,
    /// Some words are stored at an address that is not known.
    pub has_unknown_stores: bool,
}

impl NamedConstWords {
    /// The words that a program names. Words read for which `is_ignored` is true do not count.
    pub fn of(program: &Program, is_ignored: impl Fn(u16) -> bool) -> Self {
        let mut named = Self::default();
        for (_, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            for src in &data.srcs {
                let last = match src.operand {
                    SrcOperand::Const(word) if !is_ignored(word) => i32::from(word),
                    SrcOperand::ConstRelative(word) => {
                        named.is_relative = true;
                        i32::from(word)
                    }
                    _ => continue,
                };
                named.end = named.end.max((last + 1).max(0).cast_unsigned());
            }
            if data.opcode.writes_consts() {
                match stored_words(program, data) {
                    Some(stored) => named.end = named.end.max(stored.end),
                    None => named.has_unknown_stores = true,
                }
            }
        }
        named
    }
}

/// The number of words of the constant file that a program may read on a GPU.
pub fn const_limit(program: &Program, target: &Target) -> u32 {
    let limits = &target.const_limits;
    4 * match program.stage {
        Some(ShaderStage::Compute) => limits.compute,
        Some(ShaderStage::Fragment) => limits.fragment,
        _ => limits.geometry,
    }
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
