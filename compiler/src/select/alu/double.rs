//! Comparisons of 64-bit floats, on their bits. The machine has no arithmetic on such floats; only comparisons are
//! needed, for Mesa's subgroup votes on their equality.
//!
//! As integers without their sign, floats are ordered; with it, negative ones are in reverse order, so their bits are
//! inverted. Two cases differ from the order of the bits: a NaN is unordered, and both zeros are equal.

use super::Scalar;
use crate::ir3::{Condition, Opcode, Src};
use crate::nir::Op;
use crate::select::context::Context;

use Opcode::*;

impl Scalar<'_, '_> {
    pub(super) fn double_op(&mut self) -> bool {
        use Op::*;
        let op = self.op();
        if !matches!(op, Flt | Fge | Feq | Fneu) {
            return false;
        }
        let (a, b) = (self.pair(0), self.pair(1));
        let zeros = {
            let low = self.ctx.bin(OrB, a[0], b[0]);
            let (a, b) = (self.ctx.magnitude(a[1]), self.ctx.magnitude(b[1]));
            let high = self.ctx.bin(OrB, a, b);
            let any = self.ctx.bin(OrB, low, high);
            self.ctx.compare_src(CmpsS, Condition::Eq, any, Src::immediate(0, false))
        };
        let numbers = {
            let (a, b) = (self.ctx.is_number(a), self.ctx.is_number(b));
            self.ctx.bin(AndB, a, b)
        };
        let by_bits = match op {
            Flt | Fge => {
                let (a, b) = (self.ctx.sortable(a), self.ctx.sortable(b));
                let less = self.ctx.less64(a, b, false);
                if op == Flt {
                    let apart = self.ctx.not_bool(zeros);
                    self.ctx.bin(AndB, less, apart)
                } else {
                    let not_less = self.ctx.not_bool(less);
                    self.ctx.bin(OrB, not_less, zeros)
                }
            }
            _ => {
                let equal = self.ctx.equal64(a, b, Condition::Eq);
                self.ctx.bin(OrB, equal, zeros)
            }
        };
        let holds = self.ctx.bin(AndB, by_bits, numbers);
        let holds = if op == Fneu { self.ctx.not_bool(holds) } else { holds };
        self.result(holds)
    }
}

impl Context<'_> {
    /// The high word without the sign.
    fn magnitude(&mut self, high: Src) -> Src {
        let mask = self.immediate(0x7fff_ffff, false);
        self.bin(AndB, high, mask)
    }

    /// Tests that the float is not a NaN: its magnitude is not above that of infinity.
    fn is_number(&mut self, [low, high]: [Src; 2]) -> Src {
        let high = self.magnitude(high);
        let some = self.compare_src(CmpsS, Condition::Ne, low, Src::immediate(0, false));
        let some = self.widened(some);
        let high = self.bin(AddU, high, some);
        let infinity = self.immediate(0x7ff0_0000, false);
        self.compare_src(CmpsU, Condition::Le, high, infinity)
    }

    /// An unsigned integer with the order of the floats.
    fn sortable(&mut self, [low, high]: [Src; 2]) -> [Src; 2] {
        let sign = self.bin(AshrB, high, Src::immediate(31, false));
        let top = self.immediate(0x8000_0000, false);
        let flip = self.bin(OrB, sign, top);
        [self.bin(XorB, low, sign), self.bin(XorB, high, flip)]
    }
}
