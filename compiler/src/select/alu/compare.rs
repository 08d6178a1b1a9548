//! Comparisons. The forms with a result of 0 or -1 of some width negate the bool of the others.

use super::Scalar;
use crate::ir3::{Condition, Mods, Opcode, Src};
use crate::nir::Op;

use Condition::{Eq, Ge, Lt, Ne};

impl Scalar<'_, '_> {
    pub(super) fn compare_op(&mut self) -> bool {
        use Op::*;
        let holds = match self.op() {
            Flt | Flt8 | Flt16 | Flt32 => self.float(Lt),
            Fge | Fge8 | Fge16 | Fge32 => self.float(Ge),
            Feq | Feq8 | Feq16 | Feq32 => self.float(Eq),
            Fneu | Fneu8 | Fneu16 | Fneu32 => self.float(Ne),
            Fltu | Fltu8 | Fltu16 | Fltu32 => self.not_float(Ge),
            Fgeu | Fgeu8 | Fgeu16 | Fgeu32 => self.not_float(Lt),
            Fneo | Fneo8 | Fneo16 | Fneo32 => self.less_or_greater(),
            Fequ | Fequ8 | Fequ16 | Fequ32 => {
                let parts = self.less_or_greater();
                self.ctx.not_bool(parts)
            }
            Ford | Ford8 | Ford16 | Ford32 => self.both(Eq, Opcode::AndB),
            Funord | Funord8 | Funord16 | Funord32 => self.both(Ne, Opcode::OrB),
            Ilt | Ilt8 | Ilt16 | Ilt32 => self.int(Opcode::CmpsS, Lt),
            Ige | Ige8 | Ige16 | Ige32 => self.int(Opcode::CmpsS, Ge),
            Ieq | Ieq8 | Ieq16 | Ieq32 => self.int(Opcode::CmpsS, Eq),
            Ine | Ine8 | Ine16 | Ine32 => self.int(Opcode::CmpsS, Ne),
            Ult | Ult8 | Ult16 | Ult32 => self.int(Opcode::CmpsU, Lt),
            Uge | Uge8 | Uge16 | Uge32 => self.int(Opcode::CmpsU, Ge),
            Bitnz | Bitnz8 | Bitnz16 | Bitnz32 => self.bit(Ne),
            Bitz | Bitz8 | Bitz16 | Bitz32 => self.bit(Eq),
            Fisfinite | Fisfinite32 => {
                let x = self.src(0);
                let infinity = if x.class.half { 0x7c00 } else { f32::INFINITY.to_bits() };
                let infinity = self.ctx.immediate(infinity, x.class.half);
                self.ctx.compare_src(Opcode::CmpsF, Lt, x.with_mods(Mods::ABS), infinity)
            }
            _ => return false,
        };
        self.bool_result(holds)
    }

    /// Sets the result to a bool, or to 0 or -1 of some width.
    pub(super) fn bool_result(&mut self, holds: Src) -> bool {
        let bits = self.dst_bits();
        if bits == 1 {
            return self.result(holds);
        }
        let half = self.ctx.is_half(bits);
        let wide = self.ctx.resize(holds, half);
        let ones = self.ctx.negate(wide);
        self.masked_result(ones)
    }

    fn float(&mut self, condition: Condition) -> Src {
        let (a, b) = (self.src(0), self.src(1));
        self.ctx.compare_src(Opcode::CmpsF, condition, a, b)
    }

    fn not_float(&mut self, condition: Condition) -> Src {
        let holds = self.float(condition);
        self.ctx.not_bool(holds)
    }

    fn less_or_greater(&mut self) -> Src {
        let less = self.float(Lt);
        let greater = self.float(Condition::Gt);
        self.ctx.bin(Opcode::OrB, less, greater)
    }

    /// Compares each operand with itself, which tests whether it is a NaN.
    fn both(&mut self, condition: Condition, join: Opcode) -> Src {
        let (a, b) = (self.src(0), self.src(1));
        let a = self.ctx.compare_src(Opcode::CmpsF, condition, a, a);
        let b = self.ctx.compare_src(Opcode::CmpsF, condition, b, b);
        self.ctx.bin(join, a, b)
    }

    fn int(&mut self, opcode: Opcode, condition: Condition) -> Src {
        let signed = opcode == Opcode::CmpsS && !matches!(condition, Eq | Ne);
        let [a, b] = if self.bits(0) <= 8 && signed { [self.signed(0), self.signed(1)] } else { self.int_srcs() };
        self.ctx.compare_src(opcode, condition, a, b)
    }

    fn bit(&mut self, condition: Condition) -> Src {
        let x = self.src(0);
        // A 1-bit value has no other bit.
        let shifted = if self.bits(0) == 1 {
            x
        } else {
            let count = self.shift_count(1, self.bits(0));
            self.ctx.bin(Opcode::ShrB, x, count)
        };
        let bit = self.ctx.bin(Opcode::AndB, shifted, Src::immediate(1, x.class.half));
        self.ctx.compare_src(Opcode::CmpsS, condition, bit, Src::immediate(0, x.class.half))
    }
}
