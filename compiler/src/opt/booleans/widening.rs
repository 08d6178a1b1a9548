//! Bools that are widened, computed in full registers.

use super::{Pass, is_comparison};
use crate::ir3::{Instr, Opcode, RegClass, Type, Value};

impl Pass<'_> {
    /// The result of an instruction that widens 16 bits to 32.
    pub(super) fn widened(&self, instr: Instr) -> Option<Value> {
        let data = self.data(instr);
        let widens = data.opcode == Opcode::Mov
            && data.flags.is_empty()
            && matches!(data.move_types(), Some((Type::U16, Type::U32)))
            && data.srcs.len() == 1
            && data.srcs[0].mods.is_empty();
        let value = self.result(instr)?;
        (widens && self.program.values[value].class == RegClass::FULL).then_some(value)
    }

    /// A comparison or a bitwise operation of half registers, whose result is only ever widened, gives a full register:
    /// the bits above are 0 either way.
    pub(super) fn widening(&mut self, instr: Instr) {
        let Some(value) = self.result(instr) else { return };
        let data = self.data(instr);
        let extends = match data.opcode {
            Opcode::AndB | Opcode::OrB | Opcode::XorB => {
                data.flags.is_empty() && data.srcs.iter().all(|src| src.class == RegClass::HALF)
            }
            opcode => is_comparison(opcode),
        };
        if !extends || self.program.values[value].class != RegClass::HALF {
            return;
        }
        let uses = self.uses[value].clone();
        if uses.is_empty() || !uses.iter().all(|&(user, _)| self.widened(user).is_some()) {
            return;
        }
        self.program.values[value].class = RegClass::FULL;
        self.program.instrs[instr].dsts[0].class = RegClass::FULL;
        for (user, _) in uses {
            if let Some(wide) = self.widened(user) {
                self.remove(user);
                self.replace(wide, value);
            }
        }
    }
}
