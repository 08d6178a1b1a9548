//! Branches by their kind, as they stand in the final program.
//!
//! A block with two successors ends with an inverted branch to the second and a branch to the first, and the one that goes to
//! what comes next in the code anyway is left out. So what is `braa` in front of legalization is mostly `brao` behind it.

use crate::ir3::{Block, CodeOrder, Opcode, Program};
use smallvec::{SmallVec, smallvec};
use std::ops::{Add, AddAssign};

/// The opcodes that are counted, each for itself.
pub const BRANCHES: [Opcode; 12] = [
    Opcode::Br,
    Opcode::Braa,
    Opcode::Brao,
    Opcode::Bany,
    Opcode::Ball,
    Opcode::Getone,
    Opcode::Getlast,
    Opcode::Shps,
    Opcode::Predt,
    Opcode::Predf,
    Opcode::Prede,
    Opcode::Jump,
];

/// How many there are of each of [`BRANCHES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Branches([u32; BRANCHES.len()]);

impl Branches {
    /// Counts an instruction, if it is a branch.
    pub fn count(&mut self, opcode: Opcode, times: u32) {
        if let Some(at) = BRANCHES.iter().position(|&branch| branch == opcode) {
            self.0[at] += times;
        }
    }

    /// Each kind with its number.
    pub fn iter(&self) -> impl Iterator<Item = (Opcode, u32)> + '_ {
        BRANCHES.into_iter().zip(self.0)
    }
}

impl AddAssign for Branches {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, n)| *sum += n);
    }
}

impl Add for Branches {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// What a terminator becomes when jumps are made explicit.
pub(super) fn explicit(program: &Program, order: &CodeOrder, position: usize, opcode: Opcode) -> SmallVec<[Opcode; 2]> {
    let block = program.layout[position];
    if order.is_empty(block) {
        return SmallVec::new();
    }
    let next = program.layout[position + 1..].iter().copied().find(|&block| !order.is_empty(block));
    let falls_through = |successor: Block| Some(order.landing(successor)) == next;
    let (inverse, successors) = (opcode.inverse_branch(), program.blocks[block].successors);
    match (opcode, inverse, successors) {
        // Without another side there is nothing to begin, and all wake up.
        (Opcode::Predt | Opcode::Predf, _, [Some(_), None])
            if other_side(program, position).is_none_or(|other| order.is_empty(other)) =>
        {
            smallvec![Opcode::Prede]
        }
        (Opcode::Jump, _, [Some(only), None]) if ends_predication(program, position) => match falls_through(only) {
            true => smallvec![Opcode::Prede],
            false => smallvec![Opcode::Prede, Opcode::Jump],
        },
        (Opcode::Jump, _, [Some(only), None]) if falls_through(only) => SmallVec::new(),
        // These jump to the second, and to nothing else.
        (Opcode::Getone | Opcode::Getlast | Opcode::Shps, _, [Some(first), Some(_)]) if !falls_through(first) => {
            smallvec![opcode, Opcode::Jump]
        }
        (_, Some(inverse), [Some(first), Some(second)]) => match (falls_through(first), falls_through(second)) {
            (true, _) => smallvec![inverse],
            (false, true) => smallvec![opcode],
            (false, false) => smallvec![inverse, opcode],
        },
        _ => smallvec![opcode],
    }
}

/// The block that lanes run which have slept in this one.
fn other_side(program: &Program, position: usize) -> Option<Block> {
    program.layout.get(position + 1).copied()
}

/// Whether a block is the second side of a predicated if.
fn ends_predication(program: &Program, position: usize) -> bool {
    let block = program.layout[position];
    let [from] = program.blocks[block].predecessors[..] else { return false };
    let last = program.blocks[from].instrs.last().map(|&instr| program.instrs[instr].opcode);
    matches!(last, Some(Opcode::Predt | Opcode::Predf)) && program.blocks[from].successors[1] == Some(block)
}
