//! Dead code in scalar programs: removes instructions whose results are not read, and unread parts of results.
//!
//! A sum whose carry has no use is a plain one, and two halves of 16 invocations that do the same are one instruction.
//! Messages stay, even if their result is unused: they may have an effect.

use crate::i965::vec4::{Blocks, DstFile, Instr, Opcode, OpcodeKind, Program, SrcFile};
use fixedbitset::FixedBitSet;

/// The live registers, and in the last bit the flag.
struct Live {
    bits: FixedBitSet,
    flag: usize,
    width: u8,
    /// The accumulator, which does not last over the end of a block.
    accumulator: bool,
}

impl Live {
    /// Steps from the point after an instruction to the point before it.
    fn step(&mut self, instr: &Instr) {
        let is_whole = instr.exec_size == self.width && (instr.predicate.is_none() || instr.opcode == Opcode::Sel);
        if is_whole {
            instr.registers_written().for_each(|register| self.bits.set(register as usize, false));
            if instr.writes_flag() {
                self.bits.set(self.flag, false);
            }
        }
        // All halves of a thread share it.
        self.accumulator &= instr.opcode != Opcode::Addc;
        for src in &instr.srcs {
            match src.file {
                SrcFile::Vgrf(number) => self.bits.insert(number as usize),
                SrcFile::Acc => self.accumulator = true,
                SrcFile::Attr(_) | SrcFile::Uniform(_) | SrcFile::Imm(_) => {}
            }
        }
        if instr.reads_flag() {
            self.bits.insert(self.flag);
        }
    }

    /// Removes the dead results of an instruction. Returns false if none is live.
    fn narrow(&self, instr: &mut Instr) -> bool {
        if matches!(instr.opcode.kind(), OpcodeKind::Control | OpcodeKind::Message) {
            return true;
        }
        let is_read = instr.registers_written().any(|register| self.bits.contains(register as usize));
        let flag = instr.writes_flag() && self.bits.contains(self.flag);
        let accumulator = instr.opcode == Opcode::Addc && self.accumulator;
        if !is_read && !flag && !accumulator {
            return false;
        }
        if !is_read {
            instr.dst.file = DstFile::Null;
        }
        if !accumulator && instr.opcode == Opcode::Addc {
            instr.opcode = Opcode::Add;
        }
        if !flag && instr.writes_flag() && instr.opcode != Opcode::Cmp {
            instr.cmod = None;
        }
        true
    }
}

/// Removes dead code. Returns true if something changed.
///
/// # Panics
/// If the program is not valid.
pub fn run(program: &mut Program) -> bool {
    let Blocks { ranges, successors } = Blocks::of(program).expect("the program is valid");
    let flag = program.registers() as usize;
    let mut live_in = vec![FixedBitSet::with_capacity(flag + 1); ranges.len()];
    let at_end = |live_in: &[FixedBitSet], block: usize| {
        let mut bits = FixedBitSet::with_capacity(flag + 1);
        successors[block].iter().for_each(|&next| bits.union_with(&live_in[next]));
        Live { bits, flag, width: program.mode.width(), accumulator: false }
    };
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for block in (0..ranges.len()).rev() {
            let mut live = at_end(&live_in, block);
            program.instrs[ranges[block].clone()].iter().rev().for_each(|instr| live.step(instr));
            changed |= live.bits != live_in[block];
            live_in[block] = live.bits;
        }
    }
    let mut dead = vec![false; program.instrs.len()];
    for (block, range) in ranges.iter().enumerate() {
        let mut live = at_end(&live_in, block);
        for at in range.clone().rev() {
            let instr = &mut program.instrs[at];
            let before = instr.clone();
            if live.narrow(instr) {
                changed |= *instr != before;
                live.step(instr);
            } else {
                (dead[at], changed) = (true, true);
            }
        }
    }
    program.remove(&dead);
    changed | widen(program)
}

/// Makes one instruction of two that do the same in one half each.
fn widen(program: &mut Program) -> bool {
    let width = program.mode.width();
    let mut changed = false;
    let mut at = 1;
    while at < program.instrs.len() {
        let (first, second) = (&program.instrs[at - 1], &program.instrs[at]);
        let uses_accumulator =
            |instr: &Instr| instr.opcode == Opcode::Addc || instr.srcs.iter().any(|src| src.file == SrcFile::Acc);
        let is_pair = first.exec_size < width && first.group == 0 && second.group != 0 && !uses_accumulator(first);
        if is_pair && *second == (Instr { group: second.group, ..first.clone() }) {
            let whole = &mut program.instrs[at - 1];
            (whole.exec_size, whole.group) = (width, 0);
            program.instrs.remove(at);
            changed = true;
        } else {
            at += 1;
        }
    }
    changed
}
