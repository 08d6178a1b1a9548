//! Folds conversions of results into the operations that compute them.
//!
//! Operations of cat2 and cat3 can have a result of another width than their sources: a float is then converted as a
//! number and rounded toward zero, like `cov` without a rounding mode; an integer is truncated or extended. If all uses
//! of a result are the same conversion, the operation computes that width directly. A conversion with another rounding
//! stays.

use super::Pass;
use crate::arms::Arm;
use crate::ir3::{Attrs, Instr, InstrData, Opcode, RegClass, RegFile, Round, Type, Value};

/// Operations whose results are converted alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The types of the conversion.
    pub types: (Type, Type),
    /// The operations, with sources as wide as the unconverted result.
    pub opcodes: &'static [Opcode],
}

/// The operations that convert their result if their destination has the other width.
pub const CONVERSIONS: [Conversion; 5] = {
    use Opcode::*;
    use Type::*;
    // The low bits of a sum are the sum of the low bits.
    const LOW: &[Opcode] = &[CmpsF, CmpsU, CmpsS, AndB, OrB, XorB, ShrB, ShlB, AddU, AddS, SubU, SubS];
    const ZEROS: &[Opcode] = &[CmpsF, CmpsU, CmpsS, AndB, OrB, XorB, ShrB];
    // Operations with a float result other than an operand, sum or product do not convert it.
    const FLOATS: &[Opcode] = &[AddF, MulF, MadF16, MadF32];
    [
        Conversion { types: (U16, U32), opcodes: ZEROS },
        Conversion { types: (U32, U16), opcodes: LOW },
        Conversion { types: (S32, S16), opcodes: LOW },
        Conversion { types: (F16, F32), opcodes: FLOATS },
        Conversion { types: (F32, F16), opcodes: FLOATS },
    ]
};

impl Pass<'_> {
    /// The result of an instruction that widens a bool to 32 bits.
    pub(super) fn widened(&self, instr: Instr) -> Option<Value> {
        let (types, value) = self.conversion_of(instr)?;
        (types == (Type::U16, Type::U32)).then_some(value)
    }

    /// The types and the result of an instruction that only converts between half and full registers of one file.
    fn conversion_of(&self, instr: Instr) -> Option<((Type, Type), Value)> {
        let data = self.data(instr);
        let Attrs::Move { src: from, dst: to, round: Round::Default } = data.attrs else { return None };
        let value = self.result(instr)?;
        let class = self.program.values[value].class;
        let [src] = data.srcs[..] else { return None };
        let converts = data.opcode == Opcode::Mov
            && data.flags.is_empty()
            && src.mods.is_empty()
            && (from.is_half(), to.is_half()) == (src.class.half, class.half)
            && src.class.half != class.half
            && src.class.file == class.file;
        converts.then_some(((from, to), value))
    }

    /// Folds the conversions that read a result.
    pub(super) fn conversion(&mut self, instr: Instr) {
        let Some(value) = self.result(instr) else { return };
        let class = self.program.values[value].class;
        let Some(&(first, _)) = self.uses[value].first() else { return };
        let Some((types, _)) = self.conversion_of(first) else { return };
        if !matches!(class.file, RegFile::General | RegFile::Shared) || !can_convert(self.data(instr), class, types) {
            self.counter.count(Arm::FoldConversionUnfit);
            return;
        }
        let uses = self.uses[value].clone();
        // A shared register may have another value in another block.
        let here = |user: Instr| class.file != RegFile::Shared || self.blocks[user] == self.blocks[instr];
        if !uses.iter().all(|&(user, _)| here(user) && self.conversion_of(user).is_some_and(|(its, _)| its == types)) {
            self.counter.count(Arm::FoldConversionOther);
            return;
        }
        let arm = match types {
            (Type::F32, Type::F16) | (Type::F16, Type::F32) => Arm::FoldConversionFloat,
            (Type::U16, _) => Arm::FoldConversionWiden,
            _ => Arm::FoldConversionNarrow,
        };
        if !self.counter.may(arm) {
            return;
        }
        let class = RegClass { half: !class.half, ..class };
        self.program.values[value].class = class;
        self.program.instrs[instr].dsts[0].class = class;
        for (user, _) in uses {
            if let Some((_, converted)) = self.conversion_of(user) {
                self.remove(user);
                self.replace(converted, value);
            }
        }
    }
}

/// Returns true if an operation whose result has `class` converts it when its destination has the other width.
fn can_convert(data: &InstrData, class: RegClass, types: (Type, Type)) -> bool {
    let plain = data.flags.is_empty() && data.repeat == 0;
    // 0 and 1 are the same in any width.
    let fits = data.opcode.is_comparison() || data.srcs.iter().all(|src| src.class.half == class.half);
    let listed = |it: &Conversion| it.types == types && it.opcodes.contains(&data.opcode);
    plain && fits && CONVERSIONS.iter().any(listed)
}
