//! The words of the constant file that a program writes: its preamble, for the program after it.
//!
//! The set is that of the whole program, whatever the path.

use super::rules::{ConstWrite, const_write};
use ir3_compiler::ir3::{InstrData, InstrFlags, Opcode, SrcOperand};
use ir3_compiler::machine::Code;
use std::ops::Range;

/// Words of the file, more than any GPU has.
const WORDS: usize = 1 << 13;

/// Words that are written.
#[derive(Clone, Debug)]
pub struct ConstWords {
    bits: Box<[bool; WORDS]>,
}

impl ConstWords {
    /// Finds the words that a program writes and that are there at the end of the preamble; none if nothing is written.
    pub fn of(code: &Code) -> Option<Self> {
        let writes = code.instrs.values().map(|instr| &instr.data);
        let mut writes = writes.filter(|data| const_write(data.opcode) == ConstWrite::Preamble).peekable();
        writes.peek()?;
        let mut bits = Box::new([false; WORDS]);
        for range in writes.map(written) {
            bits[range.start.min(WORDS)..range.end.min(WORDS)].fill(true);
        }
        Some(Self { bits })
    }

    /// Returns true if one of these words is written.
    pub fn any(&self, first: u16, count: u16) -> bool {
        let first = usize::from(first).min(WORDS - 1);
        self.bits[first..(first + usize::from(count.max(1))).min(WORDS)].contains(&true)
    }
}

/// The words that an instruction writes; all, unless it names them.
fn written(data: &InstrData) -> Range<usize> {
    let all = 0..WORDS;
    let (Opcode::Stc, [to, from, ..]) = (data.opcode, &data.srcs[..]) else { return all };
    let SrcOperand::Immediate(first) = to.operand else { return all };
    if data.flags.contains(InstrFlags::A1EN) || data.srcs.len() > 2 {
        return all;
    }
    let first = first.saturating_add_signed(data.memory().map_or(0, |memory| memory.offset)) as usize;
    first..first.saturating_add(from.mask.span() as usize)
}
