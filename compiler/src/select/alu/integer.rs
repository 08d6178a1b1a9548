//! Integers of 16 and 32 bits, and bools.

use super::Scalar;
use crate::ir3::{Condition, Opcode, Src};
use crate::nir::Op;
use smallvec::SmallVec;

use Opcode::*;

impl Scalar<'_, '_> {
    pub(super) fn integer_op(&mut self) -> bool {
        let half = self.ctx.is_half(self.dst_bits());
        let result = match self.op() {
            Op::Iadd => self.int_binary(AddU),
            Op::Isub => self.int_binary(SubU),
            Op::Imin => self.int_binary(MinS),
            Op::Imax => self.int_binary(MaxS),
            Op::Umin => self.int_binary(MinU),
            Op::Umax => self.int_binary(MaxU),
            Op::Iand => self.int_binary(AndB),
            Op::Ior => self.int_binary(OrB),
            Op::Ixor => self.int_binary(XorB),
            Op::Inot => {
                let x = self.src(0);
                if self.dst_bits() == 1 { self.ctx.not_bool(x) } else { self.ctx.un(NotB, x) }
            }
            Op::Ineg => {
                let x = self.src(0);
                self.ctx.negate(x)
            }
            Op::Iabs => {
                let x = self.src(0);
                self.ctx.un(AbsnegS, x.with_mods(crate::ir3::Mods::ABS))
            }
            Op::Isign => {
                let x = self.src(0);
                let low = self.ctx.bin(MinS, x, Src::immediate(1, half));
                let minus_one = self.ctx.immediate(u32::MAX, half);
                self.ctx.bin(MaxS, low, minus_one)
            }
            Op::Iadd3 => {
                let (a, b, c) = (self.src(0), self.src(1), self.src(2));
                if self.ctx.target.has_sad {
                    self.ctx.tri(if half { SadS16 } else { SadS32 }, a, b, c)
                } else {
                    let sum = self.ctx.bin(AddU, a, b);
                    self.ctx.bin(AddU, sum, c)
                }
            }
            Op::IaddSat => self.int_saturated(AddS),
            Op::UaddSat => self.int_saturated(AddU),
            Op::IsubSat => self.int_saturated(SubS),
            Op::UsubSat => self.int_saturated(SubU),
            Op::UaddCarry => {
                let (a, b) = (self.src(0), self.src(1));
                let sum = self.ctx.bin(AddU, a, b);
                let carry = self.ctx.compare_src(CmpsU, Condition::Lt, sum, a);
                self.ctx.resize(carry, half)
            }
            Op::Iadd64Split2Lo | Op::Iadd64Split3Lo | Op::Iadd64Split4Lo => {
                let (a, b) = (self.src(0), self.src(1));
                self.ctx.bin(AddU, a, b)
            }
            // The high words first: they do not wait for the carry.
            Op::Iadd64Split2Hi | Op::Iadd64Split3Hi | Op::Iadd64Split4Hi => {
                let words: SmallVec<[Src; 2]> =
                    (2..self.op().info().inputs.len()).map(|index| self.src(index)).collect();
                let high = words.into_iter().reduce(|high, word| self.ctx.bin(AddU, high, word));
                let (a, b) = (self.src(0), self.src(1));
                let sum = self.ctx.bin(AddU, a, b);
                let carry = self.ctx.compare_src(CmpsU, Condition::Lt, sum, b);
                let carry = self.ctx.widened(carry);
                match high {
                    Some(high) => self.ctx.bin(AddU, high, carry),
                    None => carry,
                }
            }
            Op::UsubBorrow => {
                let (a, b) = (self.src(0), self.src(1));
                let borrow = self.ctx.compare_src(CmpsU, Condition::Lt, a, b);
                self.ctx.resize(borrow, half)
            }
            // Half of a sum without overflow: the common bits of the operands, plus half of the differing ones.
            Op::Ihadd => self.half_sum(AndB, AddU, AshrB),
            Op::Uhadd => self.half_sum(AndB, AddU, ShrB),
            Op::Irhadd => self.half_sum(OrB, SubU, AshrB),
            Op::Urhadd => self.half_sum(OrB, SubU, ShrB),
            Op::UabsUsub => self.distance(MaxU, MinU),
            Op::UabsIsub => self.distance(MaxS, MinS),
            Op::UdivAligned4 => {
                let x = self.src(0);
                self.ctx.bin(ShrB, x, Src::immediate(2, half))
            }
            _ => return false,
        };
        self.result(result)
    }

    fn int_binary(&mut self, opcode: Opcode) -> Src {
        let [a, b] = self.int_srcs();
        self.ctx.bin(opcode, a, b)
    }

    fn int_saturated(&mut self, opcode: Opcode) -> Src {
        let (a, b) = (self.src(0), self.src(1));
        self.ctx.saturated(opcode, a, b)
    }

    pub(super) fn half_sum(&mut self, shared: Opcode, join: Opcode, shift: Opcode) -> Src {
        let (a, b) = (self.src(0), self.src(1));
        let shared = self.ctx.bin(shared, a, b);
        let differ = self.ctx.bin(XorB, a, b);
        let differ = self.ctx.bin(shift, differ, Src::immediate(1, a.class.half));
        self.ctx.bin(join, shared, differ)
    }

    fn distance(&mut self, max: Opcode, min: Opcode) -> Src {
        let (a, b) = (self.src(0), self.src(1));
        let high = self.ctx.bin(max, a, b);
        let low = self.ctx.bin(min, a, b);
        self.ctx.bin(SubU, high, low)
    }
}
