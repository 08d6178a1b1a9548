//! Floats of 16 and 32 bits.

use super::Scalar;
use crate::ir3::{Condition, Mods, Opcode, Src};
use crate::nir::Op;
use crate::select::SelectError;

fn one(half: bool) -> u32 {
    if half { 0x3c00 } else { 1.0_f32.to_bits() }
}

impl Scalar<'_, '_> {
    pub(super) fn float_op(&mut self) -> Result<bool, SelectError> {
        use Opcode::*;
        let half = self.ctx.is_half(self.dst_bits());
        let result = match self.op() {
            Op::Fneg => self.modified(Mods::NEG),
            Op::Fabs => self.modified(Mods::ABS),
            Op::Fsat => {
                let x = self.src(0);
                self.ctx.saturated(MaxF, x, x)
            }
            Op::Fsign => self.unary(SignF),
            Op::Fceil => self.unary(CeilF),
            Op::Ffloor => self.unary(FloorF),
            Op::Ftrunc => self.unary(TruncF),
            Op::FroundEven => self.unary(RndneF),
            Op::Ffract => {
                let x = self.src(0);
                let floor = self.ctx.un(FloorF, x);
                self.ctx.bin(AddF, x, floor.with_mods(Mods::NEG))
            }
            Op::Frcp => self.unary(Rcp),
            Op::Frsq => self.unary(if half { Hrsq } else { Rsq }),
            Op::Fsqrt => self.unary(Sqrt),
            Op::Fexp2 => self.unary(if half { Hexp2 } else { Exp2 }),
            Op::Flog2 => self.unary(if half { Hlog2 } else { Log2 }),
            Op::Fsin => self.unary(Sin),
            Op::Fcos => self.unary(Cos),
            Op::Fadd => self.binary(AddF),
            Op::Fsub => {
                let (a, b) = (self.src(0), self.src(1));
                self.ctx.bin(AddF, a, b.with_mods(Mods::NEG))
            }
            Op::Fmul => self.binary(MulF),
            Op::Fmin => self.binary(MinF),
            Op::Fmax => self.binary(MaxF),
            Op::Ffma | Op::FfmaWeak | Op::Fmad => {
                let (a, b, c) = (self.src(0), self.src(1), self.src(2));
                self.ctx.tri(if half { MadF16 } else { MadF32 }, a, b, c)
            }
            Op::Slt => self.compared(Condition::Lt, half),
            Op::Sge => self.compared(Condition::Ge, half),
            Op::Seq => self.compared(Condition::Eq, half),
            Op::Sne => self.compared(Condition::Ne, half),
            Op::FclampPos => {
                let (x, zero) = (self.src(0), self.ctx.immediate(0, half));
                self.ctx.bin(MaxF, x, zero)
            }
            Op::FsatSigned => {
                let (x, one) = (self.src(0), self.ctx.immediate(one(half), half));
                let low = self.ctx.bin(MaxF, x, one.with_mods(Mods::NEG));
                self.ctx.bin(MinF, low, one)
            }
            Op::Fdiv
            | Op::Fmod
            | Op::Frem
            | Op::Fpow
            | Op::Flrp
            | Op::Ldexp
            | Op::Fmulz
            | Op::Ffmaz
            | Op::FrexpSig
            | Op::FrexpExp => {
                return Err(self.ctx.unsupported("ir3 does not have it; it is lowered before"));
            }
            _ => return Ok(false),
        };
        Ok(self.result(result))
    }

    fn unary(&mut self, opcode: Opcode) -> Src {
        let x = self.src(0);
        self.ctx.un(opcode, x)
    }

    fn binary(&mut self, opcode: Opcode) -> Src {
        let (a, b) = (self.src(0), self.src(1));
        self.ctx.bin(opcode, a, b)
    }

    fn modified(&mut self, mods: Mods) -> Src {
        let x = self.src(0);
        self.ctx.un(Opcode::AbsnegF, x.with_mods(mods))
    }

    /// 1.0 if the comparison holds, else 0.0.
    fn compared(&mut self, condition: Condition, half: bool) -> Src {
        let (a, b) = (self.src(0), self.src(1));
        let holds = self.ctx.compare_src(Opcode::CmpsF, condition, a, b);
        let (one, zero) = (self.ctx.immediate(one(half), half), self.ctx.immediate(0, half));
        self.ctx.select(holds, one, zero)
    }
}
