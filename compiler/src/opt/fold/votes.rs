//! Folds subgroup votes into branches.

use super::Pass;
use crate::arms::Arm;
use crate::ir3::{Instr, Mods, Opcode, Src};

impl Pass<'_> {
    /// Turns a branch on a subgroup vote (any lane, or all lanes) into the vote branch. The vote is among the
    /// lanes that branch, so the two must be in one block, and no lane may end in between.
    pub(super) fn vote(&mut self, instr: Instr) {
        if self.data(instr).opcode != Opcode::Br {
            return;
        }
        let condition = self.data(instr).srcs[0];
        let Some((test, x)) = self.test(&Src { mods: Mods::empty(), ..condition }) else { return };
        let Some((_, vote)) = self.producer(&x) else { return };
        let any = match self.data(vote).opcode {
            Opcode::AnyMacro => true,
            Opcode::AllMacro => false,
            _ => return,
        };
        let Some(block) = self.blocks[instr].expand().filter(|_| self.blocks[vote] == self.blocks[instr]) else {
            self.counter.count(Arm::FoldVoteElsewhere);
            return;
        };
        if self.outvoted.contains(&vote) {
            self.counter.count(Arm::FoldVoteOutvoted);
            return;
        }
        if !self.counter.may(Arm::FoldVote) {
            return;
        }
        // `!any(p)` is `all(!p)`.
        let inverted = condition.mods.contains(Mods::NOT);
        let mut predicate = self.data(vote).srcs[0];
        predicate.mods ^= condition.mods & Mods::NOT;
        predicate.flags = condition.flags;
        let mut branch = self.data(instr).clone();
        branch.opcode = if any != inverted { Opcode::Bany } else { Opcode::Ball };
        branch.srcs[0] = predicate;
        self.rewrite(instr, branch);
        self.program.blocks[block].divergent = Some(false);
        self.remove_unread(test.1);
        self.remove_unread(vote);
        self.inverted_branch(instr);
    }
}
