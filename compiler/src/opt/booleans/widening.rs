//! Bools that are widened, computed in full registers.

use super::{Pass, is_comparison};
use crate::ir3::{Instr, Opcode, RegClass, RegFile, Type, Value};

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
        let class = self.program.values[value].class;
        let in_its_file = widens && class.file == data.srcs[0].class.file;
        (in_its_file && matches!(class, RegClass::FULL | RegClass::SHARED)).then_some(value)
    }

    /// A comparison or a bitwise operation of half registers, whose result is only ever widened, gives a full register:
    /// the bits above are 0 either way.
    pub(super) fn widening(&mut self, instr: Instr) {
        let Some(value) = self.result(instr) else { return };
        let data = self.data(instr);
        let extends = match data.opcode {
            Opcode::AndB | Opcode::OrB | Opcode::XorB => {
                data.flags.is_empty() && data.srcs.iter().all(|src| src.class.half)
            }
            opcode => is_comparison(opcode),
        };
        let class = self.program.values[value].class;
        if !extends || !matches!(class, RegClass::HALF | RegClass::SHARED_HALF) {
            return;
        }
        let uses = self.uses[value].clone();
        // A shared register is another one in another block.
        let here = |user: Instr| class.file != RegFile::Shared || self.blocks[user] == self.blocks[instr];
        if uses.is_empty() || !uses.iter().all(|&(user, _)| here(user) && self.widened(user).is_some()) {
            return;
        }
        let class = RegClass { half: false, ..class };
        self.program.values[value].class = class;
        self.program.instrs[instr].dsts[0].class = class;
        for (user, _) in uses {
            if let Some(wide) = self.widened(user) {
                self.remove(user);
                self.replace(wide, value);
            }
        }
    }
}
