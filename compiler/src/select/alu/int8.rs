//! 8-bit integers: in half registers with a zero upper byte. Sources are extended if the sign matters; results are
//! masked if the upper byte may be nonzero.

use super::Scalar;
use crate::ir3::{Condition, Mods, Opcode, Src};
use crate::nir::Op;
use crate::select::SelectError;

use Opcode::*;

impl Scalar<'_, '_> {
    /// Selects the operations that differ from 16 bits. All others are selected as for 16 bits.
    pub(super) fn int8(&mut self) -> Result<bool, SelectError> {
        let result = match self.op() {
            Op::Iadd => self.binary8(AddU),
            Op::Isub => self.binary8(SubU),
            Op::Imul | Op::Amul => self.binary8(MulU24),
            Op::Ineg => {
                let x = self.src(0);
                self.ctx.negate(x)
            }
            Op::Inot => {
                let x = self.src(0);
                self.ctx.bin(XorB, x, Src::immediate(0xff, true))
            }
            Op::Iabs => {
                let x = self.signed8(0);
                self.ctx.un(AbsnegS, x.with_mods(Mods::ABS))
            }
            Op::Isign => {
                let x = self.signed8(0);
                self.clamp(x, 1, -1)
            }
            Op::Imin => self.signed_binary8(MinS),
            Op::Imax => self.signed_binary8(MaxS),
            Op::UaddSat => {
                let sum = self.binary8(AddU);
                self.ctx.bin(MinU, sum, Src::immediate(255, true))
            }
            Op::UsubSat => {
                let difference = self.binary8(SubU);
                self.ctx.bin(MaxS, difference, Src::immediate(0, true))
            }
            Op::IaddSat => {
                let sum = self.signed_binary8(AddU);
                self.clamp(sum, 127, -128)
            }
            Op::IsubSat => {
                let difference = self.signed_binary8(SubU);
                self.clamp(difference, 127, -128)
            }
            Op::UaddCarry => {
                let sum = self.binary8(AddU);
                self.ctx.bin(ShrB, sum, Src::immediate(8, true))
            }
            Op::UmulHigh => {
                let product = self.binary8(MulU24);
                self.ctx.bin(ShrB, product, Src::immediate(8, true))
            }
            Op::ImulHigh => {
                let product = self.signed_binary8(MulU24);
                self.ctx.bin(ShrB, product, Src::immediate(8, true))
            }
            Op::Iadd3 => {
                let (a, b, c) = (self.src(0), self.src(1), self.src(2));
                let sum = self.ctx.bin(AddU, a, b);
                self.ctx.bin(AddU, sum, c)
            }
            Op::Imad => {
                let product = self.binary8(MulU24);
                let c = self.src(2);
                self.ctx.bin(AddU, product, c)
            }
            // Sums of extended operands do not overflow.
            Op::Ihadd | Op::Irhadd => {
                let mut sum = self.signed_binary8(AddU);
                if self.op() == Op::Irhadd {
                    sum = self.ctx.bin(AddU, sum, Src::immediate(1, true));
                }
                self.ctx.bin(AshrB, sum, Src::immediate(1, true))
            }
            Op::UabsIsub => {
                let (a, b) = (self.signed8(0), self.signed8(1));
                let difference = self.ctx.bin(SubU, a, b);
                self.ctx.un(AbsnegS, difference.with_mods(Mods::ABS))
            }
            Op::UsubBorrow => {
                let (a, b) = (self.src(0), self.src(1));
                let borrow = self.ctx.compare_src(CmpsU, Condition::Lt, a, b);
                self.ctx.narrowed(borrow)
            }
            _ => return Ok(false),
        };
        Ok(self.masked_result(result))
    }

    fn binary8(&mut self, opcode: Opcode) -> Src {
        let [a, b] = self.int_srcs();
        self.ctx.bin(opcode, a, b)
    }

    fn signed8(&mut self, index: usize) -> Src {
        let x = self.src(index);
        self.ctx.sign_extend_8(x)
    }

    fn signed_binary8(&mut self, opcode: Opcode) -> Src {
        let (a, b) = (self.signed8(0), self.signed8(1));
        self.ctx.bin(opcode, a, b)
    }

    fn clamp(&mut self, x: Src, high: u32, low: i32) -> Src {
        let x = self.ctx.bin(MinS, x, Src::immediate(high, true));
        let low = self.ctx.immediate(low as u32, true);
        self.ctx.bin(MaxS, x, low)
    }
}
