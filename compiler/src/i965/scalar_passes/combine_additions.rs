//! Matched pairs of sums: the instruction that computes the low word and the one that computes the carry for the high
//! word become one.
//!
//! Both add the same words; one writes a register, of the other only the accumulator or the flag is read. Of two such
//! instructions in a block, one is removed: the later one if its accumulator or flag result is available already, or is
//! not read; the earlier one if its result is not read. The result moves to the one that stays, over instructions that
//! do not touch it.

use super::lower_additions::adds_same;
use crate::i965::vec4::{Blocks, Cmod, DstFile, Instr, Opcode, Program, SrcFile};

/// The resource in which an instruction leaves the carry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Resource {
    Accumulator,
    Flag,
}

/// The resource of an instruction that computes a carry.
fn carry_of(instr: &Instr) -> Option<Resource> {
    match (instr.opcode, instr.cmod) {
        _ if instr.predicate.is_some() => None,
        (Opcode::Addc, None) => Some(Resource::Accumulator),
        (Opcode::Add, Some(Cmod::O)) => Some(Resource::Flag),
        _ => None,
    }
}

impl Resource {
    fn is_read(self, instr: &Instr) -> bool {
        match self {
            Self::Accumulator => instr.srcs.iter().any(|src| src.file == SrcFile::Acc),
            Self::Flag => instr.reads_flag(),
        }
    }

    fn is_written(self, instr: &Instr) -> bool {
        match self {
            Self::Accumulator => instr.opcode == Opcode::Addc,
            Self::Flag => instr.writes_flag(),
        }
    }

    /// Returns true if nothing of it is left after an instruction. All halves of a thread share the accumulator.
    fn is_killed(self, instr: &Instr, width: u8) -> bool {
        let all = self == Self::Accumulator || instr.exec_size == width && instr.predicate.is_none();
        all && self.is_written(instr)
    }
}

/// Combines them. Returns true if there was a pair.
///
/// # Panics
/// If the program is not valid.
pub fn run(program: &mut Program) -> bool {
    let blocks = Blocks::of(program).expect("the program is valid");
    let width = program.mode.width();
    let mut dead = vec![false; program.instrs.len()];
    for (range, successors) in blocks.ranges.into_iter().zip(&blocks.successors) {
        let start = range.start;
        let mut block =
            Block { instrs: &mut program.instrs[range], dead: &mut dead, start, width, is_last: successors.is_empty() };
        (0..block.instrs.len()).for_each(|second| block.combine(second));
    }
    program.remove(&dead);
    dead.contains(&true)
}

struct Block<'a> {
    instrs: &'a mut [Instr],
    /// The instructions of the program that are removed.
    dead: &'a mut [bool],
    /// The number of the first instruction.
    start: usize,
    width: u8,
    is_last: bool,
}

impl Block<'_> {
    /// Combines an instruction with the last one before it that adds the same.
    fn combine(&mut self, second: usize) {
        let Some(resource) = carry_of(&self.instrs[second]) else { return };
        for first in (0..second).rev() {
            if self.dead[self.start + first] {
                continue;
            }
            let (a, b) = (&self.instrs[first], &self.instrs[second]);
            if carry_of(a) == Some(resource)
                && (a.exec_size, a.group, a.dst.ty) == (b.exec_size, b.group, b.dst.ty)
                && adds_same(a, b)
            {
                if let Some(removed) = self.removed(first, second, resource) {
                    let [dst, stays] = if removed == second { [second, first] } else { [first, second] };
                    if self.instrs[stays].dst.file == DstFile::Null {
                        self.instrs[stays].dst = self.instrs[dst].dst;
                    }
                    self.dead[self.start + removed] = true;
                }
                return;
            }
            // From here on one of the words has another value.
            if self.writes_any(first, &self.instrs[second]) {
                return;
            }
        }
    }

    /// Returns true if two instructions run in different invocations: they share the accumulator, and no registers.
    fn are_apart(&self, a: &Instr, b: &Instr) -> bool {
        a.exec_size < self.width && b.exec_size < self.width && a.group != b.group
    }

    /// Returns true if an instruction writes a register that another one reads.
    fn writes_any(&self, writer: usize, reader: &Instr) -> bool {
        if self.are_apart(&self.instrs[writer], reader) {
            return false;
        }
        let written = self.instrs[writer].registers_written();
        reader.srcs.iter().any(|src| matches!(src.file, SrcFile::Vgrf(number) if written.contains(&number)))
    }

    /// The one of two sums that is removed, if one can be.
    fn removed(&self, first: usize, second: usize, resource: Resource) -> Option<usize> {
        if self.writes_any(first, &self.instrs[second]) {
            return None;
        }
        let between = || (first + 1..second).filter(|&at| !self.dead[self.start + at]).map(|at| &self.instrs[at]);
        let is_null = |at: usize| self.instrs[at].dst.file == DstFile::Null;
        let moves = |from: usize, to: usize| match self.instrs[from].dst.file {
            DstFile::Vgrf(number) => {
                is_null(to)
                    && between().filter(|instr| !self.are_apart(instr, &self.instrs[from])).all(|instr| {
                        let reads = instr.srcs.iter().any(|src| src.file == SrcFile::Vgrf(number));
                        !reads && !instr.registers_written().contains(&number)
                    })
            }
            _ => true,
        };
        let is_there = !between().any(|instr| resource.is_written(instr));
        if moves(second, first) && (is_there || !self.is_live(second, resource)) {
            return Some(second);
        }
        (moves(first, second) && !self.is_live(first, resource)).then_some(first)
    }

    /// Returns true if the content of a resource after an instruction may be read.
    fn is_live(&self, after: usize, resource: Resource) -> bool {
        for at in (after + 1..self.instrs.len()).filter(|&at| !self.dead[self.start + at]) {
            if resource.is_read(&self.instrs[at]) {
                return true;
            }
            if resource.is_killed(&self.instrs[at], self.width) {
                return false;
            }
        }
        // The accumulator does not last over the end of a block.
        resource == Resource::Flag && !self.is_last
    }
}
