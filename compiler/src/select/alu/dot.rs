//! Dot products of bytes and of half words. `dp4acc` and `dp2acc` are not used: not all GPUs have them, and they differ
//! between those that do. The products are computed separately; a sum of products of bytes is exact in 32 bits, so only
//! the last addition needs to saturate.

use super::Scalar;
use crate::ir3::{Opcode, Src};
use crate::nir::Op;
use crate::select::context::Context;

use Opcode::*;

impl Scalar<'_, '_> {
    pub(super) fn dot_op(&mut self) -> bool {
        use Op::*;
        // The width of a part, and whether the parts of each source are signed.
        let (size, signs) = match self.op() {
            Sdot4x8Iadd | Sdot4x8IaddSat => (8, [true, true]),
            Udot4x8Uadd | Udot4x8UaddSat => (8, [false, false]),
            Sudot4x8Iadd | Sudot4x8IaddSat => (8, [true, false]),
            Sdot2x16Iadd => (16, [true, true]),
            Udot2x16Uadd => (16, [false, false]),
            _ => return false,
        };
        let (a, b, c) = (self.src(0), self.src(1), self.src(2));
        let mut sum: Option<Src> = None;
        for at in (0..32).step_by(size as usize) {
            let a = self.ctx.part_of_word(a, at, size, signs[0]);
            let b = self.ctx.part_of_word(b, at, size, signs[1]);
            let product = self.ctx.bin(MulS24, a, b);
            sum = Some(match sum {
                Some(sum) => self.ctx.bin(AddU, sum, product),
                None => product,
            });
        }
        let Some(sum) = sum else { return false };
        let result = match self.op() {
            Sdot4x8IaddSat | Sudot4x8IaddSat => self.ctx.saturated(AddS, sum, c),
            Udot4x8UaddSat => self.ctx.saturated(AddU, sum, c),
            _ => self.ctx.bin(AddU, sum, c),
        };
        self.result(result)
    }
}

impl Context<'_> {
    /// Extracts `size` bits of a word from bit `at` on, extended.
    fn part_of_word(&mut self, x: Src, at: u32, size: u32, signed: bool) -> Src {
        let up = 32 - at - size;
        let x = if up == 0 { x } else { self.bin(ShlB, x, Src::immediate(up, false)) };
        self.bin(if signed { AshrB } else { ShrB }, x, Src::immediate(32 - size, false))
    }
}
