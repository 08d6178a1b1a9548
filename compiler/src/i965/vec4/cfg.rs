//! The blocks of a program, from its structured control flow.

use super::{Opcode, Program};
use smallvec::SmallVec;
use std::ops::Range;

/// Basic blocks, in the order of the code; edges between them.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// The instructions of each block.
    pub ranges: Vec<Range<usize>>,
    /// The successors of each block.
    pub successors: Vec<SmallVec<[usize; 2]>>,
}

/// The nesting of control flow is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructureError {
    /// There is no construct that this instruction could belong to.
    Unmatched(usize),
    /// The construct that this instruction begins does not end.
    Open(usize),
}

/// For each instruction of control flow, its partner: of `if`, the `else` or `endif`; of `else`, the `endif`; of `do`,
/// the `while`; of `while`, the `do`; of `break` and `continue`, the `do` of their loop.
#[derive(Clone, Debug, Default)]
pub struct Structure {
    partner: Vec<Option<usize>>,
}

impl Structure {
    /// The structure of a program.
    ///
    /// # Errors
    /// If control flow is not nested.
    pub fn of(program: &Program) -> Result<Self, StructureError> {
        let mut partner = vec![None; program.instrs.len()];
        let mut open: Vec<usize> = Vec::new();
        let opcode = |at: usize| program.instrs[at].opcode;
        for at in 0..program.instrs.len() {
            match opcode(at) {
                Opcode::If | Opcode::Do => open.push(at),
                Opcode::Else => match open.pop() {
                    Some(begin) if opcode(begin) == Opcode::If => {
                        partner[begin] = Some(at);
                        open.push(at);
                    }
                    _ => return Err(StructureError::Unmatched(at)),
                },
                Opcode::Endif => match open.pop() {
                    Some(begin) if matches!(opcode(begin), Opcode::If | Opcode::Else) => partner[begin] = Some(at),
                    _ => return Err(StructureError::Unmatched(at)),
                },
                Opcode::While => match open.pop() {
                    Some(begin) if opcode(begin) == Opcode::Do => {
                        partner[begin] = Some(at);
                        partner[at] = Some(begin);
                    }
                    _ => return Err(StructureError::Unmatched(at)),
                },
                Opcode::Break | Opcode::Continue => {
                    let begin = open.iter().rev().find(|&&begin| opcode(begin) == Opcode::Do);
                    partner[at] = Some(*begin.ok_or(StructureError::Unmatched(at))?);
                }
                _ => {}
            }
        }
        match open.last() {
            Some(&begin) => Err(StructureError::Open(begin)),
            None => Ok(Self { partner }),
        }
    }

    /// The partner of an instruction.
    pub fn partner(&self, at: usize) -> Option<usize> {
        self.partner[at]
    }
}

impl Blocks {
    /// The blocks of a program.
    ///
    /// # Errors
    /// If control flow is not nested.
    pub fn of(program: &Program) -> Result<Self, StructureError> {
        let structure = Structure::of(program)?;
        let mut ranges = Vec::new();
        let mut start = 0;
        let mut block_of = vec![0; program.instrs.len() + 1];
        for (at, instr) in program.instrs.iter().enumerate() {
            // A loop begins a block, and so do targets of branches; control flow ends one.
            if matches!(instr.opcode, Opcode::Do | Opcode::Endif) && start < at {
                ranges.push(start..at);
                start = at;
            }
            block_of[at] = ranges.len();
            let ends =
                matches!(instr.opcode, Opcode::If | Opcode::Else | Opcode::While | Opcode::Break | Opcode::Continue);
            if ends {
                ranges.push(start..at + 1);
                start = at + 1;
            }
        }
        ranges.push(start..program.instrs.len());
        block_of[program.instrs.len()] = ranges.len() - 1;
        // The block that begins after an instruction.
        let after = |at: usize| block_of[at + 1];
        let partner = |at: usize| structure.partner(at).unwrap_or(at);
        let mut successors = Vec::with_capacity(ranges.len());
        for (block, range) in ranges.iter().enumerate() {
            let mut next: SmallVec<[usize; 2]> = SmallVec::new();
            let last = range.clone().next_back();
            match last.map(|at| (at, &program.instrs[at])) {
                Some((at, instr)) if instr.opcode == Opcode::If => {
                    let to = partner(at);
                    let other = if program.instrs[to].opcode == Opcode::Else { after(to) } else { block_of[to] };
                    next.extend([after(at), other]);
                }
                Some((at, instr)) if instr.opcode == Opcode::Else => next.push(block_of[partner(at)]),
                Some((at, instr)) if instr.opcode == Opcode::While => {
                    next.push(block_of[partner(at)]);
                    // Without a predicate only a `break` leaves the loop. The edge to the code after it exists
                    // nevertheless, as in Mesa.
                    next.push(after(at));
                }
                Some((at, instr)) if matches!(instr.opcode, Opcode::Break | Opcode::Continue) => {
                    let head = partner(at);
                    let leaves = instr.opcode == Opcode::Break;
                    next.push(if leaves { after(partner(head)) } else { block_of[head] });
                    if instr.predicate.is_some() {
                        next.push(after(at));
                    }
                }
                _ if block + 1 < ranges.len() => next.push(block + 1),
                _ => {}
            }
            successors.push(next);
        }
        Ok(Self { ranges, successors })
    }
}
