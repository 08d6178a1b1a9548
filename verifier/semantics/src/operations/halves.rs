//! Halves where a unit has words: the operands of textures, and the texels of images.
//!
//! The unit computes with 32 bits, for any registers: a half is read as the word of the same value, so an access with
//! halves is that with converted words, as `nir_opt_16bit_tex_image` takes them to be. A result is rounded as the
//! machine rounds.

use super::{Kernel, One, nir_alu};
use ir3_compiler::ir3::access::{Slot, TextureKind};
use ir3_compiler::nir::{FloatControls, Op};

/// Returns true if an operand of a texture operation is a float, and otherwise it is a signed integer.
pub fn is_float(kind: TextureKind, slot: Slot) -> bool {
    use TextureKind::{BufferSize, Fetch, FetchMs, Info, SamplePosition, Size};
    match slot {
        Slot::OffsetX | Slot::OffsetY | Slot::OffsetZ | Slot::Sample => false,
        _ => !matches!(kind, Fetch | FetchMs | Size | BufferSize | Info | SamplePosition),
    }
}

/// The word of the same value as a half.
pub fn widening(float: bool) -> Option<&'static One> {
    conversion(if float { Op::F2f32 } else { Op::I2i32 }, 16, 32)
}

/// The half that is nearest to a float of 32 bits.
pub fn rounding() -> Option<&'static One> {
    conversion(Op::F2f16, 32, 16)
}

fn conversion(op: Op, from: u8, to: u8) -> Option<&'static One> {
    match nir_alu::kernel(op, to, &[from], FloatControls::OPEN) {
        Some(Kernel::One(kernel)) => Some(kernel),
        _ => None,
    }
}
