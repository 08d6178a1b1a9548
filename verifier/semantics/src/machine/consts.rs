//! The words of the constant file that a program writes: its preamble, for the program after it.
//!
//! A write counts for all code that may be executed after it: the code after it, and the targets of branches back. One
//! at an address in `a1.x` is known where a constant is moved there before it, on the only path: no instruction in
//! between is a target of a branch, or may branch. Any other write at an address writes all words.

use super::rules::{ConstWrite, const_write};
use ir3_compiler::ir3::{Category, Dst, InstrData, InstrFlags, Opcode, PhysReg, RegFile, Src, SrcOperand};
use ir3_compiler::machine::{Code, Ip};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// A set of the writes of a program, by their numbers. Those from the 64th on are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConstWrites(u64);

impl ConstWrites {
    /// The write of a number.
    fn of(number: usize) -> Self {
        Self(1 << number.min(63))
    }

    /// Adds those of another set. Returns true if this one has more then.
    pub fn extend(&mut self, other: Self) -> bool {
        let before = self.0;
        self.0 |= other.0;
        before != self.0
    }

    /// Returns true if a write is in both.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The words that a program writes.
#[derive(Clone, Debug)]
pub struct ConstWords {
    /// The writes, in order: where, and which words, if that is known.
    writes: Vec<(Ip, Option<Range<u32>>)>,
    /// The branches back: their target, and where they are.
    back: Vec<(Ip, Ip)>,
}

impl ConstWords {
    /// Finds the words that a program writes and that are available at the end of the preamble; none if nothing is
    /// written.
    pub fn of(code: &Code) -> Option<Self> {
        let writes = |data: &InstrData| const_write(data.opcode) != ConstWrite::None;
        if !code.instrs.values().any(|instr| writes(&instr.data)) {
            return None;
        }
        let targets: FxHashSet<Ip> = code.instrs.values().filter_map(|instr| instr.target).collect();
        let branches = code.instrs.iter().filter_map(|(ip, instr)| Some((instr.target?, ip)));
        let mut this = Self { writes: Vec::new(), back: branches.filter(|(to, from)| to <= from).collect() };
        let mut a1 = None;
        for (ip, instr) in &code.instrs {
            if targets.contains(&ip) {
                a1 = None;
            }
            if writes(&instr.data) {
                this.writes.push((ip, written(&instr.data, a1)));
            }
            a1 = a1_after(&instr.data, a1);
        }
        Some(this)
    }

    fn number(&self, at: Ip) -> Option<usize> {
        self.writes.binary_search_by_key(&at, |(write, _)| *write).ok()
    }

    /// The words that an instruction writes, if they are known.
    pub fn written_by(&self, at: Ip) -> Option<Range<u32>> {
        self.writes[self.number(at)?].1.clone()
    }

    /// The write of an instruction, as a set.
    pub fn write(&self, at: Ip) -> ConstWrites {
        self.number(at).map(ConstWrites::of).unwrap_or_default()
    }

    /// The writes of some of these words that may come before an instruction.
    pub fn before(&self, at: Ip, first: u16, count: u16) -> ConstWrites {
        let (first, end) = (u32::from(first), u32::from(first) + u32::from(count.max(1)));
        // The last instruction that may be executed before it.
        let mut last = at;
        while let Some(&(_, from)) = self.back.iter().find(|(to, from)| *to <= last && *from > last) {
            last = from;
        }
        let before = self.writes.iter().enumerate().take_while(|(_, (write, _))| *write <= last);
        let is_of_these = |words: &Range<u32>| words.start < end && first < words.end;
        let mut found = ConstWrites::default();
        for (number, _) in before.filter(|(_, (_, words))| words.as_ref().is_none_or(is_of_these)) {
            found.extend(ConstWrites::of(number));
        }
        found
    }
}

/// The words that an instruction writes, if they are known, for a given value of `a1.x`.
fn written(data: &InstrData, a1: Option<u16>) -> Option<Range<u32>> {
    let (first, count) = match (data.opcode, &data.srcs[..]) {
        (Opcode::Stc, [Src { operand: SrcOperand::Immediate(first), .. }, stored, addresses @ ..]) => {
            let by_address = !addresses.is_empty() || data.flags.contains(InstrFlags::A1EN);
            let first = first.checked_add_signed(data.memory().map_or(0, |memory| memory.offset))?;
            (first.checked_add(if by_address { u32::from(a1?) } else { 0 })?, stored.mask.span())
        }
        (Opcode::Stsc, [Src { operand: SrcOperand::Immediate(first), .. }, ..]) => {
            let memory = data.memory()?;
            (first.checked_add_signed(memory.offset)?, memory.components?.into())
        }
        (Opcode::LdcK, _) => (u32::from(a1?), 4 * u32::from(data.memory()?.components?)),
        _ => return None,
    };
    Some(first..first.checked_add(count)?)
}

/// The known content of `a1.x` after an instruction.
fn a1_after(data: &InstrData, before: Option<u16>) -> Option<u16> {
    if data.opcode.category() == Category::Flow && data.opcode != Opcode::Nop {
        return None;
    }
    let is_a1 = |dst: &Dst| dst.class.file == RegFile::Address && dst.place.reg() != Some(PhysReg::A0_X);
    let writes_a1 = data.dsts.iter().any(is_a1);
    match &data.srcs[..] {
        _ if !writes_a1 => before,
        [Src { operand: SrcOperand::Immediate(bits), mods, .. }] if data.opcode == Opcode::Mov && mods.is_empty() => {
            Some(*bits as u16)
        }
        _ => None,
    }
}
