//! Latency: the number of issue slots between an instruction and a user of its result.
//!
//! The result of the ALU is available after a fixed time, and only distance delays a user: that is the *hard* part,
//! [`Latency::slots`]. Special functions, textures and memory have variable latency, and users wait with `(ss)` or
//! `(sy)`: the expected time is an estimate for the scheduler only.

use crate::ir3::{AddressSpace, Category, Dst, InstrData, Opcode, RegFile, SrcOperand};
use crate::target::Target;

/// Slots until an address register, a predicate, or any result may be read outside the ALU.
pub const FAR: u32 = 6;
/// Slots from ALU to ALU.
pub const NEAR: u32 = 3;
/// The third source of a multiply-add is read this many slots later than the others.
pub const THIRD_SOURCE: u32 = 2;

/// Returns true if the instruction runs on the vector or the scalar ALU.
#[must_use]
pub fn is_alu(opcode: Opcode) -> bool {
    matches!(opcode.category(), Category::Move | Category::Alu2 | Category::Alu3)
}

/// Returns true if the instruction runs on the scalar ALU.
#[must_use]
pub fn is_scalar_alu(data: &InstrData, target: &Target) -> bool {
    let uniform = |operand: &SrcOperand, file: RegFile| match operand {
        SrcOperand::Place(_) => matches!(file, RegFile::Shared | RegFile::Address),
        _ => true,
    };
    target.has_scalar_alu
        && is_alu(data.opcode)
        && !matches!(data.opcode, Opcode::Movmsk | Opcode::ScanMacro | Opcode::ScanClustersMacro)
        && is_shared(data.dsts.first())
        && data.srcs.iter().all(|src| uniform(&src.operand, src.class.file))
}

fn is_shared(dst: Option<&Dst>) -> bool {
    dst.is_some_and(|dst| dst.class.file == RegFile::Shared)
}

/// Returns true if the third source is read later than the others.
#[must_use]
pub const fn reads_third_late(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(opcode, MadU16 | MadshU16 | MadS16 | MadshM16 | MadU24 | MadS24 | MadF16 | MadF32)
}

/// The number of issue slots of an instruction. Instructions of other units, and jumps, take none.
#[must_use]
pub fn issue_slots(data: &InstrData, target: &Target) -> u32 {
    use Opcode::*;
    let counted = match data.opcode.category() {
        Category::Move | Category::Alu2 | Category::Alu3 => !is_scalar_alu(data, target),
        Category::Flow => !matches!(data.opcode, Jump | Br | Braa | Brao),
        _ => false,
    };
    match data.opcode {
        // Two moves, which legalized programs write as a repetition.
        Swz => 2,
        _ if counted => 1 + u32::from(data.repeat),
        _ => 0,
    }
}

/// The mechanism with which a user waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Distance only.
    Distance,
    /// `(ss)`.
    Ss,
    /// `(sy)`.
    Sy,
}

/// The mechanism with which users of an instruction's result wait, if they are not on the scalar ALU themselves.
#[must_use]
pub fn sync(data: &InstrData, target: &Target) -> Sync {
    use Opcode::*;
    let shared = is_shared(data.dsts.first());
    match data.opcode.category() {
        Category::Sfu => Sync::Ss,
        Category::Texture => Sync::Sy,
        Category::Move | Category::Alu2 | Category::Alu3 if shared && !is_scalar_alu(data, target) => Sync::Ss,
        Category::Memory => match data.opcode {
            Getfiberid | Shfl | Ldl | Ldlv | Ldlw | Resinfo => Sync::Ss,
            opcode if opcode.is_atomic() && data.memory().and_then(|m| m.space) == Some(AddressSpace::Shared) => {
                Sync::Ss
            }
            _ if data.dsts.is_empty() => Sync::Distance,
            _ => Sync::Sy,
        },
        Category::Meta if data.opcode == TexPrefetch => Sync::Sy,
        _ => Sync::Distance,
    }
}

/// The time from an instruction to a user of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Slots that are required between the two.
    pub slots: u32,
    /// Preferred slots between them: the required ones, or the time that the user would wait otherwise.
    pub soft: u32,
}

impl Latency {
    const NONE: Self = Self { slots: 0, soft: 0 };

    /// From an instruction to a user of its first result, as far as that is independent of the user.
    #[must_use]
    pub fn of(producer: &InstrData, target: &Target) -> Self {
        let hard = |slots| Self { slots, soft: slots };
        let Some(dst) = producer.dsts.first() else { return Self::NONE };
        if producer.opcode.is_meta() && producer.opcode != Opcode::TexPrefetch {
            return Self::NONE;
        }
        if dst.class.file == RegFile::Address {
            return hard(FAR);
        }
        match sync(producer, target) {
            Sync::Ss if is_alu(producer.opcode) => Self { slots: 0, soft: 6 },
            Sync::Ss => Self { slots: 0, soft: 10 },
            Sync::Sy => Self { slots: 0, soft: wait(producer) },
            Sync::Distance if !is_alu(producer.opcode) || is_scalar_alu(producer, target) => Self::NONE,
            Sync::Distance if dst.class.file == RegFile::Predicate => hard(FAR),
            Sync::Distance => hard(NEAR),
        }
    }

    /// From the first result of `producer` to source `index` of `consumer`.
    #[must_use]
    pub fn between(producer: &InstrData, consumer: &InstrData, index: usize, target: &Target) -> Self {
        let any = Self::of(producer, target);
        let Some(dst) = producer.dsts.first() else { return any };
        if consumer.opcode.is_meta() || matches!(consumer.opcode, Opcode::End | Opcode::Chmask) {
            return Self::NONE;
        }
        if any.slots == 0 && any.soft > 0 || dst.class.file == RegFile::Address {
            return any;
        }
        let hard = |slots| Self { slots, soft: slots };
        if !is_alu(producer.opcode) {
            return Self::NONE;
        }
        if is_scalar_alu(producer, target) {
            // Other users wait with `(ss)`, which includes the distance.
            let same = is_scalar_alu(consumer, target)
                && consumer.srcs.first().is_some_and(|src| src.class.half == dst.class.half);
            return if same { Self::NONE } else { Self { slots: 0, soft: 6 } };
        }
        if !is_alu(consumer.opcode) || dst.class.file == RegFile::Predicate {
            return hard(FAR);
        }
        let src = &consumer.srcs[index];
        let near = if index == 2 && reads_third_late(consumer.opcode) { NEAR - THIRD_SOURCE } else { NEAR };
        hard(if src.class.half == dst.class.half { near } else { near + 3 })
    }
}

/// The approximate latency of a result that users wait for with `(sy)`, in slots.
fn wait(data: &InstrData) -> u32 {
    let components = data.dsts.first().map_or(1, |dst| dst.mask.0.count_ones());
    match data.opcode.category() {
        Category::Texture | Category::Meta => match components {
            0 | 1 => 51,
            2 => 53,
            3 => 62,
            _ => 64,
        },
        _ if data.opcode == Opcode::Ldc => 18 + 4 * components,
        _ => 109 + components,
    }
}
