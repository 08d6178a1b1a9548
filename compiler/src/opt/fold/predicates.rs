//! Folds tests into comparisons and bitwise operations, which then write predicates.

use super::{DEPTH, Pass, is_legal, predicate_src};
use crate::ir3::{Dst, Instr, InstrData, Opcode, OperandFlags, RegClass, RegFile, Src, SrcOperand, WriteMask};
use smallvec::SmallVec;

impl Pass<'_> {
    /// If all uses of a value are comparisons with 0 for predicates, replaces these comparisons by the computation of
    /// the value.
    pub(super) fn predicate(&mut self, instr: Instr) {
        let Some(value) = self.result(instr) else { return };
        let uses = self.uses[value].clone();
        if uses.is_empty() || self.program.values[value].class.file == RegFile::Predicate {
            return;
        }
        let data = self.data(instr);
        let compares = self.rules.comparisons && data.opcode.is_comparison();
        let bitwise = self.rules.bitops && matches!(data.opcode, Opcode::AndB | Opcode::OrB | Opcode::XorB);
        // A predicate is the lowest bit, so the result of a bitwise operation must be a bool.
        let is_bool = || self.gives_bool(instr, DEPTH);
        let writes = compares || bitwise && self.target.bitops_can_write_predicates && is_bool();
        if !writes {
            return;
        }
        let mut new = data.clone();
        new.dsts[0] = Dst::new(new.dsts[0].place, RegClass::PREDICATE, WriteMask::SCALAR);
        // The address register and the constant file may have other contents there.
        let changes = |src: &Src| {
            src.class.file == RegFile::Address || self.early[instr] && matches!(src.operand, SrcOperand::Const(_))
        };
        if data.srcs.iter().any(changes) || !data.flags.is_empty() || !is_legal(self.target, &new) {
            return;
        }
        let all = uses.iter().all(|&(user, slot)| {
            let Some(predicate) = self.result(user) else { return false };
            let is_test = self.test(&predicate_src(predicate)).is_some_and(|(_, tested)| tested.mods.is_empty());
            // A predicate may be rematerialised at each use.
            let mut places: SmallVec<[Instr; 4]> = self.uses[predicate].iter().map(|&(reader, _)| reader).collect();
            places.push(user);
            slot == 0 && is_test && new.srcs.iter().all(|src| self.is_current(src, instr, &places))
        });
        if !all {
            return;
        }
        for src in &mut new.srcs {
            src.flags = OperandFlags::empty();
        }
        for (user, _) in uses {
            let dsts = self.data(user).dsts.clone();
            self.rewrite(user, InstrData { dsts, ..new.clone() });
        }
        self.remove(instr);
    }
}
