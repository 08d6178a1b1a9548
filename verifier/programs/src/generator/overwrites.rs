//! Two writes to one place, of which the first waits for its value and the second does not: schedulers may not exchange
//! them.

use super::config::CONFIG;
use ir3_compiler::nir::{Access, AtomicOp, Def, Index, IntrinsicOp, Op, Stage};

use super::Generator;
use super::choices::Choices;

impl<C: Choices> Generator<'_, C> {
    /// Two or three writes to a word of a buffer or of shared memory, and sometimes a read between or after them.
    pub(super) fn overwritten(&mut self) {
        let slow = self.late_word();
        let ready = self.some_constant(32);
        let known = self.value(32);
        let mut values = vec![slow, ready];
        if self.c.chance(CONFIG.overwrite_again) {
            values.push(known);
        }
        if self.c.chance(CONFIG.overwrite_swapped) {
            values.swap(0, 1);
        }
        if self.b.shader().stage == Stage::Compute && self.c.chance(CONFIG.overwrite_shared) {
            let address = self.shared_address();
            for value in values {
                let indices = [Index::WriteMask(1), Index::AlignMul(4)];
                self.b.intrinsic(IntrinsicOp::StoreShared, 1, 32, &[value, address], indices);
                if self.c.chance(CONFIG.overwrite_read) {
                    let read = self.b.intrinsic(IntrinsicOp::LoadShared, 1, 32, &[address], [Index::AlignMul(4)]);
                    self.result(read);
                }
            }
            return;
        }
        let (buffer, bytes, element) = self.ssbo_offsets(32);
        for value in values {
            if self.c.chance(CONFIG.overwrite_atomic) {
                let op = self.c.pick(&[AtomicOp::Xchg, AtomicOp::Iadd, AtomicOp::Umin]);
                let indices = [Index::Access(Access::COHERENT), Index::AtomicOp(op)];
                let srcs = [buffer, bytes, value, element];
                let old = self.b.intrinsic(IntrinsicOp::SsboAtomicIr3, 1, 32, &srcs, indices);
                let is_read = self.c.chance(CONFIG.overwrite_result);
                self.result(old.filter(|_| is_read));
            } else {
                let indices = [Index::WriteMask(1), Index::AlignMul(4)];
                self.b.intrinsic(IntrinsicOp::StoreSsboIr3, 1, 32, &[value, buffer, bytes, element], indices);
            }
        }
    }

    /// A word that takes long to be there.
    fn late_word(&mut self) -> Def {
        let value = self.value(32);
        match self.c.below(3) {
            0 => {
                let texel = self.texel_from(value);
                self.b.channel(texel, 0)
            }
            1 => self.b.alu(Op::Fexp2, &[value]),
            _ => {
                let root = self.b.alu(Op::Fsqrt, &[value]);
                self.b.alu(Op::Frcp, &[root])
            }
        }
    }
}
