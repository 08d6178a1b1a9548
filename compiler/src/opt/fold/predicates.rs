//! Folds tests into the comparisons and bitwise operations that compute their operands, which then write predicates.

use super::{DEPTH, Pass, Position, is_legal, predicate_src};
use crate::arms::Arm;
use crate::ir3::{
    Attrs, Dst, Instr, InstrData, Opcode, OperandFlags, RegClass, RegFile, Src, SrcOperand, Value, WriteMask,
};
use smallvec::SmallVec;

impl Pass<'_> {
    /// Makes an instruction write a predicate if its result is tested: all tests of it are removed, and their users
    /// read this predicate. If the result is also read as a number, a copy of the instruction writes the predicate.
    ///
    /// The predicate is computed where the result was, which may be far before its readers: the allocator of predicates
    /// rematerialises it where it has no register.
    pub(super) fn predicate(&mut self, instr: Instr) {
        let Some(value) = self.result(instr) else { return };
        if self.program.values[value].class.file == RegFile::Predicate {
            return;
        }
        let data = self.data(instr);
        let compares = data.opcode.is_comparison();
        let bitwise = matches!(data.opcode, Opcode::AndB | Opcode::OrB | Opcode::XorB);
        if !(compares || bitwise && self.target.bitops_can_write_predicates) {
            return;
        }
        let tests = self.tests_of(value);
        // A predicate is the lowest bit, so the result of a bitwise operation must be a bool.
        if tests.is_empty() || bitwise && !self.gives_bool(instr, DEPTH) {
            self.counter.count(Arm::FoldPredicateUntested);
            return;
        }
        let is_number = tests.len() != self.uses[value].len();
        let mut new = self.data(instr).clone();
        new.dsts[0] = Dst::new(new.dsts[0].place, RegClass::PREDICATE, WriteMask::SCALAR);
        for src in &mut new.srcs {
            src.flags = OperandFlags::empty();
        }
        // It must be possible to compute it elsewhere: the address register and the constant file may have other
        // contents there.
        let changes = |src: &Src| {
            src.class.file == RegFile::Address || self.early[instr] && matches!(src.operand, SrcOperand::Const(_))
        };
        if new.srcs.iter().any(changes) || !new.flags.is_empty() || !is_legal(self.target, &new) {
            self.counter.count(Arm::FoldPredicateFixed);
            return;
        }
        let arm = match bitwise {
            _ if is_number => Arm::FoldPredicateCopy,
            true => Arm::FoldPredicateBitop,
            false => Arm::FoldPredicateComparison,
        };
        if !self.counter.may(arm) {
            return;
        }
        let predicate = if is_number {
            self.add(new, RegClass::PREDICATE, Position::Before(instr))
        } else {
            self.program.values[value].class = RegClass::PREDICATE;
            self.program.instrs[instr] = new;
            value
        };
        for (test, tested) in tests {
            self.remove(test);
            self.replace(tested, predicate);
        }
    }

    /// Replaces the tests of a value by one test at its definition.
    pub(super) fn early_test(&mut self, instr: Instr) {
        let Some(value) = self.result(instr) else { return };
        let tests = self.tests_of(value);
        let Some(&(first, _)) = tests.first() else { return };
        let is_early = tests.len() == 1 && self.blocks[first] == self.blocks[instr];
        if is_early || !self.counter.may(Arm::FoldEarlyTest) {
            return;
        }
        let mut test = self.data(first).clone();
        test.srcs[0].flags = OperandFlags::empty();
        let predicate = self.add(test, RegClass::PREDICATE, Position::After(instr));
        for (test, tested) in tests {
            self.remove(test);
            self.replace(tested, predicate);
        }
    }

    /// Turns a comparison of a masked bit with 0 that writes a predicate into `getbit.b`.
    pub(super) fn single_bit(&mut self, instr: Instr) {
        let Some(value) = self.result(instr) else { return };
        let Some((_, masked)) = self.test(&predicate_src(value)) else { return };
        let Some((_, def)) = self.sole_producer(&masked) else { return };
        let data = self.data(def);
        let [x, mask] = data.srcs[..] else { return };
        let SrcOperand::Immediate(bits) = mask.operand else { return };
        let plain = x.mods.is_empty() && mask.mods.is_empty() && data.flags.is_empty();
        let same_width = data.dsts[0].class == x.class && x.class.file == RegFile::General;
        if data.opcode != Opcode::AndB || !plain || !same_width || !bits.is_power_of_two() {
            return;
        }
        let mut new = InstrData { opcode: Opcode::GetbitB, attrs: Attrs::None, ..self.data(instr).clone() };
        new.srcs[0] = Src { flags: OperandFlags::empty(), ..x };
        new.srcs[1] = Src::immediate(bits.trailing_zeros(), x.class.half);
        if x.value().is_some() && is_legal(self.target, &new) && self.counter.may(Arm::FoldSingleBit) {
            self.rewrite(instr, new);
            self.remove_unread(def);
        }
    }

    /// The tests of a value against 0 that write predicates, with these.
    pub(super) fn tests_of(&self, value: Value) -> SmallVec<[(Instr, Value); 2]> {
        let test = |&(user, slot): &(Instr, u8)| {
            let predicate = self.result(user).filter(|_| slot == 0)?;
            let (_, tested) = self.test(&predicate_src(predicate))?;
            tested.mods.is_empty().then_some((user, predicate))
        };
        self.uses[value].iter().filter_map(test).collect()
    }
}
