//! Integers of 64 bits: two full registers, the low word first.

use super::Scalar;
use crate::ir3::{Condition, Opcode, Src, Type};
use crate::nir::Op;
use crate::select::SelectError;
use crate::select::context::Context;

use Condition::{Eq, Lt, Ne};
use Opcode::*;

/// A 64-bit integer: low and high word.
type WordPair = [Src; 2];

impl Scalar<'_, '_> {
    pub(super) fn int64(&mut self) -> Result<bool, SelectError> {
        use Op::*;
        let result = match self.op() {
            Iadd => self.with_pairs(|ctx, a, b| ctx.add64(a, b)),
            Isub => self.with_pairs(|ctx, a, b| ctx.sub64(a, b)),
            Iadd3 => {
                let (a, b, c) = (self.pair(0), self.pair(1), self.pair(2));
                let sum = self.ctx.add64(a, b);
                self.ctx.add64(sum, c)
            }
            Ineg => {
                let x = self.pair(0);
                self.ctx.neg64(x)
            }
            Iabs => {
                let x = self.pair(0);
                let negated = self.ctx.neg64(x);
                let negative = self.ctx.compare_src(CmpsS, Lt, x[1], Src::immediate(0, false));
                self.ctx.select64(negative, negated, x)
            }
            Isign => {
                // The sign bits, combined with 1 if any bit is set.
                let x = self.pair(0);
                let sign = self.ctx.bin(AshrB, x[1], Src::immediate(31, false));
                let any = self.ctx.bin(OrB, x[0], x[1]);
                let any = self.ctx.compare_src(CmpsS, Ne, any, Src::immediate(0, false));
                let any = self.ctx.widened(any);
                let low = self.ctx.bin(OrB, sign, any);
                [low, sign]
            }
            Imul | Amul => self.with_pairs(|ctx, a, b| ctx.mul64(a, b)),
            Imul2x32_64 | Umul2x32_64 => {
                let (a, b) = (self.src(0), self.src(1));
                let low = self.ctx.multiply(a, b);
                let high = if self.op() == Imul2x32_64 {
                    self.ctx.multiply_high_signed(a, b)
                } else {
                    self.ctx.multiply_high(a, b)
                };
                [low, high]
            }
            Iand => self.wordwise(AndB),
            Ior => self.wordwise(OrB),
            Ixor => self.wordwise(XorB),
            Inot => {
                let x = self.pair(0);
                x.map(|word| self.ctx.un(NotB, word))
            }
            BitfieldSelect => {
                let (mask, yes, no) = (self.pair(0), self.pair(1), self.pair(2));
                [0, 1].map(|i| {
                    let differ = self.ctx.bin(XorB, yes[i], no[i]);
                    let chosen = self.ctx.bin(AndB, differ, mask[i]);
                    self.ctx.bin(XorB, chosen, no[i])
                })
            }
            Ishl | Ishr | Ushr => {
                let x = self.pair(0);
                self.shift64(x)
            }
            Imin | Imax | Umin | Umax => {
                let (a, b) = (self.pair(0), self.pair(1));
                let signed = matches!(self.op(), Imin | Imax);
                let less = self.ctx.less64(a, b, signed);
                if matches!(self.op(), Imin | Umin) {
                    self.ctx.select64(less, a, b)
                } else {
                    self.ctx.select64(less, b, a)
                }
            }
            UaddSat => {
                let (a, b) = (self.pair(0), self.pair(1));
                let sum = self.ctx.add64(a, b);
                let over = self.ctx.less64(sum, a, false);
                let ones = self.ctx.immediate(u32::MAX, false);
                self.ctx.select64(over, [ones; 2], sum)
            }
            UsubSat => {
                let (a, b) = (self.pair(0), self.pair(1));
                let difference = self.ctx.sub64(a, b);
                let under = self.ctx.less64(a, b, false);
                let zero = self.ctx.immediate(0, false);
                self.ctx.select64(under, [zero; 2], difference)
            }
            UaddCarry => {
                let (a, b) = (self.pair(0), self.pair(1));
                let sum = self.ctx.add64(a, b);
                let carry = self.ctx.less64(sum, a, false);
                self.bool_as_pair(carry)
            }
            UsubBorrow => {
                let (a, b) = (self.pair(0), self.pair(1));
                let borrow = self.ctx.less64(a, b, false);
                self.bool_as_pair(borrow)
            }
            Bcsel | B8csel | B16csel | B32csel => {
                let condition = self.src(0);
                let (yes, no) = (self.pair(1), self.pair(2));
                self.ctx.select64(condition, yes, no)
            }
            IcselEqz => {
                let (condition, yes, no) = (self.pair(0), self.pair(1), self.pair(2));
                let any = self.ctx.bin(OrB, condition[0], condition[1]);
                self.ctx.select64(any, no, yes)
            }
            I2i64 => {
                if self.bits(0) == 64 {
                    self.pair(0)
                } else {
                    let low = self.full_signed(0);
                    let high = self.ctx.bin(AshrB, low, Src::immediate(31, false));
                    [low, high]
                }
            }
            B2i64 => {
                let low = self.bool_src(0);
                self.bool_as_pair(low)
            }
            U2u64 => {
                if self.bits(0) == 64 {
                    self.pair(0)
                } else {
                    let low = self.src(0);
                    let low = self.ctx.widened(low);
                    [low, self.ctx.immediate(0, false)]
                }
            }
            _ => return self.int64_to_less(),
        };
        Ok(self.wide_result(result))
    }

    /// Selects operations on 64 bits with a smaller result.
    fn int64_to_less(&mut self) -> Result<bool, SelectError> {
        use Op::*;
        let result = match self.op() {
            I2i32 | U2u32 => self.pair(0)[0],
            I2i16 | U2u16 | I2i8 | U2u8 => {
                let low = self.pair(0)[0];
                let low = self.ctx.narrowed(low);
                return Ok(self.masked_result(low));
            }
            I2i1 | U2u1 => {
                let low = self.pair(0)[0];
                let half = self.ctx.target.bools_are_half();
                let low = self.ctx.resize(low, half);
                self.ctx.bin(AndB, low, Src::immediate(1, half))
            }
            BitCount => {
                let x = self.pair(0);
                let [low, high] = x.map(|word| self.ctx.count_bits(word));
                self.ctx.bin(AddU, low, high)
            }
            UfindMsb => {
                let [low, high] = self.pair(0);
                let in_low = self.ctx.highest_bit(low);
                let in_high = self.ctx.highest_bit(high);
                let in_high = self.ctx.bin(AddU, in_high, Src::immediate(32, false));
                self.ctx.select(high, in_high, in_low)
            }
            FindLsb => {
                let [low, high] = self.pair(0);
                let in_low = self.ctx.lowest_bit(low);
                let in_high = self.ctx.lowest_bit(high);
                let above = self.ctx.bin(AddU, in_high, Src::immediate(32, false));
                let in_high = self.ctx.select(high, above, in_high);
                self.ctx.select(low, in_low, in_high)
            }
            Ilt | Ilt8 | Ilt16 | Ilt32 => return Ok(self.compared64(|ctx, a, b| ctx.less64(a, b, true))),
            Ult | Ult8 | Ult16 | Ult32 => return Ok(self.compared64(|ctx, a, b| ctx.less64(a, b, false))),
            Ige | Ige8 | Ige16 | Ige32 => {
                return Ok(self.compared64(|ctx, a, b| {
                    let less = ctx.less64(a, b, true);
                    ctx.not_bool(less)
                }));
            }
            Uge | Uge8 | Uge16 | Uge32 => {
                return Ok(self.compared64(|ctx, a, b| {
                    let less = ctx.less64(a, b, false);
                    ctx.not_bool(less)
                }));
            }
            Ieq | Ieq8 | Ieq16 | Ieq32 => return Ok(self.compared64(|ctx, a, b| ctx.equal64(a, b, Eq))),
            Ine | Ine8 | Ine16 | Ine32 => return Ok(self.compared64(|ctx, a, b| ctx.equal64(a, b, Ne))),
            Udiv | Idiv | Umod | Imod | Irem => {
                return Err(self.ctx.unsupported("division of 64 bits"));
            }
            _ => return Ok(false),
        };
        Ok(self.result(result))
    }

    fn compared64(&mut self, compare: impl FnOnce(&mut Context<'_>, WordPair, WordPair) -> Src) -> bool {
        let (a, b) = (self.pair(0), self.pair(1));
        let holds = compare(self.ctx, a, b);
        self.bool_result(holds)
    }

    fn with_pairs(&mut self, operation: impl FnOnce(&mut Context<'_>, WordPair, WordPair) -> WordPair) -> WordPair {
        let (a, b) = (self.pair(0), self.pair(1));
        operation(self.ctx, a, b)
    }

    fn wordwise(&mut self, opcode: Opcode) -> WordPair {
        let (a, b) = (self.pair(0), self.pair(1));
        [0, 1].map(|i| self.ctx.bin(opcode, a[i], b[i]))
    }

    fn bool_as_pair(&mut self, holds: Src) -> WordPair {
        let low = self.ctx.widened(holds);
        [low, self.ctx.immediate(0, false)]
    }

    /// A source of at most 32 bits in a full register, sign-extended.
    fn full_signed(&mut self, index: usize) -> Src {
        let x = self.src(index);
        match self.bits(index) {
            32 => x,
            8 => {
                let x = self.ctx.sign_extend_8(x);
                self.ctx.convert_src(Type::S16, Type::S32, x)
            }
            16 => self.ctx.convert_src(Type::S16, Type::S32, x),
            _ => {
                // One bit: 1 means -1.
                let x = self.ctx.widened(x);
                self.ctx.negate(x)
            }
        }
    }

    /// Shifts a pair. The machine takes counts modulo 32, so each word is shifted as if the count were below 32. The
    /// bits that cross into the other word are shifted by one and then by 31 minus the count, so that a count of 0
    /// moves none. For a count of 32 or more, the result takes whole words.
    fn shift64(&mut self, [low, high]: WordPair) -> WordPair {
        let op = self.op();
        let count = self.src(1);
        let count = self.ctx.widened(count);
        let rest = self.ctx.un(NotB, count);
        let big = self.ctx.bin(AndB, count, Src::immediate(32, false));
        let one = Src::immediate(1, false);
        if op == Op::Ishl {
            let low_shifted = self.ctx.bin(ShlB, low, count);
            let high_shifted = self.ctx.bin(ShlB, high, count);
            let over = self.ctx.bin(ShrB, low, one);
            let over = self.ctx.bin(ShrB, over, rest);
            let high_shifted = self.ctx.bin(OrB, high_shifted, over);
            let zero = self.ctx.immediate(0, false);
            return [self.ctx.select(big, zero, low_shifted), self.ctx.select(big, low_shifted, high_shifted)];
        }
        let opcode = if op == Op::Ishr { AshrB } else { ShrB };
        let low_shifted = self.ctx.bin(ShrB, low, count);
        let high_shifted = self.ctx.bin(opcode, high, count);
        let over = self.ctx.bin(ShlB, high, one);
        let over = self.ctx.bin(ShlB, over, rest);
        let low_shifted = self.ctx.bin(OrB, low_shifted, over);
        let fill = if op == Op::Ishr {
            self.ctx.bin(AshrB, high, Src::immediate(31, false))
        } else {
            self.ctx.immediate(0, false)
        };
        [self.ctx.select(big, high_shifted, low_shifted), self.ctx.select(big, fill, high_shifted)]
    }
}

impl Context<'_> {
    fn add64(&mut self, a: WordPair, b: WordPair) -> WordPair {
        let low = self.bin(AddU, a[0], b[0]);
        let carry = self.compare_src(CmpsU, Lt, low, a[0]);
        let carry = self.widened(carry);
        let high = self.bin(AddU, a[1], b[1]);
        [low, self.bin(AddU, high, carry)]
    }

    fn sub64(&mut self, a: WordPair, b: WordPair) -> WordPair {
        let low = self.bin(SubU, a[0], b[0]);
        let borrow = self.compare_src(CmpsU, Lt, a[0], b[0]);
        let borrow = self.widened(borrow);
        let high = self.bin(SubU, a[1], b[1]);
        [low, self.bin(SubU, high, borrow)]
    }

    fn neg64(&mut self, x: WordPair) -> WordPair {
        let zero = self.immediate(0, false);
        self.sub64([zero; 2], x)
    }

    fn mul64(&mut self, a: WordPair, b: WordPair) -> WordPair {
        let low = self.multiply(a[0], b[0]);
        let high = self.multiply_high(a[0], b[0]);
        let cross = self.multiply(a[0], b[1]);
        let high = self.bin(AddU, high, cross);
        let cross = self.multiply(a[1], b[0]);
        [low, self.bin(AddU, high, cross)]
    }

    fn select64(&mut self, condition: Src, yes: WordPair, no: WordPair) -> WordPair {
        let condition = self.widened(condition);
        [0, 1].map(|i| self.select(condition, yes[i], no[i]))
    }

    /// Returns a bool for less-than: by the high words, or by the low ones if those are equal.
    pub(super) fn less64(&mut self, a: WordPair, b: WordPair, signed: bool) -> Src {
        let high = self.compare_src(if signed { CmpsS } else { CmpsU }, Lt, a[1], b[1]);
        let equal = self.compare_src(CmpsS, Eq, a[1], b[1]);
        let low = self.compare_src(CmpsU, Lt, a[0], b[0]);
        let low = self.bin(AndB, equal, low);
        self.bin(OrB, high, low)
    }

    pub(super) fn equal64(&mut self, a: WordPair, b: WordPair, condition: Condition) -> Src {
        let [low, high] = [0, 1].map(|i| self.bin(XorB, a[i], b[i]));
        let differ = self.bin(OrB, low, high);
        self.compare_src(CmpsS, condition, differ, Src::immediate(0, false))
    }
}
