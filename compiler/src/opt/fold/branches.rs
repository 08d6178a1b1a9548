//! Branches on two predicates.

use super::{DEPTH, Pass, Position, predicate_src};
use crate::ir3::{Attrs, Condition, Instr, InstrData, Mods, Opcode, OperandFlags, RegClass, Src, Value};
use smallvec::SmallVec;

impl Pass<'_> {
    /// Turns a branch on `and.b` or `or.b` of two bools into `braa` or `brao` on tests of them. At least one of the
    /// bools must have no other use and be computed in this block, so that its computation will be the test.
    pub(super) fn two_predicates(&mut self, instr: Instr) {
        if self.data(instr).opcode != Opcode::Br {
            return;
        }
        let predicate = self.data(instr).srcs[0];
        let Some((test, x)) = self.test(&Src { mods: Mods::empty(), ..predicate }) else { return };
        let Some((_, def)) = self.sole_producer(&x) else { return };
        let data = self.data(def);
        let conjunction = data.opcode == Opcode::AndB;
        let here = self.blocks[instr];
        if !(conjunction || data.opcode == Opcode::OrB)
            || !data.flags.is_empty()
            || self.uses[test.0].len() != 1
            || self.blocks[test.1] != here
        {
            return;
        }
        let [a, b] = data.srcs[..] else { return };
        // A bool read with `(not)` is its negation only if the other bool clears all but the lowest bit.
        let negations = [a, b].iter().filter(|src| src.mods.contains(Mods::NOT)).count();
        if negations > usize::from(conjunction) {
            return;
        }
        let plain = |src: Src| Src { mods: src.mods - Mods::NOT, ..src };
        let is_computed = |src: &Src| self.sole_producer(src).is_some_and(|(_, def)| self.blocks[def] == here);
        let fits = [a, b].iter().all(|src| {
            src.value().is_some() && self.is_bool(&plain(*src), DEPTH) && self.is_current(src, def, &[test.1])
        });
        if !fits || !(is_computed(&plain(a)) || is_computed(&plain(b))) {
            return;
        }
        // Inverting the conjunction moves the negation to the operands.
        let inverted = predicate.mods.contains(Mods::NOT);
        let mut srcs = SmallVec::<[Src; 3]>::new();
        self.remove(def);
        for operand in [a, b] {
            let mut mods = operand.mods & Mods::NOT;
            let mut bool = plain(operand);
            if let Some((negated, negation)) = self.negated(&bool, &[test.1]) {
                mods.toggle(Mods::NOT);
                bool = negated;
                self.remove_unread(negation);
            }
            if inverted {
                mods.toggle(Mods::NOT);
            }
            let value = self.new_test(test.1, bool);
            srcs.push(predicate_src(value).with_mods(mods));
        }
        let both = conjunction != inverted;
        let mut branch = self.data(instr).clone();
        branch.opcode = if both { Opcode::Braa } else { Opcode::Brao };
        branch.srcs = srcs;
        self.rewrite(instr, branch);
        self.remove(test.1);
    }

    /// Inserts a predicate that is true if a register is not 0 before another one.
    fn new_test(&mut self, before: Instr, src: Src) -> Value {
        let mut data = InstrData::new(Opcode::CmpsS);
        data.attrs = Attrs::Compare(Condition::Ne);
        data.srcs.extend([Src { flags: OperandFlags::empty(), ..src }, Src::immediate(0, src.class.half)]);
        self.add(data, RegClass::PREDICATE, Position::Before(before))
    }
}
