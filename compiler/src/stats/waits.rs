//! Waits of a final program: `(ss)` and `(sy)`, and the slots that they are expected to cost.
//!
//! The estimate is Mesa's: an instruction whose result is waited for with `(ss)` or `(sy)` takes a usual time, which
//! the instructions after it shorten; the rest of it at the next `(ss)` or `(sy)` of the block is the stall.

use crate::ir3::opcode::Effect;
use crate::ir3::{Category, InstrData, InstrFlags, Opcode, Program, RegFile, ShaderStage};

/// The estimated waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Instructions with `(ss)`.
    pub ss: u32,
    /// Instructions with `(sy)`.
    pub sy: u32,
    /// Stall slots at `(ss)`.
    pub sstall: u32,
    /// Stall slots at `(sy)`.
    pub systall: u32,
}

/// The remaining latencies in a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pending {
    ss: u32,
    sy: u32,
}

impl Waits {
    /// Counts an instruction.
    pub(super) fn count(&mut self, pending: &mut Pending, program: &Program, data: &InstrData) {
        if data.flags.contains(InstrFlags::SS) {
            self.ss += 1;
            self.sstall += std::mem::take(&mut pending.ss);
        }
        if data.flags.contains(InstrFlags::SY) {
            self.sy += 1;
            self.systall += std::mem::take(&mut pending.sy);
        }
        let slots = 1 + u32::from(data.repeat) + u32::from(data.nop);
        pending.ss = ss_latency(data).unwrap_or(pending.ss.saturating_sub(slots));
        pending.sy = sy_latency(program, data).unwrap_or(pending.sy.saturating_sub(slots));
    }
}

/// The time of an instruction whose result is waited for with `(ss)`.
fn ss_latency(data: &InstrData) -> Option<u32> {
    use Opcode::{Getfiberid, Ldl, Ldlv, Ldlw, Shfl};
    let is_special = data.opcode.category() == Category::Sfu || data.opcode == Getfiberid;
    let is_shared = data.dsts.iter().any(|dst| dst.class.file == RegFile::Shared);
    match data.opcode {
        Ldl | Ldlv | Ldlw => Some(10),
        _ if is_special => Some(10),
        Shfl => Some(6),
        _ => is_shared.then_some(6),
    }
}

/// The time of an instruction whose result is waited for with `(sy)`.
fn sy_latency(program: &Program, data: &InstrData) -> Option<u32> {
    use Opcode::{L2g, Ldc, Ldl, Ldlv, Ldlw, Tcinv};
    // Two halves of a wave are issued one after the other.
    let is_double = matches!(program.stage, Some(ShaderStage::Fragment | ShaderStage::Compute));
    let components = data.dsts.first().map_or(0, |dst| dst.mask.span());
    let is_load = data.opcode.info().effect == Effect::Load || matches!(data.opcode, L2g | Ldc);
    match data.opcode {
        Ldl | Ldlv | Ldlw | Tcinv => None,
        Ldc if data.dsts.is_empty() => None,
        Ldc if is_double => Some((21 + 8 * components) / 2),
        Ldc => Some(18 + 4 * components),
        opcode if opcode.category() == Category::Texture => Some(match (components, is_double) {
            (0 | 1, true) => 29,
            (2, true) => 30,
            (3, true) => 38,
            (_, true) => 39,
            (0 | 1, false) => 51,
            (2, false) => 53,
            (3, false) => 62,
            (_, false) => 64,
        }),
        opcode if is_load || opcode.is_atomic() => {
            Some(if is_double { (172 + components) / 2 } else { 109 + components })
        }
        _ => None,
    }
}
