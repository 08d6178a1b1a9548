//! Folds negations of bools into their users.

use super::{DEPTH, Pass, is_legal};
use crate::arms::Arm;
use crate::ir3::{Instr, Mods, Opcode, RegFile, Src, SrcOperand};

impl Pass<'_> {
    /// Folds the negations that an instruction reads.
    pub(super) fn negation(&mut self, instr: Instr) {
        match self.data(instr).opcode {
            Opcode::Br => self.inverted_branch(instr),
            Opcode::SelB16 | Opcode::SelB32 => self.exchanged_operands(instr),
            Opcode::Mov => self.exchanged_operands_behind(instr),
            Opcode::AndB => self.negated_operand(instr),
            _ => {}
        }
    }

    /// The negated bool that a source reads, and the negation, if the bool has the same value at `places`.
    pub(super) fn negated(&self, src: &Src, places: &[Instr]) -> Option<(Src, Instr)> {
        let (_, def) = self.producer(src)?;
        let data = self.data(def);
        let [bool, one] = data.srcs[..] else { return None };
        let is_negation = data.opcode == Opcode::XorB
            && data.flags.is_empty()
            && one.operand == SrcOperand::Immediate(1)
            && one.mods.is_empty()
            && data.dsts[0].class == bool.class
            && bool.class == src.class;
        let fits = is_negation && bool.value().is_some() && self.is_bool(&bool, DEPTH);
        (fits && self.is_current(&bool, def, places)).then_some((bool, def))
    }

    pub(super) fn inverted_branch(&mut self, instr: Instr) {
        let predicate = self.data(instr).srcs[0];
        let Some((test, x)) = self.test(&Src { mods: Mods::empty(), ..predicate }) else { return };
        let Some((bool, negation)) = self.negated(&x, &[test.1, instr]) else { return };
        // All users of the predicate must take over the negation.
        let users = self.uses[test.0].clone();
        let can_invert = users.iter().all(|&(user, _)| self.data(user).opcode.inverse_branch().is_some());
        if can_invert && self.counter.may(Arm::FoldInvertedBranch) {
            self.set(test.1, 0, bool);
            for (user, slot) in users {
                self.program.instrs[user].srcs[usize::from(slot)].mods.toggle(Mods::NOT);
            }
            self.remove_unread(negation);
        }
    }

    fn exchanged_operands(&mut self, instr: Instr) {
        let data = self.data(instr);
        let [yes, condition, no] = data.srcs[..] else { return };
        let Some((bool, negation)) = self.negated(&condition, &[instr]) else { return };
        let mut new = data.clone();
        new.srcs = [no, bool, yes].into_iter().collect();
        // The third source has every form that the first can have.
        debug_assert!(is_legal(self.target, &new));
        if self.counter.may(Arm::FoldSelection) {
            self.rewrite(instr, new);
            self.remove_unread(negation);
        }
    }

    /// Folds the negation of a bool that is widened and only used as the condition of selections.
    fn exchanged_operands_behind(&mut self, instr: Instr) {
        let Some(wide) = self.widened(instr) else { return };
        let Some((bool, negation)) = self.negated(&self.data(instr).srcs[0], &[instr]) else { return };
        let uses = self.uses[wide].clone();
        let all = uses.iter().all(|&(user, slot)| {
            let mut new = self.data(user).clone();
            slot == 1 && new.opcode == Opcode::SelB32 && new.srcs.len() == 3 && {
                new.srcs.swap(0, 2);
                is_legal(self.target, &new)
            }
        });
        if !all || uses.is_empty() {
            self.counter.count(Arm::FoldWideSelectionOther);
            return;
        }
        if !self.counter.may(Arm::FoldWideSelection) {
            return;
        }
        for (user, _) in uses {
            let mut new = self.data(user).clone();
            new.srcs.swap(0, 2);
            self.rewrite(user, new);
        }
        self.set(instr, 0, bool);
        self.remove_unread(negation);
    }

    /// One operand of a conjunction of two bools may be read with `(not)`: the other clears all but its lowest bit.
    fn negated_operand(&mut self, instr: Instr) {
        if !self.data(instr).flags.is_empty() {
            return;
        }
        for slot in [0, 1] {
            let data = self.data(instr);
            let [a, b] = data.srcs[..] else { return };
            let (one, other) = if slot == 0 { (a, b) } else { (b, a) };
            let in_place = data.dsts[0].class.file != RegFile::Predicate && self.is_bool(&other, DEPTH);
            let Some((bool, negation)) = self.negated(&one, &[instr]).filter(|_| in_place) else { continue };
            let mut new = data.clone();
            new.srcs[slot] = bool.with_mods(Mods::NOT);
            if is_legal(self.target, &new) && self.counter.may(Arm::FoldNegatedOperand) {
                self.rewrite(instr, new);
                self.remove_unread(negation);
                return;
            }
        }
    }

    /// Replaces a source.
    fn set(&mut self, instr: Instr, slot: usize, src: Src) {
        let mut new = self.data(instr).clone();
        new.srcs[slot] = src;
        self.rewrite(instr, new);
    }
}
