//! Kernels: the form in which machine learning and post-processing address their buffers.
//!
//! Invocations beyond a size in the push constants do nothing (*guard*); the others access an element whose index is a
//! sum of products of uniform numbers (*strides*). nir has a product of 32 bits in three parts of 16
//! (`nir_lower_imul`): `umul_low` and two `imadsh_mix16`, or one of these where a factor has 16 bits.

use super::config::CONFIG;
use ir3_compiler::nir::{Access, Def, Index, IntrinsicOp, Op, Stage};
use ir3_compiler::target::Generation;

use super::Generator;
use super::choices::Choices;
use super::control::MAX_DEPTH;
use super::operations::READ_ONLY;

/// The first word of push constants that all stages share, on a6xx.
const SHARED_PUSH_CONSTANTS: i32 = 4 * 504;

impl<C: Choices> Generator<'_, C> {
    /// A guard, and accesses at strides in it.
    pub(super) fn kernel(&mut self) {
        if self.b.depth() + 2 >= MAX_DEPTH || self.pool.only_uniform || self.b.shader().stage != Stage::Compute {
            return;
        }
        let Some(group) = self.b.intrinsic(IntrinsicOp::LoadWorkgroupId, 3, 32, &[], []) else { return };
        let [x, y] = [0, 1].map(|component| self.b.channel(group, component));
        let first = self.binary(Op::Ishl, x, 6);
        let lane = self.lane.unwrap_or(first);
        let x = self.b.alu(Op::Iadd, &[first, lane]);
        let [width, height, stride] = [0, 1, 2].map(|_| self.push_constant());
        let is_inside = self.b.alu(Op::Ult, &[x, width]);
        let condition = if self.c.chance(CONFIG.kernel_of_two_dimensions) {
            let below = self.b.alu(Op::Ult, &[y, height]);
            self.b.alu(Op::Iand, &[is_inside, below])
        } else {
            is_inside
        };
        let mark = self.pool.mark();
        self.divergence += 1;
        self.quads += 1;
        self.b.begin_if(condition);
        let row = self.product(y, stride);
        let plane = match self.c.below(3) {
            0 => self.product(row, height),
            1 => self.product_by_constant(row),
            _ => row,
        };
        let element = self.b.alu(Op::Iadd, &[plane, x]);
        for value in [element, row] {
            self.pool.add(&self.b, value);
        }
        let loaded = self.load_element(element);
        self.result(loaded);
        self.region(20);
        let data = self.value(32);
        self.add_to_memory(data);
        self.pool.release(mark);
        self.b.end_if();
        self.divergence -= 1;
        self.quads -= 1;
    }

    /// A word of the push constants, wherever the target has them.
    fn push_constant(&mut self) -> Def {
        let shared = self.target.generation == Generation::A6xx && !self.features.driver;
        let first = if shared { SHARED_PUSH_CONSTANTS } else { 0 };
        let base = Index::Base(first + self.c.below(16) as i32);
        let zero = self.b.constant(32, 0);
        self.b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], [base]).unwrap_or(zero)
    }

    /// The low 32 bits of a product.
    fn product(&mut self, x: Def, y: Def) -> Def {
        let low = self.b.alu(Op::UmulLow, &[x, y]);
        let low = self.b.alu(Op::ImadshMix16, &[x, y, low]);
        self.b.alu(Op::ImadshMix16, &[y, x, low])
    }

    /// The product with a constant of 16 bits, whose high half adds nothing.
    fn product_by_constant(&mut self, x: Def) -> Def {
        let number = self.c.pick(&[3, 12, 36, 110, 0xffff]);
        let factor = self.b.constant(32, number);
        let low = self.b.alu(Op::UmulLow, &[x, factor]);
        self.b.alu(Op::ImadshMix16, &[factor, x, low])
    }

    /// A load from a buffer that nothing writes: a read that may be cached and moved.
    fn load_element(&mut self, element: Def) -> Option<Def> {
        let bits = self.c.pick(if self.features.storage_16bit && !self.features.driver { &[8, 16, 32] } else { &[32] });
        let mut buffer = self.b.constant(32, READ_ONLY as u64);
        if self.features.ubos && !self.features.driver && self.c.chance(CONFIG.kernel_bindless) {
            let set = Index::DescSet(self.c.below(5) as u32);
            buffer = self.b.intrinsic(IntrinsicOp::BindlessResourceIr3, 1, 32, &[buffer], [set])?;
        }
        let bytes = if bits == 8 { element } else { self.binary(Op::Ishl, element, u64::from(bits / 16)) };
        let access = Index::Access(Access::READONLY | Access::REORDERABLE);
        let align = Index::AlignMul(u32::from(bits) / 8);
        let loaded = self.b.intrinsic(IntrinsicOp::LoadSsboIr3, 1, bits, &[buffer, bytes, element], [access, align])?;
        Some(if bits == 32 { loaded } else { self.b.alu(Op::U2u32, &[loaded]) })
    }
}
