//! Branches on two predicates.

use super::{DEPTH, Pass, Position, predicate_src};
use crate::arms::Arm;
use crate::ir3::{Attrs, Condition, Instr, InstrData, Mods, Opcode, OperandFlags, RegClass, RegFile, Src, Value};
use smallvec::SmallVec;

/// A bool that a branch is to test.
struct Operand {
    /// The bool, or the operand of its negation.
    bool: Src,
    /// True if it is tested for 0.
    is_inverted: bool,
    /// The negation that is not read any more.
    negation: Option<Instr>,
}

impl Pass<'_> {
    /// Turns the branches on `and.b` or `or.b` of two bools into `braa` or `brao` on tests of them, if only branches
    /// read that, and no more tests are added than instructions are removed.
    pub(super) fn two_predicates(&mut self, instr: Instr) {
        if self.data(instr).opcode != Opcode::Br {
            return;
        }
        let predicate = self.data(instr).srcs[0];
        let Some((test, x)) = self.test(&Src { mods: Mods::empty(), ..predicate }) else { return };
        let Some((value, def)) = self.producer(&x) else { return };
        let data = self.data(def);
        let conjunction = data.opcode == Opcode::AndB;
        if !(conjunction || data.opcode == Opcode::OrB) || !data.flags.is_empty() {
            return;
        }
        let [a, b] = data.srcs[..] else { return };
        let tests = self.tests_of(value);
        let is_branch = |&(user, _): &(Instr, u8)| self.data(user).opcode == Opcode::Br;
        let of_branches = tests.len() == self.uses[value].len()
            && tests.iter().all(|&(_, tested)| self.uses[tested].iter().all(is_branch));
        let is_sole =
            self.uses[value].len() == 1 && self.uses[test.0].len() == 1 && self.blocks[test.1] == self.blocks[instr];
        if !of_branches || !is_sole && !self.counter.may(Arm::FoldTwoSeveral) {
            self.counter.count(Arm::FoldTwoOther);
            return;
        }
        // A bool read with `(not)` is its negation only if the other bool clears all but the lowest bit.
        let negations = [a, b].iter().filter(|src| src.mods.contains(Mods::NOT)).count();
        if negations > usize::from(conjunction) {
            self.counter.count(Arm::FoldTwoNegations);
            return;
        }
        let places: SmallVec<[Instr; 2]> = tests.iter().map(|&(test, _)| test).collect();
        let fits = |src: &Src| {
            let plain = Src { mods: src.mods - Mods::NOT, ..*src };
            src.value().is_some() && self.is_bool(&plain, DEPTH) && self.is_current(src, def, &places)
        };
        if ![a, b].iter().all(fits) {
            self.counter.count(Arm::FoldTwoUnfit);
            return;
        }
        let operands = [a, b].map(|src| self.operand(src, def, &places));
        let costs = operands.iter().map(|operand| self.test_cost(operand, def)).sum::<usize>();
        let negations = operands.iter().filter(|operand| operand.negation.is_some()).count();
        let removed = 1 + usize::from(!self.can_write_predicate(def)) + negations;
        if costs > removed {
            self.counter.count(Arm::FoldTwoCosts);
            return;
        }
        if !self.counter.may(Arm::FoldTwo) {
            return;
        }
        self.remove(def);
        for negation in operands.iter().filter_map(|operand| operand.negation) {
            self.remove_unread(negation);
        }
        for (test, tested) in tests {
            let values = [0, 1].map(|k: usize| self.new_test(test, operands[k].bool));
            for (user, _) in self.uses[tested].clone() {
                // Inverting the conjunction moves the negation to the operands.
                let mut branch = self.data(user).clone();
                let inverted = branch.srcs[0].mods.contains(Mods::NOT);
                let src = |k: usize| {
                    let not = if operands[k].is_inverted != inverted { Mods::NOT } else { Mods::empty() };
                    predicate_src(values[k]).with_mods(not)
                };
                branch.opcode = if conjunction != inverted { Opcode::Braa } else { Opcode::Brao };
                branch.srcs = [0, 1].into_iter().map(src).collect();
                self.rewrite(user, branch);
            }
            self.remove(test);
        }
    }

    /// The operand that a branch tests in place of a source of `def`, at `places`.
    fn operand(&self, src: Src, def: Instr, places: &[Instr]) -> Operand {
        let bool = Src { mods: src.mods - Mods::NOT, ..src };
        let is_inverted = src.mods.contains(Mods::NOT);
        match self.negated(&bool, places) {
            Some((negated, negation)) => {
                let is_unread = self.producer(&bool).is_some_and(|(value, _)| self.are_sole(value, &[def]));
                Operand { bool: negated, is_inverted: !is_inverted, negation: is_unread.then_some(negation) }
            }
            None => Operand { bool, is_inverted, negation: None },
        }
    }

    /// The number of instructions that a test of a bool takes: none if the bool itself becomes a predicate.
    fn test_cost(&self, operand: &Operand, def: Instr) -> usize {
        let Some((value, producer)) = self.producer(&operand.bool) else { return 1 };
        let mut readers: SmallVec<[Instr; 2]> = SmallVec::from_slice(&[def]);
        readers.extend(operand.negation);
        let of_readers = self.uses[value].iter().filter(|(user, _)| readers.contains(user)).count();
        let is_free =
            self.can_write_predicate(producer) && self.uses[value].len() == self.tests_of(value).len() + of_readers;
        usize::from(!is_free)
    }

    /// Returns true if an instruction can write a predicate in place of a bool.
    fn can_write_predicate(&self, instr: Instr) -> bool {
        let data = self.data(instr);
        let fits = match data.opcode {
            Opcode::AndB | Opcode::OrB | Opcode::XorB => {
                self.target.bitops_can_write_predicates && !self.counter.skips(Arm::FoldPredicateBitop)
            }
            opcode => opcode.is_comparison() && !self.counter.skips(Arm::FoldPredicateComparison),
        };
        fits && data.dsts[0].class.file == RegFile::General
    }

    /// Returns true if no other instructions read a value.
    fn are_sole(&self, value: Value, readers: &[Instr]) -> bool {
        self.uses[value].iter().all(|(user, _)| readers.contains(user))
    }

    /// Inserts a predicate that is true if a register is not 0 before another one.
    fn new_test(&mut self, before: Instr, src: Src) -> Value {
        let mut data = InstrData::new(Opcode::CmpsS);
        data.attrs = Attrs::Compare(Condition::Ne);
        data.srcs.extend([Src { flags: OperandFlags::empty(), ..src }, Src::immediate(0, src.class.half)]);
        self.add(data, RegClass::PREDICATE, Position::Before(before))
    }
}
