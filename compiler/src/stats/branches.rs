//! Counts of the branches of the final program, by kind.
//!
//! A block with two successors ends with an inverted branch to the second and a branch to the first; the one that goes
//! to the next block in the code is omitted. So a `braa` before legalization is usually a `brao` after it.

use crate::ir3::{Block, CodeOrder, Opcode, Program};
use smallvec::{SmallVec, smallvec};
use std::ops::{Add, AddAssign};

/// The opcodes that are counted separately.
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

/// The count of each of [`BRANCHES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Branches([u32; BRANCHES.len()]);

impl Branches {
    /// Counts an instruction, if it is a branch.
    pub fn count(&mut self, opcode: Opcode, times: u32) {
        if let Some(at) = BRANCHES.iter().position(|&branch| branch == opcode) {
            self.0[at] += times;
        }
    }

    /// Each kind with its count.
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

/// The instructions that a terminator becomes when jumps are made explicit.
pub(super) fn explicit(program: &Program, order: &CodeOrder, position: usize, opcode: Opcode) -> SmallVec<[Opcode; 2]> {
    let block = program.layout[position];
    if order.is_empty(block) {
        return SmallVec::new();
    }
    let next = program.layout[position + 1..].iter().copied().find(|&block| !order.is_empty(block));
    let falls_through = |successor: Block| Some(order.landing(successor)) == next;
    let (inverse, successors) = (opcode.inverse_branch(), program.blocks[block].successors);
    match (opcode, inverse, successors) {
        // Without a second arm, all lanes are reactivated.
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
        // These jump to the second successor only.
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

/// The block that runs the lanes that were inactive in this one.
fn other_side(program: &Program, position: usize) -> Option<Block> {
    program.layout.get(position + 1).copied()
}

/// Returns true if a block is the second arm of a predicated if.
fn ends_predication(program: &Program, position: usize) -> bool {
    let block = program.layout[position];
    let [from] = program.blocks[block].predecessors[..] else { return false };
    let last = program.blocks[from].instrs.last().map(|&instr| program.instrs[instr].opcode);
    last.is_some_and(Opcode::is_predication) && program.blocks[from].successors[1] == Some(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::text::read;
    use crate::stats::Stats;
    use crate::target::Target;

    /// The final form of a predicated if: with a second arm, and without.
    #[test]
    fn predication() {
        for (sum, expected) in [("\t0005:0004:000: \tadd.u ssa_5, ssa_1, ssa_1\n", [1, 1, 1, 0]), ("", [1, 0, 1, 0])] {
            let program = read(&format!(
                "block1 {{\n\t0001:0000:000: \t_meta:in ssa_1\n\t0002:0001:000: \tcmps.u.lt pssa_2, ssa_1, \
                 imm[0.000000,3,0x3]\n\t0003:0002:000: \tpredt pssa_2\n\t/* succs: block2, block3 (div) */\n}}\nblock2 \
                 {{\n\tpred: block1\n\t0004:0003:000: \tadd.u ssa_4, ssa_1, ssa_1\n\t0006:0005:000: \tpredf \
                 pssa_2\n\t/* succs: block4 */\n}}\nblock3 {{\n\tpred: block1\n{sum}\t0007:0006:000: \tjump\n\t/* succs: \
                 block4 */\n}}\nblock4 {{\n\tpred: block2, block3\n\t0008:0007:000: \tend\n}}\n"
            ))
            .expect("our own text");
            let branches = Stats::of(&program, &Target::default()).branches;
            let wanted = [Opcode::Predt, Opcode::Predf, Opcode::Prede, Opcode::Jump];
            let found = wanted.map(|opcode| branches.iter().find(|&(its, _)| its == opcode).map_or(0, |(_, n)| n));
            assert_eq!(found, expected);
        }
    }
}
